//! Determines from the trace whether a script's faults took effect.
//!
//! A fault without effect proves nothing about a client: a cut after the end of a body, dropped events where there
//! were none.

use ::trace::fault::Ending;
use ::trace::record::{FrameType, Record, Side, StreamId, What};
use scenario::matching::Read;
use scenario::{
    Action, ClientMode, ClientView, Reply, ReplyBody, RuleAction, Scenario, SentObject, ShapeAction,
    StreamAction, Trigger, form,
};
use serde_json::Value;

/// Effect of a script's faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Effects {
    /// At least one fault took effect.
    pub lied: bool,
    /// The first fault without visible effect: index of its step, and the action's word.
    pub idle: Option<(usize, &'static str)>,
    /// The loop under test last started by a watch without a version: a step that waits for a LIST may never be met.
    pub starts_without_list: bool,
    /// The first step that sent an object as the file has it to a loop that asked for another representation: what such an
    /// object does to the client is no mistake of the client.
    pub foreign: Option<usize>,
}

impl Effects {
    /// Computes the effects of the steps that were met.
    pub fn of(scenario: &Scenario, records: &[Record]) -> Self {
        let view = ClientView::after(scenario, records);
        let mut effects = Self {
            starts_without_list: starts_without_list(records, &view),
            ..Self::default()
        };
        for (index, record) in records.iter().enumerate() {
            let What::Step { step, .. } = &record.what else {
                continue;
            };
            let Some(met) = scenario.steps.get(*step) else {
                continue;
            };
            let by_request = matches!(met.when, Trigger::Request(_));
            let stream = concerned(&records[..index], by_request, &view);
            if effects.foreign.is_none()
                && scenario.client.mode == ClientMode::Watcher
                && met.actions.iter().any(sends_written_object)
                && stream.is_some_and(|stream| !reads_the_kind(&records[..index], stream))
            {
                effects.foreign = Some(*step);
            }
            // Changes of store and watch cache beside writes count: they are rare enough to be the subject of a scenario.
            for action in met.actions.iter().filter(|action| !action.is_write()) {
                if shows(action, &records[index..], stream) {
                    effects.lied = true;
                } else if effects.idle.is_none() {
                    effects.idle = Some((*step, action.word()));
                }
            }
        }
        effects
    }
}

/// Returns whether an action sends an object as JSON of its kind, which the file has.
fn sends_written_object(action: &Action) -> bool {
    match action {
        Action::Stream(StreamAction::Send(frames)) => frames.iter().any(|frame| {
            let event = serde_json::from_slice::<Value>(&frame.bytes);
            event.is_ok_and(|event| event.get("object").is_some() && event["object"]["kind"] != "Status")
        }),
        Action::Stream(StreamAction::SendEvent { object, .. }) => matches!(object, SentObject::Given(_)),
        Action::Shape(ShapeAction::Reply(Reply {
            body: ReplyBody::Json(body),
            ..
        })) => body.get("kind").is_some_and(|kind| kind != "Status"),
        Action::Stream(_) | Action::Store(_) | Action::Shape(_) | Action::Rule(_) | Action::Refuse(_) => {
            false
        }
    }
}

/// Returns whether a request prefers the kind itself to a Table or to metadata alone. A client that prefers protobuf is sent
/// JSON by this server, and reads it.
fn reads_the_kind(records: &[Record], stream: StreamId) -> bool {
    let accept = records.iter().rev().find_map(|record| {
        let What::Request {
            stream: of, accept, ..
        } = &record.what
        else {
            return None;
        };
        (*of == stream).then_some(accept.as_deref())
    });
    form(accept.flatten()).is_empty()
}

/// Returns the response that a step's actions act on: that of the request that met it, otherwise that of the newest
/// watch of the loop under test.
fn concerned(before: &[Record], by_request: bool, view: &ClientView) -> Option<StreamId> {
    let mut reads = before.iter().rev().filter_map(|record| read_of(record, view));
    reads
        .find(|(_, read)| by_request || read.is_watch())
        .map(|(stream, _)| stream)
}

fn starts_without_list(records: &[Record], view: &ClientView) -> bool {
    let mut reads = records.iter().rev().filter_map(|record| read_of(record, view));
    let last = reads.find(|(_, read)| read.is_start());
    last.is_some_and(|(_, read)| read.is_start_without_list())
}

/// Returns a list or watch of the loop under test.
fn read_of<'r>(record: &'r Record, view: &ClientView) -> Option<(StreamId, Read<'r>)> {
    let What::Request {
        stream, verb, query, ..
    } = &record.what
    else {
        return None;
    };
    let read = Read { verb: *verb, query };
    view.is_of_loop(*stream).then_some((*stream, read))
}

/// Returns true if the trace shows the fault, from its step on. Faults without a visible record count as effective.
fn shows(action: &Action, after: &[Record], stream: Option<StreamId>) -> bool {
    let on_stream = || {
        let of_it = move |record: &&Record| record.what.stream() == stream;
        after.iter().filter(of_it).map(|record| &record.what)
    };
    let frames = || {
        on_stream().filter_map(|what| {
            let What::Frame { frame, .. } = what else {
                return None;
            };
            Some(frame)
        })
    };
    let objects = || {
        frames().filter(|frame| {
            matches!(
                frame.kind,
                FrameType::Added | FrameType::Modified | FrameType::Deleted
            )
        })
    };
    match action {
        Action::Rule(RuleAction::Truncate { .. }) => {
            let whole = on_stream().any(|what| matches!(what, What::Page { .. } | What::Body { .. }));
            let ends = |how: Ending| !(whole && how == Ending::Eof);
            on_stream().any(|what| {
                matches!(what, What::Torn { .. })
                    || matches!(what, What::End { how, by: Side::Server, .. } if ends(*how))
            }) || frames().any(|frame| !frame.whole())
        }
        Action::Rule(RuleAction::DropEvents(_)) => {
            on_stream().any(|what| matches!(what, What::Withheld { .. }))
        }
        Action::Rule(RuleAction::RepeatEvent(_)) => objects().next().is_some(),
        Action::Rule(RuleAction::ReorderEvents(_)) => objects().nth(1).is_some(),
        Action::Rule(RuleAction::EndMarker(_)) => {
            frames().any(|frame| matches!(frame.kind, FrameType::Bookmark { .. }))
        }
        // On real sockets nothing listens meanwhile, so the trace has no record of connection attempts.
        Action::Refuse(_) | Action::Rule(_) | Action::Store(_) | Action::Shape(_) | Action::Stream(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use ::trace::fault::Cut;
    use rstest::rstest;
    use scenario::{Place, RequestKind, RequestTrigger, Step, Times};

    use super::*;
    use crate::trace::sample::{Sample, scenario};

    fn truncate() -> Action {
        Action::Rule(RuleAction::Truncate {
            cut: Cut::AfterBytes(9000),
            ending: Ending::Eof,
        })
    }

    fn listed(s: &mut Sample) {
        s.page("10", "", &[("a", "5")]).eof();
    }

    fn torn(s: &mut Sample) {
        s.push(What::Torn {
            stream: StreamId(1),
            sent: 9000,
            bytes: 9100,
        });
    }

    fn nothing(_: &mut Sample) {}

    #[rstest]
    #[case::a_cut_behind_the_end(truncate(), listed, Some("truncate"))]
    #[case::a_cut(truncate(), torn, None)]
    #[case::nothing_to_drop(Action::Rule(RuleAction::DropEvents(1)), nothing, Some("drop_events"))]
    #[case::sent(Action::Stream(StreamAction::End(Ending::Eof)), nothing, None)]
    fn a_lie_shows(#[case] lie: Action, #[case] then: fn(&mut Sample), #[case] idle: Option<&str>) {
        let mut scenario = scenario();
        let step = met_by_a_request(RequestKind::List, lie);
        scenario.steps.push(step);
        let mut s = Sample::new();
        s.list(&[]);
        s.push(What::Step {
            step: 0,
            how: String::new(),
        });
        then(&mut s);
        let effects = Effects::of(&scenario, &s.complete());
        assert_eq!(effects.idle.map(|(_, word)| word), idle);
        assert_eq!(effects.lied, idle.is_none());
    }

    fn met_by_a_request(kind: RequestKind, action: Action) -> Step {
        Step {
            at: Place { line: 5, column: 3 },
            name: None,
            optional: false,
            when: Trigger::Request(RequestTrigger {
                kind,
                nth: Some(1),
                query: Vec::new(),
            }),
            times: Times::Count(1),
            actions: vec![action],
            within_ms: None,
            requirements: Vec::new(),
        }
    }

    fn raw(text: &str) -> Action {
        Action::Stream(StreamAction::Send(vec![scenario::RawFrame {
            bytes: text.into(),
            newline: true,
        }]))
    }

    fn given() -> Action {
        Action::Stream(StreamAction::SendEvent {
            kind: "MODIFIED".to_owned(),
            object: SentObject::Given(serde_json::json!({"metadata": {"name": "a"}})),
            resource_version: None,
        })
    }

    const EVENT: &str = r#"{"type":"MODIFIED","object":{"kind":"ConfigMap","metadata":{"name":"a"}}}"#;
    const STATUS: &str = r#"{"type":"ERROR","object":{"kind":"Status","code":410}}"#;
    const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    const PROTOBUF: &str = "application/vnd.kubernetes.protobuf,application/json";

    #[rstest]
    #[case::json(raw(EVENT), None, false)]
    #[case::plain(raw(EVENT), Some("application/json, */*"), false)]
    #[case::metadata(raw(EVENT), Some(METADATA), true)]
    #[case::protobuf(raw(EVENT), Some(PROTOBUF), false)]
    #[case::written(given(), Some(METADATA), true)]
    #[case::status(raw(STATUS), Some(METADATA), false)]
    #[case::garbage(raw("\u{feff}{"), Some(METADATA), false)]
    fn an_object_of_the_file_is_foreign_to_another_representation(
        #[case] action: Action,
        #[case] accept: Option<&str>,
        #[case] is_foreign: bool,
    ) {
        let mut scenario = scenario();
        scenario.steps.push(met_by_a_request(RequestKind::Watch, action));
        let mut s = Sample::new();
        s.list(&[]).page("10", "", &[("a", "5")]).eof().watch("10");
        s.push(What::Step {
            step: 0,
            how: String::new(),
        });
        let mut records = s.complete();
        for record in &mut records {
            if let What::Request { accept: of, .. } = &mut record.what {
                *of = accept.map(str::to_owned);
            }
        }
        assert_eq!(Effects::of(&scenario, &records).foreign, is_foreign.then_some(0));
    }
}

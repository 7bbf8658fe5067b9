//! Determines from the trace whether a script's faults took effect.
//!
//! A fault without effect proves nothing about a client: a cut after the end of a body, dropped events where there
//! were none.

use ::trace::fault::Ending;
use ::trace::record::{FrameType, Record, Side, StreamId, What};
use scenario::matching::Read;
use scenario::{Action, ClientView, RuleAction, Scenario, StoreAction, Trigger};

/// Effect of a script's faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Effects {
    /// At least one fault took effect.
    pub lied: bool,
    /// The first fault without visible effect: index of its step, and the action's word.
    pub idle: Option<(usize, &'static str)>,
    /// The loop under test starts by watches without a version, and never lists: a step that waits for a LIST is never met.
    pub never_lists: bool,
}

impl Effects {
    /// Computes the effects of the steps that were met.
    pub fn of(scenario: &Scenario, records: &[Record]) -> Self {
        let view = ClientView::after(scenario, records);
        let mut effects = Self {
            never_lists: never_lists(records, &view),
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
            for action in met.actions.iter().filter(|action| is_lie(action)) {
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

/// Returns true for actions other than writes. Changes of store and watch cache beside writes count, because they are
/// rare enough to be the subject of a scenario.
fn is_lie(action: &Action) -> bool {
    match action {
        Action::Store(action) => match action {
            StoreAction::Apply(_) | StoreAction::Delete { .. } | StoreAction::Relabel { .. } => false,
            StoreAction::Compact
            | StoreAction::ClearWatchCache(_)
            | StoreAction::FreezeWatchCache(_)
            | StoreAction::LagWatchCache { .. }
            | StoreAction::ThawWatchCache(_)
            | StoreAction::Restore { .. }
            | StoreAction::Restart(_)
            | StoreAction::JumpClock { .. } => true,
        },
        Action::Shape(_) | Action::Rule(_) | Action::Stream(_) | Action::Refuse(_) => true,
    }
}

/// Returns the response that a step's actions act on: that of the request that met it, otherwise that of the newest
/// watch of the loop under test.
fn concerned(before: &[Record], by_request: bool, view: &ClientView) -> Option<StreamId> {
    let mut reads = before.iter().rev().filter_map(|record| read_of(record, view));
    reads
        .find(|(_, read)| by_request || read.is_watch())
        .map(|(stream, _)| stream)
}

fn never_lists(records: &[Record], view: &ClientView) -> bool {
    let mut starts = records
        .iter()
        .filter_map(|record| read_of(record, view))
        .filter(|(_, read)| read.is_start());
    starts.clone().next().is_some() && starts.all(|(_, read)| read.is_start_without_list())
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
        Action::Refuse(_)
        | Action::Rule(RuleAction::NoBookmarks)
        | Action::Store(_)
        | Action::Shape(_)
        | Action::Stream(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use ::trace::fault::Cut;
    use rstest::rstest;
    use scenario::{Place, RequestKind, RequestTrigger, Step, StreamAction, Times};

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
        scenario.steps.push(Step {
            at: Place { line: 5, column: 3 },
            name: None,
            optional: false,
            when: Trigger::Request(RequestTrigger {
                kind: RequestKind::List,
                nth: Some(1),
                query: Vec::new(),
            }),
            times: Times::Count(1),
            actions: vec![lie],
            within_ms: None,
        });
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
}

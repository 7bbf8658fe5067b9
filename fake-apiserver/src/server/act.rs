//! What the actions of a step do: to an answer, and to the socket; what they do to the truth, `truth.rs` knows.
//!
//! Actions run in the order written. Those on an answer first let out what the truth already had to say, except on a
//! request the same step was just triggered by: there the script speaks first.

use std::time::Duration;

use apimachinery::ObjectRef;
use apimachinery::continue_token::ContinueToken;
use apimachinery::encode::encode_json;
use bytes::Bytes;
use scenario::{
    Action, Expected, ItemsShape, PageEdit, Reply, ReplyBody, SayAction, ShapeAction, StatusSpec,
};
use serde_json::{Map, Value, json};
use trace::fault::Ending;
use trace::record::{Replica, StreamId, What};

use super::names::{Binding, expand};
use super::scripted::{error_event, event_frame, object_ref, raw_frame};
use super::{Open, Output, Server, Source};
use crate::api::{self, Answer, Request};
use crate::model::{Page, WatchFrame};

/// Whose answers actions concern.
#[derive(Debug)]
pub(super) enum On {
    /// The request that met the trigger, not yet answered; once it is gone, the newest open watch.
    Request(StreamId),
    /// The newest open watch.
    NewestWatch,
    /// These, as far as they are still open.
    These(Vec<StreamId>),
}

impl Server {
    /// Carries out a step. `triggered_by`: the request that met it, not yet answered.
    pub(super) fn run_step(&mut self, now: Duration, step: usize, triggered_by: Option<StreamId>) {
        let scenario = self.scenario.clone();
        let step_of = &scenario.steps[step];
        self.log.push(
            now,
            What::Step {
                step,
                how: words(&step_of.actions),
            },
        );
        tracing::debug!(step, "step met");
        if let (Some(id), Some(name)) = (triggered_by, &step_of.name)
            && let Some(open) = self.open.get_mut(&id)
        {
            open.bind = Some(name.clone());
        }
        let on = match triggered_by {
            Some(id) => On::Request(id),
            None => On::NewestWatch,
        };
        let target = (scenario.target.group.clone(), scenario.target.plural.clone());
        self.act(now, &step_of.actions, &on, Some(&target), None);
    }

    /// Carries out actions, in the order written. Those on the watch cache concern `target` at `replica`; without one, every
    /// resource, or both.
    pub(super) fn act(
        &mut self,
        now: Duration,
        actions: &[Action],
        on: &On,
        target: Option<&(String, String)>,
        replica: Option<Replica>,
    ) {
        // On the request that met the step the script speaks first, until it changes the truth.
        let triggered_by = match on {
            On::Request(id) => Some(*id),
            On::NewestWatch | On::These(_) => None,
        };
        let mut truth_has_spoken = triggered_by.is_none();
        for action in actions {
            match action {
                Action::Truth(action) => {
                    truth_has_spoken = true;
                    self.change_truth(now, action, target, replica);
                    // A read may wait for it, and a watch have something to say.
                    self.touch_all();
                }
                Action::Refuse(ms) => {
                    self.refused_until = now + Duration::from_millis(*ms);
                    self.turned(now, format!("connections refused for {ms} ms"));
                }
                Action::Shape(_) | Action::Rule(_) | Action::Say(_) => {
                    for stream in self.concerned(on) {
                        self.act_on(now, stream, action, triggered_by, truth_has_spoken);
                    }
                }
            }
        }
    }

    fn act_on(
        &mut self,
        now: Duration,
        stream: StreamId,
        action: &Action,
        triggered_by: Option<StreamId>,
        truth_has_spoken: bool,
    ) {
        match action {
            Action::Truth(_) | Action::Refuse(_) => {}
            Action::Shape(action) => self.shape(now, stream, action),
            Action::Rule(action) => {
                self.decide(now, stream);
                if Some(stream) != triggered_by {
                    self.pump(now, stream);
                }
                self.with(stream, |open| open.exchange.obey(action));
            }
            Action::Say(action) => {
                self.decide(now, stream);
                if truth_has_spoken {
                    self.pump(now, stream);
                }
                self.say(now, stream, action);
            }
        }
    }

    /// Whose answers an action concerns now. None: the watch it was meant for ended in this very step.
    fn concerned(&self, on: &On) -> Vec<StreamId> {
        match on {
            On::Request(id) if self.open.contains_key(id) => vec![*id],
            On::Request(_) | On::NewestWatch => self.newest_watch().into_iter().collect(),
            On::These(streams) => streams
                .iter()
                .copied()
                .filter(|id| self.open.contains_key(id))
                .collect(),
        }
    }

    fn shape(&mut self, now: Duration, stream: StreamId, action: &ShapeAction) {
        match action {
            ShapeAction::Reply(reply) => self.reply(stream, reply),
            ShapeAction::EditPage(edit) => self.with(stream, |open| open.edit = Some(edit.clone())),
            ShapeAction::Delay(ms) => {
                let at = now + Duration::from_millis(*ms);
                self.with(stream, |open| open.exchange.delay_until(at));
            }
            ShapeAction::Pace(pace) => self.with(stream, |open| open.exchange.set_pace(*pace)),
            ShapeAction::Gzip => self.with(stream, |open| {
                if api::takes_gzip(&open.asked.request) {
                    open.exchange.compress();
                }
            }),
            ShapeAction::NoAnswer(ending) => self.with(stream, |open| {
                open.source = Source::Decided;
                open.exchange.refuse_to_answer(*ending);
            }),
        }
    }

    fn say(&mut self, now: Duration, stream: StreamId, action: &SayAction) {
        match action {
            SayAction::Send(frames) => {
                for frame in frames {
                    self.push_scripted(stream, raw_frame(frame));
                }
            }
            SayAction::SendEvent {
                kind,
                object,
                resource_version,
            } => {
                let form = self.open.get(&stream).map(|open| open.asked.form);
                let object = form.and_then(|form| self.sent_object(object, form));
                let Some(object) = object else {
                    return self.turned(now, "no event sent: the object is not there".to_owned());
                };
                let version = resource_version
                    .as_ref()
                    .map(|wanted| (wanted, self.value(wanted)));
                self.push_scripted(stream, event_frame(kind, object, version));
            }
            SayAction::SendError(spec) => {
                let object = self.status_json(spec, None, None);
                self.push_scripted(stream, error_event(&object));
            }
            SayAction::SendBookmark {
                resource_version,
                initial_events_end,
                binds,
            } => {
                let sent =
                    self.send_bookmark(stream, resource_version.as_ref(), initial_events_end.as_deref());
                if let Some(name) = binds {
                    self.bind(
                        now,
                        name,
                        Binding {
                            resource_version: sent,
                            continue_token: None,
                        },
                    );
                }
            }
            SayAction::Goaway => {
                if let Some(conn) = self.open.get(&stream).map(|open| open.exchange.conn) {
                    self.log.push(now, What::Goaway { conn });
                    self.outputs.push_back(Output::Goaway { stream });
                }
            }
            SayAction::End(ending) => self.end(stream, *ending),
        }
    }

    fn reply(&mut self, stream: StreamId, reply: &Reply) {
        let Some(mut open) = self.open.remove(&stream) else {
            return;
        };
        if !open.exchange.decided() {
            let (body, content_type) = match &reply.body {
                ReplyBody::Status(spec) => {
                    let status =
                        self.status_json(spec, Some(reply.status), open.asked.continue_token.as_deref());
                    (with_newline(encode_json(&status)), "application/json")
                }
                ReplyBody::Json(value) => (with_newline(encode_json(value)), "application/json"),
                ReplyBody::Raw(text) => (text.clone().into_bytes(), "text/plain; charset=utf-8"),
                ReplyBody::Truth => (self.truthful_body(&open.source), "application/json"),
            };
            let mut headers = reply.headers.clone();
            if !headers
                .iter()
                .any(|(name, _)| name.eq_ignore_ascii_case("content-type"))
            {
                headers.push(("Content-Type".to_owned(), content_type.to_owned()));
            }
            if let Some(after) = &reply.retry_after {
                headers.push(("Retry-After".to_owned(), after.clone()));
            }
            open.source = Source::Decided;
            let answer = Answer {
                status: reply.status,
                headers,
                body: Bytes::from(body),
            };
            open.answer_with(answer, true);
        }
        self.open.insert(stream, open);
        self.touched.insert(stream);
    }

    /// The body the truth would give now, for an answer that lies about its head only.
    fn truthful_body(&self, source: &Source) -> Vec<u8> {
        match source {
            Source::Undecided(Request::List(request)) => match self.model.list(self.now, self.now, request) {
                crate::model::ListOutcome::Page(page) => page.encode().to_vec(),
                crate::model::ListOutcome::Refused(status) => status.to_bytes().to_vec(),
                crate::model::ListOutcome::Wait { .. } => Vec::new(),
            },
            Source::Refused(refusal) => refusal.body.to_vec(),
            Source::Undecided(
                Request::Watch(_)
                | Request::Get(_)
                | Request::Write(_)
                | Request::Review(_)
                | Request::Connect(_)
                | Request::Document(_),
            )
            | Source::Waiting { .. }
            | Source::WaitingGet { .. }
            | Source::Watch(_)
            | Source::Page { .. }
            | Source::Decided => Vec::new(),
        }
    }

    fn status_json(&self, spec: &StatusSpec, http: Option<u16>, sent: Option<&str>) -> Value {
        let mut metadata = Map::new();
        if spec.inconsistent_token
            && let Some(token) = sent.and_then(|text| ContinueToken::decode(text).ok())
        {
            let start = token.start.trim_start_matches('/').to_owned();
            let token = ContinueToken { revision: -1, start }.encode();
            metadata.insert("continue".to_owned(), Value::String(token));
        }
        let mut status = Map::new();
        status.insert("kind".to_owned(), json!("Status"));
        status.insert("apiVersion".to_owned(), json!("v1"));
        status.insert("metadata".to_owned(), Value::Object(metadata));
        status.insert("status".to_owned(), json!("Failure"));
        if let Some(message) = &spec.message {
            status.insert("message".to_owned(), json!(message));
        }
        if let Some(reason) = &spec.reason {
            status.insert("reason".to_owned(), json!(reason));
        }
        if !spec.causes.is_empty() || spec.retry_after_seconds.is_some() {
            let mut details = Map::new();
            if !spec.causes.is_empty() {
                let causes: Vec<Value> = spec
                    .causes
                    .iter()
                    .map(|reason| json!({ "reason": reason }))
                    .collect();
                details.insert("causes".to_owned(), Value::Array(causes));
            }
            if let Some(seconds) = spec.retry_after_seconds {
                details.insert("retryAfterSeconds".to_owned(), json!(seconds));
            }
            status.insert("details".to_owned(), Value::Object(details));
        }
        if let Some(code) = spec.code.or(http) {
            status.insert("code".to_owned(), json!(code));
        }
        Value::Object(status)
    }

    pub(super) fn edited_page(&mut self, stream: StreamId, page: &Page, edit: &PageEdit) -> (Bytes, What) {
        let mut json = page.to_json();
        let added: Vec<Value> = edit
            .add
            .iter()
            .map(|item| self.identified(item.clone()))
            .collect();
        let keep = |name: &str| {
            !edit
                .without
                .iter()
                .any(|without| without == "*" || without == name)
        };
        let mut items: Vec<ObjectRef> = page
            .items
            .iter()
            .map(|item| item.object_ref())
            .filter(|item| keep(item.key.rsplit('/').next().unwrap_or_default()))
            .collect();
        let all_left_out = items.is_empty() && !page.items.is_empty();
        if let Some(list) = json.get_mut("items").and_then(Value::as_array_mut) {
            list.retain(|item| {
                item.pointer("/metadata/name")
                    .and_then(Value::as_str)
                    .is_none_or(keep)
            });
            list.extend(added.iter().cloned());
        }
        items.extend(added.iter().map(object_ref));

        let resource_version = match &edit.resource_version {
            None => page.resource_version.to_string(),
            Some(wanted) => self.value(wanted).unwrap_or_default(),
        };
        let continue_token = match &edit.continue_token {
            None => page.continue_token.clone().unwrap_or_default(),
            Some(wanted) => {
                let token = self.value(wanted).unwrap_or_default();
                if !token.is_empty() {
                    let truthful = self.continues_at(stream, page, all_left_out);
                    self.aliases.insert(token.clone(), truthful);
                }
                token
            }
        };
        let remaining = edit.remaining.or(page.remaining);
        if let Some(metadata) = json.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.clear();
            if edit.resource_version != Some(Expected::Absent) {
                metadata.insert("resourceVersion".to_owned(), json!(resource_version));
            }
            if !continue_token.is_empty() || edit.continue_token == Some(Expected::Is(String::new())) {
                metadata.insert("continue".to_owned(), json!(continue_token));
            }
            if let Some(remaining) = remaining {
                metadata.insert("remainingItemCount".to_owned(), json!(remaining));
            }
        }
        if let Some(object) = json.as_object_mut() {
            match edit.items {
                None => {}
                Some(ItemsShape::Null) => {
                    object.insert("items".to_owned(), Value::Null);
                }
                Some(ItemsShape::Missing) => {
                    object.shift_remove("items");
                }
            }
            if let Some(kind) = &edit.kind {
                object.insert("kind".to_owned(), json!(kind));
            }
        }
        if edit.items.is_some() {
            items.clear();
        }
        let record = What::Page {
            stream,
            resource_version,
            continue_token,
            remaining,
            items,
            scripted: true,
        };
        (Bytes::from(with_newline(encode_json(&json))), record)
    }

    /// Where a made-up token goes on: where the page it stood on would have, or at that page's own beginning if none
    /// of it was sent.
    fn continues_at(&self, stream: StreamId, page: &Page, all_left_out: bool) -> String {
        let own = self
            .open
            .get(&stream)
            .and_then(|open| open.asked.continue_token.clone());
        match (&page.continue_token, own) {
            (_, Some(own)) if all_left_out => own,
            (Some(next), _) => next.clone(),
            // Nothing is left: a token behind the last key gives an empty last page.
            (None, _) => ContinueToken {
                revision: i64::try_from(page.resource_version).unwrap_or(i64::MAX),
                start: "/\u{10FFFF}".to_owned(),
            }
            .encode(),
        }
    }

    /// Gives the resourceVersion it was sent with.
    fn send_bookmark(
        &mut self,
        stream: StreamId,
        version: Option<&Expected>,
        initial_events_end: Option<&str>,
    ) -> String {
        let version = match version {
            None => match self.open.get(&stream).map(|open| &open.source) {
                // The promise of a bookmark is that everything up to it was sent on this watch.
                Some(Source::Watch(session)) => session.shown(&self.model).to_string(),
                // A watch that the server has ended sends nothing more.
                Some(Source::Decided) => return String::new(),
                Some(_) | None => self.model.revision().to_string(),
            },
            Some(wanted) => self.value(wanted).unwrap_or_default(),
        };
        let frame = self.open.get(&stream).and_then(|open| {
            let collection = open.asked.collection.as_ref()?;
            Some(
                self.model
                    .bookmark_frame(collection, &version, initial_events_end, open.asked.form),
            )
        });
        if let Some(frame) = frame {
            self.push_scripted(stream, frame);
        }
        version
    }

    fn end(&mut self, stream: StreamId, ending: Ending) {
        self.with(stream, |open: &mut Open| {
            if matches!(open.source, Source::Watch(_)) {
                open.source = Source::Decided;
                open.exchange.end(ending);
            } else {
                open.source = Source::Decided;
                open.exchange.end_without_body(ending);
            }
        });
    }

    fn push_scripted(&mut self, stream: StreamId, frame: WatchFrame) {
        self.with(stream, |open| open.exchange.push_line(frame, true));
    }

    pub(super) fn value(&self, wanted: &Expected) -> Option<String> {
        expand(&self.bindings, wanted)
    }
}

pub(super) fn with_newline(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.push(b'\n');
    bytes
}

/// A step in words, for the transcript.
pub(super) fn words(actions: &[Action]) -> String {
    let mut words: Vec<&'static str> = actions.iter().map(Action::word).collect();
    words.dedup();
    words.join(", ")
}

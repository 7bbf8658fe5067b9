//! Deviations of a response from what a real apiserver sends: head, body, watch events, end, and timing.
//!
//! Values arrive as they are sent, with names of a scenario file already resolved. If the real response must be decided
//! first, the caller calls [`ApiServer::decide`].

use std::time::Duration;

use apimachinery::ObjectRef;
use apimachinery::continue_token::ContinueToken;
use apimachinery::encode::encode_json;
use apimachinery::path::{ResourcePath, decoded_path};
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use scenario::{
    Expected, ItemsShape, PageEdit, RawFrame, Reply, ReplyBody, RuleAction, SentObject, ShapeAction,
    StatusSpec,
};
use serde_json::{Map, Value, json};
use trace::fault::Ending;
use trace::record::{StreamId, Turn, Verb, What};

use super::exchange::Instead;
use super::output::Output;
use super::scripted::{error_event, event_frame, raw_frame};
use super::{ApiServer, Open, Source};
use crate::api::{self, Answer, Header, HttpRequest, JSON, Request, TEXT, header};
use crate::model::{ListOutcome, Page, WatchFrame};

impl ApiServer {
    /// Changes the response as a whole. Has no effect on the head once that is decided.
    pub(crate) fn shape(&mut self, now: Duration, stream: StreamId, action: &ShapeAction) {
        // A rule for requests of any kind may match a read, which writes nothing.
        let writes = self
            .open
            .get(&stream)
            .is_some_and(|open| open.asked.verb == Verb::Other);
        match action {
            ShapeAction::Reply(reply) if reply.after_write && writes => {
                self.reply_after_write(now, stream, reply)
            }
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
            ShapeAction::LoseAnswer(ending) if writes => {
                self.with(stream, |open| open.exchange.replace(Instead::Silence(*ending)));
                self.decide(now, stream);
            }
            ShapeAction::NoAnswer(ending) | ShapeAction::LoseAnswer(ending) => self.with(stream, |open| {
                open.source = Source::Decided;
                open.exchange.refuse_to_answer(*ending);
            }),
        }
    }

    /// Adds a rule for the events of a watch from here on.
    pub(crate) fn obey(&mut self, stream: StreamId, rule: &RuleAction) {
        self.with(stream, |open| open.exchange.obey(rule));
    }

    /// Sends raw bytes on a watch.
    pub(crate) fn send_raw(&mut self, stream: StreamId, frame: &RawFrame) {
        self.push_scripted(stream, raw_frame(frame));
    }

    /// Sends a watch event. `version`: its resourceVersion, [`Expected::Absent`] for none; `None`: that of the object.
    /// Returns false if there is no such object.
    pub(crate) fn send_event(
        &mut self,
        stream: StreamId,
        kind: &str,
        object: &SentObject,
        version: Option<&Expected>,
    ) -> bool {
        let form = self.open.get(&stream).map(|open| open.asked.form);
        let Some(object) = form.and_then(|form| self.sent_object(object, form)) else {
            return false;
        };
        self.push_scripted(stream, event_frame(kind, object, version));
        true
    }

    /// Sends an ERROR event.
    pub(crate) fn send_error(&mut self, stream: StreamId, spec: &StatusSpec) {
        self.push_scripted(stream, error_event(&status_json(spec, None, None)));
    }

    /// Sends a bookmark with this resourceVersion; `None`: the one up to which the watch has sent events, and no bookmark
    /// on a watch that is refused or over. Returns the resourceVersion, empty if no bookmark was sent.
    pub(crate) fn send_bookmark(
        &mut self,
        stream: StreamId,
        version: Option<String>,
        initial_events_end: Option<&str>,
    ) -> String {
        if self.forwards() {
            return self.send_upstream_bookmark(stream, version, initial_events_end);
        }
        let version = match version {
            None => match self.open.get(&stream).map(|open| &open.source) {
                // A bookmark promises that everything up to it was sent on this watch.
                Some(Source::Watch(session)) => match session.shown(&self.model) {
                    Some(revision) => revision.to_string(),
                    None => return String::new(),
                },
                // A watch that the server has ended sends nothing more.
                Some(Source::Decided) => return String::new(),
                Some(_) | None => self.model.revision().to_string(),
            },
            Some(version) => version,
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

    /// Sends GOAWAY on the connection of a response.
    pub(crate) fn send_goaway(&mut self, now: Duration, stream: StreamId) {
        if let Some(open) = self.open.get(&stream) {
            let conn = open.asked.conn;
            self.log.push(now, What::Goaway { conn });
            self.outputs.push_back(Output::Goaway { stream });
        }
    }

    /// Ends the response: a watch after its queued events, any other before its body.
    pub(crate) fn end(&mut self, stream: StreamId, ending: Ending) {
        self.with(stream, |open: &mut Open| {
            let is_watch = open.source.is_watch();
            if let Source::Upstream(forwarded) = &mut open.source
                && forwarded.end_after_head(ending)
            {
                return;
            }
            open.source = Source::Decided;
            if is_watch {
                open.exchange.end(ending);
            } else {
                open.exchange.end_without_body(ending);
            }
        });
    }

    fn reply(&mut self, stream: StreamId, reply: &Reply) {
        let Some(mut open) = self.open.remove(&stream) else {
            return;
        };
        if !open.exchange.decided() {
            let answer = self.scripted_answer(&open, reply);
            if self.kept.is_some() {
                self.record_sent(stream, resource_of(&open.asked.request).as_ref(), &answer.body);
            }
            open.source = Source::Decided;
            open.answer_with(answer, true);
        }
        self.open.insert(stream, open);
        self.touched.push(stream);
    }

    /// Carries the request out, and sends this instead of its response.
    fn reply_after_write(&mut self, now: Duration, stream: StreamId, reply: &Reply) {
        let Some(open) = self.open.get(&stream) else {
            return;
        };
        let response = open.response(self.scripted_answer(open, reply), true);
        let instead = Instead::Answer(Box::new(response));
        self.with(stream, |open| open.exchange.replace(instead));
        self.decide(now, stream);
    }

    fn scripted_answer(&self, open: &Open, reply: &Reply) -> Answer {
        let (body, content_type) = match &reply.body {
            ReplyBody::Status(spec) => {
                let status = status_json(spec, Some(reply.status), open.asked.continue_token.as_deref());
                (with_newline(encode_json(&status)), JSON)
            }
            ReplyBody::Json(value) => (with_newline(encode_json(value)), JSON),
            ReplyBody::Raw(text) => (text.clone().into_bytes(), TEXT),
            ReplyBody::Unmodified => (self.unmodified_body(&open.source), JSON),
        };
        let sent = reply.headers.iter();
        let mut headers: Vec<Header> = sent.filter_map(|(name, value)| header(name, value)).collect();
        if !headers.iter().any(|(name, _)| *name == CONTENT_TYPE) {
            headers.push((CONTENT_TYPE, content_type));
        }
        if let Some(after) = &reply.retry_after {
            headers.extend(header("Retry-After", after));
        }
        Answer {
            status: reply.status,
            headers,
            body: Bytes::from(body),
        }
    }

    /// Returns the body a real apiserver would send now, for a response with a scripted head.
    fn unmodified_body(&self, source: &Source) -> Vec<u8> {
        match source {
            Source::Undecided(Request::List(request), _) => {
                match self.model.list(self.now, self.now, request) {
                    ListOutcome::Page(page) => page.encode().to_vec(),
                    ListOutcome::Refused(status) => status.to_bytes().to_vec(),
                    ListOutcome::Wait { .. } => Vec::new(),
                }
            }
            Source::Refused(refusal) => refusal.body.to_vec(),
            Source::Undecided(
                Request::Watch(_)
                | Request::Get(_)
                | Request::Write(_)
                | Request::Review(_)
                | Request::Connect(_)
                | Request::Document(_),
                _,
            )
            | Source::Unsent(_)
            | Source::Upstream(_)
            | Source::Waiting { .. }
            | Source::WaitingGet { .. }
            | Source::Watch(_)
            | Source::Page { .. }
            | Source::Hooked(_)
            | Source::Decided => Vec::new(),
        }
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
        items.extend(added.iter().map(ObjectRef::of));

        let resource_version = match &edit.resource_version {
            None => page.resource_version.to_string(),
            Some(wanted) => text(wanted).to_owned(),
        };
        if self.kept.is_some() {
            let resource = self.resource_of(stream);
            for item in &added {
                self.record_sent(stream, &resource, &encode_json(item));
            }
        }
        let continue_token = match &edit.continue_token {
            None => page.continue_token.clone().unwrap_or_default(),
            Some(wanted) => {
                let token = text(wanted).to_owned();
                if !token.is_empty() {
                    let original = self.continues_at(stream, page, all_left_out);
                    self.aliases.insert(token.clone(), original);
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

    /// Returns the real continue token for an invented one: that of the page, or that of the request if the page was sent
    /// empty.
    fn continues_at(&self, stream: StreamId, page: &Page, all_left_out: bool) -> String {
        let own = self
            .open
            .get(&stream)
            .and_then(|open| open.asked.continue_token.clone());
        match (&page.continue_token, own) {
            (_, Some(own)) if all_left_out => own,
            (Some(next), _) => next.clone(),
            // The list is complete: a token after the last key gets an empty last page.
            (None, _) => ContinueToken {
                revision: i64::try_from(page.resource_version).unwrap_or(i64::MAX),
                start: "/\u{10FFFF}".to_owned(),
            }
            .encode(),
        }
    }

    fn resource_of(&self, stream: StreamId) -> String {
        let open = self.open.get(&stream);
        open.map(|open| resource_of(&open.asked.request))
            .unwrap_or_default()
    }

    /// Queues a scripted event. Nothing follows the Status of a request that the server itself refuses.
    pub(super) fn push_scripted(&mut self, stream: StreamId, frame: WatchFrame) {
        let open = self.open.get(&stream);
        if open.is_some_and(|open| matches!(open.source, Source::Refused(_)) || open.exchange.is_refused()) {
            let how = "no event sent: the request is refused";
            return self.turned(self.now, Turn::Other(how.to_owned()));
        }
        if self.kept.is_some() {
            let resource = self.resource_of(stream);
            self.record_sent(stream, &resource, &frame.line);
        }
        self.with(stream, |open| open.exchange.push_line(frame, true));
    }
}

/// Returns the resource (plural) of a request's path; empty if it has none.
fn resource_of(request: &HttpRequest) -> String {
    let path = decoded_path(&request.path);
    let place = ResourcePath::read(&path);
    place.map(|place| place.resource.to_owned()).unwrap_or_default()
}

fn status_json(spec: &StatusSpec, http: Option<u16>, sent: Option<&str>) -> Value {
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

/// Returns the text of a resolved value; absent is empty.
fn text(wanted: &Expected) -> &str {
    match wanted {
        Expected::Is(text) => text,
        Expected::Ref(_) | Expected::Not(_) | Expected::Absent | Expected::Present => "",
    }
}

pub(super) fn with_newline(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.push(b'\n');
    bytes
}

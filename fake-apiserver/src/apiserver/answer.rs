//! Responses as the model computes them: queued on the exchange with headers and the record for the trace.
//!
//! Bytes are sent by `flow.rs`, and deviations are made by `deviate.rs`.

use std::time::Duration;

use apimachinery::options::{GetRequest, ListRequest, WatchRequest};
use apimachinery::status::Status;
use apimachinery::{ObjectRef, Version};
use bytes::Bytes;
use http::HeaderName;
use http::header::CONTENT_LENGTH;
use trace::fault::Ending;
use trace::record::{Replica, StreamId, What};

use super::exchange::Head;
use super::{ApiServer, Asked, Open, Source};
use crate::api;
use crate::api::{Answer, Document, Header, HttpRequest, Request, StyledText, websocket};
use crate::model::{GetOutcome, ListOutcome, Model, Page};

/// Longest body that is parsed as a Status for the trace, in bytes.
const LONGEST_STATUS: usize = 64 * 1024;

impl ApiServer {
    /// Computes the response of a request that is not decided yet.
    pub(crate) fn decide(&mut self, now: Duration, stream: StreamId) {
        let Some(open) = self.open.get_mut(&stream) else {
            return;
        };
        if open.exchange.decided() || open.calls > 0 {
            return;
        }
        match std::mem::replace(&mut open.source, Source::Decided) {
            Source::Decided => {}
            source @ (Source::Watch(_) | Source::Page { .. } | Source::Hooked(_) | Source::Upstream(_)) => {
                open.source = source;
            }
            Source::Unsent(request) => self.forward(now, stream, request),
            Source::Refused(refusal) => self.answer(stream, refusal),
            Source::Undecided(Request::Watch(_), _) if self.refuses_upgrade(stream) => {}
            Source::Undecided(Request::Watch(request), user) => {
                let lifetime = self.draw_lifetime();
                let replica = self.replica_at(stream);
                let opened = self.model.open_watch_at(replica, now, &request, lifetime);
                let converts = Model::may_convert(&request.collection.kind);
                match opened {
                    Ok(_) if converts && self.model.needs() => {
                        self.convert(now, stream, Source::Undecided(Request::Watch(request), user));
                    }
                    Ok(session) => {
                        let compresses =
                            self.settings.version >= Version::V1_37 && is_streaming_list(&request);
                        self.with(stream, |open| {
                            open.source = Source::Watch(Box::new(session));
                            let asked = &open.asked.request;
                            if compresses && api::takes_gzip(asked) && websocket::handshake(asked).is_none() {
                                open.exchange.compress_flushes();
                            }
                        });
                        self.begin_watch(stream);
                        self.with(stream, |open| open.asked.request.query.compact());
                    }
                    Err(status) => self.answer(stream, status.into()),
                }
            }
            Source::Undecided(Request::List(request), _) => self.decide_list(now, stream, request, now),
            Source::Waiting { request, arrived, .. } => self.decide_list(now, stream, request, arrived),
            Source::Undecided(Request::Get(request), _) => self.decide_get(now, stream, request, now),
            Source::WaitingGet { request, arrived, .. } => self.decide_get(now, stream, request, arrived),
            Source::Undecided(Request::Write(request), user) => self.decide_write(now, stream, request, user),
            Source::Undecided(Request::Review(request), user) => {
                self.decide_review(now, stream, request, &user)
            }
            Source::Undecided(Request::Connect(request), _) => {
                let connected = self.model.connect(&request);
                self.answer(
                    stream,
                    connected.map_or_else(Answer::from, |()| Answer::nothing()),
                );
            }
            Source::Undecided(Request::Document(document), _) => {
                self.answer_document(stream, &document);
            }
        }
        if self.open.get(&stream).is_some_and(|open| open.exchange.decided()) {
            self.touched.push(stream);
        }
    }

    /// Rejects a watch with an invalid WebSocket handshake. Returns whether it did.
    fn refuses_upgrade(&mut self, stream: StreamId) -> bool {
        let Some(open) = self.open.get_mut(&stream) else {
            return false;
        };
        let refused = websocket::handshake(&open.asked.request).filter(|(status, _)| *status != 101);
        if let Some((status, headers)) = refused.clone() {
            open.exchange.set_head(Head {
                status,
                headers,
                scripted: false,
            });
            open.exchange.end(Ending::Eof);
        }
        refused.is_some()
    }

    fn decide_list(&mut self, now: Duration, stream: StreamId, request: ListRequest, arrived: Duration) {
        let listed = self
            .model
            .list_at(self.replica_at(stream), now, arrived, &request);
        if Model::may_convert(&request.collection.kind) && self.model.needs() {
            return self.convert(now, stream, Source::Waiting { request, arrived });
        }
        match listed {
            ListOutcome::Page(page) => match self.fits(stream, |asked| api::page_fits(asked, &page.kind)) {
                Ok(()) => self.answer_page(stream, page),
                Err(status) => self.answer(stream, status.into()),
            },
            ListOutcome::Refused(status) => self.answer(stream, status.into()),
            ListOutcome::Wait { until } => {
                self.wait(now, stream, until, Source::Waiting { request, arrived });
            }
        }
    }

    fn decide_get(&mut self, now: Duration, stream: StreamId, request: GetRequest, arrived: Duration) {
        let found = self.model.get_at(self.replica_at(stream), now, arrived, &request);
        if Model::may_convert(&request.collection.kind) && self.model.needs() {
            return self.convert(now, stream, Source::WaitingGet { request, arrived });
        }
        match found {
            GetOutcome::Found { object, body } => {
                let fits = self.fits(stream, |asked| api::object_fits(asked, &object.kind));
                self.answer(stream, fits.map_or_else(Answer::from, |()| api::ok(body)));
            }
            GetOutcome::Refused(status) => self.answer(stream, status.into()),
            GetOutcome::Wait { until } => {
                self.wait(now, stream, until, Source::WaitingGet { request, arrived });
            }
        }
    }

    /// Replica of a request.
    fn replica_at(&self, stream: StreamId) -> Replica {
        let open = self.open.get(&stream);
        open.map(|open| self.replica_of(open.asked.conn))
            .unwrap_or_default()
    }

    /// Runs `check` on the request.
    pub(super) fn fits(
        &self,
        stream: StreamId,
        check: impl FnOnce(&HttpRequest) -> Result<(), Status>,
    ) -> Result<(), Status> {
        self.open
            .get(&stream)
            .map_or(Ok(()), |open| check(&open.asked.request))
    }

    /// Suspends the request until the next write, at most until `until`.
    fn wait(&mut self, now: Duration, stream: StreamId, until: Duration, source: Source) {
        if let Some(open) = self.open.get_mut(&stream) {
            open.source = source;
        }
        self.wakes
            .insert((until.max(now + Duration::from_millis(1)), stream));
    }

    fn answer_page(&mut self, stream: StreamId, page: Page) {
        let edit = self.open.get_mut(&stream).and_then(|open| open.edit.take());
        if edit.is_none() && page.is_long() && self.answer_long_page(stream, &page) {
            return;
        }
        let (bytes, record) = match edit {
            None => (page.encode(), page_record(stream, &page)),
            Some(edit) => self.edited_page(stream, &page, &edit),
        };
        self.with(stream, |open| {
            let answer = api::ok(bytes).in_the_style_of(&open.asked.request);
            open.exchange.set_head(Head {
                status: answer.status,
                headers: all_headers(stream, &open.asked, answer.headers),
                scripted: false,
            });
            open.exchange.set_body(answer.body, record);
        });
    }

    /// Encodes a page while it is sent. Returns false where that is impossible.
    fn answer_long_page(&mut self, stream: StreamId, page: &Page) -> bool {
        let Some(open) = self.open.get_mut(&stream).filter(|open| open.exchange.is_free()) else {
            return false;
        };
        let Some((text, head)) = StyledText::new(page.clone().into_text(), &open.asked.request) else {
            return false;
        };
        open.exchange.set_head(Head {
            status: head.status,
            headers: all_headers(stream, &open.asked, head.headers),
            scripted: false,
        });
        open.source = Source::Page {
            text: Box::new(text),
            record: page_record(stream, page),
        };
        self.touched.push(stream);
        true
    }

    /// Sends a document, which is already negotiated and may set Content-Length at any size.
    fn answer_document(&mut self, stream: StreamId, document: &Document) {
        let Some(open) = self.open.get_mut(&stream) else {
            return;
        };
        let mut answer = document.answer(
            &open.asked.request,
            self.model.catalog(),
            self.settings.version,
            &self.issuer,
        );
        let before = answer.headers.len();
        answer.headers.retain(|(name, _)| *name != CONTENT_LENGTH);
        if answer.headers.len() < before {
            open.exchange.announce_length();
        }
        open.answer_with(answer, false);
    }

    pub(super) fn answer(&mut self, stream: StreamId, answer: Answer) {
        if let Some(open) = self.open.get_mut(&stream) {
            open.answer_with(answer, false);
        }
    }
}

impl Open {
    /// Queues a response, negotiated for the request unless it is `scripted`.
    pub(super) fn answer_with(&mut self, answer: Answer, scripted: bool) {
        let (head, body, record) = self.response(answer, scripted);
        self.exchange.set_head(head);
        self.exchange.set_body(body, record);
    }

    /// Returns the head, the body, and the body's record of an answer.
    pub(super) fn response(&self, answer: Answer, scripted: bool) -> (Head, Bytes, What) {
        let Self { exchange, asked, .. } = self;
        // Of a success only the length is recorded: parsing the body would cost more than the response.
        let record = body_record(exchange.id, &answer.body, scripted || answer.status >= 400);
        let answer = match scripted {
            true => answer,
            false => answer.in_the_style_of(&asked.request),
        };
        let record = with_length(record, &answer.body);
        let head = Head {
            status: answer.status,
            headers: all_headers(exchange.id, asked, answer.headers),
            scripted,
        };
        (head, answer.body, record)
    }
}

/// Returns the common headers and `own`, which override them. An empty value suppresses a header.
pub(super) fn all_headers(stream: StreamId, asked: &Asked, own: Vec<Header>) -> Vec<Header> {
    let replaced = |name: &HeaderName| own.iter().any(|(other, _)| other == name);
    let mut headers = api::common_headers(&asked.request, stream.0);
    headers.retain(|(name, _)| !replaced(name));
    headers.extend(own.into_iter().filter(|(_, value)| !value.is_empty()));
    let kind = asked.collection.as_ref().map(|collection| &collection.kind);
    if let Some(kind) = kind.filter(|kind| !kind.deprecation.is_empty()) {
        headers.extend(api::warning(&kind.deprecation));
    }
    headers
}

pub(super) fn watch_head(stream: StreamId, asked: &Asked) -> Head {
    let upgrade = websocket::handshake(&asked.request);
    let (status, headers) =
        upgrade.unwrap_or_else(|| (200, all_headers(stream, asked, api::watch_headers())));
    Head {
        status,
        headers,
        scripted: false,
    }
}

fn page_record(stream: StreamId, page: &Page) -> What {
    What::Page {
        stream,
        resource_version: page.resource_version.to_string(),
        continue_token: page.continue_token.clone().unwrap_or_default(),
        remaining: page.remaining,
        items: page
            .items
            .iter()
            .map(|item| item.object_ref())
            .collect::<Vec<ObjectRef>>(),
        scripted: false,
    }
}

/// Returns the record with the length of the negotiated body.
fn with_length(mut record: What, body: &Bytes) -> What {
    if let What::Body { bytes, .. } = &mut record {
        *bytes = body.len() as u64;
    }
    record
}

/// Returns whether kube-apiserver compresses a watch, from 1.37 on (`WatchListCompression`): `isListWatchRequest` in
/// endpoints/handlers/get.go. The options have their defaults.
fn is_streaming_list(request: &WatchRequest) -> bool {
    request.send_initial_events == Some(true) && request.bookmarks
}

/// Returns the record of a body; `explained`: with reason and message if it is a Status.
pub(super) fn body_record(stream: StreamId, body: &[u8], explained: bool) -> What {
    let status: Option<serde_json::Value> = (explained && body.len() <= LONGEST_STATUS)
        .then(|| serde_json::from_slice(body).ok())
        .flatten()
        .filter(|value: &serde_json::Value| value.get("kind").is_some_and(|kind| kind == "Status"));
    let text = |pointer: &str| {
        status
            .as_ref()
            .and_then(|status| status.pointer(pointer))
            .and_then(|value| value.as_str())
            .map(str::to_owned)
    };
    What::Body {
        stream,
        bytes: body.len() as u64,
        reason: text("/reason"),
        message: text("/message"),
        continue_token: text("/metadata/continue"),
    }
}

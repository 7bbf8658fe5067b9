//! Responses of an upstream in place of the model's: a request goes out as a value, and its response comes back in parts.
//!
//! This is where the core distinguishes the two origins of a response (`crate::upstream`). Deviations, the queue of a response
//! and the trace are those of every response.

mod caches;
mod forwarded;
mod older;
mod writes;

use std::sync::Arc;
use std::time::Duration;

use apimachinery::options::Representation;
use apimachinery::path::{ResourcePath, decoded_path};
use apimachinery::status::Status;
use bytes::Bytes;
use caches::{Caches, Mode};
pub(super) use forwarded::Forwarded;
use forwarded::Stage;
use http::HeaderMap;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use older::{Copied, OlderAnswers, page_record};
use trace::fault::{Ending, Http2Error};
use trace::record::{StoreWrite, StreamId, Turn, Verb, What, WriteOp};

use writes::Writes;

use super::answer::body_record;
use super::exchange::Head;
use super::output::Output;
use super::{ApiServer, Asked, Reading, Source};
use crate::api::HttpRequest;
use crate::api::access::User;
use crate::model::WatchCacheOp;
use crate::upstream::document::Document;
use crate::upstream::frame::{self, Named};
use crate::upstream::frames::Frames;
use crate::upstream::lines::Lines;
use crate::upstream::request::{end_to_end, outbound, verb};
use crate::upstream::{Failure, Inbound, Order, Outbound, Settings};

/// The upstream of a server.
#[derive(Debug)]
pub(super) struct Upstream {
    settings: Settings,
    caches: Caches,
    older: OlderAnswers,
    writes: Writes,
    frames: Frames,
    /// Newest resourceVersion in a response so far.
    newest: u64,
}

impl ApiServer {
    /// Answers by an upstream instead of the model.
    pub(crate) fn forward_to(&mut self, settings: Settings) {
        self.upstream = Some(Upstream {
            settings,
            caches: Caches::default(),
            older: OlderAnswers::default(),
            writes: Writes::default(),
            frames: Frames::default(),
            newest: 0,
        });
    }

    /// Whether an upstream answers.
    pub(crate) fn forwards(&self) -> bool {
        self.upstream.is_some()
    }

    /// Newest resourceVersion in a response of the upstream; `None`: the model answers.
    pub(super) fn newest_of_upstream(&self) -> Option<u64> {
        self.upstream.as_ref().map(|upstream| upstream.newest)
    }

    /// Bytes of older answers, and of events that watches hold back; `None`: the model answers.
    pub(super) fn memory_of_upstream(&self) -> Option<(usize, usize)> {
        let upstream = self.upstream.as_ref()?;
        let forwarded = self.open.values().filter_map(|open| open.source.forwarded());
        let held = forwarded.map(|forwarded| forwarded.held_bytes).sum();
        Some((upstream.older.bytes(), held))
    }

    /// Sends the request; or, if it may be answered from a stale watch cache, what the upstream answered before.
    pub(super) fn forward(&mut self, now: Duration, stream: StreamId, request: Box<Outbound>) {
        let (Some(upstream), Some(open)) = (&self.upstream, self.open.get_mut(&stream)) else {
            return;
        };
        let forwarded = Forwarded::new(&open.asked, &request.headers);
        let as_of = upstream.caches.mode(&forwarded.resource).as_of(now);
        if let Some(as_of) = as_of.filter(|_| is_satisfied_by_any_version(&open.asked)) {
            let key = forwarded.key.as_ref();
            match key.and_then(|key| upstream.older.find(key, as_of)) {
                Some((answer, list)) => {
                    answer.send_on(&mut open.exchange, list.clone());
                    return;
                }
                None => self.turned(
                    now,
                    Turn::Other("no older answer of this list is known: the upstream answers".to_owned()),
                ),
            }
        }
        if let Some(open) = self.open.get_mut(&stream) {
            open.source = Source::Upstream(Box::new(forwarded));
            let order = Order::Send(request);
            self.outputs.push_back(Output::Upstream { stream, order });
        }
    }

    /// A part of a response has come. It has no effect once a rule has answered, or the client is gone.
    pub(crate) fn upstream_answered(&mut self, now: Duration, stream: StreamId, part: Inbound) {
        let open = self.open.get_mut(&stream);
        let Some(Source::Upstream(forwarded)) = open.map(|open| &mut open.source) else {
            return;
        };
        forwarded.pulling = false;
        self.touched.push(stream);
        match part {
            Inbound::Head { status, headers } => self.upstream_head(stream, status, &headers),
            Inbound::Data(bytes) => self.upstream_data(now, stream, bytes),
            Inbound::End => self.upstream_end(now, stream),
            Inbound::Failed(failure) => self.upstream_failed(now, stream, failure),
        }
    }

    /// Changes how watch caches follow the upstream.
    pub(super) fn turn_upstream_caches(
        &mut self,
        now: Duration,
        turn: WatchCacheOp,
        resource: Option<(&str, &str)>,
    ) {
        if let Some(upstream) = &mut self.upstream {
            upstream.caches.turn(now, turn, resource);
        }
        self.touch_all();
    }

    /// Sends a bookmark as [`ApiServer::send_bookmark`] does.
    pub(super) fn send_upstream_bookmark(
        &mut self,
        stream: StreamId,
        version: Option<String>,
        initial_events_end: Option<&str>,
    ) -> String {
        let Some(open) = self.open.get(&stream) else {
            return String::new();
        };
        let Source::Upstream(forwarded) = &open.source else {
            return String::new();
        };
        let version = version
            .or_else(|| Some(forwarded.shown.as_ref()?.resource_version.clone()))
            .or_else(|| started_at(&open.asked.request));
        let named = forwarded
            .named
            .clone()
            .or_else(|| self.kind_of(&forwarded.resource).map(Arc::new));
        let (Some(version), Some(named)) = (version, named) else {
            let why =
                "no bookmark sent: its watch has sent no event yet, so that version or kind are not known";
            self.turned(self.now, Turn::Other(why.to_owned()));
            return String::new();
        };
        self.push_scripted(stream, frame::bookmark(&named, &version, initial_events_end));
        version
    }

    fn kind_of(&self, (group, plural): &(String, String)) -> Option<Named> {
        let kind = self.model.catalog().find(group, plural)?;
        Some(Named {
            api_version: kind.api_version(),
            kind: kind.kind.to_string(),
        })
    }

    fn upstream_head(&mut self, stream: StreamId, status: u16, headers: &HeaderMap) {
        let Some(open) = self.open.get_mut(&stream) else {
            return;
        };
        let Source::Upstream(forwarded) = &mut open.source else {
            return;
        };
        let is_read = status == 200 && forwarded.verb != Verb::Other;
        let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let content_type = content_type.unwrap_or_default().to_owned();
        if is_read && !is_json(&content_type) {
            let why = format!(
                "the upstream answered with {content_type:?} instead of JSON, so that it is no apiserver, or something \
                 in front of it answers: open the server of the kubeconfig in a browser"
            );
            return self.answer_for_upstream(stream, Status::unavailable(why));
        }
        let headers_kept = end_to_end(headers, status == 101);
        let length = headers
            .get(CONTENT_LENGTH)
            .and_then(|length| length.to_str().ok()?.parse().ok());
        forwarded.length = length;
        forwarded.stage = match forwarded.verb {
            Verb::Watch | Verb::WatchList if is_read => Stage::Watch(Lines::default()),
            Verb::List if is_read => {
                let copied = is_complete_list(&open.asked).then(|| Copied::new(&headers_kept));
                let mut document = Box::<Document>::default();
                document.keeps_items = self.kept.is_some();
                Stage::List(document, copied)
            }
            _ if status == 101 => Stage::Tunnel,
            Verb::Watch | Verb::WatchList | Verb::List | Verb::Other => {
                // Only what a write answers says something about an object.
                let document = match op(&open.asked.request.method) {
                    Some(_) => Document::default(),
                    None => Document::unread(),
                };
                Stage::Other(Box::new(document), status)
            }
        };
        let is_watch = matches!(forwarded.stage, Stage::Watch(_));
        if !is_watch {
            // A rule may have sent events on what turned out to be no watch.
            open.exchange.forget_queue();
            open.exchange.promise_length(length);
        }
        open.exchange.set_head(Head {
            status,
            headers: headers_kept,
            scripted: false,
        });
        let ending = forwarded.ending.take();
        if is_watch {
            open.asked.forget_headers();
        }
        if let Some(ending) = ending {
            open.source = Source::Decided;
            open.exchange.end(ending);
        }
    }

    fn upstream_data(&mut self, now: Duration, stream: StreamId, bytes: Bytes) {
        let Some(open) = self.open.get_mut(&stream) else {
            return;
        };
        let (Source::Upstream(forwarded), Some(upstream)) = (&mut open.source, &mut self.upstream) else {
            return;
        };
        let mut contents = Vec::new();
        match &mut forwarded.stage {
            Stage::Watch(lines) => {
                if lines.push(bytes).is_err() {
                    let why = "the upstream sent a line that is longer than any object".to_owned();
                    return self.upstream_failed(now, stream, Failure::Broken(why));
                }
                while let Some(line) = lines.next() {
                    let (frame, named) = upstream.frames.read(&line);
                    if self.kept.is_some() {
                        contents.push(frame.line.clone());
                    }
                    forwarded.held_bytes += frame.line.len();
                    if let Some(object) = &frame.object {
                        upstream.saw(&object.resource_version);
                    }
                    if named.is_some() {
                        forwarded.named = named;
                    }
                    forwarded.held.push_back((now, frame));
                }
            }
            Stage::List(document, copied) => {
                document.push(&bytes);
                contents = document.take_items();
                if copied.as_mut().is_some_and(|copied| !copied.push(&bytes)) {
                    *copied = None;
                }
                open.exchange.push_part(bytes);
            }
            Stage::Other(document, _) => {
                document.push(&bytes);
                open.exchange.push_part(bytes);
            }
            Stage::Sent | Stage::Tunnel | Stage::Complete => {}
        }
        let has_all = forwarded.has_all();
        if !contents.is_empty() {
            let resource = forwarded.resource.1.clone();
            for content in contents {
                self.record_sent(stream, &resource, &content);
            }
        }
        if has_all {
            self.upstream_end(now, stream);
        }
    }

    fn upstream_end(&mut self, now: Duration, stream: StreamId) {
        let Some(open) = self.open.get_mut(&stream) else {
            return;
        };
        let Source::Upstream(forwarded) = &mut open.source else {
            return;
        };
        match std::mem::replace(&mut forwarded.stage, Stage::Complete) {
            Stage::Watch(mut lines) => {
                let rest = lines.rest();
                if !rest.is_empty() {
                    forwarded.held.push_back((now, frame::read(rest).0));
                }
                // A stale cache never delivers the rest: the client resumes, and the upstream sends it again.
                let mode = self
                    .upstream
                    .as_ref()
                    .map(|upstream| upstream.caches.mode(&forwarded.resource));
                if mode.is_some_and(|mode| mode != Mode::Live) {
                    forwarded.held.clear();
                }
            }
            Stage::List(mut document, copied) => {
                let list = document.list();
                if let (Some(list), Some(upstream)) = (&list, &mut self.upstream) {
                    upstream.saw(&list.resource_version);
                    let copied = copied.filter(|_| list.continue_token.is_empty());
                    if let (Some(copied), Some(key)) = (copied, forwarded.key.take()) {
                        upstream.older.keep(now, key, copied, list.clone());
                    }
                }
                let record = match list {
                    Some(list) => page_record(stream, list),
                    None => recorded(stream, &document, false),
                };
                open.source = Source::Decided;
                open.exchange.end_parts(record);
            }
            Stage::Other(mut document, status) => {
                let wrote = wrote(stream, &open.asked.request, status, &mut document);
                let record = recorded(stream, &document, status >= 400);
                open.source = Source::Decided;
                open.exchange.end_parts(record);
                if let (Some(wrote), Some(upstream)) = (wrote, &mut self.upstream) {
                    upstream.saw(&wrote.object.resource_version);
                    self.log.push(now, What::Wrote(wrote));
                }
            }
            Stage::Sent | Stage::Tunnel | Stage::Complete => {
                open.source = Source::Decided;
                open.exchange.end(Ending::Eof);
            }
        }
    }

    fn upstream_failed(&mut self, now: Duration, stream: StreamId, failure: Failure) {
        let why = failure.to_string();
        let next = match &failure {
            Failure::Unreachable(_) => {
                "check that the cluster is up, and the server and certificate authority of the kubeconfig"
            }
            Failure::NoCredentials(_) => {
                "run kubectl with this kubeconfig, and log in again if it fails as well"
            }
            Failure::Broken(_) => "",
        };
        self.turned(now, Turn::Other(why.clone()));
        let Some(open) = self.open.get_mut(&stream) else {
            return;
        };
        if open.exchange.decided() {
            // Nothing that follows can say why: the client has to see that it is not complete.
            open.source = Source::Decided;
            return open.exchange.end(Ending::RstStream(Http2Error::InternalError));
        }
        self.answer_for_upstream(stream, Status::unavailable(format!("{why}; {next}")));
    }

    /// Answers in place of an upstream that has no answer.
    fn answer_for_upstream(&mut self, stream: StreamId, status: Status) {
        if let Some(open) = self.open.get_mut(&stream) {
            open.source = Source::Decided;
            open.exchange.forget_queue();
            open.answer_with(status.into(), false);
        }
    }
}

impl Upstream {
    /// Reads a request by its text alone: which kinds are served, only the upstream has to know.
    /// `certified`: user of the client certificate.
    pub(super) fn read(
        &self,
        request: &HttpRequest,
        certified: Option<&User>,
        continue_token: Option<String>,
        query: &str,
    ) -> Reading {
        let verb = verb(request);
        let source = match self.settings.credentials(&request.headers, certified) {
            Ok(credentials) => Source::Unsent(Box::new(outbound(request, verb, credentials, query))),
            Err(status) => Source::Refused(status.into()),
        };
        Reading {
            source,
            verb,
            form: Representation::Full,
            collection: None,
            continue_token,
            violations: match verb {
                Verb::List | Verb::Watch | Verb::WatchList => {
                    crate::api::rules_broken_by(request.query.pairs())
                }
                Verb::Other => Vec::new(),
            },
        }
    }

    /// How the watch cache of a forwarded request follows the upstream.
    pub(super) fn mode(&self, forwarded: &Forwarded) -> Mode {
        self.caches.mode(&forwarded.resource)
    }

    /// Forgets that caches are stale.
    pub(super) fn thaw(&mut self) {
        self.caches = Caches::default();
    }

    fn saw(&mut self, version: &str) {
        // Versions can be compared as numbers (KEP-5504).
        self.newest = self.newest.max(version.parse().unwrap_or_default());
    }
}

/// Returns the record of a body that is no list; `explained`: with the reason of a Status.
fn recorded(stream: StreamId, document: &Document, explained: bool) -> What {
    let mut record = body_record(stream, document.beginning(), explained);
    if let What::Body { bytes, .. } = &mut record {
        *bytes = document.bytes();
    }
    record
}

/// Returns the write that a response shows: its client knows the version.
fn wrote(
    stream: StreamId,
    request: &HttpRequest,
    status: u16,
    document: &mut Document,
) -> Option<StoreWrite> {
    let op = op(&request.method)?;
    let path = decoded_path(&request.path);
    let place = ResourcePath::read(&path).filter(|_| matches!(status, 200 | 201))?;
    Some(StoreWrite {
        resource: place.resource.to_owned(),
        object: document.object()?,
        op,
        selected: false,
        by: Some(stream),
        content: None,
    })
}

/// Returns what a request with this method does to an object.
fn op(method: &http::Method) -> Option<WriteOp> {
    match *method {
        http::Method::POST => Some(WriteOp::Create),
        http::Method::PUT | http::Method::PATCH => Some(WriteOp::Update),
        http::Method::DELETE => Some(WriteOp::Delete),
        _ => None,
    }
}

/// Whether a list may be answered from a watch cache, however old.
fn is_satisfied_by_any_version(asked: &Asked) -> bool {
    let query = asked.request.query.pairs();
    let is_any = query
        .iter()
        .any(|(name, value)| name == "resourceVersion" && value == "0");
    asked.verb == Verb::List && is_any && is_complete_list(asked)
}

/// Whether a list starts at its first item.
fn is_complete_list(asked: &Asked) -> bool {
    let mut query = asked.request.query.pairs().iter();
    !query.any(|(name, value)| name == "continue" && !value.is_empty())
}

/// Version that a watch started at.
fn started_at(request: &HttpRequest) -> Option<String> {
    let query = request.query.pairs();
    let version = query.iter().find(|(name, _)| name == "resourceVersion");
    let version = version.map(|(_, version)| version.clone());
    version.filter(|version| !version.is_empty() && version != "0")
}

fn is_json(content_type: &str) -> bool {
    let media_type = content_type.split(';').next().unwrap_or_default().trim();
    media_type.eq_ignore_ascii_case("application/json")
}

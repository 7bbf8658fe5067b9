//! One request and the part of its response that is decided but not yet sent.
//!
//! ```text
//!   Undecided{body} --set_head--> HeadQueued{head, body} --head sent--> Streaming{body} --queue out, or cut--> Ended
//!       \                              \                                                                         ^
//!        `--refuse_to_answer-----------`--> Refusing{ending} ----------------------------------------------------+
//! ```
//! Events queued before the head is decided wait in the body.
//!
//! It decides which bytes are sent when, and where they are cut. It depends on neither the model nor scenario steps.

mod body;
mod rules;
mod shape;

use std::collections::VecDeque;
use std::time::Duration;

use apimachinery::ObjectRef;
use body::{Body, Piece};
use bytes::Bytes;
use http::header::{CONTENT_ENCODING, RETRY_AFTER};
use rules::EventRules;
pub(super) use rules::Fate;
use scenario::RuleAction;
use shape::Shape;
use trace::fault::{Ending, Pace};
use trace::record::{Frame, FrameType, Side, StreamId, What};

use super::backlog::Backlog;
use super::joined::{JOINED_BYTES_MAX, Joined};
use super::log::Log;
use super::output::Output;
use crate::api::{self, GzipMember, Header};
use crate::model::WatchFrame;

/// Go's server announces the length of what fits into one buffer of its (`net/http`, `bufferBeforeChunkingSize`) and
/// sends the rest in chunks.
const LONGEST_ANNOUNCED: u64 = 2048;

/// Head of a response.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) status: u16,
    pub(super) headers: Vec<Header>,
    pub(super) scripted: bool,
}

impl Head {
    fn is_encoded(&self) -> bool {
        self.headers.iter().any(|(name, _)| *name == CONTENT_ENCODING)
    }

    fn retry_after(&self) -> Option<String> {
        let mut headers = self.headers.iter();
        let (_, value) = headers.find(|(name, _)| *name == RETRY_AFTER)?;
        Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
    }
}

/// A request and its response.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) id: StreamId,
    state: State,
    shape: Shape,
    pub(super) rules: EventRules,
    coding: Coding,
    backlog: Backlog,
    /// What is sent in place of the response that is being decided.
    instead: Option<Instead>,
    limit: Option<Limit>,
}

/// The longest time that a response may take, and how it ends then.
#[derive(Debug, Clone, Copy)]
enum Limit {
    /// From its head, or from the next time that something may be sent.
    Lasting(Duration, Ending),
    /// Until this time.
    Until(Duration, Ending),
}

/// What is sent in place of a response, once that is decided as a whole.
#[derive(Debug)]
pub(super) enum Instead {
    /// Nothing: the connection ends this way.
    Silence(Ending),
    /// This head and body, with the record of the body.
    Answer(Box<(Head, Bytes, What)>),
}

/// Content coding that is applied while the response is queued.
#[derive(Debug, Default)]
enum Coding {
    #[default]
    None,
    /// Every body and every event is a gzip member: scripted.
    Members,
    /// A gzip member per flush: the events that are ready together; with the member that has not ended.
    Flushes(Option<GzipMember>),
}

impl Coding {
    fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }

    fn apply(&mut self, bytes: Bytes) -> Bytes {
        match self {
            Self::None => bytes,
            Self::Members => GzipMember::whole(&bytes),
            Self::Flushes(member) => member.get_or_insert_with(GzipMember::new).line(&bytes),
        }
    }
}

/// Progress of the response.
#[derive(Debug)]
enum State {
    /// No response is decided.
    Undecided(Body),
    /// The head is decided and not sent.
    HeadQueued { head: Head, body: Body },
    /// The head is sent.
    Streaming(Body),
    /// No response will be sent, not even a head.
    Refusing(Ending),
    /// The response ended.
    Ended,
}

impl State {
    /// The body, while more of it can be sent.
    fn body(&self) -> Option<&Body> {
        match self {
            Self::Undecided(body) | Self::HeadQueued { body, .. } | Self::Streaming(body) => Some(body),
            Self::Refusing(_) | Self::Ended => None,
        }
    }

    fn body_mut(&mut self) -> Option<&mut Body> {
        match self {
            Self::Undecided(body) | Self::HeadQueued { body, .. } | Self::Streaming(body) => Some(body),
            Self::Refusing(_) | Self::Ended => None,
        }
    }
}

impl Exchange {
    pub(super) fn new(id: StreamId) -> Self {
        Self {
            id,
            state: State::Undecided(Body::default()),
            shape: Shape::default(),
            rules: EventRules::default(),
            coding: Coding::default(),
            backlog: Backlog::default(),
            instead: None,
            limit: None,
        }
    }

    /// Sends this in place of the response. Has no effect once the head is decided.
    pub(super) fn replace(&mut self, instead: Instead) {
        if !self.decided() {
            self.instead = Some(instead);
        }
    }

    /// The response is complete: what was to be sent in its place is.
    fn complete(&mut self) {
        let Some(instead) = self.instead.take() else {
            return;
        };
        self.with_body(Body::forget);
        match instead {
            Instead::Silence(ending) => self.refuse_to_answer(ending),
            Instead::Answer(response) => {
                let (head, bytes, record) = *response;
                self.set_head(head);
                self.set_body(bytes, record);
            }
        }
    }

    /// Sends nothing before `at`.
    pub(super) fn delay_until(&mut self, at: Duration) {
        self.shape.not_before = self.shape.not_before.max(at);
    }

    /// Sends the body in these portions.
    pub(super) fn set_pace(&mut self, pace: Pace) {
        self.shape.pace = Some(pace);
    }

    /// Adds a rule for events from here on.
    pub(super) fn obey(&mut self, rule: &RuleAction) {
        match rule {
            RuleAction::DropEvents(count) => self.rules.drop += count,
            RuleAction::RepeatEvent(count) => self.rules.repeat = *count,
            RuleAction::ReorderEvents(count) => self.rules.reorder = *count,
            RuleAction::NoBookmarks => self.rules.no_bookmarks = true,
            RuleAction::EndMarker(value) => self.rules.end_marker = Some(value.clone()),
            RuleAction::Truncate { cut, ending } => self.shape.cut = Some((*cut, *ending)),
            RuleAction::EndAfter { ms, ending } => {
                self.limit = Some(Limit::Lasting(Duration::from_millis(*ms), *ending));
            }
        }
    }

    /// Compresses every body and every event as a separate gzip member. Has no effect once the head is decided.
    pub(super) fn compress(&mut self) {
        if !self.decided() {
            self.coding = Coding::Members;
        }
    }

    /// Compresses the events of a watch, a gzip member per [`Exchange::flush_member`], unless it is compressed otherwise.
    pub(super) fn compress_flushes(&mut self) {
        if !self.decided() && self.coding.is_none() {
            self.coding = Coding::Flushes(None);
        }
    }

    /// Ends the gzip member of the events queued so far.
    pub(super) fn flush_member(&mut self) {
        if let Coding::Flushes(member) = &mut self.coding
            && let Some(member) = member.take()
        {
            self.with_body(|body| body.lengthen(&member.end()));
        }
    }

    /// Removes all deviations from what is still to be sent.
    pub(super) fn release(&mut self) {
        let rules = std::mem::take(&mut self.rules);
        for frame in rules.held {
            self.push_line(frame, false);
        }
        self.shape = Shape::default();
        self.limit = None;
    }

    /// Sets the head, once.
    pub(super) fn set_head(&mut self, mut head: Head) {
        debug_assert!(!self.decided(), "an answer has one head");
        if self.instead.is_some() {
            return;
        }
        let State::Undecided(body) = &mut self.state else {
            return;
        };
        // A long body is already compressed.
        if head.is_encoded() {
            self.coding = Coding::None;
        }
        if !self.coding.is_none() {
            head.headers.extend(api::gzip_headers());
        }
        let body = std::mem::take(body);
        self.state = State::HeadQueued { head, body };
    }

    /// Sends Content-Length even if the body is long enough for chunks.
    pub(super) fn announce_length(&mut self) {
        self.with_body(|body| body.announced = true);
    }

    /// Sends this Content-Length with a body that comes in parts, unless it is sent in another coding.
    pub(super) fn promise_length(&mut self, length: Option<u64>) {
        let length = length.filter(|_| self.coding.is_none());
        self.with_body(|body| body.promised = length);
    }

    /// Drops what is queued, and how the response was to end after it.
    pub(super) fn forget_queue(&mut self) {
        self.with_body(Body::forget);
    }

    /// Queues a whole body and a clean end.
    pub(super) fn set_body(&mut self, bytes: Bytes, record: What) {
        let bytes = self.coding.apply(bytes);
        self.with_body(|body| body.set(bytes, record));
        self.complete();
    }

    /// Queues a part of a body, not the last one.
    pub(super) fn push_part(&mut self, bytes: Bytes) {
        self.with_body(|body| body.push_part(bytes));
    }

    /// Queues the end of a body sent in parts.
    pub(super) fn end_parts(&mut self, record: What) {
        self.with_body(|body| body.end_parts(record));
        self.complete();
    }

    /// Queues one line of a watch stream.
    pub(super) fn push_line(&mut self, frame: WatchFrame, scripted: bool) {
        let ends_initial_events = matches!(
            &frame.kind,
            FrameType::Bookmark {
                initial_events_end: Some(_)
            }
        );
        let bytes = self.coding.apply(frame.line);
        let record = Frame {
            kind: frame.kind,
            object: frame.object,
            bytes: bytes.len() as u64,
            sent: 0,
            scripted,
        };
        self.with_body(|body| body.push_line(bytes, record));
        // kube-apiserver flushes after the initial events, and after what is written outside of the watch cache's events.
        if ends_initial_events || scripted {
            self.flush_member();
        }
    }

    /// Does nothing once the response ended or was refused.
    fn with_body(&mut self, change: impl FnOnce(&mut Body)) {
        if let Some(body) = self.state.body_mut() {
            change(body);
        }
    }

    /// Ends the response after what is queued.
    pub(super) fn end(&mut self, ending: Ending) {
        self.flush_member();
        self.with_body(|body| body.ending = Some(ending));
        self.complete();
    }

    /// Drops the queue and ends at once.
    pub(super) fn end_without_body(&mut self, ending: Ending) {
        self.with_body(|body| body.end_without(ending));
    }

    /// Ends without a head, unless that is already sent.
    pub(super) fn refuse_to_answer(&mut self, ending: Ending) {
        match &mut self.state {
            State::Streaming(body) => body.end_without(ending),
            State::Undecided(_) | State::HeadQueued { .. } | State::Refusing(_) => {
                self.state = State::Refusing(ending);
            }
            State::Ended => {}
        }
    }

    /// The process that answers is gone: nothing more is sent, not even what was delayed.
    pub(super) fn abort(&mut self, ending: Ending) {
        self.shape = Shape::default();
        self.refuse_to_answer(ending);
    }

    pub(super) fn decided(&self) -> bool {
        !matches!(self.state, State::Undecided(_))
    }

    /// Whether the response, still to be sent, is an error that no scenario asked for.
    pub(super) fn is_refused(&self) -> bool {
        match &self.state {
            State::HeadQueued { head, .. } => !head.scripted && head.status >= 400,
            State::Undecided(_) | State::Streaming(_) | State::Refusing(_) | State::Ended => false,
        }
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self.state, State::Ended)
    }

    /// Whether no deviation applies to how this response is sent.
    pub(super) fn is_free(&self) -> bool {
        let untouched = self.shape.is_plain() && self.coding.is_none() && self.instead.is_none();
        let body = self.state.body();
        untouched && self.limit.is_none() && body.is_some_and(|body| !body.announced && body.ending.is_none())
    }

    /// Bytes that may still be queued: bounds the memory of a client that does not read.
    pub(super) fn room(&self) -> usize {
        if matches!(self.shape.pace, Some(Pace::Coalesce { .. })) {
            // Coalescing waits for a number of events of any size.
            return usize::MAX;
        }
        let queued = self.state.body().map_or(0, Body::left);
        self.backlog.room().saturating_sub(queued)
    }

    /// Sets the most bytes in flight.
    pub(super) fn set_share(&mut self, share: usize) {
        self.backlog.set_share(share);
    }

    /// The bytes before the last flush barrier were flushed. Returns true if another barrier must follow.
    pub(super) fn flushed(&mut self) -> bool {
        self.backlog.flushed()
    }

    /// Sends everything that is due at `now`. Returns the time of the next send, if it depends on time.
    pub(super) fn flush(
        &mut self,
        now: Duration,
        (log, outputs, joined): (&mut Log, &mut VecDeque<Output>, &mut Joined),
    ) -> Option<Duration> {
        let next = self.flush_due(now, (log, outputs, joined));
        let (Some(limit), State::Streaming(body)) = (self.limit, &mut self.state) else {
            return next;
        };
        let (end, ending) = match limit {
            Limit::Lasting(time, ending) => (now + time, ending),
            Limit::Until(end, ending) => (end, ending),
        };
        self.limit = Some(Limit::Until(end, ending));
        if now < end {
            return Some(next.map_or(end, |next| next.min(end)));
        }
        let torn = body.pop();
        log_piece(now, self.id, torn, log);
        self.finish(now, ending, log, outputs);
        None
    }

    fn flush_due(
        &mut self,
        now: Duration,
        (log, outputs, joined): (&mut Log, &mut VecDeque<Output>, &mut Joined),
    ) -> Option<Duration> {
        loop {
            let Self { state, shape, .. } = self;
            match state {
                State::Undecided(_) | State::Ended => return None,
                State::HeadQueued { .. } | State::Refusing(_) | State::Streaming(_)
                    if now < shape.not_before =>
                {
                    return Some(shape.not_before);
                }
                State::HeadQueued { .. } => self.send_head(now, log, outputs),
                State::Refusing(ending) => {
                    let ending = *ending;
                    self.finish(now, ending, log, outputs);
                }
                State::Streaming(body) => {
                    if let Some(ending) = shape.due_cut(body) {
                        let torn = body.pop();
                        log_piece(now, self.id, torn, log);
                        self.finish(now, ending, log, outputs);
                    } else if let Some(count) = shape.next_write(body) {
                        self.write(now, count, (log, outputs, joined));
                    } else {
                        match body.ending {
                            Some(ending) if body.len() == 0 => self.finish(now, ending, log, outputs),
                            Some(_) | None => return None,
                        }
                    }
                }
            }
        }
    }

    fn send_head(&mut self, now: Duration, log: &mut Log, outputs: &mut VecDeque<Output>) {
        let (head, body) = match std::mem::replace(&mut self.state, State::Ended) {
            State::HeadQueued { head, body } => (head, body),
            state @ (State::Undecided(_) | State::Streaming(_) | State::Refusing(_) | State::Ended) => {
                self.state = state;
                return;
            }
        };
        log.push(
            now,
            What::Head {
                stream: self.id,
                status: head.status,
                retry_after: head.retry_after(),
                scripted: head.scripted,
            },
        );
        let length = (body.whole && self.shape.is_plain())
            .then(|| body.left() as u64)
            .filter(|length| body.announced || *length <= LONGEST_ANNOUNCED)
            .or(body.promised)
            .filter(|_| !matches!(head.status, 204 | 304));
        outputs.push_back(Output::Head {
            stream: self.id,
            status: head.status,
            headers: head.headers,
            length,
        });
        self.state = State::Streaming(body);
    }

    fn finish(&mut self, now: Duration, how: Ending, log: &mut Log, outputs: &mut VecDeque<Output>) {
        self.state = State::Ended;
        let (stream, held) = (self.id, std::mem::take(&mut self.rules.held));
        for object in held.into_iter().filter_map(|frame| frame.object) {
            let object = ObjectRef::clone(&object);
            log.push(now, What::Withheld { stream, object });
        }
        log.push(
            now,
            What::End {
                stream,
                how,
                by: Side::Server,
            },
        );
        outputs.push_back(Output::End { stream, how });
    }

    /// Writes `count` bytes of the first piece, or several pieces in one write.
    fn write(
        &mut self,
        now: Duration,
        count: usize,
        (log, outputs, joined): (&mut Log, &mut VecDeque<Output>, &mut Joined),
    ) {
        let (stream, shape) = (self.id, &mut self.shape);
        let Some(body) = self.state.body_mut() else { return };
        let bytes = if joined.is_allowed() && shape.is_plain() && body.may_join() {
            join(now, stream, body, log, joined)
        } else if shape.coalesces() {
            coalesced(now, stream, body, log)
        } else {
            let (bytes, out) = body.take(count);
            if out.as_ref().is_some_and(Piece::is_line) {
                shape.count_line();
            }
            log_piece(now, stream, out, log);
            bytes
        };
        let length = bytes.len();
        shape.count_bytes(now, length);
        if length > 0 || body.whole {
            outputs.push_back(Output::Data { stream, bytes });
        }
        if self.backlog.gave(length) {
            outputs.push_back(Output::FlushBarrier { stream });
        }
    }
}

/// Takes the unscripted events that are due off the queue as one write: watches with the same events share its bytes.
fn join(now: Duration, stream: StreamId, body: &mut Body, log: &mut Log, joined: &mut Joined) -> Bytes {
    let (mut lines, mut length) = (Vec::new(), 0);
    while let Some(piece) = body.front()
        && piece.may_be_joined()
        && (lines.is_empty() || length + piece.bytes.len() <= JOINED_BYTES_MAX)
    {
        let (bytes, out) = body.take(piece.bytes.len());
        length += bytes.len();
        lines.push(bytes);
        log_piece(now, stream, out, log);
    }
    joined.of(lines)
}

/// Takes the whole queue as one write.
fn coalesced(now: Duration, stream: StreamId, body: &mut Body, log: &mut Log) -> Bytes {
    let mut together = Vec::new();
    while let Some(piece) = body.front() {
        let (bytes, out) = body.take(piece.left().len());
        together.extend_from_slice(&bytes);
        log_piece(now, stream, out, log);
    }
    Bytes::from(together)
}

/// Records a piece when no more of it is sent.
fn log_piece(now: Duration, stream: StreamId, piece: Option<Piece>, log: &mut Log) {
    if let Some(what) = piece.and_then(|piece| piece.into_record(stream)) {
        log.push(now, what);
    }
}

#[cfg(test)]
mod tests;

//! One request and its answer on the way out: what is decided but not yet sent.
//!
//! ```text
//!   Undecided{body} --set_head--> HeadQueued{head, body} --head sent--> Streaming{body} --queue out, or cut--> Ended
//!       \                              \                                                                         ^
//!        `--refuse_to_answer-----------`--> Refusing{ending} ----------------------------------------------------+
//! ```
//! A script may queue lines before the answer is decided: they wait in the body.
//!
//! It decides which bytes leave when, and where they are torn; it knows neither the model nor the script's steps.

mod body;
mod rules;
mod shape;

use std::collections::VecDeque;
use std::time::Duration;

use apimachinery::ObjectRef;
use body::{Body, Piece};
use bytes::Bytes;
use rules::EventRules;
pub(super) use rules::Fate;
use scenario::RuleAction;
use shape::Shape;
use trace::fault::{Ending, Pace};
use trace::record::{Frame, Side, StreamId, What};

use super::backlog::Backlog;
use super::joined::{JOINED_BYTES_MAX, Joined};
use super::log::Log;
use super::output::Output;
use crate::api;
use crate::model::WatchFrame;

/// Go's server announces the length of what fits into one buffer of its (`net/http`, `bufferBeforeChunkingSize`) and
/// sends the rest in chunks.
const LONGEST_ANNOUNCED: u64 = 2048;

/// The head of an answer.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) scripted: bool,
}

impl Head {
    fn is_encoded(&self) -> bool {
        let mut names = self.headers.iter().map(|(name, _)| name);
        names.any(|name| name.eq_ignore_ascii_case("content-encoding"))
    }

    fn retry_after(&self) -> Option<String> {
        self.headers
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case("retry-after"))
            .map(|(_, value)| value.clone())
    }
}

/// A request and its answer.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) id: StreamId,
    state: State,
    shape: Shape,
    pub(super) rules: EventRules,
    gzip: bool,
    backlog: Backlog,
}

/// How far the answer is.
#[derive(Debug)]
enum State {
    /// No answer is decided.
    Undecided(Body),
    /// The head is decided and not sent.
    HeadQueued { head: Head, body: Body },
    /// The head is sent.
    Streaming(Body),
    /// Nothing will be sent, not even a head.
    Refusing(Ending),
    /// The answer ended.
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
            gzip: false,
            backlog: Backlog::default(),
        }
    }

    /// Nothing leaves before `at`.
    pub(super) fn delay_until(&mut self, at: Duration) {
        self.shape.not_before = self.shape.not_before.max(at);
    }

    /// The body leaves in these portions.
    pub(super) fn set_pace(&mut self, pace: Pace) {
        self.shape.pace = Some(pace);
    }

    /// Puts a rule on what is sent from here on.
    pub(super) fn obey(&mut self, rule: &RuleAction) {
        match rule {
            RuleAction::DropEvents(count) => self.rules.drop += count,
            RuleAction::RepeatEvent(count) => self.rules.repeat = *count,
            RuleAction::ReorderEvents(count) => self.rules.reorder = *count,
            RuleAction::NoBookmarks => self.rules.no_bookmarks = true,
            RuleAction::EndMarker(value) => self.rules.end_marker = Some(value.clone()),
            RuleAction::Truncate { cut, ending } => self.shape.cut = Some((*cut, *ending)),
        }
    }

    /// Every body and every line is a gzip member of its own from here on; to be said before there is a head.
    pub(super) fn compress(&mut self) {
        self.gzip = !self.decided();
    }

    /// Nothing the script said of what is still to be sent holds any longer.
    pub(super) fn release(&mut self) {
        let rules = std::mem::take(&mut self.rules);
        for frame in rules.held {
            self.push_line(frame, false);
        }
        self.shape = Shape::default();
    }

    /// Sets the head, once.
    pub(super) fn set_head(&mut self, mut head: Head) {
        debug_assert!(!self.decided(), "an answer has one head");
        let State::Undecided(body) = &mut self.state else {
            return;
        };
        // A long body comes compressed.
        self.gzip &= !head.is_encoded();
        if self.gzip {
            head.headers.extend(api::gzip_headers());
        }
        let body = std::mem::take(body);
        self.state = State::HeadQueued { head, body };
    }

    /// The length of the body is announced, where a long one would be sent in chunks otherwise.
    pub(super) fn announce_length(&mut self) {
        self.with_body(|body| body.announced = true);
    }

    /// Queues a body that is one piece, and the clean end after it.
    pub(super) fn set_body(&mut self, bytes: Bytes, record: What) {
        let bytes = self.encoded(bytes);
        self.with_body(|body| body.set(bytes, record));
    }

    /// Queues a part of a body that more follows.
    pub(super) fn push_part(&mut self, bytes: Bytes) {
        self.with_body(|body| body.push_part(bytes));
    }

    /// Queues the end of a body that came in parts.
    pub(super) fn end_parts(&mut self, record: What) {
        self.with_body(|body| body.end_parts(record));
    }

    /// Queues one line of a watch stream.
    pub(super) fn push_line(&mut self, frame: WatchFrame, scripted: bool) {
        let bytes = self.encoded(frame.line);
        let record = Frame {
            kind: frame.kind,
            object: frame.object,
            bytes: bytes.len() as u64,
            sent: 0,
            scripted,
        };
        self.with_body(|body| body.push_line(bytes, record));
    }

    fn encoded(&self, bytes: Bytes) -> Bytes {
        if self.gzip {
            api::gzip_member(&bytes)
        } else {
            bytes
        }
    }

    /// An answer that ended, or that is none, takes nothing more.
    fn with_body(&mut self, change: impl FnOnce(&mut Body)) {
        if let Some(body) = self.state.body_mut() {
            change(body);
        }
    }

    /// The answer ends so after what is queued; what was decided first stands, unless nothing of it was meant to end.
    pub(super) fn end(&mut self, ending: Ending) {
        self.with_body(|body| body.ending = Some(ending));
    }

    /// Drops what is queued and ends at once.
    pub(super) fn end_without_body(&mut self, ending: Ending) {
        self.with_body(|body| body.end_without(ending));
    }

    /// Ends without even a head, unless it is sent already.
    pub(super) fn refuse_to_answer(&mut self, ending: Ending) {
        match &mut self.state {
            State::Streaming(body) => body.end_without(ending),
            State::Undecided(_) | State::HeadQueued { .. } | State::Refusing(_) => {
                self.state = State::Refusing(ending);
            }
            State::Ended => {}
        }
    }

    pub(super) fn decided(&self) -> bool {
        !matches!(self.state, State::Undecided(_))
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self.state, State::Ended)
    }

    /// Has the script nothing to say of how this answer leaves?
    pub(super) fn is_free(&self) -> bool {
        let untouched = self.shape.is_plain() && !self.gzip;
        let body = self.state.body();
        untouched && body.is_some_and(|body| !body.announced && body.ending.is_none())
    }

    /// How many bytes more may be queued: a client that does not read is not kept more than that for.
    pub(super) fn room(&self) -> usize {
        if matches!(self.shape.pace, Some(Pace::Coalesce { .. })) {
            // It waits for so many events, however long they are.
            return usize::MAX;
        }
        let queued = self.state.body().map_or(0, Body::left);
        self.backlog.room().saturating_sub(queued)
    }

    /// From now on so many bytes are handed over at most before the connection took some.
    pub(super) fn set_share(&mut self, share: usize) {
        self.backlog.set_share(share);
    }

    /// The connection took what was before the last fence. True if another one is to follow.
    pub(super) fn taken(&mut self) -> bool {
        self.backlog.taken()
    }

    /// Sends all that may leave at `now`. Returns when to come back for more, if it is a matter of time.
    pub(super) fn flush(
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

    /// Writes `count` bytes of the first piece, or as many pieces as leave together.
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
            outputs.push_back(Output::Fence { stream });
        }
    }
}

/// Takes the truthful lines that are due off the queue, as one write: watches that get the same lines share its bytes.
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

/// Takes all that is queued, as one write.
fn coalesced(now: Duration, stream: StreamId, body: &mut Body, log: &mut Log) -> Bytes {
    let mut together = Vec::new();
    while let Some(piece) = body.front() {
        let (bytes, out) = body.take(piece.left().len());
        together.extend_from_slice(&bytes);
        log_piece(now, stream, out, log);
    }
    Bytes::from(together)
}

/// Records a piece of which no more is sent.
fn log_piece(now: Duration, stream: StreamId, piece: Option<Piece>, log: &mut Log) {
    if let Some(what) = piece.and_then(|piece| piece.into_record(stream)) {
        log.push(now, what);
    }
}

#[cfg(test)]
mod tests;

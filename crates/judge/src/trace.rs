//! What both sides did, indexed: exchanges with their answers, what was delivered, snapshots, reports, writes.
//!
//! A trace only reads records. It knows no scenario, asks nobody, and builds the same index from a saved trace as from
//! a fresh one, so an old run can be judged again by newer checks.

use std::io::{BufRead, Write};
use std::time::Duration;

use ::trace::fault::Ending;
use ::trace::record::{
    ConnId, Frame, FrameType, ObjectRef, Record, RunEnd, Side, StreamId, Truth, Verb, What,
};
use ::trace::report::Report;

mod index;
#[cfg(any(test, feature = "samples"))]
pub mod sample;

/// An indexed view of a run's records.
#[derive(Debug)]
pub struct Trace<'a> {
    records: &'a [Record],
    /// Requests with all that answered them, in order of arrival.
    pub exchanges: Vec<Exchange<'a>>,
    /// What the client said it did, in order.
    pub reports: Vec<Reported<'a>>,
    /// Changes of the truth, of every resource, in order.
    pub writes: Vec<Wrote<'a>>,
    /// Object states that reached (or began to reach) the wire, in order.
    pub deliveries: Vec<Delivery<'a>>,
    /// Sets that were delivered whole: the last page of a list, or the end marker of a streaming list.
    pub snapshots: Vec<Snapshot<'a>>,
    /// What the scenario's names came to stand for, in order.
    pub bindings: Vec<Binding<'a>>,
    /// Steps whose trigger was met, by index, in order.
    pub steps: Vec<(Moment, usize)>,
    /// Times at which the script refused a connection.
    pub refused: Vec<Moment>,
    /// Truthful events that the script kept back for good, in order.
    pub withheld: Vec<Withheld<'a>>,
    /// Where the truth went back to an earlier revision, if it did.
    pub rolled_back: Option<u64>,
    /// Positions at which the client reported an error, in order.
    pub errors: Vec<u64>,
    /// When the harness told the client to stop.
    pub stop: Option<Moment>,
    /// Why the run is over, if it is.
    pub ended: Option<(Moment, &'a RunEnd)>,
    /// Up to when nothing else happened, where that is later than the last record.
    until: Option<Moment>,
}

/// A position in the trace and its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment {
    /// `seq` of the record.
    pub seq: u64,
    /// Its time.
    pub at: Duration,
}

impl Moment {
    /// That of a record.
    pub fn of(record: &Record) -> Self {
        Self {
            seq: record.seq,
            at: record.at,
        }
    }
}

/// A request and its answer.
#[derive(Debug, Clone)]
pub struct Exchange<'a> {
    /// Its number.
    pub stream: StreamId,
    /// The connection it came on.
    pub conn: ConnId,
    /// When the request arrived.
    pub asked: Moment,
    /// LIST, WATCH, streaming list, other.
    pub verb: Verb,
    /// HTTP method.
    pub method: &'a str,
    /// Path.
    pub path: &'a str,
    /// Query, decoded.
    pub query: &'a [(String, String)],
    /// `Accept`.
    pub accept: Option<&'a str>,
    /// `User-Agent`.
    pub user_agent: Option<&'a str>,
    /// Option rules broken.
    pub violations: &'a [String],
    /// Which LIST attempt this is or was made after, from 1; 0 before the first.
    pub attempt: u32,
    /// Which page of its attempt a LIST asks for, from 1; a page asked for again keeps its number. 0 for other verbs.
    pub page: u32,
    /// The head of the answer.
    pub head: Option<Head<'a>>,
    /// The body of the answer, unless it is a stream of frames.
    pub answer: Option<Answer<'a>>,
    /// The lines of a watch.
    pub frames: Vec<SentFrame<'a>>,
    /// How the answer ended.
    pub end: Option<End>,
    /// When the connection was gone after the request, and by whom.
    pub disconnected: Option<(Moment, Side)>,
}

/// The head of an answer.
#[derive(Debug, Clone, Copy)]
pub struct Head<'a> {
    /// When it was sent.
    pub sent: Moment,
    /// HTTP status.
    pub status: u16,
    /// `Retry-After`.
    pub retry_after: Option<&'a str>,
    /// The script wrote it.
    pub scripted: bool,
}

/// A body that is no stream.
#[derive(Debug, Clone, Copy)]
pub enum Answer<'a> {
    /// A LIST body, whole.
    Page(Page<'a>),
    /// Another body, whole.
    Body(Body<'a>),
    /// A body that was cut.
    Torn {
        /// When.
        sent: Moment,
        /// Bytes sent.
        bytes_sent: u64,
        /// Bytes it should have had.
        bytes: u64,
    },
}

/// A LIST body that was sent whole.
#[derive(Debug, Clone, Copy)]
pub struct Page<'a> {
    /// When.
    pub sent: Moment,
    /// `metadata.resourceVersion`.
    pub resource_version: &'a str,
    /// `metadata.continue`.
    pub continue_token: &'a str,
    /// `metadata.remainingItemCount`.
    pub remaining: Option<i64>,
    /// The items.
    pub items: &'a [ObjectRef],
    /// The script changed it.
    pub scripted: bool,
}

/// Another body that was sent whole.
#[derive(Debug, Clone, Copy)]
pub struct Body<'a> {
    /// When.
    pub sent: Moment,
    /// Its length.
    pub bytes: u64,
    /// `reason` of a Status.
    pub reason: Option<&'a str>,
    /// `message` of a Status.
    pub message: Option<&'a str>,
    /// `metadata.continue` of an Expired Status.
    pub continue_token: Option<&'a str>,
}

/// A line of a watch.
#[derive(Debug, Clone, Copy)]
pub struct SentFrame<'a> {
    /// When.
    pub sent: Moment,
    /// The line.
    pub frame: &'a Frame,
}

/// The end of an answer.
#[derive(Debug, Clone, Copy)]
pub struct End {
    /// When.
    pub at: Moment,
    /// How.
    pub how: Ending,
    /// By whom.
    pub by: Side,
}

/// Something the client said.
#[derive(Debug, Clone)]
pub struct Reported<'a> {
    /// When it was recorded.
    pub at: Moment,
    /// What.
    pub report: &'a Report,
    /// `namespace/name` of its object; empty without one.
    pub key: String,
}

impl<'a> Reported<'a> {
    /// The object's resourceVersion; empty if it had none.
    pub fn resource_version(&self) -> &'a str {
        self.report
            .object()
            .and_then(|object| object.resource_version.as_deref())
            .unwrap_or_default()
    }

    /// The object's uid; empty if it had none.
    pub fn uid(&self) -> &'a str {
        self.report
            .object()
            .and_then(|object| object.uid.as_deref())
            .unwrap_or_default()
    }

    /// What the report does to the object: `None` for reports without one.
    pub fn op(&self) -> Option<Op> {
        match self.report {
            Report::InitApply(_) | Report::Apply(_) => Some(Op::Set),
            Report::Delete(_) => Some(Op::Gone),
            Report::Init
            | Report::InitDone
            | Report::Error { .. }
            | Report::Ended
            | Report::Crashed { .. } => None,
        }
    }
}

/// A change of the truth.
#[derive(Debug, Clone, Copy)]
pub struct Wrote<'a> {
    /// When.
    pub at: Moment,
    /// What.
    pub truth: &'a Truth,
}

/// A truthful event that never reached its watch.
#[derive(Debug, Clone, Copy)]
pub struct Withheld<'a> {
    /// When it was due.
    pub at: Moment,
    /// The watch.
    pub stream: StreamId,
    /// Its object.
    pub object: &'a ObjectRef,
}

/// What a delivered or reported state does to its object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Op {
    /// It is there, in this state.
    Set,
    /// It is gone.
    Gone,
}

/// One object state on the wire.
#[derive(Debug, Clone, Copy)]
pub struct Delivery<'a> {
    /// When its last byte was sent.
    pub sent: Moment,
    /// The answer it was part of.
    pub stream: StreamId,
    /// The object.
    pub object: &'a ObjectRef,
    /// There or gone.
    pub op: Op,
    /// It was part of a page, not a line of a watch.
    pub listed: bool,
    /// Every byte a decoder needs was sent.
    pub whole: bool,
    /// The script made, changed, repeated or moved it.
    pub scripted: bool,
    /// An ERROR line went before it on the same stream.
    pub after_error: bool,
}

/// A set of objects that was delivered whole.
#[derive(Debug, Clone)]
pub struct Snapshot<'a> {
    /// When the request that began it arrived.
    pub began: Moment,
    /// When its last byte was sent.
    pub done: Moment,
    /// The answer that completed it.
    pub stream: StreamId,
    /// resourceVersions a watch may start from after it: that of the first page (and lower ones of later pages, which
    /// are safe too), or that of the end marker. Empty if unknown.
    pub resume: Vec<&'a str>,
    /// The states it showed, in order; a later state of a key stands for an earlier one.
    pub items: Vec<(&'a ObjectRef, Op)>,
    /// All of it is of one resourceVersion: every page agrees with the first.
    pub consistent: bool,
    /// The script changed a part of it.
    pub scripted: bool,
    /// A scripted body whose content the trace does not know: it may or may not have been a set.
    pub opaque: bool,
}

/// A name and what it came to stand for.
#[derive(Debug, Clone, Copy)]
pub struct Binding<'a> {
    /// When.
    pub at: Moment,
    /// The name, without `$`.
    pub name: &'a str,
    /// A resourceVersion.
    pub value: &'a str,
    /// A continue token.
    pub continue_token: Option<&'a str>,
}

impl<'a> Trace<'a> {
    /// Indexes `records`, which must be in order.
    pub fn new(records: &'a [Record]) -> Self {
        index::build(records)
    }

    /// The same for records that may have gaps, as of a later moment at which nothing else had happened.
    pub fn as_of(records: &'a [Record], until: Moment) -> Self {
        Self {
            until: Some(until),
            ..index::build(records)
        }
    }

    /// The records, in order.
    pub fn records(&self) -> &'a [Record] {
        self.records
    }

    /// LIST, WATCH and streaming-list requests, in order.
    pub fn reads(&self) -> impl DoubleEndedIterator<Item = &Exchange<'a>> + Clone {
        self.exchanges
            .iter()
            .filter(|exchange| exchange.verb != Verb::Other)
    }

    /// WATCH and streaming-list requests, in order.
    pub fn watches(&self) -> impl DoubleEndedIterator<Item = &Exchange<'a>> + Clone {
        self.exchanges
            .iter()
            .filter(|exchange| matches!(exchange.verb, Verb::Watch | Verb::WatchList))
    }

    /// LIST requests, pages included, in order.
    pub fn lists(&self) -> impl DoubleEndedIterator<Item = &Exchange<'a>> + Clone {
        self.exchanges
            .iter()
            .filter(|exchange| exchange.verb == Verb::List)
    }

    /// The exchange of that number.
    pub fn exchange(&self, stream: StreamId) -> Option<&Exchange<'a>> {
        self.exchanges
            .binary_search_by_key(&stream, |exchange| exchange.stream)
            .ok()
            .map(|at| &self.exchanges[at])
    }

    /// Did the client report an error between two positions (both exclusive)?
    pub fn error_between(&self, after: u64, before: u64) -> bool {
        any_between(&self.errors, after, before)
    }

    /// The exchanges whose request arrived before `seq`.
    pub fn asked_before(&self, seq: u64) -> &[Exchange<'a>] {
        let before = self
            .exchanges
            .partition_point(|exchange| exchange.asked.seq < seq);
        &self.exchanges[..before]
    }

    /// The snapshots that were complete before `seq`.
    pub fn snapshots_before(&self, seq: u64) -> &[Snapshot<'a>] {
        let before = self.snapshots.partition_point(|snapshot| snapshot.done.seq < seq);
        &self.snapshots[..before]
    }

    /// The newest snapshot that was complete before `seq`.
    pub fn snapshot_before(&self, seq: u64) -> Option<&Snapshot<'a>> {
        self.snapshots_before(seq).last()
    }

    /// Position and time of the last record.
    pub fn last(&self) -> Option<Moment> {
        self.records.last().map(Moment::of).max(self.until)
    }
}

impl<'a> Exchange<'a> {
    /// A query parameter; `None` when absent or empty, which the API does not tell apart.
    pub fn query(&self, name: &str) -> Option<&'a str> {
        self.query
            .iter()
            .find(|(key, value)| key == name && !value.is_empty())
            .map(|(_, value)| value.as_str())
    }

    /// `resourceVersion` if it pins a state: neither absent nor `0`.
    pub fn pinned(&self) -> Option<&'a str> {
        self.query("resourceVersion").filter(|version| *version != "0")
    }

    /// Is it a WATCH of either kind?
    pub fn is_watch(&self) -> bool {
        matches!(self.verb, Verb::Watch | Verb::WatchList)
    }

    /// The page that answered it, if one did.
    pub fn page_sent(&self) -> Option<&Page<'a>> {
        match &self.answer {
            Some(Answer::Page(page)) => Some(page),
            Some(Answer::Body(_) | Answer::Torn { .. }) | None => None,
        }
    }

    /// The Status or other body that answered it, if one did.
    pub fn body_sent(&self) -> Option<&Body<'a>> {
        match &self.answer {
            Some(Answer::Body(body)) => Some(body),
            Some(Answer::Page(_) | Answer::Torn { .. }) | None => None,
        }
    }

    /// HTTP status, once the head was sent.
    pub fn status(&self) -> Option<u16> {
        self.head.map(|head| head.status)
    }

    /// When nothing more could come: the end of the answer or of its connection, whichever was first.
    pub fn over(&self) -> Option<Moment> {
        match (self.end.map(|end| end.at), self.disconnected.map(|(at, _)| at)) {
            (Some(end), Some(gone)) => Some(end.min(gone)),
            (Some(at), None) | (None, Some(at)) => Some(at),
            (None, None) => None,
        }
    }

    /// The first ERROR line, with its code and reason.
    pub fn error_frame(&self) -> Option<(Moment, u16, &'a str)> {
        self.frames.iter().find_map(|sent| match &sent.frame.kind {
            FrameType::Error { code, reason } => Some((sent.sent, *code, reason.as_str())),
            FrameType::Added
            | FrameType::Modified
            | FrameType::Deleted
            | FrameType::Bookmark { .. }
            | FrameType::Raw => None,
        })
    }

    /// When the server sent that the requested version is expired: by status, or by the first ERROR line, if the client
    /// could read it. An ERROR line ends the stream for its reader, whatever comes after it; a reader of lines has to wait
    /// for its newline.
    pub fn expired(&self) -> Option<Moment> {
        if let Some(head) = self.head.filter(|head| head.status == 410) {
            return Some(head.sent);
        }
        let (at, code, _) = self.error_frame()?;
        let mut read = self.frames.iter().take_while(|sent| sent.sent.seq <= at.seq);
        let is_readable = read.all(|sent| readable(sent.frame));
        let mut lines = self.frames.iter();
        let is_whole = lines.any(|sent| sent.sent.seq == at.seq && sent.frame.sent == sent.frame.bytes);
        (code == 410 && is_readable && (is_whole || self.read_to_end())).then_some(at)
    }

    /// Did the client end the answer, or close its connection, by that time? What is sent at the instant at which a
    /// client gives up is recorded as sent, and may be read by nobody.
    pub fn left_by(&self, at: Duration) -> bool {
        let ended = self.end.filter(|end| end.by == Side::Client).map(|end| end.at);
        let closed = self.disconnected.filter(|(_, by)| *by == Side::Client);
        let mut left = ended.into_iter().chain(closed.map(|(at, _)| at));
        left.any(|left| left.at <= at)
    }

    /// Was a body sent with its framing? One whose last chunk never came is as good as torn.
    pub fn is_whole(&self) -> bool {
        let is_sent = matches!(self.answer, Some(Answer::Page(_) | Answer::Body(_)));
        let is_ended = |end: End| end.by == Side::Server && end.how == Ending::Eof;
        is_sent && self.end.is_some_and(is_ended)
    }

    /// Is it certain that the client read all of the answer? Only if the server ended it cleanly, while the client was
    /// still there: sent is not read.
    pub fn read_to_end(&self) -> bool {
        self.end.is_some_and(|end| {
            let clean = matches!(end.how, Ending::Eof | Ending::Fin | Ending::NoCloseNotify);
            clean && end.by == Side::Server && !self.left_by(end.at.at)
        })
    }
}

/// Is one of `positions`, which ascend, between two others (both exclusive)?
pub fn any_between(positions: &[u64], after: u64, before: u64) -> bool {
    let next = positions.partition_point(|position| *position <= after);
    positions.get(next).is_some_and(|position| *position < before)
}

/// A decoder can make sense of the line: every byte of its JSON was sent, and it is a watch event of a known type. A
/// missing newline alone does not spoil a line.
pub fn readable(frame: &Frame) -> bool {
    frame.sent + 1 >= frame.bytes && frame.kind != FrameType::Raw
}

/// The change of the truth a record tells of, if it does.
pub fn written(what: &What) -> Option<&Truth> {
    match what {
        What::Wrote(truth) => Some(truth),
        What::Connected { .. }
        | What::Goaway { .. }
        | What::Refused
        | What::Disconnected { .. }
        | What::Request { .. }
        | What::Head { .. }
        | What::Page { .. }
        | What::Body { .. }
        | What::Torn { .. }
        | What::Frame { .. }
        | What::End { .. }
        | What::Withheld { .. }
        | What::Restored { .. }
        | What::Turned { .. }
        | What::Step { .. }
        | What::Rule { .. }
        | What::Bound { .. }
        | What::ScriptDone
        | What::Reported(_)
        | What::StopRequested
        | What::LeftOpen { .. }
        | What::RunEnded(_) => None,
    }
}

/// Why a saved trace cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file could not be read.
    #[error("cannot read the trace: {0}")]
    Io(#[from] std::io::Error),
    /// A line is no record.
    #[error("line {line} is no record of a trace: {source}")]
    Line {
        /// From 1.
        line: usize,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// A line is not the next record.
    #[error("line {line} has seq {seq}, but records count from 0 without a gap")]
    Order {
        /// From 1.
        line: usize,
        /// What it says.
        seq: u64,
    },
}

/// Writes records as NDJSON, one a line.
///
/// # Errors
/// Those of `out`.
pub fn write_ndjson(records: &[Record], mut out: impl Write) -> std::io::Result<()> {
    for record in records {
        serde_json::to_writer(&mut out, record)?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

/// Reads records written by [`write_ndjson`].
///
/// # Errors
/// When a line is no record, or one is missing.
pub fn read_ndjson(input: impl BufRead) -> Result<Vec<Record>, ReadError> {
    let mut records = Vec::new();
    for (index, line) in input.lines().enumerate() {
        let record: Record = serde_json::from_str(&line?).map_err(|source| ReadError::Line {
            line: index + 1,
            source,
        })?;
        if record.seq != records.len() as u64 {
            return Err(ReadError::Order {
                line: index + 1,
                seq: record.seq,
            });
        }
        records.push(record);
    }
    Ok(records)
}

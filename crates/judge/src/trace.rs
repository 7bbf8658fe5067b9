//! Indexed view of a trace: exchanges with their responses, deliveries, snapshots, reports, writes.
//!
//! Depends on records only, not on a scenario, so that an old trace can be judged again by newer checks.

use std::collections::BTreeMap;
use std::io::{BufRead, Write};
use std::time::Duration;

use ::trace::fault::Ending;
use ::trace::record::{
    ConnId, Frame, FrameType, ObjectRef, Record, RunEnd, Side, StoreWrite, StreamId, Verb, What,
};
use ::trace::report::Report;

mod index;
#[cfg(any(test, feature = "samples"))]
pub mod sample;

/// An indexed view of a run's records.
#[derive(Debug)]
pub struct Trace<'a> {
    records: &'a [Record],
    /// Requests with their responses, in order of arrival.
    pub exchanges: Vec<Exchange<'a>>,
    /// Reports of the client, in order.
    pub reports: Vec<Reported<'a>>,
    /// Writes to the store, of every resource, in order.
    pub writes: Vec<Wrote<'a>>,
    /// Object states that were sent, completely or in part, in order.
    pub deliveries: Vec<Delivery<'a>>,
    /// Complete snapshots: ended by the last page of a list, or by the end marker of a streaming list.
    pub snapshots: Vec<Snapshot<'a>>,
    /// Values bound to names of the scenario, in order.
    pub bindings: Vec<Binding<'a>>,
    /// Steps whose trigger was met, by index, in order.
    pub steps: Vec<(Moment, usize)>,
    /// When the script refused connections.
    pub refused: Vec<Moment>,
    /// Events of the store that the script dropped, in order.
    pub withheld: Vec<Withheld<'a>>,
    /// Revision of the last restore, if any.
    pub rolled_back: Option<u64>,
    /// Positions of the client's error reports, in order.
    pub errors: Vec<u64>,
    /// When the harness started the client again, in order.
    pub restarts: Vec<Moment>,
    /// When the harness asked the client to stop.
    pub stop: Option<Moment>,
    /// Why the run ended, if it did.
    pub ended: Option<(Moment, &'a RunEnd)>,
    /// End of the observed time, if later than the last record.
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
    /// Returns the moment of a record.
    pub fn of(record: &Record) -> Self {
        Self {
            seq: record.seq,
            at: record.at,
        }
    }
}

/// A request and its response.
#[derive(Debug, Clone)]
pub struct Exchange<'a> {
    /// Number of the request.
    pub stream: StreamId,
    /// Its connection.
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
    /// List option rules violated.
    pub violations: &'a [String],
    /// The store's revision when the request arrived, as far as writes are in the trace.
    pub revision: Option<u64>,
    /// LIST attempt that this request belongs to or follows, from 1; 0 before the first.
    pub attempt: u32,
    /// Page number of a LIST within its attempt, from 1; retries keep the number. 0 for other verbs.
    pub page: u32,
    /// Head of the response.
    pub head: Option<Head<'a>>,
    /// Body of the response, unless it is a watch stream.
    pub answer: Option<ResponseBody<'a>>,
    /// The lines of a watch.
    pub frames: Vec<SentFrame<'a>>,
    /// How the response ended.
    pub end: Option<End>,
    /// When the connection was closed after the request, and by which side.
    pub disconnected: Option<(Moment, Side)>,
}

/// Head of a response.
#[derive(Debug, Clone, Copy)]
pub struct Head<'a> {
    /// When it was sent.
    pub sent: Moment,
    /// HTTP status.
    pub status: u16,
    /// `Retry-After`.
    pub retry_after: Option<&'a str>,
    /// Written by the script.
    pub scripted: bool,
}

/// A response body that is not a watch stream.
#[derive(Debug, Clone, Copy)]
pub enum ResponseBody<'a> {
    /// A complete LIST body.
    Page(Page<'a>),
    /// Another complete body.
    Body(Body<'a>),
    /// A truncated body.
    Torn {
        /// When it was sent.
        sent: Moment,
        /// Number of bytes sent.
        bytes_sent: u64,
        /// Full length in bytes.
        bytes: u64,
    },
}

/// A complete LIST body.
#[derive(Debug, Clone, Copy)]
pub struct Page<'a> {
    /// When it was sent.
    pub sent: Moment,
    /// `metadata.resourceVersion`.
    pub resource_version: &'a str,
    /// `metadata.continue`.
    pub continue_token: &'a str,
    /// `metadata.remainingItemCount`.
    pub remaining: Option<i64>,
    /// The items.
    pub items: &'a [ObjectRef],
    /// Changed by the script.
    pub scripted: bool,
}

/// Another complete body.
#[derive(Debug, Clone, Copy)]
pub struct Body<'a> {
    /// When it was sent.
    pub sent: Moment,
    /// Length in bytes.
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
    /// When it was sent.
    pub sent: Moment,
    /// The line.
    pub frame: &'a Frame,
}

/// The end of a response.
#[derive(Debug, Clone, Copy)]
pub struct End {
    /// When it ended.
    pub at: Moment,
    /// How it ended.
    pub how: Ending,
    /// Which side ended it.
    pub by: Side,
}

/// A report of the client.
#[derive(Debug, Clone)]
pub struct Reported<'a> {
    /// When it was recorded.
    pub at: Moment,
    /// The report.
    pub report: &'a Report,
    /// `namespace/name` of the object; empty without one.
    pub key: String,
}

impl<'a> Reported<'a> {
    /// Returns the object's resourceVersion; empty if absent.
    pub fn resource_version(&self) -> &'a str {
        self.report
            .object()
            .and_then(|object| object.resource_version.as_deref())
            .unwrap_or_default()
    }

    /// Returns the object's uid; empty if absent.
    pub fn uid(&self) -> &'a str {
        self.report
            .object()
            .and_then(|object| object.uid.as_deref())
            .unwrap_or_default()
    }

    /// Returns what the report does to the object; `None` without an object.
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

/// A write to the store.
#[derive(Debug, Clone, Copy)]
pub struct Wrote<'a> {
    /// When it happened.
    pub at: Moment,
    /// The write.
    pub write: &'a StoreWrite,
}

/// An event of the store that the script dropped from a watch.
#[derive(Debug, Clone, Copy)]
pub struct Withheld<'a> {
    /// When it was due.
    pub at: Moment,
    /// The watch.
    pub stream: StreamId,
    /// The object.
    pub object: &'a ObjectRef,
}

/// What an event or report does to its object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Op {
    /// Sets its state.
    Set,
    /// Removes it.
    Gone,
}

/// An object state that was sent.
#[derive(Debug, Clone, Copy)]
pub struct Delivery<'a> {
    /// When its last byte was sent.
    pub sent: Moment,
    /// The response it was part of.
    pub stream: StreamId,
    /// The object.
    pub object: &'a ObjectRef,
    /// Set or removed.
    pub op: Op,
    /// Part of a page, not a line of a watch.
    pub listed: bool,
    /// All bytes that a decoder needs were sent.
    pub whole: bool,
    /// Created, changed, repeated or moved by the script.
    pub scripted: bool,
    /// Sent after an ERROR line on the same stream.
    pub after_error: bool,
}

/// A snapshot that was sent completely.
#[derive(Debug, Clone)]
pub struct Snapshot<'a> {
    /// When its first request arrived.
    pub began: Moment,
    /// When its last byte was sent.
    pub done: Moment,
    /// The response that completed it.
    pub stream: StreamId,
    /// resourceVersions from which a watch may start after it: that of the first page (and lower ones of later pages,
    /// which are safe too), or that of the end marker. Empty if unknown.
    pub resume: Vec<&'a str>,
    /// Object states in order; a later state of a key replaces an earlier one.
    pub items: Vec<(&'a ObjectRef, Op)>,
    /// All pages have the resourceVersion of the first.
    pub consistent: bool,
    /// Partly changed by the script.
    pub scripted: bool,
    /// A scripted body whose content is not in the trace: it may or may not have been a snapshot.
    pub opaque: bool,
}

/// A name and the value bound to it.
#[derive(Debug, Clone, Copy)]
pub struct Binding<'a> {
    /// When it was bound.
    pub at: Moment,
    /// The name, without `$`.
    pub name: &'a str,
    /// Its resourceVersion.
    pub value: &'a str,
    /// Its continue token.
    pub continue_token: Option<&'a str>,
}

impl<'a> Trace<'a> {
    /// Builds the index of `records`, which must be in order.
    pub fn new(records: &'a [Record]) -> Self {
        index::build(records)
    }

    /// Builds the index of records that may have gaps, where nothing else happened up to `until`.
    pub fn as_of(records: &'a [Record], until: Moment) -> Self {
        Self {
            until: Some(until),
            ..index::build(records)
        }
    }

    /// Sets the store's revision at requests of records without the writes, by their positions.
    #[must_use]
    pub fn began_at(mut self, revisions: &BTreeMap<u64, u64>) -> Self {
        for exchange in &mut self.exchanges {
            if let Some(revision) = revisions.get(&exchange.asked.seq) {
                exchange.revision = Some(*revision);
            }
        }
        self
    }

    /// Returns the records, in order.
    pub fn records(&self) -> &'a [Record] {
        self.records
    }

    /// Returns LIST, WATCH and streaming-list requests, in order.
    pub fn reads(&self) -> impl DoubleEndedIterator<Item = &Exchange<'a>> + Clone {
        self.exchanges
            .iter()
            .filter(|exchange| exchange.verb != Verb::Other)
    }

    /// Returns WATCH and streaming-list requests, in order.
    pub fn watches(&self) -> impl DoubleEndedIterator<Item = &Exchange<'a>> + Clone {
        self.exchanges
            .iter()
            .filter(|exchange| matches!(exchange.verb, Verb::Watch | Verb::WatchList))
    }

    /// Returns LIST requests, pages included, in order.
    pub fn lists(&self) -> impl DoubleEndedIterator<Item = &Exchange<'a>> + Clone {
        self.exchanges
            .iter()
            .filter(|exchange| exchange.verb == Verb::List)
    }

    /// Returns the exchange with this number.
    pub fn exchange(&self, stream: StreamId) -> Option<&Exchange<'a>> {
        self.exchanges
            .binary_search_by_key(&stream, |exchange| exchange.stream)
            .ok()
            .map(|at| &self.exchanges[at])
    }

    /// Returns the number of the process that sent the request at `seq`: 0 before the first restart.
    pub fn process(&self, seq: u64) -> usize {
        self.restarts.partition_point(|restart| restart.seq < seq)
    }

    /// Returns true if the client reported an error between two positions (both exclusive).
    pub fn error_between(&self, after: u64, before: u64) -> bool {
        any_between(&self.errors, after, before)
    }

    /// Returns the exchanges whose request arrived before `seq`.
    pub fn asked_before(&self, seq: u64) -> &[Exchange<'a>] {
        let before = self
            .exchanges
            .partition_point(|exchange| exchange.asked.seq < seq);
        &self.exchanges[..before]
    }

    /// Returns the snapshots that were complete before `seq`.
    pub fn snapshots_before(&self, seq: u64) -> &[Snapshot<'a>] {
        let before = self.snapshots.partition_point(|snapshot| snapshot.done.seq < seq);
        &self.snapshots[..before]
    }

    /// Returns the newest snapshot that was complete before `seq`.
    pub fn snapshot_before(&self, seq: u64) -> Option<&Snapshot<'a>> {
        self.snapshots_before(seq).last()
    }

    /// Returns position and time of the last record.
    pub fn last(&self) -> Option<Moment> {
        self.records.last().map(Moment::of).max(self.until)
    }
}

impl<'a> Exchange<'a> {
    /// Returns a query parameter; `None` if absent or empty, which are equivalent in the API.
    pub fn query(&self, name: &str) -> Option<&'a str> {
        self.query
            .iter()
            .find(|(key, value)| key == name && !value.is_empty())
            .map(|(_, value)| value.as_str())
    }

    /// Returns `resourceVersion` if it pins a state: neither absent nor `0`.
    pub fn pinned(&self) -> Option<&'a str> {
        self.query("resourceVersion").filter(|version| *version != "0")
    }

    /// Returns true for a WATCH or streaming list.
    pub fn is_watch(&self) -> bool {
        matches!(self.verb, Verb::Watch | Verb::WatchList)
    }

    /// Returns true for an ADDED line of an object that was created after the request: it is no initial event.
    pub(crate) fn is_created_since(&self, frame: &Frame) -> bool {
        let version = frame
            .object
            .as_ref()
            .and_then(|object| object.resource_version.parse().ok());
        let is_newer = self
            .revision
            .zip(version)
            .is_some_and(|(began, version)| began < version);
        frame.kind == FrameType::Added && is_newer
    }

    /// Returns the page of the response, if any.
    pub fn page_sent(&self) -> Option<&Page<'a>> {
        match &self.answer {
            Some(ResponseBody::Page(page)) => Some(page),
            Some(ResponseBody::Body(_) | ResponseBody::Torn { .. }) | None => None,
        }
    }

    /// Returns the Status or other body of the response, if any.
    pub fn body_sent(&self) -> Option<&Body<'a>> {
        match &self.answer {
            Some(ResponseBody::Body(body)) => Some(body),
            Some(ResponseBody::Page(_) | ResponseBody::Torn { .. }) | None => None,
        }
    }

    /// Returns the HTTP status, if the head was sent.
    pub fn status(&self) -> Option<u16> {
        self.head.map(|head| head.status)
    }

    /// Returns when the response or its connection ended, whichever was first.
    pub fn over(&self) -> Option<Moment> {
        match (self.end.map(|end| end.at), self.disconnected.map(|(at, _)| at)) {
            (Some(end), Some(gone)) => Some(end.min(gone)),
            (Some(at), None) | (None, Some(at)) => Some(at),
            (None, None) => None,
        }
    }

    /// Returns the first ERROR line, with its code and reason.
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

    /// Returns when the server reported that the requested version is expired: by status, or by the first ERROR line
    /// if the client could read it. An ERROR line ends the stream for the client; a line-based reader has to wait for
    /// its newline.
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

    /// Returns true if the client ended the response or closed its connection by that time. Bytes sent at the instant
    /// at which a client gives up are recorded as sent, but may never be read.
    pub fn left_by(&self, at: Duration) -> bool {
        let ended = self.end.filter(|end| end.by == Side::Client).map(|end| end.at);
        let closed = self.disconnected.filter(|(_, by)| *by == Side::Client);
        let mut left = ended.into_iter().chain(closed.map(|(at, _)| at));
        left.any(|left| left.at <= at)
    }

    /// Returns true if a body was sent with its framing. Without the last chunk it counts as truncated.
    pub fn is_whole(&self) -> bool {
        let is_sent = matches!(self.answer, Some(ResponseBody::Page(_) | ResponseBody::Body(_)));
        let is_ended = |end: End| end.by == Side::Server && end.how == Ending::Eof;
        is_sent && self.end.is_some_and(is_ended)
    }

    /// Returns true if the client certainly read the whole response: only if the server ended it cleanly while the
    /// client was still connected. Bytes sent are not necessarily read.
    pub fn read_to_end(&self) -> bool {
        self.end.is_some_and(|end| {
            let clean = matches!(end.how, Ending::Eof | Ending::Fin | Ending::NoCloseNotify);
            clean && end.by == Side::Server && !self.left_by(end.at.at)
        })
    }
}

/// Returns true if one of the ascending `positions` is between two others (both exclusive).
pub fn any_between(positions: &[u64], after: u64, before: u64) -> bool {
    let next = positions.partition_point(|position| *position <= after);
    positions.get(next).is_some_and(|position| *position < before)
}

/// Returns true if a decoder can parse the line: every byte of its JSON was sent, and it is a watch event of a known
/// type. The newline may be missing.
pub fn readable(frame: &Frame) -> bool {
    frame.sent + 1 >= frame.bytes && frame.kind != FrameType::Raw
}

/// Returns the write of a record, if any.
pub fn written(what: &What) -> Option<&StoreWrite> {
    if let What::Wrote(write) = what {
        Some(write)
    } else {
        None
    }
}

/// Why a saved trace cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file could not be read.
    #[error("cannot read the trace: {0}")]
    Io(#[from] std::io::Error),
    /// A line is not a record.
    #[error("line {line} is no record of a trace: {source}")]
    Line {
        /// Line number, from 1.
        line: usize,
        /// The parse error.
        source: serde_json::Error,
    },
    /// A line is not the next record in order.
    #[error("line {line} has seq {seq}, but records count from 0 without a gap")]
    Order {
        /// Line number, from 1.
        line: usize,
        /// `seq` of the record.
        seq: u64,
    },
}

/// Writes records as NDJSON.
///
/// # Errors
/// Errors of `out`.
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
/// If a line is not a record, or a record is missing.
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

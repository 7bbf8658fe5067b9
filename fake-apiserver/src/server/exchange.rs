//! One request and its answer on the way out: what is decided but not yet sent.
//!
//! It decides which bytes leave when, and where they are torn; it knows neither the model nor the script's steps.

mod rules;

use std::collections::VecDeque;
use std::time::Duration;

use apimachinery::ObjectRef;
use bytes::Bytes;
use rules::EventRules;
pub(super) use rules::Fate;
use scenario::RuleAction;
use trace::fault::{Cut, Ending, Pace};
use trace::record::{ConnId, Frame, Side, StreamId, What};

use super::backlog::Backlog;
use super::joined::{JOINED_BYTES_MAX, Joined};
use crate::api;
use crate::model::WatchFrame;
use crate::server::{Log, Output};

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

/// What a piece of a body is, for the trace.
#[derive(Debug)]
pub(super) enum Meaning {
    /// One line of a watch stream.
    Line(Frame),
    /// A whole body; the record to append once it is out.
    Whole(What),
    /// A part of a body that is not the last one.
    Part,
}

#[derive(Debug)]
struct Piece {
    bytes: Bytes,
    sent: usize,
    meaning: Meaning,
}

impl Piece {
    /// A whole line that is the truth.
    fn may_be_joined(&self) -> bool {
        self.sent == 0 && matches!(&self.meaning, Meaning::Line(frame) if !frame.scripted)
    }
}

/// A request and its answer.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) id: StreamId,
    pub(super) conn: ConnId,
    head: Option<Head>,
    head_sent: bool,
    /// A body of one piece whose length can be announced.
    whole: bool,
    /// It is, however long the body.
    announced: bool,
    queue: VecDeque<Piece>,
    /// The answer ends so once the queue is out.
    ending: Option<Ending>,
    ended: bool,
    not_before: Duration,
    pub(super) pace: Option<Pace>,
    cut: Option<(Cut, Ending)>,
    pub(super) rules: EventRules,
    gzip: bool,
    backlog: Backlog,
}

impl Exchange {
    pub(super) fn new(id: StreamId, conn: ConnId) -> Self {
        Self {
            id,
            conn,
            head: None,
            head_sent: false,
            whole: false,
            announced: false,
            queue: VecDeque::new(),
            ending: None,
            ended: false,
            not_before: Duration::ZERO,
            pace: None,
            cut: None,
            rules: EventRules::default(),
            gzip: false,
            backlog: Backlog::default(),
        }
    }

    /// Nothing leaves before `at`.
    pub(super) fn delay_until(&mut self, at: Duration) {
        self.not_before = self.not_before.max(at);
    }

    /// Puts a rule on what is sent from here on.
    pub(super) fn obey(&mut self, rule: &RuleAction) {
        match rule {
            RuleAction::DropEvents(count) => self.rules.drop += count,
            RuleAction::RepeatEvent(count) => self.rules.repeat = *count,
            RuleAction::ReorderEvents(count) => self.rules.reorder = *count,
            RuleAction::NoBookmarks => self.rules.no_bookmarks = true,
            RuleAction::EndMarker(value) => self.rules.end_marker = Some(value.clone()),
            RuleAction::Truncate { cut, ending } => self.cut = Some((*cut, *ending)),
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
        (self.pace, self.cut, self.not_before) = (None, None, Duration::ZERO);
    }

    /// Sets the head, once.
    pub(super) fn set_head(&mut self, mut head: Head) {
        debug_assert!(self.head.is_none() && !self.head_sent, "an answer has one head");
        // A long body comes compressed.
        self.gzip &= !head.is_encoded();
        if self.gzip {
            head.headers.extend(api::gzip_headers());
        }
        self.head = Some(head);
    }

    /// The length of the body is announced, where a long one would be sent in chunks otherwise.
    pub(super) fn announce_length(&mut self) {
        self.announced = true;
    }

    /// Queues a body that is one piece, and the clean end after it.
    pub(super) fn set_body(&mut self, bytes: Bytes, record: What) {
        self.whole = true;
        self.queue.push_back(Piece {
            bytes: self.encoded(bytes),
            sent: 0,
            meaning: Meaning::Whole(record),
        });
        self.ending.get_or_insert(Ending::Eof);
    }

    /// Queues a part of a body that more follows.
    pub(super) fn push_part(&mut self, bytes: Bytes) {
        self.queue.push_back(Piece {
            bytes,
            sent: 0,
            meaning: Meaning::Part,
        });
    }

    /// Queues the end of a body that came in parts.
    pub(super) fn end_parts(&mut self, record: What) {
        self.queue.push_back(Piece {
            bytes: Bytes::new(),
            sent: 0,
            meaning: Meaning::Whole(record),
        });
        self.ending.get_or_insert(Ending::Eof);
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
        self.queue.push_back(Piece {
            bytes,
            sent: 0,
            meaning: Meaning::Line(record),
        });
    }

    fn encoded(&self, bytes: Bytes) -> Bytes {
        if self.gzip {
            api::gzip_member(&bytes)
        } else {
            bytes
        }
    }

    /// The answer ends so after what is queued; what was decided first stands, unless nothing of it was meant to end.
    pub(super) fn end(&mut self, ending: Ending) {
        self.ending = Some(ending);
    }

    /// Drops what is queued and ends at once.
    pub(super) fn end_without_body(&mut self, ending: Ending) {
        self.queue.clear();
        self.whole = false;
        self.ending = Some(ending);
    }

    /// Ends without even a head.
    pub(super) fn refuse_to_answer(&mut self, ending: Ending) {
        self.end_without_body(ending);
        self.head = None;
        self.head_sent = true;
    }

    pub(super) fn decided(&self) -> bool {
        self.head.is_some() || self.head_sent
    }

    pub(super) fn is_over(&self) -> bool {
        self.ended
    }

    /// Has the script nothing to say of how this answer leaves?
    pub(super) fn is_free(&self) -> bool {
        let untouched = self.pace.is_none() && self.cut.is_none() && !self.gzip;
        untouched && !self.announced && self.ending.is_none()
    }

    /// How many bytes more may be queued: a client that does not read is not kept more than that for.
    pub(super) fn room(&self) -> usize {
        if matches!(self.pace, Some(Pace::Coalesce { .. })) {
            // It waits for so many events, however long they are.
            return usize::MAX;
        }
        let queued: usize = self
            .queue
            .iter()
            .map(|piece| piece.bytes.len() - piece.sent)
            .sum();
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
            if self.ended || !self.decided() {
                return None;
            }
            if now < self.not_before {
                return Some(self.not_before);
            }
            if let Some(head) = self.head.take() {
                self.send_head(now, head, log, outputs);
                continue;
            }
            if self.cut_is_due() {
                let (_, ending) = self.cut.take().expect("a due cut is armed");
                self.record_torn(now, log);
                self.finish(now, ending, log, outputs);
                continue;
            }
            let Some(count) = self.next_write() else {
                match self.ending {
                    Some(ending) if self.queue.is_empty() => self.finish(now, ending, log, outputs),
                    Some(_) | None => return None,
                }
                continue;
            };
            if joined.is_allowed() && self.may_join() {
                let bytes = self.join(now, log, joined);
                self.give(bytes, outputs);
                continue;
            }
            self.write(now, count, log, outputs);
        }
    }

    fn send_head(&mut self, now: Duration, head: Head, log: &mut Log, outputs: &mut VecDeque<Output>) {
        self.head_sent = true;
        log.push(
            now,
            What::Head {
                stream: self.id,
                status: head.status,
                retry_after: head.retry_after(),
                scripted: head.scripted,
            },
        );
        let length = (self.whole && self.cut.is_none() && self.pace.is_none())
            .then(|| self.queue.iter().map(|piece| piece.bytes.len() as u64).sum())
            .filter(|length| self.announced || *length <= LONGEST_ANNOUNCED)
            .filter(|_| !matches!(head.status, 204 | 304));
        outputs.push_back(Output::Head {
            stream: self.id,
            status: head.status,
            headers: head.headers,
            length,
        });
    }

    fn finish(&mut self, now: Duration, how: Ending, log: &mut Log, outputs: &mut VecDeque<Output>) {
        self.ended = true;
        self.queue.clear();
        let (stream, held) = (self.id, std::mem::take(&mut self.rules.held));
        for object in held.into_iter().filter_map(|frame| frame.object) {
            let object = ObjectRef::clone(&object);
            log.push(now, What::Withheld { stream, object });
        }
        log.push(
            now,
            What::End {
                stream: self.id,
                how,
                by: Side::Server,
            },
        );
        outputs.push_back(Output::End { stream: self.id, how });
    }

    fn cut_is_due(&self) -> bool {
        match self.cut {
            Some((Cut::AfterBytes(left), _)) => left == 0,
            Some((Cut::AfterEvents { events: 0, percent }, _)) => match self.queue.front() {
                None => percent == 0,
                Some(piece) => piece.sent >= share(piece.bytes.len(), percent),
            },
            Some((Cut::AfterEvents { .. }, _)) | None => false,
        }
    }

    /// How many bytes the next write has; `None`: nothing may be written now.
    fn next_write(&self) -> Option<usize> {
        let piece = self.queue.front()?;
        let left = &piece.bytes[piece.sent..];
        let paced = match self.pace {
            None => left.len(),
            Some(Pace::Drip { bytes, .. }) => {
                let next = left.len().min(bytes.max(1) as usize);
                // A newline says nothing new: who reads JSON values has the event before it, and the trace must too.
                if left[next..] == *b"\n" { left.len() } else { next }
            }
            Some(Pace::SplitUtf8) => up_to_inside_character(left),
            Some(Pace::Coalesce { events }) => {
                if self.queue.len() < events as usize && self.ending.is_none() {
                    return None;
                }
                left.len()
            }
        };
        Some(match self.cut {
            Some((Cut::AfterBytes(bytes), _)) => paced.min(usize::try_from(bytes).unwrap_or(usize::MAX)),
            Some((Cut::AfterEvents { events: 0, percent }, _)) => {
                paced.min(share(piece.bytes.len(), percent).saturating_sub(piece.sent))
            }
            Some((Cut::AfterEvents { .. }, _)) | None => paced,
        })
    }

    fn write(&mut self, now: Duration, count: usize, log: &mut Log, outputs: &mut VecDeque<Output>) {
        let bytes = match self.pace {
            Some(Pace::Coalesce { .. }) if self.cut.is_none() => self.coalesced(now, log),
            Some(_) | None => self.take(now, count, log),
        };
        match self.pace {
            Some(Pace::Drip { every_ms, .. }) => self.not_before = now + Duration::from_millis(every_ms),
            Some(Pace::SplitUtf8) => self.not_before = now + Duration::from_millis(1),
            Some(Pace::Coalesce { .. }) | None => {}
        }
        if let Some((Cut::AfterBytes(left), _)) = &mut self.cut {
            *left -= bytes.len() as u64;
        }
        self.give(bytes, outputs);
    }

    fn give(&mut self, bytes: Bytes, outputs: &mut VecDeque<Output>) {
        let (stream, length) = (self.id, bytes.len());
        if length > 0 || self.whole {
            outputs.push_back(Output::Data { stream, bytes });
        }
        if self.backlog.gave(length) {
            outputs.push_back(Output::Fence { stream });
        }
    }

    /// Are several truthful lines due at once, and has the script nothing to say of how they leave?
    fn may_join(&self) -> bool {
        let free = self.pace.is_none() && self.cut.is_none();
        free && self
            .queue
            .iter()
            .take(2)
            .filter(|piece| piece.may_be_joined())
            .count()
            == 2
    }

    /// Takes the lines that are due off the queue, as one write: watches that get the same lines share its bytes.
    fn join(&mut self, now: Duration, log: &mut Log, joined: &mut Joined) -> Bytes {
        let (mut lines, mut length) = (Vec::new(), 0);
        while let Some(piece) = self.queue.front()
            && piece.may_be_joined()
            && (lines.is_empty() || length + piece.bytes.len() <= JOINED_BYTES_MAX)
        {
            let piece = self.queue.pop_front().expect("it was just looked at");
            length += piece.bytes.len();
            lines.push(piece.bytes.clone());
            let sent = piece.bytes.len();
            record(now, self.id, Piece { sent, ..piece }, log);
        }
        joined.of(lines)
    }

    /// Takes `count` bytes off the first piece, and records it when it is out.
    fn take(&mut self, now: Duration, count: usize, log: &mut Log) -> Bytes {
        let piece = self.queue.front_mut().expect("only a queued piece is written");
        let bytes = piece.bytes.slice(piece.sent..piece.sent + count);
        piece.sent += count;
        if piece.sent == piece.bytes.len() {
            let piece = self.queue.pop_front().expect("it was just looked at");
            if let (Meaning::Line(_), Some((Cut::AfterEvents { events, .. }, _))) =
                (&piece.meaning, &mut self.cut)
            {
                *events = events.saturating_sub(1);
            }
            record(now, self.id, piece, log);
        }
        bytes
    }

    fn coalesced(&mut self, now: Duration, log: &mut Log) -> Bytes {
        let mut together = Vec::new();
        while let Some(piece) = self.queue.pop_front() {
            together.extend_from_slice(&piece.bytes[piece.sent..]);
            record(
                now,
                self.id,
                Piece {
                    sent: piece.bytes.len(),
                    ..piece
                },
                log,
            );
        }
        Bytes::from(together)
    }

    fn record_torn(&mut self, now: Duration, log: &mut Log) {
        if let Some(piece) = self.queue.pop_front() {
            record(now, self.id, piece, log);
        }
    }
}

fn record(now: Duration, stream: StreamId, piece: Piece, log: &mut Log) {
    let (sent, bytes) = (piece.sent as u64, piece.bytes.len() as u64);
    match piece.meaning {
        Meaning::Part => {}
        Meaning::Line(_) if sent == 0 => {}
        Meaning::Line(frame) => log.push(
            now,
            What::Frame {
                stream,
                frame: Frame { sent, ..frame },
            },
        ),
        Meaning::Whole(what) if sent == bytes => log.push(now, what),
        Meaning::Whole(_) => log.push(now, What::Torn { stream, sent, bytes }),
    }
}

fn share(len: usize, percent: u8) -> usize {
    len * usize::from(percent) / 100
}

/// Bytes up to and including the first byte of the next multi-byte character, or all of them.
fn up_to_inside_character(bytes: &[u8]) -> usize {
    // A continuation byte at the start belongs to a character that was split before: it must not be split there again.
    let rest = bytes
        .iter()
        .take_while(|byte| (0x80..0xC0).contains(*byte))
        .count();
    bytes[rest..]
        .iter()
        .position(|byte| *byte >= 0xC0)
        .map_or(bytes.len(), |lead| rest + lead + 1)
}

#[cfg(test)]
mod tests;

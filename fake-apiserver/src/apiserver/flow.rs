//! Pump: moves events and pages from the model into the queue of each response, and sends what is due.

use std::collections::BTreeSet;
use std::time::Duration;

use apimachinery::ObjectRef;
use trace::fault::Ending;
use trace::record::{Record, StreamId, Turn, What};

use super::answer::watch_head;
use super::exchange::Exchange;
use super::exchange::Fate;
use super::log::Log;
use super::memory::{EVENT_BYTES_MAX, GROWTH_BYTES};
use super::output::Output;
use super::store::Followed;
use super::upstream::Upstream;
use super::{ApiServer, Asked, Open, Source};
use crate::model::conversions::Need;
use crate::model::{Model, WatchFrame, WatchPoll, error_frame};
use crate::upstream::{Order, frame};

/// Observer of what is sent on a response, called while its request is still open.
pub(crate) trait Observer {
    /// `records`: what was just sent on `stream` in response to `asked`. Returns further records to append.
    fn on_left(&mut self, now: Duration, stream: StreamId, asked: &Asked, records: &[Record]) -> Vec<What>;
}

impl ApiServer {
    /// Compacts if the schedule requires it.
    pub(crate) fn compact_in_time(&mut self, now: Duration) {
        if let Some(compaction) = &self.compaction
            && now >= compaction.poll_timeout()
        {
            self.compact_if_due(now);
        }
    }

    /// Compacts history that is old or too large. Call after every write.
    pub(super) fn compact_if_due(&mut self, now: Duration) {
        let revision = self.model.revision();
        let written = self.model.storage().written_bytes();
        let is_grown = written - self.measured_at >= GROWTH_BYTES;
        if is_grown {
            self.measured_at = written;
        }
        let bytes = is_grown.then(|| self.model.storage().history_bytes());
        let compaction = self.compaction.as_mut();
        if let Some(to) = compaction.and_then(|compaction| compaction.due(now, revision, bytes)) {
            self.model.storage_mut().compact_store_to(to);
            let written = self.model.revision();
            if let Some(compaction) = &mut self.compaction {
                compaction.wrote(revision, written);
            }
            self.turned(now, Turn::Compacted { to, of_etcd: true });
        }
        if is_grown && self.compaction.is_some() && self.model.storage().event_bytes() > EVENT_BYTES_MAX {
            self.model.storage_mut().evict_events(EVENT_BYTES_MAX / 2);
            self.turned(
                now,
                Turn::Other("the oldest events left the watch caches: too many bytes".to_owned()),
            );
        }
    }

    /// Sends every byte that is due at `now`.
    pub(crate) fn pump_due(&mut self, now: Duration, observer: &mut dyn Observer) {
        while let Some((at, stream)) = self.wakes.first().copied() {
            if at > now {
                break;
            }
            self.wakes.remove(&(at, stream));
            if let Some(open) = self.open.get_mut(&stream) {
                open.wake = None;
            }
            self.touched.push(stream);
        }
        let mut touched = std::mem::take(&mut self.touched);
        touched.sort_unstable();
        touched.dedup();
        for stream in touched.drain(..) {
            self.pump(now, stream, observer);
        }
        // For the next turn, in the same memory.
        touched.append(&mut self.touched);
        self.touched = touched;
        self.joined.forget();
    }

    /// Fills the queue of a response, and sends what is due.
    pub(crate) fn pump(&mut self, now: Duration, stream: StreamId, observer: &mut dyn Observer) {
        let share = self.answer_share();
        loop {
            let Some(mut open) = self.open.get_mut(&stream) else {
                return;
            };
            if let Source::Waiting { .. } | Source::WaitingGet { .. } = open.source {
                self.decide(now, stream);
                open = match self.open.get_mut(&stream) {
                    Some(open) => open,
                    None => return,
                };
            }
            if open.calls > 0 {
                return;
            }
            if let Source::Watch(session) = &open.source
                && session.read_ahead(&self.model, now)
            {
                match self.model.take_need() {
                    Need::Nothing => {}
                    Need::Calls(calls) => return self.begin_conversions(now, stream, None, calls),
                    Need::Failed(status) => {
                        open.exchange.push_line(error_frame(&status), false);
                        open.source = Source::Decided;
                        open.exchange.end(Ending::Eof);
                    }
                }
            }
            open.exchange.set_share(share);
            let more = open.refill(
                now,
                RefillContext {
                    model: &self.model,
                    upstream: self.upstream.as_ref(),
                    followed: self.followed.as_ref(),
                    changed_at: &mut self.changed_at,
                    log: &mut self.log,
                    wakes: &mut self.wakes,
                },
            );
            if open.begin_watch() {
                self.touched.push(stream);
            }
            let before = self.log.records.len();
            let sinks = (&mut self.log, &mut self.outputs, &mut self.joined);
            if let Some(at) = open.exchange.flush(now, sinks) {
                self.wakes.insert((at, stream));
            }
            let (is_over, room) = (open.exchange.is_over(), open.exchange.room());
            if let Source::Upstream(forwarded) = &mut open.source
                && forwarded.pulls(room, share)
            {
                let order = Order::Pull;
                self.outputs.push_back(Output::Upstream { stream, order });
            }
            let sent = &self.log.records[before..];
            let is_stalled = is_stalled(sent);
            for what in observer.on_left(now, stream, &open.asked, sent) {
                self.log.push(now, what);
            }
            if is_over && !is_stalled {
                self.close(stream);
                return;
            }
            if !more || room == 0 {
                return;
            }
        }
    }

    /// The bytes before a flush barrier were flushed: a response that waited for room continues in this turn.
    pub(crate) fn flushed(&mut self, stream: StreamId) {
        if let Some(open) = self.open.get_mut(&stream) {
            if open.exchange.flushed() {
                self.outputs.push_back(Output::FlushBarrier { stream });
            }
            self.touched.push(stream);
        }
    }

    /// Queues the head of a watch that no longer waits for its resourceVersion.
    pub(super) fn begin_watch(&mut self, stream: StreamId) {
        if self.open.get_mut(&stream).is_some_and(|open| open.begin_watch()) {
            self.touched.push(stream);
        }
    }

    /// Changes an open request, and pumps it in this turn.
    pub(super) fn with(&mut self, stream: StreamId, change: impl FnOnce(&mut Open)) {
        if let Some(open) = self.open.get_mut(&stream) {
            change(open);
        }
        self.touched.push(stream);
    }

    /// Pumps every open request in this turn.
    pub(crate) fn touch_all(&mut self) {
        self.touched.clear();
        self.touched.extend(self.open.keys());
    }
}

/// Whether the last record is a stall: an end that the client does not see.
fn is_stalled(records: &[Record]) -> bool {
    matches!(
        records.last().map(|record| &record.what),
        Some(What::End {
            how: Ending::Stall,
            ..
        })
    )
}

/// The parts of the server that a refill reads and writes.
struct RefillContext<'s> {
    model: &'s Model,
    upstream: Option<&'s Upstream>,
    followed: Option<&'s Followed>,
    changed_at: &'s mut Duration,
    log: &'s mut Log,
    wakes: &'s mut BTreeSet<(Duration, StreamId)>,
}

/// Queues an event as the rules of its watch decide. `remark`: returns a bookmark with another end marker.
fn offer(
    exchange: &mut Exchange,
    now: Duration,
    frame: WatchFrame,
    log: &mut Log,
    remark: impl Fn(WatchFrame, Option<String>) -> Option<WatchFrame>,
) {
    if exchange.rules.leaves_unmodified() {
        return exchange.push_line(frame, false);
    }
    for fate in exchange.rules.decide(frame) {
        match fate {
            Fate::Send { frame, scripted } => exchange.push_line(frame, scripted),
            Fate::Withhold(frame) => {
                if let Some(object) = frame.object {
                    let object = ObjectRef::clone(&object);
                    let stream = exchange.id;
                    log.push(now, What::Withheld { stream, object });
                }
            }
            Fate::Remark {
                frame,
                initial_events_end,
            } => {
                if let Some(marker) = remark(frame, initial_events_end) {
                    exchange.push_line(marker, true);
                }
            }
        }
    }
}

impl Open {
    /// Moves events into the queue. Returns true if there are more than fit.
    fn refill(&mut self, now: Duration, context: RefillContext<'_>) -> bool {
        let stream = self.exchange.id;
        let mut room = self.exchange.room();
        let session = match &mut self.source {
            Source::Undecided(..)
            | Source::Unsent(_)
            | Source::Refused(_)
            | Source::Hooked(_)
            | Source::Decided => return false,
            Source::Upstream(_) => return self.refill_from_upstream(now, room, context),
            Source::Waiting { .. } | Source::WaitingGet { .. } => return false,
            Source::Page { .. } => return self.refill_page(room),
            Source::Watch(session) => session,
        };
        loop {
            if room == 0 && !session.is_past(context.model, now) {
                let deadline = session.deadline();
                if self.wake.is_none() {
                    self.wake = Some(deadline);
                    context.wakes.insert((deadline, stream));
                }
                return true;
            }
            match session.poll(context.model, now) {
                WatchPoll::Frame(frame) => {
                    room = room.saturating_sub(frame.line.len());
                    if frame.kind.is_change()
                        && let (Some(followed), Some(event)) = (context.followed, &frame.object)
                        && followed.is_moved_by(session.collection(), event)
                    {
                        *context.changed_at = now;
                    }
                    offer(
                        &mut self.exchange,
                        now,
                        frame,
                        context.log,
                        |frame, initial_events_end| {
                            let collection = self.asked.collection.as_ref()?;
                            let version = frame
                                .object
                                .as_ref()
                                .map(|object| object.resource_version.as_str());
                            let form = self.asked.form;
                            let end = initial_events_end.as_deref();
                            Some(context.model.bookmark_frame(
                                collection,
                                version.unwrap_or_default(),
                                end,
                                form,
                            ))
                        },
                    );
                }
                WatchPoll::Pending { wake } => {
                    self.exchange.flush_member();
                    // Events do not change the deadline.
                    if let Some(wake) = wake.filter(|wake| self.wake != Some(*wake)) {
                        self.wake = Some(wake);
                        context.wakes.insert((wake, stream));
                    }
                    return false;
                }
                WatchPoll::End => {
                    if !self.exchange.decided() {
                        // It timed out while it waited for its resourceVersion.
                        self.exchange.set_head(watch_head(stream, &self.asked));
                    }
                    self.end_watch();
                    return false;
                }
            }
        }
    }

    /// Moves the events of the upstream that are due into the queue. Returns true if there are more than fit.
    fn refill_from_upstream(&mut self, now: Duration, mut room: usize, context: RefillContext<'_>) -> bool {
        let (Source::Upstream(forwarded), Some(upstream)) = (&mut self.source, context.upstream) else {
            return false;
        };
        let mode = upstream.mode(forwarded);
        while room > 0 {
            let Some(frame) = forwarded.next(now, mode) else {
                if forwarded.is_over() {
                    self.end_watch();
                } else if let Some(due) = forwarded.due(mode).filter(|due| *due > now) {
                    context.wakes.insert((due, self.exchange.id));
                }
                return false;
            };
            room = room.saturating_sub(frame.line.len());
            if frame.kind.is_change() {
                *context.changed_at = now;
            }
            let remark = |bookmark: WatchFrame, initial_events_end| {
                Some(frame::remarked(bookmark, initial_events_end))
            };
            offer(&mut self.exchange, now, frame, context.log, remark);
        }
        true
    }

    /// Queues what was held back, and a clean end.
    fn end_watch(&mut self) {
        for fate in self.exchange.rules.let_go() {
            if let Fate::Send { frame, scripted } = fate {
                self.exchange.push_line(frame, scripted);
            }
        }
        self.source = Source::Decided;
        self.exchange.end(Ending::Eof);
    }

    /// Queues the head of a watch that no longer waits. Returns whether it did.
    fn begin_watch(&mut self) -> bool {
        let begins = !self.exchange.decided()
            && matches!(&self.source, Source::Watch(session) if !session.is_waiting());
        if begins {
            self.exchange.set_head(watch_head(self.exchange.id, &self.asked));
            self.asked.forget_headers();
        }
        begins
    }

    /// Moves parts of a page into the queue. Returns true if there are more than fit.
    fn refill_page(&mut self, mut room: usize) -> bool {
        let Source::Page { text, .. } = &mut self.source else {
            return false;
        };
        while room > 0 {
            match text.next() {
                Some(bytes) => {
                    room = room.saturating_sub(bytes.len());
                    self.exchange.push_part(bytes);
                }
                None => {
                    if let Source::Page { record, .. } = std::mem::replace(&mut self.source, Source::Decided)
                    {
                        self.exchange.end_parts(record);
                    }
                    return false;
                }
            }
        }
        true
    }
}

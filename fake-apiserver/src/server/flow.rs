//! Onwards from what happened: runs the steps that are due, moves what the truth has to say into each answer's queue, and
//! lets out what may leave.
//!
//! It must not know what an answer is made of.

use std::time::Duration;

use super::answer::watch_head;
use super::exchange::Fate;
use super::names::binding_of;
use super::{Open, Output, Server, Source};
use crate::fault::Ending;
use crate::model::WatchPoll;
use crate::record::{ObjectRef, StreamId, What};

impl Server {
    /// Runs every step and sends every byte that is due at `now`.
    pub(super) fn advance(&mut self, now: Duration) {
        if let Some(compaction) = &self.compaction
            && now >= compaction.poll_timeout()
        {
            self.compact_if_due(now);
        }
        while let Some(step) = self.script.poll(now, self.newest_watch().is_some()) {
            self.run_step(now, step, None);
        }
        self.pump_due(now);
        if self.goal.can_end() {
            let at_rest = self.watches_target().then(|| self.script.quiet_since());
            self.goal.on_rest(at_rest);
        }
        // A frame that just left may have been the client's last word on a step that waits for quiet; nothing else
        // that pumping does can arm a step.
        self.goal.advance(now, &self.script, &mut self.log);
    }

    /// Forgets history that is old, or too much: to be asked after every write.
    pub(super) fn compact_if_due(&mut self, now: Duration) {
        let (revision, bytes) = (self.model.revision(), self.model.history_bytes());
        let compaction = self.compaction.as_mut();
        if let Some(to) = compaction.and_then(|compaction| compaction.due(now, revision, bytes)) {
            self.model.compact_store_to(to);
            self.turned(now, format!("etcd compacted up to {to}"));
        }
    }

    fn pump_due(&mut self, now: Duration) {
        while let Some((at, stream)) = self.wakes.first().copied() {
            if at > now {
                break;
            }
            self.wakes.remove(&(at, stream));
            if let Some(open) = self.open.get_mut(&stream) {
                open.wake = None;
            }
            self.touched.insert(stream);
        }
        for stream in std::mem::take(&mut self.touched) {
            self.pump(now, stream);
        }
        self.joined.forget();
    }

    /// Moves what the truth has to say into the queue, and what may leave out of it.
    pub(super) fn pump(&mut self, now: Duration, stream: StreamId) {
        loop {
            let more = self.refill(now, stream);
            self.flush(now, stream);
            let open = self.open.get(&stream);
            if !more || open.is_none_or(|open| open.exchange.room() == 0) {
                break;
            }
        }
    }

    /// The connection took what was handed over; what waited for room goes on in this turn.
    pub(super) fn taken(&mut self, stream: StreamId) {
        if let Some(open) = self.open.get_mut(&stream) {
            if open.exchange.taken() {
                self.outputs.push_back(Output::Fence { stream });
            }
            self.touched.insert(stream);
        }
    }

    /// True if the source has more than there is room for.
    fn refill(&mut self, now: Duration, stream: StreamId) -> bool {
        let mut more = false;
        let Some(open) = self.open.get_mut(&stream) else {
            return more;
        };
        let mut room = open.exchange.room();
        match &mut open.source {
            Source::Undecided(_) | Source::Refused(_) | Source::Decided => {}
            Source::Waiting { .. } | Source::WaitingGet { .. } => self.decide(now, stream),
            Source::Page { .. } => more = open.refill_page(room),
            Source::Watch(session) => loop {
                if room == 0 && !session.is_past(&self.model, now) {
                    let deadline = session.deadline();
                    if open.wake.is_none() {
                        open.wake = Some(deadline);
                        self.wakes.insert((deadline, stream));
                    }
                    more = true;
                    break;
                }
                match session.poll(&self.model, now) {
                    WatchPoll::Frame(frame) => {
                        room = room.saturating_sub(frame.line.len());
                        if frame.kind.is_change() {
                            self.script.on_activity(now);
                        }
                        if open.exchange.rules.is_truthful() {
                            open.exchange.push_line(&frame, false);
                            continue;
                        }
                        for fate in open.exchange.rules.decide(frame) {
                            match fate {
                                Fate::Send { frame, scripted } => open.exchange.push_line(&frame, scripted),
                                Fate::Withhold(frame) => {
                                    if let Some(object) = frame.object {
                                        let object = ObjectRef::clone(&object);
                                        self.log.push(now, What::Withheld { stream, object });
                                    }
                                }
                                Fate::Remark {
                                    frame,
                                    initial_events_end,
                                } => {
                                    let Some(collection) = &open.asked.collection else {
                                        continue;
                                    };
                                    let version = frame
                                        .object
                                        .map(|object| object.resource_version.clone())
                                        .unwrap_or_default();
                                    let marker = self.model.bookmark_frame(
                                        collection,
                                        &version,
                                        initial_events_end.as_deref(),
                                        open.asked.form,
                                    );
                                    open.exchange.push_line(&marker, true);
                                }
                            }
                        }
                    }
                    WatchPoll::Pending { wake } => {
                        // A thousand events in a row move no deadline.
                        if let Some(wake) = wake.filter(|wake| open.wake != Some(*wake)) {
                            open.wake = Some(wake);
                            self.wakes.insert((wake, stream));
                        }
                        break;
                    }
                    WatchPoll::End => {
                        if !open.exchange.decided() {
                            // It waited to its end.
                            open.exchange.set_head(watch_head(stream, &open.asked));
                        }
                        open.source = Source::Decided;
                        open.exchange.end(Ending::Eof);
                        break;
                    }
                }
            },
        }
        self.begin_watch(stream);
        more
    }

    /// Sends the head of a watch that no longer waits.
    pub(super) fn begin_watch(&mut self, stream: StreamId) {
        if let Some(open) = self.open.get_mut(&stream)
            && let Source::Watch(session) = &open.source
            && !session.is_waiting()
            && !open.exchange.decided()
        {
            open.exchange.set_head(watch_head(stream, &open.asked));
            open.asked.forget_headers();
            self.touched.insert(stream);
        }
    }

    fn flush(&mut self, now: Duration, stream: StreamId) {
        let Some(open) = self.open.get_mut(&stream) else {
            return;
        };
        let before = self.log.records.len();
        let way_out = (&mut self.log, &mut self.outputs, &mut self.joined);
        if let Some(at) = open.exchange.flush(now, way_out) {
            self.wakes.insert((at, stream));
        }
        let told = before..self.log.records.len();
        if let Some(name) = &open.bind
            && let Some(binding) = self.log.records[before..]
                .iter()
                .find_map(|record| binding_of(&record.what))
        {
            let name = name.clone();
            open.bind = None;
            self.bind(now, &name, binding);
        }
        self.assume_reports(now, stream, told);
        let Some(open) = self.open.get(&stream) else {
            return;
        };
        if open.exchange.is_over() {
            let stalled = matches!(
                self.log.records.last().map(|record| &record.what),
                Some(What::End {
                    how: Ending::Stall,
                    ..
                })
            );
            if !stalled {
                self.open.remove(&stream);
            }
        }
    }

    /// Changes an open request, and looks at it in this turn.
    pub(super) fn with(&mut self, stream: StreamId, change: impl FnOnce(&mut Open)) {
        if let Some(open) = self.open.get_mut(&stream) {
            change(open);
        }
        self.touched.insert(stream);
    }

    /// Is a watch open of what the scenario is about?
    fn watches_target(&self) -> bool {
        self.open.values().any(|open| {
            let collection = open.asked.collection.as_ref();
            matches!(open.source, Source::Watch(_))
                && !open.exchange.is_over()
                && collection.is_some_and(|collection| self.is_of_target(collection))
        })
    }

    /// The watch opened last, among those that can still say something.
    pub(super) fn newest_watch(&self) -> Option<StreamId> {
        self.open
            .iter()
            .rev()
            .find(|(_, open)| matches!(open.source, Source::Watch(_)) && !open.exchange.is_over())
            .map(|(stream, _)| *stream)
    }
}

impl Open {
    /// Moves parts of a page into the queue. True if there are more than there is room for.
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

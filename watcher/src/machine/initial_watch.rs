//! The part of the machine that reads a snapshot with a streaming list (KEP-3157).

use std::time::Duration;

use super::clock::Listened;
use super::watching::{WatchTimes, Watching};
use super::{Change, IDLE_MARGIN, Machine, Pause, RequestId, ResponsePart, State};
use crate::error::{During, Error, Malformed};
use crate::event::Event;
use crate::request::{At, Request};
use crate::status::Status;
use crate::version::ResourceVersion;

/// A streaming list that has not reached its end marker.
#[derive(Debug)]
pub(super) struct InitialWatch<O> {
    pub(super) request: RequestId,
    at: At,
    times: WatchTimes,
    /// Idle deadline.
    silent_at: Listened,
    asked: Duration,
    /// When the response head arrived.
    opened: Option<Duration>,
    /// Deadline for the marker; extended by every initial event.
    marker_due: Listened,
    /// Deadline for the marker that nothing extends.
    marker_due_latest: Listened,
    initial: Initial<O>,
}

/// Initial events received so far.
#[derive(Debug)]
enum Initial<O> {
    /// Buffered, so that a `DELETED` can still remove an object.
    Held(Vec<O>),
    /// Too many to buffer: emitted as they arrive.
    Emitted,
}

/// Maximum number of buffered objects. Larger snapshots are emitted while they arrive: a decoded Pod takes eight
/// times the memory of its JSON, and a delete just before the marker only costs a relist.
const HELD_MAX: usize = 4;

impl<O> InitialWatch<O> {
    pub(super) fn deadline(&self) -> Listened {
        self.silent_at.min(self.marker_due).min(self.marker_due_latest)
    }

    pub(super) fn reset_idle(&mut self, now: Listened) {
        self.silent_at = now.after(self.times.idle);
    }

    /// Returns true if the stream lasted nine tenths of the requested time or more: clocks and networks differ.
    fn ran_full_time(&self, now: Listened) -> bool {
        self.opened.is_some() && now.after(IDLE_MARGIN + self.times.longest / 10) >= self.marker_due_latest
    }

    pub(super) fn wait_for_body(&mut self) {
        self.silent_at = Listened::NEVER;
    }
}

impl<O> Machine<O> {
    pub(super) fn start_initial_watch(&mut self, now: Duration) {
        let times = self.watch_times();
        let at = self.memory.next_at(&self.config);
        let request = self.ask(Request::StreamingList {
            at: at.clone(),
            timeout_seconds: times.timeout_seconds,
        });
        self.state = State::InitialWatch(Box::new(InitialWatch {
            request,
            at,
            times,
            silent_at: self.clock.listened(now).after(times.idle),
            asked: now,
            opened: None,
            // Time before the response head is not the server's: it may be the network or a queue.
            marker_due: Listened::NEVER,
            marker_due_latest: Listened::NEVER,
            initial: Initial::Held(Vec::new()),
        }));
    }

    pub(super) fn initial_watch_answered(
        &mut self,
        now: Duration,
        mut initial: Box<InitialWatch<O>>,
        answer: ResponsePart<'_, O>,
    ) {
        let during = During::StreamingList;
        match answer {
            ResponsePart::Opened => {
                let listened = self.clock.listened(now);
                initial.opened = Some(now);
                initial.marker_due = listened.after(self.config.initial_events_timeout);
                // The server's own end must have time to arrive.
                initial.marker_due_latest = listened.after(initial.times.longest + IDLE_MARGIN);
                self.state = State::InitialWatch(initial);
            }
            ResponsePart::Progress | ResponsePart::Refusing => self.state = State::InitialWatch(initial),
            ResponsePart::Changed { change, payload } => {
                let listened = self.clock.listened(now);
                initial.marker_due = listened.after(self.config.initial_events_timeout);
                self.initial_change(now, initial, change, payload);
            }
            ResponsePart::Bookmark {
                resource_version,
                initial_events_end: true,
            } => {
                self.initial_events_end(now, initial, &resource_version);
            }
            // Only the marker gives the resourceVersion of the complete snapshot.
            ResponsePart::Bookmark {
                initial_events_end: false,
                ..
            } => self.state = State::InitialWatch(initial),
            ResponsePart::ErrorEvent(status) => {
                self.cancel(initial.request);
                self.initial_watch_refused(now, &initial.at, 200, status, None);
            }
            ResponsePart::Rejected {
                http,
                status,
                retry_after,
            } => {
                self.initial_watch_refused(now, &initial.at, http, status, retry_after);
            }
            ResponsePart::Undecodable { object, error } => {
                self.cancel(initial.request);
                self.report(Error::Undecodable {
                    during,
                    object: Box::new(object),
                    source: error,
                });
                self.memory.snapshot_failed(&self.config);
                self.relist(now, Pause::STEP);
            }
            ResponsePart::Malformed(why) => {
                self.cancel(initial.request);
                self.report(Error::Malformed { during, why });
                self.ended_unmarked(now);
            }
            ResponsePart::Item { .. } | ResponsePart::PageEnd(_) => {
                self.cancel(initial.request);
                self.report(Error::Malformed {
                    during,
                    why: Malformed::NotExpected { kind: None },
                });
                self.ended_unmarked(now);
            }
            ResponsePart::TransportError(source) => {
                let error = Error::Transport { during, source };
                if initial.opened.is_some() {
                    self.report_if_repeated(now, error);
                    self.ended_unmarked(now);
                } else {
                    // The server is unavailable: a LIST would be a more expensive check (WLIST-11).
                    self.report(error);
                    self.memory.stream_unanswered(&self.config);
                    self.relist(now, Pause::STEP);
                }
            }
            ResponsePart::Eof if initial.ran_full_time(self.clock.listened(now)) => {
                self.never_marked(now, &initial)
            }
            ResponsePart::Eof => {
                tracing::debug!("a streaming list ended before its marker");
                self.ended_unmarked(now);
            }
        }
    }

    pub(super) fn initial_watch_silent(&mut self, now: Duration, initial: &InitialWatch<O>) {
        self.cancel(initial.request);
        match initial.opened {
            Some(_) if self.clock.listened(now) >= initial.marker_due.min(initial.marker_due_latest) => {
                self.never_marked(now, initial);
            }
            Some(_) | None => {
                self.report(Error::Silence {
                    during: During::StreamingList,
                    after: initial.times.idle,
                });
                self.ended_unmarked(now);
            }
        }
    }

    /// Prefers LIST: the server had its full time, while the stream was polled, and sent no end marker.
    fn never_marked(&mut self, now: Duration, initial: &InitialWatch<O>) {
        self.report(Error::NoInitialEventsEnd {
            after: now.saturating_sub(initial.opened.unwrap_or(now)),
        });
        self.memory.never_marked(&self.config);
        self.relist(now, Pause::First);
    }

    fn initial_change(
        &mut self,
        now: Duration,
        mut initial: Box<InitialWatch<O>>,
        change: Change,
        payload: O,
    ) {
        let identify = self.identify;
        let is_same = |one: &O, other: &O| {
            let (one, other) = (identify(one), identify(other));
            one.namespace == other.namespace && one.name == other.name
        };
        match (&mut initial.initial, change) {
            // If an object changes before the marker, the snapshot contains only the later state.
            (Initial::Held(held), Change::Added | Change::Modified)
                if let Some(at) = held.iter().position(|held| is_same(held, &payload)) =>
            {
                held[at] = payload;
            }
            (Initial::Held(held), Change::Added | Change::Modified) if held.len() < HELD_MAX => {
                held.push(payload);
            }
            (Initial::Held(held), Change::Deleted) => {
                held.retain(|held| !is_same(held, &payload));
            }
            (Initial::Held(_) | Initial::Emitted, Change::Added | Change::Modified) => {
                self.emit_held(&mut initial);
                self.emit(Event::InitApply(payload));
            }
            (Initial::Emitted, Change::Deleted) => {
                // No event revokes an InitApply, so the machine relists.
                tracing::debug!("an object of a streaming list was deleted before the marker");
                self.cancel(initial.request);
                return self.ended_unmarked(now);
            }
        }
        self.state = State::InitialWatch(initial);
    }

    fn emit_held(&mut self, initial: &mut InitialWatch<O>) {
        if let Initial::Held(held) = std::mem::replace(&mut initial.initial, Initial::Emitted) {
            self.memory.emitted_part(&initial.at, None);
            self.emit(Event::Init);
            for object in held {
                self.emit(Event::InitApply(object));
            }
        }
    }

    fn initial_events_end(
        &mut self,
        now: Duration,
        mut initial: Box<InitialWatch<O>>,
        resource_version: &str,
    ) {
        let Some(version) = ResourceVersion::new(resource_version) else {
            self.cancel(initial.request);
            self.report(Error::NoResourceVersion {
                during: During::StreamingList,
                object: None,
            });
            return self.ended_unmarked(now);
        };
        let older_than = self
            .memory
            .newest
            .as_ref()
            .filter(|newest| newest.is_newer_than(version.as_str()));
        let is_expired = self.memory.expired.as_ref() == Some(&version);
        if initial.at.may_be_old() && (older_than.is_some() || is_expired) {
            if let Some(newest) = older_than {
                let error = Error::OldList {
                    listed: version.to_string(),
                    newest: newest.to_string(),
                };
                self.report(error);
            }
            self.cancel(initial.request);
            self.memory.unpin(&self.config);
            return self.relist(now, Pause::STEP);
        }
        self.emit_held(&mut initial);
        self.emit(Event::InitDone);
        let listened = self.clock.listened(now);
        self.memory.marked();
        self.memory.adopt(listened, version.clone());
        self.memory.healthy_since.get_or_insert(now);
        self.state = State::Watching(Watching {
            request: initial.request,
            resume: version,
            silent_at: listened.after(initial.times.idle),
            overdue_at: listened.after(initial.times.overdue()),
            times: initial.times,
            asked: initial.asked,
            moved: true,
        });
    }

    fn initial_watch_refused(
        &mut self,
        now: Duration,
        at: &At,
        http: u16,
        status: Status,
        retry_after: Option<Duration>,
    ) {
        let pause = Pause::Step {
            retry_after: retry_after.max(status.retry_after),
        };
        let code = if status.code == 0 { http } else { status.code };
        let (is_expired, is_too_large) = (
            http == 410 || status.is_expired(),
            status.is_too_large_resource_version(),
        );
        let during = During::StreamingList;
        let error = Error::Rejected {
            during,
            http,
            status: Box::new(status),
        };
        if is_expired || is_too_large {
            self.report_if_repeated(now, error);
            if at.may_be_old() {
                self.memory.unpin(&self.config);
            } else {
                // No version was requested: the watch cache lags, and LIST is answered from etcd.
                self.memory.form_failed(&self.config);
            }
            return self.relist(now, pause);
        }
        match code {
            // An old server, a disabled feature gate, a role without `watch`: LIST gives a clearer error.
            400 | 403 | 405 | 422 => {
                tracing::info!(%error, "streaming list rejected: falling back to LIST and WATCH");
                self.memory.streaming_refused();
                // An error inside a stream leaves a connection that has to close first.
                self.relist(now, if http == 200 { Pause::First } else { Pause::Skip });
            }
            // A busy server: a LIST is the more expensive request (WLIST-11).
            429 | 503 => {
                self.report(error);
                self.memory.snapshot_failed(&self.config);
                self.relist(now, pause);
            }
            _ => {
                self.report(error);
                self.memory.form_failed(&self.config);
                self.relist(now, pause);
            }
        }
    }

    /// Discards an incomplete snapshot and requests it again; after several attempts by LIST.
    fn ended_unmarked(&mut self, now: Duration) {
        self.memory.unmarked_list(&self.config);
        self.relist(now, Pause::STEP);
    }
}

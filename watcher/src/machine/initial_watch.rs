//! The part of the machine that reads a set by a streaming list (KEP-3157).

use std::time::Duration;

use super::clock::Listened;
use super::memory::Streaming;
use super::watching::Watching;
use super::{Answer, Change, IDLE_MARGIN, Machine, Pause, RequestId, State};
use crate::error::{During, Error, Malformed};
use crate::event::Event;
use crate::request::{At, Request};
use crate::status::Status;
use crate::version::ResourceVersion;

/// A streaming list that has not come to its marker.
#[derive(Debug)]
pub(super) struct InitialWatch<O> {
    pub(super) request: RequestId,
    at: At,
    idle: Duration,
    /// How long the server lets it live.
    longest: Duration,
    /// When it is silent for too long.
    silent_at: Listened,
    /// When it was accepted.
    opened: Option<Duration>,
    /// When the marker must have come, unless another initial event comes first.
    marker_due: Listened,
    /// The marker must have come by then, whatever else comes.
    marker_due_latest: Listened,
    initial: Initial<O>,
}

/// What has come of the set.
#[derive(Debug)]
enum Initial<O> {
    /// Held back, so that a `DELETED` can still take an object out again.
    Held(Vec<O>),
    /// Too many to hold: they are told as they come.
    Told,
}

/// Objects held back. A set of more is told while it arrives: what is held of a decoded Pod is eight times its JSON, and a
/// delete in the moment before the marker costs no more than reading the set again.
const HELD_MAX: usize = 4;
/// Streams that may end before their marker, in a row, before LIST and WATCH take over.
const UNMARKED_MAX: u32 = 3;

impl<O> InitialWatch<O> {
    pub(super) fn deadline(&self) -> Listened {
        self.silent_at.min(self.marker_due).min(self.marker_due_latest)
    }

    pub(super) fn heard_at(&mut self, now: Listened) {
        self.silent_at = now.after(self.idle);
    }

    /// It went on for as long as was asked for, but for a tenth: clocks and networks differ.
    fn lived_out(&self, now: Listened) -> bool {
        self.opened.is_some() && now.after(IDLE_MARGIN + self.longest / 10) >= self.marker_due_latest
    }

    pub(super) fn wait_for_body(&mut self) {
        self.silent_at = Listened::NEVER;
    }
}

impl<O> Machine<O> {
    pub(super) fn start_initial_watch(&mut self, now: Duration) {
        let (timeout_seconds, idle) = self.watch_times();
        let longest = Duration::from_secs(if timeout_seconds == 0 {
            3600
        } else {
            u64::from(timeout_seconds)
        });
        let at = self.memory.next_at(&self.config);
        let request = self.ask(Request::StreamingList {
            at: at.clone(),
            timeout_seconds,
        });
        self.state = State::InitialWatch(Box::new(InitialWatch {
            request,
            at,
            idle,
            longest,
            silent_at: self.clock.listened(now).after(idle),
            opened: None,
            // What comes before the answer says nothing about the server: the network, a queue.
            marker_due: Listened::NEVER,
            marker_due_latest: Listened::NEVER,
            initial: Initial::Held(Vec::new()),
        }));
    }

    pub(super) fn initial_watch_answered(
        &mut self,
        now: Duration,
        mut initial: Box<InitialWatch<O>>,
        answer: Answer<'_, O>,
    ) {
        let during = During::StreamingList;
        match answer {
            Answer::Opened => {
                let listened = self.clock.listened(now);
                initial.opened = Some(now);
                initial.marker_due = listened.after(self.config.initial_events_timeout);
                // The server's own end must have the time to come.
                initial.marker_due_latest = listened.after(initial.longest + IDLE_MARGIN);
                self.state = State::InitialWatch(initial);
            }
            Answer::Progress | Answer::Refusing => self.state = State::InitialWatch(initial),
            Answer::Changed { change, payload } => {
                let listened = self.clock.listened(now);
                initial.marker_due = listened.after(self.config.initial_events_timeout);
                self.initial_change(now, initial, change, payload);
            }
            Answer::Bookmark {
                resource_version,
                initial_events_end: true,
            } => {
                self.initial_events_end(now, initial, &resource_version);
            }
            // Only the marker says up to where the set is whole.
            Answer::Bookmark {
                initial_events_end: false,
                ..
            } => self.state = State::InitialWatch(initial),
            Answer::ErrorEvent(status) => {
                self.cancel(initial.request);
                self.initial_watch_refused(now, 200, status, None);
            }
            Answer::Rejected {
                http,
                status,
                retry_after,
            } => {
                self.initial_watch_refused(now, http, status, retry_after);
            }
            Answer::Undecodable { object, error } => {
                self.cancel(initial.request);
                self.report(Error::Undecodable {
                    during,
                    object: Box::new(object),
                    source: error,
                });
                self.relist(now, Pause::STEP);
            }
            Answer::Malformed(why) => {
                self.cancel(initial.request);
                self.report(Error::Malformed { during, why });
                self.unmarked(now);
            }
            Answer::Item { .. } | Answer::PageEnd(_) => {
                self.cancel(initial.request);
                self.report(Error::Malformed {
                    during,
                    why: Malformed::NotExpected { kind: None },
                });
                self.unmarked(now);
            }
            Answer::TransportError(source) => {
                let error = Error::Transport { during, source };
                if initial.opened.is_some() {
                    self.report_if_repeated(now, error);
                    self.unmarked(now);
                } else {
                    // The server is away: a LIST would be the dearer way to find out (WLIST-11).
                    self.report(error);
                    self.relist(now, Pause::STEP);
                }
            }
            Answer::Eof if initial.lived_out(self.clock.listened(now)) => self.never_marked(now, &initial),
            Answer::Eof => {
                tracing::debug!("a streaming list ended before its marker");
                self.unmarked(now);
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
                    after: initial.idle,
                });
                self.unmarked(now);
            }
        }
    }

    /// The server had its time, and somebody listened: it marks no end.
    fn never_marked(&mut self, now: Duration, initial: &InitialWatch<O>) {
        self.report(Error::NoInitialEventsEnd {
            after: now.saturating_sub(initial.opened.unwrap_or(now)),
        });
        self.memory.streaming = Streaming::Refused;
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
            // Of an object that changes before the marker, the set has the later state alone.
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
            (Initial::Held(_) | Initial::Told, Change::Added | Change::Modified) => {
                self.tell_held(&mut initial);
                self.emit(Event::InitApply(payload));
            }
            (Initial::Told, Change::Deleted) => {
                // No event takes back an InitApply, so the machine relists.
                tracing::debug!("an object of a streaming list was deleted before the marker");
                self.cancel(initial.request);
                return self.unmarked(now);
            }
        }
        self.state = State::InitialWatch(initial);
    }

    fn tell_held(&mut self, initial: &mut InitialWatch<O>) {
        if let Initial::Held(held) = std::mem::replace(&mut initial.initial, Initial::Told) {
            self.memory.tells_part(&initial.at, None);
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
            return self.unmarked(now);
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
            self.memory.unpinned = true;
            return self.relist(now, Pause::STEP);
        }
        self.tell_held(&mut initial);
        self.emit(Event::InitDone);
        let listened = self.clock.listened(now);
        self.memory.adopt(listened, version.clone());
        self.memory.healthy_since.get_or_insert(now);
        self.state = State::Watching(Watching {
            request: initial.request,
            resume: version,
            deadline: listened.after(initial.idle),
            idle: initial.idle,
            opened: initial.opened.unwrap_or(now),
            moved: true,
            confirmed: true,
        });
    }

    fn initial_watch_refused(
        &mut self,
        now: Duration,
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
            self.memory.unpinned = true;
            self.report_if_repeated(now, error);
            return self.relist(now, pause);
        }
        match code {
            // An old server, a gate that is off, a role without `watch`: LIST says more.
            400 | 403 | 405 | 422 => {
                tracing::info!(%error, "streaming lists are refused: using LIST and WATCH");
                self.memory.streaming = Streaming::Refused;
                // A refusal inside a stream leaves a connection that must close first.
                self.relist(now, if http == 200 { Pause::First } else { Pause::Skip });
            }
            429 | 503 => {
                self.report(error);
                self.relist(now, pause);
            }
            _ => {
                self.report(error);
                self.memory.streaming = Streaming::SkipOnce;
                self.relist(now, pause);
            }
        }
    }

    /// The initial set was unusable: it is dropped and requested again, after a few times by LIST.
    fn unmarked(&mut self, now: Duration) {
        self.memory.unmarked += 1;
        if self.memory.unmarked >= UNMARKED_MAX {
            self.memory.unmarked = 0;
            self.memory.streaming = Streaming::Refused;
        }
        self.relist(now, Pause::STEP);
    }
}

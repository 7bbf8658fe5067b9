//! The part of the machine that starts, follows and resumes a watch.

use std::cmp::Ordering;
use std::time::Duration;

use super::clock::Listened;
use super::{Answer, Change, Machine, Pause, RequestId, State, Then};
use crate::error::{During, Error, Malformed};
use crate::event::Event;
use crate::request::Request;
use crate::status::Status;
use crate::version::ResourceVersion;

/// A watch that was asked for.
#[derive(Debug)]
pub(super) struct Listed {
    pub(super) request: RequestId,
    pub(super) resume: ResourceVersion,
    pub(super) deadline: Listened,
    pub(super) idle: Duration,
}

/// A watch that is open.
#[derive(Debug)]
pub(super) struct Watching {
    pub(super) request: RequestId,
    /// Everything up to here was told.
    pub(super) resume: ResourceVersion,
    pub(super) deadline: Listened,
    pub(super) idle: Duration,
    pub(super) opened: Duration,
    /// `resume` moved on this stream.
    pub(super) moved: bool,
    /// A bookmark said on this stream that the server is at `resume`.
    pub(super) confirmed: bool,
}

/// A watch that ended earlier than this after it opened ended "at once": client-go's very short watch.
const MIN_WATCH_LIFETIME: Duration = Duration::from_secs(1);
/// Failed watches of one version, in a row, before a relist.
const MAX_FAILED_RESUMES: u32 = 3;
/// Starts answered by 5xx before a relist. Many, since a LIST is the dearer request for a server in
/// trouble; not endless, since some servers answer 500 to a version they cannot read.
const SERVER_ERRORS_MAX: u32 = 10;
/// Times a watch may go back in time before this server's versions are taken for unordered text.
const MAX_RV_REGRESSIONS: u32 = 3;

/// How a stream came to its end, without a word from the server.
enum End {
    Eof,
    Silence,
    Cut(Error),
}

impl<O> Machine<O> {
    pub(super) fn start_watch(&mut self, now: Duration, resume: ResourceVersion) {
        let (timeout_seconds, idle) = self.watch_times();
        let request = self.ask(Request::Watch {
            resource_version: resume.clone(),
            timeout_seconds,
            bookmarks: self.config.bookmarks,
        });
        self.state = State::Listed(Listed {
            request,
            resume,
            deadline: self.clock.listened(now).after(idle),
            idle,
        });
    }

    pub(super) fn watch_start_answered(&mut self, now: Duration, listed: Listed, answer: Answer<'_, O>) {
        let Listed {
            request,
            resume,
            deadline,
            idle,
        } = listed;
        match answer {
            Answer::Opened => {
                self.memory.healthy_since.get_or_insert(now);
                self.memory.server_errors = 0;
                self.state = State::Watching(Watching {
                    request,
                    resume,
                    deadline,
                    idle,
                    opened: now,
                    moved: false,
                    confirmed: false,
                });
            }
            Answer::Rejected {
                http,
                status,
                retry_after,
            } => {
                self.watch_rejected(now, resume, http, status, retry_after);
            }
            Answer::TransportError(source) => {
                // Refused, reset: the server is away, and a LIST would not find it either.
                self.report(Error::Transport {
                    during: During::WatchStart,
                    source,
                });
                self.pause(now, Pause::STEP, Then::Listed(resume));
            }
            Answer::Malformed(why) => {
                self.cancel(request);
                self.report(Error::Malformed {
                    during: During::WatchStart,
                    why,
                });
                self.setback(now, resume, Pause::STEP);
            }
            Answer::Progress | Answer::Refusing => {
                self.state = State::Listed(Listed {
                    request,
                    resume,
                    deadline,
                    idle,
                })
            }
            Answer::Item { .. }
            | Answer::PageEnd(_)
            | Answer::Changed { .. }
            | Answer::Bookmark { .. }
            | Answer::ErrorEvent(_)
            | Answer::Undecodable { .. }
            | Answer::Eof => {
                self.cancel(request);
                let why = Malformed::NotExpected { kind: None };
                self.report(Error::Malformed {
                    during: During::WatchStart,
                    why,
                });
                self.setback(now, resume, Pause::STEP);
            }
        }
    }

    pub(super) fn watch_start_silent(&mut self, now: Duration, listed: Listed) {
        self.cancel(listed.request);
        self.report(Error::Silence {
            during: During::WatchStart,
            after: listed.idle,
        });
        self.setback(now, listed.resume, Pause::STEP);
    }

    pub(super) fn watch_answered(&mut self, now: Duration, mut watching: Watching, answer: Answer<'_, O>) {
        match answer {
            Answer::Changed { change, payload } => self.changed(now, watching, change, payload),
            Answer::Bookmark { resource_version, .. } => {
                self.bookmark(&mut watching, &resource_version);
                self.state = State::Watching(watching);
            }
            Answer::Progress | Answer::Refusing | Answer::Opened => {
                self.state = State::Watching(watching);
            }
            Answer::ErrorEvent(status) => self.watch_error(now, watching, status),
            Answer::Undecodable { object, error } => {
                // Resuming here would bring it again, resuming after it would lose it: only the set tells.
                self.cancel(watching.request);
                self.report(Error::Undecodable {
                    during: During::Watch,
                    object: Box::new(object),
                    source: error,
                });
                self.memory.saw(watching.resume);
                self.relist(now, Pause::STEP);
            }
            Answer::Malformed(why) => {
                self.cancel(watching.request);
                self.report(Error::Malformed {
                    during: During::Watch,
                    why,
                });
                self.setback(now, watching.resume, Pause::STEP);
            }
            Answer::Item { .. } | Answer::PageEnd(_) | Answer::Rejected { .. } => {
                self.cancel(watching.request);
                let why = Malformed::NotExpected { kind: None };
                self.report(Error::Malformed {
                    during: During::Watch,
                    why,
                });
                self.setback(now, watching.resume, Pause::STEP);
            }
            Answer::TransportError(source) => {
                let cut = End::Cut(Error::Transport {
                    during: During::Watch,
                    source,
                });
                self.watch_ended(now, watching, cut);
            }
            Answer::Eof => self.watch_ended(now, watching, End::Eof),
        }
    }

    pub(super) fn watch_silent(&mut self, now: Duration, watching: Watching) {
        self.cancel(watching.request);
        tracing::debug!(idle = ?watching.idle, "silent for too long");
        self.watch_ended(now, watching, End::Silence);
    }

    fn changed(&mut self, now: Duration, mut watching: Watching, change: Change, payload: O) {
        let object = (self.identify)(&payload);
        let is_ordered = self.memory.disorders < MAX_RV_REGRESSIONS;
        if is_ordered && watching.resume.is_newer_than(&object.resource_version) {
            self.cancel(watching.request);
            let (object, newest) = (object.to_id(change.word()), watching.resume.to_string());
            self.report(Error::BackInTime {
                object: Box::new(object),
                newest,
            });
            self.memory.disorders += 1;
            self.memory.saw(watching.resume);
            return self.relist(now, Pause::STEP);
        }
        let is_same = watching.resume.as_str() == object.resource_version;
        if !is_same && !watching.resume.set(&object.resource_version) {
            self.cancel(watching.request);
            let object = Some(Box::new(object.to_id(change.word())));
            self.report(Error::NoResourceVersion {
                during: During::Watch,
                object,
            });
            self.memory.saw(watching.resume);
            return self.relist(now, Pause::STEP);
        }
        drop(object);
        if !is_same {
            watching.moved = true;
            self.memory.moved();
        }
        self.emit(match change {
            Change::Added | Change::Modified => Event::Apply(payload),
            Change::Deleted => Event::Delete(payload),
        });
        self.state = State::Watching(watching);
    }

    /// An empty bookmark, or an older one, never moves the resume point.
    fn bookmark(&mut self, watching: &mut Watching, resource_version: &str) {
        match watching.resume.compare(resource_version) {
            Some(Ordering::Equal) => return watching.confirmed = true,
            Some(Ordering::Greater) => return,
            Some(Ordering::Less) | None => {}
        }
        if watching.resume.as_str() != resource_version && watching.resume.set(resource_version) {
            watching.moved = true;
            self.memory.moved();
        }
    }

    fn watch_ended(&mut self, now: Duration, watching: Watching, end: End) {
        let Watching {
            resume,
            opened,
            moved,
            confirmed,
            ..
        } = watching;
        let lived = now.saturating_sub(opened) >= MIN_WATCH_LIFETIME;
        if moved || confirmed {
            self.memory.confirmed = self.clock.listened(now);
        }
        match end {
            End::Eof if lived => {
                self.memory.setbacks = 0;
                let then = self.then_on(now, resume);
                self.pause(now, Pause::Skip, then);
            }
            End::Eof | End::Silence | End::Cut(_) if lived || moved => {
                // Cuts and silence come to all watchers of a server at once: each waits a little, by its own lot. A
                // stream that brought something and ended at once must not spin, but is no reason to slow down for long.
                self.memory.setbacks = 0;
                let then = self.then_on(now, resume);
                self.pause(now, Pause::First, then);
            }
            End::Cut(error) => {
                self.report_if_repeated(now, error);
                self.setback(now, resume, Pause::STEP);
            }
            End::Eof | End::Silence => {
                self.report_if_repeated(
                    now,
                    Error::EndsAtOnce {
                        resource_version: resume.to_string(),
                    },
                );
                self.setback(now, resume, Pause::STEP);
            }
        }
    }

    /// The watch goes on, after a word of the server on its version where that is long overdue.
    fn then_on(&self, now: Duration, resume: ResourceVersion) -> Then {
        let silence = self.clock.listened(now).since(self.memory.confirmed);
        match self.config.staleness_probe_after {
            Some(longest) if silence > longest => Then::Probing(resume),
            Some(_) | None => Then::Listed(resume),
        }
    }

    /// An `ERROR` event ends the stream: what comes after it is not to be trusted.
    fn watch_error(&mut self, now: Duration, watching: Watching, status: Status) {
        self.cancel(watching.request);
        let pause = Pause::Step {
            retry_after: status.retry_after,
        };
        let resume = watching.resume;
        let (is_expired, is_too_large) = (status.is_expired(), status.is_too_large_resource_version());
        let (is_busy, needs_relist) = (status.code == 429, status.is_storage_read_error());
        let error = Error::ErrorEvent {
            during: During::Watch,
            status: Box::new(status),
        };
        if is_expired {
            self.report_if_repeated(now, error);
            return self.expired(now, resume, pause);
        }
        self.report(error);
        if is_too_large {
            self.too_large(now, pause);
        } else if needs_relist {
            self.memory.saw(resume);
            self.relist(now, pause);
        } else if is_busy {
            self.pause(now, pause, Then::Listed(resume));
        } else {
            self.setback(now, resume, pause);
        }
    }

    fn watch_rejected(
        &mut self,
        now: Duration,
        resume: ResourceVersion,
        http: u16,
        status: Status,
        retry_after: Option<Duration>,
    ) {
        let pause = Pause::Step {
            retry_after: retry_after.max(status.retry_after),
        };
        let (is_expired, is_too_large) = (
            http == 410 || status.is_expired(),
            status.is_too_large_resource_version(),
        );
        let (is_busy, is_transient) = (http == 429, status.is_transient());
        let error = Error::Rejected {
            during: During::WatchStart,
            http,
            status: Box::new(status),
        };
        if is_expired {
            self.report_if_repeated(now, error);
            return self.expired(now, resume, pause);
        }
        self.report(error);
        if is_too_large {
            self.too_large(now, pause);
        } else if is_busy {
            self.pause(now, pause, Then::Listed(resume));
        } else if is_transient {
            self.memory.server_errors += 1;
            if self.memory.server_errors >= SERVER_ERRORS_MAX {
                self.memory.server_errors = 0;
                self.memory.saw(resume);
                self.relist(now, pause);
            } else {
                self.pause(now, pause, Then::Listed(resume));
            }
        } else {
            self.setback(now, resume, pause);
        }
    }

    /// This version is never watched again before another set was read.
    fn expired(&mut self, now: Duration, resume: ResourceVersion, pause: Pause) {
        self.memory.expired = Some(resume.clone());
        self.memory.saw(resume);
        self.relist(now, pause);
    }

    fn too_large(&mut self, now: Duration, pause: Pause) {
        self.memory.unpinned = true;
        self.relist(now, pause);
    }

    /// The same version again, a few times; then the version itself is in doubt.
    fn setback(&mut self, now: Duration, resume: ResourceVersion, pause: Pause) {
        self.memory.setbacks += 1;
        if self.memory.setbacks >= MAX_FAILED_RESUMES {
            self.memory.setbacks = 0;
            self.memory.saw(resume);
            self.relist(now, pause);
        } else {
            self.pause(now, pause, Then::Listed(resume));
        }
    }
}

//! The part of the machine that starts, follows and resumes a watch.

use std::cmp::Ordering;
use std::time::Duration;

use super::clock::Listened;
use super::{Change, Doubt, IDLE_MARGIN, Machine, Pause, RequestId, ResponsePart, State, Then};
use crate::error::{During, Error, Malformed};
use crate::event::Event;
use crate::request::Request;
use crate::status::Status;
use crate::version::ResourceVersion;

/// A watch that was requested and has no response yet.
#[derive(Debug)]
pub(super) struct Listed {
    pub(super) request: RequestId,
    pub(super) resume: ResourceVersion,
    pub(super) deadline: Listened,
    pub(super) times: WatchTimes,
    pub(super) asked: Duration,
}

/// An open watch.
#[derive(Debug)]
pub(super) struct Watching {
    pub(super) request: RequestId,
    /// Everything up to this version was emitted.
    pub(super) resume: ResourceVersion,
    /// Idle deadline.
    pub(super) silent_at: Listened,
    /// Deadline for the next event or bookmark, of a server that does not end the watch.
    pub(super) overdue_at: Listened,
    pub(super) times: WatchTimes,
    /// When it was requested.
    pub(super) asked: Duration,
    /// `resume` advanced on this stream.
    pub(super) moved: bool,
}

/// Times of one watch.
#[derive(Debug, Clone, Copy)]
pub(super) struct WatchTimes {
    /// `timeoutSeconds` of the request.
    pub(super) timeout_seconds: u32,
    /// `timeoutSeconds`, or the server's maximum.
    pub(super) longest: Duration,
    /// How long it may receive no bytes.
    pub(super) idle: Duration,
}

impl WatchTimes {
    /// How long a watch may last without an event or bookmark.
    pub(super) fn overdue(self) -> Duration {
        self.idle.max(self.longest + IDLE_MARGIN)
    }
}

impl Watching {
    pub(super) fn deadline(&self) -> Listened {
        self.silent_at.min(self.overdue_at)
    }
}

/// Minimum lifetime of a watch since its request; one that ends earlier counts as failed: client-go's "very short
/// watch". Not since its response, which a consumer that is slow to poll meets together with the end.
const MIN_WATCH_LIFETIME: Duration = Duration::from_secs(1);
/// Consecutive failed watches at one version before a relist.
const MAX_FAILED_RESUMES: u32 = 3;
/// Watch starts that return 5xx before a relist. High, because a LIST is the more expensive request for a server in
/// trouble; finite, because some servers return 500 for a version they cannot read.
const SERVER_ERRORS_MAX: u32 = 10;
/// How often a watch may go back in time before the server's versions are treated as unordered text.
const MAX_RV_REGRESSIONS: u32 = 3;

/// How a stream ended without an ERROR event.
enum End {
    Eof,
    Silence,
    Cut(Error),
}

impl<O> Machine<O> {
    pub(super) fn start_watch(&mut self, now: Duration, resume: ResourceVersion) {
        let times = self.watch_times();
        let request = self.ask(Request::Watch {
            resource_version: resume.clone(),
            timeout_seconds: times.timeout_seconds,
            bookmarks: self.config.bookmarks,
        });
        self.state = State::Listed(Listed {
            request,
            resume,
            deadline: self.clock.listened(now).after(times.idle),
            times,
            asked: now,
        });
    }

    pub(super) fn watch_start_answered(
        &mut self,
        now: Duration,
        listed: Listed,
        answer: ResponsePart<'_, O>,
    ) {
        let Listed {
            request,
            resume,
            deadline,
            times,
            asked,
        } = listed;
        match answer {
            ResponsePart::Opened => {
                self.memory.healthy_since.get_or_insert(now);
                self.memory.server_errors = 0;
                self.state = State::Watching(Watching {
                    request,
                    resume,
                    silent_at: deadline,
                    overdue_at: self.clock.listened(now).after(times.overdue()),
                    times,
                    asked,
                    moved: false,
                });
            }
            ResponsePart::Rejected {
                http,
                status,
                retry_after,
            } => {
                self.watch_rejected(now, resume, http, status, retry_after);
            }
            ResponsePart::TransportError(source) => {
                // Connection refused or reset: the server is unavailable, and a LIST would fail as well.
                self.report(Error::Transport {
                    during: During::WatchStart,
                    source,
                });
                let then = self.after_watch(now, resume, Doubt::Refusals);
                self.pause(now, Pause::STEP, then);
            }
            ResponsePart::Malformed(why) => {
                self.cancel(request);
                self.report(Error::Malformed {
                    during: During::WatchStart,
                    why,
                });
                self.resume_failed(now, resume, Pause::STEP);
            }
            ResponsePart::Progress | ResponsePart::Refusing => {
                self.state = State::Listed(Listed {
                    request,
                    resume,
                    deadline,
                    times,
                    asked,
                })
            }
            ResponsePart::Item { .. }
            | ResponsePart::PageEnd(_)
            | ResponsePart::Changed { .. }
            | ResponsePart::Bookmark { .. }
            | ResponsePart::ErrorEvent(_)
            | ResponsePart::Undecodable { .. }
            | ResponsePart::Eof => {
                self.cancel(request);
                let why = Malformed::NotExpected { kind: None };
                self.report(Error::Malformed {
                    during: During::WatchStart,
                    why,
                });
                self.resume_failed(now, resume, Pause::STEP);
            }
        }
    }

    pub(super) fn watch_start_silent(&mut self, now: Duration, listed: Listed) {
        self.cancel(listed.request);
        self.report(Error::Silence {
            during: During::WatchStart,
            after: listed.times.idle,
        });
        self.resume_failed(now, listed.resume, Pause::STEP);
    }

    pub(super) fn watch_answered(
        &mut self,
        now: Duration,
        mut watching: Watching,
        answer: ResponsePart<'_, O>,
    ) {
        match answer {
            ResponsePart::Changed { change, payload } => self.changed(now, watching, change, payload),
            ResponsePart::Bookmark { resource_version, .. } => {
                self.bookmark(now, &mut watching, &resource_version);
                self.state = State::Watching(watching);
            }
            ResponsePart::Progress | ResponsePart::Refusing | ResponsePart::Opened => {
                self.state = State::Watching(watching);
            }
            ResponsePart::ErrorEvent(status) => self.watch_error(now, watching, status),
            ResponsePart::Undecodable { object, error } => {
                // Resuming here would receive the object again, resuming after it would lose it: only a relist
                // recovers.
                self.cancel(watching.request);
                self.report(Error::Undecodable {
                    during: During::Watch,
                    object: Box::new(object),
                    source: error,
                });
                self.memory.saw(watching.resume);
                self.relist(now, Pause::STEP);
            }
            ResponsePart::Malformed(why) => {
                self.cancel(watching.request);
                self.report(Error::Malformed {
                    during: During::Watch,
                    why,
                });
                self.resume_failed(now, watching.resume, Pause::STEP);
            }
            ResponsePart::Item { .. } | ResponsePart::PageEnd(_) | ResponsePart::Rejected { .. } => {
                self.cancel(watching.request);
                let why = Malformed::NotExpected { kind: None };
                self.report(Error::Malformed {
                    during: During::Watch,
                    why,
                });
                self.resume_failed(now, watching.resume, Pause::STEP);
            }
            ResponsePart::TransportError(source) => {
                let cut = End::Cut(Error::Transport {
                    during: During::Watch,
                    source,
                });
                self.watch_ended(now, watching, cut);
            }
            ResponsePart::Eof => self.watch_ended(now, watching, End::Eof),
        }
    }

    pub(super) fn watch_silent(&mut self, now: Duration, watching: Watching) {
        self.cancel(watching.request);
        tracing::debug!(idle = ?watching.times.idle, "idle timeout");
        self.watch_ended(now, watching, End::Silence);
    }

    fn changed(&mut self, now: Duration, mut watching: Watching, change: Change, payload: O) {
        let object = (self.identify)(&payload);
        let is_ordered = self.memory.rv_regressions < MAX_RV_REGRESSIONS;
        if is_ordered && watching.resume.is_newer_than(&object.resource_version) {
            self.cancel(watching.request);
            let (object, newest) = (object.to_id(change.word()), watching.resume.to_string());
            self.report(Error::BackInTime {
                object: Box::new(object),
                newest,
            });
            self.memory.rv_regressions += 1;
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
            self.moved(now, &mut watching);
        }
        self.emit(match change {
            Change::Added | Change::Modified => Event::Apply(payload),
            Change::Deleted => Event::Delete(payload),
        });
        self.state = State::Watching(watching);
    }

    /// Empty or older bookmarks never move the resume point.
    fn bookmark(&mut self, now: Duration, watching: &mut Watching, resource_version: &str) {
        let is_newer = match watching.resume.compare(resource_version) {
            Some(order) => order == Ordering::Less,
            None => watching.resume.as_str() != resource_version,
        };
        if is_newer && watching.resume.set(resource_version) {
            self.moved(now, watching);
        }
    }

    fn moved(&mut self, now: Duration, watching: &mut Watching) {
        watching.moved = true;
        watching.overdue_at = self.clock.listened(now).after(watching.times.overdue());
        self.memory.moved();
    }

    fn watch_ended(&mut self, now: Duration, watching: Watching, end: End) {
        let Watching {
            resume, asked, moved, ..
        } = watching;
        let lasted = now.saturating_sub(asked) >= MIN_WATCH_LIFETIME;
        if moved {
            self.memory.confirmed = self.clock.listened(now);
        }
        match end {
            End::Eof if lasted => {
                self.memory.failed_resumes = 0;
                let then = self.after_watch(now, resume, Doubt::Silence);
                self.pause(now, Pause::Skip, then);
            }
            End::Eof | End::Silence | End::Cut(_) if lasted || moved => {
                // Disconnects and timeouts affect all watchers of a server at once: each waits a random initial
                // delay. A stream that delivered events and ended early must not cause a busy loop, but does not
                // increase later delays.
                self.memory.failed_resumes = 0;
                let then = self.after_watch(now, resume, Doubt::Silence);
                self.pause(now, Pause::First, then);
            }
            End::Cut(error) => {
                self.report_if_repeated(now, error);
                self.resume_failed(now, resume, Pause::STEP);
            }
            End::Eof | End::Silence => {
                self.report_if_repeated(
                    now,
                    Error::EndsAtOnce {
                        resource_version: resume.to_string(),
                    },
                );
                self.resume_failed(now, resume, Pause::STEP);
            }
        }
    }

    /// Decides what follows a watch: the next one, or a probe if its version has not been confirmed for too long, or a
    /// relist if the last probe found the server ahead and the watch has not advanced since.
    fn after_watch(&mut self, now: Duration, resume: ResourceVersion, doubt: Doubt) -> Then {
        let silence = self.clock.listened(now).since(self.memory.confirmed);
        match self.config.staleness_probe_after {
            Some(longest) if silence > longest && self.memory.is_behind => {
                tracing::info!(watched = resume.as_str(), "watches do not advance, and lists do");
                self.memory.saw(resume);
                // A list at a version may be served from the watch cache that stands still.
                self.memory.unpin(&self.config);
                Then::Empty
            }
            Some(longest) if silence > longest => Then::Probing(resume, doubt),
            Some(_) | None => Then::Listed(resume),
        }
    }

    /// Handles an `ERROR` event, which ends the stream: later events cannot be trusted.
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
            let then = self.after_watch(now, resume, Doubt::Refusals);
            self.pause(now, pause, then);
        } else {
            self.resume_failed(now, resume, pause);
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
            let then = self.after_watch(now, resume, Doubt::Refusals);
            self.pause(now, pause, then);
        } else if is_transient {
            self.memory.server_errors += 1;
            if self.memory.server_errors >= SERVER_ERRORS_MAX {
                self.memory.server_errors = 0;
                self.memory.saw(resume);
                self.relist(now, pause);
            } else {
                let then = self.after_watch(now, resume, Doubt::Refusals);
                self.pause(now, pause, then);
            }
        } else {
            self.resume_failed(now, resume, pause);
        }
    }

    /// Relists; this version is not watched again until another snapshot was read.
    fn expired(&mut self, now: Duration, resume: ResourceVersion, pause: Pause) {
        self.memory.expired = Some(resume.clone());
        self.memory.saw(resume);
        self.relist(now, pause);
    }

    fn too_large(&mut self, now: Duration, pause: Pause) {
        self.memory.unpin(&self.config);
        self.relist(now, pause);
    }

    /// Retries at the same version, up to a limit; then relists, because the version may be invalid.
    fn resume_failed(&mut self, now: Duration, resume: ResourceVersion, pause: Pause) {
        self.memory.failed_resumes += 1;
        if self.memory.failed_resumes >= MAX_FAILED_RESUMES {
            self.memory.failed_resumes = 0;
            self.memory.saw(resume);
            self.relist(now, pause);
        } else {
            let then = self.after_watch(now, resume, Doubt::Refusals);
            self.pause(now, pause, then);
        }
    }
}

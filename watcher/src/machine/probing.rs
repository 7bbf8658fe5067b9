//! The part of the machine that checks whether a server has gone back in time.
//!
//! After a restore from a backup a server may be at an older version than its clients. It accepts their watches,
//! which receive nothing until the server reaches that version again: changes in between are never sent
//! (kubernetes#107457). A quiet collection on a server without bookmarks looks the same, so silence does not justify
//! a relist, only a check of the version, by a LIST with limit=1.
//!
//! A server that is ahead may have written other resources alone. But if its watches show neither an event nor a bookmark
//! until the next check is due, either it sends no bookmarks or its watch cache stands still (kine#568), and only a relist
//! shows which. The same check is made if watches are refused for as long (429, reset connections).

use std::time::Duration;

use super::clock::Listened;
use super::{Machine, PageMeta, Pause, RequestId, ResponsePart, State, Then};
use crate::error::{During, Error, Malformed};
use crate::event::Event;
use crate::request::{At, ListFrom, Request};
use crate::version::ResourceVersion;

/// A LIST with limit=1, for its resourceVersion.
#[derive(Debug)]
pub(super) struct Probing<O> {
    pub(super) request: RequestId,
    pub(super) deadline: Listened,
    /// Where to resume the watch if the check passes.
    pub(super) resume: ResourceVersion,
    doubt: Doubt,
    item: Option<O>,
    /// The list has more than `item`, or an item that does not decode: `item` is not the complete snapshot.
    is_partial: bool,
}

/// Why the watched version is in doubt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doubt {
    /// Watches are open and show nothing. A server that is ahead may have written other resources, and send no bookmarks.
    Silence,
    /// The last watch was refused: it could not show anything.
    Refusals,
}

impl<O> Machine<O> {
    pub(super) fn start_probing(&mut self, now: Duration, resume: ResourceVersion, doubt: Doubt) {
        let request = self.ask(Request::List {
            limit: Some(1),
            from: ListFrom::Start(At::MostRecent),
        });
        self.state = State::Probing(Box::new(Probing {
            request,
            deadline: self.clock.listened(now).after(self.config.list_timeout),
            resume,
            doubt,
            item: None,
            is_partial: false,
        }));
    }

    pub(super) fn version_answered(
        &mut self,
        now: Duration,
        mut probing: Box<Probing<O>>,
        answer: ResponsePart<'_, O>,
    ) {
        let during = During::List;
        let (error, retry_after) = match answer {
            ResponsePart::Progress | ResponsePart::Refusing | ResponsePart::Opened => {
                return self.state = State::Probing(probing);
            }
            ResponsePart::Item { payload } => {
                // Some servers ignore `limit`.
                probing.is_partial |= probing.item.replace(payload).is_some();
                return self.state = State::Probing(probing);
            }
            // Only the version matters; if a relist follows, it meets this object again.
            ResponsePart::Undecodable { .. } => {
                probing.is_partial = true;
                return self.state = State::Probing(probing);
            }
            ResponsePart::PageEnd(meta) => return self.version_read(now, *probing, &meta),
            ResponsePart::Rejected {
                http,
                status,
                retry_after,
            } => {
                let retry_after = retry_after.max(status.retry_after);
                let status = Box::new(status);
                (Error::Rejected { during, http, status }, retry_after)
            }
            ResponsePart::ErrorEvent(status) => {
                let (retry_after, status) = (status.retry_after, Box::new(status));
                (Error::ErrorEvent { during, status }, retry_after)
            }
            ResponsePart::TransportError(source) => (Error::Transport { during, source }, None),
            ResponsePart::Malformed(why) => (Error::Malformed { during, why }, None),
            ResponsePart::Changed { .. } | ResponsePart::Bookmark { .. } | ResponsePart::Eof => {
                let why = Malformed::NotExpected { kind: None };
                (Error::Malformed { during, why }, None)
            }
        };
        self.probe_failed(now, *probing, error, retry_after);
    }

    pub(super) fn probing_silent(&mut self, now: Duration, probing: Probing<O>) {
        let error = Error::Silence {
            during: During::List,
            after: self.config.list_timeout,
        };
        self.probe_failed(now, probing, error, None);
    }

    /// Resumes the watch after a failed probe; the next watch that ends triggers another probe.
    fn probe_failed(
        &mut self,
        now: Duration,
        probing: Probing<O>,
        error: Error,
        retry_after: Option<Duration>,
    ) {
        self.cancel(probing.request);
        self.report(error);
        self.pause(now, Pause::Step { retry_after }, Then::Listed(probing.resume));
    }

    fn version_read(&mut self, now: Duration, probing: Probing<O>, meta: &PageMeta<'_>) {
        let Probing {
            resume,
            doubt,
            item,
            is_partial,
            ..
        } = probing;
        let Some(listed) = ResourceVersion::new(&*meta.resource_version) else {
            return self.start_watch(now, resume);
        };
        if resume.is_newer_than(listed.as_str()) {
            tracing::info!(
                watched = resume.as_str(),
                listed = listed.as_str(),
                "the server went back"
            );
            self.memory.unpin(&self.config);
            return self.relist(now, Pause::Skip);
        }
        self.memory.confirmed = self.clock.listened(now);
        if is_partial || !meta.continue_token.is_empty() {
            self.memory.is_behind = resume != listed;
            return match doubt {
                Doubt::Refusals if self.memory.is_behind => {
                    self.memory.saw(resume);
                    self.memory.unpin(&self.config);
                    self.relist(now, Pause::Skip)
                }
                Doubt::Refusals | Doubt::Silence => self.start_watch(now, resume),
            };
        }
        // Zero or one item is the complete collection, and newer than what was emitted.
        self.emit(Event::Init);
        self.outputs
            .extend(item.map(|item| super::Output::Event(Event::InitApply(item))));
        self.emit(Event::InitDone);
        self.memory.adopt(self.clock.listened(now), listed.clone());
        self.start_watch(now, listed);
    }
}

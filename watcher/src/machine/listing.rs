//! The part of the machine that reads a snapshot by LIST, page by page.

use std::collections::BTreeSet;
use std::time::Duration;

use super::clock::Listened;
use super::{Machine, PageMeta, Pause, RequestId, ResponsePart, State, Then};
use crate::error::{During, Error, Malformed};
use crate::event::Event;
use crate::request::{At, ListFrom, Request};
use crate::status::Status;
use crate::version::ResourceVersion;

/// One attempt to read a snapshot.
#[derive(Debug)]
pub(super) struct Listing {
    pub(super) request: RequestId,
    pub(super) deadline: Listened,
    at: At,
    limit: Option<u32>,
    /// Number of the page being read, from 1.
    page: u32,
    token: Option<String>,
    tokens_seen: BTreeSet<String>,
    /// resourceVersion of the first page: that of a later page would skip changes to keys of earlier pages (PAGE-04).
    version: Option<ResourceVersion>,
    /// `Init` was emitted.
    init_emitted: bool,
    /// An item could not be decoded: `InitDone` will not be emitted.
    poisoned: bool,
    items_in_page: u32,
    empty_pages: u32,
    /// How often the current page failed.
    failures: u32,
}

/// Failures of one page before the whole list is requested again.
const PAGE_FAILURES_MAX: u32 = 3;
/// Consecutive pages without items: server-side filters produce a few, a broken server produces them forever.
const EMPTY_PAGES_MAX: u32 = 1000;

impl Listing {
    fn during(&self) -> During {
        if self.page > 1 { During::Page } else { During::List }
    }
}

impl<O> Machine<O> {
    pub(super) fn start_listing(&mut self, now: Duration) {
        let listing = Box::new(Listing {
            request: RequestId(0),
            deadline: Listened::NEVER,
            at: self.memory.next_at(&self.config),
            limit: if self.memory.unpaged {
                None
            } else {
                self.config.page_size
            },
            page: 1,
            token: None,
            tokens_seen: BTreeSet::new(),
            version: None,
            init_emitted: false,
            poisoned: false,
            items_in_page: 0,
            empty_pages: 0,
            failures: 0,
        });
        self.ask_for_page(now, listing);
    }

    pub(super) fn ask_for_page(&mut self, now: Duration, mut listing: Box<Listing>) {
        let from = match &listing.token {
            Some(token) => ListFrom::Continue(token.clone()),
            None => ListFrom::Start(listing.at.clone()),
        };
        listing.items_in_page = 0;
        listing.deadline = self.clock.listened(now).after(self.config.list_timeout);
        listing.request = self.ask(Request::List {
            limit: listing.limit,
            from,
        });
        self.state = State::Listing(listing);
    }

    pub(super) fn list_answered(
        &mut self,
        now: Duration,
        mut listing: Box<Listing>,
        answer: ResponsePart<'_, O>,
    ) {
        match answer {
            ResponsePart::Progress | ResponsePart::Refusing | ResponsePart::Opened => {
                self.state = State::Listing(listing)
            }
            ResponsePart::Item { payload } => {
                self.announce(&mut listing);
                listing.items_in_page += 1;
                self.emit(Event::InitApply(payload));
                self.state = State::Listing(listing);
            }
            ResponsePart::Undecodable { object, error } => {
                // The other items are emitted anyway, but an incomplete snapshot gets no `InitDone`.
                listing.poisoned = true;
                listing.items_in_page += 1;
                self.report(Error::Undecodable {
                    during: listing.during(),
                    object: Box::new(object),
                    source: error,
                });
                self.state = State::Listing(listing);
            }
            ResponsePart::PageEnd(meta) => self.page_read(now, listing, &meta),
            ResponsePart::Rejected {
                http,
                status,
                retry_after,
            } => self.list_rejected(now, listing, http, status, retry_after),
            // HTTP 200 with a Status as body is a rejection too.
            ResponsePart::ErrorEvent(status) => self.list_rejected(now, listing, 200, status, None),
            ResponsePart::TransportError(source) => {
                let error = Error::Transport {
                    during: listing.during(),
                    source,
                };
                self.list_failed(now, listing, error, Pause::STEP);
            }
            ResponsePart::Malformed(why) => {
                self.cancel(listing.request);
                let error = Error::Malformed {
                    during: listing.during(),
                    why,
                };
                self.list_failed(now, listing, error, Pause::STEP);
            }
            ResponsePart::Changed { .. } | ResponsePart::Bookmark { .. } | ResponsePart::Eof => {
                self.cancel(listing.request);
                let error = Error::Malformed {
                    during: listing.during(),
                    why: Malformed::NotExpected { kind: None },
                };
                self.list_failed(now, listing, error, Pause::STEP);
            }
        }
    }

    pub(super) fn list_silent(&mut self, now: Duration, listing: Box<Listing>) {
        self.cancel(listing.request);
        let error = Error::Silence {
            during: listing.during(),
            after: self.config.list_timeout,
        };
        self.list_failed(now, listing, error, Pause::STEP);
    }

    /// Emits `Init`, deferred until the first item or end of a page, so that a failing LIST emits only its error.
    fn announce(&mut self, listing: &mut Listing) {
        if !listing.init_emitted {
            listing.init_emitted = true;
            self.memory.emitted_part(&listing.at, listing.version.clone());
            self.emit(Event::Init);
        }
    }

    fn page_read(&mut self, now: Duration, mut listing: Box<Listing>, meta: &PageMeta<'_>) {
        if listing.page == 1 {
            listing.version = ResourceVersion::new(&*meta.resource_version);
            if listing.init_emitted {
                self.memory.emitted_part(&listing.at, listing.version.clone());
            }
        }
        if listing.version.is_none() {
            self.report(Error::NoResourceVersion {
                during: listing.during(),
                object: None,
            });
            self.memory.first_page_failed(&self.config);
            // Some servers set resourceVersion only on complete lists (kube's own mock does).
            self.memory.unpaged |= listing.limit.is_some();
            return self.relist(now, Pause::STEP);
        }
        if meta.continue_token.is_empty() {
            return self.list_read(now, listing);
        }
        listing.empty_pages = if listing.items_in_page == 0 {
            listing.empty_pages + 1
        } else {
            0
        };
        let token = meta.continue_token.clone().into_owned();
        if listing.empty_pages >= EMPTY_PAGES_MAX || !listing.tokens_seen.insert(token.clone()) {
            self.report(Error::EndlessList { pages: listing.page });
            self.memory.later_page_lost(&self.config);
            self.memory.unpaged = true;
            return self.relist(now, Pause::STEP);
        }
        listing.token = Some(token);
        listing.page += 1;
        listing.failures = 0;
        self.ask_for_page(now, listing);
    }

    /// All pages are read: checks that the result is usable as a snapshot.
    fn list_read(&mut self, now: Duration, mut listing: Box<Listing>) {
        let Some(version) = listing.version.take() else {
            return self.relist(now, Pause::STEP);
        };
        if listing.poisoned {
            self.memory.first_page_failed(&self.config);
            return self.relist(now, Pause::STEP);
        }
        if listing.at.may_be_old()
            && let Some(newest) = self
                .memory
                .newest
                .as_ref()
                .filter(|newest| newest.is_newer_than(version.as_str()))
        {
            let error = Error::OldList {
                listed: version.to_string(),
                newest: newest.to_string(),
            };
            self.report(error);
            self.memory.unpin(&self.config);
            return self.relist(now, Pause::STEP);
        }
        // A list pinned to a version, or read in pages, may be served at the same version whose watch just expired,
        // and so forever (kubernetes#133810).
        let is_plain = !listing.at.may_be_old() && listing.limit.is_none();
        if self.memory.expired.as_ref() == Some(&version) && !is_plain {
            self.memory.unpin(&self.config);
            self.memory.unpaged = true;
            tracing::debug!(
                resource_version = version.as_str(),
                "the list is at the version whose watch expired"
            );
            return self.relist(now, Pause::STEP);
        }
        self.announce(&mut listing);
        self.emit(Event::InitDone);
        self.memory.adopt(self.clock.listened(now), version.clone());
        self.start_watch(now, version);
    }

    fn list_rejected(
        &mut self,
        now: Duration,
        listing: Box<Listing>,
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
        let is_transient = status.is_transient();
        let error = Error::Rejected {
            during: listing.during(),
            http,
            status: Box::new(status),
        };
        let is_later = listing.page > 1;
        // The first page of a consistent list falls back to etcd when the watch cache lags, a later page does not
        // (kube-apiserver 1.34, `ShouldDelegateContinue`): every attempt at it waits for the cache.
        let is_waiting = is_too_large && is_later && listing.failures < PAGE_FAILURES_MAX;
        if is_waiting || (is_transient && !is_too_large && !is_expired) {
            return self.list_failed(now, listing, error, pause);
        }
        if is_expired || (is_too_large && !is_later) {
            self.report_if_repeated(now, error);
        } else {
            self.report(error);
        }
        let rules_out_version = is_expired || is_too_large || matches!(http, 400 | 422);
        if is_later {
            // The token is dead. The inconsistent token that may come with a 410 would mix two points in time.
            self.memory.later_page_lost(&self.config);
        } else if rules_out_version && listing.at.may_be_old() {
            self.memory.unpin(&self.config);
        } else {
            self.memory.first_page_failed(&self.config);
        }
        self.relist(now, pause);
    }

    /// A failure that does not invalidate the page: requests it again, up to the limit.
    fn list_failed(&mut self, now: Duration, mut listing: Box<Listing>, error: Error, pause: Pause) {
        self.report(error);
        if listing.page == 1 {
            self.memory.first_page_failed(&self.config);
            self.relist(now, pause);
        } else if listing.failures < PAGE_FAILURES_MAX {
            listing.failures += 1;
            self.pause(now, pause, Then::Listing(listing));
        } else {
            self.memory.later_page_failed(&self.config);
            self.relist(now, pause);
        }
    }
}

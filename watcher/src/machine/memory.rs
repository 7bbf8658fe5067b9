//! State that outlives a single request: versions seen, failure counters, and what the next request must do
//! differently.

use std::time::Duration;

use super::clock::Listened;
use super::form::{Deviations, Form};
use crate::config::{Config, InitialListStrategy, ListSemantic};
use crate::request::At;
use crate::version::ResourceVersion;

/// Lists that may lose a page before a list without pages is tried: PAGE-09 allows three attempts in total.
const LOST_PAGES_MAX: u32 = 2;
/// Lists that may fail at a later page before a list without pages is tried. High, because that is the more expensive
/// request for a server in trouble, and each of these lists ends after four failures of its page.
const MAX_FAILED_PAGES: u32 = 3;
/// Failures of one form of snapshot request before the next form is tried.
const MAX_FORM_FAILURES: u32 = 3;
/// Streaming lists that may end without a response before LIST is tried. High, because a server that comes back should
/// not meet the more expensive request from all its clients; finite, because a proxy may break long requests alone.
const MAX_UNANSWERED_STREAMS: u32 = 10;
/// Lists without pages that may fail before paging is tried again.
const MAX_UNPAGED_FAILURES: u32 = 3;
/// Streaming lists that may end before their marker before LIST is preferred.
const MAX_UNMARKED_LISTS: u32 = 3;

#[derive(Debug, Default)]
pub(super) struct Memory {
    /// Newest version emitted. A list that must not go back in time is pinned to it.
    pub(super) newest: Option<ResourceVersion>,
    /// Version whose watch expired last.
    pub(super) expired: Option<ResourceVersion>,
    /// How the next snapshot is requested. The configured request again once one succeeds.
    form: Form,
    /// Part of a snapshot at an unknown version was emitted: only the most recent state may follow.
    is_part_unversioned: bool,
    /// The next list omits `limit`, until one succeeds, or until it failed too often without.
    pub(super) unpaged: bool,
    /// Consecutive lists without pages that failed.
    unpaged_failures: u32,
    /// Lists since the last complete one that the server could not continue (expired token, or page too new).
    lost_pages: u32,
    /// Lists since the last complete one that ended at a page that failed again and again.
    failed_pages: u32,
    /// Consecutive watches at one version that failed without advancing it.
    pub(super) failed_resumes: u32,
    /// Consecutive watch starts at one version that returned 5xx.
    pub(super) server_errors: u32,
    /// Consecutive streaming lists that ended before their marker.
    unmarked_lists: u32,
    streaming: Streaming,
    /// Events older than an earlier one, since the backoff was last reset.
    pub(super) rv_regressions: u32,
    /// Start of the current period without failures.
    pub(super) healthy_since: Option<Duration>,
    /// When the server last confirmed the watched version: a snapshot, a probe, or the end of a watch that advanced.
    pub(super) confirmed: Listened,
    /// The last probe found the server ahead of the watched version, and the watch has not advanced since.
    pub(super) is_behind: bool,
}

/// Whether to use streaming lists, if the configuration asks for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Streaming {
    /// Preferred.
    #[default]
    Wanted,
    /// They ended without their marker: LIST is preferred.
    Distrusted,
    /// The server rejects them: never.
    Refused,
}

impl Memory {
    /// Returns the state at which to read the next snapshot. Never `0` once a version is known (kubernetes#59848).
    pub(super) fn next_at(&self, config: &Config) -> At {
        let is_unpinned = self.form.is_unpinned || self.is_part_unversioned;
        match (config.list_semantic, is_unpinned, &self.newest) {
            (ListSemantic::MostRecent, _, _) | (ListSemantic::Any, true, _) => At::MostRecent,
            (ListSemantic::Any, false, None) => At::Any,
            (ListSemantic::Any, false, Some(newest)) => At::NotOlderThan(newest.clone()),
        }
    }

    /// Returns whether the next snapshot is requested by a streaming list.
    pub(super) fn next_is_streaming(&self, config: &Config) -> bool {
        match (config.initial_list_strategy, self.streaming) {
            (InitialListStrategy::ListWatch, _)
            | (InitialListStrategy::StreamingList, Streaming::Refused) => false,
            (InitialListStrategy::StreamingList, Streaming::Wanted) => !self.form.is_other,
            (InitialListStrategy::StreamingList, Streaming::Distrusted) => self.form.is_other,
        }
    }

    fn deviations(&self, config: &Config) -> Deviations {
        Deviations {
            other: config.initial_list_strategy == InitialListStrategy::StreamingList
                && self.streaming != Streaming::Refused,
            unpinned: config.list_semantic == ListSemantic::Any && !self.is_part_unversioned,
        }
    }

    /// Records that a request for a snapshot failed.
    pub(super) fn snapshot_failed(&mut self, config: &Config) {
        self.form = self
            .form
            .after_failure(MAX_FORM_FAILURES, self.deviations(config));
    }

    /// Records that a streaming list failed before a response.
    pub(super) fn stream_unanswered(&mut self, config: &Config) {
        self.form = self
            .form
            .after_failure(MAX_UNANSWERED_STREAMS, self.deviations(config));
    }

    /// Records that a request for a snapshot failed in a way that repetition does not change.
    pub(super) fn form_failed(&mut self, config: &Config) {
        self.form = self.form.next(self.deviations(config));
    }

    /// Records a list that failed at its first page.
    pub(super) fn first_page_failed(&mut self, config: &Config) {
        self.snapshot_failed(config);
        if self.unpaged {
            self.unpaged_failures += 1;
            if self.unpaged_failures >= MAX_UNPAGED_FAILURES {
                self.unpaged = false;
                self.unpaged_failures = 0;
                self.lost_pages = 0;
                self.failed_pages = 0;
            }
        }
    }

    /// Records a list whose next page the server cannot serve.
    pub(super) fn later_page_lost(&mut self, config: &Config) {
        self.snapshot_failed(config);
        self.lost_pages += 1;
        self.unpaged |= self.lost_pages >= LOST_PAGES_MAX;
    }

    /// Records a list whose next page failed again and again.
    pub(super) fn later_page_failed(&mut self, config: &Config) {
        self.snapshot_failed(config);
        self.failed_pages += 1;
        self.unpaged |= self.failed_pages >= MAX_FAILED_PAGES;
    }

    /// Omits `resourceVersion` from the next request for a snapshot: the server does not have that version, or returned an
    /// older one.
    pub(super) fn unpin(&mut self, config: &Config) {
        let possible = self.deviations(config);
        if possible.unpinned && !self.form.is_unpinned {
            self.form = self.form.unpinned(possible);
        }
    }

    /// Records that the server rejects streaming lists.
    pub(super) fn streaming_refused(&mut self) {
        self.streaming = Streaming::Refused;
        self.form = self.form.preferred();
    }

    /// Records a streaming list that ended before its marker.
    pub(super) fn unmarked_list(&mut self, config: &Config) {
        self.unmarked_lists += 1;
        if self.unmarked_lists >= MAX_UNMARKED_LISTS {
            self.never_marked(config);
        }
    }

    /// Records a streaming list that ran for its full time without a marker.
    pub(super) fn never_marked(&mut self, config: &Config) {
        self.unmarked_lists = 0;
        match self.streaming {
            Streaming::Wanted => {
                self.streaming = Streaming::Distrusted;
                self.form = self.form.preferred();
            }
            Streaming::Distrusted | Streaming::Refused => self.form_failed(config),
        }
    }

    /// Records the end marker of a streaming list.
    pub(super) fn marked(&mut self) {
        self.streaming = Streaming::Wanted;
    }

    /// Records that a watch delivered everything up to this version.
    pub(super) fn saw(&mut self, version: ResourceVersion) {
        if self
            .newest
            .as_ref()
            .is_none_or(|newest| !newest.is_newer_than(version.as_str()))
        {
            self.newest = Some(version);
        }
    }

    /// Records that part of a snapshot was emitted. If the rest does not arrive, no older state may follow: later
    /// lists are pinned to its version, or to the most recent state if the version is not known yet.
    pub(super) fn emitted_part(&mut self, at: &At, version: Option<ResourceVersion>) {
        if at.may_be_old() {
            self.is_part_unversioned = version.is_none();
            if let Some(version) = version {
                self.saw(version);
            }
        }
    }

    /// Records a complete snapshot, even if it is older than what was seen: in that case the server itself went back
    /// (TL-03).
    pub(super) fn adopt(&mut self, now: Listened, version: ResourceVersion) {
        self.confirmed = now;
        if self.expired.as_ref().is_some_and(|expired| *expired != version) {
            self.expired = None;
        }
        self.newest = Some(version);
        self.form = Form::default();
        self.is_part_unversioned = false;
        self.unpaged = false;
        self.unpaged_failures = 0;
        self.lost_pages = 0;
        self.failed_pages = 0;
        self.is_behind = false;
        self.failed_resumes = 0;
        self.server_errors = 0;
        self.unmarked_lists = 0;
    }

    /// Records that a watch advanced.
    pub(super) fn moved(&mut self) {
        self.is_behind = false;
        self.failed_resumes = 0;
        self.server_errors = 0;
    }
}

//! State that outlives a single request: versions seen, failure counters, and what the next request must do
//! differently.

use std::time::Duration;

use super::clock::Listened;
use crate::config::{Config, InitialListStrategy, ListSemantic};
use crate::request::At;
use crate::version::ResourceVersion;

/// Lists that may lose a page before a list without pages is tried: PAGE-09 allows three attempts in total.
const LOST_PAGES_MAX: u32 = 2;

#[derive(Debug, Default)]
pub(super) struct Memory {
    /// Newest version emitted. A list that must not go back in time is pinned to it.
    pub(super) newest: Option<ResourceVersion>,
    /// Version whose watch expired last.
    pub(super) expired: Option<ResourceVersion>,
    /// The next list omits `resourceVersion`, until one succeeds.
    pub(super) unpinned: bool,
    /// The next list omits `limit`, until one succeeds.
    pub(super) unpaged: bool,
    /// Lists since the last complete one that the server could not continue (expired token, or page too new).
    pub(super) lost_pages: u32,
    /// Consecutive watches at one version that failed without advancing it.
    pub(super) failed_resumes: u32,
    /// Consecutive watch starts at one version that returned 5xx.
    pub(super) server_errors: u32,
    /// Consecutive streaming lists that ended before their marker.
    pub(super) unmarked_lists: u32,
    pub(super) streaming: Streaming,
    /// Events older than an earlier one, since the backoff was last reset.
    pub(super) rv_regressions: u32,
    /// Start of the current period without failures.
    pub(super) healthy_since: Option<Duration>,
    /// When the server last confirmed the watched version: a snapshot, a probe, or the end of a watch that advanced.
    pub(super) confirmed: Listened,
}

/// Whether to use a streaming list, if the configuration asks for one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Streaming {
    #[default]
    Wanted,
    /// Use LIST this once.
    SkipOnce,
    /// The server does not support it, or does not send its end marker: never use it again.
    Refused,
}

impl Memory {
    /// Returns the state at which to read the next snapshot. Never `0` once a version is known (kubernetes#59848).
    pub(super) fn next_at(&self, config: &Config) -> At {
        match (config.list_semantic, self.unpinned, &self.newest) {
            (ListSemantic::MostRecent, _, _) | (ListSemantic::Any, true, _) => At::MostRecent,
            (ListSemantic::Any, false, None) => At::Any,
            (ListSemantic::Any, false, Some(newest)) => At::NotOlderThan(newest.clone()),
        }
    }

    /// Decides whether the next snapshot uses a streaming list; consumes `SkipOnce`.
    pub(super) fn next_is_streaming(&mut self, config: &Config) -> bool {
        match (config.initial_list_strategy, self.streaming) {
            (InitialListStrategy::StreamingList, Streaming::Wanted) => true,
            (InitialListStrategy::StreamingList, Streaming::SkipOnce) => {
                self.streaming = Streaming::Wanted;
                false
            }
            (InitialListStrategy::StreamingList, Streaming::Refused)
            | (InitialListStrategy::ListWatch, _) => false,
        }
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
            self.unpinned = version.is_none();
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
        self.unpinned = false;
        self.unpaged = false;
        self.lost_pages = 0;
        self.failed_resumes = 0;
        self.server_errors = 0;
        self.unmarked_lists = 0;
    }

    /// Records a list whose next page the server could not serve. After a few of them lists are not paged.
    pub(super) fn lost_page(&mut self) {
        self.lost_pages += 1;
        self.unpaged |= self.lost_pages >= LOST_PAGES_MAX;
    }

    /// Records that a watch advanced.
    pub(super) fn moved(&mut self) {
        self.failed_resumes = 0;
        self.server_errors = 0;
    }
}

//! What outlives a state: what was seen, what failed how often, and what must be done differently next time.

use std::time::Duration;

use super::clock::Listened;
use crate::config::{Config, InitialListStrategy, ListSemantic};
use crate::request::At;
use crate::version::ResourceVersion;

/// Lists that may end at a page before one without pages is tried: PAGE-09 allows three attempts in all.
const LOST_PAGES_MAX: u32 = 2;

#[derive(Debug, Default)]
pub(super) struct Memory {
    /// The newest state delivered. A list that must not go back in time is pinned to it.
    pub(super) newest: Option<ResourceVersion>,
    /// The version whose watch last expired.
    pub(super) expired: Option<ResourceVersion>,
    /// The next list leaves `resourceVersion` unset, until one succeeds.
    pub(super) unpinned: bool,
    /// The next list is not paged, until one succeeds.
    pub(super) unpaged: bool,
    /// Lists, since the last complete one, whose next page the server could not serve any more, or not yet.
    pub(super) lost_pages: u32,
    /// Watches of one version, in a row, that failed without moving it.
    pub(super) setbacks: u32,
    /// Watch starts of one version, in a row, answered by 5xx.
    pub(super) server_errors: u32,
    /// Streaming lists, in a row, that ended before their marker.
    pub(super) unmarked: u32,
    pub(super) streaming: Streaming,
    /// Events older than one before them, since the watcher was last healthy for long.
    pub(super) disorders: u32,
    /// Since when watches work without a failure.
    pub(super) healthy_since: Option<Duration>,
    /// When the server last showed that it had come to the version that is watched, to the end of a watch.
    pub(super) confirmed: Listened,
}

/// Whether to ask for a streaming list, where the configuration wants one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Streaming {
    #[default]
    Wanted,
    /// LIST this once.
    SkipOnce,
    /// The server does not know it, or does not mark its end: never again.
    Refused,
}

impl Memory {
    /// Which state the next set is read at. `0` is never asked for once a version is known (kubernetes#59848).
    pub(super) fn next_at(&self, config: &Config) -> At {
        match (config.list_semantic, self.unpinned, &self.newest) {
            (ListSemantic::MostRecent, _, _) | (ListSemantic::Any, true, _) => At::MostRecent,
            (ListSemantic::Any, false, None) => At::Any,
            (ListSemantic::Any, false, Some(newest)) => At::NotOlderThan(newest.clone()),
        }
    }

    /// Takes the decision whether the next set comes by a streaming list.
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

    /// A watch delivered everything up to this version.
    pub(super) fn saw(&mut self, version: ResourceVersion) {
        if self
            .newest
            .as_ref()
            .is_none_or(|newest| !newest.is_newer_than(version.as_str()))
        {
            self.newest = Some(version);
        }
    }

    /// Objects of a set are handed over before all of it is read. Should the rest not come, no older state may follow: any
    /// from its version on, or only the most recent while that version is not known yet.
    pub(super) fn tells_part(&mut self, at: &At, version: Option<ResourceVersion>) {
        if at.may_be_old() {
            self.unpinned = version.is_none();
            if let Some(version) = version {
                self.saw(version);
            }
        }
    }

    /// A set was read whole, and adopted: also where it is older than what was seen, for then the server itself went
    /// back (TL-03).
    pub(super) fn adopt(&mut self, now: Listened, version: ResourceVersion) {
        self.confirmed = now;
        if self.expired.as_ref().is_some_and(|expired| *expired != version) {
            self.expired = None;
        }
        self.newest = Some(version);
        self.unpinned = false;
        self.unpaged = false;
        self.lost_pages = 0;
        self.setbacks = 0;
        self.server_errors = 0;
        self.unmarked = 0;
    }

    /// A list ended at a page that the server cannot serve. After a few of them it is read in one piece.
    pub(super) fn lost_page(&mut self) {
        self.lost_pages += 1;
        self.unpaged |= self.lost_pages >= LOST_PAGES_MAX;
    }

    /// A watch moved on.
    pub(super) fn moved(&mut self) {
        self.setbacks = 0;
        self.server_errors = 0;
    }
}

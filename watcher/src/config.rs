//! Every option of a watcher, with its default and its reason.

use std::time::Duration;

use crate::backoff::BackoffConfig;
use crate::prune::Prune;

/// Which state a LIST may be answered from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ListSemantic {
    /// The newest: `resourceVersion` is not sent.
    #[default]
    MostRecent,
    /// Any, from the server's cache: cheap, and perhaps a little old.
    ///
    /// The first LIST sends `resourceVersion=0` and, since a page size alone is no reason to read past the cache, the
    /// `limit` with it: a server with a watch cache ignores the limit and answers in one page, one without pages. Later
    /// LISTs ask for a state not older than what was already seen, so that this option never goes back in time.
    Any,
}

/// How the first set is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum InitialListStrategy {
    /// LIST in pages, then WATCH.
    #[default]
    ListWatch,
    /// One WATCH with `sendInitialEvents=true` (KEP-3157). Where the server refuses it, or never marks the end of the
    /// initial events, LIST and WATCH take its place.
    StreamingList,
}

/// The options of a watcher. Public fields and builder methods are named like kube's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Only objects with these labels. Default: all.
    pub label_selector: Option<String>,
    /// Only objects with these fields. Default: all.
    pub field_selector: Option<String>,
    /// `timeoutSeconds` of each watch. Default: drawn for each watch from 232 to 290 s, so that watchers that started
    /// together do not reconnect together; what is set here is sent as it is.
    pub timeout: Option<u32>,
    /// Which state a LIST may be answered from.
    pub list_semantic: ListSemantic,
    /// How the first set is read.
    pub initial_list_strategy: InitialListStrategy,
    /// Objects a page; `None`: all in one. Default 500, as in client-go.
    pub page_size: Option<u32>,
    /// Ask for bookmarks. Default true: without them a quiet collection's resourceVersion expires. A streaming list asks
    /// for them in any case, since its end marker is one.
    pub bookmarks: bool,
    /// How long a watch may be silent, in bytes, before it is taken for dead: from the request on, so that response
    /// headers that never come count too. This and the next three count only time in which the stream was polled and
    /// pending: a consumer that is busy hears nothing. Default: the watch's `timeoutSeconds` and 15 s more, since a quiet watch is silent
    /// from one bookmark to the next; below a minute a dead peer is noticed sooner, and quiet watches are asked for anew.
    pub idle_timeout: Option<Duration>,
    /// How long watches may bring neither event nor bookmark before a LIST of one item asks whether the server is still at
    /// their version: one that was restored from a backup takes watches from its future and says nothing on them. `None`:
    /// for ever. Default 10 minutes, which watches with bookmarks do not reach in a cluster where anything happens.
    pub staleness_probe_after: Option<Duration>,
    /// How long a LIST may be silent, in bytes, headers included. Default 65 s: the API server itself gives up after 60.
    pub list_timeout: Duration,
    /// How long a streaming list may bring no initial event before it is given up for LIST and WATCH. Default 60 s.
    pub initial_events_timeout: Duration,
    /// No watch event may be longer, in bytes. Default 16 MiB, as in client-go: ten times what etcd stores.
    pub max_event_bytes: usize,
    /// What of each object is left out while it is read. Default: nothing.
    pub prune: Prune,
    /// The delays after failures.
    pub backoff: BackoffConfig,
    /// Where jitter comes from: the same seed, the same delays. Default: drawn when the watcher is made.
    pub seed: Option<u64>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            label_selector: None,
            field_selector: None,
            timeout: None,
            list_semantic: ListSemantic::default(),
            initial_list_strategy: InitialListStrategy::default(),
            page_size: Some(500),
            bookmarks: true,
            idle_timeout: None,
            staleness_probe_after: Some(Duration::from_secs(600)),
            list_timeout: Duration::from_secs(65),
            initial_events_timeout: Duration::from_secs(60),
            max_event_bytes: 16 << 20,
            prune: Prune::nothing(),
            backoff: BackoffConfig::default(),
            seed: None,
        }
    }
}

impl Config {
    /// Sets `timeoutSeconds` of each watch.
    #[must_use]
    pub fn timeout(mut self, seconds: u32) -> Self {
        self.timeout = Some(seconds);
        self
    }

    /// Only objects with these fields, e.g. `metadata.name=a,status.phase!=Failed`.
    #[must_use]
    pub fn fields(mut self, selector: &str) -> Self {
        self.field_selector = Some(selector.to_owned());
        self
    }

    /// Only objects with these labels, e.g. `app=web,tier in (a,b),!legacy`.
    #[must_use]
    pub fn labels(mut self, selector: &str) -> Self {
        self.label_selector = Some(selector.to_owned());
        self
    }

    /// Only objects with these labels, from a typed selector.
    ///
    /// ```
    /// use kube_core::{Expression, Selector};
    /// let selector: Selector = Expression::In("env".into(), ["dev".into(), "test".into()].into()).into();
    /// let config = watcher::Config::default().labels_from(&selector);
    /// assert_eq!(config.label_selector.as_deref(), Some("env in (dev,test)"));
    /// ```
    #[cfg(feature = "client")]
    #[must_use]
    pub fn labels_from(mut self, selector: &kube_core::Selector) -> Self {
        self.label_selector = Some(selector.to_string());
        self
    }

    /// Sets which state a LIST may be answered from.
    #[must_use]
    pub fn list_semantic(mut self, semantic: ListSemantic) -> Self {
        self.list_semantic = semantic;
        self
    }

    /// Lets LISTs be answered from any state: [`ListSemantic::Any`].
    #[must_use]
    pub fn any_semantic(self) -> Self {
        self.list_semantic(ListSemantic::Any)
    }

    /// Asks for no bookmarks.
    #[must_use]
    pub fn disable_bookmarks(mut self) -> Self {
        self.bookmarks = false;
        self
    }

    /// Sets how many objects a page has.
    #[must_use]
    pub fn page_size(mut self, page_size: u32) -> Self {
        self.page_size = Some(page_size);
        self
    }

    /// Reads the first set by a streaming list: [`InitialListStrategy::StreamingList`].
    #[must_use]
    pub fn streaming_lists(mut self) -> Self {
        self.initial_list_strategy = InitialListStrategy::StreamingList;
        self
    }

    /// Sets how long a watch may be silent.
    #[must_use]
    pub fn idle_timeout(mut self, timeout: Duration) -> Self {
        self.idle_timeout = Some(timeout);
        self
    }

    /// Leaves `metadata.managedFields` out while objects are read: a third of the time and half of the memory a Pod
    /// costs. As `modify` with a clearing closure does, but before anything is allocated.
    #[must_use]
    pub fn drop_managed_fields(self) -> Self {
        self.drop_field("metadata.managedFields")
    }

    /// Leaves a field out while objects are read: see [`Prune::field`] for how paths are written. Names, uid and
    /// resourceVersion are needed and must stay.
    #[must_use]
    pub fn drop_field(mut self, path: &str) -> Self {
        self.prune = self.prune.field(path);
        self
    }

    /// Sets the delays after failures.
    #[must_use]
    pub fn backoff(mut self, backoff: BackoffConfig) -> Self {
        self.backoff = backoff;
        self
    }

    /// Sets where jitter comes from.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }
}

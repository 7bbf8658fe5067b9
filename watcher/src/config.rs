//! The options of a watcher, with their defaults and reasons.

use std::time::Duration;

use crate::backoff::BackoffConfig;
use crate::prune::Prune;

/// Which state a LIST may be served from; the `resourceVersion` of the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ListSemantic {
    /// The most recent state: `resourceVersion` is not sent.
    #[default]
    MostRecent,
    /// Any state in the server's watch cache: cheap, but possibly stale.
    ///
    /// The first LIST sends `resourceVersion=0`, with `limit`: a server with a watch cache ignores the limit and
    /// returns one page, a server without one paginates. Later LISTs require a state not older than what was already
    /// seen (`NotOlderThan`), so this option never goes back in time.
    Any,
}

/// How the initial snapshot is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum InitialListStrategy {
    /// LIST in pages, then WATCH.
    #[default]
    ListWatch,
    /// One WATCH with `sendInitialEvents=true` (KEP-3157). Falls back to LIST and WATCH if the server rejects it, refuses it
    /// three times, or never sends `k8s.io/initial-events-end`.
    StreamingList,
}

/// Options of a watcher. Fields and builder methods are named like those of kube-runtime's `watcher::Config`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Label selector. Default: all objects.
    pub label_selector: Option<String>,
    /// Field selector. Default: all objects.
    pub field_selector: Option<String>,
    /// `timeoutSeconds` of each watch, in seconds. Default: random per watch, 232 to 290 s, so that watchers started
    /// together do not reconnect together. A configured value is sent unchanged.
    pub timeout: Option<u32>,
    /// Which state a LIST may be served from. Default: [`ListSemantic::MostRecent`].
    pub list_semantic: ListSemantic,
    /// How the initial snapshot is read. Default: [`InitialListStrategy::ListWatch`].
    pub initial_list_strategy: InitialListStrategy,
    /// Page size of LISTs; `None`: no limit, one page. Default 500, as in client-go.
    pub page_size: Option<u32>,
    /// Whether watches request bookmarks. Default true: without them the resourceVersion of a quiet collection
    /// expires. A streaming list always requests them, because its end marker is a bookmark.
    pub bookmarks: bool,
    /// How long a watch may receive no bytes before it is considered dead, measured from the request, so missing
    /// response headers count too. This and the next three timeouts count only time in which the stream was polled
    /// and pending: a busy consumer receives nothing. Default: `timeoutSeconds` of the watch plus 15 s, because a
    /// quiet watch receives nothing between bookmarks. Below one minute a dead peer is detected sooner, but quiet
    /// watches are restarted.
    pub idle_timeout: Option<Duration>,
    /// How long watches may receive neither event nor newer bookmark, or be refused, before a LIST with `limit=1` compares
    /// the server's version with theirs: a server restored from a backup accepts watches from its future and sends nothing
    /// on them. If the server is ahead, and nothing was received for as long again, the watcher relists: the watch
    /// cache may stand still. `None`: never. Default 10 minutes, which watches with bookmarks do not reach in a cluster
    /// with any writes.
    pub staleness_probe_after: Option<Duration>,
    /// How long a LIST may receive no bytes, headers included. Default 65 s: the apiserver's own timeout is 60 s.
    pub list_timeout: Duration,
    /// How long a streaming list may receive no initial event before falling back to LIST and WATCH. Default 60 s.
    pub initial_events_timeout: Duration,
    /// Maximum length of a watch event, in bytes. Default 16 MiB, as in client-go: ten times what etcd stores.
    pub max_event_bytes: usize,
    /// Fields dropped while objects are decoded. Default: none.
    pub prune: Prune,
    /// Delays after failures.
    pub backoff: BackoffConfig,
    /// Seed for jitter: the same seed gives the same delays. Default: random per watcher.
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
    /// Sets `timeoutSeconds` of each watch, in seconds.
    #[must_use]
    pub fn timeout(mut self, seconds: u32) -> Self {
        self.timeout = Some(seconds);
        self
    }

    /// Sets the field selector, e.g. `metadata.name=a,status.phase!=Failed`.
    #[must_use]
    pub fn fields(mut self, selector: &str) -> Self {
        self.field_selector = Some(selector.to_owned());
        self
    }

    /// Sets the label selector, e.g. `app=web,tier in (a,b),!legacy`.
    #[must_use]
    pub fn labels(mut self, selector: &str) -> Self {
        self.label_selector = Some(selector.to_owned());
        self
    }

    /// Sets the label selector from a typed one.
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

    /// Sets which state a LIST may be served from.
    #[must_use]
    pub fn list_semantic(mut self, semantic: ListSemantic) -> Self {
        self.list_semantic = semantic;
        self
    }

    /// Lets LISTs be served from any state: [`ListSemantic::Any`].
    #[must_use]
    pub fn any_semantic(self) -> Self {
        self.list_semantic(ListSemantic::Any)
    }

    /// Disables bookmarks.
    #[must_use]
    pub fn disable_bookmarks(mut self) -> Self {
        self.bookmarks = false;
        self
    }

    /// Sets the page size of LISTs.
    #[must_use]
    pub fn page_size(mut self, page_size: u32) -> Self {
        self.page_size = Some(page_size);
        self
    }

    /// Reads the initial snapshot with a streaming list: [`InitialListStrategy::StreamingList`].
    #[must_use]
    pub fn streaming_lists(mut self) -> Self {
        self.initial_list_strategy = InitialListStrategy::StreamingList;
        self
    }

    /// Sets how long a watch may receive no bytes.
    #[must_use]
    pub fn idle_timeout(mut self, timeout: Duration) -> Self {
        self.idle_timeout = Some(timeout);
        self
    }

    /// Drops `metadata.managedFields` during decoding: a third of the decoding time and half of the memory of a Pod.
    /// Equivalent to `modify` with a closure that clears the field, but before anything is allocated.
    #[must_use]
    pub fn drop_managed_fields(self) -> Self {
        self.drop_field("metadata.managedFields")
    }

    /// Drops a field during decoding; see [`Prune::field`] for the path syntax. Name, namespace, uid and
    /// resourceVersion are required and must not be dropped.
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

    /// Sets the seed for jitter.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }
}

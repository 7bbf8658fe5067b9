//! The options of the client under test. Values only; what a client makes of them is its adapter's affair.

use super::{ClientMode, InitialList, ListSemantic};

/// Delays after failures. Every field has the meaning of the same-named one of `watcher::BackoffConfig`; `None` is the
/// client's default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BackoffSettings {
    /// First delay in milliseconds, before jitter.
    pub initial_ms: Option<u64>,
    /// Longest delay in milliseconds, before jitter.
    pub max_ms: Option<u64>,
    /// What a delay is multiplied by for the next.
    pub factor: Option<u32>,
    /// Milliseconds without failures after which the next delay is the first one again.
    pub reset_after_ms: Option<u64>,
    /// Longest `Retry-After`, in milliseconds, that is obeyed.
    pub retry_after_max_ms: Option<u64>,
}

/// What of a library is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Contract {
    /// Lists, watches and recovery, as long as the run lasts: an informer, a reflector, a cache.
    #[default]
    Informer,
    /// One watch from [`ClientSettings::resource_version`], to its end.
    Watch,
    /// One complete list, in pages.
    List,
}

impl Contract {
    /// The word for it in scenario files.
    pub fn word(self) -> &'static str {
        match self {
            Self::Informer => "informer",
            Self::Watch => "watch",
            Self::List => "list",
        }
    }
}

/// What the client is told. Every field has the meaning and default of the same-named option of `watcher::Config`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientSettings {
    /// What of the library is started.
    pub contract: Contract,
    /// Where a watch starts, in [`Contract::Watch`].
    pub resource_version: Option<String>,
    /// Which entry point.
    pub mode: ClientMode,
    /// The one object to watch, in [`ClientMode::Object`].
    pub object: Option<String>,
    /// Label selector.
    pub labels: Option<String>,
    /// Field selector.
    pub fields: Option<String>,
    /// `timeoutSeconds` of each watch; `None`: the client's default.
    pub timeout_s: Option<u32>,
    /// Which state LIST may answer from.
    pub list_semantic: ListSemantic,
    /// How the first set is read.
    pub initial_list: InitialList,
    /// Items a page; `None`: no paging. Default 500.
    pub page_size: Option<u32>,
    /// Ask for bookmarks. Default true.
    pub bookmarks: bool,
    /// Silence in bytes after which a watch is abandoned; `None`: the client's default.
    pub idle_timeout_ms: Option<u64>,
    /// Silence in bytes after which a LIST is abandoned; `None`: the client's default.
    pub list_timeout_ms: Option<u64>,
    /// Milliseconds without event or bookmark after which a LIST checks that the server has not gone back in time;
    /// `None`: the client's default, `Some(None)`: never.
    pub staleness_probe_after_ms: Option<Option<u64>>,
    /// Delays after failures.
    pub backoff: BackoffSettings,
    /// Milliseconds the consumer takes an event; 0: none (slow consumer).
    pub consumer_delay_ms: u64,
    /// The one event about an object, from 1, over which the consumer takes that time; `None`: over each.
    pub consumer_delay_event: Option<u32>,
    /// Its HTTP client offers gzip where a request says nothing of encodings, and decodes it. Default false.
    pub gzip: bool,
}

impl Default for ClientSettings {
    fn default() -> Self {
        Self {
            contract: Contract::default(),
            resource_version: None,
            mode: ClientMode::default(),
            object: None,
            labels: None,
            fields: None,
            timeout_s: None,
            list_semantic: ListSemantic::default(),
            initial_list: InitialList::default(),
            page_size: Some(500),
            bookmarks: true,
            idle_timeout_ms: None,
            list_timeout_ms: None,
            staleness_probe_after_ms: None,
            backoff: BackoffSettings::default(),
            consumer_delay_ms: 0,
            consumer_delay_event: None,
            gzip: false,
        }
    }
}

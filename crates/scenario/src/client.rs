//! Options of the client under test. Values only; the adapter applies them.

use super::{ClientMode, InitialList, ListSemantic};

/// Delays after failures, as in `watcher::BackoffConfig`; `None`: the client's default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BackoffSettings {
    /// First delay in milliseconds, before jitter.
    pub initial_ms: Option<u64>,
    /// Maximum delay in milliseconds, before jitter.
    pub max_ms: Option<u64>,
    /// Factor from one delay to the next.
    pub factor: Option<u32>,
    /// Milliseconds without failures after which the delay is reset.
    pub reset_after_ms: Option<u64>,
    /// Cap for `Retry-After`, in milliseconds.
    pub retry_after_max_ms: Option<u64>,
}

/// Part of a library that a scenario starts (docs/adapter-protocol.md).
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
    /// Returns its word in scenario files.
    pub fn word(self) -> &'static str {
        match self {
            Self::Informer => "informer",
            Self::Watch => "watch",
            Self::List => "list",
        }
    }
}

/// Configuration of the client. Fields have the meaning and default of the option of that name in `watcher::Config`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientSettings {
    /// Part of the library that is started.
    pub contract: Contract,
    /// resourceVersion at which a watch starts, for [`Contract::Watch`].
    pub resource_version: Option<String>,
    /// Entry point.
    pub mode: ClientMode,
    /// Name of the object to watch, for [`ClientMode::Object`].
    pub object: Option<String>,
    /// Label selector.
    pub labels: Option<String>,
    /// Field selector.
    pub fields: Option<String>,
    /// `timeoutSeconds` of each watch; `None`: the client's default.
    pub timeout_s: Option<u32>,
    /// Which state a LIST may be served from.
    pub list_semantic: ListSemantic,
    /// How the initial snapshot is read.
    pub initial_list: InitialList,
    /// Page size; `None`: no paging. Default 500.
    pub page_size: Option<u32>,
    /// Whether to request bookmarks. Default true.
    pub bookmarks: bool,
    /// Milliseconds without bytes after which a watch is abandoned; `None`: the client's default.
    pub idle_timeout_ms: Option<u64>,
    /// Milliseconds without bytes after which a LIST is abandoned; `None`: the client's default.
    pub list_timeout_ms: Option<u64>,
    /// Milliseconds without event or bookmark after which a LIST checks that the server has not gone back in time;
    /// `None`: the client's default, `Some(None)`: never.
    pub staleness_probe_after_ms: Option<Option<u64>>,
    /// Delays after failures.
    pub backoff: BackoffSettings,
    /// Milliseconds that the consumer takes per event (slow consumer); 0: none.
    pub consumer_delay_ms: u64,
    /// The only event about an object, counted from 1, for which the consumer takes that time; `None`: every event.
    pub consumer_delay_event: Option<u32>,
    /// Whether its HTTP client offers gzip if a request sets no encoding, and decodes it. Default false.
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

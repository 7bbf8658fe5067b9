//! Configurations of server and client, and their text in a scenario file.

use std::fmt::{self, Display, Formatter};

use fake_apiserver::scenario::Version;

/// Server configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Kubernetes minor version, `1.34` to `1.37`.
    pub version: &'static str,
    /// Revision of the store before the first object.
    pub revision: u64,
    /// Number of events per resource in the watch cache.
    pub watch_cache_capacity: u32,
    /// Seconds between bookmarks.
    pub bookmark_interval_s: u32,
    /// Feature gate `WatchList`; `None`: as in the version.
    pub streaming_lists: Option<bool>,
    /// Transport: `http1`, `tls_http1`, `tls_h2`.
    pub transport: &'static str,
    /// Concurrent streams per HTTP/2 connection.
    pub streams_max: Option<u32>,
    /// Two replicas, to which connections are assigned in turn.
    pub has_replicas: bool,
}

impl Server {
    /// Returns true for HTTP/2.
    pub fn is_http2(&self) -> bool {
        self.transport == "tls_h2"
    }
}

impl Default for Server {
    fn default() -> Self {
        Self {
            version: Version::NEWEST.name(),
            revision: 1_000,
            watch_cache_capacity: 100,
            bookmark_interval_s: 60,
            streaming_lists: None,
            transport: "http1",
            streams_max: None,
            has_replicas: false,
        }
    }
}

/// Prints the map without defaults; empty if nothing differs.
impl Display for Server {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let default = Self::default();
        let mut keys = Vec::new();
        if self.version != default.version {
            keys.push(format!("version: {:?}", self.version));
        }
        if self.revision != default.revision {
            keys.push(format!("revision: {}", self.revision));
        }
        if self.watch_cache_capacity != default.watch_cache_capacity {
            keys.push(format!("watch_cache_capacity: {}", self.watch_cache_capacity));
        }
        if self.bookmark_interval_s != default.bookmark_interval_s {
            keys.push(format!("bookmark_interval: {}s", self.bookmark_interval_s));
        }
        if self.transport != default.transport {
            keys.push(format!("transport: {}", self.transport));
        }
        if let Some(gate) = self.streaming_lists {
            keys.push(format!("streaming_lists: {gate}"));
        }
        if let Some(streams) = self.streams_max.filter(|_| self.is_http2()) {
            keys.push(format!("max_concurrent_streams: {streams}"));
        }
        if self.has_replicas {
            keys.push("replicas: 2".to_owned());
        }
        map(f, &keys)
    }
}

/// Prints a map, or nothing if it is empty.
fn map(f: &mut Formatter<'_>, keys: &[String]) -> fmt::Result {
    if keys.is_empty() {
        return Ok(());
    }
    write!(f, "{{{}}}", keys.join(", "))
}

/// The watched collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    /// Plural with group.
    pub resource: &'static str,
    /// Short form of its objects.
    pub kind: &'static str,
    /// All namespaces instead of `default`.
    pub is_wide: bool,
}

impl Default for Target {
    fn default() -> Self {
        Self {
            resource: "configmaps",
            kind: "configmap",
            is_wide: false,
        }
    }
}

/// Prints `target` without defaults; empty if nothing differs.
impl Display for Target {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match (self.is_wide, self.resource) {
            (true, resource) => write!(f, "{{resource: {resource}, namespace: all}}"),
            (false, "configmaps") => Ok(()),
            (false, resource) => write!(f, "{resource}"),
        }
    }
}

/// Client configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Client {
    /// Watch metadata only.
    pub metadata: bool,
    /// Name of the object to follow; `None`: all objects.
    pub object: Option<&'static str>,
    /// Label selector.
    pub labels: Option<&'static str>,
    /// Field selector.
    pub fields: Option<&'static str>,
    /// LISTs may be served from any state.
    pub any: bool,
    /// Read the initial snapshot with a streaming list.
    pub streaming: bool,
    /// Page size; 0: no paging.
    pub page_size: u32,
    /// Request bookmarks.
    pub bookmarks: bool,
    /// `timeoutSeconds` of watches; `None`: the client's default.
    pub timeout_s: Option<u32>,
    /// Seconds without bytes after which a watch is abandoned; `None`: the client's default.
    pub idle_timeout_s: Option<u32>,
    /// Seconds without bytes after which a LIST is abandoned; `None`: the client's default.
    pub list_timeout_s: Option<u32>,
    /// Seconds without event or bookmark after which the client checks that the server has not gone back in time;
    /// `None`: the client's default.
    pub staleness_probe_after_s: Option<u32>,
    /// First and maximum delay after failures, in milliseconds; `None`: the client's defaults.
    pub backoff_ms: Option<(u32, u32)>,
    /// Factor from one delay to the next; `None`: the client's default.
    pub backoff_factor: Option<u32>,
    /// Milliseconds that the consumer takes per event.
    pub consumer_delay_ms: u32,
    /// The only event about an object for which the consumer takes that time; `None`: every event.
    pub consumer_delay_event: Option<u32>,
    /// Offer gzip, and decode it.
    pub gzip: bool,
}

impl Default for Client {
    fn default() -> Self {
        Self {
            metadata: false,
            object: None,
            labels: None,
            fields: None,
            any: false,
            streaming: false,
            page_size: 500,
            bookmarks: true,
            timeout_s: None,
            idle_timeout_s: None,
            list_timeout_s: None,
            staleness_probe_after_s: None,
            backoff_ms: None,
            backoff_factor: None,
            consumer_delay_ms: 0,
            consumer_delay_event: None,
            gzip: false,
        }
    }
}

/// Prints the map without defaults; empty if nothing differs.
impl Display for Client {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut keys = Vec::new();
        match &self.object {
            Some(object) => keys.push(format!("object: {object}")),
            None if self.metadata => keys.push("mode: metadata".to_owned()),
            None => {}
        }
        if let Some(labels) = self.labels {
            keys.push(format!("labels: {labels:?}"));
        }
        if let Some(fields) = self.fields {
            keys.push(format!("fields: {fields:?}"));
        }
        if self.any {
            keys.push("list_semantic: any".to_owned());
        }
        if self.streaming {
            keys.push("initial_list: streaming_list".to_owned());
        }
        match self.page_size {
            500 => {}
            0 => keys.push("page_size: none".to_owned()),
            size => keys.push(format!("page_size: {size}")),
        }
        if !self.bookmarks {
            keys.push("bookmarks: false".to_owned());
        }
        for (key, seconds) in [
            ("timeout", self.timeout_s),
            ("idle_timeout", self.idle_timeout_s),
            ("list_timeout", self.list_timeout_s),
            ("staleness_probe_after", self.staleness_probe_after_s),
        ] {
            if let Some(seconds) = seconds {
                keys.push(format!("{key}: {seconds}s"));
            }
        }
        let mut backoff = Vec::new();
        if let Some((initial, max)) = self.backoff_ms {
            backoff.push(format!("initial: {initial}ms, max: {max}ms"));
        }
        if let Some(factor) = self.backoff_factor {
            backoff.push(format!("factor: {factor}"));
        }
        if !backoff.is_empty() {
            keys.push(format!("backoff: {{{}}}", backoff.join(", ")));
        }
        if self.consumer_delay_ms > 0 {
            keys.push(format!("consumer_delay: {}ms", self.consumer_delay_ms));
            if let Some(event) = self.consumer_delay_event {
                keys.push(format!("consumer_delay_event: {event}"));
            }
        }
        if self.gzip {
            keys.push("gzip: true".to_owned());
        }
        map(f, &keys)
    }
}

//! The settings of both sides, and how they are written in a scenario file.

use std::fmt::{self, Display, Formatter};

/// What the server is, and what of it is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// The Kubernetes minor, `1.33` to `1.36`.
    pub version: &'static str,
    /// The store's revision before the first object.
    pub revision: u64,
    /// Events of a resource the watch cache keeps.
    pub watch_cache_capacity: u32,
    /// Seconds between bookmarks.
    pub bookmark_interval_s: u32,
    /// The feature gate `WatchList`; `None`: as the version.
    pub streaming_lists: Option<bool>,
    /// What is spoken: `http1`, `tls_http1`, `tls_h2`.
    pub transport: &'static str,
    /// Requests under way at one time on a connection of HTTP/2.
    pub streams_max: Option<u32>,
}

impl Server {
    /// Are there streams on its connections?
    pub fn is_http2(&self) -> bool {
        self.transport == "tls_h2"
    }
}

impl Default for Server {
    fn default() -> Self {
        Self {
            version: "1.36",
            revision: 1_000,
            watch_cache_capacity: 100,
            bookmark_interval_s: 60,
            streaming_lists: None,
            transport: "http1",
            streams_max: None,
        }
    }
}

/// The map of a file, without defaults; empty: nothing to write.
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
        map(f, &keys)
    }
}

/// Writes a map, or nothing if it would be empty.
fn map(f: &mut Formatter<'_>, keys: &[String]) -> fmt::Result {
    if keys.is_empty() {
        return Ok(());
    }
    write!(f, "{{{}}}", keys.join(", "))
}

/// The collection that the client reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    /// Plural, with its group.
    pub resource: &'static str,
    /// The short form of its objects.
    pub kind: &'static str,
    /// All namespaces, and not `default` alone.
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

/// The value of `target`, without defaults; empty: nothing to write.
impl Display for Target {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match (self.is_wide, self.resource) {
            (true, resource) => write!(f, "{{resource: {resource}, namespace: all}}"),
            (false, "configmaps") => Ok(()),
            (false, resource) => write!(f, "{resource}"),
        }
    }
}

/// What the client is configured with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Client {
    /// Only metadata is watched.
    pub metadata: bool,
    /// The one object to follow; `None`: all.
    pub object: Option<&'static str>,
    /// Label selector.
    pub labels: Option<&'static str>,
    /// Field selector.
    pub fields: Option<&'static str>,
    /// Lists may be answered from any state.
    pub any: bool,
    /// The first set is read by a streaming list.
    pub streaming: bool,
    /// Items a page; 0: no paging.
    pub page_size: u32,
    /// Bookmarks are requested.
    pub bookmarks: bool,
    /// Seconds a watch lives; `None`: the client's default.
    pub timeout_s: Option<u32>,
    /// Seconds of silence after which a watch is given up; `None`: the client's default.
    pub idle_timeout_s: Option<u32>,
    /// Seconds of silence after which a LIST is given up; `None`: the client's default.
    pub list_timeout_s: Option<u32>,
    /// Seconds without event or bookmark after which the client checks that the server has not gone back in time;
    /// `None`: the client's default.
    pub staleness_probe_after_s: Option<u32>,
    /// Milliseconds of the first and of the longest delay after failures; `None`: the client's defaults.
    pub backoff_ms: Option<(u32, u32)>,
    /// What a delay is multiplied by for the next; `None`: the client's default.
    pub backoff_factor: Option<u32>,
    /// Milliseconds the consumer takes an event.
    pub consumer_delay_ms: u32,
    /// The one event about an object over which the consumer takes that time; `None`: each.
    pub consumer_delay_event: Option<u32>,
    /// gzip is offered and decoded.
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

/// The map of a file, without defaults; empty: nothing to write.
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

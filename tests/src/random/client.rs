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
}

impl Server {
    /// Are there streams on its connections?
    pub fn is_http2(&self) -> bool {
        self.transport == "tls_h2"
    }
}

impl Display for Server {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{{version: {:?}, revision: {}, watch_cache_capacity: {}, bookmark_interval: {}s, transport: {}",
            self.version, self.revision, self.watch_cache_capacity, self.bookmark_interval_s, self.transport
        )?;
        if let Some(gate) = self.streaming_lists {
            write!(f, ", streaming_lists: {gate}")?;
        }
        write!(f, "}}")
    }
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

impl Display for Target {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let namespace = if self.is_wide { "all" } else { "default" };
        write!(f, "{{resource: {}, namespace: {namespace}}}", self.resource)
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
    /// Milliseconds the consumer takes an event.
    pub consumer_delay_ms: u32,
    /// gzip is offered and decoded.
    pub gzip: bool,
}

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
        keys.push(match self.page_size {
            0 => "page_size: none".to_owned(),
            size => format!("page_size: {size}"),
        });
        keys.push(format!("bookmarks: {}", self.bookmarks));
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
        if let Some((initial, max)) = self.backoff_ms {
            keys.push(format!("backoff: {{initial: {initial}ms, max: {max}ms}}"));
        }
        if self.consumer_delay_ms > 0 {
            keys.push(format!("consumer_delay: {}ms", self.consumer_delay_ms));
        }
        if self.gzip {
            keys.push("gzip: true".to_owned());
        }
        write!(f, "{{{}}}", keys.join(", "))
    }
}

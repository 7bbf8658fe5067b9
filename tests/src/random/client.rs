//! The settings of both sides, and how they are written in a scenario file.

use std::fmt::{self, Display, Formatter};

/// What the server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// The Kubernetes minor, `1.33` to `1.36`.
    pub version: &'static str,
    /// Events of a resource the watch cache keeps.
    pub watch_cache_capacity: u32,
    /// Seconds between bookmarks.
    pub bookmark_interval_s: u32,
    /// What is spoken: `http1`, `tls_http1`, `tls_h2`.
    pub transport: &'static str,
}

impl Display for Server {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{{version: {:?}, watch_cache_capacity: {}, bookmark_interval: {}s, transport: {}}}",
            self.version, self.watch_cache_capacity, self.bookmark_interval_s, self.transport
        )
    }
}

/// What the client is configured with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Client {
    /// Only metadata is watched.
    pub metadata: bool,
    /// The one object to follow; `None`: all.
    pub object: Option<String>,
    /// Label selector.
    pub labels: Option<&'static str>,
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
        if let Some(timeout) = self.timeout_s {
            keys.push(format!("timeout: {timeout}s"));
        }
        if let Some(idle) = self.idle_timeout_s {
            keys.push(format!("idle_timeout: {idle}s"));
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

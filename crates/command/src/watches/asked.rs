//! Who sent a request, and for what. It must not know watches.

use std::collections::VecDeque;
use std::sync::Arc;

use apimachinery::kind::qualified;
use apimachinery::path::ResourcePath;
use fake_apiserver::record::{Record, StreamId, What};

/// Maximum number of requests whose records are found: the newest.
pub(super) const REQUESTS_MAX: usize = 20_000;

/// Maximum length of a client's name, in characters.
const CLIENT_MAX: usize = 200;

/// Who sent a request, for what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asked {
    /// User-Agent; empty without one.
    pub(crate) client: Arc<str>,
    /// `pods`, `deployments.apps`; empty if the path is not that of a resource.
    pub(crate) resource: Arc<str>,
    /// Namespace of the path.
    pub(super) namespace: Option<Arc<str>>,
}

impl Asked {
    /// Returns who sent a request to this path.
    pub(super) fn of(path: &str, user_agent: Option<&str>) -> Self {
        let read = ResourcePath::read(path);
        let resource = { read.as_ref() }.map(|path| qualified(path.resource, path.group));
        Self {
            client: cut(user_agent.unwrap_or_default()).into(),
            resource: cut(&resource.unwrap_or_default()).into(),
            namespace: read.and_then(|path| path.within).map(Arc::from),
        }
    }
}

/// Which watches, or records, to return: all given conditions must hold.
#[derive(Debug, Clone, Default)]
pub(crate) struct Filter {
    /// Part of the User-Agent.
    pub(crate) client: Option<String>,
    /// Resource: `pods`, `deployments.apps`.
    pub(crate) resource: Option<String>,
}

impl Filter {
    /// Whether it lets everything pass.
    pub(crate) fn is_empty(&self) -> bool {
        self.client.is_none() && self.resource.is_none()
    }

    /// Whether a request passes.
    pub(crate) fn fits(&self, asked: &Asked) -> bool {
        self.client
            .as_ref()
            .is_none_or(|part| asked.client.contains(part.as_str()))
            && self
                .resource
                .as_ref()
                .is_none_or(|resource| *resource == *asked.resource)
    }
}

/// Where the records of the newest requests are.
#[derive(Default)]
pub(super) struct Requests {
    /// Numbers of the records, in the order of the requests.
    pub(super) newest: VecDeque<(StreamId, u64)>,
}

impl Requests {
    /// Notes the number of a request's record.
    pub(super) fn note(&mut self, stream: StreamId, seq: u64) {
        if self.newest.len() >= REQUESTS_MAX {
            self.newest.pop_front();
        }
        let at = self.newest.partition_point(|(earlier, _)| *earlier < stream);
        self.newest.insert(at, (stream, seq));
    }

    /// Returns who sent a request, if its record is among these.
    pub(super) fn find(&self, stream: StreamId, records: &[Record]) -> Option<Asked> {
        let nth = { &self.newest }
            .binary_search_by_key(&stream, |(stream, _)| *stream)
            .ok()?;
        let seq = self.newest[nth].1;
        let at = records.binary_search_by_key(&seq, |record| record.seq).ok()?;
        if let What::Request { path, user_agent, .. } = &records[at].what {
            return Some(Asked::of(path, user_agent.as_deref()));
        }
        None
    }
}

/// Returns the plural of `pods` or `deployments.apps`.
pub(crate) fn plural(resource: &str) -> &str {
    resource.split('.').next().unwrap_or_default()
}

/// Cuts a text that a client sent.
pub(super) fn cut(text: &str) -> String {
    match text.char_indices().nth(CLIENT_MAX) {
        Some((end, _)) => text[..end].to_owned(),
        None => text.to_owned(),
    }
}

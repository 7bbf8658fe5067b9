//! Reports of a client under test, named like kube's watcher events.
//!
//! Independent of the client: the server reacts only to these facts (`when: {emitted: …}`), and verdicts use only
//! them and the wire.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// An object as reported by a client: identity, version, and content if the client reports it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportedObject {
    /// `metadata.namespace`; `None` for cluster-scoped objects.
    pub namespace: Option<String>,
    /// `metadata.name`; empty if absent.
    pub name: String,
    /// `metadata.uid`, verbatim; `None` if absent.
    pub uid: Option<String>,
    /// `metadata.resourceVersion`, verbatim; `None` if absent.
    pub resource_version: Option<String>,
    /// The complete object as JSON, for content checks; `None` if the client reports only metadata.
    pub content: Option<Arc<serde_json::Value>>,
}

impl ReportedObject {
    /// Returns `namespace/name`, or `name` for cluster-scoped objects: the order of the store.
    pub fn key(&self) -> String {
        match &self.namespace {
            Some(namespace) => format!("{namespace}/{}", self.name),
            None => self.name.clone(),
        }
    }

    /// Returns uid and resourceVersion.
    pub fn version(&self) -> Version {
        Version {
            uid: self.uid.clone().unwrap_or_default(),
            resource_version: self.resource_version.clone().unwrap_or_default(),
        }
    }
}

/// An event reported by a client under test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Report {
    /// A (re)list started; the objects up to `InitDone` replace the cache.
    Init,
    /// An object of the (re)list.
    InitApply(ReportedObject),
    /// The (re)list is complete: the cache is in sync.
    InitDone,
    /// An object was added or changed.
    Apply(ReportedObject),
    /// An object was deleted. Carries the last state known to the client.
    Delete(ReportedObject),
    /// The client reported an error and continues.
    Error {
        /// The client's error message.
        message: String,
        /// HTTP or Status code, if the client kept it.
        code: Option<u16>,
    },
    /// The client's stream ended.
    Ended,
    /// The client panicked or its process exited; `message` is the panic message or the last line of stderr.
    Crashed {
        /// The panic message or last line of stderr.
        message: String,
    },
}

impl Report {
    /// Returns the object of the report, if any.
    pub fn object(&self) -> Option<&ReportedObject> {
        match self {
            Self::InitApply(object) | Self::Apply(object) | Self::Delete(object) => Some(object),
            Self::Init | Self::InitDone | Self::Error { .. } | Self::Ended | Self::Crashed { .. } => None,
        }
    }

    /// Returns the word in scenario files and transcripts (`init_apply`, `delete`, …).
    pub fn word(&self) -> &'static str {
        match self {
            Self::Init => "init",
            Self::InitApply(_) => "init_apply",
            Self::InitDone => "init_done",
            Self::Apply(_) => "apply",
            Self::Delete(_) => "delete",
            Self::Error { .. } => "error",
            Self::Ended => "ended",
            Self::Crashed { .. } => "crashed",
        }
    }
}

/// The cache of a consumer that applies the reports as kube documents them: `Init … InitDone` replaces it, `Apply`
/// and `Delete` change it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fold {
    cache: BTreeMap<String, Version>,
    building: BTreeMap<String, Version>,
    synced: bool,
}

/// Identity and state of a cached object.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// `metadata.uid`; empty if absent.
    pub uid: String,
    /// `metadata.resourceVersion`; empty if absent.
    pub resource_version: String,
}

impl Fold {
    /// Applies one report.
    pub fn take(&mut self, report: &Report) {
        match report {
            Report::Init => self.building.clear(),
            Report::InitApply(object) => {
                self.building.insert(object.key(), object.version());
            }
            Report::InitDone => {
                self.cache = std::mem::take(&mut self.building);
                self.synced = true;
            }
            Report::Apply(object) => {
                self.cache.insert(object.key(), object.version());
            }
            Report::Delete(object) => {
                self.cache.remove(&object.key());
            }
            Report::Error { .. } | Report::Ended | Report::Crashed { .. } => {}
        }
    }

    /// Returns the cache, by `namespace/name`.
    pub fn cache(&self) -> &BTreeMap<String, Version> {
        &self.cache
    }

    /// Returns true after the first `InitDone`.
    pub fn synced(&self) -> bool {
        self.synced
    }
}

//! What a client under test says it did, in kube's words for emitted events.
//!
//! The fake must not know which client speaks: these are the only facts it may react to
//! (`when: {emitted: …}`) and the only ones a verdict may use beside the wire.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// One object as a client reported it: its identity, its version, and its content where the client gives it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportedObject {
    /// Namespace; `None` for cluster-scoped objects.
    pub namespace: Option<String>,
    /// `metadata.name`; empty when the object had none.
    pub name: String,
    /// `metadata.uid`, verbatim; `None` when absent.
    pub uid: Option<String>,
    /// `metadata.resourceVersion`, verbatim; `None` when absent.
    pub resource_version: Option<String>,
    /// The whole object as JSON, for content checks; `None` where the client only reports metadata.
    pub content: Option<Arc<serde_json::Value>>,
}

impl ReportedObject {
    /// `namespace/name`, or `name` alone for cluster-scoped objects: the key the store orders by.
    pub fn key(&self) -> String {
        match &self.namespace {
            Some(namespace) => format!("{namespace}/{}", self.name),
            None => self.name.clone(),
        }
    }

    /// Its identity and state.
    pub fn version(&self) -> Version {
        Version {
            uid: self.uid.clone().unwrap_or_default(),
            resource_version: self.resource_version.clone().unwrap_or_default(),
        }
    }
}

/// One thing a client under test did, in the order in which it did it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Report {
    /// A (re)list began; what follows up to `InitDone` replaces the cache.
    Init,
    /// One object of the (re)list.
    InitApply(ReportedObject),
    /// The (re)list is complete: the cache is in step.
    InitDone,
    /// An object was added or changed.
    Apply(ReportedObject),
    /// An object was deleted; the content is the last state the client knows.
    Delete(ReportedObject),
    /// The client surfaced an error and goes on.
    Error {
        /// The client's own text.
        message: String,
        /// HTTP or Status code where the client kept one.
        code: Option<u16>,
    },
    /// The client's stream ended: it will do nothing more.
    Ended,
    /// The client panicked or its process died; `message` is the panic's text or the last line of stderr.
    Crashed {
        /// The panic's text.
        message: String,
    },
}

impl Report {
    /// The object this report is about, if any.
    pub fn object(&self) -> Option<&ReportedObject> {
        match self {
            Self::InitApply(object) | Self::Apply(object) | Self::Delete(object) => Some(object),
            Self::Init | Self::InitDone | Self::Error { .. } | Self::Ended | Self::Crashed { .. } => None,
        }
    }

    /// The word for this kind of report in scenario files and transcripts (`init_apply`, `delete`, …).
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

/// The cache a consumer would hold who applies the reports as kube documents them: `Init … InitDone` replaces it,
/// `Apply` and `Delete` change it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fold {
    cache: BTreeMap<String, Version>,
    building: BTreeMap<String, Version>,
    synced: bool,
}

/// Which object, and which state of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// `metadata.uid`; empty when absent.
    pub uid: String,
    /// `metadata.resourceVersion`; empty when absent.
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

    /// The cache, by `namespace/name`.
    pub fn cache(&self) -> &BTreeMap<String, Version> {
        &self.cache
    }

    /// Was there ever an `InitDone`?
    pub fn synced(&self) -> bool {
        self.synced
    }
}

//! The truth: what a real apiserver would answer. Pure and clock-free; knows nothing of scripts, faults or sockets.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::api::{Collection, Form, GetRequest, ListRequest, Status, WatchRequest};
use crate::record::WriteOp;
use crate::scenario::{Manifest, ObjectName, ServerSettings};

pub mod catalog;
pub mod continue_token;
pub mod list;
pub mod object;
pub mod selector;
pub mod watch;

use catalog::Catalog;
pub use list::{GetOutcome, ListOutcome, Page};
pub use object::Stored;
pub use watch::{WatchFrame, WatchPoll, WatchSession};

/// A write, done.
#[derive(Debug, Clone)]
pub struct Written {
    /// What it did; `None`: nothing changed and no revision was used.
    pub op: Option<WriteOp>,
    /// Whom it concerns: `namespace/name`, or `name`.
    pub key: String,
    /// `metadata.uid`.
    pub uid: String,
    /// The revision of the write (of the stored object, if nothing changed).
    pub revision: u64,
    /// The object as stored (as it last was, with the revision of the delete, for a delete).
    pub stored: Arc<Stored>,
    /// The version before.
    pub previous: Option<Arc<Stored>>,
}

/// Why the store cannot go back.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RestoreError {
    /// The revision is compacted.
    #[error("revision {to} is compacted (the oldest left is {oldest})")]
    Compacted {
        /// Where to.
        to: u64,
        /// The oldest revision left.
        oldest: u64,
    },
    /// The revision is not written yet.
    #[error("revision {to} is in the future (the store is at {current})")]
    Future {
        /// Where to.
        to: u64,
        /// The store's revision.
        current: u64,
    },
}

/// The truth.
#[derive(Debug)]
pub struct Model {
    catalog: Catalog,
    revision: u64,
}

impl Model {
    /// An empty store. The first write gets `settings.revision + 1`.
    pub fn new(settings: &ServerSettings) -> Self {
        Self {
            catalog: Catalog::builtin(),
            revision: settings.revision,
        }
    }

    /// The kinds that are served.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// The newest revision.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// The oldest revision an exact list can still show.
    pub fn compacted(&self) -> u64 {
        0
    }

    /// Creates the object, or replaces it.
    pub fn apply(&mut self, now: Duration, manifest: &Manifest) -> Result<Written, Status> {
        let _ = (now, manifest);
        Err(Status::default())
    }

    /// Deletes the object.
    pub fn delete(&mut self, now: Duration, name: &ObjectName) -> Result<Written, Status> {
        let _ = (now, name);
        Err(Status::default())
    }

    /// Changes labels; `None` removes one.
    pub fn relabel(
        &mut self,
        now: Duration,
        name: &ObjectName,
        labels: &[(String, Option<String>)],
    ) -> Result<Written, Status> {
        let _ = (now, name, labels);
        Err(Status::default())
    }

    /// Forgets all history before the current revision, in the store and in every watch cache. Open watches go on.
    pub fn compact(&mut self) {}

    /// The watch cache of the resource relists: its open watches end, older starts are too old.
    pub fn clear_watch_cache(&mut self, group: &str, plural: &str) {
        let _ = (group, plural);
    }

    /// The watch cache of the resource stops following the store.
    pub fn freeze_watch_cache(&mut self, group: &str, plural: &str) {
        let _ = (group, plural);
    }

    /// It follows again.
    pub fn thaw_watch_cache(&mut self, group: &str, plural: &str) {
        let _ = (group, plural);
    }

    /// The store goes back to an earlier state and revision; every watch cache relists.
    pub fn restore(&mut self, to_revision: u64) -> Result<(), RestoreError> {
        self.revision = to_revision;
        Ok(())
    }

    /// The objects of a resource as of `revision`, in key order.
    pub fn objects_at(
        &self,
        group: &str,
        plural: &str,
        namespace: Option<&str>,
        revision: u64,
    ) -> impl Iterator<Item = Arc<Stored>> {
        let _ = (group, plural, namespace, revision);
        std::iter::empty()
    }

    /// The object as it is now.
    pub fn object(&self, name: &ObjectName) -> Option<Arc<Stored>> {
        let _ = name;
        None
    }

    /// Answers a LIST that arrived at `arrived`.
    pub fn list(&self, now: Duration, arrived: Duration, request: &ListRequest) -> ListOutcome {
        let _ = (now, arrived, request);
        ListOutcome::Refused(Status::default())
    }

    /// Answers a GET that arrived at `arrived`.
    pub fn get(&self, now: Duration, arrived: Duration, request: &GetRequest) -> GetOutcome {
        let _ = (now, arrived, request);
        GetOutcome::Refused(Status::default())
    }

    /// Opens a watch. `lifetime` is how long it lasts if the request does not say.
    pub fn open_watch(
        &self,
        now: Duration,
        request: &WatchRequest,
        lifetime: Duration,
    ) -> Result<WatchSession, Status> {
        let _ = (now, request, lifetime);
        Err(Status::default())
    }

    /// A bookmark of this collection, made now. `resource_version` is written as is (empty: left out).
    pub fn bookmark_frame(
        &self,
        collection: &Collection,
        resource_version: &str,
        initial_events_end: Option<&str>,
        form: Form,
    ) -> WatchFrame {
        let _ = (collection, form);
        WatchFrame {
            kind: crate::record::FrameType::Bookmark {
                initial_events_end: initial_events_end.map(str::to_owned),
            },
            object: Some(crate::record::ObjectRef {
                key: String::new(),
                uid: String::new(),
                resource_version: resource_version.to_owned(),
            }),
            line: Bytes::new(),
        }
    }
}

/// An ERROR event.
pub fn error_frame(status: &Status) -> WatchFrame {
    WatchFrame {
        kind: crate::record::FrameType::Error {
            code: status.code,
            reason: status.reason.clone(),
        },
        object: None,
        line: Bytes::new(),
    }
}

/// JSON in the server's own spelling: compact, `<`, `>`, `&` and the line separators escaped, no newline.
pub fn encode_json(value: &serde_json::Value) -> Vec<u8> {
    let _ = value;
    Vec::new()
}

//! Watch of a kind: a session of `watchcache`, whose events are encoded as lines.
//!
//! The events of a watch and their times are decided there ([`watchcache::Watch`]).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use apimachinery::encode::encode_json;
use apimachinery::kind::{ApiResource, KindRef};
use apimachinery::object::Stored;
use apimachinery::options::{Collection, MetaVersion, Representation, RowObject, WatchRequest};
use apimachinery::selector::Selector;
use apimachinery::status::Status;
use apimachinery::{ObjectRef, Version};
use bytes::Bytes;
use serde_json::{Map, Value, json};
use trace::record::{FrameType, Replica};
use watchcache::{Change, Frame, Poll, Watch, WatchOptions};

use super::lines::{Lines, line};
use super::view::View;
use super::{Model, replica_id, table};

/// Annotation of the bookmark that ends the initial events (KEP-3157).
pub(crate) const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// One line of a watch stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchFrame {
    /// Event type.
    pub kind: FrameType,
    /// Object key; `None` for ERROR.
    pub object: Option<Arc<ObjectRef>>,
    /// The line, with its newline.
    pub line: Bytes,
}

/// Result of polling a watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchPoll {
    /// A line. Poll again.
    Frame(WatchFrame),
    /// Nothing until the model changes, or until `wake`.
    Pending {
        /// Latest time of the next poll.
        wake: Option<Duration>,
    },
    /// The stream ends cleanly.
    End,
}

/// One open watch.
#[derive(Debug)]
pub struct WatchSession {
    watch: Watch<Stored>,
    collection: Collection,
    selector: Selector,
    form: Representation,
    /// Whether an event of this watch already had the column definitions of its table.
    named: bool,
    /// Whether its objects have the requested representation.
    shows_objects: bool,
}

impl WatchSession {
    /// Starts a watch at `now` that ends after the request's `timeoutSeconds`, or after `lifetime` if it has none.
    pub(super) fn open(
        model: &Model,
        replica: Replica,
        now: Duration,
        request: &WatchRequest,
        lifetime: Duration,
    ) -> Self {
        let kind = &request.collection.kind;
        let options = WatchOptions {
            namespace: request.collection.namespace.clone(),
            resource_version: request.resource_version,
            send_initial_events: request.send_initial_events,
            bookmarks: request.bookmarks,
            timeout_seconds: request.timeout_seconds,
            lifetime,
        };
        let view = View {
            kind,
            conversions: &model.conversions,
            selector: &request.selector,
        };
        let resource = model.resource_id(kind);
        Self {
            watch: Watch::open(
                &model.storage,
                now,
                resource,
                replica_id(replica),
                &options,
                &view,
            ),
            collection: request.collection.clone(),
            selector: request.selector.clone(),
            form: request.form,
            named: false,
            shows_objects: request.shows_objects,
        }
    }

    /// Returns whether it waits for the revision of its initial state. Until then nothing is sent, not even the response
    /// head.
    pub fn is_waiting(&self) -> bool {
        self.watch.is_waiting()
    }

    /// Returns the watched collection.
    pub fn collection(&self) -> &Collection {
        &self.collection
    }

    /// Returns the selector.
    pub fn selector(&self) -> &Selector {
        &self.selector
    }

    /// Returns the representation of the objects.
    pub fn form(&self) -> Representation {
        self.form
    }

    /// Returns the revision up to which events are never sent, once the initial events were sent; 0 before.
    pub fn start_revision(&self) -> u64 {
        self.watch.start_revision()
    }

    /// Returns the revision up to which everything was sent ([`Watch::shown`]).
    pub fn shown(&self, model: &Model) -> Option<u64> {
        self.watch.shown(&model.storage)
    }

    /// Returns the time at which the stream ends by itself.
    pub fn deadline(&self) -> Duration {
        self.watch.deadline()
    }

    /// Returns whether nothing is left to send to a client that did not read in time ([`Watch::is_past`]).
    pub fn is_past(&self, model: &Model, now: Duration) -> bool {
        self.watch.is_past(&model.storage, now)
    }

    /// Returns the next line, if there is one. Call it until it is pending or over, after every change of the model and at
    /// `wake`.
    pub fn poll(&mut self, model: &Model, now: Duration) -> WatchPoll {
        let view = View {
            kind: &self.collection.kind,
            conversions: &model.conversions,
            selector: &self.selector,
        };
        match self.watch.poll(&model.storage, now, &view) {
            Poll::Send(Frame::Initial(_) | Frame::Written { .. } | Frame::Bookmark { .. })
                if !self.shows_objects =>
            {
                WatchPoll::End
            }
            Poll::Send(frame) => WatchPoll::Frame(self.encoded(model, now, frame)),
            Poll::Pending { wake } => WatchPoll::Pending { wake: Some(wake) },
            Poll::End => WatchPoll::End,
        }
    }

    /// Reads ahead, so that [`Model::take_need`] returns the conversions that the next lines need.
    ///
    /// False: they need none.
    pub(crate) fn read_ahead(&self, model: &Model, now: Duration) -> bool {
        if !Model::may_convert(&self.collection.kind) {
            return false;
        }
        model.conversions.begin();
        let view = View {
            kind: &self.collection.kind,
            conversions: &model.conversions,
            selector: &self.selector,
        };
        let mut ahead = self.watch.clone();
        while let Poll::Send(_) = ahead.poll(&model.storage, now, &view) {}
        true
    }

    fn encoded(&mut self, model: &Model, now: Duration, frame: Frame<Stored, Lines>) -> WatchFrame {
        match frame {
            Frame::Error(status) => error_frame(&status),
            Frame::Bookmark {
                revision,
                ends_initial_events,
            } => {
                let marker = ends_initial_events.then_some("true");
                let named = !std::mem::replace(&mut self.named, true);
                let (kind, revision) = (&self.collection.kind, revision.to_string());
                bookmark_frame(model.version, kind, &revision, marker, self.form, named)
            }
            Frame::Initial(object) => WatchFrame {
                kind: FrameType::Added,
                object: Some(Arc::new(object.object_ref())),
                line: self.line(model, now, Change::Added, &object),
            },
            Frame::Written {
                change,
                event,
                converted,
            } => {
                let shown = event.shown(change);
                let cached = match &converted {
                    None => event.kept().line(change, self.form, shown),
                    Some(_) => None,
                };
                let shown = converted.as_ref().unwrap_or(shown);
                WatchFrame {
                    kind: match change {
                        Change::Added => FrameType::Added,
                        Change::Modified => FrameType::Modified,
                        Change::Deleted => FrameType::Deleted,
                    },
                    object: Some(Arc::clone(event.kept().object_ref(event.object()))),
                    line: cached.unwrap_or_else(|| self.line(model, now, change, shown)),
                }
            }
        }
    }

    /// Returns the line that sends an object.
    fn line(&mut self, model: &Model, now: Duration, change: Change, object: &Stored) -> Bytes {
        let named = !std::mem::replace(&mut self.named, true);
        let shown = table::shown(object, self.form, model.version, model.epoch + now, named);
        line(change.word(), &shown)
    }
}

/// Returns an ERROR event.
pub fn error_frame(status: &Status) -> WatchFrame {
    WatchFrame {
        kind: FrameType::Error {
            code: status.code,
            reason: status.reason.clone(),
        },
        object: None,
        line: line("ERROR", &status.encode()),
    }
}

/// Returns a bookmark: a zero value of the kind with a revision, and with the marker if it ends the initial events. A table
/// has its column definitions if `named`.
pub(super) fn bookmark_frame(
    version: Version,
    kind: &KindRef,
    resource_version: &str,
    initial_events_end: Option<&str>,
    form: Representation,
    named: bool,
) -> WatchFrame {
    let zero = Zero {
        kind,
        resource_version,
        initial_events_end,
    };
    let object = match form {
        Representation::Full => zero.full(),
        Representation::Metadata(meta) => zero.metadata_only(meta),
        Representation::Table(form) => {
            let object = serde_json::from_slice(&zero.full()).expect("a zero value is written as JSON");
            let carried = match form.object {
                RowObject::Full => zero.full(),
                RowObject::Metadata => zero.metadata_only(form.version),
                // The marker is sent even if the request excludes all objects.
                RowObject::None if initial_events_end.is_some() => zero.metadata_only(form.version),
                RowObject::None => b"null".to_vec(),
            };
            table::bookmark(kind, form, version, &object, &carried, named)
        }
    };
    WatchFrame {
        kind: FrameType::Bookmark {
            initial_events_end: initial_events_end.map(str::to_owned),
        },
        object: Some(Arc::new(ObjectRef {
            key: String::new(),
            uid: String::new(),
            resource_version: resource_version.to_owned(),
        })),
        line: line("BOOKMARK", &object),
    }
}

/// Returns a zero value of the kind with its version and the marker.
struct Zero<'a> {
    kind: &'a ApiResource,
    resource_version: &'a str,
    initial_events_end: Option<&'a str>,
}

impl Zero<'_> {
    fn full(&self) -> Vec<u8> {
        let metadata = self.metadata();
        let mut head = json!({
            "kind": self.kind.kind, "apiVersion": self.kind.api_version(), "metadata": metadata,
        });
        if self.kind.custom {
            head.sort_all_objects();
        }
        let mut object = encode_json(&head);
        object.pop();
        object.extend_from_slice(self.kind.zero.as_bytes());
        object.push(b'}');
        object
    }

    fn metadata_only(&self, meta: MetaVersion) -> Vec<u8> {
        encode_json(&json!({
            "kind": "PartialObjectMetadata",
            "apiVersion": meta.api_version(),
            "metadata": self.metadata(),
        }))
    }

    fn metadata(&self) -> Value {
        let mut metadata = Map::new();
        if !self.resource_version.is_empty() {
            metadata.insert("resourceVersion".to_owned(), self.resource_version.into());
        }
        let own = self.kind.zero_annotations.iter().copied();
        let marker = self.initial_events_end.map(|value| (INITIAL_EVENTS_END, value));
        let annotations: BTreeMap<&str, &str> = own.chain(marker).collect();
        if !annotations.is_empty() {
            metadata.insert("annotations".to_owned(), json!(annotations));
        }
        Value::Object(metadata)
    }
}

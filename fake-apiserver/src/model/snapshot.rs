//! A store that begins with the objects of another apiserver, as a snapshot has them: versions, uids, times and status are kept,
//! and the newest revision is that of the snapshot.
//!
//! All objects are older than the first write, as those of a new cluster are (`world.rs`): no watch gets an event of them, and a
//! client that has read the other apiserver goes on from its version. Definitions come first, because they say which objects are
//! served. It must not know files.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use apimachinery::kind::KindRef;
use apimachinery::object::Stored;
use apimachinery::options::{Collection, Representation};
use apimachinery::time::timestamp;
use builtin_kinds::{convert, types};
use scenario::ServerSettings;
use serde_json::Value;

use super::{Model, Objects, ResourceId, Written, write};
use crate::api::WriteRequest;
use crate::api::write::WriteAction;

/// Revision up to which the objects of a new cluster and of definitions are written, if the snapshot is newer.
const CLUSTER_REVISION_MAX: u64 = 500;

/// Objects of another apiserver, from which a server begins.
#[derive(Debug)]
pub struct Snapshot {
    model: Model,
    /// Oldest revision whose state it is.
    oldest: u64,
    /// Newest revision.
    revision: u64,
    /// Added objects that are not in the store yet.
    added: BTreeMap<ResourceId, Vec<Stored>>,
    keys: BTreeSet<(ResourceId, Arc<str>)>,
    namespaces: BTreeSet<String>,
    bare: bool,
    /// An apiserver that definitions are created on, each as if it were alone; once there is a definition.
    creating: Option<Box<Model>>,
}

/// Why an object is not added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotAdded {
    /// The emulated version does not serve its kind, nor does a definition: API version and kind.
    NotServed(String, String),
    /// It is no object that an apiserver stores.
    Invalid(String),
}

impl Snapshot {
    /// Begins with the objects of a new cluster; `bare`: with its namespaces only. `settings.revision` is the oldest revision
    /// whose state the snapshot is, and `revision` the newest.
    pub fn new(settings: &ServerSettings, revision: u64, bare: bool) -> Self {
        let mut model = Model::standalone(settings);
        model.preload_cluster(bare);
        // The APIServices of definitions are written at small revisions, too.
        let small = settings.revision.min(CLUSTER_REVISION_MAX);
        model.storage.begin_at(small, small);
        Self {
            model,
            oldest: settings.revision,
            revision: revision.max(settings.revision),
            added: BTreeMap::new(),
            keys: BTreeSet::new(),
            namespaces: BTreeSet::new(),
            bare,
            creating: None,
        }
    }

    /// The snapshot has all objects of this kind: those of a new cluster are removed. Nothing happens to a kind that is not
    /// built in.
    pub fn has_all_of(&mut self, api_version: &str, kind: &str) {
        if let Some(kind) = self.model.catalog.find_kind(api_version, kind)
            && kind.is_stored()
        {
            let id = self.model.resource_id(kind);
            self.model.storage.preload(id, Objects::new());
        }
    }

    /// Adds an object as it is. Without a uid, creation time or version it gets one, at the newest revision.
    ///
    /// # Errors
    /// Its kind is not served, or the object is invalid.
    pub fn add(&mut self, object: Value) -> Result<(), NotAdded> {
        let (kind, key, object) = self.checked(object)?;
        let id = self.model.resource_id(&kind);
        if !self.keys.insert((id, Arc::from(key.as_str()))) {
            return Err(NotAdded::Invalid(format!(
                "{} {key:?} is in the snapshot twice: remove one of them",
                kind.qualified()
            )));
        }
        let (revision, object) = self.completed(&key, object)?;
        if let Some((namespace, _)) = key.split_once('/')
            && !self.namespaces.contains(namespace)
        {
            self.namespaces.insert(namespace.to_owned());
        }
        let stored = Stored::as_is(&kind, key, revision, object);
        self.added.entry(id).or_default().push(stored);
        Ok(())
    }

    /// Establishes the definitions that were added so far, with their APIServices.
    pub fn define(&mut self) {
        self.keep_added();
        for kind in self
            .model
            .catalog
            .clone()
            .kinds()
            .iter()
            .filter(|kind| kind.defines)
        {
            let names: Vec<String> = { self.model.objects(kind).keys() }
                .map(ToString::to_string)
                .collect();
            for name in names {
                self.model.enqueue_definition(kind, &name);
            }
        }
        self.model.settle(Duration::ZERO);
    }

    /// Returns the store at the revision of the snapshot, and the writes since: `upgraded`, the apiserver creates what it lacks at
    /// start, as one of another minor version does. Namespaces that objects are in exist.
    pub(crate) fn into_model(mut self, upgraded: bool) -> (Model, Vec<Written>) {
        self.keep_added();
        let mut model = self.model;
        model.preload_namespaces(&self.namespaces);
        let newest = self.revision.max(model.revision());
        model.storage.begin_at(self.oldest, newest);
        // Uids of later writes differ from those of another fake apiserver, which counted from 0.
        model.writes = newest;
        let written = match upgraded && !self.bare {
            true => model.bootstrap(),
            false => Vec::new(),
        };
        (model, written)
    }

    /// Moves the added objects into the store.
    fn keep_added(&mut self) {
        for (id, added) in std::mem::take(&mut self.added) {
            let mut objects = self.model.storage.current(id).clone();
            for stored in added {
                objects.insert(Arc::from(stored.key.as_str()), Arc::new(stored));
            }
            self.model.storage.preload(id, objects);
        }
    }

    /// Returns the stored kind, the key and the object in that version.
    fn checked(&mut self, object: Value) -> Result<(KindRef, String, Value), NotAdded> {
        let invalid = |why: &str| Err(NotAdded::Invalid(why.to_owned()));
        let text = |pointer: &str| {
            object
                .pointer(pointer)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let (api_version, kind_name) = (text("/apiVersion"), text("/kind"));
        if api_version.is_empty() || kind_name.is_empty() {
            return invalid("an object needs apiVersion and kind");
        }
        let Some(kind) = self.model.catalog.find_kind(api_version, kind_name) else {
            return Err(NotAdded::NotServed(api_version.to_owned(), kind_name.to_owned()));
        };
        if !kind.is_stored() {
            return Err(NotAdded::Invalid(format!(
                "objects of kind {kind_name} are not stored"
            )));
        }
        let (name, namespace) = (text("/metadata/name"), text("/metadata/namespace"));
        if name.is_empty() {
            return invalid("an object needs metadata.name");
        }
        match (kind.namespaced, namespace.is_empty()) {
            (true, true) => return invalid("an object of this kind needs metadata.namespace"),
            (false, false) => return invalid("an object of this kind has no metadata.namespace: remove it"),
            (true, false) | (false, true) => {}
        }
        let key = kind.key(Some(namespace).filter(|_| kind.namespaced), name);
        types::conform(kind, &object).map_err(NotAdded::Invalid)?;
        let kind = kind.clone();
        if kind.defines {
            self.check_definition(&kind, &object)?;
        }
        if kind.custom {
            return Ok((kind, key, object));
        }
        let stored = convert::in_storage(&kind, &self.model.catalog);
        let object = convert::received(&kind, object);
        Ok((stored, key, object))
    }

    /// Checks a definition as if a client created it.
    fn check_definition(&mut self, kind: &KindRef, definition: &Value) -> Result<(), NotAdded> {
        let version = self.model.version;
        let creating = self.creating.get_or_insert_with(|| {
            let settings = ServerSettings {
                version,
                ..ServerSettings::default()
            };
            Box::new(Model::standalone(&settings))
        });
        let mut object = definition.clone();
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.retain(|field, _| matches!(field.as_str(), "name" | "labels" | "annotations"));
        }
        let request = WriteRequest {
            collection: Collection {
                kind: kind.clone(),
                namespace: None,
            },
            action: WriteAction::Create { object },
            dry_run: true,
            form: Representation::Full,
            manager: "kube-apiserver".to_owned(),
            warnings: Vec::new(),
            options: Vec::new(),
        };
        match creating.write(Duration::ZERO, request, 0) {
            Ok(_) => Ok(()),
            Err(refused) => Err(NotAdded::Invalid(refused.status.message)),
        }
    }

    /// Returns the revision of an object, and the object with uid, creation time and version.
    fn completed(&self, key: &str, mut object: Value) -> Result<(u64, Value), NotAdded> {
        let revision = match &object["metadata"]["resourceVersion"] {
            Value::Null => self.revision,
            Value::String(text) => match text.parse::<u64>() {
                Ok(revision) if (1..=self.revision).contains(&revision) => revision,
                Ok(revision) => {
                    return Err(NotAdded::Invalid(format!(
                        "metadata.resourceVersion {revision} is after that of the snapshot, {}: remove the field, or take the \
                         snapshot again",
                        self.revision
                    )));
                }
                Err(_) => {
                    return Err(NotAdded::Invalid(
                        "metadata.resourceVersion is no number: remove the field".to_owned(),
                    ));
                }
            },
            Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                return Err(NotAdded::Invalid(
                    "metadata.resourceVersion is no string: remove the field".to_owned(),
                ));
            }
        };
        let is_missing = |field: &str| object["metadata"][field].as_str().is_none_or(str::is_empty);
        let (uid, created, version) = (
            is_missing("uid"),
            is_missing("creationTimestamp"),
            is_missing("resourceVersion"),
        );
        let metadata = &mut object["metadata"];
        if uid {
            metadata["uid"] = write::uid(self.keys.len() as u64, key).into();
        }
        if created {
            metadata["creationTimestamp"] = timestamp(self.model.epoch).into();
        }
        if version {
            metadata["resourceVersion"] = revision.to_string().into();
        }
        Ok((revision, object))
    }
}

//! Writes of clients: checks, and responses.
//!
//! The new object is computed in `write`; here are the conditions of a write, and the fields of a request's object that the
//! server sets or ignores (status, finalizers of a namespace, fields of other subresources).
//!
//! Source: apiserver `registry/generic/registry/store.go` and `registry/rest/{create,update,delete}.go`; kubernetes
//! `plugin/admission/namespace/lifecycle`; the strategies of each kind, as columns of the catalog.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use apimachinery::kind::{ApiResource, Generation, KindRef};
use apimachinery::object::{Stored, metadata_text as text};
use apimachinery::options::{Collection, Representation};
use apimachinery::status::{Cause, Status};
use apimachinery::time::timestamp;
use apimachinery::write::Subresource;
use apimachinery::{go_text, object};
use builtin_kinds::ownership::Ownership;
use builtin_kinds::{catalog, convert, defaults, ownership, patch, scale as scales, size, types};
use bytes::Bytes;
use scenario::AdmissionPlugin;
use serde_json::{Value, json};

use super::hooks::Replies;
use super::write::{self, Outcome};
use super::{Model, Written, table};
use crate::api::access::Requester;
use crate::api::write::{ShownOptions, WriteAction, WriteRequest, check_name, check_namespace};

mod admission;
mod binding;
mod classes;
mod creation;
mod deletion;
mod escalation;
mod eviction;
mod limits;
mod managers;
mod nodes;
mod parts;
pub(super) mod policies;
mod quotas;
mod scale;
mod update;
mod usage;
mod versions;
mod webhooks;

/// A successful write of a client.
#[derive(Debug)]
pub struct Done {
    /// 200, 201 or 202.
    pub status: u16,
    /// The body, with its newline.
    pub body: Bytes,
    /// Texts of `Warning` headers.
    pub warnings: Vec<String>,
    /// Changes, in order.
    pub written: Vec<Written>,
}

/// Response to a POST that created no object.
const DONE: &[u8] =
    b"{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Success\",\"code\":201}\n";

/// Time of a check for repeated owner references, in its warning.
const AFTER_MUTATION: &str = " after mutating admission happens";

/// Field manager of changes by admission.
const SERVER: &str = "kube-apiserver";

/// A write in progress.
struct Writer<'a> {
    model: &'a mut Model,
    now: Duration,
    collection: Collection,
    /// User; `None`: the server itself.
    requester: Option<Requester<'a>>,
    /// Kind in the stored version; the request can have another.
    kind: KindRef,
    dry_run: bool,
    form: Representation,
    manager: String,
    warnings: Vec<String>,
    written: Vec<Written>,
    /// Calls of webhooks.
    replies: &'a mut Replies,
    /// Time of the first attempt.
    began: Duration,
    /// What makes its identifiers unique.
    nonce: u64,
    /// The subresource whose object another one is written for.
    part: Option<Subresource>,
    /// Whether webhooks let a deletion pass already.
    admitted: bool,
    /// Whether it needs objects in other versions.
    converts: bool,
    /// Whether it creates an object, but was authorized for another verb.
    upserts: bool,
    /// Subresource through which it creates an object.
    created_through: Option<Subresource>,
    /// Whether the object is read in another form than it is stored in. A write that changes nothing stores it once more.
    settles_later: bool,
    /// Whether the object has empty or unknown fields, without which it is read. A conversion to the stored version drops them.
    has_unread: bool,
    /// Whether it was changed by admission, and has fields that are not stored.
    mutated: bool,
    /// Whether it counts as a change although it may be stored alike: it has empty lists or maps, which its kind counts, or
    /// fields that are not stored.
    differs: bool,
    /// Options of the request except `dryRun`.
    options: ShownOptions,
}

/// A rejected write.
#[derive(Debug)]
pub enum Undone {
    /// It is refused.
    Refused(Refused),
    /// It waits for webhooks.
    Waits,
    /// It needs objects in other versions.
    Converts,
}

/// A write that was refused.
#[derive(Debug)]
pub struct Refused {
    /// The error.
    pub status: Status,
    /// Texts of `Warning` headers.
    pub warnings: Vec<String>,
}

/// Executes or rejects `request`. `seed` is the seed of generated names; `replies` has the responses of webhooks to an earlier
/// attempt, and receives the calls that this one waits for.
pub(super) fn write(
    model: &mut Model,
    now: Duration,
    request: WriteRequest,
    seed: u64,
    requester: Option<Requester<'_>>,
    replies: &mut Replies,
) -> Result<Done, Undone> {
    let (began, nonce) = replies.begin(now, model);
    let mut writer = Writer {
        kind: convert::in_storage(&request.collection.kind, &model.catalog),
        model,
        now,
        replies,
        began,
        nonce,
        part: None,
        admitted: false,
        converts: false,
        upserts: false,
        created_through: None,
        settles_later: false,
        has_unread: false,
        mutated: false,
        differs: false,
        collection: request.collection,
        requester,
        dry_run: request.dry_run,
        form: request.form,
        manager: request.manager,
        warnings: request.warnings,
        options: request.options,
        written: Vec::new(),
    };
    // What it changes is converted before anything is decided.
    if Model::may_convert(&writer.kind) {
        writer.model.conversions.begin();
        if let Some(name) = request.action.name() {
            writer.find(name);
        }
        match writer.model.needs() {
            true => return Err(Undone::Converts),
            false => writer.model.conversions.begin(),
        }
    }
    let done = writer.act(request.action, seed);
    let Writer {
        warnings,
        written,
        replies,
        model,
        converts,
        ..
    } = writer;
    if converts {
        return Err(Undone::Converts);
    }
    // What it read beside needs no conversion.
    model.conversions.begin();
    if replies.waits() {
        if replies.waits_first() {
            // Nothing else gets the identifiers of this write.
            model.dry_runs += 1;
        }
        return Err(Undone::Waits);
    }
    match done {
        Ok((status, body)) => Ok(Done {
            status,
            body,
            warnings,
            written,
        }),
        Err(status) => Err(Undone::Refused(Refused { status, warnings })),
    }
}

impl Writer<'_> {
    fn act(&mut self, action: WriteAction, seed: u64) -> Result<(u16, Bytes), Status> {
        match action {
            WriteAction::Create { object } => {
                let mut object = self.received(object);
                self.drop_repeated_owners(&mut object, "");
                self.create(object, seed)
            }
            WriteAction::Update {
                name,
                subresource,
                object,
            } => {
                let mut object = self.received(object);
                self.drop_repeated_owners(&mut object, "");
                self.put(&name, subresource, object)
            }
            WriteAction::Patch {
                name,
                subresource,
                patch,
                duplicates,
                validation,
            } => {
                self.needs_namespace()?;
                let current = self.current(&name)?;
                let mut is_live = false;
                let (of, whole) = match subresource {
                    Some(Subresource::Scale) => (catalog::scale(), scales::before_write(&current)?),
                    None
                    | Some(
                        Subresource::Status
                        | Subresource::Finalize
                        | Subresource::EphemeralContainers
                        | Subresource::Resize,
                    ) => {
                        let shown = self.model.conversions.as_kind(&current, &self.collection.kind);
                        is_live = Arc::ptr_eq(&shown, &current);
                        (self.requested_kind(), shown.json())
                    }
                };
                let (object, more) =
                    patch::patched(&of, &whole, &patch, &duplicates, validation, self.model.version)?;
                self.warnings.extend(more);
                check_name(&object, &name)?;
                check_namespace(&object, &self.collection)?;
                let errors = [self.kind_error(&object), self.version_error(&object)];
                let errors: Vec<Cause> = errors.into_iter().flatten().collect();
                if !errors.is_empty() && subresource != Some(Subresource::Scale) {
                    return Err(self.invalid(&object, &name, &errors));
                }
                let object = self.received(object);
                self.update(&current, is_live.then_some(whole), subresource, object)
            }
            WriteAction::Apply {
                name,
                subresource,
                config,
                force,
            } => self.apply(&name, subresource, &config, force),
            WriteAction::Delete { name, options } => self.delete(&name, &options),
            WriteAction::DeleteCollection { list, options } => self.delete_collection(&list, &options),
            WriteAction::Bind {
                name,
                binding,
                resource,
            } => self.bind(&resource, &name, &binding),
            WriteAction::Evict {
                name,
                eviction,
                options,
            } => self.evict(&name, &eviction, options),
        }
    }

    fn stored_kind(&self) -> KindRef {
        self.kind.clone()
    }

    /// Returns the kind of the request.
    fn requested_kind(&self) -> KindRef {
        self.collection.kind.clone()
    }

    /// Removes repeated owner references, with a warning. `when` is its part for the time of the check.
    fn drop_repeated_owners(&mut self, object: &mut Value, when: &str) {
        if !object::field(object::field(object, "metadata"), "ownerReferences").is_array() {
            return;
        }
        let Some(owners) = object["metadata"]["ownerReferences"].as_array_mut() else {
            return;
        };
        let mut known = HashSet::new();
        let mut repeated: Vec<String> = Vec::new();
        owners.retain(|owner| {
            let is_new = known.insert(owner.clone());
            if !is_new {
                repeated.push(owner["uid"].as_str().unwrap_or_default().to_owned());
            }
            is_new
        });
        if !repeated.is_empty() {
            self.warnings.push(format!(
                ".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in 1.20+, \
                 and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
                repeated.join(", ")
            ));
        }
    }

    /// Converts the received object to the stored version.
    fn received(&mut self, object: Value) -> Value {
        if self.kind.generation == Generation::SpecAsSent {
            let stored = self.conformed(object.clone());
            self.differs = stored != object;
            return stored;
        }
        if self.requested_kind() == self.stored_kind() {
            object
        } else {
            convert::received(&self.requested_kind(), object)
        }
    }

    /// Time since 1970.
    fn time(&self) -> Duration {
        self.model.epoch + self.began
    }

    fn key(&self, name: &str) -> String {
        self.kind.key(self.collection.namespace.as_deref(), name)
    }

    fn find(&self, name: &str) -> Option<Arc<Stored>> {
        let key = self.key(name);
        self.model
            .objects(&self.kind)
            .get(key.as_str())
            .map(|object| self.model.conversions.as_kind(object, &self.kind))
    }

    fn current(&self, name: &str) -> Result<Arc<Stored>, Status> {
        self.find(name).ok_or_else(|| Status::not_found(&self.kind, name))
    }

    /// Returns the error of a custom resource of another kind.
    fn kind_error(&self, object: &Value) -> Option<Cause> {
        let kind = self.stored_kind();
        let sent = object::field(object, "kind").as_str().unwrap_or_default();
        (kind.custom && sent != kind.kind).then(|| Cause {
            reason: "FieldValueInvalid".to_owned(),
            message: format!("Invalid value: {}: must be {}", go_text::quote(sent), kind.kind),
            field: "kind".to_owned(),
        })
    }

    /// Returns the error of a custom resource after a patch that changed its version. Other requests are decoded in one version.
    fn version_error(&self, object: &Value) -> Option<Cause> {
        let kind = self.requested_kind();
        let sent = object["apiVersion"].as_str().unwrap_or_default();
        (kind.custom && sent != kind.api_version()).then(|| Cause {
            reason: "FieldValueInvalid".to_owned(),
            message: format!(
                "Invalid value: {}: must be {}",
                go_text::quote(sent),
                kind.api_version()
            ),
            field: "apiVersion".to_owned(),
        })
    }

    /// Returns the error of an invalid object. A custom resource is named by the kind that it has, which can be another one.
    fn invalid(&self, object: &Value, name: &str, errors: &[Cause]) -> Status {
        let text = |field: &str| object[field].as_str().unwrap_or_default();
        match (self.kind.custom, text("apiVersion")) {
            (false, _) | (true, "") => Status::invalid_object(&self.kind, name, errors),
            (true, api_version) => Status::invalid_sent(api_version, text("kind"), name, errors),
        }
    }

    /// Returns the namespace of the object. It must exist if namespaces are enforced.
    fn needs_namespace(&self) -> Result<Option<Arc<Stored>>, Status> {
        let Some(namespace) = self.collection.namespace.as_deref() else {
            return Ok(None);
        };
        let Some(kind) = self.model.catalog.find("", "namespaces") else {
            return Ok(None);
        };
        let found = self.model.objects(kind).get(namespace).cloned();
        let enforced = self.model.namespaces_enforced && self.has(AdmissionPlugin::NamespaceLifecycle);
        if found.is_none() && enforced {
            return Err(Status::not_found(kind, namespace));
        }
        Ok(found)
    }

    /// Checks that the namespace is not terminating.
    fn takes_content(&self, name: &str) -> Result<(), Status> {
        self.takes(&self.kind, name)
    }

    /// Does the same for a resource of another kind.
    fn takes(&self, kind: &ApiResource, name: &str) -> Result<(), Status> {
        match self.needs_namespace()? {
            Some(namespace)
                if namespace.is_terminating() && self.has(AdmissionPlugin::NamespaceLifecycle) =>
            {
                Err(Status::namespace_terminating(kind, name, namespace.name()))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Returns the object with defaults.
    fn completed(&self, mut object: Value) -> Value {
        self.filled(&mut object);
        self.conformed(object)
    }

    /// Sets defaults. Returns false if the object already had all of them, in the form of its kind.
    fn filled(&self, object: &mut Value) -> bool {
        if !object::field(object, "metadata").is_object() {
            object["metadata"] = json!({});
        }
        if self.kind.custom {
            // The struct of a built-in kind omits these.
            object::without_empty_metadata(object);
        }
        // An object converted from another version has not been decoded as its kind.
        defaults::fill(&self.kind, object, self.model.version) || self.requested_kind() != self.stored_kind()
    }

    /// Sets name, namespace and uid if the object omits them.
    fn identified(&self, mut object: Value, name: &str, uid: &str) -> Value {
        let metadata = &mut object["metadata"];
        let namespace = self.collection.namespace.as_deref();
        for (field, value) in [("name", Some(name)), ("namespace", namespace), ("uid", Some(uid))] {
            if object::field(metadata, field).as_str().is_none_or(str::is_empty)
                && let Some(value) = value
            {
                metadata[field] = value.into();
            }
        }
        object
    }

    /// Does the same for a copy, if the object omits one of them.
    fn identified_copy<'v>(&self, object: &'v Value, name: &str, uid: &str) -> Cow<'v, Value> {
        let metadata = object::field(object, "metadata");
        let has = |name: &str| !object::field(metadata, name).as_str().is_none_or(str::is_empty);
        let is_whole = has("name") && has("uid") && (self.collection.namespace.is_none() || has("namespace"));
        match is_whole {
            true => Cow::Borrowed(object),
            false => Cow::Owned(self.identified(object.clone(), name, uid)),
        }
    }

    /// Returns an empty object of the kind.
    fn nothing(&self) -> Cow<'static, Value> {
        match types::zero(&self.kind) {
            Some(zero) => Cow::Borrowed(zero),
            None => Cow::Owned(ownership::nothing()),
        }
    }

    /// Returns the object in the form of its kind. An object with wrong types, which only a script can have stored, is
    /// unchanged.
    fn conformed(&self, object: Value) -> Value {
        match types::conform(&self.kind, &object) {
            Ok(conformed) => conformed.unwrap_or(object),
            Err(why) => {
                tracing::warn!(why, "an object in the store does not fit its kind");
                object
            }
        }
    }

    /// Returns the objects of a built-in kind in the namespace of the write. Cheap if there are none.
    fn in_namespace(&self, group: &str, plural: &str) -> Vec<Arc<Stored>> {
        let kind = self.model.catalog.find(group, plural);
        let objects = kind.map(|kind| self.model.objects(kind));
        let Some(objects) = objects.filter(|objects| !objects.is_empty()) else {
            return Vec::new();
        };
        let prefix = format!("{}/", self.collection.namespace.as_deref().unwrap_or_default());
        let from = (Bound::Included(prefix.as_str()), Bound::Unbounded);
        let of_namespace = objects
            .range::<_, str>(from)
            .take_while(|(key, _)| key.starts_with(&prefix));
        of_namespace.map(|(_, object)| Arc::clone(object)).collect()
    }

    /// Writes the status of another object than the requested one, as the server itself.
    fn note_status(&mut self, current: &Arc<Stored>, status: Value) {
        let (kind, version) = (&current.kind, self.model.version);
        let live = current.json();
        let mut object = live.clone();
        object["status"] = status;
        if let Ok(Some(conformed)) = types::conform(kind, &object) {
            object = conformed;
        }
        let time = timestamp(self.time());
        Ownership::new(kind, version, SERVER, "status", time).note_update(&live, &mut object);
        let key = current.key.clone();
        let outcome = write::replace(
            kind,
            &key,
            Some((current, &live)),
            object,
            self.time(),
            String::new(),
        );
        let written = self
            .model
            .carry_out(self.now, kind, key, Some(Arc::clone(current)), outcome);
        if written.op.is_some() {
            self.written.push(written);
        }
    }

    /// Checks the size of the stored object.
    fn check_size(&self, outcome: &Outcome) -> Result<(), Status> {
        match outcome {
            Outcome::Put(object) if !self.dry_run => {
                size::refusal(&self.kind, object).map_or(Ok(()), |why| Err(Status::unexplained(why)))
            }
            Outcome::Put(_) | Outcome::Same(_) | Outcome::Gone | Outcome::Released(_) => Ok(()),
        }
    }

    /// Stores the result unless this is a dry run; returns the object for the response.
    fn commit(
        &mut self,
        key: String,
        previous: Option<&Arc<Stored>>,
        outcome: Outcome,
    ) -> Result<Bytes, Status> {
        let kind = self.stored_kind();
        let settles_later = self.settles_later && matches!(outcome, Outcome::Put(_));
        let (stored_as, outcome, shown) = self.in_storage(outcome)?;
        if self.dry_run {
            self.model.dry_runs += 1;
            let revision = previous.map_or(0, |previous| previous.revision);
            return Ok(match (outcome, previous) {
                (Outcome::Put(json) | Outcome::Released(json), _) => {
                    self.shown(&Stored::as_is(&kind, key, revision, json))
                }
                (Outcome::Same(stored), _) => self.shown(&stored),
                (Outcome::Gone, Some(last)) => self.shown(last),
                (Outcome::Gone, None) => unreachable!("only an object that is there can go"),
            });
        }
        let released = match &outcome {
            // The response has the last stored version.
            Outcome::Released(json) => Some(Stored::as_is(&kind, key.clone(), 0, json.clone())),
            Outcome::Put(_) | Outcome::Same(_) | Outcome::Gone => None,
        };
        let written = self
            .model
            .carry_out(self.now, &stored_as, key, previous.cloned(), outcome);
        let read_back = shown.map(|json| {
            let stored = &written.stored;
            let shown = Stored::new(&kind, stored.key.clone(), stored.revision, json);
            let shown = Arc::new(shown);
            self.model.conversions.keep(Arc::clone(&shown));
            shown
        });
        let shown = match (&released, &read_back) {
            (Some(released), _) => self.shown(released),
            (None, Some(read_back)) => self.shown(read_back),
            (None, None) => self.shown(&written.stored),
        };
        if settles_later {
            self.model.unsettled.insert(written.revision);
        }
        if written.op.is_some() {
            self.written.push(written);
        }
        Ok(shown)
    }

    /// Returns the object as a body in the requested representation.
    fn shown(&self, stored: &Stored) -> Bytes {
        let asked =
            (stored.kind != self.collection.kind).then(|| convert::converted(stored, &self.collection.kind));
        table::body(
            asked.as_ref().unwrap_or(stored),
            self.form,
            self.model.version,
            self.model.epoch + self.now,
        )
    }
}

fn is_terminating(object: &Value) -> bool {
    object["metadata"].get("deletionTimestamp").is_some()
}

fn finalizers(object: &Value) -> impl Iterator<Item = &str> {
    let names = object["metadata"]["finalizers"].as_array();
    names.into_iter().flatten().filter_map(Value::as_str)
}

fn remove(object: &mut Value, field: &str) {
    if let Some(object) = object.as_object_mut() {
        object.shift_remove(field);
    }
}

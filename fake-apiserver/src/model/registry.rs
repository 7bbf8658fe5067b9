//! Writes that clients ask for: which of them the store refuses, and what it answers.
//!
//! What becomes of an object is `write`'s; here is what a write needs to be allowed, and what of a request's object is
//! the server's own (status, finalizers of a namespace, the fields of another path).
//!
//! Source: apiserver `registry/generic/registry/store.go` and `registry/rest/{create,update,delete}.go`;
//! kubernetes `plugin/admission/namespace/lifecycle`; the strategies of each kind, as columns of the catalog.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};

use crate::api::write::{DeleteOptions, Propagation, Subresource, WriteAction, WriteRequest, check_name};
use crate::api::{Cause, Collection, ListRequest, Status, go_text};

use super::catalog::{Deletion, Kind};
use super::list::{FRESH_WAIT, ListOutcome};
use super::object::Stored;
use super::write::{self, Outcome};
use super::{Model, Written, naming, patch};

/// Names the server tries before it gives up finding one.
const ATTEMPTS: usize = 8;

/// Namespaces that are never deleted.
const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];

/// A write of a client, done.
#[derive(Debug)]
pub struct Done {
    /// 200, 201 or 202.
    pub status: u16,
    /// The body, with its newline.
    pub body: Bytes,
    /// What is told in `Warning` headers.
    pub warnings: Vec<String>,
    /// What changed, in order.
    pub written: Vec<Written>,
}

/// One write on its way.
struct Writer<'a> {
    model: &'a mut Model,
    now: Duration,
    request: &'a WriteRequest,
    written: Vec<Written>,
}

/// Does what `request` asks for, or refuses it. `seed` decides over generated names.
pub(super) fn write(
    model: &mut Model,
    now: Duration,
    request: &WriteRequest,
    seed: u64,
) -> Result<Done, Status> {
    let mut writer = Writer {
        model,
        now,
        request,
        written: Vec::new(),
    };
    let mut warnings = request.warnings.clone();
    let (status, body) = match &request.action {
        WriteAction::Create { object } => writer.create(object, seed)?,
        WriteAction::Update {
            name,
            subresource,
            object,
        } => writer.put(name, *subresource, object)?,
        WriteAction::Patch {
            name,
            subresource,
            patch,
            validation,
        } => {
            writer.needs_namespace()?;
            let current = writer.current(name)?;
            let (object, more) = patch::patched(writer.kind(), &current.json, patch, *validation)?;
            warnings.extend(more);
            check_name(&object, name)?;
            writer.update(&current, *subresource, &object)?
        }
        WriteAction::Delete { name, options } => writer.delete(name, options)?,
        WriteAction::DeleteCollection { list, options } => writer.delete_collection(list, options)?,
    };
    let mut body = body.to_vec();
    body.push(b'\n');
    Ok(Done {
        status,
        body: body.into(),
        warnings,
        written: writer.written,
    })
}

impl Writer<'_> {
    fn kind(&self) -> &'static Kind {
        self.request.collection.kind
    }

    fn collection(&self) -> &Collection {
        &self.request.collection
    }

    fn key(&self, name: &str) -> String {
        self.kind().key(self.collection().namespace.as_deref(), name)
    }

    fn find(&self, name: &str) -> Option<Arc<Stored>> {
        let key = self.key(name);
        let store = &self.model.resource(self.kind()).store;
        store.current().get(key.as_str()).cloned()
    }

    fn current(&self, name: &str) -> Result<Arc<Stored>, Status> {
        self.find(name)
            .ok_or_else(|| Status::not_found(self.kind(), name))
    }

    // ---- create

    fn create(&mut self, object: &Value, seed: u64) -> Result<(u16, Bytes), Status> {
        let kind = self.kind();
        let (sent, prefix) = (text(object, "name"), text(object, "generateName"));
        self.takes_content(sent)?;
        let generated = sent.is_empty() && !prefix.is_empty();
        let mut seed = seed;
        let mut next = || {
            if generated {
                naming::generate(prefix, &mut seed)
            } else {
                sent.to_owned()
            }
        };
        let mut name = next();
        self.check_new(object, &name)?;
        for _ in 1..ATTEMPTS {
            if !generated || self.find(&name).is_none() {
                break;
            }
            name = next();
        }
        match self.find(&name) {
            Some(_) if generated => return Err(Status::no_name_left(kind, &name)),
            Some(current) => {
                let mut status = Status::already_exists(kind, &name);
                if is_terminating(&current.json) {
                    status.message = format!("object is being deleted: {}", status.message);
                }
                return Err(status);
            }
            None => {}
        }
        self.create_as(&name, object)
    }

    /// Creates what was found to be legal.
    fn create_as(&mut self, name: &str, object: &Value) -> Result<(u16, Bytes), Status> {
        let (kind, key) = (self.kind(), self.key(name));
        let mut object = self.cleaned(object);
        match kind.first_status {
            None => {}
            Some("") => remove(&mut object, "status"),
            Some(first) => {
                object["status"] = serde_json::from_str(first).expect("the catalog's statuses are JSON");
            }
        }
        if kind.deletion == Deletion::WhenEmpty {
            object["spec"] = json!({ "finalizers": ["kubernetes"] });
            object["metadata"]["labels"]["kubernetes.io/metadata.name"] = name.into();
        }
        let uid = write::uid(self.model.writes, &key);
        let outcome = write::replace(kind, &key, None, &object, self.now, uid);
        Ok((201, self.commit(key, None, outcome)))
    }

    /// A new object must have a legal name, and no version.
    fn check_new(&self, object: &Value, name: &str) -> Result<(), Status> {
        let kind = self.kind();
        if name.is_empty() {
            let fault = Cause {
                reason: "FieldValueRequired".to_owned(),
                message: "Required value: name or generateName is required".to_owned(),
                field: "metadata.name".to_owned(),
            };
            return Err(Status::invalid_object(kind, "", &[fault]));
        }
        let mut faults = naming::faults(kind.names, name);
        faults.extend(self.kind_fault(object));
        if !faults.is_empty() {
            return Err(Status::invalid_object(kind, name, &faults));
        }
        match text(object, "resourceVersion").parse::<u64>() {
            Ok(version) if version != 0 => Err(Status::version_of_new_object()),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// A custom resource says its kind itself, and must say the right one.
    fn kind_fault(&self, object: &Value) -> Option<Cause> {
        let kind = self.kind();
        let sent = object["kind"].as_str().unwrap_or_default();
        (kind.custom && sent != kind.kind).then(|| Cause {
            reason: "FieldValueInvalid".to_owned(),
            message: format!("Invalid value: {}: must be {}", go_text::quote(sent), kind.kind),
            field: "kind".to_owned(),
        })
    }

    /// The namespace must be there, where it must be there at all.
    fn needs_namespace(&self) -> Result<Option<Arc<Stored>>, Status> {
        let Some(namespace) = self.collection().namespace.as_deref() else {
            return Ok(None);
        };
        let Some(kind) = self.model.catalog.find("", "namespaces") else {
            return Ok(None);
        };
        let found = self.model.resource(kind).store.current().get(namespace).cloned();
        if found.is_none() && self.model.namespaces_enforced {
            return Err(Status::not_found(kind, namespace));
        }
        Ok(found)
    }

    /// And it must not be on its way out.
    fn takes_content(&self, name: &str) -> Result<(), Status> {
        match self.needs_namespace()? {
            Some(namespace) if is_terminating(&namespace.json) => {
                let namespace = namespace.name();
                let cause = Cause {
                    reason: "NamespaceTerminating".to_owned(),
                    message: format!("namespace {namespace} is being terminated"),
                    field: "metadata.namespace".to_owned(),
                };
                let why = format!(
                    "unable to create new content in namespace {namespace} because it is being terminated"
                );
                Err(Status::forbidden(self.kind(), name, &why, vec![cause]))
            }
            Some(_) | None => Ok(()),
        }
    }

    // ---- update

    fn put(
        &mut self,
        name: &str,
        subresource: Option<Subresource>,
        object: &Value,
    ) -> Result<(u16, Bytes), Status> {
        self.needs_namespace()?;
        match self.find(name) {
            Some(current) => self.update(&current, subresource, object),
            None if self.kind().update_creates && subresource.is_none() => {
                self.takes_content(name)?;
                self.check_new(object, name)?;
                self.create_as(name, object)
            }
            None => Err(Status::not_found(self.kind(), name)),
        }
    }

    fn update(
        &mut self,
        current: &Arc<Stored>,
        subresource: Option<Subresource>,
        object: &Value,
    ) -> Result<(u16, Bytes), Status> {
        self.check_identity(current, object)?;
        let kind = self.kind();
        if let Some(fault) = self.kind_fault(object) {
            return Err(Status::invalid_object(kind, current.name(), &[fault]));
        }
        let object = self.cleaned(object);
        let manifest = match subresource {
            None => main_part(kind, &current.json, object),
            Some(Subresource::Status) => status_part(kind, &current.json, object),
            Some(Subresource::Finalize) => {
                let mut finalized = Value::clone(&current.json);
                finalized["spec"] = object["spec"].clone();
                if finalized["spec"].is_null() {
                    finalized["spec"] = json!({});
                }
                finalized
            }
        };
        let fresh: Vec<&str> = finalizers(&manifest)
            .filter(|name| !finalizers(&current.json).any(|old| old == *name))
            .collect();
        if is_terminating(&current.json) && !fresh.is_empty() {
            let shown: Vec<String> = fresh.iter().map(|name| go_text::quote(name)).collect();
            let fault = Cause {
                reason: "FieldValueForbidden".to_owned(),
                message: format!(
                    "Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers \
                     []string{{{}}}",
                    shown.join(", ")
                ),
                field: "metadata.finalizers".to_owned(),
            };
            return Err(Status::invalid_object(kind, current.name(), &[fault]));
        }
        let outcome = write::replace(
            kind,
            &current.key,
            Some(current),
            &manifest,
            self.now,
            String::new(),
        );
        Ok((200, self.commit(current.key.clone(), Some(current), outcome)))
    }

    /// Is it the object the writer thinks it is, in the version it thinks?
    fn check_identity(&self, current: &Stored, object: &Value) -> Result<(), Status> {
        let (kind, name) = (self.kind(), current.name());
        let uid = text(object, "uid");
        if !uid.is_empty() && uid != current.uid {
            let prefix = if kind.custom {
                format!("{}/", kind.group)
            } else {
                String::new()
            };
            let why = format!(
                "StorageError: invalid object, Code: 4, Key: /registry/{prefix}{}/{}, ResourceVersion: 0, \
                 AdditionalErrorMsg: Precondition failed: UID in precondition: {uid}, UID in object meta: {}",
                kind.plural, current.key, current.uid
            );
            return Err(Status::conflict(kind, name, &why));
        }
        let version = match text(object, "resourceVersion") {
            "" => 0,
            sent => go_text::parse_uint(sent).map_err(|error| Status::unreadable_version(&error))?,
        };
        if version == 0 && !kind.unconditional_update {
            return Err(Status::version_required(kind, name, self.model.version));
        }
        if version != 0 && version != current.revision {
            return Err(Status::conflict(kind, name, MODIFIED));
        }
        Ok(())
    }

    /// The object without what a writer cannot say.
    fn cleaned(&self, object: &Value) -> Value {
        let mut object = object.clone();
        if !object["metadata"].is_object() {
            object["metadata"] = json!({});
        }
        remove(&mut object["metadata"], "managedFields");
        if !self.kind().custom {
            drop_nulls(&mut object);
        }
        object
    }

    // ---- delete

    fn delete(&mut self, name: &str, options: &DeleteOptions) -> Result<(u16, Bytes), Status> {
        let kind = self.kind();
        if kind.deletion == Deletion::WhenEmpty && IMMORTAL.contains(&name) {
            return Err(Status::forbidden(
                kind,
                name,
                "this namespace may not be deleted",
                Vec::new(),
            ));
        }
        let current = self.current(name)?;
        check_preconditions(kind, &current, options)?;
        let key = current.key.clone();
        let mut marked = Value::clone(&current.json);
        let terminating = is_terminating(&marked);
        propagate(&mut marked, options);
        let has_finalizers = finalizers(&marked).next().is_some();
        let waits = match kind.deletion {
            Deletion::WhenEmpty => marked.pointer("/spec/finalizers/0").is_some(),
            Deletion::AfterGrace | Deletion::AtOnce => false,
        };
        let grace = grace_period(kind, &marked, options);
        let graceful = kind.deletion == Deletion::AfterGrace;
        let pending = if graceful {
            grace > 0 || has_finalizers
        } else {
            has_finalizers || waits
        };
        let changed = if terminating {
            // A deletion that is under way can be hastened, and nothing else.
            let before = marked
                .pointer("/metadata/deletionGracePeriodSeconds")
                .and_then(Value::as_i64);
            graceful && options.grace_period_seconds.is_some() && before.is_some_and(|before| grace < before)
        } else {
            pending || graceful
        };
        let mut last = current;
        if changed {
            write::mark_deleted(&mut marked, self.now, (!waits).then_some(grace), !terminating);
            if waits {
                marked["status"]["phase"] = "Terminating".into();
            }
            let body = self.commit(key.clone(), Some(&last), Outcome::Put(marked));
            if pending || self.request.dry_run {
                return Ok((pending_status(pending, options), body));
            }
            last = self.find(name).unwrap_or(last);
        } else if pending {
            let body = self.commit(key, Some(&last), Outcome::Same(Arc::clone(&last)));
            return Ok((pending_status(true, options), body));
        }
        let uid = last.uid.clone();
        let body = self.commit(key, Some(&last), Outcome::Gone);
        Ok((
            200,
            if kind.deletion_shows_object {
                body
            } else {
                Status::deleted(kind, name, &uid).into()
            },
        ))
    }

    fn delete_collection(
        &mut self,
        list: &ListRequest,
        options: &DeleteOptions,
    ) -> Result<(u16, Bytes), Status> {
        // A cache that lags is not waited for: what it waits for could only come from here.
        let page = match self.model.list(self.now + FRESH_WAIT, self.now, list) {
            ListOutcome::Page(page) => page,
            ListOutcome::Refused(status) => return Err(status),
            ListOutcome::Wait { .. } => unreachable!("the wait is over"),
        };
        for item in &page.items {
            if self.find(item.name()).is_some() {
                self.delete(item.name(), options)?;
            }
        }
        let mut body = page.encode().to_vec();
        body.truncate(body.trim_ascii_end().len());
        Ok((200, body.into()))
    }

    // ---- all of them

    /// Stores what came of it, unless that is only asked for; gives the object as the writer is shown it.
    fn commit(&mut self, key: String, previous: Option<&Arc<Stored>>, outcome: Outcome) -> Bytes {
        let (kind, form) = (self.kind(), self.request.form);
        if self.request.dry_run {
            let revision = previous.map_or(0, |previous| previous.revision);
            return match (outcome, previous) {
                (Outcome::Put(mut json) | Outcome::Released(mut json), _) => {
                    if let (None, Some(metadata)) = (previous, json["metadata"].as_object_mut()) {
                        metadata.shift_remove("resourceVersion");
                    }
                    Stored::as_is(kind, key, revision, json).encoded(form).clone()
                }
                (Outcome::Same(stored), _) => stored.encoded(form).clone(),
                (Outcome::Gone, Some(last)) => last.encoded(form).clone(),
                (Outcome::Gone, None) => unreachable!("only an object that is there can go"),
            };
        }
        let released = match &outcome {
            // Its writer is shown it under the version it last had.
            Outcome::Released(json) => Some(Stored::as_is(kind, key.clone(), 0, json.clone())),
            Outcome::Put(_) | Outcome::Same(_) | Outcome::Gone => None,
        };
        let written = self.model.carry_out(kind, key, previous.cloned(), outcome);
        let shown = match &released {
            Some(released) => released.encoded(form).clone(),
            None => written.stored.encoded(form).clone(),
        };
        if written.op.is_some() {
            self.written.push(written);
        }
        shown
    }
}

const MODIFIED: &str =
    "the object has been modified; please apply your changes to the latest version and try again";

/// What an update of an object itself may change: not its status, where that has a path of its own.
fn main_part(kind: &Kind, current: &Value, mut object: Value) -> Value {
    if kind.status {
        match current.get("status") {
            Some(status) => object["status"] = status.clone(),
            None => remove(&mut object, "status"),
        }
    }
    if kind.deletion == Deletion::WhenEmpty {
        object["spec"] = current["spec"].clone();
        object["metadata"]["labels"]["kubernetes.io/metadata.name"] = current["metadata"]["name"].clone();
    }
    object
}

/// What an update of the status may change: only that; of a built-in kind the metadata too.
fn status_part(kind: &Kind, current: &Value, mut object: Value) -> Value {
    let mut changed = current.clone();
    match object.get_mut("status").map(Value::take) {
        Some(status) => changed["status"] = status,
        None => remove(&mut changed, "status"),
    }
    if !kind.custom {
        changed["metadata"] = object["metadata"].take();
    }
    changed
}

fn check_preconditions(kind: &Kind, current: &Stored, options: &DeleteOptions) -> Result<(), Status> {
    let name = current.name();
    if let Some(uid) = options.uid.as_ref().filter(|uid| **uid != current.uid) {
        let why = format!(
            "the UID in the precondition ({uid}) does not match the UID in record ({}). The object might have been \
             deleted and then recreated",
            current.uid
        );
        return Err(Status::precondition_failed(kind, name, &why));
    }
    let revision = current.revision.to_string();
    if let Some(wanted) = options
        .resource_version
        .as_ref()
        .filter(|wanted| **wanted != revision)
    {
        let why = format!(
            "the ResourceVersion in the precondition ({wanted}) does not match the ResourceVersion in record \
             ({revision}). The object might have been modified"
        );
        return Err(Status::precondition_failed(kind, name, &why));
    }
    Ok(())
}

/// The finalizers that make a garbage collector see to the dependents.
fn propagate(object: &mut Value, options: &DeleteOptions) {
    let Some(propagation) = options.propagation else {
        return;
    };
    let mut names: Vec<String> = finalizers(object)
        .filter(|name| !matches!(*name, "orphan" | "foregroundDeletion"))
        .map(str::to_owned)
        .collect();
    match propagation {
        Propagation::Foreground => names.push("foregroundDeletion".to_owned()),
        Propagation::Orphan => names.push("orphan".to_owned()),
        Propagation::Background => {}
    }
    object["metadata"]["finalizers"] = names.into();
}

/// Seconds between the deletion and the moment the object may go.
fn grace_period(kind: &Kind, object: &Value, options: &DeleteOptions) -> i64 {
    if kind.deletion != Deletion::AfterGrace {
        return 0;
    }
    let seconds = options.grace_period_seconds.or_else(|| {
        object
            .pointer("/spec/terminationGracePeriodSeconds")
            .and_then(Value::as_i64)
    });
    let placed = object
        .pointer("/spec/nodeName")
        .and_then(Value::as_str)
        .is_some_and(|node| !node.is_empty());
    let over = matches!(
        object.pointer("/status/phase").and_then(Value::as_str),
        Some("Succeeded" | "Failed")
    );
    // Clusters default the period to 30 s when a pod is created; this store keeps what was sent.
    match seconds.unwrap_or(30) {
        _ if !placed || over => 0,
        negative if negative < 0 => 1,
        seconds => seconds,
    }
}

fn pending_status(pending: bool, options: &DeleteOptions) -> u16 {
    if pending && options.accepted_only {
        202
    } else {
        200
    }
}

fn is_terminating(object: &Value) -> bool {
    object["metadata"].get("deletionTimestamp").is_some()
}

fn finalizers(object: &Value) -> impl Iterator<Item = &str> {
    let names = object.pointer("/metadata/finalizers").and_then(Value::as_array);
    names.into_iter().flatten().filter_map(Value::as_str)
}

fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object["metadata"][field].as_str().unwrap_or_default()
}

fn remove(object: &mut Value, field: &str) {
    if let Some(object) = object.as_object_mut() {
        object.shift_remove(field);
    }
}

/// Typed fields have no null: it is the same as nothing.
fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

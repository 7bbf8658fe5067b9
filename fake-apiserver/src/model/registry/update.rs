//! Updates: the fields that a write can change, and its preconditions.
//!
//! Source: apiserver `registry/rest/update.go` and `registry/generic/registry/store.go`.

use std::collections::HashSet;
use std::sync::Arc;

use apimachinery::go_text;
use apimachinery::kind::{Deletion, Generation, Text};
use apimachinery::object::Stored;
use apimachinery::status::{Cause, Status};
use apimachinery::write::Subresource;
use builtin_kinds::crd::Definition;
use builtin_kinds::{admission_policy, advice, convert, crd, ownership, types, validation};
use bytes::Bytes;
use serde_json::Value;

use super::{AFTER_MUTATION, Writer, finalizers, is_terminating, parts, remove, text};
use crate::api::write::check_namespace;
use crate::model::{Model, write};

const MODIFIED: &str =
    "the object has been modified; please apply your changes to the latest version and try again";

/// Managed fields of an object that replaces another one.
#[derive(Debug, Clone)]
pub(super) enum Owners {
    /// Those of the request.
    Said,
    /// The writer manages what changes.
    Noted,
    /// The writer of its Scale manages the replicas at this pointer.
    NotedOfScale(Text),
}

impl Writer<'_> {
    pub(super) fn put(
        &mut self,
        name: &str,
        subresource: Option<Subresource>,
        object: Value,
    ) -> Result<(u16, Bytes), Status> {
        self.needs_namespace()?;
        match self.find(name) {
            Some(current) => {
                self.check_uid(name, &current.uid, &object)?;
                self.update(&current, None, subresource, object)
            }
            // The store of the status has the strategy of the kind.
            None if self.kind.update_creates && matches!(subresource, None | Some(Subresource::Status)) => {
                self.check_uid(name, "", &object)?;
                self.takes_content(name)?;
                // The version is read like that of an update, and is then of no importance.
                requested_version(&object)?;
                self.upserts = true;
                self.created_through = subresource;
                self.create_as(name, object)
            }
            None => Err(Status::not_found(&self.kind, name)),
        }
    }

    /// Server-side apply: creates the object, or merges the applied configuration into it.
    pub(super) fn apply(
        &mut self,
        name: &str,
        subresource: Option<Subresource>,
        config: &Value,
        force: bool,
    ) -> Result<(u16, Bytes), Status> {
        if subresource == Some(Subresource::Scale) {
            self.needs_namespace()?;
            return self.apply_scale(name, config, force);
        }
        match self.find(name) {
            Some(current) => {
                let live = current.json();
                let object = self.applied(subresource, &live, config, force)?;
                self.check_applied(config, name, false)?;
                self.replace((&current, live), subresource, object, Owners::Said)
            }
            None if subresource.is_none() => {
                let nothing = self.nothing();
                let object = self.applied(None, &nothing, config, force)?;
                let uid = text(config, "uid");
                if !uid.is_empty() {
                    let why = format!(
                        "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
                    );
                    return Err(Status::conflict(&self.kind, name, &why));
                }
                self.check_applied(config, name, true)?;
                self.takes_content(name)?;
                requested_version(&object)?;
                self.upserts = true;
                let object = self.completed(object);
                self.create_owned(name, object)
            }
            None => {
                self.needs_namespace()?;
                Err(Status::not_found(&self.kind, name))
            }
        }
    }

    /// Checks name and namespace of the applied configuration against the path. It may omit them; the name only if the object
    /// exists, because the merged object is checked.
    pub(super) fn check_applied(&self, config: &Value, name: &str, creates: bool) -> Result<(), Status> {
        check_namespace(config, &self.collection)?;
        let sent = config.pointer("/metadata/name");
        match sent.and_then(Value::as_str).unwrap_or_default() {
            _ if sent.is_none() && !creates => Ok(()),
            sent if sent == name => Ok(()),
            "" => Err(Status::bad_request(format!(
                "the name of the object ({name} based on URL) was undeterminable: name must be provided"
            ))),
            sent => Err(Status::bad_request(format!(
                "the name of the object ({sent}) does not match the name on the URL ({name})"
            ))),
        }
    }

    /// Replaces `current`, whose tree is `live` if it was decoded already.
    pub(super) fn update(
        &mut self,
        current: &Arc<Stored>,
        live: Option<Value>,
        subresource: Option<Subresource>,
        object: Value,
    ) -> Result<(u16, Bytes), Status> {
        if subresource == Some(Subresource::Scale) {
            return self.rescale(current, &object);
        }
        let live = live.unwrap_or_else(|| current.json());
        self.replace((current, live), subresource, object, Owners::Noted)
    }

    /// Replaces an object, which comes with its tree.
    #[expect(
        clippy::too_many_lines,
        reason = "the phases of an update, in the order of store.go"
    )]
    pub(super) fn replace(
        &mut self,
        (current, stored): (&Arc<Stored>, Value),
        subresource: Option<Subresource>,
        mut object: Value,
        owners: Owners,
    ) -> Result<(u16, Bytes), Status> {
        self.check_escalation(&object, Some(&stored), current.name())?;
        self.check_version(current, &object)?;
        let kind = self.stored_kind();
        if let Some(error) = self.kind_error(&object) {
            return Err(self.invalid(&object, current.name(), &[error]));
        }
        let is_applied = matches!(owners, Owners::Said);
        let sent_owners = ownership::take(&mut object);
        let mut object = self.completed(object);
        // The managers are those of the request, whatever the strategy keeps of it.
        let is_noted_first = kind.custom
            || matches!(
                subresource,
                Some(Subresource::Status | Subresource::EphemeralContainers | Subresource::Resize)
            );
        let owned = match &owners {
            Owners::Said => Some(sent_owners.clone()),
            Owners::Noted if is_noted_first => {
                self.note(subresource, &stored, &mut object, sent_owners.as_ref())?;
                Some(ownership::take(&mut object))
            }
            Owners::Noted | Owners::NotedOfScale(_) => None,
        };
        let mut manifest = parts::written(&kind, subresource, &stored, object);
        if subresource == Some(Subresource::Status) {
            // Labels are defaulted from the template.
            manifest = match stored.pointer("/spec/template") {
                Some(_) => self.completed(manifest),
                None => self.conformed(manifest),
            };
        }
        if kind.defines && subresource.is_none() {
            manifest = crd::prepared(manifest, Some(&stored));
        }
        match (owned, owners) {
            (Some(owned), _) => ownership::put(&mut manifest, owned),
            (None, Owners::NotedOfScale(replicas)) => {
                let scale = self.ownership(&kind, &self.manager, Some(Subresource::Scale));
                scale.note_scale(&stored, &mut manifest, &replicas);
            }
            (None, _) => self.note(subresource, &stored, &mut manifest, sent_owners.as_ref())?,
        }
        let mutating = self.mutating();
        if mutating {
            self.mutate_changed(&mut manifest, &stored, current.name(), subresource)?;
        }
        self.drop_repeated_owners(&mut manifest, AFTER_MUTATION);
        let part_of_whole = matches!(
            subresource,
            None | Some(Subresource::EphemeralContainers | Subresource::Resize)
        );
        if part_of_whole {
            let is_admitted = self.admit_update(&stored, &mut manifest)?;
            // What was completed and then left as it is has the form of its kind already.
            let is_mixed = subresource.is_some() || kind.status || kind.deletion == Deletion::WhenEmpty;
            if is_admitted || is_mixed || mutating || kind.defines {
                manifest = self.conformed(manifest);
            }
        }
        let mut errors = validation::validate_update(
            &kind,
            &self.identified_copy(&manifest, current.name(), &current.uid),
            &self.completed(stored.clone()),
            subresource,
            self.model.version,
        );
        errors.extend(crd::validate_update(
            &kind,
            &manifest,
            &stored,
            subresource,
            self.model.version,
        ));
        if subresource.is_none() {
            errors.extend(admission_policy::validate(&kind, &manifest));
        }
        let found = crd::evaluate_rules(&kind, &manifest, Some(&stored), &errors);
        self.warnings.extend(found.warnings);
        errors.extend(found.causes);
        if !errors.is_empty() {
            return Err(Status::invalid_object(&kind, current.name(), &errors));
        }
        if subresource.is_none() {
            self.warnings
                .extend(advice::of_changed(&kind, &manifest, &stored, self.model.version));
        }
        let known: HashSet<&str> = finalizers(&stored).collect();
        let fresh: Vec<&str> = finalizers(&manifest)
            .filter(|name| !known.contains(name))
            .collect();
        if is_terminating(&stored) && !fresh.is_empty() {
            let shown: Vec<String> = fresh.iter().map(|name| go_text::quote(name)).collect();
            let error = Cause {
                reason: "FieldValueForbidden".to_owned(),
                message: format!(
                    "Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers \
                     []string{{{}}}",
                    shown.join(", ")
                ),
                field: "metadata.finalizers".to_owned(),
            };
            return Err(Status::invalid_object(&kind, current.name(), &[error]));
        }
        self.admit_by_policies((Some(&manifest), Some(&stored)), current.name(), subresource)?;
        self.validate_changed_by_hooks(&manifest, (current, &stored), subresource)?;
        // An update of a pod cannot change limited fields.
        if kind.plural != "pods" || subresource.is_some() {
            self.keep_to_limits(&manifest, current.name(), subresource)?;
        }
        if subresource == Some(Subresource::Resize) {
            self.fits_node(&manifest, &stored, current.name())?;
        }
        self.charge(&manifest, Some(&stored), current.name(), subresource)?;
        if let Some(definition) = Definition::of(&kind) {
            if is_applied || self.mutated {
                // It is read back as any other.
                let unknown = definition.receive(&mut manifest);
                self.has_unread |= !unknown.is_empty();
                // What is not stored is counted by the generation all the same.
                self.differs = unknown.iter().any(|path| !kind.status || !is_of_status(path));
            }
            self.settles_later = self.has_unread && definition.storage.is_none();
            definition.store(&mut manifest);
        }
        types::drop_empty(&kind, &mut manifest);
        let unread = self.has_unread.then(|| manifest.clone());
        let mut outcome = write::replace(
            &kind,
            &current.key,
            Some((current, &stored)),
            manifest,
            self.time(),
            String::new(),
        );
        if subresource == Some(Subresource::Status)
            && kind.generation == Generation::SpecAndAnnotations
            && let write::Outcome::Put(object) = &mut outcome
        {
            // Annotations that are written through it are not counted.
            object["metadata"]["generation"] = stored["metadata"]["generation"].clone();
        }
        if self.differs {
            outcome = write::counted(current, outcome);
        }
        if let write::Outcome::Same(_) = outcome {
            let is_unsettled = self.model.is_unsettled(current);
            let again = match &unread {
                // The times of the managers are kept only if nothing differs before it is stored.
                Some(written) => {
                    let mut object = stored.clone();
                    ownership::copy(written, &mut object);
                    (object != stored || self.settles_later != is_unsettled).then_some(object)
                }
                None => (self.loses_fields(current) || is_unsettled).then_some(stored),
            };
            if let Some(object) = again {
                outcome = write::Outcome::Put(object);
            }
        }
        self.check_size(&outcome)?;
        Ok((200, self.commit(current.key.clone(), Some(current), outcome)?))
    }

    /// Returns whether a custom resource has fields in the version in which it was written that the version of this write does
    /// not have: a write that changes nothing drops them.
    fn loses_fields(&self, current: &Stored) -> bool {
        let Some(stored) = self.model.objects(&self.kind).get(current.key.as_str()) else {
            return false;
        };
        if !self.kind.custom || stored.kind == self.kind || Model::may_convert(&self.kind) {
            return false;
        }
        let fields = |object: &Stored| {
            let mut json = object.json();
            remove(&mut json, "apiVersion");
            json
        };
        fields(&convert::converted(current, &stored.kind)) != fields(stored)
    }

    /// Checks that the uid in the object is that of the stored one; empty: there is none. A patch that changes it is rejected
    /// later.
    pub(super) fn check_uid(&self, name: &str, stored: &str, object: &Value) -> Result<(), Status> {
        let kind = &self.kind;
        let uid = text(object, "uid");
        if !uid.is_empty() && uid != stored {
            let prefix = if kind.custom {
                format!("{}/", kind.group)
            } else {
                String::new()
            };
            let why = format!(
                "StorageError: invalid object, Code: 4, Key: /registry/{prefix}{}/{}, ResourceVersion: 0, \
                 AdditionalErrorMsg: Precondition failed: UID in precondition: {uid}, UID in object meta: {stored}",
                kind.plural,
                self.key(name),
            );
            return Err(Status::conflict(kind, name, &why));
        }
        Ok(())
    }

    /// Checks the resourceVersion in the request.
    pub(super) fn check_version(&self, current: &Stored, object: &Value) -> Result<(), Status> {
        let (kind, name) = (&self.kind, current.name());
        let version = requested_version(object)?;
        if version == 0 && !kind.unconditional_update {
            return Err(Status::version_required(kind, name));
        }
        if version != 0 && version != current.revision {
            return Err(Status::conflict(kind, name, MODIFIED));
        }
        Ok(())
    }
}

/// Returns whether this is the path of the status, or of a part of it.
fn is_of_status(path: &str) -> bool {
    let rest = path.strip_prefix("status");
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// Returns the resourceVersion of an object; 0: it has none.
///
/// # Errors
///
/// 500 if it is no number.
fn requested_version(object: &Value) -> Result<u64, Status> {
    match text(object, "resourceVersion") {
        "" => Ok(0),
        sent => go_text::parse_uint(sent).map_err(|error| Status::unreadable_version(&error)),
    }
}

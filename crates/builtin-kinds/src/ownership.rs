//! Field management (`metadata.managedFields`): tracking of the managers at every write, and server-side apply.
//!
//! ```text
//! Ownership   what a write does to the managers: which entries it starts from, which fields are tracked, times, limits
//!   owners    entries on the wire           set      sets of field paths, FieldsV1
//!   update    the algorithm, by versions    values   typed values: field sets, comparison, merge, removal
//!   types     types, read from schemas      typed    check of an applied configuration
//! ```
//! It must not know the store: it is given the old and the new object, and how objects are converted.
//!
//! Source: "Server-Side Apply" and KEP-555; structured-merge-diff v6 `merge`, `typed` and `fieldpath`; apimachinery
//! `util/managedfields/internal`, whose managers are the steps of [`Ownership::note_write`] and [`Ownership::apply`].

use apimachinery::Version;
use apimachinery::kind::{ApiResource, KindRef};
use apimachinery::object::{field, field_mut, is_same, metadata_text, remove_field};
use apimachinery::status::{Cause, Status};
use serde_json::{Map, Value};

use super::schema::Schema;
use super::types as structs;
use crate::crd::Definition;

mod last_applied;
mod owners;
mod scale;
mod set;
mod typed;
mod types;
mod update;
mod values;

use owners::{Operation, Owner};
use set::Fields;
use types::Type;
use update::{Failure, Updater};
use values::Changes;

/// Manager of the existing fields when an object without managers is first applied to (`internal/skipnonapplied.go`).
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// The versions of a kind.
pub trait Versions {
    /// Returns the kind in this API version; `None`: there is none.
    fn kind(&self, api_version: &str) -> Option<KindRef>;

    /// Converts an object between two versions of its kind.
    ///
    /// # Errors
    ///
    /// The conversion fails.
    fn convert(&mut self, object: &Value, from: &ApiResource, to: &ApiResource) -> Result<Value, Status>;
}

/// A kind with one version.
#[derive(Debug)]
pub struct OneVersion;

impl Versions for OneVersion {
    fn kind(&self, _api_version: &str) -> Option<KindRef> {
        None
    }

    fn convert(&mut self, object: &Value, _from: &ApiResource, _to: &ApiResource) -> Result<Value, Status> {
        Ok(object.clone())
    }
}

/// Field management for the writes of one manager to one kind.
pub struct Ownership<'a> {
    kind: &'a ApiResource,
    schema: Option<&'a Schema>,
    manager: &'a str,
    /// Subresource such as `status` or `scale`; empty for the object itself.
    subresource: &'a str,
    /// RFC 3339.
    now: String,
    version: Version,
}

/// Returns the schema of a kind; `None`: it has none.
fn schema_of(kind: &ApiResource, version: Version) -> Option<&Schema> {
    match Definition::of(kind) {
        Some(definition) => Some(definition.typed(version)),
        None if kind.custom => None,
        None => Schema::of_builtin(kind, version),
    }
}

impl<'a> Ownership<'a> {
    /// Returns the field management for a write by `manager`.
    pub fn new(
        kind: &'a ApiResource,
        version: Version,
        manager: &'a str,
        subresource: &'a str,
        now: String,
    ) -> Self {
        Self {
            kind,
            schema: schema_of(kind, version),
            manager,
            subresource,
            now,
            version,
        }
    }

    /// Sets the managers in `object`, which replaces `live`; those in `object` are ignored, and the kind has one version.
    pub fn note_update(&self, live: &Value, object: &mut Value) {
        // Without other versions nothing is converted, and nothing fails.
        if let Err(why) = self.note_write(live, object, None, &mut OneVersion) {
            debug_assert!(false, "{}", why.message);
        }
    }

    /// Sets the managers in `object`, which replaces `live`. `sent` are the managed fields of the request, which a client can
    /// change or remove. An object that was stored without managers gets none by an update (`internal/skipnonapplied.go`).
    ///
    /// # Errors
    ///
    /// The object cannot be converted to the version of a manager. It has the managers of `live` then, or before 1.37 none.
    pub fn note_write(
        &self,
        live: &Value,
        object: &mut Value,
        sent: Option<&Value>,
        versions: &mut dyn Versions,
    ) -> Result<(), Status> {
        let owners = self.starting(live, sent);
        if owners.is_empty() && is_stored(live) {
            without(object);
            return Ok(());
        }
        match self.updated(live, object, owners, versions) {
            Ok(owners) => {
                owners::write(object, owners);
                Ok(())
            }
            Err(why) => {
                if self.version >= Version::V1_37 {
                    copy(live, object);
                } else {
                    without(object);
                }
                Err(why)
            }
        }
    }

    /// Returns the managers from which a write starts: those of the request, if it has valid ones. A request to a subresource
    /// cannot change them.
    fn starting(&self, live: &Value, sent: Option<&Value>) -> Vec<Owner> {
        match sent.filter(|_| self.subresource.is_empty()) {
            // The empty list of a custom resource is left out when its metadata is decoded.
            Some(Value::Array(sent)) if sent.is_empty() && self.kind.custom => owners::read(live),
            Some(sent) if is_reset(sent) => Vec::new(),
            Some(sent) => {
                let owners = owners::decode(sent).filter(|owners| !owners.is_empty());
                owners.unwrap_or_else(|| owners::read(live))
            }
            None => owners::read(live),
        }
    }

    /// Returns the managers after an update.
    fn updated(
        &self,
        live: &Value,
        object: &Value,
        mut owners: Vec<Owner>,
        versions: &mut dyn Versions,
    ) -> Result<Vec<Owner>, Status> {
        if self.kind.custom {
            for (what, object) in [("new", object), ("live", live)] {
                typed::check(self.root(), object, true).map_err(|why| {
                    let named = self.named(object);
                    let why = typed::joined(&why);
                    Status::unexplained(format!(
                        "failed to convert {what} object ({named}) to smd typed: {why}"
                    ))
                })?;
            }
        }
        let mut updater = Updater {
            ownership: self,
            versions,
        };
        let written = updater
            .update(live, object, &mut owners)
            .map_err(|failure| match failure {
                Failure::Refused(status) => status,
                Failure::Conflict(conflicts) => conflict(conflicts),
            })?;
        let written = stripped(written);
        if !written.is_empty() {
            let own = self.owner(Operation::Update, written);
            match owners.iter_mut().find(|owner| owner.identity() == own.identity()) {
                Some(there) => {
                    there.fields.add(own.fields);
                    there.time = Some(self.now.clone());
                }
                None => owners.push(Owner {
                    time: Some(self.now.clone()),
                    ..own
                }),
            }
        }
        owners.retain(|owner| !owner.fields.is_empty());
        owners::cap(&mut owners);
        Ok(owners)
    }

    /// Checks that the fields of an object to be applied are those of its kind.
    ///
    /// # Errors
    ///
    /// 500.
    pub fn check(&self, config: &Value) -> Result<(), Status> {
        typed::check(self.root(), config, false).map_err(|why| self.untyped("patch", config, &why))
    }

    /// Applies `config` to `live`. Returns the object with its managers.
    ///
    /// # Errors
    ///
    /// 409 for a conflict with other managers, unless `force` is set; 500 if it is not an object of the kind, or if the object
    /// cannot be converted to the version of a manager.
    pub fn apply(
        &self,
        live: &Value,
        config: &Value,
        force: bool,
        versions: &mut dyn Versions,
    ) -> Result<Value, Status> {
        let mut owners = owners::read(live);
        if owners.is_empty() && is_stored(live) {
            owners = self.before_first_apply(live)?;
        }
        self.check(config)?;
        if self.kind.custom {
            typed::check(self.root(), live, true).map_err(|why| self.untyped("live", live, &why))?;
        }
        let mut updater = Updater {
            ownership: self,
            versions,
        };
        let mut after = owners.clone();
        let mut object = match updater.apply(live, config, &mut after, force) {
            Ok(object) => object,
            Err(Failure::Refused(status)) => return Err(status),
            Err(Failure::Conflict(mut conflicts)) => {
                let Some(given_up) = self.given_up(live) else {
                    return Err(conflict(conflicts));
                };
                for (_, fields) in &mut conflicts {
                    fields.subtract(&given_up);
                }
                conflicts.retain(|(_, fields)| !fields.is_empty());
                if !conflicts.is_empty() {
                    return Err(conflict(conflicts));
                }
                after = owners;
                match updater.apply(live, config, &mut after, true) {
                    Ok(object) => object,
                    Err(Failure::Refused(status)) => return Err(status),
                    Err(Failure::Conflict(conflicts)) => return Err(conflict(conflicts)),
                }
            }
        };
        let changed = !values::same(live, &object);
        let own = self.owner(Operation::Apply, Fields::default());
        if let Some(own) = after.iter_mut().find(|owner| owner.identity() == own.identity()) {
            own.fields = stripped(std::mem::take(&mut own.fields));
            if changed {
                own.time = Some(self.now.clone());
            }
        }
        self.keep_last_applied(config, &mut object);
        owners::write(&mut object, after);
        Ok(object)
    }

    /// Returns `live` with the fields of `config`, and no managers changed: what a mutating admission policy applies.
    ///
    /// # Errors
    /// A field that the kind does not have, or a part that can only be replaced as a whole, in the words of apiserver
    /// (`policy/mutating/patch/smd.go`).
    pub fn merged(&self, live: &Value, config: &Value) -> Result<Value, String> {
        typed::check(self.root(), config, false).map_err(|why| {
            let why = typed::joined(&why);
            format!("failed to convert patch object to typed object: {why}")
        })?;
        let whole = typed::whole_parts(self.root(), config);
        if !whole.is_empty() {
            return Err(format!(
                "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {}",
                whole.join(", ")
            ));
        }
        Ok(values::merge(self.root(), live, config))
    }

    /// Returns the managers of an object that had none before the apply.
    fn before_first_apply(&self, live: &Value) -> Result<Vec<Owner>, Status> {
        let since = Self::new(
            self.kind,
            self.version,
            BEFORE_FIRST_APPLY,
            self.subresource,
            self.now.clone(),
        );
        let nothing = nothing();
        let zero = structs::zero(self.kind).unwrap_or(&nothing);
        since
            .updated(zero, live, Vec::new(), &mut OneVersion)
            .map_err(|mut why| {
                why.message = format!("failed to create manager for existing fields: {}", why.message);
                why
            })
    }

    /// Type of the objects of the request.
    fn root(&self) -> Type<'a> {
        Type::of(self.schema)
    }

    /// Type of the objects of a kind; `None`: that of the request.
    fn type_of<'k>(&self, kind: Option<&'k KindRef>) -> Type<'k>
    where
        'a: 'k,
    {
        kind.map_or(self.root(), |kind| Type::of(schema_of(kind, self.version)))
    }

    fn api_version(&self) -> String {
        self.kind.api_version()
    }

    fn is_own_version(&self, api_version: &str) -> bool {
        let (group, version) = (&*self.kind.group, &*self.kind.version);
        match api_version.rsplit_once('/') {
            Some(parts) => parts == (group, version),
            None => group.is_empty() && api_version == version,
        }
    }

    /// Returns the error of a conversion to a version that the kind does not have. `None`: it is skipped, as that of a
    /// built-in kind.
    fn missing(&self, api_version: &str) -> Option<Status> {
        let group = api_version.rsplit_once('/').map_or("", |(group, _)| group);
        let kind = self.kind;
        let why = if group == kind.group {
            format!("request to convert CR to an invalid group/version: {api_version}")
        } else {
            format!(
                "{}, Kind={} is unstructured and is not suitable for converting to \"{api_version}\"",
                kind.api_version(),
                kind.kind
            )
        };
        kind.custom.then(|| Status::unexplained(why))
    }

    /// Returns the tracked differences of two objects.
    fn changes(&self, of: Type<'_>, live: &Value, object: &Value) -> Changes {
        let changes = values::compare(of, live, object);
        Changes {
            written: self.written_here(changes.written),
            removed: self.written_here(changes.removed),
        }
    }

    /// Removes the fields that this path does not write (`GetResetFields` of the strategies).
    fn written_here(&self, mut fields: Fields) -> Fields {
        if self.subresource != "status" {
            fields.retain_fields(|field| field != "status" || !self.kind.status);
            return fields;
        }
        // The metadata of a custom resource does not change through it.
        fields.retain_fields(|field| field == "status" || field == "metadata" && !self.kind.custom);
        let kept = kept_by_status(self.kind);
        fields.change_field("metadata", |metadata| {
            metadata.retain_fields(|field| !kept.contains(&field));
        });
        fields
    }

    /// Returns the entry of this manager for an applied configuration with these fields.
    fn own_apply(&self, fields: Fields) -> Owner {
        self.owner(Operation::Apply, self.written_here(fields))
    }

    fn owner(&self, operation: Operation, fields: Fields) -> Owner {
        Owner {
            manager: self.manager.to_owned(),
            operation,
            api_version: self.kind.api_version(),
            subresource: self.subresource.to_owned(),
            time: None,
            fields,
        }
    }

    fn untyped(&self, what: &str, object: &Value, why: &[String]) -> Status {
        let (named, why) = (self.named(object), typed::joined(why));
        Status::unexplained(format!("failed to create typed {what} object ({named}): {why}"))
    }

    /// Returns namespace, name and kind of an object as in errors.
    fn named(&self, object: &Value) -> String {
        let (group, version, kind) = (&self.kind.group, &self.kind.version, &self.kind.kind);
        format!(
            "{}/{}; {group}/{version}, Kind={kind}",
            metadata_text(object, "namespace"),
            metadata_text(object, "name")
        )
    }
}

/// Returns the fields of the metadata that a write through the status of a built-in kind does not change.
///
/// Source: `GetResetFields` and `PrepareForUpdate` of the status strategies in `pkg/registry` of kube-apiserver.
pub fn kept_by_status(kind: &ApiResource) -> &'static [&'static str] {
    match structs::of(kind).map(|known| known.name) {
        Some("core/v1.Pod") => &["ownerReferences"],
        Some("apps/v1.Deployment") => &["labels"],
        Some(_) | None => &[],
    }
}

/// Fields of the metadata that are set by the server, and have no manager.
const UNTRACKED: [&str; 11] = [
    "name",
    "namespace",
    "creationTimestamp",
    "selfLink",
    "uid",
    "clusterName",
    "generation",
    "managedFields",
    "resourceVersion",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
];

/// Removes fields that have no manager (`internal/stripmeta.go`).
fn stripped(mut fields: Fields) -> Fields {
    fields.retain_fields(|field| !matches!(field, "kind" | "apiVersion"));
    fields.change_field("metadata", |metadata| {
        metadata.remove_root();
        metadata.retain_fields(|field| !UNTRACKED.contains(&field));
    });
    fields
}

/// Returns the error of managers that own fields which a write changes.
fn conflict(mut conflicts: Vec<(Owner, Fields)>) -> Status {
    conflicts.sort_by(|(a, _), (b, _)| a.identity().cmp(&b.identity()));
    let mut causes = Vec::new();
    let mut texts = Vec::new();
    for (owner, taken) in conflicts {
        let owner = owner.described();
        let paths: Vec<String> = taken.paths().iter().map(|path| set::shown_path(path)).collect();
        for path in &paths {
            causes.push(Cause {
                reason: "FieldManagerConflict".to_owned(),
                message: format!("conflict with {owner}"),
                field: path.clone(),
            });
        }
        texts.push(format!("conflicts with {owner}:\n- {}", paths.join("\n- ")));
    }
    let text = match causes.as_slice() {
        [one] => format!("Apply failed with 1 conflict: {}: {}", one.message, one.field),
        several => format!(
            "Apply failed with {} conflicts: {}",
            several.len(),
            texts.join("\n")
        ),
    };
    Status::apply_conflict(&text, causes)
}

/// Returns whether the object was stored before.
fn is_stored(object: &Value) -> bool {
    object["metadata"]["uid"].is_string()
}

/// Returns whether managed fields are an empty list, or one empty entry, which reset them.
fn is_reset(entries: &Value) -> bool {
    match entries.as_array().map(Vec::as_slice) {
        Some([]) => true,
        Some([entry]) => entry.as_object().is_some_and(Map::is_empty),
        Some(_) | None => false,
    }
}

/// Removes the managed fields from an object and returns them.
pub fn take(object: &mut Value) -> Option<Value> {
    remove_field(field_mut(object, "metadata")?, owners::FIELD)
}

/// Sets the managed fields of an object; `None` removes them.
pub fn put(object: &mut Value, owners: Option<Value>) {
    without(object);
    let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
    if let (Some(owners), Some(metadata)) = (owners, metadata) {
        metadata.insert(owners::FIELD.to_owned(), owners);
    }
}

/// Removes the managed fields from an object.
pub fn without(object: &mut Value) {
    take(object);
}

/// Keeps the times of the managers of `old` in `object`, which replaces it, if nothing but times differs
/// (apiserver `endpoints/handlers/fieldmanager/equality.go`).
pub fn keep_times(old: &Value, object: &mut Value) {
    fn entries(object: &Value) -> Option<&Vec<Value>> {
        field(field(object, "metadata"), owners::FIELD).as_array()
    }
    let is_equal = |(before, after): (&Value, &Value)| {
        let (Some(before), Some(after)) = (before.as_object(), after.as_object()) else {
            return false;
        };
        let has = |(field, value): (&String, &Value)| field == "time" || after.get(field) == Some(value);
        before.len() == after.len() && before.iter().all(has)
    };
    let later = match (entries(old), entries(object)) {
        (Some(before), Some(after)) if before.len() == after.len() && before != after => {
            if !before.iter().zip(after).all(is_equal) {
                return;
            }
            after.clone()
        }
        (_, _) => return,
    };
    copy(old, object);
    if !is_same(old, object) {
        object["metadata"][owners::FIELD] = later.into();
    }
}

/// Copies the managed fields of `from` to `to`.
pub fn copy(from: &Value, to: &mut Value) {
    put(to, from["metadata"].get(owners::FIELD).cloned());
}

/// Returns an empty object.
pub fn nothing() -> Value {
    Value::Object(Map::from_iter([(
        "metadata".to_owned(),
        Value::Object(Map::new()),
    )]))
}

#[cfg(test)]
mod tests;

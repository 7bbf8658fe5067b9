//! Field management (`metadata.managedFields`): tracking of the managers at every write, and server-side apply.
//!
//! It must not know the store: it is given the old and the new object.
//!
//! Source: "Server-Side Apply" and KEP-555; structured-merge-diff `merge/update.go`, apimachinery `util/managedfields`.

use apimachinery::Version;
use apimachinery::kind::ApiResource;
use apimachinery::status::{Cause, Status};
use serde_json::{Map, Value};

use super::schema::Schema;
use super::{catalog, types};
use crate::crd::Definition;

mod fields;
mod owners;
mod set;
mod typed;

use fields::Changes;
use owners::{Operation, Owner};
use set::Fields;

/// Manager that migrates from client-side to server-side apply, and the annotation with its last applied configuration.
const KUBECTL: &str = "kubectl";

/// Manager of the existing fields when an object without managers is first applied to (`internal/skipnonapplied.go`).
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Field management for the writes of one manager to one kind.
pub struct Ownership<'a> {
    kind: &'a ApiResource,
    schema: SchemaOf,
    manager: &'a str,
    /// Subresource such as `status` or `scale`; empty for the object itself.
    subresource: &'a str,
    /// RFC 3339.
    now: String,
    version: Version,
}

enum SchemaOf {
    BuiltIn(&'static Schema),
    Custom(Box<Schema>),
    Nothing,
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
        let schema = match (Definition::of(kind), Schema::of_builtin(kind, version)) {
            (Some(definition), _) => {
                SchemaOf::Custom(Box::new(Schema::of_custom(&definition.schema, version)))
            }
            (None, Some(schema)) if !kind.custom => SchemaOf::BuiltIn(schema),
            (None, _) => SchemaOf::Nothing,
        };
        Self {
            kind,
            schema,
            manager,
            subresource,
            now,
            version,
        }
    }

    /// Sets the managers in `object`, which replaces `live`. An object that was stored without managers gets none by an
    /// update (`internal/skipnonapplied.go`).
    pub fn note_update(&self, live: &Value, object: &mut Value) {
        let mut owners = owners::read(live);
        if owners.is_empty() && is_stored(live) {
            owners::write(object, owners);
            return;
        }
        let Changes { written, removed } = self.changes(live, object);
        for owner in &mut owners {
            owner.fields.subtract(&written);
            owner.fields.subtract(&removed);
        }
        if !written.is_empty() {
            let own = self.own(&mut owners, Operation::Update);
            own.time = Some(self.now.clone());
            own.fields.add(written);
        }
        owners::write(object, owners);
    }

    /// Sets the managers after a write of the scale, whose replicas are at `pointer`.
    ///
    /// As in kube-apiserver, which tracks the fields of a scale by themselves: a manager of the scale has a separate entry
    /// without a time, unless it applied; and if the scale has no manager, it gets none.
    pub fn note_scale(&self, live: &Value, object: &mut Value, pointer: &str) {
        let replicas = field_at(pointer);
        let mut owners = owners::read(live);
        let has = |owner: &&mut Owner| !owner.fields.intersection(&replicas).is_empty();
        let changed = live.pointer(pointer) != object.pointer(pointer);
        let mut scaled = Vec::new();
        for owner in owners.iter_mut().filter(has) {
            let applied = owner.operation == Operation::Apply;
            if changed || !applied {
                owner.fields.subtract(&replicas);
            }
            if !changed && !applied {
                scaled.push(Owner {
                    time: None,
                    fields: replicas.clone(),
                    ..owner.clone()
                });
            } else if changed {
                scaled = vec![self.owner(Operation::Update, replicas.clone())];
            }
        }
        owners.extend(scaled);
        owners::write(object, owners);
    }

    /// Checks that the fields of an object to be applied are those of its kind.
    ///
    /// # Errors
    ///
    /// 500.
    pub fn check(&self, config: &Value) -> Result<(), Status> {
        typed::check(self.schema(), config).map_err(|why| self.untyped(config, &why))
    }

    /// Applies a scale to `live`, whose replicas are at `pointer`. Returns the object and its replicas. `wanted` is `None` if
    /// the applied configuration has no replicas.
    ///
    /// # Errors
    ///
    /// 409 for a conflict with other managers, unless `force` is set.
    pub fn apply_scale(
        &self,
        live: &Value,
        pointer: &str,
        wanted: Option<i64>,
        force: bool,
    ) -> Result<(Value, i64), Status> {
        let replicas = field_at(pointer);
        let mut owners = owners::read(live);
        let there = live.pointer(pointer).and_then(Value::as_i64).unwrap_or_default();
        let changed = wanted.is_some_and(|wanted| wanted != there);
        let is_own = |owner: &Owner| self.is_own(owner, Operation::Apply);
        let has = |owner: &Owner| !owner.fields.intersection(&replicas).is_empty();
        let mut conflicts = Vec::new();
        let mut apart = Vec::new();
        for owner in owners.iter_mut().filter(|owner| has(owner) && !is_own(owner)) {
            if changed && !force {
                let as_scale = Owner {
                    api_version: catalog::scale().api_version(),
                    ..owner.clone()
                };
                let field = vec!["f:spec".to_owned(), "f:replicas".to_owned()];
                conflicts.push((as_scale.described(), Fields::from_iter([field])));
            } else if changed {
                owner.fields.subtract(&replicas);
            } else if owner.operation == Operation::Update {
                owner.fields.subtract(&replicas);
                apart.push(Owner {
                    time: None,
                    fields: replicas.clone(),
                    ..owner.clone()
                });
            }
        }
        if !conflicts.is_empty() {
            conflicts.sort_by(|(a, _), (b, _)| a.cmp(b));
            return Err(conflict(&conflicts));
        }
        owners.extend(apart);
        let owned = owners.iter().any(|owner| has(owner) && !is_own(owner));
        let own = self.own(&mut owners, Operation::Apply);
        own.time = None;
        own.fields.subtract(&replicas);
        if wanted.is_some() {
            own.fields.add(replicas);
        }
        let mut object = live.clone();
        owners::write(&mut object, owners);
        Ok((object, wanted.unwrap_or(if owned { there } else { 0 })))
    }

    /// Applies `config` to `live`. Returns the object with its managers.
    ///
    /// # Errors
    ///
    /// 409 for a conflict with other managers, unless `force` is set; 500 if it is not an object of the kind.
    pub fn apply(&self, live: &Value, config: &Value, force: bool) -> Result<Value, Status> {
        let schema = self.schema();
        typed::check(schema, config).map_err(|why| self.untyped(config, &why))?;
        let mut config = config.clone();
        self.strip(&mut config);
        let mut object = fields::merge(schema, Some(live), &config);
        let mut owners = owners::read(live);
        if owners.is_empty() && is_stored(live) {
            owners = self.before_first_apply(live);
        }
        let applied = self.tracked(fields::of(schema, &config));
        let last = std::mem::replace(&mut self.own(&mut owners, Operation::Apply).fields, applied);
        let mut owned = Fields::default();
        for owner in &owners {
            owned.add(owner.fields.clone());
        }
        let orphaned: Fields = last
            .paths()
            .into_iter()
            .filter(|path| !owned.has_below(path))
            .collect();
        fields::remove(schema, &mut object, &orphaned);

        let Changes { written, removed } = self.changes(live, &object);
        let given_up = self.applied_by_kubectl_before(live);
        let mut conflicts = Vec::new();
        for owner in owners
            .iter_mut()
            .filter(|owner| !self.is_own(owner, Operation::Apply))
        {
            let taken = owner.fields.intersection(&written);
            let mut contested = taken.clone();
            contested.subtract(&given_up);
            if !contested.is_empty() && !force {
                conflicts.push((owner.described(), contested));
                continue;
            }
            owner.fields.subtract(&taken);
            owner.fields.subtract(&removed);
        }
        if !conflicts.is_empty() {
            conflicts.sort_by(|(a, _), (b, _)| a.cmp(b));
            return Err(conflict(&conflicts));
        }
        if !(written.is_empty() && removed.is_empty()) {
            self.own(&mut owners, Operation::Apply).time = Some(self.now.clone());
        }
        owners::write(&mut object, owners);
        Ok(object)
    }

    /// Returns `live` with the fields of `config`, and no managers changed: what a mutating admission policy applies.
    ///
    /// # Errors
    /// A field that the kind does not have, or a part that can only be replaced as a whole, in the words of apiserver
    /// (`policy/mutating/patch/smd.go`).
    pub fn merged(&self, live: &Value, config: &Value) -> Result<Value, String> {
        let schema = self.schema();
        typed::check(schema, config).map_err(|why| {
            let why = typed::joined(&why);
            format!("failed to convert patch object to typed object: {why}")
        })?;
        let atomic = fields::atomic(schema, config);
        if !atomic.is_empty() {
            return Err(format!(
                "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {}",
                atomic.join(", ")
            ));
        }
        Ok(fields::merge(schema, Some(live), config))
    }

    /// Returns the managers of an object that had none before the apply.
    fn before_first_apply(&self, live: &Value) -> Vec<Owner> {
        let manager = BEFORE_FIRST_APPLY;
        let since = Self::new(
            self.kind,
            self.version,
            manager,
            self.subresource,
            self.now.clone(),
        );
        let mut owned = live.clone();
        match types::zero(self.kind) {
            Some(zero) => since.note_update(zero, &mut owned),
            None => since.note_update(&nothing(), &mut owned),
        }
        owners::read(&owned)
    }

    /// Returns the fields that kubectl takes over when it migrates to server-side apply: those that still have the value of
    /// the last client-side apply (apiserver `fieldmanager/lastappliedmanager.go`).
    fn applied_by_kubectl_before(&self, live: &Value) -> Fields {
        let annotation = &live["metadata"]["annotations"][LAST_APPLIED];
        let last = annotation
            .as_str()
            .filter(|_| self.manager == KUBECTL)
            .and_then(|text| serde_json::from_str::<Value>(text).ok())
            .filter(|last| last["apiVersion"] == self.kind.api_version())
            .filter(|last| typed::check(self.schema(), last).is_ok());
        let Some(last) = last else {
            return Fields::default();
        };
        let mut fields = fields::of(self.schema(), &last);
        let since = fields::compare(self.schema(), &last, live);
        fields.subtract(&since.written);
        fields.subtract(&since.removed);
        fields
    }

    fn schema(&self) -> Option<&Schema> {
        match &self.schema {
            SchemaOf::BuiltIn(schema) => Some(schema),
            SchemaOf::Custom(schema) => Some(schema),
            SchemaOf::Nothing => None,
        }
    }

    fn changes(&self, live: &Value, object: &Value) -> Changes {
        let changes = fields::compare(self.schema(), live, object);
        Changes {
            written: self.tracked(changes.written),
            removed: self.tracked(changes.removed),
        }
    }

    /// Removes fields that are not tracked: those set by the server, and those this path does not write.
    fn tracked(&self, mut fields: Fields) -> Fields {
        fields.retain(|field| {
            let elsewhere = match self.subresource {
                // The metadata of a custom resource does not change through it.
                "status" => field != "f:status" && (field != "f:metadata" || self.kind.custom),
                _ => field == "f:status" && self.kind.status,
            };
            !elsewhere && !matches!(field, "f:kind" | "f:apiVersion")
        });
        fields.retain_below("f:metadata", |field| !UNTRACKED.contains(&field));
        fields
    }

    /// Removes the fields that this path does not write from an applied configuration.
    fn strip(&self, config: &mut Value) {
        let Some(config) = config.as_object_mut() else {
            return;
        };
        if self.subresource == "status" {
            config.retain(|field, _| matches!(field.as_str(), "apiVersion" | "kind" | "metadata" | "status"));
            if let Some(metadata) = config.get_mut("metadata").and_then(Value::as_object_mut) {
                let identifies =
                    |field: &str| matches!(field, "name" | "namespace" | "uid" | "resourceVersion");
                let stay = kept_by_status(self.kind);
                metadata.retain(|field, _| match self.kind.custom {
                    true => identifies(field),
                    false => !stay.contains(&field.as_str()),
                });
            }
        } else if self.kind.status {
            config.shift_remove("status");
        }
    }

    fn is_own(&self, owner: &Owner, operation: Operation) -> bool {
        owner.manager == self.manager
            && owner.operation == operation
            && owner.subresource == self.subresource
            && owner.api_version == self.kind.api_version()
    }

    fn own<'o>(&self, owners: &'o mut Vec<Owner>, operation: Operation) -> &'o mut Owner {
        let index = owners.iter().position(|owner| self.is_own(owner, operation));
        let index = index.unwrap_or_else(|| {
            owners.push(self.owner(operation, Fields::default()));
            owners.len() - 1
        });
        &mut owners[index]
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

    fn untyped(&self, config: &Value, why: &[String]) -> Status {
        let text = |field: &str| config["metadata"][field].as_str().unwrap_or_default();
        let why = typed::joined(why);
        Status::unexplained(format!(
            "failed to create typed patch object ({}/{}; {}/{}, Kind={}): {why}",
            text("namespace"),
            text("name"),
            self.kind.group,
            self.kind.version,
            self.kind.kind
        ))
    }
}

/// Returns the fields of the metadata that a write through the status of a built-in kind does not change.
///
/// Source: `GetResetFields` and `PrepareForUpdate` of the status strategies in `pkg/registry` of kube-apiserver.
pub fn kept_by_status(kind: &ApiResource) -> &'static [&'static str] {
    match types::of(kind).map(|known| known.name) {
        Some("core/v1.Pod") => &["ownerReferences"],
        Some("apps/v1.Deployment") => &["labels"],
        Some(_) | None => &[],
    }
}

/// Fields of the metadata that are set by the server.
const UNTRACKED: [&str; 10] = [
    "f:name",
    "f:namespace",
    "f:creationTimestamp",
    "f:selfLink",
    "f:uid",
    "f:generation",
    "f:managedFields",
    "f:resourceVersion",
    "f:deletionTimestamp",
    "f:deletionGracePeriodSeconds",
];

fn conflict(conflicts: &[(String, Fields)]) -> Status {
    let mut causes = Vec::new();
    let mut texts = Vec::new();
    for (owner, taken) in conflicts {
        let paths: Vec<String> = taken.paths().iter().map(fields::shown).collect();
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

/// Returns whether the object has a single empty entry, which resets its managed fields.
pub fn is_reset(object: &Value) -> bool {
    let entries = object["metadata"][owners::FIELD].as_array();
    entries.is_some_and(|entries| matches!(entries.as_slice(), [Value::Object(entry)] if entry.is_empty()))
}

/// Removes the managed fields from an object.
pub fn without(object: &mut Value) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.shift_remove(owners::FIELD);
    }
}

/// Copies the managed fields of `from` to `to`.
pub fn copy(from: &Value, to: &mut Value) {
    without(to);
    if let (Some(owners), Some(metadata)) = (
        from["metadata"].get(owners::FIELD),
        to.get_mut("metadata").and_then(Value::as_object_mut),
    ) {
        metadata.insert(owners::FIELD.to_owned(), owners.clone());
    }
}

/// Returns an empty object.
pub fn nothing() -> Value {
    Value::Object(Map::from_iter([(
        "metadata".to_owned(),
        Value::Object(Map::new()),
    )]))
}

/// Returns the set of the field at a JSON pointer of names.
fn field_at(pointer: &str) -> Fields {
    let path = pointer.split('/').skip(1).map(|name| format!("f:{name}"));
    Fields::from_iter([path.collect()])
}

//! Who owns which field of an object (`metadata.managedFields`): kept at every write of a client, and what
//! server-side apply is decided by.
//!
//! It must not know the store: it is given the object as it is and as it is to be.
//!
//! Source: "Server-Side Apply" and KEP-555; structured-merge-diff `merge/update.go`, apimachinery
//! `util/managedfields`.

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

/// Whose applying moved from the client to the server, and where it kept what it had applied last.
const KUBECTL: &str = "kubectl";

/// The manager of what an object without owners had before it was applied to (`internal/skipnonapplied.go`).
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// One writer at one kind of objects.
pub struct Ownership<'a> {
    kind: &'a ApiResource,
    schema: SchemaOf,
    manager: &'a str,
    /// `status`, `scale` …, or nothing.
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
    /// Of what `manager` writes now.
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

    /// Writes into `object`, which replaces `live`, who owns its fields now. Where nobody owns anything of a stored
    /// object, nobody comes to by an update (`internal/skipnonapplied.go`).
    pub fn note_update(&self, live: &Value, object: &mut Value) {
        let mut owners = owners::read(live);
        if owners.is_empty() && is_stored(live) {
            owners::write(object, owners);
            return;
        }
        let Changes { written, removed } = self.changes(live, object);
        for owner in &mut owners {
            owner.fields.take_away(&written);
            owner.fields.take_away(&removed);
        }
        if !written.is_empty() {
            let own = self.own(&mut owners, Operation::Update);
            own.time = Some(self.now.clone());
            own.fields.add(written);
        }
        owners::write(object, owners);
    }

    /// The same for a write of the scale, of which the object has the replicas at `pointer`.
    ///
    /// What an owner has of a scale is an entry of its own, unless it was applied; it has no time, and where nobody has
    /// any of it, nobody comes to. So a real server does it, which takes entries apart to look at them as a scale's.
    pub fn note_scale(&self, live: &Value, object: &mut Value, pointer: &str) {
        let replicas = field_at(pointer);
        let mut owners = owners::read(live);
        let has = |owner: &&mut Owner| !owner.fields.common(&replicas).is_empty();
        let changed = live.pointer(pointer) != object.pointer(pointer);
        let mut scaled = Vec::new();
        for owner in owners.iter_mut().filter(has) {
            let applied = owner.operation == Operation::Apply;
            if changed || !applied {
                owner.fields.take_away(&replicas);
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

    /// Does an object that is to be applied have the fields of its kind?
    ///
    /// # Errors
    /// 500.
    pub fn check(&self, config: &Value) -> Result<(), Status> {
        typed::check(self.schema(), config).map_err(|why| self.untyped(config, &why))
    }

    /// What `live`, whose replicas are at `pointer`, becomes when so many are applied to its scale, and how many it has
    /// then. `None`: the applier has nothing to say of them any more.
    ///
    /// # Errors
    /// 409 when others own them and `force` is not set.
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
        let has = |owner: &Owner| !owner.fields.common(&replicas).is_empty();
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
                owner.fields.take_away(&replicas);
            } else if owner.operation == Operation::Update {
                owner.fields.take_away(&replicas);
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
        own.fields.take_away(&replicas);
        if wanted.is_some() {
            own.fields.add(replicas);
        }
        let mut object = live.clone();
        owners::write(&mut object, owners);
        Ok((object, wanted.unwrap_or(if owned { there } else { 0 })))
    }

    /// What `live` becomes when `config` is applied to it, with its owners.
    ///
    /// # Errors
    /// 409 when it changes what others own and `force` is not set, 500 when it is no object of the kind.
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
        let applied = self.counted(fields::of(schema, &config));
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
            let taken = owner.fields.common(&written);
            let mut contested = taken.clone();
            contested.take_away(&given_up);
            if !contested.is_empty() && !force {
                conflicts.push((owner.described(), contested));
                continue;
            }
            owner.fields.take_away(&taken);
            owner.fields.take_away(&removed);
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

    /// Who owns the fields of an object that nobody owned anything of until it is applied to.
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
        match types::zero(self.kind, self.version) {
            Some(zero) => since.note_update(zero, &mut owned),
            None => since.note_update(&nothing(), &mut owned),
        }
        owners::read(&owned)
    }

    /// What kubectl, now that it applies on the server, takes over from whoever has it: the fields that are still as it
    /// applied them on the client (apiserver `fieldmanager/lastappliedmanager.go`).
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
        fields.take_away(&since.written);
        fields.take_away(&since.removed);
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
            written: self.counted(changes.written),
            removed: self.counted(changes.removed),
        }
    }

    /// Without what nobody owns, because the server decides it or this path does not write it.
    fn counted(&self, mut fields: Fields) -> Fields {
        fields.keep(|field| {
            let elsewhere = match self.subresource {
                "status" => field != "f:status",
                _ => field == "f:status" && self.kind.status,
            };
            !elsewhere && !matches!(field, "f:kind" | "f:apiVersion")
        });
        fields.keep_below("f:metadata", |field| !UNOWNED.contains(&field));
        fields
    }

    /// What is applied to one path does not reach the others.
    fn strip(&self, config: &mut Value) {
        let Some(config) = config.as_object_mut() else {
            return;
        };
        if self.subresource == "status" {
            config.retain(|field, _| matches!(field.as_str(), "apiVersion" | "kind" | "metadata" | "status"));
            if let Some(metadata) = config.get_mut("metadata").and_then(Value::as_object_mut) {
                metadata.retain(|field, _| {
                    matches!(field.as_str(), "name" | "namespace" | "uid" | "resourceVersion")
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
        let place = owners.iter().position(|owner| self.is_own(owner, operation));
        let place = place.unwrap_or_else(|| {
            owners.push(self.owner(operation, Fields::default()));
            owners.len() - 1
        });
        &mut owners[place]
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
        let why = match why {
            [one] => one.clone(),
            several => format!("errors:\n  {}", several.join("\n  ")),
        };
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

/// Fields of the metadata that are the server's.
const UNOWNED: [&str; 10] = [
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

/// Was the object stored before?
fn is_stored(object: &Value) -> bool {
    object.pointer("/metadata/uid").is_some_and(Value::is_string)
}

/// Does a writer ask, by one empty entry, that nobody own anything of the object any more?
pub fn is_reset(object: &Value) -> bool {
    let entries = object
        .pointer("/metadata/managedFields")
        .and_then(Value::as_array);
    entries.is_some_and(|entries| matches!(entries.as_slice(), [Value::Object(entry)] if entry.is_empty()))
}

/// The object without its owners.
pub fn without(object: &mut Value) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.shift_remove(owners::FIELD);
    }
}

/// The owners of `from` become those of `to`.
pub fn copy(from: &Value, to: &mut Value) {
    without(to);
    if let (Some(owners), Some(metadata)) = (
        from.pointer("/metadata/managedFields"),
        to.get_mut("metadata").and_then(Value::as_object_mut),
    ) {
        metadata.insert(owners::FIELD.to_owned(), owners.clone());
    }
}

/// An object of nothing.
pub fn nothing() -> Value {
    Value::Object(Map::from_iter([(
        "metadata".to_owned(),
        Value::Object(Map::new()),
    )]))
}

/// The one field at a JSON pointer of names.
fn field_at(pointer: &str) -> Fields {
    let path = pointer.split('/').skip(1).map(|name| format!("f:{name}"));
    Fields::from_iter([path.collect()])
}

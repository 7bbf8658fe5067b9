//! Managers of the replicas, as writes to the scale of an object change them: kube-apiserver tracks the fields of a scale by
//! themselves, and carries the result over to the object.
//!
//! Source: apimachinery `util/managedfields/scalehandler.go`.

use apimachinery::status::Status;
use serde_json::Value;

use super::owners::{self, Operation, Owner};
use super::set::{Element, Fields};
use super::{Ownership, conflict};
use crate::catalog;

impl Ownership<'_> {
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
        let own = self.owner(Operation::Apply, Fields::default());
        let is_own = |owner: &Owner| owner.identity() == own.identity();
        let has = |owner: &Owner| !owner.fields.intersection(&replicas).is_empty();
        let mut conflicts = Vec::new();
        let mut apart = Vec::new();
        for owner in owners.iter_mut().filter(|owner| has(owner) && !is_own(owner)) {
            if changed && !force {
                let as_scale = Owner {
                    api_version: catalog::scale().api_version(),
                    ..owner.clone()
                };
                conflicts.push((as_scale, field_at("/spec/replicas")));
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
            return Err(conflict(conflicts));
        }
        owners.extend(apart);
        let owned = owners.iter().any(|owner| has(owner) && !is_own(owner));
        let place = owners.iter().position(is_own).unwrap_or_else(|| {
            owners.push(own.clone());
            owners.len() - 1
        });
        let own = &mut owners[place];
        own.time = None;
        own.fields.subtract(&replicas);
        if wanted.is_some() {
            own.fields.add(replicas);
        }
        let mut object = live.clone();
        owners::write(&mut object, owners);
        Ok((object, wanted.unwrap_or(if owned { there } else { 0 })))
    }
}

/// Returns the set of the field at a JSON pointer of names.
fn field_at(pointer: &str) -> Fields {
    let path = pointer.split('/').skip(1).map(|name| Element::Field(name.into()));
    Fields::single(path.collect())
}

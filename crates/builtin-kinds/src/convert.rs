//! Conversion of an object between versions: from the stored version to the version of a request, and back.
//!
//! Source: kubernetes `pkg/apis/core/v1/conversion.go`, `pkg/apis/events/v1/conversion.go`; custom resources have the same
//! fields in all their versions (`conversion.strategy: None`).

use std::sync::Arc;

use apimachinery::kind::{ApiResource, KindRef};
use apimachinery::object::{Stored, canonical};
use serde_json::{Map, Value};

use super::catalog::Catalog;
use super::types;
use crate::crd::Definition;

mod autoscaler;

/// Fields of an Event in the core group, and in `events.k8s.io`.
const EVENT_FIELDS: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

/// Returns the object as this kind. An object written under an earlier definition is decoded with the current one, as from
/// etcd.
pub fn as_kind(object: &Arc<Stored>, kind: &KindRef) -> Arc<Stored> {
    if object.kind == *kind {
        return Arc::clone(object);
    }
    Arc::new(converted(object, kind))
}

/// Returns the object as this kind, unshared.
pub fn converted(object: &Stored, kind: &KindRef) -> Stored {
    let mut json = object.json();
    if object.kind.group != kind.group && kind.kind == "Event" {
        json = event(json, kind);
        // The fields are the same in all minor versions.
        if let Ok(Some(conformed)) = types::conform(kind, &json) {
            json = conformed;
        }
    }
    if is_converted(kind) {
        json = autoscaler::to_v1(json);
        // The fields are the same in all minor versions.
        if let Ok(Some(conformed)) = types::conform(kind, &json) {
            json = conformed;
        }
        json = canonical(kind, json);
    }
    if let Some(definition) = Definition::of(kind) {
        definition.read(&mut json);
    }
    Stored::as_is(kind, object.key.clone(), object.revision, json)
}

/// Returns whether another version of the group, with other fields, is the stored one.
fn is_converted(kind: &ApiResource) -> bool {
    !kind.custom && kind.shows.as_ref().is_some_and(|(group, _)| *group == kind.group)
}

/// Returns the kind in whose version the objects of `kind` are stored.
pub fn in_storage(kind: &KindRef, catalog: &Catalog) -> KindRef {
    let stored = catalog
        .find(&kind.group, &kind.plural)
        .filter(|_| is_converted(kind));
    stored.unwrap_or(kind).clone()
}

/// Converts an object of `kind` to the stored version, from which tables are printed.
pub fn received(kind: &ApiResource, object: Value) -> Value {
    if is_converted(kind) {
        autoscaler::to_v2(object)
    } else {
        object
    }
}

/// Converts an Event from one group to the other.
fn event(json: Value, kind: &ApiResource) -> Value {
    let Value::Object(fields) = json else { return json };
    let renamed = fields.into_iter().map(|(name, value)| {
        let known = EVENT_FIELDS
            .iter()
            .find(|(core, other)| *core == name || *other == name);
        let name = match known {
            Some((core, _)) if kind.group.is_empty() => (*core).to_owned(),
            Some((_, other)) => (*other).to_owned(),
            None => name,
        };
        (name, value)
    });
    Value::Object(renamed.collect::<Map<_, _>>())
}

//! One object in several versions: what a request for another version than the stored one is shown.
//!
//! Source: kubernetes `pkg/apis/core/v1/conversion.go`, `pkg/apis/events/v1/conversion.go`; custom resources have the
//! same fields in all their versions (`conversion.strategy: None`).

use std::sync::Arc;

use apimachinery::Version;
use apimachinery::kind::ApiResource;
use apimachinery::object::{Stored, canonical};
use serde_json::{Map, Value};

use super::catalog::Catalog;
use super::types;
use crate::crd::Definition;

mod autoscaler;

/// The names of an Event's fields in the core group, and in `events.k8s.io`.
const EVENT_FIELDS: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

/// The object as this kind shows it. An object that was written under an earlier definition is read by the newer
/// one, as from etcd.
pub fn as_kind(object: &Arc<Stored>, kind: &'static ApiResource) -> Arc<Stored> {
    if object.kind == kind {
        return Arc::clone(object);
    }
    Arc::new(converted(object, kind))
}

/// The same of a version that is not shared.
pub fn converted(object: &Stored, kind: &'static ApiResource) -> Stored {
    let mut json = object.json();
    if object.kind.group != kind.group && kind.kind == "Event" {
        json = event(json, kind);
        // Its fields are the same in all minors.
        if let Ok(Some(conformed)) = types::conform(kind, &json, Version::V1_36) {
            json = conformed;
        }
    }
    if is_other_words(kind) {
        json = autoscaler::to_v1(json);
        // Its fields are the same in all minors.
        if let Ok(Some(conformed)) = types::conform(kind, &json, Version::V1_36) {
            json = conformed;
        }
        json = canonical(kind, json);
    }
    if let Some(definition) = Definition::of(kind) {
        definition.read(&mut json);
    }
    Stored::as_is(kind, object.key.clone(), object.revision, json)
}

/// Does this kind say what another version of its group stores in other words?
fn is_other_words(kind: &ApiResource) -> bool {
    !kind.custom && kind.shows.is_some_and(|(group, _)| group == kind.group)
}

/// The kind in whose words the objects of `kind` are stored.
pub fn in_storage(kind: &'static ApiResource, catalog: &Catalog) -> &'static ApiResource {
    let stored = catalog
        .find(kind.group, kind.plural)
        .filter(|_| is_other_words(kind));
    stored.unwrap_or(kind)
}

/// An object of `kind` in the words in which it is stored, and read by tables.
pub fn received(kind: &ApiResource, object: Value) -> Value {
    if is_other_words(kind) {
        autoscaler::to_v2(object)
    } else {
        object
    }
}

/// An Event of one group in the words of the other.
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

//! Conversion of an object between versions: from the stored version to the version of a request, and back.
//!
//! Source: kubernetes `pkg/apis/core/v1/conversion.go`, `pkg/apis/events/v1/conversion.go`; custom resources have the same
//! fields in all their versions (`conversion.strategy: None`).

use std::sync::Arc;

use apimachinery::Version;
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

/// Returns why an object cannot be decoded as a built-in kind, because it has another kind or version; `None`: it can. `scheme`
/// is the name of the scheme in the error.
pub fn refusal(kind: &ApiResource, object: &Value, scheme: &str) -> Option<String> {
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    let (api_version, sent) = (text("apiVersion"), text("kind"));
    let own_version = api_version.is_empty() || kind.is_read_from(api_version);
    if kind.custom || (sent.is_empty() || sent == kind.kind) && own_version {
        return None;
    }
    let sent = if sent.is_empty() { &*kind.kind } else { sent };
    // It is decoded as the other kind before it is converted.
    let catalog = Catalog::builtin(Version::V1_36);
    let misfit = catalog
        .find_kind(api_version, sent)
        .and_then(|other| types::conform(other, object).err());
    if misfit.is_some() {
        return misfit;
    }
    Some(unknown_conversion(kind, api_version, sent, scheme))
}

/// Returns the error of a conversion from one kind to another: both known, or the sent one unknown.
pub fn unknown_conversion(kind: &ApiResource, api_version: &str, sent: &str, scheme: &str) -> String {
    let sent_version = if api_version.is_empty() {
        kind.api_version()
    } else {
        api_version.to_owned()
    };
    if Catalog::builtin(Version::V1_36)
        .find_kind(&sent_version, sent)
        .is_some()
    {
        let package = kind.group.split('.').next().filter(|group| !group.is_empty());
        let version = sent_version.rsplit('/').next().unwrap_or_default();
        format!(
            "converting ({version}.{sent}) to ({}.{}): unknown conversion",
            package.unwrap_or("core"),
            kind.kind
        )
    } else {
        format!("no kind \"{sent}\" is registered for version \"{sent_version}\" in scheme \"{scheme}\"")
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

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case(json!({"apiVersion": "v1", "kind": "ConfigMap"}), None)]
    #[case(json!({"apiVersion": "v1"}), None)]
    #[case(json!({"kind": "Secret"}), Some("converting (v1.Secret) to (core.ConfigMap): unknown conversion"))]
    #[case(json!({"apiVersion": "v1", "kind": "Secret", "data": {"a": "b"}}), Some("illegal base64 data at input byte 0"))]
    #[case(json!({"apiVersion": "v1", "kind": "Other"}), Some("no kind \"Other\" is registered for version \"v1\" in scheme \"s\""))]
    #[case(json!({"apiVersion": "v2"}), Some("no kind \"ConfigMap\" is registered for version \"v2\" in scheme \"s\""))]
    fn an_object_is_decoded_as_its_own_kind_only(#[case] object: Value, #[case] expected: Option<&str>) {
        let catalog = Catalog::builtin(Version::NEWEST);
        let kind = catalog.find("", "configmaps").unwrap();
        assert_eq!(refusal(kind, &object, "s").as_deref(), expected);
    }
}

//! Validation of metadata, for custom resources too.
//!
//! Source: apimachinery `api/validation/objectmeta.go`; kubernetes `pkg/apis/core/validation` for finalizers.

use apimachinery::Version;
use apimachinery::kind::ApiResource;
use apimachinery::object::field;
use serde_json::Value;

use super::formats::{annotations, labels, qualified_name};
use crate::error_list::ErrorList;
use crate::fields::list;
use crate::naming;

/// Fields that only the server sets.
const SERVER_OWNED: [&str; 2] = ["deletionTimestamp", "deletionGracePeriodSeconds"];

/// Validates the metadata of a new object of this name.
pub(super) fn new(kind: &ApiResource, object: &Value, name: &str, version: Version, errors: &mut ErrorList) {
    let metadata = field(object, "metadata");
    let prefix = field(metadata, "generateName").as_str().unwrap_or_default();
    if !prefix.is_empty() {
        // The generated suffix begins with a letter.
        let whole = match prefix.strip_suffix('-') {
            Some(stem) => format!("{stem}a"),
            None => prefix.to_owned(),
        };
        for why in naming::problems(kind.names, version, &whole, object) {
            errors.invalid("metadata.generateName", &prefix.into(), &why);
        }
    }
    if name.is_empty() {
        errors.required("metadata.name", "name or generateName is required");
    } else {
        for why in naming::problems(kind.names, version, name, object) {
            errors.invalid("metadata.name", &name.into(), &why);
        }
    }
    generation(metadata, errors);
    common(metadata, version, errors);
    finalizers(kind, metadata, version, errors);
}

/// Validates the metadata of an embedded resource (apiextensions `apiserver/schema/objectmeta/validation.go`).
pub(super) fn embedded(metadata: &Value, version: Version, errors: &mut ErrorList) {
    let text = |name: &str| field(metadata, name).as_str().unwrap_or_default();
    for (name, of) in [
        ("generateName", naming::path_segment_prefix(text("generateName"))),
        ("name", naming::path_segment(text("name"))),
    ] {
        for why in of {
            errors.invalid(&format!("metadata.{name}"), &text(name).into(), &why);
        }
    }
    if !text("namespace").is_empty() {
        for why in naming::label(text("namespace")) {
            errors.invalid("metadata.namespace", &text("namespace").into(), &why);
        }
    }
    generation(metadata, errors);
    common(metadata, version, errors);
    own_finalizers(metadata, version, errors);
}

/// Validates an update of metadata.
pub(super) fn changed(
    kind: &ApiResource,
    metadata: &Value,
    old: &Value,
    version: Version,
    errors: &mut ErrorList,
) {
    let uid = &metadata["uid"];
    if uid.as_str().is_some_and(|uid| !uid.is_empty()) && uid != &old["uid"] {
        errors.invalid("metadata.uid", uid, IMMUTABLE);
    }
    for field in SERVER_OWNED {
        let value = &metadata[field];
        // Omitting it keeps the value.
        if !value.is_null() && value != &old[field] {
            errors.invalid(&format!("metadata.{field}"), value, IMMUTABLE);
        }
    }
    let mut fresh = ErrorList::default();
    common(metadata, version, &mut fresh);
    finalizers(kind, metadata, version, &mut fresh);
    let mut before = ErrorList::default();
    common(old, version, &mut before);
    finalizers(kind, old, version, &mut before);
    errors.extend_with_new(fresh.into_causes(), &before.into_causes());
}

/// Error text for an immutable field.
pub(super) const IMMUTABLE: &str = "field is immutable";

fn generation(metadata: &Value, errors: &mut ErrorList) {
    let negative = field(metadata, "generation")
        .as_i64()
        .filter(|number| *number < 0);
    if let Some(negative) = negative {
        errors.invalid(
            "metadata.generation",
            &negative.into(),
            "must be greater than or equal to 0",
        );
    }
}

fn common(metadata: &Value, version: Version, errors: &mut ErrorList) {
    labels(
        field(metadata, "labels").as_object(),
        "metadata.labels",
        version,
        errors,
    );
    annotations(
        field(metadata, "annotations").as_object(),
        "metadata.annotations",
        version,
        errors,
    );
    let owners = list(metadata, "ownerReferences");
    let all = "metadata.ownerReferences";
    let mut controller: Option<String> = None;
    for (nth, owner) in owners.iter().enumerate() {
        // Before 1.37 the errors do not tell which one is meant.
        let is_exact = version >= Version::V1_37;
        let at = &if is_exact {
            format!("{all}[{nth}]")
        } else {
            all.to_owned()
        };
        let text = |field: &str| owner[field].as_str().unwrap_or_default();
        // An apiVersion that cannot be parsed has no version either.
        let version_of = match text("apiVersion").split('/').collect::<Vec<_>>().as_slice() {
            [version] | [_, version] => (*version).to_owned(),
            _ => String::new(),
        };
        if version_of.is_empty() {
            let (at, sent) = (format!("{at}.apiVersion"), text("apiVersion"));
            match (is_exact, sent) {
                (true, "") => errors.required(&at, "must not be empty"),
                (true, _) => errors.invalid(&at, &sent.into(), "must be <group>/<version> or <version>"),
                (false, _) => errors.invalid(&at, &sent.into(), "version must not be empty"),
            }
        }
        for field in ["kind", "name", "uid"] {
            if text(field).is_empty() {
                let (at, why) = (format!("{at}.{field}"), "must not be empty");
                match is_exact {
                    true => errors.required(&at, why),
                    false => errors.invalid(&at, &"".into(), why),
                }
            }
        }
        if (text("apiVersion"), text("kind")) == ("v1", "Event") {
            errors.invalid(at, owner, "/v1, Kind=Event is disallowed from being an owner");
        }
        if owner["controller"] == true {
            let this = format!("{}/{}", text("kind"), text("name"));
            if let Some(first) = &controller {
                let why = format!(
                    "Only one reference can have Controller set to true. Found \"true\" in references for {first} and \
                     {this}"
                );
                errors.invalid(all, &metadata["ownerReferences"], &why);
            } else {
                controller = Some(this);
            }
        }
    }
}

/// Field of the metadata in errors.
const FINALIZERS: &str = "metadata.finalizers";

fn finalizer_names(metadata: &Value) -> Vec<&str> {
    let listed = list(metadata, "finalizers").iter();
    listed.filter_map(Value::as_str).collect()
}

fn own_finalizers(metadata: &Value, version: Version, errors: &mut ErrorList) {
    let names = finalizer_names(metadata);
    let at = FINALIZERS;
    for name in &names {
        for why in qualified_name(name, version) {
            errors.invalid(at, &(*name).into(), &why);
        }
    }
    if ["orphan", "foregroundDeletion"]
        .iter()
        .all(|name| names.contains(name))
    {
        let why = "finalizer orphan and foregroundDeletion cannot be both set";
        errors.invalid(at, &metadata["finalizers"], why);
    }
}

fn finalizers(kind: &ApiResource, metadata: &Value, version: Version, errors: &mut ErrorList) {
    own_finalizers(metadata, version, errors);
    for (nth, name) in finalizer_names(metadata).into_iter().enumerate() {
        let standard = matches!(name, "kubernetes" | "orphan" | "foregroundDeletion");
        if !kind.custom && !standard && !name.contains('/') {
            errors.invalid(
                &format!("{FINALIZERS}[{nth}]"),
                &name.into(),
                "name is neither a standard finalizer name nor is it fully qualified",
            );
        }
    }
}

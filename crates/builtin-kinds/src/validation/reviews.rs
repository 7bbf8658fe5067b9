//! Validation of reviews of access.
//!
//! Source: kubernetes `pkg/apis/authorization/validation`.

use apimachinery::Version;
use apimachinery::kind::Review;
use serde_json::Value;

use super::context::FieldContext;
use super::indexes::Indexes;
use super::workloads::{fits_operator, key, label_values};
use crate::error_list::ErrorList;

const SPEC_OF_RESOURCE: &str = "spec.resourceAttributes";
const SPEC_OF_PATH: &str = "spec.nonResourceAttributes";

/// Validates a review of access, including its metadata.
pub(super) fn check(review: Review, object: &Value, version: Version, errors: &mut ErrorList) {
    let spec = &object["spec"];
    let (resource, path) = (&spec["resourceAttributes"], &spec["nonResourceAttributes"]);
    let exactly_one = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
    let names_spec = version >= Version::V1_37;
    match (resource.is_object(), path.is_object()) {
        (true, true) if names_spec => refuse_path("spec", path, exactly_one, errors),
        (true, true) => {
            let why = "cannot be specified in combination with resourceAttributes";
            refuse_path(SPEC_OF_PATH, path, why, errors);
        }
        (false, false) => {
            let at = if names_spec { "spec" } else { SPEC_OF_RESOURCE };
            errors.invalid(at, &Value::Null, exactly_one);
        }
        (true, false) | (false, true) => {}
    }
    for (field, requirement) in SELECTORS {
        selector(
            &resource[field],
            &format!("{SPEC_OF_RESOURCE}.{field}"),
            requirement,
            version,
            errors,
        );
    }
    if review != Review::OwnAccess && is_empty(&spec["user"]) && is_empty(&spec["groups"]) {
        let why = "at least one of user or group must be specified";
        errors.invalid(
            "spec.user",
            &spec["user"].as_str().unwrap_or_default().into(),
            why,
        );
    }
    let local = review == Review::LocalAccess;
    let metadata = &object["metadata"];
    let says_more = metadata.as_object().into_iter().flatten().any(|(field, value)| {
        let known = field == "managedFields" || local && field == "namespace";
        !known && !is_empty(value)
    });
    if says_more {
        let except = if local { " except for namespace" } else { "" };
        errors.invalid("metadata", metadata, &format!("must be empty{except}"));
    }
    if !local {
        return;
    }
    let namespace = resource["namespace"].as_str().unwrap_or_default();
    if resource.is_object() && metadata["namespace"] != namespace {
        let field = format!("{SPEC_OF_RESOURCE}.namespace");
        errors.invalid(&field, &namespace.into(), "must match metadata.namespace");
    }
    if path.is_object() {
        refuse_path(SPEC_OF_PATH, path, "disallowed on this kind of request", errors);
    }
}

/// Validates a requirement of a selector.
type Requirement = fn(&FieldContext<'_>, &mut ErrorList);

const SELECTORS: [(&str, Requirement); 2] = [
    ("fieldSelector", field_requirement),
    ("labelSelector", label_requirement),
];

fn selector(value: &Value, path: &str, requirement: Requirement, version: Version, errors: &mut ErrorList) {
    if !value.is_object() {
        return;
    }
    let indexes = Indexes::default();
    let context = FieldContext {
        path,
        ..FieldContext::of(value, "", version, &indexes)
    };
    let (raw, requirements) = (context.text("rawSelector"), context.list("requirements"));
    match (raw, requirements) {
        ("", []) => {
            let why = format!("when {path} is specified, requirements or rawSelector is required");
            errors.required(&context.at("requirements"), &why);
        }
        (raw, [_, ..]) if !raw.is_empty() => {
            let why = "may not specified at the same time as requirements";
            errors.invalid(&context.at("rawSelector"), &raw.into(), why);
        }
        (_, requirements) => {
            for (nth, value) in requirements.iter().enumerate() {
                let path = context.at(&format!("requirements[{nth}]"));
                let one = FieldContext {
                    path: &path,
                    ..FieldContext::of(value, "", version, &indexes)
                };
                requirement(&one, errors);
            }
        }
    }
}

fn field_requirement(context: &FieldContext<'_>, errors: &mut ErrorList) {
    if context.text("key").is_empty() {
        errors.required(&context.at("key"), "must be specified");
    }
    fits_operator(context, errors);
}

/// Unknown operators are left to the authorizer.
fn label_requirement(context: &FieldContext<'_>, errors: &mut ErrorList) {
    fits_operator(context, errors);
    key(context, errors);
    label_values(context, errors);
}

/// The attributes are printed with the field names of the Go struct.
fn refuse_path(at: &str, attributes: &Value, why: &str, errors: &mut ErrorList) {
    let of = |field: &str| attributes[field].as_str().unwrap_or_default();
    let (path, verb) = (of("path"), of("verb"));
    let shown = serde_json::json!({ "Path": path, "Verb": verb });
    errors.invalid(at, &shown, why);
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

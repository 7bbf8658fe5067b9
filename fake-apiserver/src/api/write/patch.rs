//! Parsing of patches: their format, and the bodies of each.
//!
//! Source: RFC 6902, RFC 7386, apiserver `endpoints/handlers/patch.go`.

use apimachinery::kind::ApiResource;
use apimachinery::options::Collection;
use apimachinery::status::{Cause, Status};
use apimachinery::write::{FieldValidation, Patch};
use apimachinery::{depth, go_text};
use builtin_kinds::types;
use serde_json::{Map, Value, json};

use super::options::Options;
use crate::api::options::truthy;
use crate::api::{HttpRequest, body, yaml_keys};

/// Maximum operations of a JSON patch (apiserver `maxJSONPatchOperations`).
const OPERATIONS_MAX: usize = 10_000;

const JSON_PATCH: &str = "application/json-patch+json";
const MERGE_PATCH: &str = "application/merge-patch+json";
const STRATEGIC_PATCH: &str = "application/strategic-merge-patch+json";
const APPLY_YAML: &str = "application/apply-patch+yaml";

/// Format of a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Json,
    Merge,
    Strategic,
    Apply,
}

/// Returns the format of the patch of a request.
///
/// # Errors
///
/// 415, from the router for built-in kinds, from the handler for others.
pub(super) fn format(request: &HttpRequest, kind: &ApiResource) -> Result<Format, Status> {
    match body::content_type(request).as_deref() {
        Some(JSON_PATCH) => Ok(Format::Json),
        Some(MERGE_PATCH) => Ok(Format::Merge),
        Some(STRATEGIC_PATCH) if !kind.custom => Ok(Format::Strategic),
        Some(APPLY_YAML) => Ok(Format::Apply),
        Some(_) | None if kind.custom => Err(Status::unknown_format(&[JSON_PATCH, MERGE_PATCH, APPLY_YAML])),
        Some(_) | None => Err(Status::unrouted_format()),
    }
}

/// Checks that the options are valid for the format.
///
/// # Errors
///
/// 422.
pub(super) fn check_options(format: Format, options: &Options) -> Result<(), Status> {
    let mut faults = Vec::new();
    let force = options.first("force").is_some_and(truthy);
    match (format, options.first("fieldManager").unwrap_or_default()) {
        (Format::Apply, "") => faults.push(Cause {
            reason: "FieldValueRequired".to_owned(),
            message: "Required value: is required for apply patch".to_owned(),
            field: "fieldManager".to_owned(),
        }),
        (Format::Json | Format::Merge | Format::Strategic, _) if force => faults.push(Cause {
            reason: "FieldValueForbidden".to_owned(),
            message: "Forbidden: may not be specified for non-apply patch".to_owned(),
            field: "force".to_owned(),
        }),
        (_, _) => {}
    }
    faults.extend(options.faults());
    if faults.is_empty() {
        Ok(())
    } else {
        Err(Status::invalid_options("PatchOptions", &faults))
    }
}

/// Returns the duplicate fields of a body that is a partial object.
pub(super) fn duplicates(patch: &Patch, body: &[u8]) -> Vec<String> {
    match patch {
        Patch::Merge(_) | Patch::Strategic(_) => types::duplicates(body),
        Patch::Json(_) => Vec::new(),
    }
}

/// Parses an applied configuration: YAML, a superset of JSON. Its name is compared with the path when it is merged. Also returns
/// warnings for its duplicate keys.
///
/// # Errors
///
/// 400: not an object, not one of this kind, or with keys that `fieldValidation=Strict` rejects.
pub(super) fn config(
    body: &[u8],
    collection: &Collection,
    validation: FieldValidation,
) -> Result<(Value, Vec<String>), Status> {
    if let Some(plain) = body::plain_json(body) {
        return Ok((checked(plain, collection)?, Vec::new()));
    }
    let decoded: Value = if body.trim_ascii().is_empty() {
        json!({})
    } else {
        body::yaml_tree(body).map_err(|error| {
            Status::bad_request(format!(
                "error decoding YAML: error converting YAML to JSON: yaml: {error}"
            ))
        })?
    };
    let decoded = checked(decoded, collection)?;
    Ok((decoded, duplicate_keys(body, validation)?))
}

/// Checks that a configuration is an object of the kind.
fn checked(decoded: Value, collection: &Collection) -> Result<Value, Status> {
    let kind = &collection.kind;
    if !decoded.is_object() {
        return Err(Status::bad_request(format!(
            "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {} into Go value \
             of type map[string]interface {{}}",
            go_text::json_kind(&decoded)
        )));
    }
    let text = |pointer: &str| {
        decoded
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let (api_version, sent_kind) = (text("/apiVersion"), text("/kind"));
    if api_version != kind.api_version() || sent_kind != kind.kind {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        return Err(Status::bad_request(format!(
            "invalid object type: {group}/{version}, Kind={sent_kind}"
        )));
    }
    if depth::is_too_deep(&decoded) {
        return Err(Status::bad_request(format!(
            "error decoding YAML: {}",
            depth::TOO_DEEP
        )));
    }
    if decoded
        .pointer("/metadata/managedFields")
        .is_some_and(|owners| !owners.is_null())
    {
        return Err(Status::bad_request("metadata.managedFields must be nil"));
    }
    Ok(decoded)
}

/// Returns warnings for the duplicate keys of an applied configuration.
///
/// # Errors
///
/// 400 if `fieldValidation=Strict` rejects them.
fn duplicate_keys(body: &[u8], validation: FieldValidation) -> Result<Vec<String>, Status> {
    if validation == FieldValidation::Ignore {
        return Ok(Vec::new());
    }
    let twice = yaml_keys::duplicates(body);
    if validation == FieldValidation::Strict && !twice.is_empty() {
        return Err(Status::bad_request(format!(
            "error strict decoding YAML: error converting YAML to JSON: {}",
            yaml_keys::strict_error(&twice)
        )));
    }
    Ok(twice)
}

/// Parses a JSON patch.
///
/// # Errors
///
/// 400 and 413 for a body that is not a list of operations.
pub(super) fn operations(body: &[u8]) -> Result<Patch, Status> {
    let operations: Vec<Value> = match serde_json::from_slice::<Value>(body) {
        Ok(Value::Array(operations)) => operations,
        Ok(_) => {
            return Err(Status::bad_request(
                "error decoding patch: json: cannot unmarshal object into Go value of type jsonpatch.Patch",
            ));
        }
        Err(error) => {
            return Err(Status::bad_request(format!(
                "error decoding patch: {}",
                go_text::json_error(body, &error)
            )));
        }
    };
    if operations.len() > OPERATIONS_MAX {
        return Err(Status::too_large_entity(&format!(
            "The allowed maximum operations in a JSON patch is {OPERATIONS_MAX}, got {}",
            operations.len()
        )));
    }
    // What is no operation fails when it is applied, as an unknown one does.
    let operations = operations.into_iter().map(|operation| match operation {
        Value::Object(operation) => operation,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Map::new(),
    });
    Ok(Patch::Json(operations.collect()))
}

/// Parses a strategic merge patch.
///
/// # Errors
///
/// 400 for a body that is not an object.
pub(super) fn strategic(body: &[u8]) -> Result<Patch, Status> {
    match serde_json::from_slice(body) {
        Ok(Value::Object(patch)) => Ok(Patch::Strategic(patch)),
        Ok(other) => Err(Status::bad_request(format!(
            "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            go_text::json_kind(&other)
        ))),
        Err(error) => Err(Status::bad_request(go_text::json_error(body, &error))),
    }
}

/// Parses a JSON merge patch.
///
/// # Errors
///
/// 400 for a body that is not an object.
pub(super) fn merge(body: &[u8]) -> Result<Patch, Status> {
    match serde_json::from_slice(body) {
        Ok(patch @ Value::Object(_)) => Ok(Patch::Merge(patch)),
        Ok(_) => Err(Status::bad_request("error decoding patch: Invalid JSON Patch")),
        Err(error) => Err(Status::bad_request(format!(
            "error decoding patch: {}",
            go_text::json_error(body, &error)
        ))),
    }
}

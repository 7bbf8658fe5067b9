//! How an object is asked to change: which patch a body is, and whether it is one at all.
//!
//! Source: RFC 6902, RFC 7386, apiserver `endpoints/handlers/patch.go`.

use serde_json::{Map, Value};

use crate::api::options::truthy;
use crate::api::status::{Cause, Status};
use crate::api::{HttpRequest, body, go_text};
use crate::model::catalog::Kind;
use crate::model::types;
use crate::scenario::Version;

use super::options::Options;

/// Operations a JSON patch may have (apiserver `maxJSONPatchOperations`).
const OPERATIONS_MAX: usize = 10_000;

const JSON_PATCH: &str = "application/json-patch+json";
const MERGE_PATCH: &str = "application/merge-patch+json";
const STRATEGIC_PATCH: &str = "application/strategic-merge-patch+json";
const APPLY_YAML: &str = "application/apply-patch+yaml";

/// A patch.
#[derive(Debug, Clone)]
pub enum Patch {
    /// JSON Merge Patch (RFC 7386).
    Merge(Value),
    /// JSON Patch (RFC 6902).
    Json(json_patch::Patch),
    /// Strategic merge patch.
    Strategic(Map<String, Value>),
}

/// What a patch is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Json,
    Merge,
    Strategic,
    Apply,
}

/// What the request says its patch is written in.
///
/// # Errors
/// 415, from the router for built-in kinds, from the handler for others.
pub(super) fn format(request: &HttpRequest, kind: &Kind) -> Result<Format, Status> {
    match body::content_type(request).as_deref() {
        Some(JSON_PATCH) => Ok(Format::Json),
        Some(MERGE_PATCH) => Ok(Format::Merge),
        Some(STRATEGIC_PATCH) if !kind.custom => Ok(Format::Strategic),
        Some(APPLY_YAML) => Ok(Format::Apply),
        Some(_) | None if kind.custom => Err(Status::unknown_format(&[JSON_PATCH, MERGE_PATCH, APPLY_YAML])),
        Some(_) | None => Err(Status::unrouted_format()),
    }
}

/// The patch.
///
/// # Errors
/// 400 and 413 for a body that is none, 422 for options that do not go with it.
pub(super) fn read(
    format: Format,
    request: &HttpRequest,
    options: &Options,
    version: Version,
) -> Result<Patch, Status> {
    let mut faults = options.faults(version);
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
    if !faults.is_empty() {
        return Err(Status::invalid_options("PatchOptions", &faults));
    }
    match format {
        Format::Json => operations(&request.body).map(Patch::Json),
        Format::Merge => change(&request.body).map(Patch::Merge),
        Format::Strategic => strategy(&request.body).map(Patch::Strategic),
        // Field ownership is not known here, and a guess would be a lie.
        Format::Apply => Err(Status::unknown_format(&[
            JSON_PATCH,
            MERGE_PATCH,
            STRATEGIC_PATCH,
        ])),
    }
}

/// What the body says twice, where it is a partial object.
pub(super) fn duplicates(format: Format, body: &[u8]) -> Vec<String> {
    match format {
        Format::Merge | Format::Strategic => types::duplicates(body),
        Format::Json | Format::Apply => Vec::new(),
    }
}

fn operations(body: &[u8]) -> Result<json_patch::Patch, Status> {
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
    // An operation nobody knows is refused when it is carried out, as one that fails.
    serde_json::from_value(Value::Array(operations)).map_err(|_| Status::patch_failed())
}

fn strategy(body: &[u8]) -> Result<Map<String, Value>, Status> {
    match serde_json::from_slice(body) {
        Ok(Value::Object(patch)) => Ok(patch),
        Ok(other) => Err(Status::bad_request(format!(
            "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            go_text::json_kind(&other)
        ))),
        Err(error) => Err(Status::bad_request(go_text::json_error(body, &error))),
    }
}

fn change(body: &[u8]) -> Result<Value, Status> {
    match serde_json::from_slice(body) {
        Ok(patch @ Value::Object(_)) => Ok(patch),
        Ok(_) => Err(Status::bad_request("error decoding patch: Invalid JSON Patch")),
        Err(error) => Err(Status::bad_request(format!(
            "error decoding patch: {}",
            go_text::json_error(body, &error)
        ))),
    }
}

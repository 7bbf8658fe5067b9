//! What a patch makes of an object. Whether the outcome may be stored is decided elsewhere.

use json_patch::merge;
use serde_json::Value;

use crate::api::body::{check_types, drop_unknown_fields};
use crate::api::write::{FieldValidation, Patch};
use crate::api::{Cause, Status, go_text};

use super::catalog::Kind;
use super::object::encode_json;

mod json;

/// The object after the patch, and what is to be warned of.
///
/// # Errors
/// 422 when an operation fails, or the outcome is no object of this kind.
pub(super) fn patched(
    kind: &Kind,
    current: &Value,
    patch: &Patch,
    validation: FieldValidation,
) -> Result<(Value, Vec<String>), Status> {
    let mut object = current.clone();
    match patch {
        Patch::Merge(change) => merge(&mut object, change),
        Patch::Json(operations) => json::apply(&mut object, operations).map_err(|error| {
            tracing::debug!(error, "a patch failed");
            Status::patch_failed()
        })?,
    }
    let refused = |why: &str| {
        let sent = match patch {
            Patch::Merge(change) => encode_json(change),
            Patch::Json(operations) => encode_json(operations),
        };
        let sent = go_text::quote(&String::from_utf8_lossy(&sent));
        Status::invalid_patch(Cause {
            reason: "FieldValueInvalid".to_owned(),
            message: format!("Invalid value: {sent}: {why}"),
            field: "patch".to_owned(),
        })
    };
    if !object.is_object() {
        return Err(refused("the outcome is no object"));
    }
    check_types(kind, &object).map_err(|why| refused(&why))?;
    let unknown: Vec<String> = drop_unknown_fields(kind, &mut object)
        .into_iter()
        .map(|field| format!("unknown field \"{field}\""))
        .collect();
    match validation {
        FieldValidation::Strict if !unknown.is_empty() => {
            Err(refused(&format!("strict decoding error: {}", unknown.join(", "))))
        }
        FieldValidation::Ignore | FieldValidation::Strict => Ok((object, Vec::new())),
        FieldValidation::Warn => Ok((object, unknown)),
    }
}

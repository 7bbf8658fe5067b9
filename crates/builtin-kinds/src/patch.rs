//! Application of patches. The result is validated elsewhere.

use apimachinery::encode::encode_json;
use apimachinery::kind::ApiResource;
use apimachinery::status::{Cause, Status};
use apimachinery::write::{FieldValidation, Patch};
use apimachinery::{Version, depth, go_text};
use json_patch::merge;
use serde_json::{Map, Value};

use super::schema::Schema;
use super::{convert, types};
use crate::field_validation::validated;

mod json;
mod strategic;
mod tree;

/// Returns the object after the patch, and warnings. `duplicates` are the duplicate fields of the patch.
///
/// # Errors
///
/// 422 if an operation fails or the result is not an object of this kind; 400 and 500 for unknown directives of a strategic
/// merge patch.
pub fn patched(
    kind: &ApiResource,
    current: &Value,
    patch: &Patch,
    duplicates: &[String],
    validation: FieldValidation,
    version: Version,
) -> Result<(Value, Vec<String>), Status> {
    let mut object = current.clone();
    match patch {
        Patch::Merge(change) => merge(&mut object, change),
        Patch::Json(operations) => {
            object = json::apply(object, operations).map_err(|error| {
                tracing::debug!(%error, "a patch failed");
                Status::patch_failed()
            })?;
        }
        Patch::Strategic(change) => {
            if let Some(object) = object.as_object_mut() {
                strategic::merge(Schema::of_builtin(kind, version), object, change)?;
            }
        }
    }
    // The patch as the error for its result shows it.
    let sent = || match patch {
        Patch::Merge(change) => shown_sorted(&object, change),
        Patch::Json(_) => shown_sorted(&object, &Value::Null),
        Patch::Strategic(change) => go_text::value(&Value::Object(change.clone())),
    };
    let refused = |why: &str| {
        Status::invalid_patch(Cause {
            reason: "FieldValueInvalid".to_owned(),
            message: format!("Invalid value: {}: {why}", go_text::quote(&sent())),
            field: "patch".to_owned(),
        })
    };
    if !object.is_object() {
        return Err(refused("the outcome is no object"));
    }
    if depth::is_too_deep(&object) {
        return Err(refused(depth::TOO_DEEP));
    }
    if !matches!(patch, Patch::Strategic(_))
        && let Some(why) = convert::refusal(kind, &object, SCHEME)
    {
        return Err(refused(&why));
    }
    if let Patch::Strategic(_) = patch {
        // The kind cannot change, and a value of the wrong type is reported before the write.
        types::restorable(kind, &object).map_err(|why| refused(&why))?;
    }
    let read = types::read_tree(kind, &object);
    if validation == FieldValidation::Strict && !duplicates.is_empty() {
        let mut problems = duplicates.to_vec();
        problems.extend(read.problems);
        return Err(refused(&format!(
            "strict decoding error: {}",
            problems.join(", ")
        )));
    }
    let (patched, unknown) = validated(kind, read, validation).map_err(|why| refused(&why))?;
    let mut warnings = match validation {
        FieldValidation::Warn => duplicates.to_vec(),
        FieldValidation::Ignore | FieldValidation::Strict => Vec::new(),
    };
    warnings.extend(unknown);
    Ok((patched, warnings))
}

/// Name of the scheme in errors of patches.
const SCHEME: &str = "pkg/runtime/scheme.go:111";

/// Error of a JSON Patch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// A `test` fails.
    #[error("{0}")]
    Test(String),
    /// Another operation fails, or the outcome is above a limit or no object.
    #[error("{0}")]
    Other(String),
}

/// Returns the object after the operations of a JSON Patch, which may be invalid.
///
/// # Errors
/// A [`PatchError`].
pub fn by_operations(object: Value, operations: &[Map<String, Value>]) -> Result<Value, PatchError> {
    let object = json::apply(object, operations)?;
    match object.is_object() && !depth::is_too_deep(&object) {
        true => Ok(object),
        false => Err(PatchError::Other("the outcome is no object".to_owned())),
    }
}

/// Encodes an object after a patch.
fn shown_sorted(object: &Value, change: &Value) -> String {
    let mut shown = object.clone();
    sort_touched(&mut shown, change);
    String::from_utf8_lossy(&encode_json(&shown)).into_owned()
}

/// Sorts the maps that the patch contains, as rewriting them in Go does; others keep their order.
fn sort_touched(object: &mut Value, change: &Value) {
    if let Value::Object(fields) = object {
        fields.sort_keys();
        for (name, change) in change.as_object().into_iter().flatten() {
            if let (Some(below), true) = (fields.get_mut(name), change.is_object()) {
                sort_touched(below, change);
            }
        }
    }
}

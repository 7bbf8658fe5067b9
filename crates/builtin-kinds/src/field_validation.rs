//! Decodes an object as its kind: types of fields, and unknown or duplicate fields by `fieldValidation`.
//!
//! It must not know requests.

use apimachinery::go_text;
use apimachinery::kind::ApiResource;
use apimachinery::write::FieldValidation;
use serde_json::Value;

use crate::crd::Definition;
use crate::types::{self, Reading};

/// Returns the decoded object and its warnings.
///
/// # Errors
///
/// Go's message for a value of the wrong type and, with strict validation, for unknown or duplicate fields.
pub fn validated(
    kind: &ApiResource,
    read: Reading,
    validation: FieldValidation,
) -> Result<(Value, Vec<String>), String> {
    let Reading {
        mut object,
        mut problems,
        misfit,
    } = read;
    if kind.custom {
        problems.extend(read_metadata(&mut object)?);
        let mut unknown = Vec::new();
        if let Some(definition) = Definition::of(kind) {
            unknown.extend(definition.receive(&mut object));
            unknown.extend(definition.receive_embedded(&mut object)?);
        }
        problems.extend(unknown.iter().map(|field| format!("unknown field \"{field}\"")));
    }
    if let Some(misfit) = misfit {
        return Err(misfit);
    }
    match validation {
        FieldValidation::Strict if !problems.is_empty() => {
            Err(format!("strict decoding error: {}", problems.join(", ")))
        }
        FieldValidation::Ignore | FieldValidation::Strict => Ok((object, Vec::new())),
        FieldValidation::Warn => Ok((object, problems)),
    }
}

/// Decodes the metadata of a custom resource, and returns its unknown fields.
///
/// # Errors
///
/// Go's message for the first field of the wrong type.
fn read_metadata(object: &mut Value) -> Result<Vec<String>, String> {
    let Some(metadata) = object.get_mut("metadata") else {
        return Ok(Vec::new());
    };
    match metadata {
        Value::Null => return Ok(Vec::new()),
        Value::Object(_) => {}
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            return Err(format!(
                "json: cannot unmarshal {} into Go value of type v1.ObjectMeta",
                go_text::json_kind(metadata)
            ));
        }
    }
    let read = types::read_named("meta/v1.ObjectMeta", metadata);
    match read.misfit {
        Some(misfit) => Err(misfit),
        None => {
            *metadata = read.object;
            let prefixed = |problem: String| problem.replacen("field \"", "field \"metadata.", 1);
            Ok(read.problems.into_iter().map(prefixed).collect())
        }
    }
}

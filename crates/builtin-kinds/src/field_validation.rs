//! Decodes an object as its kind: types of fields, and unknown or duplicate fields by `fieldValidation`.
//!
//! It must not know requests.

use apimachinery::go_text;
use apimachinery::kind::ApiResource;
use apimachinery::object::OBJECT_META;
use apimachinery::write::FieldValidation;
use serde_json::Value;

use crate::crd::Definition;
use crate::types::Reading;

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
        check_metadata(kind, &object)?;
        let mut unknown = drop_unknown_metadata(&mut object);
        unknown
            .iter_mut()
            .for_each(|field| field.insert_str(0, "metadata."));
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

/// Removes unknown fields of the metadata and returns their names.
fn drop_unknown_metadata(object: &mut Value) -> Vec<String> {
    let mut unknown = Vec::new();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|field, _| {
            let known = OBJECT_META.contains(&field.as_str());
            if !known {
                unknown.push(field.clone());
            }
            known
        });
    }
    unknown
}

/// Checks the types of the metadata of a custom resource. Null is the zero value of any type.
///
/// # Errors
///
/// Go's message for the first field of the wrong type.
fn check_metadata(kind: &ApiResource, object: &Value) -> Result<(), String> {
    let wrong = |value: &Value, place: &str, go_type: &str| {
        format!(
            "json: cannot unmarshal {} into Go struct field {place} of type {go_type}",
            go_text::json_kind(value)
        )
    };
    let metadata = match &object["metadata"] {
        Value::Null => return Ok(()),
        metadata @ Value::Object(_) => metadata,
        other @ (Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
            let place = format!("{}.metadata", kind.kind);
            return Err(wrong(other, &place, "v1.ObjectMeta"));
        }
    };
    let is_text = |value: &Value| value.is_string() || value.is_null();
    for field in ["name", "generateName", "namespace", "uid", "resourceVersion"] {
        if !is_text(&metadata[field]) {
            return Err(wrong(
                &metadata[field],
                &format!("ObjectMeta.metadata.{field}"),
                "string",
            ));
        }
    }
    for field in ["labels", "annotations"] {
        let place = format!("ObjectMeta.metadata.{field}");
        match &metadata[field] {
            Value::Null => {}
            Value::Object(entries) => {
                if let Some(other) = entries.values().find(|value| !is_text(value)) {
                    return Err(wrong(other, &place, "string"));
                }
            }
            other @ (Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
                return Err(wrong(other, &place, "map[string]string"));
            }
        }
    }
    let place = "ObjectMeta.metadata.finalizers";
    match &metadata["finalizers"] {
        Value::Null => {}
        Value::Array(finalizers) => {
            if let Some(other) = finalizers.iter().find(|value| !is_text(value)) {
                return Err(wrong(other, place, "string"));
            }
        }
        other @ (Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_)) => {
            return Err(wrong(other, place, "[]string"));
        }
    }
    Ok(())
}

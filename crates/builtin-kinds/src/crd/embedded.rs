//! Resources embedded in custom resources (`x-kubernetes-embedded-resource`): the types and the validity of their apiVersion, kind
//! and metadata.
//!
//! It must not know the schema of anything else in an object.
//!
//! Source: apiextensions `apiserver/schema/objectmeta/{algorithm,validation}.go`.

use apimachinery::Version;
use apimachinery::status::Cause;
use serde_json::{Map, Value};

use super::prune::child;
use super::structural::{Additional, Schema};
use crate::error_list::ErrorList;
use crate::{naming, types, validation};

/// Name of embedded metadata that has none, for its validation.
const SOME_NAME: &str = "fakename";

/// Removes unknown fields from the metadata of embedded resources, and returns their paths in order. `is_resource`: the value is a
/// resource itself.
///
/// # Errors
/// The first apiVersion, kind or metadata of the wrong type, with its field.
pub(super) fn coerce(value: &mut Value, schema: &Schema, is_resource: bool) -> Result<Vec<String>, Cause> {
    let mut gone = Vec::new();
    coerce_at(value, schema, is_resource || schema.embedded, "", &mut gone)?;
    gone.sort_unstable();
    Ok(gone)
}

fn coerce_at(
    value: &mut Value,
    schema: &Schema,
    is_resource: bool,
    path: &str,
    gone: &mut Vec<String>,
) -> Result<(), Cause> {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match name.as_str() {
                    "apiVersion" | "kind" if is_resource && !value.is_string() => {
                        return Err(invalid(&child(path, name), value, "must be a string"));
                    }
                    "metadata" if is_resource => coerce_metadata(value, &child(path, name), gone)?,
                    _ => {}
                }
                if let Some((below, path)) = part(schema, path, name) {
                    coerce_at(value, below, below.embedded, &path, gone)?;
                }
            }
        }
        Value::Array(items) => {
            if let Some(below) = &schema.items {
                for (index, item) in items.iter_mut().enumerate() {
                    coerce_at(item, below, below.embedded, &format!("{path}[{index}]"), gone)?;
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    Ok(())
}

fn coerce_metadata(metadata: &mut Value, path: &str, gone: &mut Vec<String>) -> Result<(), Cause> {
    let read = types::read_named("meta/v1.ObjectMeta", metadata);
    if let Some(misfit) = read.misfit {
        return Err(invalid(path, metadata, &misfit));
    }
    let unknown = read.problems.iter();
    gone.extend(unknown.filter_map(|problem| {
        let field = problem.strip_prefix("unknown field \"")?.strip_suffix('"')?;
        Some(child(path, field))
    }));
    *metadata = read.object;
    Ok(())
}

/// Returns the errors of the embedded resources of a value whose types are right. `is_resource`: the value is a resource itself.
pub(super) fn validate(value: &Value, schema: &Schema, is_resource: bool, version: Version) -> Vec<Cause> {
    let mut found = ErrorList::default();
    validate_at(
        &mut found,
        value,
        schema,
        is_resource || schema.embedded,
        ("", version),
    );
    found.into_causes()
}

fn validate_at(
    found: &mut ErrorList,
    value: &Value,
    schema: &Schema,
    is_resource: bool,
    (path, version): (&str, Version),
) {
    match value {
        Value::Object(fields) => {
            if is_resource {
                resource(found, fields, path, version);
            }
            for (name, value) in fields {
                if let Some((below, path)) = part(schema, path, name) {
                    validate_at(found, value, below, below.embedded, (&path, version));
                }
            }
        }
        Value::Array(items) => {
            if let Some(below) = &schema.items {
                for (index, item) in items.iter().enumerate() {
                    let path = format!("{path}[{index}]");
                    validate_at(found, item, below, below.embedded, (&path, version));
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn resource(found: &mut ErrorList, fields: &Map<String, Value>, path: &str, version: Version) {
    for field in ["apiVersion", "kind"] {
        if !fields.contains_key(field) {
            found.required(&child(path, field), "");
        }
    }
    for (field, value) in fields {
        let at = child(path, field);
        match (field.as_str(), value.as_str()) {
            ("apiVersion" | "kind", None) => found.invalid(&at, value, "must be a string"),
            ("apiVersion" | "kind", Some("")) => found.invalid(&at, value, "must not be empty"),
            ("apiVersion", Some(text)) if text.matches('/').count() > 1 => {
                found.invalid(&at, value, &format!("unexpected GroupVersion string: {text}"));
            }
            ("kind", Some(text)) => {
                let why = naming::dns1035_label(&text.to_lowercase());
                if !why.is_empty() {
                    let why = why.join(",");
                    found.invalid(
                        &at,
                        value,
                        &format!("may have mixed case, but should otherwise match: {why}"),
                    );
                }
            }
            ("metadata", _) => {
                let mut metadata = types::read_named("meta/v1.ObjectMeta", value).object;
                if metadata["name"].as_str().is_none_or(str::is_empty) {
                    metadata["name"] = SOME_NAME.into();
                }
                for mut cause in validation::embedded_metadata(&metadata, version) {
                    cause.field = child(path, &cause.field);
                    found.extend(vec![cause]);
                }
            }
            (_, _) => {}
        }
    }
}

/// Returns the schema of a field, and its path.
fn part<'s>(schema: &'s Schema, path: &str, name: &str) -> Option<(&'s Schema, String)> {
    match (schema.properties.get(name), &schema.additional) {
        (Some(schema), _) => Some((schema, child(path, name))),
        (None, Additional::Schema(schema)) => Some((schema, format!("{path}[{name}]"))),
        (None, Additional::Any | Additional::Forbidden | Additional::None) => None,
    }
}

fn invalid(field: &str, value: &Value, why: &str) -> Cause {
    let mut found = ErrorList::default();
    found.invalid(field, value, why);
    found.into_causes().pop().unwrap_or_default()
}

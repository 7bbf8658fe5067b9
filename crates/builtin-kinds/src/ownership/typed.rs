//! Type check of an applied configuration, whose error texts differ from those of other writes.
//!
//! Source: structured-merge-diff `typed/validate.go`; recordings of kube-apiserver.

use std::collections::BTreeSet;

use apimachinery::go_text;
use serde_json::Value;

use super::fields::{self, Parts};
use crate::schema::{Schema, Shape};

/// Checks the types of an applied configuration.
///
/// # Errors
///
/// All type errors, in order: `.spec.replicas: expected numeric (int or float), got string`.
pub(super) fn check(schema: Option<&Schema>, config: &Value) -> Result<(), Vec<String>> {
    let mut errors = Vec::new();
    if let Some(schema) = schema {
        look(schema, config, "", &mut errors);
    }
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// The errors as one text.
pub(super) fn joined(errors: &[String]) -> String {
    match errors {
        [one] => one.clone(),
        several => format!("errors:\n  {}", several.join("\n  ")),
    }
}

fn look(schema: &Schema, value: &Value, path: &str, errors: &mut Vec<String>) {
    if value.is_null() {
        return;
    }
    let shape = schema.shape();
    let fits = match shape {
        Shape::Object | Shape::Map => value.is_object(),
        Shape::List => value.is_array(),
        Shape::Text => value.is_string(),
        Shape::Integer | Shape::Number => value.is_number(),
        Shape::Boolean => value.is_boolean(),
        Shape::Anything => true,
    };
    if !fits {
        errors.push(format!("{path}: {}", misfit(shape, value)));
        return;
    }
    match value {
        Value::Object(entries) if shape != Shape::Anything => {
            for (name, value) in entries {
                let path = format!("{path}.{name}");
                match schema.field(name) {
                    Some(below) => look(below, value, &path, errors),
                    None if schema.preserves() => {}
                    None => errors.push(format!("{path}: field not declared in schema")),
                }
            }
        }
        Value::Array(items) => {
            let Some(below) = schema.items() else { return };
            let Parts::Items(parts) = fields::parts(Some(schema), value) else {
                for (nth, item) in items.iter().enumerate() {
                    look(below, item, &format!("{path}[{nth}]"), errors);
                }
                return;
            };
            let mut seen = BTreeSet::new();
            for (nth, (element, item)) in parts.iter().enumerate() {
                if element.starts_with("k:") && !item.is_object() {
                    let why = "associative list with keys may not have non-map elements";
                    errors.push(format!("{path}: element {nth}: {why}"));
                    return;
                }
                let shown = fields::shown(&vec![element.clone()]);
                if !seen.insert(element) {
                    errors.push(format!("{path}: duplicate entries for key {shown}"));
                }
                look(below, item, &format!("{path}{shown}"), errors);
            }
        }
        Value::Object(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn misfit(shape: Shape, value: &Value) -> String {
    let shown = go_text::value(value);
    let inner = format!("&value.valueUnstructured{{Value:{shown}}}");
    match shape {
        Shape::Text => format!("expected string, got {inner}"),
        Shape::Boolean => format!("expected boolean, got {inner}"),
        Shape::Integer | Shape::Number => {
            let what = match value {
                Value::String(_) => "string".to_owned(),
                Value::Bool(_) => "bool".to_owned(),
                Value::Null | Value::Number(_) | Value::Array(_) | Value::Object(_) => inner,
            };
            format!("expected numeric (int or float), got {what}")
        }
        Shape::List => format!("expected list, got &{{{shown}}}"),
        Shape::Object | Shape::Map | Shape::Anything => format!("expected map, got &{{{shown}}}"),
    }
}

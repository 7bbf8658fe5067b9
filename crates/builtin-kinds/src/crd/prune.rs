//! Pruning of unknown fields, and defaults, by the schema of a custom resource.
//!
//! Source: apiextensions `apiserver/schema/pruning/algorithm.go` and `apiserver/schema/defaulting/algorithm.go`.

use serde_json::{Map, Value};

use super::structural::{Additional, Schema};
use crate::size::{DEFAULT_BYTES_MAX, json_bytes};

/// Removes fields that `schema` does not specify, and returns their paths in order: `spec.list[0].x`.
pub(super) fn prune(object: &mut Value, schema: &Schema) -> Vec<String> {
    prune_below(object, schema, true)
}

/// Does the same with a part of an object; `is_resource`: it has a kind and metadata, which stay.
pub(super) fn prune_below(part: &mut Value, schema: &Schema, is_resource: bool) -> Vec<String> {
    let mut gone = Vec::new();
    prune_at(part, Some(schema), (is_resource, false), "", &mut gone);
    gone.sort_unstable();
    gone
}

/// `schema`: `None` below a value of which nothing is known, where all fields are unknown. `is_item`: of a list that keeps unknown
/// fields, which its items then do too.
fn prune_at(
    value: &mut Value,
    schema: Option<&Schema>,
    (is_resource, is_item): (bool, bool),
    path: &str,
    gone: &mut Vec<String>,
) {
    let preserves = is_item || schema.is_some_and(|schema| schema.preserves);
    match value {
        Value::Object(fields) => fields.retain(|name, value| {
            let path = child(path, name);
            if is_resource && matches!(name.as_str(), "apiVersion" | "kind" | "metadata") {
                return true;
            }
            let below = match schema {
                Some(schema) => match (schema.properties.get(name), &schema.additional) {
                    (Some(schema), _) => Some(Some(schema)),
                    (None, Additional::Schema(schema)) => Some(Some(&**schema)),
                    (None, Additional::Any | Additional::Forbidden) => Some(None),
                    (None, Additional::None) => None,
                },
                None => None,
            };
            match below {
                Some(schema) => {
                    let is_embedded = schema.is_some_and(|schema| schema.embedded);
                    prune_at(value, schema, (is_embedded, false), &path, gone);
                }
                None if preserves => {}
                None => gone.push(path),
            }
            below.is_some() || preserves
        }),
        Value::Array(items) => {
            let of = schema.and_then(|schema| schema.items.as_deref());
            if of.is_none() && preserves {
                return;
            }
            let is_embedded = of.is_some_and(|schema| schema.embedded);
            for (index, item) in items.iter_mut().enumerate() {
                prune_at(
                    item,
                    of,
                    (is_embedded, preserves),
                    &format!("{path}[{index}]"),
                    gone,
                );
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Makes whole numbers of floats without a fraction: Go writes them alike, and reads whole numbers.
pub(crate) fn settle_numbers(value: &mut Value) {
    /// From here on a float does not stand for one whole number.
    const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::Number(number) if number.is_f64() => {
            let whole = number
                .as_f64()
                .filter(|float| float.fract() == 0.0 && float.abs() < WHOLE_MAX);
            if let Some(float) = whole.filter(|float| *float != 0.0 || float.is_sign_positive()) {
                #[expect(clippy::cast_possible_truncation, reason = "a whole number below 2^53")]
                let whole = float as i64;
                *value = whole.into();
            }
        }
        Value::Object(fields) => fields.values_mut().for_each(settle_numbers),
        Value::Array(items) => items.iter_mut().for_each(settle_numbers),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Removes nulls that are not allowed, and sets defaults of absent fields until the object is larger than can be stored.
pub(super) fn fill(value: &mut Value, schema: &Schema) {
    fill_below(value, schema, is_dropped, &mut 0);
}

/// Does the same with an applied object, but removes only the nulls that have a default.
pub(super) fn fill_applied(value: &mut Value, schema: &Schema) {
    fill_below(value, schema, is_replaced, &mut 0);
}

/// Whether a null under this schema is removed from a received object.
fn is_dropped(schema: &Schema) -> bool {
    !schema.nullable
}

/// Whether a null under this schema is removed from an applied object, to which a default is added.
fn is_replaced(schema: &Schema) -> bool {
    !schema.nullable && schema.default.is_some()
}

/// `filled`: bytes of the defaults set so far.
fn fill_below(value: &mut Value, schema: &Schema, drops: fn(&Schema) -> bool, filled: &mut usize) {
    match value {
        Value::Object(fields) => {
            drop_nulls(fields, schema, drops);
            for (name, schema) in &schema.properties {
                if let (Some(default), false) = (&schema.default, fields.contains_key(name))
                    && *filled <= DEFAULT_BYTES_MAX
                {
                    *filled += name.len() + json_bytes(default);
                    fields.insert(name.clone(), default.clone());
                }
            }
            for (name, value) in fields.iter_mut() {
                match (schema.properties.get(name), &schema.additional) {
                    (Some(schema), _) => fill_below(value, schema, drops, filled),
                    (None, Additional::Schema(schema)) => fill_below(value, schema, drops, filled),
                    (None, Additional::Any | Additional::Forbidden | Additional::None) => {}
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = &schema.items {
                items
                    .iter_mut()
                    .for_each(|item| fill_below(item, schema, drops, filled));
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn drop_nulls(fields: &mut Map<String, Value>, schema: &Schema, drops: fn(&Schema) -> bool) {
    fields.retain(|name, value| {
        let known = match (schema.properties.get(name), &schema.additional) {
            (Some(schema), _) => Some(schema),
            (None, Additional::Schema(schema)) => Some(&**schema),
            (None, Additional::Any | Additional::Forbidden | Additional::None) => None,
        };
        !value.is_null() || !known.is_some_and(drops)
    });
}

pub(super) fn child(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}

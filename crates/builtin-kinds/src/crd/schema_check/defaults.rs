//! Whether the defaults of a structural schema are valid themselves.
//!
//! Source: apiextensions `apiserver/schema/defaulting/validation.go`.

use apimachinery::Version;
use serde_json::Value;

use super::super::prune::{coerce_embedded, prune_below};
use super::super::structural::{Schema, members};
use super::super::{rules, validate};
use crate::error_list::ErrorList;

/// Adds the errors of the defaults in a schema and below it. Below `additionalProperties` and combinations there are none.
pub(super) fn check(found: &mut ErrorList, schema: &Value, at: &str, version: Version) {
    below(found, schema, at, (true, false), version);
}

/// `is_resource`: it has a kind and metadata; `in_metadata`: it is one of these.
fn below(
    found: &mut ErrorList,
    schema: &Value,
    at: &str,
    (is_resource, in_metadata): (bool, bool),
    version: Version,
) {
    if schema.get("default").is_some_and(|default| !default.is_null()) {
        own(
            found,
            schema,
            &format!("{at}.default"),
            (is_resource, in_metadata),
            version,
        );
    }
    let is_embedded = |schema: &Value| schema["x-kubernetes-embedded-resource"] == true;
    if schema["items"].is_object() {
        let items = &schema["items"];
        let embedded = is_embedded(items);
        below(
            found,
            items,
            &format!("{at}.items"),
            (embedded, in_metadata && !embedded),
            version,
        );
    }
    for (name, property) in members(&schema["properties"]) {
        let embedded = is_embedded(property);
        let of_server = is_resource && matches!(name.as_str(), "metadata" | "apiVersion" | "kind");
        below(
            found,
            property,
            &format!("{at}.properties[{name}]"),
            (embedded, (in_metadata || of_server) && !embedded),
            version,
        );
    }
}

fn own(
    found: &mut ErrorList,
    schema: &Value,
    at: &str,
    (is_resource, in_metadata): (bool, bool),
    version: Version,
) {
    let default = &schema["default"];
    // The type of an integer or string is validated for objects only.
    let mut schema = schema.clone();
    without_int_or_string(&mut schema);
    let mut read = Schema::read(&schema);
    read.embedded = is_resource;
    let mut pruned = default.clone();
    if !in_metadata && !prune_below(&mut pruned, &read, read.embedded).is_empty() {
        found.invalid(at, default, "must not have unknown fields");
    }
    if let Err(why) = coerce_embedded(&mut pruned, &read) {
        let (field, why) = why.split_once(": ").unwrap_or(("", &why));
        found.invalid_text(&format!("{at}.{field}"), why);
        return;
    }
    let missing = ["apiVersion", "kind"]
        .into_iter()
        .filter(|field| default[*field].is_null());
    let missing: Vec<&str> = missing.filter(|_| is_resource && default.is_object()).collect();
    if !missing.is_empty() {
        return missing
            .iter()
            .for_each(|field| found.required(&format!("{at}.{field}"), ""));
    }
    let mut causes = validate::validate_default(&read, default, version);
    if causes.is_empty() {
        causes = rules::evaluate_all(&read, default, Some(default)).causes;
    }
    if causes.is_empty() {
        causes = rules::evaluate_all(&read, default, None).causes;
    }
    for cause in &mut causes {
        cause.field = match cause.field.as_str() {
            "<nil>" => at.to_owned(),
            field => format!("{at}.{field}"),
        };
    }
    found.extend(causes);
}

fn without_int_or_string(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            fields.shift_remove("x-kubernetes-int-or-string");
            fields.values_mut().for_each(without_int_or_string);
        }
        Value::Array(items) => items.iter_mut().for_each(without_int_or_string),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

//! Validation of a schema: it must be structural, and free of contradictions.
//!
//! Source: apiextensions `apis/apiextensions/validation/validation.go`, `apiserver/schema/validation.go`.

use apimachinery::Version;
use serde_json::Value;

use super::prune::fill;
use super::structural::{Schema, members};
use super::{patterns, rule, rule_check, validate};
use crate::error_list::ErrorList;

/// Types of values.
const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];

/// Returns the errors of a root schema.
pub(super) fn root(found: &mut ErrorList, schema: &Value, at: &str) {
    match schema["type"].as_str().unwrap_or_default() {
        "" => found.required(&format!("{at}.type"), "must not be empty at the root"),
        "object" => {}
        _ => found.invalid(
            &format!("{at}.type"),
            &schema["type"],
            "must be object at the root",
        ),
    }
    let before = found.len();
    below(found, schema, at);
    // Rules are only compiled with the types of a valid schema.
    if found.len() == before {
        rule_check::check(found, schema, at);
    }
}

fn below(found: &mut ErrorList, schema: &Value, at: &str) {
    own(found, schema, at);
    for (name, property) in members(&schema["properties"]) {
        let at = format!("{at}.properties[{name}]");
        typed(
            found,
            property,
            &at,
            "must not be empty for specified object fields",
        );
        below(found, property, &at);
    }
    if schema["additionalProperties"].is_object() {
        let (additional, at) = (
            &schema["additionalProperties"],
            format!("{at}.additionalProperties"),
        );
        typed(
            found,
            additional,
            &at,
            "must not be empty for specified object fields",
        );
        below(found, additional, &at);
        if members(&schema["properties"]).next().is_some() {
            found.forbidden(&at, "additionalProperties and properties are mutual exclusive");
        }
    }
    if schema["items"].is_object() {
        let (items, at) = (&schema["items"], format!("{at}.items"));
        typed(found, items, &at, "must not be empty for specified array items");
        below(found, items, &at);
    } else if schema["type"] == "array" {
        found.required(&format!("{at}.items"), "must be specified");
    }
}

/// Adds the error of a schema without a type, unless it allows any value.
fn typed(found: &mut ErrorList, schema: &Value, at: &str, why: &str) {
    let is_free = [
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-int-or-string",
    ]
    .iter()
    .any(|extension| schema[*extension] == true);
    if schema["type"].as_str().unwrap_or_default().is_empty() && !is_free {
        found.required(&format!("{at}.type"), why);
    }
}

fn own(found: &mut ErrorList, schema: &Value, at: &str) {
    let kind = schema["type"].as_str().unwrap_or_default();
    if !kind.is_empty() && !TYPES.contains(&kind) {
        found.unsupported(&format!("{at}.type"), &schema["type"], &TYPES);
    }
    if schema["uniqueItems"] == true {
        let why = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        found.forbidden(&format!("{at}.uniqueItems"), why);
    }
    if schema["additionalProperties"] == false {
        found.forbidden(
            &format!("{at}.additionalProperties"),
            "additionalProperties cannot be set to false",
        );
    }
    for field in [
        "$ref",
        "patternProperties",
        "definitions",
        "dependencies",
        "additionalItems",
    ] {
        if schema.get(field).is_some_and(|value| !value.is_null()) {
            found.forbidden(&format!("{at}.{field}"), &format!("{field} is not supported"));
        }
    }
    if let Some(Err(error)) = schema["pattern"].as_str().map(patterns::check) {
        found.invalid(
            &format!("{at}.pattern"),
            &schema["pattern"],
            &format!("must be a valid regular expression, but isn't: error parsing regexp: {error}"),
        );
    }
    rule::validate(found, schema, at);
    if let Some(default) = schema.get("default").filter(|default| !default.is_null()) {
        let read = Schema::read(schema);
        let mut filled = default.clone();
        fill(&mut filled, &read);
        let mut causes = validate::validate(&read, &filled, None, "", Version::OLDEST);
        for cause in &mut causes {
            cause.field = match cause.field.as_str() {
                "<nil>" => format!("{at}.default"),
                field => format!("{at}.default.{field}"),
            };
        }
        found.extend(causes);
    }
}

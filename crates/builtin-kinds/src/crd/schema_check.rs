//! Validation of the schema of a definition: structural, with valid defaults, and free of contradictions.
//!
//! It must not know objects.
//!
//! Source: apiextensions `apis/apiextensions/validation/validation.go` (`validateCustomResourceDefinitionValidation`).

use apimachinery::Version;
use apimachinery::status::Cause;
use serde_json::Value;

use super::rule_check;
use crate::error_list::ErrorList;

mod defaults;
mod extensions;
mod shown;
mod structure;

/// Returns the errors of a root schema at `at`. `has_status`: the definition has a status subresource.
pub(super) fn root(found: &mut ErrorList, schema: &Value, at: &str, (has_status, version): (bool, Version)) {
    let first = found.len();
    if has_status {
        beside_status(found, schema, at);
    }
    if schema["nullable"] == true {
        found.forbidden(&format!("{at}.nullable"), "nullable cannot be true at the root");
    }
    let mut sound = false;
    let structural = structure::errors(schema, at);
    let is_unsupported = structural.is_none();
    if let Some(structural) = structural {
        sound = structural.is_empty();
        found.extend(structural);
    }
    if sound {
        let before = found.len();
        defaults::check(found, schema, at, version);
        sound = found.len() == before;
    }
    let before = found.len();
    extensions::check(found, schema, at);
    // Rules are compiled with the types of a schema that is valid there and below.
    if sound {
        let invalid: Vec<Cause> = found.since(before).to_vec();
        rule_check::check(found, schema, at, &invalid);
    }
    // All other fields that are not supported have separate errors.
    if found.len() == first && is_unsupported {
        found.invalid(at, &"".into(), "OpenAPIV3Schema 'schema' is not supported");
    }
}

/// Fields of the root schema beside which a status may be validated on its own, in the order of the struct.
const BESIDE_STATUS: &str = "[Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength \
                             MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties \
                             ExternalDocs Example XPreserveUnknownFields XValidations]";

/// Adds the error of a root schema whose status cannot be validated on its own.
fn beside_status(found: &mut ErrorList, schema: &Value, at: &str) {
    let kind = schema["type"].as_str().unwrap_or_default();
    let order = shown::FIELDS.iter().map(|(field, _, _)| *field);
    // The first field that is not allowed is reported.
    for field in order.filter(|field| shown::is_set(schema, field)) {
        let name = shown::name_of(field);
        if field == "type" && kind != "object" {
            let why = "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled";
            found.invalid(&format!("{at}.type"), &schema["type"], why);
            return;
        }
        let allowed = BESIDE_STATUS.trim_matches(['[', ']']);
        if !allowed.split(' ').any(|allowed| allowed == name) {
            let why = format!(
                "only {BESIDE_STATUS} fields are allowed at the root of the schema if the status subresource is enabled"
            );
            found.invalid(at, &shown::shown(schema), &why);
            return;
        }
    }
}

/// Returns the text of a field; empty if it has none.
fn text<'s>(schema: &'s Value, field: &str) -> &'s str {
    schema[field].as_str().unwrap_or_default()
}

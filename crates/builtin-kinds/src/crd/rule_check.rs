//! Errors in the expressions of rules: they are compiled with the types that the schema declares.
//!
//! The cost of rules is not estimated: a definition that a server rejects for it is accepted.
//!
//! Source: apiextensions `apis/apiextensions/validation/validation.go`, `apiserver/schema/cel/compilation.go`; messages as
//! Kubernetes 1.36 sends them.

use std::collections::BTreeMap;
use std::sync::Arc;

use apimachinery::status::Cause;
use serde_json::Value;

use super::rule::{Rule, shown};
use super::rules::escaped;
use super::structural::{Additional, List, Schema, Type};
use crate::error_list::ErrorList;
use crate::expression::check;

/// Adds the errors of the rules of the root schema; those of a part that is `invalid`, or contains such a part, are not compiled.
pub(super) fn check(found: &mut ErrorList, schema: &Value, at: &str, invalid: &[Cause]) {
    let read = Schema::read(schema);
    if read.has_cel {
        below(found, (schema, &read), at, None, (true, invalid));
    }
}

/// `uncorrelated`: the list that contains it and whose items have no keys.
fn below(
    found: &mut ErrorList,
    (json, schema): (&Value, &Schema),
    at: &str,
    uncorrelated: Option<&str>,
    (is_object, invalid): (bool, &[Cause]),
) {
    if !schema.has_cel {
        return;
    }
    for (name, property) in &schema.properties {
        let json = &json["properties"][name];
        let at = format!("{at}.properties[{name}]");
        below(
            found,
            (json, property),
            &at,
            uncorrelated,
            (property.embedded, invalid),
        );
    }
    if let Additional::Schema(additional) = &schema.additional {
        let at_additional = format!("{at}.additionalProperties");
        let json = &json["additionalProperties"];
        below(
            found,
            (json, additional),
            &at_additional,
            uncorrelated,
            (additional.embedded, invalid),
        );
    }
    if let Some(items) = &schema.items {
        let keyed = matches!(schema.list, List::Map(_));
        let uncorrelated = uncorrelated.or((!keyed).then_some(at));
        let at_items = format!("{at}.items");
        below(
            found,
            (&json["items"], items),
            &at_items,
            uncorrelated,
            (items.embedded, invalid),
        );
    }
    if !invalid.iter().any(|cause| cause.field.starts_with(at)) {
        own(found, (json, schema), at, uncorrelated, is_object);
    }
}

fn own(
    found: &mut ErrorList,
    (json, schema): (&Value, &Schema),
    at: &str,
    uncorrelated: Option<&str>,
    is_object: bool,
) {
    if schema.cel.is_empty() {
        return;
    }
    let Some(declared) = declared(schema, is_object) else {
        let why = "internal error: failed to construct type information for x-kubernetes-validations rules: unable to convert \
                   structural schema to CEL declarations";
        found.internal(&format!("{at}.x-kubernetes-validations"), why);
        return;
    };
    for (index, rule) in schema.cel.iter().enumerate() {
        // What is wrong with further rules would not be reported.
        if found.is_full() {
            return;
        }
        let at = |field: &str| format!("{at}.x-kubernetes-validations[{index}].{field}");
        let json = &json["x-kubernetes-validations"][index];
        let old = match rule.optional_old_self {
            Some(true) => check::Type::Optional(Arc::new(declared.clone())),
            Some(false) | None => declared.clone(),
        };
        let variables = [("self", declared.clone()), ("oldSelf", old)];
        let refused = match rule.expression() {
            Err(syntax) => Some(format!("compilation failed: {syntax}")),
            Ok(expression) => match expression.check(&variables) {
                Err(problems) => Some(format!("compilation failed: {problems}")),
                Ok(check::Type::Bool | check::Type::Dyn) => None,
                Ok(_) => Some("cel expression must evaluate to a bool".to_owned()),
            },
        };
        if let Some(why) = &refused {
            found.invalid(&at("rule"), &shown(json), why);
        }
        message(found, rule, json, &at("messageExpression"), &variables);
        // A server does not check the references of a rule that does not compile.
        if refused.is_none() && rule.is_transition() {
            if let Some(list) = uncorrelated {
                let why = format!(
                    "oldSelf cannot be used on the uncorrelatable portion of the schema within {list}"
                );
                found.invalid(&at("rule"), &json["rule"], &why);
            }
        } else if let Some(optional) = rule.optional_old_self {
            found.invalid(
                &at("optionalOldSelf"),
                &optional.into(),
                "may not be set if oldSelf is not used in rule",
            );
        }
    }
}

fn message(found: &mut ErrorList, rule: &Rule, json: &Value, at: &str, variables: &[(&str, check::Type)]) {
    let refused = match rule.message_expression() {
        None => None,
        Some(Err(syntax)) => Some(format!("messageExpression compilation failed: {syntax}")),
        Some(Ok(expression)) => match expression.check(variables) {
            Err(problems) => Some(format!("messageExpression compilation failed: {problems}")),
            Ok(check::Type::Text | check::Type::Dyn) => None,
            Ok(_) => Some("messageExpression must evaluate to a string".to_owned()),
        },
    };
    if let Some(why) = refused {
        found.invalid(at, &shown(json), &why);
    }
}

/// Returns the CEL type that a schema declares; `None`: not visible to expressions.
fn declared(schema: &Schema, is_object: bool) -> Option<check::Type> {
    Some(match schema.kind {
        Type::Object => return Some(object(schema, is_object)),
        Type::Any if is_object => return Some(object(schema, is_object)),
        Type::Any => return None,
        Type::Array => {
            let of = schema.items.as_ref()?;
            check::Type::List(Arc::new(declared(of, of.embedded)?))
        }
        Type::Text => match schema.rules.format.as_str() {
            "date-time" | "date" => check::Type::Timestamp,
            "duration" => check::Type::Duration,
            "byte" => check::Type::Bytes,
            _ => check::Type::Text,
        },
        Type::Integer => check::Type::Int,
        Type::Number => check::Type::Double,
        Type::Boolean => check::Type::Bool,
        Type::IntegerOrText => check::Type::Dyn,
    })
}

fn object(schema: &Schema, is_object: bool) -> check::Type {
    if let Additional::Schema(of) = &schema.additional
        && !is_object
        && schema.properties.is_empty()
    {
        let of = declared(of, of.embedded).unwrap_or(check::Type::Dyn);
        return check::Type::Map(Arc::new(of));
    }
    let mut fields: BTreeMap<String, check::Type> = schema
        .properties
        .iter()
        .filter_map(|(name, of)| escaped(name).zip(declared(of, of.embedded)))
        .collect();
    if is_object {
        let names = ["generateName", "name"].map(|name| (name.to_owned(), check::Type::Text));
        let metadata = check::Type::Object(Arc::new(names.into()));
        fields.extend([
            ("apiVersion".to_owned(), check::Type::Text),
            ("kind".to_owned(), check::Type::Text),
            ("metadata".to_owned(), metadata),
        ]);
    }
    check::Type::Object(Arc::new(fields))
}

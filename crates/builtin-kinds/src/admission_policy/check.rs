//! What is wrong with a policy, validating or mutating, and with the match conditions of webhooks.
//!
//! Source: kubernetes `pkg/apis/admissionregistration/validation/validation.go`; messages as Kubernetes 1.36 sends them.

use std::sync::Arc;

use apimachinery::kind::ApiResource;
use apimachinery::status::Cause;
use serde_json::Value;

use super::{GROUP, request_type};
use crate::error_list::ErrorList;
use crate::expression::Expression;
use crate::expression::check::Type;

/// Reasons a validation can give.
const REASONS: [&str; 3] = ["Forbidden", "Invalid", "RequestEntityTooLarge"];

/// Operations whose objects a policy can change.
const MUTATED: [&str; 3] = ["*", "CREATE", "UPDATE"];

/// Checks a policy, or the match conditions of webhooks; objects of other kinds have no errors.
pub fn validate(kind: &ApiResource, object: &Value) -> Vec<Cause> {
    let mut found = ErrorList::default();
    match (&*kind.group, &*kind.kind) {
        (GROUP, "ValidatingAdmissionPolicy") => validating(&object["spec"], &mut found),
        (GROUP, "MutatingAdmissionPolicy") => mutating(&object["spec"], &mut found),
        (GROUP, "MutatingAdmissionPolicyBinding") => {
            mutated_operations(&object["spec"], "matchResources", &mut found);
        }
        (GROUP, "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration") => {
            let scope = known(false);
            for (index, webhook) in list(object, "webhooks").enumerate() {
                conditions(webhook, &format!("webhooks[{index}]"), &scope, &mut found);
            }
        }
        (_, _) => {}
    }
    found.into_causes()
}

/// Variables of all expressions.
fn known(params: bool) -> Vec<(&'static str, Type)> {
    let mut scope = vec![
        ("object", Type::Dyn),
        ("oldObject", Type::Dyn),
        ("namespaceObject", Type::Dyn),
        ("authorizer", Type::Dyn),
        ("request", request_type()),
    ];
    if params {
        scope.push(("params", Type::Dyn));
    }
    scope
}

fn validating(spec: &Value, found: &mut ErrorList) {
    let mut scope = known(spec["paramKind"].is_object());
    conditions(spec, "spec", &scope, found);
    variables(spec, &mut scope, found);
    for (index, validation) in list(spec, "validations").enumerate() {
        let at = |field: &str| format!("spec.validations[{index}].{field}");
        expression(found, validation, &at("expression"), &scope, Some(Type::Bool));
        let message = text(validation, "message");
        if !message.is_empty() && message.trim().is_empty() {
            found.invalid(&at("message"), &message.into(), "must be non-empty if specified");
        } else if message.trim().contains('\n') {
            found.invalid(&at("message"), &message.into(), "must not contain line breaks");
        }
        let of_message = text(validation, "messageExpression");
        if !of_message.is_empty() {
            let at = at("messageExpression");
            compiled(found, of_message, &at, &scope, Some(Type::Text));
        }
        let reason = &validation["reason"];
        if reason.as_str().is_some_and(|reason| !REASONS.contains(&reason)) {
            found.unsupported(&at("reason"), reason, &REASONS);
        }
    }
}

fn mutating(spec: &Value, found: &mut ErrorList) {
    let mut scope = known(spec["paramKind"].is_object());
    if !spec["matchConstraints"].is_object() {
        found.required("spec.matchConstraints", "");
    } else if list(&spec["matchConstraints"], "resourceRules").next().is_none() {
        found.required("spec.matchConstraints.resourceRules", "");
    }
    mutated_operations(spec, "matchConstraints", found);
    conditions(spec, "spec", &scope, found);
    variables(spec, &mut scope, found);
    if list(spec, "mutations").next().is_none() {
        found.required("spec.mutations", "mutations must contain at least one item");
    }
    for (index, one) in list(spec, "mutations").enumerate() {
        mutation(one, &format!("spec.mutations[{index}]"), &scope, found);
    }
    const POLICIES: [&str; 2] = ["IfNeeded", "Never"];
    match text(spec, "reinvocationPolicy") {
        "" => found.required("spec.reinvocationPolicy", ""),
        policy if POLICIES.contains(&policy) => {}
        policy => found.unsupported("spec.reinvocationPolicy", &policy.into(), &POLICIES),
    }
}

/// Only objects that are created or updated can be changed.
fn mutated_operations(spec: &Value, matching: &str, found: &mut ErrorList) {
    for rule in list(&spec[matching], "resourceRules") {
        for operation in list(rule, "operations") {
            if !{ MUTATED }.iter().any(|known| operation == known) {
                let at = format!("spec.{matching}.resourceRules.operations");
                found.unsupported(&at, operation, &MUTATED);
            }
        }
    }
}

fn mutation(of: &Value, at: &str, scope: &[(&str, Type)], found: &mut ErrorList) {
    const TYPES: [&str; 2] = ["ApplyConfiguration", "JSONPatch"];
    let (own, other, wanted) = match text(of, "patchType") {
        "JSONPatch" => {
            let wanted = Type::List(Arc::new(Type::Constructed("JSONPatch".to_owned())));
            ("jsonPatch", "applyConfiguration", wanted)
        }
        "ApplyConfiguration" => {
            let wanted = Type::Constructed("Object".to_owned());
            ("applyConfiguration", "jsonPatch", wanted)
        }
        "" => return found.required(&format!("{at}.patchType"), ""),
        _ => return found.unsupported(&format!("{at}.patchType"), &of["patchType"], &TYPES),
    };
    let patch = text(of, "patchType");
    match (of[own].is_object(), text(&of[own], "expression").trim()) {
        (false, _) => {
            let why = format!("must be specified when patchType is {patch}");
            found.required(&format!("{at}.{own}"), &why);
        }
        (true, "") => found.required(&format!("{at}.{own}.expression"), ""),
        (true, source) => {
            let checked = Expression::parse(source).and_then(|expression| expression.check_mutation(scope));
            judged(
                found,
                source,
                &format!("{at}.{own}.expression"),
                checked,
                Some(wanted),
            );
        }
    }
    if of[other].is_object() {
        let why = format!("must not be specified when patchType is {patch}");
        found.invalid(&format!("{at}.{other}"), &format!("{{{other}}}").into(), &why);
    }
}

/// Checks the match conditions of a policy or a webhook.
fn conditions(of: &Value, at: &str, scope: &[(&str, Type)], found: &mut ErrorList) {
    for (index, condition) in list(of, "matchConditions").enumerate() {
        let at = format!("{at}.matchConditions[{index}]");
        match text(condition, "expression").trim() {
            "" => found.required(&format!("{at}.expression"), ""),
            source => {
                compiled(
                    found,
                    source,
                    &format!("{at}.expression"),
                    scope,
                    Some(Type::Bool),
                );
            }
        }
        if text(condition, "name").is_empty() {
            found.required(&format!("{at}.name"), "");
        }
    }
}

/// Checks variables, each of which the later expressions can refer to.
fn variables(spec: &Value, scope: &mut Vec<(&'static str, Type)>, found: &mut ErrorList) {
    let mut variables: std::collections::BTreeMap<String, Type> = Default::default();
    for (index, variable) in list(spec, "variables").enumerate() {
        let at = format!("spec.variables[{index}].expression");
        let kind = expression(found, variable, &at, scope, None);
        variables.insert(text(variable, "name").to_owned(), kind);
        scope.retain(|(name, _)| *name != "variables");
        scope.push(("variables", Type::Object(Arc::new(variables.clone()))));
    }
}

fn list<'a>(value: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    value[field].as_array().into_iter().flatten()
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

fn expression(
    found: &mut ErrorList,
    of: &Value,
    at: &str,
    scope: &[(&str, Type)],
    wanted: Option<Type>,
) -> Type {
    match text(of, "expression") {
        source if source.trim().is_empty() => {
            found.required(at, "expression is not specified");
            Type::Dyn
        }
        source => compiled(found, source, at, scope, wanted),
    }
}

fn compiled(
    found: &mut ErrorList,
    source: &str,
    at: &str,
    scope: &[(&str, Type)],
    wanted: Option<Type>,
) -> Type {
    let checked = Expression::parse(source).and_then(|expression| expression.check(scope));
    judged(found, source, at, checked, wanted)
}

fn judged(
    found: &mut ErrorList,
    source: &str,
    at: &str,
    checked: Result<Type, String>,
    wanted: Option<Type>,
) -> Type {
    match (checked, wanted) {
        (Err(problems), _) => {
            found.invalid(at, &source.into(), &format!("compilation failed: {problems}"));
            Type::Dyn
        }
        (Ok(kind), Some(wanted)) if !kind.may_be(&wanted) => {
            let why = format!("must evaluate to {} but got {}", wanted.name(), kind.name());
            found.invalid(at, &source.into(), &why);
            kind
        }
        (Ok(kind), _) => kind,
    }
}

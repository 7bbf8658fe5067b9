//! What is wrong with a policy, validating or mutating, and with the match conditions of webhooks.
//!
//! Source: kubernetes `pkg/apis/admissionregistration/validation/validation.go`; messages as Kubernetes 1.36 sends them.

use std::sync::Arc;

use apimachinery::Version;
use apimachinery::kind::ApiResource;
use apimachinery::status::Cause;
use serde_json::Value;

use super::{GROUP, request_type};
use crate::error_list::ErrorList;
use crate::expression::check::Type;
use crate::expression::{Expression, RESERVED};
use crate::validation::formats::qualified_name;

/// Reasons a validation can give.
const REASONS: [&str; 3] = ["Forbidden", "Invalid", "RequestEntityTooLarge"];

/// Operations whose objects a policy can change.
const MUTATED: [&str; 3] = ["*", "CREATE", "UPDATE"];

/// Checks a policy, or the match conditions of webhooks; objects of other kinds have no errors.
pub fn validate(kind: &ApiResource, object: &Value) -> Vec<Cause> {
    let mut found = ErrorList::default();
    match (&*kind.group, &*kind.kind) {
        (GROUP, "ValidatingAdmissionPolicy") => {
            let name = text(&object["metadata"], "name");
            validating(name, &object["spec"], &mut found);
        }
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
        ("authorizer", Type::authorizer()),
        ("request", request_type()),
    ];
    if params {
        scope.push(("params", Type::Dyn));
    }
    scope
}

/// A policy has rules, which tell the types of its objects.
fn rules(spec: &Value, found: &mut ErrorList) {
    let constraints = &spec["matchConstraints"];
    if constraints.is_object() && list(constraints, "resourceRules").next().is_none() {
        found.required("spec.matchConstraints.resourceRules", "");
    }
}

fn validating(name: &str, spec: &Value, found: &mut ErrorList) {
    let mut scope = known(spec["paramKind"].is_object());
    rules(spec, found);
    conditions(spec, "spec", &scope, found);
    if list(spec, "variables").next().is_some() {
        scope.push(("variables", Type::Object(Arc::default())));
    }
    variables(spec, &mut scope, found);
    if list(spec, "validations").next().is_none() && list(spec, "auditAnnotations").next().is_none() {
        for field in ["validations", "auditAnnotations"] {
            let why = "validations or auditAnnotations must contain at least one item";
            found.required(&format!("spec.{field}"), why);
        }
    }
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
            let without = scope.iter().filter(|(name, _)| *name != "authorizer");
            let without: Vec<(&str, Type)> = without.cloned().collect();
            compiled(found, of_message, &at, &without, Some(Type::Text));
        }
        let reason = &validation["reason"];
        if reason.as_str().is_some_and(|reason| !REASONS.contains(&reason)) {
            found.unsupported(&at("reason"), reason, &REASONS);
        }
    }
    annotations(name, spec, &scope, found);
}

/// Checks audit annotations, whose keys follow the name of the policy.
fn annotations(policy: &str, spec: &Value, scope: &[(&str, Type)], found: &mut ErrorList) {
    let keys: Vec<&str> = list(spec, "auditAnnotations")
        .map(|annotation| text(annotation, "key"))
        .collect();
    for (index, annotation) in list(spec, "auditAnnotations").enumerate() {
        let at = |field: &str| format!("spec.auditAnnotations[{index}].{field}");
        let key = format!("{policy}/{}", keys[index]);
        for why in qualified_name(&key, Version::V1_36) {
            found.invalid(&at("key"), &key.as_str().into(), &why);
        }
        match text(annotation, "valueExpression").trim() {
            "" => found.required(&at("valueExpression"), "valueExpression is not specified"),
            source => {
                let kind = compiled(found, source, &at("valueExpression"), scope, None);
                if !matches!(kind, Type::Dyn | Type::Text | Type::Null) {
                    let why = format!(
                        "must evaluate to one of [string null_type] but got {}",
                        kind.name()
                    );
                    found.invalid(&at("valueExpression"), &source.into(), &why);
                }
            }
        }
        if keys[..index].contains(&keys[index]) {
            found.duplicate(&at("key"), &keys[index].into(), "");
        }
    }
}

fn mutating(spec: &Value, found: &mut ErrorList) {
    let mut scope = known(spec["paramKind"].is_object());
    rules(spec, found);
    mutated_operations(spec, "matchConstraints", found);
    conditions(spec, "spec", &scope, found);
    scope.push(("variables", Type::Object(Arc::default())));
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
            let at = format!("{at}.{own}.expression");
            let parsed = Expression::parse(source);
            let exact = parsed.as_ref().is_ok_and(Expression::has_known_type);
            let checked = parsed.and_then(|expression| expression.check_mutation(scope));
            let wanted_of = |kind: &Type| exact && *kind != wanted || !kind.may_be(&wanted);
            match checked {
                Ok(kind) if wanted_of(&kind) => mistaken(found, source, &at, &kind, &wanted),
                checked => drop(judged(found, source, &at, checked, None)),
            }
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
        let at = |field: &str| format!("spec.variables[{index}].{field}");
        match text(variable, "name") {
            name if name.trim().is_empty() => found.required(&at("name"), "name is not specified"),
            name if !is_identifier(name) => {
                found.invalid(&at("name"), &name.into(), "must be a valid CEL identifier");
            }
            _ => {}
        }
        let kind = expression(found, variable, &at("expression"), scope, None);
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

/// Adds the error for a result of the wrong type.
fn mistaken(found: &mut ErrorList, source: &str, at: &str, kind: &Type, wanted: &Type) {
    let name = match *kind == Type::Null {
        true => "null_type".to_owned(),
        false => kind.name(),
    };
    let why = format!("must evaluate to {} but got {name}", wanted.name());
    found.invalid(at, &source.into(), &why);
}

/// Whether a variable can have this name.
fn is_identifier(name: &str) -> bool {
    let begins = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    let rest = name.chars().all(|one| one.is_ascii_alphanumeric() || one == '_');
    begins && rest && !RESERVED.contains(&name)
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
            mistaken(found, source, at, &kind, &wanted);
            kind
        }
        (Ok(kind), _) => kind,
    }
}

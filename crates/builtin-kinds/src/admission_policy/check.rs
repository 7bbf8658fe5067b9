//! What is wrong with the expressions of a policy.
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

/// Checks a policy; objects of other kinds have no faults.
pub fn faults(kind: &ApiResource, policy: &Value) -> Vec<Cause> {
    if kind.group != GROUP || kind.kind != "ValidatingAdmissionPolicy" {
        return Vec::new();
    }
    let mut found = ErrorList::default();
    let spec = &policy["spec"];
    let list = |field: &str| spec[field].as_array().into_iter().flatten();
    let mut scope = vec![
        ("object", Type::Dyn),
        ("oldObject", Type::Dyn),
        ("namespaceObject", Type::Dyn),
        ("authorizer", Type::Dyn),
        ("request", request_type()),
    ];
    if spec["paramKind"].is_object() {
        scope.push(("params", Type::Dyn));
    }
    for (index, condition) in list("matchConditions").enumerate() {
        let at = format!("spec.matchConditions[{index}].expression");
        expression(&mut found, condition, &at, &scope, Some(Type::Bool));
    }
    let mut variables: std::collections::BTreeMap<String, Type> = Default::default();
    for (index, variable) in list("variables").enumerate() {
        let at = format!("spec.variables[{index}].expression");
        let kind = expression(&mut found, variable, &at, &scope, None);
        variables.insert(text(variable, "name").to_owned(), kind);
        scope.retain(|(name, _)| *name != "variables");
        scope.push(("variables", Type::Object(Arc::new(variables.clone()))));
    }
    for (index, validation) in list("validations").enumerate() {
        let at = |field: &str| format!("spec.validations[{index}].{field}");
        expression(
            &mut found,
            validation,
            &at("expression"),
            &scope,
            Some(Type::Bool),
        );
        let message = text(validation, "message");
        if !message.is_empty() && message.trim().is_empty() {
            found.invalid(&at("message"), &message.into(), "must be non-empty if specified");
        } else if message.trim().contains('\n') {
            found.invalid(&at("message"), &message.into(), "must not contain line breaks");
        }
        let of_message = text(validation, "messageExpression");
        if !of_message.is_empty() {
            compiled(
                &mut found,
                of_message,
                &at("messageExpression"),
                &scope,
                Some(Type::Text),
            );
        }
        let reason = &validation["reason"];
        if reason.as_str().is_some_and(|reason| !REASONS.contains(&reason)) {
            found.unsupported(&at("reason"), reason, &REASONS);
        }
    }
    found.into_causes()
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
    match (checked, wanted) {
        (Err(problems), _) => {
            found.invalid(at, &source.into(), &format!("compilation failed: {problems}"));
            Type::Dyn
        }
        (Ok(kind), Some(wanted)) if kind != wanted && kind != Type::Dyn => {
            let why = format!("must evaluate to {} but got {}", wanted.name(), kind.name());
            found.invalid(at, &source.into(), &why);
            kind
        }
        (Ok(kind), _) => kind,
    }
}

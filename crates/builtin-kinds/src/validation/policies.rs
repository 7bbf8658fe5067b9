//! Validation of admission policies and their bindings, except expressions.
//!
//! Source: kubernetes `pkg/apis/admissionregistration/validation/validation.go`.

use std::collections::HashSet;

use apimachinery::Version;
use serde_json::Value;

use super::context::FieldContext;
use crate::error_list::ErrorList;
use crate::fields::below;
use crate::naming::{dns1035_label, path_segment, subdomain};

/// Validates the kind of the parameters of a policy.
pub(super) fn param_kind(context: &FieldContext<'_>, errors: &mut ErrorList) {
    let of = below(context.value, "paramKind");
    if !of.is_object() {
        return;
    }
    let text = |field: &str| below(of, field).as_str().unwrap_or_default();
    let at = |field: &str| context.at(&format!("paramKind.{field}"));
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let parts: Vec<&str> = api_version.split('/').collect();
    let shown: Value = api_version.into();
    match parts.as_slice() {
        [""] => errors.required(&at("apiVersion"), ""),
        [version] | [_, version] if version.is_empty() => {
            errors.invalid(&at("apiVersion"), &shown, "version must be specified");
        }
        [rest @ .., version] if rest.len() < 2 => {
            for group in rest.iter().filter(|group| !group.is_empty()) {
                joined(errors, &at("apiVersion"), group, "", subdomain(group));
            }
            joined(errors, &at("apiVersion"), version, "", dns1035_label(version));
        }
        _ => {
            let why = format!("unexpected GroupVersion string: {api_version}");
            errors.invalid(&at("apiVersion"), &shown, &why);
        }
    }
    if kind.is_empty() {
        errors.required(&at("kind"), "");
    } else {
        let why = dns1035_label(&kind.to_lowercase());
        let begin = "may have mixed case, but should otherwise match: ";
        joined(errors, &at("kind"), kind, begin, why);
    }
}

fn joined(errors: &mut ErrorList, at: &str, value: &str, begin: &str, why: Vec<String>) {
    if !why.is_empty() {
        errors.invalid(at, &value.into(), &format!("{begin}{}", why.join(",")));
    }
}

/// Validates the names in a rule: each once.
pub(super) fn named_rule(context: &FieldContext<'_>, errors: &mut ErrorList) {
    let names = context.list("resourceNames");
    let mut before = HashSet::new();
    for (nth, name) in names.iter().enumerate() {
        let at = format!("{}[{nth}]", context.at("resourceNames"));
        for why in path_segment(name.as_str().unwrap_or_default()) {
            errors.invalid(&at, name, &why);
        }
        if !before.insert(name) {
            errors.duplicate(&at, name, "");
        }
    }
}

/// Validates the policy and the parameters of a binding.
pub(super) fn policy_binding(context: &FieldContext<'_>, errors: &mut ErrorList) {
    let policy = context.text("policyName");
    if policy.is_empty() {
        errors.required(&context.at("policyName"), "");
    } else {
        for why in subdomain(policy) {
            errors.invalid(&context.at("policyName"), &policy.into(), &why);
        }
    }
    let params = below(context.value, "paramRef");
    if !params.is_object() {
        return;
    }
    let at = |field: &str| context.at(&format!("paramRef.{field}"));
    let name = below(params, "name").as_str().unwrap_or_default();
    let selects = below(params, "selector").is_object();
    for why in path_segment(name) {
        errors.invalid(&at("name"), &name.into(), &why);
    }
    if !name.is_empty() && selects {
        for field in ["name", "selector"] {
            errors.forbidden(&at(field), "name and selector are mutually exclusive");
        }
    } else if name.is_empty() && !selects {
        let why = "one of name or selector must be specified";
        errors.required(&context.at("paramRef"), why);
    }
    match below(params, "parameterNotFoundAction") {
        action if action.as_str().is_none_or(str::is_empty) => {
            errors.required(&at("parameterNotFoundAction"), "");
        }
        action if action == "Deny" || action == "Allow" => {}
        action => errors.unsupported(&at("parameterNotFoundAction"), action, &["Deny", "Allow"]),
    }
}

/// Validates the actions of a binding.
pub(super) fn validation_actions(context: &FieldContext<'_>, errors: &mut ErrorList) {
    const KNOWN: [&str; 3] = ["Audit", "Deny", "Warn"];
    let (at, actions) = (context.at("validationActions"), context.list("validationActions"));
    let mut before = HashSet::new();
    for (nth, action) in actions.iter().enumerate() {
        let at = format!("{at}[{nth}]");
        if !action.as_str().is_some_and(|action| KNOWN.contains(&action)) {
            errors.unsupported(&at, action, &KNOWN);
        }
        if !before.insert(action) {
            errors.duplicate(&at, action, "");
        }
    }
    let has = |action: &str| actions.iter().any(|known| known == action);
    if has("Deny") && has("Warn") {
        let why = "must not contain both Deny and Warn (repeating the same validation failure information in the API \
                   response and headers serves no purpose)";
        errors.invalid(&at, &Value::from(actions), why);
    }
    if actions.is_empty() {
        let why = match context.version >= Version::V1_37 {
            true => "",
            false => "at least one validation action is required",
        };
        errors.required(&at, why);
    }
}

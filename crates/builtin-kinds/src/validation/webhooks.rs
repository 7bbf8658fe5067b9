//! Validation of admission webhooks: name, rules and client configuration.
//!
//! Source: kubernetes `pkg/apis/admissionregistration/validation/validation.go`; apiserver `pkg/util/webhook/validation.go`.

use std::collections::HashSet;

use serde_json::Value;

use super::context::FieldContext;
use crate::error_list::ErrorList;
use crate::naming::subdomain;

/// Validates the name, a domain of at least three labels.
pub(super) fn webhook_name(context: &FieldContext<'_>, errors: &mut ErrorList) {
    let (at, name) = (context.at("name"), context.text("name"));
    let why = subdomain(name);
    if name.is_empty() {
        errors.required(&at, "");
    } else if why.is_empty() && name.split('.').count() < 3 {
        let why = "should be a domain with at least three segments separated by dots";
        errors.invalid(&at, &name.into(), why);
    }
    for why in why.into_iter().filter(|_| !name.is_empty()) {
        errors.invalid(&at, &name.into(), &why);
    }
}

/// Validates a rule: operations, groups, versions and resources.
pub(super) fn webhook_rule(context: &FieldContext<'_>, errors: &mut ErrorList) {
    let others = [
        ("operations", "operations"),
        ("apiGroups", "API groups"),
        ("apiVersions", "API versions"),
    ];
    for (field, what) in others {
        let listed = context.list(field);
        if listed.is_empty() {
            errors.required(&context.at(field), "");
        } else if listed.len() > 1 && listed.contains(&"*".into()) {
            let why = format!("if '*' is present, must not specify other {what}");
            errors.invalid(&context.at(field), &context.value[field], &why);
        }
        if field == "operations" {
            let known = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
            for (nth, operation) in listed.iter().enumerate() {
                if !operation
                    .as_str()
                    .is_some_and(|operation| known.contains(&operation))
                {
                    errors.unsupported(&format!("{}[{nth}]", context.at(field)), operation, &known);
                }
            }
        }
    }
    resources(context, errors);
}

/// Validates the resources of a rule: wildcards do not stand beside what they include.
fn resources(context: &FieldContext<'_>, errors: &mut ErrorList) {
    let (at, said) = (context.at("resources"), context.list("resources"));
    if said.is_empty() {
        errors.required(&at, "");
    }
    let all: Vec<&str> = said.iter().map(|one| one.as_str().unwrap_or_default()).collect();
    let mut before = HashSet::new();
    for (nth, &one) in all.iter().enumerate() {
        let at = format!("{at}[{nth}]");
        if one.is_empty() {
            errors.required(&at, "");
        }
        let wildcards = one.split_once('/');
        let wildcards = wildcards.map(|(resource, part)| [format!("{resource}/*"), format!("*/{part}")]);
        for wildcard in wildcards.into_iter().flatten() {
            if before.contains(wildcard.as_str()) {
                let why = format!("if '{wildcard}' is present, must not specify {one}");
                errors.invalid(&at, &one.into(), &why);
            }
        }
        before.insert(one);
    }
    let shown = Value::from(said);
    if all.len() > 1 && all.contains(&"*/*") {
        errors.invalid(
            &at,
            &shown,
            "if '*/*' is present, must not specify other resources",
        );
    }
    let whole = all.iter().any(|one| !one.contains('/') && *one != "*");
    if all.contains(&"*") && whole {
        let why = "if '*' is present, must not specify other resources without subresources";
        errors.invalid(&at, &shown, why);
    }
}

/// Validates the client configuration, review versions and timeouts.
pub(super) fn webhook_call(context: &FieldContext<'_>, errors: &mut ErrorList) {
    let seconds = &context.value["timeoutSeconds"];
    if seconds
        .as_i64()
        .is_some_and(|seconds| !(1..=30).contains(&seconds))
    {
        let why = "the timeout value must be between 1 and 30 seconds";
        errors.invalid(&context.at("timeoutSeconds"), seconds, why);
    }
    let at = context.at("clientConfig");
    let (url, service) = (
        &context.value["clientConfig"]["url"],
        &context.value["clientConfig"]["service"],
    );
    match url.as_str() {
        Some(url) if service.is_null() => is_https(url, &format!("{at}.url"), errors),
        None if !service.is_null() => {
            for field in ["name", "namespace"] {
                if service[field].as_str().is_none_or(str::is_empty) {
                    errors.required(&format!("{at}.service.{field}"), "");
                }
            }
        }
        Some(_) | None => errors.required(&at, "exactly one of url or service is required"),
    }
    let versions = context.list("admissionReviewVersions");
    let at = context.at("admissionReviewVersions");
    if versions.is_empty() {
        errors.required(&at, "must specify one of v1, v1beta1");
    } else if !versions
        .iter()
        .any(|version| version == "v1" || version == "v1beta1")
    {
        let shown = Value::from(versions);
        errors.invalid(&at, &shown, "must include at least one of v1, v1beta1");
    }
}

pub(crate) fn is_https(url: &str, at: &str, errors: &mut ErrorList) {
    const FORM: &str = "; desired format: https://host[/path]";
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    if scheme != "https" {
        let why = format!("'https' is the only allowed URL scheme{FORM}");
        errors.invalid(at, &scheme.into(), &why);
    }
    if scheme.is_empty() || rest.is_empty() || rest.starts_with('/') {
        errors.invalid(at, &"".into(), &format!("host must be specified{FORM}"));
    }
}

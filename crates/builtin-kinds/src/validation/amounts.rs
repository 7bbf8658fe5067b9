//! Validation of LimitRanges and ResourceQuotas.
//!
//! Source: kubernetes `pkg/apis/core/validation/validation.go` (`ValidateLimitRange`, `ValidateResourceQuota`).

use std::collections::BTreeSet;

use apimachinery::Version;
use serde_json::Map;

use super::context::FieldContext;
use super::formats::qualified_name;
use super::pods;
use crate::error_list::ErrorList;
use crate::fields::list;
use crate::types;

/// Resources whose quantities are integers.
const COUNTED: [&str; 9] = [
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];

/// Resources whose quantities can be fractions.
const MEASURED: [&str; 10] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.storage",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
];

/// Validates an item of a LimitRange.
pub(super) fn limit(context: &FieldContext<'_>, errors: &mut ErrorList) {
    let (kind, version) = (context.text("type"), context.version);
    let at = context.at("type");
    let why = qualified_name(kind, version);
    if why.is_empty() && !kind.contains('/') && !matches!(kind, "Container" | "Pod" | "PersistentVolumeClaim")
    {
        errors.invalid(
            &at,
            &kind.into(),
            "must be a standard limit type or fully qualified",
        );
    }
    for why in why {
        errors.invalid(&at, &kind.into(), &why);
    }
    if context.repeats(&["type"]) {
        errors.duplicate(&at, &kind.into(), "");
    }
    let none = Map::new();
    let amounts = |field: &str| context.value[field].as_object().unwrap_or(&none);
    let mut names = BTreeSet::new();
    for field in ["max", "min", "default", "defaultRequest"] {
        if kind == "Pod" && field.starts_with("default") {
            if !amounts(field).is_empty() {
                errors.forbidden(&context.at(field), "may not be specified when `type` is 'Pod'");
            }
            continue;
        }
        named(context, field, errors);
        names.extend(amounts(field).keys());
    }
    if kind == "PersistentVolumeClaim"
        && !["min", "max"]
            .iter()
            .any(|field| amounts(field).contains_key("storage"))
    {
        let why = "either minimum or maximum storage value is required, but neither was provided";
        errors.required(&context.at("limits"), why);
    }
    named(context, "maxLimitRequestRatio", errors);
    names.extend(amounts("maxLimitRequestRatio").keys());
    for name in names {
        in_order(context, name, errors);
    }
}

fn named(context: &FieldContext<'_>, field: &str, errors: &mut ErrorList) {
    for name in context.value[field]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, _)| name)
    {
        let at = context.at(&format!("{field}[{name}]"));
        if matches!(context.text("type"), "Container" | "Pod") {
            pods::resource_name(name, &at, context.version, errors);
        } else {
            standard_name(name, &at, context.version, errors);
        }
    }
}

fn standard_name(name: &str, at: &str, version: Version, errors: &mut ErrorList) -> bool {
    let mut why = qualified_name(name, version);
    let known = name == "storage" || is_quota(name);
    if why.is_empty() && !name.contains('/') && !known {
        why.push("must be a standard resource type or fully qualified".to_owned());
    }
    for why in &why {
        errors.invalid(at, &name.into(), why);
    }
    why.is_empty()
}

fn is_quota(name: &str) -> bool {
    let huge = ["hugepages-", "requests.hugepages-"]
        .iter()
        .any(|prefix| name.starts_with(prefix));
    COUNTED.contains(&name) || MEASURED.contains(&name) || huge
}

/// Validates that minimum, defaults and maximum of one resource are in ascending order.
fn in_order(context: &FieldContext<'_>, name: &str, errors: &mut ErrorList) {
    let amounts = |field: &str| {
        let pod = context.text("type") == "Pod" && field.starts_with("default");
        context.value[field][name].as_str().filter(|_| !pod)
    };
    let mut more =
        |field: &str, shown: Option<&str>, (what, one): (&str, &str), (than, other): (&str, &str)| {
            if let (Some(one), Some(other)) = (amounts(one), amounts(other))
                && types::amount(one) > types::amount(other)
            {
                let why = format!("{what} {one} is greater than {than} {other}");
                let shown = shown.and_then(amounts).unwrap_or(one);
                errors.invalid(&context.at(&format!("{field}[{name}]")), &shown.into(), &why);
            }
        };
    more("min", None, ("min value", "min"), ("max value", "max"));
    let request = "defaultRequest";
    more(
        request,
        Some(request),
        ("min value", "min"),
        ("default request value", request),
    );
    more(
        request,
        None,
        ("default request value", request),
        ("max value", "max"),
    );
    more(
        request,
        None,
        ("default request value", request),
        ("default limit value", "default"),
    );
    more(
        "default",
        None,
        ("min value", "min"),
        ("default value", "default"),
    );
    more(
        "default",
        Some("max"),
        ("default value", "default"),
        ("max value", "max"),
    );
    if let Some(ratio) =
        amounts("maxLimitRequestRatio").filter(|ratio| types::amount(ratio) < types::amount("1"))
    {
        let at = context.at(&format!("maxLimitRequestRatio[{name}]"));
        errors.invalid(&at, &ratio.into(), &format!("ratio {ratio} is less than 1"));
    }
}

/// Validates the hard limits and scopes of a ResourceQuota.
pub(super) fn quota(context: &FieldContext<'_>, errors: &mut ErrorList) {
    for (name, amount) in context.value["hard"].as_object().into_iter().flatten() {
        let at = context.at(&format!("hard[{name}]"));
        standard_name(name, &at, context.version, errors);
        if !name.contains('/') && !is_quota(name) {
            errors.invalid(
                &at,
                &name.as_str().into(),
                "must be a standard resource for quota",
            );
        }
        let much = types::amount(amount.as_str().unwrap_or_default());
        if much < 0 {
            errors.invalid(&at, amount, "must be greater than or equal to 0");
        }
        if COUNTED.contains(&name.as_str()) && much % types::amount("1") != 0 {
            errors.invalid(&at, amount, "must be an integer");
        }
    }
    const SCOPES: [&str; 7] = [
        "BestEffort",
        "CrossNamespacePodAffinity",
        "NotBestEffort",
        "NotTerminating",
        "PriorityClass",
        "Terminating",
        "VolumeAttributesClass",
    ];
    let scopes = list(context.value, "scopes");
    for scope in scopes {
        if !scope.as_str().is_some_and(|scope| SCOPES.contains(&scope)) {
            errors.invalid(&context.at("scopes"), &scopes.into(), "unsupported scope");
        }
    }
}

//! Validation of ConfigMaps, Secrets, RBAC objects, taints, events, priority classes and other objects.

use std::collections::HashSet;

use apimachinery::object::field;
use serde_json::{Value, json};

use super::context::FieldContext;
use super::formats::{self, Format, config_key, label_value, qualified_name};
use crate::error_list::ErrorList;
use crate::fields::list;
use crate::naming::subdomain;

/// Maximum size of the values of a ConfigMap or Secret in bytes.
const VALUES_MAX: usize = 1024 * 1024;

pub(super) fn config_map(context: &FieldContext<'_>, errors: &mut ErrorList) {
    let (data, binary) = (field(context.value, "data"), field(context.value, "binaryData"));
    let mut total = 0;
    for (key, value) in data.as_object().into_iter().flatten() {
        for why in config_key(key) {
            errors.invalid(&format!("data[{key}]"), &key.as_str().into(), &why);
        }
        if binary.get(key).is_some() {
            errors.invalid(
                &format!("data[{key}]"),
                &key.as_str().into(),
                "duplicate of key present in binaryData",
            );
        }
        total += value.as_str().unwrap_or_default().len();
    }
    for (key, value) in binary.as_object().into_iter().flatten() {
        for why in config_key(key) {
            errors.invalid(&format!("binaryData[{key}]"), &key.as_str().into(), &why);
        }
        total += decoded_length(value);
    }
    if total > VALUES_MAX {
        // kube-apiserver reports it without a field.
        errors.too_long("[]", VALUES_MAX);
    }
}

/// Returns the length of base64 text after decoding.
fn decoded_length(value: &Value) -> usize {
    let text = value.as_str().unwrap_or_default();
    let padding = text.bytes().rev().take_while(|byte| *byte == b'=').count();
    (text.len() / 4 * 3).saturating_sub(padding)
}

pub(super) fn secret(context: &FieldContext<'_>, errors: &mut ErrorList) {
    let data = &context.value["data"];
    let mut total = 0;
    for (key, value) in data.as_object().into_iter().flatten() {
        for why in config_key(key) {
            errors.invalid(&format!("data[{key}]"), &key.as_str().into(), &why);
        }
        total += decoded_length(value);
    }
    if total > VALUES_MAX {
        errors.too_long("data", VALUES_MAX);
    }
    let mut need = |keys: &[&str]| {
        for key in keys.iter().filter(|key| data.get(**key).is_none()) {
            errors.required(&format!("data[{key}]"), "");
        }
    };
    match context.text("type") {
        "kubernetes.io/service-account-token" => {
            let account = "kubernetes.io/service-account.name";
            let named = context.value["metadata"]["annotations"][account].as_str();
            if named.is_none_or(str::is_empty) {
                errors.required(&format!("metadata.annotations[{account}]"), "");
            }
        }
        "kubernetes.io/dockercfg" => need(&[".dockercfg"]),
        "kubernetes.io/dockerconfigjson" => need(&[".dockerconfigjson"]),
        "kubernetes.io/basic-auth" => {
            let known = ["username", "password"];
            // Either key is sufficient.
            if !known.iter().any(|key| data.get(key).is_some()) {
                need(&known);
            }
        }
        "kubernetes.io/ssh-auth" => need(&["ssh-privatekey"]),
        "kubernetes.io/tls" => need(&["tls.crt", "tls.key"]),
        _ => {}
    }
}

pub(super) fn policy_rule(context: &FieldContext<'_>, errors: &mut ErrorList) {
    if context.list("verbs").is_empty() {
        errors.required(&context.at("verbs"), "verbs must contain at least one value");
    }
    let (groups, resources) = (context.list("apiGroups"), context.list("resources"));
    let urls = &context.value["nonResourceURLs"];
    if !context.list("nonResourceURLs").is_empty() {
        let at = context.at("nonResourceURLs");
        if !context.root["metadata"]["namespace"].is_null() {
            errors.invalid(&at, urls, "namespaced rules cannot apply to non-resource URLs");
        }
        if !groups.is_empty() || !resources.is_empty() || !context.list("resourceNames").is_empty() {
            errors.invalid(
                &at,
                urls,
                "rules cannot apply to both regular resources and non-resource URLs",
            );
        }
        return;
    }
    if groups.is_empty() {
        errors.required(
            &context.at("apiGroups"),
            "resource rules must supply at least one api group",
        );
    }
    if resources.is_empty() {
        errors.required(
            &context.at("resources"),
            "resource rules must supply at least one resource",
        );
    }
}

const RIGHTS: &str = "rbac.authorization.k8s.io";

pub(super) fn role_ref(context: &FieldContext<'_>, errors: &mut ErrorList) {
    let role = &context.value["roleRef"];
    if role["apiGroup"] != RIGHTS {
        errors.unsupported("roleRef.apiGroup", &role["apiGroup"], &[RIGHTS]);
    }
    let namespaced = !context.root["metadata"]["namespace"].is_null();
    let kinds: &[&str] = if namespaced {
        &["Role", "ClusterRole"]
    } else {
        &["ClusterRole"]
    };
    if !role["kind"].as_str().is_some_and(|kind| kinds.contains(&kind)) {
        let sent = role["kind"].as_str().unwrap_or_default();
        errors.unsupported("roleRef.kind", &sent.into(), kinds);
    }
    match role["name"].as_str().unwrap_or_default() {
        "" => errors.required("roleRef.name", ""),
        name => formats::check(
            Format::PathSegment,
            &name.into(),
            "roleRef.name",
            context.version,
            errors,
        ),
    }
}

pub(super) fn subject(context: &FieldContext<'_>, errors: &mut ErrorList) {
    let (kind, name, group) = (
        context.text("kind"),
        context.text("name"),
        context.text("apiGroup"),
    );
    if name.is_empty() {
        errors.required(&context.at("name"), "");
    }
    match kind {
        "ServiceAccount" => {
            for why in subdomain(name).iter().filter(|_| !name.is_empty()) {
                errors.invalid(&context.at("name"), &name.into(), why);
            }
            if !group.is_empty() {
                errors.unsupported(&context.at("apiGroup"), &group.into(), &[""]);
            }
            let placed = !context.root["metadata"]["namespace"].is_null();
            if !placed && context.text("namespace").is_empty() {
                errors.required(&context.at("namespace"), "");
            }
        }
        "User" | "Group" => {
            if group != RIGHTS {
                errors.unsupported(&context.at("apiGroup"), &group.into(), &[RIGHTS]);
            }
        }
        other => errors.unsupported(
            &context.at("kind"),
            &other.into(),
            &["ServiceAccount", "User", "Group"],
        ),
    }
}

pub(super) fn taints(context: &FieldContext<'_>, errors: &mut ErrorList) {
    let taints = list(&context.value["spec"], "taints");
    let mut known = HashSet::new();
    for (nth, taint) in taints.iter().enumerate() {
        // kube-apiserver reports taints below metadata although they are in the spec.
        let at = format!("metadata.taints[{nth}]");
        let text = |field: &str| taint[field].as_str().unwrap_or_default();
        for why in qualified_name(text("key"), context.version) {
            errors.invalid(&format!("{at}.key"), &text("key").into(), &why);
        }
        for why in label_value(text("value"), context.version) {
            errors.invalid(&format!("{at}.value"), &text("value").into(), &why);
        }
        effect(text("effect"), &format!("{at}.effect"), errors);
        if !known.insert((&taint["key"], &taint["effect"])) {
            let shown = json!({
                "Key": text("key"),
                "Value": text("value"),
                "Effect": text("effect"),
                "TimeAdded": taint["timeAdded"],
            });
            errors.duplicate(&at, &shown, "taints must be unique by key and effect pair");
        }
    }
}

/// Validates the effect of a taint or toleration.
pub(super) fn effect(effect: &str, path: &str, errors: &mut ErrorList) {
    const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
    match effect {
        "" => errors.required(path, ""),
        effect if EFFECTS.contains(&effect) => {}
        effect => errors.unsupported(path, &effect.into(), &EFFECTS),
    }
}

pub(super) fn event(context: &FieldContext<'_>, errors: &mut ErrorList) {
    let involved = context.value["involvedObject"]["namespace"]
        .as_str()
        .unwrap_or_default();
    let own = context.root["metadata"]["namespace"].as_str().unwrap_or_default();
    // Events about cluster-scoped objects are in the namespace `default`.
    if involved != own && !(involved.is_empty() && own == "default") {
        errors.invalid(
            "involvedObject.namespace",
            &involved.into(),
            "does not match event.namespace",
        );
    }
}

/// Highest priority that is not reserved for the system.
const HIGHEST_PRIORITY: i64 = 1_000_000_000;

pub(super) fn priority(context: &FieldContext<'_>, errors: &mut ErrorList) {
    let name = context.root["metadata"]["name"].as_str().unwrap_or_default();
    let known = ["system-cluster-critical", "system-node-critical"].contains(&name);
    if name.starts_with("system-") && !known {
        errors.forbidden(
            "metadata.name",
            &format!(
                "priority class names with 'system-' prefix are reserved for system use only. error: {name} is not a \
                 known system priority class"
            ),
        );
    } else if !known && context.value["value"].as_i64().unwrap_or_default() > HIGHEST_PRIORITY {
        errors.forbidden(
            "value",
            &format!("maximum allowed value of a user defined priority is {HIGHEST_PRIORITY}"),
        );
    }
}

//! Validation of ConfigMaps, Secrets, RBAC objects, taints, events, priority classes and other objects.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::formats::{self, Format, config_key, label_value, qualified_name};
use super::place::Place;
use crate::error_list::ErrorList;
use crate::fields::list;
use crate::naming::subdomain;

/// Maximum size of the values of a ConfigMap or Secret in bytes.
const VALUES_MAX: usize = 1024 * 1024;

pub(super) fn config_map(place: &Place<'_>, found: &mut ErrorList) {
    let (data, binary) = (&place.value["data"], &place.value["binaryData"]);
    let mut total = 0;
    for (key, value) in data.as_object().into_iter().flatten() {
        let at = ["data[", key, "]"].concat();
        for why in config_key(key) {
            found.invalid(&at, &key.as_str().into(), &why);
        }
        if binary.get(key).is_some() {
            found.invalid(
                &at,
                &key.as_str().into(),
                "duplicate of key present in binaryData",
            );
        }
        total += value.as_str().unwrap_or_default().len();
    }
    for (key, value) in binary.as_object().into_iter().flatten() {
        for why in config_key(key) {
            found.invalid(&format!("binaryData[{key}]"), &key.as_str().into(), &why);
        }
        total += decoded_length(value);
    }
    if total > VALUES_MAX {
        // kube-apiserver reports it without a field.
        found.too_long("[]", VALUES_MAX);
    }
}

/// Returns the length of base64 text after decoding.
fn decoded_length(value: &Value) -> usize {
    let text = value.as_str().unwrap_or_default();
    let padding = text.bytes().rev().take_while(|byte| *byte == b'=').count();
    (text.len() / 4 * 3).saturating_sub(padding)
}

pub(super) fn secret(place: &Place<'_>, found: &mut ErrorList) {
    let data = &place.value["data"];
    let mut total = 0;
    for (key, value) in data.as_object().into_iter().flatten() {
        for why in config_key(key) {
            found.invalid(&format!("data[{key}]"), &key.as_str().into(), &why);
        }
        total += decoded_length(value);
    }
    if total > VALUES_MAX {
        found.too_long("data", VALUES_MAX);
    }
    let mut need = |keys: &[&str]| {
        for key in keys.iter().filter(|key| data.get(**key).is_none()) {
            found.required(&format!("data[{key}]"), "");
        }
    };
    match place.text("type") {
        "kubernetes.io/service-account-token" => {
            let account = "kubernetes.io/service-account.name";
            let named = place.value["metadata"]["annotations"][account].as_str();
            if named.is_none_or(str::is_empty) {
                found.required(&format!("metadata.annotations[{account}]"), "");
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

pub(super) fn policy_rule(place: &Place<'_>, found: &mut ErrorList) {
    if place.list("verbs").is_empty() {
        found.required(&place.at("verbs"), "verbs must contain at least one value");
    }
    let (groups, resources) = (place.list("apiGroups"), place.list("resources"));
    let urls = &place.value["nonResourceURLs"];
    if !place.list("nonResourceURLs").is_empty() {
        let at = place.at("nonResourceURLs");
        if !place.root["metadata"]["namespace"].is_null() {
            found.invalid(&at, urls, "namespaced rules cannot apply to non-resource URLs");
        }
        if !groups.is_empty() || !resources.is_empty() || !place.list("resourceNames").is_empty() {
            found.invalid(
                &at,
                urls,
                "rules cannot apply to both regular resources and non-resource URLs",
            );
        }
        return;
    }
    if groups.is_empty() {
        found.required(
            &place.at("apiGroups"),
            "resource rules must supply at least one api group",
        );
    }
    if resources.is_empty() {
        found.required(
            &place.at("resources"),
            "resource rules must supply at least one resource",
        );
    }
}

const RIGHTS: &str = "rbac.authorization.k8s.io";

pub(super) fn role_ref(place: &Place<'_>, found: &mut ErrorList) {
    let role = &place.value["roleRef"];
    if role["apiGroup"] != RIGHTS {
        found.unsupported("roleRef.apiGroup", &role["apiGroup"], &[RIGHTS]);
    }
    let namespaced = !place.root["metadata"]["namespace"].is_null();
    let kinds: &[&str] = if namespaced {
        &["Role", "ClusterRole"]
    } else {
        &["ClusterRole"]
    };
    if !role["kind"].as_str().is_some_and(|kind| kinds.contains(&kind)) {
        let sent = role["kind"].as_str().unwrap_or_default();
        found.unsupported("roleRef.kind", &sent.into(), kinds);
    }
    match role["name"].as_str().unwrap_or_default() {
        "" => found.required("roleRef.name", ""),
        name => formats::check(
            Format::PathSegment,
            &name.into(),
            "roleRef.name",
            place.version,
            found,
        ),
    }
}

pub(super) fn subject(place: &Place<'_>, found: &mut ErrorList) {
    let (kind, name, group) = (place.text("kind"), place.text("name"), place.text("apiGroup"));
    if name.is_empty() {
        found.required(&place.at("name"), "");
    }
    match kind {
        "ServiceAccount" => {
            for why in subdomain(name).iter().filter(|_| !name.is_empty()) {
                found.invalid(&place.at("name"), &name.into(), why);
            }
            if !group.is_empty() {
                found.unsupported(&place.at("apiGroup"), &group.into(), &[""]);
            }
            let placed = !place.root["metadata"]["namespace"].is_null();
            if !placed && place.text("namespace").is_empty() {
                found.required(&place.at("namespace"), "");
            }
        }
        "User" | "Group" => {
            if group != RIGHTS {
                found.unsupported(&place.at("apiGroup"), &group.into(), &[RIGHTS]);
            }
        }
        other => found.unsupported(
            &place.at("kind"),
            &other.into(),
            &["ServiceAccount", "User", "Group"],
        ),
    }
}

pub(super) fn taints(place: &Place<'_>, found: &mut ErrorList) {
    let taints = list(&place.value["spec"], "taints");
    let mut known = HashSet::new();
    for (nth, taint) in taints.iter().enumerate() {
        // kube-apiserver reports taints below metadata although they are in the spec.
        let at = format!("metadata.taints[{nth}]");
        let text = |field: &str| taint[field].as_str().unwrap_or_default();
        for why in qualified_name(text("key"), place.version) {
            found.invalid(&format!("{at}.key"), &text("key").into(), &why);
        }
        for why in label_value(text("value"), place.version) {
            found.invalid(&format!("{at}.value"), &text("value").into(), &why);
        }
        effect(text("effect"), &format!("{at}.effect"), found);
        if !known.insert((&taint["key"], &taint["effect"])) {
            let shown = json!({
                "Key": text("key"),
                "Value": text("value"),
                "Effect": text("effect"),
                "TimeAdded": taint["timeAdded"],
            });
            found.duplicate(&at, &shown, "taints must be unique by key and effect pair");
        }
    }
}

/// Validates the effect of a taint or toleration.
pub(super) fn effect(effect: &str, path: &str, found: &mut ErrorList) {
    const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
    match effect {
        "" => found.required(path, ""),
        effect if EFFECTS.contains(&effect) => {}
        effect => found.unsupported(path, &effect.into(), &EFFECTS),
    }
}

pub(super) fn event(place: &Place<'_>, found: &mut ErrorList) {
    let involved = place.value["involvedObject"]["namespace"]
        .as_str()
        .unwrap_or_default();
    let own = place.root["metadata"]["namespace"].as_str().unwrap_or_default();
    // Events about cluster-scoped objects are in the namespace `default`.
    if involved != own && !(involved.is_empty() && own == "default") {
        found.invalid(
            "involvedObject.namespace",
            &involved.into(),
            "does not match event.namespace",
        );
    }
}

/// Highest priority that is not reserved for the system.
const HIGHEST_PRIORITY: i64 = 1_000_000_000;

pub(super) fn priority(place: &Place<'_>, found: &mut ErrorList) {
    let name = place.root["metadata"]["name"].as_str().unwrap_or_default();
    let known = ["system-cluster-critical", "system-node-critical"].contains(&name);
    if name.starts_with("system-") && !known {
        found.forbidden(
            "metadata.name",
            &format!(
                "priority class names with 'system-' prefix are reserved for system use only. error: {name} is not a \
                 known system priority class"
            ),
        );
    } else if !known && place.value["value"].as_i64().unwrap_or_default() > HIGHEST_PRIORITY {
        found.forbidden(
            "value",
            &format!("maximum allowed value of a user defined priority is {HIGHEST_PRIORITY}"),
        );
    }
}

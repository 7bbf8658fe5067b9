//! Validation of writes to `status`, and of transitions that are not allowed. kube-apiserver checks little of what
//! controllers write.
//!
//! Most rules are data, as for the rest of an object.
//!
//! Source: the `Validate…StatusUpdate` functions of kubernetes `pkg/apis/*/validation`.

use std::collections::HashSet;

use apimachinery::Version;
use serde_json::{Value, json};

use super::context::{FieldContext, Walk};
use super::formats::{self, Format, qualified_name};
use super::indexes::Indexes;
use super::metadata::IMMUTABLE;
use crate::error_list::ErrorList;
use crate::fields::list;
use crate::types::{Struct, Type};

/// Validates the status of an object.
pub(super) fn check(
    known: &'static Struct,
    object: &Value,
    version: Version,
    walk: Walk,
    errors: &mut ErrorList,
) {
    let of = known.field("status").map(|field| &field.holds);
    if let Some(of) = of.and_then(Type::as_struct) {
        let indexes = Indexes::default();
        let whole = FieldContext::of(object, known.name, version, &indexes).with_walk(walk);
        let status = FieldContext {
            value: &object["status"],
            path: "status",
            ..whole
        };
        status.check(of, errors);
    }
}

/// Validates the change of the status from `old` to `object`.
pub(super) fn check_change(known: &Struct, object: &Value, old: &Value, errors: &mut ErrorList) {
    let (status, before) = (&object["status"], &old["status"]);
    match known.name {
        "core/v1.Pod" => {
            containers(object, before, errors);
            if !before["qosClass"].is_null() && status["qosClass"] != before["qosClass"] {
                errors.invalid("status.qosClass", &status["qosClass"], IMMUTABLE);
            }
        }
        "apps/v1.Deployment" | "apps/v1.StatefulSet" | "apps/v1.DaemonSet"
            if !before["collisionCount"].is_null() =>
        {
            not_less("collisionCount", "cannot be decremented", status, before, errors);
        }
        "batch/v1.Job" => {
            for counter in ["failed", "succeeded"] {
                let why = format!("cannot decrease the {counter} counter");
                not_less(counter, &why, status, before, errors);
            }
        }
        _ => {}
    }
}

/// Validates the type of a pod condition.
pub(super) fn condition_type(context: &FieldContext<'_>, errors: &mut ErrorList) {
    let name = context.text("type");
    for why in qualified_name(name, context.version) {
        errors.invalid(&context.at("Type"), &name.into(), &why);
    }
}

/// Validates the addresses of a pod or its host: one of each IP family.
pub(super) fn addresses(context: &FieldContext<'_>, errors: &mut ErrorList) {
    for (field, one) in [("podIPs", None), ("hostIPs", Some("hostIP"))] {
        let (at, addresses) = (context.at(field), context.list(field));
        let text = |address: &Value| address["ip"].as_str().unwrap_or_default().to_owned();
        if let (Some(one), Some(first)) = (one, addresses.first())
            && context.text(one) != text(first)
        {
            let why = format!("must be equal to `{one}`");
            errors.invalid(&format!("{at}[0].ip"), &first["ip"], &why);
        }
        for (nth, address) in addresses.iter().enumerate() {
            let at = format!("{at}[{nth}]");
            formats::check(Format::Ip, &address["ip"], &at, context.version, errors);
        }
        let of_version_6 = |address: &&Value| text(address).contains(':');
        let paired = addresses.len() == 2 && addresses.iter().filter(of_version_6).count() == 1;
        if addresses.len() > 1 && !paired {
            let shown: Vec<Value> = addresses
                .iter()
                .map(|address| json!({ "IP": address["ip"] }))
                .collect();
            errors.invalid(
                &at,
                &shown.into(),
                "may specify no more than one IP for each IP family",
            );
        }
    }
}

/// Validates that a container that must not restart does not.
fn containers(object: &Value, before: &Value, errors: &mut ErrorList) {
    let policy = &object["spec"]["restartPolicy"];
    if policy == "Always" {
        return;
    }
    let now = list(&object["status"], "containerStatuses").iter();
    let running: HashSet<&Value> = now
        .filter(|new| new["state"]["terminated"].is_null())
        .map(|new| &new["name"])
        .collect();
    for (nth, old) in list(before, "containerStatuses").iter().enumerate() {
        let ended = &old["state"]["terminated"];
        let failed = ended["exitCode"].as_i64().unwrap_or_default() != 0;
        if ended.is_null() || failed && policy == "OnFailure" {
            continue;
        }
        if running.contains(&old["name"]) {
            errors.forbidden(
                &format!("status.containerStatuses[{nth}].state"),
                "may not be transitioned to non-terminated state",
            );
        }
    }
}

fn not_less(field: &str, why: &str, status: &Value, before: &Value, errors: &mut ErrorList) {
    let count = |status: &Value| status[field].as_i64().unwrap_or_default();
    if count(status) < count(before) {
        errors.invalid(&format!("status.{field}"), &count(status).into(), why);
    }
}

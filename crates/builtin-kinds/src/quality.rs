//! QoS class of a pod, from the requests and limits of its containers.
//!
//! Source: "Pod Quality of Service Classes"; kubernetes `pkg/apis/core/helper/qos`.

use serde_json::Value;

use crate::fields::list;

/// Returns the QoS class.
pub fn of(pod: &Value) -> &'static str {
    let spec = &pod["spec"];
    let is_set = |kind: &str| {
        spec["resources"][kind]
            .as_object()
            .is_some_and(|amounts| !amounts.is_empty())
    };
    // Resources of the pod take precedence over those of its containers.
    let nothing: &[Value] = &[];
    let (whole, parts) = if is_set("requests") || is_set("limits") {
        (Some(spec), [nothing, nothing])
    } else {
        (None, [list(spec, "containers"), list(spec, "initContainers")])
    };
    let containers = || whole.into_iter().chain(parts.into_iter().flatten());
    let counts = |container: &Value, kind: &str, name: &str| {
        let amount = container["resources"][kind].get(name).and_then(Value::as_str);
        amount.filter(|amount| *amount != "0").map(str::to_owned)
    };
    let guaranteed = containers().all(|container| {
        ["cpu", "memory"].iter().all(|name| {
            let limit = counts(container, "limits", name);
            limit.is_some() && counts(container, "requests", name) == limit
        })
    });
    let none = containers().all(|container| {
        ["cpu", "memory"].iter().all(|name| {
            ["limits", "requests"]
                .iter()
                .all(|kind| counts(container, kind, name).is_none())
        })
    });
    match (none, guaranteed) {
        (true, _) => "BestEffort",
        (false, true) => "Guaranteed",
        (false, false) => "Burstable",
    }
}

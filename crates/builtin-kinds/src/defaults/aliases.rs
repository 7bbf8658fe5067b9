//! Fields with a deprecated and a current name: kube-apiserver returns both, whichever was set.
//!
//! It must not know which of the two was written last: one of them always takes precedence.
//!
//! Source: Kubernetes `pkg/apis/core/v1/conversion.go`.

use serde_json::{Map, Value, json};

/// Sets both names of each such field of a struct to the same value.
pub(super) fn settle(name: &str, object: &mut Map<String, Value>) {
    match name {
        "core/v1.PodSpec" => {
            let account = given(object, "serviceAccountName").or_else(|| given(object, "serviceAccount"));
            if let Some(account) = account {
                object.insert("serviceAccountName".to_owned(), account.clone());
                object.insert("serviceAccount".to_owned(), account);
            }
        }
        "core/v1.PodStatus" => first_of(
            object,
            "podIP",
            "podIPs",
            |item| &item["ip"],
            |ip| json!({ "ip": ip }),
        ),
        "core/v1.NodeSpec" => first_of(object, "podCIDR", "podCIDRs", |item| item, Value::clone),
        _ => {}
    }
}

/// Makes `one` the first item of `all`. `one` takes precedence.
fn first_of(
    object: &mut Map<String, Value>,
    one: &str,
    all: &str,
    read: fn(&Value) -> &Value,
    write: fn(&Value) -> Value,
) {
    let first = object.get(all).and_then(|all| all.get(0)).map(read).cloned();
    match given(object, one) {
        Some(value) if first.as_ref() != Some(&value) => {
            object.insert(all.to_owned(), Value::Array(vec![write(&value)]));
        }
        Some(_) => {}
        None => {
            if let Some(first) = first {
                object.insert(one.to_owned(), first);
            }
        }
    }
}

fn given(object: &Map<String, Value>, field: &str) -> Option<Value> {
    let value = object.get(field)?;
    value
        .as_str()
        .is_some_and(|text| !text.is_empty())
        .then(|| value.clone())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("core/v1.PodSpec", json!({ "serviceAccount": "a" }), json!({ "serviceAccount": "a", "serviceAccountName": "a" }))]
    #[case("core/v1.PodSpec", json!({ "serviceAccountName": "a" }), json!({ "serviceAccount": "a", "serviceAccountName": "a" }))]
    #[case::the_new_name_wins(
        "core/v1.PodSpec",
        json!({ "serviceAccount": "old", "serviceAccountName": "new" }),
        json!({ "serviceAccount": "new", "serviceAccountName": "new" })
    )]
    #[case("core/v1.PodSpec", json!({}), json!({}))]
    #[case("core/v1.PodStatus", json!({ "podIP": "::1" }), json!({ "podIP": "::1", "podIPs": [{ "ip": "::1" }] }))]
    #[case(
        "core/v1.PodStatus",
        json!({ "podIPs": [{ "ip": "1.1.1.1" }, { "ip": "::1" }] }),
        json!({ "podIP": "1.1.1.1", "podIPs": [{ "ip": "1.1.1.1" }, { "ip": "::1" }] })
    )]
    #[case::the_old_name_wins(
        "core/v1.PodStatus",
        json!({ "podIP": "2.2.2.2", "podIPs": [{ "ip": "1.1.1.1" }, { "ip": "::1" }] }),
        json!({ "podIP": "2.2.2.2", "podIPs": [{ "ip": "2.2.2.2" }] })
    )]
    #[case::the_hosts_are_left_as_they_are("core/v1.PodStatus", json!({ "hostIP": "1.1.1.1" }), json!({ "hostIP": "1.1.1.1" }))]
    #[case("core/v1.NodeSpec", json!({ "podCIDR": "10.0.0.0/24" }), json!({ "podCIDR": "10.0.0.0/24", "podCIDRs": ["10.0.0.0/24"] }))]
    #[case("core/v1.NodeSpec", json!({ "podCIDRs": ["10.0.0.0/24"] }), json!({ "podCIDR": "10.0.0.0/24", "podCIDRs": ["10.0.0.0/24"] }))]
    fn both_names_have_the_same_effect(#[case] name: &str, #[case] sent: Value, #[case] settled: Value) {
        let mut object = sent.as_object().unwrap().clone();
        settle(name, &mut object);
        assert_eq!(Value::Object(object), settled);
    }
}

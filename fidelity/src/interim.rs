//! Writes over HTTP for a server that takes none yet: enough to bring about the state a read is asked about.

use std::time::Duration;

use bytes::Bytes;
use fake_apiserver::api::HttpRequest;
use fake_apiserver::model::catalog::Catalog;
use fake_apiserver::scenario::{Manifest, ObjectName, Place};
use fake_apiserver::server::Server;
use serde_json::{Value, json};

pub(crate) fn write(server: &mut Server, now: Duration, request: &HttpRequest) -> Option<(u16, Bytes)> {
    let parts: Vec<&str> = request.path.trim_matches('/').split('/').collect();
    let (group, rest) = match parts.as_slice() {
        ["api", _, rest @ ..] => ("", rest),
        ["apis", group, _, rest @ ..] => (*group, rest),
        _ => return None,
    };
    if request.method == http::Method::GET {
        return match rest {
            ["namespaces", _] => Some((200, Bytes::from_static(b"{}"))),
            _ => None,
        };
    }
    let (namespace, plural, name) = match rest {
        ["namespaces", namespace, plural] => (Some(*namespace), *plural, None),
        ["namespaces", namespace, plural, name] => (Some(*namespace), *plural, Some(*name)),
        [plural] => (None, *plural, None),
        [plural, name] => (None, *plural, Some(*name)),
        _ => return None,
    };
    Catalog::builtin().find(group, plural)?;
    let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let name = name.or(body["metadata"]["name"].as_str())?;
    let object = ObjectName {
        group: group.to_owned(),
        plural: plural.to_owned(),
        namespace: namespace.map(str::to_owned),
        name: name.to_owned(),
    };
    let current = server.stored(&object);
    let json = match (request.method.as_str(), &current) {
        ("DELETE", Some(current)) => {
            server.remove(now, &object);
            let mut details = json!({"name": name});
            if !group.is_empty() {
                details["group"] = group.into();
            }
            details["kind"] = plural.into();
            details["uid"] = current.uid.clone().into();
            let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details});
            return Some((200, Bytes::from(format!("{status}\n"))));
        }
        ("POST", None) | ("PUT", _) => body,
        ("PATCH", Some(current)) => {
            let mut json = Value::clone(&current.json);
            merge(&mut json, &body);
            json
        }
        _ => return Some((409, Bytes::from_static(b"{}"))),
    };
    server.put(
        now,
        &Manifest {
            group: object.group.clone(),
            plural: object.plural.clone(),
            namespace: object.namespace.clone(),
            name: object.name.clone(),
            json,
            binds: None,
            at: Place::default(),
        },
    );
    let stored = server.stored(&object)?;
    let mut body = stored.encoded(fake_apiserver::api::Form::Full).to_vec();
    body.push(b'\n');
    let status = if request.method == http::Method::POST {
        201
    } else {
        200
    };
    Some((status, Bytes::from(body)))
}

fn merge(target: &mut Value, patch: &Value) {
    let Some(patch) = patch.as_object() else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (key, value) in patch {
        if value.is_null() {
            if let Some(target) = target.as_object_mut() {
                target.shift_remove(key);
            }
        } else {
            merge(&mut target[key.as_str()], value);
        }
    }
}

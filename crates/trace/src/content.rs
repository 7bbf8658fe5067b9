//! Object content kept as encoded bytes, decoded on demand; and what a recording keeps of it.

use std::fmt;

use apimachinery::encode::encode_json;
use apimachinery::object::decode;
use bytes::Bytes;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// Content of an object, in its stored encoding. Serialized as JSON in a saved trace.
#[derive(Clone, PartialEq, Eq)]
pub struct Content(Bytes);

impl Content {
    /// Returns the object as JSON; decodes it at every call.
    pub fn json(&self) -> Value {
        decode(&self.0)
    }

    /// Returns the length in bytes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Always false: an encoded object has at least one byte.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<Bytes> for Content {
    /// Creates content from an encoded object.
    fn from(encoded: Bytes) -> Self {
        Self(encoded)
    }
}

impl From<&Value> for Content {
    fn from(json: &Value) -> Self {
        Self(encode_json(json).into())
    }
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0))
    }
}

impl Serialize for Content {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.json().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(|json| Self::from(&json))
    }
}

/// What a trace keeps of the content of objects: all but Secrets and the fields that its user named.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Kept {
    left_out: Vec<Vec<String>>,
}

impl Kept {
    /// Keeps everything but Secrets and these fields, each a path such as `metadata.annotations`. A field of the items of an
    /// array is written like one of the array: `spec.containers.env`.
    ///
    /// # Errors
    /// The path that has an empty name.
    pub fn without(fields: &[String]) -> Result<Self, String> {
        let path = |field: &String| {
            let names: Vec<String> = field.split('.').map(str::to_owned).collect();
            match names.iter().any(String::is_empty) {
                true => Err(field.clone()),
                false => Ok(names),
            }
        };
        let left_out = fields.iter().map(path).collect::<Result<_, _>>()?;
        Ok(Self { left_out })
    }

    /// Returns what is kept of an object of `resource` (plural) in its encoded form; `None`: nothing.
    pub fn stored(&self, resource: &str, encoded: Bytes) -> Option<Content> {
        match self.left_out.is_empty() {
            _ if is_secret(resource) => None,
            true => Some(Content(encoded)),
            false => self.of(resource, decode(&encoded)),
        }
    }

    /// Removes the fields that the user named from an object.
    pub fn redact(&self, object: &mut Value) {
        for path in &self.left_out {
            remove(object, path);
        }
    }

    /// Returns what is kept of JSON that was read from `resource` (plural): an object, or an event with one. `None`: nothing.
    pub fn of(&self, resource: &str, mut json: Value) -> Option<Content> {
        let is_kept = !is_secret(resource)
            && ["/kind", "/object/kind"]
                .iter()
                .all(|at| !names_secret(&json, at));
        self.redact(&mut json);
        if let Some(object) = json.get_mut("object") {
            self.redact(object);
        }
        is_kept.then(|| Content::from(&json))
    }
}

/// Annotations of a Secret that the apiserver and its controllers write, without content.
const PLAIN_ANNOTATIONS: [&str; 2] = [
    "kubernetes.io/service-account.name",
    "kubernetes.io/service-account.uid",
];

/// Empties a Secret: its keys stay, and their values are empty. So are the values of its annotations, in which kubectl, Helm and
/// others keep the whole object, and fields that no Secret has are removed.
pub fn empty_secret(secret: &mut Value) {
    let Some(fields) = secret.as_object_mut() else {
        return;
    };
    fields.retain(|name, _| {
        matches!(
            name.as_str(),
            "kind" | "apiVersion" | "metadata" | "type" | "immutable" | "data" | "stringData"
        )
    });
    for name in ["data", "stringData"] {
        if let Some(values) = fields.get_mut(name) {
            empty(values, &[]);
        }
    }
    if let Some(annotations) = fields
        .get_mut("metadata")
        .and_then(|metadata| metadata.get_mut("annotations"))
    {
        empty(annotations, &PLAIN_ANNOTATIONS);
    }
}

/// Empties every value of a map but those of some keys; what is no map is removed.
fn empty(map: &mut Value, but: &[&str]) {
    match map {
        Value::Object(entries) => {
            for (_, value) in entries.iter_mut().filter(|(key, _)| !but.contains(&key.as_str())) {
                *value = "".into();
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            *map = Value::Null
        }
    }
}

/// Secrets of any group: another server's definition may have the name as well.
fn is_secret(resource: &str) -> bool {
    resource == "secrets"
}

fn names_secret(json: &Value, at: &str) -> bool {
    json.pointer(at)
        .and_then(Value::as_str)
        .is_some_and(|kind| matches!(kind, "Secret" | "SecretList"))
}

/// Removes a field, in every item of the arrays on its path.
fn remove(json: &mut Value, path: &[String]) {
    let [name, rest @ ..] = path else { return };
    match json {
        Value::Array(items) => items.iter_mut().for_each(|item| remove(item, path)),
        Value::Object(fields) if rest.is_empty() => {
            fields.shift_remove(name);
        }
        Value::Object(fields) => {
            if let Some(field) = fields.get_mut(name) {
                remove(field, rest);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn kept(fields: &[&str], resource: &str, json: Value) -> Option<Value> {
        let fields: Vec<String> = fields.iter().map(|field| (*field).to_owned()).collect();
        let kept = Kept::without(&fields).expect("valid paths");
        let of_json = kept.of(resource, json.clone()).map(|content| content.json());
        let stored = kept.stored(resource, encode_json(&json).into());
        if json.get("object").is_none() {
            assert_eq!(stored.map(|content| content.json()), of_json);
        }
        of_json
    }

    #[test]
    fn fields_are_removed_in_items_and_events() {
        let pod = json!({ "metadata": { "name": "a", "annotations": { "k": "v" } }, "spec": { "containers": [{ "name": "c", "env": [1] }] } });
        let bare = json!({ "metadata": { "name": "a" }, "spec": { "containers": [{ "name": "c" }] } });
        let fields = [
            "metadata.annotations",
            "spec.containers.env",
            "metadata.name.x",
            "status",
        ];
        assert_eq!(kept(&fields, "pods", pod.clone()), Some(bare.clone()));
        let event = json!({ "type": "ADDED", "object": pod });
        assert_eq!(
            kept(&fields, "pods", event),
            Some(json!({ "type": "ADDED", "object": bare }))
        );
        assert_eq!(kept(&[], "pods", bare.clone()), Some(bare));
        assert_eq!(Kept::without(&["a..b".to_owned()]), Err("a..b".to_owned()));
    }

    #[test]
    fn nothing_is_kept_of_a_secret() {
        for (resource, json) in [
            ("secrets", json!({ "data": { "k": "eA==" } })),
            ("others", json!({ "kind": "Secret", "data": { "k": "eA==" } })),
            ("others", json!({ "kind": "SecretList", "items": [] })),
            (
                "others",
                json!({ "type": "ADDED", "object": { "kind": "Secret", "data": { "k": "eA==" } } }),
            ),
        ] {
            let fields = ["metadata.annotations".to_owned()];
            for kept in [Kept::default(), Kept::without(&fields).expect("a valid path")] {
                assert_eq!(kept.of(resource, json.clone()), None, "{json}");
            }
        }
        let encoded = || encode_json(&json!({ "data": {} })).into();
        assert_eq!(Kept::default().stored("secrets", encoded()), None);
    }

    #[test]
    fn an_emptied_secret_has_keys_only() {
        let mut secret = json!({
            "kind": "Secret",
            "metadata": { "name": "s", "annotations": {
                "kubectl.kubernetes.io/last-applied-configuration": "{\"data\":{\"k\":\"hidden\"}}",
                "kubernetes.io/service-account.name": "default",
            } },
            "type": "Opaque",
            "data": { "k": "hidden", "l": { "m": "hidden" } },
            "stringData": "hidden",
            "more": "hidden",
        });
        empty_secret(&mut secret);
        assert_eq!(
            secret,
            json!({
                "kind": "Secret",
                "metadata": { "name": "s", "annotations": {
                    "kubectl.kubernetes.io/last-applied-configuration": "",
                    "kubernetes.io/service-account.name": "default",
                } },
                "type": "Opaque",
                "data": { "k": "", "l": "" },
                "stringData": null,
            })
        );
        let mut none = json!("hidden");
        empty_secret(&mut none);
    }
}

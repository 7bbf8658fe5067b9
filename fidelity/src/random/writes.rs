//! Generates programs of writes from a seed: apply, update, and patches of three kinds by several managers, to a few objects of
//! built-in and custom kinds in several versions. The vocabulary is small, so that managers meet.

use fake_apiserver::scenario::Version;
use fastrand::Rng;
use serde_json::{Value, json};

use super::generate::Program;
use super::objects::{Kind, Vocabulary};
use super::{Between, Subject};

const APPLY: &str = "application/apply-patch+yaml";
const MERGE: &str = "application/merge-patch+json";
const JSON: &str = "application/json-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";

struct Maker {
    words: Vocabulary,
    namespace: String,
}

/// Returns the program of a seed.
pub(super) fn program(seed: u64, version: Version) -> Program {
    let namespace = format!("w{seed}v{}", version as u8);
    let mut maker = Maker {
        words: Vocabulary {
            random: Rng::with_seed(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0xA991),
        },
        namespace: namespace.clone(),
    };
    let kind = match maker.words.random.u8(0..20) {
        0..9 => Kind::Thing,
        9..11 => Kind::ConfigMap,
        11..14 => Kind::Service,
        14..17 => Kind::Deployment,
        17..19 => Kind::Autoscaler,
        _ => Kind::Ingress,
    };
    let mut steps = Vec::new();
    for nth in 0..maker.words.random.usize(3..9) {
        let request = maker.write(kind, nth);
        steps.push(json!({"request": request}));
    }
    Program {
        subject: Subject::Writes,
        seed,
        namespace,
        parts: [steps, Vec::new()],
        between: Between::Nothing,
    }
}

impl Maker {
    fn write(&mut self, kind: Kind, nth: usize) -> Value {
        let first = nth == 0;
        let api_version = self.words.one(kind.versions());
        let (name, plural) = kind.names();
        let root = if api_version.contains('/') { "apis" } else { "api" };
        let collection = format!("/{root}/{api_version}/namespaces/{}/{plural}", self.namespace);
        let manager = self.words.one(&["m1", "m1", "m2", "m3", "kubectl"]);
        let has_status = matches!(kind, Kind::Thing | Kind::Deployment);
        let mut object = self.words.object(kind, api_version);
        object["apiVersion"] = api_version.into();
        object["kind"] = name.into();
        object["metadata"]["name"] = "x".into();
        if first && self.words.chance(30) {
            if self.words.chance(15) {
                object["metadata"]["managedFields"] = self.managed(api_version);
            }
            return json!({
                "method": "POST", "path": format!("{collection}?fieldManager={manager}"), "body": object.to_string(),
                "headers": {"Content-Type": "application/json"},
            });
        }
        let mut path = format!("{collection}/x");
        if has_status && !first && self.words.chance(10) {
            path.push_str("/status");
            object["status"] = self.words.status(kind);
        }
        let patch = |forced: &str, of: &str, body: &Value| {
            json!({
                "method": "PATCH", "path": format!("{path}?fieldManager={manager}{forced}"), "body": body.to_string(),
                "headers": {"Content-Type": of},
            })
        };
        match self.words.random.u8(0..20) {
            _ if first => patch("", APPLY, &object),
            0..11 => {
                let forced = if self.words.chance(40) { "&force=true" } else { "" };
                patch(forced, APPLY, &object)
            }
            11..14 => {
                if self.words.chance(25) {
                    object["metadata"]["managedFields"] = self.managed(api_version);
                }
                json!({
                    "method": "PUT", "path": format!("{path}?fieldManager={manager}"), "body": object.to_string(),
                    "headers": {"Content-Type": "application/json"},
                })
            }
            14..16 => {
                let body = self.part(kind, object);
                patch("", MERGE, &body)
            }
            16..18 if kind != Kind::Thing => {
                let body = self.part(kind, object);
                patch("", STRATEGIC, &body)
            }
            _ => {
                let operations = self.operations(nth, api_version, &object);
                patch("", JSON, &operations)
            }
        }
    }

    /// Returns an object without what identifies it, and sometimes with a null.
    fn part(&mut self, kind: Kind, mut object: Value) -> Value {
        if let Some(object) = object.as_object_mut() {
            object.retain(|field, _| !matches!(field.as_str(), "apiVersion" | "kind"));
        }
        if self.words.chance(10) {
            object["metadata"]["managedFields"] = self
                .words
                .one(&["[]", "[{}]", "null"])
                .parse()
                .unwrap_or_default();
        }
        if kind != Kind::Autoscaler && self.words.chance(40) {
            let names: Vec<String> = object["spec"]
                .as_object()
                .into_iter()
                .flatten()
                .map(|(name, _)| name.clone())
                .collect();
            if !names.is_empty() {
                let name = &names[self.words.random.usize(0..names.len())];
                object["spec"][name] = Value::Null;
            }
        }
        object
    }

    fn operations(&mut self, nth: usize, api_version: &str, object: &Value) -> Value {
        match self.words.random.u8(0..8) {
            // Of several entries the order depends on the second in which they were written.
            0 if nth == 1 => json!([{"op": "remove", "path": "/metadata/managedFields/0"}]),
            1 => json!([]),
            2 => {
                json!([{"op": "replace", "path": "/metadata/managedFields", "value": self.managed(api_version)}])
            }
            3 => json!([{"op": "add", "path": "/metadata/labels", "value": {"a": self.words.word()}}]),
            4 if api_version != "autoscaling/v1" && api_version != "autoscaling/v2" => {
                json!([{"op": "remove", "path": "/spec"}])
            }
            _ => {
                let fields = object["spec"].as_object().into_iter().flatten();
                let fields: Vec<(String, Value)> = fields
                    .map(|(name, value)| (name.clone(), value.clone()))
                    .collect();
                match fields.as_slice() {
                    [] => json!([{"op": "test", "path": "/metadata/name", "value": "x"}]),
                    fields => {
                        let (name, value) = &fields[self.words.random.usize(0..fields.len())];
                        json!([{"op": "add", "path": format!("/spec/{name}"), "value": value}])
                    }
                }
            }
        }
    }

    /// Returns managed fields as a client may write them.
    fn managed(&mut self, api_version: &str) -> Value {
        let entry = |maker: &mut Self| {
            let operation = maker.words.one(&["Apply", "Update"]);
            let version = match maker.words.random.u8(0..8) {
                0 => "apply.example.com/v1beta1",
                1 => "example.com/v9",
                _ => api_version,
            };
            let fields = maker.words.one(&[
                r#"{"f:metadata":{"f:labels":{"f:a":{}}}}"#,
                r#"{"f:spec":{"f:word":{},"f:nest":{"f:a":{}},"f:ports":{}}}"#,
                r#"{"f:spec":{"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:port":{}}}}}"#,
                r#"{"f:spec":{"f:set":{"v:\"a\"":{}},"f:whole":{"f:a":{}},"f:plain":{"i:0":{}}}}"#,
                r#"{"f:data":{"f:a":{}}}"#,
                r#"{"x:spec":{}}"#,
                "{}",
            ]);
            json!({
                "manager": maker.words.one(&["m1", "m2", "old"]), "operation": operation, "apiVersion": version,
                "time": "2020-01-01T00:00:00Z", "fieldsType": "FieldsV1",
                "fieldsV1": fields.parse::<Value>().unwrap_or_default(),
            })
        };
        match self.words.random.u8(0..6) {
            0 => json!([]),
            1 => json!([{}]),
            2 => json!([entry(self), entry(self)]),
            3 => {
                json!([{"manager": "m1", "operation": "Update", "apiVersion": api_version, "fieldsType": "FieldsV1", "fieldsV1": {"spec": {}}}])
            }
            _ => json!([entry(self)]),
        }
    }
}

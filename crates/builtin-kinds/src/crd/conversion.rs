//! Conversion webhooks of custom resources: their reviews, and the interpretation of responses.
//!
//! Source: apiextensions `apiserver/conversion/webhook_converter.go`.

use std::time::Duration;

use apimachinery::go_text;
use apimachinery::kind::ApiResource;
use serde_json::{Map, Value, json};

use super::Definition;
use crate::webhook::{self, ClientConfig, Outcome, Review};

/// Timeout of a call.
pub const TIMEOUT: Duration = Duration::from_secs(30);

/// `spec.conversion.webhook` of a definition.
#[derive(Debug)]
pub struct Conversion {
    /// Name of the definition.
    pub name: String,
    /// Address of the webhook.
    pub client: ClientConfig,
    /// Version of the reviews; `None`: it accepts no known version.
    version: Option<&'static str>,
}

impl Conversion {
    /// Parses the conversion of a definition; `None`: strategy `None`, whose versions differ only in their schemas.
    pub(super) fn read(name: String, conversion: &Value) -> Option<Self> {
        if conversion["strategy"] != "Webhook" {
            return None;
        }
        let webhook = &conversion["webhook"];
        let versions = webhook["conversionReviewVersions"]
            .as_array()
            .into_iter()
            .flatten();
        let mut known =
            versions.filter_map(|version| ["v1", "v1beta1"].into_iter().find(|known| version == known));
        Some(Self {
            name,
            client: ClientConfig::read(&webhook["clientConfig"]),
            version: known.next(),
        })
    }

    /// Returns the webhook that converts from one kind to the other; `None`: none is needed.
    pub fn between<'a>(from: &ApiResource, to: &'a ApiResource) -> Option<&'a Self> {
        let conversion = Definition::of(to)?.conversion.as_ref()?;
        (from.version != to.version).then_some(conversion)
    }

    /// Returns the `ConversionReview` of objects.
    pub fn review(&self, objects: &[Value], to: &ApiResource, uid: &str) -> Value {
        json!({
            "kind": "ConversionReview",
            "apiVersion": format!("apiextensions.k8s.io/{}", self.version.unwrap_or("v1")),
            "request": { "uid": uid, "desiredAPIVersion": to.api_version(), "objects": objects },
            "response": { "uid": "", "convertedObjects": null, "result": { "metadata": {} } },
        })
    }

    /// Returns the objects in the response to a call to `url` with the review of `sent` and this uid.
    ///
    /// # Errors
    /// The call failed, or the response is invalid; the message is kube-apiserver's.
    pub fn converted(
        &self,
        (uid, url, outcome): (&str, &str, &Outcome),
        sent: &[Value],
        (from, to): (&ApiResource, &ApiResource),
    ) -> Result<Vec<Value>, String> {
        let what = format!(
            "conversion webhook for {}, Kind={}",
            from.api_version(),
            from.kind
        );
        let version = self
            .version
            .ok_or_else(|| "no supported conversion review versions".to_owned())?;
        let expected = Review {
            kind: "ConversionReview",
            group: "apiextensions.k8s.io",
            version,
        };
        let review =
            webhook::response(url, outcome, &expected).map_err(|why| format!("{what} failed: {why}"))?;
        let objects = self
            .checked(uid, &review)
            .map_err(|why| format!("{what} failed: {why}"))?;
        if objects.len() != sent.len() {
            let (returned, expected) = (objects.len(), sent.len());
            return Err(format!("{what} returned {returned} objects, expected {expected}"));
        }
        let read = objects.iter().zip(sent).enumerate();
        let read = read.map(|(index, (object, sent))| {
            restored(object, sent, to).map_err(|error| match error {
                Invalid::Type(why) => format!("{what} returned invalid object at index {index}: {why}"),
                Invalid::Object(why) => format!("{what} returned invalid object: {why}"),
                Invalid::Metadata(why) => format!("{what} returned invalid metadata: {why}"),
            })
        });
        read.collect()
    }

    fn checked<'a>(&self, uid: &str, review: &'a Value) -> Result<&'a [Value], String> {
        let response = &review["response"];
        let is_v1 = self.version == Some("v1");
        let api_version = text(&review["apiVersion"]);
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let got = format!("{group}/{version}, Kind={}", text(&review["kind"]));
        let expected = "apiextensions.k8s.io/v1, Kind=ConversionReview";
        if is_v1 && got != expected {
            return Err(format!("expected webhook response of {expected}, got {got}"));
        }
        if !response.is_object() {
            return Err("no response provided".to_owned());
        }
        if is_v1 && text(&response["uid"]) != uid {
            let [uid, got] = [uid, text(&response["uid"])].map(go_text::quote);
            return Err(format!("expected response.uid={uid}, got {got}"));
        }
        let result = &response["result"];
        match (text(&result["status"]), text(&result["message"])) {
            ("Success", _) => {}
            (status, "") => return Err(format!("response.result.status was '{status}', not 'Success'")),
            (_, message) => return Err(message.to_owned()),
        }
        let objects = response["convertedObjects"].as_array();
        Ok(objects.map(Vec::as_slice).unwrap_or_default())
    }
}

/// Returns an object as it is in the store, where it has no resourceVersion.
pub fn in_store(mut object: Value) -> Value {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.shift_remove("resourceVersion");
    }
    object
}

/// Error in a converted object.
enum Invalid {
    Type(String),
    Object(String),
    Metadata(String),
}

/// Returns the converted object with the metadata that was sent: only labels and annotations may differ.
fn restored(object: &Value, sent: &Value, to: &ApiResource) -> Result<Value, Invalid> {
    let (api_version, kind) = (text(&object["apiVersion"]), text(&object["kind"]));
    if api_version != to.api_version() {
        let expected = to.api_version();
        let why = format!("invalid groupVersion (expected {expected}, received {api_version})");
        return Err(Invalid::Type(why));
    }
    if kind != to.kind {
        return Err(Invalid::Type(format!(
            "invalid kind (expected {}, received {kind})",
            to.kind
        )));
    }
    for field in ["name", "namespace", "uid"] {
        let [before, after] = [sent, object].map(|object| text(&object["metadata"][field]));
        if before != after {
            let field = if field == "uid" { "UID" } else { field };
            return Err(Invalid::Object(format!(
                "must have the same {field}: {before} != {after}"
            )));
        }
    }
    let Some(returned) = object["metadata"].as_object() else {
        let why = "invalid metadata of type <nil> in converted object".to_owned();
        return Err(Invalid::Metadata(why));
    };
    let mut metadata = sent["metadata"].as_object().cloned().unwrap_or_default();
    for field in ["labels", "annotations"] {
        let own = returned.get(field).and_then(Value::as_object);
        match own.filter(|own| !own.is_empty()) {
            Some(own) => drop(metadata.insert(field.to_owned(), Value::Object(texts(own)?))),
            None => drop(metadata.shift_remove(field)),
        }
    }
    let mut object = object.clone();
    object["metadata"] = Value::Object(metadata);
    Ok(object)
}

fn texts(map: &Map<String, Value>) -> Result<Map<String, Value>, Invalid> {
    match map.values().all(Value::is_string) {
        true => Ok(map.clone()),
        false => Err(Invalid::Metadata(
            "labels and annotations must be strings".to_owned(),
        )),
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

//! Supported protobuf: the envelope of bodies, the bodies of typed Go clients (objects of built-in kinds, decoded in
//! `builtin_kinds::types`, and options of a deletion), and a Status for clients that accept nothing else. Objects are not
//! encoded: clients that accept protobuf accept JSON too.
//!
//! Source: apimachinery `runtime/serializer/protobuf`, `runtime/generated.proto`, `meta/v1/generated.proto`.

use apimachinery::kind::ApiResource;
use builtin_kinds::types;
use prost::Message;
use serde_json::{Map, Value};

/// Prefix of every body.
pub(crate) const MAGIC: &[u8] = b"k8s\0";

/// Decodes the object in a body to JSON. For an object of another kind only its type is decoded, with which the caller
/// rejects it.
///
/// # Errors
///
/// The body is invalid.
pub(super) fn object(body: &[u8], kind: &ApiResource) -> Result<Value, String> {
    let (mut object, message) = opened(body)?;
    if object
        .get("kind")
        .is_none_or(|sent| sent == &*kind.kind || sent == "")
    {
        object.extend(types::from_protobuf(kind, &message)?);
    }
    Ok(Value::Object(object))
}

/// Decodes the `DeleteOptions` in a body to JSON.
///
/// # Errors
///
/// The body is invalid.
pub(super) fn delete_options(body: &[u8]) -> Result<Value, String> {
    let (mut object, message) = opened(body)?;
    // An object of another kind is not decoded: the caller only needs its type.
    if !object
        .get("kind")
        .is_none_or(|kind| kind == "DeleteOptions" || kind == "")
    {
        return Ok(Value::Object(object));
    }
    let options = DeleteOptions::decode(message.as_slice()).map_err(unreadable)?;
    if let Some(seconds) = options.grace_period_seconds {
        object.insert("gracePeriodSeconds".to_owned(), seconds.into());
    }
    if let Some(preconditions) = options.preconditions {
        let fields = [
            ("uid", preconditions.uid),
            ("resourceVersion", preconditions.resource_version),
        ];
        let set = fields
            .into_iter()
            .filter_map(|(field, value)| value.map(|value| (field, value)));
        object.insert("preconditions".to_owned(), set.collect());
    }
    if let Some(orphan) = options.orphan_dependents {
        object.insert("orphanDependents".to_owned(), orphan.into());
    }
    if let Some(policy) = options.propagation_policy {
        object.insert("propagationPolicy".to_owned(), policy.into());
    }
    if !options.dry_run.is_empty() {
        object.insert("dryRun".to_owned(), options.dry_run.into());
    }
    Ok(Value::Object(object))
}

/// Decodes the envelope: `kind` and `apiVersion`, if present, and the message.
fn opened(body: &[u8]) -> Result<(Map<String, Value>, Vec<u8>), String> {
    let Some(envelope) = body.strip_prefix(MAGIC) else {
        return Err(format!(
            "provided data does not appear to be a protobuf message, expected prefix {}",
            "[107 56 115 0]"
        ));
    };
    let unknown = Unknown::decode(envelope).map_err(unreadable)?;
    let sent_type = unknown.type_meta.unwrap_or_default();
    let mut object = Map::new();
    for (field, value) in [("kind", sent_type.kind), ("apiVersion", sent_type.api_version)] {
        if let Some(value) = value {
            object.insert(field.to_owned(), value.into());
        }
    }
    Ok((object, unknown.raw.unwrap_or_default()))
}

fn unreadable(error: prost::DecodeError) -> String {
    format!("proto: {error}")
}

/// Encodes a Status in its envelope.
pub(super) fn encode_status(status: &Value) -> Vec<u8> {
    let text = |value: &Value, field: &str| value[field].as_str().unwrap_or_default().to_owned();
    let number = |value: &Value, field: &str| {
        let number = value[field].as_i64().unwrap_or_default();
        i32::try_from(number).unwrap_or_default()
    };
    let details = status.get("details").map(|details| StatusDetails {
        name: text(details, "name"),
        group: text(details, "group"),
        kind: text(details, "kind"),
        causes: details["causes"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|cause| StatusCause {
                reason: text(cause, "reason"),
                message: text(cause, "message"),
                field: text(cause, "field"),
            })
            .collect(),
        retry_after_seconds: number(details, "retryAfterSeconds"),
        uid: text(details, "uid"),
    });
    let message = Status {
        metadata: ListMeta {
            self_link: String::new(),
            resource_version: text(&status["metadata"], "resourceVersion"),
            continue_token: text(&status["metadata"], "continue"),
        },
        status: text(status, "status"),
        message: text(status, "message"),
        reason: text(status, "reason"),
        details,
        code: number(status, "code"),
    };
    let unknown = Unknown {
        type_meta: Some(TypeMeta {
            api_version: Some("v1".to_owned()),
            kind: Some("Status".to_owned()),
        }),
        raw: Some(message.encode_to_vec()),
        content_encoding: Some(String::new()),
        content_type: Some(String::new()),
    };
    let mut body = MAGIC.to_vec();
    body.extend(unknown.encode_to_vec());
    body
}

/// `runtime.Unknown`.
#[derive(Clone, PartialEq, Message)]
struct Unknown {
    #[prost(message, optional, tag = "1")]
    type_meta: Option<TypeMeta>,
    #[prost(bytes = "vec", optional, tag = "2")]
    raw: Option<Vec<u8>>,
    #[prost(string, optional, tag = "3")]
    content_encoding: Option<String>,
    #[prost(string, optional, tag = "4")]
    content_type: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
struct TypeMeta {
    #[prost(string, optional, tag = "1")]
    api_version: Option<String>,
    #[prost(string, optional, tag = "2")]
    kind: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
struct DeleteOptions {
    #[prost(int64, optional, tag = "1")]
    grace_period_seconds: Option<i64>,
    #[prost(message, optional, tag = "2")]
    preconditions: Option<Preconditions>,
    #[prost(bool, optional, tag = "3")]
    orphan_dependents: Option<bool>,
    #[prost(string, optional, tag = "4")]
    propagation_policy: Option<String>,
    #[prost(string, repeated, tag = "5")]
    dry_run: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
struct Preconditions {
    #[prost(string, optional, tag = "1")]
    uid: Option<String>,
    #[prost(string, optional, tag = "2")]
    resource_version: Option<String>,
}

// Go encodes fields that are not pointers even if they are empty, hence `required`.

#[derive(Clone, PartialEq, Message)]
struct Status {
    #[prost(message, required, tag = "1")]
    metadata: ListMeta,
    #[prost(string, required, tag = "2")]
    status: String,
    #[prost(string, required, tag = "3")]
    message: String,
    #[prost(string, required, tag = "4")]
    reason: String,
    #[prost(message, optional, tag = "5")]
    details: Option<StatusDetails>,
    #[prost(int32, required, tag = "6")]
    code: i32,
}

#[derive(Clone, PartialEq, Message)]
struct ListMeta {
    #[prost(string, required, tag = "1")]
    self_link: String,
    #[prost(string, required, tag = "2")]
    resource_version: String,
    #[prost(string, required, tag = "3")]
    continue_token: String,
}

#[derive(Clone, PartialEq, Message)]
struct StatusDetails {
    #[prost(string, required, tag = "1")]
    name: String,
    #[prost(string, required, tag = "2")]
    group: String,
    #[prost(string, required, tag = "3")]
    kind: String,
    #[prost(message, repeated, tag = "4")]
    causes: Vec<StatusCause>,
    #[prost(int32, required, tag = "5")]
    retry_after_seconds: i32,
    #[prost(string, required, tag = "6")]
    uid: String,
}

#[derive(Clone, PartialEq, Message)]
struct StatusCause {
    #[prost(string, required, tag = "1")]
    reason: String,
    #[prost(string, required, tag = "2")]
    message: String,
    #[prost(string, required, tag = "3")]
    field: String,
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    /// The envelope as Go encodes it, with and without options.
    #[rstest]
    #[case::nothing(
        b"k8s\0\n\x13\n\x02v1\x12\rDeleteOptions\x12\0\x1a\0\"\0",
        json!({ "kind": "DeleteOptions", "apiVersion": "v1" })
    )]
    #[case::all(
        b"k8s\0\n\x13\n\x02v1\x12\rDeleteOptions\x12\x23\x08\x1e\x12\x0c\n\x06uid-12\x12\x0242\x18\x00\"\x0aForeground\x2a\x03All\x1a\0\"\0",
        json!({
            "kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 30,
            "preconditions": { "uid": "uid-12", "resourceVersion": "42" },
            "orphanDependents": false, "propagationPolicy": "Foreground", "dryRun": ["All"],
        })
    )]
    #[case::another_kind(b"k8s\0\n\x0f\n\x02v1\x12\tConfigMap\x12\x02\x0a\0", json!({ "kind": "ConfigMap", "apiVersion": "v1" }))]
    fn delete_options_are_parsed(#[case] body: &[u8], #[case] expected: Value) {
        assert_eq!(delete_options(body), Ok(expected));
    }

    #[rstest]
    #[case::json(
        b"{}",
        "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
    )]
    #[case::torn(b"k8s\0\n\x13\n\x02v1", "proto: failed to decode Protobuf message")]
    fn invalid_bodies_have_errors(#[case] body: &[u8], #[case] why: &str) {
        let outcome = delete_options(body).expect_err("it is not protobuf");
        assert!(outcome.starts_with(why), "{outcome}");
    }

    #[test]
    fn a_status_survives_encoding_and_decoding() {
        let status = json!({
            "status": "Failure", "message": "no", "reason": "NotFound", "code": 404,
            "details": { "name": "a", "kind": "pods", "causes": [{ "reason": "r" }], "retryAfterSeconds": 1 },
        });
        let body = encode_status(&status);
        let unknown = Unknown::decode(&body[MAGIC.len()..]).expect("an envelope");
        let read = Status::decode(unknown.raw.expect("a message").as_slice()).expect("a Status");
        assert_eq!((read.reason.as_str(), read.code), ("NotFound", 404));
        let details = read.details.expect("details");
        assert_eq!(
            (details.kind.as_str(), details.causes[0].reason.as_str()),
            ("pods", "r")
        );
    }
}

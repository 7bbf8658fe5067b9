//! Decoding of request bodies into objects of the kind in the path, with the error messages of kube-apiserver.
//!
//! The fields of kinds are in `builtin_kinds::types`.
//!
//! Source: apimachinery `runtime/serializer/json`, apiserver `endpoints/handlers/rest.go` (`transformDecodeError`).

use std::fmt::Write as _;

use apimachinery::kind::ApiResource;
use apimachinery::object::field;
use apimachinery::status::Status;
use apimachinery::write::FieldValidation;
use apimachinery::{depth, go_text};
use builtin_kinds::field_validation::validated;
use builtin_kinds::types::Reading;
use builtin_kinds::{convert, types};
use serde_json::Value;

use super::accept::PROTOBUF;
use super::{HttpRequest, JSON, protobuf, yaml_keys};

/// Encoding of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MediaType {
    Json,
    Yaml,
    Protobuf,
}

/// Returns `Content-Type` without its parameters.
pub(super) fn content_type(request: &HttpRequest) -> Option<String> {
    let text = request.header(http::header::CONTENT_TYPE)?;
    let media_type = text.split(';').next().unwrap_or_default().trim();
    Some(media_type.to_ascii_lowercase())
}

/// Returns the encoding of the body of a create or update.
///
/// # Errors
///
/// 415: as in kube-apiserver, custom resources are not decoded from protobuf, and the list of accepted types does not have
/// it.
pub(super) fn media_type(request: &HttpRequest, kind: &ApiResource) -> Result<MediaType, Status> {
    // Nearly every body.
    if request.headers.get(http::header::CONTENT_TYPE) == Some(&JSON) {
        return Ok(MediaType::Json);
    }
    match content_type(request).as_deref() {
        None | Some("" | "application/json") => Ok(MediaType::Json),
        Some("application/yaml") => Ok(MediaType::Yaml),
        Some(PROTOBUF) if !kind.custom => Ok(MediaType::Protobuf),
        Some(PROTOBUF) => Err(Status::unknown_format(&["application/json", "application/yaml"])),
        Some(_) if kind.custom => Err(Status::unknown_format(&["application/json", "application/yaml"])),
        Some(_) => Err(Status::unknown_format(&[
            "application/json",
            "application/yaml",
            PROTOBUF,
        ])),
    }
}

/// Returns the object and its warnings.
///
/// # Errors
///
/// 400: not JSON, another kind or version, a value of the wrong type or, with strict validation, an unknown field.
pub(super) fn object(
    body: &[u8],
    media_type: MediaType,
    kind: &ApiResource,
    validation: FieldValidation,
) -> Result<(Value, Vec<String>), Status> {
    let read = match media_type {
        MediaType::Json => typed_json(body, kind),
        MediaType::Yaml => yaml(body).map(|object| types::read_tree(kind, &object)),
        MediaType::Protobuf => protobuf::object(body, kind)
            .and_then(|object| check_tree(&object).map(|()| object))
            .map(|object| types::read_tree(kind, &object)),
    };
    let mut read = read.map_err(|error| {
        Status::bad_request(format!(
            "the object provided is unrecognized (must be of type {}): {error} ({})",
            kind.kind,
            summary(body)
        ))
    })?;
    let sent = |name: &str| field(&read.object, name).as_str().unwrap_or_default().to_owned();
    let (api_version, sent_kind) = (sent("apiVersion"), sent("kind"));
    let shown_version = match api_version.rsplit('/').next() {
        Some(version) if !version.is_empty() => version,
        Some(_) | None => &kind.version,
    };
    let cannot = |as_kind: &str, why: &str| {
        let as_kind = if as_kind.is_empty() { &*kind.kind } else { as_kind };
        Status::bad_request(format!(
            "{as_kind} in version \"{shown_version}\" cannot be handled as a {}: {why}",
            kind.kind
        ))
    };
    if kind.custom && sent_kind.is_empty() {
        let text = String::from_utf8_lossy(body);
        return Err(cannot("", &format!("Object 'Kind' is missing in '{text}'")));
    }
    if !kind.custom && !sent_kind.is_empty() && sent_kind != kind.kind {
        return Err(cannot(
            &sent_kind,
            &convert::unknown_conversion(kind, &api_version, &sent_kind, SCHEME),
        ));
    }
    if !api_version.is_empty() && !kind.is_read_from(&api_version) {
        return Err(Status::bad_request(format!(
            "the API version in the data ({api_version}) does not match the expected API version ({})",
            kind.api_version()
        )));
    }
    if media_type == MediaType::Yaml {
        let twice = yaml_keys::duplicates(body);
        let problems = match validation {
            // Duplicate keys precede unknown fields, as a single error.
            FieldValidation::Strict if !twice.is_empty() => vec![yaml_keys::strict_error(&twice)],
            FieldValidation::Ignore | FieldValidation::Strict | FieldValidation::Warn => twice,
        };
        read.problems.splice(..0, problems);
    }
    validated(kind, read, validation).map_err(|why| cannot(&sent_kind, &why))
}

/// Returns the body of a deletion.
///
/// # Errors
///
/// 400 for a body that is not `DeleteOptions`, 415 for an unsupported encoding.
pub(super) fn delete_options(request: &HttpRequest) -> Result<Value, Status> {
    let read = match content_type(request).as_deref() {
        None | Some("" | "application/json") => json(&request.body),
        Some("application/yaml") => yaml(&request.body),
        Some(PROTOBUF) => protobuf::delete_options(&request.body),
        Some(_) => {
            return Err(Status::unknown_format(&[
                "application/json",
                "application/yaml",
                PROTOBUF,
            ]));
        }
    };
    let options = read.map_err(Status::bad_request)?;
    match options["kind"].as_str() {
        None | Some("" | "DeleteOptions") => Ok(options),
        Some(_) => Err(Status::bad_request(
            "decoded object cannot be converted to DeleteOptions",
        )),
    }
}

fn json(body: &[u8]) -> Result<Value, String> {
    let value = serde_json::from_slice(body).map_err(|error| no_json(body, &error))?;
    check_tree(&value)?;
    Ok(value)
}

/// Decodes JSON as an object of a kind.
fn typed_json(body: &[u8], kind: &ApiResource) -> Result<Reading, String> {
    let read = types::read_text(kind, body).map_err(|error| no_json(body, &error))?;
    check_tree(&read.object)?;
    Ok(read)
}

fn no_json(body: &[u8], error: &serde_json::Error) -> String {
    format!(
        "couldn't get version/kind; json parse error: {}",
        go_text::json_error(body, error)
    )
}

fn yaml(body: &[u8]) -> Result<Value, String> {
    let value = yaml_tree(body).map_err(|error| format!("error converting YAML to JSON: yaml: {error}"))?;
    check_tree(&value)?;
    Ok(value)
}

/// Parses a body that is JSON, and as YAML means the same; `None`: it is to be parsed as YAML. None of its keys repeats.
///
/// Clients send JSON where YAML is accepted, and for that a parser of YAML takes ten times as long.
pub(super) fn plain_json(body: &[u8]) -> Option<Value> {
    let body = body.trim_ascii_end();
    // Escapes, tabs, line breaks and characters beyond ASCII have rules in YAML that they do not have in JSON.
    let is_plain = |byte: &u8| matches!(byte, b' '..=b'~') && *byte != b'\\';
    if body.first() != Some(&b'{') || !body.iter().all(is_plain) {
        return None;
    }
    types::read_plain(body).filter(|value| is_same_in_yaml(value, 0))
}

/// Returns whether JSON is the same as YAML, where fractions, merge keys and long keys are other things, and depth is limited.
fn is_same_in_yaml(value: &Value, level: usize) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::String(_) => true,
        Value::Number(number) => number.is_i64(),
        Value::Array(items) => {
            level < PLAIN_DEPTH && items.iter().all(|item| is_same_in_yaml(item, level + 1))
        }
        Value::Object(fields) => {
            let is_same = |(key, value): (&String, &Value)| {
                key != "<<" && key.len() <= PLAIN_KEY && is_same_in_yaml(value, level + 1)
            };
            level < PLAIN_DEPTH && fields.iter().all(is_same)
        }
    }
}

/// Limits of plain JSON, below those of YAML: depth, and bytes of a key.
const PLAIN_DEPTH: usize = 64;
const PLAIN_KEY: usize = 512;

/// Name of the scheme in errors of bodies.
const SCHEME: &str = "k8s.io/kubernetes/pkg/api/legacyscheme/scheme.go:30";

/// Maximum depth of YAML while it is parsed; that of objects is checked afterwards.
const YAML_DEPTH: usize = 120;

/// Minimum of the YAML events that aliases may repeat, and how many more they may for a byte of the body. With it the cost of
/// a body is linear in its bytes, whatever its aliases and merge keys refer to.
const REPEATED_EVENTS: (usize, usize) = (1_000, 4);

/// Parses YAML up to that depth. Of duplicate keys the last value is kept.
pub(super) fn yaml_tree(body: &[u8]) -> Result<Value, serde_saphyr::Error> {
    let (minimum, by_byte) = REPEATED_EVENTS;
    let options = serde_saphyr::options! {
        duplicate_keys: serde_saphyr::options::DuplicateKeyPolicy::LastWins,
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: minimum + by_byte * body.len(),
        },
        budget: serde_saphyr::budget! { max_depth: YAML_DEPTH, flow_nesting_limit: YAML_DEPTH },
    };
    serde_saphyr::from_slice_with_options(body, options)
}

/// Checks that the value is a map, and not too deep.
fn check_tree(value: &Value) -> Result<(), String> {
    if depth::is_too_deep(value) {
        return Err(format!(
            "couldn't get version/kind; json parse error: {}",
            depth::TOO_DEEP
        ));
    }
    if value.is_object() {
        return Ok(());
    }
    let of_type = "struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \
                   \"json:\\\"kind,omitempty\\\"\" }";
    Err(format!(
        "couldn't get version/kind; json parse error: json: cannot unmarshal {} into Go value of type {of_type}",
        go_text::json_kind(value)
    ))
}

/// Returns the beginning of a body: as text if it looks like JSON, else in hex.
fn summary(body: &[u8]) -> String {
    const SHOWN: usize = 30;
    let head = &body[..body.len().min(SHOWN)];
    let mut summary = match body.first() {
        None => return "<empty>".to_owned(),
        Some(b'{') => String::from_utf8_lossy(head).into_owned(),
        Some(_) => head.iter().fold(String::new(), |mut hex, byte| {
            // Writing to a String cannot fail.
            let _ = write!(hex, "{byte:02x}");
            hex
        }),
    };
    if body.len() > SHOWN {
        summary.push_str(" ...");
    }
    summary
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(r#"{"a": {"b": [1, -2, true, null, "x", "1", "yes", "0x1"]}, "": {}}"#, true)]
    #[case("{\"a\":1}\n", true)]
    #[case(r#"{"a": 1.0}"#, false)]
    #[case(r#"{"a": 1e3}"#, false)]
    #[case(r#"{"a": -0}"#, false)]
    #[case(r#"{"a": 18446744073709551615}"#, false)]
    #[case(r#"{"a": "\u0041"}"#, false)]
    #[case(r#"{"a": 1, "a": 2}"#, false)]
    #[case(r#"{"<<": {"a": 1}}"#, false)]
    #[case("{\"a\":\t1}", false)]
    #[case("{\"a\":\"\u{e4}\"}", false)]
    #[case("{a: 1}", false)]
    #[case("[1]", false)]
    fn plain_json_is_the_same_as_yaml(#[case] body: &str, #[case] is_plain: bool) {
        let plain = plain_json(body.as_bytes());
        assert_eq!(plain.is_some(), is_plain);
        if let Some(plain) = plain {
            assert_eq!(plain, yaml_tree(body.as_bytes()).unwrap());
            assert_eq!(yaml_keys::duplicates(body.as_bytes()), Vec::<String>::new());
        }
    }

    #[test]
    fn aliases_repeat_what_they_refer_to() {
        let body = b"a: &a {x: 1}\nb: *a\nc:\n  <<: *a\n  y: 2\n";
        let expected = serde_json::json!({"a": {"x": 1}, "b": {"x": 1}, "c": {"x": 1, "y": 2}});
        assert_eq!(yaml_tree(body).unwrap(), expected);
    }

    #[test]
    fn the_cost_of_aliases_is_linear_in_the_body() {
        let level = |nth: usize| {
            let aliases = vec![format!("*x{nth}"); 10].join(",");
            format!("x{}: &x{} {{<<: [{aliases}], k{nth}: v}}\n", nth + 1, nth + 1)
        };
        let levels: String = (0..12).map(level).collect();
        let error = yaml_tree(format!("x0: &x0 {{a: b}}\n{levels}").as_bytes()).unwrap_err();
        assert!(error.to_string().contains("alias"), "{error}");
    }
}

//! OpenAPI v2 in protobuf, as requested by kubectl, which uses it to validate objects of the kind `List` and of kinds missing
//! in version 3.
//!
//! Field numbers are in tables, for the fields of our documents; other fields are omitted. It must not know the meaning of a
//! document.
//!
//! Source: `openapi.v2` of gnostic (`openapiv2/OpenAPIv2.proto`), as kube-openapi encodes it.

use prost::encoding::{WireType, encode_key, encode_varint};
use serde_json::Value;

/// Media type requested by kubectl.
pub(super) const ASKED_FOR: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";

/// Media type of the response of kube-apiserver.
pub(super) const CONTENT_TYPE: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// Encoder of the fields of a message.
type Message = fn(&Value, &mut Vec<u8>);

/// Fields of a message: names in JSON, numbers, and encodings.
type Fields = &'static [(&'static str, u32, As)];

enum As {
    Text,
    Texts,
    Flag,
    Float,
    /// Each item of a list as YAML, a superset of JSON.
    Anything,
    One(Message),
    Each(Message),
    /// Message at this number with the entries of the object, by name.
    Named(u32, Message),
}

use As::{Anything, Each, Flag, Float, Named, One, Text, Texts};

const DOCUMENT: Fields = &[
    ("swagger", 1, Text),
    ("info", 2, One(info)),
    ("paths", 8, Named(2, path_item)),
    ("definitions", 9, Named(1, schema)),
    ("security", 12, Each(security)),
    ("securityDefinitions", 13, Named(1, security_definition)),
];

const INFO: Fields = &[("title", 1, Text), ("version", 2, Text)];

const PATH_ITEM: Fields = &[
    ("get", 2, One(operation)),
    ("put", 3, One(operation)),
    ("post", 4, One(operation)),
    ("delete", 5, One(operation)),
    ("options", 6, One(operation)),
    ("head", 7, One(operation)),
    ("patch", 8, One(operation)),
    ("parameters", 9, Each(parameter)),
];

const OPERATION: Fields = &[
    ("tags", 1, Texts),
    ("description", 3, Text),
    ("operationId", 5, Text),
    ("produces", 6, Texts),
    ("consumes", 7, Texts),
    ("parameters", 8, Each(parameter)),
    ("responses", 9, Named(1, response)),
    ("deprecated", 11, Flag),
];

const BODY_PARAMETER: Fields = &[
    ("description", 1, Text),
    ("name", 2, Text),
    ("in", 3, Text),
    ("required", 4, Flag),
    ("schema", 5, One(schema)),
];

const PATH_PARAMETER: Fields = &[
    ("required", 1, Flag),
    ("in", 2, Text),
    ("description", 3, Text),
    ("name", 4, Text),
    ("type", 5, Text),
    ("uniqueItems", 19, Flag),
];

const QUERY_PARAMETER: Fields = &[
    ("required", 1, Flag),
    ("in", 2, Text),
    ("description", 3, Text),
    ("name", 4, Text),
    ("type", 6, Text),
    ("uniqueItems", 20, Flag),
];

const RESPONSE: Fields = &[("description", 1, Text), ("schema", 2, One(schema_item))];

const SCHEMA: Fields = &[
    ("$ref", 1, Text),
    ("format", 2, Text),
    ("title", 3, Text),
    ("description", 4, Text),
    ("multipleOf", 6, Float),
    ("maximum", 7, Float),
    ("exclusiveMaximum", 8, Flag),
    ("minimum", 9, Float),
    ("exclusiveMinimum", 10, Flag),
    ("pattern", 13, Text),
    ("uniqueItems", 16, Flag),
    ("required", 19, Texts),
    ("enum", 20, Anything),
    ("additionalProperties", 21, One(additional_properties)),
    ("type", 22, One(types)),
    ("items", 23, One(schema_item)),
    ("properties", 25, Named(1, schema)),
];

const API_KEY: Fields = &[
    ("type", 1, Text),
    ("name", 2, Text),
    ("in", 3, Text),
    ("description", 4, Text),
];

/// Encodes the whole document.
pub(super) fn encode(document: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    fields(document, DOCUMENT, 16, &mut out);
    out
}

fn info(info: &Value, out: &mut Vec<u8>) {
    fields(info, INFO, 7, out);
}

fn path_item(item: &Value, out: &mut Vec<u8>) {
    fields(item, PATH_ITEM, 10, out);
}

fn operation(operation: &Value, out: &mut Vec<u8>) {
    fields(operation, OPERATION, 13, out);
}

/// `ParametersItem` of `Parameter`, which is one of the body or one of several others.
fn parameter(parameter: &Value, out: &mut Vec<u8>) {
    let (kind, table, extensions) = match parameter["in"].as_str() {
        Some("body") => {
            return embed(1, out, |out| {
                embed(1, out, |out| fields(parameter, BODY_PARAMETER, 6, out));
            });
        }
        Some("path") => (4, PATH_PARAMETER, 22),
        Some(_) | None => (3, QUERY_PARAMETER, 23),
    };
    embed(1, out, |out| {
        embed(2, out, |out| {
            embed(kind, out, |out| fields(parameter, table, extensions, out));
        });
    });
}

/// `ResponseValue` of `Response`.
fn response(response: &Value, out: &mut Vec<u8>) {
    embed(1, out, |out| fields(response, RESPONSE, 5, out));
}

/// `SchemaItem` of `Schema`; `ItemsItem` and `AdditionalPropertiesItem` have theirs at the same number.
fn schema_item(item: &Value, out: &mut Vec<u8>) {
    embed(1, out, |out| schema(item, out));
}

fn schema(schema: &Value, out: &mut Vec<u8>) {
    fields(schema, SCHEMA, 31, out);
}

fn additional_properties(properties: &Value, out: &mut Vec<u8>) {
    match properties.as_bool() {
        Some(allowed) => flag(2, allowed, out),
        None => schema_item(properties, out),
    }
}

/// `TypeItem`.
fn types(types: &Value, out: &mut Vec<u8>) {
    text(1, types, out);
}

/// `SecurityRequirement`: names with lists of scopes.
fn security(requirement: &Value, out: &mut Vec<u8>) {
    named(1, requirement, out, |scopes, out| {
        let scopes = scopes.as_array().into_iter().flatten();
        scopes.for_each(|scope| text(1, scope, out));
    });
}

/// `SecurityDefinitionsItem` of `ApiKeySecurity`.
fn security_definition(definition: &Value, out: &mut Vec<u8>) {
    embed(2, out, |out| fields(definition, API_KEY, 5, out));
}

/// Encodes the fields of an object by a table; extensions have a separate number.
fn fields(object: &Value, table: Fields, extensions: u32, out: &mut Vec<u8>) {
    for (name, value) in object.as_object().into_iter().flatten() {
        if name.starts_with("x-") {
            embed(extensions, out, |out| {
                bytes(1, name.as_bytes(), out);
                embed(2, out, |out| anything(value, out));
            });
        } else if let Some((_, number, how)) = table.iter().find(|(known, ..)| known == name) {
            field(value, *number, how, out);
        }
    }
}

fn field(value: &Value, number: u32, how: &As, out: &mut Vec<u8>) {
    let each = || value.as_array().into_iter().flatten();
    match how {
        Text => text(number, value, out),
        Texts => each().for_each(|value| text(number, value, out)),
        Flag => flag(number, value == true, out),
        Float => {
            encode_key(number, WireType::SixtyFourBit, out);
            out.extend(value.as_f64().unwrap_or_default().to_le_bytes());
        }
        Anything => each().for_each(|value| embed(number, out, |out| anything(value, out))),
        One(message) => embed(number, out, |out| message(value, out)),
        Each(message) => each().for_each(|value| embed(number, out, |out| message(value, out))),
        Named(below, message) => embed(number, out, |out| named(*below, value, out, message)),
    }
}

/// Encodes each entry of an object as a message of name and value.
fn named(number: u32, object: &Value, out: &mut Vec<u8>, message: impl Fn(&Value, &mut Vec<u8>)) {
    for (name, value) in object.as_object().into_iter().flatten() {
        embed(number, out, |out| {
            bytes(1, name.as_bytes(), out);
            embed(2, out, |out| message(value, out));
        });
    }
}

/// Encodes `Any` with its text.
fn anything(value: &Value, out: &mut Vec<u8>) {
    bytes(2, value.to_string().as_bytes(), out);
}

fn text(number: u32, value: &Value, out: &mut Vec<u8>) {
    bytes(number, value.as_str().unwrap_or_default().as_bytes(), out);
}

fn flag(number: u32, value: bool, out: &mut Vec<u8>) {
    encode_key(number, WireType::Varint, out);
    encode_varint(value.into(), out);
}

fn bytes(number: u32, bytes: &[u8], out: &mut Vec<u8>) {
    encode_key(number, WireType::LengthDelimited, out);
    encode_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// Encodes a nested message.
fn embed(number: u32, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let mut message = Vec::new();
    write(&mut message);
    bytes(number, &message, out);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::encode;

    #[test]
    fn documents_have_the_field_numbers_of_gnostic() {
        let document = json!({
            "info": { "title": "K" },
            "definitions": { "A": { "type": "object", "properties": { "b": { "minimum": 1 } }, "x-c": [true] } },
        });
        let schema = [
            b"\xb2\x01\x08\x0a\x06object".as_slice(),
            b"\xca\x01\x10\x0a\x0e\x0a\x01b\x12\x09\x49\0\0\0\0\0\0\xf0\x3f",
            b"\xfa\x01\x0f\x0a\x03x-c\x12\x08\x12\x06[true]",
        ]
        .concat();
        let wanted = [
            b"\x12\x03\x0a\x01K\x4a\x37\x0a\x35\x0a\x01A\x12\x30",
            schema.as_slice(),
        ]
        .concat();
        assert_eq!(encode(&document), wanted);
    }
}

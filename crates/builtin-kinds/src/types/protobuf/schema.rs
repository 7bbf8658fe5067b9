//! Decoder of the schema of a definition in protobuf. In JSON it is not decoded by a struct.
//!
//! Empty values (an empty string, false) are omitted, as Go omits them in JSON; behind a pointer they are kept.
//!
//! Source: apiextensions `apis/apiextensions/v1/generated.proto` and the JSON names in `types_jsonschema.go`.

use apimachinery::depth::{DEPTH_MAX, TOO_DEEP};
use serde_json::{Map, Value};

use super::{Wire, entries, raw, text, wrong_wire};

/// Type of a field of a schema.
#[derive(Clone, Copy)]
enum Holds {
    Text,
    /// Pointer to a string.
    TextOrNone,
    Texts,
    Flag,
    /// Pointer to a boolean.
    FlagOrNone,
    Count,
    Number,
    Json,
    Jsons,
    Schema,
    Schemas,
    SchemaMap,
    /// Message with a schema or a list of them.
    Items,
    /// Message with a boolean or a schema.
    Allowed,
    /// Map of messages with a schema or names.
    Dependencies,
    Documentation,
    Rules,
}

/// Fields by number, from 1.
const FIELDS: [(&str, Holds); 44] = [
    ("id", Holds::Text),
    ("$schema", Holds::Text),
    ("$ref", Holds::TextOrNone),
    ("description", Holds::Text),
    ("type", Holds::Text),
    ("format", Holds::Text),
    ("title", Holds::Text),
    ("default", Holds::Json),
    ("maximum", Holds::Number),
    ("exclusiveMaximum", Holds::Flag),
    ("minimum", Holds::Number),
    ("exclusiveMinimum", Holds::Flag),
    ("maxLength", Holds::Count),
    ("minLength", Holds::Count),
    ("pattern", Holds::Text),
    ("maxItems", Holds::Count),
    ("minItems", Holds::Count),
    ("uniqueItems", Holds::Flag),
    ("multipleOf", Holds::Number),
    ("enum", Holds::Jsons),
    ("maxProperties", Holds::Count),
    ("minProperties", Holds::Count),
    ("required", Holds::Texts),
    ("items", Holds::Items),
    ("allOf", Holds::Schemas),
    ("oneOf", Holds::Schemas),
    ("anyOf", Holds::Schemas),
    ("not", Holds::Schema),
    ("properties", Holds::SchemaMap),
    ("additionalProperties", Holds::Allowed),
    ("patternProperties", Holds::SchemaMap),
    ("dependencies", Holds::Dependencies),
    ("additionalItems", Holds::Allowed),
    ("definitions", Holds::SchemaMap),
    ("externalDocs", Holds::Documentation),
    ("example", Holds::Json),
    ("nullable", Holds::Flag),
    ("x-kubernetes-preserve-unknown-fields", Holds::FlagOrNone),
    ("x-kubernetes-embedded-resource", Holds::Flag),
    ("x-kubernetes-int-or-string", Holds::Flag),
    ("x-kubernetes-list-map-keys", Holds::Texts),
    ("x-kubernetes-list-type", Holds::TextOrNone),
    ("x-kubernetes-map-type", Holds::TextOrNone),
    ("x-kubernetes-validations", Holds::Rules),
];

const DOCUMENTATION: [(&str, Holds); 2] = [("description", Holds::Text), ("url", Holds::Text)];

const RULE: [(&str, Holds); 6] = [
    ("rule", Holds::TextOrNone),
    ("message", Holds::Text),
    ("messageExpression", Holds::Text),
    ("reason", Holds::TextOrNone),
    ("fieldPath", Holds::Text),
    ("optionalOldSelf", Holds::FlagOrNone),
];

/// Decodes the schema in a message.
///
/// # Errors
///
/// The message is invalid.
pub(super) fn schema(message: &[u8]) -> Result<Value, String> {
    schema_within(message, DEPTH_MAX)
}

/// Decodes a schema of at most `levels` levels.
fn schema_within(message: &[u8], levels: usize) -> Result<Value, String> {
    let levels = levels.checked_sub(1).ok_or_else(|| TOO_DEEP.to_owned())?;
    message_of(&FIELDS, message, levels)
}

fn message_of(known: &[(&str, Holds)], message: &[u8], levels: usize) -> Result<Value, String> {
    let mut out = Map::new();
    for entry in entries(message) {
        let (number, wire) = entry?;
        let place = usize::try_from(number)
            .ok()
            .and_then(|number| number.checked_sub(1));
        if let Some((name, holds)) = place.and_then(|place| known.get(place)) {
            set(&mut out, name, *holds, &wire, levels)?;
        }
    }
    Ok(Value::Object(out))
}

fn set(
    out: &mut Map<String, Value>,
    name: &str,
    holds: Holds,
    wire: &Wire<'_>,
    levels: usize,
) -> Result<(), String> {
    let schema = |message: &[u8]| schema_within(message, levels);
    let grown = |out: &mut Map<String, Value>, item: Value| {
        let list = out.entry(name).or_insert_with(|| Value::Array(Vec::new()));
        list.as_array_mut()
            .expect("only lists are put under a list's name")
            .push(item);
    };
    let value = match (holds, wire) {
        (Holds::Text, Wire::Bytes([])) | (Holds::Flag, Wire::Varint(0)) => return Ok(()),
        (Holds::Text | Holds::TextOrNone, Wire::Bytes(bytes)) => text(bytes)?.into(),
        (Holds::Flag | Holds::FlagOrNone, Wire::Varint(number)) => (*number != 0).into(),
        (Holds::Count, Wire::Varint(number)) => number.cast_signed().into(),
        (Holds::Number, Wire::Fixed64(bits)) => number(f64::from_bits(*bits)),
        (Holds::Json, Wire::Bytes(message)) => raw(message)?,
        (Holds::Schema, Wire::Bytes(message)) => schema(message)?,
        (Holds::Items, Wire::Bytes(message)) => either(message, &Value::Null, levels)?,
        (Holds::Allowed, Wire::Bytes(message)) => either(message, &false.into(), levels)?,
        (Holds::Documentation, Wire::Bytes(message)) => message_of(&DOCUMENTATION, message, levels)?,
        (Holds::Texts, Wire::Bytes(bytes)) => {
            grown(out, text(bytes)?.into());
            return Ok(());
        }
        (Holds::Jsons, Wire::Bytes(message)) => {
            grown(out, raw(message)?);
            return Ok(());
        }
        (Holds::Schemas, Wire::Bytes(message)) => {
            grown(out, schema(message)?);
            return Ok(());
        }
        (Holds::Rules, Wire::Bytes(message)) => {
            grown(out, message_of(&RULE, message, levels)?);
            return Ok(());
        }
        (Holds::SchemaMap | Holds::Dependencies, Wire::Bytes(entry)) => {
            let (mut key, mut held): (String, &[u8]) = (String::new(), &[]);
            for entry in entries(entry) {
                match entry? {
                    (1, Wire::Bytes(bytes)) => key = text(bytes)?,
                    (2, Wire::Bytes(message)) => held = message,
                    (_, _) => {}
                }
            }
            let value = if matches!(holds, Holds::Dependencies) {
                either(held, &Value::Null, levels)?
            } else {
                schema(held)?
            };
            let map = out.entry(name).or_insert_with(|| Value::Object(Map::new()));
            let map = map.as_object_mut().expect("only maps are put under a map's name");
            map.insert(key, value);
            return Ok(());
        }
        (_, _) => return Err(wrong_wire()),
    };
    out.insert(name.to_owned(), value);
    Ok(())
}

/// Returns an integral number as an integer.
fn number(number: f64) -> Value {
    #[expect(clippy::cast_possible_truncation, reason = "only what fits is written so")]
    if number.fract() == 0.0 && number.abs() < 1e15 {
        return (number as i64).into();
    }
    number.into()
}

/// Decodes a schema or its alternative: a boolean, schemas, names. `otherwise` is the value of an empty message.
fn either(message: &[u8], otherwise: &Value, levels: usize) -> Result<Value, String> {
    let schema = |message: &[u8]| schema_within(message, levels);
    let mut found = otherwise.clone();
    let mut listed: Vec<Value> = Vec::new();
    for entry in entries(message) {
        match entry? {
            (1, Wire::Varint(allowed)) => found = (allowed != 0).into(),
            (1, Wire::Bytes(message)) => found = schema(message)?,
            (2, Wire::Bytes(message)) if otherwise.is_boolean() => found = schema(message)?,
            (2, Wire::Bytes(message)) => {
                listed.push(schema(message).or_else(|_| text(message).map(Value::from))?)
            }
            (_, _) => {}
        }
    }
    Ok(if listed.is_empty() { found } else { listed.into() })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn within(number: u16, message: &[u8]) -> Vec<u8> {
        let key = number << 3 | 2;
        let length = u8::try_from(message.len()).unwrap();
        let key = match u8::try_from(key) {
            Ok(key) if key < 0x80 => vec![key],
            _ => vec![(key & 0x7f) as u8 | 0x80, (key >> 7) as u8],
        };
        [&key[..], &[length], message].concat()
    }

    #[test]
    fn schemas_decode_to_the_same_json() {
        let size = [
            within(5, b"integer"),
            within(8, &within(1, b"3")),
            vec![11 << 3 | 1],
            1.0_f64.to_le_bytes().to_vec(),
        ]
        .concat();
        let properties = within(29, &[within(1, b"size"), within(2, &size)].concat());
        let open = [0xb0, 0x02, 1];
        let message = [
            within(1, b""),
            within(5, b"object"),
            properties,
            within(23, b"size"),
            within(30, &within(2, &within(5, b"string"))),
            within(
                44,
                &[within(1, b"self.size > 0"), within(2, b"too small")].concat(),
            ),
            open.to_vec(),
        ]
        .concat();
        assert_eq!(
            schema(&message).unwrap(),
            json!({
                "type": "object",
                "properties": { "size": { "type": "integer", "default": 3, "minimum": 1 } },
                "required": ["size"],
                "additionalProperties": { "type": "string" },
                "x-kubernetes-validations": [{ "rule": "self.size > 0", "message": "too small" }],
                "x-kubernetes-preserve-unknown-fields": true,
            })
        );
    }

    #[test]
    fn schemas_are_limited_to_the_depth_of_objects() {
        let mut message = Vec::new();
        for _ in 0..10_000 {
            let mut length = Vec::new();
            let mut rest = message.len();
            while rest >= 0x80 {
                length.push((rest & 0x7f) as u8 | 0x80);
                rest >>= 7;
            }
            length.push(rest as u8);
            message = [&[0xe2, 0x01], &length[..], &message].concat();
        }
        assert_eq!(schema(&message), Err(TOO_DEEP.to_owned()));
    }
}

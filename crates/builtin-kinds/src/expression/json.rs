//! Values of expressions, converted from and to JSON. It must not know schemas: the caller chooses the type of a string or
//! number.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "operations name the types that they have; a new type has none"
)]

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Number, Value as Json};

use super::library;
use super::meter::Meter;
use super::value::{Key, Value};

/// Work of a part of JSON that is created.
const PART: usize = 8 * 16;

/// Converts JSON without a schema: objects are maps.
pub fn untyped(json: &Json) -> Value {
    match json {
        Json::Null => Value::Null,
        Json::Bool(truth) => Value::Bool(*truth),
        Json::Number(number) => self::number(number),
        Json::String(text) => Value::text(text.as_str()),
        Json::Array(items) => Value::list(items.iter().map(untyped).collect()),
        Json::Object(fields) => {
            Value::fields(fields.iter().map(|(key, value)| (key.clone(), untyped(value))))
        }
    }
}

/// Converts a string of this format to a `timestamp`, a `duration`, `bytes` or a `string`.
pub fn with_format(text: &str, format: &str) -> Value {
    let value = match format {
        "date-time" => library::timestamp(text).map(Value::Timestamp),
        "date" => library::timestamp(&format!("{text}T00:00:00Z")).map(Value::Timestamp),
        "duration" => library::duration(text).map(Value::Duration),
        "byte" => STANDARD.decode(text).ok().map(|bytes| Value::Bytes(bytes.into())),
        _ => None,
    };
    value.unwrap_or_else(|| Value::text(text))
}

fn number(number: &Number) -> Value {
    match (number.as_i64(), number.as_u64()) {
        (Some(number), _) => Value::Int(number),
        (None, Some(number)) => Value::Uint(number),
        (None, None) => double(number),
    }
}

/// Converts a number to a `double`.
pub(crate) fn double(number: &Number) -> Value {
    Value::Double(number.as_f64().unwrap_or_default())
}

/// The JSON of a value.
///
/// # Errors
/// It has none: a type, an optional, or a number that is not finite; or it is too large.
pub fn to_json(value: &Value) -> Result<Json, String> {
    json(value, &mut Meter::default())
}

fn json(value: &Value, meter: &mut Meter) -> Result<Json, String> {
    // A value has each of its parts once, however often it is in it; JSON has them all.
    let bytes = match value {
        Value::Text(text) => text.as_str().len(),
        Value::Bytes(bytes) => bytes.len().saturating_mul(2),
        _ => 0,
    };
    meter
        .allocate(bytes.saturating_add(PART))
        .map_err(|failure| failure.to_string())?;
    Ok(match value {
        Value::Null => Json::Null,
        Value::Bool(truth) => (*truth).into(),
        Value::Int(number) => (*number).into(),
        Value::Uint(number) => (*number).into(),
        Value::Double(number) => {
            let json = whole(*number).or_else(|| Number::from_f64(*number).map(Json::Number));
            return json.ok_or_else(|| unwritable(value));
        }
        Value::Text(text) => text.as_str().into(),
        Value::Bytes(bytes) => STANDARD.encode(bytes).into(),
        Value::List(list) => {
            let items = list.items().iter();
            return items.map(|item| json(item, meter)).collect();
        }
        Value::Map(map) => {
            let entries = map.entries().iter().map(|(key, value)| {
                let key = match key {
                    Key::Text(key) => key.as_str().to_owned(),
                    key => key.shown(),
                };
                Ok((key, json(value, meter)?))
            });
            let entries: BTreeMap<String, Json> = entries.collect::<Result<_, String>>()?;
            entries.into_iter().collect()
        }
        Value::Struct(made) => {
            let fields = made.fields().iter();
            let fields = fields.map(|(name, value)| Ok(((**name).to_owned(), json(value, meter)?)));
            Json::Object(fields.collect::<Result<Map<String, Json>, String>>()?)
        }
        Value::Timestamp(_) | Value::Duration(_) | Value::Opaque(_) => {
            let text = library::shown(value);
            return text.map(Json::String).ok_or_else(|| unwritable(value));
        }
        Value::Optional(_) | Value::Type(_) => return Err(unwritable(value)),
    })
}

fn unwritable(value: &Value) -> String {
    let name = value.type_name();
    format!("type conversion error from '{name}' to 'google.protobuf.Value'")
}

/// A number without a fraction, as JSON writes it.
#[expect(clippy::cast_possible_truncation, reason = "it is whole, and in range")]
fn whole(number: f64) -> Option<Json> {
    let exact = number.fract() == 0.0 && number.abs() < 9_007_199_254_740_992.0;
    exact.then(|| (number as i64).into())
}

/// Checks that what is constructed in the fields of a constructed object is of the types of these fields.
///
/// # Errors
/// The name that is wrong, in the words of apiserver (`pkg/cel/mutation/dynamic`).
pub fn check_constructed(value: &Value) -> Result<(), String> {
    let root = match value {
        Value::Struct(made) => made.name(),
        _ => "",
    };
    check_names(value, root, &mut Meter::default())
}

fn check_names(value: &Value, path: &str, meter: &mut Meter) -> Result<(), String> {
    meter
        .allocate(path.len())
        .map_err(|failure| failure.to_string())?;
    match value {
        Value::Struct(made) if made.name() != path => Err(format!(
            "unexpected type name {:?}, expected {path:?}, which matches field name path from root Object type",
            made.name()
        )),
        Value::Struct(made) => {
            let mut fields = made.fields().iter();
            fields.try_for_each(|(name, value)| check_names(value, &format!("{path}.{name}"), meter))
        }
        Value::List(list) => {
            let mut items = list.items().iter();
            items.try_for_each(|item| check_names(item, path, meter))
        }
        _ => Ok(()),
    }
}

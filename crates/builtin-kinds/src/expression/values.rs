//! Values of expressions, converted from JSON. It must not know schemas: the caller chooses the type of a string or number.

use cel::common::types::{
    CelBool, CelBytes, CelDouble, CelInt, CelList, CelNull, CelOptional, CelString, CelUInt,
};
use cel::common::value::{CowVal, Val};
use serde_json::{Number, Value};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::{ENVIRONMENT, Fields, Object};

/// Converts JSON without a schema: objects are maps.
pub fn untyped(json: &Value) -> Object {
    match json {
        Value::Null => Box::new(CelNull),
        Value::Bool(truth) => Box::new(CelBool::from(*truth)),
        Value::Number(number) => self::number(number),
        Value::String(text) => self::text(text),
        Value::Array(items) => list(items.iter().map(untyped)),
        Value::Object(fields) => Box::new(Fields::new(
            fields.iter().map(|(key, value)| (key.clone(), untyped(value))),
        )),
    }
}

/// Creates a `string`.
pub fn text(text: &str) -> Object {
    Box::new(CelString::from(text.to_owned()))
}

/// Creates a `list`.
pub fn list(items: impl Iterator<Item = Object>) -> Object {
    Box::new(CelList::from(items.collect::<Vec<_>>()))
}

/// Creates an `optional`.
pub fn optional(value: Option<Object>) -> Object {
    Box::new(value.map_or_else(CelOptional::none, CelOptional::of))
}

/// Converts a string of this format to a `timestamp`, a `duration`, `bytes` or a `string`.
pub fn with_format(text: &str, format: &str) -> Object {
    let converted = |function: &str, text: &str| -> Option<Object> {
        let argument: CowVal<'_, '_> = CowVal::owned(CelString::from(text.to_owned()));
        let convert = ENVIRONMENT.find_overload(function, std::slice::from_ref(&argument))?;
        convert(vec![argument]).ok().map(CowVal::into_owned)
    };
    let value = match format {
        "date-time" => converted("timestamp", text),
        "date" => converted("timestamp", &format!("{text}T00:00:00Z")),
        "duration" => converted("duration", text),
        "byte" => STANDARD
            .decode(text)
            .ok()
            .map(|bytes| Box::new(CelBytes::from(bytes)) as Object),
        _ => None,
    };
    value.unwrap_or_else(|| self::text(text))
}

fn number(number: &Number) -> Object {
    match (number.as_i64(), number.as_u64()) {
        (Some(number), _) => Box::new(CelInt::from(number)),
        (None, Some(number)) => Box::new(CelUInt::from(number)),
        (None, None) => double(number),
    }
}

/// Converts a number to a `double`.
pub(crate) fn double(number: &Number) -> Object {
    Box::new(CelDouble::from(number.as_f64().unwrap_or_default())) as Box<dyn Val>
}

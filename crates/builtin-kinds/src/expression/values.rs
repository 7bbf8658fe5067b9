//! Values of expressions, converted from and to JSON. It must not know schemas: the caller chooses the type of a string or
//! number.

use std::collections::BTreeMap;

use cel::common::types::{
    CelBool, CelBytes, CelDouble, CelInt, CelList, CelMap, CelNull, CelOptional, CelString, CelStruct,
    CelUInt,
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

/// The JSON of a value.
///
/// # Errors
/// It has none: a type, an optional, or a number that is not finite.
pub fn to_json(value: &dyn Val) -> Result<Value, String> {
    if value.downcast_ref::<CelNull>().is_some() {
        return Ok(Value::Null);
    }
    if let Some(truth) = value.downcast_ref::<CelBool>() {
        return Ok((*truth.inner()).into());
    }
    if let Some(number) = value.downcast_ref::<CelInt>() {
        return Ok((*number.inner()).into());
    }
    if let Some(number) = value.downcast_ref::<CelUInt>() {
        return Ok((*number.inner()).into());
    }
    if let Some(number) = value.downcast_ref::<CelDouble>() {
        let whole = whole(*number.inner());
        return whole
            .or_else(|| Number::from_f64(*number.inner()).map(Value::Number))
            .ok_or_else(|| unwritable(value));
    }
    if let Some(text) = value.downcast_ref::<CelString>() {
        return Ok(text.inner().into());
    }
    if let Some(bytes) = value.downcast_ref::<CelBytes>() {
        return Ok(STANDARD.encode(bytes.inner()).into());
    }
    if let Some(list) = value.downcast_ref::<CelList>() {
        return list.inner().iter().map(|item| to_json(item.as_ref())).collect();
    }
    if let Some(map) = value.downcast_ref::<CelMap>() {
        let entries = map.inner().iter().map(|(key, value)| {
            let key = to_json(key.inner())?;
            let key = key.as_str().map_or_else(|| key.to_string(), str::to_owned);
            Ok((key, to_json(value.as_ref())?))
        });
        let entries: BTreeMap<String, Value> = entries.collect::<Result<_, String>>()?;
        return Ok(entries.into_iter().collect());
    }
    if let Some(fields) = value.downcast_ref::<Fields>() {
        let fields = fields.entries();
        return fields
            .map(|(name, value)| Ok((name.to_owned(), to_json(value)?)))
            .collect();
    }
    if let Some(made) = value.downcast_ref::<CelStruct>() {
        let fields = made.field_values();
        let fields = fields.into_iter();
        return fields
            .map(|(name, value)| Ok((name, to_json(value.as_ref())?)))
            .collect();
    }
    let argument = CowVal::Owned(value.clone_as_boxed());
    let convert = ENVIRONMENT.find_overload("string", std::slice::from_ref(&argument));
    let text = convert.and_then(|convert| convert(vec![argument]).ok());
    let text = text.as_ref().and_then(|text| text.downcast_ref::<CelString>());
    text.map(|text| text.inner().into())
        .ok_or_else(|| unwritable(value))
}

/// The elements of a list.
pub fn to_items(value: &(dyn Val + 'static)) -> Option<Vec<Object>> {
    let list = value.downcast_ref::<CelList>()?;
    Some(
        list.inner()
            .iter()
            .map(|item| item.as_ref().clone_as_boxed())
            .collect(),
    )
}

/// The fields of a constructed value of this type.
pub fn constructed(value: &(dyn Val + 'static), name: &str) -> Option<Vec<(String, Object)>> {
    let made = value
        .downcast_ref::<CelStruct>()
        .filter(|made| made.name() == name)?;
    let fields = made.field_values().into_iter();
    Some(
        fields
            .map(|(name, value)| (name, value.as_ref().clone_as_boxed()))
            .collect(),
    )
}

fn unwritable(value: &dyn Val) -> String {
    let name = value.get_type().name();
    format!("type conversion error from '{name}' to 'google.protobuf.Value'")
}

/// A number without a fraction, as JSON writes it.
#[expect(clippy::cast_possible_truncation, reason = "it is whole, and in range")]
fn whole(number: f64) -> Option<Value> {
    let exact = number.fract() == 0.0 && number.abs() < 9_007_199_254_740_992.0;
    exact.then(|| (number as i64).into())
}

/// Checks that what is constructed in the fields of a constructed object is of the types of these fields.
///
/// # Errors
/// The name that is wrong, in the words of apiserver (`pkg/cel/mutation/dynamic`).
pub fn check_constructed(value: &dyn Val) -> Result<(), String> {
    let root = value
        .downcast_ref::<CelStruct>()
        .map(|made| made.name().to_owned());
    check_names(value, &root.unwrap_or_default())
}

fn check_names(value: &dyn Val, path: &str) -> Result<(), String> {
    if let Some(made) = value.downcast_ref::<CelStruct>() {
        if made.name() != path {
            return Err(format!(
                "unexpected type name {:?}, expected {path:?}, which matches field name path from root Object type",
                made.name()
            ));
        }
        let fields = made.field_values();
        let mut fields = fields.iter();
        return fields.try_for_each(|(name, value)| check_names(value.as_ref(), &format!("{path}.{name}")));
    }
    if let Some(list) = value.downcast_ref::<CelList>() {
        return list
            .inner()
            .iter()
            .try_for_each(|item| check_names(item.as_ref(), path));
    }
    Ok(())
}

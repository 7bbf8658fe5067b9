//! Decoder of built-in kinds in protobuf, as typed Go clients send them, to JSON.
//!
//! Generated Go code encodes fields that are not pointers even if they are empty; `conform` decides afterwards which are
//! kept, as for JSON. Unknown field numbers are skipped, as in Go.
//!
//! Source: "Encoding" (Protocol Buffers documentation); types with their own encoding in apimachinery:
//! `meta/v1/time_proto.go`, `util/intstr/generated.proto`, `api/resource/generated.proto`, `runtime/generated.proto`.

use std::ops::Range;

use apimachinery::kind::ApiResource;
use apimachinery::time::timestamp_at;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::times::micros_at;
use super::{Field, Shape, Struct, Type, of, types};

mod schema;

/// Decodes a message of this kind, without `apiVersion` and `kind`, which are in the envelope.
///
/// # Errors
///
/// The message is invalid, or the kind is a custom resource, which has no messages.
pub fn from_protobuf(kind: &ApiResource, message: &[u8]) -> Result<Map<String, Value>, String> {
    let known = of(kind).ok_or_else(|| format!("{} has no protobuf", kind.kind))?;
    let mut object = Map::new();
    fields(known, "", message, &mut object)?;
    Ok(object)
}

/// Decodes the fields of a struct, or of an embedded message: those whose numbers begin with `within`.
fn fields(
    known: &'static Struct,
    within: &str,
    message: &[u8],
    out: &mut Map<String, Value>,
) -> Result<(), String> {
    for entry in entries(message) {
        let (number, wire) = entry?;
        let number = format!("{within}{number}");
        if let Some(field) = known.fields.iter().find(|field| field.number == number) {
            set(field, &wire, out)?;
            continue;
        }
        let embedded = format!("{number}.");
        if let Wire::Bytes(inner) = wire
            && known
                .fields
                .iter()
                .any(|field| field.number.starts_with(&embedded))
        {
            fields(known, &embedded, inner, out)?;
        }
    }
    Ok(())
}

/// Field of a definition that is not decoded by a struct.
const SCHEMA: &str = "openAPIV3Schema";

/// Sets a field from one occurrence in the message; lists and maps grow by it.
fn set(field: &Field, wire: &Wire<'_>, out: &mut Map<String, Value>) -> Result<(), String> {
    match &field.holds.target().shape {
        Shape::List(items) => {
            let list = out.entry(field.name).or_insert_with(|| Value::Array(Vec::new()));
            let list = list
                .as_array_mut()
                .expect("only lists are put under a list's name");
            list.push(value(items, wire)?);
        }
        Shape::Map(values) => {
            let (key, value) = map_entry(values, wire)?;
            let map = out.entry(field.name).or_insert_with(|| Value::Object(Map::new()));
            let map = map.as_object_mut().expect("only maps are put under a map's name");
            map.insert(key, value);
        }
        Shape::Text
        | Shape::Bool
        | Shape::Int32
        | Shape::Int64
        | Shape::Float
        | Shape::Bytes
        | Shape::Time
        | Shape::MicroTime
        | Shape::Duration
        | Shape::Quantity
        | Shape::IntOrString
        | Shape::Any
        | Shape::Struct(_)
        | Shape::Pointer(_) => {
            let value = if let (SCHEMA, Wire::Bytes(message)) = (field.name, wire) {
                schema::schema(message)?
            } else {
                value(&field.holds, wire)?
            };
            out.insert(field.name.to_owned(), value);
        }
    }
    Ok(())
}

fn map_entry(values: &Type, wire: &Wire<'_>) -> Result<(String, Value), String> {
    let Wire::Bytes(entry) = wire else {
        return Err(wrong_wire());
    };
    // An empty value can be omitted.
    let (mut key, mut held) = (String::new(), value(values, &Wire::Bytes(&[]))?);
    for entry in entries(entry) {
        match entry? {
            (1, Wire::Bytes(bytes)) => key = text(bytes)?,
            (2, wire) => held = value(values, &wire)?,
            (_, _) => {}
        }
    }
    Ok((key, held))
}

fn value(of: &Type, wire: &Wire<'_>) -> Result<Value, String> {
    match (&of.target().shape, wire) {
        (Shape::Text, Wire::Bytes(bytes)) => Ok(text(bytes)?.into()),
        (Shape::Bool, Wire::Varint(number)) => Ok((*number != 0).into()),
        (Shape::Int32 | Shape::Int64, Wire::Varint(number)) => Ok(number.cast_signed().into()),
        (Shape::Float, Wire::Fixed64(bits)) => Ok(f64::from_bits(*bits).into()),
        (Shape::Bytes, Wire::Bytes(bytes)) => Ok(STANDARD.encode(bytes).into()),
        (Shape::Time, Wire::Bytes(message)) => time(message, false),
        (Shape::MicroTime, Wire::Bytes(message)) => time(message, true),
        (Shape::Quantity, Wire::Bytes(message)) => first_text(message).map(Value::from),
        (Shape::IntOrString, Wire::Bytes(message)) => int_or_string(message),
        (Shape::Any, Wire::Bytes(message)) => raw(message),
        (Shape::Struct(index), Wire::Bytes(message)) => {
            let mut out = Map::new();
            fields(&types().structs[*index], "", message, &mut out)?;
            Ok(Value::Object(out))
        }
        // A list inside a type that is not repeated is a separate message, with the items as its first field.
        (Shape::List(items), Wire::Bytes(message)) => {
            let items: Result<_, _> = entries(message)
                .map(|entry| entry.and_then(|(_, wire)| value(items, &wire)))
                .collect();
            Ok(Value::Array(items?))
        }
        (_, _) => Err(wrong_wire()),
    }
}

/// Seconds since 1970 of the years 1 to 9999, the range of RFC 3339.
const WRITABLE: Range<i64> = -62_135_596_800..253_402_300_800;

/// Decodes `Timestamp{seconds=1, nanos=2}`; an empty message is a null time.
fn time(message: &[u8], micro: bool) -> Result<Value, String> {
    if message.is_empty() {
        return Ok(Value::Null);
    }
    let (mut seconds, mut nanos) = (0, 0);
    for entry in entries(message) {
        match entry? {
            (1, Wire::Varint(number)) => seconds = number,
            (2, Wire::Varint(number)) => nanos = number,
            (_, _) => {}
        }
    }
    let seconds = seconds.cast_signed();
    if !WRITABLE.contains(&seconds) {
        return Err("a time that no year of four digits has".to_owned());
    }
    Ok(if micro {
        micros_at(seconds, nanos / 1000).into()
    } else {
        timestamp_at(seconds).into()
    })
}

/// Decodes `IntOrString{type=1, intVal=2, strVal=3}`; type 1 is a string.
fn int_or_string(message: &[u8]) -> Result<Value, String> {
    let (mut is_text, mut number, mut words) = (false, 0, String::new());
    for entry in entries(message) {
        match entry? {
            (1, Wire::Varint(kind)) => is_text = kind == 1,
            (2, Wire::Varint(value)) => number = value.cast_signed(),
            (3, Wire::Bytes(bytes)) => words = text(bytes)?,
            (_, _) => {}
        }
    }
    Ok(if is_text { words.into() } else { number.into() })
}

/// Decodes JSON inside a message: `RawExtension`, `FieldsV1`, `JSON`.
fn raw(message: &[u8]) -> Result<Value, String> {
    match entries(message).next().transpose()? {
        Some((1, Wire::Bytes(json))) if !json.is_empty() => {
            serde_json::from_slice(json).map_err(|error| error.to_string())
        }
        Some(_) | None => Ok(Value::Null),
    }
}

fn first_text(message: &[u8]) -> Result<String, String> {
    match entries(message).next().transpose()? {
        Some((1, Wire::Bytes(bytes))) => text(bytes),
        Some(_) | None => Ok(String::new()),
    }
}

fn text(bytes: &[u8]) -> Result<String, String> {
    String::from_utf8(bytes.to_vec()).map_err(|_| "string field contains invalid UTF-8".to_owned())
}

fn wrong_wire() -> String {
    "proto: wrong wireType".to_owned()
}

/// Value of a field before its type is known.
enum Wire<'a> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'a [u8]),
    Fixed32,
}

/// Returns the fields of a message in order. Iteration ends after an error.
fn entries(mut rest: &[u8]) -> impl Iterator<Item = Result<(u64, Wire<'_>), String>> {
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let entry = entry(&mut rest);
        if entry.is_none() {
            rest = &[];
        }
        Some(entry.ok_or_else(|| "unexpected EOF".to_owned()))
    })
}

fn entry<'a>(rest: &mut &'a [u8]) -> Option<(u64, Wire<'a>)> {
    let key = varint(rest)?;
    let wire = match key & 7 {
        0 => Wire::Varint(varint(rest)?),
        1 => Wire::Fixed64(u64::from_le_bytes(take(rest, 8)?.try_into().ok()?)),
        2 => {
            let length = varint(rest)?;
            Wire::Bytes(take(rest, usize::try_from(length).ok()?)?)
        }
        5 => take(rest, 4).map(|_| Wire::Fixed32)?,
        _ => return None,
    };
    Some((key >> 3, wire))
}

fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = take(rest, 1)?[0];
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(taken)
}

#[cfg(test)]
mod tests {
    use apimachinery::Version;
    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::catalog::Catalog;

    fn read(group: &str, plural: &str, message: &[u8]) -> Result<Value, String> {
        let kind = Catalog::builtin(Version::NEWEST)
            .find(group, plural)
            .cloned()
            .unwrap();
        from_protobuf(&kind, message).map(Value::Object)
    }

    /// Encodes a field that contains a message.
    fn within(number: u8, message: &[u8]) -> Vec<u8> {
        let length = u8::try_from(message.len()).unwrap();
        [&[number << 3 | 2, length], message].concat()
    }

    #[rstest]
    #[case::text("", "configmaps", within(1, &within(1, b"a")), json!({"metadata": {"name": "a"}}))]
    #[case::map("", "configmaps", within(2, &[within(1, b"k"), within(2, b"v")].concat()), json!({"data": {"k": "v"}}))]
    #[case::map_without_a_value("", "configmaps", within(2, &within(1, b"k")), json!({"data": {"k": ""}}))]
    #[case::bytes("", "secrets", within(2, &[within(1, b"k"), within(2, b"v")].concat()), json!({"data": {"k": "dg=="}}))]
    #[case::list("", "pods", within(1, &[within(14, b"a"), within(14, b"b")].concat()), json!({"metadata": {"finalizers": ["a", "b"]}}))]
    #[case::pointer_to_zero("apps", "deployments", within(2, &[8, 0]), json!({"spec": {"replicas": 0}}))]
    #[case::negative("", "pods", within(2, &[4 << 3, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1]), json!({"spec": {"terminationGracePeriodSeconds": -1}}))]
    #[case::embedded("", "pods", within(2, &within(1, &[within(1, b"v"), within(2, &within(2, b""))].concat())), json!({"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}))]
    #[case::quantity("", "resourcequotas", within(2, &within(1, &[within(1, b"pods"), within(2, &within(1, b"2"))].concat())), json!({"spec": {"hard": {"pods": "2"}}}))]
    #[case::a_number("policy", "poddisruptionbudgets", within(2, &within(1, &[8, 0, 16, 3, 26, 0])), json!({"spec": {"minAvailable": 3}}))]
    #[case::a_share("policy", "poddisruptionbudgets", within(2, &within(1, &[8, 1, 16, 0, 26, 3, b'5', b'0', b'%'])), json!({"spec": {"minAvailable": "50%"}}))]
    #[case::time("", "pods", within(1, &within(8, &[8, 0x80, 0xf2, 0xd6, 0xca, 6, 16, 0])), json!({"metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"}}))]
    #[case::no_time("", "pods", within(1, &within(8, b"")), json!({"metadata": {"creationTimestamp": null}}))]
    #[case::micro_time("coordination.k8s.io", "leases", within(2, &within(4, &[8, 0x80, 0xf2, 0xd6, 0xca, 6, 16, 0xe8, 7])), json!({"spec": {"renewTime": "2026-01-01T00:00:00.000001Z"}}))]
    #[case::before_1970("coordination.k8s.io", "leases", within(2, &within(3, &[8, 0x82, 0x92, 0xb8, 0xc3, 0x98, 0xfe, 0xff, 0xff, 0xff, 1])), json!({"spec": {"acquireTime": "0001-01-01T00:00:02.000000Z"}}))]
    #[case::raw("apps", "controllerrevisions", within(2, &within(1, br#"{"a":1}"#)), json!({"data": {"a": 1}}))]
    #[case::a_number_nobody_knows("", "configmaps", [within(1, &within(1, b"a")), vec![0x78, 1]].concat(), json!({"metadata": {"name": "a"}}))]
    fn a_message_decodes_to_the_same_json(
        #[case] group: &str,
        #[case] plural: &str,
        #[case] message: Vec<u8>,
        #[case] object: Value,
    ) {
        assert_eq!(read(group, plural, &message), Ok(object));
    }

    #[rstest]
    #[case::torn(&[10, 5, 1], "unexpected EOF")]
    #[case::endless_number(&[0x80; 12], "unexpected EOF")]
    #[case::another_type(&[8, 1], "proto: wrong wireType")]
    #[case::no_text(&[10, 3, 10, 1, 0xff], "string field contains invalid UTF-8")]
    fn invalid_messages_are_rejected(#[case] message: &[u8], #[case] why: &str) {
        assert_eq!(read("", "configmaps", message), Err(why.to_owned()));
    }
}

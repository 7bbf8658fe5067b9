//! Decoder of objects into the form kube-apiserver encodes them in: fields in the order of their struct, unknown ones
//! dropped, empty ones omitted or present according to the struct. It returns Go's messages for values of the wrong type, and
//! the unknown and duplicate fields of strict decoding, in the order found.
//!
//! Text is decoded in a single pass; trees are decoded the same way.
//!
//! Source: Go `encoding/json` and sigs.k8s.io/json (`UnmarshalStrict`).

use std::fmt;

use apimachinery::go_text;
use apimachinery::kind::{ApiResource, Generation};
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::map::Entry;
use serde_json::{Map, Value};

use super::problems::Problems;
use super::quantities::quantity;
use super::scalars::{bytes, fits};
use super::times::{micro_time, time};
use super::{Field, Shape, Struct, Type, of, types};

/// Result of decoding.
#[derive(Debug)]
pub struct Reading {
    /// The object in the form of its kind, as far as its types are valid; unchanged for a custom resource, or if it is not a
    /// map.
    pub object: Value,
    /// Strict errors: `unknown field "spec.x"`, `duplicate field "spec.replicas"`.
    pub problems: Vec<String>,
    /// Go's message for the first value of the wrong type: `json: cannot unmarshal string into Go struct field …`.
    pub misfit: Option<String>,
}

/// Decodes an object of this kind.
///
/// # Errors
///
/// The text is not JSON.
pub fn read_text(kind: &ApiResource, text: &[u8]) -> Result<Reading, serde_json::Error> {
    // The strings of a body that is UTF-8 as a whole need no check.
    match std::str::from_utf8(text) {
        Ok(text) => read_json(kind, serde_json::Deserializer::from_str(text)),
        Err(_) => read_json(kind, serde_json::Deserializer::from_slice(text)),
    }
}

fn read_json<'t, R: serde_json::de::Read<'t>>(
    kind: &ApiResource,
    mut text: serde_json::Deserializer<R>,
) -> Result<Reading, serde_json::Error> {
    let reader = Reader {
        keeps_empty: keeps_empty(kind),
        ..Reader::new(Messages::Json)
    };
    let mut read = reader.read(of(kind), &mut text)?;
    text.end()?;
    drop_later_fields(kind, &mut read.object);
    Ok(read)
}

/// Decodes a tree as an object of this kind.
pub fn read_tree(kind: &ApiResource, object: &Value) -> Reading {
    let reader = Reader {
        keeps_empty: keeps_empty(kind),
        ..Reader::new(Messages::Json)
    };
    read_tree_with(reader, kind, object)
}

/// Whether a write of this kind has an effect because a list or map in it is empty and not absent.
fn keeps_empty(kind: &ApiResource) -> bool {
    kind.generation == Generation::SpecAsSent
}

fn read_tree_with(reader: Reader, kind: &ApiResource, object: &Value) -> Reading {
    let mut read = reader.read(of(kind), object).expect(TREES_ARE_VALID);
    drop_later_fields(kind, &mut read.object);
    read
}

/// Removes what an older minor does not have: the structs are those of the newest.
fn drop_later_fields(kind: &ApiResource, object: &mut Value) {
    if let (Some(_), Some(object)) = (kind.until, object.as_object_mut()) {
        let is_of_all = |name: &str| matches!(name, "kind" | "apiVersion" | "metadata");
        object.retain(|name, _| is_of_all(name) || kind.fields.contains(&name.as_str()));
    }
}

/// Decodes a value as the struct of this name.
pub fn read_named(name: &str, value: &Value) -> Reading {
    let reader = Reader::new(Messages::Json);
    reader.read(super::named(name), value).expect(TREES_ARE_VALID)
}

/// Returns the object in the form of its struct; `None` for a custom resource, which needs no conversion.
///
/// # Errors
///
/// Go's message for the first value of the wrong type.
pub fn conform(kind: &ApiResource, object: &Value) -> Result<Option<Value>, String> {
    if of(kind).is_none() {
        return Ok(None);
    }
    let reader = Reader::new(Messages::Json);
    let Reading { object, misfit, .. } = read_tree_with(reader, kind, object);
    misfit.map_or(Ok(Some(object)), Err)
}

/// Checks the types of the result of a strategic merge patch, which kube-apiserver converts without encoding it, with other
/// messages.
///
/// # Errors
///
/// The message: `cannot convert int64 to string`.
pub fn restorable(kind: &ApiResource, object: &Value) -> Result<(), String> {
    let reader = Reader::new(Messages::Unstructured);
    let read = reader.read(of(kind), object).expect(TREES_ARE_VALID);
    read.misfit.map_or(Ok(()), Err)
}

/// Decodes a body as it is; `None`: it is no JSON, or one of its fields repeats.
pub fn read_plain(body: &[u8]) -> Option<Value> {
    let mut text = serde_json::Deserializer::from_slice(body);
    let read = Reader::new(Messages::Json).read(None, &mut text).ok()?;
    text.end().ok()?;
    read.problems.is_empty().then_some(read.object)
}

/// Returns the duplicate fields in a body that is not a whole object; none if it is not JSON.
pub fn duplicates(body: &[u8]) -> Vec<String> {
    let mut text = serde_json::Deserializer::from_slice(body);
    match Reader::new(Messages::Json).read(None, &mut text) {
        Ok(read) => read.problems,
        Err(error) => {
            tracing::debug!(%error, "no JSON");
            Vec::new()
        }
    }
}

const TREES_ARE_VALID: &str = "a tree of values is as JSON has it, and the reader itself refuses nothing";

/// State of the decoder.
struct Reader {
    messages: Messages,
    /// Whether empty lists and maps stay, except in metadata.
    keeps_empty: bool,
    problems: Problems,
    misfit: Option<String>,
}

/// Source of the messages for values of the wrong type.
#[derive(Clone, Copy)]
enum Messages {
    /// `encoding/json`.
    Json,
    /// apimachinery `runtime/converter.go`.
    Unstructured,
}

impl Reader {
    fn new(messages: Messages) -> Self {
        Self {
            messages,
            keeps_empty: false,
            problems: Problems::default(),
            misfit: None,
        }
    }

    fn read<'de, D: Deserializer<'de>>(
        mut self,
        known: Option<&'static Struct>,
        from: D,
    ) -> Result<Reading, D::Error> {
        let cursor = Cursor {
            holds: known.map_or(Expected::Anything, Expected::Object),
            holder: known,
            path: Path::Top,
            reader: &mut self,
        };
        let object = cursor.deserialize(from)?;
        Ok(Reading {
            object,
            problems: self.problems.into_texts(),
            misfit: self.misfit,
        })
    }

    /// Returns the fields of a struct in order; `values` are the decoded ones with their indices. `of_object`: it is the metadata
    /// of the object itself.
    fn encoded(&self, known: &Struct, mut values: Vec<(usize, Value)>, of_object: bool) -> Value {
        values.sort_unstable_by_key(|(index, _)| *index);
        let always = known.fields.iter().filter(|field| !field.omit_empty);
        let mut out = Map::with_capacity(values.len() + always.count());
        let mut values = values.into_iter().peekable();
        let keeps_empty = self.keeps_empty && known.name != OBJECT_META;
        for (index, field) in known.fields.iter().enumerate() {
            let value = match values.next_if(|(other, _)| *other == index) {
                Some((_, value)) => value,
                None if field.omit_empty && field.holds.has_empty_zero() => continue,
                None => self.zero(&field.holds),
            };
            // An empty list of managers is a request to forget them (apimachinery `internal/fieldmanager.go`).
            let stays = keeps_empty || of_object && field.name == "managedFields";
            if !is_left_out(field, &value) || stays && is_empty(&value) {
                out.insert(field.name.to_owned(), value);
            }
        }
        Value::Object(out)
    }

    /// Returns Go's zero value.
    fn zero(&self, of: &Type) -> Value {
        match &of.shape {
            Shape::Text => "".into(),
            Shape::Bool => false.into(),
            Shape::Int32 | Shape::Int64 | Shape::Float | Shape::IntOrString => 0.into(),
            Shape::Quantity => "0".into(),
            Shape::Duration => "0s".into(),
            Shape::Bytes
            | Shape::Time
            | Shape::MicroTime
            | Shape::Any
            | Shape::Pointer(_)
            | Shape::List(_)
            | Shape::Map(_) => Value::Null,
            Shape::Struct(index) => {
                let known = &types().structs[*index];
                self.encoded(known, Vec::new(), false)
            }
        }
    }
}

fn is_left_out(field: &Field, value: &Value) -> bool {
    let empty = match (&field.holds.shape, value) {
        (Shape::Pointer(_) | Shape::List(_) | Shape::Map(_) | Shape::Bytes | Shape::Any, Value::Null) => true,
        (Shape::List(_), Value::Array(items)) => items.is_empty(),
        (Shape::Map(_), Value::Object(entries)) => entries.is_empty(),
        (Shape::Text | Shape::Bytes, Value::String(text)) => text.is_empty(),
        (Shape::Bool, value) => *value == false,
        (Shape::Int32 | Shape::Int64, value) => *value == 0,
        (Shape::Float, value) => value.as_f64() == Some(0.0),
        (_, _) => false,
    };
    let zero = field.omit_zero && value.is_null();
    field.omit_empty && empty || zero
}

/// Whether it is a list or a map without content.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Struct of the metadata of objects.
const OBJECT_META: &str = "meta/v1.ObjectMeta";

/// Position of the decoder.
struct Cursor<'a> {
    holds: Expected,
    /// Struct of the current field.
    holder: Option<&'static Struct>,
    path: Path<'a>,
    reader: &'a mut Reader,
}

/// Expected type at a position.
#[derive(Clone, Copy)]
enum Expected {
    Anything,
    /// An object that begins here; other values are not decoded further.
    Object(&'static Struct),
    Of(&'static Type),
}

/// Path of a position.
#[derive(Clone, Copy)]
enum Path<'a> {
    Top,
    /// Field of a struct.
    Field(&'a Path<'a>, &'static str),
    Key(&'a Path<'a>, &'a str),
    Item(&'a Path<'a>, usize),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = |above: &Self, name: &str, f: &mut fmt::Formatter<'_>| match above {
            Path::Top => f.write_str(name),
            Path::Field(..) | Path::Key(..) | Path::Item(..) => write!(f, "{above}.{name}"),
        };
        match self {
            Self::Top => Ok(()),
            Self::Field(above, name) => named(above, name, f),
            Self::Key(above, name) => named(above, name, f),
            Self::Item(above, index) => write!(f, "{above}[{index}]"),
        }
    }
}

impl Path<'_> {
    /// Returns the fields on the path, as `encoding/json` reports them.
    fn fields(&self) -> Vec<&'static str> {
        match self {
            Self::Top => Vec::new(),
            Self::Field(above, name) => {
                let mut fields = above.fields();
                fields.push(name);
                fields
            }
            Self::Key(above, _) | Self::Item(above, _) => above.fields(),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Cursor<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Cursor<'_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<Value, A::Error> {
        let of = match self.holds {
            Expected::Anything => return self.entries(Expected::Anything, entries).map(Value::Object),
            Expected::Object(known) => return self.fields(known, entries),
            Expected::Of(of) => of,
        };
        if let Some(known) = of.as_struct() {
            return self.fields(known, entries);
        }
        if let Some(values) = of.values() {
            let mut map = self.entries(Expected::Of(values), entries)?;
            // Go encodes maps sorted.
            if !map.keys().is_sorted() {
                map.sort_keys();
            }
            return Ok(Value::Object(map));
        }
        self.decode_untyped(|cursor| cursor.visit_map(entries))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Value, A::Error> {
        let of = match self.holds {
            Expected::Anything | Expected::Object(_) => return self.items(Expected::Anything, items),
            Expected::Of(of) => of,
        };
        match of.items() {
            Some(of) => self.items(Expected::Of(of), items),
            None => self.decode_untyped(|cursor| cursor.visit_seq(items)),
        }
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(self.coerce(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(self.coerce(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(self.coerce(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(self.coerce(value.into()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(self.coerce(value.into()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(self.coerce(value.into()))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(self.coerce(Value::Null))
    }
}

impl Cursor<'_> {
    fn fields<'de, A: MapAccess<'de>>(
        self,
        known: &'static Struct,
        mut entries: A,
    ) -> Result<Value, A::Error> {
        let Self { path, reader, .. } = self;
        // Few objects have more fields.
        let mut values: Vec<(usize, Value)> = Vec::with_capacity(known.fields.len().min(8));
        while let Some(key) = entries.next_key_seed(FieldName(known))? {
            match key {
                Key::Field(index) => {
                    let field = &known.fields[index];
                    let path = Path::Field(&path, field.name);
                    let again = values.iter().position(|(other, _)| *other == index);
                    if again.is_some() {
                        reader.problems.push("duplicate", &path);
                    }
                    let value = entries.next_value_seed(Cursor {
                        holds: Expected::Of(&field.holds),
                        holder: Some(known),
                        path,
                        reader,
                    })?;
                    match again {
                        Some(again) => values[again].1 = value,
                        None => values.push((index, value)),
                    }
                }
                Key::Unknown(key) => {
                    reader.problems.push("unknown", &Path::Key(&path, &key));
                    entries.next_value::<IgnoredAny>()?;
                }
            }
        }
        let of_object = matches!(path, Path::Field(Path::Top, "metadata"));
        Ok(reader.encoded(known, values, of_object))
    }

    fn entries<'de, A: MapAccess<'de>>(
        self,
        holds: Expected,
        mut entries: A,
    ) -> Result<Map<String, Value>, A::Error> {
        let Self {
            holder, path, reader, ..
        } = self;
        let mut out = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            let before = reader.problems.len();
            let value = entries.next_value_seed(Cursor {
                holds,
                holder,
                path: Path::Key(&path, &key),
                reader,
            })?;
            match out.entry(key) {
                Entry::Vacant(entry) => drop(entry.insert(value)),
                Entry::Occupied(mut entry) => {
                    let path = Path::Key(&path, entry.key());
                    reader.problems.insert(before, "duplicate", &path);
                    entry.insert(value);
                }
            }
        }
        Ok(out)
    }

    fn items<'de, A: SeqAccess<'de>>(self, holds: Expected, mut items: A) -> Result<Value, A::Error> {
        let Self {
            holder, path, reader, ..
        } = self;
        let mut out = Vec::new();
        while let Some(item) = items.next_element_seed(Cursor {
            holds,
            holder,
            path: Path::Item(&path, out.len()),
            reader,
        })? {
            out.push(item);
        }
        Ok(Value::Array(out))
    }

    /// Decodes a value before its type is checked.
    fn decode_untyped<E>(self, read: impl FnOnce(Cursor<'_>) -> Result<Value, E>) -> Result<Value, E> {
        let value = read(Cursor {
            holds: Expected::Anything,
            holder: self.holder,
            path: self.path,
            reader: self.reader,
        })?;
        Ok(self.coerce(value))
    }

    /// Returns the value in its encoded form, and records the first value of the wrong type.
    fn coerce(self, value: Value) -> Value {
        let Expected::Of(of) = self.holds else {
            return value;
        };
        self.coerce_to(of, value).unwrap_or_else(|misfit| {
            self.reader.misfit.get_or_insert(misfit);
            Value::Null
        })
    }

    fn coerce_to(&self, of: &Type, value: Value) -> Result<Value, String> {
        match (&of.shape, value) {
            (Shape::Any, value) => Ok(value),
            (_, Value::Null) => Ok(self.reader.zero(of)),
            (Shape::Pointer(target), value) => self.coerce_to(target, value),
            (Shape::Text, value @ Value::String(_))
            | (Shape::Duration, value @ Value::String(_))
            | (Shape::Bool, value @ Value::Bool(_))
            | (Shape::IntOrString, value @ Value::String(_))
            | (Shape::Float, value @ Value::Number(_)) => Ok(value),
            (Shape::Int32 | Shape::IntOrString, value) if fits::<i32>(&value) => Ok(value),
            (Shape::Int64, value) if fits::<i64>(&value) => Ok(value),
            (Shape::Time, Value::String(text)) => time(&text),
            (Shape::MicroTime, Value::String(text)) => micro_time(&text),
            (Shape::Bytes, Value::String(text)) => bytes(&text),
            (Shape::Quantity, value) => {
                // The finest unit of resources is a thousandth.
                let finest = if matches!(self.path, Path::Key(..)) {
                    -3
                } else {
                    -9
                };
                quantity(&value, finest)
            }
            (_, value) => Err(match self.reader.messages {
                Messages::Json => self.json_type_error(of, &value),
                Messages::Unstructured => unstructured_type_error(of, &value),
            }),
        }
    }

    fn json_type_error(&self, of: &Type, value: &Value) -> String {
        // A valid number of another type is part of the message.
        let shown = match (&of.shape, value) {
            (Shape::Int32 | Shape::Int64 | Shape::IntOrString, Value::Number(number)) => format!(" {number}"),
            (_, _) => String::new(),
        };
        let what = format!("{}{shown}", go_text::json_kind(value));
        format!(
            "json: cannot unmarshal {what} into Go struct field {}.{} of type {}",
            self.holder.map_or("", Struct::bare),
            self.path.fields().join("."),
            of.go
        )
    }
}

/// Decodes the name of a field.
struct FieldName(&'static Struct);

enum Key {
    /// Index of the field in its struct.
    Field(usize),
    Unknown(String),
}

impl<'de> DeserializeSeed<'de> for FieldName {
    type Value = Key;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Key, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for FieldName {
    type Value = Key;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the name of a field")
    }

    fn visit_str<E>(self, name: &str) -> Result<Key, E> {
        let index = self.0.fields.iter().position(|field| field.name == name);
        Ok(index.map_or_else(|| Key::Unknown(name.to_owned()), Key::Field))
    }
}

fn unstructured_type_error(of: &Type, value: &Value) -> String {
    let what = match value {
        Value::Null => "interface",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
    };
    match &of.shape {
        Shape::List(_) | Shape::Bytes => format!("cannot restore slice from {what}"),
        Shape::Map(_) => format!("cannot restore map from {what}"),
        Shape::Struct(_) => format!("cannot restore struct from: {what}"),
        // Numbers and booleans are converted into each other, but not to or from strings.
        Shape::Int32 | Shape::Int64 | Shape::Float | Shape::Bool if value.is_string() => {
            format!("unrecognized type: {}", of.go)
        }
        Shape::Text
        | Shape::Bool
        | Shape::Int32
        | Shape::Int64
        | Shape::Float
        | Shape::Time
        | Shape::MicroTime
        | Shape::Duration
        | Shape::Quantity
        | Shape::IntOrString
        | Shape::Any
        | Shape::Pointer(_) => format!("cannot convert {what} to {}", of.go),
    }
}

#[cfg(test)]
mod tests {
    use apimachinery::Version;
    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::catalog::Catalog;

    fn deployment(spec: &Value) -> Result<Value, String> {
        let kind = Catalog::builtin(Version::NEWEST)
            .find("apps", "deployments")
            .cloned()
            .unwrap();
        conform(&kind, &json!({ "metadata": {}, "spec": spec })).map(Option::unwrap)
    }

    #[rstest]
    #[case(json!({"replicas": "x"}), "string into Go struct field DeploymentSpec.spec.replicas of type int32")]
    #[case(json!({"replicas": 1.5}), "number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32")]
    #[case(json!({"replicas": 99_999_999_999_i64}), "number 99999999999 into Go struct field DeploymentSpec.spec.replicas of type int32")]
    #[case(json!({"paused": "yes"}), "string into Go struct field DeploymentSpec.spec.paused of type bool")]
    #[case(json!({"selector": "a"}), "string into Go struct field DeploymentSpec.spec.selector of type v1.LabelSelector")]
    #[case(json!({"strategy": {"rollingUpdate": {"maxSurge": true}}}), "bool into Go struct field RollingUpdateDeployment.spec.strategy.rollingUpdate.maxSurge of type int32")]
    #[case(json!({"template": {"spec": {"containers": {"name": "x"}}}}), "object into Go struct field PodSpec.spec.template.spec.containers of type []v1.Container")]
    #[case(json!({"template": {"spec": {"containers": ["a"]}}}), "string into Go struct field PodSpec.spec.template.spec.containers of type v1.Container")]
    #[case(json!({"template": {"spec": {"containers": [{"name": 1}]}}}), "number into Go struct field Container.spec.template.spec.containers.name of type string")]
    #[case(json!({"template": {"spec": {"containers": [{"imagePullPolicy": 1}]}}}), "number into Go struct field Container.spec.template.spec.containers.imagePullPolicy of type v1.PullPolicy")]
    #[case(json!({"template": {"spec": {"nodeSelector": {"a": 1}}}}), "number into Go struct field PodSpec.spec.template.spec.nodeSelector of type string")]
    #[case(json!({"template": {"spec": {"nodeSelector": ["a"]}}}), "array into Go struct field PodSpec.spec.template.spec.nodeSelector of type map[string]string")]
    #[case(json!({"template": {"spec": {"containers": [{"resources": {"limits": "x"}}]}}}), "string into Go struct field ResourceRequirements.spec.template.spec.containers.resources.limits of type v1.ResourceList")]
    fn type_errors_have_the_messages_of_go(#[case] spec: Value, #[case] messages: &str) {
        assert_eq!(
            deployment(&spec).unwrap_err(),
            format!("json: cannot unmarshal {messages}")
        );
    }

    #[test]
    fn fields_are_encoded_in_the_order_of_the_struct_and_omitted_if_empty() {
        let spec = json!({"template": {"spec": {"restartPolicy": "", "containers": [{"image": "i", "name": "c", "env": []}]}}, "replicas": 0});
        let object = deployment(&spec).unwrap();
        assert_eq!(
            object.to_string(),
            r#"{"metadata":{},"spec":{"replicas":0,"selector":null,"template":{"metadata":{},"spec":{"containers":[{"name":"c","image":"i","resources":{}}]}},"strategy":{}},"status":{}}"#
        );
    }

    #[test]
    fn strict_errors_are_in_the_order_of_the_text() {
        let kind = Catalog::builtin(Version::NEWEST)
            .find("apps", "deployments")
            .cloned()
            .unwrap();
        let body =
            br#"{"foo":1,"metadata":{"name":"d","bar":1,"labels":{"a":"1","a":"2"}},"spec":{"replicas":1,
            "replicas":2,"template":{"spec":{"containers":[{"name":"c","x":1,"x":2,"ports":[{"y":2}]}],
            "zz":{"a":1,"a":2}}}}}"#;
        assert_eq!(
            read_text(&kind, body).unwrap().problems.join(", "),
            "unknown field \"foo\", unknown field \"metadata.bar\", duplicate field \"metadata.labels.a\", duplicate \
             field \"spec.replicas\", unknown field \"spec.template.spec.containers[0].x\", unknown field \
             \"spec.template.spec.containers[0].ports[0].y\", unknown field \"spec.template.spec.zz\""
        );
    }
}

//! One version of one object: its key, and its bytes in the order of the wire, which are encoded once and shared by all lists
//! and watches.
//!
//! It must not know selectors, pages and watches.

use std::borrow::Cow;
use std::sync::OnceLock;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::encode::{encode_json, encode_value};
use super::texts::Texts;
use crate::ObjectRef;
use crate::kind::{ApiResource, KindRef};
use crate::representation::{MetaVersion, Representation, RowObject};

/// Order of `metadata`'s keys for built-in kinds (`ObjectMeta` in apimachinery `meta/v1/types.go`).
pub const OBJECT_META: [&str; 15] = [
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
];

/// Fields of `metadata` that only the server sets, once an object exists.
pub const SERVER_OWNED: [&str; 9] = [
    "selfLink",
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "resourceVersion",
    "generation",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
];

/// Keys whose values are maps in Go, which encodes them sorted; other values are structs, encoded in the order of their
/// fields.
const MAPS: [&str; 10] = [
    "annotations",
    "allocatable",
    "binaryData",
    "capacity",
    "data",
    "labels",
    "limits",
    "matchLabels",
    "nodeSelector",
    "requests",
];

/// One version of one object, as stored: its bytes and the fields that are read often. Other fields are decoded from the
/// bytes when needed, because a tree of values takes several times the memory.
#[derive(Debug)]
pub struct Stored {
    /// Kind of the object.
    pub kind: KindRef,
    /// `namespace/name`, or `name`.
    pub key: String,
    /// `metadata.uid`.
    pub uid: String,
    /// Revision of the write.
    pub revision: u64,
    /// Read from a namespace at every write into it.
    terminating: bool,
    /// Names and values, alternating.
    labels: Texts,
    /// Values of the field selectors of the kind, in the order of the kind.
    selectable: Texts,
    /// The encoded object, and the newline of a body that has only it.
    body: Bytes,
    metadata: OnceLock<Bytes>,
}

impl Stored {
    /// Returns the version that a write of `json` at `revision` stores. `json` has a `metadata.uid`, and a
    /// `metadata.resourceVersion` whose value is set here.
    pub fn new(kind: &KindRef, key: String, revision: u64, mut json: Value) -> Self {
        if let Some(Value::Object(metadata)) = field_mut(&mut json, "metadata") {
            set_text(metadata, "resourceVersion", &revision.to_string());
        }
        Self::as_is(kind, key, revision, json)
    }

    /// Returns a version of `json` with its `metadata.resourceVersion` unchanged: the result of a dry run.
    pub fn as_is(kind: &KindRef, key: String, revision: u64, json: Value) -> Self {
        let json = canonical(kind, json);
        let metadata = field(&json, "metadata");
        let metadata = |name| field(metadata, name);
        let labels = metadata("labels").as_object();
        let selectable = selectable(kind, &json);
        let mut body = encode_value(&json);
        body.push(b'\n');
        Self {
            kind: kind.clone(),
            key,
            uid: metadata("uid").as_str().unwrap_or_default().to_owned(),
            revision,
            terminating: !metadata("deletionTimestamp").is_null(),
            labels: labels.into_iter().flat_map(pairs).collect(),
            selectable,
            body: Bytes::copy_from_slice(&body),
            metadata: OnceLock::new(),
        }
    }

    /// Returns a version from bytes that are already in the order of the wire, with this uid, revision and labels, and not
    /// marked for deletion.
    pub fn recorded(
        kind: &KindRef,
        key: String,
        uid: String,
        revision: u64,
        labels: impl Iterator<Item = (&'static str, &'static str)>,
        mut full: Vec<u8>,
    ) -> Self {
        let selectable = if kind.selectable.is_empty() {
            Texts::default()
        } else {
            let json = serde_json::from_slice(&full).expect("who recorded it has read it");
            selectable(kind, &json)
        };
        full.reserve_exact(1);
        full.push(b'\n');
        Self {
            kind: kind.clone(),
            key,
            uid,
            revision,
            terminating: false,
            labels: labels.flat_map(|(name, value)| [name, value]).collect(),
            selectable,
            body: full.into(),
            metadata: OnceLock::new(),
        }
    }

    /// Returns the same content under another revision, as in a DELETED event.
    pub fn at_revision(&self, revision: u64) -> Self {
        Self::new(&self.kind, self.key.clone(), revision, self.json())
    }

    /// Returns the identity and version.
    pub fn object_ref(&self) -> ObjectRef {
        ObjectRef {
            key: self.key.clone(),
            uid: self.uid.clone(),
            resource_version: self.revision.to_string(),
        }
    }

    /// Returns the value of a label.
    pub fn label(&self, name: &str) -> Option<&str> {
        self.labels()
            .find(|(other, _)| *other == name)
            .map(|(_, value)| value)
    }

    /// Returns `metadata.labels`, in order.
    pub fn labels(&self) -> impl Iterator<Item = (&str, &str)> {
        let names = self.labels.iter().step_by(2);
        names.zip(self.labels.iter().skip(1).step_by(2))
    }

    /// Returns the value of a field selector of the kind; empty if the object has none.
    pub(super) fn selectable(&self, label: &str) -> &str {
        let place = self.kind.selectable.iter().position(|field| field.label == label);
        place
            .and_then(|place| self.selectable.get(place))
            .unwrap_or_default()
    }

    /// Returns `metadata.name`.
    pub fn name(&self) -> &str {
        self.key
            .split_once('/')
            .map_or(self.key.as_str(), |(_, name)| name)
    }

    /// Returns `metadata.namespace`.
    pub fn namespace(&self) -> Option<&str> {
        self.key.split_once('/').map(|(namespace, _)| namespace)
    }

    /// Decodes the object, in the order of the wire. Trees are not kept, so every call decodes again.
    pub fn json(&self) -> Value {
        decode(&self.body)
    }

    /// Returns whether it is marked for deletion (`metadata.deletionTimestamp`).
    pub fn is_terminating(&self) -> bool {
        self.terminating
    }

    /// Returns the length of the encoded object in bytes.
    pub fn length(&self) -> usize {
        self.body.len() - 1
    }

    /// Returns the approximate memory it takes, in bytes.
    pub fn weight(&self) -> usize {
        self.body.len() + 512
    }

    /// Returns the encoded object. Cheap: the bytes are shared.
    pub fn bytes(&self) -> Bytes {
        self.body.slice(..self.length())
    }

    /// Returns the encoded object with its newline, as in a response. Cheap: the bytes are shared.
    pub fn body(&self) -> Bytes {
        self.body.clone()
    }

    /// Returns the object with its type, as in a GET or a watch event, without newline. For a table: the `object` of its row.
    pub fn encoded(&self, form: Representation) -> Bytes {
        match carried(form) {
            Carried::Nothing => Bytes::from_static(b"null"),
            Carried::Full => self.bytes(),
            Carried::Metadata(version @ MetaVersion::V1) => self
                .metadata
                .get_or_init(|| encode_json(&self.metadata_only(version)).into())
                .clone(),
            // Requested only by clients from before 2019: not worth caching.
            Carried::Metadata(version @ MetaVersion::V1beta1) => {
                encode_json(&self.metadata_only(version)).into()
            }
        }
    }

    /// Writes the object as an item of a list, in which built-in kinds have no type.
    pub fn write_item(&self, form: Representation, out: &mut Vec<u8>) {
        let encoded = self.encoded(form);
        if form == Representation::Full && !self.kind.custom {
            out.push(b'{');
            out.extend_from_slice(&encoded[type_prefix(&self.kind).len()..]);
        } else {
            out.extend_from_slice(&encoded);
        }
    }

    /// Returns the item as JSON value; [`Stored::write_item`] writes the same.
    pub fn item_json(&self, form: Representation) -> Value {
        match carried(form) {
            Carried::Nothing => Value::Null,
            Carried::Full => {
                let mut json = self.json();
                if let (false, Some(object)) = (self.kind.custom, json.as_object_mut()) {
                    object.shift_remove("kind");
                    object.shift_remove("apiVersion");
                }
                json
            }
            Carried::Metadata(version) => self.metadata_only(version),
        }
    }

    /// Returns its `PartialObjectMetadata`, which has a type even where the object has none.
    fn metadata_only(&self, version: MetaVersion) -> Value {
        let mut object = Map::new();
        object.insert("kind".to_owned(), "PartialObjectMetadata".into());
        object.insert("apiVersion".to_owned(), version.api_version().into());
        let metadata = self
            .json()
            .get_mut("metadata")
            .map(Value::take)
            .unwrap_or_default();
        object.insert(
            "metadata".to_owned(),
            struct_order(metadata, |key| position_in(&OBJECT_META, key)),
        );
        sort_maps(&mut object);
        Value::Object(object)
    }
}

/// Decodes the output of [`encode_json`], without a limit of depth.
pub fn decode(bytes: &[u8]) -> Value {
    read_back(bytes).expect("what was encoded can be decoded")
}

/// Decodes JSON that this process encoded, without a limit of depth.
///
/// # Errors
///
/// It is not JSON.
pub fn read_back(bytes: &[u8]) -> serde_json::Result<Value> {
    // Strings of a text that is UTF-8 as a whole need no check.
    let text = std::str::from_utf8(bytes).map_err(serde::de::Error::custom)?;
    let mut reader = serde_json::Deserializer::from_str(text);
    reader.disable_recursion_limit();
    Value::deserialize(&mut reader)
}

/// Part of an object that a representation shows.
enum Carried {
    Nothing,
    Metadata(MetaVersion),
    Full,
}

fn carried(form: Representation) -> Carried {
    match form {
        Representation::Full => Carried::Full,
        Representation::Metadata(version) => Carried::Metadata(version),
        Representation::Table(table) => match table.object {
            RowObject::None => Carried::Nothing,
            RowObject::Metadata => Carried::Metadata(table.version),
            RowObject::Full => Carried::Full,
        },
    }
}

/// Returns the beginning of an encoded object of a built-in kind.
fn type_prefix(kind: &ApiResource) -> String {
    format!(
        "{{\"kind\":\"{}\",\"apiVersion\":\"{}\",",
        kind.kind,
        kind.api_version()
    )
}

/// Number of fields up to which an object is searched from its first field.
const FEW: usize = 16;

/// Returns a field of an object, like its index: `null` if there is none. An object of few fields is searched, which costs less than
/// the hash of the name.
pub fn field<'v>(object: &'v Value, name: &str) -> &'v Value {
    const NULL: &Value = &Value::Null;
    let Value::Object(fields) = object else {
        return NULL;
    };
    let found = match fields.len() {
        ..=FEW => fields
            .iter()
            .find_map(|(known, value)| (known == name).then_some(value)),
        _ => fields.get(name),
    };
    found.unwrap_or(NULL)
}

/// Returns a field of an object to change it; `None`: there is none. As [`field`].
pub fn field_mut<'v>(object: &'v mut Value, name: &str) -> Option<&'v mut Value> {
    field_of(object.as_object_mut()?, name)
}

/// Returns whether two values are equal. Fields in the same order, the common case, are compared without hashes of their names.
pub fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) if one.len() == other.len() => {
            match one.keys().eq(other.keys()) {
                true => one
                    .values()
                    .zip(other.values())
                    .all(|(one, other)| is_same(one, other)),
                false => one
                    .iter()
                    .all(|(name, value)| other.get(name).is_some_and(|other| is_same(value, other))),
            }
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            one.iter().zip(other).all(|(one, other)| is_same(one, other))
        }
        (one, other) => one == other,
    }
}

/// Removes a field of an object; the others keep their order.
pub fn remove_field(object: &mut Value, name: &str) -> Option<Value> {
    // Mostly there is none, and a search costs less than the hash of the name.
    field_mut(object, name)?;
    object.as_object_mut()?.shift_remove(name)
}

/// Returns a field to change it; `None`: there is none. As [`field`].
fn field_of<'v>(fields: &'v mut Map<String, Value>, name: &str) -> Option<&'v mut Value> {
    match fields.len() {
        ..=FEW => fields
            .iter_mut()
            .find_map(|(known, value)| (known == name).then_some(value)),
        _ => fields.get_mut(name),
    }
}

/// Returns a text of the metadata of an object; empty if it has none.
pub fn metadata_text<'v>(object: &'v Value, name: &str) -> &'v str {
    field(field(object, "metadata"), name)
        .as_str()
        .unwrap_or_default()
}

/// Returns names and values of labels, alternating.
fn pairs(labels: &Map<String, Value>) -> impl Iterator<Item = &str> {
    let pairs = labels.iter();
    pairs.flat_map(|(name, value)| [name.as_str(), value.as_str().unwrap_or_default()])
}

/// Returns the values of the field selectors of the kind, in the order of the kind.
fn selectable(kind: &ApiResource, json: &Value) -> Texts {
    let fields = kind.selectable.iter();
    fields
        .map(|field| match field.value(json) {
            Some(Value::String(text)) => Cow::Borrowed(text.as_str()),
            None => Cow::Borrowed(field.default),
            Some(other) => Cow::Owned(other.to_string()),
        })
        .collect()
}

/// Sorts the keys of an object as kube-apiserver does.
///
/// A custom resource is a map at every depth, hence sorted. A built-in kind is a struct: its own fields are sorted as in Go;
/// below them the order of the manifest is kept, because the structs are not known here, only which fields are maps.
pub fn canonical(kind: &ApiResource, json: Value) -> Value {
    let Value::Object(mut object) = json else {
        return json;
    };
    drop_empty(field_of(&mut object, "metadata"));
    set_text(&mut object, "kind", &kind.kind);
    set_text(&mut object, "apiVersion", &kind.api_version());
    if kind.custom {
        let mut json = Value::Object(object);
        json.sort_all_objects();
        return json;
    }
    object.retain(|key, value| !(is_map(key) && is_empty(value)));
    if let Some(metadata) = field_of(&mut object, "metadata") {
        *metadata = struct_order(metadata.take(), |key| position_in(&OBJECT_META, key));
    }
    let mut json = struct_order(Value::Object(object), |key| match key {
        "kind" => 0,
        "apiVersion" => 1,
        "metadata" => 2,
        field => 3 + position_in(kind.fields, field),
    });
    sort_maps_below(&mut json);
    json
}

/// Returns the fields of metadata, each once, in the order of the struct.
pub fn ordered_metadata(mut fields: Vec<(String, Value)>) -> Value {
    fields.sort_by_cached_key(|(field, _)| position_in(&OBJECT_META, field));
    Value::Object(fields.into_iter().collect())
}

/// Sets a field to a string.
fn set_text(object: &mut Map<String, Value>, field: &str, text: &str) {
    match field_of(object, field) {
        Some(Value::String(stored)) if stored == text => {}
        Some(other) => *other = text.into(),
        None => drop(object.insert(field.to_owned(), text.into())),
    }
}

/// Removes empty fields from the metadata.
pub fn without_empty_metadata(object: &mut Value) {
    drop_empty(field_mut(object, "metadata"));
}

/// Returns whether the metadata has empty fields, which are not decoded.
pub fn has_empty_metadata(object: &Value) -> bool {
    let metadata = object.get("metadata").and_then(Value::as_object);
    metadata.is_some_and(|metadata| metadata.values().any(is_empty))
}

fn drop_empty(fields: Option<&mut Value>) {
    if let Some(Value::Object(fields)) = fields {
        fields.retain(|_, value| !is_empty(value));
    }
}

/// Returns whether Go omits the value (`omitempty`).
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(object) => object.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::String(text) => text.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Sorts the keys of a map by `place`.
fn struct_order(json: Value, place: impl Fn(&str) -> usize) -> Value {
    let Value::Object(object) = json else {
        return json;
    };
    if object.keys().is_sorted_by_key(|key| place(key)) {
        return Value::Object(object);
    }
    let mut fields: Vec<(String, Value)> = object.into_iter().collect();
    fields.sort_by_cached_key(|(key, _)| place(key));
    Value::Object(fields.into_iter().collect())
}

/// Returns the index of a key in `order`; the length of `order` if it is not in it.
fn position_in(order: &[&str], key: &str) -> usize {
    order
        .iter()
        .position(|known| *known == key)
        .unwrap_or(order.len())
}

fn is_map(key: &str) -> bool {
    MAPS.contains(&key)
}

fn sort_maps(object: &mut Map<String, Value>) {
    for (key, value) in object.iter_mut() {
        match value {
            Value::Object(entries) if is_map(key) => {
                let flat = !entries
                    .values()
                    .any(|value| value.is_object() || value.is_array());
                if !(flat && entries.keys().is_sorted()) {
                    value.sort_all_objects();
                }
            }
            Value::Object(object) => sort_maps(object),
            Value::Array(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                sort_maps_below(value);
            }
        }
    }
}

fn sort_maps_below(value: &mut Value) {
    match value {
        Value::Object(object) => sort_maps(object),
        Value::Array(items) => items.iter_mut().for_each(sort_maps_below),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

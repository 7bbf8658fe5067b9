//! One version of one object: its place in the order of keys, its JSON in the order of the wire, and its bytes, which
//! are made once and shared by every list and watch that shows them.
//!
//! It must not know who reads it: selectors, pages and watches are elsewhere.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use serde::Serialize;
use serde_json::ser::Formatter;
use serde_json::{Map, Value};

use crate::api::Form;
use crate::record::ObjectRef;

use super::catalog::Kind;

/// Order of `metadata`'s keys for built-in kinds (`ObjectMeta` in apimachinery `meta/v1/types.go`).
pub(crate) const OBJECT_META: [&str; 15] = [
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

/// Keys whose values are maps in Go, which encodes them sorted; everything else is a struct in an order of its own.
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

/// One version of one object, as stored.
#[derive(Debug)]
pub struct Stored {
    /// Its kind.
    pub kind: &'static Kind,
    /// `namespace/name`, or `name`.
    pub key: String,
    /// `metadata.uid`.
    pub uid: String,
    /// The revision of the write that made it.
    pub revision: u64,
    /// The object, in the order it is written on the wire.
    pub json: Arc<Value>,
    labels: BTreeMap<String, String>,
    full: OnceLock<Bytes>,
    metadata: OnceLock<Bytes>,
}

impl Stored {
    /// The version that a write at `revision` makes of `json`, which has a `metadata.uid` and a
    /// `metadata.resourceVersion`; the latter's value is set here.
    pub(super) fn new(kind: &'static Kind, key: String, revision: u64, mut json: Value) -> Self {
        if let Some(metadata) = json.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.insert("resourceVersion".to_owned(), Value::String(revision.to_string()));
        }
        Self::as_is(kind, key, revision, json)
    }

    /// `json` with whatever `metadata.resourceVersion` it has: what a write would have stored, had it not been a dry
    /// run.
    pub(super) fn as_is(kind: &'static Kind, key: String, revision: u64, json: Value) -> Self {
        let json = canonical(kind, json);
        let text = |pointer: &str| {
            json.pointer(pointer)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let uid = text("/metadata/uid");
        let labels = json
            .pointer("/metadata/labels")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().to_owned()))
            .collect();
        Self {
            kind,
            key,
            uid,
            revision,
            json: Arc::new(json),
            labels,
            full: OnceLock::new(),
            metadata: OnceLock::new(),
        }
    }

    /// The same content under another revision: what a DELETED event shows.
    pub(super) fn at_revision(&self, revision: u64) -> Self {
        Self::new(self.kind, self.key.clone(), revision, Value::clone(&self.json))
    }

    /// Its identity and version.
    pub fn object_ref(&self) -> ObjectRef {
        ObjectRef {
            key: self.key.clone(),
            uid: self.uid.clone(),
            resource_version: self.revision.to_string(),
        }
    }

    /// `metadata.labels`.
    pub fn labels(&self) -> &BTreeMap<String, String> {
        &self.labels
    }

    /// `metadata.name`.
    pub fn name(&self) -> &str {
        self.key
            .split_once('/')
            .map_or(self.key.as_str(), |(_, name)| name)
    }

    /// `metadata.namespace`.
    pub fn namespace(&self) -> Option<&str> {
        self.key.split_once('/').map(|(namespace, _)| namespace)
    }

    /// The object with its type, as a GET or a watch event shows it, without newline.
    pub fn encoded(&self, form: Form) -> &Bytes {
        match form {
            Form::Full => self.full.get_or_init(|| encode_json(&self.json).into()),
            Form::Metadata => self
                .metadata
                .get_or_init(|| encode_json(&self.metadata_only()).into()),
        }
    }

    /// The object as an item of a list: built-in kinds leave their type out there.
    pub(super) fn write_item(&self, form: Form, out: &mut Vec<u8>) {
        let encoded = self.encoded(form);
        if form == Form::Full && !self.kind.custom {
            out.push(b'{');
            out.extend_from_slice(&encoded[type_prefix(self.kind).len()..]);
        } else {
            out.extend_from_slice(encoded);
        }
    }

    /// The item as JSON value; [`Stored::write_item`] writes the same.
    pub(super) fn item_json(&self, form: Form) -> Value {
        match form {
            Form::Full => {
                let mut json = Value::clone(&self.json);
                if let (false, Some(object)) = (self.kind.custom, json.as_object_mut()) {
                    object.shift_remove("kind");
                    object.shift_remove("apiVersion");
                }
                json
            }
            Form::Metadata => self.metadata_only(),
        }
    }

    /// `PartialObjectMetadata` of it: a typed object even where the object itself is not.
    fn metadata_only(&self) -> Value {
        let mut object = Map::new();
        object.insert("kind".to_owned(), "PartialObjectMetadata".into());
        object.insert("apiVersion".to_owned(), "meta.k8s.io/v1".into());
        let metadata = self.json.get("metadata").cloned().unwrap_or_default();
        object.insert("metadata".to_owned(), struct_order(metadata, &OBJECT_META));
        sort_maps(&mut object);
        Value::Object(object)
    }
}

/// What the encoded form of a built-in kind starts with.
fn type_prefix(kind: &Kind) -> String {
    format!(
        "{{\"kind\":\"{}\",\"apiVersion\":\"{}\",",
        kind.kind,
        kind.api_version()
    )
}

/// Puts an object into the order a real server writes it in.
///
/// A custom resource is a map at every depth, hence sorted. A built-in kind is a struct; below its own fields the order
/// is the manifest's, because the structs of pod specs and the like are not known here, only which of their fields are
/// maps.
pub(super) fn canonical(kind: &Kind, json: Value) -> Value {
    let Value::Object(mut object) = json else {
        return json;
    };
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        metadata.retain(|_, value| !is_empty(value));
    }
    object.insert("kind".to_owned(), kind.kind.into());
    object.insert("apiVersion".to_owned(), kind.api_version().into());
    if kind.custom {
        let mut json = Value::Object(object);
        json.sort_all_objects();
        return json;
    }
    object.retain(|key, value| !(MAPS.contains(&key.as_str()) && is_empty(value)));
    let mut order = vec!["kind", "apiVersion", "metadata"];
    order.extend_from_slice(kind.fields);
    if let Some(metadata) = object.get_mut("metadata") {
        *metadata = struct_order(metadata.take(), &OBJECT_META);
    }
    let mut json = struct_order(Value::Object(object), &order);
    if let Some(object) = json.as_object_mut() {
        sort_maps(object);
    }
    json
}

/// Go leaves these out (`omitempty`).
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(object) => object.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::String(text) => text.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// The keys of `order` first, in that order; then the others as they were.
fn struct_order(json: Value, order: &[&str]) -> Value {
    let Value::Object(object) = json else {
        return json;
    };
    let place = |key: &String| order.iter().position(|known| known == key).unwrap_or(order.len());
    if object.keys().is_sorted_by_key(place) {
        return Value::Object(object);
    }
    let mut fields: Vec<(String, Value)> = object.into_iter().collect();
    fields.sort_by_key(|(key, _)| place(key));
    Value::Object(fields.into_iter().collect())
}

fn sort_maps(object: &mut Map<String, Value>) {
    for (key, value) in object.iter_mut() {
        if MAPS.contains(&key.as_str()) {
            value.sort_all_objects();
        } else {
            sort_maps_below(value);
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

/// JSON in the server's own spelling (Go `encoding/json`): compact, `<`, `>`, `&`, U+2028 and U+2029 escaped, no
/// newline at the end.
pub fn encode_json<T: Serialize + ?Sized>(value: &T) -> Vec<u8> {
    let mut out = Vec::new();
    let mut serializer = serde_json::Serializer::with_formatter(&mut out, GoFormatter);
    value
        .serialize(&mut serializer)
        .expect("a JSON value with string keys always serializes into memory");
    out
}

/// The same, indented by two spaces: what `pretty` asks for.
pub fn encode_json_indented<T: Serialize + ?Sized>(value: &T) -> Vec<u8> {
    let text = serde_json::to_string_pretty(value)
        .expect("a JSON value with string keys always serializes into memory");
    // Outside of strings none of these occur.
    text.replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
        .into_bytes()
}

struct GoFormatter;

impl Formatter for GoFormatter {
    fn write_string_fragment<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        // Nearly no text has any of them, and without an early end many bytes are looked at at once.
        let may_be_special = |byte| matches!(byte, b'<' | b'>' | b'&' | 0xE2);
        if !fragment
            .bytes()
            .fold(false, |any, byte| any | may_be_special(byte))
        {
            return writer.write_all(fragment.as_bytes());
        }
        let mut rest = fragment;
        while let Some(at) = rest.find(['<', '>', '&', '\u{2028}', '\u{2029}']) {
            let (plain, special) = rest.split_at(at);
            writer.write_all(plain.as_bytes())?;
            let character = special
                .chars()
                .next()
                .expect("find gave the position of a character");
            write!(writer, "\\u{:04x}", u32::from(character))?;
            rest = &special[character.len_utf8()..];
        }
        writer.write_all(rest.as_bytes())
    }
}

//! Wrappers for the forms a value may take in a file: with its position, one or many, a word in place of a map.
//!
//! Each wrapper requests its form from the [`Reader`](super) by a reserved name, and declares the same choice in the
//! JSON schema.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde::ser::{Error as SerError, Serializer};
use serde::{Deserialize, Serialize};

use crate::span::Span;

pub(super) const AT: &str = "\0at";
pub(super) const WORD: &str = "\0word";
pub(super) const FIRST: &str = "\0first";
pub(super) const BOTH: &str = "\0both";
/// What a key without a value is serialized to. An absent key is a null.
pub(crate) const NOTHING: &str = "\0nothing";
pub(super) const MANY: &str = "\0many";

/// A value with its position, which does not count in a comparison.
#[derive(Debug, Clone, Default)]
pub struct At<T> {
    /// Position.
    pub(crate) span: Span,
    /// Value.
    pub value: T,
}

/// One item, or a list of them.
#[derive(Debug, Clone, PartialEq)]
pub struct OneOrMany<T>(pub Vec<T>);

/// A map, or a word that is its only key.
#[derive(Debug, Clone, PartialEq)]
pub struct WordOr<T>(pub T);

/// Keys that may be written as a word without a value.
pub(crate) trait Words {
    /// The keys.
    const WORDS: &'static [&'static str];
}

/// A map, or a scalar that is the value of its first key.
#[derive(Debug, Clone, PartialEq)]
pub struct First<T>(pub T);

/// A map with the keys of both structs.
#[derive(Debug, Clone, PartialEq)]
pub struct Both<A, B>(pub A, pub B);

/// A value that may be omitted after its key.
#[derive(Debug, Clone, PartialEq)]
pub struct OrNothing<T>(pub Option<T>);

/// Entries of a map, in the order of the file.
#[derive(Debug, Clone, PartialEq)]
pub struct Entries<T>(pub Vec<(At<String>, T)>);

/// Text as written: `007`, `true` and `1.0` stay unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(transparent)]
pub struct Text(pub String);

/// Any value, as JSON.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(transparent)]
pub struct Json(pub serde_json::Value);

impl<T: PartialEq> PartialEq for At<T> {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl<T> From<T> for At<T> {
    fn from(value: T) -> Self {
        let span = Span::default();
        Self { span, value }
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

/// The value of a key that has none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "()")]
pub struct Nothing;

impl From<()> for Nothing {
    fn from((): ()) -> Self {
        Self
    }
}

impl From<()> for At<Nothing> {
    fn from((): ()) -> Self {
        Nothing.into()
    }
}

impl Serialize for Nothing {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(NOTHING)
    }
}

/// Reads a key that is present even if its value is empty.
pub(crate) fn given<'de, D, T>(deserializer: D) -> Result<Option<At<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    At::deserialize(deserializer).map(Some)
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for At<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AtVisitor<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for AtVisitor<T> {
            type Value = At<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value with its place")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<At<T>, A::Error> {
                let lost = || A::Error::custom("a place is missing");
                let start = parts.next_element()?.ok_or_else(lost)?;
                let end = parts.next_element()?.ok_or_else(lost)?;
                let value = parts.next_element()?.ok_or_else(lost)?;
                Ok(At {
                    span: Span { start, end },
                    value,
                })
            }
        }
        deserializer.deserialize_newtype_struct(AT, AtVisitor(PhantomData))
    }
}

/// Passes the marked reader on to `T`.
struct Through<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Through<T> {
    type Value = T;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }
    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
        T::deserialize(deserializer)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for OneOrMany<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer
            .deserialize_newtype_struct(MANY, Through(PhantomData))
            .map(OneOrMany)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for WordOr<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer
            .deserialize_newtype_struct(WORD, Through(PhantomData))
            .map(WordOr)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for First<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer
            .deserialize_newtype_struct(FIRST, Through(PhantomData))
            .map(First)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for OrNothing<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Option::deserialize(deserializer).map(OrNothing)
    }
}

impl<'de, A: Deserialize<'de>, B: Deserialize<'de>> Deserialize<'de> for Both<A, B> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct BothVisitor<A, B>(PhantomData<(A, B)>);
        impl<'de, A: Deserialize<'de>, B: Deserialize<'de>> Visitor<'de> for BothVisitor<A, B> {
            type Value = Both<A, B>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map")
            }
            fn visit_seq<S: SeqAccess<'de>>(self, mut halves: S) -> Result<Both<A, B>, S::Error> {
                let lost = || S::Error::custom("half of a map is missing");
                let a = halves.next_element()?.ok_or_else(lost)?;
                let b = halves.next_element()?.ok_or_else(lost)?;
                Ok(Both(a, b))
            }
        }
        deserializer.deserialize_newtype_struct(BOTH, BothVisitor(PhantomData))
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Entries<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct EntriesVisitor<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for EntriesVisitor<T> {
            type Value = Entries<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries<T>, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }
        deserializer.deserialize_map(EntriesVisitor(PhantomData))
    }
}

impl<T: Serialize> Serialize for At<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value.serialize(serializer)
    }
}

impl<T: Serialize> Serialize for OneOrMany<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.as_slice() {
            [one] => one.serialize(serializer),
            many => many.serialize(serializer),
        }
    }
}

impl<T: Serialize> Serialize for WordOr<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let map = json_of(&self.0)?;
        let mut given = map.iter().filter(|(_, value)| !value.is_null());
        match (given.next(), given.next()) {
            (Some((key, value)), None) if value == NOTHING => serializer.serialize_str(key),
            _ => map.serialize(serializer),
        }
    }
}

impl<T: Serialize> Serialize for First<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let map = json_of(&self.0)?;
        let mut values = map.values();
        let first = values
            .next()
            .filter(|first| !first.is_object() && !first.is_array());
        match first.filter(|_| values.all(serde_json::Value::is_null)) {
            Some(first) => first.serialize(serializer),
            None => map.serialize(serializer),
        }
    }
}

/// The kind of an item comes before its options.
impl<A: Serialize, B: Serialize> Serialize for Both<A, B> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (mut map, rest) = (json_of(&self.1)?, json_of(&self.0)?);
        map.extend(rest.into_iter().filter(|(_, value)| !value.is_null()));
        map.serialize(serializer)
    }
}

/// Returns the keys of a struct, absent ones too.
fn json_of<E: SerError>(value: &impl Serialize) -> Result<serde_json::Map<String, serde_json::Value>, E> {
    let map = serde_json::to_value(value).map_err(E::custom)?;
    serde_json::from_value(map).map_err(E::custom)
}

impl<T: Serialize> Serialize for OrNothing<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Some(some) => some.serialize(serializer),
            None => serializer.serialize_str(NOTHING),
        }
    }
}

/// A null is a value here, and no absent key.
impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        fn marked(value: &serde_json::Value) -> serde_json::Value {
            match value {
                serde_json::Value::Null => NOTHING.into(),
                serde_json::Value::Array(items) => items.iter().map(marked).collect(),
                serde_json::Value::Object(map) => map
                    .iter()
                    .map(|(key, value)| (key.clone(), marked(value)))
                    .collect(),
                serde_json::Value::Bool(_) | serde_json::Value::Number(_) | serde_json::Value::String(_) => {
                    value.clone()
                }
            }
        }
        marked(&self.0).serialize(serializer)
    }
}

impl<T: Serialize> Serialize for Entries<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (&key.value, value)))
    }
}

macro_rules! schema_of_inner {
    ($wrapper:ident) => {
        impl<T: JsonSchema> JsonSchema for $wrapper<T> {
            fn inline_schema() -> bool {
                T::inline_schema()
            }
            fn schema_name() -> Cow<'static, str> {
                T::schema_name()
            }
            fn schema_id() -> Cow<'static, str> {
                T::schema_id()
            }
            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                T::json_schema(generator)
            }
        }
    };
}

schema_of_inner!(At);

macro_rules! inline_schema {
    ([$($bounds:tt)*] $type:ty, |$generator:ident| $body:expr) => {
        impl<$($bounds)*> JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }
            fn schema_name() -> Cow<'static, str> {
                stringify!($type).into()
            }
            fn json_schema($generator: &mut SchemaGenerator) -> Schema {
                $body
            }
        }
    };
}

inline_schema!([T: JsonSchema] OneOrMany<T>, |generator| {
    let one = generator.subschema_for::<T>();
    json_schema!({ "anyOf": [one.clone(), { "type": "array", "items": one }] })
});
inline_schema!([T: JsonSchema + Words] WordOr<T>, |generator| {
    let map = generator.subschema_for::<T>();
    json_schema!({ "anyOf": [{ "enum": T::WORDS }, map] })
});
inline_schema!([T: JsonSchema] First<T>, |generator| {
    let map = generator.subschema_for::<T>();
    json_schema!({ "anyOf": [{ "type": ["string", "number", "boolean"] }, map] })
});
// `oneOf`, so that `NothingIsNotAValue`, which removes `null` from optional keys, leaves it unchanged.
inline_schema!([T: JsonSchema] OrNothing<T>, |generator| {
    let some = generator.subschema_for::<T>();
    json_schema!({ "oneOf": [some, { "type": "null" }] })
});
inline_schema!([T: JsonSchema] Entries<T>, |generator| {
    let value = generator.subschema_for::<T>();
    json_schema!({ "type": "object", "additionalProperties": value })
});
inline_schema!([] Nothing, |generator| <()>::json_schema(generator));
inline_schema!([] Text, |_generator| json_schema!({ "type": ["string", "number", "boolean"] }));
inline_schema!([] Json, |_generator| json_schema!({}));

impl<A, B: Words> Words for Both<A, B> {
    const WORDS: &'static [&'static str] = B::WORDS;
}

impl<A: JsonSchema, B: JsonSchema> JsonSchema for Both<A, B> {
    fn schema_name() -> Cow<'static, str> {
        A::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut both = A::json_schema(generator);
        let other = B::json_schema(generator);
        if let Some(serde_json::Value::Object(more)) = other.get("properties")
            && let Some(serde_json::Value::Object(properties)) = both.get_mut("properties")
        {
            properties.extend(more.clone());
        }
        both
    }
}

//! serde deserializer from a [`Node`] to the types of [`raw`](super::raw).
//!
//! Recognises the reserved names by which the [`forms`] request features that serde lacks: a position, a short form,
//! two halves of a map. Only trees that passed [`check`](super::check) are read, so an error means that schema and
//! types disagree.

use std::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, forward_to_deserialize_any};

use self::forms::{AT, BOTH, FIRST, MANY, WORD};
pub use self::forms::{At, Both, Entries, First, Json, Nothing, OneOrMany, OrNothing, Text, WordOr};
pub(crate) use self::forms::{NOTHING, Words, given};
use super::span::Span;
use super::tree::{Kind, Node};

mod forms;

/// Enum name: a short form (first variant), or a full manifest (second) if the map has `kind` or `apiVersion`.
const SHORT_UNLESS_TYPED: &str = "\0short-unless-typed";
/// Enum name: a short form (first variant) if the map is one, or any JSON (second).
const SHORT_OR_ANYTHING: &str = "\0short-or-anything";

/// Deserializes `node` as a `T`.
pub(crate) fn from_node<'n, T: Deserialize<'n>>(node: &'n Node) -> Result<T, ReadError> {
    T::deserialize(Reader::new(node))
}

/// The schema and the types disagree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReadError {
    /// The innermost node affected.
    pub(crate) span: Option<Span>,
    /// serde's message.
    pub(crate) message: String,
}

impl ReadError {
    fn at(mut self, span: Span) -> Self {
        self.span.get_or_insert(span);
        self
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ReadError {}

impl serde::de::Error for ReadError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self {
            span: None,
            message: message.to_string(),
        }
    }
}

/// How a scalar is read if a map is expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ScalarAs {
    /// As a scalar.
    Itself,
    /// As the only key of the map.
    Word,
    /// As the value of the map's first key.
    First,
    /// As nothing: it was the only key, which has no value.
    Nothing,
}

#[derive(Debug, Clone, Copy)]
struct Reader<'n> {
    node: &'n Node,
    scalar: ScalarAs,
    /// Ignore keys that the struct does not have: they belong to the other half of [`Both`].
    half: bool,
    /// Accept one item in place of a list.
    many: bool,
}

impl<'n> Reader<'n> {
    fn new(node: &'n Node) -> Self {
        Self {
            node,
            scalar: ScalarAs::Itself,
            half: false,
            many: false,
        }
    }

    fn is_nothing(&self) -> bool {
        self.scalar == ScalarAs::Nothing || self.node.is_null()
    }

    fn wrong(&self, wanted: &str) -> ReadError {
        ReadError {
            span: Some(self.node.span),
            message: format!("{wanted} is wanted here"),
        }
    }

    fn whole_number(&self) -> Result<i128, ReadError> {
        self.node
            .plain()
            .and_then(|text| text.parse().ok())
            .ok_or_else(|| self.wrong("a whole number"))
    }

    fn read_map<V: Visitor<'n>>(
        self,
        fields: Option<&'static [&'static str]>,
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        let wanted = |key: &Node| match fields {
            Some(fields) if self.half => key.text().is_some_and(|text| fields.contains(&text)),
            Some(_) | None => true,
        };
        let entries: Vec<(MapKey<'n>, Reader<'n>)> = match (&self.node.kind, self.scalar) {
            (Kind::Mapping(entries), _) => entries
                .iter()
                .filter(|(key, _)| wanted(key))
                .map(|(key, value)| (MapKey::Node(key), Reader::new(value)))
                .collect(),
            (Kind::Scalar { .. }, ScalarAs::Word) if wanted(self.node) => {
                vec![(
                    MapKey::Node(self.node),
                    Reader {
                        scalar: ScalarAs::Nothing,
                        ..Reader::new(self.node)
                    },
                )]
            }
            (Kind::Scalar { .. }, ScalarAs::Word) => Vec::new(),
            (Kind::Scalar { .. }, ScalarAs::First) => {
                let first = fields
                    .and_then(|fields| fields.first())
                    .ok_or_else(|| self.wrong("a map"))?;
                vec![(MapKey::Name(first), Reader::new(self.node))]
            }
            (Kind::Scalar { .. }, ScalarAs::Itself | ScalarAs::Nothing) | (Kind::Sequence(_), _) => {
                return Err(self.wrong("a map"));
            }
        };
        visitor.visit_map(Walk {
            entries: entries.into_iter(),
            value: None,
        })
    }
}

macro_rules! whole_numbers {
    ($($name:ident => $visit:ident as $type:ty),+ $(,)?) => {
        $(fn $name<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, ReadError> {
            let number = self.whole_number()?;
            let number = <$type>::try_from(number).map_err(|_| self.wrong("a smaller number"))?;
            visitor.$visit(number)
        })+
    };
}

impl<'n> Deserializer<'n> for Reader<'n> {
    type Error = ReadError;

    fn deserialize_any<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.node
            .to_json()
            .into_deserializer_value(visitor)
            .map_err(|e| e.at(self.node.span))
    }

    fn deserialize_bool<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.node.plain() {
            Some("true") => visitor.visit_bool(true),
            Some("false") => visitor.visit_bool(false),
            Some(_) | None => Err(self.wrong("true or false")),
        }
    }

    whole_numbers! {
        deserialize_i8 => visit_i8 as i8, deserialize_i16 => visit_i16 as i16, deserialize_i32 => visit_i32 as i32,
        deserialize_i64 => visit_i64 as i64, deserialize_u8 => visit_u8 as u8, deserialize_u16 => visit_u16 as u16,
        deserialize_u32 => visit_u32 as u32, deserialize_u64 => visit_u64 as u64,
    }

    fn deserialize_str<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_str(self.node.text().ok_or_else(|| self.wrong("text"))?)
    }

    fn deserialize_string<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.deserialize_str(visitor)
    }

    fn deserialize_identifier<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, ReadError> {
        if self.is_nothing() {
            visitor.visit_none()
        } else {
            visitor.visit_some(self)
        }
    }

    fn deserialize_unit<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, ReadError> {
        if self.is_nothing() {
            visitor.visit_unit()
        } else {
            Err(self.wrong("nothing"))
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'n>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        let span = self.node.span;
        let read = match name {
            AT => visitor.visit_seq(Parts::At {
                reader: self,
                next: 0,
            }),
            BOTH => visitor.visit_seq(Parts::Both {
                reader: Reader { half: true, ..self },
                left: 2,
            }),
            WORD => visitor.visit_newtype_struct(Reader {
                scalar: ScalarAs::Word,
                ..self
            }),
            FIRST => visitor.visit_newtype_struct(Reader {
                scalar: ScalarAs::First,
                ..self
            }),
            MANY => visitor.visit_newtype_struct(Reader { many: true, ..self }),
            _ => visitor.visit_newtype_struct(self),
        };
        read.map_err(|e| e.at(span))
    }

    fn deserialize_seq<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, ReadError> {
        let items = match &self.node.kind {
            Kind::Sequence(items) => items.iter().collect(),
            Kind::Scalar { .. } | Kind::Mapping(_) if self.many => vec![self.node],
            Kind::Scalar { .. } | Kind::Mapping(_) => return Err(self.wrong("a list")),
        };
        visitor.visit_seq(Parts::Items {
            items: items.into_iter(),
        })
    }

    fn deserialize_map<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.read_map(None, visitor)
    }

    fn deserialize_struct<V: Visitor<'n>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        let span = self.node.span;
        self.read_map(Some(fields), visitor).map_err(|e| e.at(span))
    }

    fn deserialize_enum<V: Visitor<'n>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        let has = |words: &[&str]| words.iter().any(|word| self.node.get(word).is_some());
        let short = match name {
            SHORT_UNLESS_TYPED => Some(!has(&["apiVersion", "kind"])),
            SHORT_OR_ANYTHING => Some(has(super::kinds::SHORT_WORDS)),
            _ => None,
        };
        if let Some(short) = short {
            let variant = variants.get(usize::from(!short)).copied().unwrap_or_default();
            return visitor.visit_enum(Chosen {
                variant,
                reader: self,
            });
        }
        let word = self.node.text().ok_or_else(|| self.wrong("a word"))?;
        let word: StrDeserializer<'_, ReadError> = word.into_deserializer();
        visitor.visit_enum(word).map_err(|e| e.at(self.node.span))
    }

    fn deserialize_ignored_any<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        <W: Visitor<'n>>
        i128 u128 f32 f64 char bytes byte_buf unit_struct tuple tuple_struct
    }
}

/// Deserializes a JSON value with this module's error type.
trait IntoDeserializerValue {
    fn into_deserializer_value<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError>;
}

impl IntoDeserializerValue for serde_json::Value {
    fn into_deserializer_value<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.deserialize_any(visitor).map_err(ReadError::custom)
    }
}

/// The variant chosen for a short form or manifest.
struct Chosen<'n> {
    variant: &'static str,
    reader: Reader<'n>,
}

impl<'n> serde::de::EnumAccess<'n> for Chosen<'n> {
    type Error = ReadError;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'n>>(self, seed: S) -> Result<(S::Value, Self), ReadError> {
        let word: StrDeserializer<'_, ReadError> = self.variant.into_deserializer();
        Ok((seed.deserialize(word)?, self))
    }
}

impl<'n> serde::de::VariantAccess<'n> for Chosen<'n> {
    type Error = ReadError;

    fn unit_variant(self) -> Result<(), ReadError> {
        Ok(())
    }

    fn newtype_variant_seed<S: DeserializeSeed<'n>>(self, seed: S) -> Result<S::Value, ReadError> {
        seed.deserialize(self.reader)
    }

    fn tuple_variant<V: Visitor<'n>>(self, _length: usize, _visitor: V) -> Result<V::Value, ReadError> {
        Err(self.reader.wrong("a map"))
    }

    fn struct_variant<V: Visitor<'n>>(
        self,
        _: &'static [&'static str],
        _visitor: V,
    ) -> Result<V::Value, ReadError> {
        Err(self.reader.wrong("a map"))
    }
}

/// A sequence presented to serde.
enum Parts<'n> {
    /// The items of a list.
    Items { items: std::vec::IntoIter<&'n Node> },
    /// Start, end and value of an [`At`](forms::At).
    At { reader: Reader<'n>, next: u8 },
    /// The same map, twice.
    Both { reader: Reader<'n>, left: u8 },
}

impl<'n> SeqAccess<'n> for Parts<'n> {
    type Error = ReadError;

    fn next_element_seed<S: DeserializeSeed<'n>>(&mut self, seed: S) -> Result<Option<S::Value>, ReadError> {
        match self {
            Self::Items { items } => items
                .next()
                .map(|node| seed.deserialize(Reader::new(node)))
                .transpose(),
            Self::Both { left: 0, .. } => Ok(None),
            Self::Both { reader, left } => {
                *left -= 1;
                seed.deserialize(*reader).map(Some)
            }
            Self::At { reader, next } => {
                *next += 1;
                match *next {
                    1 => seed
                        .deserialize(reader.node.span.start.into_deserializer())
                        .map(Some),
                    2 => seed
                        .deserialize(reader.node.span.end.into_deserializer())
                        .map(Some),
                    3 => seed.deserialize(*reader).map(Some),
                    _ => Ok(None),
                }
            }
        }
    }
}

enum MapKey<'n> {
    Node(&'n Node),
    Name(&'static str),
}

/// A map presented to serde.
struct Walk<'n> {
    entries: std::vec::IntoIter<(MapKey<'n>, Reader<'n>)>,
    value: Option<Reader<'n>>,
}

impl<'n> MapAccess<'n> for Walk<'n> {
    type Error = ReadError;

    fn next_key_seed<S: DeserializeSeed<'n>>(&mut self, seed: S) -> Result<Option<S::Value>, ReadError> {
        let Some((key, value)) = self.entries.next() else {
            return Ok(None);
        };
        self.value = Some(value);
        let key = match key {
            MapKey::Node(node) => seed.deserialize(Reader::new(node)),
            MapKey::Name(name) => {
                let name: StrDeserializer<'_, ReadError> = name.into_deserializer();
                seed.deserialize(name)
            }
        };
        key.map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'n>>(&mut self, seed: S) -> Result<S::Value, ReadError> {
        let value = self
            .value
            .take()
            .ok_or_else(|| ReadError::custom("a value without a key"))?;
        seed.deserialize(value)
    }
}

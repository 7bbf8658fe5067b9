//! Drops fields during deserialization, so that they are never allocated: `managedFields` is more than a third of the
//! cost of a Pod. Works for any type, as a wrapper around the deserializer.

use std::borrow::Cow;
use std::fmt;

use serde::de::value::CowStrDeserializer;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::prune::Node;

/// A deserializer that drops the fields of its node.
pub(super) struct Pruned<'n, D> {
    inner: D,
    node: &'n Node,
}

impl<'n, D> Pruned<'n, D> {
    pub(super) fn new(inner: D, node: &'n Node) -> Self {
        Self { inner, node }
    }
}

/// Forwards every `deserialize_*` method with a pruning visitor.
macro_rules! pass_on {
    ($($method:ident($($argument:ident: $type:ty),*);)*) => {$(
        fn $method<V: Visitor<'de>>(self, $($argument: $type,)* visitor: V) -> Result<V::Value, D::Error> {
            self.inner.$method($($argument,)* PrunedVisitor { inner: visitor, node: self.node })
        }
    )*};
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Pruned<'_, D> {
    type Error = D::Error;

    pass_on! {
        deserialize_any();
        deserialize_bool();
        deserialize_i8();
        deserialize_i16();
        deserialize_i32();
        deserialize_i64();
        deserialize_u8();
        deserialize_u16();
        deserialize_u32();
        deserialize_u64();
        deserialize_f32();
        deserialize_f64();
        deserialize_char();
        deserialize_str();
        deserialize_string();
        deserialize_bytes();
        deserialize_byte_buf();
        deserialize_option();
        deserialize_unit();
        deserialize_unit_struct(name: &'static str);
        deserialize_newtype_struct(name: &'static str);
        deserialize_seq();
        deserialize_tuple(len: usize);
        deserialize_tuple_struct(name: &'static str, len: usize);
        deserialize_map();
        deserialize_struct(name: &'static str, fields: &'static [&'static str]);
        deserialize_enum(name: &'static str, variants: &'static [&'static str]);
        deserialize_identifier();
        deserialize_ignored_any();
    }
}

struct PrunedVisitor<'n, V> {
    inner: V,
    node: &'n Node,
}

/// Scalars have no children.
macro_rules! hand_on {
    ($($method:ident($type:ty);)*) => {$(
        fn $method<E: serde::de::Error>(self, value: $type) -> Result<V::Value, E> {
            self.inner.$method(value)
        }
    )*};
}

impl<'de, V: Visitor<'de>> Visitor<'de> for PrunedVisitor<'_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.expecting(f)
    }

    hand_on! {
        visit_bool(bool);
        visit_i64(i64);
        visit_i128(i128);
        visit_u64(u64);
        visit_u128(u128);
        visit_f64(f64);
        visit_str(&str);
        visit_borrowed_str(&'de str);
        visit_string(String);
        visit_bytes(&[u8]);
        visit_borrowed_bytes(&'de [u8]);
        visit_byte_buf(Vec<u8>);
    }

    fn visit_none<E: serde::de::Error>(self) -> Result<V::Value, E> {
        self.inner.visit_none()
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<V::Value, E> {
        self.inner.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, inner: D) -> Result<V::Value, D::Error> {
        self.inner.visit_some(Pruned::new(inner, self.node))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<V::Value, D::Error> {
        self.inner.visit_newtype_struct(Pruned::new(inner, self.node))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, inner: A) -> Result<V::Value, A::Error> {
        match self.node.items() {
            Some(node) => self.inner.visit_seq(PrunedSeq { inner, node }),
            None => self.inner.visit_seq(inner),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, inner: A) -> Result<V::Value, A::Error> {
        self.inner.visit_map(PrunedMap {
            inner,
            node: self.node,
            below: None,
        })
    }

    fn visit_enum<A: serde::de::EnumAccess<'de>>(self, inner: A) -> Result<V::Value, A::Error> {
        self.inner.visit_enum(inner)
    }
}

struct PrunedMap<'n, A> {
    inner: A,
    node: &'n Node,
    /// What to prune below the field whose key was read last.
    below: Option<&'n Node>,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for PrunedMap<'_, A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        loop {
            let Some(Name(name)) = self.inner.next_key()? else {
                return Ok(None);
            };
            if !self.node.keeps(&name) {
                self.inner.next_value::<IgnoredAny>()?;
                continue;
            }
            self.below = self.node.below(&name);
            return match name {
                Cow::Borrowed(name) => seed
                    .deserialize(serde::de::value::BorrowedStrDeserializer::new(name))
                    .map(Some),
                name @ Cow::Owned(_) => seed.deserialize(CowStrDeserializer::new(name)).map(Some),
            };
        }
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        match self.below.take() {
            Some(node) => self.inner.next_value_seed(PrunedSeed { inner: seed, node }),
            None => self.inner.next_value_seed(seed),
        }
    }
}

struct PrunedSeq<'n, A> {
    inner: A,
    node: &'n Node,
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for PrunedSeq<'_, A> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        let node = self.node;
        self.inner.next_element_seed(PrunedSeed { inner: seed, node })
    }

    fn size_hint(&self) -> Option<usize> {
        self.inner.size_hint()
    }
}

struct PrunedSeed<'n, S> {
    inner: S,
    node: &'n Node,
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for PrunedSeed<'_, S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, inner: D) -> Result<S::Value, D::Error> {
        self.inner.deserialize(Pruned::new(inner, self.node))
    }
}

/// A key that borrows from the JSON unless it contains escapes.
#[derive(serde::Deserialize)]
pub(super) struct Name<'a>(#[serde(borrow)] pub(super) Cow<'a, str>);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;
    use serde::Deserialize;
    use serde_json::{Value, json};

    use super::*;
    use crate::prune::Prune;

    fn pruned(json: &Value, prune: &Prune) -> Value {
        let text = json.to_string();
        let mut values = serde_json::Deserializer::from_str(&text);
        Value::deserialize(Pruned::new(&mut values, prune.root())).unwrap()
    }

    #[rstest]
    #[case::a_field("a", r#"{"b":{"a":1},"c":[{"a":2,"b":3}],"d.e":4}"#)]
    #[case::below("b.a", r#"{"a":0,"b":{},"c":[{"a":2,"b":3}],"d.e":4}"#)]
    #[case::of_each_item("c[].a", r#"{"a":0,"b":{"a":1},"c":[{"b":3}],"d.e":4}"#)]
    #[case::a_name_with_a_dot(r#"["d.e"]"#, r#"{"a":0,"b":{"a":1},"c":[{"a":2,"b":3}]}"#)]
    #[case::a_path_that_does_not_exist("x.y[].z", r#"{"a":0,"b":{"a":1},"c":[{"a":2,"b":3}],"d.e":4}"#)]
    #[case::through_a_scalar("a.b", r#"{"a":0,"b":{"a":1},"c":[{"a":2,"b":3}],"d.e":4}"#)]
    fn what_a_path_names_is_left_out(#[case] path: &str, #[case] expected: &str) {
        let whole = json!({"a": 0, "b": {"a": 1}, "c": [{"a": 2, "b": 3}], "d.e": 4});
        let left: Value = serde_json::from_str(expected).unwrap();
        assert_eq!(pruned(&whole, &Prune::nothing().field(path)), left);
    }

    #[test]
    fn all_but_the_named_fields_are_dropped() {
        let whole = json!({"kind": "K", "metadata": {"spec": 1}, "spec": {}, "status": null});
        let prune = Prune::nothing().all_but(&["kind", "metadata"]);
        assert_eq!(
            pruned(&whole, &prune),
            json!({"kind": "K", "metadata": {"spec": 1}})
        );
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<i64>().prop_map(Value::from),
            ".{0,6}".prop_map(Value::from)
        ];
        leaf.prop_recursive(4, 40, 5, |inner| {
            let name = prop_oneof![Just("a".to_owned()), Just("b".to_owned()), ".{0,3}"];
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(name, inner, 0..4).prop_map(|map| map.into_iter().collect()),
            ]
        })
    }

    /// Removes the same fields after decoding.
    fn removed(value: &mut Value, path: &[&str]) {
        match (value, path) {
            (Value::Object(fields), [last]) => {
                fields.shift_remove(*last);
            }
            (Value::Array(items), ["[]", rest @ ..]) => items.iter_mut().for_each(|item| removed(item, rest)),
            (Value::Object(fields), [first, rest @ ..]) => {
                if let Some(value) = fields.get_mut(*first) {
                    removed(value, rest);
                }
            }
            _ => {}
        }
    }

    proptest! {
        #[test]
        fn pruning_equals_removing_afterwards(json in any_json()) {
            let mut expected = json.clone();
            removed(&mut expected, &["a", "b"]);
            removed(&mut expected, &["b", "[]", "a"]);
            let prune = Prune::nothing().field("a.b").field("b[].a");
            prop_assert_eq!(pruned(&json, &prune), expected.clone());
            let text = json.to_string();
            if let Some(cut) = prune.cut(&text, &mut String::new()) {
                prop_assert_eq!(serde_json::from_str::<Value>(cut).unwrap(), expected);
            } else {
                prop_assert!(!json.is_object() || text.contains('\\'), "{}", text);
            }
        }
    }
}

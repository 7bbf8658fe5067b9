//! `serde::Deserializer` for [`Plain`]: dispatches on the type of the next value. Contains no other grammar.

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::de::StrRead;

use super::super::scan::count_items;
use super::{Integer, Odd, Plain};

impl<'de> Plain<'de> {
    /// Reads a string; the next byte is its quote.
    #[inline]
    fn visit_string<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, Odd> {
        let start = self.at + 1;
        let end = self.end_of_run(start);
        if self.byte(end) != Some(b'"') {
            self.unescape(start, end)?;
            return visitor.visit_str(&self.unescaped);
        }
        self.at = end + 1;
        visitor.visit_borrowed_str(self.json.get(start..end).ok_or(Odd)?)
    }

    #[inline]
    fn list<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, Odd> {
        self.enter()?;
        let items = match self.next() {
            Some(b'{') => Some(count_items(&self.json.as_bytes()[self.at..])),
            Some(b']') => Some(0),
            // Too short to be worth counting.
            Some(_) | None => None,
        };
        let value = visitor.visit_seq(Items {
            values: self,
            is_first: true,
            count: items,
        })?;
        self.leave(b']')?;
        Ok(value)
    }

    #[inline]
    fn object<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, Odd> {
        self.enter()?;
        let value = visitor.visit_map(Fields {
            values: self,
            is_first: true,
        })?;
        self.leave(b'}')?;
        Ok(value)
    }

    /// Delegates only the next value to `serde_json`.
    #[cold]
    fn hand_over<T>(
        &mut self,
        read: impl FnOnce(&mut serde_json::Deserializer<StrRead<'de>>) -> serde_json::Result<T>,
    ) -> Result<T, Odd> {
        let end = self.at + self.length_of_value()?;
        let mut values = serde_json::Deserializer::from_str(&self.json[self.at..end]);
        let value = read(&mut values).map_err(|_| Odd)?;
        values.end().map_err(|_| Odd)?;
        self.at = end;
        Ok(value)
    }
}

struct Items<'p, 'de> {
    values: &'p mut Plain<'de>,
    is_first: bool,
    /// Number of items, or a lower bound.
    count: Option<usize>,
}

impl<'de> SeqAccess<'de> for Items<'_, 'de> {
    type Error = Odd;

    #[inline]
    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Odd> {
        // A closing bracket after a comma is not a value.
        if !self.values.is_another(b']', &mut self.is_first)? {
            return Ok(None);
        }
        seed.deserialize(&mut *self.values).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        self.count
    }
}

struct Fields<'p, 'de> {
    values: &'p mut Plain<'de>,
    is_first: bool,
}

impl<'de> MapAccess<'de> for Fields<'_, 'de> {
    type Error = Odd;

    #[inline]
    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Odd> {
        if !self.values.is_another(b'}', &mut self.is_first)? {
            return Ok(None);
        }
        if self.values.next() != Some(b'"') {
            return Err(Odd);
        }
        seed.deserialize(Name { values: self.values }).map(Some)
    }

    #[inline]
    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Odd> {
        self.values.pass(b':')?;
        seed.deserialize(&mut *self.values)
    }
}

macro_rules! texts {
    ($($method:ident)*) => {$(
        #[inline]
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Odd> {
            if self.next() != Some(b'"') {
                return Err(Odd);
            }
            self.visit_string(visitor)
        }
    )*};
}

/// Integers are read here, other numbers by `serde_json`.
macro_rules! numbers {
    ($($method:ident)*) => {$(
        #[inline]
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Odd> {
            match self.integer() {
                Some(Integer::Positive(number)) => visitor.visit_u64(number),
                Some(Integer::Negative(number)) => visitor.visit_i64(number),
                None => self.hand_over(|values| values.$method(visitor)),
            }
        }
    )*};
}

macro_rules! handed_over {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Odd> {
            self.hand_over(|values| values.$method(visitor))
        }
    )*};
}

macro_rules! left {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, Odd> {
            Err(Odd)
        }
    )*};
}

impl<'de> Deserializer<'de> for &mut Plain<'de> {
    type Error = Odd;

    #[inline]
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Odd> {
        match self.next().ok_or(Odd)? {
            b'{' => self.object(visitor),
            b'"' => self.visit_string(visitor),
            b'[' => self.list(visitor),
            b't' | b'f' => visitor.visit_bool(self.boolean()?),
            b'n' => self.deserialize_unit(visitor),
            _ => self.deserialize_i64(visitor),
        }
    }

    #[inline]
    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Odd> {
        visitor.visit_bool(self.boolean()?)
    }

    #[inline]
    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Odd> {
        self.next();
        self.pass_word("null")?;
        visitor.visit_unit()
    }

    #[inline]
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Odd> {
        if self.next() != Some(b'n') {
            return visitor.visit_some(self);
        }
        self.pass_word("null")?;
        visitor.visit_none()
    }

    #[inline]
    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Odd> {
        if is_serde_jsons(name) {
            return self.hand_over(|values| values.deserialize_newtype_struct(name, visitor));
        }
        visitor.visit_newtype_struct(self)
    }

    #[inline]
    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Odd> {
        if self.next() != Some(b'[') {
            return Err(Odd);
        }
        self.list(visitor)
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _length: usize, visitor: V) -> Result<V::Value, Odd> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _length: usize,
        visitor: V,
    ) -> Result<V::Value, Odd> {
        self.deserialize_seq(visitor)
    }

    #[inline]
    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Odd> {
        if self.next() != Some(b'{') {
            return Err(Odd);
        }
        self.object(visitor)
    }

    #[inline]
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Odd> {
        match self.next() {
            Some(b'{') => self.object(visitor),
            Some(b'[') => self.list(visitor),
            Some(_) | None => Err(Odd),
        }
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Odd> {
        self.deserialize_unit(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Odd> {
        self.hand_over(|values| values.deserialize_enum(name, variants, visitor))
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Odd> {
        let length = self.length_of_value()?;
        self.at += length;
        visitor.visit_unit()
    }

    texts! { deserialize_str deserialize_string deserialize_char deserialize_identifier }

    numbers! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64
        deserialize_f32 deserialize_f64
    }

    handed_over! { deserialize_i128 deserialize_u128 deserialize_bytes deserialize_byte_buf }
}

/// `serde_json` recognises its own types by these names: numbers and raw values that keep their text.
fn is_serde_jsons(name: &str) -> bool {
    name.starts_with("$serde_json::")
}

/// A field name. Anything but a string, e.g. an integer map key, is delegated to `serde_json`.
struct Name<'p, 'de> {
    values: &'p mut Plain<'de>,
}

impl<'de> Deserializer<'de> for Name<'_, 'de> {
    type Error = Odd;

    #[inline]
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Odd> {
        self.values.visit_string(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Odd> {
        visitor.visit_some(self)
    }

    #[inline]
    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Odd> {
        if is_serde_jsons(name) {
            return Err(Odd);
        }
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Odd> {
        self.values.deserialize_enum(name, variants, visitor)
    }

    forward_to_deserialize_any! {
        str string char identifier ignored_any unit unit_struct seq tuple tuple_struct map struct
    }

    left! {
        deserialize_bool deserialize_bytes deserialize_byte_buf deserialize_f32 deserialize_f64
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128
    }
}

//! Decodes `DynamicObject` and `PartialObjectMeta` without `#[serde(flatten)]`, which first buffers every unknown
//! field as serde's internal `Content` and then builds the JSON value from it.

use std::fmt;
use std::marker::PhantomData;

use kube_core::{DynamicObject, ObjectMeta, PartialObjectMeta, TypeMeta};
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde_json::{Map, Value};

use super::plain;
use super::prune::{Name, Pruned};
use crate::prune::Prune;

/// Decodes an object of unknown type like `serde_json::from_str`, without the pruned fields.
pub(super) fn object(json: &str, prune: &Prune) -> Result<DynamicObject, serde_json::Error> {
    read(json, prune, Object)
}

/// Decodes the type and metadata of an object in the same way, and skips the rest.
pub(super) fn metadata<K>(json: &str, prune: &Prune) -> Result<PartialObjectMeta<K>, serde_json::Error> {
    let (types, metadata) = read(json, prune, Metadata)?;
    Ok(PartialObjectMeta {
        types,
        metadata,
        _phantom: PhantomData,
    })
}

fn read<'de, V: Visitor<'de> + Copy>(
    json: &'de str,
    prune: &Prune,
    visitor: V,
) -> Result<V::Value, serde_json::Error> {
    if prune.is_empty()
        && let Some(object) = plain::read(json, |values| values.deserialize_map(visitor))
    {
        return Ok(object);
    }
    let mut values = serde_json::Deserializer::from_str(json);
    let object = if prune.is_empty() {
        values.deserialize_map(visitor)?
    } else {
        Pruned::new(&mut values, prune.root()).deserialize_map(visitor)?
    };
    values.end()?;
    Ok(object)
}

#[derive(Clone, Copy)]
struct Object;

impl<'de> Visitor<'de> for Object {
    type Value = DynamicObject;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<DynamicObject, A::Error> {
        let mut data = Map::new();
        let (types, metadata) = fields(map, |map, field| {
            data.insert(field.into_owned(), map.next_value()?);
            Ok(())
        })?;
        Ok(DynamicObject {
            types,
            metadata,
            data: Value::Object(data),
        })
    }
}

#[derive(Clone, Copy)]
struct Metadata;

impl<'de> Visitor<'de> for Metadata {
    type Value = (Option<TypeMeta>, ObjectMeta);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        fields(map, |map, _| map.next_value::<IgnoredAny>().map(drop))
    }
}

/// Reads an object; `other` receives the unknown fields.
fn fields<'de, A: MapAccess<'de>>(
    mut map: A,
    mut other: impl FnMut(&mut A, std::borrow::Cow<'de, str>) -> Result<(), A::Error>,
) -> Result<(Option<TypeMeta>, ObjectMeta), A::Error> {
    let (mut api_version, mut kind, mut metadata) = (None, None, None);
    while let Some(Name(field)) = map.next_key()? {
        match &*field {
            "apiVersion" => api_version = Some(map.next_value::<Value>()?),
            "kind" => kind = Some(map.next_value::<Value>()?),
            "metadata" if metadata.is_some() => return Err(A::Error::duplicate_field("metadata")),
            "metadata" => metadata = Some(map.next_value()?),
            _ => other(&mut map, field)?,
        }
    }
    let types = match (api_version, kind) {
        (Some(Value::String(api_version)), Some(Value::String(kind))) => Some(TypeMeta { api_version, kind }),
        // kube's `TypeMeta` needs both fields; with only one it is `None`.
        (_, _) => None,
    };
    Ok((types, metadata.unwrap_or_default()))
}

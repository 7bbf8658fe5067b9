//! `DynamicObject` without the detour that `#[serde(flatten)]` takes: it keeps every unknown field as serde's own tree
//! first, and builds the JSON value from that.

use std::fmt;

use kube_core::{DynamicObject, ObjectMeta, TypeMeta};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::{Map, Value};

use super::prune::{Prune, Pruned};

/// Decodes an object whose type is not known, as `serde_json::from_str` would, but for what is left out.
pub(super) fn decode(json: &str, prune: &Prune) -> Result<DynamicObject, serde_json::Error> {
    let mut values = serde_json::Deserializer::from_str(json);
    let object = if prune.is_empty() {
        values.deserialize_map(Object)?
    } else {
        Pruned::new(&mut values, prune.root()).deserialize_map(Object)?
    };
    values.end()?;
    Ok(object)
}

struct Object;

impl<'de> Visitor<'de> for Object {
    type Value = DynamicObject;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<DynamicObject, A::Error> {
        let (mut api_version, mut kind, mut metadata) = (None, None, None);
        let mut data = Map::new();
        while let Some(field) = map.next_key::<String>()? {
            match field.as_str() {
                "apiVersion" => api_version = Some(map.next_value::<Value>()?),
                "kind" => kind = Some(map.next_value::<Value>()?),
                "metadata" if metadata.is_some() => {
                    return Err(serde::de::Error::duplicate_field("metadata"));
                }
                "metadata" => metadata = Some(map.next_value::<Metadata>()?.0),
                _ => {
                    data.insert(field, map.next_value()?);
                }
            }
        }
        let types = match (api_version, kind) {
            (Some(Value::String(api_version)), Some(Value::String(kind))) => {
                Some(TypeMeta { api_version, kind })
            }
            // One without the other is no type: kube keeps neither.
            (_, _) => None,
        };
        Ok(DynamicObject {
            types,
            metadata: metadata.unwrap_or_default(),
            data: Value::Object(data),
        })
    }
}

struct Metadata(ObjectMeta);

impl<'de> Deserialize<'de> for Metadata {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        ObjectMeta::deserialize(deserializer).map(Self)
    }
}

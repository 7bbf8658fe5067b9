//! Object content kept as encoded bytes, decoded on demand.

use std::fmt;

use apimachinery::encode::encode_json;
use apimachinery::object::decode;
use bytes::Bytes;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// Content of an object, in its stored encoding. Serialized as JSON in a saved trace.
#[derive(Clone, PartialEq, Eq)]
pub struct Content(Bytes);

impl Content {
    /// Returns the object as JSON; decodes it at every call.
    pub fn json(&self) -> Value {
        decode(&self.0)
    }

    /// Returns the length in bytes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Always false: an encoded object has at least one byte.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<Bytes> for Content {
    /// Creates content from an encoded object.
    fn from(encoded: Bytes) -> Self {
        Self(encoded)
    }
}

impl From<&Value> for Content {
    fn from(json: &Value) -> Self {
        Self(encode_json(json).into())
    }
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0))
    }
}

impl Serialize for Content {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.json().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(|json| Self::from(&json))
    }
}

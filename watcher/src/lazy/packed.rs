//! Lazy objects with compressed text. Objects of one collection are similar: each is compressed with the first one as
//! dictionary, so that mostly its unique parts are stored.

use std::sync::{Arc, OnceLock};

use super::{Lazy, Span};
use crate::decode::{Codec, Prune};

/// Dictionary: text that other objects are compressed against.
#[derive(Clone)]
pub(super) struct Model(Arc<Vec<u8>>);

/// Maximum distance of a back-reference (LZ4, block format).
const MODEL_BYTES_MAX: usize = 32 << 10;

impl Model {
    fn of(json: &str) -> Self {
        let bytes = json.as_bytes();
        Self(Arc::new(bytes[..bytes.len().min(MODEL_BYTES_MAX)].to_vec()))
    }

    fn pack(&self, json: &str) -> Vec<u8> {
        lz4_flex::block::compress_prepend_size_with_dict(json.as_bytes(), &self.0)
    }

    pub(super) fn unpack(&self, packed: &[u8]) -> String {
        let json = lz4_flex::block::decompress_size_prepended_with_dict(packed, &self.0);
        let json = json.expect("it was compressed against this very model");
        String::from_utf8(json).expect("it was text when it came")
    }
}

impl<K> Lazy<K> {
    /// Returns the object in compressed form.
    fn packed(self, model: &Model) -> Self {
        let packed = model.pack(&self.json());
        let names = [self.name(), self.namespace(), self.uid(), self.resource_version()];
        let mut end = 0;
        let spans = names.map(|name| {
            let length = u32::try_from(name.len()).expect("a name is shorter than the JSON it is in");
            let start = end;
            end += length;
            Span { start, length }
        });
        let [name, namespace, uid, resource_version] = spans;
        Self {
            bytes: [names.concat().as_bytes(), &packed].concat().into(),
            model: Some(model.clone()),
            name,
            namespace,
            uid,
            resource_version,
            decoded: self.decoded,
        }
    }

    /// Returns the offset of the compressed text.
    pub(super) fn names_length(&self) -> usize {
        let last = self.resource_version;
        (last.start + last.length) as usize
    }
}

/// Returns the codec of compressed lazy objects.
pub(crate) fn codec<K: 'static>(prune: Prune) -> Codec<Lazy<K>> {
    let plain = super::codec::<K>(prune);
    let model = OnceLock::new();
    Codec::new(move |json| {
        let lazy = plain.decode(json)?;
        let model = model.get_or_init(|| Model::of(&lazy.json()));
        Ok(lazy.packed(model))
    })
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;

    fn json(number: u32) -> String {
        let rest = "the same in all of them, ".repeat(40);
        format!(
            r#"{{"metadata":{{"name":"a-{number}","namespace":"n","resourceVersion":"{number}5"}},"data":{{"rest":"{rest}é","number":"{number}"}}}}"#
        )
    }

    #[test]
    fn packed_objects_round_trip() {
        let codec = codec::<ConfigMap>(Prune::nothing());
        for number in 1..20 {
            let lazy = codec.decode(&json(number)).unwrap();
            assert_eq!(lazy.json(), json(number));
            assert_eq!(
                (lazy.name(), lazy.namespace(), lazy.uid(), lazy.resource_version()),
                (&*format!("a-{number}"), "n", "", &*format!("{number}5"))
            );
            assert!(lazy.bytes.len() < 100, "{}", lazy.bytes.len());
            let object = lazy.clone().get().unwrap();
            assert_eq!(object.data.as_ref().unwrap()["number"], number.to_string());
        }
    }

    #[test]
    fn pruned_fields_are_not_packed() {
        let codec = codec::<ConfigMap>(Prune::nothing().field("data.rest"));
        assert!(!codec.decode(&json(1)).unwrap().json().contains("the same"));
    }
}

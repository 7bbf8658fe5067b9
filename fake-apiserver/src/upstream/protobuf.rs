//! Metadata of an object in Kubernetes' protobuf, without its schema: every top-level kind has `ObjectMeta` as field 1.
//!
//! Source: apimachinery `runtime/generated.proto` (`Unknown`), `meta/v1/generated.proto` (`ObjectMeta`).

use prost::decode_length_delimiter as varint;

use super::Metadata;
use crate::api::protobuf::MAGIC;

/// Returns the metadata of an object; `None` if there is none in these bytes, the beginning of a message.
pub(super) fn metadata(message: &[u8]) -> Option<Metadata> {
    let unknown = message.strip_prefix(MAGIC)?;
    let object = field(unknown, 2)?;
    let metadata = field(object, 1)?;
    let text = |number| {
        let bytes = field(metadata, number).unwrap_or_default();
        String::from_utf8_lossy(bytes).into_owned()
    };
    Some(Metadata {
        name: text(1),
        namespace: text(3),
        uid: text(5),
        resource_version: text(6),
        ..Metadata::default()
    })
}

/// Returns the first field of this number, which has a length. Of a message that is cut, as much of it as there is.
fn field(mut message: &[u8], wanted: usize) -> Option<&[u8]> {
    while !message.is_empty() {
        let tag = varint(&mut message).ok()?;
        let length = match tag & 7 {
            0 => {
                varint(&mut message).ok()?;
                continue;
            }
            1 => 8,
            2 => varint(&mut message).ok()?,
            5 => 4,
            _ => return None,
        };
        if tag >> 3 == wanted && tag & 7 == 2 {
            return Some(&message[..length.min(message.len())]);
        }
        message = message.get(length..)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_length(number: u8, bytes: &[u8]) -> Vec<u8> {
        let length = u8::try_from(bytes.len()).expect("short");
        [&[number << 3 | 2, length], bytes].concat()
    }

    #[test]
    fn metadata_is_read_from_any_beginning() {
        let metadata_fields = [
            with_length(1, b"a"),
            with_length(3, b"n"),
            with_length(5, b"u"),
            with_length(6, b"77"),
            vec![7 << 3, 0x96, 0x01],
        ];
        let object = with_length(1, &metadata_fields.concat());
        let object = [object, with_length(2, b"spec")].concat();
        let type_meta = with_length(1, b"\n\x02v1\x12\x03Pod");
        let message = [MAGIC, &type_meta, &with_length(2, &object)].concat();
        let read = metadata(&message).expect("an object").object_ref();
        assert_eq!(
            (&*read.key, &*read.uid, &*read.resource_version),
            ("n/a", "u", "77")
        );
        for end in 0..message.len() {
            // Whatever is cut, nothing panics.
            let _ = metadata(&message[..end]);
        }
    }
}

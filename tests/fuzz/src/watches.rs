//! WATCH streams: for any bytes and chunk boundaries, the watcher's decoder returns what serde_json parses.
//!
//! The first byte is the chunk length, the rest the stream.

use serde_json::Value;
use watcher::decode::{Codec, Kinds, Prune, WatchDecoder};
use watcher::machine::ResponsePart;

use crate::chunks;

/// Streams that servers send, and invalid ones.
pub const SEEDS: &[&[u8]] = &[
    b"\x07{\"type\":\"ADDED\",\"object\":{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\",\"namespace\":\"d\",\"uid\":\"u\",\"resourceVersion\":\"5\",\"managedFields\":[{\"fieldsV1\":{\"f:a\":{\"k:{\\\"n\\\":\\\"]\\\"}\":{}}}}]},\"spec\":{\"x\":[1,-2.5e3,true,null,\"\\u00e9\"]}}}\n{\"type\":\"MODIFIED\",\"object\":{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"6\"}}}\n",
    b"\x40{\"object\":{\"metadata\":{\"resourceVersion\":\"7\",\"name\":\"b\"}},\"type\":\"DELETED\"}\r\n\n{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"9\",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}}}}\n",
    b"\x01{\"type\":\n\"ADDED\",\n\"object\":{\"metadata\":{\n}}}{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"c\"}}}",
    b"\xff{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\",\"details\":{\"retryAfterSeconds\":1}}}\n",
    b"\x10{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"code\":500}",
    b"\x10<html>\n",
];

/// Decodes the body in chunks.
pub fn body(bytes: &[u8]) {
    let Some((length, body)) = chunks::of(bytes) else {
        return;
    };
    let whole = Decoded::of(body, body.len().max(1), Prune::nothing());
    assert_eq!(
        whole,
        Decoded::of(body, length, Prune::nothing()),
        "as one chunk, and as chunks of {length}"
    );

    // A value that serde_json cannot represent, such as a number, ends its parsing; ours reports the object and
    // continues.
    let mut is_read_to_the_end = true;
    let mut expected: Vec<Value> = serde_json::Deserializer::from_slice(body)
        .into_iter::<Value>()
        .map_while(|event| event.inspect_err(|_| is_read_to_the_end = false).ok())
        .filter(|event| matches!(event["type"].as_str(), Some("ADDED" | "MODIFIED" | "DELETED")))
        .map(|mut event| event["object"].take())
        .collect();
    if is_read_to_the_end {
        let mut rest = expected.iter();
        for object in &whole.objects {
            assert!(rest.any(|other| other == object), "{object} is decoded, and was not sent");
        }
    }
    if whole.complaints.is_empty() {
        assert_eq!(whole.objects.len(), expected.len(), "sent and not decoded");
        let pruned = Decoded::of(body, length, Prune::nothing().field("metadata.managedFields"));
        for object in &mut expected {
            if let Some(metadata) = object["metadata"].as_object_mut() {
                metadata.remove("managedFields");
            }
        }
        assert_eq!(pruned.objects, expected, "pruned while reading, and afterwards");
    }
}

#[derive(Debug, PartialEq)]
struct Decoded {
    objects: Vec<Value>,
    others: Vec<String>,
    complaints: Vec<String>,
    torn: usize,
}

impl Decoded {
    fn of(body: &[u8], length: usize, prune: Prune) -> Self {
        let (codec, mut kinds) = (Codec::<Value>::typed(prune), Kinds::new());
        let mut decoder = WatchDecoder::new(1 << 20);
        let mut decoded = Self {
            objects: Vec::new(),
            others: Vec::new(),
            complaints: Vec::new(),
            torn: 0,
        };
        for chunk in body.chunks(length) {
            decoder.push(chunk.to_vec().into());
            while decoder.next(&codec, &mut kinds, |answer| decoded.take(answer)) {}
        }
        decoded.torn = decoder.finish(&codec, &mut kinds, |answer| decoded.take(answer));
        decoded
    }

    fn take(&mut self, answer: ResponsePart<'_, Value>) {
        match answer {
            ResponsePart::Changed { payload, .. } => self.objects.push(payload),
            ResponsePart::Bookmark { .. } | ResponsePart::ErrorEvent(_) => self.others.push(format!("{answer:?}")),
            _ => self.complaints.push(format!("{answer:?}")),
        }
    }
}

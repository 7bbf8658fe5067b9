//! LIST bodies: for any bytes and chunk boundaries, the watcher's decoder returns the items that serde_json parses.
//!
//! The first byte is the chunk length, the rest the body.

use serde_json::Value;
use watcher::decode::{Codec, Kinds, ListDecoder, Prune};
use watcher::machine::ResponsePart;

use crate::chunks;

/// Bodies that servers send, and invalid ones.
pub const SEEDS: &[&[u8]] = &[
    b"\x09{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"10\",\"continue\":\"t\",\"remainingItemCount\":3},\"items\":[{\"metadata\":{\"name\":\"a\",\"uid\":\"u\",\"resourceVersion\":\"5\",\"annotations\":{\"k\":\"]}\\\\\\\"\"}},\"spec\":{\"x\":[1,-2.5e3,true,null]}},{\"metadata\":{\"name\":\"b\",\"resourceVersion\":\"6\"}}]}\n",
    b"\x01{\"items\":[{\"apiVersion\":\"g/v1\",\"kind\":\"W\",\"metadata\":{\"name\":\"\\u00e9\"}}],\"kind\":\"WList\",\"apiVersion\":\"g/v1\",\"metadata\":{\"resourceVersion\":\"1\"}}",
    b"\x20{ \"metadata\" : { \"resourceVersion\" : \"1\" } , \"items\" : [ ] , \"other\" : [ { } ] }",
    b"\x03{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"1\"},\"items\":null}",
    b"\x30{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"code\":500}",
    b"\x10[1]",
];

/// Decodes the body in chunks.
pub fn body(bytes: &[u8]) {
    let Some((length, body)) = chunks::of(bytes) else {
        return;
    };
    let whole = Decoded::of(body, body.len().max(1));
    assert_eq!(
        whole,
        Decoded::of(body, length),
        "as one chunk, and as chunks of {length}"
    );

    // Of duplicate fields serde_json keeps the last, a streaming decoder the first.
    let is_single =
        body.windows(7).filter(|window| *window == b"\"items\"").count() < 2 && !body.contains(&b'\\');
    if let (Ok(list), true) = (
        serde_json::from_slice::<Value>(body),
        is_single && whole.complaints.is_empty(),
    ) {
        assert_eq!(whole.items, list["items"].as_array().cloned().unwrap_or_default());
        assert!(whole.ends <= 1);
    }
}

#[derive(Debug, PartialEq)]
struct Decoded {
    items: Vec<Value>,
    ends: usize,
    complaints: Vec<String>,
}

impl Decoded {
    fn of(body: &[u8], length: usize) -> Self {
        let (codec, mut kinds) = (Codec::<Value>::typed(Prune::nothing()), Kinds::new());
        let mut decoder = ListDecoder::new(1 << 20);
        let mut decoded = Self {
            items: Vec::new(),
            ends: 0,
            complaints: Vec::new(),
        };
        for chunk in body.chunks(length) {
            decoder.push(chunk.to_vec().into());
            while decoder.next(&codec, &mut kinds, |answer| decoded.take(answer)) {}
        }
        decoder.finish(&mut kinds, |answer| decoded.take(answer));
        decoded
    }

    fn take(&mut self, answer: ResponsePart<'_, Value>) {
        match answer {
            ResponsePart::Item { payload } => self.items.push(payload),
            ResponsePart::PageEnd(_) => self.ends += 1,
            _ => self.complaints.push(format!("{answer:?}")),
        }
    }
}

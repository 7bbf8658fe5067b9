//! What a LIST brings: whatever the bytes and wherever they are cut, the watcher's decoder tells the items that serde_json
//! reads.
//!
//! The first byte says how long the chunks are. The rest is the body.

use serde_json::Value;
use watcher::decode::{Codec, Kinds, ListDecoder, Prune};
use watcher::machine::Answer;

use crate::chunks;

/// What servers send, and what they should not.
pub const SEEDS: &[&[u8]] = &[
    b"\x09{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"10\",\"continue\":\"t\",\"remainingItemCount\":3},\"items\":[{\"metadata\":{\"name\":\"a\",\"uid\":\"u\",\"resourceVersion\":\"5\",\"annotations\":{\"k\":\"]}\\\\\\\"\"}},\"spec\":{\"x\":[1,-2.5e3,true,null]}},{\"metadata\":{\"name\":\"b\",\"resourceVersion\":\"6\"}}]}\n",
    b"\x01{\"items\":[{\"apiVersion\":\"g/v1\",\"kind\":\"W\",\"metadata\":{\"name\":\"\\u00e9\"}}],\"kind\":\"WList\",\"apiVersion\":\"g/v1\",\"metadata\":{\"resourceVersion\":\"1\"}}",
    b"\x20{ \"metadata\" : { \"resourceVersion\" : \"1\" } , \"items\" : [ ] , \"other\" : [ { } ] }",
    b"\x03{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"1\"},\"items\":null}",
    b"\x30{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"code\":500}",
    b"\x10[1]",
];

/// Reads the body in chunks.
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

    // Of fields that come twice serde_json keeps the last one, and who reads as they come the first.
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

    fn take(&mut self, answer: Answer<'_, Value>) {
        match answer {
            Answer::Item { payload } => self.items.push(payload),
            Answer::PageEnd(_) => self.ends += 1,
            _ => self.complaints.push(format!("{answer:?}")),
        }
    }
}

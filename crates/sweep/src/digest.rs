//! Digest of traces: equal for equal runs, whatever machine, number of threads or shards they were run with.

use std::fmt::{self, Display, Formatter};

use fake_apiserver::record::Record;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// Sum (exclusive or) of the SHA-256 of each trace with its seed, as hexadecimal digits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Digest([u8; 32]);

impl Digest {
    /// Adds the trace of a seed.
    pub fn add(&mut self, seed: u64, records: &[Record]) {
        let mut hash = Sha256::new();
        hash.update(seed.to_le_bytes());
        for record in records {
            let json =
                serde_json::to_vec(record).expect("records have no maps but those with texts for keys");
            hash.update(json);
            hash.update(b"\n");
        }
        self.merge(Self(hash.finalize().into()));
    }

    /// Adds the traces of another digest.
    pub fn merge(&mut self, other: Self) {
        for (mine, other) in self.0.iter_mut().zip(other.0) {
            *mine ^= other;
        }
    }
}

impl Display for Digest {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.to_string()
    }
}

impl TryFrom<String> for Digest {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not a digest of 64 hexadecimal digits");
        if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(wrong());
        }
        let mut bytes = [0; 32];
        for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
            let digits = std::str::from_utf8(digits).map_err(|_| wrong())?;
            *byte = u8::from_str_radix(digits, 16).map_err(|_| wrong())?;
        }
        Ok(Self(bytes))
    }
}

#[cfg(test)]
mod tests {
    use fake_apiserver::record::What;

    use super::*;

    #[test]
    fn the_order_of_seeds_does_not_matter_and_their_traces_do() {
        let trace = |seq| {
            [Record {
                seq,
                at: std::time::Duration::ZERO,
                what: What::StopRequested,
            }]
        };
        let of = |runs: &[(u64, u64)]| {
            let mut digest = Digest::default();
            runs.iter()
                .for_each(|(seed, seq)| digest.add(*seed, &trace(*seq)));
            digest
        };
        let whole = of(&[(1, 0), (2, 0)]);
        assert_eq!(whole, of(&[(2, 0), (1, 0)]));
        let mut merged = of(&[(2, 0)]);
        merged.merge(of(&[(1, 0)]));
        assert_eq!(whole, merged);
        assert_ne!(whole, of(&[(1, 0), (2, 1)]));
        assert_eq!(Digest::try_from(whole.to_string()), Ok(whole));
        assert!(Digest::try_from("é".repeat(32)).is_err() && Digest::try_from("+1".repeat(32)).is_err());
    }
}

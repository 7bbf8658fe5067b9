//! Decodes a compressed watch as it arrives, and tells where its gzip members end (RFC 1952). It must not know lines.

use flate2::{Decompress, FlushDecompress, Status};

/// Length of a header without optional fields.
const HEADER: usize = 10;
/// Length of checksum and length.
const TRAILER: usize = 8;
/// An empty stored block: the data before it is flushed.
const SYNC_FLUSH: [u8; 4] = [0, 0, 0xff, 0xff];
/// An empty stored block that is the last one.
const LAST_BLOCK: [u8; 5] = [1, 0, 0, 0xff, 0xff];

/// A part of a compressed watch.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Text(Vec<u8>),
    /// A member ended. `is_flushed`: its data was flushed, and an empty block closed it.
    End {
        is_flushed: bool,
    },
}

/// State of a decoder.
#[derive(Debug, Default)]
pub(crate) struct Members {
    /// Bytes of the current member.
    member: Vec<u8>,
    inflate: Option<Decompress>,
    /// Bytes of the member that are inflated, its header included.
    inflated: usize,
    /// Whether the last block of the member was read.
    is_closed: bool,
}

impl Members {
    /// Returns what these bytes decode to.
    ///
    /// # Errors
    ///
    /// They are not gzip without optional fields.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> Result<Vec<Part>, String> {
        let mut parts = Vec::new();
        self.member.extend_from_slice(bytes);
        loop {
            if self.inflate.is_none() && !self.is_closed {
                let Some(header) = self.member.get(..HEADER) else {
                    return Ok(parts);
                };
                if header[..4] != [0x1f, 0x8b, 8, 0] {
                    return Err(format!("no gzip member begins with {header:02x?}"));
                }
                self.inflate = Some(Decompress::new(false));
                self.inflated = HEADER;
            }
            if let Some(inflate) = &mut self.inflate {
                let mut text = Vec::with_capacity(1 << 16);
                let before = inflate.total_in();
                let rest = &self.member[self.inflated..];
                let status = inflate
                    .decompress_vec(rest, &mut text, FlushDecompress::Sync)
                    .map_err(|why| why.to_string())?;
                self.inflated += usize::try_from(inflate.total_in() - before).unwrap_or(usize::MAX);
                let is_stuck = text.is_empty() && status != Status::StreamEnd;
                if !text.is_empty() {
                    parts.push(Part::Text(text));
                }
                if status == Status::StreamEnd {
                    self.inflate = None;
                    self.is_closed = true;
                } else if is_stuck {
                    return Ok(parts);
                }
                continue;
            }
            if self.member.len() < self.inflated + TRAILER {
                return Ok(parts);
            }
            let flushed = self.member[..self.inflated].strip_suffix(&LAST_BLOCK);
            let is_flushed = flushed.is_some_and(|data| data.ends_with(&SYNC_FLUSH));
            parts.push(Part::End { is_flushed });
            self.member.drain(..self.inflated + TRAILER);
            self.is_closed = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A member as kube-apiserver 1.37 sends it: `a` and a newline.
    const MEMBER: [u8; 31] = [
        0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 0xff, 0x4a, 0xe4, 0x02, 0, 0, 0, 0xff, 0xff, 1, 0, 0, 0xff, 0xff,
        0x07, 0xa1, 0xea, 0xdd, 2, 0, 0, 0,
    ];

    #[test]
    fn members_end_where_they_end() {
        for size in [1, 7, 62] {
            let mut members = Members::default();
            let bytes = [MEMBER, MEMBER].concat();
            let parts: Vec<Part> = bytes
                .chunks(size)
                .flat_map(|chunk| members.take(chunk).unwrap())
                .collect();
            let text: Vec<u8> = parts
                .iter()
                .flat_map(|part| match part {
                    Part::Text(text) => text.clone(),
                    Part::End { .. } => b"|".to_vec(),
                })
                .collect();
            assert_eq!(text, b"a\n|a\n|", "{size}");
            assert!(parts.contains(&Part::End { is_flushed: true }));
        }
        assert!(Members::default().take(b"{\"type\":\"ADDED\"").is_err());
    }
}

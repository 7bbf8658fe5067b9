//! Decodes the framing of a chunked body (RFC 9112, section 7.1) without scanning its content: scanning every byte
//! would dominate the measurement.

/// State of the decoder.
#[derive(Debug, Default)]
pub(crate) struct Dechunk {
    state: State,
    size: u64,
    /// Number of content bytes so far.
    pub(crate) content: u64,
    /// Number of content lines so far, if counted.
    pub(crate) lines: Option<u64>,
    /// The last chunk was received.
    pub(crate) over: bool,
}

#[derive(Debug, Default, Clone, Copy)]
enum State {
    #[default]
    Size,
    /// After the size, up to the end of its line.
    Extension,
    Content {
        left: u64,
    },
    /// The line end after a chunk.
    LineEnd,
}

impl Dechunk {
    /// Creates a decoder that does scan the content.
    pub(crate) fn counting_lines() -> Self {
        Self {
            lines: Some(0),
            ..Self::default()
        }
    }

    /// Decodes the next bytes from the connection.
    pub(crate) fn take(&mut self, mut bytes: &[u8]) {
        while let Some((&first, rest)) = bytes.split_first() {
            match self.state {
                State::Content { left } => {
                    let taken = left.min(bytes.len() as u64);
                    self.content += taken;
                    if let Some(lines) = &mut self.lines {
                        let ends = bytes[..taken as usize].iter().filter(|byte| **byte == b'\n');
                        *lines += ends.count() as u64;
                    }
                    bytes = &bytes[taken as usize..];
                    self.state = match left - taken {
                        0 => State::LineEnd,
                        left => State::Content { left },
                    };
                    continue;
                }
                State::Size => match (first as char).to_digit(16) {
                    Some(digit) => self.size = self.size << 4 | u64::from(digit),
                    None if first == b'\n' => self.begin(),
                    None => self.state = State::Extension,
                },
                State::Extension if first == b'\n' => self.begin(),
                State::LineEnd if first == b'\n' => self.state = State::Size,
                State::Extension | State::LineEnd => {}
            }
            bytes = rest;
        }
    }

    fn begin(&mut self) {
        self.over |= self.size == 0;
        self.state = match std::mem::take(&mut self.size) {
            0 => State::LineEnd,
            left => State::Content { left },
        };
    }
}

#[cfg(test)]
mod tests {
    use super::Dechunk;

    #[test]
    fn content_is_counted_for_any_chunking() {
        let body = b"5\r\nhello\r\n1A;x=y\r\nabcdefghijklmnopqrstuvwxyz\r\n0\r\n\r\n";
        for cut in 1..body.len() {
            let mut reader = Dechunk::default();
            for part in body.chunks(cut) {
                reader.take(part);
            }
            assert_eq!((reader.content, reader.over), (31, true), "cut every {cut} bytes");
        }
    }
}

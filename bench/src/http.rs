//! Sequential requests on one kept-alive connection: for set-up, and where throughput is not measured.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use crate::dechunk::Dechunk;
use crate::link::{Link, Place};

/// Maximum silence of a server before a measurement is aborted.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A connection with buffers.
pub(crate) struct Connection {
    socket: Link<TcpStream>,
    buffer: Vec<u8>,
}

/// A response.
#[derive(Debug, Default)]
pub(crate) struct HttpResponse {
    pub(crate) status: u16,
    /// Length of its body in bytes.
    pub(crate) length: u64,
    /// The body, if requested.
    pub(crate) body: Vec<u8>,
}

/// How the length of a body is determined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    Length(u64),
    Chunked,
}

/// The head of a response.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Head {
    pub(crate) status: u16,
    pub(crate) framing: Framing,
    /// Offset of the body.
    pub(crate) end: usize,
}

impl Connection {
    pub(crate) fn open(place: impl Into<Place>) -> io::Result<Self> {
        Ok(Self {
            socket: place.into().open()?,
            buffer: vec![0; 256 * 1024],
        })
    }

    /// Sends a request whose response is read later.
    pub(crate) fn send(&mut self, request: &[u8]) -> io::Result<()> {
        self.socket.write_all(request)?;
        self.socket.flush()
    }

    /// Reads a response; `keep`: keeps its body.
    pub(crate) fn receive(&mut self, keep: bool) -> io::Result<HttpResponse> {
        let mut filled = 0;
        let head = loop {
            let read = self.socket.read(&mut self.buffer[filled..])?;
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            filled += read;
            if let Some(head) = head(&self.buffer[..filled])? {
                break head;
            }
        };
        let mut answer = HttpResponse {
            status: head.status,
            ..HttpResponse::default()
        };
        let mut dechunk = Dechunk::default();
        let mut start = head.end;
        let mut raw = Vec::new();
        loop {
            let bytes = &self.buffer[start..filled];
            answer.length += bytes.len() as u64;
            if keep {
                raw.extend_from_slice(bytes);
            }
            let over = match head.framing {
                Framing::Length(length) => answer.length >= length,
                Framing::Chunked => {
                    dechunk.take(bytes);
                    dechunk.over
                }
            };
            if over {
                break;
            }
            start = 0;
            filled = self.socket.read(&mut self.buffer)?;
            if filled == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        if head.framing == Framing::Chunked {
            answer.length = dechunk.content;
            raw = if keep { joined(&raw) } else { raw };
        }
        answer.body = raw;
        Ok(answer)
    }

    /// Sends a request and reads the response.
    pub(crate) fn ask(&mut self, request: &[u8], keep: bool) -> io::Result<HttpResponse> {
        self.send(request)?;
        self.receive(keep)
    }
}

impl HttpResponse {
    /// Returns the response if it is a success.
    pub(crate) fn good(self, what: &str) -> io::Result<Self> {
        if (200..300).contains(&self.status) {
            return Ok(self);
        }
        let body = String::from_utf8_lossy(&self.body[..self.body.len().min(500)]).into_owned();
        Err(io::Error::other(format!(
            "{what} was answered {}: {body}",
            self.status
        )))
    }
}

/// Formats a request, with a JSON body if there is one.
pub(crate) fn request(method: &str, path: &str, body: &[u8]) -> Vec<u8> {
    request_of_type(method, path, "application/json", body)
}

/// Formats a request with a body of this type, if there is one.
pub(crate) fn request_of_type(method: &str, path: &str, kind: &str, body: &[u8]) -> Vec<u8> {
    let mut request =
        format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nAccept: application/json\r\n").into_bytes();
    if !body.is_empty() {
        let head = format!("Content-Type: {kind}\r\nContent-Length: {}\r\n", body.len());
        request.extend_from_slice(head.as_bytes());
    }
    request.extend_from_slice(b"\r\n");
    request.extend_from_slice(body);
    request
}

/// Returns a request without a body with one more header line.
pub(crate) fn with_header(request: &[u8], line: &str) -> Vec<u8> {
    let mut longer = request[..request.len() - 2].to_vec();
    longer.extend_from_slice(format!("{line}\r\n\r\n").as_bytes());
    longer
}

/// Formats a watch request with another User-Agent than set-up requests: the server treats a User-Agent as one
/// client.
pub(crate) fn watch(path: &str, version: &str) -> Vec<u8> {
    format!(
        "GET {path}?watch=true&resourceVersion={version} HTTP/1.1\r\nHost: localhost\r\nUser-Agent: watchers\r\nAccept: \
         application/json\r\n\r\n"
    )
    .into_bytes()
}

/// Parses the head of a response; `None` while it is incomplete.
pub(crate) fn head(bytes: &[u8]) -> io::Result<Option<Head>> {
    let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
        return Ok(None);
    };
    let text = std::str::from_utf8(&bytes[..end]).map_err(io::Error::other)?;
    let status = text.get(9..12).and_then(|digits| digits.parse().ok());
    let value = |name: &str| {
        text.lines().find_map(|line| {
            let (field, value) = line.split_once(':')?;
            field.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    };
    let framing = match value("content-length").map(str::parse) {
        Some(Ok(length)) => Framing::Length(length),
        Some(Err(error)) => return Err(io::Error::other(error)),
        None if value("transfer-encoding").is_some() => Framing::Chunked,
        None => Framing::Length(0),
    };
    let status = status.ok_or_else(|| io::Error::other(format!("no HTTP: {text:?}")))?;
    Ok(Some(Head {
        status,
        framing,
        end: end + 4,
    }))
}

/// Returns the content of a complete chunked body.
fn joined(mut raw: &[u8]) -> Vec<u8> {
    let mut content = Vec::with_capacity(raw.len());
    while let Some(line) = raw.windows(2).position(|two| two == b"\r\n") {
        let size = std::str::from_utf8(&raw[..line])
            .ok()
            .and_then(|digits| usize::from_str_radix(digits.trim(), 16).ok())
            .unwrap_or(0);
        let start = line + 2;
        if size == 0 || start + size > raw.len() {
            break;
        }
        content.extend_from_slice(&raw[start..start + size]);
        raw = &raw[(start + size + 2).min(raw.len())..];
    }
    content
}

#[cfg(test)]
mod tests {
    use super::{Framing, head, joined};

    #[test]
    fn a_head_is_parsed_when_complete() {
        let text = b"HTTP/1.1 201 Created\r\ncontent-Length: 12\r\n\r\nbody";
        assert!(head(&text[..30]).expect("so far it is HTTP").is_none());
        let head = head(text).expect("it is HTTP").expect("it is whole");
        assert_eq!(
            (head.status, head.framing, head.end),
            (201, Framing::Length(12), 44)
        );
    }

    #[test]
    fn chunks_are_joined() {
        assert_eq!(joined(b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"), b"abcde");
    }
}

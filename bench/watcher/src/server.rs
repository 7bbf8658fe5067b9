//! A server that writes the bytes of an apiserver: it parses as little as possible and is several times faster than
//! any client, so that the clients are measured.

use std::io::{self, IoSlice, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};

use crate::fixture::{EVENT_VERSIONS, Fixture, LIST_VERSIONS, Template};

/// The collection to serve, encoded in the path prefix of a client, so that one server serves all measurements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Collection {
    pub(crate) fixture: Fixture,
    /// Number of objects of a LIST.
    pub(crate) listed: u64,
    /// Number of events of a watch.
    pub(crate) events: u64,
    /// Watches are rejected with an `ERROR` event: the version expired.
    pub(crate) expires: bool,
}

impl Collection {
    pub(crate) fn path(&self) -> String {
        let then = if self.expires { "expired" } else { "open" };
        format!("/{}/{}/{}/{then}", self.fixture.word(), self.listed, self.events)
    }

    /// Parses a path; returns the collection and the rest of the path.
    fn of(path: &str) -> Option<Self> {
        let mut parts = path.strip_prefix('/')?.splitn(5, '/');
        let word = parts.next()?;
        Some(Self {
            fixture: Fixture::ALL.into_iter().find(|fixture| fixture.word() == word)?,
            listed: parts.next()?.parse().ok()?,
            events: parts.next()?.parse().ok()?,
            expires: parts.next()? == "expired",
        })
    }
}

/// Objects in a watch have numbers below this, like the Pods of a cluster that change.
const WATCHED: u64 = 10_000;
/// Bytes per write: lines are cut at arbitrary positions.
const PIECE: usize = 64 << 10;

/// Prints the address and serves until killed.
pub(crate) fn serve() -> io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    writeln!(io::stdout(), "{}", listener.local_addr()?)?;
    loop {
        let (socket, _) = listener.accept()?;
        // A client that disconnects is not an error.
        std::thread::spawn(move || Connection::new(socket)?.serve());
    }
}

struct Connection {
    socket: TcpStream,
    /// Bytes received and not parsed yet.
    read: Vec<u8>,
    /// Bytes to be written that do not fill a piece yet.
    piece: Vec<u8>,
    /// Prepared before the watch request: clients list first, and are measured after that.
    tape: Option<Tape>,
}

impl Connection {
    fn new(socket: TcpStream) -> io::Result<Self> {
        socket.set_nodelay(true)?;
        Ok(Self {
            socket,
            read: Vec::new(),
            piece: Vec::with_capacity(2 * PIECE),
            tape: None,
        })
    }

    fn serve(mut self) -> io::Result<()> {
        while let Some(head) = self.head()? {
            let target = head.split(' ').nth(1).unwrap_or_default();
            let (path, query) = target.split_once('?').unwrap_or((target, ""));
            let Some(collection) = Collection::of(path) else {
                self.socket
                    .write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")?;
                continue;
            };
            self.answer(&collection, query)?;
        }
        Ok(())
    }

    /// Reads the head of the next request; no request has a body.
    fn head(&mut self) -> io::Result<Option<String>> {
        let mut buffer = [0; 4096];
        loop {
            if let Some(end) = self.read.windows(4).position(|window| window == b"\r\n\r\n") {
                let head = self.read.drain(..end + 4).collect();
                return Ok(Some(String::from_utf8(head).unwrap_or_default()));
            }
            match self.socket.read(&mut buffer)? {
                0 => return Ok(None),
                length => self.read.extend_from_slice(&buffer[..length]),
            }
        }
    }

    fn answer(&mut self, collection: &Collection, query: &str) -> io::Result<()> {
        self.socket.write_all(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n",
        )?;
        let has = |pair: &str| query.split('&').any(|other| other == pair);
        if !has("watch=true") && !has("watch=1") {
            return self.list(collection, query);
        }
        if has("sendInitialEvents=true") {
            let event = collection.fixture.event("ADDED");
            for number in 0..collection.listed {
                self.write(&event, number, LIST_VERSIONS + number)?;
            }
            let (kind, api_version) = (collection.fixture.kind(), collection.fixture.api_version());
            let version = list_version(collection);
            self.write_text(&format!(
                "{{\"type\":\"BOOKMARK\",\"object\":{{\"kind\":\"{kind}\",\"apiVersion\":\"{api_version}\",\"metadata\":{{\"resourceVersion\":\"{version}\",\"annotations\":{{\"k8s.io/initial-events-end\":\"true\"}}}}}}}}\n"
            ))?;
        } else if collection.expires {
            self.write_text("{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\",\"message\":\"too old resource version\",\"reason\":\"Expired\",\"code\":410}}\n")?;
            return self.end();
        }
        self.flush()?;
        // The watch stays open; the client disconnects when it is done.
        self.events(collection)
    }

    fn events(&mut self, collection: &Collection) -> io::Result<()> {
        if collection.events == 0 {
            return Ok(());
        }
        let mut tape = self.tape.take().unwrap_or_else(|| Tape::new(collection));
        let mut sent = 0;
        while sent < collection.events {
            let count = WATCHED.min(collection.events - sent);
            for piece in tape.lines(count, EVENT_VERSIONS + sent).chunks(PIECE) {
                write_chunk(&mut self.socket, piece)?;
            }
            sent += count;
        }
        Ok(())
    }

    fn list(&mut self, collection: &Collection, query: &str) -> io::Result<()> {
        let number = |name: &str| -> Option<u64> {
            let pair = query
                .split('&')
                .find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))?;
            pair.parse().ok()
        };
        let start = number("continue").unwrap_or(0);
        let end = match number("limit") {
            None | Some(0) => collection.listed,
            Some(limit) => collection.listed.min(start + limit),
        };
        let (kind, version) = (collection.fixture.kind(), list_version(collection));
        let api_version = collection.fixture.api_version();
        let next = if end < collection.listed {
            format!(",\"continue\":\"{end}\"")
        } else {
            String::new()
        };
        self.write_text(&format!("{{\"kind\":\"{kind}List\",\"apiVersion\":\"{api_version}\",\"metadata\":{{\"resourceVersion\":\"{version}\"{next}}},\"items\":["))?;
        let item = collection.fixture.item();
        for number in start..end {
            if number > start {
                self.write_text(",")?;
            }
            self.write(&item, number, LIST_VERSIONS + number)?;
        }
        self.write_text("]}\n")?;
        if collection.events > 0 {
            self.tape = Some(Tape::new(collection));
        }
        self.end()
    }

    fn write(&mut self, template: &Template, number: u64, version: u64) -> io::Result<()> {
        template.write(number, version, &mut self.piece);
        self.write_pieces()
    }

    fn write_text(&mut self, text: &str) -> io::Result<()> {
        self.piece.extend_from_slice(text.as_bytes());
        self.write_pieces()
    }

    fn write_pieces(&mut self) -> io::Result<()> {
        while self.piece.len() >= PIECE {
            self.write_piece(PIECE)?;
        }
        Ok(())
    }

    fn write_piece(&mut self, length: usize) -> io::Result<()> {
        write_chunk(&mut self.socket, &self.piece[..length])?;
        self.piece.drain(..length);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        if !self.piece.is_empty() {
            self.write_piece(self.piece.len())?;
        }
        Ok(())
    }

    fn end(&mut self) -> io::Result<()> {
        self.flush()?;
        self.socket.write_all(b"0\r\n\r\n")
    }
}

/// Writes a chunk of the transfer encoding.
fn write_chunk(socket: &mut TcpStream, bytes: &[u8]) -> io::Result<()> {
    let head = format!("{:x}\r\n", bytes.len());
    let mut parts = [head.as_bytes(), bytes, b"\r\n"].map(IoSlice::new);
    let mut parts = &mut parts[..];
    while !parts.is_empty() {
        let written = socket.write_vectored(parts)?;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        IoSlice::advance_slices(&mut parts, written);
    }
    Ok(())
}

/// The events of a watch, one per object. They are sent repeatedly with new versions, so that a fast client does not
/// wait for them to be built.
struct Tape {
    event: Template,
    lines: Vec<u8>,
}

impl Tape {
    fn new(collection: &Collection) -> Self {
        let event = collection.fixture.event("MODIFIED");
        let mut lines = Vec::new();
        for number in 0..WATCHED.min(collection.events) {
            event.write(number, EVENT_VERSIONS, &mut lines);
        }
        Self { event, lines }
    }

    /// Returns the first events, starting at this version.
    fn lines(&mut self, count: u64, version: u64) -> &[u8] {
        let mut end = 0;
        for number in 0..count {
            let line = &mut self.lines[end..end + self.event.len()];
            self.event.set_version(line, version + number);
            end += self.event.len();
        }
        &self.lines[..end]
    }
}

/// Returns the version of a list and of all its pages.
fn list_version(collection: &Collection) -> u64 {
    LIST_VERSIONS + collection.listed
}

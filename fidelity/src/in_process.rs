//! The fake in this process, in virtual time: a watch of an hour costs nothing.
//!
//! What `net` adds on a socket (`Date`, framing) is added here, so that transcripts are the same.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use ::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use bytes::Bytes;
use fake_apiserver::api::{Access, Header, HttpRequest, reason_phrase};
use fake_apiserver::fault::Ending;
use fake_apiserver::record::{ConnId, Replica, Side, StreamId};
use fake_apiserver::scenario::{ServerSettings, Version};
use fake_apiserver::server::{self, Input, Output};
use tungstenite::protocol::frame::coding::{CloseCode, Data, OpCode};
use tungstenite::protocol::frame::{CloseFrame, Frame};

use crate::error::Error;
use crate::probe::{Control, User};
use crate::transport::{ANSWER_LIMIT, Call, Chunk, Head, Transport};

/// Bearer tokens.
const ADMIN: &str = "admin";
const LIMITED: &str = "limited";

/// Settings of the oracle: watch caches are not notified of foreign writes.
pub(crate) fn settings(version: Version) -> ServerSettings {
    ServerSettings {
        version,
        progress_notify: false,
        ..ServerSettings::default()
    }
}

/// Credentials of the users of probes.
pub(crate) fn access() -> Access {
    Access {
        token: ADMIN.to_owned(),
        limited_token: Some(LIMITED.to_owned()),
        signing_secret: [0; 32],
    }
}

/// A fake apiserver with an empty store.
pub struct InProcess {
    server: server::Server,
    now: Duration,
    streams: BTreeMap<u64, Incoming>,
    last: u64,
}

#[derive(Default)]
struct Incoming {
    /// Whether only the head is sent, in response to HEAD.
    bodiless: bool,
    head: Option<Head>,
    chunks: VecDeque<Bytes>,
    ended: Option<Ending>,
    /// Whether WebSocket messages are sent, in the encoding of `net`.
    websocket: bool,
}

/// Body of a response.
pub(crate) struct Stream(u64);

impl InProcess {
    /// Returns a fake of `version` with the settings of the oracle.
    pub fn new(version: Version) -> Self {
        Self::with_capacity(version, ServerSettings::default().watch_cache_capacity)
    }

    /// Does the same, with this capacity of each watch cache.
    pub(crate) fn with_capacity(version: Version, watch_cache_capacity: usize) -> Self {
        let settings = ServerSettings {
            watch_cache_capacity,
            ..settings(version)
        };
        Self {
            server: server::Server::standalone(settings, 0).with_access(access()),
            now: Duration::ZERO,
            streams: BTreeMap::new(),
            last: 0,
        }
    }

    fn input(&mut self, input: Input) {
        self.server.handle(self.now, input);
        self.take_outputs();
    }

    fn take_outputs(&mut self) {
        while let Some(output) = self.server.poll_output() {
            match output {
                Output::Head {
                    stream,
                    status,
                    headers,
                    length,
                } => {
                    if let Some(incoming) = self.streams.get_mut(&stream.0) {
                        incoming.head = Some(head(status, headers, length));
                    }
                }
                Output::Data { stream, bytes } => {
                    if let Some(incoming) = self.streams.get_mut(&stream.0).filter(|it| !it.bodiless) {
                        incoming.chunks.push_back(bytes);
                    }
                }
                Output::FlushBarrier { stream } => self.server.handle(self.now, Input::Flushed(stream)),
                Output::Goaway { .. }
                | Output::Close { .. }
                | Output::Upstream { .. }
                | Output::UpstreamWrite { .. } => {}
                // Nothing listens in this process.
                Output::Call { id, call } => {
                    let outcome = call.refused();
                    self.server.handle(self.now, Input::HookAnswered { id, outcome });
                }
                Output::End { stream, how } => {
                    if let Some(incoming) = self.streams.get_mut(&stream.0) {
                        incoming.ended = Some(how);
                    }
                }
            }
        }
    }

    /// Advances to the next event, but not beyond `until`. Returns false if there was none.
    fn step(&mut self, until: Duration) -> bool {
        let due = self.server.poll_timeout().filter(|at| *at <= until);
        match due {
            Some(at) => {
                // Advances even if the server needs to be polled now; otherwise the loop would not end.
                self.now = at.max(self.now + Duration::from_micros(1)).min(until);
                self.input(Input::Tick);
                self.now < until
            }
            None => {
                self.now = self.now.max(until);
                self.input(Input::Tick);
                false
            }
        }
    }
}

impl Transport for InProcess {
    type Stream = Stream;

    fn authority(&self) -> &str {
        "127.0.0.1:6443"
    }

    fn now(&self) -> Duration {
        self.now
    }

    async fn sleep_until(&mut self, at: Duration) {
        while self.now < at && self.step(at) {}
    }

    async fn open(&mut self, call: &Call) -> Result<(Head, Stream), Error> {
        self.last += 1;
        let stream = self.last;
        let incoming = Incoming {
            bodiless: call.method == "HEAD",
            ..Incoming::default()
        };
        self.streams.insert(stream, incoming);
        let request = request(call, self.authority())?;
        self.input(Input::Connected {
            conn: ConnId(stream),
            replica: Replica::Primary,
            peer: None,
        });
        self.input(Input::Request {
            stream: StreamId(stream),
            conn: ConnId(stream),
            request,
        });
        let patience = self.now + ANSWER_LIMIT;
        loop {
            if let Some(head) = self
                .streams
                .get_mut(&stream)
                .and_then(|incoming| incoming.head.take())
            {
                return Ok((head, Stream(stream)));
            }
            if !self.step(patience) {
                return Err(Error::server(format!(
                    "{} {}: no answer within {ANSWER_LIMIT:?}",
                    call.method, call.path
                )));
            }
        }
    }

    async fn next(&mut self, stream: &mut Stream, until: Duration) -> Chunk {
        loop {
            let Some(incoming) = self.streams.get_mut(&stream.0) else {
                return Chunk::End;
            };
            if let Some(bytes) = incoming.chunks.pop_front() {
                if incoming.websocket {
                    return Chunk::Bytes(written(Frame::message(bytes, OpCode::Data(Data::Text), true)));
                }
                return Chunk::Bytes(bytes.to_vec());
            }
            match incoming.ended {
                Some(Ending::Eof) if std::mem::take(&mut incoming.websocket) => {
                    let close = CloseFrame {
                        code: CloseCode::Normal,
                        reason: "".into(),
                    };
                    return Chunk::Bytes(written(Frame::close(Some(close))));
                }
                Some(Ending::Eof) => return Chunk::End,
                Some(Ending::Stall) | None => {}
                Some(how) => return Chunk::Broken(how.word()),
            }
            if self.now >= until {
                return Chunk::TimeUp;
            }
            self.step(until);
        }
    }

    async fn upgrade(&mut self, stream: &mut Stream) -> Result<(), Error> {
        if let Some(incoming) = self.streams.get_mut(&stream.0) {
            incoming.websocket = true;
        }
        Ok(())
    }

    fn close(&mut self, stream: Stream) {
        self.streams.remove(&stream.0);
        self.input(Input::Disconnected {
            conn: ConnId(stream.0),
            by: Side::Client,
        });
    }

    async fn control(&mut self, control: Control) -> Result<(), Error> {
        match control {
            Control::Compact => self.input(Input::Control(server::Control::Compact)),
            Control::RestartApiserver => self.input(Input::Control(server::Control::RestartWatchCaches)),
        }
        Ok(())
    }

    fn fixture_is_there(&self) -> bool {
        false
    }
}

fn request(call: &Call, authority: &str) -> Result<HttpRequest, Error> {
    let wrong = |why: &dyn std::fmt::Display| Error::author(format!("{} {}: {why}", call.method, call.path));
    let token = match call.user {
        User::Admin => Some(ADMIN),
        User::Limited => Some(LIMITED),
        User::BadToken => Some("not-a-token"),
        User::Anonymous => None,
    };
    let mut headers = HeaderMap::new();
    for (name, value) in call.all_headers(authority, token.map(|token| format!("Bearer {token}"))) {
        let name = HeaderName::try_from(name).map_err(|why| wrong(&why))?;
        headers.insert(name, HeaderValue::try_from(value).map_err(|why| wrong(&why))?);
    }
    let (path, query) = call.path.split_once('?').unwrap_or((&call.path, ""));
    Ok(HttpRequest {
        method: Method::from_bytes(call.method.as_bytes()).map_err(|why| wrong(&why))?,
        path: path.to_owned(),
        query: query.into(),
        headers,
        body: Bytes::from(call.body.clone().unwrap_or_default()),
    })
}

fn written(frame: Frame) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame.format(&mut bytes).expect("a vector takes what is written");
    bytes
}

fn head(status: u16, headers: Vec<Header>, length: Option<u64>) -> Head {
    let mut headers: Vec<(String, String)> = headers
        .into_iter()
        .map(|(name, value)| {
            let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
            (name.as_str().to_owned(), value)
        })
        .collect();
    // The response to a WebSocket request has only headers of the server itself.
    if status != 101 && !headers.is_empty() {
        headers.push(("date".to_owned(), String::new()));
        match length {
            Some(length) => headers.push(("content-length".to_owned(), length.to_string())),
            None if matches!(status, 204 | 304) => {}
            None => headers.push(("transfer-encoding".to_owned(), "chunked".to_owned())),
        }
    }
    headers.sort();
    let usual = StatusCode::from_u16(status).ok();
    let words = reason_phrase(status)
        .or_else(|| usual.and_then(|status| status.canonical_reason()))
        .unwrap_or_default();
    Head {
        status,
        line: format!("HTTP/1.1 {status} {words}"),
        headers,
    }
}

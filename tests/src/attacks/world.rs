//! An in-process server without sockets. Its time does not advance.

use std::collections::BTreeMap;
use std::time::Duration;

use fake_apiserver::api::{Access, Header, HttpRequest};
use fake_apiserver::record::{ConnId, StreamId};
use fake_apiserver::scenario::ServerSettings;
use fake_apiserver::server::{Input, Output, Server};
use http::HeaderValue;

use super::Attack;

/// Bearer tokens of a user with all permissions, and of one with none.
const TOKEN: &str = "admin";
const LIMITED: &str = "limited";

/// A response, as far as it was received.
#[derive(Debug, Default, Clone)]
pub struct Received {
    /// HTTP status; 0: no head was received.
    pub status: u16,
    /// Headers.
    pub headers: Vec<Header>,
    /// Body.
    pub body: Vec<u8>,
}

impl Received {
    /// Returns the body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// A server.
#[derive(Debug)]
pub struct World {
    server: Server,
    streams: u64,
}

impl Default for World {
    fn default() -> Self {
        let access = Access {
            token: TOKEN.to_owned(),
            limited_token: Some(LIMITED.to_owned()),
            signing_secret: [7; 32],
        };
        Self {
            server: Server::standalone(ServerSettings::default(), 7).with_access(access),
            streams: 0,
        }
    }
}

impl World {
    /// Creates a server on which the attack's preconditions were sent.
    pub fn prepared_for(attack: &Attack, size: usize) -> Self {
        let mut world = Self::default();
        for request in (attack.before)(size) {
            world.send(request);
        }
        world
    }

    /// Sends a request as a user with all permissions.
    pub fn send(&mut self, request: HttpRequest) -> Received {
        self.send_with(TOKEN, request)
    }

    /// Sends a request as a user without permissions.
    pub fn send_limited(&mut self, request: HttpRequest) -> Received {
        self.send_with(LIMITED, request)
    }

    fn send_with(&mut self, token: &str, mut request: HttpRequest) -> Received {
        let bearer = HeaderValue::from_str(&format!("Bearer {token}")).expect("tokens are plain");
        request.headers.insert("authorization", bearer);
        self.streams += 1;
        let stream = StreamId(self.streams);
        let conn = ConnId(1);
        let input = Input::Request {
            stream,
            conn,
            request,
        };
        self.server.handle(Duration::ZERO, input);
        let mut answers: BTreeMap<StreamId, Received> = BTreeMap::new();
        let mut fenced = Vec::new();
        loop {
            while let Some(output) = self.server.poll_output() {
                match output {
                    Output::Head {
                        stream,
                        status,
                        headers,
                        ..
                    } => {
                        let answer = answers.entry(stream).or_default();
                        (answer.status, answer.headers) = (status, headers);
                    }
                    Output::Data { stream, bytes } => {
                        answers.entry(stream).or_default().body.extend_from_slice(&bytes);
                    }
                    Output::FlushBarrier { stream } => fenced.push(stream),
                    Output::Goaway { .. }
                    | Output::End { .. }
                    | Output::Call { .. }
                    | Output::Upstream { .. }
                    | Output::UpstreamWrite { .. }
                    | Output::Close { .. } => {}
                }
            }
            let Some(stream) = fenced.pop() else { break };
            self.server.handle(Duration::ZERO, Input::Flushed(stream));
        }
        answers.remove(&stream).unwrap_or_default()
    }
}

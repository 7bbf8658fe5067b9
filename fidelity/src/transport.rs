//! Interface of a player to a server: requests, streams with a read deadline, and time. A server at a socket uses real time,
//! one in this process virtual time.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::error::Error;
use crate::probe::{Control, User};

/// Longer than any response of a server: handlers time out after 60 s.
pub(crate) const ANSWER_LIMIT: Duration = Duration::from_secs(90);

/// One request, before default headers are added.
pub(crate) struct Call {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) user: User,
    /// Lower-case names; they override the defaults, and `None` removes a default.
    pub(crate) headers: BTreeMap<String, Option<String>>,
    pub(crate) body: Option<Vec<u8>>,
}

impl Call {
    /// Returns a request of the admin, with the default headers.
    pub(crate) fn new(method: &str, path: &str, body: Option<Vec<u8>>) -> Self {
        Self {
            method: method.to_owned(),
            path: path.to_owned(),
            user: User::Admin,
            headers: BTreeMap::new(),
            body,
        }
    }

    /// Returns all headers, by lower-case name.
    pub(crate) fn all_headers(
        &self,
        authority: &str,
        authorization: Option<String>,
    ) -> Vec<(String, String)> {
        let mut all: BTreeMap<String, Option<String>> = BTreeMap::new();
        all.insert("host".into(), Some(authority.to_owned()));
        all.insert("accept".into(), Some("application/json".into()));
        all.insert("user-agent".into(), Some("probe/1".into()));
        if let Some(value) = authorization {
            all.insert("authorization".into(), Some(value));
        }
        if self.body.is_some() {
            all.insert("content-type".into(), Some("application/json".into()));
        }
        for (name, value) in &self.headers {
            all.insert(name.to_ascii_lowercase(), value.clone());
        }
        all.into_iter()
            .filter_map(|(name, value)| value.map(|value| (name, value)))
            .collect()
    }
}

/// Head of a response.
pub(crate) struct Head {
    pub(crate) status: u16,
    pub(crate) line: String,
    /// Lower-case names, sorted.
    pub(crate) headers: Vec<(String, String)>,
}

impl Head {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }
}

/// A response that was read to its end.
pub(crate) struct ReadResponse {
    pub(crate) head: Head,
    pub(crate) body: Vec<u8>,
    /// Set if the body was cut: how.
    pub(crate) broken: Option<String>,
}

/// Result of a read from a body.
pub(crate) enum Chunk {
    Bytes(Vec<u8>),
    End,
    Broken(String),
    TimeUp,
}

/// A server.
pub(crate) trait Transport {
    /// Body of a response that is being received.
    type Stream;

    /// Returns the address, as the server reports it.
    fn authority(&self) -> &str;

    /// Returns the time of its clock, from any zero.
    fn now(&self) -> Duration;

    /// Waits.
    async fn sleep_until(&mut self, at: Duration);

    /// Waits until what was written has an effect; a server whose writes have one at once needs no time.
    async fn settle(&mut self, time: Duration) {
        let until = self.now() + time;
        self.sleep_until(until).await;
    }

    /// Sends a request and returns when the head is received.
    async fn open(&mut self, call: &Call) -> Result<(Head, Self::Stream), Error>;

    /// Returns the next bytes of a body, received until `until`.
    async fn next(&mut self, stream: &mut Self::Stream, until: Duration) -> Chunk;

    /// After a 101: turns the stream into the bare connection.
    async fn upgrade(&mut self, stream: &mut Self::Stream) -> Result<(), Error>;

    /// Disconnects.
    fn close(&mut self, stream: Self::Stream);

    /// Executes an operation outside of the API.
    async fn control(&mut self, control: Control) -> Result<(), Error>;

    /// Returns whether the fixture exists and must not be changed.
    fn fixture_is_there(&self) -> bool;

    /// Reads a body to its end; the second value is how it was cut, if it was.
    async fn read_to_end(&mut self, mut stream: Self::Stream) -> (Vec<u8>, Option<String>) {
        let mut body = Vec::new();
        loop {
            let until = self.now() + ANSWER_LIMIT;
            let broken = match self.next(&mut stream, until).await {
                Chunk::Bytes(bytes) => {
                    body.extend_from_slice(&bytes);
                    continue;
                }
                Chunk::End => None,
                Chunk::Broken(why) => Some(why),
                Chunk::TimeUp => Some(format!("nothing more within {ANSWER_LIMIT:?}")),
            };
            self.close(stream);
            return (body, broken);
        }
    }

    /// Sends a request and reads the response to its end.
    async fn send(&mut self, call: &Call) -> Result<ReadResponse, Error> {
        let (head, stream) = self.open(call).await?;
        let (body, broken) = self.read_to_end(stream).await;
        Ok(ReadResponse { head, body, broken })
    }
}

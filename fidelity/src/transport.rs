//! What a player needs of a server, wherever it is: requests, streams that are read until a moment, and time.
//! A server over a socket lives in real time, one in this process in its own.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::error::Error;
use crate::probe::{Control, User};

/// No answer of any server takes longer: handlers give up after 60 s.
pub(crate) const ANSWER_LIMIT: Duration = Duration::from_secs(90);

/// One request, before the headers every request has are added.
pub(crate) struct Call {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) user: User,
    /// Lower-case names; they win over the defaults, and `None` takes a default away.
    pub(crate) headers: BTreeMap<String, Option<String>>,
    pub(crate) body: Option<Vec<u8>>,
}

impl Call {
    /// As the admin, with the default headers.
    pub(crate) fn new(method: &str, path: &str, body: Option<Vec<u8>>) -> Self {
        Self {
            method: method.to_owned(),
            path: path.to_owned(),
            user: User::Admin,
            headers: BTreeMap::new(),
            body,
        }
    }

    /// All headers, by lower-case name.
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

/// The head of an answer.
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

/// An answer, read to its end.
pub(crate) struct Answer {
    pub(crate) head: Head,
    pub(crate) body: Vec<u8>,
    /// Set when the body broke off: how.
    pub(crate) broken: Option<String>,
}

/// What came of waiting for the next bytes of a body.
pub(crate) enum Chunk {
    Bytes(Vec<u8>),
    End,
    Broken(String),
    TimeUp,
}

/// A server.
pub(crate) trait Transport {
    /// The body of an answer on its way in.
    type Stream;

    /// Where it is, as it would name itself.
    fn authority(&self) -> &str;

    /// Its clock, from any zero.
    fn now(&self) -> Duration;

    /// Lets time pass.
    async fn sleep_until(&mut self, at: Duration);

    /// Sends a request and returns when the head is there.
    async fn open(&mut self, call: &Call) -> Result<(Head, Self::Stream), Error>;

    /// The next bytes of a body, waited for until `until`.
    async fn next(&mut self, stream: &mut Self::Stream, until: Duration) -> Chunk;

    /// After a 101: from here on the stream is the bare connection.
    async fn upgrade(&mut self, stream: &mut Self::Stream) -> Result<(), Error>;

    /// The reader goes away.
    fn close(&mut self, stream: Self::Stream);

    /// Does what no client of the API can ask for.
    async fn control(&mut self, control: Control) -> Result<(), Error>;

    /// The fixture is there already and stays as it is.
    fn fixture_is_there(&self) -> bool;

    /// Reads a body to its end; the second value says how it broke off, if it did.
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

    /// Sends a request and reads the answer to its end.
    async fn send(&mut self, call: &Call) -> Result<Answer, Error> {
        let (head, stream) = self.open(call).await?;
        let (body, broken) = self.read_to_end(stream).await;
        Ok(Answer { head, body, broken })
    }
}

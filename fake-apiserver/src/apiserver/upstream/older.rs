//! Older answers to lists: what a stale watch cache answers with. Each is kept for the user who got it, and for nobody else.

use std::collections::VecDeque;
use std::time::Duration;

use apimachinery::path::query_pairs;
use bytes::Bytes;
use http::HeaderMap;
use http::header::{ACCEPT, AUTHORIZATION, DATE};
use sha2::{Digest as _, Sha256};
use trace::record::{StreamId, What};

use crate::api::{Header, HttpRequest};
use crate::apiserver::exchange::{Exchange, Head};
use crate::upstream::document::ListSummary;

/// Longest answer that is kept, in bytes.
const ANSWER_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Bytes of all answers that are kept.
const ANSWERS_BYTES_MAX: usize = 16 * 1024 * 1024;

/// A response as it was sent, to be sent again when it is stale.
#[derive(Debug)]
pub(super) struct Copied {
    headers: Vec<Header>,
    parts: Vec<Bytes>,
    bytes: usize,
}

impl Copied {
    /// Returns the beginning of one: its head, without the date.
    pub(super) fn new(headers: &[Header]) -> Self {
        let headers = headers.iter().filter(|(name, _)| *name != DATE);
        Self {
            headers: headers.cloned().collect(),
            parts: Vec::new(),
            bytes: 0,
        }
    }

    /// Adds a part. Returns false if it is too long to be kept.
    pub(super) fn push(&mut self, part: &Bytes) -> bool {
        self.bytes += part.len();
        self.parts.push(part.clone());
        self.bytes <= ANSWER_BYTES_MAX
    }

    /// Sends it again.
    pub(super) fn send_on(&self, exchange: &mut Exchange, list: ListSummary) {
        exchange.set_head(Head {
            status: 200,
            headers: self.headers.clone(),
            scripted: false,
        });
        for part in &self.parts {
            exchange.push_part(part.clone());
        }
        let record = page_record(exchange.id, list);
        exchange.end_parts(record);
    }
}

/// Returns the record of a list.
pub(super) fn page_record(stream: StreamId, list: ListSummary) -> What {
    What::Page {
        stream,
        resource_version: list.resource_version,
        continue_token: list.continue_token,
        remaining: list.remaining,
        items: list.items,
        scripted: false,
    }
}

/// What makes two lists the same: user, collection, selection and representation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ListKey([u8; 32]);

impl ListKey {
    /// Returns the key of a list; `headers`: those of the request for the upstream. Credentials are part of the digest only.
    pub(super) fn of(request: &HttpRequest, headers: &HeaderMap) -> Self {
        let mut digest = Sha256::new();
        let mut add = |part: &[u8]| {
            digest.update((part.len() as u64).to_le_bytes());
            digest.update(part);
        };
        for (name, value) in headers {
            if name == AUTHORIZATION || name.as_str().starts_with("impersonate-") {
                add(name.as_str().as_bytes());
                add(value.as_bytes());
            }
        }
        add(request.path.as_bytes());
        for (name, value) in query_pairs(request.query.as_str()) {
            if name == "labelSelector" || name == "fieldSelector" {
                add(name.as_bytes());
                add(value.as_bytes());
            }
        }
        for value in request.headers.get_all(ACCEPT) {
            add(value.as_bytes());
        }
        Self(digest.finalize().into())
    }
}

/// An answer, and when it was complete.
#[derive(Debug)]
struct Older {
    at: Duration,
    key: ListKey,
    answer: Copied,
    list: ListSummary,
}

impl Older {
    /// Approximate size, in bytes.
    fn bytes(&self) -> usize {
        let items = self.list.items.iter();
        let items: usize = items
            .map(|item| size_of_val(item) + item.key.len() + item.uid.len() + item.resource_version.len())
            .sum();
        size_of::<Self>() + self.answer.bytes + items
    }
}

/// The latest answers, in order of time.
#[derive(Debug, Default)]
pub(super) struct OlderAnswers {
    answers: VecDeque<Older>,
    bytes: usize,
}

impl OlderAnswers {
    /// Bytes of all answers.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Keeps an answer, and drops the oldest for it.
    pub(super) fn keep(&mut self, at: Duration, key: ListKey, answer: Copied, list: ListSummary) {
        let older = Older {
            at,
            key,
            answer,
            list,
        };
        self.bytes += older.bytes();
        self.answers.push_back(older);
        while self.bytes > ANSWERS_BYTES_MAX
            && let Some(oldest) = self.answers.pop_front()
        {
            self.bytes -= oldest.bytes();
        }
    }

    /// Returns the latest answer to a list that is not newer than `as_of`.
    pub(super) fn find(&self, key: &ListKey, as_of: Duration) -> Option<(&Copied, &ListSummary)> {
        let mut answers = self.answers.iter().rev();
        let found = answers.find(|older| older.at <= as_of && older.key == *key)?;
        Some((&found.answer, &found.list))
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderValue, Method};

    use super::*;

    fn list(query: &str, token: &str) -> HttpRequest {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, HeaderValue::try_from(token).expect("a value"));
        HttpRequest {
            method: Method::GET,
            path: "/api/v1/pods".to_owned(),
            query: query.into(),
            headers,
            body: Bytes::new(),
        }
    }

    fn answer(bytes: usize) -> Copied {
        let mut answer = Copied::new(&[]);
        answer.push(&Bytes::from(vec![b' '; bytes]));
        answer
    }

    #[test]
    fn a_list_gets_its_own_answer_of_that_time() {
        let key = |query, token| {
            let request = list(query, token);
            ListKey::of(&request, &request.headers)
        };
        let mut older = OlderAnswers::default();
        let at = Duration::from_secs;
        for (second, version) in [(1, "5"), (3, "7")] {
            let list = ListSummary {
                resource_version: version.to_owned(),
                ..ListSummary::default()
            };
            older.keep(at(second), key("limit=500", "Bearer a"), answer(1), list);
        }
        let found = |query, token, second| {
            let found = older.find(&key(query, token), at(second));
            found.map(|(_, list)| list.resource_version.clone())
        };
        assert_eq!(found("resourceVersion=0", "Bearer a", 2), Some("5".to_owned()));
        assert_eq!(found("resourceVersion=0", "Bearer a", 3), Some("7".to_owned()));
        assert_eq!(found("resourceVersion=0", "Bearer a", 0), None);
        assert_eq!(found("resourceVersion=0", "Bearer b", 9), None, "of another user");
        assert_eq!(found("resourceVersion=0&labelSelector=a", "Bearer a", 9), None);
    }

    #[test]
    fn the_oldest_answers_are_dropped() {
        let mut older = OlderAnswers::default();
        let request = list("", "Bearer a");
        let key = ListKey::of(&request, &request.headers);
        for second in 0..20 {
            let at = Duration::from_secs(second);
            older.keep(at, key.clone(), answer(1024 * 1024), ListSummary::default());
        }
        assert!(older.bytes() <= ANSWERS_BYTES_MAX);
        assert!(older.find(&key, Duration::from_secs(2)).is_none());
        assert!(older.find(&key, Duration::from_secs(19)).is_some());
    }
}

//! A list of one resource in pages: which page is requested next, and what becomes of a response. No I/O.
//!
//! Source of the rules: the API concepts page of Kubernetes, "Retrieving large results sets in chunks" and "Resource versions".

use std::time::Duration;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

/// Objects of a page.
const LIMIT: usize = 500;

/// Times that a list is begun again because its pages expire.
const RESTARTS_MAX: u32 = 5;

/// Times that a page is requested again.
const RETRIES_MAX: u32 = 5;

/// Wait before a page is requested again, unless the server names one, and the longest that it may name.
const WAIT: Duration = Duration::from_secs(1);
const WAIT_MAX: Duration = Duration::from_secs(30);

/// A list in progress.
#[derive(Debug)]
pub(crate) struct Listing {
    /// Path of the collection, and a selector.
    target: String,
    /// Version to read at; `None`: the newest.
    at: Option<String>,
    token: Option<String>,
    limit: usize,
    restarts: u32,
    retries: u32,
}

/// What came back for a page.
#[derive(Debug)]
pub(crate) enum Answer {
    /// A page: its version, and the continue token of the next, which may be empty.
    Page { version: String, token: String },
    /// Another status.
    Status {
        code: u16,
        message: String,
        /// `Retry-After`.
        after: Option<Duration>,
    },
    /// More bytes than a page may have.
    TooLarge,
    /// No response, or not all of it.
    Lost(String),
}

/// What becomes of it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The page is part of the list, at this version; more pages follow.
    Next(String),
    /// The page is the last one, at this version.
    Done(String),
    /// Request the page again, after this time.
    Again(Duration),
    /// The pages so far are not of one version: drop them, and begin again.
    Restart,
    /// The resource cannot be read, for this reason.
    LeaveOut(String),
    /// The snapshot cannot be taken.
    Fail(Failing),
}

/// Why a snapshot cannot be taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failing {
    /// The credentials are no longer accepted.
    Expired,
    /// The pages of the list expire before all are read.
    NeverOneVersion,
    /// A single object has more bytes than a page may have.
    TooLarge,
    /// There is no response.
    Lost(String),
}

impl Listing {
    /// Begins the list of a collection at a version, or at the newest one. `selector`: a field selector.
    pub(crate) fn new(path: &str, selector: Option<&str>, at: Option<String>) -> Self {
        let selector = selector.map(|selector| format!("&fieldSelector={}", encoded(selector)));
        Self {
            target: format!("{path}?limit={{limit}}{}", selector.unwrap_or_default()),
            at,
            token: None,
            limit: LIMIT,
            restarts: 0,
            retries: 0,
        }
    }

    /// Path and query of the next request.
    pub(crate) fn target(&self) -> String {
        let mut target = self.target.replace("{limit}", &self.limit.to_string());
        match (&self.token, &self.at) {
            (Some(token), _) => target.push_str(&format!("&continue={}", encoded(token))),
            (None, Some(version)) => target.push_str(&format!(
                "&resourceVersion={}&resourceVersionMatch=Exact",
                encoded(version)
            )),
            (None, None) => {}
        }
        target
    }

    /// Decides what becomes of a response.
    pub(crate) fn step(&mut self, answer: Answer) -> Step {
        match answer {
            Answer::Page { version, token } => {
                self.retries = 0;
                self.token = Some(token).filter(|token| !token.is_empty());
                match self.token {
                    Some(_) => Step::Next(version),
                    None => Step::Done(version),
                }
            }
            Answer::Status { code, message, after } => self.refused(code, message, after),
            Answer::TooLarge if self.limit == 1 => Step::Fail(Failing::TooLarge),
            Answer::TooLarge => {
                self.limit = (self.limit / 4).max(1);
                Step::Again(Duration::ZERO)
            }
            Answer::Lost(why) => match self.retry(WAIT) {
                Some(again) => again,
                None => Step::Fail(Failing::Lost(why)),
            },
        }
    }

    fn refused(&mut self, code: u16, message: String, after: Option<Duration>) -> Step {
        match (code, &self.token, &self.at) {
            (401, ..) => Step::Fail(Failing::Expired),
            (410, Some(_), _) if self.restarts == RESTARTS_MAX => Step::Fail(Failing::NeverOneVersion),
            // Its continue token is of a newer version: the pages would not fit together.
            (410, Some(_), _) => {
                self.restarts += 1;
                self.token = None;
                Step::Restart
            }
            // The version is compacted, not reached by this storage, or not supported.
            (400 | 410 | 504, None, Some(_)) => {
                self.at = None;
                Step::Again(Duration::ZERO)
            }
            (429 | 500 | 502 | 503 | 504, ..) => match self.retry(after.unwrap_or(WAIT)) {
                Some(again) => again,
                None => Step::LeaveOut(format!("the server answers {code}: {message}")),
            },
            (403, ..) => Step::LeaveOut("forbidden".to_owned()),
            (404..=406, ..) => Step::LeaveOut("it cannot be listed".to_owned()),
            _ => Step::LeaveOut(format!("the server answers {code}: {message}")),
        }
    }

    fn retry(&mut self, after: Duration) -> Option<Step> {
        self.retries += 1;
        (self.retries <= RETRIES_MAX).then(|| Step::Again(after.min(WAIT_MAX)))
    }
}

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(token: &str) -> Answer {
        Answer::Page {
            version: "10".to_owned(),
            token: token.to_owned(),
        }
    }

    fn status(code: u16) -> Answer {
        Answer::Status {
            code,
            message: "m".to_owned(),
            after: None,
        }
    }

    fn next() -> Step {
        Step::Next("10".to_owned())
    }

    fn listing(at: Option<&str>) -> Listing {
        Listing::new("/api/v1/pods", None, at.map(str::to_owned))
    }

    #[test]
    fn pages_follow_each_other_to_the_last() {
        let mut list = Listing::new(
            "/api/v1/namespaces",
            Some("metadata.name=a"),
            Some("7".to_owned()),
        );
        assert_eq!(
            list.target(),
            "/api/v1/namespaces?limit=500&fieldSelector=metadata%2Ename%3Da&resourceVersion=7&resourceVersionMatch=Exact"
        );
        assert_eq!(list.step(page("t=")), next());
        assert_eq!(
            list.target(),
            "/api/v1/namespaces?limit=500&fieldSelector=metadata%2Ename%3Da&continue=t%3D"
        );
        assert_eq!(list.step(page("")), Step::Done("10".to_owned()));
    }

    #[test]
    fn an_expired_token_begins_again_and_not_for_ever() {
        let mut list = listing(None);
        for _ in 0..RESTARTS_MAX {
            assert_eq!(list.step(page("t")), next());
            assert_eq!(list.step(status(410)), Step::Restart);
            assert_eq!(list.target(), "/api/v1/pods?limit=500");
        }
        assert_eq!(list.step(page("t")), next());
        assert_eq!(list.step(status(410)), Step::Fail(Failing::NeverOneVersion));
    }

    #[test]
    fn a_version_that_is_gone_is_replaced_by_the_newest() {
        for code in [400, 410, 504] {
            let mut list = listing(Some("7"));
            assert_eq!(list.step(status(code)), Step::Again(Duration::ZERO));
            assert_eq!(list.target(), "/api/v1/pods?limit=500");
        }
    }

    #[test]
    fn a_busy_server_is_waited_for_and_then_left_out() {
        let mut list = listing(None);
        let busy = |after| Answer::Status {
            code: 429,
            message: "m".to_owned(),
            after,
        };
        assert_eq!(
            list.step(busy(Some(Duration::from_secs(7)))),
            Step::Again(Duration::from_secs(7))
        );
        assert_eq!(
            list.step(busy(Some(Duration::from_secs(700)))),
            Step::Again(WAIT_MAX)
        );
        assert_eq!(list.step(page("t")), next());
        for _ in 0..RETRIES_MAX {
            assert_eq!(list.step(status(503)), Step::Again(WAIT));
        }
        assert_eq!(
            list.step(status(503)),
            Step::LeaveOut("the server answers 503: m".to_owned())
        );
    }

    #[test]
    fn what_cannot_be_read_is_left_out_and_lost_credentials_end_it() {
        assert_eq!(
            listing(None).step(status(403)),
            Step::LeaveOut("forbidden".to_owned())
        );
        assert_eq!(
            listing(None).step(status(405)),
            Step::LeaveOut("it cannot be listed".to_owned())
        );
        assert_eq!(listing(None).step(status(401)), Step::Fail(Failing::Expired));
    }

    #[test]
    fn large_pages_become_smaller() {
        let mut list = listing(None);
        for limit in [125, 31, 7, 1] {
            assert_eq!(list.step(Answer::TooLarge), Step::Again(Duration::ZERO));
            assert_eq!(list.target(), format!("/api/v1/pods?limit={limit}"));
        }
        assert_eq!(list.step(Answer::TooLarge), Step::Fail(Failing::TooLarge));
    }
}

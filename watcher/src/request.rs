//! What a watcher asks for, and how that is written as a query. Knows no HTTP client.

use crate::config::Config;
use crate::version::ResourceVersion;

/// A request for the collection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// One page of a LIST.
    List {
        /// At most so many items; `None`: all.
        limit: Option<u32>,
        /// Where it goes on.
        from: ListFrom,
    },
    /// A WATCH for what came after a version.
    Watch {
        /// The version.
        resource_version: ResourceVersion,
        /// When the server should end it.
        timeout_seconds: u32,
        /// Ask for bookmarks.
        bookmarks: bool,
    },
    /// A WATCH that begins with the whole set (KEP-3157).
    StreamingList {
        /// Which state to begin with.
        at: At,
        /// When the server should end it.
        timeout_seconds: u32,
    },
}

/// Where a page of a LIST begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListFrom {
    /// At the beginning, of this state.
    Start(At),
    /// Where the page before it ended. Neither `resourceVersion` nor its match go with a token (kube#1278).
    Continue(String),
}

/// Which state a set is read at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum At {
    /// The newest.
    MostRecent,
    /// Any the server has at hand.
    Any,
    /// This or a newer one.
    NotOlderThan(ResourceVersion),
}

impl Request {
    /// The query, percent-encoded, without the question mark; selectors are those of `config`, the same on every
    /// request.
    ///
    /// Source: API concepts; the legal combinations are those of apimachinery's `ValidateListOptions`.
    pub fn query(&self, config: &Config) -> String {
        let mut query = Query::default();
        match self {
            Self::List { .. } => {}
            Self::Watch {
                timeout_seconds,
                bookmarks,
                ..
            } => {
                query.push("watch", "true");
                query.push("timeoutSeconds", &timeout_seconds.to_string());
                if *bookmarks {
                    query.push("allowWatchBookmarks", "true");
                }
            }
            Self::StreamingList { timeout_seconds, .. } => {
                query.push("watch", "true");
                query.push("timeoutSeconds", &timeout_seconds.to_string());
                query.push("allowWatchBookmarks", "true");
                query.push("sendInitialEvents", "true");
            }
        }
        if let Some(fields) = &config.field_selector {
            query.push("fieldSelector", fields);
        }
        if let Some(labels) = &config.label_selector {
            query.push("labelSelector", labels);
        }
        match self {
            Self::List { limit, from } => {
                if let Some(limit) = limit {
                    query.push("limit", &limit.to_string());
                }
                match from {
                    ListFrom::Continue(token) => query.push("continue", token),
                    ListFrom::Start(at) => {
                        if let Some(version) = at.resource_version() {
                            query.push("resourceVersion", version);
                            query.push("resourceVersionMatch", "NotOlderThan");
                        }
                    }
                }
            }
            Self::Watch { resource_version, .. } => query.push("resourceVersion", resource_version.as_str()),
            Self::StreamingList { at, .. } => {
                // The match is required with sendInitialEvents, also where the version is unset.
                query.push("resourceVersionMatch", "NotOlderThan");
                if let Some(version) = at.resource_version() {
                    query.push("resourceVersion", version);
                }
            }
        }
        query.0
    }
}

impl At {
    /// A server that lags may answer with a state older than its newest.
    pub(crate) fn may_be_old(&self) -> bool {
        match self {
            Self::MostRecent => false,
            Self::Any | Self::NotOlderThan(_) => true,
        }
    }

    fn resource_version(&self) -> Option<&str> {
        match self {
            Self::MostRecent => None,
            Self::Any => Some("0"),
            Self::NotOlderThan(version) => Some(version.as_str()),
        }
    }
}

#[derive(Default)]
struct Query(String);

impl Query {
    fn push(&mut self, name: &str, value: &str) {
        if !self.0.is_empty() {
            self.0.push('&');
        }
        self.0.push_str(name);
        self.0.push('=');
        for byte in value.bytes() {
            // RFC 3986, 2.3: the unreserved characters; everything else is encoded, so tokens arrive verbatim.
            if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
                self.0.push(char::from(byte));
            } else {
                self.0.push('%');
                self.0.push(char::from(HEX[usize::from(byte >> 4)]));
                self.0.push(char::from(HEX[usize::from(byte & 15)]));
            }
        }
    }
}

const HEX: &[u8; 16] = b"0123456789ABCDEF";

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn version(text: &str) -> ResourceVersion {
        ResourceVersion::new(text).unwrap()
    }

    #[rstest]
    #[case::first_page(Request::List { limit: Some(2), from: ListFrom::Start(At::MostRecent) }, "limit=2")]
    #[case::any(
        Request::List { limit: Some(2), from: ListFrom::Start(At::Any) },
        "limit=2&resourceVersion=0&resourceVersionMatch=NotOlderThan"
    )]
    #[case::not_older_than(
        Request::List { limit: None, from: ListFrom::Start(At::NotOlderThan(version("v1:a+b/c="))) },
        "resourceVersion=v1%3Aa%2Bb%2Fc%3D&resourceVersionMatch=NotOlderThan"
    )]
    #[case::token(
        Request::List { limit: Some(2), from: ListFrom::Continue("aZ0-_=+/&%".into()) },
        "limit=2&continue=aZ0-_%3D%2B%2F%26%25"
    )]
    #[case::watch(
        Request::Watch { resource_version: version("7"), timeout_seconds: 290, bookmarks: true },
        "watch=true&timeoutSeconds=290&allowWatchBookmarks=true&resourceVersion=7"
    )]
    #[case::streaming(
        Request::StreamingList { at: At::MostRecent, timeout_seconds: 290 },
        "watch=true&timeoutSeconds=290&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
    )]
    fn a_query_has_what_the_api_allows_and_no_more(#[case] request: Request, #[case] expected: &str) {
        assert_eq!(request.query(&Config::default()), expected);
    }

    #[test]
    fn selectors_go_with_every_request() {
        let config = Config::default()
            .labels("env in (a,b),!x")
            .fields("metadata.name=foo");
        let selectors = "fieldSelector=metadata.name%3Dfoo&labelSelector=env%20in%20%28a%2Cb%29%2C%21x";
        for request in [
            Request::List {
                limit: Some(2),
                from: ListFrom::Continue("t".into()),
            },
            Request::List {
                limit: Some(2),
                from: ListFrom::Start(At::MostRecent),
            },
            Request::Watch {
                resource_version: version("7"),
                timeout_seconds: 1,
                bookmarks: false,
            },
            Request::StreamingList {
                at: At::Any,
                timeout_seconds: 1,
            },
        ] {
            assert!(request.query(&config).contains(selectors));
        }
    }
}

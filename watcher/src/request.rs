//! Requests of a watcher and their query strings. Independent of any HTTP client.

use crate::config::Config;
use crate::version::ResourceVersion;

/// A request to the collection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// One page of a LIST.
    List {
        /// Maximum number of items; `None`: all.
        limit: Option<u32>,
        /// Start of the page.
        from: ListFrom,
    },
    /// A WATCH for changes after a resourceVersion.
    Watch {
        /// The resourceVersion.
        resource_version: ResourceVersion,
        /// `timeoutSeconds`, after which the server should end it.
        timeout_seconds: u32,
        /// Whether to request bookmarks.
        bookmarks: bool,
    },
    /// A WATCH that starts with initial events (KEP-3157).
    StreamingList {
        /// Minimum state of the initial events.
        at: At,
        /// `timeoutSeconds`, after which the server should end it.
        timeout_seconds: u32,
    },
}

/// Start of a LIST page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListFrom {
    /// The first page, at this state.
    Start(At),
    /// The page after this continue token. Sent without `resourceVersion` and `resourceVersionMatch` (kube#1278).
    Continue(String),
}

/// The state at which a snapshot is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum At {
    /// The most recent.
    MostRecent,
    /// Any state the server has cached.
    Any,
    /// This or a newer state.
    NotOlderThan(ResourceVersion),
}

impl Request {
    /// Returns the percent-encoded query without the question mark. The selectors of `config` are part of every
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
                // `sendInitialEvents` requires the match, even without a version.
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
    /// Returns true if a lagging server may respond with an older state than its newest.
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
            // Unreserved characters of RFC 3986, 2.3; everything else is encoded, so tokens arrive verbatim.
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

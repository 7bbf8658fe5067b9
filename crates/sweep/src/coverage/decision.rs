//! Decision tables of the fake as requests and responses: LIST by version, match and paging; WATCH by version and
//! streaming list.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use fake_apiserver::record::{ExchangeRecord, FrameType, Group, StreamId, Verb, What};

/// Responses, as columns.
pub const ANSWERS: [&str; 7] = [
    "page",
    "last page",
    "opened",
    "410",
    "504",
    "other refusal",
    "ERROR 410 first",
];

const VERSIONS: [&str; 3] = ["unset", "0", "exact"];
const MATCHES: [&str; 3] = ["", " Exact", " NotOlderThan"];
const PAGING: [&str; 3] = ["", " limit", " continue"];

/// Returns all rows: the options of a LIST, and those of a WATCH.
pub fn requests() -> Vec<String> {
    let mut rows = Vec::new();
    for version in VERSIONS {
        for matched in MATCHES {
            for paging in PAGING {
                rows.push(format!("LIST rv={version}{matched}{paging}"));
            }
        }
    }
    for version in VERSIONS {
        rows.push(format!("WATCH rv={version}"));
        rows.push(format!("WATCH-LIST rv={version}"));
    }
    rows
}

/// Requests whose response is in progress.
#[derive(Debug, Default)]
pub(super) struct Decisions {
    /// Row by request, until the response is known.
    open: BTreeMap<StreamId, usize>,
    /// Watches that were opened and received nothing yet.
    silent: BTreeMap<StreamId, usize>,
}

static ROWS: LazyLock<Vec<String>> = LazyLock::new(requests);

impl Decisions {
    /// Processes a record; returns request and response if it completes one.
    pub(super) fn take(&mut self, what: &What) -> Option<(&'static str, &'static str)> {
        let (row, answer) = match what.group() {
            Group::Exchange(ExchangeRecord::Request {
                stream, verb, query, ..
            }) => {
                self.open.insert(*stream, row(*verb, query)?);
                return None;
            }
            Group::Exchange(ExchangeRecord::Head {
                stream,
                status,
                scripted: false,
                ..
            }) => match status {
                200 => {
                    let row = *self.open.get(stream)?;
                    if row < LISTS {
                        return None;
                    }
                    self.open.remove(stream);
                    self.silent.insert(*stream, row);
                    (row, "opened")
                }
                410 => (self.open.remove(stream)?, "410"),
                504 => (self.open.remove(stream)?, "504"),
                _ => (self.open.remove(stream)?, "other refusal"),
            },
            Group::Exchange(ExchangeRecord::Head { stream, .. }) => {
                self.open.remove(stream);
                return None;
            }
            Group::Exchange(ExchangeRecord::Page {
                stream,
                continue_token,
                scripted: false,
                ..
            }) => {
                let answer = if continue_token.is_empty() {
                    "last page"
                } else {
                    "page"
                };
                (self.open.remove(stream)?, answer)
            }
            Group::Exchange(ExchangeRecord::Frame { stream, frame }) => {
                let row = self.silent.remove(stream)?;
                let is_expired = matches!(frame.kind, FrameType::Error { code: 410, .. }) && !frame.scripted;
                if !is_expired {
                    return None;
                }
                (row, "ERROR 410 first")
            }
            Group::Connection(_)
            | Group::Exchange(
                ExchangeRecord::Page { .. }
                | ExchangeRecord::Body { .. }
                | ExchangeRecord::Torn { .. }
                | ExchangeRecord::End { .. }
                | ExchangeRecord::Withheld { .. }
                | ExchangeRecord::Sent { .. }
                | ExchangeRecord::Webhook { .. },
            )
            | Group::Store(_)
            | Group::Script(_)
            | Group::Run(_) => return None,
        };
        Some((ROWS.get(row)?, answer))
    }
}

/// Number of LIST rows, which come first.
const LISTS: usize = VERSIONS.len() * MATCHES.len() * PAGING.len();

fn row(verb: Verb, query: &[(String, String)]) -> Option<usize> {
    let of = |name: &str| {
        let found = query.iter().find(|(key, _)| key == name);
        found.map_or("", |(_, value)| value.as_str())
    };
    let version = match of("resourceVersion") {
        "" => 0,
        "0" => 1,
        _ => 2,
    };
    let matched = match of("resourceVersionMatch") {
        "" => 0,
        "Exact" => 1,
        _ => 2,
    };
    let paging = match (of("continue"), of("limit")) {
        ("", "" | "0") => 0,
        ("", _) => 1,
        _ => 2,
    };
    match verb {
        Verb::List => Some((version * MATCHES.len() + matched) * PAGING.len() + paging),
        Verb::Watch => Some(LISTS + 2 * version),
        Verb::WatchList => Some(LISTS + 2 * version + 1),
        Verb::Other => None,
    }
}

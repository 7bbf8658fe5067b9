//! Life cycle of a list/watch client, inferred from requests and responses: its states and inputs.
//!
//! The states are those of the watcher's state machine, but derived from the wire, so that they apply to any client.

use std::collections::BTreeMap;

use fake_apiserver::fault::Ending;
use fake_apiserver::record::{
    ConnectionRecord, ExchangeRecord, FrameType, Group, Record, RunRecord, Side, StreamId, Verb,
};
use fake_apiserver::report::Report;

/// States, in the order of a life cycle.
pub const PHASES: [&str; 9] = [
    "empty",
    "listing",
    "paging",
    "listed",
    "opening initial watch",
    "initial watch",
    "watching",
    "probing",
    "between requests",
];

/// Inputs, error responses first.
pub const INPUTS: [&str; 30] = [
    "200",
    "400",
    "401",
    "403",
    "404",
    "410",
    "422",
    "429",
    "429 with Retry-After",
    "other 4xx",
    "500",
    "503",
    "503 with Retry-After",
    "504",
    "other 5xx",
    "page",
    "last page",
    "torn page",
    "other body",
    "change",
    "bookmark",
    "end marker",
    "ERROR 410",
    "other ERROR",
    "torn line",
    "no event",
    "end",
    "cut",
    "given up by the client",
    "connection refused",
];

/// State of a client.
#[derive(Debug, Default)]
pub(super) struct Life {
    open: BTreeMap<StreamId, Request>,
    current: Option<StreamId>,
    started: bool,
    has_set: bool,
}

#[derive(Debug)]
struct Request {
    verb: Verb,
    is_later_page: bool,
    is_probe: bool,
    opened: bool,
    marked: bool,
}

impl Life {
    /// Returns the state, by the newest open request.
    pub(super) fn phase(&self) -> &'static str {
        match self.current.and_then(|stream| self.open.get(&stream)) {
            Some(request) => request.phase(),
            None if self.started => "between requests",
            None => "empty",
        }
    }

    /// Processes a record; returns the inputs with the states in which they arrived.
    pub(super) fn take(&mut self, record: &Record) -> Vec<(&'static str, &'static str)> {
        let stream = record.what.stream();
        let phase = match stream.and_then(|stream| self.open.get(&stream)) {
            Some(request) => request.phase(),
            None => self.phase(),
        };
        let inputs = match record.what.group() {
            Group::Exchange(ExchangeRecord::Request {
                stream, verb, query, ..
            }) => {
                if *verb != Verb::Other {
                    self.started = true;
                    let of = |name: &str| query.iter().find(|(key, _)| key == name).map(|(_, value)| value);
                    let is_later_page = of("continue").is_some_and(|token| !token.is_empty());
                    let is_probe = *verb == Verb::List
                        && self.has_set
                        && !is_later_page
                        && of("limit").is_some_and(|limit| limit == "1");
                    self.current = Some(*stream);
                    self.open.insert(
                        *stream,
                        Request {
                            verb: *verb,
                            is_later_page,
                            is_probe,
                            opened: false,
                            marked: false,
                        },
                    );
                }
                Vec::new()
            }
            Group::Exchange(ExchangeRecord::Head {
                stream,
                status,
                retry_after,
                ..
            }) => {
                let Some(request) = self.open.get_mut(stream) else {
                    return Vec::new();
                };
                request.opened = *status == 200;
                vec![status_word(*status, retry_after.is_some())]
            }
            Group::Exchange(ExchangeRecord::Page { continue_token, .. }) => {
                self.has_set = true;
                vec![if continue_token.is_empty() {
                    "last page"
                } else {
                    "page"
                }]
            }
            Group::Exchange(ExchangeRecord::Torn { .. }) => vec!["torn page"],
            Group::Exchange(ExchangeRecord::Body { .. }) => vec!["other body"],
            Group::Exchange(ExchangeRecord::Frame { stream, frame }) => {
                let word = if !frame.whole() {
                    "torn line"
                } else {
                    frame_word(&frame.kind)
                };
                if word == "end marker"
                    && let Some(request) = self.open.get_mut(stream)
                {
                    request.marked = true;
                    self.has_set = true;
                }
                vec![word]
            }
            Group::Exchange(ExchangeRecord::End { stream, how, by }) => {
                self.open.remove(stream);
                vec![match (by, how) {
                    (Side::Client, _) => "given up by the client",
                    (Side::Server, Ending::Eof) => "end",
                    (Side::Server, _) => "cut",
                }]
            }
            Group::Connection(ConnectionRecord::Refused) => vec!["connection refused"],
            Group::Run(RunRecord::Reported(Report::Ended)) => {
                self.current = None;
                Vec::new()
            }
            Group::Connection(
                ConnectionRecord::Connected { .. }
                | ConnectionRecord::Goaway { .. }
                | ConnectionRecord::Disconnected { .. },
            )
            | Group::Exchange(
                ExchangeRecord::Withheld { .. }
                | ExchangeRecord::Sent { .. }
                | ExchangeRecord::Webhook { .. },
            )
            | Group::Store(_)
            | Group::Script(_)
            | Group::Run(
                RunRecord::Reported(_)
                | RunRecord::ClientExited { .. }
                | RunRecord::ClientRestarted { .. }
                | RunRecord::StopRequested
                | RunRecord::LeftOpen { .. }
                | RunRecord::RunEnded(_),
            ) => Vec::new(),
        };
        inputs.into_iter().map(|input| (phase, input)).collect()
    }
}

impl Request {
    fn phase(&self) -> &'static str {
        match self.verb {
            Verb::List if self.is_probe => "probing",
            Verb::List if self.is_later_page => "paging",
            Verb::List | Verb::Other => "listing",
            Verb::Watch if self.opened => "watching",
            Verb::Watch => "listed",
            Verb::WatchList if self.marked => "watching",
            Verb::WatchList if self.opened => "initial watch",
            Verb::WatchList => "opening initial watch",
        }
    }
}

fn status_word(status: u16, retry_after: bool) -> &'static str {
    match (status, retry_after) {
        (200, _) => "200",
        (400, _) => "400",
        (401, _) => "401",
        (403, _) => "403",
        (404, _) => "404",
        (410, _) => "410",
        (422, _) => "422",
        (429, true) => "429 with Retry-After",
        (429, false) => "429",
        (500, _) => "500",
        (503, true) => "503 with Retry-After",
        (503, false) => "503",
        (504, _) => "504",
        (501.., _) => "other 5xx",
        (..=499, _) => "other 4xx",
    }
}

fn frame_word(kind: &FrameType) -> &'static str {
    match kind {
        FrameType::Added | FrameType::Modified | FrameType::Deleted => "change",
        FrameType::Bookmark {
            initial_events_end: Some(value),
        } if value == "true" => "end marker",
        FrameType::Bookmark { .. } => "bookmark",
        FrameType::Error { code: 410, .. } => "ERROR 410",
        FrameType::Error { .. } => "other ERROR",
        FrameType::Raw => "no event",
    }
}

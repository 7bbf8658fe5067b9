//! Normalises a trace to compare runs: removes times, connections, chunk boundaries, and the order of unrelated
//! events.
//!
//! A story has lanes. The order counts within a lane, but not between lanes, because a real socket may deliver later
//! what the simulation delivers immediately.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use fake_apiserver::fault::Ending;
use fake_apiserver::record::{
    ConnectionRecord, ExchangeRecord, Frame, FrameType, Group, ObjectRef, Record, RunEnd, RunRecord,
    ScriptRecord, Side, StoreRecord,
};
use fake_apiserver::report::Report;

/// Returns the story of a trace, as text to compare.
pub fn story(records: &[Record]) -> String {
    let mut lanes: BTreeMap<Lane, Vec<String>> = BTreeMap::new();
    let mut tokens = Tokens::default();
    for record in records {
        let (lane, line) = match record.what.group() {
            Group::Exchange(ExchangeRecord::Request {
                stream, verb, query, ..
            }) => (
                Lane::Answer(stream.0),
                format!("{} {}", verb.word(), asked(query, &mut tokens)),
            ),
            Group::Connection(ConnectionRecord::Goaway { .. }) => {
                (Lane::Script, "the connection accepts no more requests".to_owned())
            }
            Group::Connection(ConnectionRecord::Refused) => {
                (Lane::Script, "a connection is refused".to_owned())
            }
            Group::Exchange(ExchangeRecord::Head {
                stream,
                status,
                retry_after,
                ..
            }) => (
                Lane::Answer(stream.0),
                format!("{status} Retry-After: {retry_after:?}"),
            ),
            Group::Exchange(ExchangeRecord::Page {
                stream,
                resource_version,
                continue_token,
                remaining,
                items,
                ..
            }) => {
                let items: Vec<String> = items.iter().map(state).collect();
                let token = tokens.number(continue_token);
                let line = format!("page rv={resource_version} {items:?} continue={token} {remaining:?}");
                (Lane::Answer(stream.0), line)
            }
            Group::Exchange(ExchangeRecord::Body { stream, reason, .. }) => {
                (Lane::Answer(stream.0), format!("body {reason:?}"))
            }
            Group::Exchange(ExchangeRecord::Torn { stream, .. }) => {
                (Lane::Answer(stream.0), "torn".to_owned())
            }
            Group::Exchange(ExchangeRecord::Frame { stream, frame }) => (Lane::Answer(stream.0), line(frame)),
            Group::Exchange(ExchangeRecord::Withheld { stream, object }) => {
                (Lane::Answer(stream.0), format!("withheld {}", state(object)))
            }
            Group::Exchange(ExchangeRecord::End { stream, how, by }) => {
                (Lane::Answer(stream.0), end(*how, *by))
            }
            Group::Store(StoreRecord::Wrote(write)) => (
                Lane::Store,
                format!("{:?} {} {}", write.op, write.resource, state(&write.object)),
            ),
            Group::Script(ScriptRecord::Rule { rule, how, .. }) => {
                (Lane::Script, format!("rule {rule}: {how}"))
            }
            Group::Store(StoreRecord::Restored { to }) => (Lane::Store, format!("restored to {to}")),
            Group::Store(StoreRecord::Turned {
                how,
                resource_version,
            }) => (Lane::Store, format!("{how} at {resource_version}")),
            Group::Script(ScriptRecord::Step { step, how }) => (Lane::Script, format!("step {step}: {how}")),
            Group::Script(ScriptRecord::Bound { name, value, .. }) => {
                (Lane::Script, format!("${name} = {value}"))
            }
            Group::Script(ScriptRecord::UpstreamWrite { object, how, .. }) => {
                (Lane::Script, format!("write {object}: {how}"))
            }
            Group::Script(ScriptRecord::ScriptDone) => (Lane::Script, "done".to_owned()),
            Group::Run(RunRecord::RunEnded(how)) => (Lane::Script, over(how)),
            Group::Run(RunRecord::Reported(report)) => (Lane::Reports, report_line(report)),
            Group::Connection(ConnectionRecord::Connected { .. } | ConnectionRecord::Disconnected { .. })
            | Group::Run(
                RunRecord::ClientExited { .. }
                | RunRecord::ClientRestarted { .. }
                | RunRecord::StopRequested
                | RunRecord::LeftOpen { .. },
            )
            | Group::Exchange(ExchangeRecord::Sent { .. } | ExchangeRecord::Webhook { .. }) => continue,
        };
        lanes.entry(lane).or_default().push(line);
    }
    let mut story = String::new();
    for (lane, lines) in lanes {
        // Writing to a String does not fail.
        let _ = writeln!(story, "{lane:?}");
        for line in lines {
            let _ = writeln!(story, "  {line}");
        }
    }
    story
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Lane {
    Script,
    Store,
    Reports,
    /// A request and its response, in order of arrival.
    Answer(u64),
}

/// Numbers of continue tokens, which contain the time of the list.
#[derive(Default)]
struct Tokens(Vec<String>);

impl Tokens {
    fn number(&mut self, token: &str) -> usize {
        if token.is_empty() {
            return 0;
        }
        let known = self.0.iter().position(|known| known == token);
        known.unwrap_or_else(|| {
            self.0.push(token.to_owned());
            self.0.len() - 1
        }) + 1
    }
}

fn asked(query: &[(String, String)], tokens: &mut Tokens) -> String {
    let parameters = query.iter().filter(|(name, _)| name != "timeoutSeconds");
    let parameters: Vec<String> = parameters
        .map(|(name, value)| match name.as_str() {
            "continue" => format!("continue={}", tokens.number(value)),
            _ => format!("{name}={value}"),
        })
        .collect();
    parameters.join("&")
}

fn line(frame: &Frame) -> String {
    let kind = match &frame.kind {
        FrameType::Added => "ADDED".to_owned(),
        FrameType::Modified => "MODIFIED".to_owned(),
        FrameType::Deleted => "DELETED".to_owned(),
        FrameType::Bookmark { initial_events_end } => format!("BOOKMARK {initial_events_end:?}"),
        FrameType::Error { code, reason } => format!("ERROR {code} {reason}"),
        FrameType::Raw => "(raw)".to_owned(),
    };
    let object = frame.object.as_deref().map(state).unwrap_or_default();
    let torn = if frame.whole() { "" } else { " torn" };
    format!("{kind} {object}{torn}")
}

/// Describes how a response ended, as far as both sides agree on it.
fn end(how: Ending, by: Side) -> String {
    match by {
        Side::Server => format!("server: {}", how.word()),
        Side::Client => "client".to_owned(),
    }
}

/// Formats a report without its error message, which depends on the transport.
fn report_line(report: &Report) -> String {
    match report {
        Report::Init | Report::InitDone | Report::Ended | Report::Crashed { .. } => report.word().to_owned(),
        Report::InitApply(object) | Report::Apply(object) | Report::Delete(object) => {
            let version = object.resource_version.as_deref().unwrap_or_default();
            format!("{} {}@{version}", report.word(), object.key())
        }
        Report::Error { code, .. } => format!("error {code:?}"),
    }
}

fn over(end: &RunEnd) -> String {
    match end {
        RunEnd::Complete => "complete".to_owned(),
        RunEnd::NotConverged { .. } => "not converged".to_owned(),
        RunEnd::Stuck { step, .. } => format!("stuck at {step}"),
        RunEnd::Missed { step, .. } => format!("missed {step}"),
        RunEnd::ClientGone => "client gone".to_owned(),
        RunEnd::Runaway { .. } => "runaway".to_owned(),
        RunEnd::Harness { message } => format!("harness: {message}"),
    }
}

fn state(object: &ObjectRef) -> String {
    format!("{}@{}", object.key, object.resource_version)
}

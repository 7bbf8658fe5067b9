//! Records of a trace as rows of a table with three lanes: client events, requests and connections, server and store.
//! It must not know verdicts; the rows that are evidence are an argument.

use std::collections::BTreeSet;

use fake_apiserver::record::{Frame, FrameType, Record, Side, Verb, What, line};
use fake_apiserver::scenario::Scenario;

use super::cut;

/// Rows of one attempt, limited to this many at its beginning …
const FIRST_ROWS: usize = 300;
/// … this many at its end …
const LAST_ROWS: usize = 120;
/// … and this many around each record that is evidence.
const AROUND: usize = 3;
/// Records of evidence with a row, at most.
const PROOFS_MAX: usize = 60;

/// Most rows of one attempt.
pub(super) const ROWS_MAX: usize = FIRST_ROWS + LAST_ROWS + PROOFS_MAX * (2 * AROUND + 1);

/// Characters of a row's text.
const TEXT_MAX: usize = 300;

/// Lane of a record: the side that acted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lane {
    /// Reported by the client.
    Client,
    /// Seen on the wire.
    Wire,
    /// A change in the store, or an action of the script.
    Server,
}

impl Lane {
    /// All lanes, in drawing order.
    pub(super) const ALL: [Self; 3] = [Self::Client, Self::Wire, Self::Server];

    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Client => "Client events",
            Self::Wire => "Requests and connections",
            Self::Server => "Server and store",
        }
    }

    /// Returns the word used in the table's data, which the script reads.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Wire => "wire",
            Self::Server => "server",
        }
    }
}

/// One row.
pub(super) enum Row<'a> {
    /// A record.
    Record(Line<'a>),
    /// Number of records left out.
    Gap(usize),
}

/// A record as a row.
pub(super) struct Line<'a> {
    pub(super) seq: u64,
    /// Milliseconds from the start.
    pub(super) at_ms: f64,
    pub(super) lane: Lane,
    pub(super) kind: &'a str,
    /// Request it belongs to.
    pub(super) stream: Option<u64>,
    /// Connection it belongs to.
    pub(super) conn: Option<u64>,
    /// Short label in the drawing.
    pub(super) label: String,
    pub(super) text: String,
    /// Whether the script caused it: the server deviated from a real one.
    pub(super) scripted: bool,
    /// Line in the scenario file that caused it.
    pub(super) step_line: Option<u32>,
}

/// Returns the rows of a trace; `proofs` has the `seq` of the records that are evidence.
pub(super) fn rows<'a>(
    records: &'a [Record],
    scenario: Option<&Scenario>,
    proofs: &BTreeSet<u64>,
) -> Vec<Row<'a>> {
    let mut shown: BTreeSet<usize> = (0..records.len().min(FIRST_ROWS)).collect();
    shown.extend(records.len().saturating_sub(LAST_ROWS)..records.len());
    let proving = records
        .iter()
        .enumerate()
        .filter(|(_, record)| proofs.contains(&record.seq));
    for (at, _) in proving.take(PROOFS_MAX) {
        shown.extend(at.saturating_sub(AROUND)..=(at + AROUND).min(records.len() - 1));
    }
    let mut rows = Vec::with_capacity(shown.len() + 1);
    let mut next = 0;
    for at in shown {
        if at > next {
            rows.push(Row::Gap(at - next));
        }
        rows.push(Row::Record(drawn(&records[at], scenario)));
        next = at + 1;
    }
    rows
}

fn drawn<'a>(record: &'a Record, scenario: Option<&Scenario>) -> Line<'a> {
    let what = &record.what;
    let step_line = if let (What::Step { step, .. }, Some(scenario)) = (what, scenario) {
        scenario.steps.get(*step).map(|step| step.at.line)
    } else {
        None
    };
    let kind = if let What::Reported(report) = what {
        report.word()
    } else {
        what.name()
    };
    Line {
        seq: record.seq,
        at_ms: record.at.as_secs_f64() * 1000.0,
        lane: lane(what),
        kind,
        stream: what.stream().map(|stream| stream.0),
        conn: conn(what),
        label: cut(&label(what), 40),
        text: cut(&line::text(what), TEXT_MAX),
        scripted: is_scripted(what),
        step_line,
    }
}

fn lane(what: &What) -> Lane {
    match what {
        What::Reported(_) => Lane::Client,
        What::Connected { .. }
        | What::Goaway { .. }
        | What::Refused
        | What::Disconnected { .. }
        | What::Request { .. }
        | What::Head { .. }
        | What::Page { .. }
        | What::Body { .. }
        | What::Torn { .. }
        | What::Frame { .. }
        | What::End { .. } => Lane::Wire,
        What::Withheld { .. }
        | What::Wrote(_)
        | What::Restored { .. }
        | What::Turned { .. }
        | What::Step { .. }
        | What::Rule { .. }
        | What::Bound { .. }
        | What::ScriptDone
        | What::ClientExited { .. }
        | What::ClientRestarted { .. }
        | What::StopRequested
        | What::Webhook { .. }
        | What::LeftOpen { .. }
        | What::RunEnded(_) => Lane::Server,
    }
}

fn conn(what: &What) -> Option<u64> {
    if let What::Connected { conn, .. }
    | What::Goaway { conn }
    | What::Disconnected { conn, .. }
    | What::Request { conn, .. } = what
    {
        Some(conn.0)
    } else {
        None
    }
}

/// Whether a real server would not have done it.
fn is_scripted(what: &What) -> bool {
    match what {
        What::Head { scripted, .. } | What::Page { scripted, .. } => *scripted,
        What::Frame { frame, .. } => frame.scripted || !frame.whole(),
        What::Goaway { .. } | What::Refused | What::Torn { .. } | What::Withheld { .. } => true,
        What::End { how, by, .. } => *by == Side::Server && *how != fake_apiserver::fault::Ending::Eof,
        What::Connected { .. }
        | What::Disconnected { .. }
        | What::Request { .. }
        | What::Body { .. }
        | What::Wrote(_)
        | What::Restored { .. }
        | What::Turned { .. }
        | What::Step { .. }
        | What::Rule { .. }
        | What::Bound { .. }
        | What::ScriptDone
        | What::Reported(_)
        | What::ClientExited { .. }
        | What::ClientRestarted { .. }
        | What::StopRequested
        | What::Webhook { .. }
        | What::LeftOpen { .. }
        | What::RunEnded(_) => false,
    }
}

/// Returns the short label beside a mark of the drawing.
fn label(what: &What) -> String {
    match what {
        What::Request {
            verb,
            query,
            method,
            path,
            ..
        } => {
            let value = |name: &str| query.iter().find(|(own, _)| own == name).map(|(_, value)| value);
            let version = value("resourceVersion").map(|version| format!(" @{version}"));
            let next = value("continue").map(|_| " next page".to_owned());
            match verb {
                Verb::List | Verb::Watch | Verb::WatchList => {
                    format!("{}{}", verb.word(), next.or(version).unwrap_or_default())
                }
                Verb::Other => format!("{method} {}", path.rsplit('/').next().unwrap_or_default()),
            }
        }
        What::Head { status, .. } => status.to_string(),
        What::Page { items, .. } => format!("{} items", items.len()),
        What::Body { reason, .. } => reason.clone().unwrap_or_else(|| "body".to_owned()),
        What::Torn { .. } => "torn".to_owned(),
        What::Frame { frame, .. } => frame_label(frame),
        What::End { how, by, .. } => match by {
            Side::Client => "closed".to_owned(),
            Side::Server => how.word(),
        },
        What::Withheld { object, .. } => format!("kept back {}", name(&object.key)),
        What::Wrote(write) => format!("{} {}", line::op(write.op), name(&write.object.key)),
        What::Step { step, .. } => format!("step {}", step + 1),
        What::Reported(report) => {
            let object = report.object().map(|object| object.name.as_str());
            format!("{} {}", report.word(), object.unwrap_or_default())
                .trim_end()
                .to_owned()
        }
        What::Bound { name, value, .. } => format!("${name} = {value}"),
        What::Rule { rule, .. } => format!("rule {rule}"),
        What::RunEnded(_) => "end".to_owned(),
        What::Connected { .. }
        | What::Goaway { .. }
        | What::Refused
        | What::Disconnected { .. }
        | What::Restored { .. }
        | What::Turned { .. }
        | What::ScriptDone
        | What::ClientExited { .. }
        | What::ClientRestarted { .. }
        | What::StopRequested
        | What::Webhook { .. }
        | What::LeftOpen { .. } => line::text(what),
    }
}

fn frame_label(frame: &Frame) -> String {
    match &frame.kind {
        FrameType::Bookmark { .. } => {
            let version = frame
                .object
                .as_ref()
                .map(|object| object.resource_version.clone());
            format!("BOOKMARK @{}", version.unwrap_or_default())
        }
        FrameType::Added | FrameType::Modified | FrameType::Deleted => {
            line::frame(frame, |object| name(&object.key).to_owned())
        }
        FrameType::Error { code, .. } => format!("ERROR {code}"),
        FrameType::Raw => "raw".to_owned(),
    }
}

/// Returns the key without its namespace.
fn name(key: &str) -> &str {
    key.rsplit('/').next().unwrap_or(key)
}

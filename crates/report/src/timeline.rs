//! Records of a trace as rows of a table with three lanes: client events, requests and connections, server and store.
//! Reports and committed evidence have the same rows. It must not know verdicts or HTML; the rows that are evidence are an
//! argument.

use std::borrow::Cow;
use std::collections::BTreeSet;

use fake_apiserver::record::{
    ConnectionRecord, ExchangeRecord, Frame, FrameType, Group, Record, RunRecord, ScriptRecord, Side,
    StoreRecord, Verb, What, line,
};
use serde::{Deserialize, Serialize};

use crate::text::cut;

/// Rows of one attempt, limited to this many at its beginning …
const FIRST_ROWS: usize = 300;
/// … this many at its end …
const LAST_ROWS: usize = 120;
/// … and this many around each record that is evidence.
const AROUND: usize = 3;
/// Records of evidence with a row, at most.
const PROOFS_MAX: usize = 60;

/// Most rows of one attempt.
pub(crate) const ROWS_MAX: usize = FIRST_ROWS + LAST_ROWS + PROOFS_MAX * (2 * AROUND + 1);

/// Characters of a row's text.
const TEXT_MAX: usize = 300;

/// Lane of a record: the side that acted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Lane {
    /// Reported by the client.
    Client,
    /// Seen on the wire.
    Wire,
    /// A change in the store, or an action of the script.
    Server,
}

impl Lane {
    /// All lanes, in drawing order.
    pub(crate) const ALL: [Self; 3] = [Self::Client, Self::Wire, Self::Server];

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Client => "Client events",
            Self::Wire => "Requests and connections",
            Self::Server => "Server and store",
        }
    }

    /// Returns the word used in the table's data, which the script reads.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Wire => "wire",
            Self::Server => "server",
        }
    }
}

/// One row.
pub(crate) enum Row<'a> {
    /// A record.
    Record(Cow<'a, Line>),
    /// Number of records left out.
    Gap(u64),
}

/// A record as a row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// Position in the trace.
    pub seq: u64,
    /// Milliseconds from the start.
    #[serde(rename = "at")]
    pub at_ms: f64,
    /// The side that acted.
    pub lane: Lane,
    /// Kind of the record.
    pub kind: Cow<'static, str>,
    /// Request it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<u64>,
    /// Connection it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conn: Option<u64>,
    /// Short label in the drawing.
    pub label: String,
    /// The record in words.
    pub text: String,
    /// Whether the script caused it: the server deviated from a real one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub scripted: bool,
    /// Step of the scenario that it begins, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<usize>,
}

/// Records of a trace that have a row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window {
    /// At the beginning.
    pub(crate) first: usize,
    /// At the end.
    pub(crate) last: usize,
    /// Around each record of evidence, on either side.
    pub(crate) around: usize,
}

/// Rows of one attempt in a report.
const WHOLE: Window = Window {
    first: FIRST_ROWS,
    last: LAST_ROWS,
    around: AROUND,
};

/// Returns the rows of a trace; `proofs` has the `seq` of the records that are evidence.
pub(crate) fn rows(records: &[Record], proofs: &BTreeSet<u64>) -> Vec<Row<'static>> {
    with_gaps(lines(records, proofs, WHOLE).into_iter().map(Cow::Owned))
}

/// Returns the rows of a trace that was trimmed before.
pub(crate) fn trimmed_rows(lines: &[Line]) -> Vec<Row<'_>> {
    with_gaps(lines.iter().map(Cow::Borrowed))
}

fn with_gaps<'a>(lines: impl Iterator<Item = Cow<'a, Line>>) -> Vec<Row<'a>> {
    let mut rows = Vec::new();
    let mut next = None;
    for line in lines {
        if let Some(left_out) = next
            .and_then(|next| line.seq.checked_sub(next))
            .filter(|number| *number > 0)
        {
            rows.push(Row::Gap(left_out));
        }
        next = Some(line.seq + 1);
        rows.push(Row::Record(line));
    }
    rows
}

/// Returns the lines of a trace that a window shows.
pub(crate) fn lines(records: &[Record], proofs: &BTreeSet<u64>, window: Window) -> Vec<Line> {
    let mut shown: BTreeSet<usize> = (0..records.len().min(window.first)).collect();
    shown.extend(records.len().saturating_sub(window.last)..records.len());
    let proving = records
        .iter()
        .enumerate()
        .filter(|(_, record)| proofs.contains(&record.seq));
    for (at, _) in proving.take(PROOFS_MAX) {
        shown.extend(at.saturating_sub(window.around)..=(at + window.around).min(records.len() - 1));
    }
    shown.into_iter().map(|at| drawn(&records[at])).collect()
}

/// Records at the beginning of a trimmed trace, with half as many at its end: the first number that fits.
const TRIMMED: [usize; 8] = [120, 80, 56, 40, 28, 20, 12, 6];

/// Records kept on either side of each record of evidence in a trimmed trace.
const TRIMMED_AROUND: usize = 2;

/// Returns the lines of a trace in at most about `bytes_max` bytes of JSON: the evidence with what is around it, the
/// beginning and the end.
pub fn trimmed(records: &[Record], proofs: &BTreeSet<u64>, bytes_max: usize) -> Vec<Line> {
    let of = |first: usize| {
        let window = Window {
            first,
            last: first / 2,
            around: TRIMMED_AROUND,
        };
        lines(records, proofs, window)
    };
    let bytes = |lines: &Vec<Line>| serde_json::to_string(lines).map_or(0, |text| text.len());
    let mut tried = TRIMMED.into_iter().map(of);
    let fits = tried.find(|lines| bytes(lines) <= bytes_max);
    fits.unwrap_or_else(|| of(TRIMMED[TRIMMED.len() - 1]))
}

/// Returns the row of a record.
pub fn drawn(record: &Record) -> Line {
    let what = &record.what;
    let step = if let What::Step { step, .. } = what {
        Some(*step)
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
        at_ms: record.at.as_micros() as f64 / 1000.0,
        lane: lane(what),
        kind: Cow::Borrowed(kind),
        stream: what.stream().map(|stream| stream.0),
        conn: conn(what),
        label: cut(&label(what), 40),
        text: cut(&line::text(what), TEXT_MAX),
        scripted: is_scripted(what),
        step,
    }
}

fn lane(what: &What) -> Lane {
    match what.group() {
        Group::Run(RunRecord::Reported(_)) => Lane::Client,
        Group::Connection(_)
        | Group::Exchange(
            ExchangeRecord::Request { .. }
            | ExchangeRecord::Head { .. }
            | ExchangeRecord::Page { .. }
            | ExchangeRecord::Body { .. }
            | ExchangeRecord::Torn { .. }
            | ExchangeRecord::Frame { .. }
            | ExchangeRecord::End { .. },
        ) => Lane::Wire,
        Group::Exchange(
            ExchangeRecord::Withheld { .. } | ExchangeRecord::Sent { .. } | ExchangeRecord::Webhook { .. },
        )
        | Group::Store(_)
        | Group::Script(_)
        | Group::Run(
            RunRecord::ClientExited { .. }
            | RunRecord::ClientRestarted { .. }
            | RunRecord::StopRequested
            | RunRecord::LeftOpen { .. }
            | RunRecord::RunEnded(_),
        ) => Lane::Server,
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
    match what.group() {
        Group::Exchange(ExchangeRecord::Head { scripted, .. } | ExchangeRecord::Page { scripted, .. }) => {
            *scripted
        }
        Group::Exchange(ExchangeRecord::Frame { frame, .. }) => frame.scripted || !frame.whole(),
        Group::Connection(ConnectionRecord::Goaway { .. } | ConnectionRecord::Refused)
        | Group::Exchange(ExchangeRecord::Torn { .. } | ExchangeRecord::Withheld { .. }) => true,
        Group::Exchange(ExchangeRecord::End { how, by, .. }) => {
            *by == Side::Server && *how != fake_apiserver::fault::Ending::Eof
        }
        Group::Connection(ConnectionRecord::Connected { .. } | ConnectionRecord::Disconnected { .. })
        | Group::Exchange(
            ExchangeRecord::Request { .. }
            | ExchangeRecord::Body { .. }
            | ExchangeRecord::Sent { .. }
            | ExchangeRecord::Webhook { .. },
        )
        | Group::Store(_)
        | Group::Script(_)
        | Group::Run(_) => false,
    }
}

/// Returns the short label beside a mark of the drawing.
fn label(what: &What) -> String {
    match what.group() {
        Group::Exchange(ExchangeRecord::Request {
            verb,
            query,
            method,
            path,
            ..
        }) => {
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
        Group::Exchange(ExchangeRecord::Head { status, .. }) => status.to_string(),
        Group::Exchange(ExchangeRecord::Page { items, .. }) => format!("{} items", items.len()),
        Group::Exchange(ExchangeRecord::Body { reason, .. }) => {
            reason.clone().unwrap_or_else(|| "body".to_owned())
        }
        Group::Exchange(ExchangeRecord::Torn { .. }) => "torn".to_owned(),
        Group::Exchange(ExchangeRecord::Frame { frame, .. }) => frame_label(frame),
        Group::Exchange(ExchangeRecord::End { how, by, .. }) => match by {
            Side::Client => "closed".to_owned(),
            Side::Server => how.word(),
        },
        Group::Exchange(ExchangeRecord::Withheld { object, .. }) => {
            format!("kept back {}", name(&object.key))
        }
        Group::Store(StoreRecord::Wrote(write)) => {
            format!("{} {}", line::op(write.op), name(&write.object.key))
        }
        Group::Script(ScriptRecord::Step { step, .. }) => format!("step {}", step + 1),
        Group::Run(RunRecord::Reported(report)) => {
            let object = report.object().map(|object| object.name.as_str());
            format!("{} {}", report.word(), object.unwrap_or_default())
                .trim_end()
                .to_owned()
        }
        Group::Script(ScriptRecord::Bound { name, value, .. }) => format!("${name} = {value}"),
        Group::Script(ScriptRecord::Rule { rule, .. }) => format!("rule {rule}"),
        Group::Script(ScriptRecord::UpstreamWrite { object, .. }) => format!("write {object}"),
        Group::Run(RunRecord::RunEnded(_)) => "end".to_owned(),
        Group::Connection(_)
        | Group::Store(StoreRecord::Restored { .. } | StoreRecord::Turned { .. })
        | Group::Script(ScriptRecord::ScriptDone)
        | Group::Run(
            RunRecord::ClientExited { .. }
            | RunRecord::ClientRestarted { .. }
            | RunRecord::StopRequested
            | RunRecord::LeftOpen { .. },
        )
        | Group::Exchange(ExchangeRecord::Sent { .. } | ExchangeRecord::Webhook { .. }) => line::text(what),
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn trace(number: u64) -> Vec<Record> {
        let record = |seq| Record {
            seq,
            at: Duration::from_millis(seq),
            what: What::ScriptDone,
        };
        (0..number).map(record).collect()
    }

    #[test]
    fn a_trimmed_trace_keeps_the_evidence_in_few_bytes() {
        let proofs = BTreeSet::from([2500]);
        let lines = trimmed(&trace(5000), &proofs, 4000);
        assert!(serde_json::to_string(&lines).unwrap().len() <= 4000);
        let seqs: Vec<u64> = lines.iter().map(|line| line.seq).collect();
        for seq in [0, 2498, 2500, 2502, 4999] {
            assert!(seqs.contains(&seq), "{seq}: {seqs:?}");
        }
        assert!(seqs.is_sorted());
    }

    #[test]
    fn a_short_trace_is_whole() {
        assert_eq!(trimmed(&trace(30), &BTreeSet::new(), 100_000).len(), 30);
    }

    #[test]
    fn gaps_are_those_of_the_whole_trace() {
        let lines = trimmed(&trace(5000), &BTreeSet::new(), 4000);
        let rows = trimmed_rows(&lines);
        let (mut shown, mut left_out) = (0, 0);
        for row in &rows {
            match row {
                Row::Record(_) => shown += 1,
                Row::Gap(number) => left_out += number,
            }
        }
        assert_eq!(shown + left_out, 5000);
    }

    #[test]
    fn a_line_is_read_as_it_was_written() {
        let lines = trimmed(&trace(3), &BTreeSet::new(), 100_000);
        let text = serde_json::to_string(&lines).unwrap();
        assert_eq!(serde_json::from_str::<Vec<Line>>(&text).unwrap(), lines);
    }
}

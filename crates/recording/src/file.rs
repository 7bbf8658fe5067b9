//! The file of a recording: a line about the server, then one record of the trace a line, as JSON. Evidence of `run` and
//! `conformance`, and `ctl trace --format json`, are the same without the first line.
//!
//! It must not know what records mean.

use std::fmt;
use std::io::{self, Write};

use serde::{Deserialize, Serialize};
use trace::record::Record;

use crate::audit;

/// Version of the format.
const FORMAT: &str = "v1";

/// First line of a recording.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Header {
    /// Version of the format: `v1`.
    recording: String,
    /// Program and version that wrote it.
    pub program: String,
    /// Subcommand that wrote it: `serve`, `play`, `proxy`, `run`.
    pub command: String,
    /// Version of Kubernetes.
    pub kubernetes: String,
    /// What answered.
    pub origin: Origin,
    /// Whether it has the content of objects.
    pub content: bool,
    /// Fields that were removed from objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub redacted: Vec<String>,
    /// Id of the scenario that was served; absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scenario: Option<String>,
}

/// What answered requests before faults applied.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Origin {
    /// The in-memory server: every write is in the trace.
    #[default]
    Model,
    /// A real apiserver: the trace has what passed by.
    Upstream,
    /// An audit log: requests and the status of their responses.
    AuditLog,
}

impl Header {
    /// Returns the header of a recording without content.
    pub fn new(command: &str, kubernetes: &str, origin: Origin) -> Self {
        Self {
            recording: FORMAT.to_owned(),
            program: concat!("fake-apiserver ", env!("CARGO_PKG_VERSION")).to_owned(),
            command: command.to_owned(),
            kubernetes: kubernetes.to_owned(),
            origin,
            content: false,
            redacted: Vec::new(),
            scenario: None,
        }
    }
}

/// Writes the first line.
///
/// # Errors
/// Errors of `out`.
pub fn write_header(header: &Header, mut out: impl Write) -> io::Result<()> {
    serde_json::to_writer(&mut out, header)?;
    out.write_all(b"\n")
}

/// Writes a record, as a line.
///
/// # Errors
/// Errors of `out`.
pub fn write_record(record: &Record, mut out: impl Write) -> io::Result<()> {
    serde_json::to_writer(&mut out, record)?;
    out.write_all(b"\n")
}

/// Writes records, one a line.
///
/// # Errors
/// Errors of `out`.
pub fn write_records(records: &[Record], mut out: impl Write) -> io::Result<()> {
    records
        .iter()
        .try_for_each(|record| write_record(record, &mut out))
}

/// A recording of one server.
#[derive(Debug, Clone, Default)]
pub struct Recording {
    /// Its first line; `None`: the file has none.
    pub header: Option<Header>,
    /// What was recorded, in order.
    pub records: Vec<Record>,
    /// Records that are missing before the first, or between two.
    pub missing: u64,
    /// Length of a last line that is not complete, in bytes: the server was killed, or the disk was full.
    pub cut: Option<usize>,
    /// What its source cannot show.
    pub blind: Vec<String>,
}

impl Recording {
    /// What answered.
    pub fn origin(&self) -> Origin {
        self.header
            .as_ref()
            .map_or_else(Origin::default, |header| header.origin)
    }
}

/// Why a file is no recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadError {
    /// Line, from 1; `None`: the file as a whole.
    pub line: Option<usize>,
    /// What is wrong, and what to do.
    pub message: String,
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for ReadError {}

/// A line of a recording.
enum Line {
    Header(Header),
    Record(Record),
}

/// Reads the recordings in a file: several if it has several headers, as that of `run` has one for each scenario. A last line
/// that is not complete is left out.
///
/// # Errors
/// The file is empty, or has a line that is no record.
pub fn read(text: &str) -> Result<Vec<Recording>, ReadError> {
    let whole = |message: String| ReadError { line: None, message };
    let Some(first) = text.lines().find(|line| !line.trim().is_empty()) else {
        return Err(whole(
            "is empty: nothing was recorded, or the server has not started".to_owned(),
        ));
    };
    if audit::is_event(first) {
        return audit::read(text).map(|recording| vec![recording]);
    }
    let mut recordings: Vec<Recording> = Vec::new();
    let (lines, cut) = parsed(text, parse)?;
    for line in lines {
        match line {
            Line::Header(header) => recordings.push(Recording {
                header: Some(header),
                ..Recording::default()
            }),
            Line::Record(record) => {
                if recordings.is_empty() {
                    recordings.push(Recording::default());
                }
                let recording = recordings.last_mut().expect("one was added");
                let expected = recording.records.last().map_or(0, |last| last.seq + 1);
                recording.missing += record.seq.saturating_sub(expected);
                recording.records.push(record);
            }
        }
    }
    if let Some(recording) = recordings.last_mut() {
        recording.cut = cut;
    }
    Ok(recordings)
}

/// Parses the lines that are not blank. Returns the length of a last line that is not complete, and left out.
///
/// # Errors
/// Another line that `parse` rejects.
pub(crate) fn parsed<T>(
    text: &str,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<(Vec<T>, Option<usize>), ReadError> {
    let mut parsed = Vec::new();
    let mut lines = text.lines().enumerate().peekable();
    while let Some((nth, line)) = lines.next() {
        if line.trim().is_empty() {
            continue;
        }
        match parse(line) {
            Ok(line) => parsed.push(line),
            Err(_) if lines.peek().is_none() && !parsed.is_empty() && !text.ends_with('\n') => {
                return Ok((parsed, Some(line.len())));
            }
            Err(why) => {
                let before = match nth {
                    0 => String::new(),
                    1 => " (the line before it was read)".to_owned(),
                    nth => format!(" (the {nth} lines before it were read)"),
                };
                return Err(ReadError {
                    line: Some(nth + 1),
                    message: format!("{why}{before}"),
                });
            }
        }
    }
    Ok((parsed, None))
}

fn parse(line: &str) -> Result<Line, String> {
    if let Ok(record) = serde_json::from_str(line) {
        return Ok(Line::Record(record));
    }
    if let Ok(header) = serde_json::from_str::<Header>(line) {
        return match header.recording == FORMAT {
            true => Ok(Line::Header(header)),
            false => Err(format!(
                "this recording has format {}, and this version reads {FORMAT}: use the version that wrote it, {}",
                header.recording, header.program
            )),
        };
    }
    let start: String = line.trim_start().chars().take(40).collect();
    let lower = start.to_ascii_lowercase();
    let what = match serde_json::from_str::<serde_json::Value>(line) {
        _ if lower.starts_with("<!doctype") || lower.starts_with("<html") => {
            "HTML, as a login page or a file browser sends it"
        }
        Ok(serde_json::Value::Object(object)) if object.contains_key("kind") => {
            "a Kubernetes object, and no event of an audit log"
        }
        Ok(serde_json::Value::Object(object)) if object.contains_key("seq") => {
            "a record that this version does not know: use the version that wrote it"
        }
        Ok(_) => "other JSON",
        Err(_) if lower.starts_with('{') => "JSON that is not complete",
        Err(_) if lower.starts_with("scenario:") => "a scenario, which needs no conversion",
        Err(_) => "no JSON",
    };
    Err(format!(
        "no record, but {what}: {start:?}; expected what --record wrote, `ctl trace --format json`, or an audit log \
         (audit.k8s.io/v1) as JSON lines"
    ))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rstest::rstest;
    use trace::record::What;

    use super::*;

    fn written(headers: usize, records: u64) -> String {
        let mut out = Vec::new();
        for _ in 0..headers {
            let header = Header::new("serve", "1.37", Origin::Model);
            write_header(&header, &mut out).expect("memory");
            for seq in 0..records {
                let at = Duration::from_millis(seq);
                let what = What::Refused;
                write_record(&Record { seq, at, what }, &mut out).expect("memory");
            }
        }
        String::from_utf8(out).expect("JSON")
    }

    #[test]
    fn what_was_written_is_read() {
        let parts = read(&written(2, 3)).expect("a recording");
        assert_eq!(parts.len(), 2);
        for part in parts {
            assert_eq!((part.records.len(), part.missing, part.cut), (3, 0, None));
            assert_eq!(part.header.expect("a header").command, "serve");
        }
        let text = written(1, 3);
        let (_, records) = text.split_once('\n').expect("lines");
        let parts = read(records).expect("evidence has no header");
        assert_eq!((parts.len(), parts[0].records.len()), (1, 3));
    }

    #[test]
    fn a_cut_at_any_byte_loses_at_most_one_line() {
        let text = written(1, 4);
        let first = text.find('\n').expect("lines");
        for at in first + 1..text.len() {
            let part = read(&text[..at]).expect("a recording").remove(0);
            let whole = text[..at].matches('\n').count() - 1;
            let is_whole =
                text[..at].ends_with('\n') || text[..at].ends_with('}') && text.as_bytes()[at] == b'\n';
            assert_eq!(part.cut.is_none(), is_whole, "cut at {at}");
            assert!(part.records.len() >= whole, "cut at {at}");
        }
    }

    #[test]
    fn missing_records_are_counted() {
        let text = written(1, 9);
        let without: Vec<&str> = text.lines().filter(|line| !line.contains("\"seq\":4")).collect();
        assert_eq!(read(&without.join("\n")).expect("a recording")[0].missing, 1);
    }

    #[rstest]
    #[case::nothing("", "is empty: nothing was recorded")]
    #[case::spaces("\n \n", "is empty")]
    #[case::a_page("<!DOCTYPE html>\n<html>", "line 1: no record, but HTML")]
    #[case::a_pod("{\"kind\":\"Pod\"}\n", "line 1: no record, but a Kubernetes object")]
    #[case::a_scenario("scenario: v1\n", "line 1: no record, but a scenario")]
    #[case::another_version(
        "{\"recording\":\"v9\",\"program\":\"fake-apiserver 9.0\",\"command\":\"x\",\"kubernetes\":\"\",\"origin\":\"model\",\"content\":false}\n",
        "line 1: this recording has format v9"
    )]
    #[case::a_cut_line_alone("\n{\"seq\"", "line 2: no record, but JSON that is not complete")]
    #[case::another_record(
        "{\"seq\":0,\"at\":{\"secs\":0,\"nanos\":0},\"what\":\"later\"}\n",
        "line 1: no record, but a record that this version does not know"
    )]
    fn what_is_no_recording_is_named(#[case] text: &str, #[case] expected: &str) {
        let error = read(text).expect_err("no recording").to_string();
        assert!(error.starts_with(expected), "{error}");
    }

    #[test]
    fn a_wrong_line_in_the_middle_is_named_with_what_was_read() {
        let text = written(1, 3).replace("\"seq\":1", "\"sequence\":1");
        let error = read(&text).expect_err("a wrong line").to_string();
        assert!(error.starts_with("line 3: no record, but other JSON"), "{error}");
        assert!(error.ends_with("(the 2 lines before it were read)"), "{error}");
    }
}

//! Formats a record as one line: time, side, event. Used by the live log of a running server and by accepted
//! transcripts.
//!
//! Prints versions and names, never an object's content. Looks at one record only; the transcript handles context.

use std::borrow::Cow;
use std::time::Duration;

use apimachinery::ObjectRef;

use super::{
    ConnectionRecord, ExchangeRecord, Frame, FrameType, Group, Record, Replica, RunEnd, RunRecord,
    ScriptRecord, Side, StoreRecord, What, WriteOp,
};
use crate::fault::Ending;

/// Formats a record: `1.097s client > #4 WATCH /api/v1/configmaps?resourceVersion=1003`. Contains no newline.
pub fn line(record: &Record) -> String {
    format!("{} {} {}", time(record.at), who(&record.what), text(&record.what))
}

/// Escapes characters that could move the cursor, start a line or reorder text: control characters, line and
/// paragraph separators, bidirectional overrides. A newline becomes `\n`, ESC `\u{1b}`. Escapes what a CI service takes for
/// a command anywhere in a line of its log, such as `##[error]` and `##vso[task.setvariable]`.
pub fn printable(text: &str) -> Cow<'_, str> {
    if is_printable(text) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for (at, c) in text.char_indices() {
        if is_unprintable(c) {
            escaped.extend(c.escape_default());
        } else if c == '#' && is_command(&text[at..]) {
            escaped.push_str("\\u{23}");
        } else {
            escaped.push(c);
        }
    }
    Cow::Owned(escaped)
}

/// Returns whether [`printable`] leaves a text as it is.
pub fn is_printable(text: &str) -> bool {
    let mut marks = text.match_indices('#');
    !text.contains(is_unprintable) && !marks.any(|(at, _)| is_command(&text[at..]))
}

/// Returns whether a text begins like a command to a CI service: `##[` of GitHub Actions and Azure Pipelines, `##vso[`,
/// `##teamcity[`.
fn is_command(text: &str) -> bool {
    let name = text
        .strip_prefix("##")
        .map(|rest| rest.trim_start_matches(|c: char| c.is_ascii_alphabetic()));
    name.is_some_and(|rest| rest.starts_with('['))
}

/// Returns true for characters that [`printable`] escapes.
pub fn is_unprintable(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Formats a time: `3.800s`.
pub fn time(at: Duration) -> String {
    format!("{}.{:03}s", at.as_secs(), at.subsec_millis())
}

/// Formats a duration: `800 ms`, `30 s`, `5 min`.
pub fn span(ms: u64) -> String {
    match ms {
        0..=9_999 if !ms.is_multiple_of(1000) => format!("{ms} ms"),
        _ if ms >= 120_000 && ms.is_multiple_of(60_000) => format!("{} min", ms / 60_000),
        _ if ms.is_multiple_of(1000) => format!("{} s", ms / 1000),
        _ => format!("{:.1} s", ms as f64 / 1000.0),
    }
}

/// Returns the side of a record: `client >`, `server <` (unmodified response), `server ~` (scripted response or
/// fault), `client *` (report), `store  .` (write to the store), `script .`, `runner .`.
pub fn who(what: &What) -> &'static str {
    match what {
        What::Connected { .. } | What::Request { .. } => "client >",
        What::Disconnected { by, .. } => match by {
            Side::Client => "client >",
            Side::Server => "server <",
        },
        What::End { how, by, .. } => match (by, how) {
            (Side::Client, _) => "client >",
            (Side::Server, Ending::Eof) => "server <",
            (Side::Server, _) => "server ~",
        },
        What::Goaway { .. } | What::Refused | What::Torn { .. } | What::Withheld { .. } => "server ~",
        What::Head { scripted, .. } | What::Page { scripted, .. } => server(*scripted),
        What::Frame { frame, .. } => server(frame.scripted || !frame.whole()),
        What::Body { .. } | What::Sent { .. } | What::Webhook { .. } => "server <",
        What::Wrote(_) | What::Restored { .. } | What::Turned { .. } => "store  .",
        What::Step { .. }
        | What::Rule { .. }
        | What::UpstreamWrite { .. }
        | What::Bound { .. }
        | What::ScriptDone => "script .",
        What::Reported(_) => "client *",
        What::ClientExited { .. } => "client >",
        What::ClientRestarted { .. } | What::StopRequested | What::LeftOpen { .. } | What::RunEnded(_) => {
            "runner ."
        }
    }
}

/// Returns `server ~` if scripted, else `server <`.
pub fn server(scripted: bool) -> &'static str {
    if scripted { "server ~" } else { "server <" }
}

/// Formats an object state: `a@1001`; `a@-` without a version.
pub fn state(key: &str, version: &str) -> String {
    let version = if version.is_empty() { "-" } else { version };
    format!("{key}@{version}")
}

/// Formats a frame: `MODIFIED a@1003`, `BOOKMARK @1003`, `ERROR 410 Expired`; `object` formats objects.
pub fn frame(frame: &Frame, object: impl Fn(&ObjectRef) -> String) -> String {
    let state = frame.object.as_deref().map(object).unwrap_or_default();
    match &frame.kind {
        FrameType::Added | FrameType::Modified | FrameType::Deleted => {
            format!("{} {state}", frame.kind.word())
        }
        FrameType::Bookmark { initial_events_end } => {
            let end = initial_events_end
                .as_ref()
                .map(|end| format!(" initial-events-end={end:?}"));
            format!(
                "BOOKMARK @{}{}",
                frame.resource_version().unwrap_or_default(),
                end.unwrap_or_default()
            )
        }
        FrameType::Error { code, reason } => format!("ERROR {code} {reason}").trim_end().to_owned(),
        FrameType::Raw => format!("{} raw bytes", frame.bytes),
    }
}

/// Returns `create`, `update` or `delete`.
pub fn op(op: WriteOp) -> &'static str {
    match op {
        WriteOp::Create => "create",
        WriteOp::Update => "update",
        WriteOp::Delete => "delete",
    }
}

/// Describes why a run ended.
pub fn run_end(end: &RunEnd) -> String {
    match end {
        RunEnd::Complete => "complete".to_owned(),
        RunEnd::NotConverged { waited_ms } => format!("not converged after {}", span(*waited_ms)),
        RunEnd::Stuck {
            step,
            waited_ms,
            waiting_for,
        } => {
            format!(
                "stuck at step {}: waited {} for {waiting_for}",
                step + 1,
                span(*waited_ms)
            )
        }
        RunEnd::Missed { step, because } => format!("missed step {}: {because}", step + 1),
        RunEnd::ClientGone => "the client is gone".to_owned(),
        RunEnd::Runaway { requests } => format!("runaway: {requests} requests"),
        RunEnd::Harness { message } => format!("harness error: {message}"),
    }
}

/// Formats a record without time and side, escaped by [`printable`]: requests contain arbitrary bytes from the
/// client.
pub fn text(what: &What) -> String {
    let text = unescaped(what);
    match printable(&text) {
        Cow::Borrowed(_) => text,
        Cow::Owned(escaped) => escaped,
    }
}

fn unescaped(what: &What) -> String {
    match what.group() {
        Group::Connection(record) => connection(record),
        Group::Exchange(record) => {
            let stream = what.stream().map_or(0, |stream| stream.0);
            format!("#{stream} {}", exchange(record))
        }
        Group::Store(record) => store(record),
        Group::Script(record) => script(record),
        Group::Run(record) => run(record),
    }
}

fn connection(record: ConnectionRecord<'_>) -> String {
    match record {
        ConnectionRecord::Connected { conn, replica, .. } => match replica {
            Replica::Primary => format!("connects (c{})", conn.0),
            Replica::Secondary => format!("connects (c{}, secondary replica)", conn.0),
        },
        ConnectionRecord::Goaway { conn } => format!("goaway NO_ERROR (c{})", conn.0),
        ConnectionRecord::Refused => "connection refused".to_owned(),
        ConnectionRecord::Disconnected { conn, .. } => format!("disconnects (c{})", conn.0),
    }
}

/// Formats a record of an exchange, without its number.
fn exchange(record: ExchangeRecord<'_>) -> String {
    match record {
        ExchangeRecord::Request {
            conn,
            verb,
            method,
            path,
            query,
            violations,
            ..
        } => {
            let word = match verb {
                super::Verb::Other => method.as_str(),
                super::Verb::List | super::Verb::Watch | super::Verb::WatchList => verb.word(),
            };
            let query: Vec<String> = query
                .iter()
                .map(|(name, value)| format!("{name}={}", shortened(value)))
                .collect();
            let asked = if query.is_empty() {
                String::new()
            } else {
                format!("?{}", query.join("&"))
            };
            let broken: String = violations
                .iter()
                .map(|rule| format!(" [illegal: {rule}]"))
                .collect();
            format!("c{} {word} {path}{asked}{broken}", conn.0)
        }
        ExchangeRecord::Head {
            status, retry_after, ..
        } => {
            let after = retry_after.as_ref().map(|after| format!(" Retry-After: {after}"));
            format!("{status}{}", after.unwrap_or_default())
        }
        ExchangeRecord::Page {
            resource_version,
            continue_token,
            remaining,
            items,
            ..
        } => {
            let more = if continue_token.is_empty() {
                ""
            } else {
                " continue=yes"
            };
            let remaining = remaining.map(|remaining| format!(" remaining={remaining}"));
            let remaining = remaining.unwrap_or_default();
            format!("rv={resource_version} items={}{more}{remaining}", items.len())
        }
        ExchangeRecord::Body {
            bytes,
            reason,
            message,
            ..
        } => match (reason, message) {
            (Some(reason), Some(message)) => format!("{reason} {message:?}"),
            (Some(word), None) | (None, Some(word)) => word.clone(),
            (None, None) => format!("{bytes} bytes"),
        },
        ExchangeRecord::Torn { sent, bytes, .. } => {
            format!("torn after {sent} of {bytes} bytes of the body")
        }
        ExchangeRecord::Frame { frame, .. } => {
            let event = self::frame(frame, |object| state(&object.key, &object.resource_version));
            if frame.whole() {
                event
            } else {
                format!("{} of {} bytes of {event}", frame.sent, frame.bytes)
            }
        }
        ExchangeRecord::Sent { content, .. } => format!("content of {} bytes", content.len()),
        ExchangeRecord::Withheld { object, .. } => {
            format!("kept back {}", state(&object.key, &object.resource_version))
        }
        ExchangeRecord::End { by: Side::Client, .. } => "closed".to_owned(),
        ExchangeRecord::End { how, .. } => how.word(),
        ExchangeRecord::Webhook {
            webhook,
            url,
            verdict,
            took,
            ..
        } => format!(
            "webhook {webhook} POST {url}: {verdict} ({} ms)",
            took.as_millis()
        ),
    }
}

fn store(record: StoreRecord<'_>) -> String {
    match record {
        StoreRecord::Wrote(write) => {
            let object = state(&write.object.key, &write.object.resource_version);
            format!("{} {}/{object}", op(write.op), write.resource)
        }
        StoreRecord::Restored { to } => format!("restored to {to}"),
        StoreRecord::Turned {
            how,
            resource_version,
        } => format!("{how} (now {resource_version})"),
    }
}

fn script(record: ScriptRecord<'_>) -> String {
    match record {
        ScriptRecord::Step { step, how } => format!("step {}: {how}", step + 1)
            .trim_end_matches([':', ' '])
            .to_owned(),
        ScriptRecord::Rule { rule, stream, how } => {
            let on = stream.map(|stream| format!(" on #{}", stream.0));
            format!("rule {rule}{}: {how}", on.unwrap_or_default())
        }
        ScriptRecord::UpstreamWrite {
            write,
            object,
            how,
            failure,
        } => match failure {
            None => format!("write {write} to the upstream: {object} {how}"),
            Some(why) => format!("write {write} to the upstream: {object} not {how}: {why}"),
        },
        ScriptRecord::Bound { name, value, .. } => format!("${name} is {value}"),
        ScriptRecord::ScriptDone => "done".to_owned(),
    }
}

fn run(record: RunRecord<'_>) -> String {
    match record {
        RunRecord::Reported(report) => {
            let object = report.object().map(|object| object.key()).unwrap_or_default();
            format!("{} {object}", report.word()).trim_end().to_owned()
        }
        RunRecord::ClientExited { code, signal } => exited(*code, *signal),
        RunRecord::ClientRestarted { restart } => format!("restart {restart}"),
        RunRecord::StopRequested => "stop".to_owned(),
        RunRecord::LeftOpen { connections } => {
            format!("{connections} connections still open, waited no longer")
        }
        RunRecord::RunEnded(end) => run_end(end),
    }
}

/// Formats how a process ended: `exited with code 1`, `killed by signal 9`.
pub fn exited(code: Option<i32>, signal: Option<i32>) -> String {
    match (code, signal) {
        (Some(code), _) => format!("exited with code {code}"),
        (None, Some(signal)) => format!("killed by signal {signal}"),
        (None, None) => "exited".to_owned(),
    }
}

/// Shortens a query value: continue tokens are long and opaque.
fn shortened(value: &str) -> String {
    const SHOWN_MAX: usize = 40;
    if value.chars().count() > SHOWN_MAX {
        value.chars().take(SHOWN_MAX - 3).chain("...".chars()).collect()
    } else {
        value.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::nothing("GET /api?x=é", "GET /api?x=é")]
    #[case::newline("x=\n9.9s server", r"x=\n9.9s server")]
    #[case::escape("\x1b[2J", r"\u{1b}[2J")]
    #[case::c1("\u{9b}2J", r"\u{9b}2J")]
    #[case::override_of_direction("a\u{202e}b", r"a\u{202e}b")]
    #[case::separator("a\u{2028}b", r"a\u{2028}b")]
    #[case::github("a ##[add-mask]b", r"a \u{23}#[add-mask]b")]
    #[case::azure("###vso[task.complete]", r"#\u{23}#vso[task.complete]")]
    #[case::heading("## [1] ##a b[", "## [1] ##a b[")]
    fn nothing_that_moves_the_cursor_is_printed(#[case] text: &str, #[case] printed: &str) {
        assert_eq!(printable(text), printed);
    }

    #[test]
    fn a_record_is_one_line() {
        let what = What::Refused;
        let record = Record {
            seq: 0,
            at: Duration::ZERO,
            what,
        };
        assert_eq!(line(&record), "0.000s server ~ connection refused");
        let what = What::Bound {
            name: "a\n0.000s server ~ connection refused".to_owned(),
            value: "\x1b[1m".to_owned(),
            continue_token: None,
        };
        assert_eq!(
            text(&what),
            r"$a\n0.000s server ~ connection refused is \u{1b}[1m"
        );
    }
}

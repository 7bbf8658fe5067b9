//! Formats a trace as text: one line per event, with time, side, and what happened.
//!
//! The text is stable: the same trace gives the same text. It contains versions and names, never an object's content,
//! and omits what differs between runs (continue tokens are numbered, connections omitted).

use std::collections::BTreeMap;
use std::path::PathBuf;

use ::trace::fault::Ending;
use ::trace::record::line::{self, server, who};
use ::trace::record::{
    ConnectionRecord, ExchangeRecord, Frame, Group, Record, RunRecord, ScriptRecord, Side, StoreRecord,
    StoreWrite, StreamId, Verb, What, WriteOp,
};
use scenario::Scenario;

use crate::trace::{Exchange, Reported, Trace, written};
use crate::verdict::Verdict;
use crate::words;

/// Lines kept of a long transcript: this many at its start …
const FIRST_LINES: usize = 400;
/// … and this many at its end.
const LAST_LINES: usize = 100;

/// Returns the transcript of a trace.
pub fn transcript(scenario: &Scenario, trace: &Trace<'_>) -> String {
    let mut writer = Writer {
        scenario,
        trace,
        tokens: BTreeMap::new(),
        asked: 0,
        open: Vec::new(),
        lines: Vec::new(),
    };
    let records = trace.records();
    let mut at = 0;
    while let Some(record) = records.get(at) {
        at += writer.write(record, &records[at + 1..]);
    }
    writer.finish()
}

/// Returns the transcript followed by the verdict, as stored beside a scenario file.
pub fn accepted(scenario: &Scenario, trace: &Trace<'_>, verdict: &Verdict) -> String {
    let mut text = transcript(scenario, trace);
    text.push_str(&format!("verdict: {}\n", verdict.outcome.word()));
    for contradiction in &verdict.contradictions {
        text.push_str(&format!(
            "  {}: {}\n",
            contradiction.check, contradiction.sentence
        ));
    }
    text
}

/// Returns the path of the accepted transcript: `<name>.<client>.snap`, beside the scenario.
pub fn snapshot_path(scenario: &Scenario, client: &str) -> PathBuf {
    let name = scenario
        .path
        .file_stem()
        .map(|stem| stem.to_string_lossy().into_owned())
        .unwrap_or_default();
    scenario.path.with_file_name(format!("{name}.{client}.snap"))
}

/// Returns an accepted transcript in insta's format.
pub fn snapshot(scenario: &Scenario, text: &str) -> String {
    format!("---\nsource: scenarios/{}.yaml\n---\n{text}", scenario.id)
}

struct Line {
    at: std::time::Duration,
    text: String,
    times: u32,
    until: std::time::Duration,
}

struct Writer<'t, 'a> {
    scenario: &'t Scenario,
    trace: &'t Trace<'a>,
    /// Numbers of continue tokens, in order of appearance.
    tokens: BTreeMap<String, usize>,
    /// Number of exchanges requested so far; the reads among them that are not over.
    asked: usize,
    open: Vec<&'t Exchange<'a>>,
    lines: Vec<Line>,
}

impl<'t, 'a> Writer<'t, 'a> {
    /// Writes a record, and following ones that belong on the same line; returns their number.
    fn write(&mut self, record: &Record, rest: &[Record]) -> usize {
        let mut used = 1;
        self.follow(record.seq);
        match record.what.group() {
            Group::Exchange(of) => used += self.exchange(record, of, rest),
            Group::Connection(ConnectionRecord::Connected { .. } | ConnectionRecord::Disconnected { .. })
            | Group::Script(ScriptRecord::Bound { .. }) => {}
            Group::Connection(ConnectionRecord::Goaway { .. } | ConnectionRecord::Refused)
            | Group::Store(StoreRecord::Restored { .. } | StoreRecord::Turned { .. })
            | Group::Script(
                ScriptRecord::Rule { .. } | ScriptRecord::UpstreamWrite { .. } | ScriptRecord::ScriptDone,
            )
            | Group::Run(
                RunRecord::ClientExited { .. }
                | RunRecord::ClientRestarted { .. }
                | RunRecord::StopRequested
                | RunRecord::LeftOpen { .. }
                | RunRecord::RunEnded(_),
            ) => self.line(record, line::text(&record.what)),
            Group::Store(StoreRecord::Wrote(write)) => used += self.wrote(record, write, rest),
            Group::Script(ScriptRecord::Step { step, how }) => {
                let line = self
                    .scenario
                    .steps
                    .get(*step)
                    .map(|step| step.at.line)
                    .unwrap_or_default();
                self.line(
                    record,
                    format!("step {} (line {line}): {how}", step + 1)
                        .trim_end_matches([':', ' '])
                        .to_owned(),
                );
            }
            Group::Run(RunRecord::Reported(report)) => {
                let key = report.object().map(|object| object.key()).unwrap_or_default();
                let at = crate::trace::Moment {
                    seq: record.seq,
                    at: record.at,
                };
                let text = words::report(self.scenario, &Reported { at, report, key });
                self.line(record, text);
            }
        }
        used
    }

    /// Writes a record of an exchange; returns the number of following ones that belong on the same line.
    fn exchange(&mut self, record: &Record, of: ExchangeRecord<'_>, rest: &[Record]) -> usize {
        let mut used = 0;
        match of {
            ExchangeRecord::Sent { .. } | ExchangeRecord::Webhook { .. } => {
                self.line(record, line::text(&record.what))
            }
            ExchangeRecord::Request { stream, path, .. } => {
                let Some(exchange) = self.trace.exchange(*stream) else {
                    return used;
                };
                let text = self.request(exchange, path);
                self.line(record, text);
            }
            ExchangeRecord::Head {
                stream,
                status,
                retry_after,
                ..
            } => {
                // A body that follows immediately is printed on the line of its status.
                let body = rest.iter().find(|next| next.what.stream() == Some(*stream));
                let merged = body.is_some_and(|next| {
                    next.at == record.at && matches!(next.what, What::Page { .. } | What::Body { .. })
                });
                if !merged {
                    let mut text = status.to_string();
                    if let Some(after) = retry_after {
                        text.push_str(&format!(" Retry-After: {after}"));
                    }
                    self.line(record, self.about(*stream, text));
                }
            }
            ExchangeRecord::Page {
                stream,
                resource_version,
                continue_token,
                remaining,
                items,
                ..
            } => {
                let mut text = self.status(*stream, record);
                text.push_str(&format!("rv={resource_version} items={}", items.len()));
                if !items.is_empty() {
                    let state = |item: &_| words::object(self.scenario, item);
                    text.push_str(&format!(" ({})", words::few(items, 12, state).replace(", ", " ")));
                }
                if !continue_token.is_empty() {
                    text.push_str(&format!(" continue={}", self.token(continue_token)));
                }
                if let Some(remaining) = remaining {
                    text.push_str(&format!(" remaining={remaining}"));
                }
                self.line(record, self.about(*stream, text));
            }
            ExchangeRecord::Body {
                stream,
                bytes,
                reason,
                message,
                continue_token,
            } => {
                let scripted = self
                    .trace
                    .exchange(*stream)
                    .and_then(|exchange| exchange.head)
                    .is_some_and(|head| head.scripted);
                let mut text = self.status(*stream, record);
                match (reason, message) {
                    (Some(reason), Some(message)) => text.push_str(&format!("{reason} {message:?}")),
                    (Some(word), None) | (None, Some(word)) => text.push_str(word),
                    (None, None) => text.push_str(&format!("{bytes} bytes")),
                }
                if let Some(token) = continue_token.as_deref().filter(|token| !token.is_empty()) {
                    text.push_str(&format!(" continue={}", self.token(token)));
                }
                self.line_by(record, server(scripted), self.about(*stream, text));
            }
            ExchangeRecord::Torn { stream, sent, bytes } => {
                let (how, more) = ending(*stream, rest);
                used += more;
                let text = format!("{how} after {sent} of {bytes} bytes of the body");
                self.line(record, self.about(*stream, text));
            }
            ExchangeRecord::Frame { stream, frame } if !frame.whole() => {
                let (how, more) = ending(*stream, rest);
                used += more;
                let text = format!(
                    "{how} after {} of {} bytes of {}",
                    frame.sent,
                    frame.bytes,
                    self.frame(frame)
                );
                self.line(record, self.about(*stream, text));
            }
            ExchangeRecord::Frame { stream, frame } => {
                let text = self.frame(frame);
                self.line(record, self.about(*stream, text));
            }
            ExchangeRecord::End { stream, how, by } => self.end(record, *stream, *how, *by),
            ExchangeRecord::Withheld { stream, object } => {
                let text = format!("kept back {}", words::object(self.scenario, object));
                self.line(record, self.about(*stream, text));
            }
        }
        used
    }

    fn request(&mut self, exchange: &Exchange<'_>, path: &str) -> String {
        let mut text = match exchange.verb {
            Verb::Other => format!("{} {path}", exchange.method),
            Verb::List | Verb::Watch | Verb::WatchList => {
                let resource = path.rsplit('/').next().unwrap_or(path);
                format!("{} {resource}", exchange.verb.word())
            }
        };
        for (key, value) in exchange.query {
            match key.as_str() {
                "watch" => {}
                "sendInitialEvents" if exchange.verb == Verb::WatchList => {}
                "continue" => text.push_str(&format!(" continue={}", self.token(value))),
                _ => text.push_str(&format!(" {key}={value}")),
            }
        }
        for violation in exchange.violations {
            text.push_str(&format!(" [illegal: {violation}]"));
        }
        text
    }

    /// Returns the status of a response, if it was not printed before its body.
    fn status(&self, stream: StreamId, record: &Record) -> String {
        match self.trace.exchange(stream).and_then(|exchange| exchange.head) {
            Some(head) if head.sent.at == record.at => {
                let after = head
                    .retry_after
                    .map(|after| format!(" Retry-After: {after}"))
                    .unwrap_or_default();
                format!("{}{after} ", head.status)
            }
            Some(_) | None => String::new(),
        }
    }

    fn frame(&self, frame: &Frame) -> String {
        line::frame(frame, |object| words::object(self.scenario, object))
    }

    fn end(&mut self, record: &Record, stream: StreamId, how: Ending, by: Side) {
        let watch = self
            .trace
            .exchange(stream)
            .is_some_and(|exchange| exchange.is_watch() && exchange.body_sent().is_none());
        match by {
            Side::Client => self.line(record, self.about(stream, "closed".to_owned())),
            // The clean end of a complete body is not printed.
            Side::Server if how == Ending::Eof && !watch => {}
            Side::Server => self.line(record, self.about(stream, how.word())),
        }
    }

    /// Writes of the same type at the same instant share a line; returns how many more were consumed.
    fn wrote(&mut self, record: &Record, write: &StoreWrite, rest: &[Record]) -> usize {
        let op = |write: &StoreWrite| line::op(write.op);
        let state = |write: &StoreWrite| {
            let state = words::object(self.scenario, &write.object);
            let foreign = write.resource != self.scenario.target.plural;
            let resource = if foreign {
                format!("{}/", write.resource)
            } else {
                String::new()
            };
            let outside = !foreign && !write.selected && write.op != WriteOp::Delete;
            format!(
                "{resource}{state}{}",
                if outside { " (not selected)" } else { "" }
            )
        };
        let mut text = format!("{} {}", op(write), state(write));
        let mut more = 0;
        for next in rest.iter().take_while(|next| next.at == record.at) {
            let Some(also) = written(&next.what).filter(|also| op(also) == op(write)) else {
                break;
            };
            if more < 11 {
                text.push_str(&format!(" {}", state(also)));
            }
            more += 1;
        }
        if more > 11 {
            text.push_str(&format!(" and {} more", more - 11));
        }
        self.line(record, text);
        more
    }

    fn token(&mut self, token: &str) -> String {
        let next = self.tokens.len() + 1;
        let number = *self.tokens.entry(token.to_owned()).or_insert(next);
        format!("T{number}")
    }

    /// Updates the set of open reads up to `seq`, which never decreases.
    fn follow(&mut self, seq: u64) {
        let before = self.trace.asked_before(seq);
        let reads = before[self.asked..]
            .iter()
            .filter(|exchange| exchange.verb != Verb::Other);
        self.open.extend(reads);
        self.open
            .retain(|exchange| exchange.over().is_none_or(|over| over.seq >= seq));
        self.asked = before.len();
    }

    /// Adds the request that a response belongs to, if more than one is open.
    fn about(&self, stream: StreamId, text: String) -> String {
        let rival = self.open.iter().any(|exchange| exchange.stream != stream);
        match self.trace.exchange(stream).filter(|_| rival) {
            Some(exchange) => {
                let since = words::time(exchange.asked.at);
                format!("{text}   [{} of {since}]", exchange.verb.word())
            }
            None => text,
        }
    }

    fn line(&mut self, record: &Record, text: String) {
        self.line_by(record, who(&record.what), text);
    }

    fn line_by(&mut self, record: &Record, who: &str, text: String) {
        let text = format!("{who} {text}");
        match self.lines.last_mut() {
            Some(last) if last.text == text => {
                last.times += 1;
                last.until = record.at;
            }
            Some(_) | None => {
                self.lines.push(Line {
                    at: record.at,
                    text,
                    times: 1,
                    until: record.at,
                });
            }
        }
    }

    fn finish(self) -> String {
        let mut text = String::new();
        let left_out = self.lines.len().saturating_sub(FIRST_LINES + LAST_LINES);
        for (index, line) in self.lines.iter().enumerate() {
            if left_out > 0 && index == FIRST_LINES {
                text.push_str(&format!("… {left_out} lines left out\n"));
            }
            if left_out > 0 && (FIRST_LINES..FIRST_LINES + left_out).contains(&index) {
                continue;
            }
            text.push_str(&format!("{} {}", words::time(line.at), line.text));
            if line.times > 1 {
                text.push_str(&format!(" … ×{} until {}", line.times, words::time(line.until)));
            }
            text.push('\n');
        }
        text
    }
}

/// Describes how the truncated response ended, and returns how many following records were consumed.
fn ending(stream: StreamId, rest: &[Record]) -> (String, usize) {
    match rest.first().map(|next| &next.what) {
        Some(What::End {
            stream: ended,
            how,
            by: Side::Server,
        }) if *ended == stream => (how.word(), 1),
        Some(_) | None => ("cut".to_owned(), 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge;
    use crate::trace::sample::{Sample, scenario};

    #[test]
    fn a_story_reads_from_the_top() {
        let mut s = Sample::new();
        s.wrote("a", "1001").wrote("b", "1002");
        s.list(&[("limit", "2")])
            .page("1002", "bG9uZw==", &[("a", "1001"), ("b", "1002")]);
        s.list(&[("limit", "2"), ("continue", "bG9uZw==")])
            .refuse(429, "TooManyRequests", Some("1"), None);
        s.after(1500)
            .list(&[("limit", "2"), ("continue", "bG9uZw==")])
            .page("1002", "", &[]);
        s.emit_init(&[("a", "1001"), ("b", "1002")]);
        s.watch("1002")
            .after(1500)
            .deleted("a", "1003")
            .removed("a", "1003")
            .emit_delete("a", "1003");
        for _ in 0..3 {
            s.after(60_000).bookmark("1003", None);
        }
        s.wrote("c", "1004")
            .torn_added("c", "1004", 17)
            .rst()
            .emit_error("connection reset");
        s.after(800)
            .watch("1003")
            .added("c", "1004")
            .emit_apply("c", "1004");
        let records = s.push(What::StopRequested).complete();
        let scenario = scenario();
        let verdict = judge(&scenario, &records);
        insta::assert_snapshot!(accepted(&scenario, &Trace::new(&records), &verdict), @r#"
        0.000s store  . create a@1001 b@1002
        0.000s client > LIST configmaps limit=2
        0.000s server < 200 rv=1002 items=2 (a@1001 b@1002) continue=T1
        0.000s client > LIST configmaps limit=2 continue=T1
        0.000s server ~ 429 Retry-After: 1 TooManyRequests "refused"
        1.500s client > LIST configmaps limit=2 continue=T1
        1.500s server < 200 rv=1002 items=0
        1.500s client * init
        1.500s client * init_apply a@1001
        1.500s client * init_apply b@1002
        1.500s client * init_done
        1.500s client > WATCH configmaps resourceVersion=1002
        1.500s server < 200
        3.000s store  . delete a@1003
        3.000s server < DELETED a@1003
        3.000s client * delete a@1003
        63.000s server < BOOKMARK @1003 … ×3 until 183.000s
        183.000s store  . create c@1004
        183.000s server ~ rst after 17 of 100 bytes of ADDED c@1004
        183.000s client * error "connection reset"
        183.800s client > WATCH configmaps resourceVersion=1003
        183.800s server < 200
        183.800s server < ADDED c@1004
        183.800s client * apply c@1004
        183.800s runner . stop
        183.800s script . done
        183.800s runner . complete
        verdict: pass
        "#);
    }
}

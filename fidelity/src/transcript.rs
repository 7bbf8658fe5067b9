//! Transcript of a probe as text: requests and responses, line by line. Two servers are equal if their texts are, so nothing
//! here may depend on the machine or the time.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::time::Duration;

use fake_apiserver::model::unevaluated;

use crate::normalise::Normaliser;
use crate::player::{Item, Played};
use crate::probe::{Probe, Rule};
use crate::webhook::Called;

#[expect(clippy::too_many_lines, reason = "one arm for each item of a transcript")]
pub(crate) fn render(probe: &Probe, played: &Played, authority: &str) -> String {
    let rule = |rule| probe.normalise.contains(&rule);
    let mut normaliser = Normaliser::new(authority);
    normaliser.hidden = played.hidden.clone();
    normaliser.keep_managed_fields = rule(Rule::KeepManagedFields);
    normaliser.hide_retry_after = rule(Rule::HideRetryAfter);
    normaliser.causes_once = rule(Rule::CausesOnce);
    for value in played.captures.values() {
        match value.parse() {
            Ok(number) => normaliser.collect_version(number),
            Err(_) => normaliser.collect(&as_token(value)),
        }
    }
    let mut called = BTreeSet::new();
    let items: Vec<&Item> = { played.items.iter() }
        .filter(|item| {
            let Item::Called(call) = item else { return true };
            !rule(Rule::HideCalls) && (!rule(Rule::CallsOnce) || called.insert(without_uid(call)))
        })
        .collect();
    for item in &items {
        match item {
            Item::Answered { body, .. } => normaliser.collect(&String::from_utf8_lossy(body)),
            // Which of them arrived is random, and so would be the ordinals.
            Item::Line { .. } if rule(Rule::CountOnly) => {}
            // Bookmarks that are removed must not affect ordinals either.
            Item::Line { text, .. } if rule(Rule::DropPlainBookmarks) && is_plain_bookmark(text) => {}
            Item::Line { text, .. } => normaliser.collect(text),
            Item::Called(called) => normaliser.collect(&called.body),
            Item::Asked { .. } | Item::Opened { .. } | Item::Ended { .. } | Item::Did(_) => {}
        }
    }
    normaliser.seal();

    let mut out = format!("# {}\n", probe.title);
    for (name, value) in &played.captures {
        let shown = match value.parse() {
            Ok(number) => normaliser.version(number),
            // Normalised like a body: a token is decoded, a uid numbered.
            Err(_) => {
                let seen = normaliser.rewrite(&as_token(value));
                seen.trim_start_matches("{\"continue\":\"")
                    .trim_end_matches("\"}")
                    .to_owned()
            }
        };
        let _ = writeln!(out, "# {{{name}}} is {shown}");
    }
    let mut counter = LineCounter::default();
    let mut last_bookmark = None;
    for item in items {
        match item {
            Item::Asked {
                method,
                path,
                user,
                headers,
                body,
                repeat,
            } => {
                counter.flush(&mut out);
                let times = if *repeat > 1 {
                    format!(" ({repeat} times, the last is shown)")
                } else {
                    String::new()
                };
                let _ = writeln!(out, "\n> {method} {path}{user}{times}");
                for header in headers {
                    let _ = writeln!(out, "> {header}");
                }
                if let Some(body) = body {
                    let body = normaliser.rewrite_plain(body);
                    let body = if body.is_empty() { "(empty)" } else { &body };
                    let _ = writeln!(out, ">\n> {}", body.trim_end().replace('\n', "\n> "));
                }
            }
            Item::Opened { head, took } => {
                write_head(&mut out, &mut normaliser, &head.line, &head.headers, None);
                if let Some(seconds) = seconds(*took) {
                    let _ = writeln!(out, "= opened after {seconds} s");
                }
            }
            Item::Answered {
                head,
                body,
                broken,
                took,
            } => {
                write_head(
                    &mut out,
                    &mut normaliser,
                    &head.line,
                    &head.headers,
                    Some(body.len()),
                );
                let content_type = head.header("content-type").unwrap_or_default();
                write_body(&mut out, &mut normaliser, content_type, body);
                if let Some(why) = broken {
                    let _ = writeln!(out, "= broken off: {why}");
                }
                match seconds(*took) {
                    Some(seconds) if !rule(Rule::HideTimes) => {
                        let _ = writeln!(out, "= answered after {seconds} s");
                    }
                    _ => {}
                }
            }
            Item::Line { text, after } => {
                if rule(Rule::CountOnly) {
                    counter.count(text);
                    continue;
                }
                if is_plain_bookmark(text) && rule(Rule::DropPlainBookmarks) {
                    continue;
                }
                let text = normaliser.rewrite(text);
                if rule(Rule::CollapseBookmarks) {
                    if last_bookmark.as_ref() == Some(&text) {
                        continue;
                    }
                    last_bookmark = text.contains("\"BOOKMARK\"").then(|| text.clone());
                }
                match seconds(*after) {
                    Some(seconds) if !rule(Rule::HideTimes) => {
                        let _ = writeln!(out, "+{seconds}s | {text}");
                    }
                    _ => {
                        let _ = writeln!(out, "| {text}");
                    }
                }
            }
            Item::Ended { how, after } => {
                counter.flush(&mut out);
                let when = match seconds(*after) {
                    Some(seconds) if !rule(Rule::HideTimes) => format!(", after {seconds} s"),
                    _ => String::new(),
                };
                let _ = writeln!(out, "= ended by {how}{when}");
            }
            Item::Did(what) => {
                let _ = writeln!(out, "\n* {what}");
            }
            Item::Called(called) => {
                let _ = writeln!(out, "* webhook: {}", called.line);
                for header in &called.headers {
                    let _ = writeln!(out, "* {header}");
                }
                let _ = writeln!(out, "* {}", normaliser.rewrite(&called.body).trim_end());
            }
        }
    }
    out
}

/// A call apart from the uid of its review.
fn without_uid(call: &Called) -> String {
    let mut review: serde_json::Value = serde_json::from_str(&call.body).unwrap_or_default();
    review.pointer_mut("/request/uid").map(serde_json::Value::take);
    format!("{} {review}", call.line)
}

fn is_plain_bookmark(text: &str) -> bool {
    text.starts_with("{\"type\":\"BOOKMARK\"") && !text.contains("k8s.io/initial-events-end")
}

fn as_token(value: &str) -> String {
    format!("{{\"continue\":\"{value}\"}}")
}

/// Rounds to whole seconds. Up to 0.2 s more is ignored, since the timer of a server starts when it has received the request;
/// below one second there is no time.
fn seconds(after: Duration) -> Option<u64> {
    let seconds = (after + Duration::from_millis(200)).as_secs();
    (seconds > 0).then_some(seconds)
}

fn write_head(
    out: &mut String,
    normaliser: &mut Normaliser,
    line: &str,
    headers: &[(String, String)],
    length: Option<usize>,
) {
    let _ = writeln!(out, "< {line}");
    for (name, value) in headers {
        // The fake's own warning has no counterpart; docs/fidelity.md lists its subjects.
        if name == "warning" && value.contains(&format!("\"{}", unevaluated::PREFIX)) {
            continue;
        }
        let value = match name.as_str() {
            "date" | "last-modified" => "<date>".to_owned(),
            // Numbering them with other uids would shift those in bodies.
            "audit-id" | "x-kubernetes-pf-flowschema-uid" | "x-kubernetes-pf-prioritylevel-uid"
                if value.len() == 36 =>
            {
                "<uid>".to_owned()
            }
            "content-length" if length.is_some_and(|length| value == &length.to_string()) => {
                "<as long as the body>".to_owned()
            }
            _ => normaliser.rewrite_plain(value),
        };
        let _ = writeln!(out, "< {name}: {value}");
    }
}

fn write_body(out: &mut String, normaliser: &mut Normaliser, content_type: &str, body: &[u8]) {
    if body.is_empty() {
        out.push_str("= no body\n");
        return;
    }
    let Ok(text) = std::str::from_utf8(body) else {
        let start: String = body.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
        let _ = writeln!(out, "= bytes that are no text, starting with {start}");
        return;
    };
    if content_type.contains("protobuf") {
        let start: String = body.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
        let _ = writeln!(out, "= protobuf, starting with {start}");
        return;
    }
    let seen = if content_type.contains("json") {
        normaliser.rewrite(text)
    } else {
        normaliser.rewrite_plain(text)
    };
    let _ = writeln!(out, "{}", seen.strip_suffix('\n').unwrap_or(&seen));
    if !text.ends_with('\n') {
        out.push_str("= no newline at the end\n");
    }
}

#[derive(Default)]
struct LineCounter {
    kinds: Vec<String>,
}

impl LineCounter {
    fn count(&mut self, line: &str) {
        let kind = line.split('"').nth(3).unwrap_or("unreadable").to_owned();
        if !self.kinds.contains(&kind) {
            self.kinds.push(kind);
        }
    }

    fn flush(&mut self, out: &mut String) {
        if !self.kinds.is_empty() {
            let _ = writeln!(out, "| some lines of type {}", self.kinds.join(", "));
            self.kinds.clear();
        }
    }
}

//! Expectations: how many requests, and the failure message: which requests came instead, nearest first.

use std::collections::BTreeSet;
use std::fmt::{self, Write as _};
use std::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};
use std::time::Duration;

use fake_apiserver::record::Record;
use fake_apiserver::scenario::Waiting;

use crate::matcher::{Matcher, Pattern, kind};
use crate::request::requests;
use crate::server::FakeApiserver;

/// Requests shown of those that matched, and of the others.
const SHOWN_MAX: usize = 10;

/// A number or a range: `2`, `1..`, `..=3`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Count {
    least: usize,
    most: usize,
}

impl Count {
    fn is(&self, count: usize) -> bool {
        (self.least..=self.most).contains(&count)
    }
}

impl From<usize> for Count {
    fn from(exactly: usize) -> Self {
        (exactly..=exactly).into()
    }
}

impl From<RangeInclusive<usize>> for Count {
    fn from(range: RangeInclusive<usize>) -> Self {
        let (least, most) = range.into_inner();
        Self { least, most }
    }
}

impl From<Range<usize>> for Count {
    fn from(range: Range<usize>) -> Self {
        (range.start..=range.end.saturating_sub(1)).into()
    }
}

impl From<RangeFrom<usize>> for Count {
    fn from(range: RangeFrom<usize>) -> Self {
        (range.start..=usize::MAX).into()
    }
}

impl From<RangeTo<usize>> for Count {
    fn from(range: RangeTo<usize>) -> Self {
        (0..range.end).into()
    }
}

impl From<RangeToInclusive<usize>> for Count {
    fn from(range: RangeToInclusive<usize>) -> Self {
        (0..=range.end).into()
    }
}

impl From<RangeFull> for Count {
    fn from(_: RangeFull) -> Self {
        (0..).into()
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.least, self.most) {
            (0, 0) => f.write_str("never"),
            (1, 1) => f.write_str("once"),
            (least, most) if least == most => write!(f, "{least} times"),
            (0, usize::MAX) => f.write_str("any number of times"),
            (1, usize::MAX) => f.write_str("at least once"),
            (0, 1) => f.write_str("at most once"),
            (least, usize::MAX) => write!(f, "at least {least} times"),
            (0, most) => write!(f, "at most {most} times"),
            (least, most) => write!(f, "{least} to {most} times"),
        }
    }
}

impl FakeApiserver {
    /// Asserts how many matching requests there were since the start: a number or a range of it.
    ///
    /// ```should_panic
    /// # use fake_apiserver_testing::{FakeApiserver, List};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// let server = FakeApiserver::start().await;
    /// server.expect(List::of("pods"), 1..); // expected LIST pods at least once, got 0
    /// # }
    /// ```
    ///
    /// # Panics
    /// There were more or less of them: with those that matched, and the others, nearest first. Also if the matcher has
    /// mistakes.
    #[track_caller]
    pub fn expect<K: kind::RequestKind>(&self, matcher: Matcher<K>, count: impl Into<Count>) {
        let (count, served) = (count.into(), self.served());
        let failure = self.edge.read_records(0, |records| {
            let matched = matched(records, &matcher.pattern, &served)?;
            if count.is(matched.len()) {
                return Ok(None);
            }
            let got = matched.len();
            let others = others(records, &matcher.pattern, &served);
            Ok(Some(format!("expected {matcher} {count}, got {got}\n{others}")))
        });
        match failure {
            Ok(None) => {}
            Ok(Some(text)) | Err(text) => panic!("{text}"),
        }
    }

    /// Asserts that no client violated an invariant of LIST and WATCH so far ([`FakeApiserver::verdict`]), and that every rule
    /// was carried out at least once. A strict server does it when it is dropped.
    ///
    /// # Panics
    /// They did, or a rule was not: with the requests that prove it.
    #[track_caller]
    pub fn assert_clean(&self) {
        let mut wrong = Vec::new();
        wrong.extend(self.edge.breakage());
        let verdict = self.verdict();
        if !verdict.is_pass() {
            wrong.push(verdict.to_string());
        }
        let unused = self.edge.steer(|server, _| {
            let mine = self.lock_rules();
            let rules = server.rules().into_iter();
            let unused = rules.filter(|rule| rule.met == 0 && mine.contains(&rule.id));
            unused
                .map(|rule| {
                    let name = rule.name.unwrap_or_else(|| rule.id.to_string());
                    format!(
                        "rule {name} was never carried out: {} on {}",
                        rule.does, rule.waits_for
                    )
                })
                .collect::<Vec<_>>()
        });
        wrong.extend(unused.unwrap_or_default());
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}

/// Returns the records of matching requests.
fn matched(records: &[Record], pattern: &Pattern, served: &[String]) -> Result<BTreeSet<u64>, String> {
    let mut waiting = Waiting::new(pattern.wait(served, Duration::from_secs(1))?, 0);
    let matched = records.iter().filter(|record| waiting.is_met(record));
    Ok(matched.map(|record| record.seq).collect())
}

/// Formats the matching requests, and the others with their mismatches, nearest first.
pub(crate) fn others(records: &[Record], pattern: &Pattern, served: &[String]) -> String {
    let sent = requests(records);
    if sent.is_empty() {
        return "no request came at all".to_owned();
    }
    // Mistakes of the whole matcher were reported before.
    let are = matched(records, pattern, served).unwrap_or_default();
    let conditions: Vec<(String, BTreeSet<u64>)> = pattern
        .conditions()
        .into_iter()
        .map(|(words, one)| (words, matched(records, &one, served).unwrap_or_default()))
        .collect();
    let mut others: Vec<(usize, String)> = Vec::new();
    let mut shown: Vec<String> = Vec::new();
    for (record, request) in &sent {
        if are.contains(&record.seq) {
            shown.push(request.to_string());
            continue;
        }
        let lacks: Vec<&str> = conditions
            .iter()
            .filter(|(_, meet)| !meet.contains(&record.seq))
            .map(|(words, _)| words.as_str())
            .collect();
        let why = if lacks.is_empty() {
            "another number".to_owned()
        } else {
            lacks.join(", ")
        };
        others.push((lacks.len(), format!("{request}   ({why})")));
    }
    // Stable: of equally near requests, the earlier first.
    others.sort_by_key(|(lacks, _)| *lacks);
    let mut text = String::new();
    list(&mut text, "matched", shown);
    list(
        &mut text,
        "others, nearest first",
        others.into_iter().map(|(_, line)| line).collect(),
    );
    text.trim_end().to_owned()
}

fn list(text: &mut String, title: &str, lines: Vec<String>) {
    if lines.is_empty() {
        return;
    }
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{title}:");
    for line in lines.iter().take(SHOWN_MAX) {
        let _ = writeln!(text, "  {line}");
    }
    if let Some(more) = lines.len().checked_sub(SHOWN_MAX).filter(|more| *more > 0) {
        let _ = writeln!(text, "  and {more} more");
    }
}

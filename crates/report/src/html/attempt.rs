//! One attempt: contradictions, the figure of the timeline, and the events in three lanes.

use std::collections::{BTreeMap, BTreeSet};

use fake_apiserver::scenario::{Scenario, catalogue};
use maud::{Markup, html};

use super::model::{Attempt, Cell, Client, Page, Test, sign};
use super::source;
use crate::results::Found;
use crate::text::{count, cut};
use crate::timeline::{Lane, Line, Row};

/// Contradictions shown per attempt.
const FOUND_MAX: usize = 20;

/// Records linked per contradiction.
const PROOFS_MAX: usize = 12;

/// Characters of standard error shown.
const STDERR_MAX: usize = 4000;

pub(super) fn section(
    page: &Page<'_>,
    test: &Test<'_>,
    client: &Client,
    cell: &Cell<'_>,
    attempt: &Attempt<'_>,
    is_open: bool,
) -> Markup {
    let summary = &attempt.evidence.summary;
    let outcome = summary.outcome;
    html! {
        details.attempt id=(attempt.slug) open[is_open] {
            summary {
                span.outcome.(outcome.word()) {
                    span.mark aria-hidden="true" { (sign(outcome)) } " " (outcome.word())
                }
                @if page.clients.len() > 1 { " " span.who { (client.name) " " (client.version) } }
                @if cell.attempts.len() > 1 { " " span.which { "attempt " (attempt.number) } }
                " " span.took { (seconds(summary.took_ms as f64)) }
            }
            @if let Some(known) = cell.known {
                p.known { strong { "Known failure. " } (cut(&known.reason, 600)) " " span.issue { (cut(&known.issue, 200)) } }
            }
            @if attempt.found.is_empty() && !summary.message.is_empty() {
                p.sentence { (cut(&summary.message, 2000)) }
            }
            @for (number, found) in (1..).zip(attempt.found.iter().take(FOUND_MAX)) {
                (contradiction(test, client, attempt, number, found))
            }
            @if attempt.found.len() > FOUND_MAX {
                p.note { (attempt.found.len() - FOUND_MAX) " more contradictions are in the evidence." }
            }
            @if attempt.drawn { (events(test, attempt)) }
            @else {
                p.note {
                    (count(attempt.number_of_rows(), "record")) " left out: the page is full. "
                    "Draw fewer runs, or this directory alone."
                }
            }
            (stderr(attempt))
            @if let Some(rerun) = cell.rerun {
                p.rerun { "Run again: " code { (cut(rerun, 1000)) } }
            }
        }
    }
}

fn contradiction(
    test: &Test<'_>,
    client: &Client,
    attempt: &Attempt<'_>,
    number: usize,
    found: &Found,
) -> Markup {
    let line = found.line_and_column().map(|(line, _)| line);
    let drawn = attempt.times(&found.evidence);
    html! {
        div.found id={ (attempt.slug) "!" (number) } {
            p.check {
                span.mark aria-hidden="true" { "✗" } " "
                span.name { (cut(&found.check, 80)) }
                @for id in &found.requirements {
                    " " span.requirement title=[catalogue::requirement(id).map(|one| one.text.as_str())] {
                        (cut(id, 40))
                        @if let Some(level) = client.level(id) { " " span.level { (level.word()) } }
                    }
                }
                @if let (Some(line), Some(_)) = (line, &test.source) {
                    " " a.step href={ "#" (source::fragment(test, line)) } { "line " (line) }
                }
            }
            p.sentence { (cut(&found.sentence, 2000)) }
            @if !found.expected.is_empty() || !found.actual.is_empty() {
                dl.against {
                    dt { "expected" } dd { (cut(&found.expected, 600)) }
                    dt { "actual" } dd { (cut(&found.actual, 600)) }
                }
            }
            @if !drawn.is_empty() {
                p.proof {
                    "Evidence: "
                    @for (seq, at) in drawn.iter().take(PROOFS_MAX) {
                        @if attempt.drawn { a href={ "#" (event(attempt, *seq)) } { (seconds(*at)) } }
                        @else { (seconds(*at)) }
                        " "
                    }
                    @if drawn.len() > PROOFS_MAX { "and " (drawn.len() - PROOFS_MAX) " more" }
                }
            }
            @if let (Some(line), Some(text)) = (line, test.source.as_ref().map(|_| attempt.evidence.text.as_str())) {
                (source::excerpt(text, line))
            }
        }
    }
}

/// Returns the fragment of an event.
fn event(attempt: &Attempt<'_>, seq: u64) -> String {
    format!("{}@{seq}", attempt.slug)
}

/// Data of the timeline: the script draws it into the empty figure above.
fn events(test: &Test<'_>, attempt: &Attempt<'_>) -> Markup {
    let mut proofs: BTreeMap<u64, Vec<(usize, &str)>> = BTreeMap::new();
    for (number, found) in (1..).zip(attempt.found.iter().take(FOUND_MAX)) {
        for seq in &found.evidence {
            proofs.entry(*seq).or_default().push((number, &found.check));
        }
    }
    let scenario = test.source.as_ref().and_then(|source| source.scenario.as_deref());
    let marked: BTreeSet<u64> = proofs.keys().copied().collect();
    let title = format!("Events of {}", cut(&attempt.slug, 200));
    html! {
        figure.timeline data-of=(attempt.slug) hidden {}
        div.events role="region" tabindex="0" aria-label=(title) {
            table {
                thead {
                    tr {
                        th scope="col" { "time" }
                        @for lane in Lane::ALL { th scope="col" { (lane.title()) } }
                    }
                }
                tbody {
                    @for row in attempt.rows(&marked) {
                        @match row {
                            Row::Gap(number) => tr.gap { td colspan="4" { (count(number as usize, "record")) " left out" } },
                            Row::Record(line) => (record(test, attempt, &line, scenario, proofs.get(&line.seq))),
                        }
                    }
                }
            }
        }
    }
}

fn record(
    test: &Test<'_>,
    attempt: &Attempt<'_>,
    line: &Line,
    scenario: Option<&Scenario>,
    flags: Option<&Vec<(usize, &str)>>,
) -> Markup {
    let id = event(attempt, line.seq);
    let steps = scenario
        .map(|scenario| scenario.steps.as_slice())
        .unwrap_or_default();
    let step_line = line.step.and_then(|step| Some(steps.get(step)?.at.line));
    html! {
        tr.scripted[line.scripted].proof[flags.is_some()] id=(id) data-t=(format!("{:.3}", line.at_ms)) data-lane=(line.lane.word())
            data-kind=(line.kind) data-stream=[line.stream] data-conn=[line.conn] data-label=(line.label) {
            td.time { a href={ "#" (id) } { (format!("{:.3}", line.at_ms.floor() / 1000.0)) } }
            @for lane in Lane::ALL {
                @if lane == line.lane {
                    td.(lane.word()) {
                        (line.text)
                        @if let Some(at) = step_line {
                            " " a.step href={ "#" (source::fragment(test, at)) } { "line " (at) }
                        }
                        @for (number, check) in flags.into_iter().flatten() {
                            " " a.flag href={ "#" (attempt.slug) "!" (number) } { "✗ " (cut(check, 60)) }
                        }
                    }
                } @else { td {} }
            }
        }
    }
}

fn stderr(attempt: &Attempt<'_>) -> Markup {
    let text = attempt.evidence.errors.trim();
    let lines: Vec<String> = text
        .chars()
        .take(STDERR_MAX)
        .collect::<String>()
        .lines()
        .map(|line| cut(line, 400))
        .collect();
    html! {
        @if !lines.is_empty() {
            details.stderr {
                summary { "Standard error of the adapter" }
                pre tabindex="0" role="region" aria-label="Standard error of the adapter" { (lines.join("\n")) }
            }
        }
    }
}

/// `0.124 s`: truncated, as in the judge's sentences.
fn seconds(ms: f64) -> String {
    format!("{:.3} s", ms.floor() / 1000.0)
}

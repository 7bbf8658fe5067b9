//! The matrix: a row per test, a column per client. It must not know traces.

use conformance::adapter::outcome::Outcome;
use conformance::adapter::standing::Standing;
use maud::{Markup, html};

use super::model::{Cell, Page, Test, sign};
use crate::text::cut;

/// Characters of a reason in a cell.
const REASON_MAX: usize = 220;

pub(super) fn section(page: &Page<'_>) -> Markup {
    let single = page.clients.len() == 1;
    html! {
        section #matrix {
            h2 #matrix-title { "Results" }
            div.wide role="region" aria-labelledby="matrix-title" tabindex="0" {
                table.matrix.single[single] {
                    thead {
                        tr {
                            th scope="col" { "test" }
                            @if single { th scope="col" { "outcome" } th scope="col" { "claim, and what contradicts it" } }
                            @else {
                                @for client in &page.clients {
                                    th.client scope="col" { (client.name) " " span.version { (client.version) } }
                                }
                            }
                        }
                    }
                    @for group in page.tests.chunk_by(|one, other| group(one) == group(other)) {
                        tbody { (group_rows(page, group)) }
                    }
                }
            }
            (legend())
        }
    }
}

fn group<'a>(test: &Test<'a>) -> &'a str {
    test.id.split_once('/').map_or("", |(group, _)| group)
}

fn group_rows(page: &Page<'_>, tests: &[Test<'_>]) -> Markup {
    let group = tests.first().map(group).unwrap_or_default();
    let columns = page.clients.len() + if page.clients.len() == 1 { 2 } else { 1 };
    html! {
        tr.group { th colspan=(columns) scope="rowgroup" { span { (cut(group, 80)) } } }
        @for test in tests { (row(page, test)) }
    }
}

fn row(page: &Page<'_>, test: &Test<'_>) -> Markup {
    let name = test.id.split_once('/').map_or(test.id, |(_, name)| name);
    html! {
        tr.test data-id=(cut(test.id, 200)) data-state=(test.state()) data-words=(words(page, test)) {
            th scope="row" {
                @if test.has_section() { a href={ "#" (test.fragment()) } { (cut(name, 120)) } }
                @else { (cut(name, 120)) }
                @if page.clients.len() > 1 { span.claim { (cut(&test.title, 200)) } }
            }
            @if let ([_], Some(Some(cell))) = (page.clients.as_slice(), test.cells.first()) {
                td.outcome.(cell.outcome.word()) { (mark(cell)) " " (word(cell)) }
                td.claim {
                    (cut(&test.title, 200))
                    @if !cell.message.is_empty() { span.reason { (cut(&cell.message, REASON_MAX)) } }
                }
            } @else {
                @for cell in &test.cells { (of_client(cell.as_ref())) }
            }
        }
    }
}

fn of_client(cell: Option<&Cell<'_>>) -> Markup {
    let Some(cell) = cell else {
        return html! { td.outcome.absent { span.hidden { "no result" } } };
    };
    let label = html! { (mark(cell)) span.hidden { (word(cell)) } };
    html! {
        td.outcome.(cell.outcome.word()) title=(title(cell)) {
            @if let Some(attempt) = cell.attempts.first() { a href={ "#" (attempt.slug) } { (label) } }
            @else { (label) }
        }
    }
}

fn title(cell: &Cell<'_>) -> String {
    format!("{}: {}", word(cell), cut(&cell.message, REASON_MAX))
        .trim_end_matches(": ")
        .to_owned()
}

/// Returns the outcome, and the expected one if it differs.
pub(super) fn word(cell: &Cell<'_>) -> String {
    match cell.standing {
        Some(Standing::Known) => format!("{}, known", cell.outcome.word()),
        Some(Standing::NotScored) => format!("{}, not scored", cell.outcome.word()),
        Some(Standing::Flaky) => format!("{}, flaky", cell.outcome.word()),
        Some(Standing::Stale) => "pass, known failure is stale".to_owned(),
        None
        | Some(
            Standing::Passed
            | Standing::Warned
            | Standing::NotJudged
            | Standing::Failed
            | Standing::AdapterError
            | Standing::HarnessError,
        ) => cell.outcome.word().to_owned(),
    }
}

/// Returns a mark of the outcome that does not depend on colour.
pub(super) fn mark(cell: &Cell<'_>) -> Markup {
    html! { span.mark.known[matches!(cell.standing, Some(Standing::Known | Standing::NotScored))] aria-hidden="true" { (sign(cell.outcome)) } }
}

/// Returns the text that the filter searches, in lower case.
fn words(page: &Page<'_>, test: &Test<'_>) -> String {
    let mut words = format!("{} {} {}", test.id, test.title, test.covers.join(" "));
    for (client, cell) in page.clients.iter().zip(&test.cells) {
        if let Some(cell) = cell {
            words.push_str(&format!(" {} {}", client.name, word(cell)));
        }
    }
    cut(&words.to_lowercase(), 900)
}

fn legend() -> Markup {
    html! {
        p.legend {
            @for outcome in Outcome::ALL {
                @if !matches!(outcome, Outcome::NotPlayed | Outcome::HarnessError) {
                    span.(outcome.word()) {
                        span.mark aria-hidden="true" { (sign(outcome)) } " "
                        @if outcome == Outcome::Unsupported { "not judged" }
                        @else if outcome == Outcome::AdapterError { "adapter or harness error" }
                        @else { (outcome.word()) }
                    }
                }
            }
        }
    }
}

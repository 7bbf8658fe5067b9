//! Table of clients: what was tested, and the counts. It must not know traces.

use conformance::adapter::outcome::Outcome;
use maud::{Markup, html};

use super::model::{Client, Page};
use crate::results::Kept;

pub(super) fn section(page: &Page<'_>) -> Markup {
    let shown: Vec<Outcome> = Outcome::ALL
        .into_iter()
        .filter(|outcome| (0..page.clients.len()).any(|column| number(page, column, *outcome) > 0))
        .collect();
    let editions = page.clients.iter().any(|client| client.edition.is_some());
    html! {
        section #clients {
            h2 #clients-title { "Clients" }
            div.wide role="region" aria-labelledby="clients-title" tabindex="0" {
                table.counts {
                    thead {
                        tr {
                            th scope="col" { "client" }
                            th scope="col" { "version" }
                            th scope="col" { "language" }
                            @if editions { th scope="col" { "edition" } }
                            @for outcome in &shown { th.number scope="col" { (outcome.word()) } }
                            th.number scope="col" { "MUST kept" }
                            th.number scope="col" { "SHOULD kept" }
                        }
                    }
                    tbody {
                        @for (column, client) in page.clients.iter().enumerate() {
                            (row(page, column, client, editions, &shown))
                        }
                    }
                }
            }
            @for client in &page.clients {
                @if let Some(why) = client.incomplete {
                    p.note { (client.name) ": " (why) "." }
                }
            }
        }
    }
}

fn row(page: &Page<'_>, column: usize, client: &Client, editions: bool, shown: &[Outcome]) -> Markup {
    let kept = |tally: &Kept| format!("{}/{}", tally.kept, tally.judged);
    html! {
        tr {
            th scope="row" { (client.name) }
            td { (client.version) }
            td { (client.lang) }
            @if editions { td { (client.edition.as_deref().unwrap_or("–")) } }
            @for outcome in shown {
                @let number = number(page, column, *outcome);
                td.number.(if number > 0 { outcome.word() } else { "none" }) { (number) }
            }
            @if let Some((must, should)) = &client.requirements {
                td.number { (kept(must)) }
                td.number { (kept(should)) }
            } @else {
                td.number.none { "–" }
                td.number.none { "–" }
            }
        }
    }
}

fn number(page: &Page<'_>, column: usize, outcome: Outcome) -> usize {
    let cells = page.tests.iter().filter_map(|test| test.cells[column].as_ref());
    cells.filter(|cell| cell.outcome == outcome).count()
}

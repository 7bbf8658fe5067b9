//! Requirements that the runs prove kept or broken: a row each, a column per client. It must not know traces.

use fake_apiserver::scenario::catalogue::{self, Requirement};
use maud::{Markup, html};

use super::model::{Client, Page, slug};
use crate::tally::Proven;
use crate::text::cut;

pub(super) fn section(page: &Page<'_>) -> Markup {
    let judged: Vec<&Requirement> = catalogue::requirements()
        .iter()
        .filter(|one| {
            page.clients
                .iter()
                .any(|client| client.proven.contains_key(&one.id))
        })
        .collect();
    if judged.is_empty() {
        return html! {};
    }
    let broken = |one: &&Requirement| {
        let of = |client: &Client| matches!(client.proven.get(&one.id), Some(Proven::Broken(_)));
        page.clients.iter().any(of)
    };
    let number = judged.iter().filter(|one| broken(one)).count();
    html! {
        section #requirements {
            h2 #requirements-title { "Requirements" }
            details open[number > 0 && number <= 12] {
                summary { (number) " broken of " (judged.len()) " that the tests judge" }
                div.wide role="region" aria-labelledby="requirements-title" tabindex="0" {
                    table.requirements {
                        thead {
                            tr {
                                th scope="col" { "requirement" }
                                th scope="col" { "level" }
                                @for client in &page.clients { th.client scope="col" { (client.name) } }
                                th scope="col" { "text" }
                            }
                        }
                        tbody {
                            @for one in judged.iter().filter(|one| broken(one)) { (row(page, one)) }
                            @for one in judged.iter().filter(|one| !broken(one)) { (row(page, one)) }
                        }
                    }
                }
            }
        }
    }
}

fn row(page: &Page<'_>, one: &Requirement) -> Markup {
    html! {
        tr id={ "requirement/" (slug(&one.id)) } {
            th scope="row" { (one.id) }
            td { (page.level(&one.id)) }
            @for client in &page.clients { (cell(client, one)) }
            td.claim { (one.text) }
        }
    }
}

fn cell(client: &Client, one: &Requirement) -> Markup {
    html! {
        @match client.proven.get(&one.id) {
            Some(Proven::Kept) => td.outcome.pass { span.mark aria-hidden="true" { "✓" } span.hidden { "kept" } },
            Some(Proven::Broken(tests)) => td.outcome.fail title=(cut(&tests.join(", "), 300)) {
                span.mark aria-hidden="true" { "✗" } span.hidden { "broken" }
            },
            None => td.outcome.absent { span.hidden { "not judged" } },
        }
    }
}

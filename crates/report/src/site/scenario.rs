//! One scenario: claim, reason, file, and how each client came out.

use fake_apiserver::scenario::SharedScenario;
use maud::{Markup, html};

use super::Page;
use super::layout::{self, Draft, joined, wide};
use crate::html::scenario as lines;
use crate::published::{Client, Published};

pub(super) fn page(published: &Published, scenario: &SharedScenario, text: &str) -> Page {
    let draft = Draft::new(
        layout::of_scenario(&scenario.id),
        &format!("{}: {}", scenario.id, scenario.title),
    );
    draft.page(
        false,
        &html! {
            h1.scenario { (scenario.id) }
            p.lead { (scenario.title) }
            (about(&draft, scenario))
            h2 #file { "Scenario" }
            (lines(&scenario.id, text))
            h2 #clients { "Clients" }
            (clients(published, &draft, scenario))
        },
    )
}

/// Returns why it exists, what it covers, and who is known to send its input.
pub(super) fn about(draft: &Draft, scenario: &SharedScenario) -> Markup {
    let covers: Vec<Markup> = scenario
        .covers
        .iter()
        .map(|one| draft.requirement(&one.id))
        .collect();
    html! {
        @if !scenario.why.trim().is_empty() { p { (scenario.why.trim()) } }
        dl.facts {
            dt { "covers" } dd { (joined(&covers, ", ")) }
            @if let Some(provoker) = scenario.provoked_by { dt { "provoked by" } dd { (provoker.word()) } }
        }
    }
}

fn clients(published: &Published, draft: &Draft, scenario: &SharedScenario) -> Markup {
    let row = |client: &Client| {
        let test = client.tests.get(&scenario.id);
        html! {
            tr {
                th scope="row" { (draft.client(&client.name, &client.title)) " " span.version { (client.version) } }
                @if let Some(test) = test {
                    td.(test.outcome.word()) {
                        @if test.is_failure() {
                            a href=(draft.to(&layout::of_failure(&client.name, &scenario.id))) { (test.outcome.word()) }
                        } @else if test.flaky { "flaky" }
                        @else { (test.outcome.word()) }
                    }
                    td {
                        @if let Some(why) = test.left_out.as_ref().or((!test.why.is_empty()).then_some(&test.why)) { (why) }
                        @else if let (true, Some(known)) = (test.is_failure(), &test.known) { (known.reason) }
                    }
                } @else { td.absent { "absent" } td {} }
            }
        }
    };
    let table = html! {
        table.counts {
            thead { tr { th scope="col" { "client" } th scope="col" { "outcome" } th scope="col" { "reason" } } }
            tbody { @for client in &published.clients { (row(client)) } }
        }
    };
    wide("Clients", &table)
}

//! One failure: the contradiction, the scenario's lines, the trace as timeline, and the command that shows it again. What the
//! evidence shows is drawn by the code of the HTML report.

use conformance::adapter::evidence::{Evidence as Files, Summary};
use conformance::adapter::standing::Standing;
use fake_apiserver::scenario::SharedScenario;
use maud::{Markup, html};
use serde_json::json;

use super::Page;
use super::layout::{self, Draft, issue};
use crate::html::{self, Kept, Run, scenario as lines};
use crate::published::{Client, Evidence, Source, Test, is_scored};
use crate::results::{Results, TestResult, digest};
use fake_apiserver::scenario::catalogue;

pub(super) fn page(client: &Client, test: &Test, scenario: &SharedScenario, text: &str) -> Page {
    let id = &scenario.id;
    let draft = Draft::new(
        layout::of_failure(&client.name, id),
        &format!("{}, {} {}", scenario.id, client.title, client.version),
    );
    let content = html! {
        p.kind { (draft.client(&client.name, &client.title)) " " (client.version) }
        h1 { (scenario.title) }
        p.lead {
            span.(test.outcome.word()) { (test.outcome.word()) } ": "
            @if let Some(known) = &test.known { (known.reason) (issue(&known.issue)) }
            @else { "no reason is recorded" }
        }
        (charged(&draft, scenario, test))
        @if let Some(known) = &test.known { (source(&known.source)) }
        p { "Scenario " (draft.scenario(id)) }
        (super::scenario::about(&draft, scenario))
        @if let Some(evidence) = &test.evidence {
            h2 #evidence { "Evidence" }
            (measured(evidence, text))
            (html::attempts(&run(client, test, evidence, scenario, text)))
        } @else {
            h2 #evidence { "Evidence" }
            p { "None of this attempt is committed. This command plays it again, and draws what happened:" }
            pre.command tabindex="0" role="region" aria-label="Command" { code { (client.rerun(id)) } }
            h2 #file { "Scenario" }
            (lines(id, text))
        }
    };
    draft.page(test.evidence.is_some(), &content)
}

/// The requirements that it breaks, with their texts.
fn charged(draft: &Draft, scenario: &SharedScenario, test: &Test) -> Markup {
    let charged = test.broken.iter().filter_map(|id| catalogue::requirement(id));
    html! {
        @if test.broken.is_empty() { p { "It contradicts no requirement, so that none is charged." } }
        @for one in charged {
            p {
                (draft.requirement(&one.id)) " " span.level { (one.level.word()) ", " (one.consequence.word()) } " " (one.text)
                @if !is_scored(scenario, one) {
                    " " span.small { "(hardening: " (rarer(scenario, one.provoked_by).word()) "; not scored)" }
                }
            }
        }
    }
}

/// The lines of the library's source that cause it.
fn source(source: &Source) -> Markup {
    html! {
        @if !source.lines.is_empty() {
            h2 #source { "Source" }
            @for lines in &source.lines {
                p { code { (lines.function) } ", " a href=(lines.url) { (lines.place) } }
                blockquote { code { (lines.quote) } }
            }
        } @else if !source.none.is_empty() {
            h2 #source { "Source" }
            p { (source.none) }
        }
    }
}

/// Returns the rarer of the parties that the scenario and the catalogue name.
fn rarer(scenario: &SharedScenario, other: catalogue::Provoker) -> catalogue::Provoker {
    scenario.provoked_by.map_or(other, |own| own.max(other))
}

fn measured(evidence: &Evidence, text: &str) -> Markup {
    html! {
        dl.facts {
            dt { "measured" } dd { (evidence.day) ", " (evidence.platform) }
            dt { "server" } dd { "fake-apiserver " (evidence.program) ", Kubernetes " (evidence.kubernetes) }
            dt { "trace" } dd { (evidence.of) " records, trimmed to " (evidence.trace.len()) }
        }
        @if digest(text) != evidence.digest {
            p.note { "The scenario’s file has changed since, so that no line of it is marked." }
        }
    }
}

/// Returns the run that a report of this failure alone is drawn from.
fn run(client: &Client, test: &Test, evidence: &Evidence, scenario: &SharedScenario, text: &str) -> Run {
    let mut found = evidence.found.clone();
    if digest(text) != evidence.digest {
        found.iter_mut().for_each(|one| one.place = None);
    }
    let hello = json!({
        "protocol": 1, "client": {"name": client.name, "lang": client.lang, "version": client.version},
        "contracts": ["informer"], "recovers": "library", "caps": [],
    });
    let files = Files {
        summary: Summary {
            version: evidence.program.clone(),
            id: scenario.id.clone(),
            outcome: test.outcome,
            message: evidence.message.clone(),
            contradictions: json!(found),
            seed: 0,
            edition: None,
            edition_digest: None,
            cut: false,
            hello: serde_json::from_value(hello).ok(),
            dump: None,
            stray_output: None,
            took_ms: evidence.took_ms,
        },
        text: text.to_owned(),
        records: Vec::new(),
        errors: String::new(),
    };
    let result = TestResult {
        id: scenario.id.clone(),
        title: scenario.title.clone(),
        path: String::new(),
        digest: evidence.digest.clone(),
        covers: scenario.covers.iter().map(|one| one.id.clone()).collect(),
        provoked_by: scenario.provoked_by,
        outcome: test.outcome,
        standing: Standing::Known,
        message: evidence.message.clone(),
        // The head of the page has it.
        known: None,
        attempts: Vec::new(),
        rerun: client.rerun(&scenario.id),
    };
    Run {
        name: client.name.clone(),
        results: Some(Results {
            tests: vec![result],
            footer: None,
        }),
        attempts: vec![Kept {
            number: 1,
            evidence: files,
            scenario: Some(scenario.clone()),
            trimmed: evidence.trace.clone(),
        }],
    }
}

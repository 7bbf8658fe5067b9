//! One self-contained HTML file for one or several runs: the matrix, the requirements, and a section per test with its
//! timeline. A pure function of results and evidence.
//!
//! The page is complete without JavaScript: the script (`page/`, bundled into `page/dist/page.js`) draws timelines from
//! tables in the page, filters and navigates. The page requests nothing: its Content-Security-Policy allows one style
//! sheet and one script by hash, and no connection. `maud` escapes all text.

mod attempt;
mod clients;
mod matrix;
mod model;
mod requirements;
mod source;
mod test;

use std::sync::LazyLock;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use conformance::adapter::evidence::Evidence;
use fake_apiserver::scenario::SharedScenario;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest as _, Sha256};

use self::model::Page;
use crate::results::Results;
use crate::text::{count, cut};
use crate::timeline::Line;

/// The look of the report, and of the live view.
pub(crate) const STYLE: &str = include_str!("../page/src/page.css");

/// Bundled from `page/src` by `page/build.mjs`, with the licences of what it contains.
const SCRIPT: &str = include_str!("../page/dist/page.js");

/// Input for one run.
#[derive(Debug)]
pub struct Run {
    /// Name of the run if no adapter introduced itself, e.g. its directory.
    pub name: String,
    /// All results of the run; `None` if only evidence exists.
    pub results: Option<Results>,
    /// Attempts whose evidence was kept.
    pub attempts: Vec<Kept>,
}

/// Evidence of one attempt.
#[derive(Debug)]
pub struct Kept {
    /// Number of the attempt, from 1.
    pub number: u32,
    /// Its evidence.
    pub evidence: Evidence,
    /// The scenario, if it is parsed already: one with thousands of objects takes long.
    pub scenario: Option<SharedScenario>,
    /// The rows of its timeline if the trace was trimmed: then the evidence has no records.
    pub trimmed: Vec<Line>,
}

/// Returns the page of these runs, with a column per run.
pub fn page(runs: &[Run]) -> String {
    let page = Page::of(runs);
    let names: Vec<String> = page.clients.iter().map(|client| client.name.clone()).collect();
    let title = format!("Watch conformance: {}", names.join(", "));
    let body = html! {
        a.skip href="#matrix" { "Skip to results" }
        (head(&page))
        (toolbar())
        main {
            (clients::section(&page))
            (matrix::section(&page))
            (requirements::section(&page))
            (test::sections(&page))
        }
        (foot())
        (help())
    };
    document(&title, STYLE, true, &body).into_string()
}

/// Returns a file that requests nothing: its policy allows one style sheet and, if it has timelines, one script.
pub(crate) fn document(title: &str, style: &str, has_timeline: bool, body: &Markup) -> Markup {
    // A site has hundreds of pages with this script.
    static HASH: LazyLock<String> = LazyLock::new(|| source_hash(SCRIPT));
    let script = has_timeline.then_some(SCRIPT);
    let scripts = script.map(|_| format!(" script-src {};", *HASH));
    let policy = format!(
        "default-src 'none'; style-src {};{} base-uri 'none'; form-action 'none'",
        source_hash(style),
        scripts.unwrap_or_default()
    );
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="generator" content=(concat!("fake-apiserver ", env!("CARGO_PKG_VERSION")));
                title { (cut(title, 160)) }
                style { (PreEscaped(style)) }
            }
            body {
                (body)
                @if let Some(script) = script { script { (PreEscaped(script)) } }
            }
        }
    }
}

/// Returns the attempts of a run, as in a page of it: contradictions, scenario and timeline.
pub(crate) fn attempts(run: &Run) -> Markup {
    test::attempts(&Page::of(std::slice::from_ref(run)))
}

/// Returns the lines of a scenario's file.
pub(crate) fn scenario(id: &str, text: &str) -> Markup {
    source::lines(id, text, &std::collections::BTreeSet::new())
}

fn head(page: &Page<'_>) -> Markup {
    let accused = page.accused();
    html! {
        header.top {
            p.kind { "fake-apiserver conformance" }
            h1 {
                @if let [client] = page.clients.as_slice() {
                    (client.name) " "
                    span.version { (client.version) }
                } @else {
                    "Watch conformance of " (page.clients.len()) " clients"
                }
            }
            p.lead {
                (count(page.tests.len(), "test")) ", "
                @if accused == 0 { "no client is accused." }
                @else { (count(accused, "result")) " against a client." }
            }
        }
    }
}

/// Hidden until the script shows it: it has no function without JavaScript.
fn toolbar() -> Markup {
    html! {
        form #toolbar role="search" aria-label="Tests" hidden {
            label for="filter" { "Filter" }
            input #filter type="search" autocomplete="off" spellcheck="false"
                placeholder="id, requirement, outcome, words" aria-keyshortcuts="/";
            label for="show" { "Show" }
            select #show aria-label="Show" {
                option value="all" { "all tests" }
                option value="bad" { "failures" }
                option value="new" { "unexpected failures" }
            }
            output #count for="filter show" {}
            button #keys type="button" aria-keyshortcuts="?" { "Keys" }
        }
    }
}

fn foot() -> Markup {
    html! {
        footer.foot {
            p {
                "Written by fake-apiserver " (env!("CARGO_PKG_VERSION"))
                " from the evidence of the runs. This file is complete and requests nothing."
            }
        }
    }
}

fn help() -> Markup {
    let keys = [
        ("/", "filter the tests"),
        ("j k", "next, previous test"),
        ("Enter", "open or close the test"),
        ("n p", "next, previous event"),
        ("v", "next violation"),
        ("+ − 0", "zoom in, zoom out, show all"),
        ("← →", "move the visible part of a focused timeline"),
        ("e", "filter the events of the open test"),
        ("m", "back to the matrix"),
        ("Esc", "clear the filter, close this"),
        ("?", "show these keys"),
    ];
    keys_dialog(&keys)
}

/// Returns the dialog that lists the keys of a page.
pub(crate) fn keys_dialog(keys: &[(&str, &str)]) -> Markup {
    html! {
        dialog #help aria-labelledby="help-title" {
            h2 #help-title { "Keys" }
            dl { @for (key, what) in keys { dt { kbd { (key) } } dd { (what) } } }
            form method="dialog" { button { "Close" } }
        }
    }
}

/// Returns the hash by which the policy allows an inline script or style.
pub(crate) fn source_hash(text: &str) -> String {
    format!(
        "'sha256-{}'",
        BASE64_STANDARD.encode(Sha256::digest(text.as_bytes()))
    )
}

#[cfg(test)]
mod tests;

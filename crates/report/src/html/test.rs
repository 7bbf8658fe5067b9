//! Section of one test: claim, scenario, and attempts with each client.

use std::collections::BTreeSet;

use fake_apiserver::scenario::catalogue;
use maud::{Markup, html};

use super::model::{Attempt, Page, Test};
use super::{attempt, source};
use crate::text::cut;

pub(super) fn sections(page: &Page<'_>) -> Markup {
    let shown: Vec<&Test<'_>> = page.tests.iter().filter(|test| test.has_section()).collect();
    let opened = opened(&shown);
    html! {
        section #tests aria-labelledby="tests-title" {
            h2 #tests-title { "Tests" }
            @if shown.is_empty() {
                p.note { "No evidence was kept: every attempt passed, or the runs were without --evidence." }
            }
            @for test in shown { (section(page, test, opened)) }
        }
    }
}

/// Returns the attempt that is open at first: the first with a contradiction, else the first.
fn opened<'a>(tests: &[&'a Test<'_>]) -> Option<&'a str> {
    let cells = tests.iter().flat_map(|test| test.cells.iter().flatten());
    let attempts: Vec<&Attempt<'_>> = cells.flat_map(|cell| &cell.attempts).collect();
    let accusing = attempts.iter().find(|one| !one.found.is_empty());
    accusing.or(attempts.first()).map(|one| one.slug.as_str())
}

/// Returns the attempts of a page's tests beside the scenario, where another page has said what the tests are.
pub(super) fn attempts(page: &Page<'_>) -> Markup {
    let shown: Vec<&Test<'_>> = page.tests.iter().filter(|test| test.has_section()).collect();
    let opened = opened(&shown);
    html! {
        @for test in shown {
            article.test id=(test.fragment()) data-id=(cut(test.id, 200)) aria-label=(cut(test.id, 200)) {
                (beside(page, test, opened))
            }
        }
    }
}

fn section(page: &Page<'_>, test: &Test<'_>, opened: Option<&str>) -> Markup {
    let why = test
        .source
        .as_ref()
        .and_then(|source| Some(source.scenario.as_ref()?.why.as_str()))
        .filter(|why| !why.is_empty());
    html! {
        article.test id=(test.fragment()) data-id=(cut(test.id, 200)) data-state=(test.state())
            aria-labelledby={ (test.fragment()) "/title" } {
            h3 id={ (test.fragment()) "/title" } {
                a href={ "#" (test.fragment()) } { (cut(test.id, 200)) }
            }
            p.title { (cut(&test.title, 400)) }
            @if let Some(why) = why { p.why { (cut(why.trim(), 1200)) } }
            (covers(page, test))
            (beside(page, test, opened))
        }
    }
}

/// Returns the attempts, and the scenario with the lines that they contradict.
fn beside(page: &Page<'_>, test: &Test<'_>, opened: Option<&str>) -> Markup {
    let marked: BTreeSet<u32> = test
        .cells
        .iter()
        .flatten()
        .flat_map(|cell| &cell.attempts)
        .flat_map(|attempt| &attempt.found)
        .filter_map(|found| Some(found.line_and_column()?.0))
        .collect();
    html! {
        div.beside {
            div.attempts {
                @for (client, cell) in page.clients.iter().zip(&test.cells) {
                    @if let Some(cell) = cell {
                        @for one in &cell.attempts {
                            (attempt::section(page, test, client, cell, one, opened == Some(&one.slug)))
                        }
                    }
                }
            }
            (source::file(test, &marked))
        }
    }
}

fn covers(page: &Page<'_>, test: &Test<'_>) -> Markup {
    html! {
        @if !test.covers.is_empty() {
            ul.covers aria-label="Requirements" {
                @for id in &test.covers {
                    @let level = page.level(id);
                    li title=[catalogue::requirement(id).map(|one| one.text.as_str())] {
                        (cut(id, 40))
                        @if !level.is_empty() { " " span.level { (level) } }
                    }
                }
            }
        }
    }
}

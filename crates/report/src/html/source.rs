//! File of a scenario, line by line, so that steps and contradictions can link to lines.

use std::collections::BTreeSet;

use maud::{Markup, html};

use super::model::{Test, slug};
use crate::text::cut;

/// Lines of a file shown.
const LINES_MAX: usize = 400;

/// Lines shown above and below a marked one.
const AROUND: usize = 2;

/// Returns the fragment of a line.
pub(super) fn fragment(test: &Test<'_>, line: u32) -> String {
    of_line(test.id, line)
}

fn of_line(id: &str, line: u32) -> String {
    format!("scenario/{}/{line}", slug(id))
}

/// Returns the whole file; `marked` has the lines that contradictions link to.
pub(super) fn file(test: &Test<'_>, marked: &BTreeSet<u32>) -> Markup {
    let Some(source) = &test.source else {
        return html! {};
    };
    html! {
        details.source open {
            summary { "Scenario" }
            @if source.differs {
                p.note { "The runs had different files of this id; this is the one of the first." }
            }
            (lines(test.id, source.text, marked))
        }
    }
}

/// Returns the lines of a file, each with its fragment.
pub(super) fn lines(id: &str, text: &str, marked: &BTreeSet<u32>) -> Markup {
    let number_of_lines = text.lines().count();
    html! {
        // A long line scrolls inside the block, also by keyboard.
        pre tabindex="0" role="region" aria-label={ "Scenario " (cut(id, 200)) } {
            code {
                @for (number, text) in (1..).zip(text.lines().take(LINES_MAX)) {
                    span.line.marked[marked.contains(&number)] id=(of_line(id, number)) {
                        span.no aria-hidden="true" { (number) }
                        (cut(text, 400)) "\n"
                    }
                }
            }
        }
        @if number_of_lines > LINES_MAX { p.note { (number_of_lines - LINES_MAX) " lines left out." } }
    }
}

/// Returns the lines around a place.
pub(super) fn excerpt(text: &str, line: u32) -> Markup {
    let line = line as usize;
    let first = line.saturating_sub(AROUND).max(1);
    let shown = text
        .lines()
        .enumerate()
        .skip(first - 1)
        .take(line + AROUND + 1 - first);
    html! {
        pre.excerpt tabindex="0" role="region" aria-label={ "Scenario, line " (line) } {
            code {
                @for (index, text) in shown {
                    span.line.marked[index + 1 == line] {
                        span.no aria-hidden="true" { (index + 1) } (cut(text, 400)) "\n"
                    }
                }
            }
        }
    }
}

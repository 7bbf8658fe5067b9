//! What all pages have in common: head, navigation, links, and texts with code in them. It must not know the record.

use maud::{Markup, PreEscaped, html};

use super::Page;
use crate::html::document;
use crate::published::Shown;

/// The style sheet of reports, and what the site adds.
const STYLE: &str = concat!(
    include_str!("../../page/src/page.css"),
    include_str!("../../page/src/site.css")
);

/// A page that is being written: links depend on its folder.
#[derive(Debug, Clone)]
pub(super) struct Draft {
    path: String,
    title: String,
}

impl Draft {
    /// `path`: in the site; `title`: for the window.
    pub(super) fn new(path: String, title: &str) -> Self {
        Self {
            path,
            title: title.replace('`', ""),
        }
    }

    /// Returns the relative URL of another page.
    pub(super) fn to(&self, path: &str) -> String {
        let up = self.path.matches('/').count();
        format!("{}{path}", "../".repeat(up))
    }

    /// Returns a link to a requirement.
    pub(super) fn requirement(&self, id: &str) -> Markup {
        html! { a.requirement href=(self.to(&of_requirement(id))) { (id) } }
    }

    /// Returns a link to a scenario.
    pub(super) fn scenario(&self, id: &str) -> Markup {
        html! { a.scenario href=(self.to(&of_scenario(id))) { (id) } }
    }

    /// Returns a link to the proof of a failure.
    pub(super) fn failure(&self, client: &str, id: &str) -> Markup {
        html! { a.scenario href=(self.to(&of_failure(client, id))) { (id) } }
    }

    /// Returns a link to a client.
    pub(super) fn client(&self, name: &str, title: &str) -> Markup {
        html! { a href=(self.to(&of_client(name))) { (inline(title)) } }
    }

    /// Finishes the page. `has_timeline`: it has the script that draws timelines.
    pub(super) fn page(&self, has_timeline: bool, content: &Markup) -> Page {
        let body = html! {
            a.skip href="#content" { "Skip to content" }
            nav.site aria-label="Site" {
                a href=(self.to("index.html")) { "Clients" }
                a href=(self.to("requirements.html")) { "Requirements" }
            }
            main #content { (content) }
            footer.foot {
                p {
                    "Written by " code { "cargo xtask site" } " of fake-apiserver " (env!("CARGO_PKG_VERSION"))
                    " from the record in its repository. This page is complete and requests nothing."
                }
            }
        };
        Page {
            path: self.path.clone(),
            html: document(&self.title, STYLE, has_timeline, &body).into_string(),
        }
    }
}

/// Path of a client's page.
pub(super) fn of_client(name: &str) -> String {
    format!("clients/{}.html", safe(name))
}

/// Path of a requirement's page.
pub(super) fn of_requirement(id: &str) -> String {
    format!("requirements/{}.html", safe(id))
}

/// Path of a scenario's page.
pub(super) fn of_scenario(id: &str) -> String {
    format!("scenarios/{}.html", below(id))
}

/// Path of a failure's page.
pub(super) fn of_failure(client: &str, id: &str) -> String {
    format!("failures/{}/{}.html", safe(client), below(id))
}

/// Returns the id as a path without folders: a group and a claim have one slash.
fn below(id: &str) -> String {
    safe(id).replace('/', ".")
}

/// Returns the text with hyphens for what has a meaning in URLs or paths.
fn safe(text: &str) -> String {
    let kept = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
    let safe: String = text.chars().map(|c| if kept(c) { c } else { '-' }).collect();
    safe.replace("..", "--")
}

/// Returns a text in which code stands between backticks.
pub(super) fn inline(text: &str) -> Markup {
    html! {
        @for (nth, part) in text.split('`').enumerate() {
            @if nth % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}

/// Returns a link to a public issue; nothing where there is none.
pub(super) fn issue(issue: &str) -> Markup {
    let path = issue
        .split_once('#')
        .map(|(repository, number)| format!("https://github.com/{repository}/issues/{number}"));
    let address = match path {
        Some(path) if !issue.contains("://") => path,
        Some(_) | None => issue.to_owned(),
    };
    html! {
        @if address.starts_with("https://") { " " a.issue href=(address) { (issue) } }
    }
}

/// Returns a cell for what a client shows of a requirement.
pub(super) fn shown(shown: Option<Shown>) -> Markup {
    let (class, sign, word) = match shown {
        Some(Shown::Broken) => ("fail", "✗", "shown broken"),
        Some(Shown::BrokenByHardening) => ("warn", "!", "broken by hardening"),
        Some(Shown::Kept) => ("pass", "✓", "not shown broken"),
        None => ("absent", "–", "not shown"),
    };
    html! { span.(class) { span.mark aria-hidden="true" { (sign) } " " (word) } }
}

/// A wide table that scrolls inside the page, also by keyboard.
pub(super) fn wide(label: &str, table: &Markup) -> Markup {
    html! { div.wide role="region" aria-label=(label) tabindex="0" { (table) } }
}

/// Returns nothing, or a folded list with its number.
pub(super) fn folded(summary: &str, items: &[Markup]) -> Markup {
    html! {
        @if !items.is_empty() {
            details {
                summary { (summary) ": " (items.len()) }
                ul.dense { @for item in items { li { (item) } } }
            }
        }
    }
}

/// Returns markup that is put together elsewhere.
pub(super) fn joined(parts: &[Markup], by: &str) -> Markup {
    let parts: Vec<&str> = parts.iter().map(|part| part.0.as_str()).collect();
    PreEscaped(parts.join(by))
}

//! The pages of a small record: no text of it becomes markup, links are relative, and what they show is what it says.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use conformance::adapter::outcome::Outcome;
use fake_apiserver::scenario;

use super::*;
use crate::published::{Client, Evidence, Known, Source, SourceLines, Test};
use crate::results::{digest, tests::found};
use crate::timeline::{Lane, Line};

/// Text that would end an element, attribute, script or comment, or reorder the line.
const HOSTILE: &str = "</script></style><img src=x onerror=alert(1)>\"'><!-- &lt; `</code><b>`";

const SCENARIO: &str = "\
scenario: v1
title: A client keeps what it was sent
covers: [LIST-01]
objects:
  - configmap: {name: a}
expect:
  cache: [a]
";

/// A failure of LIST-01 by a client, with or without evidence.
fn failure(text: &str, evidence: bool) -> Test {
    let line = |seq: u64, lane, label: &str| Line {
        seq,
        at_ms: seq as f64,
        lane,
        kind: "request".into(),
        stream: Some(1),
        conn: Some(1),
        label: label.to_owned(),
        text: text.to_owned(),
        scripted: false,
        step: None,
    };
    let mut contradiction = found("expect.cache", text);
    contradiction.requirements = vec!["LIST-01".to_owned()];
    contradiction.evidence = vec![9];
    contradiction.place = Some("7:1".to_owned());
    Test {
        outcome: Outcome::Fail,
        flaky: false,
        broken: BTreeSet::from(["LIST-01".to_owned()]),
        why: String::new(),
        left_out: None,
        known: Some(Known {
            reason: text.to_owned(),
            issue: "owner/repo#7".to_owned(),
            source: Source {
                lines: vec![SourceLines {
                    function: text.to_owned(),
                    place: "lib 1.2 a.go, lines 3 to 5".to_owned(),
                    url: "https://github.com/owner/lib/blob/1.2/a.go#L3-L5".to_owned(),
                    quote: text.to_owned(),
                }],
                none: String::new(),
            },
        }),
        evidence: evidence.then(|| Evidence {
            day: "2026-01-02".to_owned(),
            platform: text.to_owned(),
            program: "0.1.0".to_owned(),
            kubernetes: "1.37".to_owned(),
            digest: digest(SCENARIO),
            message: text.to_owned(),
            found: vec![contradiction],
            took_ms: 1200,
            of: 12,
            trace: vec![line(0, Lane::Wire, "LIST"), line(9, Lane::Client, text)],
        }),
    }
}

fn published(text: &str, evidence: bool) -> Published {
    let scenario = scenario::parse("list/a-b", std::path::Path::new("list/a-b.yaml"), SCENARIO).unwrap();
    let client = |name: &str, test: Option<Test>| Client {
        name: name.to_owned(),
        title: text.to_owned(),
        version: text.to_owned(),
        lang: text.to_owned(),
        recovers: "library".to_owned(),
        capabilities: vec![text.to_owned()],
        adapter: text.to_owned(),
        command: text.to_owned(),
        behaviour: vec![(text.to_owned(), text.to_owned())],
        tests: test
            .into_iter()
            .map(|test| ("list/a-b".to_owned(), test))
            .collect::<BTreeMap<_, _>>(),
        ..Client::default()
    };
    Published {
        clients: vec![client("one", Some(failure(text, evidence))), client("two", None)],
        scenarios: vec![(Arc::new(scenario), SCENARIO.to_owned())],
    }
}

fn of<'p>(pages: &'p [Page], path: &str) -> &'p str {
    &pages
        .iter()
        .find(|page| page.path == path)
        .unwrap_or_else(|| panic!("{path}"))
        .html
}

/// Returns a page without its style and script.
fn own(html: &str) -> String {
    let start = html.find("</style>").unwrap();
    let end = html.rfind("<script>").unwrap_or(html.len());
    html[start + 8..end].to_owned()
}

#[test]
fn no_text_of_the_record_becomes_markup() {
    for evidence in [true, false] {
        for Page { path, html } in pages(&published(HOSTILE, evidence)) {
            let own = own(&html);
            for word in ["<script", "<img", "<!--", "<b>", "</style", "<link"] {
                assert!(!own.contains(word), "{path}: {word}");
            }
            for tag in own.split('<').skip(1).filter_map(|rest| rest.split_once('>')) {
                let outside: Vec<&str> = tag.0.split('"').step_by(2).collect();
                assert_eq!(tag.0.matches('"').count() % 2, 0, "{path}: <{}>", tag.0);
                for word in ["src=", "style=", "onerror="] {
                    assert!(
                        !outside.iter().any(|part| part.contains(word)),
                        "{path}: <{}>",
                        tag.0
                    );
                }
            }
        }
    }
}

#[test]
fn the_policy_allows_one_style_and_a_script_only_where_a_timeline_is() {
    let pages = pages(&published("x", true));
    for Page { path, html } in &pages {
        let has_timeline = path.starts_with("failures/");
        assert_eq!(
            html.contains("script-src 'sha256-") || html.contains("script-src &#39;sha256-"),
            has_timeline,
            "{path}"
        );
        assert_eq!(
            html.matches("<script>").count(),
            usize::from(has_timeline),
            "{path}"
        );
        assert!(
            html.contains("default-src 'none'") || html.contains("default-src &#39;none&#39;"),
            "{path}"
        );
    }
}

#[test]
fn a_failure_has_contradiction_lines_timeline_and_command() {
    let pages = pages(&published("it forgets", true));
    let page = own(of(&pages, "failures/one/list.a-b.html"));
    for part in [
        "it forgets",
        "expect.cache",
        "../../requirements/LIST-01.html",
        "https://github.com/owner/repo/issues/7",
        "<a href=\"https://github.com/owner/lib/blob/1.2/a.go#L3-L5\">lib 1.2 a.go, lines 3 to 5</a>",
        "<blockquote><code>it forgets</code></blockquote>",
        "measured</dt><dd>2026-01-02",
        "figure class=\"timeline\"",
        "8 records left out",
        "<span class=\"line marked\" id=\"scenario/list/a-b/7\">",
        "cargo xtask conformance --client one --scenario list/a-b --check",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
}

#[test]
fn a_failure_without_evidence_has_the_command_that_shows_it() {
    let pages = pages(&published("it forgets", false));
    let html = of(&pages, "failures/one/list.a-b.html");
    assert!(html.contains("None of this attempt is committed"));
    assert!(html.contains("cargo xtask conformance --client one --scenario list/a-b --check"));
    assert!(!html.contains("figure class"));
}

#[test]
fn lines_of_a_file_that_changed_are_not_marked() {
    let mut published = published("x", true);
    published.scenarios[0].1.push_str("# changed\n");
    let html = own(of(&pages(&published), "failures/one/list.a-b.html"));
    assert!(html.contains("has changed since"));
    assert!(!html.contains("line marked"));
}

#[test]
fn a_requirement_has_who_breaks_it_and_who_does_not_show_it() {
    let pages = pages(&published("x", true));
    let page = own(of(&pages, "requirements/LIST-01.html"));
    assert!(page.contains("href=\"../failures/one/list.a-b.html\""), "{page}");
    assert_eq!(page.matches("shown broken</span>").count(), 1, "{page}");
    assert_eq!(page.matches("not shown</span>").count(), 1, "{page}");
    assert!(page.contains("<blockquote>"), "its source");
    let index = own(of(&pages, "index.html"));
    assert!(index.contains("href=\"clients/one.html\""));
    assert!(own(of(&pages, "clients/one.html")).contains("href=\"../failures/one/list.a-b.html\""));
}

#[test]
fn the_same_record_gives_the_same_pages() {
    assert_eq!(pages(&published("x", true)), pages(&published("x", true)));
}

#[test]
fn a_failure_that_is_flaky_or_left_out_shows_nothing() {
    for left_out in [true, false] {
        let mut published = published("x", true);
        let test = published.clients[0].tests.get_mut("list/a-b").unwrap();
        test.flaky = !left_out;
        test.left_out = left_out.then(|| "a flaw".to_owned());
        let pages = pages(&published);
        assert!(pages.iter().all(|page| !page.path.starts_with("failures/")));
        assert!(!own(of(&pages, "requirements/LIST-01.html")).contains("✗"));
    }
}

//! The page of hand-written runs: none of their text becomes markup, and long text is cut.

use std::sync::OnceLock;
use std::time::Duration;

use conformance::adapter::evidence::Summary;
use conformance::adapter::outcome::Outcome;
use conformance::adapter::standing::Standing;
use fake_apiserver::record::{ConnId, Record, StreamId, Verb, What};
use fake_apiserver::report::{Report, ReportedObject};
use fake_apiserver::scenario::edition::Edition;
use serde_json::json;

use super::*;
use crate::results::tests::{footer, found, result};

/// Text that would end an element, attribute, script or comment, or reorder the line.
const HOSTILE: &str = "</script></style><img src=x onerror=alert(1)>\"'><!-- &lt; \u{202e}\u{1b}[2J";

fn summary(id: &str, message: &str, contradictions: serde_json::Value) -> Summary {
    serde_json::from_value(json!({
        "version": "0.1.0", "id": id, "outcome": "fail", "message": message, "contradictions": contradictions, "seed": 0,
        "cut": false, "hello": null, "dump": null, "strayOutput": null, "tookMs": 1200,
    }))
    .unwrap()
}

fn record(seq: u64, what: What) -> Record {
    Record {
        seq,
        at: Duration::from_millis(seq),
        what,
    }
}

fn request(seq: u64, path: &str) -> Record {
    record(
        seq,
        What::Request {
            stream: StreamId(seq),
            conn: ConnId(1),
            verb: Verb::Watch,
            method: "GET".to_owned(),
            path: path.to_owned(),
            query: vec![("resourceVersion".to_owned(), "7".to_owned())],
            accept: None,
            user_agent: None,
            replica: fake_apiserver::record::Replica::Primary,
            violations: Vec::new(),
        },
    )
}

fn kept(id: &str, records: Vec<Record>, contradictions: serde_json::Value) -> Kept {
    Kept {
        number: 1,
        evidence: Evidence {
            summary: summary(id, "why", contradictions),
            text: "scenario: v1\ntitle: t\n".to_owned(),
            records,
            errors: String::new(),
        },
        scenario: None,
        trimmed: Vec::new(),
    }
}

fn run(name: &str, attempts: Vec<Kept>) -> Run {
    Run {
        name: name.to_owned(),
        results: None,
        attempts,
    }
}

/// Returns the text of elements and the values of attributes, without the page's own style and script.
fn without_style_and_script(page: &str) -> String {
    let before = page.find("<style>").unwrap();
    let after = page.find("</style>").unwrap();
    let script = page.rfind("<script>").unwrap();
    format!("{}{}", &page[..before], &page[after + 8..script])
}

#[test]
fn nothing_of_a_client_becomes_markup() {
    let object = ReportedObject {
        namespace: Some("n".to_owned()),
        name: HOSTILE.to_owned(),
        uid: None,
        resource_version: None,
        content: None,
    };
    let records = vec![
        request(0, HOSTILE),
        record(1, What::Reported(Report::Apply(object))),
        record(
            2,
            What::Reported(Report::Error {
                message: HOSTILE.to_owned(),
                code: None,
            }),
        ),
    ];
    let contradiction = json!([{
        "check": HOSTILE, "requirements": [HOSTILE], "sentence": HOSTILE, "place": "1:1", "evidence": [1],
        "expected": HOSTILE, "actual": HOSTILE,
    }]);
    let mut attempt = kept(HOSTILE, records, contradiction);
    attempt.evidence.errors = HOSTILE.to_owned();
    attempt.evidence.text = HOSTILE.to_owned();
    let mut hostile = result(
        HOSTILE,
        Outcome::Fail,
        Standing::Failed,
        vec![found(HOSTILE, HOSTILE)],
    );
    hostile.title = HOSTILE.to_owned();
    hostile.covers = vec![HOSTILE.to_owned()];
    hostile.rerun = HOSTILE.to_owned();
    let one = Run {
        name: HOSTILE.to_owned(),
        results: Some(Results {
            tests: vec![hostile],
            footer: Some(footer(HOSTILE, HOSTILE)),
        }),
        attempts: vec![attempt],
    };
    for runs in [
        vec![one],
        vec![run(HOSTILE, Vec::new()), run(HOSTILE, Vec::new())],
    ] {
        let page = page(&runs);
        let own = without_style_and_script(&page);
        assert_eq!(own.matches("<script").count(), 0);
        assert_eq!(own.matches("<img").count(), 0);
        assert_eq!(own.matches("<!--").count(), 0);
        assert!(!own.contains('\u{202e}') && !own.contains('\u{1b}'));
        assert_eq!(page.matches("</script>").count(), 1);
        // No attribute ends early: an even number of quotes in every tag.
        for tag in own.split('<').skip(1).filter_map(|rest| rest.split_once('>')) {
            assert_eq!(tag.0.matches('"').count() % 2, 0, "<{}>", tag.0);
        }
    }
}

#[test]
fn the_policy_allows_the_one_style_and_script_and_nothing_else() {
    let page = page(&[run("a", Vec::new())]);
    assert!(page.contains("default-src &#39;none&#39;") || page.contains("default-src 'none'"));
    for text in [STYLE, SCRIPT] {
        assert!(page.contains(&BASE64_STANDARD.encode(Sha256::digest(text.as_bytes()))));
    }
    // Neither loads a resource or ends its element.
    assert!(!STYLE.contains("url(") && !STYLE.contains("@import") && !STYLE.contains("</"));
    assert!(!SCRIPT.to_lowercase().contains("</script") && !SCRIPT.contains("<!--"));
    for word in [" src=", " style=", "<link", "<iframe", "http-equiv=\"refresh\""] {
        assert!(!without_style_and_script(&page).contains(word), "{word}");
    }
}

#[test]
fn a_long_trace_is_cut_and_keeps_what_is_evidence() {
    let records: Vec<Record> = (0..5000).map(|seq| request(seq, "/api/v1/pods")).collect();
    let contradiction = json!([{
        "check": "INV-03", "requirements": [], "sentence": "s", "place": null, "evidence": [2500], "expected": "", "actual": "",
    }]);
    let page = page(&[run("a", vec![kept("g/long", records, contradiction)])]);
    assert!(page.matches("<tr").count() < crate::timeline::ROWS_MAX + 20);
    assert!(page.contains("2197 records left out"), "first gap");
    assert!(page.contains("id=\"a/g/long@2500\"") && page.contains("id=\"a/g/long@4999\""));
    assert!(!page.contains("id=\"a/g/long@2000\""));
}

#[test]
fn a_full_page_is_marked_and_draws_failures_first() {
    let attempts = (0..80).map(|number| {
        let records: Vec<Record> = (0..600).map(|seq| request(seq, "/api/v1/pods")).collect();
        let mut kept = kept(&format!("g/{number:02}"), records, json!([]));
        if number < 40 {
            kept.evidence.summary.outcome = Outcome::Pass;
        }
        kept
    });
    let page = page(&[run("a", attempts.collect())]);
    assert!(page.contains("the page is full"));
    assert!(page.contains("id=\"a/g/40@0\"") && page.contains("id=\"a/g/79@0\""));
    assert!(!page.contains("id=\"a/g/39@0\""));
    assert!(page.len() < 16_000_000, "{} bytes", page.len());
}

#[test]
fn clients_stand_side_by_side() {
    let of = |name: &str, outcome, standing| Run {
        name: name.to_owned(),
        results: Some(Results {
            tests: vec![result("a/b", outcome, standing, Vec::new())],
            footer: Some(footer(name, "1")),
        }),
        attempts: Vec::new(),
    };
    let runs = [
        of("one", Outcome::Pass, Standing::Passed),
        of("two", Outcome::Hang, Standing::Failed),
        of("two", Outcome::Crash, Standing::Known),
    ];
    let page = page(&runs);
    assert_eq!(
        page.matches("<th class=\"client\" scope=\"col\">").count(),
        6,
        "in two tables"
    );
    for word in ["pass", "hang", "crash, known"] {
        assert!(
            page.contains(&format!("<span class=\"hidden\">{word}</span>")),
            "{word}"
        );
    }
    assert_eq!(page, super::page(&runs), "the same input gives the same page");
}

/// LIST-01 is a MUST of the catalogue and was a SHOULD; WATCH-02 did not count yet.
#[test]
fn levels_are_those_of_the_edition() {
    let old = "{edition: '1.1', requirements: {LIST-01: {level: SHOULD, scenarios: [a/b]}}}";
    static OLD: OnceLock<Edition> = OnceLock::new();
    let old = OLD.get_or_init(|| Edition::parse(old).unwrap());
    let contradiction = json!([{
        "check": "INV-03", "requirements": ["LIST-01", "WATCH-02"], "sentence": "s", "place": null, "evidence": [],
        "expected": "", "actual": "",
    }]);
    let of = |name: &str| Run {
        name: name.to_owned(),
        results: Some(Results {
            tests: vec![result(
                "a/b",
                Outcome::Fail,
                Standing::Failed,
                vec![found("INV-03", "s")],
            )],
            footer: Some(footer(name, "1")),
        }),
        attempts: vec![kept("a/b", Vec::new(), contradiction.clone())],
    };
    let runs = [of("pinned"), of("free")];
    let mut both = model::Page::of(&runs);
    both.clients[0].scored_by = Some(old);
    both.clients[0].edition = Some(old.label());
    let levels = |page: &model::Page<'_>| {
        let shown = test::sections(page).into_string();
        let levels = shown.split("<span class=\"level\">").skip(1);
        let levels = levels.filter_map(|rest| Some(rest.split_once('<')?.0.to_owned()));
        levels.collect::<Vec<String>>()
    };
    assert_eq!(
        levels(&both),
        ["MUST in this version; SHOULD in 1.1", "SHOULD", "MUST", "SHOULD"],
        "of the test; of LIST-01 in the one run, of both requirements in the other"
    );
    let row = requirements::section(&both).into_string();
    assert!(
        row.contains("<td>MUST in this version; SHOULD in 1.1</td>"),
        "{row}"
    );
    let table = clients::section(&both).into_string();
    assert!(table.contains(&format!("<td>{}</td>", old.label())), "{table}");

    both.clients.truncate(1);
    both.tests[0].cells.truncate(1);
    assert_eq!(levels(&both), ["SHOULD", "SHOULD"]);
}

#[test]
fn a_fragment_has_nothing_that_a_url_would_escape() {
    assert_eq!(model::slug("gone/a b#\"<é"), "gone/a-b");
    assert_eq!(model::slug("é"), "x");
}

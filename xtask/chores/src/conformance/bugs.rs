//! docs/known-bugs.md: bugs of the clients that were reproduced, and the scenarios that show them. A pure function of
//! adapters/known-bugs.yaml and the recorded results. It must not know how they were measured.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use e2e::adapters::{KNOWN_BUGS as FILE, KnownBug, Registry};

use super::page::issue_link;
use super::record::Record;

/// Path of the page.
pub(crate) const PAGE: &str = "docs/known-bugs.md";

/// The head of the page, as it stands in the repository.
const HEAD: &str = "\
# Known bugs of watch clients, and the scenarios that show them

Written by `cargo xtask conformance` from `adapters/known-bugs.yaml` and the results in `adapters/results`; `--check` fails if a
scenario no longer shows the bug. Each bug was reproduced with a current release. Versions, and everything else that the clients
fail, are in [CONFORMANCE.md](../CONFORMANCE.md).

";

/// Makes the page. Returns it, and what the list claims wrongly.
///
/// # Errors
///
/// The list is missing or has mistakes.
pub(crate) fn page(root: &Path, registry: &Registry) -> Result<(String, Vec<String>), String> {
    let bugs = KnownBug::read(root)?;
    let mut records = BTreeMap::new();
    for client in &registry.clients {
        if Record::exists(root, &client.name) {
            let record = Record::read(root, &client.name)?;
            records.insert(client.name.as_str(), (client.title.as_str(), record));
        }
    }
    Ok(of(&bugs, &records))
}

fn of(bugs: &[KnownBug], records: &BTreeMap<&str, (&str, Record)>) -> (String, Vec<String>) {
    let mut page = HEAD.to_owned();
    let mut wrong = Vec::new();
    page.push_str("## Shown\n\n| client | bug | scenario | outcome |\n|---|---|---|---|\n");
    for bug in bugs {
        let Some(scenario) = &bug.scenario else { continue };
        for name in &bug.clients {
            let Some((title, record)) = records.get(name.as_str()) else {
                wrong.push(format!("{FILE}: there are no results of {name}"));
                continue;
            };
            let outcome = record.tests.get(scenario).map(|test| test.outcome);
            match outcome {
                None => wrong.push(format!("{FILE}: there is no scenario {scenario}")),
                Some(outcome) if !outcome.accuses_client() => {
                    wrong.push(format!(
                        "{FILE}: {scenario} does not show {name}: {}: {}",
                        bug.bug,
                        outcome.word()
                    ));
                }
                Some(outcome) => {
                    let _infallible = writeln!(
                        page,
                        "| {title} | {}{} | [{scenario}](../scenarios/{scenario}.yaml) | {} |",
                        bug.bug,
                        issue_link(&bug.issue),
                        outcome.word()
                    );
                }
            }
        }
    }
    page.push_str("\n## Not shown\n\n| client | bug | why not |\n|---|---|---|\n");
    for bug in bugs {
        match (&bug.scenario, &bug.why_not) {
            (Some(_), None) => {}
            (None, Some(why)) => {
                let titles: Vec<&str> = bug
                    .clients
                    .iter()
                    .map(|name| {
                        records
                            .get(name.as_str())
                            .map_or(name.as_str(), |(title, _)| title)
                    })
                    .collect();
                let _infallible = writeln!(
                    page,
                    "| {} | {}{} | {why} |",
                    titles.join("<br>"),
                    bug.bug,
                    issue_link(&bug.issue)
                );
            }
            (Some(_), Some(_)) | (None, None) => {
                wrong.push(format!(
                    "{FILE}: {}: one of `scenario` and `why_not` is required",
                    bug.bug
                ));
            }
        }
        for name in &bug.clients {
            if !records.contains_key(name.as_str()) && bug.scenario.is_none() {
                wrong.push(format!("{FILE}: there are no results of {name}"));
            }
        }
    }
    (page, wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(outcome: &str) -> BTreeMap<&'static str, (&'static str, Record)> {
        let text = format!(
            r#"{{"client":{{"lang":"go","version":"1"}},"recovers":"library","capabilities":[],"tests":{{"a/b":{{"outcome":"{outcome}"}}}}}}"#
        );
        BTreeMap::from([("x", ("Client X", serde_json::from_str(&text).unwrap()))])
    }

    fn made(list: &str, outcome: &str) -> (String, Vec<String>) {
        let bugs: Vec<KnownBug> = KnownBug::parse(list).unwrap();
        of(&bugs, &records(outcome))
    }

    const SHOWN: &str = "[{bug: it loops, clients: [x], issue: o/r#1, scenario: a/b}]";

    #[test]
    fn a_bug_is_shown_by_a_scenario_that_fails() {
        let (page, wrong) = made(SHOWN, "fail");
        assert!(wrong.is_empty(), "{wrong:?}");
        let row = "| Client X | it loops ([o/r#1](https://github.com/o/r/issues/1)) | [a/b](../scenarios/a/b.yaml) | fail |";
        assert!(page.contains(row), "{page}");
    }

    #[test]
    fn a_scenario_that_passes_shows_nothing() {
        let (_, wrong) = made(SHOWN, "pass");
        assert_eq!(
            wrong,
            ["adapters/known-bugs.yaml: a/b does not show x: it loops: pass"]
        );
        let (_, wrong) = made(&SHOWN.replace("a/b", "a/c"), "fail");
        assert_eq!(wrong, ["adapters/known-bugs.yaml: there is no scenario a/c"]);
        let (_, wrong) = made(&SHOWN.replace("[x]", "[y]"), "fail");
        assert_eq!(wrong, ["adapters/known-bugs.yaml: there are no results of y"]);
    }

    #[test]
    fn a_bug_that_is_not_shown_has_a_reason() {
        let list = "[{bug: it waits, clients: [x], issue: none public, why_not: nobody asks}]";
        let (page, wrong) = made(list, "pass");
        assert!(wrong.is_empty(), "{wrong:?}");
        assert!(page.contains("| Client X | it waits | nobody asks |"), "{page}");
        let (_, wrong) = made("[{bug: it waits, clients: [x], issue: none public}]", "pass");
        assert_eq!(wrong.len(), 1, "{wrong:?}");
    }
}

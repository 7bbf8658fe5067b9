//! CONFORMANCE.md: a pure function of the recorded results, the known failures, the catalogue and the scenarios.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use conformance::adapter::outcome::Outcome;
use conformance::baseline::Baseline;
use e2e::adapters::{Client, Registry};
use fake_apiserver::scenario::SharedScenario;
use fake_apiserver::scenario::catalogue::{self, Consequence, Level, Provoker, Requirement};

use super::behaviour::Behaviour;
use super::bugs;
use super::contest;
use super::record::{Record, Test};
use crate::clients;

const PAGE: &str = "CONFORMANCE.md";

/// The head of the page.
const HEAD: &str = "\
# Conformance of Kubernetes watch clients

Measured by `fake-apiserver conformance`; written by `cargo xtask conformance` from the results in `adapters/results`. Each
client runs behind an adapter that reports what the library delivers and never repairs
([docs/adapter-protocol.md](docs/adapter-protocol.md)); adapters and pinned versions are in [adapters/](adapters). The
scenarios are those of [scenarios/](scenarios), the requirements those of
[requirements/catalogue.yaml](requirements/catalogue.yaml), each with its source, the party that is known to provoke it, and the
consequence for users.

A client is charged with a requirement only if a failed expectation, or a violated invariant, contradicts the requirement's text,
on input that a kube-apiserver, a network or a common proxy sends. A failure that is wrong is a bug of this repository:
[contest it](docs/contest.md). [docs/withdrawn.md](docs/withdrawn.md) lists what was withdrawn, and
[docs/known-bugs.md](docs/known-bugs.md) known bugs of the clients with the scenarios that show them.

* The first columns count broken requirements by their worst consequence: *lost* (an object or event is missed for ever), *stuck*
  (or dead), *overload* (of the server), *stale* (until the next relist), *waste*, *hidden* (the user is not told).
* *hardening* counts requirements that are broken only on input of aggregated or old servers, or of nobody that we know of: shown,
  not scored.
* *judged*: requirements that at least one judged scenario covers. A library with more options is judged on more of them.
* *fail*: a MUST is broken. *warn*: only a SHOULD is. *hang*: a step waited in vain for the client. *unsupported*: the library
  has no such setting or signal. *not judged*: the scenario takes minutes, or is left out with a reason below; every client was
  run at least twice, and what came out differently is not judged.
* *caller*: the library leaves recovery to its caller. The adapter then has the loop that the documentation describes, and
  its delays are the adapter's: 0.8 s doubling to 30 s, or what the library's example has.
";

/// The consequences that have a column, worst first.
const CONSEQUENCES: [Consequence; 6] = [
    Consequence::Lost,
    Consequence::Stuck,
    Consequence::Overload,
    Consequence::Stale,
    Consequence::Waste,
    Consequence::Hidden,
];

/// The client of this repository, which stands apart.
const OWN: &str = "watcher";

/// What is written, and what is wrong with what it is made of.
pub(crate) struct Pages {
    page: String,
    bugs: String,
    form: String,
    pub(crate) wrong: Vec<String>,
}

/// One client with all that is known of it.
struct Column<'a> {
    client: &'a Client,
    record: Record,
    known: Baseline,
    /// Scenarios that are not judged, with the reason.
    left_out: BTreeMap<&'a str, &'a str>,
}

/// Makes the pages.
///
/// # Errors
/// A file cannot be read, or has mistakes.
pub(crate) fn pages(root: &Path, registry: &Registry) -> Result<Pages, String> {
    let scenarios = clients::load(root)?;
    let mut columns = Vec::new();
    let mut wrong = Vec::new();
    let mut unrecorded = Vec::new();
    for client in &registry.clients {
        if !Record::exists(root, &client.name) {
            unrecorded.push(client.title.as_str());
            continue;
        }
        let path = super::known_failures(root, &client.name);
        let known = if path.is_file() {
            Baseline::read(&path).map_err(|error| error.to_string())?
        } else {
            Baseline::default()
        };
        let record = Record::read(root, &client.name)?;
        let left_out = scenarios
            .iter()
            .filter_map(|scenario| Some((scenario.id.as_str(), registry.left_out(client, &scenario.id)?)))
            .collect();
        columns.push(Column {
            client,
            record,
            known,
            left_out,
        });
    }
    for column in &columns {
        wrong.extend(column.without_reason());
    }
    let mut page = format!("{HEAD}\n## Clients\n\n{}", matrix(&columns, &scenarios));
    if !unrecorded.is_empty() {
        let _ = writeln!(page, "\nWithout recorded results: {}.", unrecorded.join(", "));
    }
    groups(&columns, &scenarios, &mut page);
    wrong.extend(behaviours(root, registry, &mut page)?);
    page.push_str("\n## Failures, by client\n");
    for column in &columns {
        column.failures(&scenarios, &mut page);
    }
    unjudged(&columns, &mut page);
    let (bugs, unshown) = bugs::page(root, registry)?;
    wrong.extend(unshown);
    Ok(Pages {
        page,
        bugs,
        form: contest::form(registry),
        wrong,
    })
}

/// What is measured and not judged. Returns which clients have results and were not measured.
fn behaviours(root: &Path, registry: &Registry, page: &mut String) -> Result<Vec<String>, String> {
    let mut unmeasured = Vec::new();
    page.push_str(
        "\n## Behaviour\n\nMeasured once per client, and not judged. What a library can be told is as in a scenario without `client:` (LIST and \
         WATCH, pages of 500, the most recent state); the rest are its defaults. *Delays*: seconds between each of six \
         refusals (503) and the next request; – of a client that gives up or only lists.\n\n\
         | client | first LIST | first WATCH | connections | delays | user agent |\n|---|---|---|---|---|---|\n",
    );
    for client in &registry.clients {
        if let Some(behaviour) = Behaviour::read(root, &client.name)? {
            let _ = writeln!(page, "| {} | {} |", client.title, behaviour.cells().join(" | "));
        } else if Record::exists(root, &client.name) {
            let name = &client.name;
            unmeasured.push(format!(
                "{name}: not measured: run `cargo xtask conformance --behaviour --client {name}`"
            ));
        }
    }
    Ok(unmeasured)
}

impl Pages {
    /// Writes them.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(crate) fn write(&self, root: &Path) -> Result<(), String> {
        let write = |file: &str, text: &str| {
            std::fs::write(root.join(file), text).map_err(|error| format!("{file}: {error}"))
        };
        self.files()
            .into_iter()
            .try_for_each(|(file, text)| write(file, text))
    }

    /// The files that are not as they would be written.
    pub(crate) fn stale(&self, root: &Path) -> Vec<String> {
        let mut stale = Vec::new();
        for (file, text) in self.files() {
            let there = std::fs::read_to_string(root.join(file)).unwrap_or_default();
            if there != text {
                stale.push(format!("{file} is stale: run `cargo xtask conformance --page`"));
            }
        }
        stale
    }

    fn files(&self) -> [(&str, &str); 3] {
        [
            (PAGE, &self.page),
            (bugs::PAGE, &self.bugs),
            (contest::PAGE, &self.form),
        ]
    }
}

impl Column<'_> {
    fn tests(&self) -> impl Iterator<Item = (&String, &Test)> {
        let kept = |(id, _): &(&String, &Test)| !self.left_out.contains_key(id.as_str());
        self.record.tests.iter().filter(kept)
    }

    fn judged(&self) -> impl Iterator<Item = (&String, &Test)> {
        self.tests()
            .filter(|(_, test)| test.outcome.is_judged() && !test.flaky)
    }

    fn count(&self, outcome: Outcome) -> usize {
        self.tests()
            .filter(|(_, test)| test.outcome == outcome && !test.flaky)
            .count()
    }

    /// Returns what the judged scenarios show of these requirements.
    fn standing<'r>(
        &self,
        scenarios: &[SharedScenario],
        requirements: impl Iterator<Item = &'r Requirement>,
    ) -> Vec<(&'r Requirement, Shown)> {
        let tests: BTreeMap<&String, &Test> = self.judged().collect();
        let of = |requirement: &'r Requirement| {
            let covering = scenarios
                .iter()
                .filter(|scenario| scenario.is_about(&requirement.id));
            let shown = covering.filter_map(|scenario| {
                let test = tests.get(&scenario.id)?;
                let is_real = provoker(scenario, requirement) < Provoker::AggregatedOrOldServer;
                Some(match (test.broken.contains(&requirement.id), is_real) {
                    (true, true) => Shown::Broken,
                    (true, false) => Shown::BrokenByHardening,
                    (false, _) => Shown::Kept,
                })
            });
            shown.max().map(|shown| (requirement, shown))
        };
        requirements.filter_map(of).collect()
    }

    /// What failed without a known reason, and what is flaky or the adapter's own fault: nothing of it may stand on the page.
    fn without_reason(&self) -> Vec<String> {
        let name = &self.client.name;
        let mut wrong = Vec::new();
        for (id, test) in self.tests() {
            if test.flaky {
                wrong.push(format!(
                    "{name}: {id} is flaky: find the cause, or leave it out with the reason"
                ));
                continue;
            }
            let outcome = test.outcome;
            if matches!(outcome, Outcome::AdapterError | Outcome::HarnessError) {
                wrong.push(format!("{name}: {id}: {}", outcome.word()));
            } else if outcome.accuses_client() && self.known.of(id).is_none() {
                wrong.push(format!(
                    "{name}: {id}: {} without an entry in adapters/known-failures/{name}.yaml",
                    outcome.word()
                ));
            }
        }
        wrong
    }

    fn failures(&self, scenarios: &[SharedScenario], page: &mut String) {
        let version = &self.record.client.version;
        // Writing to a String cannot fail.
        let _ = writeln!(page, "\n### {} {version}\n", self.client.title);
        let mut reasons: BTreeMap<(&str, &str), Vec<String>> = BTreeMap::new();
        for (id, test) in self.judged().filter(|(_, test)| test.outcome.accuses_client()) {
            let known = self.known.of(id);
            let reason = known.map_or("no reason known", |known| known.reason.as_str());
            let issue = known.map_or("none public", |known| known.issue.as_str());
            let broken: Vec<&str> = test.broken.iter().map(String::as_str).collect();
            let scenario = scenarios.iter().find(|scenario| scenario.id == *id);
            let rare = scenario.and_then(|scenario| scenario.provoked_by);
            let rare = rare.map_or(String::new(), |provoker| format!("; {}", provoker.word()));
            let tests = reasons.entry((reason, issue)).or_default();
            // A failure may contradict no requirement.
            let colon = if broken.is_empty() { "" } else { ": " };
            let outcome = test.outcome.word();
            tests.push(format!("`{id}` ({outcome}{colon}{}{rare})", broken.join(", ")));
        }
        if reasons.is_empty() {
            page.push_str("No failures.\n");
        }
        for ((reason, issue), tests) in reasons {
            let _ = writeln!(page, "* {reason}{}\n  {}", issue_link(issue), tests.join(", "));
        }
        for (id, reason) in &self.left_out {
            let _ = writeln!(page, "* Not judged: `{id}`: {reason}");
        }
        let unsupported = self.unsupported();
        if !unsupported.is_empty() {
            let number = self.count(Outcome::Unsupported);
            let _ = writeln!(page, "\n<details><summary>Unsupported: {number}</summary>\n");
            for (why, ids) in unsupported {
                let _ = writeln!(page, "* {why}: {}", ids.join(", "));
            }
            page.push_str("\n</details>\n");
        }
    }

    /// Scenarios that need what the library does not have, by what that is.
    fn unsupported(&self) -> BTreeMap<String, Vec<String>> {
        let mut reasons: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (id, test) in self
            .tests()
            .filter(|(_, test)| test.outcome == Outcome::Unsupported)
        {
            reasons
                .entry(without_places(&test.why))
                .or_default()
                .push(format!("`{id}`"));
        }
        reasons
    }
}

/// The text without what stands in parentheses.
fn without_places(text: &str) -> String {
    let mut depth = 0_usize;
    let mut kept = String::new();
    for character in text.chars() {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            other if depth == 0 => kept.push(other),
            _ => {}
        }
    }
    kept.replace(" ,", ",").trim_end().to_owned()
}

/// What the judged scenarios show of a requirement, the gravest last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Shown {
    Kept,
    /// Broken only on input of aggregated or old servers, or of nobody known.
    BrokenByHardening,
    Broken,
}

/// Returns the rarer of the parties that the scenario and the catalogue name.
fn provoker(scenario: &SharedScenario, requirement: &Requirement) -> Provoker {
    let of_scenario = scenario.provoked_by.unwrap_or(Provoker::Client);
    of_scenario.max(requirement.provoked_by)
}

fn matrix(columns: &[Column<'_>], scenarios: &[SharedScenario]) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let words = CONSEQUENCES.map(Consequence::word).join(" | ");
    let _ = writeln!(
        text,
        "| client | version | {words} | hardening | judged | recovers | pass | warn | fail | hang | crash | unsupported | not judged |\n\
         |---|---|{}---|---|---|---|---|---|---|---|---|---|",
        "---|".repeat(CONSEQUENCES.len())
    );
    let (own, others): (Vec<_>, Vec<_>) = columns.iter().partition(|column| column.client.name == OWN);
    for column in &others {
        text.push_str(&row(column, scenarios));
    }
    for column in own {
        let all = column.standing(scenarios, catalogue::requirements().iter());
        let broken = all.iter().filter(|(_, shown)| *shown != Shown::Kept).count();
        let _ = writeln!(
            text,
            "\nThis repository's own watcher stands apart, because it and the suite have the same authors: of the {} requirements that\n\
             it is judged on by an adapter it breaks {broken}.",
            all.len()
        );
    }
    text
}

fn row(column: &Column<'_>, scenarios: &[SharedScenario]) -> String {
    let all = column.standing(scenarios, catalogue::requirements().iter());
    let number = |wanted: Shown, of: &dyn Fn(&Requirement) -> bool| {
        let with = all.iter().filter(|(one, shown)| *shown == wanted && of(one));
        with.count().to_string()
    };
    let of_consequence = |consequence| number(Shown::Broken, &|one| one.consequence == consequence);
    let counted = [
        Outcome::Pass,
        Outcome::Warn,
        Outcome::Fail,
        Outcome::Hang,
        Outcome::Crash,
        Outcome::Unsupported,
    ];
    let counts = counted.map(|outcome| column.count(outcome));
    let not_judged = column.record.tests.len() - counts.iter().sum::<usize>();
    format!(
        "| {} | {} | {} | {} | {} | {} | {} | {not_judged} |\n",
        column.client.title,
        column.record.client.version,
        CONSEQUENCES.map(of_consequence).join(" | "),
        number(Shown::BrokenByHardening, &|_| true),
        all.len(),
        column.record.recovers,
        counts.map(|count| count.to_string()).join(" | "),
    )
}

/// A table a level: clients by groups of requirements.
fn groups(columns: &[Column<'_>], scenarios: &[SharedScenario], page: &mut String) {
    for level in [Level::Must, Level::Should] {
        let of_level = || {
            catalogue::requirements()
                .iter()
                .filter(move |one| one.level == level)
        };
        let families: BTreeSet<&str> = of_level().map(|one| one.family.as_str()).collect();
        let of_family = |column: &Column<'_>, family: &str| {
            let of_family = of_level().filter(|one| one.family == family);
            column.standing(scenarios, of_family)
        };
        let judged = |family: &&str| columns.iter().any(|column| !of_family(column, family).is_empty());
        let families: Vec<&str> = families.into_iter().filter(judged).collect();
        let _ = writeln!(page, "\n## {} by group: broken of judged\n", level.word());
        let _ = writeln!(page, "| client | {} |", families.join(" | "));
        let _ = writeln!(page, "|---|{}", "---|".repeat(families.len()));
        for column in columns {
            let cells = families.iter().map(|family| {
                let all = of_family(column, family);
                let broken = all.iter().filter(|(_, shown)| *shown == Shown::Broken).count();
                match (broken, all.len()) {
                    (_, 0) => "–".to_owned(),
                    (0, judged) => format!("0/{judged}"),
                    (broken, judged) => format!("**{broken}/{judged}**"),
                }
            });
            let cells: Vec<String> = cells.collect();
            let _ = writeln!(page, "| {} | {} |", column.client.title, cells.join(" | "));
        }
    }
}

/// What was not played.
fn unjudged(columns: &[Column<'_>], page: &mut String) {
    let unplayed = |column: &'_ Column<'_>| -> Vec<String> {
        let of = |(_, test): &(&String, &Test)| test.outcome == Outcome::NotPlayed;
        column.tests().filter(of).map(|(id, _)| id.clone()).collect()
    };
    let ids: BTreeSet<String> = columns.iter().flat_map(unplayed).collect();
    page.push_str("\n## Not played\n\nThese take minutes of real time; `fake-apiserver conformance --profile full` plays them.\n\n");
    for id in ids {
        let _ = writeln!(page, "* `{id}`");
    }
}

/// ` ([owner/repo#1](…))`; nothing where there is no public issue.
pub(super) fn issue_link(issue: &str) -> String {
    let path = issue
        .split_once('#')
        .map(|(repository, number)| format!("{repository}/issues/{number}"));
    match path {
        _ if issue == "none public" => String::new(),
        Some(path) if !issue.contains("://") => format!(" ([{issue}](https://github.com/{path}))"),
        Some(_) | None => format!(" ([issue]({issue}))"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pages_are_what_the_results_say() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"))
            .ancestors()
            .nth(2)
            .expect("a member lies in its workspace");
        let registry = Registry::read(root).unwrap();
        let pages = pages(root, &registry).unwrap();
        assert_eq!(pages.wrong, Vec::<String>::new());
        assert_eq!(pages.stale(root), Vec::<String>::new());
    }

    #[test]
    fn issues_become_links() {
        assert_eq!(issue_link("none public"), "");
        assert_eq!(issue_link("a/b#1"), " ([a/b#1](https://github.com/a/b/issues/1))");
        assert_eq!(issue_link("https://x.org/1"), " ([issue](https://x.org/1))");
    }
}

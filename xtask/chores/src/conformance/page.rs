//! CONFORMANCE.md: a pure function of the recorded results, their audit, the known failures and the scenarios.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use conformance::adapter::outcome::Outcome;
use conformance::baseline::Baseline;
use e2e::adapters::{AUDIT, Audit, AuditedCell, Client, Finding, Registry};
use fake_apiserver::scenario::SharedScenario;
use fake_apiserver::scenario::catalogue::{self, Level, Requirement};

use super::behaviour::Behaviour;
use super::bugs;
use super::record::{Record, Test};
use crate::clients;

const PAGE: &str = "CONFORMANCE.md";

/// The head of the page, before the paragraph about the audit.
const HEAD: &str = "\
# Conformance of Kubernetes watch clients

Measured by `fake-apiserver conformance`; written by `cargo xtask conformance` from the results in `adapters/results`. Each
client runs with its defaults, behind an adapter that reports what the library delivers and never repairs
([docs/adapter-protocol.md](docs/adapter-protocol.md)); adapters and pinned versions are in [adapters/](adapters). The
scenarios are those of [scenarios/](scenarios), the requirements those of
[requirements/catalogue.yaml](requirements/catalogue.yaml).
";

/// The rest of the head.
const LEGEND: &str = "\
**Measured twice:** every client was run at least twice, and what came out differently is *not judged*. A failure that is wrong
is a bug of this repository; please open an issue. [docs/known-bugs.md](docs/known-bugs.md) lists
known bugs of the clients, and the scenarios that show them.

* *Kept* counts requirements that at least one judged scenario covers, and that the client broke in none. A scenario that
  fails counts against every requirement that it covers.
* *fail*: a MUST is broken. *warn*: only a SHOULD is. *hang*: a step waited in vain for the client. *unsupported*: the library
  has no such setting or signal. *not judged*: the scenario takes minutes, or is left out with a reason below.
* *caller*: the library leaves recovery to its caller. The adapter then has the loop that the documentation describes, and
  its delays are the adapter's: 0.8 s doubling to 30 s, or what the library's example has.
";

/// Signs of the tables, in the order of the marks.
const FINDINGS: [Finding; 2] = [Finding::Unfounded, Finding::Along];

/// What is written, and what is wrong with what it is made of.
pub(crate) struct Pages {
    page: String,
    bugs: String,
    pub(crate) wrong: Vec<String>,
}

/// One client with all that is known of it.
struct Column<'a> {
    client: &'a Client,
    record: Record,
    known: Baseline,
    /// Scenarios that are not judged, with the reason.
    left_out: BTreeMap<&'a str, &'a str>,
    /// Broken requirements that the evidence does not show.
    audited: BTreeMap<&'a str, &'a AuditedCell>,
}

/// Makes the pages.
///
/// # Errors
/// A file cannot be read, or has mistakes.
pub(crate) fn pages(root: &Path, registry: &Registry) -> Result<Pages, String> {
    let scenarios = clients::load(root)?;
    let audit = Audit::read(root, registry)?;
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
            audited: audit.of(&client.name),
        });
    }
    for column in &columns {
        wrong.extend(column.without_reason());
        wrong.extend(column.audited_without_results(&scenarios));
    }
    let review = review(&columns, &scenarios, &audit);
    let mut page = format!(
        "{HEAD}\n{review}\n{LEGEND}\n## Clients\n\n{}",
        matrix(&columns, &scenarios)
    );
    if !unrecorded.is_empty() {
        let _ = writeln!(page, "\nWithout recorded results: {}.", unrecorded.join(", "));
    }
    groups(&columns, &scenarios, &mut page);
    wrong.extend(behaviours(root, registry, &mut page)?);
    page.push_str("\n## Failures, by client\n");
    for column in &columns {
        column.failures(&mut page);
    }
    unjudged(&columns, &mut page);
    let (bugs, unshown) = bugs::page(root, registry)?;
    wrong.extend(unshown);
    Ok(Pages { page, bugs, wrong })
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
        write(bugs::PAGE, &self.bugs)?;
        write(PAGE, &self.page)
    }

    /// The files that are not as they would be written.
    pub(crate) fn stale(&self, root: &Path) -> Vec<String> {
        let mut stale = Vec::new();
        for (file, text) in [(PAGE, &self.page), (bugs::PAGE, &self.bugs)] {
            let there = std::fs::read_to_string(root.join(file)).unwrap_or_default();
            if there != *text {
                stale.push(format!("{file} is stale: run `cargo xtask conformance --page`"));
            }
        }
        stale
    }
}

impl Column<'_> {
    /// Requirements of a level that were kept, of those that were judged.
    fn kept_of(&self, scenarios: &[SharedScenario], level: Level) -> String {
        let of_level = catalogue::requirements().iter().filter(|one| one.level == level);
        let (kept, broken) = self.kept(scenarios, of_level);
        let judged = kept + broken.len();
        format!("{kept} of {judged}{}", self.marks(&broken))
    }

    /// Returns how many of these broken requirements have each mark: ` †1 ‡2`.
    fn marks(&self, broken: &[&str]) -> String {
        let with = |finding| {
            let audited = broken.iter().filter_map(|id| self.audited.get(id));
            audited.filter(|cell| cell.finding == finding).count()
        };
        let counts = FINDINGS.map(|finding| (finding.mark(), with(finding)));
        let counts = counts.into_iter().filter(|(_, count)| *count > 0);
        counts.map(|(mark, count)| format!(" {mark}{count}")).collect()
    }

    /// Returns the audited cells that do not count as broken.
    fn audited_without_results(&self, scenarios: &[SharedScenario]) -> Vec<String> {
        let (_, broken) = self.kept(scenarios, catalogue::requirements().iter());
        let name = &self.client.name;
        let stale = self.audited.keys().filter(|id| !broken.contains(id));
        stale
            .map(
                |id| match catalogue::requirements().iter().any(|one| one.id == **id) {
                    true => format!("{AUDIT}: {id} of {name} does not count as broken: remove it"),
                    false => format!("{AUDIT}: there is no requirement {id}"),
                },
            )
            .collect()
    }

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

    /// How many of these requirements were kept, and the ids of those that were not.
    fn kept<'r>(
        &self,
        scenarios: &[SharedScenario],
        requirements: impl Iterator<Item = &'r Requirement>,
    ) -> (usize, Vec<&'r str>) {
        let (mut kept, mut broken) = (0, Vec::new());
        let tests: BTreeMap<&String, &Test> = self.judged().collect();
        for requirement in requirements {
            let mut covering = scenarios
                .iter()
                .filter(|scenario| scenario.covers.iter().any(|covered| covered.id == requirement.id))
                .filter_map(|scenario| tests.get(&scenario.id))
                .peekable();
            if covering.peek().is_none() {
                continue;
            }
            if covering.any(|test| test.broken.contains(&requirement.id)) {
                broken.push(requirement.id.as_str());
            } else {
                kept += 1;
            }
        }
        (kept, broken)
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

    fn failures(&self, page: &mut String) {
        let version = &self.record.client.version;
        // Writing to a String cannot fail.
        let _ = writeln!(page, "\n### {} {version}\n", self.client.title);
        let mut reasons: BTreeMap<(&str, &str), Vec<String>> = BTreeMap::new();
        for (id, test) in self.judged().filter(|(_, test)| test.outcome.accuses_client()) {
            let known = self.known.of(id);
            let reason = known.map_or("no reason known", |known| known.reason.as_str());
            let issue = known.map_or("none public", |known| known.issue.as_str());
            let broken: Vec<String> = test.broken.iter().map(|id| self.marked(id)).collect();
            let tests = reasons.entry((reason, issue)).or_default();
            // What is broken may be none of what the scenario covers.
            let colon = if broken.is_empty() { "" } else { ": " };
            let outcome = test.outcome.word();
            tests.push(format!("`{id}` ({outcome}{colon}{})", broken.join(", ")));
        }
        if reasons.is_empty() {
            page.push_str("No failures.\n");
        }
        for ((reason, issue), tests) in reasons {
            let _ = writeln!(page, "* {reason}{}\n  {}", issue_link(issue), tests.join(", "));
        }
        for (id, cell) in &self.audited {
            let _ = writeln!(page, "* {}{id}: {}", cell.finding.mark(), cell.reason);
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

    /// Returns the id of a broken requirement with its mark.
    fn marked(&self, id: &str) -> String {
        let mark = self.audited.get(id).map(|cell| cell.finding.mark());
        id.chars().chain(mark).collect()
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

fn matrix(columns: &[Column<'_>], scenarios: &[SharedScenario]) -> String {
    let mut text = String::from(
        "| client | version | MUST kept | SHOULD kept | recovers | pass | warn | fail | hang | crash | unsupported | not judged |\n\
         |---|---|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for column in columns {
        let kept = |level: Level| column.kept_of(scenarios, level);
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
        let counts = counts.map(|count| count.to_string()).join(" | ");
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {counts} | {not_judged} |",
            column.client.title,
            column.record.client.version,
            kept(Level::Must),
            kept(Level::Should),
            column.record.recovers,
        );
    }
    text
}

/// The paragraph about the audit, with its counts of MUST.
fn review(columns: &[Column<'_>], scenarios: &[SharedScenario], audit: &Audit) -> String {
    let of_audit = |column: &&Column<'_>| audit.clients.contains(&column.client.name);
    let (mut shown, mut counts) = (0, [0; 2]);
    for column in columns.iter().filter(of_audit) {
        let must = catalogue::requirements()
            .iter()
            .filter(|one| one.level == Level::Must);
        for id in column.kept(scenarios, must).1 {
            match column.audited.get(id).map(|cell| cell.finding) {
                None => shown += 1,
                Some(Finding::Unfounded) => counts[0] += 1,
                Some(Finding::Along) => counts[1] += 1,
            }
        }
    }
    let [unfounded, along] = counts;
    let [dagger, double] = FINDINGS.map(Finding::mark);
    format!(
        "**Under review:** these counts accuse clients of more than the evidence shows. An audit of the {} MUST cells counted as\n\
         broken for {} clients found {shown} shown by the evidence, {along} only charged along with another requirement of the same\n\
         scenario, and {unfounded} false. The last two are listed in [{AUDIT}]({AUDIT}), and marked on this page:\n\n\
         * {dagger}: false. The behaviour is acceptable, or an artefact of the server, the adapter or its settings.\n\
         * {double}: only charged along. The scenario fails because of another requirement that it covers.\n\n\
         In tables, the number after a mark counts the broken requirements that have it; the lists of failures have the reasons. The\n\
         same scenarios judge the other clients, whose results were not audited.\n",
        shown + along + unfounded,
        audit.clients.len(),
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
        let judged = |family: &&str| {
            let of_family = || of_level().filter(|one| one.family == **family);
            columns.iter().any(
                |column| !matches!(column.kept(scenarios, of_family()), (0, broken) if broken.is_empty()),
            )
        };
        let families: Vec<&str> = families.into_iter().filter(judged).collect();
        let _ = writeln!(page, "\n## {} by group: kept / judged\n", level.word());
        let _ = writeln!(page, "| client | {} |", families.join(" | "));
        let _ = writeln!(page, "|---|{}", "---|".repeat(families.len()));
        for column in columns {
            let cells = families.iter().map(|family| {
                let of_family = of_level().filter(|one| one.family == **family);
                match column.kept(scenarios, of_family) {
                    (0, broken) if broken.is_empty() => "–".to_owned(),
                    (kept, broken) if broken.is_empty() => format!("{kept}/{kept}"),
                    (kept, broken) => {
                        let judged = kept + broken.len();
                        format!("**{kept}/{judged}**{}", column.marks(&broken))
                    }
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

//! The text of CONFORMANCE.md: how it is measured, the matrix, and the defects of each client with links to scenarios, records
//! and evidence. A pure function of the published record.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use fake_apiserver::scenario::catalogue::{self, Consequence, Requirement};
use report::published::{CONSEQUENCES, Client, Published, Shown, Test, is_scored};

use super::page::issue_link;

/// The head of the page.
const HEAD: &str = "\
# Conformance of Kubernetes watch clients

Measured by `fake-apiserver conformance`; written by `cargo xtask conformance` from [adapters/results](adapters/results) and
[adapters/known-failures](adapters/known-failures). Each client runs behind an adapter that reports what the library delivers and
never repairs ([docs/adapter-protocol.md](docs/adapter-protocol.md)); adapters and pinned versions are in [adapters/](adapters).
The requirements are those of [requirements/catalogue.yaml](requirements/catalogue.yaml), each with its source, the party that is
known to provoke it, and the consequence for users.

A client is charged with a requirement only if a failed expectation, or a violated invariant, contradicts the requirement's text,
on input that a kube-apiserver, a network or a common proxy sends. A failure that is wrong is a bug of this repository:
[contest it](docs/contest.md). [docs/withdrawn.md](docs/withdrawn.md) lists what was withdrawn, and
[docs/known-bugs.md](docs/known-bugs.md) known bugs of the clients with the scenarios that show them.

`cargo xtask site` writes all of it as pages into `target/site`: each requirement with its source, each failure with the contradiction,
the scenario, the trace as a timeline, and the command that shows it again. The traces are in [adapters/evidence](adapters/evidence),
what the clients ask first and how they wait in [adapters/behaviour](adapters/behaviour).

";

/// What the columns of the matrix mean.
const LEGEND: &str = "
* The first columns count defects, broken requirements, by their worst consequence: *lost* (an object or event is missed for
  ever), *stuck* (or dead), *overload* (of the server), *stale* (until the next relist), *waste*, *hidden* (the user is not told).
* *core*: requirements that a scenario tests with the settings that every informer has, as *broken / not shown broken / not shown*.
  *optional*: those about a feature that not every library has, such as streaming lists or selectors. *Not shown broken* is less than
  kept: no scenario that was played contradicts it.
* *hardening* counts requirements that are broken only on input of aggregated or old servers, or of nobody that we know of: shown,
  not scored.
* *caller*: the library leaves recovery to its caller. The adapter then has the loop that the documentation describes, and
  its delays are the adapter's: 0.8 s doubling to 30 s, or what the library's example has.
* Every scenario was played, also those that take an hour (the full profile), and at least twice; what came out differently is not
  judged.
";

/// Failures of one client with one reason.
#[derive(Debug, Default)]
struct Defect<'a> {
    /// Requirements that are broken and count.
    requirements: BTreeSet<&'a str>,
    /// Scenarios that show it.
    scenarios: Vec<&'a str>,
}

/// Returns the page.
pub(crate) fn text(published: &Published, unrecorded: &[String]) -> String {
    let mut page = HEAD.to_owned();
    let (own, others): (Vec<&Client>, Vec<&Client>) = published.clients.iter().partition(|one| one.is_own);
    let (older, current): (Vec<&Client>, Vec<&Client>) = others.into_iter().partition(|one| one.is_older);
    page.push_str("## Clients\n\n");
    matrix(published, &current, &mut page);
    page.push_str(LEGEND);
    for client in own {
        let standing = standing(published, client);
        let broken = standing.iter().filter(|(_, shown)| *shown != Shown::Kept).count();
        // Writing to a String cannot fail.
        let _ = writeln!(
            page,
            "\nNot in the table: {} {}, because it and the suite have the same authors. Of the {} requirements that it is judged on\n\
             by an adapter it breaks {broken}.",
            client.title,
            client.version,
            standing.len()
        );
    }
    if !unrecorded.is_empty() {
        let _ = writeln!(page, "\nWithout recorded results: {}.", unrecorded.join(", "));
    }
    page.push_str("\n## Defects, by client\n");
    sections(published, &current, &mut page);
    if !older.is_empty() {
        page.push_str("\n## Older versions\n\n");
        matrix(published, &older, &mut page);
        sections(published, &older, &mut page);
    }
    page
}

/// Writes a section for each client with defects, and a list of those without.
fn sections(published: &Published, clients: &[&Client], page: &mut String) {
    let mut flawless = Vec::new();
    for client in clients {
        let defects = defects(published, client);
        if defects.is_empty() {
            flawless.push(client);
            continue;
        }
        let _ = write!(page, "\n### {} {}\n\n", client.title, client.version);
        for line in lines(&defects) {
            let _ = writeln!(page, "* {line}");
        }
        let _ = writeln!(
            page,
            "\n<sub>{}{}</sub>",
            hardening(published, client),
            records(client)
        );
    }
    if !flawless.is_empty() {
        page.push_str("\n### No defect shown\n\n");
        for client in flawless {
            let (hardening, records) = (hardening(published, client), records(client));
            let _ = writeln!(
                page,
                "* {} {}. <sub>{hardening}{records}</sub>",
                client.title, client.version
            );
        }
    }
}

fn standing<'r>(published: &Published, client: &Client) -> Vec<(&'r Requirement, Shown)> {
    let all = catalogue::requirements().iter();
    all.filter_map(|one| Some((one, published.shown(client, one)?)))
        .collect()
}

fn matrix(published: &Published, clients: &[&Client], page: &mut String) {
    let rows: Vec<_> = clients
        .iter()
        .map(|client| (client, standing(published, client)))
        .collect();
    let number = |standing: &[(&Requirement, Shown)], consequence: Consequence| {
        let broken = standing.iter().filter(|(_, shown)| *shown == Shown::Broken);
        broken.filter(|(one, _)| one.consequence == consequence).count()
    };
    // A consequence that no client shows has no column.
    let shown = |consequence: &Consequence| {
        rows.iter()
            .any(|(_, standing)| number(standing, *consequence) > 0)
    };
    let columns: Vec<Consequence> = CONSEQUENCES.into_iter().filter(shown).collect();
    let words: Vec<&str> = columns.iter().map(|one| one.word()).collect();
    let _ = writeln!(
        page,
        "| client | version | {} | core | optional | hardening | recovers |\n|---|---|{}---|---|---|---|",
        words.join(" | "),
        "---|".repeat(words.len())
    );
    for (client, standing) in &rows {
        let counts = columns.iter().map(|one| number(standing, *one).to_string());
        let split = |is_core| {
            let split = published.split(client, is_core);
            format!("{} / {} / {}", split.broken, split.kept, split.not_shown)
        };
        let hardening = standing
            .iter()
            .filter(|(_, shown)| *shown == Shown::BrokenByHardening);
        let _ = writeln!(
            page,
            "| {} | {} | {} | {} | {} | {} | {} |",
            client.title,
            client.version,
            counts.collect::<Vec<String>>().join(" | "),
            split(true),
            split(false),
            hardening.count(),
            client.recovers
        );
    }
}

/// Returns the defects by their worst consequence, then by reason and issue.
fn defects<'a>(
    published: &'a Published,
    client: &'a Client,
) -> BTreeMap<(usize, &'a str, &'a str), Defect<'a>> {
    let mut by_reason: BTreeMap<(&str, &str), Defect<'_>> = BTreeMap::new();
    for (id, test) in client.failures() {
        let Some((scenario, _)) = published.scenario(id) else {
            continue;
        };
        let counts = |broken: &&String| {
            let requirement = catalogue::requirement(broken);
            requirement.is_some_and(|one| is_scored(scenario, one))
        };
        let scored: Vec<&String> = test.broken.iter().filter(counts).collect();
        if scored.is_empty() {
            continue;
        }
        let known = test.known.as_ref();
        let reason = known.map_or("no reason is recorded", |known| known.reason.as_str());
        let issue = known.map_or("none public", |known| known.issue.as_str());
        let defect = by_reason.entry((reason, issue)).or_default();
        defect.requirements.extend(scored.into_iter().map(String::as_str));
        defect.scenarios.push(id);
    }
    let worst = |defect: &Defect<'_>| {
        let of = |id: &&str| {
            let consequence = catalogue::requirement(id)?.consequence;
            CONSEQUENCES.iter().position(|one| *one == consequence)
        };
        defect
            .requirements
            .iter()
            .filter_map(of)
            .min()
            .unwrap_or(CONSEQUENCES.len() - 1)
    };
    let by_reason = by_reason.into_iter();
    by_reason
        .map(|((reason, issue), defect)| ((worst(&defect), reason, issue), defect))
        .collect()
}

/// Returns a line per defect, the gravest first.
fn lines(defects: &BTreeMap<(usize, &str, &str), Defect<'_>>) -> Vec<String> {
    let line = |((worst, reason, issue), defect): (&(usize, &str, &str), &Defect<'_>)| {
        let requirements: Vec<&str> = defect.requirements.iter().copied().collect();
        let scenarios = defect.scenarios.iter();
        let scenarios: Vec<String> = scenarios
            .map(|id| format!("[{id}](scenarios/{id}.yaml)"))
            .collect();
        format!(
            "*{}*: {reason}{} ({}: {})",
            CONSEQUENCES[*worst].word(),
            issue_link(issue),
            requirements.join(", "),
            scenarios.join(", ")
        )
    };
    defects.iter().map(line).collect()
}

/// Returns what is shown and not scored: requirements broken by hardening, and failures that charge none.
fn hardening(published: &Published, client: &Client) -> String {
    let mut text = String::new();
    let of = standing(published, client);
    let hardening = of.iter().filter(|(_, shown)| *shown == Shown::BrokenByHardening);
    let ids: Vec<&str> = hardening.map(|(one, _)| one.id.as_str()).collect();
    if !ids.is_empty() {
        let _ = write!(text, "Hardening: {}. ", ids.join(", "));
    }
    let charges_none = |(_, test): &(&str, &Test)| test.broken.is_empty();
    match client.failures().filter(charges_none).count() {
        0 => {}
        1 => text.push_str("One failure charges no requirement. "),
        more => {
            let _ = write!(text, "{more} failures charge no requirement. ");
        }
    }
    text
}

/// Returns links to what the record has of a client.
fn records(client: &Client) -> String {
    let name = &client.name;
    let mut records = format!("Record: [results](adapters/results/{name}.json)");
    if client.failures().next().is_some() {
        let _ = write!(records, ", [reasons](adapters/known-failures/{name}.yaml)");
    }
    let kept = client
        .failures()
        .filter(|(_, test)| test.evidence.is_some())
        .count();
    if kept > 0 {
        let all = client.failures().count();
        let _ = write!(
            records,
            ", [evidence](adapters/evidence/{name}.jsonl) of {kept} of {all} failures"
        );
    }
    let left_out = client
        .tests
        .values()
        .filter(|test| test.left_out.is_some())
        .count();
    if left_out > 0 {
        let _ = write!(
            records,
            "; scenarios [left out](adapters/adapters.yaml): {left_out}"
        );
    }
    records + "."
}

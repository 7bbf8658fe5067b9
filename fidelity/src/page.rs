//! `docs/fidelity.md`: how close the fake is to a real server, in numbers, reasons and differences. The page is generated,
//! and parsed: only probes that it lists as open may differ.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use fake_apiserver::model::unevaluated;

use crate::verdict::{Outcome, Verdict};

/// Counts of the probes of a version.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Numbers {
    /// Identical.
    pub identical: usize,
    /// Different, with an accepted reason.
    pub accepted: usize,
    /// Different, without a reason.
    pub open: usize,
}

/// Returns the counts of each version.
pub fn numbers(outcomes: &[Outcome]) -> BTreeMap<&'static str, Numbers> {
    let mut all: BTreeMap<&'static str, Numbers> = BTreeMap::new();
    for outcome in outcomes {
        let numbers = all.entry(outcome.version).or_default();
        match outcome.verdict {
            Verdict::Identical => numbers.identical += 1,
            Verdict::Accepted(_) => numbers.accepted += 1,
            Verdict::Open => numbers.open += 1,
        }
    }
    all
}

/// Returns the page.
pub fn write(outcomes: &[Outcome]) -> String {
    let mut page = String::from(
        "# Fidelity: the fake compared with a real server\n\n\
         <!-- Written by `cargo xtask fidelity --write-docs`; a test compares it with what the fake does. -->\n\n\
         The probes of `fidelity/oracle/probes` were played against real kube-apiservers; their responses are in\n\
         `fidelity/oracle/recordings`. This page compares the responses of the fake with them: status line, headers, every\n\
         byte of the bodies, and the times of watch lines. Values that differ between runs (times, uids, the numbers of\n\
         resourceVersions, but not their order) are normalised, as `fidelity/oracle/probes/README.md` describes.\n\n\
         | Kubernetes | identical | accepted | open |\n|---|---|---|---|\n",
    );
    for (version, numbers) in numbers(outcomes) {
        let _ = writeln!(
            page,
            "| {version} | {} | {} | {} |",
            numbers.identical, numbers.accepted, numbers.open
        );
    }
    page.push_str(
        "\n## Stored and never evaluated\n\n\
         A real server acts on these objects; the fake only stores them, and creating one returns a `Warning` header\n\
         about that. The comparison leaves that header out, because no real server sends it.\n\n\
         | group | kind | consequence |\n|---|---|---|\n",
    );
    for (group, kind, effect) in unevaluated::KINDS {
        let _ = writeln!(page, "| {group} | {kind} | {effect} |");
    }
    page.push_str(
        "\nExpressions in CEL are evaluated. Lists of type `set` and `map` are compared in order. What expressions would cost is\n\
         not estimated. Admission policies judge creations, updates and deletions, not connections or scales.\n",
    );
    page.push_str("\n## Accepted differences\n\n");
    let mut reasons: BTreeMap<&str, BTreeMap<&str, Vec<&str>>> = BTreeMap::new();
    for outcome in outcomes {
        if let Verdict::Accepted(reason) = &outcome.verdict {
            reasons
                .entry(reason)
                .or_default()
                .entry(&outcome.probe)
                .or_default()
                .push(outcome.version);
        }
    }
    if reasons.is_empty() {
        page.push_str("None.\n");
    }
    for (reason, probes) in reasons {
        let probes: Vec<String> = probes
            .iter()
            .map(|(probe, versions)| format!("`{probe}` ({})", versions.join(", ")))
            .collect();
        let _ = writeln!(page, "- {} {}", reason.trim(), probes.join(", "));
    }
    page.push_str("\n## Open\n\n");
    let mut open: BTreeMap<&str, Vec<&Outcome>> = BTreeMap::new();
    for outcome in outcomes.iter().filter(|outcome| outcome.verdict == Verdict::Open) {
        open.entry(&outcome.probe).or_default().push(outcome);
    }
    if open.is_empty() {
        page.push_str("Nothing.\n");
    } else {
        page.push_str(
            "To be fixed. The first line that differs on the newest version is shown, as the real server wrote it and\n\
             as the fake did; `cargo xtask fidelity --only ID` shows all.\n",
        );
    }
    for (probe, outcomes) in open {
        let versions: Vec<&str> = outcomes.iter().map(|outcome| outcome.version).collect();
        let _ = writeln!(page, "\n### {probe}\n\n{HEADING}{}\n", versions.join(", "));
        if let Some(newest) = outcomes.last() {
            let (real, fake) = first_difference(&newest.recorded, &newest.played);
            let _ = writeln!(
                page,
                "{}\n\n```text\nreal: {real}\nfake: {fake}\n```",
                newest.title
            );
        }
    }
    page
}

const HEADING: &str = "Open on ";

/// Returns the probes that a page lists as open, with their versions.
pub fn listed(page: &str) -> BTreeSet<(String, String)> {
    let mut listed = BTreeSet::new();
    let mut probe = "";
    for line in page.lines() {
        if let Some(name) = line.strip_prefix("### ") {
            probe = name;
        } else if let Some(versions) = line.strip_prefix(HEADING) {
            listed.extend(
                versions
                    .split(", ")
                    .map(|version| (probe.to_owned(), version.to_owned())),
            );
        }
    }
    listed
}

/// Returns the first lines that differ, truncated around the difference.
fn first_difference(recorded: &str, played: &str) -> (String, String) {
    let mut right = played.lines();
    for left in recorded.lines() {
        let other = right.next().unwrap_or("(nothing more)");
        if left != other {
            return (cut(left, other), cut(other, left));
        }
    }
    (
        "(nothing more)".to_owned(),
        right.next().unwrap_or("(the same)").to_owned(),
    )
}

/// Returns at most 150 characters, from shortly before the first difference.
fn cut(line: &str, other: &str) -> String {
    const SHOWN: usize = 150;
    let line: Vec<char> = line.chars().collect();
    let same = line
        .iter()
        .zip(other.chars())
        .take_while(|(a, b)| **a == *b)
        .count();
    let from = if line.len() <= SHOWN {
        0
    } else {
        same.saturating_sub(30).min(line.len() - SHOWN.min(line.len()))
    };
    let until = (from + SHOWN).min(line.len());
    let text: String = line[from..until].iter().collect();
    let before = if from > 0 { "…" } else { "" };
    let after = if until < line.len() { "…" } else { "" };
    format!("{before}{text}{after}")
}

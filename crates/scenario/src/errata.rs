//! What was wrong in frozen editions: accusations that were withdrawn, and levels that were lowered.
//!
//! Read from `requirements/errata.yaml`. An edition's file never changes; every version applies the errata to it, so that a
//! client that pins an edition is not failed by what is known to be false. `docs/withdrawn.md` is made of the same entries.
//! Nothing here knows how a requirement is checked.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::LazyLock;

use serde::Deserialize;

use super::catalogue::{self, Level};

const TEXT: &str = include_str!("../errata.yaml");

/// All errata.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Errata {
    /// Pairs of a requirement and scenarios that no longer count.
    pub withdrawn: Vec<Withdrawn>,
    /// Requirements whose level was lowered, by id.
    pub lowered: BTreeMap<String, Lowered>,
}

/// A requirement that scenarios do not show to be broken or kept.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Withdrawn {
    /// Id of the requirement.
    pub requirement: String,
    /// Ids of the scenarios.
    pub scenarios: Vec<String>,
    /// When it was withdrawn: `2026-11-27`.
    pub date: String,
    /// Why, in a sentence.
    pub reason: String,
}

/// A requirement at a lower level than an edition has it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lowered {
    /// The level that counts.
    pub to: Level,
    /// When it was lowered: `2026-11-27`.
    pub date: String,
    /// Why, in a sentence.
    pub reason: String,
}

/// Returns the errata of this version.
pub fn errata() -> &'static Errata {
    &ERRATA
}

impl Errata {
    /// Parses the text of errata; `None`: it has mistakes.
    pub fn parse(text: &str) -> Option<Self> {
        let (tree, _) = super::tree::read(text);
        super::read::from_node(tree.as_ref()?).ok()
    }

    /// Whether a scenario no longer counts for a requirement.
    pub fn withdraw(&self, requirement: &str, scenario: &str) -> bool {
        self.withdrawn
            .iter()
            .any(|one| one.requirement == requirement && one.scenarios.iter().any(|id| id == scenario))
    }

    /// Returns the level of a requirement that an edition has at `level`.
    pub fn level(&self, requirement: &str, level: Level) -> Level {
        let lowered = self.lowered.get(requirement);
        lowered.map_or(level, |lowered| level.max(lowered.to))
    }

    /// Returns the number of entries.
    pub fn count(&self) -> usize {
        self.withdrawn.len() + self.lowered.len()
    }

    /// Returns the page docs/withdrawn.md.
    pub fn page(&self) -> String {
        let mut text = String::from(
            "# Withdrawn accusations\n\n\
             What this suite held against clients and no longer does, with date and reason. Written by `cargo xtask edition --page` from\n\
             [requirements/errata.yaml](../requirements/errata.yaml), which every version applies to the frozen editions: a client that\n\
             pins one is not failed by what is listed here.\n\n\
             ## Withdrawn\n\n\
             The scenario does not show whether a client keeps the requirement.\n\n\
             | date | requirement | scenarios | reason |\n|---|---|---|---|\n",
        );
        // Writing to a String cannot fail.
        for Withdrawn {
            requirement,
            scenarios,
            date,
            reason,
        } in &self.withdrawn
        {
            let scenarios: Vec<String> = scenarios.iter().map(|id| format!("`{id}`")).collect();
            let _ = writeln!(
                text,
                "| {date} | {requirement} | {} | {reason} |",
                scenarios.join(", ")
            );
        }
        text.push_str("\n## Lowered\n\nThe requirement is no longer a MUST.\n\n| date | requirement | level | reason |\n|---|---|---|---|\n");
        for (id, Lowered { to, date, reason }) in &self.lowered {
            let _ = writeln!(text, "| {date} | {id} | {} | {reason} |", to.word());
        }
        text
    }

    /// Returns where the errata and the catalogue do not agree, a sentence each.
    pub fn disagreements(&self) -> Vec<String> {
        let mut found = Vec::new();
        for one in &self.withdrawn {
            if catalogue::requirement(&one.requirement).is_none() {
                found.push(format!(
                    "requirements/errata.yaml withdraws {}, which the catalogue does not have",
                    one.requirement
                ));
            }
        }
        for (id, lowered) in &self.lowered {
            if catalogue::requirement(id).is_none_or(|requirement| requirement.level != lowered.to) {
                found.push(format!(
                    "requirements/errata.yaml lowers {id} to {}, and the catalogue has another level",
                    lowered.to.word()
                ));
            }
        }
        found
    }
}

static ERRATA: LazyLock<Errata> =
    LazyLock::new(|| Errata::parse(TEXT).expect("the errata are part of the build, and a test reads them"));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_agree_with_the_catalogue() {
        assert_eq!(errata().disagreements(), Vec::<String>::new());
    }

    #[test]
    fn an_edition_is_read_with_them() {
        let errata = Errata::parse(
            "withdrawn:\n  - {requirement: LIST-01, scenarios: [a/b], date: d, reason: r}\n\
             lowered:\n  LIST-02: {to: SHOULD, date: d, reason: r}\n",
        )
        .unwrap();
        assert!(errata.withdraw("LIST-01", "a/b"));
        assert!(!errata.withdraw("LIST-01", "a/c") && !errata.withdraw("LIST-02", "a/b"));
        assert_eq!(errata.level("LIST-02", Level::Must), Level::Should);
        assert_eq!(errata.level("LIST-02", Level::May), Level::May);
        assert_eq!(errata.level("LIST-01", Level::Must), Level::Must);
        assert!(errata.page().contains("| d | LIST-01 | `a/b` | r |"));
        assert_eq!(errata.disagreements().len(), 1, "LIST-02 is a MUST");
    }
}

//! `e2e/crowd/record.yaml`: accusations that a person upheld against the text of a requirement, and the comparison of a run
//! with them. It must not run anything.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_saphyr::Spanned;

use super::results::Counts;
use super::{FOLDER, parsed};

/// Name of the file in the folder.
pub const FILE: &str = "record.yaml";

/// Scenario of accusations by `fake-apiserver serve`.
pub const SERVE: &str = "serve";

/// Width of the written file.
const WIDTH: usize = 120;

/// First lines of the record.
const HEADER: &str = "\
# Accusations of the programs in this folder that a person upheld: each is true against the text of a requirement
# (requirements/catalogue.yaml). README.md has the keys. `cargo xtask crowd --write` adds accusations with an empty
# `upheld`, and keeps no comments.
";

/// The record: what is known of each program.
#[derive(Debug, Default)]
pub struct Record(BTreeMap<String, Known>);

/// What is known of a program.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Known {
    /// Reason why less than half of the scenarios that it plays are judged.
    #[serde(default)]
    pub seldom_judged: Option<String>,
    /// Upheld accusations.
    #[serde(default)]
    pub accusations: Vec<Spanned<Entry>>,
}

/// An accusation, and why it is true.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Id of the scenario, or `serve`.
    pub scenario: String,
    /// Failed check.
    pub check: String,
    /// Requirements for which it is evidence.
    pub requirements: Vec<String>,
    /// Whether runs without it are no mistake of the record.
    #[serde(default)]
    pub sometimes: bool,
    /// Why the accusation is true, in one sentence.
    pub upheld: String,
}

/// An accusation in a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Accusation {
    /// Id of the scenario, or `serve`.
    pub scenario: String,
    /// Failed check.
    pub check: String,
    /// Requirements for which it is evidence.
    pub requirements: Vec<String>,
    /// Sentence of the judge.
    pub sentence: String,
}

/// Result of playing a scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Played {
    /// No accusation.
    Passed,
    /// Accused.
    Failed,
    /// Played without a verdict, with the reason.
    NotJudged(String),
    /// Not played, with the reason.
    NotPlayed(String),
}

/// What a program did in a run.
#[derive(Debug, Default)]
pub struct Seen {
    /// Selected scenarios.
    pub scenarios: BTreeMap<String, Played>,
    /// Whether these are all scenarios.
    pub all_scenarios: bool,
    /// Number of lists and watches in `serve`; `None`: it was not run.
    pub reads: Option<u64>,
    /// Whether that was the whole plan of the default seed.
    pub whole_plan: bool,
    /// All accusations.
    pub accusations: Vec<Accusation>,
}

/// A difference between a run and the record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Difference {
    /// An accusation that is not in the record.
    NotUpheld(Accusation),
    /// An entry in this line of the record whose accusation no longer occurs.
    Stale {
        /// Line in the record.
        line: u64,
        /// Its scenario.
        scenario: String,
        /// Its check.
        check: String,
    },
    /// Less than half of the scenarios that were played are judged.
    SeldomJudged {
        /// Number of judged scenarios.
        judged: usize,
        /// Number of played scenarios.
        of: usize,
    },
    /// More are judged, but the record has a reason why not.
    OftenJudged,
    /// It sent no list and no watch in `serve`.
    NotServed,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotUpheld(Accusation {
                scenario,
                check,
                requirements,
                sentence,
            }) => {
                let requirements: String = requirements.iter().map(|id| format!(" {id}")).collect();
                write!(f, "not upheld: {scenario} {check}{requirements}: {sentence}")
            }
            Self::Stale {
                line,
                scenario,
                check,
            } => {
                write!(
                    f,
                    "stale: {FOLDER}/{FILE}:{line}: {scenario} {check} no longer occurs"
                )
            }
            Self::SeldomJudged { judged, of } => write!(
                f,
                "seldom judged: {judged} of {of} played scenarios; --verbose lists the reasons, `seldom_judged` in \
                 {FOLDER}/{FILE} is for one that cannot be removed"
            ),
            Self::OftenJudged => write!(
                f,
                "stale: {FOLDER}/{FILE}: `seldom_judged`, although at least half of the played scenarios are judged"
            ),
            Self::NotServed => write!(f, "seldom judged: no list or watch in `serve`"),
        }
    }
}

impl Entry {
    fn is(&self, accusation: &Accusation) -> bool {
        self.scenario == accusation.scenario
            && self.check == accusation.check
            && self.requirements == accusation.requirements
    }
}

impl Seen {
    /// Returns the numbers of scenarios by outcome.
    pub fn counts(&self) -> Counts {
        let count =
            |of: &dyn Fn(&Played) -> bool| self.scenarios.values().filter(|played| of(played)).count();
        Counts {
            passed: count(&|played| matches!(played, Played::Passed)),
            accused: count(&|played| matches!(played, Played::Failed)),
            not_judged: count(&|played| matches!(played, Played::NotJudged(_))),
            not_played: count(&|played| matches!(played, Played::NotPlayed(_))),
            reads: self.reads.unwrap_or_default(),
        }
    }

    /// Returns whether the run proves that an accusation of this scenario does not occur. A scenario without a verdict proves
    /// nothing, nor does a part of the plan.
    fn decides(&self, scenario: &str) -> bool {
        if scenario == SERVE {
            return self.reads.is_some() && self.whole_plan;
        }
        match self.scenarios.get(scenario) {
            Some(Played::Passed | Played::Failed) => true,
            Some(Played::NotJudged(_)) => false,
            // A part of the scenarios is played within less time, which leaves some out.
            Some(Played::NotPlayed(_)) | None => self.all_scenarios,
        }
    }
}

impl Known {
    /// Compares a run with what is known.
    pub fn differences(&self, seen: &Seen) -> Vec<Difference> {
        let entries = || self.accusations.iter().map(|entry| &entry.value);
        let mut found: Vec<Difference> = seen
            .accusations
            .iter()
            .filter(|accusation| !entries().any(|entry| entry.is(accusation)))
            .cloned()
            .map(Difference::NotUpheld)
            .collect();
        let stale = self.accusations.iter().filter(|entry| {
            let occurs = seen
                .accusations
                .iter()
                .any(|accusation| entry.value.is(accusation));
            !occurs && !entry.value.sometimes && seen.decides(&entry.value.scenario)
        });
        found.extend(stale.map(|entry| Difference::Stale {
            line: entry.referenced.line(),
            scenario: entry.value.scenario.clone(),
            check: entry.value.check.clone(),
        }));
        let counts = seen.counts();
        let judged = counts.passed + counts.accused;
        let of = judged + counts.not_judged;
        let is_seldom = judged == 0 || judged * 2 < of;
        match &self.seldom_judged {
            None if is_seldom && !seen.scenarios.is_empty() => {
                found.push(Difference::SeldomJudged { judged, of });
            }
            Some(_) if !is_seldom && seen.all_scenarios => found.push(Difference::OftenJudged),
            None | Some(_) => {}
        }
        if seen.reads == Some(0) {
            found.push(Difference::NotServed);
        }
        found
    }

    /// Returns the number of accusations that are upheld.
    pub fn upheld(&self, seen: &Seen) -> usize {
        let is_upheld =
            |accusation: &&Accusation| self.accusations.iter().any(|entry| entry.value.is(accusation));
        seen.accusations.iter().filter(is_upheld).count()
    }
}

impl Record {
    /// Reads the record.
    ///
    /// # Errors
    ///
    /// It cannot be read or has mistakes.
    pub fn read(root: &Path) -> Result<Self, String> {
        let file = root.join(FOLDER).join(FILE);
        let text = std::fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        Self::parse(&text)
    }

    /// Parses the record.
    ///
    /// # Errors
    ///
    /// It has mistakes.
    pub fn parse(text: &str) -> Result<Self, String> {
        parsed(&format!("{FOLDER}/{FILE}"), text).map(Self)
    }

    /// Returns what is known of a program.
    pub fn of(&self, program: &str) -> Known {
        self.0.get(program).cloned().unwrap_or_default()
    }

    /// Returns the mistakes that need programs and scenarios to be found: unknown names, and two entries for one accusation.
    pub fn mistakes(&self, programs: &[&str], scenarios: &BTreeSet<String>) -> Vec<String> {
        let mut mistakes = Vec::new();
        for (program, known) in &self.0 {
            if !programs.contains(&program.as_str()) {
                mistakes.push(format!("{FOLDER}/{FILE}: there is no program {program}"));
            }
            for (nth, entry) in known.accusations.iter().enumerate() {
                let at = format!("{FOLDER}/{FILE}:{}", entry.referenced.line());
                let Entry {
                    scenario,
                    check,
                    requirements,
                    ..
                } = &entry.value;
                if scenario != SERVE && !scenarios.contains(scenario) {
                    mistakes.push(format!("{at}: there is no scenario {scenario}"));
                }
                let is_same = |other: &&Spanned<Entry>| {
                    other.value.scenario == *scenario
                        && other.value.check == *check
                        && other.value.requirements == *requirements
                };
                if let Some(first) = known.accusations[..nth].iter().find(is_same) {
                    let line = first.referenced.line();
                    mistakes.push(format!("{at}: the accusation is in line {line} too"));
                }
            }
        }
        mistakes
    }

    /// Returns the entries and reasons without a sentence.
    pub fn undecided(&self) -> Vec<String> {
        let mut undecided = Vec::new();
        for (program, known) in &self.0 {
            if known
                .seldom_judged
                .as_ref()
                .is_some_and(|why| why.trim().is_empty())
            {
                undecided.push(format!("{FOLDER}/{FILE}: {program}: `seldom_judged` is empty"));
            }
            for entry in &known.accusations {
                if entry.value.upheld.trim().is_empty() {
                    let line = entry.referenced.line();
                    let Entry { scenario, check, .. } = &entry.value;
                    undecided.push(format!(
                        "{FOLDER}/{FILE}:{line}: {program}: {scenario} {check}: `upheld` is empty: one sentence why the \
                         accusation is true against the requirement's text"
                    ));
                }
            }
        }
        undecided
    }

    /// Adds the accusations of a run that are not in the record, with an empty `upheld`. Returns their number.
    pub fn add(&mut self, program: &str, seen: &Seen) -> usize {
        let known = self.of(program);
        let mut added = 0;
        for difference in known.differences(seen) {
            let Difference::NotUpheld(accusation) = difference else {
                continue;
            };
            let entry = Entry {
                scenario: accusation.scenario,
                check: accusation.check,
                requirements: accusation.requirements,
                sometimes: false,
                upheld: String::new(),
            };
            let nowhere = serde_saphyr::Location::UNKNOWN;
            let known = self.0.entry(program.to_owned()).or_default();
            known.accusations.push(Spanned::new(entry, nowhere, nowhere));
            added += 1;
        }
        added
    }

    /// Writes the record.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn write(&self, root: &Path) -> Result<(), String> {
        let file = root.join(FOLDER).join(FILE);
        std::fs::write(&file, self.to_text()).map_err(|error| format!("{}: {error}", file.display()))
    }

    fn to_text(&self) -> String {
        let mut text = HEADER.to_owned();
        if self.0.is_empty() {
            text.push_str("{}\n");
        }
        for (program, known) in &self.0 {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "\n{program}:");
            if let Some(why) = &known.seldom_judged {
                let _ = writeln!(text, "  seldom_judged:{}", folded(why, 4));
            }
            if known.accusations.is_empty() {
                if known.seldom_judged.is_none() {
                    text.push_str("  accusations: []\n");
                }
                continue;
            }
            text.push_str("  accusations:\n");
            for entry in &known.accusations {
                let Entry {
                    scenario,
                    check,
                    requirements,
                    sometimes,
                    upheld,
                } = &entry.value;
                let _ = writeln!(text, "    - scenario: {scenario}");
                let _ = writeln!(text, "      check: {check}");
                let _ = writeln!(text, "      requirements: [{}]", requirements.join(", "));
                if *sometimes {
                    let _ = writeln!(text, "      sometimes: true");
                }
                let _ = writeln!(text, "      upheld:{}", folded(upheld, 8));
            }
        }
        text
    }
}

/// Returns a text as the value of a key: a folded block, indented by so many spaces.
pub(super) fn folded(text: &str, indent: usize) -> String {
    if text.trim().is_empty() {
        return " \"\"".to_owned();
    }
    let mut folded = " >-".to_owned();
    let mut line = WIDTH;
    for word in text.split_whitespace() {
        if line + 1 + word.chars().count() > WIDTH {
            let _ = write!(folded, "\n{:indent$}{word}", "");
            line = indent + word.chars().count();
        } else {
            let _ = write!(folded, " {word}");
            line += 1 + word.chars().count();
        }
    }
    folded
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crowd::results::Results;

    const RECORD: &str = "\
informer:
  accusations:
    - scenario: gone/expired
      check: expect.requests[2]
      requirements: [GONE-01, GONE-05]
      upheld: It watches from the expired version again.
    - scenario: serve
      check: INV-16
      requirements: [RETRY-02]
      sometimes: true
      upheld: It retries at once.
";

    fn known() -> Known {
        Record::parse(RECORD)
            .unwrap_or_else(|why| panic!("{why}"))
            .of("informer")
    }

    fn accusation(scenario: &str, check: &str, requirements: &[&str]) -> Accusation {
        Accusation {
            scenario: scenario.to_owned(),
            check: check.to_owned(),
            requirements: requirements.iter().map(|id| (*id).to_owned()).collect(),
            sentence: "the client sent WATCH".to_owned(),
        }
    }

    fn expired() -> Accusation {
        accusation("gone/expired", "expect.requests[2]", &["GONE-01", "GONE-05"])
    }

    fn seen(scenarios: &[(&str, Played)], accusations: &[Accusation]) -> Seen {
        Seen {
            scenarios: scenarios
                .iter()
                .map(|(id, played)| ((*id).to_owned(), played.clone()))
                .collect(),
            all_scenarios: false,
            reads: Some(9),
            whole_plan: true,
            accusations: accusations.to_vec(),
        }
    }

    fn lines(differences: &[Difference]) -> Vec<String> {
        differences.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn an_accusation_in_the_record_is_no_difference() {
        let seen = seen(&[("gone/expired", Played::Failed)], &[expired()]);
        assert_eq!(known().differences(&seen), []);
        assert_eq!(known().upheld(&seen), 1);
    }

    #[test]
    fn a_new_accusation_is_not_upheld() {
        let new = accusation("conn/reset", "INV-02", &["RESUME-01"]);
        let played = [("gone/expired", Played::Failed), ("conn/reset", Played::Failed)];
        let seen = seen(&played, &[expired(), new]);
        assert_eq!(
            lines(&known().differences(&seen)),
            ["not upheld: conn/reset INV-02 RESUME-01: the client sent WATCH"]
        );
    }

    #[test]
    fn evidence_for_another_requirement_is_another_accusation() {
        let other = accusation("gone/expired", "expect.requests[2]", &["GONE-01"]);
        let seen = seen(&[("gone/expired", Played::Failed)], &[other]);
        let found = lines(&known().differences(&seen));
        assert_eq!(found.len(), 2, "{found:?}");
    }

    #[test]
    fn an_entry_that_no_longer_occurs_is_stale_with_its_line() {
        let stale = ["stale: e2e/crowd/record.yaml:3: gone/expired expect.requests[2] no longer occurs"];
        let passed = seen(&[("gone/expired", Played::Passed)], &[]);
        assert_eq!(lines(&known().differences(&passed)), stale);
        let unplayed = Played::NotPlayed("needs 4 min".to_owned());
        let mut unplayed = seen(&[("a/b", Played::Passed), ("gone/expired", unplayed)], &[]);
        assert_eq!(known().differences(&unplayed), []);
        unplayed.all_scenarios = true;
        assert_eq!(lines(&known().differences(&unplayed)), stale);
    }

    #[test]
    fn a_run_without_a_verdict_makes_no_entry_stale() {
        let not_judged = Played::NotJudged("time is up".to_owned());
        let seen_once = seen(&[("a/b", Played::Passed), ("gone/expired", not_judged)], &[]);
        assert_eq!(known().differences(&seen_once), []);
        let unselected = seen(&[("a/b", Played::Passed)], &[]);
        assert_eq!(known().differences(&unselected), []);
    }

    #[test]
    fn an_entry_that_occurs_sometimes_is_never_stale() {
        let seen = seen(&[("gone/expired", Played::Failed)], &[expired()]);
        assert_eq!(known().differences(&seen), []);
        let mut always = known();
        always.accusations[1].value.sometimes = false;
        assert_eq!(
            lines(&always.differences(&seen)),
            ["stale: e2e/crowd/record.yaml:7: serve INV-16 no longer occurs"]
        );
        let mut shorter = seen;
        shorter.whole_plan = false;
        assert_eq!(always.differences(&shorter), []);
    }

    #[test]
    fn a_program_is_judged_in_half_of_what_it_plays() {
        let not_judged = || Played::NotJudged("time is up".to_owned());
        let half = [("a/a", Played::Passed), ("a/b", not_judged())];
        let less = [
            ("a/a", Played::Failed),
            ("a/b", not_judged()),
            ("a/c", not_judged()),
        ];
        let fresh = Known::default();
        assert_eq!(fresh.differences(&seen(&half, &[])), []);
        let seldom = Difference::SeldomJudged { judged: 1, of: 3 };
        assert_eq!(fresh.differences(&seen(&less, &[])), [seldom]);
        let none = Difference::SeldomJudged { judged: 0, of: 1 };
        assert_eq!(fresh.differences(&seen(&[("a/b", not_judged())], &[])), [none]);
        let explained = Known {
            seldom_judged: Some("It reads all namespaces.".to_owned()),
            accusations: Vec::new(),
        };
        assert_eq!(explained.differences(&seen(&less, &[])), []);
        let mut all = seen(&half, &[]);
        all.all_scenarios = true;
        assert_eq!(explained.differences(&all), [Difference::OftenJudged]);
    }

    #[test]
    fn a_program_reads_in_serve() {
        let mut seen = seen(&[("a/a", Played::Passed)], &[]);
        seen.reads = Some(0);
        assert_eq!(Known::default().differences(&seen), [Difference::NotServed]);
        seen.reads = None;
        assert_eq!(Known::default().differences(&seen), []);
    }

    #[test]
    fn an_entry_without_a_sentence_is_named_with_its_line() {
        let record = Record::parse(&RECORD.replace("It retries at once.", "\"\"")).unwrap();
        let undecided = record.undecided();
        assert_eq!(undecided.len(), 1);
        let start = "e2e/crowd/record.yaml:7: informer: serve INV-16: `upheld` is empty";
        assert!(undecided[0].starts_with(start), "{undecided:?}");
        assert_eq!(Record::parse(RECORD).unwrap().undecided(), Vec::<String>::new());
    }

    #[test]
    fn mistakes_name_the_line() {
        let unknown = Record::parse(&RECORD.replace("      sometimes", "      often")).unwrap_err();
        assert!(
            unknown.starts_with("e2e/crowd/record.yaml:10:7: unknown field `often`, expected one of"),
            "{unknown}"
        );
        let without = Record::parse(&RECORD.replace("      upheld: It retries at once.\n", "")).unwrap_err();
        assert!(
            without.starts_with("e2e/crowd/record.yaml:10:7: missing field `upheld`"),
            "{without}"
        );
        let doubled = format!("{RECORD}{}", &RECORD[RECORD.find("    - ").unwrap()..]);
        let scenarios = BTreeSet::from(["gone/renamed".to_owned()]);
        let mistakes = Record::parse(&doubled).unwrap().mistakes(&["other"], &scenarios);
        assert_eq!(
            mistakes,
            [
                "e2e/crowd/record.yaml: there is no program informer",
                "e2e/crowd/record.yaml:3: there is no scenario gone/expired",
                "e2e/crowd/record.yaml:12: there is no scenario gone/expired",
                "e2e/crowd/record.yaml:12: the accusation is in line 3 too",
                "e2e/crowd/record.yaml:16: the accusation is in line 7 too",
            ]
        );
    }

    #[test]
    fn what_is_written_is_read_again() {
        let mut record = Record::parse(RECORD).unwrap();
        let new = accusation("conn/reset", "INV-02", &[]);
        assert_eq!(record.add("informer", &seen(&[], &[expired(), new.clone()])), 1);
        let long = "Half of the scenarios: they wait for # a LIST, which it \"never\" sends. ".repeat(4);
        record.0.entry("other".to_owned()).or_default().seldom_judged = Some(long.clone());
        let text = record.to_text();
        assert!(text.lines().all(|line| line.len() <= WIDTH), "{text}");
        let again = Record::parse(&text).unwrap_or_else(|why| panic!("{why}\n{text}"));
        assert_eq!(again.of("other").seldom_judged.unwrap(), long.trim());
        let entries = |of: &Record| -> Vec<Entry> {
            let known = of.of("informer");
            known.accusations.into_iter().map(|entry| entry.value).collect()
        };
        assert_eq!(entries(&again), entries(&record));
        assert_eq!(again.undecided().len(), 1);
        assert_eq!(again.to_text(), text);
        assert_eq!(Record::parse(&Record::default().to_text()).unwrap().0.len(), 0);
    }

    #[test]
    fn counts_are_written_in_a_line_each() {
        let mut results = Results::default();
        let counts = seen(&[("a/a", Played::Passed), ("a/b", Played::Failed)], &[]).counts();
        results.set("informer", counts);
        results.set("removed", counts);
        results.retain(&["informer"]);
        let text = results.to_text();
        let line = "\ninformer: {passed: 1, accused: 1, not_judged: 0, not_played: 0, reads: 9}\n";
        assert!(text.ends_with(line), "{text}");
        let again: Results = parsed("results.yaml", &text).unwrap();
        assert_eq!(again, results);
    }

    #[test]
    fn the_record_of_this_repository_has_a_sentence_for_each_entry() {
        let root = crate::toolchain::repository();
        let record = Record::read(root).unwrap_or_else(|why| panic!("{why}"));
        let crowd = crate::crowd::Crowd::read(root).unwrap_or_else(|why| panic!("{why}"));
        let programs: Vec<&str> = crowd.programs().map(|program| program.name.as_str()).collect();
        let scenarios: BTreeSet<String> = record
            .0
            .values()
            .flat_map(|known| &known.accusations)
            .map(|entry| entry.value.scenario.clone())
            .filter(|id| root.join("scenarios").join(format!("{id}.yaml")).is_file())
            .collect();
        assert_eq!(record.mistakes(&programs, &scenarios), Vec::<String>::new());
        assert_eq!(record.undecided(), Vec::<String>::new());
        let results = Results::read(root).unwrap_or_else(|why| panic!("{why}"));
        assert!(results.programs().all(|name| programs.contains(&name)));
    }
}

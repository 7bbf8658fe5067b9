//! Known failures: those of a file, and those of a library by the record that is part of this program. Decides whether a failed
//! scenario is one of them, from its verdict alone.
//!
//! It must not know how a scenario is played or printed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use conformance::baseline::Baseline;
use fake_apiserver::scenario::nearest;
use judge::verdict::{Contradiction, Verdict};
use serde::Deserialize;

use crate::{Failure, known_failures};

/// What is known of libraries; `cargo xtask crowd --write-libraries` writes it.
const LIBRARIES: &str = include_str!("../../libraries.yaml");

/// A library by name and version, and its failures by scenario.
#[derive(Debug, Clone)]
pub(super) struct Library {
    name: String,
    version: String,
    failures: BTreeMap<String, Vec<LibraryFailure>>,
}

/// Something that a library does wrong in a scenario.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct LibraryFailure {
    /// Requirements that it breaks.
    breaks: BTreeSet<String>,
    /// Failed checks that are evidence against no requirement.
    #[serde(default)]
    checks: BTreeSet<String>,
    /// What the library does, in a sentence.
    reason: String,
    /// URL, or `owner/repo#number`; `None`: none is known.
    #[serde(default)]
    issue: Option<String>,
}

/// Why a failure is a known one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Excuse {
    /// `kube-runtime 5.0.0`, or place of the entry as `file:line`.
    pub(crate) by: String,
    /// What the client does.
    pub(crate) reason: String,
    /// Where it is public.
    pub(crate) issue: Option<String>,
}

/// Known failures of a run.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// Path of the file in messages.
    path: PathBuf,
    listed: Baseline,
    libraries: Vec<Library>,
}

impl Library {
    /// Parses `NAME@VERSION`: a version that the record has, or the beginning of one.
    ///
    /// # Errors
    ///
    /// Nothing is known of such a library, with what is known.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (name, version) = text.split_once('@').unwrap_or((text, ""));
        let of_name: Vec<&Self> = libraries()
            .iter()
            .filter(|library| library.name == name)
            .collect();
        let begins = |library: &&&Self| {
            let rest = library.version.strip_prefix(version);
            rest.is_some_and(|rest| version.is_empty() || rest.is_empty() || rest.starts_with('.'))
        };
        let mut found = of_name.iter().filter(begins);
        match (found.next(), found.next()) {
            (Some(library), None) => Ok(Self::clone(library)),
            (Some(_), Some(_)) => Err(format!("several versions are known, name one: {}", all(of_name))),
            (None, _) if !of_name.is_empty() => Err(format!("known libraries: {}", all(of_name))),
            (None, _) => {
                let names = libraries().iter().map(|library| library.name.as_str());
                let near = nearest(name, names).map(|near| format!("did you mean {near}? "));
                Err(format!(
                    "{}known libraries: {}",
                    near.unwrap_or_default(),
                    all(libraries())
                ))
            }
        }
    }

    /// Returns its name and version.
    fn shown(&self) -> String {
        format!("{} {}", self.name, self.version)
    }
}

impl LibraryFailure {
    /// Returns whether this is what a contradiction shows.
    fn explains(&self, found: &Contradiction) -> bool {
        match found.requirements.as_slice() {
            [] => self.checks.contains(&found.check.to_string()),
            broken => broken.iter().all(|id| self.breaks.contains(id)),
        }
    }
}

/// Returns every library of which something is known.
fn libraries() -> &'static [Library] {
    static ALL: OnceLock<Vec<Library>> = OnceLock::new();
    ALL.get_or_init(|| {
        let parsed: BTreeMap<String, BTreeMap<String, Vec<LibraryFailure>>> =
            serde_saphyr::from_str(LIBRARIES).expect("a test parses the libraries");
        let split = |(title, failures): (String, _)| {
            let (name, version) = title.rsplit_once('@')?;
            Some(Library {
                name: name.to_owned(),
                version: version.to_owned(),
                failures,
            })
        };
        parsed.into_iter().filter_map(split).collect()
    })
}

/// Formats libraries as they are given: `kopf@1.45.2, kube-runtime@5.0.0`.
fn all<'l>(libraries: impl IntoIterator<Item = &'l Library>) -> String {
    let names = libraries
        .into_iter()
        .map(|library| format!("{}@{}", library.name, library.version));
    names.collect::<Vec<_>>().join(", ")
}

impl Known {
    /// Reads the file of known failures, if one is given.
    ///
    /// # Errors
    ///
    /// The file does not exist or has mistakes.
    pub(super) fn read(file: Option<&Path>, libraries: &[Library]) -> Result<Self, Failure> {
        Ok(Self {
            path: file.map(Path::to_owned).unwrap_or_default(),
            listed: known_failures::read(file)?,
            libraries: libraries.to_vec(),
        })
    }

    /// Returns why the failure of a scenario is known; `None` if it passed, or if part of it is not known.
    pub(super) fn excuse(&self, scenario: &str, verdict: &Verdict) -> Option<Excuse> {
        if verdict.passed() {
            return None;
        }
        self.by_file(scenario, verdict)
            .or_else(|| self.by_libraries(scenario, verdict))
    }

    /// A line of a file stands for one outcome, which breaks the listed requirements and no others.
    fn by_file(&self, scenario: &str, verdict: &Verdict) -> Option<Excuse> {
        let known = self.listed.of(scenario)?;
        let broken: BTreeSet<String> = verdict
            .contradictions
            .iter()
            .flat_map(|found| found.requirements.iter().cloned())
            .collect();
        let is_it = known.outcome.judgement() == verdict.outcome
            && known.breaks.as_ref().is_none_or(|breaks| *breaks == broken);
        is_it.then(|| Excuse {
            by: format!("{}:{}", self.path.display(), known.line),
            reason: known.reason.clone(),
            issue: Some(known.issue.clone()).filter(|issue| issue != "none public"),
        })
    }

    /// Each contradiction must be one that a library causes: what the program itself does wrong stays a failure.
    fn by_libraries(&self, scenario: &str, verdict: &Verdict) -> Option<Excuse> {
        let failures: Vec<(&Library, &LibraryFailure)> = self
            .libraries
            .iter()
            .flat_map(|library| {
                let failures = library.failures.get(scenario).into_iter().flatten();
                failures.map(move |failure| (library, failure))
            })
            .collect();
        let mut causes: Vec<(&Library, &LibraryFailure)> = Vec::new();
        for found in &verdict.contradictions {
            let mut causing = failures.iter().filter(|(_, failure)| failure.explains(found));
            let cause = *causing.next()?;
            if !causes.iter().any(|known| std::ptr::eq(known.1, cause.1)) {
                causes.push(cause);
            }
        }
        let (library, first) = causes.first()?;
        let reasons: Vec<&str> = causes
            .iter()
            .map(|(_, failure)| failure.reason.as_str())
            .collect();
        Some(Excuse {
            by: library.shown(),
            reason: reasons.join(" "),
            issue: first.issue.clone(),
        })
    }

    /// Returns what is listed and did not happen, for entries whose scenario passed: those of the file, which are mistakes of the
    /// file, and those of libraries, which another use of a library may not show. `exists`: whether there is such a scenario;
    /// `passed`: whether it was played and passed.
    pub(super) fn stale(
        &self,
        exists: impl Fn(&str) -> bool,
        passed: impl Fn(&str) -> bool,
    ) -> (Vec<String>, Vec<String>) {
        let path = &self.path;
        let mut mistakes = self.listed.orphans(path, exists);
        let passing = self.listed.entries.iter().filter(|known| passed(&known.scenario));
        mistakes.extend(passing.map(|known| {
            format!(
                "{}:{}: {} passes: remove the entry",
                path.display(),
                known.line,
                known.scenario
            )
        }));
        let mut unseen = Vec::new();
        for library in &self.libraries {
            let scenarios = library.failures.keys().filter(|scenario| passed(scenario));
            unseen.extend(scenarios.map(|scenario| format!("{}: {scenario}", library.shown())));
        }
        (mistakes, unseen)
    }
}

#[cfg(test)]
mod tests {
    use judge::verdict::{Check, Outcome};
    use rstest::rstest;

    use super::*;
    use crate::built_in;

    const SCENARIO: &str = "gone/a";

    /// Parses contradictions: a check and its requirements each.
    fn verdict(contradictions: &str) -> Verdict {
        let found = |words: &str| {
            let mut words = words.split_whitespace().map(str::to_owned);
            words.next().map(|check| Contradiction {
                check: match check.as_str() {
                    "run" => Check::Run,
                    _ => Check::Expected(check),
                },
                requirements: words.collect(),
                sentence: String::new(),
                place: None,
                evidence: Vec::new(),
                expected: String::new(),
                actual: String::new(),
            })
        };
        let contradictions: Vec<Contradiction> = contradictions.split(',').filter_map(found).collect();
        Verdict {
            outcome: match contradictions.as_slice() {
                [] => Outcome::Pass,
                [_, ..] => Outcome::Mismatch,
            },
            contradictions,
        }
    }

    fn of_library() -> Known {
        let failure = LibraryFailure {
            breaks: BTreeSet::from(["GONE-01".to_owned(), "GONE-10".to_owned()]),
            checks: BTreeSet::from(["run".to_owned()]),
            reason: "it watches the expired version again".to_owned(),
            issue: None,
        };
        Known {
            path: PathBuf::new(),
            listed: Baseline::default(),
            libraries: vec![Library {
                name: "library".to_owned(),
                version: "5.0.0".to_owned(),
                failures: BTreeMap::from([(SCENARIO.to_owned(), vec![failure])]),
            }],
        }
    }

    #[rstest]
    #[case::it_passed("", false)]
    #[case::one_of_the_librarys("events[0] GONE-01", true)]
    #[case::all_of_the_librarys("events[0] GONE-01 GONE-10, run", true)]
    #[case::one_is_the_programs("events[0] GONE-01, requests[2] RETRY-05", false)]
    #[case::one_contradiction_breaks_more("events[0] GONE-01 LIST-01", false)]
    #[case::another_check_without_a_requirement("counts[0]", false)]
    fn every_contradiction_must_be_the_librarys(#[case] found: &str, #[case] is_known: bool) {
        let known = of_library();
        assert_eq!(known.excuse(SCENARIO, &verdict(found)).is_some(), is_known);
        assert_eq!(known.excuse("gone/b", &verdict(found)), None);
    }

    #[rstest]
    #[case::whole("kube-runtime@5.0.0", "")]
    #[case::beginning("kube-runtime@5", "")]
    #[case::only_one("kopf", "")]
    #[case::another_version("kube-runtime@4", "known libraries: kube-runtime@5.0.0")]
    #[case::part_of_a_number("client-go@0.3", "known libraries: client-go@0.37.2")]
    #[case::several("client-node", "several versions are known, name one: client-node@1")]
    #[case::mistyped("kube-runtim@5", "did you mean kube-runtime?")]
    fn libraries_are_named_with_their_version(#[case] text: &str, #[case] error: &str) {
        match Library::parse(text) {
            Ok(library) => assert!(error.is_empty(), "{library:?}"),
            Err(why) => assert!(!error.is_empty() && why.contains(error), "{why}"),
        }
    }

    #[test]
    fn failures_of_libraries_are_in_scenarios_of_this_program() {
        for library in libraries() {
            for scenario in library.failures.keys() {
                let is_there = built_in::SCENARIOS.iter().any(|(id, ..)| id == scenario);
                assert!(is_there, "{}: {scenario}", library.shown());
            }
        }
    }

    #[test]
    fn entries_that_did_not_happen_are_listed() {
        let known = of_library();
        let (mistakes, unseen) = known.stale(|_| true, |scenario| scenario == SCENARIO);
        assert_eq!(
            (mistakes.len(), unseen.as_slice()),
            (0, &["library 5.0.0: gone/a".to_owned()][..])
        );
    }
}

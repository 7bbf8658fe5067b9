//! Outcome of one test, and who is at fault. It must not know how tests are run.

use std::collections::BTreeMap;

use fake_apiserver::report::{Fold, ReportedObject, Version};
use fake_apiserver::scenario::Scenario;
use fake_apiserver::scenario::catalogue::Level;
use fake_apiserver::scenario::edition::{self, Edition};
use judge::verdict::{Check, Contradiction, Outcome as Judgement, Verdict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Outcome of a test. Only `warn`, `fail`, `hang` and `crash` are failures of the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// No check failed.
    Pass,
    /// Only SHOULD or MAY requirements are violated.
    Warn,
    /// A MUST requirement is violated.
    Fail,
    /// A step waited until the timeout while the process was running.
    Hang,
    /// The process exited, or was killed by a signal, before `stop`.
    Crash,
    /// The scenario needs a contract, capability or resource that the adapter does not declare.
    Unsupported,
    /// The test was not run, or proves nothing.
    NotPlayed,
    /// The adapter violated the protocol.
    AdapterError,
    /// The server or a scenario is at fault.
    HarnessError,
}

impl Outcome {
    /// All outcomes, in the order of summaries.
    pub const ALL: [Self; 9] = [
        Self::Pass,
        Self::Warn,
        Self::Fail,
        Self::Hang,
        Self::Crash,
        Self::Unsupported,
        Self::NotPlayed,
        Self::AdapterError,
        Self::HarnessError,
    ];

    /// Returns the word in reports and files of known failures.
    pub fn word(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Warn => "warn",
            Self::Fail => "fail",
            Self::Hang => "hang",
            Self::Crash => "crash",
            Self::Unsupported => "unsupported",
            Self::NotPlayed => "not-played",
            Self::AdapterError => "adapter-error",
            Self::HarnessError => "harness-error",
        }
    }

    /// Returns true for failures of the client.
    pub fn accuses_client(self) -> bool {
        match self {
            Self::Warn | Self::Fail | Self::Hang | Self::Crash => true,
            Self::Pass | Self::Unsupported | Self::NotPlayed | Self::AdapterError | Self::HarnessError => {
                false
            }
        }
    }

    /// Returns true if the client was judged.
    pub fn is_judged(self) -> bool {
        self == Self::Pass || self.accuses_client()
    }

    /// Returns the outcome of a verdict on a scenario. Levels are those of the edition, or of the catalogue.
    pub fn of(scenario: &Scenario, verdict: &Verdict, edition: Option<&Edition>) -> Self {
        let level = |id: &str| edition::level(edition, id).and_then(|level| scenario.counts(level));
        let is_advice = |found| is_advice(found, level);
        match verdict.outcome {
            Judgement::Pass => Self::Pass,
            Judgement::Mismatch if verdict.contradictions.iter().all(is_advice) => Self::Warn,
            Judgement::Mismatch => Self::Fail,
            Judgement::Stuck => Self::Hang,
            Judgement::Crash => Self::Crash,
            Judgement::HarnessError => Self::HarnessError,
        }
    }
}

/// Returns true if a contradiction violates no MUST requirement. Requirements without a level are ignored.
fn is_advice(found: &Contradiction, level: impl Fn(&str) -> Option<Level>) -> bool {
    let mut levels = found.requirements.iter().filter_map(|id| level(id)).peekable();
    levels.peek().is_some() && levels.all(|level| level > Level::Must)
}

/// Returns a contradiction if the cache of the library differs from the events that it delivered. `requirements`: those
/// that it is evidence against.
pub fn cache_differs(
    fold: &Fold,
    items: &[ReportedObject],
    requirements: &[String],
) -> Option<Contradiction> {
    let held: BTreeMap<String, Version> = items.iter().map(|item| (item.key(), item.version())).collect();
    let expected = fold.cache();
    let mut wrong = Vec::new();
    for (key, version) in expected {
        match held.get(key) {
            None => wrong.push(format!("{key} is missing")),
            Some(held) if held.resource_version != version.resource_version => wrong.push(format!(
                "{key} is at version {} instead of {}",
                held.resource_version, version.resource_version
            )),
            Some(_) => {}
        }
    }
    let extra = held.keys().filter(|key| !expected.contains_key(*key));
    wrong.extend(extra.map(|key| format!("{key} should not be there")));
    let first = wrong.first()?;
    let more = match wrong.len() {
        1 => String::new(),
        more => format!(" (and {} more)", more - 1),
    };
    Some(Contradiction {
        check: Check::Dump,
        requirements: requirements.to_vec(),
        sentence: format!("the cache of the client differs from the events that it delivered: {first}{more}"),
        place: None,
        evidence: Vec::new(),
        expected: "the objects of its events".to_owned(),
        actual: wrong.into_iter().take(6).collect::<Vec<_>>().join("; "),
    })
}

#[cfg(test)]
mod tests {
    use fake_apiserver::report::Report;
    use rstest::rstest;

    use fake_apiserver::scenario::{ServerSettings, catalogue};

    use super::*;

    fn found(requirements: &[&str]) -> Contradiction {
        Contradiction {
            check: Check::Invariant("INV-01"),
            requirements: requirements.iter().map(|id| (*id).to_owned()).collect(),
            sentence: "s".to_owned(),
            place: None,
            evidence: Vec::new(),
            expected: String::new(),
            actual: String::new(),
        }
    }

    fn of_level(level: Level) -> &'static str {
        let mut all = catalogue::requirements().iter();
        &all.find(|one| one.level == level).unwrap().id
    }

    #[test]
    fn violated_should_requirements_are_a_warning() {
        let (must, should) = (of_level(Level::Must), of_level(Level::Should));
        let outcome = |contradictions: Vec<Contradiction>| {
            let outcome = Judgement::Mismatch;
            Outcome::of(
                &Scenario::empty(ServerSettings::default()),
                &Verdict {
                    outcome,
                    contradictions,
                },
                None,
            )
        };
        assert_eq!(outcome(vec![found(&[should])]), Outcome::Warn);
        assert_eq!(outcome(vec![found(&[should]), found(&[must])]), Outcome::Fail);
        assert_eq!(outcome(vec![found(&[should, must])]), Outcome::Fail);
        assert_eq!(outcome(vec![found(&[])]), Outcome::Fail);
    }

    fn object(name: &str, version: &str) -> ReportedObject {
        ReportedObject {
            namespace: Some("n".to_owned()),
            name: name.to_owned(),
            uid: Some("u".to_owned()),
            resource_version: Some(version.to_owned()),
            content: None,
        }
    }

    #[rstest]
    #[case::equal(&[("a", "1"), ("b", "2")], None)]
    #[case::missing(&[("a", "1")], Some("n/b is missing"))]
    #[case::stale(&[("a", "1"), ("b", "1")], Some("n/b is at version 1 instead of 2"))]
    #[case::extra(&[("a", "1"), ("b", "2"), ("c", "3")], Some("n/c should not be there"))]
    fn a_cache_is_compared_with_the_events(#[case] items: &[(&str, &str)], #[case] wrong: Option<&str>) {
        let mut fold = Fold::default();
        for (name, version) in [("a", "1"), ("b", "2")] {
            fold.take(&Report::Apply(object(name, version)));
        }
        let items: Vec<ReportedObject> = items
            .iter()
            .map(|(name, version)| object(name, version))
            .collect();
        let found = cache_differs(&fold, &items, &[]).map(|found| found.sentence);
        match wrong {
            Some(wrong) => assert!(found.is_some_and(|found| found.contains(wrong))),
            None => assert_eq!(found, None),
        }
    }
}

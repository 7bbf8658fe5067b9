//! Difference between two runs, split into changes of the client and changes of the tests.
//!
//! A difference belongs to the client only if both runs judged the same scenario file under the same version of
//! fake-apiserver. It must not read files.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use conformance::adapter::outcome::Outcome;
use conformance::adapter::standing::Standing;
use fake_apiserver::scenario::edition;
use schemars::JsonSchema;
use serde::Serialize;

use crate::results::Results;

/// One side of a comparison: what is compared of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Side {
    /// Name and version of the client.
    pub client: String,
    /// Version of fake-apiserver that ran the tests; empty if unknown.
    pub version: String,
    /// Edition it was scored by; absent: everything counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edition: Option<String>,
    /// SHA-256 of the edition's file; absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edition_digest: Option<String>,
    /// Whether the run is complete; if not, absent tests may have passed.
    pub complete: bool,
    /// Compared part of each test, by id.
    #[serde(skip)]
    pub tests: BTreeMap<String, Compared>,
}

/// What is compared of one test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Compared {
    /// The outcome.
    pub outcome: Outcome,
    /// Whether its attempts have different outcomes.
    pub flaky: bool,
    /// Digest of the scenario's file; empty if unknown.
    pub digest: String,
    /// Checks that contradict it.
    pub broken: BTreeSet<String>,
    /// Reason of the outcome.
    pub message: String,
}

/// Cause of a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// The client is worse in the same test.
    ClientWorse,
    /// The client is better in the same test.
    ClientBetter,
    /// The client breaks other checks of the same test.
    ClientOther,
    /// The scenario's file differs.
    TestChanged,
    /// The test exists in B only.
    TestAdded,
    /// The test exists in A only.
    TestRemoved,
    /// Another version of fake-apiserver or another edition, or it is unknown whether the test is the same: run A again
    /// to find out.
    Unknown,
    /// A side is flaky: one run proves nothing.
    Flaky,
    /// A side was not judged.
    NotJudged,
}

impl Cause {
    /// All causes, in the order of the report.
    pub const ALL: [Self; 9] = [
        Self::ClientWorse,
        Self::ClientBetter,
        Self::ClientOther,
        Self::TestChanged,
        Self::TestAdded,
        Self::TestRemoved,
        Self::Unknown,
        Self::Flaky,
        Self::NotJudged,
    ];

    /// Returns the heading of its section.
    pub fn heading(self) -> &'static str {
        match self {
            Self::ClientWorse => "The client got worse",
            Self::ClientBetter => "The client got better",
            Self::ClientOther => "The client fails otherwise",
            Self::TestChanged => "The test changed",
            Self::TestAdded => "The test is new",
            Self::TestRemoved => "The test is gone",
            Self::Unknown => "The client or the test changed",
            Self::Flaky => "Flaky",
            Self::NotJudged => "Not judged on both sides",
        }
    }
}

/// A test that differs between the two runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Difference {
    /// Id of the scenario.
    pub id: String,
    /// Cause of the difference.
    pub cause: Cause,
    /// Result in A; absent if the test does not exist there.
    pub a: Option<Compared>,
    /// Result in B; absent if the test does not exist there.
    pub b: Option<Compared>,
}

/// All differences of two runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Diff {
    /// The earlier run.
    pub a: Side,
    /// The later run.
    pub b: Side,
    /// Number of tests that are the same on both sides, were judged, and have the same outcome.
    pub same: usize,
    /// Differences by cause, then by id.
    pub differences: Vec<Difference>,
}

impl Side {
    /// Returns the side of a run.
    pub fn of(name: &str, results: &Results) -> Self {
        let footer = results.footer.as_ref();
        let compared = |test: &crate::results::TestResult| Compared {
            outcome: test.outcome,
            flaky: test.standing == Standing::Flaky,
            digest: test.digest.clone(),
            broken: test.found().iter().map(|found| found.check.to_string()).collect(),
            message: test.message.clone(),
        };
        Self {
            client: footer.map_or_else(
                || name.to_owned(),
                |footer| format!("{} {}", footer.client.name, footer.client.version),
            ),
            version: footer.map(|footer| footer.version.clone()).unwrap_or_default(),
            edition: footer.and_then(|footer| footer.edition.clone()),
            edition_digest: footer.and_then(|footer| footer.edition_digest.clone()),
            complete: footer.is_some_and(|footer| footer.complete),
            tests: results
                .tests
                .iter()
                .map(|test| (test.id.clone(), compared(test)))
                .collect(),
        }
    }
}

/// Compares two runs.
pub fn diff(a: Side, b: Side) -> Diff {
    let ids: BTreeSet<&String> = a.tests.keys().chain(b.tests.keys()).collect();
    let scored = |side: &Side| (side.edition.clone(), side.edition_digest.clone());
    let same_version = !a.version.is_empty() && a.version == b.version && scored(&a) == scored(&b);
    let mut differences = Vec::new();
    let mut same = 0;
    for id in ids {
        let (of_a, of_b) = (a.tests.get(id), b.tests.get(id));
        match cause(of_a, of_b, same_version) {
            Some(cause) => differences.push(Difference {
                id: id.clone(),
                cause,
                a: of_a.cloned(),
                b: of_b.cloned(),
            }),
            None => same += usize::from(of_a.is_some_and(|test| test.outcome.is_judged())),
        }
    }
    differences.sort_by(|one, other| (one.cause, &one.id).cmp(&(other.cause, &other.id)));
    Diff {
        a,
        b,
        same,
        differences,
    }
}

fn cause(a: Option<&Compared>, b: Option<&Compared>, same_version: bool) -> Option<Cause> {
    let (a, b) = match (a, b) {
        (Some(a), Some(b)) => (a, b),
        (None, Some(_)) => return Some(Cause::TestAdded),
        (Some(_), None) => return Some(Cause::TestRemoved),
        (None, None) => return None,
    };
    let known = !a.digest.is_empty() && !b.digest.is_empty();
    if known && a.digest != b.digest {
        return Some(Cause::TestChanged);
    }
    if a.flaky || b.flaky {
        return Some(Cause::Flaky);
    }
    if a.outcome == b.outcome && a.broken == b.broken {
        return None;
    }
    if !a.outcome.is_judged() || !b.outcome.is_judged() {
        return Some(Cause::NotJudged);
    }
    if !known || !same_version {
        return Some(Cause::Unknown);
    }
    Some(match rank(b.outcome).cmp(&rank(a.outcome)) {
        std::cmp::Ordering::Greater => Cause::ClientWorse,
        std::cmp::Ordering::Less => Cause::ClientBetter,
        // The checks broken in B include those of A, or the reverse.
        std::cmp::Ordering::Equal if b.broken.is_superset(&a.broken) => Cause::ClientWorse,
        std::cmp::Ordering::Equal if b.broken.is_subset(&a.broken) => Cause::ClientBetter,
        std::cmp::Ordering::Equal => Cause::ClientOther,
    })
}

/// Rank of an outcome, worst first; a hang and a crash are equal.
fn rank(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Pass => 0,
        Outcome::Warn => 1,
        Outcome::Fail => 2,
        Outcome::Hang | Outcome::Crash => 3,
        Outcome::Unsupported | Outcome::NotPlayed | Outcome::AdapterError | Outcome::HarnessError => 4,
    }
}

impl Diff {
    /// Returns the number of differences with this cause.
    pub fn number(&self, cause: Cause) -> usize {
        self.differences.iter().filter(|one| one.cause == cause).count()
    }

    /// Returns the exit code. 0: the client is no worse; 1: it is worse; 4: no test can be compared.
    pub fn exit_code(&self) -> u8 {
        let client =
            [Cause::ClientWorse, Cause::ClientBetter, Cause::ClientOther].map(|cause| self.number(cause));
        if client[0] > 0 {
            1
        } else if self.same + client[1] + client[2] == 0 {
            4
        } else {
            0
        }
    }

    /// Formats the differences as text, with a section per cause.
    pub fn text(&self) -> String {
        // Writing to a String cannot fail.
        let mut text = String::new();
        for (name, side) in [("A", &self.a), ("B", &self.b)] {
            let version = match side.version.as_str() {
                "" => "version of fake-apiserver unknown".to_owned(),
                version => format!("fake-apiserver {version}"),
            };
            let digest = side.edition_digest.as_deref();
            let edition = side.edition.as_deref().map(|name| edition::label(name, digest));
            let _ = writeln!(
                text,
                "{name}  {}, {} tests, {version}{}{}",
                side.client,
                side.tests.len(),
                edition.map_or(String::new(), |edition| format!(", edition {edition}")),
                if side.complete { "" } else { ", not complete" }
            );
        }
        for cause in Cause::ALL {
            let own: Vec<&Difference> = self.differences.iter().filter(|one| one.cause == cause).collect();
            if own.is_empty() {
                continue;
            }
            let _ = writeln!(text, "\n{}: {}", cause.heading(), own.len());
            for one in own {
                let _ = writeln!(text, "  {}   {}", one.id, change(one));
                let why = one.b.as_ref().map(|b| b.message.as_str()).unwrap_or_default();
                if matches!(cause, Cause::ClientWorse | Cause::ClientOther) && !why.is_empty() {
                    let _ = writeln!(text, "    {why}");
                }
            }
        }
        let tests = if self.same == 1 { "test" } else { "tests" };
        let _ = writeln!(text, "\n{} {tests} came out the same", self.same);
        text
    }
}

/// `pass → fail: INV-03`.
fn change(one: &Difference) -> String {
    let word = |side: &Option<Compared>| side.as_ref().map_or("absent", |side| side.outcome.word());
    let mut text = match (&one.a, &one.b) {
        (Some(a), Some(b)) if a.outcome == b.outcome => word(&one.b).to_owned(),
        _ => format!("{} → {}", word(&one.a), word(&one.b)),
    };
    if let (Some(a), Some(b)) = (&one.a, &one.b) {
        let added = b.broken.difference(&a.broken).map(|check| format!("+{check}"));
        let gone = a.broken.difference(&b.broken).map(|check| format!("-{check}"));
        let checks: Vec<String> = added.chain(gone).collect();
        if !checks.is_empty() {
            text.push_str(&format!(": {}", checks.join(" ")));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::results::tests::{footer, found, result};

    fn compared(outcome: Outcome, broken: &[&str], digest: &str) -> Compared {
        Compared {
            outcome,
            flaky: false,
            digest: digest.to_owned(),
            broken: broken.iter().map(|check| (*check).to_owned()).collect(),
            message: String::new(),
        }
    }

    #[rstest]
    #[case::worse([Outcome::Pass, Outcome::Fail], &[], &["INV-03"], ["d", "d"], Some(Cause::ClientWorse))]
    #[case::better([Outcome::Hang, Outcome::Pass], &["run"], &[], ["d", "d"], Some(Cause::ClientBetter))]
    #[case::more_is_broken([Outcome::Fail, Outcome::Fail], &["a"], &["a", "b"], ["d", "d"], Some(Cause::ClientWorse))]
    #[case::less_is_broken([Outcome::Fail, Outcome::Fail], &["a", "b"], &["a"], ["d", "d"], Some(Cause::ClientBetter))]
    #[case::another_is_broken([Outcome::Fail, Outcome::Fail], &["a"], &["b"], ["d", "d"], Some(Cause::ClientOther))]
    #[case::the_same([Outcome::Fail, Outcome::Fail], &["a"], &["a"], ["d", "d"], None)]
    #[case::another_test([Outcome::Pass, Outcome::Fail], &[], &["a"], ["d", "e"], Some(Cause::TestChanged))]
    #[case::another_test_with_one_outcome([Outcome::Pass, Outcome::Pass], &[], &[], ["d", "e"], Some(Cause::TestChanged))]
    #[case::not_known_to_be_one_test([Outcome::Pass, Outcome::Fail], &[], &["a"], ["", "e"], Some(Cause::Unknown))]
    #[case::not_played([Outcome::Pass, Outcome::NotPlayed], &[], &[], ["d", "d"], Some(Cause::NotJudged))]
    #[case::adapter([Outcome::AdapterError, Outcome::Pass], &[], &[], ["d", "d"], Some(Cause::NotJudged))]
    fn a_difference_has_a_cause(
        #[case] outcomes: [Outcome; 2],
        #[case] of_a: &[&str],
        #[case] of_b: &[&str],
        #[case] digests: [&str; 2],
        #[case] expected: Option<Cause>,
    ) {
        let a = compared(outcomes[0], of_a, digests[0]);
        let b = compared(outcomes[1], of_b, digests[1]);
        assert_eq!(cause(Some(&a), Some(&b), true), expected);
        // Another version of the fake may be the cause, so the client is not charged.
        let other = cause(Some(&a), Some(&b), false);
        assert!(!matches!(
            other,
            Some(Cause::ClientWorse | Cause::ClientBetter | Cause::ClientOther)
        ));
        let flaky = Compared { flaky: true, ..b };
        assert!(matches!(
            cause(Some(&a), Some(&flaky), true),
            Some(Cause::Flaky | Cause::TestChanged)
        ));
    }

    fn side(version: &str, tests: Vec<crate::results::TestResult>) -> Side {
        Side::of(
            "dir",
            &Results {
                tests,
                footer: Some(footer("client", version)),
            },
        )
    }

    #[test]
    fn another_edition_is_not_the_clients_doing() {
        let found = vec![found("INV-03", "no")];
        let a = || {
            side(
                "1",
                vec![result("a/b", Outcome::Pass, Standing::Passed, Vec::new())],
            )
        };
        let mut b = side("1", vec![result("a/b", Outcome::Fail, Standing::Failed, found)]);
        assert_eq!(diff(a(), b.clone()).number(Cause::ClientWorse), 1);
        b.edition = Some("2026.1".to_owned());
        let other = diff(a(), b.clone());
        assert_eq!(
            (other.number(Cause::ClientWorse), other.number(Cause::Unknown)),
            (0, 1)
        );
        assert!(other.text().contains(", edition 2026.1\n"), "{}", other.text());
        // The same name with another list of requirements.
        let mut a = a();
        a.edition.clone_from(&b.edition);
        let [of_a, of_b] = ["one", "other"].map(|text| Some(edition::digest(text)));
        (a.edition_digest, b.edition_digest) = (of_a, of_b);
        let other = diff(a, b);
        assert_eq!(other.number(Cause::Unknown), 1);
        assert!(
            other.text().contains(", edition 2026.1 (sha256 "),
            "{}",
            other.text()
        );
    }

    #[test]
    fn the_text_separates_the_client_from_the_tests() {
        let kept = |id: &str| result(id, Outcome::Pass, Standing::Passed, Vec::new());
        let broken = |id: &str| {
            let found = vec![found("INV-03", "the client never relisted")];
            result(id, Outcome::Fail, Standing::Failed, found)
        };
        let mut changed = broken("c/changed");
        changed.digest = "other".to_owned();
        let a = side(
            "1",
            vec![
                kept("a/kept"),
                kept("b/broken"),
                kept("c/changed"),
                kept("d/gone"),
            ],
        );
        let b = side(
            "2",
            vec![kept("a/kept"), broken("b/broken"), changed, kept("e/new")],
        );
        let diff = diff(a, b);
        assert_eq!(diff.exit_code(), 1);
        insta::assert_snapshot!(diff.text(), @"
        A  client 1, 4 tests, fake-apiserver 0.1.0
        B  client 2, 4 tests, fake-apiserver 0.1.0

        The client got worse: 1
          b/broken   pass → fail: +INV-03
            the client never relisted

        The test changed: 1
          c/changed   pass → fail: +INV-03

        The test is new: 1
          e/new   absent → pass

        The test is gone: 1
          d/gone   pass → absent

        1 test came out the same
        ");
        let json = serde_json::to_value(&diff).unwrap();
        assert_eq!(json["differences"][0]["cause"], "client-worse");
        assert_eq!(json["a"]["client"], "client 1");
    }

    #[rstest]
    #[case::same(&["a"], &["a"], 0)]
    #[case::only_other_tests(&["a"], &["b"], 4)]
    #[case::nothing(&[], &[], 4)]
    fn the_exit_code_is_about_the_client(#[case] a: &[&str], #[case] b: &[&str], #[case] code: u8) {
        let tests = |ids: &[&str]| {
            let kept = |id: &&str| result(id, Outcome::Pass, Standing::Passed, Vec::new());
            ids.iter().map(kept).collect()
        };
        assert_eq!(diff(side("1", tests(a)), side("2", tests(b))).exit_code(), code);
    }
}

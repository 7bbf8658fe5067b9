//! Outcomes of a test compared with known failures; retries, shards, and the exit code of a run.
//!
//! Pure. It must not know how tests are run or printed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::outcome::Outcome;
use crate::baseline::Known;

/// Result of a test, compared with its known failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// It passed.
    #[serde(rename = "ok")]
    Passed,
    /// It violated only SHOULD or MAY requirements, and warnings are not failures.
    Warned,
    /// It failed as listed.
    #[serde(rename = "known-failure")]
    Known,
    /// Unsupported, or not run.
    NotJudged,
    /// The edition does not list it, or nobody is known to send what it sends: the outcome does not count.
    NotScored,
    /// It failed, or failed differently than listed.
    #[serde(rename = "unexpected-failure")]
    Failed,
    /// Its attempts have different outcomes.
    Flaky,
    /// It passed although a known failure is listed.
    Stale,
    /// The adapter is at fault.
    AdapterError,
    /// The harness is at fault.
    HarnessError,
}

impl Standing {
    /// Returns true if the test differs from what is expected of it, so that a run with it is not green.
    pub fn is_failure(self) -> bool {
        match self {
            Self::Failed | Self::Flaky | Self::Stale | Self::AdapterError | Self::HarnessError => true,
            Self::Passed | Self::Warned | Self::Known | Self::NotJudged | Self::NotScored => false,
        }
    }

    /// Returns the word in reports.
    pub fn word(self) -> &'static str {
        match self {
            Self::Passed => "ok",
            Self::Warned => "warned",
            Self::Known => "known-failure",
            Self::NotJudged => "not-judged",
            Self::NotScored => "not-scored",
            Self::Failed => "unexpected-failure",
            Self::Flaky => "flaky",
            Self::Stale => "stale",
            Self::AdapterError => "adapter-error",
            Self::HarnessError => "harness-error",
        }
    }

    /// Returns the standing of a test that the edition does not list. A stale entry is stale in any edition.
    pub fn not_scored(self) -> Self {
        match self {
            Self::NotJudged | Self::Stale => self,
            Self::Passed
            | Self::Warned
            | Self::Known
            | Self::NotScored
            | Self::Failed
            | Self::Flaky
            | Self::AdapterError
            | Self::HarnessError => Self::NotScored,
        }
    }

    /// Returns true if it was judged and counts.
    pub fn is_scored(self) -> bool {
        !matches!(self, Self::NotJudged | Self::NotScored)
    }

    /// Returns the standing for the attempts of one test, in order; at least one.
    pub fn of(attempts: &[Outcome], known: Option<&Known>, rules: Rules) -> Self {
        if attempts.contains(&Outcome::HarnessError) {
            return Self::HarnessError;
        }
        let Some((last, before)) = attempts.split_last() else {
            return Self::NotJudged;
        };
        if before.iter().any(|outcome| outcome != last) {
            return Self::Flaky;
        }
        match (last, known) {
            (Outcome::HarnessError, _) => Self::HarnessError,
            (Outcome::AdapterError, _) => Self::AdapterError,
            (Outcome::Unsupported | Outcome::NotPlayed, _) => Self::NotJudged,
            (Outcome::Pass, None) => Self::Passed,
            (Outcome::Pass, Some(_)) => Self::Stale,
            (outcome, Some(known)) if known.outcome.is(*outcome) => Self::Known,
            (Outcome::Warn, None) if !rules.strict => Self::Warned,
            (Outcome::Warn | Outcome::Fail | Outcome::Hang | Outcome::Crash, _) => Self::Failed,
        }
    }
}

/// Which results fail the run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rules {
    /// Warnings fail the run.
    pub strict: bool,
    /// Flaky tests do not fail the run.
    pub flaky_passes: bool,
}

/// Returns true if the test is repeated after this outcome. Known failures are not repeated, nor tests that were not judged.
pub fn is_retried(outcome: Outcome, known: Option<&Known>, rules: Rules) -> bool {
    match Standing::of(&[outcome], known, rules) {
        Standing::Failed | Standing::AdapterError | Standing::HarnessError => true,
        Standing::Passed
        | Standing::Warned
        | Standing::Known
        | Standing::NotJudged
        | Standing::NotScored
        | Standing::Flaky
        | Standing::Stale => false,
    }
}

/// Returns the exit code of a run. `stale`: number of known failures whose test does not exist.
///
/// 0: as expected; 1: a test failed or is flaky; 3: the adapter is at fault; 4: nothing was judged; 5: stale entries; 70: the
/// harness is at fault.
pub fn exit_code(standings: &[Standing], stale: usize, rules: Rules) -> u8 {
    let any = |of: Standing| standings.contains(&of);
    if any(Standing::HarnessError) {
        70
    } else if any(Standing::Failed) || any(Standing::Flaky) && !rules.flaky_passes {
        1
    } else if any(Standing::AdapterError) {
        3
    } else if any(Standing::Stale) || stale > 0 {
        5
    } else if !standings.iter().any(|standing| standing.is_scored()) {
        4
    } else {
        0
    }
}

/// A shard of the tests, selected by a hash of the id, so that a test stays in its shard when others are added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    /// Index, from 1.
    pub part: u64,
    /// Number of shards.
    pub of: u64,
}

impl Shard {
    /// Parses `2/5`.
    ///
    /// # Errors
    /// The text is not `PART/OF`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let numbers = text
            .split_once('/')
            .and_then(|(part, of)| Some((part.parse().ok()?, of.parse().ok()?)));
        match numbers {
            Some((part, of)) if part >= 1 && part <= of => Ok(Self { part, of }),
            Some(_) | None => Err("expected PART/OF, such as 1/4 for the first of four parts".to_owned()),
        }
    }

    /// Returns true if the test is in this shard.
    pub fn has(self, id: &str) -> bool {
        // FNV-1a of 64 bits: stable over versions and machines.
        let hash = id.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        hash % self.of == self.part - 1
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::baseline::Failure;

    const STRICT: Rules = Rules {
        strict: true,
        flaky_passes: false,
    };

    fn known(outcome: Failure) -> Known {
        Known {
            breaks: None,
            scenario: "a/b".to_owned(),
            outcome,
            reason: "r".to_owned(),
            issue: "none public".to_owned(),
            source: None,
            line: 1,
        }
    }

    #[rstest]
    #[case(&[Outcome::Pass], None, Standing::Passed)]
    #[case(&[Outcome::Pass], Some(Failure::Fail), Standing::Stale)]
    #[case(&[Outcome::Fail], Some(Failure::Fail), Standing::Known)]
    #[case(&[Outcome::Fail], Some(Failure::Mismatch), Standing::Known)]
    #[case(&[Outcome::Hang], Some(Failure::Fail), Standing::Failed)]
    #[case(&[Outcome::Warn], None, Standing::Warned)]
    #[case(&[Outcome::Warn], Some(Failure::Fail), Standing::Failed)]
    #[case(&[Outcome::Fail, Outcome::Pass], None, Standing::Flaky)]
    #[case(&[Outcome::Fail, Outcome::Hang], None, Standing::Flaky)]
    #[case(&[Outcome::Fail, Outcome::Fail], None, Standing::Failed)]
    #[case(&[Outcome::HarnessError, Outcome::Pass], None, Standing::HarnessError)]
    #[case(&[Outcome::AdapterError], Some(Failure::Crash), Standing::AdapterError)]
    #[case(&[Outcome::Unsupported], Some(Failure::Fail), Standing::NotJudged)]
    fn standing_of_attempts(
        #[case] attempts: &[Outcome],
        #[case] listed: Option<Failure>,
        #[case] standing: Standing,
    ) {
        let known = listed.map(known);
        assert_eq!(Standing::of(attempts, known.as_ref(), Rules::default()), standing);
    }

    #[test]
    fn warnings_fail_if_configured() {
        assert_eq!(Standing::of(&[Outcome::Warn], None, STRICT), Standing::Failed);
        assert!(is_retried(Outcome::Warn, None, STRICT));
        assert!(!is_retried(Outcome::Warn, None, Rules::default()));
        assert!(!is_retried(
            Outcome::Fail,
            Some(&known(Failure::Fail)),
            Rules::default()
        ));
    }

    #[rstest]
    #[case(&[], 0, 4)]
    #[case(&[Standing::NotJudged], 0, 4)]
    #[case(&[Standing::NotJudged, Standing::Passed], 0, 0)]
    #[case(&[Standing::NotScored, Standing::NotJudged], 0, 4)]
    #[case(&[Standing::NotScored, Standing::Passed], 0, 0)]
    #[case(&[Standing::Known, Standing::Warned], 0, 0)]
    #[case(&[Standing::Passed], 1, 5)]
    #[case(&[Standing::Passed, Standing::Stale], 0, 5)]
    #[case(&[Standing::Stale, Standing::AdapterError], 0, 3)]
    #[case(&[Standing::Failed, Standing::AdapterError], 0, 1)]
    #[case(&[Standing::Flaky, Standing::Passed], 0, 1)]
    #[case(&[Standing::Failed, Standing::HarnessError], 0, 70)]
    fn a_run_exits_with(#[case] standings: &[Standing], #[case] stale: usize, #[case] code: u8) {
        assert_eq!(exit_code(standings, stale, Rules::default()), code);
    }

    #[test]
    fn tests_outside_the_edition_do_not_fail_the_run() {
        for outcome in [
            Outcome::Fail,
            Outcome::Hang,
            Outcome::AdapterError,
            Outcome::HarnessError,
        ] {
            let standing = Standing::of(&[outcome], None, STRICT).not_scored();
            assert_eq!(standing, Standing::NotScored);
        }
        assert_eq!(Standing::Stale.not_scored(), Standing::Stale);
        assert_eq!(Standing::NotJudged.not_scored(), Standing::NotJudged);
    }

    #[test]
    fn a_flaky_test_passes_if_configured() {
        let rules = Rules {
            flaky_passes: true,
            ..Rules::default()
        };
        assert_eq!(exit_code(&[Standing::Flaky], 0, rules), 0);
    }

    #[test]
    fn each_test_is_in_exactly_one_shard() {
        let ids = ["gone/status-410", "page/token", "watch/eof", "a", ""];
        for id in ids {
            let parts = (1..=3).filter(|part| Shard { part: *part, of: 3 }.has(id));
            assert_eq!(parts.count(), 1, "{id}");
        }
        assert!(
            Shard { part: 2, of: 3 }.has("gone/status-410")
                == Shard::parse("2/3").unwrap().has("gone/status-410")
        );
        for text in ["0/3", "4/3", "1", "a/b", "1/0"] {
            assert!(Shard::parse(text).is_err(), "{text}");
        }
    }

    /// A test vector of FNV-1a.
    #[test]
    fn the_hash_is_the_same_everywhere() {
        assert!(
            Shard {
                part: 0xaf63_dc4c_8601_ec8c % 1000 + 1,
                of: 1000
            }
            .has("a")
        );
    }
}

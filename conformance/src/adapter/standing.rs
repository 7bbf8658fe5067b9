//! The outcomes of a test against what is expected of it: known failures, retries, and the exit code of a run.
//!
//! Pure. It must not know how tests are played or printed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::outcome::Outcome;
use crate::baseline::Known;

/// A test against what is expected of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// It passed.
    #[serde(rename = "ok")]
    Passed,
    /// It broke only what is advised, and that is no failure.
    Warned,
    /// It failed as known.
    #[serde(rename = "known-failure")]
    Known,
    /// Unsupported, or not played.
    NotJudged,
    /// The edition does not have it: whatever came out counts for nothing.
    NotScored,
    /// It failed, or failed otherwise than known.
    #[serde(rename = "unexpected-failure")]
    Failed,
    /// Its attempts came out differently.
    Flaky,
    /// It passed though a failure is known.
    Stale,
    /// The adapter is at fault.
    AdapterError,
    /// The harness is at fault.
    HarnessError,
}

impl Standing {
    /// The word for it in reports.
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

    /// The standing of a test that the edition does not have. An entry that is stale is so in any edition.
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

    /// Was it judged, and does it count?
    pub fn is_scored(self) -> bool {
        !matches!(self, Self::NotJudged | Self::NotScored)
    }

    /// The standing of the attempts of one test, in their order; at least one.
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

/// What counts as a failure of the run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rules {
    /// A warning does.
    pub strict: bool,
    /// A flaky test does not.
    pub flaky_passes: bool,
}

/// Is another attempt worth while? One that failed as known is not repeated, nor one that was not judged.
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

/// The exit code of a run. `stale`: entries of known failures that are of no test.
///
/// 0 as expected, 1 a test failed or is flaky, 3 the adapter is at fault, 4 nothing was judged, 5 only stale entries, 70 the
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

/// One of `of` parts of all tests: that whose turn it is by a hash of the id, so that a test stays in its part when others
/// are added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    /// Which, from 1.
    pub part: u64,
    /// How many there are.
    pub of: u64,
}

impl Shard {
    /// Parses `2/5`.
    ///
    /// # Errors
    /// It is no such thing.
    pub fn parse(text: &str) -> Result<Self, String> {
        let numbers = text
            .split_once('/')
            .and_then(|(part, of)| Some((part.parse().ok()?, of.parse().ok()?)));
        match numbers {
            Some((part, of)) if part >= 1 && part <= of => Ok(Self { part, of }),
            Some(_) | None => Err("expected PART/OF, such as 1/4 for the first of four parts".to_owned()),
        }
    }

    /// Does a test belong to it?
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
            scenario: "a/b".to_owned(),
            outcome,
            reason: "r".to_owned(),
            issue: "none public".to_owned(),
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
    fn attempts_against_what_is_known(
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
    fn what_an_edition_does_not_have_fails_nothing() {
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
    fn each_test_is_in_one_part_and_stays_there() {
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

    /// The numbers are those that any implementation of FNV-1a gives.
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

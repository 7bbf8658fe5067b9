//! One test with all its attempts, and which of them count.
//!
//! A failed test is repeated when no other test runs. An attempt that waited too long for a processor does not count if there is
//! another one.

use std::collections::BTreeSet;
use std::path::Path;

use fake_apiserver::scenario::{self, SharedScenario, Warning};
use judge::verdict::Verdict;
use judge::wire::{Needs, grants, takes};

use super::attempt::{self, Attempt, Plan, Test};
use super::child::StartError;
use super::fit;
use super::message::Hello;
use super::outcome::Outcome;
use super::standing::{Rules, Standing, is_retried};
use crate::baseline::Known;

/// Invariants that a slow client violates: parallel watches or lists, and open connections after its stop.
const LATE: [&str; 2] = ["INV-17", "INV-18"];

/// Additional repetitions after an attempt that waited too long for a processor.
const HELD_UP_REPEATS: u32 = 1;

/// A client under test.
#[derive(Debug, Clone)]
pub struct Client {
    /// How its tests are run.
    pub plan: Plan,
    /// `hello` of its adapter.
    pub hello: Hello,
    /// Which results fail the run.
    pub rules: Rules,
}

/// One test, with at least one attempt.
#[derive(Debug)]
pub struct Tested {
    /// The scenario.
    pub scenario: SharedScenario,
    /// All attempts, in order.
    pub attempts: Vec<Attempt>,
    /// Its known failure, if listed.
    pub known: Option<Known>,
    /// The attempts compared with the known failure.
    pub standing: Standing,
}

impl Client {
    /// Runs a test once. `home`: a directory that is created and removed.
    ///
    /// # Errors
    /// As [`attempt::run`].
    pub async fn test(&self, test: &Test, known: Option<Known>, home: &Path) -> Result<Tested, StartError> {
        let attempt = self.attempt(test, home).await?;
        Ok(self.tested(test, attempt, known))
    }

    /// Returns the result of a test that is not run, with the outcome and the reason.
    pub fn not_run(&self, test: &Test, known: Option<Known>, (outcome, why): (Outcome, String)) -> Tested {
        let attempt = Attempt::not_run(&test.scenario, outcome, why);
        self.tested(test, attempt, known)
    }

    /// Runs a test again.
    ///
    /// # Errors
    /// As [`attempt::run`].
    pub async fn repeat(&self, test: &Test, tested: &mut Tested, home: &Path) -> Result<(), StartError> {
        let mut attempt = self.attempt(test, home).await?;
        if attempt.was_held_up() && is_only_late(attempt.verdict.as_ref()) {
            attempt.outcome = Outcome::NotPlayed;
            attempt.verdict = None;
            "the machine was busy, so late requests of the client prove nothing; run fewer tests in parallel"
                .clone_into(&mut attempt.why);
        }
        tested.attempts.push(attempt);
        tested.standing = self.standing(&tested.scenario, &tested.attempts, tested.known.as_ref());
        Ok(())
    }

    /// Returns true if the test is to be repeated. `retries`: how often a failed test is repeated.
    pub fn repeats(&self, tested: &Tested, retries: u32) -> bool {
        if !self.is_scored(&tested.scenario) {
            return false;
        }
        let was_held_up = tested.attempts.iter().any(Attempt::was_held_up);
        let most = retries + if was_held_up { HELD_UP_REPEATS } else { 0 };
        let failed = |last: &Attempt| is_retried(last.outcome, tested.known.as_ref(), self.rules);
        tested.attempts.len() as u64 <= u64::from(most) && tested.attempts.last().is_some_and(failed)
    }

    /// Returns why a test is not run; no process is started for it. `None`: it is run. Unless `however_long`, a test that takes
    /// more than a third of the time limit is left out.
    pub fn left_out(&self, test: &Test, however_long: bool) -> Option<(Outcome, String)> {
        let Test { scenario, reference } = test;
        if let Err(why) = fit::start(scenario, &self.hello) {
            return Some((Outcome::Unsupported, why));
        }
        // No client can meet the expectation: a mistake in the file, not in the client.
        if let Some(Warning { at, message, hint }) = scenario::warnings(scenario).first() {
            let path = scenario.path.display();
            return Some((
                Outcome::NotPlayed,
                format!("{path}:{}: {message}: {hint}", at.line),
            ));
        }
        let granted = grants(scenario);
        let is_long = test.lasts() > self.plan.timeout / 3 || granted > self.plan.timeout * 4;
        if is_long && !however_long {
            let needs = Needs::Time((takes(scenario) + granted).max(*reference)).words();
            let needs = needs.split(':').next().unwrap_or_default();
            return Some((
                Outcome::NotPlayed,
                format!("needs {needs}: name it, or use --profile full"),
            ));
        }
        None
    }

    async fn attempt(&self, test: &Test, home: &Path) -> Result<Attempt, StartError> {
        let mut attempt = attempt::run(&self.plan, test, home).await?;
        let is_another = attempt.hello.as_ref().is_some_and(|now| *now != self.hello);
        if is_another && attempt.outcome != Outcome::HarnessError {
            attempt.outcome = Outcome::AdapterError;
            attempt.verdict = None;
            "the adapter printed another `hello` than in the probe: it must be the same in every run"
                .clone_into(&mut attempt.why);
        }
        Ok(attempt)
    }

    fn tested(&self, test: &Test, attempt: Attempt, known: Option<Known>) -> Tested {
        let attempts = vec![attempt];
        Tested {
            standing: self.standing(&test.scenario, &attempts, known.as_ref()),
            scenario: test.scenario.clone(),
            attempts,
            known,
        }
    }

    fn standing(&self, scenario: &SharedScenario, attempts: &[Attempt], known: Option<&Known>) -> Standing {
        let outcomes: Vec<Outcome> = counted(attempts).map(|attempt| attempt.outcome).collect();
        let mut standing = Standing::of(&outcomes, known, self.rules);
        let reported = reported(attempts);
        if standing == Standing::Known
            && !known.is_some_and(|known| known.is(reported.outcome, &broken(scenario, reported)))
        {
            standing = Standing::Failed;
        }
        if self.is_scored(scenario) {
            standing
        } else {
            standing.not_scored()
        }
    }

    fn is_scored(&self, scenario: &SharedScenario) -> bool {
        !scenario.is_hardening() && self.plan.edition.is_none_or(|edition| edition.has(&scenario.id))
    }
}

impl Tested {
    /// Returns the attempt that is reported: of those that count, the first that did not pass, else the last.
    pub fn reported(&self) -> &Attempt {
        reported(&self.attempts)
    }

    /// Returns the requirements that it breaks, of those that its scenario covers.
    pub fn broken(&self) -> BTreeSet<String> {
        broken(&self.scenario, self.reported())
    }
}

fn reported(attempts: &[Attempt]) -> &Attempt {
    let first = counted(attempts).find(|attempt| attempt.outcome != Outcome::Pass);
    first.unwrap_or(&attempts[attempts.len() - 1])
}

fn broken(scenario: &SharedScenario, attempt: &Attempt) -> BTreeSet<String> {
    let verdict = attempt.verdict.as_ref();
    let covered = scenario.covers.iter().map(|covered| covered.id.clone());
    covered
        .filter(|id| verdict.is_some_and(|verdict| verdict.breaks(id)))
        .collect()
}

/// Returns the attempts that count: the last one, and earlier ones that did not wait too long for a processor.
fn counted(attempts: &[Attempt]) -> impl Iterator<Item = &Attempt> {
    let last = attempts.len().saturating_sub(1);
    let counts = move |(number, attempt): &(usize, &Attempt)| *number == last || !attempt.was_held_up();
    attempts
        .iter()
        .enumerate()
        .filter(counts)
        .map(|(_, attempt)| attempt)
}

/// Returns true if all contradictions may be caused by a busy machine.
fn is_only_late(verdict: Option<&Verdict>) -> bool {
    let found = verdict.map_or(&[][..], |verdict| &verdict.contradictions);
    !found.is_empty()
        && found
            .iter()
            .all(|found| LATE.iter().any(|late| found.check.is(late)))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use judge::trace::sample::scenario;
    use judge::verdict::{Check, Contradiction, Outcome as Judgement};
    use rstest::rstest;

    use super::*;
    use crate::adapter::child::TimeLimits;
    use crate::adapter::limiter::Limiter;

    fn attempt(outcome: Outcome, held_up_s: u64) -> Attempt {
        let mut attempt = Attempt::not_run(&Arc::new(scenario()), outcome, String::new());
        attempt.held_up = Duration::from_secs(held_up_s);
        attempt
    }

    fn client() -> Client {
        let hello = r#"{"ev":"hello","protocol":1,"client":{"name":"x","lang":"go","version":"1"},"contracts":["informer"],"recovers":"library","caps":[]}"#;
        let crate::adapter::line::Line::Event(event) = crate::adapter::line::read(hello.as_bytes()) else {
            panic!("a `hello`");
        };
        let crate::adapter::message::Event::Hello(hello) = *event else {
            panic!("a `hello`");
        };
        Client {
            plan: Plan {
                command: Vec::new(),
                limits: TimeLimits::default(),
                timeout: Duration::from_secs(90),
                seed: 0,
                edition: None,
                limiter: Limiter::new(),
            },
            hello,
            rules: Rules::default(),
        }
    }

    fn tested(client: &Client, attempts: Vec<Attempt>) -> Tested {
        let scenario = Arc::new(scenario());
        Tested {
            standing: client.standing(&scenario, &attempts, None),
            scenario,
            attempts,
            known: None,
        }
    }

    #[rstest]
    #[case::once(&[(Outcome::Fail, 0)], Standing::Failed, Outcome::Fail)]
    #[case::delayed_once(&[(Outcome::Fail, 2)], Standing::Failed, Outcome::Fail)]
    #[case::delayed_then_not(&[(Outcome::Fail, 2), (Outcome::Pass, 0)], Standing::Passed, Outcome::Pass)]
    #[case::delayed_twice(&[(Outcome::Hang, 2), (Outcome::Pass, 2)], Standing::Passed, Outcome::Pass)]
    #[case::neither_delayed(&[(Outcome::Fail, 0), (Outcome::Pass, 0)], Standing::Flaky, Outcome::Fail)]
    fn a_delayed_attempt_does_not_count_if_there_is_another(
        #[case] attempts: &[(Outcome, u64)],
        #[case] standing: Standing,
        #[case] outcome: Outcome,
    ) {
        let attempts = attempts
            .iter()
            .map(|(outcome, seconds)| attempt(*outcome, *seconds));
        let tested = tested(&client(), attempts.collect());
        assert_eq!((tested.standing, tested.reported().outcome), (standing, outcome));
    }

    #[test]
    fn a_delayed_test_is_repeated_without_retries() {
        let client = client();
        let of = |attempts: Vec<Attempt>| tested(&client, attempts);
        assert!(!client.repeats(&of(vec![attempt(Outcome::Fail, 0)]), 0));
        assert!(client.repeats(&of(vec![attempt(Outcome::Fail, 0)]), 1));
        assert!(!client.repeats(&of(vec![attempt(Outcome::Pass, 5)]), 1));
        let delayed = || attempt(Outcome::Fail, 5);
        assert!(client.repeats(&of(vec![delayed()]), 0));
        assert!(!client.repeats(&of(vec![delayed(), delayed()]), 0), "once only");
    }

    #[test]
    fn only_late_invariants_are_excused() {
        let verdict = |checks: &[&'static str]| Verdict {
            outcome: Judgement::Mismatch,
            contradictions: checks
                .iter()
                .map(|check| Contradiction {
                    check: Check::Invariant(check),
                    requirements: Vec::new(),
                    sentence: String::new(),
                    place: None,
                    evidence: Vec::new(),
                    expected: String::new(),
                    actual: String::new(),
                })
                .collect(),
        };
        assert!(is_only_late(Some(&verdict(&["INV-18"]))));
        assert!(!is_only_late(Some(&verdict(&["INV-18", "INV-03"]))));
        assert!(!is_only_late(Some(&verdict(&[]))) && !is_only_late(None));
    }
}

//! One pool of work: each test of each client is played beside those of all others, because a test mostly waits. A test that
//! comes out differently from what is recorded is repeated at the end, alone.
//!
//! What is done is decided by `conformance`; the order, and what is repeated, are decided here, without a clock.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

use conformance::adapter::attempt::{self, Plan, Test};
use conformance::adapter::child::TimeLimits;
use conformance::adapter::evidence;
use conformance::adapter::limiter::Limiter;
use conformance::adapter::outcome::Outcome;
use conformance::adapter::standing::{Rules, Standing};
use conformance::adapter::tested::{Client, Tested};
use conformance::baseline::{Baseline, Known};
use fake_apiserver::scenario;
use futures::{StreamExt as _, stream};
use tokio::task::LocalSet;

use super::progress::Progress;
use super::record::{self, Record};

/// Time limit per test, in addition to the time that its steps take: that of `fake-apiserver conformance`.
const TIMEOUT: Duration = Duration::from_secs(90);
/// Tests that are repeated, and adapters that introduce themselves, at a time: so few that none delays another.
const FEW_AT_ONCE: usize = 4;
/// After a change of many scenarios that many are repeated: this part of them at a time.
const PART_AT_ONCE: usize = 16;
/// A test that takes longer waits for nearly all of that time.
const LONG: Duration = Duration::from_secs(300);
/// Silence of a client that hangs.
const SILENCE: Duration = Duration::from_secs(60);

/// A client whose adapter is built.
#[derive(Debug)]
pub(crate) struct Entrant {
    /// Name in adapters/adapters.yaml.
    pub(crate) name: String,
    /// Command of the adapter.
    pub(crate) command: Vec<String>,
    /// What the client is known to fail.
    pub(crate) known: Baseline,
    /// What is recorded of it; `None`: nothing.
    pub(crate) record: Option<Record>,
    /// Scenarios that prove nothing about it.
    pub(crate) left_out: Vec<String>,
}

/// How the pool works.
#[derive(Debug)]
pub(crate) struct Options {
    /// Number of tests at a time.
    pub(crate) jobs: usize,
    /// Ids of scenarios, or their beginnings; empty: all.
    pub(crate) prefixes: Vec<String>,
    /// Play only what the record has as failures.
    pub(crate) failed: bool,
    /// Leave out scenarios that take minutes.
    pub(crate) quick: bool,
    /// Folder for the evidence of attempts that did not pass.
    pub(crate) evidence: Option<PathBuf>,
    /// Private folders of the adapters; removed and created.
    pub(crate) homes: PathBuf,
}

/// All tests of one client.
#[derive(Debug)]
pub(crate) struct Run {
    /// Introduction of its adapter, and how it was played.
    pub(crate) client: Client,
    /// In the order of their ids.
    pub(crate) tests: Vec<Tested>,
}

/// A test of a client that waits for its turn.
#[derive(Debug)]
struct Work {
    /// Which client.
    entrant: usize,
    test: Test,
    known: Option<Known>,
    /// Its only attempts so far, if it is repeated.
    tested: Option<Tested>,
}

impl Work {
    /// Returns how long the last attempt took.
    fn took(&self) -> Duration {
        let attempts = self.tested.iter().flat_map(|tested| &tested.attempts);
        attempts.last().map_or(Duration::ZERO, |attempt| attempt.took)
    }
}

/// Plays all tests with all clients. An adapter that cannot be started or introduced has its reason in place of a run.
///
/// # Errors
/// A scenario has mistakes, or the system refuses what a run needs.
pub(crate) fn play_all(
    root: &Path,
    entrants: &[Entrant],
    options: &Options,
) -> Result<Vec<Result<Run, String>>, String> {
    let _absent = std::fs::remove_dir_all(&options.homes);
    std::fs::create_dir_all(&options.homes)
        .map_err(|error| format!("{}: {error}", options.homes.display()))?;
    let tests = tests(root, &options.prefixes)?;
    let limiter = Limiter::new();
    let clients = introduced(entrants, &limiter, options)?;
    let mut work: Vec<Work> = Vec::new();
    let mut done: Vec<Vec<Tested>> = entrants.iter().map(|_| Vec::new()).collect();
    for (entrant, client) in clients.iter().enumerate() {
        let Ok(client) = client else { continue };
        let record = entrants[entrant].record.as_ref();
        let left_out = &entrants[entrant].left_out;
        let failed =
            |id: &String| record.is_some_and(|record| record.is_failure(id)) && !left_out.contains(id);
        for test in tests
            .iter()
            .filter(|test| !options.failed || failed(&test.scenario.id))
        {
            let known = entrants[entrant].known.of(&test.scenario.id).cloned();
            match client.left_out(test, !options.quick) {
                // The record of a longer run has it.
                Some((Outcome::NotPlayed, _)) if options.quick => {}
                Some(why) => done[entrant].push(client.not_run(test, known, why)),
                None => work.push(Work {
                    entrant,
                    test: test.clone(),
                    known,
                    tested: None,
                }),
            }
        }
    }
    work.sort_by_key(|work| Reverse(lasts(&work.test, expected(&entrants[work.entrant], &work.test))));
    let mut progress = Progress::new(entrants.iter().map(|entrant| entrant.name.as_str()), |entrant| {
        work.iter().filter(|work| work.entrant == entrant).count()
    });
    let mut doubtful = Vec::new();
    let pool = Pool {
        entrants,
        clients: &clients,
        options,
    };
    pool.run(work, options.jobs, |work, tested| {
        let entrant = &entrants[work.entrant];
        let is_doubtful = entrant.doubts(&tested);
        progress.played(work.entrant, is_doubtful);
        if is_doubtful {
            doubtful.push(Work {
                tested: Some(tested),
                ..work
            });
        } else {
            done[work.entrant].push(tested);
        }
    })?;
    progress.repeats(doubtful.len());
    // One after another, tests that take up to an hour would take days; they wait, and hardly use a processor.
    let (long, short): (Vec<Work>, Vec<Work>) = doubtful.into_iter().partition(|work| work.took() > LONG);
    let few = FEW_AT_ONCE.max(short.len() / PART_AT_ONCE);
    let many = options.jobs.min(long.len()).max(1);
    for (repeated, at_once) in [(short, few), (long, many)] {
        pool.run(repeated, at_once, |work, tested| {
            progress.played(work.entrant, false);
            done[work.entrant].push(tested);
        })?;
    }
    progress.ends();
    let _left = std::fs::remove_dir_all(&options.homes);
    let runs = clients.into_iter().zip(done).map(|(client, mut tests)| {
        tests.sort_by(|one, other| one.scenario.id.cmp(&other.scenario.id));
        client.map(|client| Run { client, tests })
    });
    Ok(runs.collect())
}

/// The selected scenarios, with the time that our watcher needs.
fn tests(root: &Path, prefixes: &[String]) -> Result<Vec<Test>, String> {
    let (files, errors) = scenario::find(&[root.join("scenarios")]);
    if let Some(error) = errors.first() {
        return Err(error.render(scenario::Style::for_stderr()));
    }
    let mut tests = Vec::new();
    for file in files {
        let scenario = file
            .load()
            .map_err(|errors| errors.render(scenario::Style::for_stderr()))?;
        if !prefixes.is_empty() && !prefixes.iter().any(|prefix| scenario.id.starts_with(prefix)) {
            continue;
        }
        let transcript = root.join(format!("scenarios/{}.watcher.snap", scenario.id));
        let text = std::fs::read_to_string(transcript).unwrap_or_default();
        tests.push(Test {
            scenario: Arc::new(scenario),
            reference: Duration::from_millis(crate::reference::reference_ms(&text)),
        });
    }
    Ok(tests)
}

/// Starts each adapter once, and reads its introduction.
fn introduced(
    entrants: &[Entrant],
    limiter: &Limiter,
    options: &Options,
) -> Result<Vec<Result<Client, String>>, String> {
    runtime()?.block_on(async {
        let introduced = entrants.iter().map(async |entrant| {
            let plan = Plan {
                command: entrant.command.clone(),
                limits: TimeLimits::default(),
                timeout: TIMEOUT,
                seed: 0,
                edition: None,
                limiter: limiter.clone(),
            };
            let hello = attempt::probe(&plan, &options.homes.join(format!("probe-{}", entrant.name))).await;
            let hello = hello.map_err(|error| error.to_string()).and_then(|hello| hello);
            hello.map(|hello| Client {
                plan,
                hello,
                rules: Rules::default(),
            })
        });
        let introduced = stream::iter(introduced).buffered(FEW_AT_ONCE);
        Ok(introduced.collect().await)
    })
}

/// The clients, and what the pool needs to play them.
struct Pool<'a> {
    entrants: &'a [Entrant],
    clients: &'a [Result<Client, String>],
    options: &'a Options,
}

impl Pool<'_> {
    /// Plays each test, at most `jobs` at a time, in this order, and hands the results over as they come.
    fn run(&self, work: Vec<Work>, jobs: usize, mut done: impl FnMut(Work, Tested)) -> Result<(), String> {
        let threads = std::thread::available_parallelism()
            .map_or(1, |cores| cores.get())
            .min(jobs)
            .max(1);
        let queue = Mutex::new(VecDeque::from(work));
        let (sender, results) = mpsc::channel();
        std::thread::scope(|scope| {
            for thread in 0..threads {
                // The jobs are divided among the threads, and the first ones get the rest.
                let slots = jobs / threads + usize::from(thread < jobs % threads);
                let (queue, sender) = (&queue, sender.clone());
                scope.spawn(move || {
                    let played = runtime().map(|runtime| {
                        LocalSet::new().block_on(&runtime, self.worker(slots, queue, &sender));
                    });
                    if let Err(error) = played {
                        let _receiver_is_gone = sender.send(Err(error));
                    }
                });
            }
            drop(sender);
            results.into_iter().try_for_each(|result| {
                let (work, tested) = result?;
                done(work, tested);
                Ok(())
            })
        })
    }

    /// Takes work until there is none, `slots` tests at a time.
    async fn worker(
        &self,
        slots: usize,
        queue: &Mutex<VecDeque<Work>>,
        results: &mpsc::Sender<Result<(Work, Tested), String>>,
    ) {
        let slot = async |_| loop {
            let Some(work) = queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front() else {
                return;
            };
            let result = self.play(work).await;
            let failed = result.is_err();
            if results.send(result).is_err() || failed {
                // Nobody waits for more.
                queue.lock().unwrap_or_else(PoisonError::into_inner).clear();
            }
        };
        futures::future::join_all((0..slots).map(slot)).await;
    }

    async fn play(&self, mut work: Work) -> Result<(Work, Tested), String> {
        let client = self.clients[work.entrant]
            .as_ref()
            .map_err(std::clone::Clone::clone)?;
        let attempt = work.tested.as_ref().map_or(0, |tested| tested.attempts.len());
        let name = work.test.scenario.id.replace('/', "-");
        let home = self
            .options
            .homes
            .join(format!("{}-{name}-{attempt}", work.entrant));
        let failed = |error: conformance::adapter::child::StartError| error.to_string();
        let tested = match work.tested.take() {
            None => client
                .test(&work.test, work.known.clone(), &home)
                .await
                .map_err(failed)?,
            Some(mut tested) => {
                client
                    .repeat(&work.test, &mut tested, &home)
                    .await
                    .map_err(failed)?;
                tested
            }
        };
        self.keep(&work, &tested)?;
        Ok((work, tested))
    }

    /// Writes the evidence of the last attempt, unless it passed.
    fn keep(&self, work: &Work, tested: &Tested) -> Result<(), String> {
        let Some(attempt) = tested
            .attempts
            .last()
            .filter(|last| last.outcome != Outcome::Pass)
        else {
            return Ok(());
        };
        let Some(folder) = &self.options.evidence else {
            return Ok(());
        };
        let folder = folder
            .join(&self.entrants[work.entrant].name)
            .join(&work.test.scenario.id)
            .join(format!("attempt-{}", tested.attempts.len()));
        std::fs::read_to_string(&work.test.scenario.path)
            .and_then(|text| evidence::write(&folder, attempt, &text, 0, None))
            .map_err(|error| format!("{}: {error}", folder.display()))
    }
}

impl Entrant {
    /// Does a test come out differently from what is recorded, or fails without being known to?
    fn doubts(&self, tested: &Tested) -> bool {
        let id = &tested.scenario.id;
        if self.left_out.contains(id) {
            return false;
        }
        let recorded = self.record.as_ref().and_then(|record| record.tests.get(id));
        // A test that was not judged has no expected outcome.
        match recorded.filter(|recorded| recorded.outcome.is_judged()) {
            Some(recorded) => !recorded.is_like(&record::Test::of_tested(tested)),
            None => match tested.standing {
                Standing::Passed | Standing::Known | Standing::NotJudged | Standing::NotScored => false,
                Standing::Warned
                | Standing::Failed
                | Standing::Flaky
                | Standing::Stale
                | Standing::AdapterError
                | Standing::HarnessError => true,
            },
        }
    }
}

/// What is recorded of a test.
fn expected(entrant: &Entrant, test: &Test) -> Option<Outcome> {
    let record = entrant.record.as_ref()?.tests.get(&test.scenario.id)?;
    Some(record.outcome)
}

/// Time that a test takes at least, by the script and by what is recorded: a client that hangs is waited for.
fn lasts(test: &Test, expected: Option<Outcome>) -> Duration {
    match expected {
        Some(Outcome::Hang) => test.lasts() + SILENCE,
        // Cut by the time limit.
        Some(Outcome::NotPlayed) => test.lasts() + TIMEOUT,
        Some(
            Outcome::Pass
            | Outcome::Warn
            | Outcome::Fail
            | Outcome::Crash
            | Outcome::Unsupported
            | Outcome::AdapterError
            | Outcome::HarnessError,
        )
        | None => test.lasts(),
    }
}

fn runtime() -> Result<tokio::runtime::Runtime, String> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start the async runtime: {error}"))
}

/// Time that the tests took, and processor time of the adapters.
pub(crate) fn times(tests: &[Tested]) -> String {
    let attempts = || tests.iter().flat_map(|test| &test.attempts);
    let took: Duration = attempts().map(|attempt| attempt.took).sum();
    let ran: Duration = attempts().map(|attempt| attempt.ran).sum();
    let slowest = tests.iter().max_by_key(|test| {
        let took = test.attempts.iter().map(|attempt| attempt.took);
        took.max()
    });
    let slowest = slowest.map_or(String::new(), |test| {
        let took = test.attempts.iter().map(|attempt| attempt.took).max();
        format!(
            ", at most {:.0} s ({})",
            took.unwrap_or_default().as_secs_f64(),
            test.scenario.id
        )
    });
    format!(
        "{:.0} s one after another{slowest}, {:.0} s of processor time",
        took.as_secs_f64(),
        ran.as_secs_f64()
    )
}

/// Number of tests by outcome, as a sentence.
pub(crate) fn counts(tests: &[Tested]) -> String {
    let mut counts: BTreeMap<Outcome, usize> = BTreeMap::new();
    for test in tests {
        *counts.entry(test.reported().outcome).or_default() += 1;
    }
    let counts: Vec<String> = counts
        .iter()
        .map(|(outcome, number)| format!("{number} {}", outcome.word()))
        .collect();
    counts.join(", ")
}

#[cfg(test)]
mod tests {
    use conformance::adapter::attempt::Attempt;
    use conformance::trace::sample::scenario as sample;
    use rstest::rstest;

    use super::*;

    fn entrant(recorded: &str) -> Entrant {
        let record = format!(
            r#"{{"client":{{"lang":"go","version":"1"}},"recovers":"library","capabilities":[],"tests":{{"sample/hand-written":{recorded}}}}}"#
        );
        Entrant {
            name: "x".to_owned(),
            command: Vec::new(),
            known: Baseline::default(),
            record: serde_json::from_str(&record).ok(),
            left_out: Vec::new(),
        }
    }

    fn tested(outcome: Outcome, standing: Standing) -> Tested {
        let scenario = Arc::new(sample());
        Tested {
            attempts: vec![Attempt::not_run(&scenario, outcome, String::new())],
            scenario,
            known: None,
            standing,
        }
    }

    #[rstest]
    #[case::as_recorded(r#"{"outcome":"pass"}"#, Outcome::Pass, Standing::Passed, false)]
    #[case::worse(r#"{"outcome":"pass"}"#, Outcome::Hang, Standing::Failed, true)]
    #[case::better(r#"{"outcome":"fail"}"#, Outcome::Pass, Standing::Passed, true)]
    #[case::as_recorded_and_unknown(r#"{"outcome":"hang"}"#, Outcome::Hang, Standing::Failed, false)]
    #[case::not_judged_before(r#"{"outcome":"not-played"}"#, Outcome::Pass, Standing::Passed, false)]
    #[case::fails_and_was_not_judged(r#"{"outcome":"not-played"}"#, Outcome::Fail, Standing::Failed, true)]
    #[case::known_and_was_not_judged(r#"{"outcome":"not-played"}"#, Outcome::Fail, Standing::Known, false)]
    #[case::new_and_passes("null", Outcome::Pass, Standing::Passed, false)]
    #[case::new_and_fails("null", Outcome::Fail, Standing::Failed, true)]
    fn what_is_not_as_recorded_is_repeated(
        #[case] recorded: &str,
        #[case] outcome: Outcome,
        #[case] standing: Standing,
        #[case] is_repeated: bool,
    ) {
        let mut entrant = entrant(recorded);
        assert_eq!(entrant.record.is_none(), recorded == "null");
        let tested = tested(outcome, standing);
        assert_eq!(entrant.doubts(&tested), is_repeated);
        entrant.left_out.push("sample/hand-written".to_owned());
        assert!(!entrant.doubts(&tested), "left out");
    }

    #[test]
    fn what_takes_longest_comes_first() {
        let test = Test {
            scenario: Arc::new(sample()),
            reference: Duration::from_secs(7),
        };
        let seconds = |expected| lasts(&test, expected).as_secs();
        assert_eq!(seconds(None), 7);
        assert_eq!(seconds(Some(Outcome::Pass)), 7);
        assert_eq!(seconds(Some(Outcome::Hang)), 67);
        assert_eq!(seconds(Some(Outcome::NotPlayed)), 97);
    }
}

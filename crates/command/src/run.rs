//! `fake-apiserver run`: runs scenarios against a command in any language and judges its requests.

mod aim;
mod child;
mod choice;
mod evidence;
mod known;
mod lives;
mod options;
mod play;
mod report;
mod restart;
mod retarget;
mod sample;
mod settings;
#[cfg(feature = "proxy")]
mod upstream;
mod weigh;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::time::Duration;

use conformance::adapter::outcome::Outcome;
use conformance::adapter::standing::Standing;
use fake_apiserver::record::Record;
use fake_apiserver::scenario::{Scenario, SharedScenario, Style};
use futures::{StreamExt as _, stream};
use judge::verdict::Verdict;
use judge::wire::{Needs, grants, is_set, is_shown_by_requests, needed_settings, needs, needs_model, takes};
use recording::Header;

use self::choice::Loaded;
use self::known::{Excuse, Known};
pub(crate) use self::options::Run;
use self::options::{ALL, Flaky, Format, Profile};
use self::play::{PASSED, play_or_skip};
use self::restart::Restart;
use crate::recorder::Parts;
use crate::stop::{INTERRUPTED, Stop};
use crate::{Failure, built_in, kept, output, private, stage};

/// Exit code of a run with entries of known failures that are no failures.
const STALE: u8 = 5;

/// Result for one scenario, played or not.
#[derive(Debug)]
pub(crate) struct Played {
    pub(crate) scenario: SharedScenario,
    pub(crate) result: Result<Verdict, Skipped>,
    /// Why its failure is a known one.
    pub(crate) known: Option<Excuse>,
    /// Trace line of the request that proves each contradiction; empty without one.
    pub(crate) proofs: Vec<String>,
    /// Last lines of the command's output, and the first ones if it ended by itself.
    pub(crate) output: Vec<String>,
    pub(crate) took: Duration,
    /// Exits after which the command was started again.
    pub(crate) restarts: Vec<Restart>,
    /// Time and reason of the end.
    pub(crate) end: Option<(Duration, String)>,
    /// Number of requests.
    pub(crate) requests: usize,
    /// All records as lines, if it failed.
    pub(crate) trace: Vec<String>,
    /// Outcome of every attempt that was judged, this one first.
    pub(crate) tries: Vec<&'static str>,
    /// The trace, if evidence or a page of it was requested.
    pub(crate) records: Vec<Record>,
    /// Whether the scenario is part of this program.
    pub(crate) is_built_in: bool,
}

/// Reason why a scenario has no verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Skipped {
    /// The scenario was not played.
    Needs(Needs),
    /// It was played, and proves nothing.
    NotJudged(String),
    /// The command ended before its first request.
    NotStarted(String),
    /// A stop was requested.
    Interrupted,
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Needs(needs) => write!(f, "needs {}", needs.words()),
            Self::NotJudged(why) => write!(f, "not judged: {why}"),
            Self::NotStarted(why) => f.write_str(why),
            Self::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl Played {
    /// Returns its result, compared with what is known and with what counts.
    pub(crate) fn standing(&self, run: &Run) -> Standing {
        match &self.result {
            Err(_) => Standing::NotJudged,
            Ok(verdict) if verdict.passed() => Standing::Passed,
            Ok(_) if self.scenario.is_hardening() => Standing::NotScored,
            Ok(_) if self.known.is_some() => Standing::Known,
            Ok(_) if self.is_flaky() => Standing::Flaky,
            Ok(verdict) => match Outcome::of(&self.scenario, verdict, run.edition) {
                Outcome::Warn if !run.strict => Standing::Warned,
                Outcome::Pass
                | Outcome::Warn
                | Outcome::Fail
                | Outcome::Hang
                | Outcome::Crash
                | Outcome::Unsupported
                | Outcome::NotPlayed
                | Outcome::AdapterError
                | Outcome::HarnessError => Standing::Failed,
            },
        }
    }

    /// Whether it fails the run.
    pub(crate) fn failed(&self, run: &Run) -> bool {
        let standing = self.standing(run);
        let is_reported_only = run.flaky == Flaky::Report && standing == Standing::Flaky;
        standing.is_failure() && !is_reported_only
    }

    pub(crate) fn passed(&self) -> bool {
        self.result.as_ref().is_ok_and(Verdict::passed)
    }

    /// Whether it failed first, and passed when it was repeated.
    pub(crate) fn is_flaky(&self) -> bool {
        self.tries.len() > 1 && self.tries.last() == Some(&PASSED)
    }
}

/// Runs the selected scenarios.
///
/// # Errors
///
/// A scenario is invalid or failed, or nothing could be played.
pub(crate) fn run(run: Run) -> Result<(), Failure> {
    let (mut scenarios, mistaken) = choice::load(&run.scenarios, &run.tag)?;
    if let Some(shard) = run.shard {
        scenarios.retain(|loaded| shard.has(&loaded.scenario.id));
    }
    if let Some(edition) = run.edition {
        scenarios.retain(|loaded| loaded.named || edition.has(&loaded.scenario.id));
    }
    run.recording.kept()?;
    find_resource(&run)?;
    #[cfg(feature = "proxy")]
    upstream::check(&run)?;
    let known = Known::read(run.known_failures.as_deref(), &run.library)?;
    for path in [&run.junit, &run.html].into_iter().flatten() {
        private::check_new(path)?;
    }
    if let Some(folder) = &run.evidence {
        kept::check(folder)?;
    }
    for errors in &mistaken {
        output::log_raw(&errors.render(Style::for_stderr()));
    }
    if run.list {
        return list(&run, scenarios, !mistaken.is_empty());
    }
    let ids = scenarios.iter().map(|loaded| loaded.scenario.id.clone());
    let ids: Vec<String> = ids.collect();
    let exists = |id: &str| ids.iter().any(|known| known == id) || built_in::has(id);
    let mut report = report::Report::new(run.format, ids.clone());
    let mut recorder = run.recording.open_parts()?;
    let code = stage::block_on(async |stop| {
        #[cfg(feature = "proxy")]
        upstream::connect(&run).await?;
        #[cfg(feature = "proxy")]
        upstream::find_resource(&run).await?;
        let played = play_all(&run, scenarios, &known, (&mut report, &mut recorder), &stop).await?;
        let passed = |id: &str| played.iter().any(|one| one.scenario.id == id && one.passed());
        let (stale, unseen) = known.stale(exists, passed);
        let ended = report::Ended {
            played: &played,
            mistaken: &mistaken,
            stale: &stale,
            unseen: &unseen,
        };
        let code = exit_code(&ended, &run);
        if let Some(path) = &run.junit {
            private::write_new(path, &report::junit(&ended, &run)?)?;
        }
        evidence::write(&ended, &run, code)?;
        report.ends(&ended, &run, &stop).await?;
        Ok(code)
    })?;
    match code {
        0 => Ok(()),
        code => Err(Failure::Silent(code)),
    }
}

/// Finds the kind of `--resource` among those that the fake serves.
///
/// # Errors
///
/// It is none of them, and without `--upstream` there are no others.
fn find_resource(run: &Run) -> Result<(), Failure> {
    let Some(name) = &run.resource else { return Ok(()) };
    match retarget::resource(name) {
        Ok(kind) => run.takes(kind),
        Err(_) if run.is_before_upstream() => {}
        Err(why) => return Err(retarget::unusable(name, &why)),
    }
    Ok(())
}

/// Returns the exit code of a run.
fn exit_code(ended: &report::Ended<'_>, run: &Run) -> u8 {
    let any = |of: &dyn Fn(&Played) -> bool| ended.played.iter().any(of);
    if any(&|one| one.result == Err(Skipped::Interrupted)) {
        INTERRUPTED
    } else if any(&|one| matches!(one.result, Err(Skipped::NotStarted(_)))) {
        3
    } else if !ended.mistaken.is_empty() {
        2
    } else if any(&|one| one.failed(run)) {
        1
    } else if !ended.stale.is_empty() {
        STALE
    } else if !any(&|one| one.result.is_ok()) {
        4
    } else {
        0
    }
}

/// Prints the scenarios that would be played, one a line. A scenario that needs an adapter, settings or time is not.
fn list(run: &Run, scenarios: Vec<Loaded>, has_mistakes: bool) -> Result<(), Failure> {
    let mut text = String::new();
    for Loaded { scenario, named, .. } in scenarios {
        let unset = unset(run, &scenario);
        let missing = match can_show(&scenario, &unset, &[]) {
            true => 0,
            false => unset.len(),
        };
        if left_out(run, &scenario, named, missing).is_none() {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{}   {}", scenario.id, scenario.title);
        }
    }
    stage::block_on(async |stop| output::print(text, &stop).await)?;
    match has_mistakes {
        true => Err(Failure::Silent(2)),
        false => Ok(()),
    }
}

/// Runs scenarios, `--jobs` in parallel, and reports them in order; a long one delays the reports of those after it, but not
/// their start. Ends early after a stop request, or if the command does not start: it would not start for the others either.
async fn play_all(
    run: &Run,
    scenarios: Vec<Loaded>,
    known: &Known,
    (report, recorder): (&mut report::Report, &mut Option<Parts>),
    stop: &Stop,
) -> Result<Vec<Played>, Failure> {
    let sent = RefCell::new(Vec::new());
    let mut all = stream::iter(scenarios.into_iter().enumerate())
        .map(async |(nth, loaded)| Ok::<_, Failure>((nth, play_or_skip(run, loaded, &sent, stop).await?)))
        .buffer_unordered(run.jobs.get());
    let (mut reported, mut early) = (0, BTreeMap::new());
    let (mut played, mut interrupted) = (Vec::new(), false);
    report.moves(0);
    while let Some((nth, one)) = all.next().await.transpose()? {
        early.insert(nth, one);
        while let Some(one) = early.remove(&reported) {
            reported += 1;
            let is_interrupted = one.result == Err(Skipped::Interrupted);
            // After a stop request those that were played to their end are still reported.
            if is_interrupted && std::mem::replace(&mut interrupted, true) {
                continue;
            }
            let mut one = started_elsewhere(one, &played);
            let verdict = one.result.as_ref().ok();
            one.known = verdict.and_then(|verdict| known.excuse(&one.scenario.id, verdict));
            if let Some(recorder) = recorder.as_mut().filter(|_| !one.records.is_empty()) {
                let version = one.scenario.server.version.name();
                let origin = match run.is_before_upstream() {
                    true => recording::Origin::Upstream,
                    false => recording::Origin::Model,
                };
                let mut header = Header::new("run", version, origin);
                header.scenario = Some(one.scenario.id.clone());
                recorder.add(header, &one.records, !one.passed())?;
            }
            report.tells(&one, run, stop).await?;
            let ends = matches!(one.result, Err(Skipped::NotStarted(_)));
            played.push(one);
            if ends {
                return Ok(played);
            }
            if !interrupted {
                report.moves(reported);
            }
        }
    }
    Ok(played)
}

/// A command that sent requests in an earlier scenario starts: where it sends none, e.g. because it speaks no HTTP/2, it is not
/// judged, and the others are played.
fn started_elsewhere(mut one: Played, earlier: &[Played]) -> Played {
    if let Err(Skipped::NotStarted(why)) = &one.result
        && earlier.iter().any(|earlier| earlier.requests > 0)
    {
        one.result = Err(Skipped::NotJudged(why.clone()));
    }
    one
}

/// Returns what keeps a scenario from being played. `missing`: number of settings that it needs, and that the command line does not
/// promise and requests cannot show.
fn left_out(run: &Run, scenario: &Scenario, named: bool, missing: usize) -> Option<Needs> {
    let (time, granted) = (takes(scenario), grants(scenario));
    let is_long = time > run.timeout / 3 || granted > run.timeout * 4;
    let is_too_long = !named && run.profile == Profile::Quick && is_long;
    needs_model(scenario, run.may_write())
        .filter(|_| run.is_before_upstream())
        .or_else(|| needs(scenario))
        .filter(|needs| !matches!(needs, Needs::Told(_)) || missing > 0)
        .or_else(|| is_too_long.then_some(Needs::Time(time + granted)))
}

/// Returns the settings that the scenario needs and that the command line does not promise.
fn unset(run: &Run, scenario: &Scenario) -> Vec<&'static str> {
    let assumed = |key: &str| {
        run.assume_configured
            .iter()
            .any(|given| given == ALL || given == key)
    };
    let settings = needed_settings(scenario).into_iter();
    settings.filter(|key| !assumed(key)).collect()
}

/// Whether requests can show that the command has these settings: those of an earlier scenario, `sent`, do not show that it has
/// not; then those of this one decide.
fn can_show(scenario: &Scenario, unset: &[&'static str], sent: &[Record]) -> bool {
    unset
        .iter()
        .all(|key| is_shown_by_requests(key) && is_set(scenario, key, sent) != Some(false))
}

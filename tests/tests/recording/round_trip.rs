//! Play, record, make a scenario of the recording, play that: the wire judge finds the same, for right clients and for wrong
//! ones, in every scenario that a server alone can record. Those that it cannot are listed, with the reason.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use conformance::drive::sim::sim_against;
use conformance::wire::{Loops, WireJudge};
use fake_apiserver::content::Kept;
use fake_apiserver::record::{Record, What};
use fake_apiserver::scenario::{self, Scenario, SharedScenario, Style};
use fake_apiserver::server::{Limits, Server};
use recording::{Header, Options, Origin, Recording, draft, read, write_header, write_records};
use tests::reference::{Mistake, Reference};
use tests::{parallel, repository};

/// Time that the wire judge gets after a run to detect open watches, as in `run`.
const AFTERWARDS: Duration = Duration::from_secs(5);

/// Scenarios whose server's side a recording does not have, by reason.
const NOT_RECORDED: &[(&str, &[&str])] = &[
    (
        "the objects of a scenario are larger than its file may be",
        &[
            "scale/a-slow-consumer-loses-nothing",
            "stream/a-line-without-end-is-given-up",
            "stream/large-events-are-read",
        ],
    ),
    (
        "many faults at one instant: the trace has not the order in which they were decided",
        &[
            "conn/ever-dying-connections-lose-nothing",
            "retry/many-faults-in-a-row-leave-one-list-and-one-watch",
        ],
    ),
    (
        "how long the client takes for an object decides when it sends its next request",
        &["scale/a-consumer-slower-than-the-list-timeout-becomes-ready"],
    ),
];

/// Mistakes that the wire shows, at least one for each invariant that the wire judge checks.
const MISTAKES: [Mistake; 18] = [
    Mistake::ForgetsLimit,
    Mistake::ForgetsSelectors,
    Mistake::IgnoresBookmarks,
    Mistake::IgnoresGoneEvent,
    Mistake::IgnoresGoneStatus,
    Mistake::IgnoresRetryAfter,
    Mistake::KeepsGivenUpWatch,
    Mistake::NeverBacksOff,
    Mistake::PinsLaterPages,
    Mistake::ReadsPastError,
    Mistake::RelistsFromZero,
    Mistake::ResendsDeadToken,
    Mistake::ResumesBeforeDeletion,
    Mistake::ResumesFromItem,
    Mistake::ResumesPastTornLine,
    Mistake::StopsAtEmptyPage,
    Mistake::WatchesBeforeLastPage,
    Mistake::WatchesFromLastPage,
];

/// Runs with more records are played to the right client alone.
const RECORDS_MAX: usize = 300;

/// What a server alone records of a run.
fn play(scenario: &SharedScenario, mistake: Option<Mistake>) -> Vec<Record> {
    let server = Server::recorded(scenario.clone(), 0, Limits::sim(), Some(Kept::default()));
    let mut records = sim_against(server, scenario, &Reference { mistake }, 0).records;
    records.retain(|record| !matches!(record.what, What::Reported(_)));
    for (seq, record) in records.iter_mut().enumerate() {
        record.seq = seq as u64;
    }
    records
}

/// Returns a recording as it comes from its file.
fn recorded(records: &[Record]) -> Recording {
    let mut header = Header::new("run", "1.37", Origin::Model);
    header.content = true;
    let mut file = Vec::new();
    write_header(&header, &mut file).unwrap();
    write_records(records, &mut file).unwrap();
    let text = String::from_utf8(file).unwrap();
    read(&text).unwrap().remove(0)
}

/// Returns the checks that a run fails on the wire, the first one first.
fn violated(scenario: &Scenario, records: &[Record]) -> Vec<String> {
    let excused = scenario
        .expect
        .excused
        .iter()
        .map(|excuse| excuse.invariant.clone());
    let mut judge = WireJudge::new(Loops::One).excusing(excused.collect());
    let mut found: Vec<_> = records.iter().flat_map(|record| judge.take(record)).collect();
    let last = records.last().map(|last| last.at).unwrap_or_default();
    found.extend(judge.pass_time(last + AFTERWARDS));
    found
        .into_iter()
        .map(|violation| violation.found.check.to_string())
        .collect()
}

/// Makes a scenario of a recording, for the client of the recorded one.
fn drafted(original: &Scenario, recording: &Recording) -> Result<(SharedScenario, String), String> {
    let options = Options {
        source: "recording".to_owned(),
        around: None,
        longest_wait: Duration::from_secs(24 * 3600),
    };
    let draft = draft(recording, &options).map_err(|error| error.to_string())?;
    let made = scenario::parse("made/of-a-recording", Path::new("made.yaml"), &draft.text);
    let mut made = made.map_err(|errors| format!("{}\n{}", errors.render(Style::Plain), draft.text))?;
    // The same client, with the settings that requests do not show.
    made.client = original.client.clone();
    made.server.transport = original.server.transport;
    made.expect.excused = original.expect.excused.clone();
    Ok((Arc::new(made), draft.text))
}

/// Plays a scenario, and what is made of its recording. Returns what differs.
fn differs(scenario: &SharedScenario, mistake: Option<Mistake>) -> Option<String> {
    let records = play(scenario, mistake);
    let wanted = violated(scenario, &records);
    if mistake.is_some() && wanted.is_empty() {
        return None;
    }
    let (made, text) = match drafted(scenario, &recorded(&records)) {
        Ok(made) => made,
        Err(error) => return Some(error),
    };
    let found = violated(&made, &play(&made, mistake));
    let is_same = match wanted.first() {
        Some(first) => found.contains(first),
        None => found.is_empty(),
    };
    (!is_same).then(|| format!("{mistake:?}: {wanted:?} became {found:?}\n{text}"))
}

/// Whether a run is so long that it is played to the right client alone.
fn is_heavy(scenario: &SharedScenario) -> bool {
    play(scenario, None).len() > RECORDS_MAX
}

/// Plays every scenario to the right client, and to wrong ones: one in `stride` of them, another third for each scenario; all of them
/// where the list has the scenario.
fn play_all(stride: usize) {
    let listed = NOT_RECORDED.iter().flat_map(|(_, ids)| ids.iter().copied());
    let listed: BTreeSet<&str> = listed.collect();
    let scenarios: Vec<(usize, SharedScenario)> = repository::scenarios().into_iter().enumerate().collect();
    let results = parallel::map(&scenarios, |(nth, scenario)| {
        let is_listed = listed.contains(scenario.id.as_str());
        let right = differs(scenario, None);
        if right.is_some() || is_heavy(scenario) && !is_listed {
            return right;
        }
        let stride = if is_listed { 1 } else { stride };
        let mistakes = MISTAKES.iter().skip(nth % stride).step_by(stride);
        mistakes
            .copied()
            .find_map(|mistake| differs(scenario, Some(mistake)))
    });
    let mut failing = BTreeSet::new();
    let mut unlisted = String::new();
    for ((_, scenario), result) in scenarios.iter().zip(&results) {
        let Some(why) = result else { continue };
        failing.insert(scenario.id.as_str());
        if !listed.contains(scenario.id.as_str()) {
            writeln!(unlisted, "{}: {why}", scenario.id).unwrap();
        }
    }
    assert!(unlisted.is_empty(), "{unlisted}");
    assert_eq!(failing, listed, "listed, and the same");
}

#[test]
fn a_recording_gives_the_same_verdict() {
    play_all(3);
}

#[test]
#[ignore = "every mistake in every scenario takes a minute of processor time"]
fn a_recording_gives_the_same_verdict_whatever_the_mistake() {
    play_all(1);
}

//! Every check can fail, and for the right reason: the reference client passes every scenario, and each of its
//! mistakes is caught by one.
//!
//! Fails for a new check that no mistake breaks, and for a new mistake that no scenario catches.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::LazyLock;
use std::time::Duration;

use adapter_kube_runtime::KubeRuntime;
use adapter_watcher::WatcherClient;
use conformance::baseline::Baseline;
use conformance::client::Client;
use conformance::coverage;
use conformance::invariants::INVARIANTS;
use conformance::report::terminal::{self, Style};
use conformance::suite::{self, Driver, Judged, Plan};
use conformance::wire::{Loops, WireJudge};
use fake_apiserver::record::{RunEnd, What};
use fake_apiserver::scenario::SharedScenario;
use fake_apiserver::scenario::catalogue;
use tests::reference::{Mistake, Reference};
use tests::{parallel, repository};

/// Scenarios that require more than clients owe, with reasons.
const NOT_FOR_THE_REFERENCE: [(&str, &str); 0] = [];

/// Invariants that no mistake breaks, with reasons.
const UNBROKEN: [(&str, &str); 0] = [];

/// Number of hot-loop scenarios per mutant after which no more are run; each costs as much as a thousand others.
const SPINS_MAX: usize = 3;

/// Runs with more records or more bytes of events are used only if no lighter one catches a mutant.
const RECORDS_MAX: usize = 300;
const BYTES_MAX: u64 = 64 * 1024;

/// Time that the wire judge gets after a run to detect open watches, as in `run`.
const AFTERWARDS: Duration = Duration::from_secs(3);

/// Number of scenarios listed per mistake.
const NAMED: usize = 3;

/// The correct client in every scenario.
static RIGHT: LazyLock<Vec<Judged>> = LazyLock::new(|| {
    parallel::map(&repository::scenarios(), |scenario| {
        play(scenario, Reference { mistake: None })
    })
});

/// What caught each mistake, in the order of scenarios, and what the wire judge alone finds in the light ones.
static CAUGHT: LazyLock<BTreeMap<Mistake, (Vec<Catch>, CaughtOnTheWire)>> = LazyLock::new(|| {
    let passed = || RIGHT.iter().filter(|judged| judged.verdict.passed());
    let scenario = |judged: &Judged| judged.scenario.clone();
    let light: Vec<SharedScenario> = passed()
        .filter(|judged| !is_heavy(judged))
        .map(scenario)
        .collect();
    let heavy: Vec<SharedScenario> = passed().filter(|judged| is_heavy(judged)).map(scenario).collect();
    let caught = parallel::map(&Mistake::ALL, |mistake| {
        let (mut caught, wire) = catches(*mistake, &light);
        if caught.is_empty() {
            (caught, _) = catches(*mistake, &heavy);
        }
        (*mistake, (caught, wire))
    });
    caught.into_iter().collect()
});

/// Mistakes caught by requests alone: how the judge was used, and the check; with the first such scenario.
type CaughtOnTheWire = BTreeMap<(&'static str, String), String>;

struct Catch {
    scenario: String,
    /// Checks, most important first.
    checks: Vec<String>,
    /// Requirements shown to be broken, of those that the scenario covers.
    broken: Vec<String>,
}

#[test]
fn the_right_client_passes() {
    let style = Style {
        colour: false,
        columns: 100,
    };
    let mut wrong = String::new();
    for judged in RIGHT.iter() {
        let id = judged.scenario.id.as_str();
        let excused = NOT_FOR_THE_REFERENCE.iter().any(|(listed, _)| *listed == id);
        match (judged.verdict.passed(), excused) {
            (true, false) | (false, true) => {}
            (false, false) => wrong.push_str(&terminal::failure(judged, style)),
            (true, true) => wrong.push_str(&format!(
                "{id} is listed as not for the reference, but it passes\n"
            )),
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn every_mistake_is_caught() {
    let mut table = String::new();
    let mut missed = Vec::new();
    for (mistake, (caught, _)) in CAUGHT.iter() {
        writeln!(table, "{mistake:?}").unwrap();
        for Catch { scenario, checks, .. } in caught.iter().take(NAMED) {
            let check = checks.first().map(String::as_str).unwrap_or_default();
            writeln!(table, "  {scenario}: {check}").unwrap();
        }
        if caught.is_empty() {
            missed.push(*mistake);
        }
    }
    assert_eq!(missed, [], "no scenario catches these");
    insta::assert_snapshot!("caught", table);
}

/// The wire judge, which has only the requests, reports no correct client.
#[test]
fn the_wire_judge_accuses_no_right_client() {
    let ours = parallel::map(&repository::scenarios(), |scenario| play(scenario, WatcherClient));
    let mut wrong = String::new();
    for judged in RIGHT.iter().chain(&ours).filter(|judged| judged.verdict.passed()) {
        for (company, check, sentence) in on_the_wire(judged) {
            writeln!(wrong, "{} {company}: {check}: {sentence}", judged.scenario.id).unwrap();
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn the_wire_judge_catches_what_it_did() {
    let mut table = String::new();
    let caught = CAUGHT.iter().map(|(mistake, (_, wire))| (mistake, wire));
    for (mistake, caught) in caught.filter(|(_, wire)| !wire.is_empty()) {
        writeln!(table, "{mistake:?}").unwrap();
        for ((company, check), scenario) in caught {
            writeln!(table, "  {company} {check}: {scenario}").unwrap();
        }
    }
    insta::assert_snapshot!("wire", table);
}

#[test]
fn every_invariant_is_broken_by_a_mistake() {
    let mut table = String::new();
    let mut unbroken = Vec::new();
    for invariant in &INVARIANTS {
        let first = CAUGHT.iter().find_map(|(mistake, (caught, _))| {
            let by = caught
                .iter()
                .find(|caught| caught.checks.iter().any(|check| check == invariant.id))?;
            Some((mistake, &by.scenario))
        });
        match first {
            Some((mistake, scenario)) => {
                writeln!(table, "{}: {mistake:?} in {scenario}", invariant.id).unwrap()
            }
            None => unbroken.push(invariant.id),
        }
    }
    assert_eq!(unbroken, UNBROKEN.map(|(id, _)| id));
    insta::assert_snapshot!("broken", table);
}

/// Requirements that no mutant breaks may be broken by other clients.
#[test]
fn every_requirement_can_be_broken_or_has_a_reason() {
    let known = repository::known_failures(KubeRuntime.name());
    let of_the_world = parallel::map(&known.entries, |known| {
        let plan = Plan {
            driver: Driver::Sim,
            seed: 0,
            jobs: 1,
        };
        suite::one(
            &repository::scenario(&known.scenario),
            &KubeRuntime,
            plan,
            &Baseline::default(),
        )
    });
    let mut table = String::new();
    let mut unbroken = Vec::new();
    for requirement in catalogue::requirements() {
        let id = &requirement.id;
        // The mistake caught by the fewest scenarios is the most specific.
        let breaking = CAUGHT.iter().filter_map(|(mistake, (caught, _))| {
            let by = caught.iter().find(|caught| caught.broken.contains(id))?;
            Some((caught.len(), mistake, &by.scenario))
        });
        let by_mistake = breaking
            .min()
            .map(|(_, mistake, scenario)| format!("{mistake:?} in {scenario}"));
        let by_another = || {
            let by = of_the_world.iter().find(|judged| coverage::breaks(judged, id))?;
            Some(format!("kube-runtime in {}", by.scenario.id))
        };
        let by = by_mistake.or_else(by_another);
        match (by, &requirement.shown_by, &requirement.undecided) {
            (Some(by), None, None) => writeln!(table, "{id}: {by}").unwrap(),
            (None, Some((file, word)), None) if repository::contains_word(file, word) => {
                writeln!(table, "{id}: {word} in {file}").unwrap();
            }
            (None, Some((file, word)), _) => unbroken.push(format!("{id}: there is no {word} in {file}")),
            (None, None, Some(_)) => writeln!(table, "{id}: undecided").unwrap(),
            (Some(by), _, _) => unbroken.push(format!("{id} is listed as without a scenario, but: {by}")),
            (None, None, None) => unbroken.push(format!("{id} is broken by no client")),
        }
    }
    assert_eq!(unbroken, Vec::<String>::new());
    insta::assert_snapshot!("requirements", table);
}

#[test]
fn what_a_client_never_sends_does_not_concern_it() {
    let scenario = repository::scenario("list/an-exact-list-that-is-newer-is-not-taken-for-exact");
    let compliance = |mistake| {
        let judged = [play(&scenario, Reference { mistake })];
        let covered = coverage::of_caching_clients(&judged);
        let of_exact_lists = covered.iter().find(|one| one.requirement.id == "LIST-08");
        format!("{:?}", of_exact_lists.map(|one| &one.compliance))
    };
    assert_eq!(
        compliance(None),
        r#"Some(NotConcerned("resourceVersionMatch", "Exact"))"#
    );
    let broken = format!("Some(Broken([{:?}]))", scenario.id);
    assert_eq!(compliance(Some(Mistake::TrustsExactLists)), broken);
}

fn is_heavy(judged: &Judged) -> bool {
    let bytes = judged.records.iter().map(|record| {
        if let What::Frame { frame, .. } = &record.what {
            frame.bytes
        } else {
            0
        }
    });
    judged.records.len() > RECORDS_MAX || bytes.sum::<u64>() > BYTES_MAX
}

fn catches(mistake: Mistake, scenarios: &[SharedScenario]) -> (Vec<Catch>, CaughtOnTheWire) {
    let mut caught = Vec::new();
    let mut wire = CaughtOnTheWire::new();
    let mut spins = 0;
    for scenario in scenarios {
        let client = Reference {
            mistake: Some(mistake),
        };
        let judged = play(scenario, client);
        for (company, check, _) in on_the_wire(&judged) {
            wire.entry((company, check))
                .or_insert_with(|| scenario.id.clone());
        }
        spins += usize::from(is_runaway(&judged));
        if !judged.verdict.passed() {
            let covers = scenario.covers.iter().map(|covered| covered.id.clone());
            let broken = covers.filter(|id| coverage::breaks(&judged, id)).collect();
            let checks = judged.verdict.contradictions.into_iter();
            caught.push(Catch {
                broken,
                scenario: scenario.id.clone(),
                checks: checks
                    .map(|contradiction| contradiction.check.to_string())
                    .collect(),
            });
        }
        if spins == SPINS_MAX {
            break;
        }
    }
    (caught, wire)
}

/// Returns the violations found by the wire judge in a run: mode of the judge, check and text.
fn on_the_wire(judged: &Judged) -> Vec<(&'static str, String, String)> {
    let excused = judged.scenario.expect.excused.iter();
    let excused: Vec<String> = excused.map(|excuse| excuse.invariant.clone()).collect();
    let companies = [("run", Loops::One), ("serve", Loops::Many)];
    let found = companies.into_iter().flat_map(|(name, company)| {
        let mut judge = WireJudge::new(company).excusing(excused.clone());
        let mut found: Vec<_> = judged
            .records
            .iter()
            .flat_map(|record| judge.take(record))
            .collect();
        let last = judged.records.last().map(|last| last.at).unwrap_or_default();
        found.extend(judge.pass_time(last + AFTERWARDS));
        found
            .into_iter()
            .map(move |violation| (name, violation.found.check.to_string(), violation.found.sentence))
    });
    found.collect()
}

fn is_runaway(judged: &Judged) -> bool {
    judged
        .records
        .iter()
        .any(|record| matches!(record.what, What::RunEnded(RunEnd::Runaway { .. })))
}

fn play(scenario: &SharedScenario, client: impl Client) -> Judged {
    let plan = Plan {
        driver: Driver::Sim,
        seed: 0,
        jobs: 1,
    };
    suite::one(scenario, &client, plan, &Baseline::default())
}

//! Every scenario file, run in `sim` by our watcher, or by kube-client if it starts one watch or one list: the verdict is the
//! expected one, and the transcript equals the one accepted beside the file.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use adapter_kube_client::KubeClient;
use adapter_kube_runtime::KubeRuntime;
use adapter_watcher::WatcherClient;
use conformance::client::Client;
use conformance::invariants::INVARIANTS;
use conformance::report::terminal::{self, Style};
use conformance::report::transcript;
use conformance::suite::{self, Driver, Plan, Standing};
use conformance::trace::Trace;
use fake_apiserver::scenario::Contract;
use rstest::rstest;
use similar::TextDiff;
use tests::repository;

const PLAN: Plan = Plan {
    driver: Driver::Sim,
    seed: 0,
    jobs: 1,
};

#[rstest]
fn our_watcher_passes_as_accepted(#[files("../scenarios/**/*.yaml")] file: PathBuf) {
    let scenario = repository::load(&file);
    let client: &dyn Client = match scenario.client.contract {
        Contract::Informer => &WatcherClient,
        Contract::Watch | Contract::List => &KubeClient,
    };
    let known = repository::known_failures(client.name());
    let judged = suite::one(&scenario, client, PLAN, &known);
    let style = Style {
        colour: false,
        columns: 100,
    };
    match judged.standing {
        Standing::Passed | Standing::Known => {}
        Standing::Failed => panic!("\n{}", terminal::failure(&judged, style)),
        Standing::Stale => panic!("{}", terminal::remark(&judged).unwrap_or_default()),
    }

    let trace = Trace::new(&judged.records);
    let transcript = transcript::accepted(&scenario, &trace, &judged.verdict);
    let transcript = transcript::snapshot(&scenario, &transcript);
    let path = transcript::snapshot_path(&scenario, client.name());
    let bless = format!("cargo xtask scenarios --bless {}", scenario.id);
    let Ok(accepted) = std::fs::read_to_string(&path) else {
        panic!(
            "no transcript of {} is accepted yet; read this one, then accept it with\n  {bless}\n\n{transcript}",
            scenario.id
        );
    };
    if transcript != accepted {
        let diff = TextDiff::from_lines(accepted.as_str(), transcript.as_str());
        panic!(
            "{} has a transcript that differs from the accepted one; if every line of the difference is intended, accept it with\n  {bless}\n\n{}",
            scenario.id,
            diff.unified_diff().header("accepted", "now")
        );
    }
}

/// Otherwise the transcript of a renamed or removed scenario would remain.
#[test]
fn every_accepted_transcript_has_its_scenario() {
    let clients = [WatcherClient.name(), KubeRuntime.name(), KubeClient.name()];
    let accepted: BTreeSet<PathBuf> = repository::all_contracts()
        .iter()
        .flat_map(|scenario| clients.map(|client| transcript::snapshot_path(scenario, client)))
        .collect();
    let orphans: Vec<PathBuf> = snapshots_below(&repository::root().join("scenarios"))
        .into_iter()
        .filter(|path| !accepted.contains(path))
        .collect();
    assert_eq!(orphans, Vec::<PathBuf>::new());
}

fn snapshots_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder of the repository") {
        let path = entry.expect("a folder of the repository").path();
        if path.is_dir() {
            found.extend(snapshots_below(&path));
        } else if path.extension().is_some_and(|ending| ending == "snap") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Otherwise a scenario would count a requirement as kept by clients of which it shows nothing.
#[test]
fn every_covered_requirement_can_be_shown_to_be_broken() {
    let mut unshown = Vec::new();
    for scenario in repository::all_contracts() {
        let expect = &scenario.expect;
        let named = [&expect.converges, &expect.goes_on, &expect.survives]
            .into_iter()
            .chain(scenario.steps.iter().map(|step| &step.requirements))
            .chain(expect.requests.iter().map(|expected| &expected.requirements))
            .chain(expect.never.iter().map(|expected| &expected.requirements))
            .chain(expect.counts.iter().map(|expected| &expected.requirements))
            .chain(expect.events.iter().map(|expected| &expected.requirements))
            .chain(expect.never_emitted.iter().map(|expected| &expected.requirements));
        let named: BTreeSet<&str> = named.flatten().map(String::as_str).collect();
        let by_invariants: BTreeSet<&str> = INVARIANTS
            .iter()
            .flat_map(|invariant| invariant.requirements.iter().copied())
            .collect();
        for (index, covered) in scenario.covers.iter().enumerate() {
            let id = covered.id.as_str();
            let is_shown = named.contains(id)
                || by_invariants.contains(id)
                || id == "RETRY-11"
                || (index == 0 && expect.only);
            if !is_shown {
                unshown.push(format!("{}: {id}", scenario.id));
            }
        }
    }
    assert_eq!(unshown, Vec::<String>::new());
}

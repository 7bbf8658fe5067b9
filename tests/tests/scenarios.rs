//! Every scenario file, run in `sim` by our watcher, or by kube-client if it starts one watch or one list: the verdict is the
//! expected one, and the transcript equals the one accepted beside the file.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use adapter_kube_client::KubeClient;
use adapter_kube_runtime::KubeRuntime;
use adapter_watcher::WatcherClient;
use conformance::client::Client;
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

//! The same scenario, client and seed give byte-identical records, as required to rerun a failure.

use adapter_kube_runtime::KubeRuntime;
use adapter_watcher::WatcherClient;
use conformance::client::Client;
use conformance::drive;
use fake_apiserver::scenario::SharedScenario;
use similar::TextDiff;
use tests::{parallel, repository};

const SEED: u64 = 7;

#[test]
fn same_seed_same_bytes() {
    plays_alike_twice(&WatcherClient);
}

#[test]
#[ignore = "`.ci/nightly`: the harness is the same, and most of its failures wait for minutes of virtual time"]
fn same_seed_same_bytes_with_kube_runtime() {
    plays_alike_twice(&KubeRuntime);
}

fn plays_alike_twice(client: &dyn Client) {
    let scenarios = repository::scenarios();
    let transcripts = parallel::map(&scenarios, |scenario| {
        [records(scenario, client), records(scenario, client)]
    });
    let mut different = String::new();
    for (scenario, [first, second]) in scenarios.iter().zip(transcripts) {
        if first != second {
            let diff = TextDiff::from_lines(&first, &second);
            let diff = diff.unified_diff().context_radius(1).to_string();
            let shown: Vec<&str> = diff.lines().take(20).collect();
            different.push_str(&format!("{}\n{}\n\n", scenario.id, shown.join("\n")));
        }
    }
    assert!(different.is_empty(), "{different}");
}

/// Randomness affects the run: if the seed were ignored, equal runs would prove little.
#[test]
fn another_seed_gives_another_run() {
    let scenario = repository::scenario("retry/failing-lists-are-retried-ever-more-slowly");
    let run = |seed| drive::sim(&scenario, &WatcherClient, seed);
    assert_ne!(run(1), run(2));
}

fn records(scenario: &SharedScenario, client: &dyn Client) -> String {
    let mut transcripts = String::new();
    for record in drive::sim(scenario, client, SEED).records {
        transcripts.push_str(
            &serde_json::to_string(&record).expect("records serialize: they are strings and numbers"),
        );
        transcripts.push('\n');
    }
    transcripts
}

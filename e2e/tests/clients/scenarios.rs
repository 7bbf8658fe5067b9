//! client-go with its defaults, as a user lets `fake-apiserver run` judge it: what it fails is a true defect of client-go,
//! listed with the reason in `clients/go/known-failures.yaml`.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use e2e::toolchain;
use serde::Deserialize;
use serde_json::Value;

/// What takes little real time, and shows lists, pages, watches, bookmarks and 410.
const FOLDERS: [&str; 7] = ["bookmark", "event", "gone", "list", "order", "page", "watch"];

/// Settings that an informer has: selectors, and a first list that is streamed.
const CONFIGURED: &str = "--assume-configured=labels,fields,initial_list";

/// Scenarios that pass at least: fewer show that nothing was judged.
const PASSED_MIN: usize = 25;

/// A failure that is none of ours.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Known {
    scenario: String,
    outcome: String,
    reason: String,
}

#[test]
fn client_go_fails_what_is_wrong_with_it_alone() {
    let Some(informer) = toolchain::or_skip(toolchain::go("informer")) else {
        return;
    };
    let root = toolchain::repository();
    let known = std::fs::read_to_string(root.join("e2e/clients/go/known-failures.yaml"))
        .expect("the file is part of the repository");
    let known: Vec<Known> = serde_saphyr::from_str(&known).expect("a list of known failures");
    assert!(known.iter().all(|known| !known.reason.is_empty()), "{known:?}");

    let folders = FOLDERS.map(|folder| format!("scenarios/{folder}"));
    let ran = Command::new(toolchain::fake_apiserver())
        .arg("run")
        .args(folders)
        .args([
            "--jobs",
            "8",
            "--timeout",
            "30s",
            "--format",
            "json",
            CONFIGURED,
            "--",
        ])
        .arg(informer.get_program())
        .arg("scenario")
        .current_dir(root)
        .output()
        .expect("it was just built");
    let printed = String::from_utf8_lossy(&ran.stdout);
    let lines: Vec<Value> = printed
        .lines()
        .map(|line| serde_json::from_str(line).expect("a line of JSON"))
        .collect();

    let of = |verdict: &'static str| lines.iter().filter(move |line| line["verdict"] == verdict);
    let failed: BTreeMap<&str, &Value> = of("failed")
        .filter_map(|line| Some((line["id"].as_str()?, line)))
        .collect();
    let passed: BTreeSet<&str> = of("passed").filter_map(|line| line["id"].as_str()).collect();
    assert!(passed.len() >= PASSED_MIN, "{} passed:\n{printed}", passed.len());
    for (id, line) in &failed {
        let is_known = known
            .iter()
            .any(|known| known.scenario == *id && line["outcome"] == known.outcome.as_str());
        assert!(is_known, "{id}: {}: {}", line["outcome"], line["contradictions"]);
    }
    let stale: Vec<&Known> = known
        .iter()
        .filter(|known| passed.contains(known.scenario.as_str()))
        .collect();
    assert!(stale.is_empty(), "these pass now: {stale:?}");
}

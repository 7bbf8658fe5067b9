//! client-go with its defaults, judged by `fake-apiserver run`: its failures are true defects of client-go, listed with
//! reasons in `clients/go/known-failures.yaml`.

use std::collections::BTreeSet;
use std::process::Command;

use e2e::toolchain;
use rstest::rstest;
use serde::Deserialize;
use serde_json::Value;

/// Folders that take little real time, and cover lists, pages, streaming lists, watches, bookmarks, selectors and 410.
const FOLDERS: [&str; 11] = [
    "bookmark", "decode", "event", "gone", "list", "meta", "order", "page", "sel", "watch", "wlist",
];

/// Settings that an informer has.
const CONFIGURED: &str =
    "--assume-configured=mode,object,labels,fields,timeout,list_semantic,initial_list,page_size,bookmarks";

/// Minimum number of scenarios that pass: with fewer, nothing was judged.
const PASSED_MIN: usize = 70;

/// A known failure of the client.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Known {
    scenario: String,
    outcome: String,
    reason: String,
}

/// Returns the results of `run` with an informer, one line per scenario, and the whole output.
fn played(informer: &Command, arguments: &[&str]) -> (Vec<Value>, String) {
    let ran = Command::new(toolchain::fake_apiserver())
        .arg("run")
        .args(arguments)
        .args(["--jobs", "8", "--timeout", "30s", "--format", "json", "--"])
        .arg(informer.get_program())
        .arg("scenario")
        .current_dir(toolchain::repository())
        .output()
        .expect("it was just built");
    let printed = String::from_utf8_lossy(&ran.stdout).into_owned();
    let lines = printed
        .lines()
        .map(|line| serde_json::from_str(line).expect("a line of JSON"))
        .collect();
    (lines, printed)
}

fn ids<'l>(lines: &'l [Value], verdict: &str) -> BTreeSet<&'l str> {
    let of_it = lines.iter().filter(|line| line["verdict"] == verdict);
    of_it.filter_map(|line| line["id"].as_str()).collect()
}

#[test]
fn client_go_fails_what_is_wrong_with_it_alone() {
    let Some(informer) = toolchain::or_skip(toolchain::go("informer")) else {
        return;
    };
    let known = toolchain::repository().join("e2e/clients/go/known-failures.yaml");
    let known = std::fs::read_to_string(known).expect("the file is part of the repository");
    let known: Vec<Known> = serde_saphyr::from_str(&known).expect("a list of known failures");
    assert!(known.iter().all(|known| !known.reason.is_empty()), "{known:?}");

    let folders = FOLDERS.map(|folder| format!("scenarios/{folder}"));
    let mut arguments: Vec<&str> = folders.iter().map(String::as_str).collect();
    arguments.push(CONFIGURED);
    let (lines, printed) = played(&informer, &arguments);

    let passed = ids(&lines, "passed");
    assert!(passed.len() >= PASSED_MIN, "{} passed:\n{printed}", passed.len());
    for line in lines.iter().filter(|line| line["verdict"] == "failed") {
        let id = line["id"].as_str().unwrap_or_default();
        let is_known = known
            .iter()
            .any(|known| known.scenario == id && line["outcome"] == known.outcome.as_str());
        assert!(is_known, "{id}: {}: {}", line["outcome"], line["contradictions"]);
    }
    let stale: Vec<&Known> = known
        .iter()
        .filter(|known| passed.contains(known.scenario.as_str()))
        .collect();
    assert!(stale.is_empty(), "these pass now: {stale:?}");
}

/// A controller of Deployments is judged by scenarios written for ConfigMaps.
#[test]
fn client_go_passes_scenarios_moved_to_deployments() {
    let Some(informer) = toolchain::or_skip(toolchain::go("informer")) else {
        return;
    };
    let (lines, printed) = played(
        &informer,
        &[
            "scenarios/event",
            "scenarios/watch",
            "--resource",
            "deployments.apps",
            "--namespace",
            "shop",
        ],
    );
    assert!(ids(&lines, "passed").len() >= 8, "{printed}");
    assert_eq!(ids(&lines, "failed"), BTreeSet::new(), "{printed}");
}

/// The command of docs/kubernetes-1.37.md fails a client that reads one gzip member, and passes it without compression.
#[rstest]
#[case::compressed("gzip", &["conn/a-watch-in-gzip-members-is-read-to-its-end"])]
#[case::plain("identity", &[])]
fn a_decoder_of_one_gzip_member_fails_on_1_37(#[case] encoding: &str, #[case] failed: &[&str]) {
    let client = toolchain::repository().join("e2e/clients/one-member.py");
    let ran = Command::new(toolchain::fake_apiserver())
        .args([
            "run",
            "--kubernetes-version",
            "1.37",
            "--tag",
            "minor",
            "--jobs",
            "8",
        ])
        .args(["--format", "json", "--", "python3"])
        .arg(client)
        .arg(encoding)
        .output()
        .expect("it was just built");
    let printed = String::from_utf8_lossy(&ran.stdout);
    let lines: Vec<Value> = printed
        .lines()
        .map(|line| serde_json::from_str(line).expect("a line of JSON"))
        .collect();
    let found = ids(&lines, "failed");
    assert!(failed.iter().all(|id| found.contains(id)), "{printed}");
    assert_eq!(found.is_empty(), failed.is_empty(), "{printed}");
    assert!(!ids(&lines, "passed").is_empty(), "{printed}");
}

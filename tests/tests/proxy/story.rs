//! The stories of docs/real-cluster.md: an operator misses deletions in staging. The proxy shows why, and a scenario keeps it from
//! coming back; or a snapshot shows it before the cluster is upgraded.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::api::{Api, PostParams, WatchEvent, WatchParams};
use kube_client::{Client, Config};
use serde_json::json;
use tests::programs::program;
use tests::repository;

use crate::running::{Ended, Running, UPSTREAM_TOKEN};

/// Set for an operator that is right.
const RELISTS: &str = "STORY_RELISTS";

/// Expired watches after which the operator is tired, and ends.
const EXPIRED_MAX: usize = 20;

/// The operator, when this test is started again with a kubeconfig.
#[tokio::test]
#[ignore = "a program that the story starts"]
async fn operator() {
    let relists = std::env::var_os(RELISTS).is_some();
    let mut config = Config::infer().await.unwrap();
    config.default_retry = false;
    let maps: Api<ConfigMap> = Api::namespaced(Client::try_from(config).unwrap(), "default");
    let version = async || {
        let list = maps.list(&Default::default()).await.unwrap();
        list.metadata.resource_version.unwrap()
    };
    let mut at = version().await;
    let mut expired_watches = 0;
    while expired_watches < EXPIRED_MAX {
        let watch = WatchParams::default().timeout(60);
        let Ok(events) = maps.watch(&watch, &at).await else {
            at = version().await;
            continue;
        };
        let mut events = events.boxed();
        let mut expired = false;
        while let Ok(Some(event)) = events.try_next().await {
            match event {
                WatchEvent::Added(map) | WatchEvent::Modified(map) | WatchEvent::Deleted(map) => {
                    at = map.metadata.resource_version.unwrap();
                }
                WatchEvent::Bookmark(bookmark) => at = bookmark.metadata.resource_version,
                WatchEvent::Error(status) => expired = status.code == 410,
            }
        }
        expired_watches += usize::from(expired);
        // The mistake: after 410 it watches from the same version again.
        if expired && relists {
            at = version().await;
        }
    }
}

/// Command that starts the operator.
fn operator_command(relists: bool) -> Vec<String> {
    let executable = std::env::current_exe().unwrap();
    let mut command = vec!["env".to_owned()];
    command.extend(relists.then(|| format!("{RELISTS}=1")));
    let start = [
        executable.to_str().unwrap(),
        "story::operator",
        "--exact",
        "--ignored",
    ];
    command.extend(start.map(str::to_owned));
    command
}

/// Runs the operator in staging, behind a proxy whose watches expire once.
async fn in_staging(relists: bool, more: &[&str]) -> Ended {
    let staging = Running::upstream();
    let proxy = Running::proxy(&staging, &[&["--as-me", "--strict"], more].concat());
    expire_once(&proxy, &staging, relists).await;
    proxy.stop()
}

/// Runs the operator against `server`, whose watches expire once. `truth`: the cluster behind it.
async fn expire_once(server: &Running, truth: &Running, relists: bool) {
    let command = operator_command(relists);
    let mut operator = Command::new(&command[0])
        .args(&command[1..])
        .env("KUBECONFIG", server.kubeconfig())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    server.steer_watch(&["expire", "--resource", "configmaps"]);
    // One more watch is open, and delivers.
    let truth: Api<ConfigMap> = Api::namespaced(truth.client().await, "default");
    let map = serde_json::from_value(json!({ "metadata": { "name": "after" } })).unwrap();
    truth.create(&PostParams::default(), &map).await.unwrap();
    server.steer_watch(&["bookmark", "--resource", "configmaps"]);
    operator.kill().unwrap();
    operator.wait().unwrap();
}

fn page() -> String {
    std::fs::read_to_string(repository::root().join("docs/real-cluster.md")).unwrap()
}

#[tokio::test]
async fn the_proxy_shows_the_mistake() {
    let ended = in_staging(false, &[]).await;
    assert_eq!(ended.code, Some(1), "{}", ended.log);
    assert!(ended.log.contains("INV-04"), "{}", ended.log);
    let fixed = in_staging(true, &[]).await;
    assert_eq!(fixed.code, Some(0), "{}", fixed.log);
}

/// Returns a folder of scenarios.
fn scenarios() -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("story/scenarios");
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Runs a scenario against the operator that is wrong, which fails, and the one that is right.
fn tells_them_apart(file: &Path) {
    for (relists, code) in [(false, 1), (true, 0)] {
        let run = program("fake-apiserver")
            .args(["run", file.to_str().unwrap(), "--"])
            .args(operator_command(relists))
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&run.stdout).into_owned() + &String::from_utf8_lossy(&run.stderr);
        assert_eq!(run.status.code(), Some(code), "relists: {relists}: {text}");
        assert_eq!(text.contains("INV-04"), !relists, "{text}");
    }
}

#[tokio::test]
async fn the_recording_of_the_proxy_is_a_bug_report() {
    let folder = scenarios();
    let (recording, file) = (folder.join("incident.ndjson"), folder.join("from-staging.yaml"));
    for old in [&recording, &file] {
        // Those of an earlier run.
        let _ = std::fs::remove_file(old);
    }
    let path = recording.to_str().unwrap();
    let ended = in_staging(false, &["--record", path]).await;
    assert!(ended.log.contains("INV-04"), "{}", ended.log);
    let made = program("fake-apiserver")
        .args(["scenario", "from", path, "-o", file.to_str().unwrap()])
        .output()
        .unwrap();
    let log = String::from_utf8_lossy(&made.stderr);
    assert!(made.status.success(), "{log}");
    assert!(log.contains("not in the recording: content of objects"), "{log}");
    tells_them_apart(&file);
}

#[test]
fn the_scenario_of_the_page_keeps_it_from_coming_back() {
    let page = page();
    let mut blocks = page.split("```yaml\n");
    let block = blocks.find(|block| block.trim_start().starts_with("scenario: v1"));
    let scenario = block.unwrap().split("```").next().unwrap();
    let file = scenarios().join("an-expired-watch-is-listed-again.yaml");
    std::fs::write(&file, scenario).unwrap();
    tells_them_apart(&file);
}

/// Version of Kubernetes that staging has, and the one that it gets.
const UPGRADE: [&str; 2] = ["1.36", "1.37"];

#[tokio::test]
async fn before_an_upgrade_a_snapshot_shows_the_mistake() {
    let folder = scenarios();
    let (snapshot, recording, file) = (
        folder.join("staging"),
        folder.join("upgrade.ndjson"),
        folder.join("from-an-upgrade.yaml"),
    );
    // Those of an earlier run.
    let _ = std::fs::remove_dir_all(&snapshot);
    for old in [&recording, &file] {
        let _ = std::fs::remove_file(old);
    }
    let [now, next] = UPGRADE;
    {
        let staging = Running::start(
            "serve",
            &["--tls", "--token", UPSTREAM_TOKEN, "--kubernetes-version", now],
        );
        let maps: Api<ConfigMap> = Api::namespaced(staging.client().await, "default");
        let map = serde_json::from_value(json!({ "metadata": { "name": "of-staging" } })).unwrap();
        maps.create(&PostParams::default(), &map).await.unwrap();
        let taken = program("fake-apiserver")
            .args(["snapshot", "--kubeconfig"])
            .arg(staging.kubeconfig())
            .arg("-o")
            .arg(&snapshot)
            .output()
            .unwrap();
        assert!(
            taken.status.success(),
            "{}",
            String::from_utf8_lossy(&taken.stderr)
        );
    }
    for (relists, code) in [(false, 1), (true, 0)] {
        let from = [
            "--from",
            snapshot.to_str().unwrap(),
            "--kubernetes-version",
            next,
            "--strict",
        ];
        let record = ["--record", recording.to_str().unwrap()];
        let more: &[&str] = if relists { &[] } else { &record };
        let server = Running::start("serve", &[from.as_slice(), more].concat());
        expire_once(&server, &server, relists).await;
        let ended = server.stop();
        assert_eq!(ended.code, Some(code), "relists: {relists}: {}", ended.log);
        assert_eq!(ended.log.contains("INV-04"), !relists, "{}", ended.log);
    }
    let made = program("fake-apiserver")
        .args(["scenario", "from"])
        .arg(&recording)
        .arg("-o")
        .arg(&file)
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    tells_them_apart(&file);
}

#[test]
fn the_page_names_the_options_that_there_are() {
    let help = ["proxy", "snapshot", "serve"].map(|verb| {
        let help = program("fake-apiserver").args([verb, "--help"]).output().unwrap();
        String::from_utf8_lossy(&help.stdout).into_owned()
    });
    let help = help.concat();
    let page = page();
    for option in [
        "--kubeconfig",
        "--context",
        "--as",
        "--as-group",
        "--as-me",
        "--client-kubeconfig",
        "--strict",
        "--record",
        "--record-content",
        "--redact",
        "--record-last",
        "--resource",
        "--namespace",
        "--from",
        "--kubernetes-version",
    ] {
        assert!(help.contains(option), "{option}: {help}");
        assert!(
            page.contains(&format!("`{option}")) || page.contains(&format!(" {option}")),
            "{option}"
        );
    }
}

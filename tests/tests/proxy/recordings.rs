//! Recordings of the proxy: what they never hold, and scenarios that repeat its faults.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use conformance::drive::sim;
use conformance::wire::{Loops, WireJudge};
use fake_apiserver::scenario::{self, SharedScenario};
use tests::programs::program;
use tests::reference::{Mistake, Reference};

use crate::running::{Running, UPSTREAM_TOKEN};

/// A file for a new recording.
fn file(test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("proxy-recordings");
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join(test).with_extension("ndjson");
    // That of an earlier run.
    let _ = std::fs::remove_file(&file);
    file
}

/// Makes a scenario of a recording.
fn made(file: &Path) -> (SharedScenario, String) {
    let done = program("fake-apiserver")
        .args(["scenario", "from"])
        .arg(file)
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let text = String::from_utf8(done.stdout).unwrap();
    let made = scenario::parse("made/of-a-recording", Path::new("made.yaml"), &text);
    (Arc::new(made.unwrap()), text)
}

/// Plays a scenario to the reference client, and returns what the wire judge finds.
fn found(scenario: &SharedScenario, mistake: Option<Mistake>) -> Vec<String> {
    let mut judge = WireJudge::new(Loops::One);
    // It has a runtime of another kind.
    let records = std::thread::scope(|scope| {
        let run = scope.spawn(|| sim(scenario, &Reference { mistake }, 0).records);
        run.join().unwrap()
    });
    let mut found: Vec<_> = records.iter().flat_map(|record| judge.take(record)).collect();
    let last = records.last().map(|last| last.at).unwrap_or_default();
    found.extend(judge.pass_time(last + Duration::from_secs(5)));
    found
        .into_iter()
        .map(|violation| violation.found.check.to_string())
        .collect()
}

const LIST: &str = "/api/v1/namespaces/default/configmaps";

/// A fault, and what a client does wrong that watches again at once, from the same version.
struct Fault {
    name: &'static str,
    /// Rules that are added before the watch.
    rules: &'static [&'static str],
    check: &'static str,
    mistake: Mistake,
    /// What the scenario has of it.
    has: &'static str,
}

const FAULTS: [Fault; 3] = [
    Fault {
        name: "expired-event",
        rules: &["when: {watch: next}, do: [{error: {code: 410, reason: Expired, message: too old}}, eof]"],
        check: "INV-04",
        mistake: Mistake::IgnoresGoneEvent,
        has: "{error: {code: 410, reason: Expired",
    },
    Fault {
        name: "expired-status",
        rules: &["when: {watch: next}, do: {reply: {status: 410, reason: Expired, message: too old}}"],
        check: "INV-04",
        mistake: Mistake::IgnoresGoneStatus,
        has: "{reply: {status: 410, reason: Expired",
    },
    Fault {
        name: "retry-after",
        rules: &[
            "when: {watch: next}, do: {reply: {status: 429, retry_after: \"7\", reason: TooManyRequests}}",
        ],
        check: "INV-16",
        mistake: Mistake::IgnoresRetryAfter,
        has: "retry_after: \"7\"",
    },
];

#[tokio::test]
async fn a_fault_of_the_proxy_becomes_a_scenario() {
    for fault in FAULTS {
        let file = file(fault.name);
        let upstream = Running::upstream();
        let record = ["--as-me", "--record", file.to_str().unwrap(), "--record-content"];
        let proxy = Running::proxy(&upstream, &record);
        let authorization = format!("Bearer {}", proxy.token());
        let headers = [
            ("authorization", authorization.as_str()),
            ("user-agent", "operator"),
        ];
        let (_, _, list) = proxy.send("GET", &format!("{LIST}?limit=500"), &headers).await;
        let list: serde_json::Value = serde_json::from_str(&list).unwrap();
        let version = list["metadata"]["resourceVersion"].as_str().unwrap();
        let watch =
            format!("{LIST}?watch=true&allowWatchBookmarks=true&timeoutSeconds=1&resourceVersion={version}");
        for rule in fault.rules {
            proxy.steer(&["apply", rule]);
        }
        proxy.send("GET", &watch, &headers).await;
        proxy.send("GET", &watch, &headers).await;
        let ended = proxy.stop();
        // Another loop of that name may have sent the request, so that nobody is accused of a short wait.
        assert!(
            fault.check == "INV-16" || ended.log.contains(fault.check),
            "{}: {}",
            fault.name,
            ended.log
        );
        let (scenario, text) = made(&file);
        assert!(text.contains(fault.has), "{}: {text}", fault.name);
        assert_eq!(
            found(&scenario, None),
            Vec::<String>::new(),
            "{}: {text}",
            fault.name
        );
        let wrong = found(&scenario, Some(fault.mistake));
        assert!(
            wrong.iter().any(|check| check == fault.check),
            "{}: {wrong:?}: {text}",
            fault.name
        );
    }
}

#[tokio::test]
async fn neither_credentials_nor_secrets_are_recorded() {
    const SECRET: &str = "c2VjcmV0LWRhdGE=";
    const CONTENT: &str = "content-of-a-config-map";
    let upstream = Running::upstream();
    let own = format!("Bearer {UPSTREAM_TOKEN}");
    for (test, content) in [("bare", false), ("content", true)] {
        let file = file(test);
        let mut arguments = vec!["--as-me", "--record", file.to_str().unwrap()];
        arguments.extend(content.then_some("--record-content"));
        let proxy = Running::proxy(&upstream, &arguments);
        let lent = format!("Bearer {}", proxy.token());
        let client = proxy.client().await;
        for (plural, data) in [("configmaps", CONTENT), ("secrets", SECRET)] {
            let kind = if plural == "secrets" {
                "Secret"
            } else {
                "ConfigMap"
            };
            let object = serde_json::json!({ "apiVersion": "v1", "kind": kind, "metadata": { "name": test }, "data": { "k": data } });
            let path = format!("/api/v1/namespaces/default/{plural}");
            let request = http::Request::post(&path)
                .body(object.to_string().into_bytes())
                .unwrap();
            client.request::<serde_json::Value>(request).await.unwrap();
            for authorization in [&lent, &own] {
                let headers = [("authorization", authorization.as_str())];
                for target in [path.clone(), format!("{path}?watch=true&timeoutSeconds=1")] {
                    let (_, _, body) = proxy.send("GET", &target, &headers).await;
                    assert!(body.contains(data), "{target}: {body}");
                }
            }
        }
        let token = proxy.token();
        proxy.stop();
        let text = std::fs::read_to_string(&file).unwrap();
        for secret in [SECRET, UPSTREAM_TOKEN, &token] {
            assert!(!text.contains(secret), "{secret}");
        }
        assert_eq!(text.contains(CONTENT), content);
    }
}

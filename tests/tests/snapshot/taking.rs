//! Mistakes of who takes a snapshot, and clusters that do not let it be taken: each is explained, and nothing is left behind.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::json;
use tests::programs::program;

use crate::cluster::{cluster, end, folder, kubeconfig, of_limited, snapshot};

fn fails(kubeconfig: &Path, folder: &Path, more: &[&str], code: i32, expected: &[&str]) {
    for name in ["failed", "failed.json"] {
        let output = folder.join(name);
        let (found, log) = snapshot(kubeconfig, &output, more);
        for part in expected {
            assert!(log.contains(part), "{part}: {log}");
        }
        assert_eq!(found, Some(code), "{log}");
        assert!(!output.exists(), "{log}");
    }
}

#[test]
fn resources_that_there_are_not() {
    let folder = folder("no-resource");
    let cluster = cluster(&folder, 0, &[]);
    fails(
        &cluster.kubeconfig(),
        &folder,
        &[
            "--resource",
            "deploymnets.apps",
            "--resource",
            "componentstatuses",
        ],
        2,
        &[
            "--resource deploymnets.apps: the server has no such resource; did you mean \"deployments.apps\"?",
            "--resource componentstatuses: its objects are computed, and cannot be created; leave it out",
        ],
    );
    fails(
        &cluster.kubeconfig(),
        &folder,
        &["--redact", "metadata.name"],
        2,
        &["no server can begin with an object without it"],
    );
    fails(
        &cluster.kubeconfig(),
        &folder,
        &["--redact", "a..b"],
        2,
        &["expected a path of names"],
    );
}

#[test]
fn a_cluster_that_is_not_there() {
    let folder = folder("nobody");
    let nobody = kubeconfig(&cluster(&folder, 0, &[]), &folder, &json!({}));
    fails(
        &nobody,
        &folder,
        &[],
        3,
        &[
            "no connection to https://127.0.0.1",
            "check that the cluster is up",
        ],
    );
    fails(
        Path::new("/nowhere/config"),
        &folder,
        &[],
        2,
        &["/nowhere/config", "No such file"],
    );
}

#[test]
fn credentials_that_have_expired() {
    let folder = folder("expired");
    let cluster = cluster(&folder, 0, &[]);
    let expired = kubeconfig(&cluster, &folder, &json!({ "token": "of-last-year" }));
    fails(
        &expired,
        &folder,
        &[],
        3,
        &["401 Unauthorized", "may have expired", "log in again"],
    );
    // In the middle, too.
    cluster.steer(&[
        "apply",
        "when: {list: 3}, do: {reply: {status: 401, reason: Unauthorized}}",
    ]);
    fails_once(
        &cluster.kubeconfig(),
        &folder,
        3,
        &["401 Unauthorized", "log in again"],
    );
}

fn fails_once(kubeconfig: &Path, folder: &Path, code: i32, expected: &[&str]) {
    let output = folder.join("once");
    let (found, log) = snapshot(kubeconfig, &output, &[]);
    for part in expected {
        assert!(log.contains(part), "{part}: {log}");
    }
    assert_eq!(found, Some(code), "{log}");
    assert!(!output.exists(), "{log}");
}

/// Answers the first request as an apiserver does, and every later one with HTML.
fn a_login_page_after_the_first_answer() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let answers = [
            ("application/json", r#"{"gitVersion":"v1.36.0"}"#),
            ("text/html", "<html>"),
        ];
        for (nth, mut socket) in listener.incoming().flatten().enumerate() {
            let (content_type, body) = answers[nth.min(1)];
            let _ = socket.read(&mut [0; 4096]);
            let _ = write!(
                socket,
                "HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                body.len()
            );
        }
    });
    url
}

#[test]
fn a_login_page_instead_of_an_answer() {
    let folder = folder("html");
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{ "name": "c", "cluster": { "server": a_login_page_after_the_first_answer() } }],
        "users": [{ "name": "u", "user": {} }],
        "contexts": [{ "name": "c", "context": { "cluster": "c", "user": "u" } }],
    });
    let path = folder.join("html.json");
    std::fs::write(&path, config.to_string()).unwrap();
    fails_once(
        &path,
        &folder,
        3,
        &["200 OK and text/html", "check the server of the kubeconfig"],
    );
}

#[test]
fn forbidden_resources_are_left_out_unless_all_are() {
    let folder = folder("forbidden");
    let cluster = cluster(&folder, 2, &[]);
    let limited = of_limited(&cluster, &folder);
    let output = folder.join("s.json");
    let (code, log) = snapshot(&limited, &output, &[]);
    assert_eq!(code, Some(0), "{log}");
    for expected in [
        "left out: pods (forbidden)",
        "left out: widgets.example.com (its definition cannot be read)",
    ] {
        assert!(log.contains(expected), "{expected}: {log}");
    }
    assert_eq!(end(&output)["resources"].as_array().unwrap().len(), 1, "{log}");
    assert!(log.contains("of 1 resource at"), "{log}");
    fails(
        &limited,
        &folder,
        &["--resource", "pods", "--resource", "nodes"],
        1,
        &["nothing can be read (2 × forbidden)", "the right to list"],
    );
}

#[test]
fn an_interrupted_snapshot_leaves_nothing() {
    let folder = folder("interrupted");
    let cluster = cluster(&folder, 0, &[]);
    cluster.steer(&["apply", "when: {list: 3}, do: {no_answer: stall}"]);
    for name in ["s", "s.json"] {
        let output = folder.join(name);
        let mut taking = program("fake-apiserver")
            .args(["snapshot", "--kubeconfig"])
            .arg(cluster.kubeconfig())
            .arg("-o")
            .arg(&output)
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // Its third list is never answered.
        while !output.exists() {
            assert!(taking.try_wait().unwrap().is_none(), "it ended by itself");
            std::thread::yield_now();
        }
        let process = taking.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-INT", &process])
                .status()
                .unwrap()
                .success()
        );
        assert_eq!(taking.wait().unwrap().code(), Some(130));
        assert!(!output.exists(), "{name} is incomplete");
        cluster.steer(&["reset"]);
        cluster.steer(&["apply", "when: {list: 3}, do: {no_answer: stall}"]);
    }
}

//! Mistakes of the user of a proxy, and upstreams that are none: each is explained, with what to do next.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::running::{Running, UPSTREAM_TOKEN, failing};

const OURS: &str = "the folder is there for tests to write to";

/// Writes a kubeconfig with two contexts, `staging` and `production`; the first is current.
fn kubeconfig(name: &str, cluster: &Value, user: &Value) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("proxy-{name}.json"));
    let context = |name: &str| json!({ "name": name, "context": { "cluster": "c", "user": "u" } });
    let text = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{ "name": "c", "cluster": cluster }],
        "users": [{ "name": "u", "user": user }],
        "contexts": [context("staging"), context("production")],
        "current-context": "staging",
    });
    std::fs::write(&path, text.to_string()).expect(OURS);
    path
}

fn of(upstream: &Running, name: &str, user: &Value) -> PathBuf {
    let text = std::fs::read_to_string(upstream.kubeconfig()).expect("it is there while the upstream runs");
    let theirs: Value = serde_json::from_str(&text).expect("it is JSON");
    kubeconfig(name, &theirs["clusters"][0]["cluster"], user)
}

/// Answers every connection with these bytes.
fn answering(answer: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let url = format!("http://{}", listener.local_addr().expect("it listens"));
    std::thread::spawn(move || {
        for mut socket in listener.incoming().flatten() {
            let mut head = [0; 1024];
            let _ = socket.read(&mut head);
            let _ = socket.write_all(answer.as_bytes());
        }
    });
    url
}

fn fails(path: &Path, more: &[&str], code: i32, expected: &[&str]) {
    let path = path.to_str().expect("a path");
    let (found, message) = failing(&[&["--kubeconfig", path], more].concat());
    for part in expected {
        assert!(message.contains(part), "{part}: {message}");
    }
    assert_eq!(found, Some(code), "{message}");
    assert_eq!(message.lines().count(), 1, "{message}");
}

#[test]
fn a_file_that_is_no_kubeconfig() {
    fails(
        Path::new("/nowhere/config"),
        &[],
        2,
        &["/nowhere/config", "No such file"],
    );
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("proxy-broken.yaml");
    std::fs::write(&path, "users:\n- user: {token: never-shown\n  - [").expect(OURS);
    fails(&path, &[], 2, &["no kubeconfig", "line"]);
    let (_, message) = failing(&["--kubeconfig", path.to_str().expect("a path")]);
    assert!(!message.contains("never-shown"), "{message}");
}

#[test]
fn a_context_that_does_not_exist() {
    let path = kubeconfig("contexts", &json!({ "server": "http://127.0.0.1:1" }), &json!({}));
    fails(
        &path,
        &["--context", "stagign"],
        2,
        &["no context \"stagign\"", "did you mean \"staging\"?"],
    );
    fails(
        &path,
        &["--context", "x"],
        2,
        &["no context \"x\"", "there are: staging, production"],
    );
}

#[test]
fn an_upstream_that_is_not_there() {
    let path = kubeconfig("nobody", &json!({ "server": "http://127.0.0.1:1" }), &json!({}));
    fails(
        &path,
        &[],
        3,
        &[
            "no connection to http://127.0.0.1:1",
            "refused",
            "check that the cluster is up",
        ],
    );
}

#[test]
fn an_upstream_that_is_no_apiserver() {
    let html =
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 6\r\nConnection: close\r\n\r\n<html>";
    let path = kubeconfig("html", &json!({ "server": answering(html) }), &json!({}));
    fails(
        &path,
        &[],
        3,
        &[
            "200 OK and text/html",
            "no apiserver",
            "check the server of the kubeconfig",
        ],
    );
    let login = "HTTP/1.1 401 Unauthorized\r\nContent-Type: text/html\r\nContent-Length: 6\r\nConnection: close\r\n\r\n<html>";
    let path = kubeconfig("login", &json!({ "server": answering(login) }), &json!({}));
    fails(&path, &[], 3, &["401 Unauthorized and text/html", "no apiserver"]);
}

#[test]
fn a_certificate_of_another_authority() {
    let (one, other) = (Running::upstream(), Running::upstream());
    let text = std::fs::read_to_string(one.kubeconfig()).expect("it is there while the upstream runs");
    let theirs: Value = serde_json::from_str(&text).expect("it is JSON");
    let mut cluster = theirs["clusters"][0]["cluster"].clone();
    cluster["server"] = json!(other.url());
    let path = kubeconfig("authority", &cluster, &json!({}));
    fails(&path, &[], 3, &["no connection to https://", "certificate"]);
}

#[test]
fn credentials_that_have_expired() {
    let upstream = Running::upstream();
    let path = of(&upstream, "expired", &json!({ "token": "of-last-year" }));
    fails(
        &path,
        &["--as-me"],
        3,
        &["401 Unauthorized", "may have expired", "log in again"],
    );
}

#[test]
fn an_exec_plugin_that_fails_shows_no_output() {
    let upstream = Running::upstream();
    let plugin = |command: &str, arguments: &[&str]| {
        json!({ "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": command,
            "args": arguments,
            "interactiveMode": "Never",
        }})
    };
    let path = of(
        &upstream,
        "failing",
        &plugin("sh", &["-c", "echo never-shown; exit 3"]),
    );
    fails(
        &path,
        &["--as-me"],
        3,
        &["exec plugin failed with exit status: 3", "log in again"],
    );
    let (_, message) = failing(&["--as-me", "--kubeconfig", path.to_str().expect("a path")]);
    assert!(!message.contains("never-shown"), "{message}");
    let path = of(&upstream, "missing", &plugin("no-such-plugin", &[]));
    fails(
        &path,
        &["--as-me"],
        3,
        &["exec plugin does not start", "No such file"],
    );
}

#[tokio::test]
async fn credentials_of_every_kind_are_used() {
    let upstream = Running::upstream();
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("proxy-token");
    std::fs::write(&file, UPSTREAM_TOKEN).expect(OURS);
    let script = format!(
        r#"printf '{{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{{"token":"{UPSTREAM_TOKEN}"}}}}'"#
    );
    let plugin = json!({ "exec": {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "sh",
        "args": ["-c", script],
        "interactiveMode": "Never",
    }});
    for (name, user) in [
        ("token", json!({ "token": UPSTREAM_TOKEN })),
        ("token-file", json!({ "tokenFile": file })),
        ("exec", plugin),
    ] {
        let path = of(&upstream, name, &user);
        let proxy = Running::proxy_of(&path, &["--as-me"]);
        let token = format!("Bearer {}", proxy.token());
        let (status, _, text) = proxy
            .send("GET", "/api/v1/secrets", &[("authorization", &token)])
            .await;
        assert_eq!(status, 200, "{name}: {text}");
    }
}

#[tokio::test]
async fn an_upstream_that_goes_away_is_explained_to_clients() {
    let upstream = Running::upstream();
    let proxy = Running::proxy(&upstream, &["--as-me"]);
    upstream.stop();
    let token = format!("Bearer {}", proxy.token());
    let (status, _, text) = proxy
        .send("GET", "/api/v1/secrets", &[("authorization", &token)])
        .await;
    assert_eq!(status, 503);
    assert!(
        text.contains("no response of the upstream") && text.contains("check that the cluster is up"),
        "{text}"
    );
    let trace = proxy.steer(&["trace"]);
    assert!(trace.contains("no response of the upstream"), "{trace}");
}

#[test]
fn a_rule_that_an_upstream_cannot_do() {
    let upstream = Running::upstream();
    let proxy = Running::proxy(&upstream, &["--as-me"]);
    let refused = proxy.ctl(&["compact"]);
    let message = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(1), "{message}");
    assert!(
        message.contains("only the upstream's etcd can be compacted"),
        "{message}"
    );
    assert!(message.contains("ctl expire"), "{message}");
}

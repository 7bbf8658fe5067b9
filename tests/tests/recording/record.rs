//! What a recording holds, and what it never does.

use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Output, Stdio};

use serde_json::Value;
use tests::exchange::exchange;
use tests::programs::program;

/// Texts that are secret in these tests.
const TOKEN: &str = "token-that-nobody-may-read";
const SECRET: &str = "c2VjcmV0LWRhdGE=";
const CONTENT: &str = "content-of-a-config-map";
const NOTE: &str = "content-of-an-annotation";

const OBJECTS: &str = r#"
{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default", "annotations": {"note": "content-of-an-annotation"}},
 "data": {"k": "content-of-a-config-map"}}
---
{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "default", "annotations": {"last": "c2VjcmV0LWRhdGE="}},
 "data": {"k": "c2VjcmV0LWRhdGE="}}
"#;

/// A new folder for one test.
pub(crate) fn folder(test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("recording")
        .join(test);
    // The folder of an earlier run.
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// A server that records.
struct Serving {
    child: Child,
    url: String,
}

impl Serving {
    fn start(folder: &Path, arguments: &[&str]) -> Self {
        let objects = folder.join("objects.yaml");
        std::fs::write(&objects, OBJECTS).unwrap();
        let mut child = program("fake-apiserver")
            .args(["serve", "--announce", "json", "--exit-with-stdin", "--objects"])
            .arg(objects)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap())
            .read_line(&mut line)
            .unwrap();
        let announced: Value = serde_json::from_str(&line).unwrap_or_default();
        let url = announced["server"].as_str().map(str::to_owned);
        let Some(url) = url else {
            let mut log = String::new();
            child.stderr.take().unwrap().read_to_string(&mut log).unwrap();
            panic!("{arguments:?}: {log}");
        };
        Self { child, url }
    }

    /// Sends a request, and returns its whole response.
    fn get(&self, target: &str) -> String {
        let request = format!(
            "GET {target} HTTP/1.1\r\nHost: localhost\r\nUser-Agent: curl\r\nAuthorization: Bearer {TOKEN}\r\nConnection: close\r\n\r\n"
        );
        exchange(self.url.trim_start_matches("http://"), &request)
    }

    fn stop(mut self) -> (Option<i32>, String) {
        drop(self.child.stdin.take());
        let mut log = String::new();
        self.child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut log)
            .unwrap();
        (self.child.wait().unwrap().code(), log)
    }
}

/// Serves objects to a client that lists and watches everything, and returns the recording.
fn recorded(test: &str, arguments: &[&str]) -> String {
    let folder = folder(test);
    let file = folder.join("recording.ndjson");
    let token = ["--token", TOKEN];
    let record = ["--record", file.to_str().unwrap()];
    let serving = Serving::start(&folder, &[token.as_slice(), &record, arguments].concat());
    for resource in ["configmaps", "secrets"] {
        let list = format!("/api/v1/namespaces/default/{resource}");
        assert!(serving.get(&list).contains("resourceVersion"));
        serving.get(&format!("{list}?watch=true&timeoutSeconds=1"));
        serving.get(&format!("{list}/s"));
    }
    let (code, log) = serving.stop();
    assert_eq!(code, Some(0), "{log}");
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    std::fs::read_to_string(&file).unwrap()
}

#[test]
fn a_recording_has_neither_content_nor_credentials() {
    let text = recorded("bare", &[]);
    for secret in [TOKEN, SECRET, CONTENT, NOTE] {
        assert!(!text.contains(secret), "{secret}");
    }
    assert!(text.contains("default/a"), "names and versions are recorded");
}

#[test]
fn a_secret_is_never_recorded_and_named_fields_are_left_out() {
    let text = recorded("content", &["--record-content"]);
    assert!(text.contains(CONTENT) && text.contains(NOTE));
    assert!(!text.contains(SECRET) && !text.contains(TOKEN));
    let text = recorded(
        "redacted",
        &[
            "--record-content",
            "--redact",
            "metadata.annotations",
            "--redact",
            "data",
        ],
    );
    for secret in [TOKEN, SECRET, CONTENT, NOTE] {
        assert!(!text.contains(secret), "{secret}");
    }
}

#[test]
fn a_file_that_exists_is_not_recorded_over() {
    let folder = folder("taken");
    let file = folder.join("taken.ndjson");
    std::fs::write(&file, "kept").unwrap();
    for more in [&[][..], &["--record-last", "1MiB"]] {
        let done = program("fake-apiserver")
            .args(["serve", "--record", file.to_str().unwrap()])
            .args(more)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert_eq!(done.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&done.stderr).contains("exists, and is never overwritten"));
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "kept");
}

#[test]
fn a_ring_is_kept_when_something_is_wrong() {
    const SIZE: u64 = 20_000;
    let folder = folder("ring");
    let file = folder.join("ring.ndjson");
    let arguments = ["--record", file.to_str().unwrap(), "--record-last", "20kB"];
    let list = "/api/v1/namespaces/default/configmaps";
    let right = Serving::start(&folder, &arguments);
    right.get(list);
    let (code, log) = right.stop();
    assert_eq!(code, Some(0), "{log}");
    assert!(!file.exists(), "nothing was wrong");

    let wrong = Serving::start(&folder, &arguments);
    for _ in 0..200 {
        wrong.get("/version");
    }
    wrong.get(list);
    // A version that no server sent.
    wrong.get(&format!("{list}?watch=true&timeoutSeconds=1&resourceVersion=7"));
    for _ in 0..200 {
        wrong.get("/version");
    }
    let (_, log) = wrong.stop();
    assert!(log.contains("recorded what led to the violation"), "{log}");
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(
        text.contains("resourceVersion\",\"7"),
        "the request that is wrong"
    );
    assert!(
        (SIZE..2 * SIZE + 1_000).contains(&(text.len() as u64)),
        "{} bytes",
        text.len()
    );
    let (code, scenario, log) = made(&file, &["--around", "INV-01"]);
    assert_eq!(code, Some(0), "{log}");
    assert!(
        scenario.contains("records, before the first or in between"),
        "{scenario}"
    );
}

/// Runs `scenario from`.
pub(crate) fn made(file: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = program("fake-apiserver")
        .args(["scenario", "from"])
        .arg(file)
        .args(arguments)
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

#[test]
fn what_is_no_recording_is_an_error_that_shows_what_was_read() {
    let folder = folder("mistakes");
    let file = folder.join("file");
    let record = r#"{"seq":0,"at":{"secs":0,"nanos":0},"what":"refused"}"#;
    for (text, code, expected) in [
        (String::new(), 2, "is empty: nothing was recorded"),
        ("<!DOCTYPE html><html>".to_owned(), 2, ":1: no record, but HTML"),
        (
            format!("{record}\nnoise\n{record}\n"),
            2,
            ":2: no record, but no JSON: \"noise\"",
        ),
        (format!("{record}\n"), 4, "has no list and no watch (1 records)"),
        (
            format!("{record}\n{{\"seq\":1,\"at"),
            4,
            "its last line is not complete",
        ),
    ] {
        std::fs::write(&file, &text).unwrap();
        let (status, _, log) = made(&file, &[]);
        assert_eq!(status, Some(code), "{text}: {log}");
        assert!(log.contains(expected), "{text}: {log}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text, "it is only read");
    }
}

#[test]
fn nothing_of_a_recording_becomes_a_line_of_the_scenario() {
    let folder = folder("lines");
    let file = folder.join("recording.ndjson");
    let evil = "x\\nsteps:\\n  - restart\\n# \\u2028\\u001b[2J";
    let query = format!(r#"[["limit","500"],["labelSelector","{evil}"]]"#);
    let lines = [
        format!(r#"{{"recording":"v1","program":"{evil}","command":"{evil}","kubernetes":"{evil}","origin":"upstream","content":false,"redacted":["{evil}"]}}"#),
        format!(
            r#"{{"seq":0,"at":{{"secs":0,"nanos":0}},"what":{{"request":{{"stream":1,"conn":1,"verb":"list","method":"GET","path":"/api/v1/configmaps","query":{query},"accept":null,"user_agent":"{evil}","violations":[]}}}}}}"#
        ),
        r#"{"seq":1,"at":{"secs":0,"nanos":0},"what":{"head":{"stream":1,"status":503,"retry_after":null,"scripted":false}}}"#.to_owned(),
        format!(
            r#"{{"seq":2,"at":{{"secs":0,"nanos":0}},"what":{{"body":{{"stream":1,"bytes":9,"reason":"{evil}","message":"{evil}","continue_token":null}}}}}}"#
        ),
    ];
    std::fs::write(&file, lines.join("\n") + "\n").unwrap();
    let (_, scenario, log) = made(&file, &[]);
    assert!(!log.contains('\u{1b}') && !scenario.contains('\u{1b}'), "{log}");
    assert!(
        !scenario
            .lines()
            .any(|line| line.trim_start().starts_with("- restart")),
        "{scenario}"
    );
}

const AUDIT: &str = r#"{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"RequestResponse","auditID":"1","stage":"ResponseComplete","requestURI":"/api/v1/namespaces/shop/configmaps?limit=500","verb":"list","user":{"username":"op"},"userAgent":"operator/v1","objectRef":{"resource":"configmaps","namespace":"shop","apiVersion":"v1"},"responseStatus":{"code":200},"responseObject":{"kind":"ConfigMapList","metadata":{"resourceVersion":"50"},"items":[{"metadata":{"name":"a","namespace":"shop","uid":"u","resourceVersion":"40"}}]},"requestReceivedTimestamp":"2026-02-28T23:59:58.000000Z","stageTimestamp":"2026-02-28T23:59:58.100000Z"}
{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":"2","stage":"ResponseStarted","requestURI":"/api/v1/namespaces/shop/configmaps?watch=true&resourceVersion=50&allowWatchBookmarks=true","verb":"watch","user":{"username":"op"},"userAgent":"operator/v1","objectRef":{"resource":"configmaps","namespace":"shop","apiVersion":"v1"},"responseStatus":{"code":200},"requestReceivedTimestamp":"2026-02-28T23:59:59.000000Z","stageTimestamp":"2026-02-28T23:59:59.000000Z"}
{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":"3","stage":"ResponseComplete","requestURI":"/api/v1/namespaces/shop/configmaps/a","verb":"delete","user":{"username":"you"},"userAgent":"kubectl/v1","objectRef":{"resource":"configmaps","namespace":"shop","name":"a","apiVersion":"v1"},"responseStatus":{"code":200},"requestReceivedTimestamp":"2026-03-01T00:00:02.000000Z","stageTimestamp":"2026-03-01T00:00:02.000000Z"}
{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":"2","stage":"ResponseComplete","requestURI":"/api/v1/namespaces/shop/configmaps?watch=true&resourceVersion=50&allowWatchBookmarks=true","verb":"watch","user":{"username":"op"},"userAgent":"operator/v1","objectRef":{"resource":"configmaps","namespace":"shop","apiVersion":"v1"},"responseStatus":{"code":200},"requestReceivedTimestamp":"2026-02-28T23:59:59.000000Z","stageTimestamp":"2026-03-01T00:00:03.000000Z"}
{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":"4","stage":"ResponseComplete","requestURI":"/api/v1/namespaces/shop/configmaps?watch=true&resourceVersion=50&allowWatchBookmarks=true","verb":"watch","user":{"username":"op"},"userAgent":"operator/v1","objectRef":{"resource":"configmaps","namespace":"shop","apiVersion":"v1"},"responseStatus":{"metadata":{},"code":429,"reason":"TooManyRequests"},"requestReceivedTimestamp":"2026-03-01T00:00:03.500000Z","stageTimestamp":"2026-03-01T00:00:03.500000Z"}
"#;

#[test]
fn an_audit_log_becomes_a_scenario_that_names_what_it_cannot_show() {
    let folder = folder("audit");
    let file = folder.join("audit.log");
    // The log is cut in its last line.
    std::fs::write(&file, format!("{AUDIT}{{\"kind\":\"Event\",\"apiV")).unwrap();
    let (code, scenario, log) = made(&file, &[]);
    assert_eq!(code, Some(0), "{log}");
    insta::assert_snapshot!("audit", scenario);
}

//! Controls a running server: by `ctl` from another shell, and over its control API as from any language.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::TcpStream;
use std::process::{Child, Command, Output, Stdio};

use rstest::rstest;
use serde_json::{Value, json};
use tests::exchange::{self, exchange};
use tests::programs::program;

/// A running `fake-apiserver serve`, stopped at the end of the test.
struct Serving {
    child: Child,
    server: String,
    control: String,
}

const TOKEN: &str = "known-to-the-test";

impl Serving {
    fn start(arguments: &[&str]) -> Self {
        let mut child = program("fake-apiserver")
            .args(["serve", "--bare", "--quiet", "--control-token", TOKEN])
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut message = String::new();
        let mut errors = BufReader::new(child.stderr.take().unwrap());
        while !message.contains("control API at") {
            message.clear();
            assert!(
                errors.read_line(&mut message).unwrap() > 0,
                "it ended before it served"
            );
        }
        let address = |after: &str| {
            let rest = message.split(after).nth(1).unwrap();
            let end = rest.find([',', ';']).unwrap();
            rest[..end].trim().to_owned()
        };
        // Drains the pipe, so that later output does not fill it.
        std::thread::spawn(move || std::io::copy(&mut errors, &mut std::io::sink()));
        Self {
            child,
            server: address(" at http://"),
            control: address("control API at http://"),
        }
    }

    fn ctl(&self, arguments: &[&str]) -> Output {
        program("fake-apiserver")
            .arg("ctl")
            .args(arguments)
            .env("FAKE_APISERVER_CONTROL", format!("http://{}", self.control))
            .env("FAKE_APISERVER_CONTROL_TOKEN", TOKEN)
            .output()
            .unwrap()
    }

    /// Runs `ctl` successfully; returns its output.
    fn steer(&self, arguments: &[&str]) -> String {
        let done = self.ctl(arguments);
        assert!(done.status.success(), "{arguments:?}: {}", text(&done.stderr));
        text(&done.stdout)
    }

    /// Sends a control request like a test in another language.
    fn control(&self, method: &str, path: &str, body: &str) -> (u16, Value) {
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            body.len()
        );
        let answer = exchange(&self.control, &format!("{head}{body}"));
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, serde_json::from_str(body).unwrap_or(Value::Null))
    }

    fn get(&self, path: &str) -> String {
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\nUser-Agent: tester/1\r\nConnection: close\r\n\r\n",
            self.server
        );
        exchange(&self.server, &request)
    }

    /// Opens a watch; returns its lines once the response head arrived.
    fn watch(&self, path: &str) -> impl Iterator<Item = String> + use<> {
        exchange::watch(&self.server, path)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // It may have exited already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[test]
fn a_rule_meets_the_next_requests_and_is_forgotten() {
    let serving = Serving::start(&[]);
    let made = serving.steer(&[
        "fail",
        "429",
        "--retry-after",
        "7",
        "--times",
        "2",
        "--resource",
        "pods",
        "--user-agent",
        "tester",
    ]);
    assert_eq!(
        made,
        "rule 1 active: reply on the next request; matched 0, 2 left\n"
    );
    assert!(
        serving.get("/api/v1/configmaps").starts_with("HTTP/1.1 200"),
        "another resource"
    );
    for _ in 0..2 {
        let refused = serving.get("/api/v1/pods");
        assert!(refused.starts_with("HTTP/1.1 429"), "{refused}");
        assert!(
            refused.to_lowercase().contains("\r\nretry-after: 7\r\n"),
            "{refused}"
        );
    }
    assert!(
        serving.get("/api/v1/pods").starts_with("HTTP/1.1 200"),
        "the rule is used up"
    );
    assert_eq!(serving.steer(&["rules"]), "no rules\n");
    let trace = serving.steer(&["trace"]);
    assert!(trace.contains("script . rule 1 on #2: reply"), "{trace}");
}

#[test]
fn a_rule_matches_a_verb_a_name_and_a_subresource() {
    let serving = Serving::start(&[]);
    let fail = [
        "fail",
        "418",
        "--verb",
        "get",
        "--resource",
        "namespaces",
        "--name",
        "default",
    ];
    serving.steer(&fail);
    for other in ["/api/v1/namespaces", "/api/v1/namespaces/kube-system"] {
        assert!(serving.get(other).starts_with("HTTP/1.1 200"), "{other}");
    }
    assert!(
        serving
            .get("/api/v1/namespaces/default")
            .starts_with("HTTP/1.1 418")
    );
    serving.steer(&[&fail[..], &["--subresource", "status"]].concat());
    assert!(
        serving
            .get("/api/v1/namespaces/default")
            .starts_with("HTTP/1.1 200")
    );
    assert!(
        serving
            .get("/api/v1/namespaces/default/status")
            .starts_with("HTTP/1.1 418")
    );
}

#[test]
fn actions_at_once_reach_the_matching_watches() {
    let serving = Serving::start(&[]);
    let mut events =
        serving.watch("/api/v1/configmaps?watch=1&resourceVersion=1004&allowWatchBookmarks=true");
    let _pods = serving.watch("/api/v1/pods?watch=1&resourceVersion=1004");
    let streams = serving.steer(&["streams"]);
    assert!(
        streams.contains("#1 c1 primary WATCH /api/v1/configmaps?watch=1"),
        "{streams}"
    );
    assert!(streams.contains("by watcher/1"), "{streams}");
    assert_eq!(
        serving.steer(&["bookmark", "--resource", "configmaps"]),
        "done: bookmark on #1\n"
    );
    let bookmark: Value = serde_json::from_str(&events.next().unwrap()).unwrap();
    assert_eq!(bookmark["type"], "BOOKMARK");
    assert_eq!(
        serving.steer(&["expire", "--stream", "1"]),
        "done: error, end on #1\n"
    );
    let expired: Value = serde_json::from_str(&events.next().unwrap()).unwrap();
    assert_eq!(
        (&expired["type"], &expired["object"]["code"]),
        (&json!("ERROR"), &json!(410))
    );
    let waited = serving.steer(&["wait", "from: {stream: 1}, closed: eof, since: 0"]);
    assert!(waited.ends_with("server < #1 eof\n"), "{waited}");
}

#[test]
fn a_test_waits_for_what_was_sent_and_not_for_time() {
    let serving = Serving::start(&[]);
    let _events = serving.watch("/api/v1/configmaps?watch=1&resourceVersion=1004");
    let (status, made) = serving.control(
        "POST",
        "/v1/rules",
        r#"{"do": {"apply": {"configmap": {"name": "a"}}}}"#,
    );
    assert_eq!((status, &made["done"]), (200, &json!("apply")));
    let (status, met) = serving.control(
        "POST",
        "/v1/wait",
        r#"{"sent": {"type": "ADDED", "name": "a", "rv": "1005"}}"#,
    );
    assert_eq!(status, 200, "{met}");
    assert_eq!(met["stream"], json!(1));
    let (status, late) = serving.control(
        "POST",
        "/v1/wait",
        r#"{"when": {"watch": "next"}, "timeout": "1ms"}"#,
    );
    assert_eq!(status, 504);
    let message = late["error"].as_str().unwrap();
    assert!(
        message.starts_with("waited 1 ms for the next WATCH; the last request was: "),
        "{message}"
    );
}

#[test]
fn a_frozen_cache_is_stale_until_it_thaws() {
    let serving = Serving::start(&[]);
    serving.steer(&["freeze", "--resource", "configmaps"]);
    serving.steer(&["apply", "apply: {configmap: {name: late}}"]);
    let stale = serving.get("/api/v1/configmaps?resourceVersion=0");
    assert!(!stale.contains("late"), "{stale}");
    serving.steer(&["thaw"]);
    let fresh = serving.get("/api/v1/configmaps?resourceVersion=0");
    assert!(fresh.contains("late"), "{fresh}");
}

#[test]
fn a_lagging_secondary_shows_an_older_state() {
    let serving = Serving::start(&["--secondary"]);
    assert_eq!(
        serving.steer(&["lag", "1h", "--replica", "secondary"]),
        "done: lag_watch_cache\n"
    );
    serving.steer(&["apply", "apply: {configmap: {name: late}}"]);
    let (_, about) = serving.control("GET", "/v1", "");
    let secondary = about["servers"][1]["url"].as_str().unwrap();
    let at = |server: &str, path: &str| {
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        exchange(server.trim_start_matches("http://"), &request)
    };
    let cached = "/api/v1/configmaps?resourceVersion=0";
    assert!(at(&serving.server, cached).contains("late"));
    let past = at(secondary, cached);
    assert!(past.contains("200 OK") && !past.contains("late"), "{past}");
    serving.steer(&["thaw", "--replica", "secondary"]);
    assert!(at(secondary, cached).contains("late"));
}

#[test]
fn a_reset_brings_back_the_objects_the_server_began_with() {
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("beginning.yaml");
    let object = |name: &str| format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n");
    std::fs::write(&file, format!("{}---\n{}", object("kept"), object("lost"))).unwrap();
    let serving = Serving::start(&["--objects", file.to_str().unwrap()]);
    let (_, about) = serving.control("GET", "/v1", "");
    let began = about["resourceVersion"].as_str().unwrap();
    let mut events = serving.watch(&format!("/api/v1/configmaps?watch=1&resourceVersion={began}"));
    serving.steer(&[
        "apply",
        "do: [{apply: {configmap: {name: new}}}, {delete: {name: lost, resource: configmaps}}]",
    ]);
    serving.steer(&["fail", "500", "--times", "9"]);
    serving.steer(&["reset"]);
    let received: Vec<String> = events
        .by_ref()
        .take(4)
        .map(|line| {
            let event: Value = serde_json::from_str(&line).unwrap();
            let word = event["type"].as_str().unwrap();
            format!("{word} {}", event["object"]["metadata"]["name"].as_str().unwrap())
        })
        .collect();
    assert_eq!(
        received,
        ["ADDED new", "DELETED lost", "DELETED new", "ADDED lost"]
    );
    let list = serving.get("/api/v1/configmaps");
    assert!(list.starts_with("HTTP/1.1 200"), "the rule is gone: {list}");
    assert!(
        list.contains("lost") && list.contains("kept") && !list.contains("new"),
        "{list}"
    );
}

#[rstest]
#[case::no_yaml("POST", "/v1/rules", "{", 400, "")]
#[case::a_wrong_word(
    "POST",
    "/v1/rules",
    "when: {lst: next}\ndo: compact",
    400,
    "1:8: `when` has no key `lst`"
)]
#[case::nothing_done("POST", "/v1/rules", "when: {list: next}", 400, "1:1: this rule does nothing")]
#[case::what_needs_order(
    "POST",
    "/v1/rules",
    "when: {after: 5s}\ndo: compact",
    400,
    "only requests can be waited for"
)]
#[case::an_unserved_resource(
    "POST",
    "/v1/rules",
    "from: {resource: foos}\ndo: freeze_watch_cache",
    409,
    "no foos is served"
)]
#[case::nobody_there("POST", "/v1/rules", "do: rst", 409, "no open watch matches: end needs one")]
#[case::no_secondary(
    "POST",
    "/v1/rules",
    "from: {replica: secondary}\ndo: freeze_watch_cache",
    409,
    "there is no secondary replica"
)]
#[case::no_such_rule("DELETE", "/v1/rules/7", "", 404, "rule not found: 7")]
#[case::no_such_path("GET", "/v1/nothing", "", 404, "there is no /v1/nothing")]
#[case::another_method(
    "PUT",
    "/v1/rules",
    "",
    405,
    "method PUT is not allowed; allowed: GET, POST, DELETE"
)]
#[case::a_wait_for_nothing("POST", "/v1/wait", "timeout: 1s", 400, "1:1: this waits for nothing")]
fn invalid_input_gets_a_specific_error(
    #[case] method: &str,
    #[case] path: &str,
    #[case] body: &str,
    #[case] code: u16,
    #[case] message: &str,
) {
    let serving = Serving::start(&[]);
    let (status, answer) = serving.control(method, path, body);
    let error = answer["error"].as_str().unwrap_or_default();
    assert_eq!(status, code, "{answer}");
    assert!(error.contains(message), "no {message:?} in {error:?}");
}

#[test]
fn nobody_steers_without_the_token() {
    let serving = Serving::start(&[]);
    let answer = exchange(
        &serving.control,
        "GET /v1 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    );
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    let described = exchange(
        &serving.control,
        "GET /v1/openapi.json HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    );
    assert!(described.starts_with("HTTP/1.1 200"), "{described}");
}

#[test]
fn every_error_in_the_objects_has_a_position() {
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("objects.yaml");
    let wrong = "kind: ConfigMap\nmetadata: {name: a\n---\napiVersion: v1\nkind: Nothing\n---\napiVersion: v1\nkind: Pod\n";
    std::fs::write(&file, wrong).unwrap();
    let ended = program("fake-apiserver")
        .arg("serve")
        .arg("--objects")
        .arg(&file)
        .output()
        .unwrap();
    assert_eq!(ended.status.code(), Some(2));
    let message = text(&ended.stderr).replace(&file.display().to_string(), "objects.yaml");
    insta::assert_snapshot!(message, @r#"
    objects.yaml:2:11: unclosed bracket '{' at line 2, column 11
    objects.yaml:4:1: "Nothing" of "v1" is not served
    objects.yaml:7:1: a Pod has no metadata.name
    3 mistakes; the server was not started
    "#);
}

#[test]
fn a_server_leaves_nothing_behind() {
    let runtime = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("runtime");
    let kubeconfig = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("kubeconfig");
    let mut child = program("fake-apiserver")
        .args(["serve", "--kubeconfig"])
        .arg(&kubeconfig)
        .env("XDG_RUNTIME_DIR", &runtime)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert_eq!(line, format!("export KUBECONFIG={}\n", kubeconfig.display()));
    let mut ctl = program("fake-apiserver");
    let found = ctl
        .args(["ctl", "status"])
        .env("XDG_RUNTIME_DIR", &runtime)
        .output()
        .unwrap();
    assert!(
        text(&found.stdout).contains("as Kubernetes 1.37"),
        "{}",
        text(&found.stderr)
    );
    let killed = Command::new("kill")
        .args(["-TERM", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(killed.success());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(!kubeconfig.exists());
    assert_eq!(
        std::fs::read_dir(runtime.join("fake-apiserver")).unwrap().count(),
        0
    );
    let gone = program("fake-apiserver")
        .args(["ctl", "status"])
        .env("XDG_RUNTIME_DIR", &runtime)
        .output()
        .unwrap();
    assert_eq!(gone.status.code(), Some(3));
    assert!(
        text(&gone.stderr).contains("no server is running; start one"),
        "{}",
        text(&gone.stderr)
    );
}

/// The connections of another program of this machine, which does not know the token.
#[test]
fn connections_without_the_token_do_not_keep_others_out() {
    let serving = Serving::start(&[]);
    let idle: Vec<TcpStream> = (0..300)
        .map(|_| TcpStream::connect(&serving.control).unwrap())
        .collect();
    let (status, _) = serving.control("GET", "/v1", "");
    assert_eq!(status, 200);
    // Without room for it the request would have waited until all of them were too slow to send a head.
    let is_open = |mut stream: &TcpStream| {
        stream.set_nonblocking(true).unwrap();
        stream
            .read(&mut [0])
            .is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
    };
    assert!(is_open(&idle[299]), "the newest ones stay");
    assert!(!is_open(&idle[0]), "the oldest ones leave");
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

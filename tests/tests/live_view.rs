//! Attacks on the live view and on the requests behind it: other origins, other hosts, no token, readers that do not keep up.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use rstest::rstest;
use serde_json::{Value, json};
use tests::exchange::{self, exchange};
use tests::programs::program;

const TOKEN: &str = "secret&of=the#test";

/// A running `serve`, stopped at the end of the test.
struct Serving {
    child: Child,
    server: String,
    control: String,
    errors: BufReader<std::process::ChildStderr>,
    /// The lines that it logged until it was ready.
    log: String,
}

impl Serving {
    fn start(arguments: &[&str]) -> Self {
        let mut child = program("fake-apiserver")
            .args(["serve", "--bare", "--control-token", TOKEN])
            .args(arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut errors = BufReader::new(child.stderr.take().unwrap());
        let mut log = String::new();
        let last = match arguments.contains(&"--ui") {
            true => "live view at",
            false => "control API at",
        };
        while !log.contains(last) {
            assert!(
                errors.read_line(&mut log).unwrap() > 0,
                "it ended before it served: {log}"
            );
        }
        let address = |after: &str| {
            let rest = log.split(after).nth(1).unwrap();
            rest[..rest.find([',', ';']).unwrap()].to_owned()
        };
        Self {
            server: address(" at http://"),
            control: address("control API at http://"),
            child,
            errors,
            log,
        }
    }

    /// Sends a request with these header lines to the control API; returns status and all that was sent.
    fn send(&self, method: &str, path: &str, headers: &[&str], body: &str) -> (u16, String) {
        let mut head = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        if !headers.iter().any(|header| header.starts_with("Host:")) {
            head.push_str(&format!("Host: {}\r\n", self.control));
        }
        for header in headers {
            head.push_str(&format!("{header}\r\n"));
        }
        let answer = exchange(
            &self.control,
            &format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()),
        );
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        (status, answer)
    }

    fn json(&self, method: &str, path: &str, body: &Value) -> Value {
        let token = format!("Authorization: Bearer {TOKEN}");
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        let (status, answer) = self.send(method, path, &[&token], &body);
        assert_eq!(status, 200, "{answer}");
        serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
    }

    /// Writes a ConfigMap.
    fn create(&self, name: &str) {
        let body = json!({"metadata": {"name": name}, "data": {"password": "hidden"}}).to_string();
        let request = format!(
            "POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nUser-Agent: writer/1\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let answer = exchange(&self.server, &request);
        assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    }

    /// Opens a watch, and returns its lines after the response head.
    fn watch(&self, path: &str) -> impl Iterator<Item = String> + use<> {
        exchange::watch(&self.server, path)
    }

    /// Stops it; returns what it logged.
    fn stop(mut self) -> String {
        self.child.kill().unwrap();
        let mut rest = String::new();
        self.errors.read_to_string(&mut rest).unwrap();
        format!("{}{rest}", self.log)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // It may have exited already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

const AUTHORIZED: &str = "Authorization: Bearer secret&of=the#test";
const PATHS: [(&str, &str); 9] = [
    ("GET", "/v1"),
    ("GET", "/v1/streams"),
    ("GET", "/v1/watches"),
    ("POST", "/v1/history"),
    ("POST", "/v1/rules"),
    ("GET", "/v1/trace"),
    ("GET", "/v1/trace?format=rows"),
    ("GET", "/v1/verdict"),
    ("POST", "/v1/reset"),
];

#[rstest]
#[case::no_token(&[], 401)]
#[case::wrong(&["Authorization: Bearer secret"], 401)]
#[case::longer(&["Authorization: Bearer secret&of=the#test."], 401)]
#[case::as_a_cookie(&["Cookie: token=secret&of=the#test"], 401)]
#[case::rebound(&[AUTHORIZED, "Host: evil.example"], 421)]
#[case::looks_local(&[AUTHORIZED, "Host: localhost.evil.example:80"], 421)]
#[case::other_origin(&[AUTHORIZED, "Origin: https://evil.example"], 403)]
#[case::other_port(&[AUTHORIZED, "Origin: http://127.0.0.1:1"], 403)]
#[case::sandboxed(&[AUTHORIZED, "Origin: null"], 403)]
#[case::cross_site(&[AUTHORIZED, "Sec-Fetch-Site: cross-site"], 403)]
fn only_its_own_page_with_the_token_is_answered(#[case] headers: &[&str], #[case] expected: u16) {
    let serving = Serving::start(&["--ui"]);
    for (method, path) in PATHS {
        let (status, answer) = serving.send(method, path, headers, "");
        assert_eq!(status, expected, "{method} {path}: {answer}");
        assert!(!answer.contains("access-control-"), "{answer}");
    }
}

#[rstest]
#[case::typed(&["Sec-Fetch-Site: none"], 200)]
#[case::by_a_link(&["Sec-Fetch-Site: cross-site"], 200)]
#[case::rebound(&["Host: evil.example"], 421)]
#[case::fetched_by_a_page(&["Origin: https://evil.example"], 403)]
fn the_page_is_shown_to_this_machine(#[case] headers: &[&str], #[case] expected: u16) {
    let serving = Serving::start(&["--ui"]);
    let (status, answer) = serving.send("GET", "/", headers, "");
    assert_eq!(status, expected, "{answer}");
}

#[test]
fn the_page_requests_its_own_server_only_and_is_in_no_frame() {
    let serving = Serving::start(&["--ui"]);
    let (_, page) = serving.send("GET", "/", &[], "");
    for header in [
        "default-src 'none'",
        "connect-src 'self'",
        "frame-ancestors 'none'",
        "form-action 'none'",
        "base-uri 'none'",
        "require-trusted-types-for 'script'",
        "x-frame-options: DENY",
        "x-content-type-options: nosniff",
        "referrer-policy: no-referrer",
        "cache-control: no-store",
        "cross-origin-opener-policy: same-origin",
    ] {
        assert!(page.contains(header), "{header}");
    }
    let policy = page
        .lines()
        .find(|line| line.starts_with("content-security-policy"))
        .unwrap();
    assert!(!policy.contains("unsafe"), "{policy}");
    assert!(page.len() < 400_000, "{} bytes", page.len());
    let (_, answer) = serving.send("GET", "/v1", &[AUTHORIZED], "");
    assert!(answer.contains("x-content-type-options: nosniff") && answer.contains("cache-control: no-store"));
}

#[test]
fn the_page_is_served_on_request_only() {
    let serving = Serving::start(&[]);
    assert_eq!(serving.send("GET", "/", &[], "").0, 401);
    assert_eq!(serving.send("GET", "/", &[AUTHORIZED], "").0, 404);
}

#[test]
fn the_token_is_in_the_printed_url_alone() {
    let serving = Serving::start(&["--ui"]);
    let (_, page) = serving.send("GET", "/", &[AUTHORIZED], "");
    assert!(!page.contains(TOKEN) && !page.contains("set-cookie"), "{page}");
    for (method, path) in PATHS {
        let (_, answer) = serving.send(method, path, &[AUTHORIZED], "");
        assert!(!answer.contains(TOKEN), "{method} {path}: {answer}");
    }
    let log = serving.stop();
    let escaped = "secret%26of%3Dthe%23test";
    let with: Vec<&str> = { log.lines() }
        .filter(|line| line.contains(TOKEN) || line.contains(escaped))
        .collect();
    assert!(
        matches!(with[..], [line] if line.contains("live view at http://127.0.0.1:") && line.ends_with(&format!("/#token={escaped}"))),
        "{with:?}"
    );
}

#[test]
fn watches_and_history_have_versions_and_no_content() {
    let serving = Serving::start(&[]);
    let path = "/api/v1/namespaces/default/configmaps?watch=1&resourceVersion=0";
    let mut watch = serving.watch(path);
    serving.create("web");
    watch.next().unwrap();
    // The event is in the trace before the client has it.
    serving.json(
        "POST",
        "/v1/wait",
        &json!({"sent": {"type": "ADDED", "name": "web"}, "since": 0}),
    );
    let rows = rows_until(&serving, "format=rows&follow=true&client=watcher", |row| {
        row["kind"] == "frame"
    });
    assert_eq!(rows.last().unwrap()["object"], "default/web");
    assert!(
        rows.iter()
            .all(|row| row["client"] == "watcher/1" || row.get("stream").is_none()),
        "{rows:?}"
    );
    let watches = serving.json(
        "GET",
        "/v1/watches?client=watcher&resource=configmaps",
        &Value::Null,
    );
    assert_eq!(watches["matched"], 1, "{watches}");
    let watch = &watches["watches"][0];
    assert_eq!(
        (&watch["resource"], &watch["behind"], &watch["state"]),
        (&json!("configmaps"), &json!(0), &json!("open"))
    );
    let none = serving.json("GET", "/v1/watches?client=nobody", &Value::Null);
    assert_eq!(
        (&none["matched"], &none["open"]),
        (&json!(0), &json!(1)),
        "{none}"
    );
    let history = serving.json(
        "POST",
        "/v1/history",
        &json!({"resource": "configmaps", "object": "default/web"}),
    );
    assert_eq!(history["versions"][0]["sent"], 1, "{history}");
    assert_eq!(
        history["versions"][0]["events"][0]["client"], "watcher/1",
        "{history}"
    );
    assert!(!history.to_string().contains("hidden") && !watches.to_string().contains("hidden"));
}

/// Returns the rows of a stream up to the first that `ends`.
fn rows_until(serving: &Serving, query: &str, mut ends: impl FnMut(&Value) -> bool) -> Vec<Value> {
    let mut stream = TcpStream::connect(&serving.control).unwrap();
    let request = format!("GET /v1/trace?{query} HTTP/1.0\r\n{AUTHORIZED}\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    lines.find(String::is_empty);
    let mut rows = Vec::new();
    for line in lines.filter(|line| line.starts_with('{')) {
        let row: Value = serde_json::from_str(&line).unwrap();
        let is_last = ends(&row);
        rows.push(row);
        if is_last {
            return rows;
        }
    }
    panic!("the stream ended: {rows:?}");
}

#[test]
fn what_comes_too_fast_for_a_view_is_left_out_and_counted() {
    let serving = Serving::start(&["--quiet"]);
    let first = serving.json("GET", "/v1", &Value::Null)["nextRecord"]
        .as_u64()
        .unwrap();
    for nth in 0..60 {
        serving.create(&format!("n-{nth}"));
    }
    // A rule is rare, and is not left out for writes.
    serving.json("POST", "/v1/rules", &json!({"do": "compact"}));
    let last = serving.json("GET", "/v1", &Value::Null)["nextRecord"]
        .as_u64()
        .unwrap()
        - 1;
    let query = format!("format=rows&follow=true&rate=50&since={first}");
    let seen = |row: &Value| row["seq"].as_u64();
    let mut at = None;
    let rows = rows_until(&serving, &query, |row| {
        at = seen(row).or(at);
        at == Some(last)
    });
    let left_out: u64 = rows.iter().filter_map(|row| row["leftOut"].as_u64()).sum();
    let shown = rows.iter().filter_map(seen).count() as u64;
    assert_eq!(left_out + shown, last + 1 - first, "each is shown or counted");
    assert!(shown <= 50, "{shown} at once");
    assert!(
        rows.iter().any(|row| row["label"]
            .as_str()
            .is_some_and(|label| label.contains("compacted"))),
        "{rows:?}"
    );
}

#[rstest]
#[case::rate_of_records("rate=5", "rate leaves records out")]
#[case::no_number("last=many&format=rows", "expected the number of records")]
#[case::unknown("colour=red", "unknown parameter colour=red")]
fn a_wrong_parameter_is_named(#[case] query: &str, #[case] words: &str) {
    let serving = Serving::start(&["--quiet"]);
    let (status, answer) = serving.send("GET", &format!("/v1/trace?{query}"), &[AUTHORIZED], "");
    assert_eq!(status, 400);
    assert!(answer.contains(words), "{answer}");
}

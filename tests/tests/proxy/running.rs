//! An upstream and a proxy, each a separate process, and requests to them.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::thread::JoinHandle;

use http::{HeaderMap, Request};
use http_body_util::BodyExt as _;
use kube_client::Client;
use kube_client::client::Body;
use kube_client::config::{AuthInfo, Config};
use serde_json::Value;
use tests::exchange::exchange;
use tests::programs::program;

/// Token of the upstream's administrator.
pub(crate) const UPSTREAM_TOKEN: &str = "token-of-the-upstream";

/// A running program, which ends with its standard input.
pub(crate) struct Running {
    child: Child,
    stdin: Option<ChildStdin>,
    log: Option<JoinHandle<String>>,
    announced: Value,
    output: BufReader<std::process::ChildStdout>,
}

/// What a program left when it ended.
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) verdict: Value,
    pub(crate) log: String,
}

impl Running {
    /// Starts an upstream that has authentication.
    pub(crate) fn upstream() -> Self {
        Self::start(
            "serve",
            &[
                "--tls",
                "--token",
                UPSTREAM_TOKEN,
                "--limited-token",
                "token-of-the-limited",
            ],
        )
    }

    /// Starts a proxy for it.
    pub(crate) fn proxy(upstream: &Self, arguments: &[&str]) -> Self {
        Self::proxy_of(&upstream.kubeconfig(), arguments)
    }

    /// Starts a proxy for the cluster of a kubeconfig.
    pub(crate) fn proxy_of(kubeconfig: &Path, arguments: &[&str]) -> Self {
        let of_it = ["--kubeconfig", kubeconfig.to_str().unwrap()];
        Self::start("proxy", &[of_it.as_slice(), arguments].concat())
    }

    /// Starts `serve` or `proxy`.
    pub(crate) fn start(verb: &str, arguments: &[&str]) -> Self {
        Self::start_with(verb, arguments, &[])
    }

    /// Starts a program with these variables.
    pub(crate) fn start_with(verb: &str, arguments: &[&str], variables: &[(&str, String)]) -> Self {
        let mut child = program("fake-apiserver")
            .envs(variables.iter().cloned())
            .arg(verb)
            .args(["--announce", "json", "--exit-with-stdin", "--verdict", "json"])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut errors = child.stderr.take().unwrap();
        let log = std::thread::spawn(move || {
            let mut log = String::new();
            errors.read_to_string(&mut log).unwrap();
            log
        });
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        if line.is_empty() {
            let log = log.join().unwrap();
            panic!("{verb} {arguments:?} ended before it served: {log}");
        }
        Self {
            stdin: child.stdin.take(),
            child,
            log: Some(log),
            announced: serde_json::from_str(&line).unwrap(),
            output,
        }
    }

    /// Kubeconfig for its clients.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.announced["kubeconfigs"][0].as_str().unwrap().into()
    }

    /// URL: `https://127.0.0.1:…`.
    pub(crate) fn url(&self) -> &str {
        self.announced["server"].as_str().unwrap()
    }

    /// Bearer token in its kubeconfig.
    pub(crate) fn token(&self) -> String {
        let text = std::fs::read_to_string(self.kubeconfig()).unwrap();
        let kubeconfig: Value = serde_json::from_str(&text).unwrap();
        kubeconfig["users"][0]["user"]["token"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    /// A client with its kubeconfig.
    pub(crate) async fn client(&self) -> Client {
        Client::try_from(self.config().await).unwrap()
    }

    pub(crate) async fn config(&self) -> Config {
        let mut config = tests::kubeconfig::config(&self.kubeconfig()).await;
        config.default_retry = false;
        config
    }

    /// Sends a request that trusts its certificate, and has these headers alone.
    pub(crate) async fn send(
        &self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
    ) -> (u16, HeaderMap, String) {
        let mut config = self.config().await;
        config.auth_info = AuthInfo::default();
        let client = Client::try_from(config).unwrap();
        let mut request = Request::builder().method(method).uri(target);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = client.send(request.body(Body::empty()).unwrap()).await.unwrap();
        let (head, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let text = String::from_utf8_lossy(&body).into_owned();
        (head.status.as_u16(), head.headers, text)
    }

    pub(crate) fn ctl(&self, arguments: &[&str]) -> Output {
        program("fake-apiserver")
            .arg("ctl")
            .args(arguments)
            .env(
                "FAKE_APISERVER_CONTROL",
                self.announced["control"].as_str().unwrap(),
            )
            .env(
                "FAKE_APISERVER_CONTROL_TOKEN",
                self.announced["token"].as_str().unwrap(),
            )
            .output()
            .unwrap()
    }

    /// Runs `ctl` successfully; returns its output.
    pub(crate) fn steer(&self, arguments: &[&str]) -> String {
        let done = self.ctl(arguments);
        let text = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(done.status.success(), "{arguments:?}: {text}");
        String::from_utf8_lossy(&done.stdout).into_owned()
    }

    /// Runs `ctl` successfully, once a watch is open that it can apply to.
    pub(crate) fn steer_watch(&self, arguments: &[&str]) {
        let control = self.announced["control"].as_str().unwrap();
        let token = self.announced["token"].as_str().unwrap();
        let body = r#"{"when": {"watch": "next"}, "timeout": "1s"}"#;
        let wait = format!(
            "POST /v1/wait HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        );
        for _ in 0..60 {
            let done = self.ctl(arguments);
            if done.status.success() {
                return;
            }
            let text = String::from_utf8_lossy(&done.stderr).into_owned();
            assert!(text.contains("no open watch"), "{arguments:?}: {text}");
            // The watch may have been opened meanwhile: the wait is short, and then it is tried again.
            exchange(control.trim_start_matches("http://"), &wait);
        }
        panic!("{arguments:?}: no watch is opened");
    }

    /// Ends it, and returns what it printed.
    pub(crate) fn stop(mut self) -> Ended {
        drop(self.stdin.take());
        let mut text = String::new();
        self.output.read_to_string(&mut text).unwrap();
        let code = self.child.wait().unwrap().code();
        Ended {
            code,
            verdict: serde_json::from_str(&text).unwrap_or_default(),
            log: self.log.take().unwrap().join().unwrap(),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.stdin.take());
        // It ends with its input.
        let _ = self.child.wait();
    }
}

/// Runs a proxy that has to fail, and returns its exit code and message.
pub(crate) fn failing(arguments: &[&str]) -> (Option<i32>, String) {
    failing_with(arguments, &[])
}

/// The same with these variables.
pub(crate) fn failing_with(arguments: &[&str], variables: &[(&str, String)]) -> (Option<i32>, String) {
    let done = command(arguments)
        .envs(variables.iter().cloned())
        .output()
        .unwrap();
    let message = String::from_utf8_lossy(&done.stderr).into_owned();
    (done.status.code(), message)
}

fn command(arguments: &[&str]) -> Command {
    let mut command = program("fake-apiserver");
    command.arg("proxy").args(arguments).stdin(Stdio::null());
    command
}

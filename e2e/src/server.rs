//! A running `fake-apiserver`, as a user has it: a kubeconfig, an address, and a log.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use http::Request;
use kube_client::config::Kubeconfig;
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::lines::{self, Lines};
use crate::toolchain;

/// A running server, killed on drop.
pub struct Server {
    child: Child,
    kubeconfig: PathBuf,
    printed: Lines,
    log: Lines,
    runtime: Runtime,
    /// Client for the writes of the test. Separate, so that it shares no connections with the client under test.
    writer: kube_client::Client,
    /// Index of the first line of the log after the last match.
    next: RefCell<usize>,
}

/// Transport of clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// HTTP/1.1 without TLS.
    Http,
    /// TLS, with the HTTP version negotiated.
    Tls,
}

impl Server {
    /// Starts `fake-apiserver serve`.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn serve(transport: Transport) -> Self {
        let options: &[&str] = match transport {
            Transport::Http => &[],
            Transport::Tls => &["--tls"],
        };
        Self::start("serve", options)
    }

    /// Starts a subcommand that prints `export KUBECONFIG=…` when it listens.
    ///
    /// # Panics
    ///
    /// If it does not print that.
    pub fn start(subcommand: &str, options: &[&str]) -> Self {
        Self::of_program(toolchain::fake_apiserver(), subcommand, options)
    }

    /// Starts a `fake-apiserver` that was built elsewhere.
    ///
    /// # Panics
    ///
    /// If it does not print the path of its kubeconfig.
    pub fn of_program(program: &Path, subcommand: &str, options: &[&str]) -> Self {
        let mut child = Command::new(program)
            .arg(subcommand)
            .args(options)
            .current_dir(toolchain::repository())
            .env_remove("RUST_LOG")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it was built");
        let printed = Lines::of(child.stdout.take().expect("piped above"));
        let log = Lines::of(child.stderr.take().expect("piped above"));
        let kubeconfig = printed
            .find(0, |line| {
                line.strip_prefix("export KUBECONFIG=").map(PathBuf::from)
            })
            .map(|(_, path)| path)
            .unwrap_or_else(|instead| {
                drop(child.wait());
                panic!("no kubeconfig was printed but {instead:?} and {:?}", log.since(0))
            });
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("the system gives a runtime");
        let writer = runtime.block_on(client(&kubeconfig));
        Self {
            child,
            kubeconfig,
            printed,
            log,
            runtime,
            writer,
            next: RefCell::new(0),
        }
    }

    /// Returns the path of the printed kubeconfig.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Returns the address of a server without TLS.
    ///
    /// # Panics
    ///
    /// If the kubeconfig has none.
    pub fn address(&self) -> SocketAddr {
        let file =
            Kubeconfig::read_from(&self.kubeconfig).expect("the kubeconfig that was printed can be read");
        let cluster = file.clusters.into_iter().find_map(|named| named.cluster);
        let url = cluster.and_then(|cluster| cluster.server);
        let address = url.as_deref().and_then(|url| url.split("://").nth(1));
        let address = address.and_then(|address| address.trim_end_matches('/').parse().ok());
        address.expect("the kubeconfig that was printed names a server")
    }

    /// Returns the process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends SIGTERM, and waits for the end. Returns the exit code.
    ///
    /// # Panics
    ///
    /// If the signal cannot be sent.
    pub fn stop(&mut self) -> Option<i32> {
        let signalled = Command::new("kill")
            .args(["-TERM", &self.pid().to_string()])
            .status();
        assert!(signalled.expect("kill runs").success(), "it is there");
        self.child.wait().expect("it is a child").code()
    }

    /// Returns the lines of its standard output.
    pub fn printed(&self) -> &Lines {
        &self.printed
    }

    /// Creates an object in the collection at `path`.
    ///
    /// # Panics
    ///
    /// If the server rejects it.
    pub fn create(&self, path: &str, object: &Value) -> Value {
        self.ask("POST", path, "application/json", Some(object))
    }

    /// Sends a merge patch for the object at `path`.
    ///
    /// # Panics
    ///
    /// If the server rejects it.
    pub fn merge(&self, path: &str, patch: &Value) -> Value {
        self.ask("PATCH", path, "application/merge-patch+json", Some(patch))
    }

    /// Deletes the object at `path`.
    ///
    /// # Panics
    ///
    /// If the server rejects it.
    pub fn delete(&self, path: &str) -> Value {
        self.ask("DELETE", path, "application/json", None)
    }

    /// Waits for a line of the log after the last match for which `is` returns true.
    ///
    /// # Panics
    ///
    /// If there is none in time; the message has the lines logged instead.
    pub fn expect(&self, what: &str, is: impl Fn(&str) -> bool) -> String {
        self.expect_for(lines::PATIENCE, what, is)
    }

    /// The same with another timeout.
    ///
    /// # Panics
    ///
    /// If there is none in time; the message has the lines logged instead.
    pub fn expect_for(&self, patience: Duration, what: &str, is: impl Fn(&str) -> bool) -> String {
        let from = *self.next.borrow();
        match self
            .log
            .find_for(patience, from, |line| is(line).then(|| line.to_owned()))
        {
            Ok((number, line)) => {
                *self.next.borrow_mut() = number + 1;
                line
            }
            Err(instead) => panic!("waited for {what} in the log, which has {instead:#?}"),
        }
    }

    /// Runs `fake-apiserver ctl …` for the server, as a user in another shell. Returns its output.
    ///
    /// # Panics
    ///
    /// If the command fails.
    pub fn ctl(&self, arguments: &[&str]) -> String {
        let done = self.try_ctl(arguments);
        done.unwrap_or_else(|error| panic!("ctl {}: {error}", arguments.join(" ")))
    }

    /// The same once a watch is open that the command applies to.
    ///
    /// # Panics
    ///
    /// If the command fails for another reason, or no watch is opened in a minute.
    pub fn ctl_on_watch(&self, arguments: &[&str]) {
        for _ in 0..60 {
            match self.try_ctl(arguments) {
                Ok(_) => return,
                Err(error) => assert!(error.contains("no open watch"), "ctl {arguments:?}: {error}"),
            }
            // The watch may have been opened meanwhile: the wait is short, and then it is tried again.
            drop(self.try_ctl(&["wait", "when: {watch: next}, timeout: 1s"]));
        }
        panic!("ctl {arguments:?}: no watch is opened");
    }

    /// Returns its output, or its error.
    fn try_ctl(&self, arguments: &[&str]) -> Result<String, String> {
        let output = Command::new(toolchain::fake_apiserver())
            .args(["ctl", "--pid", &self.child.id().to_string()])
            .args(arguments)
            .output()
            .expect("it was built");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if output.status.success() {
            Ok(text(&output.stdout))
        } else {
            Err(text(&output.stderr))
        }
    }

    fn ask(&self, method: &str, path: &str, content_type: &str, body: Option<&Value>) -> Value {
        let body = body.map(Value::to_string).unwrap_or_default();
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", content_type)
            .body(body.into_bytes())
            .expect("tests write their requests well");
        self.runtime
            .block_on(self.writer.request(request))
            .unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }
}

async fn client(kubeconfig: &Path) -> kube_client::Client {
    let config = tests::kubeconfig::config(kubeconfig).await;
    kube_client::Client::try_from(config).expect("the kubeconfig that was printed can be used")
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        drop(self.child.kill());
        drop(self.child.wait());
        if let Some(folder) = self.kubeconfig.parent() {
            // A killed process does not remove its files.
            drop(std::fs::remove_dir_all(folder));
        }
        if std::thread::panicking() {
            eprintln!("the server's log: {:#?}", self.log.since(0));
        }
    }
}

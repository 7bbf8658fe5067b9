//! A program against `fake-apiserver serve`, while a plan changes objects and injects faults. The judge of the server reports
//! what it accuses the program of.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use e2e::crowd::plan::{Act, Step, Write};
use e2e::crowd::record::{Accusation, SERVE};
use e2e::crowd::writer::{USER_AGENT, Writer, Written};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde::Deserialize;
use serde_json::{Value, json};

use super::scenarios::{Contradiction, accusations, last_lines};
use super::{Entrant, Settings};

/// Time for the program to send its first watch.
const START: &str = "30s";

/// Time between SIGTERM and SIGKILL: that of `fake-apiserver run`.
const GRACE: Duration = Duration::from_secs(5);

/// Time for the server to end after SIGINT.
const VERDICT: Duration = Duration::from_secs(30);

/// Time for a write while the server restarts or refuses connections.
const WRITE: Duration = Duration::from_secs(15);

/// Time between two looks at a process.
const POLL: Duration = Duration::from_millis(100);

/// Time until a program that ended is started again, which doubles each time, as a kubelet does, up to the limit.
const RESTART: Duration = Duration::from_secs(1);
const RESTART_MAX: Duration = Duration::from_secs(16);

/// Variables that would direct a program to another server.
const ELSEWHERE: [&str; 8] = [
    "KUBERNETES_SERVICE_HOST",
    "KUBERNETES_SERVICE_PORT",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
];

/// What a program did.
#[derive(Debug)]
pub(super) struct Served {
    /// Number of its lists and watches.
    pub(super) reads: u64,
    /// What it is accused of.
    pub(super) accusations: Vec<Accusation>,
    /// Number of faults, and of those that had no effect because no watch was open.
    pub(super) faults: usize,
    pub(super) without_effect: usize,
    /// How it ended by itself, each time; it was started again.
    pub(super) ended: Vec<String>,
}

/// The line that a server prints when it listens.
#[derive(Deserialize)]
struct Announced {
    control: String,
    token: String,
    kubeconfigs: Vec<PathBuf>,
}

/// Verdict of the server.
#[derive(Deserialize)]
struct Verdict {
    clients: Vec<Client>,
}

/// Verdict on a User-Agent.
#[derive(Deserialize)]
struct Client {
    client: String,
    reads: u64,
    violations: BTreeMap<String, u64>,
    contradictions: Vec<Value>,
}

/// A served apiserver, stopped on drop.
struct Server {
    child: Child,
    out: BufReader<ChildStdout>,
    announced: Announced,
}

/// The program, killed on drop with its children.
struct Program<'a> {
    entrant: &'a Entrant<'a>,
    kubeconfig: PathBuf,
    log: PathBuf,
    child: Option<Child>,
    ended: Vec<String>,
    /// When it is started again.
    again: Option<Instant>,
}

/// Whether Ctrl-C was pressed.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Stops all programs at Ctrl-C, which the terminal sends to no other process group than this one.
///
/// # Errors
///
/// The system refuses a thread or a signal handler.
pub(super) fn stop_at_ctrl_c() -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|why| format!("no runtime: {why}"))?;
    let wait = move || {
        if runtime.block_on(tokio::signal::ctrl_c()).is_ok() {
            INTERRUPTED.store(true, Ordering::Relaxed);
        }
    };
    let thread = std::thread::Builder::new().name("ctrl-c".to_owned());
    thread
        .spawn(wait)
        .map(drop)
        .map_err(|why| format!("no thread: {why}"))
}

/// Returns whether Ctrl-C was pressed.
pub(super) fn is_interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// Serves a program for the time of the plan. The output is kept in `folder`.
///
/// # Errors
///
/// The server or the program cannot be started, or the server fails.
pub(super) fn serve(settings: &Settings<'_>, entrant: &Entrant<'_>, folder: &Path) -> Result<Served, String> {
    let mut server = Server::start(settings, entrant, folder)?;
    let kubeconfig = server.announced.kubeconfigs.first().cloned().unwrap_or_default();
    let writer = Writer::of(&kubeconfig)?;
    let (before, steps): (Vec<&Step>, Vec<&Step>) = settings.steps.iter().partition(|step| step.at.is_zero());
    let (mut faults, mut without_effect) = (0, 0);
    let mut act = |step: &Step| -> Result<(), String> {
        match &step.act {
            Act::Write(write) => written(&writer, write),
            Act::Ctl(arguments) => {
                faults += 1;
                let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
                without_effect += usize::from(!server.announced.ctl(settings, &words)?);
                Ok(())
            }
        }
    };
    for step in before {
        act(step)?;
    }
    let mut program = Program::start(entrant, &kubeconfig, &folder.join("program.log"))?;
    let first = json!({"when": {"watch": 1}, "since": 0, "timeout": START}).to_string();
    // Without a watch the verdict is that there is none.
    server.announced.ctl(settings, &["wait", &first])?;
    let began = now();
    let wait_until = |at: Duration, program: &mut Program<'_>| -> Result<(), String> {
        loop {
            if is_interrupted() {
                return Err("interrupted".to_owned());
            }
            program.look()?;
            let left = at.saturating_sub(now() - began);
            if left.is_zero() {
                return Ok(());
            }
            pause(left.min(POLL));
        }
    };
    for step in steps {
        wait_until(step.at, &mut program)?;
        act(step)?;
    }
    wait_until(settings.serve_lasts, &mut program)?;
    program.stop();
    let verdict = server.stop(&folder.join("serve.log"))?;
    let kept = folder.join("verdict.json");
    std::fs::write(&kept, &verdict).map_err(|why| format!("{}: {why}", kept.display()))?;
    let (reads, accusations) = judged(&verdict)?;
    Ok(Served {
        reads,
        accusations,
        faults,
        without_effect,
        ended: std::mem::take(&mut program.ended),
    })
}

/// Sends a write until it is answered.
fn written(writer: &Writer, write: &Write) -> Result<(), String> {
    let began = now();
    loop {
        match writer.write(write)? {
            Written::Changed | Written::Unchanged => return Ok(()),
            Written::Unreachable if now() - began > WRITE => {
                return Err(format!(
                    "the server did not answer {write:?} for {} s",
                    WRITE.as_secs()
                ));
            }
            Written::Unreachable => pause(POLL),
        }
    }
}

/// Returns the lists and watches in a verdict, and its accusations.
fn judged(verdict: &str) -> Result<(u64, Vec<Accusation>), String> {
    let unreadable = |why: serde_json::Error| format!("the verdict cannot be read: {why}");
    let verdict: Verdict = serde_json::from_str(verdict).map_err(unreadable)?;
    let mut found: Vec<Contradiction> = Vec::new();
    let mut reads = 0;
    for client in verdict.clients {
        if client.client == USER_AGENT {
            if !client.violations.is_empty() {
                return Err(format!("the judge accuses {USER_AGENT}, which only writes"));
            }
            continue;
        }
        reads += client.reads;
        for contradiction in client.contradictions {
            found.push(serde_json::from_value(contradiction).map_err(unreadable)?);
        }
    }
    Ok((reads, accusations(SERVE, found)))
}

impl Announced {
    /// Runs `fake-apiserver ctl`. Returns false if the server rejected it: no watch is open, or a wait timed out.
    fn ctl(&self, settings: &Settings<'_>, arguments: &[&str]) -> Result<bool, String> {
        let output = Command::new(&settings.fake_apiserver)
            .arg("ctl")
            .args(arguments)
            .env("FAKE_APISERVER_CONTROL", &self.control)
            .env("FAKE_APISERVER_CONTROL_TOKEN", &self.token)
            .env_remove("RUST_LOG")
            .stdin(Stdio::null())
            .output()
            .map_err(|why| format!("cannot run fake-apiserver ctl: {why}"))?;
        match output.status.code() {
            Some(0) => Ok(true),
            Some(1) => Ok(false),
            Some(_) | None => Err(format!(
                "ctl {}: {}",
                arguments.join(" "),
                String::from_utf8_lossy(&output.stderr).trim()
            )),
        }
    }
}

impl Server {
    fn start(settings: &Settings<'_>, entrant: &Entrant<'_>, folder: &Path) -> Result<Self, String> {
        let log = folder.join("serve.log");
        let to_log = File::create(&log).map_err(|why| format!("{}: {why}", log.display()))?;
        let mut child = Command::new(&settings.fake_apiserver)
            .args([
                "serve",
                "--announce",
                "json",
                "--verdict",
                "json",
                "--exit-with-stdin",
            ])
            .args(["--seed", &settings.seed.to_string()])
            .args(entrant.program.served_options())
            .env_remove("RUST_LOG")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(to_log)
            .spawn()
            .map_err(|why| format!("cannot run {}: {why}", settings.fake_apiserver.display()))?;
        let Some(out) = child.stdout.take() else {
            return Err("standard output is not piped".to_owned());
        };
        let mut out = BufReader::new(out);
        let mut line = String::new();
        let _ended = out.read_line(&mut line);
        match serde_json::from_str(&line) {
            Ok(announced) => Ok(Self {
                child,
                out,
                announced,
            }),
            Err(_) => {
                let _ended = child.kill();
                let _ended = child.wait();
                Err(format!("the server did not start: {}", last_lines(&log)))
            }
        }
    }

    /// Sends SIGINT, and returns the verdict.
    fn stop(&mut self, log: &Path) -> Result<String, String> {
        if let Some(pid) = pid(&self.child) {
            // It may have ended already.
            let _ended = kill_process(pid, Signal::INT);
        }
        let mut verdict = String::new();
        self.out
            .read_to_string(&mut verdict)
            .map_err(|why| format!("no verdict: {why}"))?;
        match waited(&mut self.child, VERDICT) {
            Some(status) if status.success() => Ok(verdict),
            Some(status) => Err(format!("the server ended with {status}: {}", last_lines(log))),
            None => Err("the server did not end".to_owned()),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It ends with its standard input, and removes its files.
        drop(self.child.stdin.take());
        waited(&mut self.child, GRACE);
        // It may have ended already.
        let _ended = self.child.kill();
        let _ended = self.child.wait();
    }
}

impl<'a> Program<'a> {
    fn start(entrant: &'a Entrant<'a>, kubeconfig: &Path, log: &Path) -> Result<Self, String> {
        let mut program = Self {
            entrant,
            kubeconfig: kubeconfig.to_owned(),
            log: log.to_owned(),
            child: None,
            ended: Vec::new(),
            again: None,
        };
        program.spawn()?;
        Ok(program)
    }

    fn spawn(&mut self) -> Result<(), String> {
        let Some((name, arguments)) = self.entrant.command.split_first() else {
            return Err("`run` is empty".to_owned());
        };
        let append = || File::options().create(true).append(true).open(&self.log);
        let unwritable = |why: std::io::Error| format!("{}: {why}", self.log.display());
        let target = json!({
            "resource": "configmaps", "group": "", "version": "v1", "kind": "ConfigMap", "namespace": "default",
        });
        let mut command = Command::new(name);
        for variable in ELSEWHERE {
            command.env_remove(variable);
        }
        let child = command
            .args(arguments)
            .env("KUBECONFIG", &self.kubeconfig)
            .env("FAKE_APISERVER_TARGET", target.to_string())
            .stdin(Stdio::null())
            .stdout(append().map_err(unwritable)?)
            .stderr(append().map_err(unwritable)?)
            .process_group(0)
            .spawn();
        self.child = Some(child.map_err(|why| format!("cannot start {name}: {why}"))?);
        Ok(())
    }

    /// Starts it again if it has ended, after a delay.
    fn look(&mut self) -> Result<(), String> {
        if let Some(child) = &mut self.child
            && let Ok(Some(status)) = child.try_wait()
        {
            self.ended.push(ending(status));
            let doublings = u32::try_from(self.ended.len() - 1).unwrap_or(u32::MAX);
            let delay = RESTART.saturating_mul(2u32.saturating_pow(doublings));
            self.again = Some(now() + delay.min(RESTART_MAX));
            self.kill_group();
            self.child = None;
        }
        if self.again.is_some_and(|at| now() >= at) {
            self.again = None;
            self.spawn()?;
        }
        Ok(())
    }

    /// Sends SIGTERM, then SIGKILL.
    fn stop(&mut self) {
        if let Some(child) = &mut self.child {
            if let Some(group) = pid(child) {
                // It may have ended already.
                let _ended = kill_process_group(group, Signal::TERM);
            }
            waited(child, GRACE);
        }
        self.kill_group();
        if let Some(mut child) = self.child.take() {
            let _ended = child.wait();
        }
    }

    /// Kills it and its children.
    fn kill_group(&self) {
        if let Some(group) = self.child.as_ref().and_then(pid) {
            // An empty group is the desired state.
            let _ended = kill_process_group(group, Signal::KILL);
        }
    }
}

impl Drop for Program<'_> {
    fn drop(&mut self) {
        self.kill_group();
        if let Some(mut child) = self.child.take() {
            let _ended = child.wait();
        }
    }
}

fn pid(child: &Child) -> Option<Pid> {
    i32::try_from(child.id()).ok().and_then(Pid::from_raw)
}

fn ending(status: ExitStatus) -> String {
    match status.code() {
        Some(code) => format!("exited with code {code}"),
        None => format!("died ({status})"),
    }
}

/// Waits for the end of a process; `None` if it does not end in time.
fn waited(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let began = now();
    loop {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status);
        }
        if now() - began > limit {
            return None;
        }
        pause(POLL);
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the runner is an edge: a plan is carried out in real time"
)]
fn now() -> Instant {
    Instant::now()
}

#[expect(
    clippy::disallowed_methods,
    reason = "the runner is an edge: a plan is carried out in real time"
)]
fn pause(time: Duration) {
    std::thread::sleep(time);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_has_reads_and_accusations_of_all_clients_but_the_writer() {
        let verdict = json!({
            "outcome": "mismatch",
            "clients": [
                {"client": USER_AGENT, "reads": 0, "violations": {}, "contradictions": []},
                {"client": "a/1", "reads": 3, "violations": {"INV-16": 2}, "contradictions": [
                    {"client": "a/1", "check": "INV-16", "requirements": ["RETRY-02"], "sentence": "one", "atMs": 1},
                    {"client": "a/1", "check": "INV-16", "requirements": ["RETRY-02"], "sentence": "two", "atMs": 2},
                ]},
                {"client": "a/2", "reads": 4, "violations": {}, "contradictions": []},
            ],
        });
        let (reads, accusations) = judged(&verdict.to_string()).unwrap();
        assert_eq!(reads, 7);
        assert_eq!(accusations.len(), 1);
        assert_eq!(accusations[0].scenario, SERVE);
        assert_eq!(accusations[0].sentence, "one");
    }

    #[test]
    fn an_accused_writer_is_an_error() {
        let verdict = json!({"clients": [
            {"client": USER_AGENT, "reads": 0, "violations": {"INV-15": 1}, "contradictions": []},
        ]});
        assert!(judged(&verdict.to_string()).unwrap_err().contains(USER_AGENT));
        assert!(judged("").is_err());
    }
}

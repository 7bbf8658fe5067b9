//! The command under test as a process: started with what it needs to find the server, stopped with patience.

use std::io;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};
use tokio::process::Command;
use tokio::time::timeout;

use crate::Failure;
use crate::stage::Running;

/// Lines of what it prints that are remembered.
const LINES_KEPT: usize = 200;

/// Lines shown of them.
const LINES_SHOWN: usize = 8;

/// Where a proxy or a cluster around us would lead a client astray.
const ASTRAY: [&str; 8] = [
    "KUBERNETES_SERVICE_HOST",
    "KUBERNETES_SERVICE_PORT",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
];

/// A running command.
pub(super) struct Child {
    child: tokio::process::Child,
    group: Option<Pid>,
    printed: Arc<Mutex<Vec<String>>>,
}

/// How a command ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ended {
    status: Option<ExitStatus>,
    /// It was told to.
    told: bool,
}

impl Ended {
    /// What is wrong with that end, if anything: `ended with exit code 1`, `was killed by signal 11`.
    pub(super) fn crash(&self) -> Option<String> {
        let status = self.status.filter(|status| !self.told && !status.success())?;
        Some(match status.code() {
            Some(code) => format!("ended by itself with exit code {code}"),
            None => format!("died ({status})"),
        })
    }
}

impl Child {
    /// Starts it, in a process group of its own, so that what it starts is stopped with it.
    pub(super) fn start(
        command: &[String],
        running: &Running,
        scenario: &str,
        shows: bool,
    ) -> Result<Self, Failure> {
        let (program, arguments) = command
            .split_first()
            .ok_or_else(|| Failure::Usage("there is no command after --".to_owned()))?;
        let mut started = Command::new(program);
        started
            .args(arguments)
            .env("KUBECONFIG", running.kubeconfig())
            .env("FAKE_APISERVER_SCENARIO", scenario)
            .envs(running.control())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        for name in ASTRAY {
            started.env_remove(name);
        }
        let mut child = started.spawn().map_err(|error| {
            let is_callers = matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied
            );
            if is_callers {
                Failure::NoServer(format!("cannot start {program}: {error}"))
            } else {
                Failure::System(format!("cannot start {program}"), error)
            }
        })?;
        let printed = Arc::new(Mutex::new(Vec::new()));
        if let Some(out) = child.stdout.take() {
            tokio::spawn(listen(out, printed.clone(), shows));
        }
        if let Some(errors) = child.stderr.take() {
            tokio::spawn(listen(errors, printed.clone(), shows));
        }
        let group = child
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .and_then(Pid::from_raw);
        Ok(Self {
            child,
            group,
            printed,
        })
    }

    /// Completes when it ends by itself.
    pub(super) async fn exited(&mut self) -> Ended {
        let status = self.child.wait().await.ok();
        Ended { status, told: false }
    }

    /// SIGTERM, then SIGKILL after `grace`.
    pub(super) async fn stop(&mut self, grace: Duration) -> Ended {
        if let Ok(Some(status)) = self.child.try_wait() {
            self.signal(Signal::KILL);
            return Ended {
                status: Some(status),
                told: false,
            };
        }
        self.signal(Signal::TERM);
        let ended = timeout(grace, self.child.wait()).await;
        // What it started may have outlived it.
        self.signal(Signal::KILL);
        let status = match ended {
            Ok(status) => status.ok(),
            Err(_) => self.child.wait().await.ok(),
        };
        Ended { status, told: true }
    }

    /// The end of what it printed.
    pub(super) fn last_words(&self) -> Vec<String> {
        let printed = self.printed.lock().unwrap_or_else(PoisonError::into_inner);
        printed[printed.len().saturating_sub(LINES_SHOWN)..].to_vec()
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            // Nobody left to hear it is what is wanted.
            let _ = kill_process_group(group, signal);
        }
    }
}

async fn listen(from: impl AsyncRead + Unpin, printed: Arc<Mutex<Vec<String>>>, shows: bool) {
    let mut lines = BufReader::new(from).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        if shows {
            eprintln!("        command | {line}");
        }
        let mut printed = printed.lock().unwrap_or_else(PoisonError::into_inner);
        if printed.len() == LINES_KEPT {
            printed.remove(0);
        }
        printed.push(line);
    }
}

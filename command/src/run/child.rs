//! The command under test as a process: started with the environment to find the server, stopped with a grace period.

use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use conformance::process::{Group, Tail, only_here};
use fake_apiserver::scenario::Scenario;
use rustix::process::Signal;
use tokio::process::Command;
use tokio::time::timeout;

use super::settings;
use crate::stage::Running;
use crate::{Failure, output};

/// Maximum lines shown.
const LINES_SHOWN: usize = 8;

/// A running command.
pub(super) struct Child {
    child: tokio::process::Child,
    group: Group,
    printed: Tail,
}

/// End of a command.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ended {
    status: Option<ExitStatus>,
    /// Whether it was stopped.
    signalled: bool,
}

impl Ended {
    /// Returns whether SIGTERM itself ended it: later records were sent before.
    pub(super) fn was_stopped_at_once(&self) -> bool {
        let signal = self.status.and_then(|status| status.signal());
        self.signalled && signal == Some(Signal::TERM.as_raw())
    }

    /// Returns the error if it ended abnormally: `ended with exit code 1`, `was killed by signal 11`.
    pub(super) fn crash(&self) -> Option<String> {
        let status = self
            .status
            .filter(|status| !self.signalled && !status.success())?;
        Some(match status.code() {
            Some(code) => format!("exited with code {code}"),
            None => format!("died ({status})"),
        })
    }
}

impl Child {
    /// Starts the command in a new process group, so that its children are stopped with it.
    pub(super) fn start(
        command: &[String],
        running: &Running,
        scenario: &Scenario,
        shows: bool,
    ) -> Result<Self, Failure> {
        let (program, arguments) = command
            .split_first()
            .ok_or_else(|| Failure::Usage("missing command after --".to_owned()))?;
        let mut started = Command::new(program);
        started
            .args(arguments)
            .env("KUBECONFIG", running.kubeconfig())
            .env("FAKE_APISERVER_SCENARIO", &scenario.id)
            .env(
                "FAKE_APISERVER_CLIENT",
                settings::client(&scenario.client).to_string(),
            )
            .env(
                "FAKE_APISERVER_TARGET",
                settings::target(&scenario.target).to_string(),
            )
            .envs(running.control())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        only_here(&mut started);
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
        let mut printed = Tail::default();
        let show = move |line: &str| {
            if shows {
                output::log(&format!("        command | {line}"));
            }
        };
        if let Some(out) = child.stdout.take() {
            printed.read(out, show);
        }
        if let Some(errors) = child.stderr.take() {
            printed.read(errors, show);
        }
        Ok(Self {
            group: Group::of(&child),
            child,
            printed,
        })
    }

    /// Completes when it exits by itself.
    pub(super) async fn exited(&mut self) -> Ended {
        let status = self.child.wait().await.ok();
        Ended {
            status,
            signalled: false,
        }
    }

    /// Sends SIGTERM, then SIGKILL after `grace`.
    pub(super) async fn stop(&mut self, grace: Duration) -> Ended {
        if let Ok(Some(status)) = self.child.try_wait() {
            self.group.signal(Signal::KILL);
            return Ended {
                status: Some(status),
                signalled: false,
            };
        }
        self.group.signal(Signal::TERM);
        let ended = timeout(grace, self.child.wait()).await;
        // Its children may still run.
        self.group.signal(Signal::KILL);
        let status = match ended {
            Ok(status) => status.ok(),
            Err(_) => self.child.wait().await.ok(),
        };
        Ended {
            status,
            signalled: true,
        }
    }

    /// Returns the last lines of its output, after its end.
    pub(super) async fn last_words(&mut self) -> Vec<String> {
        self.printed.last(LINES_SHOWN).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_dies_of_the_signal_sends_nothing_after_it() {
        let ended = |raw: i32, signalled: bool| Ended {
            status: Some(ExitStatus::from_raw(raw)),
            signalled,
        };
        assert!(ended(15, true).was_stopped_at_once());
        assert!(!ended(9, true).was_stopped_at_once(), "it outlived SIGTERM");
        assert!(!ended(0, true).was_stopped_at_once(), "it ended by itself");
        assert!(!ended(15, false).was_stopped_at_once(), "nobody stopped it");
    }
}

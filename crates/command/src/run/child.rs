//! The command under test as a process: started with the environment to find the server, again if it is to be restarted, and
//! stopped with a grace period.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use conformance::process::{Group, Tail, only_here};
use fake_apiserver::record::line::exited;
use fake_apiserver::scenario::Scenario;
use rustix::process::Signal;
use tokio::process::Command;
use tokio::time::timeout;

use super::settings;
use crate::stage::Running;
use crate::{Failure, output};

/// Maximum lines shown of the end of the output, and of its start if the command ended by itself: an error is often the first
/// line, and its stack the last ones.
const LINES_SHOWN: usize = 8;

/// How to start the command for a scenario.
pub(super) struct Launch {
    program: String,
    arguments: Vec<String>,
    environment: Vec<(&'static str, OsString)>,
    /// Whether its output is logged.
    shows: bool,
}

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
    /// Whether it was still running after the grace period.
    outlived: bool,
}

impl Ended {
    /// Returns whether SIGTERM itself ended it: later records were sent before.
    pub(super) fn was_stopped_at_once(&self) -> bool {
        let signal = self.status.and_then(|status| status.signal());
        self.signalled && signal == Some(Signal::TERM.as_raw())
    }

    /// Returns whether it exited by itself with an error.
    pub(super) fn is_failure(&self) -> bool {
        let failed = self.status.is_none_or(|status| !status.success());
        !self.signalled && failed
    }

    /// Returns whether it exited before it was stopped.
    pub(super) fn was_dead_at_the_stop(&self) -> bool {
        !self.signalled
    }

    /// Returns whether it was still running after the grace period.
    pub(super) fn outlived_its_grace(&self) -> bool {
        self.outlived
    }

    /// Returns exit code and signal.
    pub(super) fn code_and_signal(&self) -> (Option<i32>, Option<i32>) {
        let code = self.status.and_then(|status| status.code());
        (code, self.status.and_then(|status| status.signal()))
    }

    /// Describes how it ended: `exited with code 1`.
    pub(super) fn words(&self) -> String {
        let (code, signal) = self.code_and_signal();
        exited(code, signal)
    }
}

impl Launch {
    /// Returns how to start `command` for a scenario on a running server.
    pub(super) fn of(
        command: &[String],
        running: &Running,
        scenario: &Scenario,
        shows: bool,
    ) -> Result<Self, Failure> {
        let (program, arguments) = command
            .split_first()
            .ok_or_else(|| Failure::Usage("missing command after --".to_owned()))?;
        let client = settings::client(&scenario.client).to_string();
        let target = settings::target(&scenario.target).to_string();
        let mut environment: Vec<(&'static str, OsString)> = vec![
            ("KUBECONFIG", running.kubeconfig().into()),
            ("FAKE_APISERVER_SCENARIO", scenario.id.clone().into()),
            ("FAKE_APISERVER_CLIENT", client.into()),
            ("FAKE_APISERVER_TARGET", target.into()),
        ];
        let control = running.control().into_iter();
        environment.extend(control.map(|(name, value)| (name, value.into())));
        Ok(Self {
            program: program.clone(),
            arguments: arguments.to_vec(),
            environment,
            shows,
        })
    }

    /// Starts the command in a new process group, so that its children are stopped with it.
    fn spawn(&self) -> Result<tokio::process::Child, Failure> {
        let program = &self.program;
        let mut command = Command::new(program);
        command
            .args(&self.arguments)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        only_here(&mut command);
        command.spawn().map_err(|error| {
            let is_callers = matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied
            );
            if is_callers {
                Failure::NoServer(format!("cannot start {program}: {error}"))
            } else {
                Failure::System(format!("cannot start {program}"), error)
            }
        })
    }
}

impl Child {
    /// Starts the command.
    ///
    /// # Errors
    ///
    /// It cannot be started.
    pub(super) fn start(launch: &Launch) -> Result<Self, Failure> {
        let child = launch.spawn()?;
        let mut started = Self {
            group: Group::of(&child),
            child,
            printed: Tail::default(),
        };
        started.listen(launch.shows);
        Ok(started)
    }

    /// Starts the command again after its end.
    ///
    /// # Errors
    ///
    /// It cannot be started.
    pub(super) fn restart(&mut self, launch: &Launch) -> Result<(), Failure> {
        self.child = launch.spawn()?;
        self.group = Group::of(&self.child);
        self.listen(launch.shows);
        Ok(())
    }

    fn listen(&mut self, shows: bool) {
        let show = move |line: &str| {
            if shows {
                output::log(&format!("        command | {line}"));
            }
        };
        if let Some(out) = self.child.stdout.take() {
            self.printed.read(out, show);
        }
        if let Some(errors) = self.child.stderr.take() {
            self.printed.read(errors, show);
        }
    }

    /// Completes when it exits by itself. Its children are killed: they would keep its connections open.
    pub(super) async fn exited(&mut self) -> Ended {
        let status = self.child.wait().await.ok();
        self.group.signal(Signal::KILL);
        Ended {
            status,
            signalled: false,
            outlived: false,
        }
    }

    /// Sends SIGTERM, then SIGKILL after `grace`.
    pub(super) async fn stop(&mut self, grace: Duration) -> Ended {
        if let Ok(Some(status)) = self.child.try_wait() {
            self.group.signal(Signal::KILL);
            return Ended {
                status: Some(status),
                signalled: false,
                outlived: false,
            };
        }
        self.group.signal(Signal::TERM);
        let ended = timeout(grace, self.child.wait()).await;
        // Its children may still run.
        self.group.signal(Signal::KILL);
        let (status, outlived) = match ended {
            Ok(status) => (status.ok(), false),
            Err(_) => (self.child.wait().await.ok(), true),
        };
        Ended {
            status,
            signalled: true,
            outlived,
        }
    }

    /// Returns lines of its output, after its end: the last ones, and the first ones if it ended by itself.
    pub(super) async fn output(&mut self, ended_by_itself: bool) -> Vec<String> {
        let first = if ended_by_itself { LINES_SHOWN } else { 0 };
        self.printed.excerpt(first, LINES_SHOWN).await
    }
}

#[cfg(test)]
impl Ended {
    /// Ended with this code after SIGTERM.
    pub(super) fn of_exit(code: i32) -> Self {
        Self {
            status: Some(ExitStatus::from_raw(code << 8)),
            signalled: true,
            outlived: false,
        }
    }

    /// Killed because it was still running after the grace period.
    pub(super) fn of_kill() -> Self {
        Self {
            status: Some(ExitStatus::from_raw(Signal::KILL.as_raw())),
            signalled: true,
            outlived: true,
        }
    }

    /// Exited with an error before the stop.
    pub(super) fn of_crash() -> Self {
        Self {
            status: Some(ExitStatus::from_raw(1 << 8)),
            signalled: false,
            outlived: false,
        }
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
            outlived: false,
        };
        assert!(ended(15, true).was_stopped_at_once());
        assert!(!ended(9, true).was_stopped_at_once(), "it outlived SIGTERM");
        assert!(!ended(0, true).was_stopped_at_once(), "it ended by itself");
        assert!(!ended(15, false).was_stopped_at_once(), "nobody stopped it");
    }
}

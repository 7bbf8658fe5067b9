//! Real programs beside this one in the directory of `KUBEBUILDER_ASSETS`: processes that end with it, also if it is killed.
//!
//! It must not know what they do.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};

use crate::Failure;

/// Time for a process to end after SIGTERM; then it is killed.
const GRACE: Duration = Duration::from_secs(10);

/// Become a program that ends with the process that started it (internal).
#[derive(Debug, Args)]
pub(crate) struct EnvtestBeside {
    /// Program and its arguments.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
}

/// Name of the subcommand.
const SUBCOMMAND: &str = "envtest-beside";

/// Becomes the program.
///
/// # Errors
///
/// It cannot be started.
pub(crate) fn run(arguments: &EnvtestBeside) -> Result<(), Failure> {
    // A killed parent cannot stop the program. Elsewhere than on Linux it stays.
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::set_parent_process_death_signal(Some(Signal::TERM)) {
        tracing::warn!(%error, "the program stays if its parent is killed");
    }
    let (program, rest) = arguments.command.split_first().expect("clap requires one");
    let error = std::process::Command::new(program).args(rest).exec();
    Err(Failure::System(
        format!("cannot start {}", Path::new(program).display()),
        error,
    ))
}

/// Returns the file `name` beside the program that was called as `called` (`argv[0]`), if there is one.
pub(super) fn find(called: &OsStr, name: &str) -> Option<PathBuf> {
    let called = Path::new(called);
    let folder = match called.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => {
            let path = std::env::var_os("PATH")?;
            std::env::split_paths(&path).find(|folder| folder.join(called).is_file())?
        }
    };
    let file = folder.join(name);
    // A program may act by its name, as this one does.
    let program = std::fs::read_link(&file).unwrap_or_else(|_| file.clone());
    file.exists().then(|| folder.join(program))
}

/// A running program.
#[derive(Debug)]
pub(super) struct Beside {
    name: &'static str,
    child: Child,
}

impl Beside {
    /// Starts a program, with the standard output and error of this one. Call inside a tokio runtime.
    ///
    /// # Errors
    ///
    /// A system error.
    pub(super) fn start(name: &'static str, program: &Path, arguments: &[OsString]) -> Result<Self, Failure> {
        let failed = |error| Failure::System(format!("cannot start {}", program.display()), error);
        let mut command = Command::new(std::env::current_exe().map_err(failed)?);
        command
            // This program may be called kube-apiserver.
            .arg0(env!("CARGO_BIN_NAME"))
            .arg(SUBCOMMAND)
            .arg(program)
            .args(arguments)
            .kill_on_drop(true);
        let child = command.spawn().map_err(failed)?;
        Ok(Self { name, child })
    }

    /// Waits until it ends without being stopped, and returns why that is wrong.
    pub(super) async fn ended(&mut self) -> Failure {
        let how = match self.child.wait().await {
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        };
        Failure::System(
            format!("the real {} ended; see what it logged", self.name),
            io::Error::other(how),
        )
    }

    /// Stops it, and waits until it has ended.
    pub(super) async fn stop(mut self) {
        let id = self.child.id().and_then(|id| i32::try_from(id).ok());
        if let Some(pid) = id.and_then(Pid::from_raw) {
            // It may have ended.
            let _ = kill_process(pid, Signal::TERM);
        }
        if tokio::time::timeout(GRACE, self.child.wait()).await.is_err() {
            // It may have ended.
            let _ = self.child.kill().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_beside_the_one_that_was_called() {
        let folder = std::env::temp_dir().join(format!("fake-apiserver-beside-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("other"), "").unwrap();
        let called = folder.join("kube-apiserver");
        let found = find(called.as_os_str(), "other");
        assert_eq!(found, Some(folder.join("other")));
        assert_eq!(find(called.as_os_str(), "none"), None);
        assert_eq!(find(OsStr::new("no-such-program-on-the-path"), "other"), None);
        std::fs::remove_dir_all(folder).unwrap();
    }
}

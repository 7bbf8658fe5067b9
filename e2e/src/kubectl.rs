//! kubectl against a server, one command at a time.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::lines::Lines;
use crate::server::Server;
use crate::toolchain::{self, Missing};

/// kubectl for a server.
#[derive(Debug)]
pub struct Kubectl {
    program: PathBuf,
    kubeconfig: PathBuf,
}

/// Result of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Whether its exit code was 0.
    pub success: bool,
    /// Its standard output.
    pub out: String,
    /// Its standard error.
    pub err: String,
}

/// A command that does not end by itself: `get --watch`, `rollout status`. Killed on drop.
#[derive(Debug)]
pub struct RunningCommand {
    child: Child,
    printed: Lines,
    errors: Lines,
    next: usize,
}

impl Kubectl {
    /// Returns kubectl for a server.
    ///
    /// # Errors
    ///
    /// kubectl is missing and cannot be built.
    pub fn new(server: &Server) -> Result<Self, Missing> {
        Self::with(server.kubeconfig())
    }

    /// Returns kubectl for the server of a kubeconfig.
    ///
    /// # Errors
    ///
    /// kubectl is missing and cannot be built.
    pub fn with(kubeconfig: &Path) -> Result<Self, Missing> {
        let program = PathBuf::from(toolchain::go("kubectl")?.get_program());
        let kubeconfig = kubeconfig.to_owned();
        Ok(Self { program, kubeconfig })
    }

    /// Runs a shell command in a folder; `kubectl` in it is this one. `None` if it does not end in time.
    ///
    /// # Panics
    ///
    /// If no shell can be started.
    pub fn shell(&self, folder: &Path, line: &str) -> Option<Outcome> {
        let mut child = self.spawn_shell(folder, line);
        let printed = Lines::of(child.stdout.take().expect("piped in prepared"));
        let errors = Lines::of(child.stderr.take().expect("piped in prepared"));
        let Some((out, err)) = printed.to_end().zip(errors.to_end()) else {
            drop(child.kill());
            drop(child.wait());
            return None;
        };
        let status = child.wait().expect("a child can be waited for");
        Some(Outcome {
            success: status.success(),
            out: out.join("\n"),
            err: err.join("\n"),
        })
    }

    /// Starts a shell command that does not end by itself, like [`Kubectl::shell`]. Drop does not kill what runs in the shell.
    ///
    /// # Panics
    ///
    /// If no shell can be started.
    pub fn start_shell(&self, folder: &Path, line: &str) -> RunningCommand {
        RunningCommand::of(self.spawn_shell(folder, line))
    }

    fn spawn_shell(&self, folder: &Path, line: &str) -> Child {
        let tools = self.program.parent().into_iter().map(Path::to_owned);
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths(tools.chain(std::env::split_paths(&path)));
        self.prepared(Command::new("sh").args(["-c", line]).current_dir(folder))
            .env("PATH", path.expect("a path that was split can be joined"))
            .env("TZ", "UTC")
            // Garbage collection does not pay in a short process, and as many run at a time as there are processors.
            .env("GOGC", "off")
            .env("GOMAXPROCS", "1")
            .stdin(Stdio::null())
            .spawn()
            .expect("there is a shell")
    }

    /// Runs a command until it ends, without standard input.
    pub fn run(&self, arguments: &[&str]) -> Outcome {
        self.run_with(arguments, "")
    }

    /// Runs a command until it ends, with `input` on its standard input.
    ///
    /// # Panics
    ///
    /// If it cannot be started.
    pub fn run_with(&self, arguments: &[&str], input: &str) -> Outcome {
        let mut child = self.spawn(arguments);
        let mut stdin = child.stdin.take().expect("piped in spawn");
        // A command that fails early does not read it.
        drop(stdin.write_all(input.as_bytes()));
        drop(stdin);
        let output = child.wait_with_output().expect("a child can be waited for");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Outcome {
            success: output.status.success(),
            out: text(&output.stdout),
            err: text(&output.stderr),
        }
    }

    /// Returns the output of a command that must succeed.
    ///
    /// # Panics
    ///
    /// If it fails.
    pub fn ok(&self, arguments: &[&str]) -> String {
        self.ok_with(arguments, "")
    }

    /// Returns the output of a command with `input` that must succeed.
    ///
    /// # Panics
    ///
    /// If it fails.
    pub fn ok_with(&self, arguments: &[&str], input: &str) -> String {
        let outcome = self.run_with(arguments, input);
        let command = arguments.join(" ");
        assert!(
            outcome.success,
            "kubectl {command}: {}{}",
            outcome.out, outcome.err
        );
        outcome.out
    }

    /// Starts a command that does not end by itself.
    pub fn start(&self, arguments: &[&str]) -> RunningCommand {
        RunningCommand::of(self.spawn(arguments))
    }

    fn spawn(&self, arguments: &[&str]) -> Child {
        self.prepared(Command::new(&self.program).args(arguments))
            .spawn()
            .expect("it was built")
    }

    fn prepared<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command
            .env("KUBECONFIG", &self.kubeconfig)
            // Discovery is cached by the server's address, which another test may have used before.
            .env("KUBECACHEDIR", self.kubeconfig.with_file_name("cache"))
            .env("KUBERC", "off")
            .env("NO_COLOR", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
    }
}

impl RunningCommand {
    fn of(mut child: Child) -> Self {
        let printed = Lines::of(child.stdout.take().expect("piped in prepared"));
        let errors = Lines::of(child.stderr.take().expect("piped in prepared"));
        Self {
            child,
            printed,
            errors,
            next: 0,
        }
    }

    /// Returns the lines of its standard output.
    pub fn printed(&self) -> &Lines {
        &self.printed
    }

    /// Waits for a line after the last match that contains all these words in this order.
    ///
    /// # Panics
    ///
    /// If there is none in time; the message has the lines printed instead.
    pub fn expect(&mut self, words: &[&str]) {
        let found = self
            .printed
            .find(self.next, |line| holds(line, words).then_some(()));
        match found {
            Ok((number, ())) => self.next = number + 1,
            Err(instead) => {
                let errors = self.errors.since(0);
                panic!("waited for {words:?}, and kubectl printed {instead:#?} and errors {errors:#?}")
            }
        }
    }

    /// Waits for the end of the command. Returns whether its exit code was 0.
    ///
    /// # Panics
    ///
    /// If waiting fails.
    pub fn ends_well(mut self) -> bool {
        drop(self.child.stdin.take());
        // Waits, for a limited time, until all its output is read.
        drop(self.printed.find(self.next, |_| None::<()>));
        self.child.try_wait().is_ok_and(|status| {
            status.map_or_else(
                || self.child.wait().is_ok_and(|status| status.success()),
                |status| status.success(),
            )
        })
    }
}

impl Drop for RunningCommand {
    fn drop(&mut self) {
        // It may have ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Returns whether the line contains the words in this order.
fn holds(line: &str, words: &[&str]) -> bool {
    let mut rest = line;
    words.iter().all(|word| match rest.split_once(word) {
        Some((_, after)) => {
            rest = after;
            true
        }
        None => false,
    })
}

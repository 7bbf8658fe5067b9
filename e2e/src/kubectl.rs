//! kubectl against a server, one command at a time.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::lines::Lines;
use crate::server::Server;
use crate::toolchain::{self, Missing};

/// kubectl for one server.
#[derive(Debug)]
pub struct Kubectl {
    program: PathBuf,
    kubeconfig: PathBuf,
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Whether its exit code was 0.
    pub success: bool,
    /// Its standard output.
    pub out: String,
    /// Its standard error.
    pub err: String,
}

/// A command that goes on: `get --watch`, `rollout status`. It is ended with the test.
#[derive(Debug)]
pub struct Going {
    child: Child,
    printed: Lines,
    complained: Lines,
    next: usize,
}

impl Kubectl {
    /// # Errors
    /// There is no kubectl, and none can be built.
    pub fn new(server: &Server) -> Result<Self, Missing> {
        Self::with(server.kubeconfig())
    }

    /// kubectl for the server of a kubeconfig.
    ///
    /// # Errors
    /// There is no kubectl, and none can be built.
    pub fn with(kubeconfig: &Path) -> Result<Self, Missing> {
        let program = PathBuf::from(toolchain::go("kubectl")?.get_program());
        let kubeconfig = kubeconfig.to_owned();
        Ok(Self { program, kubeconfig })
    }

    /// Runs a line of a shell in a folder; `kubectl` in it is this one. `None` if it does not end.
    ///
    /// # Panics
    /// When the system does not run a shell.
    pub fn shell(&self, folder: &Path, line: &str) -> Option<Outcome> {
        let tools = self.program.parent().into_iter().map(Path::to_owned);
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths(tools.chain(std::env::split_paths(&path)));
        let mut child = self
            .prepared(Command::new("sh").args(["-c", line]).current_dir(folder))
            .env("PATH", path.expect("a path that was split can be joined"))
            .env("TZ", "UTC")
            // It lives too short to collect garbage, and there are as many at a time as there are processors.
            .env("GOGC", "off")
            .env("GOMAXPROCS", "1")
            .stdin(Stdio::null())
            .spawn()
            .expect("there is a shell");
        let printed = Lines::of(child.stdout.take().expect("piped in prepared"));
        let complained = Lines::of(child.stderr.take().expect("piped in prepared"));
        let Some((out, err)) = printed.to_end().zip(complained.to_end()) else {
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

    /// Runs a command to its end, with nothing on its standard input.
    pub fn run(&self, arguments: &[&str]) -> Outcome {
        self.run_with(arguments, "")
    }

    /// Runs a command to its end, with text on its standard input.
    ///
    /// # Panics
    /// When the system does not run it.
    pub fn run_with(&self, arguments: &[&str], input: &str) -> Outcome {
        let mut child = self.spawn(arguments);
        let mut stdin = child.stdin.take().expect("piped in spawn");
        // Whoever does not read it has refused before.
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

    /// What a command prints that must succeed.
    ///
    /// # Panics
    /// When it does not.
    pub fn ok(&self, arguments: &[&str]) -> String {
        self.ok_with(arguments, "")
    }

    /// The same, with text on its standard input.
    ///
    /// # Panics
    /// When it does not succeed.
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

    /// Starts a command that goes on.
    pub fn start(&self, arguments: &[&str]) -> Going {
        let mut child = self.spawn(arguments);
        let printed = Lines::of(child.stdout.take().expect("piped in spawn"));
        let complained = Lines::of(child.stderr.take().expect("piped in spawn"));
        Going {
            child,
            printed,
            complained,
            next: 0,
        }
    }

    fn spawn(&self, arguments: &[&str]) -> Child {
        self.prepared(Command::new(&self.program).args(arguments))
            .spawn()
            .expect("it was built")
    }

    fn prepared<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command
            .env("KUBECONFIG", &self.kubeconfig)
            // Discovery is kept by the server's address, and an address may have been another test's.
            .env("KUBECACHEDIR", self.kubeconfig.with_file_name("cache"))
            .env("KUBERC", "off")
            .env("NO_COLOR", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
    }
}

impl Going {
    /// Waits for a line that holds all these words in this order, after what was waited for last.
    ///
    /// # Panics
    /// When none comes; what came instead, the message tells.
    pub fn expect(&mut self, words: &[&str]) {
        let found = self
            .printed
            .find(self.next, |line| holds(line, words).then_some(()));
        match found {
            Ok((number, ())) => self.next = number + 1,
            Err(instead) => {
                let complained = self.complained.since(0);
                panic!(
                    "waited for {words:?}, and kubectl printed {instead:#?} and complained {complained:#?}"
                )
            }
        }
    }

    /// Waits for the end of the command. Was its exit code 0?
    ///
    /// # Panics
    /// When the system does not tell.
    pub fn ends_well(mut self) -> bool {
        drop(self.child.stdin.take());
        // Its lines end with it, for which there is a bound.
        drop(self.printed.find(self.next, |_| None::<()>));
        self.child.try_wait().is_ok_and(|status| {
            status.map_or_else(
                || self.child.wait().is_ok_and(|status| status.success()),
                |status| status.success(),
            )
        })
    }
}

impl Drop for Going {
    fn drop(&mut self) {
        // It may be over already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Does the line hold the words in this order?
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

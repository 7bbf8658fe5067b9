//! A server under test: a separate process on a dedicated core, observed through `/proc` only.

use std::io::{self, BufRead, BufReader, Read as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child as Process, ChildStdout, Command, Stdio};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::link::Place;

/// The servers' core; the clients run on the other one.
const CORE: &str = "0";

/// A running server. Killed on drop.
pub(crate) struct Child {
    process: Process,
    pub(crate) address: SocketAddr,
    /// Its kubeconfig, if it prints one.
    kubeconfig: Option<PathBuf>,
    /// PEM certificate of the authority from its kubeconfig.
    authority: Option<Vec<u8>>,
    /// Token from its kubeconfig.
    pub(crate) token: Option<String>,
    /// Kept open, so that a server that prints more does not fail.
    _stdout: BufReader<ChildStdout>,
}

/// Memory of a process, from `/proc`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Memory {
    /// Private memory in bytes: `RssAnon`.
    pub(crate) own: u64,
    /// Peak resident memory in bytes: `VmHWM`.
    pub(crate) peak: u64,
}

impl Child {
    /// Starts `program`. The last word of its first output line must be its address or the path of a kubeconfig.
    pub(crate) fn start(program: &Path, arguments: &[&str]) -> io::Result<Self> {
        let mut command = pinned(program);
        command.args(arguments);
        Self::spawned(command, program)
    }

    /// Starts `program` without a dedicated core: pinning needs a wrapper program, which takes time to start.
    pub(crate) fn start_anywhere(program: &Path, arguments: &[&str]) -> io::Result<Self> {
        let mut command = Command::new(program);
        command.args(arguments);
        Self::spawned(command, program)
    }

    /// Starts a command that runs `program`.
    pub(crate) fn spawned(mut command: Command, program: &Path) -> io::Result<Self> {
        // Logging is not part of the measurement.
        let stderr = if std::env::var_os("BENCH_STDERR").is_some() {
            Stdio::inherit()
        } else {
            Stdio::null()
        };
        let mut process = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(stderr)
            .spawn()?;
        let stdout = process.stdout.take().expect("it is piped");
        let mut stdout = BufReader::new(stdout);
        let mut line = String::new();
        stdout.read_line(&mut line)?;
        let printed = printed(&line).ok_or_else(|| {
            io::Error::other(format!(
                "{} printed {line:?}, not the address it listens on",
                program.display()
            ))
        });
        match printed {
            Ok(printed) => Ok(Self {
                process,
                address: printed.address,
                kubeconfig: printed.kubeconfig,
                authority: printed.authority,
                token: printed.token,
                _stdout: stdout,
            }),
            Err(error) => {
                let _ = process.kill();
                let _ = process.wait();
                Err(error)
            }
        }
    }

    /// Returns the path of its kubeconfig.
    ///
    /// # Errors
    /// It printed none.
    pub(crate) fn kubeconfig(&self) -> io::Result<&Path> {
        let path = self.kubeconfig.as_deref();
        path.ok_or_else(|| io::Error::other("the server has no kubeconfig"))
    }

    /// Returns where it is: over TLS if its kubeconfig has an authority.
    ///
    /// # Errors
    /// If the authority cannot be parsed.
    pub(crate) fn place(&self) -> io::Result<Place> {
        match &self.authority {
            Some(authority) => Place::over_tls(self.address, authority),
            None => Ok(self.address.into()),
        }
    }

    /// Number of the process.
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Returns whether a thread runs or could.
    pub(crate) fn runs(&self) -> io::Result<bool> {
        for thread in std::fs::read_dir(format!("/proc/{}/task", self.process.id()))? {
            // A thread that cannot be read has ended meanwhile.
            let text = std::fs::read_to_string(thread?.path().join("stat")).unwrap_or_default();
            // The state follows the name, which is in parentheses.
            let state = text.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
            if state == Some('R') {
                return Ok(true);
            }
        }
        Ok(false)
    }

    pub(crate) fn memory(&self) -> io::Result<Memory> {
        memory_of(self.process.id())
    }

    /// Returns the CPU time so far, in ticks of 10 ms.
    pub(crate) fn cpu(&self) -> io::Result<Duration> {
        let text = std::fs::read_to_string(format!("/proc/{}/stat", self.process.id()))?;
        // The name in parentheses may contain any character.
        let fields = text.rsplit(')').next().unwrap_or_default();
        let ticks: u64 = fields
            .split_whitespace()
            .skip(11)
            .take(2)
            .filter_map(|field| field.parse::<u64>().ok())
            .sum();
        Ok(Duration::from_millis(ticks * 10))
    }
}

/// Returns the memory of a process.
pub(crate) fn memory_of(process: u32) -> io::Result<Memory> {
    let mut text = String::new();
    std::fs::File::open(format!("/proc/{process}/status"))?.read_to_string(&mut text)?;
    let kilobytes = |name: &str| {
        text.lines()
            .find_map(|line| {
                line.strip_prefix(name)?
                    .split_whitespace()
                    .next()?
                    .parse::<u64>()
                    .ok()
            })
            .ok_or_else(|| io::Error::other(format!("/proc has no {name}")))
    };
    Ok(Memory {
        own: kilobytes("RssAnon:")? * 1024,
        peak: kilobytes("VmHWM:")? * 1024,
    })
}

impl Drop for Child {
    fn drop(&mut self) {
        // It may have exited already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Returns a command that runs `program` on the servers' core, if the system supports it.
pub(crate) fn pinned(program: &Path) -> Command {
    if can_pin() {
        let mut command = Command::new("taskset");
        command.args(["-c", CORE]).arg(program);
        return command;
    }
    Command::new(program)
}

/// Returns true if there are two cores and a program for pinning.
pub(crate) fn can_pin() -> bool {
    let two = std::thread::available_parallelism().is_ok_and(|cores| cores.get() > 1)
        || std::fs::read_to_string("/proc/cpuinfo").is_ok_and(|text| text.matches("processor\t").count() > 1);
    let taskset = Command::new("taskset")
        .arg("--version")
        .stdout(Stdio::null())
        .status();
    two && taskset.is_ok_and(|status| status.success())
}

/// What a server prints first, and its kubeconfig has.
struct Printed {
    address: SocketAddr,
    kubeconfig: Option<PathBuf>,
    authority: Option<Vec<u8>>,
    token: Option<String>,
}

fn printed(line: &str) -> Option<Printed> {
    let last = line.split_whitespace().next_back()?;
    if let Ok(address) = last.parse() {
        return Some(Printed {
            address,
            kubeconfig: None,
            authority: None,
            token: None,
        });
    }
    let path = PathBuf::from(last.rsplit('=').next()?);
    let text = std::fs::read_to_string(&path).ok()?;
    let kubeconfig: serde_json::Value = serde_json::from_str(&text).ok()?;
    let cluster = kubeconfig.pointer("/clusters/0/cluster")?;
    let (_, address) = cluster["server"].as_str()?.split_once("://")?;
    let authority = cluster["certificate-authority-data"].as_str();
    let authority = authority.map(|data| STANDARD.decode(data)).transpose().ok()?;
    let token = kubeconfig.pointer("/users/0/user/token");
    Some(Printed {
        address: address.parse().ok()?,
        kubeconfig: Some(path),
        authority,
        token: token.and_then(|token| token.as_str()).map(str::to_owned),
    })
}

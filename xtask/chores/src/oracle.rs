//! `cargo xtask oracle`: builds, starts and stops a real kube-apiserver; `fidelity/oracle/README.md` describes it.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};

use ::fidelity::{Error, Remote, Target};
use clap::Subcommand;
use fake_apiserver::scenario::Version;
use serde::Deserialize;

use crate::clients::{USAGE, root};

/// What to do with it.
#[derive(Subcommand)]
pub(crate) enum What {
    /// Build `fidelity/oracle/bin/oracle-X` with Go.
    Build {
        /// Kubernetes minor version.
        #[arg(long, default_value_t = Version::NEWEST)]
        version: Version,
    },
    /// Start a kube-apiserver and print how to reach it.
    Start {
        /// Kubernetes minor version.
        #[arg(long, default_value_t = Version::NEWEST)]
        version: Version,
    },
    /// Stop the kube-apiserver that was started.
    Stop,
    /// Renew crates/builtin-kinds/data/openapi from every version.
    ///
    /// Starts and stops the servers itself.
    Schemas,
    /// Renew fake-apiserver/data/bootstrap.txt, the bootstrap objects.
    ///
    /// Starts and stops the servers itself.
    Bootstrap,
    /// Renew crates/builtin-kinds/data/columns.json from the recordings.
    Columns,
    /// Build and record a new minor, renew what is generated from it, and list what differs from the last one.
    ///
    /// docs/new-minor.md describes what comes before and after.
    New {
        /// Release, e.g. 1.38.0.
        release: String,
    },
}

/// Address and credentials of a running oracle.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Address {
    url: String,
    ca_file: PathBuf,
    token: String,
    limited_token: String,
    control: String,
}

/// Runs the subcommand.
pub(crate) fn run(what: &What) -> ExitCode {
    let done = match what {
        What::Build { version } => build(*version),
        What::Start { version } => start(*version),
        What::Stop => stop(),
        What::Schemas => crate::openapi::renew(),
        What::Bootstrap => crate::bootstrap::renew(),
        What::Columns => crate::columns::renew(),
        What::New { release } => crate::new_minor::add(release),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            let _closed_pipe = writeln!(std::io::stderr(), "{why}");
            ExitCode::from(USAGE)
        }
    }
}

/// Builds the oracle of a version.
///
/// # Errors
/// Go is missing, or the build fails.
pub(crate) fn build(version: Version) -> Result<(), Error> {
    let mut command = Command::new("./build.sh");
    command.current_dir(root().join("fidelity/oracle"));
    if version != Version::NEWEST {
        command.arg(version.name());
    }
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Error::caller(format!("fidelity/oracle/build.sh: {status}"))),
        Err(why) => Err(Error::caller(format!("fidelity/oracle/build.sh: {why}"))),
    }
}

fn start(version: Version) -> Result<(), Error> {
    if let Ok(running) = std::fs::read_to_string(pid_file()) {
        return Err(Error::caller(format!(
            "process {} was started before; `cargo xtask oracle stop` ends it",
            running.trim()
        )));
    }
    // Output to a file, because a write to a pipe without a reader would end the oracle.
    let announced = folder()?.join("oracle.json");
    let mut child = command(version)?
        .stdin(Stdio::null())
        .stdout(file(&announced)?)
        .stderr(file(&announced.with_extension("log"))?)
        .spawn()
        .map_err(|why| Error::caller(format!("oracle {version}: {why}")))?;
    std::fs::write(pid_file(), child.id().to_string()).map_err(|why| Error::caller(why.to_string()))?;
    loop {
        let text = std::fs::read_to_string(&announced).unwrap_or_default();
        if text.ends_with('\n') {
            let _closed_pipe = std::io::stdout().write_all(text.as_bytes());
            return Ok(());
        }
        if let Ok(Some(status)) = child.try_wait() {
            let _gone = std::fs::remove_file(pid_file());
            return Err(Error::server(format!(
                "the oracle ended: {status}; see {}",
                announced.with_extension("log").display()
            )));
        }
        std::thread::yield_now();
    }
}

fn stop() -> Result<(), Error> {
    let pid = std::fs::read_to_string(pid_file())
        .map_err(|_| Error::caller("no oracle was started with `cargo xtask oracle start`"))?;
    let _gone = Command::new("kill").arg(pid.trim()).status();
    std::fs::remove_file(pid_file()).map_err(|why| Error::caller(why.to_string()))
}

/// A running oracle, stopped on drop.
pub(crate) struct Running {
    child: Child,
    address: Address,
}

impl Running {
    /// Starts an oracle and waits until it is ready.
    pub(crate) fn begin(version: Version) -> Result<Self, Error> {
        Self::begin_with(version, &[])
    }

    /// The same, with flags of kube-apiserver that override the oracle's.
    pub(crate) fn begin_with(version: Version, flags: &[&str]) -> Result<Self, Error> {
        let log = folder()?.join(format!("oracle-{version}.log"));
        let mut child = command(version)?
            .arg("--until-stdin-eof")
            .arg("--")
            .args(flags)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(file(&log)?)
            .spawn()
            .map_err(|why| Error::caller(format!("oracle {version}: {why}")))?;
        let mut line = String::new();
        if let Some(stdout) = child.stdout.take() {
            let _nothing = BufReader::new(stdout).read_line(&mut line);
        }
        match serde_json::from_str(&line) {
            Ok(address) => Ok(Self { child, address }),
            Err(why) => {
                let _gone = child.kill();
                let _status = child.wait();
                Err(Error::server(format!(
                    "the oracle did not get ready: {why}; see {}",
                    log.display()
                )))
            }
        }
    }

    /// Returns its port.
    pub(crate) fn port(&self) -> &str {
        self.address.url.rsplit(':').next().unwrap_or_default()
    }

    /// Returns a client.
    pub(crate) fn connect(&self) -> Result<Remote, Error> {
        let address = &self.address;
        let target = Target::new(
            &address.url,
            Some(&address.ca_file),
            Some(address.token.clone()),
            Some(address.limited_token.clone()),
        )?;
        let control = Target::new(&address.control, None, None, None)?;
        Ok(Remote::new(target, Some(control), false))
    }

    /// Writes a kubeconfig of its administrator into a new folder; returns the path.
    pub(crate) fn kubeconfig(&self) -> Result<PathBuf, Error> {
        let folder = folder()?.join("oracle-kubeconfig");
        let _was_not_there = std::fs::remove_dir_all(&folder);
        let file = folder.join("config");
        let Address {
            url, ca_file, token, ..
        } = &self.address;
        let config = serde_json::json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "oracle",
            "clusters": [{"name": "oracle", "cluster": {"server": url, "certificate-authority": ca_file}}],
            "users": [{"name": "admin", "user": {"token": token}}],
            "contexts": [{"name": "oracle", "context": {"cluster": "oracle", "user": "admin"}}],
        });
        std::fs::create_dir_all(&folder)
            .and_then(|()| std::fs::write(&file, config.to_string()))
            // Absolute, because its users may run in another folder.
            .and_then(|()| std::fs::canonicalize(&file))
            .map_err(|why| Error::caller(format!("{}: {why}", file.display())))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The oracle stops at the end of its standard input.
        drop(self.child.stdin.take());
        let _status = self.child.wait();
    }
}

fn command(version: Version) -> Result<Command, Error> {
    let folder = std::env::var_os("ORACLE_BIN")
        .map_or_else(|| root().join("fidelity/oracle").join("bin"), PathBuf::from);
    let binary = folder.join(format!("oracle-{version}"));
    if !binary.exists() {
        return Err(Error::caller(format!(
            "{} is not there: `cargo xtask oracle build --version {version}` builds it (it needs Go)",
            binary.display()
        )));
    }
    Ok(Command::new(binary))
}

/// Whether the binary of this version is built.
pub(crate) fn is_built(version: Version) -> bool {
    command(version).is_ok()
}

fn folder() -> Result<PathBuf, Error> {
    let folder = root().join("target");
    std::fs::create_dir_all(&folder).map_err(|why| Error::caller(format!("{}: {why}", folder.display())))?;
    Ok(folder)
}

fn pid_file() -> PathBuf {
    root().join("target").join("oracle.pid")
}

fn file(path: &std::path::Path) -> Result<File, Error> {
    File::create(path).map_err(|why| Error::caller(format!("{}: {why}", path.display())))
}

//! `cargo xtask bench server` and `cargo xtask soak`: builds the binaries, installs the peers, and runs the benchmark
//! on a separate core. It must not measure.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use clap::ValueEnum;

use crate::cargo::{self, Build};
use crate::clients;

#[derive(clap::Args)]
pub(crate) struct Server {
    /// Output format.
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
    /// Only rows with these name prefixes, e.g. S1,S5,LIST,MEM,PEER.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Small sizes and one repetition; results are not judged.
    #[arg(long)]
    smoke: bool,
}

#[derive(clap::Args)]
pub(crate) struct Soak {
    /// Duration of the run in minutes.
    #[arg(long, default_value_t = 10.0)]
    minutes: f64,
    /// Output format.
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    Human,
    Json,
}

impl Format {
    fn word(self) -> &'static str {
        match self {
            Self::Human => "human",
            Self::Json => "json",
        }
    }
}

/// Built binaries.
struct Built {
    bench: PathBuf,
    server: PathBuf,
}

/// Measures. Exit code 0: every judged row meets its limit; 1: one does not; 3: a program cannot run.
pub(crate) fn server(arguments: &Server) -> ExitCode {
    // A smoke run judges nothing, so it uses the build of the tests.
    run(Build::of_benchmark(arguments.smoke), |built| {
        let mut rest: Vec<OsString> = vec!["server".into(), "--binary".into(), built.server.into()];
        rest.extend(["--format".into(), arguments.format.word().into()]);
        if !arguments.only.is_empty() {
            rest.extend(["--only".into(), arguments.only.join(",").into()]);
        }
        if arguments.smoke {
            rest.push("--smoke".into());
        } else {
            // Peers take minutes to install, and a smoke run measures nothing.
            rest.extend(["--peers".into(), peers().into()]);
        }
        rest
    })
}

/// Runs the soak. Exit code 0: memory stays flat; 1: it grows; 3: a program cannot run.
pub(crate) fn soak(arguments: &Soak) -> ExitCode {
    run(Build::Packaged, |built| {
        let minutes = arguments.minutes.to_string();
        vec![
            "soak".into(),
            "--binary".into(),
            built.server.into(),
            "--minutes".into(),
            minutes.into(),
            "--format".into(),
            arguments.format.word().into(),
        ]
    })
}

fn run(how: Build, arguments: impl FnOnce(Built) -> Vec<OsString>) -> ExitCode {
    let built = match build(how) {
        Ok(built) => built,
        Err(problem) => {
            eprintln!("bench: {problem}");
            return ExitCode::from(3);
        }
    };
    let bench = built.bench.clone();
    // The servers run on the first core; a client on the same one would measure itself.
    let mut command = match Command::new("taskset").arg("--version").output() {
        Ok(there)
            if there.status.success() && std::thread::available_parallelism().is_ok_and(|n| n.get() > 1) =>
        {
            let mut command = Command::new("taskset");
            command.args(["-c", "1"]).arg(&bench);
            command
        }
        Ok(_) | Err(_) => {
            eprintln!("bench: no `taskset` or a single core: the clients disturb the servers");
            Command::new(&bench)
        }
    };
    cargo::run(&bench, command.args(arguments(built)))
}

fn build(how: Build) -> Result<Built, String> {
    let wanted = [("bench", "bench"), ("fake-apiserver-cli", "fake-apiserver")];
    let [bench, server] = cargo::programs(how, wanted)?;
    Ok(Built { bench, server })
}

/// Installs the programs to compare with under `target/peers`; warns about those that cannot be installed.
fn peers() -> PathBuf {
    // Tools that run in other folders need the absolute path.
    let root = std::path::absolute(clients::root()).unwrap_or_else(|_| clients::root());
    let folder = root.join("target/peers");
    let sources = root.join("bench/peers");
    for (name, result) in [
        ("kmock", kmock(&folder, &sources)),
        ("client-go", client_go(&folder, &sources)),
    ] {
        if let Err(problem) = result {
            eprintln!("bench: {name} is left out: {problem}");
        }
    }
    folder
}

fn kmock(folder: &Path, sources: &Path) -> Result<(), String> {
    let environment = folder.join("kmock");
    if !environment.join("bin/python").exists() {
        step(Command::new("python3").args(["-m", "venv"]).arg(&environment))?;
    }
    step(
        Command::new(environment.join("bin/python"))
            .args(["-m", "pip", "install", "--quiet", "--requirement"])
            .arg(sources.join("requirements.txt")),
    )
}

fn client_go(folder: &Path, sources: &Path) -> Result<(), String> {
    step(
        Command::new("go")
            .arg("build")
            .arg("-o")
            .arg(folder.join("client-go"))
            .arg(".")
            .current_dir(sources.join("client-go")),
    )
}

fn step(command: &mut Command) -> Result<(), String> {
    let program = command.get_program().to_string_lossy().into_owned();
    match command.stdout(Stdio::null()).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{program} ended with {status}")),
        Err(problem) => Err(format!("{program}: {problem}")),
    }
}

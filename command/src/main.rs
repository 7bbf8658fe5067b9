//! The command line: serves the truth, or one scenario, to any client there is, lets a shell steer it, and judges what
//! the wire alone can tell.
//!
//! Reports come from clients in process only, so steps that wait for what a client emitted never come here; everything
//! that waits for requests or for time does.

mod control;
mod ctl;
mod judging;
mod kubeconfig;
mod objects;
mod play;
mod run;
mod serve;
mod stage;
mod state;

use std::io;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// A Kubernetes apiserver that is truthful on the wire by default and lies on cue.
#[derive(Debug, Parser)]
#[command(
    version,
    about,
    after_help = "Exit codes: 0 as expected, 1 a client did wrong or something was refused, 2 the command line or a file is wrong, 3 what was to be run or steered is not there, 4 nothing to judge, 70 the system refused something.\nRUST_LOG=fake_apiserver=debug shows every decision."
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(serve::Serve),
    Play(play::Play),
    Run(run::Run),
    Ctl(ctl::Ctl),
}

/// Why the command could not do its work.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A file is wrong; drawn already.
    Drawn(String),
    /// The command line, or what it names, is wrong.
    Usage(String),
    /// A server refused what it was asked.
    Refused(String),
    /// There is no server to steer.
    NoServer(String),
    /// The system refused something.
    System(String, io::Error),
    /// Everything is said; this is the code to end with.
    Silent(u8),
}

fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::from_default_env())
        .with_writer(io::stderr)
        .init();
    let outcome = match Arguments::parse().command {
        Command::Play(play) => play::run(play),
        Command::Serve(serve) => serve::run(serve),
        Command::Run(run) => run::run(run),
        Command::Ctl(ctl) => ctl::run(ctl),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.told(),
    }
}

impl Failure {
    /// Says what went wrong, and gives the code to end with.
    fn told(self) -> ExitCode {
        match self {
            Self::Drawn(text) => {
                eprint!("{text}");
                ExitCode::from(2)
            }
            Self::Usage(message) => {
                eprintln!("error: {message}");
                ExitCode::from(2)
            }
            Self::Refused(message) => {
                eprintln!("refused: {message}");
                ExitCode::from(1)
            }
            Self::NoServer(message) => {
                eprintln!("error: {message}");
                ExitCode::from(3)
            }
            Self::System(what, error) => {
                eprintln!("error: {what}: {error}");
                ExitCode::from(70)
            }
            Self::Silent(code) => ExitCode::from(code),
        }
    }
}

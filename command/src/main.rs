//! The command line: serves the truth, or one scenario, to any client there is, and shows what both sides do.
//!
//! It judges nothing. Reports come from clients in process only, so steps that wait for what a client emitted never
//! come here; everything that waits for requests or for time does.

mod kubeconfig;
mod play;
mod serve;
mod stage;

use std::io;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// A Kubernetes apiserver that is truthful on the wire by default and lies on cue.
#[derive(Debug, Parser)]
#[command(
    version,
    about,
    after_help = "Exit codes: 0 stopped, 1 the system refused something, 2 the scenario file or the command line is wrong.\nRUST_LOG=fake_apiserver=debug shows every decision."
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(serve::Serve),
    Play(play::Play),
}

/// Why the command could not do its work.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The scenario file is wrong; drawn already.
    Scenario(String),
    /// The file of objects is wrong.
    Objects(String),
    System(String, io::Error),
}

fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::from_default_env())
        .with_writer(io::stderr)
        .init();
    let outcome = match Arguments::parse().command {
        Command::Play(play) => play::run(&play),
        Command::Serve(serve) => serve::run(serve),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Objects(message)) => {
            eprintln!("error: {message}");
            ExitCode::from(2)
        }
        Err(Failure::Scenario(drawn)) => {
            eprint!("{drawn}");
            ExitCode::from(2)
        }
        Err(Failure::System(what, error)) => {
            eprintln!("error: {what}: {error}");
            ExitCode::FAILURE
        }
    }
}

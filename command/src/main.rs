//! The command line: serves the truth, or one scenario, to any client there is, lets a shell steer it, and judges what
//! the wire alone can tell.
//!
//! Reports come from clients in process only, so steps that wait for what a client emitted never come here; everything
//! that waits for requests or for time does.

mod check;
mod control;
mod ctl;
mod judging;
mod kubeconfig;
mod objects;
mod output;
mod play;
mod private;
mod random;
mod run;
mod serve;
mod stage;
mod state;
mod stop;
mod token;
mod words;

use std::fmt;
use std::io::{self, IsTerminal as _};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// A Kubernetes apiserver that is truthful on the wire by default and lies on cue.
#[derive(Debug, Parser)]
#[command(
    version,
    about,
    after_help = "Exit codes: 0 as expected, 1 a client did wrong or something was refused, 2 the command line or a file is wrong, 3 what was to be run or steered is not there, 4 nothing to judge, 70 the system refused something, or the server itself failed.\nRUST_LOG=fake_apiserver=debug shows every decision."
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
    Check(check::Check),
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
    /// The server itself is at fault: it panicked, and said this.
    Broken(String),
    /// Everything is said; this is the code to end with.
    Silent(u8),
}

fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::from_default_env())
        .with_ansi(io::stderr().is_terminal())
        .with_writer(|| output::LogWriter)
        .init();
    let outcome = match Arguments::parse().command {
        Command::Play(play) => play::run(play),
        Command::Serve(serve) => serve::run(serve),
        Command::Run(run) => run::run(run),
        Command::Check(check) => check::run(&check),
        Command::Ctl(ctl) => ctl::run(ctl),
    };
    let code = match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            match &failure {
                Failure::Silent(_) => {}
                // Drawn with colours, and without anything else that a terminal would obey.
                Failure::Drawn(text) => output::log_raw(text),
                Failure::Usage(_)
                | Failure::Refused(_)
                | Failure::NoServer(_)
                | Failure::System(..)
                | Failure::Broken(_) => {
                    let refused = matches!(failure, Failure::Refused(_));
                    let word = if refused { "refused" } else { "error" };
                    output::log(&format!("{word}: {failure}"));
                }
            }
            failure.code()
        }
    };
    output::flush_log();
    code
}

impl Failure {
    /// The exit code.
    fn code(&self) -> ExitCode {
        match self {
            Self::Drawn(_) | Self::Usage(_) => ExitCode::from(2),
            Self::Refused(_) => ExitCode::from(1),
            Self::NoServer(_) => ExitCode::from(3),
            Self::System(..) | Self::Broken(_) => ExitCode::from(70),
            Self::Silent(code) => ExitCode::from(*code),
        }
    }
}

/// What went wrong, with what a terminal would obey escaped.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::Drawn(text) => return f.write_str(text),
            Self::Usage(message) | Self::Refused(message) | Self::NoServer(message) => message.clone(),
            Self::System(what, error) => format!("{what}: {error}"),
            Self::Broken(message) => format!(
                "{message}\n  This is a bug in fake-apiserver {}: what clients received proves nothing, and there is no \
                 verdict.\n  Please report it, with the log of a run with RUST_BACKTRACE=1, at {}/issues",
                env!("CARGO_PKG_VERSION"),
                env!("CARGO_PKG_REPOSITORY"),
            ),
            Self::Silent(_) => String::new(),
        };
        f.write_str(&output::printable_lines(&text))
    }
}

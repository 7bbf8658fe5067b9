//! The command line: arguments, exit codes, and the choice of subcommand.
//!
//! Client events are reported in process only, so steps that wait for them are not reached here; steps that wait for
//! requests or for time are.

mod built_in;
mod check;
mod check_adapter;
#[cfg(feature = "proxy")]
mod cluster;
mod completions;
mod conformance;
mod control;
mod ctl;
mod diff;
mod doctor;
mod envtest;
mod judging;
mod junit;
mod kept;
mod known_failures;
mod kubeconfig;
mod man;
mod objects;
mod output;
mod play;
mod private;
#[cfg(feature = "proxy")]
mod proxy;
mod random;
mod recheck;
mod recorder;
mod report;
mod run;
mod scenario;
mod scoring;
mod serve;
mod service_account;
mod session;
mod show;
mod snapshot;
mod stage;
mod state;
mod stop;
mod token;
mod watches;
mod webhooks;
mod words;

use std::fmt;
use std::io::{self, IsTerminal as _};
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};
use tracing_subscriber::EnvFilter;

/// A request allocates and frees many small values. A LIST takes a third fewer instructions than with the allocator of glibc, and that
/// of musl, in the static binaries, takes a lock each time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const EXIT_CODES: &str = "\
Exit codes:
  0   success
  1   a client failed, or the server rejected a request
  2   invalid command line or file
  3   no running server, or the command cannot be started
  4   nothing was judged
  5   known failures that pass (conformance, run)
  70  system error, or a bug in the server

Set RUST_LOG=fake_apiserver=debug to log every decision.";

/// In-memory Kubernetes apiserver with scriptable LIST and WATCH failures.
#[derive(Debug, Parser)]
#[command(
    name = "fake-apiserver",
    version,
    after_help = EXIT_CODES
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(serve::Serve),
    Play(play::Play),
    #[cfg(feature = "proxy")]
    Proxy(proxy::Proxy),
    #[cfg(feature = "proxy")]
    Snapshot(snapshot::SnapshotArguments),
    Run(Box<run::Run>),
    Conformance(conformance::Conformance),
    CheckAdapter(check_adapter::CheckAdapter),
    Recheck(recheck::Recheck),
    Report(report::ReportArguments),
    Diff(diff::Diff),
    Check(check::Check),
    Show(show::Show),
    Scenario(scenario::ScenarioArguments),
    Ctl(ctl::Ctl),
    Doctor(doctor::Doctor),
    Completions(completions::Completions),
    Man(man::Man),
    EnvtestAssets(envtest::EnvtestAssets),
    #[command(hide = true)]
    EnvtestVerdict(envtest::EnvtestVerdict),
    #[command(hide = true)]
    EnvtestBeside(envtest::EnvtestBeside),
}

/// Failure of a command.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Invalid file; already rendered.
    Drawn(String),
    /// Invalid command line, or an invalid file it names.
    Usage(String),
    /// Request rejected by the control API.
    Refused(String),
    /// No running server, or a command that cannot be started.
    NoServer(String),
    /// System error.
    System(String, io::Error),
    /// Panic of the server, with its message.
    Broken(String),
    /// Nothing to run.
    NothingToDo(String),
    /// Exit code, when everything is printed already.
    Silent(u8),
}

fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_env_filter(filter())
        .with_ansi(io::stderr().is_terminal())
        .with_writer(|| output::LogWriter)
        .init();
    let mut words = std::env::args_os();
    let called = words.next().unwrap_or_default();
    if let Some(role) = envtest::Role::of(Some(&called)) {
        return role.play(&called, words);
    }
    let outcome = match Arguments::parse().command {
        Command::Play(play) => play::run(play),
        Command::Serve(serve) => serve::run(serve),
        #[cfg(feature = "proxy")]
        Command::Proxy(proxy) => proxy::run(proxy),
        #[cfg(feature = "proxy")]
        Command::Snapshot(arguments) => snapshot::run(&arguments),
        Command::Run(run) => run::run(*run),
        Command::Conformance(arguments) => conformance::run(arguments),
        Command::CheckAdapter(arguments) => check_adapter::run(&arguments),
        Command::Recheck(arguments) => recheck::run(&arguments),
        Command::Report(arguments) => report::run(&arguments),
        Command::Diff(arguments) => diff::run(&arguments),
        Command::Check(check) => check::run(&check),
        Command::Show(show) => show::run(&show),
        Command::Scenario(arguments) => scenario::run(&arguments),
        Command::Ctl(ctl) => ctl::run(ctl),
        Command::Doctor(doctor) => doctor::run(&doctor),
        Command::Completions(arguments) => completions::run(&arguments, Arguments::command()),
        Command::Man(arguments) => man::run(&arguments, Arguments::command()),
        Command::EnvtestAssets(arguments) => envtest::run(&arguments),
        Command::EnvtestVerdict(arguments) => envtest::keep(&arguments),
        Command::EnvtestBeside(arguments) => envtest::become_beside(&arguments),
    };
    let code = match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            match &failure {
                Failure::Silent(_) => {}
                // It contains our colours, and no other control characters.
                Failure::Drawn(text) => output::log_raw(text),
                Failure::Usage(_)
                | Failure::Refused(_)
                | Failure::NoServer(_)
                | Failure::NothingToDo(_)
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

/// Returns the filter of RUST_LOG; by default errors, without those of the client library, which the program reports itself.
fn filter() -> EnvFilter {
    match std::env::var(EnvFilter::DEFAULT_ENV) {
        Ok(_) => EnvFilter::from_default_env(),
        Err(_) => EnvFilter::new("error,kube_client=off"),
    }
}

impl Failure {
    /// Returns the exit code.
    fn code(&self) -> ExitCode {
        match self {
            Self::Drawn(_) | Self::Usage(_) => ExitCode::from(2),
            Self::Refused(_) => ExitCode::from(1),
            Self::NoServer(_) => ExitCode::from(3),
            Self::NothingToDo(_) => ExitCode::from(4),
            Self::System(..) | Self::Broken(_) => ExitCode::from(70),
            Self::Silent(code) => ExitCode::from(*code),
        }
    }
}

/// Formats the error, with control characters escaped.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::Drawn(text) => return f.write_str(text),
            Self::Usage(message)
            | Self::Refused(message)
            | Self::NoServer(message)
            | Self::NothingToDo(message) => message.clone(),
            Self::System(what, error) => format!("{what}: {error}"),
            Self::Broken(message) => format!(
                "{message}\n  This is a bug in fake-apiserver {}: no verdict is given, because responses may be wrong.\n  Please report it, with the log of a run with RUST_BACKTRACE=1, at {}/issues",
                env!("CARGO_PKG_VERSION"),
                env!("CARGO_PKG_REPOSITORY"),
            ),
            Self::Silent(_) => String::new(),
        };
        f.write_str(&output::printable_lines(&text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the short help texts of a command and all its subcommands that are missing or too long for `-h`.
    fn unfit(command: &clap::Command, path: &str) -> Vec<String> {
        let path = format!("{path} {}", command.get_name()).trim_start().to_owned();
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        let arguments = command.get_arguments().filter(|argument| !argument.is_hide_set());
        let arguments = arguments.map(|argument| {
            let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
            (format!("{path} {}", argument.get_id()), help)
        });
        let own = arguments.chain([(path.clone(), about)]);
        let mut unfit: Vec<String> = own
            .filter(|(_, help)| help.is_empty() || help.len() >= 80)
            .map(|(of, help)| format!("{of}: {help}"))
            .collect();
        for below in command.get_subcommands() {
            unfit.extend(self::unfit(below, &path));
        }
        unfit
    }

    #[test]
    fn short_help_fits_a_line() {
        assert_eq!(unfit(&Arguments::command(), ""), Vec::<String>::new());
        let long = clap::Command::new("a").about("x".repeat(80));
        assert_eq!(
            unfit(&clap::Command::new("b").about("b").subcommand(long), "").len(),
            1
        );
    }
}

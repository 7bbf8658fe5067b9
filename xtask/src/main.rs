//! Repository chores. Reads arguments and clocks, prints, and chooses the exit code; what a run means is decided in
//! `conformance`.

use std::io::IsTerminal as _;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

mod attacks;
mod bench;
mod bootstrap;
mod clients;
mod clocks;
mod columns;
mod compared;
mod defects;
mod fidelity;
mod fuzz;
mod openapi;
mod oracle;
mod scenarios;
mod schema;
mod served;
mod suites;
mod tidy;

/// Repository chores.
#[derive(Parser)]
#[command(
    name = "cargo xtask",
    bin_name = "cargo xtask",
    about,
    disable_help_subcommand = true
)]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Plays scenarios against a client and says what passed, what failed and why.
    Scenarios(scenarios::Arguments),
    /// Shows what kube-runtime gets wrong and our watcher does not, defect by defect.
    Defects(defects::Arguments),
    /// Writes schema/scenario.v1.json, the JSON Schema of the scenario language, from its types.
    Schema,
    /// Checks what the compiler does not: forbidden dependencies, files without a reason, paths of one machine.
    Tidy,
    /// Runs the tests that read the wall clock under shifted clocks and in other time zones (needs libfaketime).
    Clocks(clocks::Arguments),
    /// Compares the fake with what real servers answered.
    Fidelity(fidelity::Arguments),
    /// A real kube-apiserver.
    Oracle {
        #[command(subcommand)]
        what: oracle::What,
    },
    /// Tries variations of what real clients say: nothing may panic.
    Fuzz(fuzz::Arguments),
    /// Runs test suites of other projects against the fake or a real kube-apiserver (needs Go; minutes).
    Suites(suites::Arguments),
    /// Loads a served fake for a while and says whether its memory stays flat.
    Soak(served::Soak),
    /// Measures.
    Bench {
        #[command(subcommand)]
        what: Bench,
    },
}

#[derive(Subcommand)]
enum Bench {
    /// How many scenarios a second the simulation plays and judges, and how long the whole set takes.
    Sim(bench::Arguments),
    /// The served fake beside floors and peers in the same run: fan-out, requests, lists, memory, start.
    Server(served::Server),
    /// The watcher beside kube-runtime's, on the same server and data.
    Watcher(compared::Arguments),
    /// Attacks on a served fake: its peak memory, its slowest answer to a neighbour, and whether costs are linear.
    Attacks(attacks::Arguments),
}

fn main() -> ExitCode {
    // What a library under test logs is not ours to show unless asked for.
    let filter = EnvFilter::builder()
        .with_default_directive(LevelFilter::OFF.into())
        .from_env_lossy();
    let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(colour)
        .with_writer(std::io::stderr)
        .init();
    match Arguments::parse().chore {
        Chore::Scenarios(arguments) => scenarios::run(&arguments),
        Chore::Defects(arguments) => defects::run(&arguments),
        Chore::Schema => schema::write(),
        Chore::Tidy => tidy::run(),
        Chore::Clocks(arguments) => clocks::run(&arguments),
        Chore::Fidelity(arguments) => fidelity::run(&arguments),
        Chore::Oracle { what } => oracle::run(&what),
        Chore::Bench {
            what: Bench::Sim(arguments),
        } => bench::sim(&arguments),
        Chore::Bench {
            what: Bench::Server(arguments),
        } => served::server(&arguments),
        Chore::Bench {
            what: Bench::Watcher(arguments),
        } => compared::watcher(&arguments),
        Chore::Bench {
            what: Bench::Attacks(arguments),
        } => attacks::run(&arguments),
        Chore::Fuzz(arguments) => fuzz::run(&arguments),
        Chore::Suites(arguments) => suites::run(&arguments),
        Chore::Soak(arguments) => served::soak(&arguments),
    }
}

//! Repository chores behind `cargo xtask`. Reads arguments and clocks, prints, and chooses the exit code; `conformance`
//! judges the runs.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use xtask::scenarios;

mod attacks;
mod bench;
mod book;
mod bootstrap;
mod cargo;
mod clients;
mod clocks;
mod columns;
mod compared;
mod conformance;
mod control_clients;
mod crowd;
mod defects;
mod dist;
mod edition;
mod fidelity;
mod fuzz;
mod instructions;
mod new_minor;
mod openapi;
mod oracle;
#[path = "../../../crates/command/src/reference.rs"]
mod reference;
mod schema;
mod served;
mod site;
mod suites;
mod sweep;
mod tidy;
mod versions;

/// Repository tasks: scenarios, checks, recordings, benchmarks.
#[derive(Parser)]
#[command(
    name = "cargo xtask",
    bin_name = "cargo xtask",
    disable_help_subcommand = true
)]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Run scenarios against a client that `cargo xtask` itself does not have.
    #[command(hide = true)]
    Scenarios(scenarios::Arguments),
    /// Compare kube-runtime and our watcher, defect by defect.
    Defects(defects::Arguments),
    /// Run the scenarios with clients in other languages and write CONFORMANCE.md.
    ///
    /// Needs Go, Python, Node and Maven, and 18 minutes of processor time.
    Conformance(conformance::Arguments),
    /// Write the results, requirements and failures of all clients as static pages.
    Site(site::Arguments),
    /// Freeze the requirements that the scenarios test as a new edition.
    Edition(edition::Arguments),
    /// Write schema/scenario.v1.json, the JSON Schema of the scenario language.
    Schema,
    /// Write the clients of the control API from its OpenAPI document.
    ControlClients(control_clients::Arguments),
    /// Check the links of the documentation and build it as a book (needs mdBook).
    Book(book::Arguments),
    /// Build a release and every package of it into target/dist.
    Dist(dist::Arguments),
    /// Check dependencies between crates, file headers, local paths and wording.
    Tidy,
    /// Run wall-clock tests under shifted clocks and time zones (needs libfaketime).
    Clocks(clocks::Arguments),
    /// Compare the fake with recorded responses of real kube-apiservers.
    Fidelity(fidelity::Arguments),
    /// Build, start and stop a real kube-apiserver; renew data taken from it.
    Oracle {
        #[command(subcommand)]
        what: oracle::What,
    },
    /// Fuzz the parsers with mutated requests of real clients.
    Fuzz(fuzz::Arguments),
    /// Run test suites of other projects against the fake or a real server.
    ///
    /// Needs Go and takes minutes.
    Suites(suites::Arguments),
    /// Run programs of other libraries and check what they are accused of.
    ///
    /// Needs Go, Python, Node, Java and Maven, and takes minutes.
    Crowd(crowd::Arguments),
    /// Play random scenarios in an optimized build and shrink each failure to a file.
    Sweep(sweep_command::Arguments),
    /// Check that memory stays flat under a mixed load.
    Soak(served::Soak),
    /// Run benchmarks.
    Bench {
        #[command(subcommand)]
        what: Bench,
    },
}

#[derive(Subcommand)]
enum Bench {
    /// Measure scenarios per second in the simulation.
    Sim(bench::Arguments),
    /// Measure fan-out, requests, lists, memory and start of the server.
    ///
    /// Each row is compared with a baseline program measured in the same run.
    Server(served::Server),
    /// Compare our watcher with kube-runtime's on the same server and data.
    Watcher(compared::Arguments),
    /// Measure peak memory and the latency of other clients under attacks.
    Attacks(attacks::Arguments),
    /// Count the instructions of single operations and compare with the committed counts (needs valgrind).
    Instructions(instructions::Arguments),
}

fn main() -> ExitCode {
    xtask::log_to_stderr();
    match Arguments::parse().chore {
        Chore::Scenarios(arguments) => scenarios::run(&arguments, &clients::CLIENTS),
        Chore::Defects(arguments) => defects::run(&arguments),
        Chore::Conformance(arguments) => conformance::run(&arguments),
        Chore::Site(arguments) => site::run(&arguments),
        Chore::Edition(arguments) => edition::run(&arguments),
        Chore::Schema => schema::write(),
        Chore::ControlClients(arguments) => control_clients::run(&arguments),
        Chore::Book(arguments) => book::run(&arguments),
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
        Chore::Bench {
            what: Bench::Instructions(arguments),
        } => instructions::run(&arguments),
        Chore::Fuzz(arguments) => fuzz::run(&arguments),
        Chore::Suites(arguments) => suites::run(&arguments),
        Chore::Crowd(arguments) => crowd::run(&arguments),
        Chore::Sweep(arguments) => sweep::run(&arguments),
        Chore::Dist(arguments) => dist::run(&arguments),
        Chore::Soak(arguments) => served::soak(&arguments),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn cargo_xtask_lists_every_chore_in_the_same_words() {
        let command = Arguments::command();
        let chores = command.get_subcommands().filter(|chore| !chore.is_hide_set());
        let chores: Vec<(String, String)> = chores
            .map(|chore| {
                let about = chore.get_about().map(ToString::to_string);
                (chore.get_name().to_owned(), about.unwrap_or_default())
            })
            .collect();
        let listed = xtask::chores::CHORES.map(|(name, about)| (name.to_owned(), about.to_owned()));
        assert_eq!(chores, listed);
    }
}

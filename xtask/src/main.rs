//! `cargo xtask`: runs scenarios, and hands every other chore over, so that the main job compiles nothing else.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Arg, Args as _, Command, FromArgMatches as _, value_parser};
use xtask::chores::{CHORES, hand_over};
use xtask::clients::{Clients, USAGE};
use xtask::scenarios;

/// Clients that need no chore; the first is the default.
static CLIENTS: Clients = Clients(&[&adapter_watcher::WatcherClient, &adapter_kube_client::KubeClient]);

fn main() -> ExitCode {
    xtask::log_to_stderr();
    let given = command().get_matches();
    let Some((name, given)) = given.subcommand() else {
        // Clap requires one.
        return ExitCode::from(USAGE);
    };
    if name == "scenarios" {
        let arguments = scenarios::Arguments::from_arg_matches(given).unwrap_or_else(|error| error.exit());
        if CLIENTS.has(arguments.client()) {
            return scenarios::run(&arguments, &CLIENTS);
        }
    }
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    eprintln!("xtask: {name}: {}", hand_over(&arguments));
    ExitCode::from(USAGE)
}

fn command() -> Command {
    let all = Command::new("cargo xtask")
        .bin_name("cargo xtask")
        .about("Repository tasks: scenarios, checks, recordings, benchmarks")
        .disable_help_subcommand(true)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            scenarios::Arguments::augment_args(Command::new("scenarios"))
                .about("Run scenarios against a client and print the failures"),
        );
    CHORES.iter().fold(all, |all, (name, about)| {
        let arguments = Arg::new("arguments")
            .num_args(0..)
            .trailing_var_arg(true)
            .allow_hyphen_values(true)
            .value_parser(value_parser!(OsString));
        // `--help` after a chore is the chore's.
        let chore = Command::new(*name)
            .about(*about)
            .disable_help_flag(true)
            .arg(arguments);
        all.subcommand(chore)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn options_of_a_chore_are_its_own() {
        for options in [&["--help"][..], &["-h"], &["--seeds", "3", "--", "x"]] {
            let given = [&["xtask", "sweep"], options].concat();
            let parsed = command().try_get_matches_from(given).expect("handed over");
            assert_eq!(parsed.subcommand_name(), Some("sweep"));
        }
    }
}

//! `cargo xtask bench instructions`: builds the binaries and counts the instructions of single operations. It must not count.

use std::process::{Command, ExitCode};

use crate::cargo::{self, Build, PACKAGED};
use crate::clients;

/// File of the committed counts, from the root.
const COUNTS: &str = "bench/instructions.json";

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Only these operations, e.g. get,post.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Write bench/instructions.json instead of comparing with it.
    #[arg(long)]
    write: bool,
    /// Count the distributed programs, which take minutes to link, and not those of `cargo install`.
    #[arg(long)]
    dist: bool,
}

/// Counts. Exit code 0: as committed; 1: an operation costs more or less; 3: a program cannot run; 4: not judged, because the
/// counts are of another rustc or valgrind.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let wanted = [
        ("bench", "bench"),
        ("fake-apiserver-cli", "fake-apiserver"),
        ("bench-watcher", "bench-watcher"),
    ];
    let (build, profile) = if arguments.dist {
        (Build::Packaged, PACKAGED)
    } else {
        (Build::Release, "release")
    };
    let [bench, server, watcher] = match cargo::programs(build, wanted) {
        Ok(built) => built,
        Err(problem) => {
            eprintln!("bench: {problem}");
            return ExitCode::from(3);
        }
    };
    let root = clients::root();
    let mut command = Command::new(&bench);
    command.arg("instructions").arg("--binary").arg(server);
    command.arg("--watcher").arg(watcher);
    command.arg("--profile").arg(profile);
    command.arg("--counts").arg(root.join(COUNTS));
    command.arg("--scratch").arg(root.join("target"));
    if !arguments.only.is_empty() {
        command.args(["--only", &arguments.only.join(",")]);
    }
    command.args(arguments.write.then_some("--write"));
    cargo::run(&bench, &mut command)
}

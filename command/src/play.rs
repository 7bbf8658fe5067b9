//! `fake-apiserver play`: one scenario, for any client.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use fake_apiserver::scenario::{self, Scenario, Style};
use fake_apiserver::server::{Limits, Server};

use crate::Failure;
use crate::stage::{self, Stage};

/// Serve one scenario on 127.0.0.1 until interrupted, for kubectl or any other client.
///
/// Prints `export KUBECONFIG=…` on standard output once the server listens, and what happens, line by line, on
/// standard error. The script runs once, from the start of the program; afterwards the server only tells the
/// truth.
///
/// Example: fake-apiserver play scenarios/gone/expired-mid-stream-forces-relist.yaml --port 6443
#[derive(Debug, Args)]
pub(crate) struct Play {
    /// The scenario file.
    file: PathBuf,
    /// The port to listen on; 0 takes a free one.
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// What chance decides by: how long watches without a timeout live.
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

/// Plays until interrupted.
///
/// # Errors
/// The file is wrong, or the system refuses something.
pub(crate) fn run(play: &Play) -> Result<(), Failure> {
    let scenario = Arc::new(read(&play.file)?);
    eprintln!("{}: {}", scenario.id, scenario.title);
    let namespace = scenario.target.namespace.clone();
    stage::run(Stage {
        server: Server::with_limits(scenario, play.seed, Limits::endless()),
        port: play.port,
        namespace,
        token: None,
        shown_from: 0,
    })
}

fn read(file: &Path) -> Result<Scenario, Failure> {
    // Ids are paths below the scenarios folder, where the file is in one.
    let root = file
        .ancestors()
        .skip(1)
        .find(|folder| folder.ends_with("scenarios"));
    let root = root.or(file.parent()).unwrap_or(Path::new(""));
    scenario::load(file, root).map_err(|errors| Failure::Scenario(errors.render(Style::for_stderr())))
}

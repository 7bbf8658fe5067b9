//! Plays of one scenario by our watcher in the simulation, for a counter of instructions.

use std::io;
use std::sync::Arc;

use conformance::judge;
use conformance::suite::Driver;
use fake_apiserver::scenario::{SharedScenario, find};

/// The scenario: a list in pages, a watch, an expired version and a relist are what most scenarios have.
const SCENARIO: &str = "scenarios/gone/error-event-in-mid-stream-forces-a-relist.yaml";

#[derive(clap::Args)]
pub(crate) struct Play {
    /// Number of plays
    #[arg(long)]
    times: u64,
}

/// Plays it, and fails unless it passes.
pub(crate) fn run(play: &Play) -> io::Result<()> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let scenario = load(&root.join(SCENARIO))?;
    for _ in 0..play.times {
        let records = Driver::Sim.play(&scenario, &adapter_watcher::WatcherClient, 0);
        let verdict = judge::judge(&scenario, &records);
        if !verdict.passed() {
            return Err(io::Error::other(format!(
                "{SCENARIO} failed: {}",
                verdict.message()
            )));
        }
    }
    Ok(())
}

fn load(path: &std::path::Path) -> io::Result<SharedScenario> {
    let (files, _) = find(&[path.to_owned()]);
    let file = files.first().ok_or(io::ErrorKind::NotFound)?;
    let loaded = file
        .load()
        .map_err(|_| io::Error::other(format!("{SCENARIO} has mistakes")))?;
    Ok(Arc::new(loaded))
}

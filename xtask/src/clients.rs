//! The clients under test by name, the repository's root, and loading for every chore alike.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use conformance::client::Client;
use fake_apiserver::scenario::{self, Contract, SharedScenario, Style};

/// Every client, the default first.
static CLIENTS: [&dyn Client; 3] = [
    &adapter_watcher::WatcherClient,
    &adapter_kube_runtime::KubeRuntime,
    &adapter_kube_runtime::KubeClient,
];

/// Exit code: wrong usage, or a file that cannot be used.
pub(crate) const USAGE: u8 = 2;

/// The client of that name, or a sentence that lists the names there are.
pub(crate) fn named(name: &str) -> Result<&'static dyn Client, String> {
    CLIENTS
        .iter()
        .copied()
        .find(|client| client.name() == name)
        .ok_or_else(|| {
            let names: Vec<&str> = CLIENTS.iter().map(|client| client.name()).collect();
            format!("there is no client {name}; there are: {}", names.join(", "))
        })
}

/// The first client that offers the contract of a scenario.
pub(crate) fn offering(contract: Contract) -> Option<&'static dyn Client> {
    let mut all = CLIENTS.iter().copied();
    all.find(|client| client.contracts().contains(&contract))
}

/// The repository's root, as a path that stays short in messages when it is where the command was given.
pub(crate) fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap_or(Path::new("."));
    match std::env::current_dir() {
        Ok(here) if here == root => PathBuf::from("."),
        Ok(_) | Err(_) => root.to_owned(),
    }
}

/// Every scenario that `paths` mean, and everything that is wrong with files that are none, drawn for a terminal.
pub(crate) fn load_paths(paths: &[PathBuf]) -> (Vec<SharedScenario>, Vec<String>) {
    let (files, mut mistaken) = scenario::find(paths);
    let mut loaded = Vec::with_capacity(files.len());
    for file in files {
        match file.load() {
            Ok(scenario) => loaded.push(Arc::new(scenario)),
            Err(errors) => mistaken.push(errors),
        }
    }
    let drawn = mistaken.iter().map(|errors| errors.render(Style::for_stderr()));
    (loaded, drawn.collect())
}

/// Every scenario below `root`, or everything that is wrong with all of them, drawn for a terminal.
pub(crate) fn load(root: &Path) -> Result<Vec<SharedScenario>, String> {
    let (loaded, faults) = load_paths(&[root.join("scenarios")]);
    if faults.is_empty() {
        Ok(loaded)
    } else {
        Err(faults.join("\n"))
    }
}

//! Clients under test by name, the repository's root, and its scenarios, shared by all chores.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use conformance::client::Client;
use fake_apiserver::scenario::{self, Contract, SharedScenario, Style};

/// Exit code: wrong usage, or a file that cannot be used.
pub const USAGE: u8 = 2;

/// Clients under test, the default first.
#[derive(Clone, Copy)]
pub struct Clients(pub &'static [&'static dyn Client]);

impl Clients {
    /// Whether this client is one of them; `None`: the default.
    pub fn has(self, name: Option<&str>) -> bool {
        name.is_none_or(|name| self.0.iter().any(|client| client.name() == name))
    }

    /// Returns the client of that name; `None`: the default.
    ///
    /// # Errors
    /// No client has this name; the message lists the names.
    pub fn named(self, name: Option<&str>) -> Result<&'static dyn Client, String> {
        let mut all = self.0.iter().copied();
        let found = all.find(|client| name.is_none_or(|name| client.name() == name));
        found.ok_or_else(|| {
            let names: Vec<&str> = self.0.iter().map(|client| client.name()).collect();
            let name = name.unwrap_or_default();
            format!("there is no client {name}; there are: {}", names.join(", "))
        })
    }

    /// Returns the first client that offers the contract of a scenario.
    pub fn offering(self, contract: Contract) -> Option<&'static dyn Client> {
        let mut all = self.0.iter().copied();
        all.find(|client| client.contracts().contains(&contract))
    }
}

/// Returns the number of processors, or 1 if it is unknown.
pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Returns the repository's root, relative if it is the current folder, so that messages stay short.
pub fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap_or(Path::new("."));
    match std::env::current_dir() {
        Ok(here) if here == root => PathBuf::from("."),
        Ok(_) | Err(_) => root.to_owned(),
    }
}

/// Returns the scenarios in `paths`, and the mistakes of files that do not load, rendered for a terminal.
pub fn load_paths(paths: &[PathBuf]) -> (Vec<SharedScenario>, Vec<String>) {
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

/// Returns every scenario of the repository at `root`.
///
/// # Errors
/// The mistakes of all scenarios, rendered for a terminal.
pub fn load(root: &Path) -> Result<Vec<SharedScenario>, String> {
    let (loaded, faults) = load_paths(&[root.join("scenarios")]);
    if faults.is_empty() {
        Ok(loaded)
    } else {
        Err(faults.join("\n"))
    }
}

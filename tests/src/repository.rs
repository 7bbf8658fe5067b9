//! Location of scenario files, and functions to load them. A file that does not load fails the test with all its
//! errors.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use conformance::baseline::{self, Baseline};
use conformance::suite;
use fake_apiserver::scenario::{self, Contract, SharedScenario, Style};

/// Returns the repository's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap_or(Path::new("."))
        .to_owned()
}

/// Returns all scenarios that start an informer, in the order of their paths.
///
/// # Panics
/// If a file cannot be read or has errors.
pub fn scenarios() -> Vec<SharedScenario> {
    let mut all = all_contracts();
    all.retain(|scenario| scenario.client.contract == Contract::Informer);
    all
}

/// Every scenario, whatever it starts, in order of its path.
///
/// # Panics
/// When a file cannot be read or has mistakes.
pub fn all_contracts() -> Vec<SharedScenario> {
    let files = suite::files(&root()).expect("the scenarios folder is part of the repository");
    files.iter().map(|file| load(file)).collect()
}

/// Returns the scenario with this id.
///
/// # Panics
/// If there is none, or its file has errors.
pub fn scenario(id: &str) -> SharedScenario {
    load(&root().join("scenarios").join(id).with_extension("yaml"))
}

/// Returns the scenario in this file.
///
/// # Panics
/// If it cannot be read or has errors.
pub fn load(file: &Path) -> SharedScenario {
    // Ids are paths below the scenarios folder; the group is the folder in between.
    let folder = file.parent().and_then(Path::parent).unwrap_or(Path::new("."));
    match scenario::load(file, folder) {
        Ok(scenario) => Arc::new(scenario),
        Err(errors) => panic!("{}", errors.render(Style::Plain)),
    }
}

/// Returns the known failures of a client.
///
/// # Panics
/// If the file has errors.
pub fn known_failures(client: &str) -> Baseline {
    match Baseline::read(&baseline::path_of(&root(), client)) {
        Ok(baseline) => baseline,
        Err(error) => panic!("{error}"),
    }
}

/// Returns true if this file of the repository contains this word.
pub fn contains_word(file: &str, word: &str) -> bool {
    std::fs::read_to_string(root().join(file)).is_ok_and(|text| text.contains(word))
}

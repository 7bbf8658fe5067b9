//! Where the scenario files are, and how tests come by them. A file that does not load ends the test with every mistake
//! in it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use conformance::baseline::{self, Baseline};
use conformance::suite;
use fake_apiserver::scenario::{self, Contract, SharedScenario, Style};

/// The repository's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap_or(Path::new("."))
        .to_owned()
}

/// Every scenario that starts an informer, in order of its path.
///
/// # Panics
/// When a file cannot be read or has mistakes.
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

/// The scenario with this id.
///
/// # Panics
/// When there is none, or its file has mistakes.
pub fn scenario(id: &str) -> SharedScenario {
    load(&root().join("scenarios").join(id).with_extension("yaml"))
}

/// The scenario in this file.
///
/// # Panics
/// When it cannot be read or has mistakes.
pub fn load(file: &Path) -> SharedScenario {
    // Ids are paths below the scenarios folder; the group is the one folder between.
    let folder = file.parent().and_then(Path::parent).unwrap_or(Path::new("."));
    match scenario::load(file, folder) {
        Ok(scenario) => Arc::new(scenario),
        Err(errors) => panic!("{}", errors.render(Style::Plain)),
    }
}

/// What the client of this name is known to fail.
///
/// # Panics
/// When its file has mistakes.
pub fn known_failures(client: &str) -> Baseline {
    match Baseline::read(&baseline::path_of(&root(), client)) {
        Ok(baseline) => baseline,
        Err(error) => panic!("{error}"),
    }
}

/// Does this file of the repository have this word in it?
pub fn says(file: &str, word: &str) -> bool {
    std::fs::read_to_string(root().join(file)).is_ok_and(|text| text.contains(word))
}

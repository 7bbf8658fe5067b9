//! The scenarios that are part of this program.

use std::io;
use std::path::Path;
use std::time::Duration;

use fake_apiserver::scenario::{self, LoadErrors, Scenario};

/// Id and text of every scenario of this version, and the milliseconds that our watcher needs for it in virtual time.
pub(crate) const SCENARIOS: &[(&str, &str, u64)] = include!(concat!(env!("OUT_DIR"), "/scenarios.rs"));

/// Returns whether there is a built-in scenario of this id.
pub(crate) fn has(id: &str) -> bool {
    SCENARIOS.iter().any(|(known, ..)| *known == id)
}

/// Returns id and text of every scenario whose id begins with `prefix`; without a `/` it is the whole name of a group.
pub(crate) fn beginning(prefix: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let begins = move |id: &str| {
        let rest = id.strip_prefix(prefix);
        rest.is_some_and(|rest| prefix.is_empty() || prefix.contains('/') || rest.starts_with('/'))
    };
    let all = SCENARIOS.iter().map(|(id, text, _)| (*id, *text));
    all.filter(move |(id, _)| begins(id))
}

/// Returns the content of a scenario's file. `is_built_in`: of the one that is part of this program.
///
/// # Errors
///
/// The file cannot be read any more.
pub(crate) fn text(scenario: &Scenario, is_built_in: bool) -> io::Result<String> {
    let built_in = SCENARIOS.iter().find(|(id, ..)| *id == scenario.id);
    match built_in.filter(|_| is_built_in) {
        Some((_, text, _)) => Ok((*text).to_owned()),
        None => std::fs::read_to_string(&scenario.path),
    }
}

/// Parses the text of the built-in scenario of this id. Its path is that of the file in the repository.
///
/// # Errors
///
/// The mistakes of the text; a test finds them first.
pub(crate) fn parsed(id: &str, text: &str) -> Result<Scenario, LoadErrors> {
    let path = Path::new("scenarios").join(format!("{id}.yaml"));
    scenario::parse(id, &path, text)
}

/// Time that our watcher needs for the scenario of this id by its own delays; zero: unknown.
pub(crate) fn reference(id: &str) -> Duration {
    let built_in = SCENARIOS.iter().find(|(built_in, ..)| *built_in == id);
    built_in.map_or(Duration::ZERO, |(_, _, reference_ms)| {
        Duration::from_millis(*reference_ms)
    })
}

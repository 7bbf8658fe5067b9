//! Selection of scenarios: the built-in ones or those of paths, by prefix and shard; and those that are not played.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use conformance::adapter::attempt::Test;
use conformance::adapter::outcome::Outcome;
use conformance::adapter::tested::Client;
use fake_apiserver::scenario::{self, Scenario, Style};

use super::{Conformance, Profile};
use crate::built_in::{self, SCENARIOS as BUILT_IN, reference};
use crate::{Failure, output};

/// The selected scenarios.
pub(super) struct Selected {
    pub(super) tests: Vec<Test>,
    /// Ids before the selection.
    known: BTreeSet<String>,
}

impl Selected {
    /// Returns whether a scenario of that id exists, selected or not.
    pub(super) fn exists(&self, id: &str) -> bool {
        self.known.contains(id) || BUILT_IN.iter().any(|(built_in, ..)| *built_in == id)
    }

    /// Returns why there is nothing to run.
    pub(super) fn nothing(&self, arguments: &Conformance) -> String {
        let groups: BTreeSet<&str> = self.known.iter().filter_map(|id| id.split('/').next()).collect();
        let groups: Vec<&str> = groups.into_iter().collect();
        let shard = arguments
            .shard
            .map(|shard| format!(" in shard {}/{}", shard.part, shard.of));
        format!(
            "no scenario begins with {}{}{}; groups: {}",
            arguments.prefixes.join(" or "),
            match arguments.tag.as_slice() {
                [] => String::new(),
                tags => format!(" and has the tag {}", tags.join(" or ")),
            },
            shard.unwrap_or_default(),
            groups.join(", ")
        )
    }
}

/// Loads and selects scenarios.
///
/// # Errors
///
/// A file has mistakes; all of them are printed.
pub(super) fn select(arguments: &Conformance) -> Result<Selected, Failure> {
    let all = if arguments.scenarios.is_empty() {
        built_in()?
    } else {
        of_paths(arguments)?
    };
    let known = all.iter().map(|test| test.scenario.id.clone()).collect();
    let prefixes = &arguments.prefixes;
    let chosen =
        |id: &str| prefixes.is_empty() || prefixes.iter().any(|prefix| id.starts_with(prefix.as_str()));
    let tests = all
        .into_iter()
        .filter(|test| chosen(&test.scenario.id))
        .filter(|test| test.scenario.has_tag(&arguments.tag))
        .filter(|test| arguments.shard.is_none_or(|shard| shard.has(&test.scenario.id)))
        .collect();
    Ok(Selected { tests, known })
}

fn built_in() -> Result<Vec<Test>, Failure> {
    BUILT_IN
        .iter()
        .map(|(id, text, reference_ms)| {
            built_in::parsed(id, text)
                .map(|scenario| Test {
                    scenario: Arc::new(scenario),
                    reference: Duration::from_millis(*reference_ms),
                })
                .map_err(|errors| Failure::Drawn(errors.render(Style::for_stderr())))
        })
        .collect()
}

fn of_paths(arguments: &Conformance) -> Result<Vec<Test>, Failure> {
    let (files, mut mistaken) = scenario::find(&arguments.scenarios);
    let mut all = Vec::new();
    for file in files {
        match file.load() {
            Ok(scenario) => all.push(Test {
                reference: reference(&scenario.id),
                scenario: Arc::new(scenario),
            }),
            Err(errors) => mistaken.push(errors),
        }
    }
    for errors in &mistaken {
        output::log_raw(&errors.render(Style::for_stderr()));
    }
    if mistaken.is_empty() {
        Ok(all)
    } else {
        Err(Failure::Silent(2))
    }
}

/// Returns the text of a scenario file, or of a built-in scenario.
///
/// # Errors
///
/// The file cannot be read any more.
pub(super) fn text(arguments: &Conformance, scenario: &Scenario) -> io::Result<String> {
    built_in::text(scenario, arguments.scenarios.is_empty())
}

/// Returns why a test is not played; no process is started for it. `None`: it is played.
pub(super) fn left_out(arguments: &Conformance, test: &Test, client: &Client) -> Option<(Outcome, String)> {
    let is_named = arguments.prefixes.contains(&test.scenario.id);
    client.left_out(test, is_named || arguments.profile == Profile::Full)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_scenario_loads() {
        let all = built_in().unwrap_or_else(|failure| panic!("{failure}"));
        let files = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios")).unwrap();
        assert!(files.count() > 10 && all.len() > 150, "{} scenarios", all.len());
    }
}

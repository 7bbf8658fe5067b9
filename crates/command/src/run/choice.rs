//! Which scenarios `run` plays: those of files and folders, and the ones that are part of this program, by id or prefix.
//!
//! A name is a path if there is such a file or folder. It must not know how a scenario is played.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fake_apiserver::scenario::{self, LoadErrors, Scenario, SharedScenario};

use crate::Failure;
use crate::built_in;

/// A scenario to play.
#[derive(Clone)]
pub(super) struct Loaded {
    pub(super) scenario: SharedScenario,
    /// Whether it was named itself, instead of a folder that contains it.
    pub(super) named: bool,
    /// Whether it is part of this program.
    pub(super) is_built_in: bool,
}

/// Returns the scenarios of these names, in order; all that are part of this program if there is none. With `tags` only those
/// that have one of them. Also returns the mistakes of invalid files.
///
/// # Errors
///
/// A name is neither a path nor the id of a built-in scenario, or nothing has such a tag.
pub(super) fn load(names: &[PathBuf], tags: &[String]) -> Result<(Vec<Loaded>, Vec<LoadErrors>), Failure> {
    let mut scenarios = Vec::new();
    let mut mistaken = Vec::new();
    if names.is_empty() {
        scenarios.extend(of_program("").map(|scenario| loaded(scenario, false, true)));
    }
    for name in names {
        if !name.exists() {
            let id = id_of(name);
            let before = scenarios.len();
            scenarios.extend(of_program(&id).map(|scenario| {
                let named = scenario.id == id;
                loaded(scenario, named, true)
            }));
            if scenarios.len() > before {
                continue;
            } else if !is_path(name) {
                return Err(unknown(&id));
            }
        }
        let (files, errors) = scenario::find(std::slice::from_ref(name));
        mistaken.extend(errors);
        for file in files {
            match file.load() {
                Ok(scenario) => scenarios.push(loaded(scenario, file.named, false)),
                Err(errors) => mistaken.push(errors),
            }
        }
    }
    let known: BTreeSet<String> = scenarios
        .iter()
        .flat_map(|loaded| loaded.scenario.tags.iter().cloned())
        .collect();
    scenarios.retain(|loaded| loaded.scenario.has_tag(tags));
    if scenarios.is_empty() && !tags.is_empty() {
        let known: Vec<String> = known.into_iter().collect();
        return Err(Failure::Usage(format!(
            "no scenario has the tag {}; tags of these scenarios: {}",
            tags.join(" or "),
            if known.is_empty() {
                "none".to_owned()
            } else {
                known.join(", ")
            },
        )));
    }
    Ok((scenarios, mistaken))
}

/// Returns whether a name can only be meant as a path.
fn is_path(name: &Path) -> bool {
    let has_ending = name
        .extension()
        .is_some_and(|ending| ending == "yaml" || ending == "yml" || ending == "snap");
    has_ending || name.is_absolute() || name.starts_with(".") || name.starts_with("..")
}

fn unknown(id: &str) -> Failure {
    let groups: BTreeSet<&str> = built_in::SCENARIOS
        .iter()
        .filter_map(|(id, ..)| id.split('/').next())
        .collect();
    let groups: Vec<&str> = groups.into_iter().collect();
    Failure::Usage(format!(
        "`{id}` is no file or folder, and no built-in scenario begins with it; groups of built-in scenarios: {}",
        groups.join(", ")
    ))
}

fn loaded(scenario: Scenario, named: bool, is_built_in: bool) -> Loaded {
    Loaded {
        scenario: Arc::new(scenario),
        named,
        is_built_in,
    }
}

/// Returns the scenarios of this program whose id begins with `prefix`.
fn of_program(prefix: &str) -> impl Iterator<Item = Scenario> {
    built_in::beginning(prefix)
        .map(|(id, text)| built_in::parsed(id, text).expect("a test parses every built-in scenario"))
}

/// Returns the id that a name stands for: `scenarios/gone/x.yaml`, as reports print it, is `gone/x`.
fn id_of(name: &Path) -> String {
    let name = name.to_string_lossy();
    let id = name.strip_prefix("scenarios/").unwrap_or(&name);
    id.strip_suffix(".yaml").unwrap_or(id).to_owned()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::an_id("gone/http-410-at-watch-start-forces-a-relist", 1)]
    #[case::a_path_of_a_report("scenarios/gone/http-410-at-watch-start-forces-a-relist.yaml", 1)]
    #[case::a_beginning("gone/http-410-at-w", 1)]
    #[case::no_group("gon", 0)]
    fn names_stand_for_scenarios_of_this_program(#[case] name: &str, #[case] expected: usize) {
        assert_eq!(of_program(&id_of(Path::new(name))).count(), expected);
    }

    #[test]
    fn unknown_names_differ_from_missing_files() {
        let of = |name: &str| load(&[PathBuf::from(name)], &[]);
        let unknown = of("gon").err().map(|why| why.to_string());
        assert!(unknown.is_some_and(|why| why.contains("`gon`") && why.contains("gone")));
        assert!(of("gon.yaml").is_ok_and(|(_, mistaken)| mistaken.len() == 1));
    }

    #[test]
    fn every_built_in_scenario_is_valid() {
        assert_eq!(of_program("").count(), built_in::SCENARIOS.len());
        assert!(of_program("gone/").count() > 10);
        assert_eq!(of_program("gone").count(), of_program("gone/").count());
    }

    #[test]
    fn tags_select_across_groups() {
        let (chosen, mistaken) = load(&[], &["minor".to_owned()]).unwrap();
        let groups: BTreeSet<&str> = chosen
            .iter()
            .filter_map(|loaded| loaded.scenario.id.split('/').next())
            .collect();
        assert!(groups.len() > 2 && mistaken.is_empty(), "{groups:?}");
        let unknown = load(&[], &["miner".to_owned()]).err().map(|why| why.to_string());
        assert!(unknown.is_some_and(|why| why.contains("minor")));
    }
}

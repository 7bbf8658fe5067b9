//! Known defects of kube-runtime's watcher: each with the scenarios and stories that show it, and the current results
//! of both clients. Contains no expected results.
//!
//! The list is `adapters/kube-runtime/defects.yaml`; the page generated from it is `docs/kube-runtime-defects.md`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use adapter_kube_runtime::KubeRuntime;
use adapter_watcher::WatcherClient;
use conformance::baseline::Baseline;
use conformance::client::Client;
use conformance::suite::{self, Driver, Plan};
use serde::Deserialize;

use crate::{parallel, repository};

mod one_client;
mod stories;
mod tasks;

use self::stories::{Check, STORIES};

/// A defect in the list.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Defect {
    /// Id, e.g. `B7`, `S0-a`.
    pub id: String,
    /// Description in one line.
    pub what: String,
    /// The scenarios that show it.
    #[serde(default)]
    pub scenarios: Vec<String>,
    /// The stories that show it, for behaviour that is not on the wire.
    #[serde(default)]
    pub stories: Vec<String>,
    /// Version in which it was fixed, if 5.0.0 does not have it.
    pub gone: Option<String>,
    /// The defect that replaced it in 5.0.0, shown by the same scenario.
    pub became: Option<String>,
}

/// A defect with its results.
#[derive(Debug)]
pub struct Seen {
    /// The defect.
    pub defect: Defect,
    /// Results per scenario and story.
    pub shown: Vec<Shown>,
}

/// Result of a scenario or story.
#[derive(Debug, Clone)]
pub struct Shown {
    /// Id of the scenario or story.
    pub by: String,
    /// Whether it is a scenario.
    pub is_scenario: bool,
    /// Failure of kube-runtime; `None`: it passes.
    pub kube_runtime: Option<String>,
    /// Failure of our watcher; `None`: it passes.
    pub ours: Option<String>,
}

/// Path of the page in the repository.
pub const PAGE: &str = "docs/kube-runtime-defects.md";

/// Runs all scenarios and stories of the list.
///
/// # Panics
/// If the list, or a scenario in it, cannot be read.
pub fn see() -> Vec<Seen> {
    let defects = listed();
    let mut names: Vec<(bool, &String)> = defects
        .iter()
        .flat_map(|defect| {
            let scenarios = defect.scenarios.iter().map(|id| (true, id));
            scenarios.chain(defect.stories.iter().map(|name| (false, name)))
        })
        .collect();
    names.sort();
    names.dedup();
    let shown: BTreeMap<(bool, String), Shown> = parallel::map(&names, |(is_scenario, name)| {
        let shown = if *is_scenario {
            by_scenario(name)
        } else {
            by_story(name)
        };
        ((*is_scenario, (*name).clone()), shown)
    })
    .into_iter()
    .collect();
    let seen = defects.into_iter().map(|defect| Seen {
        shown: {
            let scenarios = defect.scenarios.iter().map(|id| (true, id.clone()));
            let stories = defect.stories.iter().map(|name| (false, name.clone()));
            scenarios.chain(stories).map(|key| shown[&key].clone()).collect()
        },
        defect,
    });
    seen.collect()
}

/// Returns deviations from the list: ours must pass everything, and kube-runtime must fail something for each defect
/// it has.
pub fn wrong(seen: &[Seen]) -> Vec<String> {
    let mut wrong = Vec::new();
    for Seen { defect, shown } in seen {
        let id = &defect.id;
        for shown in shown {
            if let Some(why) = &shown.ours {
                wrong.push(format!("{id}: our watcher does not pass {}: {why}", shown.by));
            }
        }
        let fails = shown.iter().any(|shown| shown.kube_runtime.is_some());
        match (&defect.gone, &defect.became) {
            (None, None) if !fails => wrong.push(format!("{id}: no failure shows it: kube-runtime passes")),
            (Some(_), None) if fails => wrong.push(format!("{id}: listed as gone, but kube-runtime fails")),
            (None, Some(_)) => wrong.push(format!("{id}: became another, but is not gone")),
            (None, None) | (Some(_), None | Some(_)) => {}
        }
    }
    wrong
}

/// Returns the page.
pub fn page(seen: &[Seen]) -> String {
    let mut page = String::from(HEAD);
    for Seen { defect, shown } in seen {
        let mut what = defect.what.clone();
        if let Some(gone) = &defect.gone {
            let _infallible = write!(what, " **Gone {gone}.**");
        }
        if let Some(became) = &defect.became {
            let _infallible = write!(what, " What is left is {became}.");
        }
        let cell = |of: &dyn Fn(&Shown) -> String| shown.iter().map(of).collect::<Vec<_>>().join("<br>");
        let _infallible = writeln!(
            page,
            "| {} | {what} | {} | {} | {} |",
            defect.id,
            cell(&link),
            cell(&|shown| outcome(shown.kube_runtime.as_deref())),
            cell(&|shown| outcome(shown.ours.as_deref())),
        );
    }
    page.push_str("\n## What is not on the wire\n\n");
    for story in &STORIES {
        let _infallible = writeln!(page, "- **{}**: {}", story.name, story.claim);
    }
    page
}

const HEAD: &str = "\
# What kube-runtime 5.0.0 gets wrong, and this watcher does not

Written by `cargo xtask defects --write-docs` from what both clients do; a test keeps it so. A scenario is a file below
`scenarios/`; a story (at the end) is a test with real tasks, where the fault is not on the wire. B: in 5.0.0; S0 and S1: in
the two older watchers people still run (0.89 to 0.91, 0.66 to 0.71). kube-runtime is used as its documentation says.

| defect | what goes wrong | shown by | kube-runtime 5.0.0 | this watcher |
|---|---|---|---|---|
";

fn link(shown: &Shown) -> String {
    if shown.is_scenario {
        format!("[{0}](../scenarios/{0}.yaml)", shown.by)
    } else {
        shown.by.clone()
    }
}

fn outcome(wrong: Option<&str>) -> String {
    match wrong {
        None => "passes".to_owned(),
        Some(why) => why.replace('|', "\\|"),
    }
}

/// Returns the list.
///
/// # Panics
/// If it cannot be read.
pub fn listed() -> Vec<Defect> {
    let path: PathBuf = repository::root().join("adapters/kube-runtime/defects.yaml");
    let text = std::fs::read_to_string(&path).expect("the list of defects is part of the repository");
    match serde_saphyr::from_str(&text) {
        Ok(defects) => defects,
        Err(error) => panic!("{}: {error}", path.display()),
    }
}

fn by_scenario(id: &str) -> Shown {
    let scenario = repository::scenario(id);
    let wrong = |client: &dyn Client| {
        let plan = Plan {
            driver: Driver::Sim,
            seed: 0,
            jobs: 1,
        };
        let verdict = suite::one(&scenario, client, plan, &Baseline::default()).verdict;
        let first = verdict.contradictions.first()?;
        Some(format!("{} ({})", verdict.outcome.word(), first.check))
    };
    Shown {
        by: id.to_owned(),
        is_scenario: true,
        kube_runtime: wrong(&KubeRuntime),
        ours: wrong(&WatcherClient),
    }
}

fn by_story(name: &str) -> Shown {
    let story = STORIES.iter().find(|story| story.name == name);
    let story = story.unwrap_or_else(|| panic!("no such story in the list of defects: {name}"));
    let (kube_runtime, ours) = match story.check {
        Check::OfClients(check) => (check(&KubeRuntime), check(&WatcherClient)),
        Check::OfEach { kube_runtime, ours } => (kube_runtime(), ours()),
    };
    Shown {
        by: name.to_owned(),
        is_scenario: false,
        kube_runtime: kube_runtime.err(),
        ours: ours.err(),
    }
}

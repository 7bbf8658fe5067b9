//! Faults for an unchanged suite: rules and a scenario from files in environment variables.
//!
//! It must not know when they apply.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use fake_apiserver::record::line::printable;
use fake_apiserver::scenario::{Scenario, ScenarioFile, Style, parse_rule};
use fake_apiserver::server::Server;

use crate::{Failure, objects};

/// Environment variable with the path of a file of rules.
pub(super) const RULES: &str = "FAKE_APISERVER_RULES";

/// Environment variable with the path of a scenario.
pub(super) const SCENARIO: &str = "FAKE_APISERVER_SCENARIO";

/// Set by `fake-apiserver run`, where [`SCENARIO`] is the id of the scenario that the server of `run` plays.
const OF_RUN: &str = "FAKE_APISERVER_TARGET";

/// Files with faults.
#[derive(Debug, Default)]
pub(super) struct Faults {
    rules: Option<PathBuf>,
    scenario: Option<PathBuf>,
}

impl Faults {
    /// Returns the paths in the environment.
    pub(super) fn from_environment() -> Self {
        Self::from_variables(|name| std::env::var_os(name))
    }

    fn from_variables(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let file = |name| {
            variable(name)
                .filter(|value| !value.is_empty())
                .map(PathBuf::from)
        };
        Self {
            rules: file(RULES),
            scenario: file(SCENARIO).filter(|_| variable(OF_RUN).is_none()),
        }
    }

    /// Loads the scenario, if there is one.
    ///
    /// # Errors
    ///
    /// All its mistakes.
    pub(super) fn scenario(&self) -> Result<Option<Arc<Scenario>>, Failure> {
        let Some(file) = &self.scenario else {
            return Ok(None);
        };
        let loaded = ScenarioFile::named(file).load();
        let scenario = loaded.map_err(|errors| Failure::Drawn(errors.render(Style::for_stderr())))?;
        Ok(Some(Arc::new(scenario)))
    }

    /// Adds the rules, if there is a file: one per document (`---`), in order. A rule can name a resource whose
    /// CustomResourceDefinition is created later. Returns their number.
    ///
    /// # Errors
    ///
    /// All their mistakes.
    pub(super) fn add_rules(&self, server: &mut Server) -> Result<usize, Failure> {
        let Some(file) = &self.rules else {
            return Ok(0);
        };
        let text = std::fs::read_to_string(file)
            .map_err(|error| Failure::Usage(format!("{RULES}: {}: {error}", file.display())))?;
        let documents = objects::documents(&text);
        if documents.is_empty() {
            return Err(Failure::Usage(format!("{RULES}: {} has no rule", file.display())));
        }
        add(server, file, &documents)
    }

    /// Checks the files, so that mistakes are reported before a suite starts.
    ///
    /// # Errors
    ///
    /// All mistakes in one of them.
    pub(super) fn check(&self) -> Result<(), Failure> {
        let scenario = self.scenario()?;
        let mut server = server(scenario, fake_apiserver::scenario::ServerSettings::default());
        self.add_rules(&mut server).map(drop)
    }
}

/// Returns a stock apiserver, with the steps of the scenario if there is one; the settings of the scenario are ignored.
pub(super) fn server(
    scenario: Option<Arc<Scenario>>,
    settings: fake_apiserver::scenario::ServerSettings,
) -> Server {
    let mut server = match scenario {
        Some(scenario) => Server::standalone_with_scenario(scenario, SEED),
        None => Server::standalone(settings, SEED),
    }
    .with_bootstrap_objects();
    server.mark_initial_state();
    server
}

/// Seed of every apiserver: names and timeouts are the same in all runs of a suite.
pub(super) const SEED: u64 = 0;

/// Adds the rules in these documents, each with its first line, and returns their number.
///
/// # Errors
///
/// The mistakes of all of them.
fn add(server: &mut Server, file: &Path, documents: &[(usize, &str)]) -> Result<usize, Failure> {
    let mut mistakes = String::new();
    for (index, (line, document)) in documents.iter().enumerate() {
        // Padded, so that line numbers of mistakes are those of the file.
        let text = "\n".repeat(line - 1) + document;
        let rule = match parse_rule(file, &text, server.catalog()) {
            Ok(rule) => rule,
            Err(errors) => {
                let place = printable(&file.display().to_string()).into_owned();
                mistakes.push_str(&format!("{place}:{line}: rule {} is invalid:\n", index + 1));
                mistakes.push_str(&errors.render(Style::for_stderr()));
                continue;
            }
        };
        if let Err(refused) = server.add_rule_ahead(Duration::ZERO, rule) {
            let place = file.display();
            mistakes.push_str(&printable(&format!("{place}:{line}: {refused}")));
            mistakes.push('\n');
        }
    }
    if mistakes.is_empty() {
        Ok(documents.len())
    } else {
        Err(Failure::Drawn(mistakes))
    }
}

#[cfg(test)]
mod tests {
    use fake_apiserver::scenario::ServerSettings;

    use super::*;

    fn add(text: &str) -> Result<Vec<String>, String> {
        let mut server = server(None, ServerSettings::default());
        let documents = objects::documents(text);
        super::add(&mut server, Path::new("rules.yaml"), &documents)
            .map_err(|failure| failure.to_string())?;
        Ok(server.rules().into_iter().map(|rule| rule.does).collect())
    }

    #[test]
    fn a_rule_may_name_a_resource_that_is_defined_later() {
        let text = "# faults\nfrom: {resource: widgets.example.com}\nwhen: {watch: next}\n\
            do: {error: {code: 410, reason: Expired}}\n---\nwhen: {list: next}\ndo: {reply: {status: 503}}\n";
        assert_eq!(add(text).map(|does| does.len()), Ok(2));
    }

    #[test]
    fn the_scenario_of_run_is_another() {
        let of = |run: bool| {
            let faults = Faults::from_variables(|name| {
                (name == SCENARIO || run && name == OF_RUN).then(|| "x".into())
            });
            (faults.rules, faults.scenario)
        };
        assert_eq!(of(false), (None, Some(PathBuf::from("x"))));
        assert_eq!(of(true), (None, None), "`run` names its own scenario by id");
    }

    #[test]
    fn a_mistake_has_its_line_in_the_file() {
        let text = "when: {list: next}\ndo: {reply: {status: 503}}\n---\nwhen: {list: nxt}\ndo: {reply: {status: 503}}\n";
        let why = add(text).unwrap_err();
        assert!(why.contains("rules.yaml:4:"), "{why}");
    }
}

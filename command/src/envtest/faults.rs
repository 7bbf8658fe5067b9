//! Faults for a suite that does not know of them: rules and a scenario from the files that the environment names.
//!
//! It must not know when they apply.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use fake_apiserver::record::line::printable;
use fake_apiserver::scenario::{Scenario, ScenarioFile, Style, parse_rule};
use fake_apiserver::server::Server;

use crate::{Failure, objects};

/// Names the file with rules.
pub(super) const RULES: &str = "FAKE_APISERVER_RULES";

/// Names the scenario file.
pub(super) const SCENARIO: &str = "FAKE_APISERVER_SCENARIO";

/// Files with faults.
#[derive(Debug, Default)]
pub(super) struct Faults {
    rules: Option<PathBuf>,
    scenario: Option<PathBuf>,
}

impl Faults {
    /// Reads the names of the files from the environment.
    pub(super) fn from_environment() -> Self {
        let file = |variable| {
            let value = std::env::var_os(variable).filter(|value| !value.is_empty());
            value.map(PathBuf::from)
        };
        Self {
            rules: file(RULES),
            scenario: file(SCENARIO),
        }
    }

    /// Loads the scenario, if one is named.
    ///
    /// # Errors
    /// Every mistake in it.
    pub(super) fn scenario(&self) -> Result<Option<Arc<Scenario>>, Failure> {
        let Some(file) = &self.scenario else {
            return Ok(None);
        };
        let loaded = ScenarioFile::named(file).load();
        let scenario = loaded.map_err(|errors| Failure::Drawn(errors.render(Style::for_stderr())))?;
        Ok(Some(Arc::new(scenario)))
    }

    /// Adds the rules, if a file is named: one document (`---`) a rule, in the order of the file. A rule may name a resource
    /// whose CustomResourceDefinition the suite creates later. Returns their number.
    ///
    /// # Errors
    /// Every mistake in them.
    pub(super) fn add_rules(&self, server: &mut Server) -> Result<usize, Failure> {
        let Some(file) = &self.rules else {
            return Ok(0);
        };
        let text = std::fs::read_to_string(file)
            .map_err(|error| Failure::Usage(format!("{RULES}: {}: {error}", file.display())))?;
        let documents = objects::documents(&text);
        for (line, document) in &documents {
            add_rule(server, file, *line, document)?;
        }
        if documents.is_empty() {
            return Err(Failure::Usage(format!("{RULES}: {} has no rule", file.display())));
        }
        Ok(documents.len())
    }

    /// Checks the files, so that mistakes are reported before a suite starts.
    ///
    /// # Errors
    /// Every mistake in one of them.
    pub(super) fn check(&self) -> Result<(), Failure> {
        let scenario = self.scenario()?;
        let mut server = server(scenario, fake_apiserver::scenario::ServerSettings::default());
        self.add_rules(&mut server).map(drop)
    }
}

/// Returns a stock apiserver, with the steps of the scenario if there is one. Settings of a scenario are its own.
pub(super) fn server(
    scenario: Option<Arc<Scenario>>,
    settings: fake_apiserver::scenario::ServerSettings,
) -> Server {
    let mut server = match scenario {
        Some(scenario) => Server::standalone_with_scenario(scenario, SEED),
        None => Server::standalone(settings, SEED),
    }
    .with_bootstrap_objects();
    server.begin_here();
    server
}

/// Seed of every apiserver: two runs of a suite meet the same names and timeouts.
const SEED: u64 = 0;

/// `line` is the first of the document, so that mistakes have their place in the file.
fn add_rule(server: &mut Server, file: &Path, line: usize, document: &str) -> Result<(), Failure> {
    let text = "\n".repeat(line - 1) + document;
    let rule = parse_rule(file, &text, server.catalog())
        .map_err(|errors| Failure::Drawn(errors.render(Style::for_stderr())))?;
    match server.add_rule_ahead(Duration::ZERO, rule) {
        Ok(_) => Ok(()),
        Err(refused) => Err(Failure::Usage(format!(
            "{RULES}: {}:{line}: {}",
            file.display(),
            printable(&refused.to_string())
        ))),
    }
}

#[cfg(test)]
mod tests {
    use fake_apiserver::scenario::ServerSettings;

    use super::*;

    fn add(text: &str) -> Result<Vec<String>, String> {
        let mut server = server(None, ServerSettings::default());
        for (line, document) in objects::documents(text) {
            add_rule(&mut server, Path::new("rules.yaml"), line, document)
                .map_err(|failure| failure.to_string())?;
        }
        Ok(server.rules().into_iter().map(|rule| rule.does).collect())
    }

    #[test]
    fn a_rule_may_name_a_resource_that_is_defined_later() {
        let text = "# faults\nfrom: {resource: widgets.example.com}\nwhen: {watch: next}\n\
            do: {error: {code: 410, reason: Expired}}\n---\nwhen: {list: next}\ndo: {reply: {status: 503}}\n";
        assert_eq!(add(text).map(|does| does.len()), Ok(2));
    }

    #[test]
    fn a_mistake_has_its_line_in_the_file() {
        let text = "when: {list: next}\ndo: {reply: {status: 503}}\n---\nwhen: {list: nxt}\ndo: {reply: {status: 503}}\n";
        let why = add(text).unwrap_err();
        assert!(why.contains("rules.yaml:4:"), "{why}");
    }
}

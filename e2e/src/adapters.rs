//! adapters/adapters.yaml: the clients of the conformance suite, and the commands that build and run their adapters. It must
//! not know results.

mod build;
pub mod sources;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// Path of the file in the repository.
const FILE: &str = "adapters/adapters.yaml";

/// The parsed file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Registry {
    /// Ecosystems by name, which is the name of the folder.
    pub ecosystems: BTreeMap<String, Ecosystem>,
    /// Clients in the order of the page.
    pub clients: Vec<Client>,
    /// Scenarios that are not judged for some clients.
    #[serde(default)]
    pub left_out: Vec<LeftOut>,
}

/// Folder of adapters that are built together.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ecosystem {
    /// Required programs; skipped without them.
    #[serde(default)]
    pub needs: Vec<String>,
    /// Commands, in order.
    #[serde(default)]
    pub build: Vec<Vec<String>>,
    /// Commands after these that put another version of a library in the place of the pinned one.
    #[serde(default)]
    pub with: Vec<Vec<String>>,
}

/// A client.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Client {
    /// Name in files and options.
    pub name: String,
    /// Name on the page, in Markdown.
    pub title: String,
    /// Ecosystem of its adapter.
    pub ecosystem: String,
    /// Command of the adapter, with placeholders.
    pub run: Vec<String>,
    /// Whether another client is a newer version of the same library: its row is in an appendix.
    #[serde(default)]
    pub older: bool,
}

/// Scenarios that prove nothing about some clients.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeftOut {
    /// Ids of the scenarios.
    pub scenarios: Vec<String>,
    /// Names of the clients.
    pub clients: Vec<String>,
    /// Reason, in one sentence.
    pub reason: String,
}

/// Returns the file of what a client is known to fail.
pub fn known_failures(root: &Path, client: &str) -> PathBuf {
    root.join("adapters/known-failures")
        .join(format!("{client}.yaml"))
}

/// Path of the list of reproduced bugs in the repository.
pub const KNOWN_BUGS: &str = "adapters/known-bugs.yaml";

/// Bug of one or more clients that was reproduced.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnownBug {
    /// What goes wrong, as a clause.
    pub bug: String,
    /// Names of the clients.
    pub clients: Vec<String>,
    /// URL, `owner/repo#number`, or `none public`.
    pub issue: String,
    /// Scenario that each of the clients fails because of it.
    #[serde(default)]
    pub scenario: Option<String>,
    /// Reason why no scenario shows it, in one sentence.
    #[serde(default)]
    pub why_not: Option<String>,
    /// Reason why `upstream/` has no text for its maintainers although no public issue describes it, in one sentence.
    #[serde(default)]
    pub no_text: Option<String>,
}

impl KnownBug {
    /// Reads the list.
    ///
    /// # Errors
    ///
    /// The file is missing or has mistakes.
    pub fn read(root: &Path) -> Result<Vec<Self>, String> {
        let text = std::fs::read_to_string(root.join(KNOWN_BUGS));
        Self::parse(&text.map_err(|error| format!("{KNOWN_BUGS}: {error}"))?)
    }

    /// Parses the list.
    ///
    /// # Errors
    ///
    /// It has mistakes.
    pub fn parse(text: &str) -> Result<Vec<Self>, String> {
        serde_saphyr::from_str(text).map_err(|error| format!("{KNOWN_BUGS}: {error}"))
    }
}

impl Registry {
    /// Reads the file.
    ///
    /// # Errors
    ///
    /// The file is missing or has mistakes.
    pub fn read(root: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(root.join(FILE)).map_err(|error| format!("{FILE}: {error}"))?;
        let read: Self = serde_saphyr::from_str(&text).map_err(|error| format!("{FILE}: {error}"))?;
        let homeless = read
            .clients
            .iter()
            .find(|client| !read.ecosystems.contains_key(&client.ecosystem));
        match homeless {
            Some(client) => Err(format!(
                "{FILE}: {} has no ecosystem {}",
                client.name, client.ecosystem
            )),
            None => Ok(read),
        }
    }

    /// Returns the clients of these names; all clients without names.
    ///
    /// # Errors
    ///
    /// A client does not exist.
    pub fn chosen(&self, names: &[String]) -> Result<Vec<&Client>, String> {
        let known = |name: &String| self.clients.iter().any(|client| client.name == *name);
        if let Some(unknown) = names.iter().find(|name| !known(name)) {
            let all: Vec<&str> = self.clients.iter().map(|client| client.name.as_str()).collect();
            return Err(format!(
                "there is no client {unknown}; there are: {}",
                all.join(", ")
            ));
        }
        let chosen = |client: &&Client| names.is_empty() || names.contains(&client.name);
        Ok(self.clients.iter().filter(chosen).collect())
    }

    /// Returns why a scenario is not judged for a client; `None`: it is judged.
    pub fn left_out(&self, client: &Client, scenario: &str) -> Option<&str> {
        let of = |left: &&LeftOut| {
            left.scenarios.iter().any(|id| id == scenario) && left.clients.contains(&client.name)
        };
        self.left_out.iter().find(of).map(|left| left.reason.as_str())
    }
}

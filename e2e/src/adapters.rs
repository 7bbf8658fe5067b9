//! adapters/adapters.yaml: the clients of the conformance suite, and how their adapters are built and run. It must not know
//! results.

mod build;

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

/// The file, below the repository's root.
const FILE: &str = "adapters/adapters.yaml";

/// The file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Registry {
    /// By name, which is the folder's.
    pub ecosystems: BTreeMap<String, Ecosystem>,
    /// In the order of the page.
    pub clients: Vec<Client>,
    /// Scenarios that some clients are not judged by.
    #[serde(default)]
    pub left_out: Vec<LeftOut>,
}

/// A folder of adapters that are built together.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ecosystem {
    /// Programs without which it is skipped.
    #[serde(default)]
    pub needs: Vec<String>,
    /// Commands, in their order.
    #[serde(default)]
    pub build: Vec<Vec<String>>,
}

/// A client.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Client {
    /// The name in files and options.
    pub name: String,
    /// Name on the page, in Markdown.
    pub title: String,
    /// Ecosystem of its adapter.
    pub ecosystem: String,
    /// Command of the adapter, with placeholders.
    pub run: Vec<String>,
}

/// A scenario that proves nothing about some clients.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeftOut {
    /// The scenario's id.
    pub scenario: String,
    /// The names of the clients.
    pub clients: Vec<String>,
    /// Why, in one sentence.
    pub reason: String,
}

impl Registry {
    /// Reads it.
    ///
    /// # Errors
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

    /// The clients of these names; without names all of them.
    ///
    /// # Errors
    /// There is no such client.
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

    /// Why a scenario is not judged with a client, if it is not.
    pub fn left_out(&self, client: &Client, scenario: &str) -> Option<&str> {
        let of = |left: &&LeftOut| left.scenario == scenario && left.clients.contains(&client.name);
        self.left_out.iter().find(of).map(|left| left.reason.as_str())
    }
}

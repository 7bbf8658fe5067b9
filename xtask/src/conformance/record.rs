//! What one client did, as adapters/results/NAME.json keeps it: outcomes and broken requirements, no times and no texts, so
//! that two runs write the same file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use conformance::adapter::outcome::Outcome;
use e2e::adapters::Client;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The invariant that every scenario expects without a word: it stands for all that the scenario covers.
const CONVERGENCE: &str = "INV-13";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// `hello` of the adapter.
    pub(crate) client: Library,
    pub(crate) recovers: String,
    pub(crate) capabilities: BTreeSet<String>,
    /// By scenario.
    pub(crate) tests: BTreeMap<String, Test>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Library {
    pub(crate) lang: String,
    pub(crate) version: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Test {
    pub(crate) outcome: Outcome,
    /// Its attempts came out differently: nothing is judged.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) flaky: bool,
    /// The requirements that it covers and the client broke.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) broken: BTreeSet<String>,
    /// Why it is unsupported or was not played.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) why: String,
}

impl Record {
    /// Reads the output of `fake-apiserver conformance --format json`, and says what in it is not as expected.
    ///
    /// # Errors
    /// It is not complete.
    pub(crate) fn of_run(client: &Client, output: &str) -> Result<(Self, Vec<String>), String> {
        let mut tests = BTreeMap::new();
        let mut complaints = Vec::new();
        let mut footer = None;
        for line in output.lines() {
            let line: Value =
                serde_json::from_str(line).map_err(|error| format!("{}: {error}", client.name))?;
            if let Some(end) = line.get("footer") {
                footer = Some(end.clone());
                continue;
            }
            let id = line["id"].as_str().unwrap_or_default();
            let standing = line["standing"].as_str().unwrap_or_default();
            let message = line["message"].as_str().unwrap_or_default();
            if matches!(
                standing,
                "unexpected-failure" | "flaky" | "stale" | "adapter-error" | "harness-error"
            ) {
                complaints.push(format!("{}: {id}: {standing}: {message}", client.name));
            }
            tests.insert(id.to_owned(), Test::of(&line, standing == "flaky")?);
        }
        let footer = footer
            .filter(|footer| footer["complete"] == true)
            .ok_or_else(|| format!("{}: the run did not come to its end", client.name))?;
        let part = |key: &str| footer[key].clone();
        let failed = |error: serde_json::Error| format!("{}: footer: {error}", client.name);
        let record = Self {
            client: serde_json::from_value(part("client")).map_err(failed)?,
            recovers: serde_json::from_value(part("recovers")).map_err(failed)?,
            capabilities: serde_json::from_value(part("capabilities")).map_err(failed)?,
            tests,
        };
        Ok((record, complaints))
    }

    /// Reads the record of a client.
    ///
    /// # Errors
    /// There is none, or it has mistakes.
    pub(crate) fn read(root: &Path, client: &str) -> Result<Self, String> {
        let file = file(root, client);
        let text = std::fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        serde_json::from_str(&text).map_err(|error| format!("{}: {error}", file.display()))
    }

    /// Is there a record?
    pub(crate) fn exists(root: &Path, client: &str) -> bool {
        file(root, client).is_file()
    }

    /// Writes the record of a client.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn write(&self, root: &Path, client: &str) -> Result<(), String> {
        let file = file(root, client);
        let text = serde_json::to_string_pretty(self).map_err(|error| error.to_string())?;
        let folder = file.parent().map_or(Ok(()), std::fs::create_dir_all);
        folder
            .and_then(|()| std::fs::write(&file, text + "\n"))
            .map_err(|error| format!("{}: {error}", file.display()))
    }

    /// How a fresh run differs from this record.
    pub(crate) fn differences(&self, client: &str, fresh: &Self) -> Vec<String> {
        let mut differences = Vec::new();
        if self.client != fresh.client {
            differences.push(format!("{client}: another version"));
        }
        let ids: BTreeSet<&String> = self.tests.keys().chain(fresh.tests.keys()).collect();
        for id in ids {
            let word = |record: &Self| record.tests.get(id).map_or("absent", |test| test.outcome.word());
            let (was, is) = (word(self), word(fresh));
            if was != is {
                differences.push(format!("{client}: {id}: {is}, recorded as {was}"));
            }
        }
        differences
    }
}

impl Test {
    fn of(line: &Value, flaky: bool) -> Result<Self, String> {
        let outcome: Outcome =
            serde_json::from_value(line["outcome"].clone()).map_err(|error| format!("outcome: {error}"))?;
        let strings = |list: &Value| -> Vec<String> {
            let texts = list.as_array().into_iter().flatten().filter_map(Value::as_str);
            texts.map(str::to_owned).collect()
        };
        let covers = strings(&line["covers"]);
        // The attempt that is reported is the first that accuses somebody.
        let attempts = line["attempts"].as_array().into_iter().flatten();
        let told = attempts
            .clone()
            .find(|attempt| attempt["outcome"] == line["outcome"]);
        let contradictions = told.and_then(|told| told["contradictions"].as_array());
        let breaks = |id: &String| {
            contradictions.into_iter().flatten().any(|found| {
                let check = found["check"].as_str().unwrap_or_default();
                let own = check.starts_with("INV-") && check != CONVERGENCE;
                !own || strings(&found["requirements"]).contains(id)
            })
        };
        let judged = outcome.is_judged() && !flaky;
        Ok(Self {
            outcome,
            flaky,
            broken: covers
                .iter()
                .filter(|id| judged && (outcome == Outcome::Crash || breaks(id)))
                .cloned()
                .collect(),
            why: if matches!(outcome, Outcome::Unsupported | Outcome::NotPlayed) {
                line["message"].as_str().unwrap_or_default().to_owned()
            } else {
                String::new()
            },
        })
    }
}

fn file(root: &Path, client: &str) -> PathBuf {
    root.join("adapters/results").join(format!("{client}.json"))
}

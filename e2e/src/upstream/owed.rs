//! Which failures of the record need a text: those that lose objects, stop a client or overload the server, by input that a
//! real server, network or proxy sends, and that no public issue describes. It must not know the texts.

use std::collections::BTreeSet;
use std::path::Path;

use conformance::baseline::{Baseline, Known};
use scenario::catalogue::{self, Consequence, Provoker, Requirement};
use serde::Deserialize;

use crate::adapters::{KnownBug, Registry, known_failures};

/// Word for a defect that no public issue describes.
pub const NONE_PUBLIC: &str = "none public";

/// Clients whose library has a newer major version in the record, which is judged in its place.
const OLDER: [&str; 4] = [
    "kube-runtime-0.71",
    "kube-runtime-0.91",
    "kube-runtime-0.99",
    "kubernetes-javascript-1",
];

/// The record of a client.
#[derive(Debug)]
pub struct Record {
    /// Name of the client.
    pub client: String,
    /// Version of its library that was measured.
    pub version: String,
    /// Its known failures.
    pub failures: Vec<Known>,
}

impl Record {
    /// Reads the records of all clients that have failures.
    ///
    /// # Errors
    ///
    /// A file cannot be read or has mistakes.
    pub fn all(root: &Path) -> Result<Vec<Self>, String> {
        #[derive(Deserialize)]
        struct Results {
            client: Measured,
        }
        #[derive(Deserialize)]
        struct Measured {
            version: String,
        }
        let mut records = Vec::new();
        for client in Registry::read(root)?.clients {
            let file = known_failures(root, &client.name);
            if !file.is_file() {
                continue;
            }
            let failures = Baseline::read(&file).map_err(|error| error.to_string())?.entries;
            if let Some(vague) = failures.iter().find(|failure| failure.breaks.is_none()) {
                return Err(format!("{}:{}: list what it breaks", file.display(), vague.line));
            }
            let file = root.join(format!("adapters/results/{}.json", client.name));
            let results: Results = serde_json::from_str(&super::read(&file)?)
                .map_err(|error| format!("{}: {error}", file.display()))?;
            records.push(Self {
                client: client.name,
                version: results.client.version,
                failures,
            });
        }
        Ok(records)
    }

    /// Returns the requirements that a scenario shows the client to break.
    pub fn breaks(&self, scenario: &str) -> impl Iterator<Item = &str> {
        let of = self
            .failures
            .iter()
            .filter(move |failure| failure.scenario == scenario);
        of.flat_map(broken)
    }

    /// Whether any scenario shows the client to break a requirement.
    pub fn has_broken(&self, requirement: &str) -> bool {
        self.failures.iter().flat_map(broken).any(|id| id == requirement)
    }
}

/// A failure that needs a text, or a reason in adapters/known-bugs.yaml why it has none.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Owed {
    /// A broken requirement.
    Requirement {
        /// Client that breaks it.
        client: String,
        /// Its id.
        requirement: String,
    },
    /// A reproduced bug.
    Bug {
        /// Client that has it.
        client: String,
        /// Scenario that shows it.
        scenario: String,
    },
}

/// Returns what needs a text. `provoker` is who sends the input of a scenario, where that is stricter than its requirements.
pub fn owed(
    records: &[Record],
    bugs: &[KnownBug],
    provoker: impl Fn(&str) -> Option<Provoker>,
) -> BTreeSet<Owed> {
    let is_real = |provoker: Provoker| provoker <= Provoker::Proxy;
    let mut owed = BTreeSet::new();
    for record in records
        .iter()
        .filter(|record| !OLDER.contains(&record.client.as_str()))
    {
        for failure in record
            .failures
            .iter()
            .filter(|failure| failure.issue == NONE_PUBLIC)
        {
            if !provoker(&failure.scenario).is_none_or(is_real) {
                continue;
            }
            let broken = broken(failure).filter_map(catalogue::requirement);
            let weighs = |requirement: &&Requirement| is_real(requirement.provoked_by) && weighs(requirement);
            owed.extend(broken.filter(weighs).map(|requirement| Owed::Requirement {
                client: record.client.clone(),
                requirement: requirement.id.clone(),
            }));
        }
    }
    for bug in bugs
        .iter()
        .filter(|bug| bug.issue == NONE_PUBLIC && bug.no_text.is_none())
    {
        let Some(scenario) = &bug.scenario else { continue };
        if !provoker(scenario).is_none_or(is_real) {
            continue;
        }
        let clients = bug
            .clients
            .iter()
            .filter(|client| !OLDER.contains(&client.as_str()));
        owed.extend(clients.map(|client| Owed::Bug {
            client: client.clone(),
            scenario: scenario.clone(),
        }));
    }
    owed
}

/// Whether the record says elsewhere why a failure has no text: a public issue, or a reason.
pub fn is_explained(owed: &Owed, records: &[Record], bugs: &[KnownBug]) -> bool {
    let Owed::Requirement { client, requirement } = owed else {
        return false;
    };
    let record = records.iter().find(|record| record.client == *client);
    bugs.iter().any(|bug| {
        let elsewhere = bug.issue != NONE_PUBLIC || bug.no_text.is_some();
        let shows = |scenario: &String| {
            record.is_some_and(|record| record.breaks(scenario).any(|id| id == requirement))
        };
        elsewhere && bug.clients.contains(client) && bug.scenario.as_ref().is_some_and(shows)
    })
}

fn broken(failure: &Known) -> impl Iterator<Item = &str> {
    failure.breaks.iter().flatten().map(String::as_str)
}

/// Whether the consequence of breaking a requirement weighs.
fn weighs(requirement: &Requirement) -> bool {
    matches!(
        requirement.consequence,
        Consequence::Lost | Consequence::Stuck | Consequence::Overload
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(failures: &str) -> Record {
        Record {
            client: "x".to_owned(),
            version: "1".to_owned(),
            failures: Baseline::parse(failures, Path::new("k.yaml")).unwrap().entries,
        }
    }

    fn failure(breaks: &str, issue: &str) -> String {
        format!("[{{scenario: a/b, outcome: fail, breaks: [{breaks}], reason: it does, issue: {issue}}}]")
    }

    fn of(records: &[Record], bugs: &str, provoker: Option<Provoker>) -> Vec<Owed> {
        let bugs = KnownBug::parse(bugs).unwrap();
        let owed = owed(records, &bugs, |_| provoker);
        { owed.into_iter() }
            .filter(|owed| !is_explained(owed, records, &bugs))
            .collect()
    }

    #[test]
    fn what_weighs_and_is_real_needs_a_text() {
        // RETRY-07: overload; WATCH-02: waste.
        let records = [record(&failure("RETRY-07, WATCH-02", NONE_PUBLIC))];
        let expected = Owed::Requirement {
            client: "x".to_owned(),
            requirement: "RETRY-07".to_owned(),
        };
        assert_eq!(of(&records, "[]", None), [expected]);
        assert_eq!(of(&records, "[]", Some(Provoker::NobodyKnown)), []);
        assert_eq!(of(&[record(&failure("RETRY-07", "o/r#1"))], "[]", None), []);
    }

    #[test]
    fn an_issue_or_a_reason_in_the_list_of_bugs_is_enough() {
        let records = [record(&failure("RETRY-07", NONE_PUBLIC))];
        let bug = |issue: &str, rest: &str| {
            format!("[{{bug: it loops, clients: [x], issue: {issue}, scenario: a/b{rest}}}]")
        };
        assert_eq!(of(&records, &bug("o/r#1", ""), None), []);
        assert_eq!(
            of(&records, &bug(NONE_PUBLIC, ", no_text: it is meant"), None),
            []
        );
        assert_eq!(of(&records, &bug(NONE_PUBLIC, ""), None).len(), 2);
    }
}

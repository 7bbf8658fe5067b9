//! What a client asks first, and how it waits: measured, not judged, and kept in `adapters/behaviour/NAME.json`.
//!
//! A behaviour is a pure function of the records of the scenarios beside the results. A client that is an informer plays one of
//! its first requests and one of its delays; one that only lists or watches, those of its contracts.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use conformance::adapter::evidence::{self, Evidence};
use e2e::adapters::Client;
use fake_apiserver::record::{Record, Verb, What};
use serde::{Deserialize, Serialize};

/// Where scenarios and results lie.
const FOLDER: &str = "adapters/behaviour";
/// The scenarios of the first requests.
const REQUESTS: [&str; 3] = ["first-requests", "first-list", "first-watch"];
/// The scenarios of the delays.
const DELAYS: [&str; 2] = ["delays-after-failures", "delays-of-one-watch"];

/// Parameters that say what is listed, and nothing of how.
const TARGET: [&str; 3] = ["labelSelector", "fieldSelector", "pretty"];

/// What one client does with its defaults.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Behaviour {
    /// Parameters of the first LIST; `None`: it sent none.
    pub(crate) list: Option<BTreeMap<String, String>>,
    /// Parameters of the first WATCH, of either kind.
    pub(crate) watch: Option<BTreeMap<String, String>>,
    /// Its `User-Agent`.
    pub(crate) user_agent: Option<String>,
    /// Connections that the first requests came on.
    pub(crate) connections: usize,
    /// Between each refusal (503) and the request that followed it, in milliseconds.
    pub(crate) delays_ms: Vec<u64>,
}

impl Behaviour {
    /// Reads it off what happened in the scenarios that the client played.
    fn of(requests: &[&[Record]], delays: &[&[Record]]) -> Self {
        let mut behaviour = Self {
            delays_ms: delays
                .iter()
                .flat_map(|records| delays_after_refusals(records))
                .collect(),
            ..Self::default()
        };
        for records in requests {
            behaviour.add(records);
        }
        behaviour
    }

    /// Takes in the first requests of one scenario.
    fn add(&mut self, records: &[Record]) {
        let mut connections = BTreeSet::new();
        for record in records {
            let What::Request {
                conn,
                verb,
                query,
                user_agent,
                ..
            } = &record.what
            else {
                continue;
            };
            let first = match verb {
                Verb::List => &mut self.list,
                Verb::Watch | Verb::WatchList => &mut self.watch,
                Verb::Other => continue,
            };
            connections.insert(*conn);
            first.get_or_insert_with(|| {
                let how = query.iter().filter(|(name, _)| !TARGET.contains(&name.as_str()));
                how.cloned().collect()
            });
            self.user_agent = self.user_agent.take().or_else(|| user_agent.clone());
        }
        self.connections = self.connections.max(connections.len());
    }

    /// Measures a client: `fake_apiserver` plays the scenarios with its adapter.
    ///
    /// # Errors
    /// Nothing could be measured; why, in words.
    pub(crate) fn measure(
        root: &Path,
        fake_apiserver: &Path,
        client: &Client,
        adapter: &[String],
    ) -> Result<Self, String> {
        let target = fake_apiserver.ancestors().nth(2).unwrap_or(root);
        let folder = target.join("behaviour").join(&client.name);
        let _absent = std::fs::remove_dir_all(&folder);
        let run = Command::new(fake_apiserver)
            .args([
                "conformance",
                "--profile",
                "full",
                "--keep",
                "always",
                "--scenarios",
            ])
            .arg(root.join(FOLDER))
            .arg("--evidence")
            .arg(&folder)
            .arg("--")
            .args(adapter)
            .stdout(Stdio::null())
            .stderr(Stdio::inherit())
            .status();
        run.map_err(|error| format!("cannot run {}: {error}", fake_apiserver.display()))?;
        let kept = evidence::find(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let kept: Vec<Evidence> = kept
            .iter()
            .map(|kept| evidence::read(kept))
            .collect::<Result<_, _>>()?;
        let played = |names: &[&str]| {
            let of = |kept: &&Evidence| names.contains(&kept.summary.id.as_str()) && !kept.records.is_empty();
            let records = kept.iter().filter(of).map(|kept| kept.records.as_slice());
            let records: Vec<&[Record]> = records.collect();
            match records.as_slice() {
                [] => Err(format!("{}: no evidence of {}", client.name, names.join(", "))),
                [_, ..] => Ok(records),
            }
        };
        // A client that only lists has no delays.
        Ok(Self::of(
            &played(&REQUESTS)?,
            &played(&DELAYS).unwrap_or_default(),
        ))
    }

    /// Reads what was measured; `None`: nothing was.
    ///
    /// # Errors
    /// The file has mistakes.
    pub(crate) fn read(root: &Path, client: &str) -> Result<Option<Self>, String> {
        let file = file(root, client);
        let Ok(text) = std::fs::read_to_string(&file) else {
            return Ok(None);
        };
        let wrong = |error| format!("{}: {error}", file.display());
        serde_json::from_str(&text).map(Some).map_err(wrong)
    }

    /// Writes what was measured.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn write(&self, root: &Path, client: &str) -> Result<(), String> {
        let file = file(root, client);
        let text = serde_json::to_string_pretty(self).map_err(|error| error.to_string())?;
        std::fs::write(&file, text + "\n").map_err(|error| format!("{}: {error}", file.display()))
    }

    /// The cells of its row.
    pub(crate) fn cells(&self) -> [String; 5] {
        let parameters = |query: &Option<BTreeMap<String, String>>| match query {
            None => "–".to_owned(),
            Some(query) if query.is_empty() => "no parameters".to_owned(),
            Some(query) => {
                let all: Vec<String> = query
                    .iter()
                    .map(|(name, value)| format!("`{name}={value}`"))
                    .collect();
                all.join(" ")
            }
        };
        let seconds: Vec<String> = self
            .delays_ms
            .iter()
            .map(|delay_ms| format!("{:.1}", Duration::from_millis(*delay_ms).as_secs_f64()))
            .collect();
        [
            parameters(&self.list),
            parameters(&self.watch),
            self.connections.to_string(),
            if seconds.is_empty() {
                "–".to_owned()
            } else {
                seconds.join(", ")
            },
            self.user_agent
                .as_ref()
                .map_or_else(|| "none".to_owned(), |agent| format!("`{agent}`")),
        ]
    }
}

/// From the head of each refusal to the request that followed it.
fn delays_after_refusals(records: &[Record]) -> Vec<u64> {
    let mut refused_at = None;
    let mut delays = Vec::new();
    for record in records {
        if let What::Head { status: 503, .. } = &record.what {
            refused_at = Some(record.at);
        }
        if let (What::Request { .. }, Some(at)) = (&record.what, refused_at) {
            delays.push(record.at.saturating_sub(at).as_millis() as u64);
            refused_at = None;
        }
    }
    delays
}

fn file(root: &Path, client: &str) -> PathBuf {
    root.join(FOLDER).join(format!("{client}.json"))
}

#[cfg(test)]
mod tests {
    use conformance::trace::sample::Sample;

    use super::*;

    #[test]
    fn a_behaviour_is_what_came_first() {
        let mut requests = Sample::new();
        requests
            .list(&[("limit", "500"), ("labelSelector", "a=b")])
            .page("10", "", &[])
            .watch("10")
            .eof()
            .list(&[("limit", "7")]);
        let mut delays = Sample::new();
        delays
            .list(&[])
            .status(503, "")
            .after(800)
            .list(&[])
            .status(503, "")
            .after(1600);
        delays.list(&[]).page("10", "", &[]).after(5000).watch("10");
        let found = Behaviour::of(&[&requests.records()], &[&delays.records()]);
        let list = BTreeMap::from([("limit".to_owned(), "500".to_owned())]);
        assert_eq!(found.list, Some(list));
        assert_eq!(
            found
                .watch
                .and_then(|watch| watch.get("resourceVersion").cloned())
                .as_deref(),
            Some("10")
        );
        assert_eq!(found.delays_ms, [800, 1600]);
        assert_eq!(found.connections, 3);
    }

    #[test]
    fn a_client_without_requests_has_no_first_request() {
        let cells = Behaviour::of(&[], &[]).cells();
        assert_eq!(
            cells.map(|cell| cell),
            ["–", "–", "0", "–", "none"].map(str::to_owned)
        );
    }

    #[test]
    fn one_list_and_one_watch_are_measured_apart() {
        let (mut list, mut watch) = (Sample::new(), Sample::new());
        list.list(&[("limit", "500")]);
        watch.watch("7");
        let found = Behaviour::of(&[&list.records(), &watch.records()], &[]);
        assert!(found.list.is_some() && found.watch.is_some(), "{found:?}");
        assert_eq!(found.connections, 1, "one connection each");
    }
}

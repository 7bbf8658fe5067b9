//! Reads the record of all clients: results, known failures, behaviour, evidence and scenarios, as pages are made of it. It
//! must not know pages.

use std::collections::BTreeMap;
use std::path::Path;

use conformance::adapter::outcome::Outcome;
use conformance::baseline::{Baseline, Known};
use e2e::adapters::sources::{self, Sources, Versions};
use e2e::adapters::{Client, Registry, known_failures};
use report::published::{self, Published};

use super::behaviour::Behaviour;
use super::record::{Record, Test};
use super::trimmed::{self, Trimmed};
use crate::clients;

/// The client of this repository, which stands apart.
const OWN: &str = "watcher";

/// Names of what is measured and not judged, in the order of [`Behaviour::cells`].
const BEHAVIOUR: [&str; 5] = [
    "first LIST",
    "first WATCH",
    "connections",
    "delays after 503, in seconds",
    "user agent",
];

/// The record, and what is wrong with it: nothing of that may stand on a page.
#[derive(Debug)]
pub(crate) struct Gathered {
    /// The record.
    pub(crate) published: Published,
    /// One line per mistake.
    pub(crate) wrong: Vec<String>,
    /// Titles of the clients without results.
    pub(crate) unrecorded: Vec<String>,
}

/// Reads everything.
///
/// # Errors
/// A file cannot be read, or has mistakes.
pub(crate) fn gather(root: &Path, registry: &Registry) -> Result<Gathered, String> {
    let mut gathered = Gathered {
        published: Published::default(),
        wrong: Vec::new(),
        unrecorded: Vec::new(),
    };
    for scenario in clients::load(root)? {
        let text = std::fs::read_to_string(&scenario.path)
            .map_err(|error| format!("{}: {error}", scenario.path.display()))?;
        gathered.published.scenarios.push((scenario, text));
    }
    let (sources, versions) = (Sources::read_all(root)?, sources::versions(root)?);
    let mut baselines = Vec::new();
    for client in &registry.clients {
        let known = Baseline::read(&known_failures(root, &client.name)).map_err(|error| error.to_string())?;
        if Record::exists(root, &client.name) {
            gathered.add(root, registry, client, &known, (&sources, &versions))?;
        } else {
            gathered.unrecorded.push(client.title.clone());
        }
        baselines.push((client.name.as_str(), known));
    }
    let baselines: Vec<(&str, &Baseline)> = baselines.iter().map(|(name, known)| (*name, known)).collect();
    gathered.wrong.extend(Sources::wrong(&sources, &baselines));
    Ok(gathered)
}

impl Gathered {
    fn add(
        &mut self,
        root: &Path,
        registry: &Registry,
        client: &Client,
        known: &Baseline,
        (sources, versions): (&[Sources], &Versions),
    ) -> Result<(), String> {
        let name = &client.name;
        let sources = Sources::of(sources, name);
        let record = Record::read(root, name)?;
        let mut evidence = trimmed::Kept::read(root, name)?.tests;
        self.wrong.extend(
            evidence
                .values()
                .filter_map(|one| contradicted(name, &record, one)),
        );
        let behaviour = Behaviour::read(root, name)?;
        if behaviour.is_none() {
            self.wrong.push(format!(
                "{name}: not measured: run `cargo xtask conformance --behaviour --client {name}`"
            ));
        }
        let mut tests = BTreeMap::new();
        for (id, test) in &record.tests {
            let known = known.of(id);
            let left_out = registry.left_out(client, id);
            if left_out.is_none() {
                self.wrong.extend(without_reason(name, id, test, known.is_some()));
            }
            let known = known.map(|known| published_known(known, sources, versions, &record.client.version));
            let test = published::Test {
                outcome: test.outcome,
                flaky: test.flaky,
                broken: test.broken.clone(),
                why: test.why.clone(),
                left_out: left_out.map(str::to_owned),
                known: known.transpose()?,
                evidence: evidence.remove(id).map(of_evidence),
            };
            tests.insert(id.clone(), test);
        }
        let cells = behaviour.map(|behaviour| behaviour.cells());
        let behaviour = cells
            .into_iter()
            .flat_map(|cells| BEHAVIOUR.map(str::to_owned).into_iter().zip(cells));
        self.published.clients.push(published::Client {
            name: name.clone(),
            title: client.title.clone(),
            version: record.client.version,
            lang: record.client.lang,
            recovers: record.recovers,
            capabilities: record.capabilities.into_iter().collect(),
            adapter: adapter(client),
            command: client.run.join(" "),
            is_own: name == OWN,
            is_older: client.older,
            behaviour: behaviour.collect(),
            tests,
        });
        Ok(())
    }
}

/// Returns an entry of the known failures with the lines that its source names.
fn published_known(
    known: &Known,
    sources: Option<&Sources>,
    versions: &Versions,
    measured: &str,
) -> Result<published::Known, String> {
    let mut source = published::Source::default();
    let named = known.source.as_ref().zip(sources);
    if let Some((place, sources)) = named.and_then(|(name, all)| Some((all.places.get(name)?, all))) {
        source.none = place.no_source.clone().unwrap_or_default();
        for lines in &place.lines {
            let version = sources.version(&lines.library, versions, measured)?;
            let Some(library) = sources.libraries.get(&lines.library) else {
                continue;
            };
            let (path, first, last) = (&lines.path, lines.first, lines.last);
            let numbers = match first == last {
                true => format!("line {first}"),
                false => format!("lines {first} to {last}"),
            };
            source.lines.push(published::SourceLines {
                function: lines.function.clone(),
                place: format!("{} {version} {path}, {numbers}", library.name),
                url: library.address(&version, lines),
                quote: lines.quote.clone(),
            });
        }
    }
    Ok(published::Known {
        reason: known.reason.clone(),
        issue: known.issue.clone(),
        source,
    })
}

fn of_evidence(trimmed: Trimmed) -> published::Evidence {
    published::Evidence {
        day: trimmed.measured.day,
        platform: trimmed.measured.platform,
        program: trimmed.measured.program,
        kubernetes: trimmed.measured.kubernetes,
        digest: trimmed.digest,
        message: trimmed.message,
        found: trimmed.contradictions,
        took_ms: trimmed.took_ms,
        of: trimmed.of,
        trace: trimmed.trace,
    }
}

/// Returns what the results say otherwise than the evidence.
fn contradicted(client: &str, record: &Record, evidence: &Trimmed) -> Option<String> {
    let id = &evidence.id;
    let again = format!("run `cargo xtask conformance --client {client} --scenario {id}`");
    let Some(test) = record.tests.get(id).filter(|test| test.outcome.accuses_client()) else {
        return Some(format!("{client}: {id}: evidence of no failure: {again}"));
    };
    if evidence.version != record.client.version {
        let version = &evidence.version;
        return Some(format!("{client}: {id}: evidence of version {version}: {again}"));
    }
    let named = evidence.broken();
    if let Some(unnamed) = test.broken.iter().find(|broken| !named.contains(broken.as_str())) {
        return Some(format!(
            "{client}: {id}: the evidence does not show {unnamed} broken: {again}"
        ));
    }
    let (is, was) = (evidence.outcome.word(), test.outcome.word());
    (is != was).then(|| format!("{client}: {id}: evidence of {is}, recorded as {was}: {again}"))
}

/// Returns why a result may not stand on a page: it is flaky, the adapter's own fault, or a failure without a known reason.
fn without_reason(client: &str, id: &str, test: &Test, is_known: bool) -> Option<String> {
    let word = test.outcome.word();
    if test.flaky {
        Some(format!(
            "{client}: {id} is flaky: find the cause, or leave it out with the reason"
        ))
    } else if matches!(test.outcome, Outcome::AdapterError | Outcome::HarnessError) {
        Some(format!("{client}: {id}: {word}"))
    } else if test.outcome.accuses_client() && !is_known {
        Some(format!(
            "{client}: {id}: {word} without an entry in adapters/known-failures/{client}.yaml"
        ))
    } else {
        None
    }
}

/// Returns the folder of a client's adapter.
fn adapter(client: &Client) -> String {
    let own = client
        .run
        .iter()
        .find_map(|word| word.strip_prefix("{adapter-")?.strip_suffix('}'));
    format!("adapters/{}", own.unwrap_or(&client.ecosystem))
}

#[cfg(test)]
mod tests {
    use super::super::trimmed::tests::sample;
    use super::*;

    fn record(test: &str) -> Record {
        let text = format!(
            r#"{{"client":{{"lang":"go","version":"1"}},"recovers":"library","capabilities":[],"tests":{{"a/b":{test}}}}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn evidence_shows_what_the_results_say() {
        let fails = r#"{"outcome":"fail","broken":["LIST-01"]}"#;
        let evidence = sample("a/b", "2026-01-01");
        assert_eq!(contradicted("x", &record(fails), &evidence), None);
        let wrong =
            |test: &str, evidence: &Trimmed| contradicted("x", &record(test), evidence).unwrap_or_default();
        let found = wrong(r#"{"outcome":"pass"}"#, &evidence);
        assert!(found.contains("evidence of no failure"), "{found}");
        let found = wrong(r#"{"outcome":"hang","broken":["LIST-01"]}"#, &evidence);
        assert!(found.contains("evidence of fail, recorded as hang"), "{found}");
        let found = wrong(r#"{"outcome":"fail","broken":["LIST-01","LIST-02"]}"#, &evidence);
        assert!(found.contains("does not show LIST-02 broken"), "{found}");
        let mut older = evidence;
        older.version = "0".to_owned();
        let found = wrong(fails, &older);
        assert!(found.contains("evidence of version 0"), "{found}");
    }

    #[test]
    fn nothing_without_a_reason_stands_on_a_page() {
        let wrong = |test: &str, is_known| without_reason("x", "a/b", &record(test).tests["a/b"], is_known);
        assert_eq!(wrong(r#"{"outcome":"fail"}"#, true), None);
        assert_eq!(wrong(r#"{"outcome":"pass"}"#, false), None);
        for (test, is_known) in [
            (r#"{"outcome":"fail"}"#, false),
            (r#"{"outcome":"fail","flaky":true}"#, true),
            (r#"{"outcome":"adapter-error"}"#, true),
        ] {
            assert!(wrong(test, is_known).is_some(), "{test}");
        }
    }
}

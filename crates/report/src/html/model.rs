//! Runs side by side: clients, tests, and the results of each test. It must not know HTML.

use std::collections::{BTreeMap, BTreeSet};

use conformance::adapter::evidence::{Evidence, Summary};
use conformance::adapter::outcome::Outcome;
use conformance::adapter::standing::Standing;
use fake_apiserver::scenario::SharedScenario;
use fake_apiserver::scenario::catalogue::Level;
use fake_apiserver::scenario::edition::{self, Edition};

use super::{Kept, Run};
use crate::results::{Found, Kept as Tally, KnownFailure, digest};
use crate::tally::{Proven, proven};
use crate::text::cut;
use crate::timeline::{self, Line, Row};

/// Records drawn in total; keeps the file below about ten megabytes.
const RECORDS_MAX: usize = 24_000;

/// Content of the page.
pub(super) struct Page<'a> {
    pub(super) clients: Vec<Client>,
    /// Tests by id.
    pub(super) tests: Vec<Test<'a>>,
}

/// A column.
pub(super) struct Client {
    /// Part of fragments: its name without characters that URLs escape; unique.
    pub(super) slug: String,
    /// Display name, unique on the page.
    pub(super) name: String,
    pub(super) version: String,
    pub(super) lang: String,
    /// Label of the edition it is scored by.
    pub(super) edition: Option<String>,
    /// The edition, if this version has it.
    pub(super) scored_by: Option<&'static Edition>,
    /// MUST and SHOULD counts, if the run is complete.
    pub(super) requirements: Option<(Tally, Tally)>,
    /// Why the results are incomplete.
    pub(super) incomplete: Option<&'static str>,
    /// Requirements proven kept or broken.
    pub(super) proven: BTreeMap<String, Proven>,
}

impl Client {
    /// Returns the level of the requirement in the run; `None` if it did not count or does not exist.
    pub(super) fn level(&self, requirement: &str) -> Option<Level> {
        edition::level(self.scored_by, requirement)
    }
}

/// A row.
pub(super) struct Test<'a> {
    pub(super) id: &'a str,
    pub(super) title: String,
    pub(super) covers: Vec<String>,
    /// File of the scenario, if evidence has it, parsed if this version can parse it.
    pub(super) source: Option<Source<'a>>,
    /// Results in the order of the clients.
    pub(super) cells: Vec<Option<Cell<'a>>>,
}

impl Test<'_> {
    /// Whether it has evidence to show.
    pub(super) fn has_section(&self) -> bool {
        self.cells.iter().flatten().any(|cell| !cell.attempts.is_empty())
    }

    /// Returns the fragment of its section.
    pub(super) fn fragment(&self) -> String {
        format!("test/{}", slug(self.id))
    }

    /// Returns the class used by the filter: `new`, `bad` or `ok`.
    pub(super) fn state(&self) -> &'static str {
        let mut cells = self.cells.iter().flatten();
        if cells.clone().any(Cell::is_unexpected) {
            "new"
        } else if cells.any(|cell| cell.outcome.accuses_client()) {
            "bad"
        } else {
            "ok"
        }
    }
}

/// File of a scenario.
pub(super) struct Source<'a> {
    pub(super) text: &'a str,
    pub(super) scenario: Option<SharedScenario>,
    /// Whether another run had another file of the same id.
    pub(super) differs: bool,
}

/// Result of one test with one client.
pub(super) struct Cell<'a> {
    pub(super) outcome: Outcome,
    pub(super) standing: Option<Standing>,
    pub(super) message: String,
    pub(super) known: Option<&'a KnownFailure>,
    pub(super) rerun: Option<&'a str>,
    pub(super) attempts: Vec<Attempt<'a>>,
}

impl Cell<'_> {
    /// Whether it needs attention.
    pub(super) fn is_unexpected(&self) -> bool {
        match self.standing {
            Some(
                Standing::Passed
                | Standing::Warned
                | Standing::Known
                | Standing::NotJudged
                | Standing::NotScored,
            ) => false,
            Some(
                Standing::Failed
                | Standing::Flaky
                | Standing::Stale
                | Standing::AdapterError
                | Standing::HarnessError,
            ) => true,
            None => self.outcome.accuses_client() && self.outcome != Outcome::Warn,
        }
    }
}

/// One attempt with its evidence.
pub(super) struct Attempt<'a> {
    pub(super) number: u32,
    pub(super) evidence: &'a Evidence,
    /// Rows of a trimmed trace.
    trimmed: &'a [Line],
    pub(super) found: Vec<Found>,
    /// Fragment of its section.
    pub(super) slug: String,
    /// Whether it is drawn; the page limits the number of records.
    pub(super) drawn: bool,
}

impl Attempt<'_> {
    /// Returns the rows of the timeline; `proofs` has the `seq` of the records that are evidence.
    pub(super) fn rows(&self, proofs: &BTreeSet<u64>) -> Vec<Row<'_>> {
        match self.trimmed {
            [] => timeline::rows(&self.evidence.records, proofs),
            lines => timeline::trimmed_rows(lines),
        }
    }

    /// Returns the number of records that could have a row.
    pub(super) fn number_of_rows(&self) -> usize {
        self.evidence.records.len().max(self.trimmed.len())
    }

    /// Returns the times of these records, in milliseconds.
    pub(super) fn times(&self, seqs: &[u64]) -> BTreeMap<u64, f64> {
        let of_records = self.evidence.records.iter();
        let of_records = of_records.map(|record| (record.seq, record.at.as_secs_f64() * 1000.0));
        let of_lines = self.trimmed.iter().map(|line| (line.seq, line.at_ms));
        let times = of_records.chain(of_lines);
        times.filter(|(seq, _)| seqs.contains(seq)).collect()
    }
}

impl<'a> Page<'a> {
    pub(super) fn of(runs: &'a [Run]) -> Self {
        let clients = clients(runs);
        let ids: BTreeSet<&str> = runs.iter().flat_map(ids).collect();
        let mut tests: Vec<Test<'_>> = ids.into_iter().map(|id| test(id, runs, &clients)).collect();
        ration(&mut tests);
        Self { clients, tests }
    }

    /// Returns the level of a requirement in the editions of the runs: one word if they agree; empty if no run counts
    /// it or it does not exist.
    pub(super) fn level(&self, requirement: &str) -> String {
        let mut by_level: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for client in &self.clients {
            if let Some(level) = client.level(requirement) {
                let edition = client.scored_by.map_or("this version", |edition| &edition.name);
                by_level.entry(level.word()).or_default().insert(edition);
            }
        }
        if by_level.len() < 2 {
            return by_level.into_keys().collect();
        }
        let words = by_level.iter().map(|(level, editions)| {
            let editions: Vec<&str> = editions.iter().copied().collect();
            format!("{level} in {}", editions.join(", "))
        });
        words.collect::<Vec<String>>().join("; ")
    }

    /// Returns the number of results that accuse a client.
    pub(super) fn accused(&self) -> usize {
        let cells = self.tests.iter().flat_map(|test| test.cells.iter().flatten());
        cells.filter(|cell| cell.outcome.accuses_client()).count()
    }
}

fn ids(run: &Run) -> impl Iterator<Item = &str> {
    let results = run.results.iter().flat_map(|results| &results.tests);
    let kept = run.attempts.iter().map(|kept| kept.evidence.summary.id.as_str());
    results.map(|test| test.id.as_str()).chain(kept)
}

fn clients(runs: &[Run]) -> Vec<Client> {
    let mut slugs = BTreeSet::new();
    let mut labels: BTreeMap<String, usize> = BTreeMap::new();
    let introduced: Vec<_> = runs.iter().map(introduction).collect();
    for (label, ..) in &introduced {
        *labels.entry(label.clone()).or_default() += 1;
    }
    let clients = runs
        .iter()
        .zip(introduced)
        .map(|(run, (mut label, version, lang))| {
            // Two runs of one client are distinguished by their directories.
            if labels[&label] > 1 && label != run.name {
                label = format!("{label} ({})", run.name);
            }
            let footer = run.results.as_ref().map(|results| results.footer.as_ref());
            // Without results, use the edition of the attempts.
            let first = run.attempts.first().map(|kept| &kept.evidence.summary);
            let (edition, scored_by) = match (footer.flatten(), first) {
                (Some(footer), _) => (footer.edition_label(), footer.scored_by()),
                (None, first) => {
                    let name = first.and_then(|summary| summary.edition.as_deref());
                    let digest = first.and_then(|summary| summary.edition_digest.as_deref());
                    let label = name.map(|name| edition::label(name, digest));
                    (label, edition::scored_by(name, digest))
                }
            };
            let level = |name: &str| {
                let footer = footer.flatten().filter(|footer| footer.complete)?;
                footer.requirements.get(name).copied()
            };
            Client {
                slug: distinct(slug(&label), &mut slugs),
                version: cut(&version, 40),
                lang: cut(&lang, 40),
                edition: edition.map(|edition| cut(&edition, 60)),
                scored_by,
                requirements: level("must").zip(level("should")),
                incomplete: match footer {
                    None => Some("evidence only: tests that passed may be missing"),
                    Some(Some(footer)) if footer.complete => None,
                    Some(_) => Some("the run was interrupted"),
                },
                proven: run
                    .results
                    .as_ref()
                    .map(|results| proven(&results.tests, scored_by))
                    .unwrap_or_default(),
                name: cut(&label, 80),
            }
        });
    clients.collect()
}

/// Returns name, version and language of the client of a run.
fn introduction(run: &Run) -> (String, String, String) {
    let of_results = run
        .results
        .iter()
        .find_map(|results| Some(&results.footer.as_ref()?.client));
    let mut hellos = run
        .attempts
        .iter()
        .filter_map(|kept| kept.evidence.summary.hello.as_ref());
    let client = of_results.or_else(|| hellos.next().map(|hello| &hello.client));
    client.map_or_else(
        || (run.name.clone(), String::new(), String::new()),
        |client| (client.name.clone(), client.version.clone(), client.lang.clone()),
    )
}

fn test<'a>(id: &'a str, runs: &'a [Run], clients: &[Client]) -> Test<'a> {
    let cells: Vec<Option<Cell<'a>>> = runs
        .iter()
        .zip(clients)
        .map(|(run, client)| cell(id, run, client))
        .collect();
    let mut results = runs.iter().filter_map(|run| result(run, id));
    let source = source(id, runs);
    let scenario = source.as_ref().and_then(|source| source.scenario.as_ref());
    let (title, covers) = match (results.next(), scenario) {
        (Some(result), _) => (result.title.clone(), result.covers.clone()),
        (None, Some(scenario)) => (
            scenario.title.clone(),
            scenario.covers.iter().map(|covered| covered.id.clone()).collect(),
        ),
        (None, None) => (String::new(), Vec::new()),
    };
    Test {
        id,
        title,
        covers,
        source,
        cells,
    }
}

fn result<'a>(run: &'a Run, id: &str) -> Option<&'a crate::results::TestResult> {
    run.results.as_ref()?.tests.iter().find(|test| test.id == id)
}

fn cell<'a>(id: &str, run: &'a Run, client: &Client) -> Option<Cell<'a>> {
    let kept: Vec<&Kept> = run
        .attempts
        .iter()
        .filter(|kept| kept.evidence.summary.id == id)
        .collect();
    let attempts: Vec<Attempt<'a>> = kept
        .iter()
        .map(|kept| Attempt {
            number: kept.number,
            found: found(&kept.evidence.summary),
            evidence: &kept.evidence,
            trimmed: &kept.trimmed,
            slug: match kept.number {
                1 => format!("{}/{}", client.slug, slug(id)),
                number => format!("{}/{}~{number}", client.slug, slug(id)),
            },
            drawn: true,
        })
        .collect();
    if let Some(result) = result(run, id) {
        return Some(Cell {
            outcome: result.outcome,
            standing: Some(result.standing),
            message: result.message.clone(),
            known: result.known.as_ref(),
            rerun: Some(&result.rerun),
            attempts,
        });
    }
    // Without results, choose the attempt as results do: the first that did not pass.
    let summary = |kept: &&&Kept| kept.evidence.summary.outcome != Outcome::Pass;
    let shown = kept.iter().find(summary).or(kept.last())?;
    Some(Cell {
        outcome: shown.evidence.summary.outcome,
        standing: None,
        message: shown.evidence.summary.message.clone(),
        known: None,
        rerun: None,
        attempts,
    })
}

/// Returns the contradictions of a verdict. Evidence edited by hand may have unknown ones.
fn found(summary: &Summary) -> Vec<Found> {
    serde_json::from_value(summary.contradictions.clone()).unwrap_or_default()
}

fn source<'a>(id: &str, runs: &'a [Run]) -> Option<Source<'a>> {
    let kept: Vec<&Kept> = runs
        .iter()
        .flat_map(|run| &run.attempts)
        .filter(|kept| kept.evidence.summary.id == id)
        .collect();
    let first = kept.first()?;
    let own = digest(&first.evidence.text);
    Some(Source {
        text: &first.evidence.text,
        scenario: first
            .scenario
            .clone()
            .or_else(|| Some(first.evidence.scenario().ok()?.into())),
        differs: kept.iter().any(|kept| digest(&kept.evidence.text) != own),
    })
}

/// Assigns the room for records, first to attempts that accuse a client.
fn ration(tests: &mut [Test<'_>]) {
    let mut left = RECORDS_MAX;
    for accusing in [true, false] {
        let cells = tests.iter_mut().flat_map(|test| test.cells.iter_mut().flatten());
        for attempt in cells.flat_map(|cell| &mut cell.attempts) {
            if (attempt.evidence.summary.outcome != Outcome::Pass) == accusing {
                let rows = attempt.number_of_rows().min(timeline::ROWS_MAX);
                attempt.drawn = rows <= left;
                left -= if attempt.drawn { rows } else { 0 };
            }
        }
    }
}

/// Returns the sign of an outcome.
pub(super) fn sign(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Pass => "✓",
        Outcome::Warn => "!",
        Outcome::Fail => "✗",
        Outcome::Hang => "…",
        Outcome::Crash => "†",
        Outcome::Unsupported | Outcome::NotPlayed => "–",
        Outcome::AdapterError | Outcome::HarnessError => "?",
    }
}

/// Makes a text part of a fragment: characters with a meaning in URLs or HTML become hyphens.
pub(super) fn slug(text: &str) -> String {
    let kept = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
    let slug: String = text
        .chars()
        .take(160)
        .map(|c| if kept(c) { c } else { '-' })
        .collect();
    let slug = slug.trim_matches('-');
    if slug.is_empty() {
        "x".to_owned()
    } else {
        slug.to_owned()
    }
}

fn distinct(slug: String, taken: &mut BTreeSet<String>) -> String {
    let mut own = slug.clone();
    let mut number = 2;
    while !taken.insert(own.clone()) {
        own = format!("{slug}.{number}");
        number += 1;
    }
    own
}

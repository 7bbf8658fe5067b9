//! The published record of all clients: what each did in each scenario, with reason and evidence, and what that shows of each
//! requirement. Values alone: it must not know files, or how pages are drawn.

use std::collections::{BTreeMap, BTreeSet};

use conformance::adapter::outcome::Outcome;
use fake_apiserver::scenario::catalogue::{self, Consequence, Provoker, Requirement};
use fake_apiserver::scenario::{SharedScenario, Transport};

use crate::results::{Found, digest};
use crate::timeline::Line;

/// Consequences, the gravest first: the columns of the pages.
pub const CONSEQUENCES: [Consequence; 7] = [
    Consequence::Lost,
    Consequence::Stuck,
    Consequence::Overload,
    Consequence::Leak,
    Consequence::Stale,
    Consequence::Waste,
    Consequence::Hidden,
];

/// Settings of `client:` by which a scenario slows its consumer down: no feature of a library.
const OF_THE_HARNESS: [&str; 2] = ["consumer_delay", "consumer_delay_event"];

/// All clients and scenarios.
#[derive(Debug, Default)]
pub struct Published {
    /// Clients, in the order of the pages.
    pub clients: Vec<Client>,
    /// Scenarios by id, with the text of their files.
    pub scenarios: Vec<(SharedScenario, String)>,
}

/// One client.
#[derive(Debug, Default)]
pub struct Client {
    /// Name in files and options.
    pub name: String,
    /// Name on pages; code stands between backticks.
    pub title: String,
    /// Version of the library.
    pub version: String,
    /// Programming language.
    pub lang: String,
    /// What restarts a failed list or watch: `library`, `caller`, `none`.
    pub recovers: String,
    /// What the adapter declares that the library can be told, and what it reports.
    pub capabilities: Vec<String>,
    /// Folder of the adapter in the repository.
    pub adapter: String,
    /// Command of the adapter, with the placeholders of adapters/adapters.yaml.
    pub command: String,
    /// Whether client and suite have the same authors.
    pub is_own: bool,
    /// Whether another client is a newer version of the same library.
    pub is_older: bool,
    /// Names and values that were measured and are not judged.
    pub behaviour: Vec<(String, String)>,
    /// Results by scenario.
    pub tests: BTreeMap<String, Test>,
}

/// Result of one scenario with one client.
#[derive(Debug, Clone)]
pub struct Test {
    /// Outcome.
    pub outcome: Outcome,
    /// Whether attempts differed: nothing is judged.
    pub flaky: bool,
    /// Requirements that it breaks.
    pub broken: BTreeSet<String>,
    /// Why it was not judged.
    pub why: String,
    /// Why it proves nothing about this client.
    pub left_out: Option<String>,
    /// Reason and public issue of the failure.
    pub known: Option<Known>,
    /// Trimmed evidence, if it is committed.
    pub evidence: Option<Evidence>,
}

/// Entry of the known failures.
#[derive(Debug, Clone)]
pub struct Known {
    /// Why the client fails, one sentence.
    pub reason: String,
    /// URL, `owner/repo#number`, or `none public`.
    pub issue: String,
    /// Where the library's source does it.
    pub source: Source,
}

/// What the library's source shows of a failure.
#[derive(Debug, Clone, Default)]
pub struct Source {
    /// Lines, at the version that was measured.
    pub lines: Vec<SourceLines>,
    /// Why no lines can be named; empty if some are.
    pub none: String,
}

/// Lines of a library's source.
#[derive(Debug, Clone)]
pub struct SourceLines {
    /// Function, method or type around them.
    pub function: String,
    /// Name of the library, its version, and the file with its lines: `client-go v1.2 a/b.go, lines 3 to 5`.
    pub place: String,
    /// Address of the lines at this version.
    pub url: String,
    /// Words that stand in them.
    pub quote: String,
}

/// Trimmed evidence of a failed test.
#[derive(Debug, Clone)]
pub struct Evidence {
    /// Day of the measurement.
    pub day: String,
    /// Operating system and architecture.
    pub platform: String,
    /// Version of fake-apiserver.
    pub program: String,
    /// Version of Kubernetes that it emulated.
    pub kubernetes: String,
    /// SHA-256 of the scenario's file.
    pub digest: String,
    /// Reason of the outcome, one sentence.
    pub message: String,
    /// Contradictions, the most important first.
    pub found: Vec<Found>,
    /// Real time in milliseconds.
    pub took_ms: u64,
    /// Number of records in the whole trace.
    pub of: u64,
    /// Rows of the timeline.
    pub trace: Vec<Line>,
}

/// What the judged scenarios show of a requirement, the gravest last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shown {
    /// Judged, and not shown broken.
    Kept,
    /// Broken only on input of aggregated or old servers, or of nobody known.
    BrokenByHardening,
    /// Broken on input of the client itself, a kube-apiserver, a network or a common proxy.
    Broken,
}

/// Number of requirements, by what a client shows of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Split {
    /// Shown broken.
    pub broken: usize,
    /// Judged, and not shown broken on input that counts.
    pub kept: usize,
    /// Not judged.
    pub not_shown: usize,
}

impl Test {
    /// Whether it shows something about its client.
    pub fn is_judged(&self) -> bool {
        self.outcome.is_judged() && !self.flaky && self.left_out.is_none()
    }

    /// Whether it shows a failure of its client.
    pub fn is_failure(&self) -> bool {
        self.is_judged() && self.outcome.accuses_client()
    }
}

impl Client {
    /// Returns the failures by scenario.
    pub fn failures(&self) -> impl Iterator<Item = (&str, &Test)> {
        let tests = self.tests.iter().filter(|(_, test)| test.is_failure());
        tests.map(|(id, test)| (id.as_str(), test))
    }

    /// Returns the number of tests with this outcome that are neither flaky nor left out.
    pub fn count(&self, outcome: Outcome) -> usize {
        let counts = |test: &&Test| test.outcome == outcome && !test.flaky && test.left_out.is_none();
        self.tests.values().filter(counts).count()
    }

    /// Returns the command that plays one scenario with this client again, and keeps its evidence.
    pub fn rerun(&self, scenario: &str) -> String {
        format!(
            "cargo xtask conformance --client {} --scenario {scenario} --check --evidence target/evidence && fake-apiserver report target/evidence",
            self.name
        )
    }
}

impl Published {
    /// Returns the scenario of this id, with the text of its file.
    pub fn scenario(&self, id: &str) -> Option<&(SharedScenario, String)> {
        self.scenarios.iter().find(|(scenario, _)| scenario.id == id)
    }

    /// Returns the scenarios that cover a requirement.
    pub fn covering(&self, requirement: &Requirement) -> impl Iterator<Item = &SharedScenario> {
        let scenarios = self.scenarios.iter().map(|(scenario, _)| scenario);
        scenarios.filter(|scenario| scenario.is_about(&requirement.id))
    }

    /// Returns what a client shows of a requirement; `None`: no scenario that covers it was judged.
    pub fn shown(&self, client: &Client, requirement: &Requirement) -> Option<Shown> {
        let shown = self.covering(requirement).filter_map(|scenario| {
            let test = client.tests.get(&scenario.id).filter(|test| test.is_judged())?;
            let is_scored = is_scored(scenario, requirement);
            Some(match (test.broken.contains(&requirement.id), is_scored) {
                (true, true) => Shown::Broken,
                (true, false) => Shown::BrokenByHardening,
                (false, _) => Shown::Kept,
            })
        });
        shown.max()
    }

    /// Counts what a client shows of the core requirements, or of those about optional features.
    pub fn split(&self, client: &Client, is_core: bool) -> Split {
        let mut split = Split::default();
        for requirement in catalogue::requirements() {
            if self.is_core(requirement) != is_core {
                continue;
            }
            let count = match self.shown(client, requirement) {
                Some(Shown::Broken) => &mut split.broken,
                Some(Shown::Kept | Shown::BrokenByHardening) => &mut split.kept,
                None => &mut split.not_shown,
            };
            *count += 1;
        }
        split
    }

    /// Whether every library can be judged on a requirement: a scenario that covers it leaves the client's settings at their
    /// defaults. Otherwise it is about an optional feature.
    pub fn is_core(&self, requirement: &Requirement) -> bool {
        self.covering(requirement)
            .any(|scenario| features(scenario).is_empty())
    }

    /// Returns the optional features without which no scenario that covers a requirement can be played.
    pub fn features(&self, requirement: &Requirement) -> BTreeSet<&'static str> {
        if self.is_core(requirement) {
            return BTreeSet::new();
        }
        self.covering(requirement).flat_map(features).collect()
    }

    /// Returns the SHA-256 of all scenarios: two records with the same digest are of the same suite.
    pub fn digest(&self) -> String {
        let lines = self.scenarios.iter();
        let lines = lines.map(|(scenario, text)| format!("{} {}\n", scenario.id, digest(text)));
        digest(&lines.collect::<String>())
    }
}

/// Whether a failure in this scenario counts against a requirement: a kube-apiserver, a network or a common proxy sends what it
/// takes.
pub fn is_scored(scenario: &SharedScenario, requirement: &Requirement) -> bool {
    let of_scenario = scenario.provoked_by.unwrap_or(Provoker::Client);
    of_scenario.max(requirement.provoked_by) < Provoker::AggregatedOrOldServer
}

/// Returns the settings of the client that a scenario needs, and that a library may lack.
fn features(scenario: &SharedScenario) -> Vec<&'static str> {
    let mut features = judge::wire::configured(scenario);
    features.retain(|feature| !OF_THE_HARNESS.contains(feature));
    if scenario.server.transport == Transport::TlsHttp2 {
        features.push("http2");
    }
    features
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use fake_apiserver::scenario;

    use super::*;

    /// A scenario about LIST-01 with further keys, whose id is `list/NAME`.
    fn scenario(name: &str, keys: &str) -> (SharedScenario, String) {
        let text = format!(
            "scenario: v1\ntitle: t\ncovers: [LIST-01]\n{keys}objects: [{{configmap: {{name: a}}}}]\nexpect: {{cache: [a]}}\n"
        );
        let id = format!("list/{name}");
        (
            Arc::new(scenario::parse(&id, Path::new(&id), &text).unwrap()),
            text,
        )
    }

    /// A client with outcomes of scenarios; failures break LIST-01.
    fn client(outcomes: &[(&str, Outcome)]) -> Client {
        let test = |outcome: Outcome| Test {
            outcome,
            flaky: false,
            broken: outcome
                .accuses_client()
                .then(|| "LIST-01".to_owned())
                .into_iter()
                .collect(),
            why: String::new(),
            left_out: None,
            known: None,
            evidence: None,
        };
        let tests = outcomes
            .iter()
            .map(|(id, outcome)| (format!("list/{id}"), test(*outcome)));
        Client {
            tests: tests.collect(),
            ..Client::default()
        }
    }

    fn list_01() -> &'static Requirement {
        catalogue::requirement("LIST-01").unwrap()
    }

    #[test]
    fn a_failure_on_input_that_nobody_sends_is_hardening() {
        let published = Published {
            scenarios: vec![
                scenario("real", ""),
                scenario("rare", "provoked_by: nobody-known\n"),
            ],
            ..Published::default()
        };
        let shown = |outcomes: &[(&str, Outcome)]| published.shown(&client(outcomes), list_01());
        assert_eq!(shown(&[]), None);
        assert_eq!(shown(&[("real", Outcome::Unsupported)]), None);
        assert_eq!(shown(&[("real", Outcome::Pass)]), Some(Shown::Kept));
        let (pass, fail) = (("real", Outcome::Pass), ("rare", Outcome::Fail));
        assert_eq!(shown(&[pass, fail]), Some(Shown::BrokenByHardening));
        assert_eq!(shown(&[("real", Outcome::Hang), fail]), Some(Shown::Broken));
    }

    #[test]
    fn a_requirement_is_optional_if_each_of_its_scenarios_needs_a_feature() {
        let optional = || scenario("optional", "client: {initial_list: streaming_list}\n");
        let published = |scenarios| Published {
            scenarios,
            ..Published::default()
        };
        let one = published(vec![optional()]);
        assert!(!one.is_core(list_01()));
        assert_eq!(one.features(list_01()), BTreeSet::from(["initial_list"]));
        let both = published(vec![optional(), scenario("core", "")]);
        assert!(both.is_core(list_01()));
        let slow = published(vec![scenario("slow", "client: {consumer_delay: 1s}\n")]);
        assert!(
            slow.is_core(list_01()),
            "a slow consumer is no feature of a library"
        );

        let split = both.split(&client(&[("core", Outcome::Fail)]), true);
        assert_eq!((split.broken, split.kept), (1, 0));
        let split = one.split(&client(&[("optional", Outcome::Pass)]), false);
        assert_eq!((split.broken, split.kept), (0, 1));
        assert_eq!(
            split.not_shown,
            catalogue::requirements().len() - 1,
            "no scenario covers the others"
        );
    }

    #[test]
    fn the_digest_of_the_suite_is_that_of_its_files() {
        let of = |text: &str| {
            let (scenario, _) = scenario("a", "");
            Published {
                scenarios: vec![(scenario, text.to_owned())],
                ..Published::default()
            }
            .digest()
        };
        assert_eq!(of("x"), of("x"));
        assert_ne!(of("x"), of("y"));
    }
}

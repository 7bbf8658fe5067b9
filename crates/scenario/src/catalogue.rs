//! The requirements that a scenario may cover and the invariants that it may excuse: ids, levels and a sentence each.
//!
//! Read from `requirements/catalogue.yaml`, through a link in this package. Independent of how requirements are checked.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const TEXT: &str = include_str!("../catalogue.yaml");

/// Requirement level (RFC 2119).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Level {
    /// A violation breaks users.
    Must,
    /// There may be reasons for a deviation.
    Should,
    /// Optional.
    May,
}

impl Level {
    /// Returns `MUST`, `SHOULD` or `MAY`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Must => "MUST",
            Self::Should => "SHOULD",
            Self::May => "MAY",
        }
    }
}

/// Who is known to send the input under which a requirement can be broken, the most ordinary first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Provoker {
    /// The client's own requests: nothing is provoked.
    Client,
    /// A supported kube-apiserver with etcd, in a documented or observed condition.
    KubeApiserver,
    /// Loss, reset, cut, delay.
    Network,
    /// Load balancers and gateways.
    Proxy,
    /// Aggregated apiservers, and versions out of support.
    AggregatedOrOldServer,
    /// Nobody that we know of: hardening, which is run, shown and never scored.
    NobodyKnown,
}

impl Provoker {
    /// Returns the word in files and reports.
    pub fn word(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::KubeApiserver => "kube-apiserver",
            Self::Network => "network",
            Self::Proxy => "proxy",
            Self::AggregatedOrOldServer => "aggregated-or-old-server",
            Self::NobodyKnown => "nobody-known",
        }
    }
}

/// Returns the level at which a violation counts against a requirement of that level, on input that `provoker` is known to send
/// (`None`: that the catalogue names); `None`: it does not count.
pub fn counted(provoker: Option<Provoker>, level: Level) -> Option<Level> {
    match provoker {
        None | Some(Provoker::Client | Provoker::KubeApiserver | Provoker::Network | Provoker::Proxy) => {
            Some(level)
        }
        Some(Provoker::AggregatedOrOldServer) => Some(level.max(Level::Should)),
        Some(Provoker::NobodyKnown) => None,
    }
}

/// What a violation costs the users of the client, at worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Consequence {
    /// An object or event is missed for ever.
    Lost,
    /// Stale or phantom objects until the next relist.
    Stale,
    /// The client is stuck or dead.
    Stuck,
    /// The server is overloaded.
    Overload,
    /// Needless work.
    Waste,
    /// The user is not told.
    Hidden,
    /// Contents or credentials where they do not belong.
    Leak,
}

impl Consequence {
    /// Returns the word in files and reports.
    pub fn word(self) -> &'static str {
        match self {
            Self::Lost => "lost",
            Self::Stale => "stale",
            Self::Stuck => "stuck",
            Self::Overload => "overload",
            Self::Waste => "waste",
            Self::Hidden => "hidden",
            Self::Leak => "leak",
        }
    }
}

/// The clients that a requirement applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub enum Profile {
    /// Caching clients: informer, reflector, store.
    #[serde(rename = "C")]
    Caching,
    /// Clients that resume a watch without a list.
    #[serde(rename = "W")]
    Watching,
    /// Both.
    #[serde(rename = "CW")]
    Both,
}

/// A requirement of the catalogue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    /// Id, e.g. `PAGE-05`.
    pub id: String,
    /// Family, e.g. `PAGE`.
    pub family: String,
    /// Requirement level.
    pub level: Level,
    /// The clients it applies to.
    pub profile: Profile,
    /// The requirement, in one sentence.
    pub text: String,
    /// Documents that require it, with section and at most 25 words quoted; empty: the suite's own judgement.
    pub sources: Vec<String>,
    /// The most ordinary party that is known to send the input under which it can be broken.
    pub provoked_by: Provoker,
    /// What a violation costs the users of the client, at worst.
    pub consequence: Consequence,
    /// Requirements without which a run does not show it.
    pub depends_on: Vec<String>,
    /// Applies only to clients that send a LIST with this query parameter: name and value.
    pub concerns: Option<(String, String)>,
    /// Evidence where no scenario can decide it: a file of this repository, and a word in it (`path: word`).
    pub shown_by: Option<(String, String)>,
    /// Why it is not decided.
    pub undecided: Option<String>,
}

/// An invariant of the catalogue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invariant {
    /// Id, e.g. `INV-07`.
    pub id: String,
    /// The invariant, in one sentence.
    pub text: String,
}

/// Returns all requirements, by family in the order of the file, then by number.
pub fn requirements() -> &'static [Requirement] {
    &CATALOGUE.requirements
}

/// Returns all invariants, by number.
pub fn invariants() -> &'static [Invariant] {
    &CATALOGUE.invariants
}

/// Returns the requirement with this id.
pub fn requirement(id: &str) -> Option<&'static Requirement> {
    requirements().iter().find(|requirement| requirement.id == id)
}

/// Returns the invariant with this id.
pub fn invariant(id: &str) -> Option<&'static Invariant> {
    invariants().iter().find(|invariant| invariant.id == id)
}

struct Catalogue {
    requirements: Vec<Requirement>,
    invariants: Vec<Invariant>,
}

static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(|| {
    let (tree, _) = super::tree::read(TEXT);
    let file: File = tree
        .as_ref()
        .and_then(|tree| super::read::from_node(tree).ok())
        .expect("the catalogue is part of the build, and a test reads it");
    let requirements = file.requirements.0.into_iter().flat_map(|(family, entries)| {
        entries.0.into_iter().map(move |(id, entry)| Requirement {
            id: id.value,
            family: family.value.clone(),
            level: entry.level,
            profile: entry.profile,
            text: entry.text,
            sources: entry.source.map(|source| source.0).unwrap_or_default(),
            provoked_by: entry.provoked_by,
            consequence: entry.consequence,
            depends_on: entry.depends_on,
            concerns: entry.concerns.map(|option| split(&option, "=")),
            shown_by: entry.shown_by.map(|place| split(&place, ": ")),
            undecided: entry.undecided,
        })
    });
    let invariants = file
        .invariants
        .into_iter()
        .map(|(id, text)| Invariant { id, text });
    Catalogue {
        requirements: requirements.collect(),
        invariants: invariants.collect(),
    }
});

fn split(text: &str, at: &str) -> (String, String) {
    let (before, after) = text.split_once(at).unwrap_or((text, ""));
    (before.to_owned(), after.to_owned())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    requirements: super::read::Entries<super::read::Entries<Entry>>,
    invariants: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    level: Level,
    profile: Profile,
    text: String,
    source: Option<super::read::OneOrMany<String>>,
    provoked_by: Provoker,
    consequence: Consequence,
    #[serde(default)]
    depends_on: Vec<String>,
    concerns: Option<String>,
    shown_by: Option<String>,
    undecided: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_catalogue_is_complete() {
        assert_eq!(requirements().len(), 141);
        assert_eq!(invariants().len(), 22);
        for requirement in requirements() {
            let number = requirement
                .id
                .strip_prefix(&requirement.family)
                .and_then(|rest| rest.strip_prefix('-'));
            assert!(number.is_some_and(|n| n.len() == 2), "{}", requirement.id);
            let pairs = [&requirement.concerns, &requirement.shown_by];
            let whole = |(before, after): &(String, String)| !before.is_empty() && !after.is_empty();
            assert!(pairs.into_iter().flatten().all(whole), "{}", requirement.id);
            let sentences = [Some(&requirement.text), requirement.undecided.as_ref()];
            assert!(
                sentences.into_iter().flatten().all(|text| text.ends_with('.')),
                "{}",
                requirement.id
            );
        }
        assert_eq!(super::super::tree::read(TEXT).1, []);
    }

    /// A MUST has a source or a consequence that weighs, and input that a cluster, a network or a proxy sends.
    #[test]
    fn levels_follow_the_rule() {
        for requirement in requirements() {
            let weighs = matches!(
                requirement.consequence,
                Consequence::Lost | Consequence::Stuck | Consequence::Overload
            );
            let is_founded = !requirement.sources.is_empty() || weighs;
            let is_must = requirement.level == Level::Must;
            let id = &requirement.id;
            assert!(
                !is_must || is_founded,
                "{id} has neither a source nor a weighty consequence"
            );
            assert!(
                !is_must || requirement.provoked_by < Provoker::AggregatedOrOldServer,
                "{id} cannot be broken by what a kube-apiserver, a network or a proxy sends"
            );
            for source in &requirement.sources {
                let quoted = source.split('"').skip(1).step_by(2);
                let words: usize = quoted.map(|quote| quote.split_whitespace().count()).sum();
                assert!(words <= 25 && !source.trim().is_empty(), "{id}: {source}");
            }
            for other in &requirement.depends_on {
                assert!(
                    super::requirement(other).is_some() && other != id,
                    "{id}: {other}"
                );
            }
        }
    }

    #[test]
    fn ids_are_numbered_without_gaps() {
        let mut families: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for requirement in requirements() {
            families
                .entry(&requirement.family)
                .or_default()
                .push(&requirement.id);
        }
        for (family, ids) in families {
            let expected: Vec<String> = (1..=ids.len()).map(|n| format!("{family}-{n:02}")).collect();
            assert_eq!(ids, expected);
        }
    }
}

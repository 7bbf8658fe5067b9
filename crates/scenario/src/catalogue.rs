//! The requirements a scenario may cover and the invariants it may excuse: ids, levels and one line each.
//!
//! The text is `requirements/catalogue.yaml`, to which a link in this package leads. Nothing here knows how a requirement is checked.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

const TEXT: &str = include_str!("../catalogue.yaml");

/// How binding a requirement is (RFC 2119).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Level {
    /// Breaking it breaks users.
    Must,
    /// There can be reasons not to.
    Should,
    /// A choice.
    May,
}

impl Level {
    /// `MUST`, `SHOULD`, `MAY`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Must => "MUST",
            Self::Should => "SHOULD",
            Self::May => "MAY",
        }
    }
}

/// Which clients a requirement concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub enum Profile {
    /// Caching clients: informer, reflector, store.
    #[serde(rename = "C")]
    Caching,
    /// Raw resuming watches without a list.
    #[serde(rename = "W")]
    Watching,
    /// Both.
    #[serde(rename = "CW")]
    Both,
}

/// One requirement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    /// `PAGE-05`.
    pub id: String,
    /// `PAGE`.
    pub family: String,
    /// How binding it is.
    pub level: Level,
    /// Whom it concerns.
    pub profile: Profile,
    /// What it says, one sentence.
    pub text: String,
    /// It concerns only clients that send a LIST with this option: a name and a value of its query.
    pub concerns: Option<(String, String)>,
    /// What decides it where no scenario can: a file of this repository, and what in it (`path: word`).
    pub shown_by: Option<(String, String)>,
    /// Why nothing decides it.
    pub undecided: Option<String>,
}

/// One invariant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invariant {
    /// `INV-07`.
    pub id: String,
    /// What it says, one sentence.
    pub text: String,
}

/// All requirements, family by family as in the file, by number within.
pub fn requirements() -> &'static [Requirement] {
    &CATALOGUE.requirements
}

/// All invariants, by number.
pub fn invariants() -> &'static [Invariant] {
    &CATALOGUE.invariants
}

/// The requirement of this id.
pub fn requirement(id: &str) -> Option<&'static Requirement> {
    requirements().iter().find(|requirement| requirement.id == id)
}

/// The invariant of this id.
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
    concerns: Option<String>,
    shown_by: Option<String>,
    undecided: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_catalogue_is_whole() {
        assert_eq!(requirements().len(), 121);
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

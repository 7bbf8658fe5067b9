//! Editions: frozen lists of the requirements that count, each with its level and the scenarios that tested it at that time.
//!
//! A client that pins an edition is not failed by a scenario or a requirement that came later. The texts are
//! `requirements/editions/*.yaml`, which `cargo xtask edition` writes once; SHA256SUMS beside them has the digest of each, and
//! every result that an edition scored names it. Nothing here knows how a requirement is checked.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::LazyLock;

use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use super::Scenario;
use super::catalogue::{self, Level};
use super::errata::errata;

/// The files, oldest first.
const TEXTS: [&str; 1] = [include_str!("../editions/2026.1.yaml")];

/// The digests of these files, as `sha256sum --check` reads them.
const SUMS: &str = include_str!("../editions/SHA256SUMS");

/// Digits of a digest that people read.
const SHOWN: usize = 12;

/// Stands for the newest edition.
pub const LATEST: &str = "latest";

/// One edition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edition {
    /// `2026.1`: the year, and the number of the edition in it.
    pub name: String,
    /// SHA-256 of its file, hexadecimal.
    pub digest: String,
    /// By requirement id.
    pub requirements: BTreeMap<String, Scored>,
    /// The scenarios of all requirements.
    scenarios: BTreeSet<String>,
}

/// A requirement of an edition.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scored {
    /// How binding it is in this edition.
    pub level: Level,
    /// The scenarios that test it.
    pub scenarios: BTreeSet<String>,
}

/// All editions, oldest first.
pub fn editions() -> &'static [Edition] {
    &EDITIONS
}

/// The edition of this name, or the newest one for [`LATEST`].
pub fn edition(name: &str) -> Option<&'static Edition> {
    match name {
        LATEST => editions().last(),
        name => editions().iter().find(|edition| edition.name == name),
    }
}

/// The edition that scored a result: the one of this name and digest. `None`: the result names none, or one that this version
/// does not have. A result without a digest is from a version that wrote none.
pub fn scored_by(name: Option<&str>, digest: Option<&str>) -> Option<&'static Edition> {
    let edition = edition(name?)?;
    digest
        .is_none_or(|digest| digest == edition.digest)
        .then_some(edition)
}

/// The level of a requirement: of the edition, or of the catalogue. `None`: it does not count, or there is no such requirement.
pub fn level(edition: Option<&Edition>, requirement: &str) -> Option<Level> {
    match edition {
        Some(edition) => edition.level(requirement),
        None => catalogue::requirement(requirement).map(|one| one.level),
    }
}

/// Editions whose file is no longer the one that was frozen, a sentence each.
pub fn changed() -> Vec<String> {
    let files = editions()
        .iter()
        .map(|one| (format!("{}.yaml", one.name), one.digest.as_str()));
    differing(&files.collect(), SUMS)
}

/// Where `sums`, a digest and a file a line, and these files with their digests differ.
fn differing(files: &BTreeMap<String, &str>, sums: &str) -> Vec<String> {
    let frozen: BTreeMap<&str, &str> = sums
        .lines()
        .filter_map(|line| line.split_once("  "))
        .map(|(digest, file)| (file, digest))
        .collect();
    let mut found = Vec::new();
    for (file, digest) in files {
        match frozen.get(file.as_str()) {
            Some(frozen) if frozen == digest => {}
            Some(frozen) => found.push(format!(
                "requirements/editions/{file} was changed: its SHA-256 is {digest}, and was {frozen} when it was frozen; undo \
                 the change, and freeze another edition"
            )),
            None => found.push(format!(
                "requirements/editions/SHA256SUMS has no digest of {file}; add: {digest}  {file}"
            )),
        }
    }
    let gone = frozen.keys().filter(|file| !files.contains_key(**file));
    found.extend(
        gone.map(|file| format!("requirements/editions/{file} is frozen, and is no edition of this version")),
    );
    found
}

impl Edition {
    /// Reads the text of an edition; `None`: it is none.
    pub fn parse(text: &str) -> Option<Self> {
        let (tree, _) = super::tree::read(text);
        let file: File = super::read::from_node(tree.as_ref()?).ok()?;
        let scenarios = file.requirements.values();
        Some(Self {
            scenarios: scenarios
                .flat_map(|scored| scored.scenarios.iter().cloned())
                .collect(),
            name: file.edition,
            digest: digest(text),
            requirements: file.requirements,
        })
    }

    /// Name and the beginning of the digest, as people read them.
    pub fn label(&self) -> String {
        label(&self.name, Some(&self.digest))
    }

    /// Does the scenario count?
    pub fn has(&self, scenario: &str) -> bool {
        self.scenarios.contains(scenario)
    }

    /// The level of a requirement, lowered by errata; `None`: it does not count.
    pub fn level(&self, requirement: &str) -> Option<Level> {
        let scored = self.requirements.get(requirement)?;
        Some(errata().level(requirement, scored.level))
    }

    /// Does the scenario count for the requirement? Not if errata withdrew it.
    pub fn tests(&self, requirement: &str, scenario: &str) -> bool {
        let scored = self.requirements.get(requirement);
        scored.is_some_and(|scored| scored.scenarios.contains(scenario))
            && !errata().withdraw(requirement, scenario)
    }

    /// Where the catalogue and these scenarios no longer are what the edition lists with its errata, a sentence each. Scenarios
    /// and requirements that were added are no disagreement.
    pub fn disagreements<'a>(&self, scenarios: impl IntoIterator<Item = &'a Scenario>) -> Vec<String> {
        let covers: BTreeMap<&str, BTreeSet<&str>> = scenarios
            .into_iter()
            .map(|scenario| {
                let covered = scenario.covers.iter().map(|covered| covered.id.as_str());
                (scenario.id.as_str(), covered.collect())
            })
            .collect();
        let name = &self.name;
        let mut found = Vec::new();
        for (id, scored) in &self.requirements {
            if catalogue::requirement(id).is_none() {
                found.push(format!(
                    "edition {name} has {id}, and requirements/catalogue.yaml does not"
                ));
            }
            let lower = catalogue::requirement(id).filter(|one| one.level > errata().level(id, scored.level));
            if let Some(lower) = lower {
                found.push(format!(
                    "edition {name} has {id} as a {}, and the catalogue as a {}: list it under `lowered` in requirements/errata.yaml",
                    scored.level.word(),
                    lower.level.word()
                ));
            }
            for scenario in &scored.scenarios {
                let is_withdrawn = errata().withdraw(id, scenario);
                match covers.get(scenario.as_str()) {
                    Some(covered) if is_withdrawn && covered.contains(id.as_str()) => found.push(format!(
                        "requirements/errata.yaml withdraws {id} by {scenario}, which still covers it"
                    )),
                    Some(_) if is_withdrawn => {}
                    None => found.push(format!(
                        "edition {name} has the scenario {scenario}, which is gone"
                    )),
                    Some(covered) if !covered.contains(id.as_str()) => found.push(format!(
                        "edition {name} tests {id} by {scenario}, which no longer covers it: list it under `withdrawn` in \
                         requirements/errata.yaml"
                    )),
                    Some(_) => {}
                }
            }
        }
        found
    }
}

/// Name of an edition, the beginning of its digest and the number of errata applied, as people read them.
pub fn label(name: &str, digest: Option<&str>) -> String {
    match digest.and_then(|digest| digest.get(..SHOWN)) {
        Some(digest) => format!("{name} (sha256 {digest}, {} errata)", errata().count()),
        None => name.to_owned(),
    }
}

/// SHA-256 of a file of an edition, hexadecimal.
pub fn digest(text: &str) -> String {
    let hash = Sha256::digest(text.as_bytes());
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The text of a new edition: all requirements at MUST and SHOULD that these scenarios test.
pub fn text<'a>(name: &str, scenarios: impl IntoIterator<Item = &'a Scenario>) -> String {
    let mut tested: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for scenario in scenarios {
        for covered in &scenario.covers {
            tested
                .entry(&covered.id)
                .or_default()
                .insert(scenario.id.as_str());
        }
    }
    let mut text = format!(
        "# Edition {name} of the conformance suite: the requirements that count, and the scenarios that test them.\n\
         # Written by `cargo xtask edition {name}`, and never changed: what comes later is part of the next edition.\n\
         edition: \"{name}\"\nrequirements:\n"
    );
    for requirement in catalogue::requirements() {
        let Some(scenarios) = tested.get(requirement.id.as_str()) else {
            continue;
        };
        if requirement.level == Level::May {
            continue;
        }
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "  {}:\n    level: {}\n    scenarios:",
            requirement.id,
            requirement.level.word()
        );
        for scenario in scenarios {
            let _ = writeln!(text, "      - {scenario}");
        }
    }
    text
}

static EDITIONS: LazyLock<Vec<Edition>> = LazyLock::new(|| {
    let read = |text: &&str| {
        Edition::parse(text).expect("the editions are part of the build, and a test reads them")
    };
    TEXTS.iter().map(read).collect()
});

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    edition: String,
    requirements: BTreeMap<String, Scored>,
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;
    use crate::Covered;

    fn repository() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
    }

    fn scenarios() -> Vec<Scenario> {
        let (files, mistaken) = crate::find(&[repository().join("scenarios")]);
        assert!(mistaken.is_empty());
        let loaded = files.into_iter().map(|file| file.load());
        loaded.map(|scenario| scenario.unwrap()).collect()
    }

    /// What to do when it fails: a requirement keeps its id for ever, and a scenario of an edition its id and what it
    /// covers, though it may be corrected. What contradicts an edition is a new scenario beside the old one.
    #[test]
    fn the_editions_agree_with_the_catalogue_and_the_scenarios() {
        let scenarios = scenarios();
        for edition in editions() {
            assert_eq!(edition.disagreements(&scenarios), Vec::<String>::new());
        }
    }

    #[test]
    fn every_file_is_an_edition_and_named_after_it() {
        let mut files: Vec<String> = std::fs::read_dir(repository().join("requirements/editions"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|file| file != "SHA256SUMS")
            .collect();
        files.sort_by_key(|file| {
            let numbers = file.trim_end_matches(".yaml").split('.');
            numbers
                .map(|number| number.parse::<u32>().unwrap())
                .collect::<Vec<_>>()
        });
        let names: Vec<String> = editions()
            .iter()
            .map(|one| format!("{}.yaml", one.name))
            .collect();
        assert_eq!(names, files);
        for edition in editions() {
            assert!(!edition.requirements.is_empty(), "{}", edition.name);
        }
        assert_eq!(edition(LATEST), editions().last());
        assert_eq!(
            edition("2026.1").map(|edition| edition.name.as_str()),
            Some("2026.1")
        );
        assert_eq!(edition("1999.1"), None);
    }

    /// What to do when it fails: undo the change. Clients in CI rely on what an edition asks for; what comes later is part of
    /// the next one.
    #[test]
    fn no_edition_was_changed_since_it_was_frozen() {
        assert_eq!(changed(), Vec::<String>::new());
    }

    #[test]
    fn a_change_of_an_edition_shows() {
        let text = TEXTS[0];
        let own = digest(text);
        let sums = format!("{own}  2030.1.yaml\n");
        fn files(digest: &str) -> BTreeMap<String, &str> {
            BTreeMap::from([("2030.1.yaml".to_owned(), digest)])
        }
        assert_eq!(differing(&files(&own), &sums), Vec::<String>::new());
        let edited = digest(&text.replacen("level: MUST", "level: SHOULD", 1));
        let found = differing(&files(&edited), &sums);
        assert!(
            found.len() == 1 && found[0].contains(&edited) && found[0].contains(&own),
            "{found:?}"
        );
        let found = differing(&files(&own), "");
        assert!(
            found[0].ends_with(&format!("add: {own}  2030.1.yaml")),
            "{found:?}"
        );
        let found = differing(&BTreeMap::new(), &sums);
        assert!(found[0].contains("is no edition of this version"), "{found:?}");
    }

    #[test]
    fn a_result_belongs_to_the_edition_of_its_digest() {
        let newest = edition(LATEST).unwrap();
        let (name, own) = (newest.name.as_str(), newest.digest.as_str());
        assert_eq!(scored_by(Some(name), Some(own)), Some(newest));
        assert_eq!(scored_by(Some(name), None), Some(newest));
        assert_eq!(scored_by(Some(name), Some(&digest("other"))), None);
        assert_eq!(scored_by(None, Some(own)), None);
        assert_eq!(
            newest.label(),
            format!("{name} (sha256 {}, {} errata)", &own[..12], errata().count())
        );
        assert_eq!(label(name, None), name);
    }

    #[test]
    fn a_level_is_that_of_the_edition() {
        let text = "{edition: '1.1', requirements: {LIST-01: {level: SHOULD, scenarios: []}}}";
        let old = Edition::parse(text).unwrap();
        assert_eq!(level(Some(&old), "LIST-01"), Some(Level::Should));
        assert_eq!(level(None, "LIST-01"), Some(Level::Must));
        assert_eq!(level(Some(&old), "LIST-02"), None);
        assert_eq!(level(None, "NONE-01"), None);
    }

    #[test]
    fn what_is_gone_is_named_and_what_is_new_is_not() {
        let mut scenarios = scenarios();
        let first = scenarios
            .iter()
            .position(|scenario| scenario.covers.len() > 1)
            .unwrap();
        let whole = scenarios[first].clone();
        let edition = Edition::parse(&text("2030.1", &scenarios)).unwrap();
        assert_eq!(edition.disagreements(&scenarios), Vec::<String>::new());
        let counted = whole
            .covers
            .iter()
            .find(|covered| edition.level(&covered.id).is_some());
        let counted = counted.unwrap().id.clone();
        assert!(edition.has(&whole.id) && edition.tests(&counted, &whole.id));

        scenarios[first].covers.retain(|covered| covered.id != counted);
        let found = edition.disagreements(&scenarios);
        assert_eq!(
            found,
            [format!(
                "edition 2030.1 tests {counted} by {}, which no longer covers it: list it under `withdrawn` in requirements/errata.yaml",
                whole.id
            )]
        );
        scenarios.remove(first);
        let found = edition.disagreements(&scenarios);
        assert!(
            !found.is_empty() && found.iter().all(|one| one.contains("which is gone")),
            "{found:?}"
        );

        let mut added = whole.clone();
        added.id = "new/claim".to_owned();
        added.covers.push(Covered {
            id: "LIST-01".to_owned(),
            ..whole.covers[0].clone()
        });
        scenarios.extend([whole, added]);
        assert_eq!(edition.disagreements(&scenarios), Vec::<String>::new());
        assert!(!edition.has("new/claim"));

        let unknown = "edition: '1.1'\nrequirements: {NONE-01: {level: MUST, scenarios: []}}\n";
        let found = Edition::parse(unknown).unwrap().disagreements(&scenarios);
        assert_eq!(
            found,
            ["edition 1.1 has NONE-01, and requirements/catalogue.yaml does not"]
        );
    }
}

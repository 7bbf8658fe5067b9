//! Requirement coverage: which requirements a client keeps and breaks in the scenarios that ran. It reads verdicts
//! only; the catalogue has the reason, or the test, for requirements without a scenario.

use fake_apiserver::record::{Verb, What};
use fake_apiserver::scenario::Contract;
use fake_apiserver::scenario::catalogue::{self, Level, Profile, Requirement};

use crate::suite::Judged;

/// A requirement and the client's compliance with it.
#[derive(Debug)]
pub struct Coverage<'a> {
    /// The requirement.
    pub requirement: &'static Requirement,
    /// The client's compliance.
    pub compliance: Compliance<'a>,
}

/// Compliance with a requirement, by the scenarios that cover it.
#[derive(Debug, PartialEq, Eq)]
pub enum Compliance<'a> {
    /// All covering scenarios passed.
    Kept,
    /// Not exercised: the client never sent the list option (name, value) that the requirement is about.
    NotConcerned(&'static str, &'static str),
    /// No scenario covers it; a test does: file, and a word to find it by.
    Shown(&'static str, &'static str),
    /// Ids of the scenarios that failed and name the requirement as broken.
    Broken(Vec<&'a str>),
    /// No scenario covers it, for the catalogue's reason.
    Undecided(&'static str),
    /// No scenario covers it, and the catalogue gives no reason.
    Nothing,
}

/// Returns the compliance with every MUST and SHOULD of a caching client, in the catalogue's order.
pub fn of_caching_clients<'a>(results: &'a [Judged]) -> Vec<Coverage<'a>> {
    let of_these = |requirement: &&Requirement| match (requirement.profile, requirement.level) {
        (Profile::Caching | Profile::Both, Level::Must | Level::Should) => true,
        (Profile::Caching | Profile::Both, Level::May) | (Profile::Watching, _) => false,
    };
    let all = catalogue::requirements().iter().filter(of_these);
    all.map(|requirement| Coverage {
        requirement,
        compliance: compliance(requirement, results),
    })
    .collect()
}

/// Whether this run failed and broke the requirement.
pub fn breaks(judged: &Judged, requirement: &str) -> bool {
    judged.scenario.is_about(requirement) && judged.verdict.breaks(requirement)
}

fn compliance<'a>(requirement: &'static Requirement, results: &'a [Judged]) -> Compliance<'a> {
    let covering: Vec<&Judged> = results
        .iter()
        // A run with contract `watch` or `list` tests another kind of client.
        .filter(|judged| judged.scenario.client.contract == Contract::Informer)
        .filter(|judged| judged.scenario.is_about(&requirement.id))
        .collect();
    if covering.is_empty() {
        return match (&requirement.shown_by, &requirement.undecided) {
            (Some((file, word)), _) => Compliance::Shown(file, word),
            (None, Some(why)) => Compliance::Undecided(why),
            (None, None) => Compliance::Nothing,
        };
    }
    let broken: Vec<&str> = covering
        .into_iter()
        .filter(|judged| breaks(judged, &requirement.id))
        .map(|judged| judged.scenario.id.as_str())
        .collect();
    match &requirement.concerns {
        _ if !broken.is_empty() => Compliance::Broken(broken),
        Some((name, value)) if !results.iter().any(|judged| lists_with(judged, name, value)) => {
            Compliance::NotConcerned(name, value)
        }
        Some(_) | None => Compliance::Kept,
    }
}

/// Whether the client sent a LIST with this option.
fn lists_with(judged: &Judged, name: &str, value: &str) -> bool {
    judged.records.iter().any(|record| {
        let What::Request {
            verb: Verb::List,
            query,
            ..
        } = &record.what
        else {
            return false;
        };
        query.iter().any(|(key, sent)| key == name && sent == value)
    })
}

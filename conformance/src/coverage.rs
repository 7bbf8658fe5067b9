//! What the played scenarios say of each requirement: kept, broken, or nothing. It reads verdicts only; why nothing is
//! said of some, or what shows them, is in the catalogue.

use fake_apiserver::record::{Verb, What};
use fake_apiserver::scenario::Contract;
use fake_apiserver::scenario::catalogue::{self, Level, Profile, Requirement};

use crate::suite::Judged;

/// One requirement, and what the scenarios say of it.
#[derive(Debug)]
pub struct Covered<'a> {
    /// Which.
    pub requirement: &'static Requirement,
    /// What they say.
    pub said: Said<'a>,
}

/// What scenarios say of a requirement.
#[derive(Debug, PartialEq, Eq)]
pub enum Said<'a> {
    /// Every scenario that covers it passed.
    Kept,
    /// Nothing was asked of the client: in no scenario at all did it send the option that the requirement is about.
    NotConcerned(&'static str, &'static str),
    /// None covers it; this file shows it, by what it calls so.
    Shown(&'static str, &'static str),
    /// These failed, and by what they name as broken.
    Broken(Vec<&'a str>),
    /// None covers it, and the catalogue says why.
    Undecided(&'static str),
    /// None covers it.
    Nothing,
}

/// Every requirement of a caching client that is more than a choice, in the catalogue's order.
pub fn of_caching_clients<'a>(results: &'a [Judged]) -> Vec<Covered<'a>> {
    let of_these = |requirement: &&Requirement| match (requirement.profile, requirement.level) {
        (Profile::Caching | Profile::Both, Level::Must | Level::Should) => true,
        (Profile::Caching | Profile::Both, Level::May) | (Profile::Watching, _) => false,
    };
    let all = catalogue::requirements().iter().filter(of_these);
    all.map(|requirement| Covered {
        requirement,
        said: said(requirement, results),
    })
    .collect()
}

/// Does this failed run speak against the requirement?
pub fn breaks(judged: &Judged, requirement: &str) -> bool {
    covers(judged, requirement) && judged.verdict.breaks(requirement)
}

fn said<'a>(requirement: &'static Requirement, results: &'a [Judged]) -> Said<'a> {
    let covering: Vec<&Judged> = results
        .iter()
        // A run of one watch or one list is of another client.
        .filter(|judged| judged.scenario.client.contract == Contract::Informer)
        .filter(|judged| covers(judged, &requirement.id))
        .collect();
    if covering.is_empty() {
        return match (&requirement.shown_by, &requirement.undecided) {
            (Some((file, word)), _) => Said::Shown(file, word),
            (None, Some(why)) => Said::Undecided(why),
            (None, None) => Said::Nothing,
        };
    }
    let broken: Vec<&str> = covering
        .into_iter()
        .filter(|judged| breaks(judged, &requirement.id))
        .map(|judged| judged.scenario.id.as_str())
        .collect();
    match &requirement.concerns {
        _ if !broken.is_empty() => Said::Broken(broken),
        Some((name, value)) if !results.iter().any(|judged| lists_with(judged, name, value)) => {
            Said::NotConcerned(name, value)
        }
        Some(_) | None => Said::Kept,
    }
}

/// Did the client send a LIST with this option?
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

fn covers(judged: &Judged, requirement: &str) -> bool {
    judged
        .scenario
        .covers
        .iter()
        .any(|covered| covered.id == requirement)
}

//! Privilege escalation prevention: the writer of a role or binding must hold all of its permissions. It must not know the
//! request.
//!
//! Source: "Privilege escalation prevention and bootstrapping"; kubernetes `pkg/registry/rbac/validation/rule.go`
//! (`ConfirmNoEscalation`), component-helpers `auth/rbac/validation/policy_comparator.go`.

use std::collections::{BTreeMap, BTreeSet};

use apimachinery::go_text::quote;

use super::rule::{leads_to, named, quoted};
use super::{PolicyRule, Rules, User};

/// Returns the message for a user who grants permissions that its own rules do not cover; `None`: all are covered.
pub fn missing(user: User<'_>, held: &Rules, granted: &[PolicyRule]) -> Option<String> {
    let uncovered: Vec<PolicyRule> = granted
        .iter()
        .flat_map(atoms)
        .filter(|atom| !held.rules.iter().any(|rule| covers(rule, atom)))
        .collect();
    if uncovered.is_empty() {
        return None;
    }
    // A set: the lines are sorted and unique.
    let lines: BTreeSet<String> = compacted(uncovered).iter().map(PolicyRule::compact).collect();
    let lines: Vec<String> = lines.into_iter().collect();
    let errors = match held.error.as_str() {
        "" => String::new(),
        error => format!("; resolution errors: [{error}]"),
    };
    Some(format!(
        "user {} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}{errors}",
        quote(user.name),
        quoted(user.groups),
        lines.join("\n")
    ))
}

/// Splits a rule into rules with one verb, one resource and one name each.
fn atoms(rule: &PolicyRule) -> Vec<PolicyRule> {
    let mut atoms = Vec::new();
    for group in &rule.api_groups {
        for resource in &rule.resources {
            for verb in &rule.verbs {
                let atom = PolicyRule {
                    verbs: vec![verb.clone()],
                    api_groups: vec![group.clone()],
                    resources: vec![resource.clone()],
                    ..PolicyRule::default()
                };
                if rule.resource_names.is_empty() {
                    atoms.push(atom);
                    continue;
                }
                atoms.extend(rule.resource_names.iter().map(|name| PolicyRule {
                    resource_names: vec![name.clone()],
                    ..atom.clone()
                }));
            }
        }
    }
    for path in &rule.non_resource_urls {
        atoms.extend(rule.verbs.iter().map(|verb| PolicyRule {
            verbs: vec![verb.clone()],
            non_resource_urls: vec![path.clone()],
            ..PolicyRule::default()
        }));
    }
    atoms
}

/// Returns whether one rule of the owner covers an atom.
fn covers(rule: &PolicyRule, atom: &PolicyRule) -> bool {
    let all = |known: &[String], asked: &[String]| asked.iter().all(|asked| named(known, asked));
    let resource = |asked: &String| {
        let part = asked.split_once('/').map(|(_, part)| format!("*/{part}"));
        named(&rule.resources, asked) || part.is_some_and(|part| rule.resources.contains(&part))
    };
    let names = match atom.resource_names.as_slice() {
        [] => rule.resource_names.is_empty(),
        asked => {
            rule.resource_names.is_empty() || asked.iter().all(|name| rule.resource_names.contains(name))
        }
    };
    let path = |asked: &String| rule.non_resource_urls.iter().any(|known| leads_to(known, asked));
    all(&rule.verbs, &atom.verbs)
        && all(&rule.api_groups, &atom.api_groups)
        && atom.resources.iter().all(resource)
        && names
        && atom.non_resource_urls.iter().all(path)
}

/// Joins atoms that differ only in their verb.
fn compacted(atoms: Vec<PolicyRule>) -> Vec<PolicyRule> {
    let mut compacted = Vec::new();
    let mut simple: BTreeMap<(String, String), PolicyRule> = BTreeMap::new();
    for atom in atoms {
        match (
            atom.api_groups.as_slice(),
            atom.resources.as_slice(),
            atom.resource_names.is_empty(),
        ) {
            ([group], [resource], true) => {
                let place = (group.clone(), resource.clone());
                match simple.get_mut(&place) {
                    Some(known) => known.verbs.extend(atom.verbs),
                    None => drop(simple.insert(place, atom)),
                }
            }
            (_, _, _) => compacted.push(atom),
        }
    }
    compacted.extend(simple.into_values());
    compacted
}

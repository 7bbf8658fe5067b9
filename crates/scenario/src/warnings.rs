//! Warnings for scenarios that are valid but contain expectations which can never be met.
//!
//! A warning is reported only if no client behaviour and no scripted fault of the file could make it wrong.

use super::{
    Action, EmittedKind, EmittedMatch, Place, RequestKind, RequestPattern, RuleAction, Scenario, ShapeAction,
    StoreAction, StreamAction, Trigger,
};

/// A warning for a scenario that loads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// Line and column.
    pub at: Place,
    /// What can never happen, in one sentence.
    pub message: String,
    /// Suggestion for the fix.
    pub hint: &'static str,
}

/// Returns all warnings, in the order of the file's lines.
pub fn warnings(scenario: &Scenario) -> Vec<Warning> {
    let mut warnings = Vec::new();
    if !may_lose_objects(scenario) {
        let awaited = scenario.steps.iter().filter_map(|step| match &step.when {
            Trigger::Emitted(emitted) => Some(emitted),
            Trigger::Now | Trigger::Request(_) | Trigger::After(_) | Trigger::Quiet(_) | Trigger::Synced => {
                None
            }
        });
        let deletions = awaited
            .chain(scenario.expect.events.iter().map(|expected| &expected.event))
            .filter(|emitted| emitted.kind == EmittedKind::Delete);
        warnings.extend(deletions.map(never_deleted));
    }
    if let Some(most) = most_objects_of_a_list(scenario) {
        let size = scenario.client.page_size.map(u64::from);
        for expected in &scenario.expect.requests {
            let [
                RequestPattern {
                    kind: RequestKind::Page { page },
                    ..
                },
            ] = expected.any_of.as_slice()
            else {
                continue;
            };
            let page = *page;
            let Some(size) = size else {
                warnings.push(Warning {
                    at: expected.at,
                    message: format!("page {page} never comes: the client does not page"),
                    hint: "give `client: {page_size: …}` a number",
                });
                continue;
            };
            let enough = size * (u64::from(page) - 1);
            if most <= enough {
                warnings.push(Warning {
                    at: expected.at,
                    message: format!(
                        "page {page} never comes: with {size} a page it takes more than {enough} objects, and there are {most} at most"
                    ),
                    hint: "add objects (`repeat:`), or make `client: {page_size: …}` smaller",
                });
            }
        }
    }
    warnings.sort_by_key(|warning| warning.at);
    warnings
}

fn never_deleted(emitted: &EmittedMatch) -> Warning {
    let what = match &emitted.name {
        Some(name) => format!("`delete` of `{name}`"),
        None => "`delete`".to_owned(),
    };
    Warning {
        at: emitted.at,
        message: format!(
            "{what} is never emitted: no object is deleted, relabelled or left out in this file"
        ),
        hint: "delete it in a step (`delete: NAME`), or expect another event",
    }
}

/// Returns true if a correct client could lose an object from its cache.
fn may_lose_objects(scenario: &Scenario) -> bool {
    let selects = scenario.client.labels.is_some() || scenario.client.fields.is_some();
    selects
        || actions(scenario).any(|action| match action {
            Action::Store(action) => !matches!(
                action,
                StoreAction::Apply(_) | StoreAction::Relabel { .. } | StoreAction::Compact
            ),
            Action::Shape(shape) => matches!(shape, ShapeAction::Reply(_) | ShapeAction::EditPage(_)),
            Action::Stream(action) => {
                matches!(action, StreamAction::Send(_) | StreamAction::SendEvent { .. })
            }
            // A bookmark moved past the version of a list may hide an object.
            Action::Rule(rule) => !matches!(rule, RuleAction::RepeatEvent(_)),
            Action::Refuse(_) => false,
        })
}

/// Returns the maximum number of the target's objects in a list; `None` if the file does not determine it.
fn most_objects_of_a_list(scenario: &Scenario) -> Option<u64> {
    let target = &scenario.target;
    let counts = |manifests: &[super::Manifest]| {
        let of_target = manifests
            .iter()
            .filter(|manifest| manifest.group == target.group && manifest.plural == target.plural);
        of_target.count() as u64
    };
    let mut most = counts(&scenario.objects);
    for action in actions(scenario) {
        match action {
            Action::Store(StoreAction::Apply(manifests)) => most += counts(manifests),
            Action::Shape(ShapeAction::Reply(_) | ShapeAction::EditPage(_)) => return None,
            Action::Store(_) | Action::Shape(_) | Action::Rule(_) | Action::Stream(_) | Action::Refuse(_) => {
            }
        }
    }
    Some(most)
}

fn actions(scenario: &Scenario) -> impl Iterator<Item = &Action> {
    scenario.steps.iter().flat_map(|step| &step.actions)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use rstest::rstest;

    use super::*;
    use crate::parse;

    const HEAD: &str =
        "scenario: v1\ntitle: t\nwhy: w\ncovers: [LIST-01]\nobjects: [{configmap: {name: a}}]\n";

    #[rstest]
    #[case::nothing("", &[])]
    #[case::never_deleted("expect: {events: [{delete: a}]}\n", &["`delete` of `a` is never emitted"])]
    #[case::never_deleted_in_a_step("steps: [{when: {emitted: {delete: a}}, compact: }]\n", &["`delete` of `a`"])]
    #[case::deleted("steps: [{delete: a}]\nexpect: {events: [{delete: a}]}\n", &[])]
    #[case::page("expect: {requests: [{page: 3}]}\n", &["page 3 never comes: with 500 a page"])]
    #[case::page_that_may_be_requested("client: {page_size: 1}\nsteps: [{apply: {configmap: {name: b}}}]\nexpect: {requests: [{page: 2}]}\n", &[])]
    fn impossible_expectations_give_warnings(#[case] text: &str, #[case] messages: &[&str]) {
        let scenario = parse("group/claim", Path::new("claim.yaml"), &format!("{HEAD}{text}"));
        let scenario = scenario.unwrap_or_else(|errors| panic!("{errors}"));
        let warnings = warnings(&scenario);
        assert_eq!(warnings.len(), messages.len(), "{warnings:?}");
        for (warning, messages) in warnings.iter().zip(messages) {
            assert!(warning.message.contains(messages), "{warning:?}");
        }
    }
}

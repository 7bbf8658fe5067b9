//! What a scenario requires of the cluster that it runs in: its resource, and the namespaces of its objects.

use std::collections::BTreeSet;

use scenario::{Action, Manifest, Scenario};

use crate::model::{NAMESPACES, Setting};

/// Returns the requirements of a scenario, those of its later writes included.
pub(super) fn setting(scenario: &Scenario) -> Setting<'_> {
    let target = &scenario.target;
    let mut setting = Setting {
        group: &target.group,
        plural: &target.plural,
        namespaces: BTreeSet::new(),
        written: Vec::new(),
    };
    let mut needs_namespace = |name| {
        if !NAMESPACES.contains(&name) {
            setting.namespaces.insert(name);
        }
    };
    target
        .namespace
        .as_deref()
        .into_iter()
        .for_each(&mut needs_namespace);
    for manifest in manifests(scenario) {
        manifest
            .namespace
            .as_deref()
            .into_iter()
            .for_each(&mut needs_namespace);
        if (&manifest.group, &manifest.plural) != (&target.group, &target.plural) {
            setting.written.push(manifest);
        }
    }
    setting
}

/// Returns the objects that the scenario writes, at the start or in a step.
fn manifests(scenario: &Scenario) -> impl Iterator<Item = &Manifest> {
    let actions = scenario.steps.iter().flat_map(|step| &step.actions);
    scenario.objects.iter().chain(actions.flat_map(Action::manifests))
}

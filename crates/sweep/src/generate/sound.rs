//! Conditions under which a correct client converges. The generator ensures them by construction, the shrinker checks
//! them here; the parser does not, because a file may violate them.

use std::collections::BTreeSet;

use fake_apiserver::scenario::raw::{ActionKey, ActionKeys, ShortObject, StepKeys};

use super::names::{self, Trigger};
use super::{Draft, key_of};

impl Draft {
    /// Returns why a correct client might not converge, or might not meet a step; `None`: the draft is sound.
    pub fn unsound(&self) -> Option<&'static str> {
        let mut known = Known::default();
        let objects = self.objects.iter().filter_map(|object| object.value.short());
        for object in objects {
            known.names.extend(key_of(object));
            known
                .bound
                .extend(object.binds.iter().map(|name| name.value.clone()));
        }
        let mut after_optional = false;
        for (index, step) in self.steps.iter().enumerate() {
            if let Some(why) = self.unsound_trigger(index, step, after_optional, &known) {
                return Some(why);
            }
            after_optional = step.optional.is_some();
            if step.items().any(names::happens_once) && is_repeated(step) {
                return Some("a step that is met once is met several times");
            }
            let problem = step.items().find_map(|action| known.unsound(action, step));
            if problem.is_some() {
                return problem;
            }
        }
        None
    }

    fn unsound_trigger(
        &self,
        index: usize,
        step: &StepKeys,
        after_optional: bool,
        known: &Known,
    ) -> Option<&'static str> {
        let trigger = Trigger::of(step);
        if step.optional.is_some() == trigger.is_certain() {
            return Some("what may not come is optional, and nothing else");
        }
        if is_repeated(step) && !trigger.is_request() {
            return Some("only requests come several times");
        }
        match trigger {
            Trigger::FirstList if index > 0 || self.client.initial_list.is_some() => {
                Some("the first LIST may be over")
            }
            Trigger::Synced if known.frozen || known.restored || known.lied => {
                Some("the client cannot recover before the conclusion")
            }
            Trigger::Now if after_optional => Some("what is optional has no time to come"),
            Trigger::Now
            | Trigger::After
            | Trigger::FirstList
            | Trigger::NextWatch
            | Trigger::NextRequest
            | Trigger::NextList
            | Trigger::SecondPage
            | Trigger::Emitted
            | Trigger::Synced
            | Trigger::Quiet => None,
        }
    }
}

fn is_repeated(step: &StepKeys) -> bool {
    step.times.is_some() || step.lasts.is_some()
}

/// State of the store at one point of a draft.
#[derive(Default)]
struct Known {
    /// Objects that exist.
    names: BTreeSet<String>,
    /// Names of versions.
    bound: BTreeSet<String>,
    frozen: bool,
    restored: bool,
    lied: bool,
}

impl Known {
    /// Applies an action.
    fn unsound(&mut self, action: &ActionKeys, step: &StepKeys) -> Option<&'static str> {
        let key = action.key()?;
        if names::lie(key).is_some() {
            self.lied = true;
            let is_on_watch = matches!(key.word(), "drop_events" | "reorder_events");
            let has_watch = Trigger::of(step).is_watch();
            return (is_on_watch && !has_watch).then_some("no watch to lie on");
        }
        if !names::is_write(key) {
            return None;
        }
        if step.optional.is_some() {
            return Some("what is written in an optional step may not be there");
        }
        if let ActionKey::Apply(objects) = key {
            let objects = objects.value.0.iter().filter_map(|object| object.value.short());
            let of_target = |object: &&ShortObject| object.repeat.is_none() && !is_service(object);
            self.names.extend(objects.filter(of_target).filter_map(key_of));
            self.bound
                .extend(action.name.iter().map(|name| name.value.clone()));
        } else if let ActionKey::Delete(names) = key {
            let mut names = names.value.0.iter().filter_map(|name| name.0.name.as_ref());
            let exists = names.all(|name| self.names.remove(&name.value)) && !self.restored;
            return (!exists).then_some("what is deleted does not exist");
        } else if let ActionKey::Relabel(relabel) = key {
            let name = relabel.value.name.as_ref();
            let exists = name.is_some_and(|name| self.names.contains(&name.value)) && !self.restored;
            return (!exists).then_some("what is relabelled does not exist");
        } else if let ActionKey::Restore(to) = key {
            self.restored = true;
            let is_bound = self.bound.contains(to.value.0.trim_start_matches('$'));
            return (!is_bound).then_some("the version has no name");
        }
        self.frozen |= key.word() == "freeze_watch_cache";
        None
    }
}

fn is_service(object: &ShortObject) -> bool {
    object.service.is_some()
}

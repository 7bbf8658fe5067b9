//! Conditions under which a correct client converges. The generator ensures them by construction, the shrinker checks
//! them here; the parser does not, because a file may violate them.

use std::collections::BTreeSet;

use super::{Action, Draft, Lie, Step, Times, When, Write};

impl Draft {
    /// Returns why a correct client might not converge, or might not meet a step; `None`: the draft is sound.
    pub fn unsound(&self) -> Option<&'static str> {
        let mut known = Known {
            names: self.objects.iter().map(super::Object::key).collect(),
            bound: self.objects.iter().filter_map(|object| object.binds).collect(),
            ..Known::default()
        };
        let mut after_optional = false;
        for (index, step) in self.steps.iter().enumerate() {
            if let Some(why) = self.unsound_trigger(index, step, after_optional, &known) {
                return Some(why);
            }
            after_optional = step.is_optional;
            let is_once = step.actions.iter().any(Action::happens_once);
            if is_once && step.times != Times::Count(1) {
                return Some("a step that is met once is met several times");
            }
            for action in &step.actions {
                if let Action::Write(write) = action
                    && write.replica().is_some()
                    && !self.server.has_replicas
                {
                    return Some("there is one replica");
                }
                if let Some(why) = known.unsound(action, step) {
                    return Some(why);
                }
            }
        }
        None
    }

    fn unsound_trigger(
        &self,
        index: usize,
        step: &Step,
        after_optional: bool,
        known: &Known,
    ) -> Option<&'static str> {
        if step.is_optional == step.when.is_certain() {
            return Some("what may not come is optional, and nothing else");
        }
        if step.times != Times::Count(1) && !step.when.is_request() {
            return Some("only requests come several times");
        }
        match step.when {
            When::FirstList if index > 0 || self.client.streaming => Some("the first LIST may be over"),
            When::Synced if known.frozen || known.restored || known.lied => {
                Some("the client cannot recover before the conclusion")
            }
            When::Now if after_optional => Some("what is optional has no time to come"),
            When::Now
            | When::After(_)
            | When::FirstList
            | When::NextWatch
            | When::NextRequest
            | When::NextList
            | When::SecondPage
            | When::Emitted(_)
            | When::Synced
            | When::Quiet(_) => None,
        }
    }
}

/// State of the store at one point of a draft.
#[derive(Default)]
struct Known {
    names: BTreeSet<String>,
    bound: BTreeSet<u32>,
    frozen: bool,
    restored: bool,
    lied: bool,
}

impl Known {
    /// Applies an action.
    fn unsound(&mut self, action: &Action, step: &Step) -> Option<&'static str> {
        let write = match action {
            Action::Write(write) => write,
            Action::Lie(lie) => {
                self.lied = true;
                return match lie {
                    Lie::Drop(_) | Lie::Reorder(_) if !step.when.is_watch() => Some("no watch to lie on"),
                    Lie::Drop(_)
                    | Lie::Reorder(_)
                    | Lie::Unreadable(_)
                    | Lie::Event(..)
                    | Lie::Bookmark(_)
                    | Lie::Page(_) => None,
                };
            }
            Action::ResponseFault(_) => return None,
        };
        if step.is_optional {
            return Some("what is written in an optional step may not be there");
        }
        match write {
            Write::Apply(object) => {
                if object.kind != "service" {
                    self.names.insert(object.key());
                }
                self.bound.extend(object.binds);
                None
            }
            Write::Delete(name) => {
                let exists = self.names.remove(name) && !self.restored;
                (!exists).then_some("what is deleted does not exist")
            }
            Write::Relabel(name, _) => {
                let exists = self.names.contains(name) && !self.restored;
                (!exists).then_some("what is relabelled does not exist")
            }
            Write::Freeze(_) => {
                self.frozen = true;
                None
            }
            Write::Restore(name) => {
                self.restored = true;
                (!self.bound.contains(name)).then_some("the version has no name")
            }
            Write::ApplyMany(..)
            | Write::Compact
            | Write::ClearWatchCache(_)
            | Write::Lag(..)
            | Write::Thaw(_)
            | Write::Restart(..)
            | Write::JumpClock(_) => None,
        }
    }
}

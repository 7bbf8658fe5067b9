//! Shrinks a failing draft to the smallest one that still fails, by trying smaller drafts until none fails.
//!
//! Independent of clients and verdicts: a callback decides whether a draft fails.

use crate::generate::Draft;

/// Result of shrinking.
#[derive(Debug, Clone, PartialEq)]
pub struct Shrunk {
    /// The smallest failing draft.
    pub draft: Draft,
    /// The seed of its run.
    pub seed: u64,
    /// Number of drafts run.
    pub plays: u32,
}

/// Returns the smallest failing draft found within `plays_max` runs. `fails`: returns true if this draft, run with
/// this seed, still fails for the same reason. This must hold for `draft` with its own seed.
pub fn shrink(draft: &Draft, plays_max: u32, mut fails: impl FnMut(&Draft, u64) -> bool) -> Shrunk {
    let mut best = draft.clone();
    let mut seed = draft.seed;
    let mut plays = 0;
    let mut size = best.size();
    loop {
        let mut is_smaller = false;
        let mut index = 0;
        // After a success the list is recomputed, and the search continues at the same index.
        while let Some(next) = best.smaller().into_iter().nth(index) {
            if plays >= plays_max {
                return Shrunk {
                    draft: best,
                    seed,
                    plays,
                };
            }
            let next_size = next.size();
            let is_candidate = next_size < size && next.unsound().is_none() && next.try_scenario().is_ok();
            if is_candidate {
                plays += 1;
            }
            if is_candidate && fails(&next, seed) {
                best = next;
                size = next_size;
                is_smaller = true;
            } else {
                index += 1;
            }
        }
        if !is_smaller {
            break;
        }
    }
    // A file is run with seed 0 by default.
    if seed != 0 {
        plays += 1;
        if fails(&best, 0) {
            seed = 0;
        }
    }
    Shrunk {
        draft: best,
        seed,
        plays,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::{Profile, names};

    /// If the failure needs one action, everything else is removed.
    #[test]
    fn shrinking_removes_everything_irrelevant() {
        let mut shrunk = 0;
        for seed in 0..60 {
            let draft = Draft::of(seed, Profile::Lies);
            let matters = |draft: &Draft| draft.actions().any(|action| names::name(action) == "lie: event");
            if !matters(&draft) {
                continue;
            }
            let small = shrink(&draft, 10_000, |draft, _| matters(draft));
            assert_eq!(small.draft.actions().count(), 1, "{}", small.draft);
            assert!(
                small.draft.objects.is_empty() && small.seed == 0,
                "{}",
                small.draft
            );
            assert_eq!(small, shrink(&draft, 10_000, |draft, _| matters(draft)));
            shrunk += 1;
        }
        assert!(shrunk > 3);
    }

    /// A draft that always fails is shrunk to nothing, and a relevant seed is kept.
    #[test]
    fn a_relevant_seed_is_kept() {
        let draft = Draft::of(11, Profile::Honest);
        let small = shrink(&draft, 10_000, |_, seed| seed == 11);
        assert_eq!((small.seed, small.draft.steps.len()), (11, 0));
    }

    #[test]
    fn the_number_of_plays_is_bounded() {
        let draft = Draft::of(11, Profile::Honest);
        assert!(shrink(&draft, 3, |_, _| true).plays <= 4);
    }
}

//! From a failing draft to the smallest one that still fails, by trying what is smaller for as long as something is.
//!
//! It knows nothing of clients or verdicts: whether a draft fails is asked.

use crate::generate::Draft;

/// What shrinking came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shrunk {
    /// The smallest draft that was found.
    pub draft: Draft,
    /// The seed it is played with.
    pub seed: u64,
    /// Drafts that were played.
    pub plays: u32,
}

/// Returns the smallest draft that was found within so many plays. `fails`: does this draft, played with this seed, still fail
/// for the same reason? It must be so of `draft` with its own seed.
pub fn shrink(draft: &Draft, plays_max: u32, mut fails: impl FnMut(&Draft, u64) -> bool) -> Shrunk {
    let mut best = draft.clone();
    let mut seed = draft.seed;
    let mut plays = 0;
    let mut size = best.size();
    loop {
        let mut is_smaller = false;
        let mut index = 0;
        // After a success the list is made again, and is gone through from the same place on.
        while let Some(next) = best.smaller().into_iter().nth(index) {
            if plays >= plays_max {
                return Shrunk {
                    draft: best,
                    seed,
                    plays,
                };
            }
            let next_size = next.size();
            let is_candidate = next_size < size && next.unsound().is_none() && next.try_load().is_ok();
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
    // A file is played with seed 0 unless another is given.
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
    use crate::generate::Profile;

    /// A reason that needs one action needs nothing else.
    #[test]
    fn what_is_left_is_what_matters() {
        let mut shrunk = 0;
        for seed in 0..60 {
            let draft = Draft::of(seed, Profile::Lies);
            let matters = |draft: &Draft| draft.actions().any(|action| action.name() == "lie: event");
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

    /// Who fails for nothing is shrunk to nothing, and a seed that matters is kept.
    #[test]
    fn the_seed_is_kept_where_it_matters() {
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

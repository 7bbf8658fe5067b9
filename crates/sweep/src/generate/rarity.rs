//! Counts of each fault per trigger in a long run: of two possible faults, the generator takes the rarer one.
//!
//! The counts are a file that belongs to the generator's version, not those of the current run: a seed gives the same
//! scenario regardless of earlier runs, machine and shard. `cargo xtask sweep --write-rarity` updates it.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use fake_apiserver::scenario::raw::ActionKeys;

use super::names::{self, Trigger};

/// Counts of a long run, one per line: count, trigger, fault, separated by tabs.
const COUNTS: &str = include_str!("rarity.tsv");

static RARITY: LazyLock<BTreeMap<(&str, &str), u64>> = LazyLock::new(|| {
    let rows = COUNTS.lines().filter_map(|line| {
        let mut cells = line.splitn(3, '\t');
        let (count, when, fault) = (cells.next()?, cells.next()?, cells.next()?);
        Some(((when, fault), count.parse().ok()?))
    });
    rows.collect()
});

static TRIGGERS: LazyLock<BTreeMap<&str, u64>> = LazyLock::new(|| {
    let mut sums = BTreeMap::new();
    for ((when, _), count) in &*RARITY {
        *sums.entry(*when).or_default() += count;
    }
    sums
});

/// Returns how often such faults occurred after such a trigger; of several, the rarest counts.
pub(super) fn of(trigger: Trigger, actions: &[ActionKeys]) -> u64 {
    let counts = actions.iter().map(|action| {
        let known = RARITY.get(&(trigger.name(), names::name(action)));
        known.copied().unwrap_or(0)
    });
    counts.min().unwrap_or(u64::MAX)
}

/// Returns how often any fault occurred after such a trigger.
pub(super) fn of_trigger(trigger: Trigger) -> u64 {
    TRIGGERS.get(trigger.name()).copied().unwrap_or(0)
}

/// Returns the file for the counts of a run: fault, trigger, count.
pub fn file<'a>(counts: impl Iterator<Item = (&'a str, &'a str, u64)>) -> String {
    let mut lines: Vec<String> = counts
        .map(|(fault, when, count)| format!("{count}\t{when}\t{fault}\n"))
        .collect();
    lines.sort();
    lines.concat()
}

#[cfg(test)]
mod tests {
    use fake_apiserver::scenario::raw::ActionKey;

    use super::*;

    #[test]
    fn the_counts_file_round_trips() {
        assert_eq!(file([("gzip", "list", 3)].into_iter()), "3\tlist\tgzip\n");
        let known = RARITY.len();
        assert_eq!(
            known,
            COUNTS.lines().count(),
            "a line of rarity.tsv cannot be read"
        );
        assert!(RARITY.keys().all(|(_, fault)| names::NAMES.contains(fault)));
    }

    #[test]
    fn of_several_faults_the_rarest_counts() {
        let unknown = [ActionKey::Gzip(().into()).into()];
        assert!(of(Trigger::Quiet, &unknown) <= of(Trigger::NextWatch, &unknown));
        assert_eq!(of(Trigger::Now, &[]), u64::MAX);
    }
}

//! Runs many seeds on many threads. The result does not depend on the number of threads: seeds are taken in order,
//! counts are sums, and the first failure of a cause is that of the lowest seed.
//!
//! Reads no clock and prints nothing: callbacks decide when to stop, and receive the progress.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use conformance::client::Client;
use conformance::drive::sim::Link;

use crate::cause::Cause;
use crate::coverage::Coverage;
use crate::digest::Digest;
use crate::found;
use crate::generate::{self, Draft, Profile};
use crate::play::{play, play_and};
use crate::result::{Group, Sweep};
use crate::shrink::{Shrunk, shrink};

/// Seeds per block that a thread takes.
const BLOCK: u64 = 32;

/// A part of a sweep: every `of`-th seed, starting with the `index`-th.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    /// Number of the shard, from 0.
    pub index: u64,
    /// Number of shards.
    pub of: u64,
}

impl Shard {
    /// A single shard with all seeds.
    pub const WHOLE: Self = Self { index: 0, of: 1 };

    /// Returns how many of `seeds` belong to this shard.
    pub fn share(self, seeds: u64) -> u64 {
        seeds.saturating_sub(self.index).div_ceil(self.of)
    }

    /// Returns the `nth` seed of this shard.
    pub fn seed(self, first: u64, nth: u64) -> u64 {
        first + self.index + nth * self.of
    }
}

/// Parameters of a sweep.
#[derive(Clone, Copy)]
pub struct Plan<'a> {
    /// The client under test.
    pub client: &'a dyn Client,
    /// Its name on the command line.
    pub name: &'a str,
    /// A correct client: failures that it shares are not the client's fault. Runs only for failing seeds.
    pub control: Option<&'a dyn Client>,
    /// Profile of the faults.
    pub profile: Profile,
    /// What joins client and server.
    pub link: Link,
    /// The first seed.
    pub first: u64,
    /// Number of seeds.
    pub seeds: u64,
    /// The shard to run.
    pub shard: Shard,
    /// Number of threads.
    pub jobs: usize,
    /// Whether to sum up the traces.
    pub digest: bool,
    /// Maximum number of runs to shrink one failure; 0: no shrinking.
    pub shrink_plays_max: u32,
    /// Maximum number of causes to shrink, lowest seeds first.
    pub shrunk_max: usize,
    /// Intended folder of the files.
    pub folder: &'a str,
}

/// Progress of a sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Seeds run and failures so far.
    Played {
        /// Number of seeds run.
        played: u64,
        /// Number of failing seeds.
        flagged: u64,
    },
    /// A failure is being shrunk.
    Shrinking {
        /// Its seed.
        seed: u64,
    },
}

/// Returns the time since an arbitrary moment, for [`Times`].
pub type Clock<'a> = &'a (dyn Fn() -> Duration + Sync);

/// Time per stage over all seeds, and per seed. Not part of a result, which is the same on any machine.
#[derive(Debug, Clone, Default)]
pub struct Times {
    /// Generating scenarios.
    pub drawing: Duration,
    /// Running.
    pub playing: Duration,
    /// Judging, and counting coverage.
    pub judging: Duration,
    /// Microseconds per seed, unordered.
    pub each_us: Vec<u32>,
}

impl Times {
    fn add(&mut self, other: Self) {
        self.drawing += other.drawing;
        self.playing += other.playing;
        self.judging += other.judging;
        self.each_us.extend(other.each_us);
    }
}

/// Runs the seeds of a plan while `goes_on` returns true; blocks that were started are finished.
pub fn run(
    plan: &Plan<'_>,
    goes_on: &(dyn Fn() -> bool + Sync),
    progress: &(dyn Fn(Progress) + Sync),
) -> Sweep {
    run_timed(plan, goes_on, progress, &|| Duration::ZERO).0
}

/// Like [`run`], with timings.
pub fn run_timed(
    plan: &Plan<'_>,
    goes_on: &(dyn Fn() -> bool + Sync),
    progress: &(dyn Fn(Progress) + Sync),
    clock: Clock<'_>,
) -> (Sweep, Times) {
    let share = plan.shard.share(plan.seeds);
    let next = AtomicU64::new(0);
    let whole = Mutex::new(Part::default());
    std::thread::scope(|threads| {
        for _ in 0..plan.jobs.max(1) {
            threads.spawn(|| {
                while goes_on() {
                    let from = next.fetch_add(BLOCK, Ordering::Relaxed);
                    if from >= share {
                        return;
                    }
                    let mut part = Part::default();
                    for nth in from..(from + BLOCK).min(share) {
                        part.play(plan, plan.shard.seed(plan.first, nth), clock);
                    }
                    let mut whole = whole.lock().unwrap_or_else(PoisonError::into_inner);
                    whole.add(part);
                    progress(Progress::Played {
                        played: whole.played,
                        flagged: whole.flagged,
                    });
                }
            });
        }
    });
    let whole = whole.into_inner().unwrap_or_else(PoisonError::into_inner);
    let sweep = Sweep {
        generator: generate::VERSION,
        profile: plan.profile,
        client: plan.name.to_owned(),
        client_version: plan.client.version().to_owned(),
        first: plan.first,
        seeds: plan.seeds,
        shards: plan.shard.of,
        done: BTreeSet::from([plan.shard.index]),
        played: whole.played,
        flagged: whole.flagged,
        causes: groups(plan, whole.causes, progress),
        coverage: whole.coverage,
        traces: plan.digest.then_some(whole.traces),
    };
    (sweep, whole.times)
}

/// Shrinks the failure of a seed; `None` if the seed does not fail with this cause.
pub fn shrink_seed(plan: &Plan<'_>, seed: u64, cause: &Cause) -> Option<(Draft, Shrunk, Option<bool>)> {
    let draft = Draft::of(seed, plan.profile);
    let fails = |client: &dyn Client, draft: &Draft, seed| {
        draft
            .try_scenario()
            .is_ok_and(|scenario| play(plan.link, &Arc::new(scenario), client, seed).has(cause))
    };
    if !fails(plan.client, &draft, seed) {
        return None;
    }
    let control_fails = plan.control.map(|control| fails(control, &draft, seed));
    // If the control client passes the original scenario, it must pass the shrunk one too.
    let control = plan.control.filter(|_| control_fails == Some(false));
    let shrunk = shrink(&draft, plan.shrink_plays_max, |draft, seed| {
        fails(plan.client, draft, seed) && control.is_none_or(|control| !fails(control, draft, seed))
    });
    Some((draft, shrunk, control_fails))
}

/// Findings of a thread.
#[derive(Default)]
struct Part {
    played: u64,
    flagged: u64,
    causes: BTreeMap<Cause, First>,
    coverage: Coverage,
    traces: Digest,
    times: Times,
}

/// Count of a cause, and its first seed.
struct First {
    count: u64,
    seed: u64,
    sentence: String,
}

impl Part {
    fn play(&mut self, plan: &Plan<'_>, seed: u64, clock: Clock<'_>) {
        let began = clock();
        let draft = Draft::of(seed, plan.profile);
        let scenario = Arc::new(draft.scenario());
        let drawn = clock();
        let mut over = drawn;
        let played = play_and(plan.link, &scenario, plan.client, seed, || over = clock());
        self.played += 1;
        self.coverage.add(&draft, &played.records);
        let judged = clock();
        self.times.add(Times {
            drawing: drawn - began,
            playing: over - drawn,
            judging: judged - over,
            each_us: vec![u32::try_from((judged - began).as_micros()).unwrap_or(u32::MAX)],
        });
        if plan.digest {
            self.traces.add(seed, &played.records);
        }
        if let Some(found) = played.found.into_iter().next() {
            self.flagged += 1;
            let first = First {
                count: 1,
                seed,
                sentence: found.sentence,
            };
            self.count(found.cause, first);
        }
    }

    fn count(&mut self, cause: Cause, first: First) {
        let Some(mine) = self.causes.get_mut(&cause) else {
            self.causes.insert(cause, first);
            return;
        };
        let count = mine.count + first.count;
        if first.seed < mine.seed {
            *mine = first;
        }
        mine.count = count;
    }

    fn add(&mut self, other: Self) {
        self.played += other.played;
        self.flagged += other.flagged;
        self.coverage.merge(&other.coverage);
        self.traces.merge(other.traces);
        self.times.add(other.times);
        for (cause, first) in other.causes {
            self.count(cause, first);
        }
    }
}

fn groups(
    plan: &Plan<'_>,
    causes: BTreeMap<Cause, First>,
    progress: &(dyn Fn(Progress) + Sync),
) -> BTreeMap<String, Group> {
    let mut causes: Vec<(Cause, First)> = causes.into_iter().collect();
    causes.sort_by_key(|(_, first)| first.seed);
    let shrunk_max = if plan.shrink_plays_max == 0 {
        0
    } else {
        plan.shrunk_max
    };
    let groups = causes.into_iter().enumerate().map(|(index, (cause, first))| {
        let shrunk = (index < shrunk_max).then(|| {
            progress(Progress::Shrinking { seed: first.seed });
            shrink_seed(plan, first.seed, &cause)
        });
        let shrunk = shrunk.flatten();
        let file = shrunk
            .as_ref()
            .map(|(draft, shrunk, _)| found::file(&cause, draft, shrunk, plan.name, plan.folder));
        let (name, text) = file.map(|file| (file.name, file.text)).unzip();
        let group = Group {
            count: first.count,
            seed: first.seed,
            sentence: first.sentence,
            control_fails: shrunk.and_then(|(_, _, control_fails)| control_fails),
            file: name,
            scenario: text,
        };
        (cause.to_string(), group)
    });
    groups.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every seed belongs to exactly one shard.
    #[test]
    fn shards_partition_the_seeds() {
        for (seeds, of) in [(10, 3), (2, 5), (0, 2), (64, 8)] {
            let mut all: Vec<u64> = (0..of)
                .flat_map(|index| {
                    let shard = Shard { index, of };
                    (0..shard.share(seeds)).map(move |nth| shard.seed(100, nth))
                })
                .collect();
            all.sort_unstable();
            assert_eq!(all, (100..100 + seeds).collect::<Vec<_>>());
        }
    }
}

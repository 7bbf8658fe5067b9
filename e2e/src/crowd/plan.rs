//! What happens to a program that `cargo xtask crowd` serves: writes, and faults by `fake-apiserver ctl`, as a function of a
//! seed. It must not know when they are carried out.

use std::time::Duration;

/// Objects that are created, updated and deleted.
const NAMES: [&str; 10] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];

/// Objects that exist before the program starts.
const FIRST: usize = 4;

/// When the first fault is injected: the program has listed, and watches.
const FIRST_FAULT_MS: u64 = 2_000;

/// Time between two faults.
const BETWEEN_FAULTS_MS: std::ops::RangeInclusive<u64> = 1_500..=4_500;

/// Time between two writes.
const BETWEEN_WRITES_MS: std::ops::RangeInclusive<u64> = 100..=900;

/// A step of the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Time since the program sent its first watch; zero: before it starts.
    pub at: Duration,
    /// What is done.
    pub act: Act,
}

/// What a step does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// A write through the API.
    Write(Write),
    /// Arguments of `fake-apiserver ctl`.
    Ctl(Vec<String>),
}

/// A write of a ConfigMap in namespace `default`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// Creates an object.
    Create {
        /// Name of the object.
        name: String,
        /// Its content.
        value: String,
    },
    /// Changes the content of an object.
    Update {
        /// Name of the object.
        name: String,
        /// Its new content.
        value: String,
    },
    /// Deletes an object.
    Delete {
        /// Name of the object.
        name: String,
    },
}

/// A fault, and what belongs to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// Open watches end cleanly.
    Eof,
    /// Open watches end inside the body.
    Fin,
    /// Connections of open watches are reset.
    Reset,
    /// The next event is cut in the middle, and its connection reset.
    Torn,
    /// Watches are silent, then their connections are reset.
    Stall,
    /// 410 as an event.
    ExpiredEvent,
    /// 410 as the status of the next watch.
    ExpiredStatus,
    /// Watches are silent while older versions expire, then end: the next one is answered with 410.
    Expired,
    /// The store is compacted, and watches end.
    Compacted,
    /// The apiserver restarts.
    Restart,
    /// A bookmark.
    Bookmark,
    /// 503 for the next watches.
    Unavailable,
    /// 429 with Retry-After for the next lists.
    TooManyRequests,
    /// 500 for the next list.
    InternalError,
    /// Connections are refused.
    Refused,
    /// Watches lag behind the store.
    Lag,
}

/// Faults in the order in which they are shuffled. Each occurs once before any occurs again.
const FAULTS: [Fault; 16] = [
    Fault::Eof,
    Fault::Fin,
    Fault::Reset,
    Fault::Torn,
    Fault::Stall,
    Fault::ExpiredEvent,
    Fault::ExpiredStatus,
    Fault::Expired,
    Fault::Compacted,
    Fault::Restart,
    Fault::Bookmark,
    Fault::Unavailable,
    Fault::TooManyRequests,
    Fault::InternalError,
    Fault::Refused,
    Fault::Lag,
];

impl Fault {
    /// Returns the calls of `ctl`, each with its delay in milliseconds, and the time that the fault lasts.
    fn calls(self) -> (Vec<(u64, String)>, u64) {
        let call = |at_ms: u64, call: &str| (at_ms, call.to_owned());
        match self {
            Self::Eof => (vec![call(0, "cut --how eof")], 0),
            Self::Fin => (vec![call(0, "cut --how fin")], 0),
            Self::Reset => (vec![call(0, "cut --how rst")], 0),
            Self::Torn => (
                vec![call(
                    0,
                    "apply {do: {truncate: {after_events: 0, percent: 40, then: rst}}}",
                )],
                1_000,
            ),
            Self::Stall => (vec![call(0, "stall"), call(5_000, "cut --how rst")], 5_000),
            Self::ExpiredEvent => (vec![call(0, "expire")], 0),
            Self::ExpiredStatus => (vec![call(0, "expire --status"), call(50, "cut --how eof")], 0),
            Self::Expired => (
                vec![
                    call(0, "stall"),
                    call(
                        2_500,
                        "apply {from: {resource: configmaps}, do: clear_watch_cache}",
                    ),
                    call(2_600, "cut --how rst"),
                ],
                2_600,
            ),
            Self::Compacted => (vec![call(0, "compact"), call(50, "cut --how fin")], 0),
            Self::Restart => (
                vec![call(0, "apply {do: {restart: {down: 1500ms, filling: 1s}}}")],
                2_500,
            ),
            Self::Bookmark => (vec![call(0, "bookmark")], 0),
            Self::Unavailable => (
                vec![
                    call(0, "fail 503 --kind watch --times 2"),
                    call(50, "cut --how eof"),
                ],
                1_000,
            ),
            Self::TooManyRequests => (
                vec![
                    call(0, "fail 429 --retry-after 2 --kind list --times 2"),
                    call(50, "expire"),
                ],
                4_000,
            ),
            Self::InternalError => (vec![call(0, "fail 500 --kind list"), call(50, "expire")], 1_000),
            Self::Refused => (vec![call(0, "refuse 2s"), call(50, "cut --how rst")], 2_000),
            Self::Lag => (
                vec![
                    call(0, "lag 1500ms --resource configmaps"),
                    call(4_000, "thaw --resource configmaps"),
                ],
                0,
            ),
        }
    }
}

/// Returns the steps of a plan that lasts `lasts`, in order. A shorter plan of the same seed is a prefix of a longer one.
pub fn plan(seed: u64, lasts: Duration) -> Vec<Step> {
    let mut steps: Vec<Step> = writes(seed, lasts);
    let mut random = fastrand::Rng::with_seed(seed);
    let mut deck: Vec<Fault> = Vec::new();
    let mut at_ms = FIRST_FAULT_MS;
    while Duration::from_millis(at_ms) < lasts {
        if deck.is_empty() {
            deck = FAULTS.to_vec();
            random.shuffle(&mut deck);
        }
        let Some(fault) = deck.pop() else { break };
        let (calls, fault_lasts_ms) = fault.calls();
        for (delay_ms, call) in calls {
            steps.push(Step {
                at: Duration::from_millis(at_ms + delay_ms),
                act: Act::Ctl(arguments(&call)),
            });
        }
        at_ms += fault_lasts_ms + random.u64(BETWEEN_FAULTS_MS);
    }
    steps.retain(|step| step.at < lasts);
    steps.sort_by_key(|step| step.at);
    steps
}

/// Returns the writes of a plan. Randomness for faults is separate, so that one does not change the other.
fn writes(seed: u64, lasts: Duration) -> Vec<Step> {
    let mut random = fastrand::Rng::with_seed(seed ^ 0x77_7269_7465);
    let mut exists = [false; NAMES.len()];
    let mut steps = Vec::new();
    let mut at_ms = 0;
    for nth in 0.. {
        let index = if nth < FIRST {
            nth
        } else {
            random.usize(0..NAMES.len())
        };
        if nth >= FIRST {
            at_ms += random.u64(BETWEEN_WRITES_MS);
        }
        let at = Duration::from_millis(at_ms);
        if at >= lasts {
            break;
        }
        let name = NAMES[index].to_owned();
        let value = nth.to_string();
        let write = match (exists[index], random.u8(0..4)) {
            (false, _) => Write::Create { name, value },
            (true, 0) => Write::Delete { name },
            (true, _) => Write::Update { name, value },
        };
        exists[index] = !matches!(write, Write::Delete { .. });
        steps.push(Step {
            at,
            act: Act::Write(write),
        });
    }
    steps
}

/// Returns the arguments of a call: words, of which the rule of `apply` is one.
fn arguments(call: &str) -> Vec<String> {
    match call.split_once(' ') {
        Some(("apply", rule)) => vec!["apply".to_owned(), rule.to_owned()],
        Some(_) | None => call.split(' ').map(str::to_owned).collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const TWO_MINUTES: Duration = Duration::from_secs(120);

    #[test]
    fn a_seed_is_a_plan() {
        assert_eq!(plan(7, TWO_MINUTES), plan(7, TWO_MINUTES));
        assert_ne!(plan(7, TWO_MINUTES), plan(8, TWO_MINUTES));
    }

    #[test]
    fn a_shorter_plan_is_a_prefix() {
        let long = plan(7, TWO_MINUTES);
        let short = plan(7, Duration::from_secs(20));
        assert!(!short.is_empty() && short.len() < long.len());
        assert_eq!(short, long[..short.len()]);
    }

    #[test]
    fn two_minutes_have_every_fault() {
        for seed in 0..100 {
            let calls: BTreeSet<Vec<String>> = plan(seed, TWO_MINUTES)
                .into_iter()
                .filter_map(|step| match step.act {
                    Act::Ctl(call) => Some(call),
                    Act::Write(_) => None,
                })
                .collect();
            for fault in FAULTS {
                let (wanted, _) = fault.calls();
                let first = arguments(&wanted[0].1);
                assert!(calls.contains(&first), "seed {seed} has no {fault:?}");
            }
        }
    }

    #[test]
    fn objects_exist_when_they_are_changed() {
        let mut exist: BTreeSet<String> = BTreeSet::new();
        let steps = plan(3, TWO_MINUTES);
        let before = steps.iter().filter(|step| step.at.is_zero()).count();
        assert_eq!(before, FIRST);
        for step in steps {
            match step.act {
                Act::Write(Write::Create { name, .. }) => assert!(exist.insert(name)),
                Act::Write(Write::Update { name, .. }) => assert!(exist.contains(&name)),
                Act::Write(Write::Delete { name }) => assert!(exist.remove(&name)),
                Act::Ctl(_) => {}
            }
        }
    }

    #[test]
    fn a_rule_is_one_argument() {
        assert_eq!(arguments("apply {do: x, y: 1}"), ["apply", "{do: x, y: 1}"]);
        assert_eq!(arguments("cut --how eof"), ["cut", "--how", "eof"]);
    }
}

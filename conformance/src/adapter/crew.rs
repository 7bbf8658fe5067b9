//! The adapters that run at a time, and when the next one may start: a test waits for most of its time, and needs a processor
//! when its adapter starts. Without a limit of what wants a processor, many tests at a time would delay each other until the
//! delays look like those of the clients.
//!
//! The decision is pure: time and load come in as arguments.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::process::load::Load;

/// Between two measurements of a process. A younger process counts as one that wants a whole processor: it starts.
const SAMPLED: Duration = Duration::from_millis(250);

/// Processes that may want a processor, for each there is: none of them stays idle, and none is waited for for long.
const WANTED: f64 = 2.0;

/// Between two looks at whether the next adapter may start.
const LOOK: Duration = Duration::from_millis(50);

/// The adapters of a run. Clones share them.
#[derive(Debug, Clone)]
pub struct Crew {
    members: Arc<Mutex<Members>>,
    /// Adapters start in the order in which they were requested.
    queue: Arc<tokio::sync::Mutex<()>>,
    began: Instant,
}

/// Place of an adapter in its crew, until it is dropped.
#[derive(Debug)]
pub struct Seat {
    crew: Crew,
    number: u64,
}

/// The processes that run, and what they want of the processors.
#[derive(Debug, Default)]
struct Members {
    processors: usize,
    last: u64,
    /// This process has the number 0.
    all: BTreeMap<u64, Member>,
}

/// One process.
#[derive(Debug, Clone, Copy, Default)]
struct Member {
    /// `None`: it is about to start.
    process: Option<u32>,
    /// When it was measured last, or got its place.
    at: Duration,
    /// What it had wanted by then.
    wanted: Duration,
    /// Processors that it wanted between the last two measurements; `None`: measured only once.
    rate: Option<f64>,
}

impl Crew {
    /// A crew for this machine.
    pub fn new() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let mut members = Members::of(processors);
        members.all.insert(
            0,
            Member {
                process: Some(std::process::id()),
                rate: Some(0.0),
                ..Member::default()
            },
        );
        Self {
            members: Arc::new(Mutex::new(members)),
            queue: Arc::default(),
            began: clock(),
        }
    }

    /// Waits until a processor is free for the start of another adapter. The first one never waits.
    pub async fn admit(&self) -> Seat {
        let _turn = self.queue.lock().await;
        loop {
            let now = clock().saturating_duration_since(self.began);
            if let Some(number) = self.lock().admit(now, Load::of) {
                return Seat {
                    crew: self.clone(),
                    number,
                };
            }
            pause(LOOK).await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Members> {
        // Nothing panics under the lock half way.
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Crew {
    fn default() -> Self {
        Self::new()
    }
}

impl Seat {
    /// The adapter has started as this process.
    pub fn is(&self, process: Option<u32>) {
        if let Some(member) = self.crew.lock().all.get_mut(&self.number) {
            member.process = process;
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.crew.lock().all.remove(&self.number);
    }
}

impl Members {
    fn of(processors: usize) -> Self {
        Self {
            processors,
            ..Self::default()
        }
    }

    /// Gives another adapter a place, if a processor is free for it at `now`.
    fn admit(&mut self, now: Duration, load: impl Fn(u32) -> Load) -> Option<u64> {
        for member in self.all.values_mut() {
            member.measure(now, &load);
        }
        let wanted: f64 = self.all.values().map(Member::wants).sum();
        let is_first = self.all.keys().all(|number| *number == 0);
        if !is_first && wanted >= WANTED * self.processors as f64 {
            return None;
        }
        self.last += 1;
        let member = Member {
            at: now,
            ..Member::default()
        };
        self.all.insert(self.last, member);
        Some(self.last)
    }
}

impl Member {
    fn measure(&mut self, now: Duration, load: impl Fn(u32) -> Load) {
        let (Some(process), Some(past)) = (self.process, now.checked_sub(self.at)) else {
            return;
        };
        if past < SAMPLED {
            return;
        }
        let wanted = load(process).wanted();
        // A thread that ended takes its time along.
        let more = wanted.saturating_sub(self.wanted);
        self.rate = Some(more.as_secs_f64() / past.as_secs_f64());
        (self.at, self.wanted) = (now, wanted);
    }

    /// Processors that it wants.
    fn wants(&self) -> f64 {
        self.rate.unwrap_or(1.0)
    }
}

#[expect(clippy::disallowed_methods, reason = "starting processes is an edge")]
fn clock() -> Instant {
    Instant::now()
}

#[expect(
    clippy::disallowed_methods,
    reason = "starting processes is an edge: nothing wakes it when a processor is free"
)]
async fn pause(time: Duration) {
    tokio::time::sleep(time).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// A load under which each process has wanted `percent` of a processor since the start.
    fn percent(percent: u64, now: Duration) -> impl Fn(u32) -> Load {
        move |_| Load {
            ran: now * u32::try_from(percent).unwrap() / 100,
            ..Load::default()
        }
    }

    fn started(members: &mut Members, now: Duration, percentage: u64) -> bool {
        let number = members.admit(now, percent(percentage, now));
        if let Some(number) = number {
            members.all.get_mut(&number).unwrap().process = Some(7);
        }
        number.is_some()
    }

    #[test]
    fn starts_are_limited_by_the_processors() {
        let mut members = Members::of(1);
        assert!(started(&mut members, ms(0), 0));
        assert!(started(&mut members, ms(0), 0));
        assert!(!started(&mut members, ms(100), 0), "two are starting");
        // They wait, and want nothing any more.
        assert!(started(&mut members, ms(300), 0));
        assert!(started(&mut members, ms(300), 0));
        assert!(!started(&mut members, ms(300), 0));
    }

    #[test]
    fn a_client_in_a_loop_takes_a_processor() {
        let mut members = Members::of(1);
        assert!(started(&mut members, ms(0), 100));
        assert!(started(&mut members, ms(300), 100));
        for now in [600, 900, 1200] {
            assert!(!started(&mut members, ms(now), 100), "at {now} ms");
        }
        members.all.pop_first();
        assert!(started(&mut members, ms(1500), 100));
    }

    #[test]
    fn one_always_runs() {
        let mut members = Members::of(1);
        let busy = Member {
            process: Some(1),
            rate: Some(4.0),
            ..Member::default()
        };
        members.all.insert(0, busy);
        assert!(members.admit(ms(1000), percent(400, ms(1000))).is_some());
        assert!(members.admit(ms(2000), percent(400, ms(2000))).is_none());
    }

    #[test]
    fn what_waits_for_a_processor_wants_one() {
        let mut members = Members::of(1);
        assert!(started(&mut members, ms(0), 0));
        let waiting = |_| Load {
            waited: ms(2000),
            ..Load::default()
        };
        assert!(members.admit(ms(1000), waiting).is_none());
        assert!(members.admit(ms(2000), waiting).is_some(), "it waits no more");
    }

    #[tokio::test]
    async fn a_place_is_free_again_when_its_test_is_over() {
        let crew = Crew::new();
        let seat = crew.admit().await;
        assert_eq!(crew.lock().all.len(), 2);
        seat.is(Some(1));
        drop(seat);
        assert_eq!(crew.lock().all.len(), 1);
    }
}

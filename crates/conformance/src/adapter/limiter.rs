//! Limits how many adapters run in parallel, by their CPU use. A test is idle most of the time, and needs a processor when its
//! adapter starts. Without a limit, parallel tests delay each other, and the delays are attributed to the clients.
//!
//! The decision is pure: time and load are arguments.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::process::load::Load;

/// Interval between two measurements of a process. A younger process is starting, and counts as using a whole processor.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(250);

/// Maximum demand per processor: high enough to keep all processors busy, low enough to keep queues short.
const MAX_WANTED: f64 = 2.0;

/// Interval between two checks whether the next adapter may start.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Limiter of the adapters of a run. Clones share it.
#[derive(Debug, Clone)]
pub struct Limiter {
    processes: Arc<Mutex<Processes>>,
    /// Adapters start in the order in which they were requested.
    queue: Arc<tokio::sync::Mutex<()>>,
    began: Instant,
}

/// Permission to run one adapter. Dropping it lets another one start.
#[derive(Debug)]
pub struct Permit {
    limiter: Limiter,
    number: u64,
}

/// The running processes, with their CPU demand.
#[derive(Debug, Default)]
struct Processes {
    processors: usize,
    last: u64,
    /// This process has the number 0.
    all: BTreeMap<u64, Process>,
}

/// One process.
#[derive(Debug, Clone, Copy, Default)]
struct Process {
    /// Process id; `None`: about to start.
    process: Option<u32>,
    /// Time of the last measurement, or of the permit.
    at: Duration,
    /// CPU time used and waited for until then.
    wanted: Duration,
    /// Processors in demand between the last two measurements; `None`: measured less than twice.
    rate: Option<f64>,
}

impl Limiter {
    /// Creates a limiter for the processors of this machine.
    pub fn new() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let mut processes = Processes::of(processors);
        processes.all.insert(
            0,
            Process {
                process: Some(std::process::id()),
                rate: Some(0.0),
                ..Process::default()
            },
        );
        Self {
            processes: Arc::new(Mutex::new(processes)),
            queue: Arc::default(),
            began: clock(),
        }
    }

    /// Waits until a processor is free to start another adapter. The first one never waits.
    pub async fn acquire(&self) -> Permit {
        let _next = self.queue.lock().await;
        loop {
            let now = clock().saturating_duration_since(self.began);
            if let Some(number) = self.lock().acquire(now, Load::of) {
                return Permit {
                    limiter: self.clone(),
                    number,
                };
            }
            pause(POLL_INTERVAL).await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Processes> {
        // No code panics while it holds the lock.
        self.processes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Limiter {
    fn default() -> Self {
        Self::new()
    }
}

impl Permit {
    /// Sets the process of the started adapter.
    pub fn started_as(&self, process: Option<u32>) {
        if let Some(entry) = self.limiter.lock().all.get_mut(&self.number) {
            entry.process = process;
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.limiter.lock().all.remove(&self.number);
    }
}

impl Processes {
    fn of(processors: usize) -> Self {
        Self {
            processors,
            ..Self::default()
        }
    }

    /// Returns the number of a new entry, if a processor is free at `now`.
    fn acquire(&mut self, now: Duration, load: impl Fn(u32) -> Load) -> Option<u64> {
        for entry in self.all.values_mut() {
            entry.measure(now, &load);
        }
        let wanted: f64 = self.all.values().map(Process::wants).sum();
        let is_first = self.all.keys().all(|number| *number == 0);
        if !is_first && wanted >= MAX_WANTED * self.processors as f64 {
            return None;
        }
        self.last += 1;
        let entry = Process {
            at: now,
            ..Process::default()
        };
        self.all.insert(self.last, entry);
        Some(self.last)
    }
}

impl Process {
    fn measure(&mut self, now: Duration, load: impl Fn(u32) -> Load) {
        let (Some(process), Some(past)) = (self.process, now.checked_sub(self.at)) else {
            return;
        };
        if past < SAMPLE_INTERVAL {
            return;
        }
        let wanted = load(process).wanted();
        // The time of a finished thread is no longer counted.
        let more = wanted.saturating_sub(self.wanted);
        self.rate = Some(more.as_secs_f64() / past.as_secs_f64());
        (self.at, self.wanted) = (now, wanted);
    }

    /// Returns its demand, in processors.
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
    reason = "starting processes is an edge: no event reports a free processor"
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

    /// A load where each process used `percent` of a processor since the start.
    fn percent(percent: u64, now: Duration) -> impl Fn(u32) -> Load {
        move |_| Load {
            ran: now * u32::try_from(percent).unwrap() / 100,
            ..Load::default()
        }
    }

    fn started(processes: &mut Processes, now: Duration, percentage: u64) -> bool {
        let number = processes.acquire(now, percent(percentage, now));
        if let Some(number) = number {
            processes.all.get_mut(&number).unwrap().process = Some(7);
        }
        number.is_some()
    }

    #[test]
    fn starts_are_limited_by_the_processors() {
        let mut processes = Processes::of(1);
        assert!(started(&mut processes, ms(0), 0));
        assert!(started(&mut processes, ms(0), 0));
        assert!(!started(&mut processes, ms(100), 0), "two are starting");
        // Both are idle now.
        assert!(started(&mut processes, ms(300), 0));
        assert!(started(&mut processes, ms(300), 0));
        assert!(!started(&mut processes, ms(300), 0));
    }

    #[test]
    fn a_busy_loop_counts_as_one_processor() {
        let mut processes = Processes::of(1);
        assert!(started(&mut processes, ms(0), 100));
        assert!(started(&mut processes, ms(300), 100));
        for now in [600, 900, 1200] {
            assert!(!started(&mut processes, ms(now), 100), "at {now} ms");
        }
        processes.all.pop_first();
        assert!(started(&mut processes, ms(1500), 100));
    }

    #[test]
    fn the_first_adapter_never_waits() {
        let mut processes = Processes::of(1);
        let busy = Process {
            process: Some(1),
            rate: Some(4.0),
            ..Process::default()
        };
        processes.all.insert(0, busy);
        assert!(processes.acquire(ms(1000), percent(400, ms(1000))).is_some());
        assert!(processes.acquire(ms(2000), percent(400, ms(2000))).is_none());
    }

    #[test]
    fn waiting_for_a_processor_counts_as_demand() {
        let mut processes = Processes::of(1);
        assert!(started(&mut processes, ms(0), 0));
        let waiting = |_| Load {
            waited: ms(2000),
            ..Load::default()
        };
        assert!(processes.acquire(ms(1000), waiting).is_none());
        assert!(
            processes.acquire(ms(2000), waiting).is_some(),
            "it does not wait any more"
        );
    }

    #[tokio::test]
    async fn dropping_a_permit_removes_its_process() {
        let limiter = Limiter::new();
        let permit = limiter.acquire().await;
        assert_eq!(limiter.lock().all.len(), 2);
        permit.started_as(Some(1));
        drop(permit);
        assert_eq!(limiter.lock().all.len(), 1);
    }
}

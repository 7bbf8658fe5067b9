//! Ends a run that takes too much real time: a client that keeps the runtime busy in a task of its own, so that virtual
//! time stands still and nobody asks how long it has been.
//!
//! One thread for all runs of the process, which looks at them twice a second. It must not touch a run that is in time,
//! or runs would no longer repeat.

use std::collections::BTreeMap;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use fake_apiserver::net::Edge;

/// How often the thread looks.
const LOOK_EVERY: Duration = Duration::from_millis(500);

static RUNS: LazyLock<Mutex<Runs>> = LazyLock::new(|| {
    if let Err(error) = thread::Builder::new().name("alarm".to_owned()).spawn(look) {
        tracing::warn!(%error, "runs are not bounded in real time");
    }
    Mutex::default()
});

#[derive(Default)]
struct Runs {
    set: u64,
    under_way: BTreeMap<u64, Run>,
}

struct Run {
    edge: Edge,
    since: Instant,
    limit: Duration,
}

/// Set for one run; to be dropped when the run is over.
pub(super) struct Alarm {
    number: u64,
}

/// Fails the run of `edge` unless the alarm is dropped within `limit` of real time.
pub(super) fn set(edge: Edge, limit: Duration) -> Alarm {
    let mut runs = lock();
    let number = runs.set;
    runs.set += 1;
    runs.under_way.insert(
        number,
        Run {
            edge,
            since: clock(),
            limit,
        },
    );
    Alarm { number }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        let run = lock().under_way.remove(&self.number);
        // Not under the lock: this may be the last owner of the server.
        drop(run);
    }
}

fn look() {
    loop {
        thread::park_timeout(LOOK_EVERY);
        let now = clock();
        lock().under_way.retain(|_, run| {
            let late = now.duration_since(run.since) > run.limit;
            if late {
                run.edge.fail(format!(
                    "the run took more than {} s of real time",
                    run.limit.as_secs()
                ));
            }
            !late
        });
    }
}

fn lock() -> MutexGuard<'static, Runs> {
    RUNS.lock().unwrap_or_else(PoisonError::into_inner)
}

#[expect(
    clippy::disallowed_methods,
    reason = "only real time can tell that virtual time stands still"
)]
fn clock() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use fake_apiserver::net::Core;
    use fake_apiserver::record::{Record, RunEnd, What};
    use fake_apiserver::server::{Input, Output};

    use super::*;

    /// A server to which nothing ever happens.
    struct Idle;

    impl Core for Idle {
        fn accepts(&mut self, _: Duration) -> bool {
            true
        }

        fn handle(&mut self, _: Duration, _: Input) {}

        fn poll_output(&mut self) -> Option<Output> {
            None
        }

        fn poll_timeout(&self) -> Option<Duration> {
            None
        }

        fn finished(&self) -> Option<&RunEnd> {
            None
        }

        fn records(&self) -> &[Record] {
            &[]
        }

        fn into_records(self: Box<Self>) -> Vec<Record> {
            Vec::new()
        }
    }

    #[tokio::test(flavor = "current_thread", start_paused = true)]
    async fn a_run_whose_virtual_time_stands_still_ends_all_the_same() {
        let edge = Edge::new(Idle);
        let _alarm = set(edge.clone(), Duration::from_millis(1));
        let spinning = tokio::spawn(async {
            loop {
                tokio::task::yield_now().await;
            }
        });
        edge.finished().await;
        spinning.abort();
        let records = edge.take_records();
        assert!(
            matches!(&records[..], [Record { what: What::RunEnded(RunEnd::Harness { message }), .. }] if message.contains("real time")),
            "{records:?}"
        );
    }
}

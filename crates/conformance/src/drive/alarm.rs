//! Ends runs that take too much real time: a client may keep the runtime busy in a separate task, so that virtual time does not
//! pass.
//!
//! One thread checks all runs of the process twice a second. It must not affect a run within its limit, because runs are
//! repeatable.

use std::collections::BTreeMap;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use fake_apiserver::net::Edge;

/// Time between checks.
const CHECK_EVERY: Duration = Duration::from_millis(500);

static RUNS: LazyLock<Mutex<Runs>> = LazyLock::new(|| {
    if let Err(error) = thread::Builder::new().name("alarm".to_owned()).spawn(check) {
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

/// Time limit of a run. Dropped at its end.
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

fn check() {
    loop {
        thread::park_timeout(CHECK_EVERY);
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
    reason = "only real time shows that virtual time does not pass"
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

    /// A server that ignores all inputs.
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
    async fn a_run_in_which_no_virtual_time_passes_ends() {
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

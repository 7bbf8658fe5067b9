//! Joins a client and the fake, and runs one scenario to its end.
//!
//! [`sim()`] runs in one thread under virtual time, [`live()`] over sockets in real time. Both start the same
//! [`Server`](fake_apiserver::server::Server), carry out the same endings and return only the trace. A driver must not
//! know what a scenario expects: the server decides when the run is over.

mod alarm;
pub mod bench;
pub mod live;
pub mod sim;
pub mod stack;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

pub use fake_apiserver::net::pipe;
use fake_apiserver::net::{Edge, panic_text};
use fake_apiserver::record::Record;
use fake_apiserver::report::Report;
use fake_apiserver::scenario::{ClientSettings, SharedScenario};
use futures::stream::BoxStream;
use futures::{Stream, StreamExt as _};

pub use self::live::live;
pub use self::sim::sim;
use crate::client::{Client, Start};

/// Longest wait for connections to close after the client was stopped.
const CLOSING_MAX: Duration = Duration::from_secs(2);

/// Polls of a client at one instant after which it counts as spinning.
const TURNS_AT_ONE_INSTANT_MAX: u32 = 300_000;

/// Result of one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// The trace.
    pub records: Vec<Record>,
}

/// Starts `client`, passes its reports to the server until the run is over, stops it, and waits until its connections
/// are closed.
///
/// `time_max` bounds the run: the server should have ended it long before, so exceeding it is a harness error.
async fn play(
    edge: &Edge,
    scenario: &SharedScenario,
    client: &dyn Client,
    kube: kube_client::Client,
    seed: u64,
    time_max: Duration,
) {
    let start = Start {
        target: scenario.target.clone(),
        settings: scenario.client.clone(),
        seed,
    };
    let reports = Guarded::start(client, kube, start, edge.clone());
    let settings = &scenario.client;
    tokio::select! {
        biased;
        () = edge.finished() => {}
        () = hand_in(reports, edge, settings) => {}
        () = wait(time_max) => edge.fail(format!("the run took more than {} s", time_max.as_secs())),
    }
    // The select dropped the reports: nothing polls the client any more.
    edge.stop_requested();
    if tokio::time::timeout(CLOSING_MAX, edge.deserted()).await.is_err() {
        edge.closing_is_over();
    }
}

/// Passes reports on until the run is over, with the consumer's delay for objects. When the client ends, it waits for
/// the server's decision.
async fn hand_in(mut reports: Guarded, edge: &Edge, settings: &ClientSettings) {
    let delay = Duration::from_millis(settings.consumer_delay_ms);
    let mut objects = 0;
    while let Some(report) = reports.next().await {
        let about_object = report.object().is_some();
        edge.report(report);
        // A client that always has a report ready never yields to the select, so the end is checked here.
        if edge.is_finished() {
            return;
        }
        objects += u32::from(about_object);
        let is_slow = settings.consumer_delay_event.is_none_or(|event| event == objects);
        if about_object && is_slow && !delay.is_zero() {
            wait(delay).await;
        }
    }
    edge.finished().await;
}

#[expect(
    clippy::disallowed_methods,
    reason = "a driver is an edge; the scenario sets how long it waits"
)]
async fn wait(time: Duration) {
    tokio::time::sleep(time).await;
}

/// Reports of a client, with its end and its panic as reports.
struct Guarded {
    /// `None` after its end or panic.
    reports: Option<BoxStream<'static, Report>>,
    /// Message of a panic, reported next.
    crash: Option<String>,
    edge: Edge,
    turns: u32,
    instant: Duration,
}

impl Guarded {
    fn start(client: &dyn Client, kube: kube_client::Client, start: Start, edge: Edge) -> Self {
        let (reports, crash) = match catch_unwind(AssertUnwindSafe(|| client.start(kube, start))) {
            Ok(reports) => (Some(reports), None),
            Err(panic) => (None, Some(panic_text(&*panic))),
        };
        Self {
            reports,
            crash,
            edge,
            turns: 0,
            instant: Duration::ZERO,
        }
    }

    /// Whether the client spins: it wakes itself for ever and keeps virtual time from passing.
    fn spins(&mut self) -> bool {
        self.turns += 1;
        if self.turns < TURNS_AT_ONE_INSTANT_MAX {
            return false;
        }
        // Reading the clock is costly, so it is read once per this many polls.
        self.turns = 0;
        let now = self.edge.elapsed();
        std::mem::replace(&mut self.instant, now) == now
    }
}

impl Stream for Guarded {
    type Item = Report;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Report>> {
        if self.spins() {
            self.reports = None;
            self.crash = Some(format!(
                "spins: polled {TURNS_AT_ONE_INSTANT_MAX} times while no time passed"
            ));
        }
        if let Some(message) = self.crash.take() {
            return Poll::Ready(Some(Report::Crashed { message }));
        }
        let Some(reports) = &mut self.reports else {
            return Poll::Ready(None);
        };
        match catch_unwind(AssertUnwindSafe(|| reports.poll_next_unpin(cx))) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(Some(report))) => Poll::Ready(Some(report)),
            Ok(Poll::Ready(None)) => {
                self.reports = None;
                Poll::Ready(Some(Report::Ended))
            }
            Err(panic) => {
                // Dropping the rest of the stream may panic again.
                let rest = self.reports.take();
                drop(catch_unwind(AssertUnwindSafe(|| drop(rest))));
                Poll::Ready(Some(Report::Crashed {
                    message: panic_text(&*panic),
                }))
            }
        }
    }
}

//! The whole stack in one thread under virtual time: same scenario, same client, same seed, same trace.
//!
//! Nothing here waits for anything outside the runtime. Connections are [`pipe`]s, time is tokio's paused clock, and
//! the chance of libraries that draw it from `fastrand` is seeded.

use std::future::{Ready, ready};
use std::io;
use std::task::{Context, Poll};
use std::time::Duration;

use fake_apiserver::net::{ConnectionSettings, Core, Edge, serve_connection};
use fake_apiserver::scenario::SharedScenario;
use fake_apiserver::server::Server;
use http::Uri;
use hyper_util::client::legacy;
use hyper_util::rt::{TokioExecutor, TokioIo};
use kube_client::client::Body;
use kube_client::client::middleware::BaseUriLayer;
use tower::{Layer as _, Service};

use super::pipe::{Pipe, pipe};
use super::{Run, alarm, play};
use crate::client::Client;

/// Longest run, in virtual time. A server that never ends a run is a bug of the harness.
const TIME_MAX: Duration = Duration::from_secs(7 * 24 * 3600);

/// Longest run, in real time. Runs take about a millisecond.
const REAL_TIME_MAX: Duration = Duration::from_secs(10);

/// Plays `scenario` with `client` in virtual time, in the calling thread.
///
/// Must not be called inside a tokio runtime.
pub fn sim(scenario: &SharedScenario, client: &dyn Client, seed: u64) -> Run {
    sim_against(Server::new(scenario.clone(), seed), scenario, client, seed)
}

/// The same against any server that fits the edge; of `scenario`, only what the client is told is used.
pub fn sim_against(
    core: impl Core + 'static,
    scenario: &SharedScenario,
    client: &dyn Client,
    seed: u64,
) -> Run {
    // Some libraries under test draw their jitter from the thread's own generator.
    fastrand::seed(seed);
    // A runtime of its own: nothing of an earlier run can reach into this one.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime without I/O asks the system for nothing");
    let records = runtime.block_on(async {
        let edge = Edge::new(core);
        let _alarm = alarm::set(edge.clone(), REAL_TIME_MAX);
        let time = edge.clone();
        tokio::spawn(async move { time.keep_time().await });
        play(&edge, scenario, client, kube(edge.clone()), seed, TIME_MAX).await;
        edge.take_records()
    });
    Run { records }
}

/// A `kube_client` whose connections are pipes to `edge`, without retries of its own.
fn kube(edge: Edge) -> kube_client::Client {
    let http = legacy::Client::builder(TokioExecutor::new()).build::<_, Body>(Dialer::new(edge));
    // Requests of kube are relative; a made-up host is all the client needs, for nothing is resolved.
    let service = BaseUriLayer::new(Uri::from_static("http://fake")).layer(http);
    kube_client::Client::new(service, "default")
}

/// Connects to the fake over a pipe.
#[derive(Debug, Clone)]
pub struct Dialer {
    edge: Edge,
}

impl Dialer {
    /// Connections of this dialer are served by `edge`, each in a task of the current runtime.
    pub fn new(edge: Edge) -> Self {
        Self { edge }
    }
}

impl Service<Uri> for Dialer {
    type Response = TokioIo<Pipe>;
    type Error = io::Error;
    type Future = Ready<io::Result<TokioIo<Pipe>>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let Some(conn) = self.edge.accept() else {
            return ready(Err(io::ErrorKind::ConnectionRefused.into()));
        };
        let (near, far) = pipe();
        tokio::spawn(serve_connection(
            self.edge.clone(),
            conn,
            far,
            ConnectionSettings::default(),
            std::future::pending(),
        ));
        ready(Ok(TokioIo::new(near)))
    }
}

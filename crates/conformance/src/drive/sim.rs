//! Client and server in one thread under virtual time: same scenario, same client, same seed, same trace.
//!
//! Nothing here waits for anything outside the runtime. Connections are [`Pipe`]s, or requests are handed over in process
//! ([`Link`]); time is tokio's paused clock, and libraries that draw randomness from `fastrand` get the seed.

use std::future::{Ready, ready};
use std::io;
use std::task::{Context, Poll};
use std::time::Duration;

use fake_apiserver::net::{ConnectionSettings, Core, Edge, InProcess, ListenerLimits, Protocol};
use fake_apiserver::scenario::{Scenario, SharedScenario, Transport};
use fake_apiserver::server::Server;
use http::Uri;
use hyper_util::rt::TokioIo;
use tower::Service;

use super::pipe::{Pipe, connect};
use super::{Run, alarm, play, stack};
use crate::client::Client;

/// Longest run, in virtual time. Exceeding it is a harness error.
const TIME_MAX: Duration = Duration::from_secs(7 * 24 * 3600);

/// Longest run, in real time. Most take about a millisecond.
const REAL_TIME_MAX: Duration = Duration::from_secs(60);

/// What joins client and server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// HTTP in bytes over pipes: both HTTP libraries, TLS and HTTP/2 if the scenario has them.
    Pipe,
    /// HTTP as values, without HTTP libraries and TLS, which take half of the processor time.
    InProcess,
}

/// Runs `scenario` with `client` in virtual time over pipes, in the calling thread.
///
/// Must not be called inside a tokio runtime.
pub fn sim(scenario: &SharedScenario, client: &dyn Client, seed: u64) -> Run {
    sim_against(Server::new(scenario.clone(), seed), scenario, client, seed)
}

/// Like [`sim`], with any server that fits the edge; of `scenario`, only the settings of client and transport are used.
pub fn sim_against(
    core: impl Core + 'static,
    scenario: &SharedScenario,
    client: &dyn Client,
    seed: u64,
) -> Run {
    sim_over(Link::Pipe, core, scenario, client, seed)
}

/// Like [`sim_against`], over `link`.
pub fn sim_over(
    link: Link,
    core: impl Core + 'static,
    scenario: &SharedScenario,
    client: &dyn Client,
    seed: u64,
) -> Run {
    // Some libraries under test draw their jitter from the thread's generator.
    fastrand::seed(seed);
    // A separate runtime: no task of an earlier run is in it.
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
        play(
            &edge,
            scenario,
            client,
            kube(edge.clone(), link, scenario),
            seed,
            TIME_MAX,
        )
        .await;
        edge.take_records()
    });
    Run { records }
}

/// Returns a `kube_client` that is linked to `edge`, without its layer of retries.
fn kube(edge: Edge, link: Link, scenario: &Scenario) -> kube_client::Client {
    let (server, gzip) = (&scenario.server, scenario.client.gzip);
    let transport = server.transport;
    let limits = ListenerLimits {
        streams: server.max_concurrent_streams,
        ..ListenerLimits::default()
    };
    if link == Link::InProcess {
        let protocol = match transport {
            Transport::Http1 | Transport::TlsHttp1 => Protocol::Http1,
            Transport::TlsHttp2 => Protocol::Http2,
        };
        return stack::in_process(InProcess::new(edge, protocol, limits), gzip);
    }
    let settings = ConnectionSettings {
        limits,
        ..stack::settings(transport)
    };
    let dialer = Dialer::with_settings(edge, settings);
    // Requests of kube-client are relative. The host is not resolved.
    if dialer.settings.tls.is_none() {
        return stack::client(dialer, Uri::from_static("http://fake"), gzip);
    }
    let dialer = stack::SHARED.with_tls(dialer, transport);
    stack::client(dialer, Uri::from_static("https://fake"), gzip)
}

/// Connects to the fake over a pipe.
#[derive(Clone)]
pub struct Dialer {
    edge: Edge,
    settings: ConnectionSettings,
}

impl Dialer {
    /// Returns a dialer whose connections are served by `edge`, without TLS, each in a task of the current runtime.
    pub fn new(edge: Edge) -> Self {
        Self::with_settings(edge, ConnectionSettings::default())
    }

    /// Like [`Dialer::new`], with these settings.
    pub fn with_settings(edge: Edge, settings: ConnectionSettings) -> Self {
        Self { edge, settings }
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
        let near = connect(&self.edge, self.settings.clone(), std::future::pending());
        ready(near.map(TokioIo::new))
    }
}

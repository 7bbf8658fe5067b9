//! Real sockets on 127.0.0.1 and real time, with the client's own default HTTP stack.
//!
//! Slow, and traces are not repeatable to the byte: shows that verdicts of `sim` hold over sockets. Nothing sleeps; the server
//! ends the run when the script is done and the client's reports equal the store.

use std::time::Duration;

use fake_apiserver::net::{Core, Listening, ServeError, ServeOptions};
use fake_apiserver::record::Record;
use fake_apiserver::scenario::{Scenario, SharedScenario, Transport};
use fake_apiserver::server::{self, Server};
use hyper_util::client::legacy::connect::HttpConnector;
use judge::wire::{grants, takes};
use kube_client::client::ClientBuilder;
use tower_http::decompression::DecompressionLayer;

use super::{Run, play, stack};
use crate::client::Client;
use crate::served::Served;

/// Longest run, in addition to the time that the scenario takes or grants. Exceeding it is a harness error.
const TIME_MAX: Duration = Duration::from_secs(300);

/// Error at the start of a live run.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// No runtime.
    #[error("the runtime cannot be started")]
    System(#[from] std::io::Error),
    /// No socket, or no certificate.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// The client's HTTP stack could not be built.
    #[error("the client's HTTP stack could not be built")]
    Stack(#[source] kube_client::Error),
    /// The address could not be written as a URI.
    #[error("no URI for the listener's address")]
    Uri(#[from] http::uri::InvalidUri),
}

/// Runs `scenario` with `client` over sockets. Must not be called inside a tokio runtime.
///
/// # Errors
/// The run cannot start, usually for lack of a socket.
pub fn live(scenario: &SharedScenario, client: &dyn Client, seed: u64) -> Result<Run, LiveError> {
    live_against(
        Server::with_limits(scenario.clone(), seed, server::Limits::live()),
        scenario,
        client,
        seed,
    )
}

/// Like [`live`], with any server that fits the edge; of `scenario`, only the settings of client and server are used.
///
/// # Errors
/// As [`live`].
pub fn live_against(
    core: impl Core + 'static,
    scenario: &SharedScenario,
    client: &dyn Client,
    seed: u64,
) -> Result<Run, LiveError> {
    fastrand::seed(seed);
    // One thread: the client is polled in the thread that started it, as in `sim`.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let records = runtime.block_on(play_over_sockets(core, scenario, client, seed))?;
    Ok(Run { records })
}

async fn play_over_sockets(
    core: impl Core + 'static,
    scenario: &SharedScenario,
    client: &dyn Client,
    seed: u64,
) -> Result<Vec<Record>, LiveError> {
    let listening = ServeOptions::for_scenario(&scenario.server).bind().await?;
    let kube = kube(&listening, scenario)?;

    let served = Served::start(listening, core);
    // Time that the scenario takes or grants is no harness error.
    let longest = TIME_MAX + takes(scenario) + grants(scenario);
    play(served.edge(), scenario, client, kube, seed, longest).await;
    Ok(served.end().await)
}

/// Returns a client with kube-client's default stack; for HTTP/2, which that does not support, with the stack of `sim`.
fn kube(listening: &Listening, scenario: &Scenario) -> Result<kube_client::Client, LiveError> {
    let (transport, gzip) = (scenario.server.transport, scenario.client.gzip);
    let base: http::Uri = listening.url().parse()?;
    let authority = listening.authority().map(|authority| authority.certificate_der());
    if let (Some(authority), Transport::TlsHttp2) = (&authority, transport) {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        return Ok(stack::client(
            stack::with_tls(tcp, authority.clone(), transport),
            base,
            gzip,
        ));
    }
    let mut config = kube_client::Config::new(base);
    config.root_cert = authority.map(|authority| vec![authority.to_vec()]);
    config.default_retry = false;
    let builder = ClientBuilder::try_from(config).map_err(LiveError::Stack)?;
    Ok(if gzip {
        builder.with_layer(&DecompressionLayer::new()).build()
    } else {
        builder.build()
    })
}

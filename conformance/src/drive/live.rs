//! Real sockets on 127.0.0.1 and real time, with the client's own default HTTP stack.
//!
//! Slow and not repeatable to the byte: it is here to show that `sim` tells the same story. Nothing sleeps; the server
//! ends the run when the script is done and what the client reported proves that it has caught up.

use std::net::Ipv4Addr;
use std::time::Duration;

use fake_apiserver::net::{Core, Edge, ListenerLimits, serve};
use fake_apiserver::record::Record;
use fake_apiserver::scenario::SharedScenario;
use fake_apiserver::server::{self, Server};
use kube_client::client::ClientBuilder;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use super::{Run, play};
use crate::client::Client;

/// Longest run. A server that never ends a run is a bug of the harness.
const TIME_MAX: Duration = Duration::from_secs(300);

/// Why a live run could not begin.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// No runtime, no socket.
    #[error("the system refused what a live run needs")]
    System(#[from] std::io::Error),
    /// The client's HTTP stack could not be built.
    #[error("the client's HTTP stack could not be built")]
    Stack(#[source] kube_client::Error),
    /// The address could not be written as a URI.
    #[error("no URI for the listener's address")]
    Uri(#[from] http::uri::InvalidUri),
}

/// Plays `scenario` with `client` over sockets. Must not be called inside a tokio runtime.
///
/// # Errors
/// If the run could not begin, for want of a socket above all.
pub fn live(scenario: &SharedScenario, client: &dyn Client, seed: u64) -> Result<Run, LiveError> {
    live_against(
        Server::with_limits(scenario.clone(), seed, server::Limits::live()),
        scenario,
        client,
        seed,
    )
}

/// The same against any server that fits the edge; of `scenario`, only what the client is told is used.
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
    // One thread: the client is to be polled where it was started, as in `sim`.
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
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    let mut config = kube_client::Config::new(format!("http://{address}").parse()?);
    config.default_retry = false;
    let kube = ClientBuilder::try_from(config).map_err(LiveError::Stack)?.build();

    let edge = Edge::new(core);
    let time = edge.clone();
    let time = tokio::spawn(async move { time.keep_time().await });
    let (stop, stopped) = oneshot::channel::<()>();
    let stopped = async move {
        // The sender gone is a stop as well.
        let _ = stopped.await;
    };
    let serving = tokio::spawn(serve(listener, edge.clone(), ListenerLimits::default(), stopped));
    play(&edge, scenario, client, kube, seed, TIME_MAX).await;
    let records = edge.take_records();
    drop(stop);
    if let Ok(Err(error)) = serving.await {
        tracing::error!(%error, "the listener was of no use");
    }
    time.abort();
    Ok(records)
}

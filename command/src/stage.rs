//! What stands around a running server: its listener, the kubeconfig that leads to it, the log of what both sides do, and
//! the signals that end it.

use std::io::{self, Write as _};
use std::net::Ipv4Addr;

use fake_apiserver::net::{Edge, ListenerLimits, serve};
use fake_apiserver::record::line::line;
use fake_apiserver::server::Server;
use tokio::net::TcpListener;

use crate::Failure;
use crate::kubeconfig::Kubeconfig;

/// A server about to be served.
pub(crate) struct Stage {
    pub(crate) server: Server,
    pub(crate) port: u16,
    /// What clients are told to use by default.
    pub(crate) namespace: Option<String>,
    /// What clients are told to send.
    pub(crate) token: Option<String>,
    /// The first record that is news to whoever watches.
    pub(crate) shown_from: usize,
}

/// Serves until interrupted.
///
/// # Errors
/// The system refuses a socket, a file or a runtime.
pub(crate) fn run(stage: Stage) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::System("no runtime".to_owned(), error))?;
    runtime.block_on(serve_until_interrupted(stage))
}

async fn serve_until_interrupted(stage: Stage) -> Result<(), Failure> {
    let port = stage.port;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
        .await
        .map_err(|error| Failure::System(format!("cannot listen on 127.0.0.1:{port}"), error))?;
    let address = listener
        .local_addr()
        .map_err(|error| Failure::System("no address".to_owned(), error))?;
    let url = format!("http://{address}");
    let kubeconfig = Kubeconfig::write(&url, stage.namespace.as_deref(), stage.token.as_deref())?;
    let edge = Edge::new(stage.server);
    writeln!(io::stdout(), "export KUBECONFIG={}", kubeconfig.path().display())
        .map_err(|error| Failure::System("standard output is closed".to_owned(), error))?;

    let ended = tokio::select! {
        ended = serve(listener, edge.clone(), ListenerLimits::default(), told_to_stop()) => ended,
        () = edge.keep_time() => Ok(()),
        () = show(&edge, stage.shown_from) => Ok(()),
    };
    ended.map_err(|error| Failure::System("cannot serve".to_owned(), io::Error::other(error)))
}

/// Completes on Ctrl-C, and on the signal `kill` sends.
async fn told_to_stop() {
    // Without a handler the system's own way of stopping a program remains.
    let interrupted = async {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    #[cfg(unix)]
    if let Ok(mut terminate) = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
        tokio::select! {
            () = interrupted => {}
            _ = terminate.recv() => {}
        }
        return;
    }
    interrupted.await;
}

/// Writes every record from `shown` on on standard error as it comes. Never ends by itself.
async fn show(edge: &Edge, mut shown: usize) {
    loop {
        let stirred = edge.stirred();
        let lines = edge.read_records(shown, |records| {
            shown += records.len();
            records.iter().map(line).collect::<Vec<_>>()
        });
        for line in lines {
            eprintln!("{line}");
        }
        stirred.await;
    }
}

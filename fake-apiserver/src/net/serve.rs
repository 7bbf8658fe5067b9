//! Accepts sockets, from this machine only, and joins each to the server.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::wire::Transport as _;
use super::{Edge, serve_connection};

/// What a listener bears.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListenerLimits {
    /// Connections open at one time; more are reset.
    pub connections: usize,
    /// How long answers may go on after the stop.
    pub grace: Duration,
}

impl Default for ListenerLimits {
    fn default() -> Self {
        Self {
            connections: 1024,
            grace: Duration::from_secs(1),
        }
    }
}

/// Why nothing could be served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The fake has no authentication and says anything to anyone: it must not be seen from outside.
    #[error("{0} can be reached from other machines; only loopback addresses are served")]
    NotLoopback(SocketAddr),
    /// The listener cannot be asked for its address.
    #[error("the listener's address is unknown")]
    Address(#[source] io::Error),
}

/// Serves `edge` on `listener` until `stop` completes, then lets answers that have begun come to their end for
/// [`ListenerLimits::grace`], and breaks off the rest.
///
/// # Errors
/// If the listener is not bound to a loopback address. A connection that fails to be accepted is logged and passed by.
pub async fn serve(
    listener: TcpListener,
    edge: Edge,
    limits: ListenerLimits,
    stop: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    let address = listener.local_addr().map_err(ServeError::Address)?;
    if !address.ip().is_loopback() {
        return Err(ServeError::NotLoopback(address));
    }
    let (stopping, stopped) = watch::channel(false);
    let mut connections = JoinSet::new();
    let mut stop = std::pin::pin!(stop);
    loop {
        tokio::select! {
            biased;
            () = stop.as_mut() => break,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((socket, _)) => admit(socket, &edge, &limits, &mut connections, stopped.clone()),
                Err(error) => tracing::warn!(%error, "a connection could not be accepted"),
            },
        }
    }
    drop(listener);
    // Fails only if no connection is left to hear it.
    let _ = stopping.send(true);
    let all_over = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(limits.grace, all_over).await.is_err() {
        connections.shutdown().await;
    }
    Ok(())
}

fn admit(
    mut socket: TcpStream,
    edge: &Edge,
    limits: &ListenerLimits,
    connections: &mut JoinSet<()>,
    mut stopped: watch::Receiver<bool>,
) {
    if connections.len() >= limits.connections {
        tracing::warn!(
            limit = limits.connections,
            "too many connections; one more was reset"
        );
        return socket.reset();
    }
    // A listening socket cannot refuse: the nearest thing to a server that is down is a reset before any byte.
    let Some(conn) = edge.accept() else {
        return socket.reset();
    };
    // Every write is to leave at once, as a piece of its own.
    if let Err(error) = socket.set_nodelay(true) {
        tracing::warn!(%error, "writes may be merged");
    }
    let stop = async move {
        // An error means that the sender is gone, and that is a stop too.
        let _ = stopped.wait_for(|stopped| *stopped).await;
    };
    connections.spawn(serve_connection(edge.clone(), conn, socket, stop));
}

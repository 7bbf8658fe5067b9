//! A server over sockets for the length of one test: what both real-time drivers share.
//!
//! It must not know which kind of client connects.

use fake_apiserver::net::{Core, Edge, Listening};
use fake_apiserver::record::Record;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// A running server, served until [`Served::end`].
pub(crate) struct Served {
    edge: Edge,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<()>,
    time: JoinHandle<()>,
}

impl Served {
    /// Serves `core` on the listener. Needs a tokio runtime.
    pub(crate) fn start(listening: Listening, core: impl Core + 'static) -> Self {
        let edge = Edge::new(core);
        let ticking = edge.clone();
        let (stop, stopping) = oneshot::channel::<()>();
        let stopping = async move {
            // A dropped sender stops the server too.
            let _ = stopping.await;
        };
        Self {
            time: tokio::spawn(async move { ticking.keep_time().await }),
            serving: tokio::spawn(listening.serve(edge.clone(), stopping)),
            stop,
            edge,
        }
    }

    pub(crate) fn edge(&self) -> &Edge {
        &self.edge
    }

    /// Stops the server and returns the trace.
    pub(crate) async fn end(self) -> Vec<Record> {
        let records = self.edge.take_records();
        drop(self.stop);
        if let Err(error) = self.serving.await {
            tracing::error!(%error, "the listener failed");
        }
        self.time.abort();
        records
    }
}

//! A server in the process that uses it, for tests and examples: one line to have it, and it is gone when it is dropped.

use tokio::task::JoinHandle;

use super::{Edge, ServeError, ServeOptions};
use crate::scenario::ServerSettings;
use crate::server::Server;

/// A truthful server with nothing in it, on a free port of this machine.
///
/// ```
/// # use fake_apiserver::net::Standalone;
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = Standalone::start(Default::default()).await?;
/// println!("kubectl --server {} get namespaces", server.url());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Standalone {
    edge: Edge,
    url: String,
    serving: JoinHandle<()>,
}

impl Standalone {
    /// Starts it in the runtime this is called in, which must have I/O and time enabled.
    ///
    /// # Errors
    /// If no port can be listened on.
    pub async fn start(settings: ServerSettings) -> Result<Self, ServeError> {
        let listening = ServeOptions::default().bind().await?;
        let url = listening.url();
        let edge = Edge::new(Server::standalone(settings, 0));
        let served = edge.clone();
        let serving = tokio::spawn(async move {
            let serve = listening.serve(served.clone(), std::future::pending());
            tokio::select! {
                () = serve => {}
                () = served.keep_time() => {}
            }
        });
        Ok(Self { edge, url, serving })
    }

    /// Where clients find it: `http://127.0.0.1:…`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The server itself, to change its truth and to let it lie.
    pub fn edge(&self) -> &Edge {
        &self.edge
    }
}

impl Drop for Standalone {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

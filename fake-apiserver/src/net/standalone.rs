//! A server in the process that uses it, for tests and examples: one line to have it, and it is gone when it is dropped.

use rustls::pki_types::CertificateDer;
use tokio::task::JoinHandle;

use super::tls::Authority;
use super::{Edge, ServeError, ServeOptions};
use crate::scenario::ServerSettings;
use crate::server::Server;

/// A truthful server with what a kube-apiserver creates when it starts and nothing else, on a free port of this machine.
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
    authority: Option<CertificateDer<'static>>,
    serving: JoinHandle<()>,
}

impl Standalone {
    /// Starts it in the runtime this is called in, which must have I/O and time enabled.
    ///
    /// # Errors
    /// If no port can be listened on.
    pub async fn start(settings: ServerSettings) -> Result<Self, ServeError> {
        Self::with_options(settings, ServeOptions::default()).await
    }

    /// The same, served as `options` say: with TLS, or for those who have a token.
    ///
    /// # Errors
    /// As [`ServeOptions::bind`].
    pub async fn with_options(settings: ServerSettings, options: ServeOptions) -> Result<Self, ServeError> {
        Self::serve(Server::standalone(settings, 0).with_bootstrap_objects(), options).await
    }

    /// The same with namespaces only: nothing of what a kube-apiserver creates when it starts is there.
    ///
    /// # Errors
    /// As [`ServeOptions::bind`].
    pub async fn bare(settings: ServerSettings, options: ServeOptions) -> Result<Self, ServeError> {
        Self::serve(Server::standalone(settings, 0), options).await
    }

    async fn serve(mut server: Server, options: ServeOptions) -> Result<Self, ServeError> {
        if let Some(access) = &options.access {
            server = server.with_access(access.clone());
        }
        let listening = options.bind().await?;
        let url = listening.url();
        let authority = listening.authority().map(Authority::certificate_der);
        let edge = Edge::new(server);
        let served = edge.clone();
        let serving = tokio::spawn(async move {
            let serve = listening.serve(served.clone(), std::future::pending());
            tokio::select! {
                () = serve => {}
                () = served.keep_time() => {}
            }
        });
        Ok(Self {
            edge,
            url,
            authority,
            serving,
        })
    }

    /// Where clients find it: `http://127.0.0.1:…`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The root to trust, where it has TLS.
    pub fn authority(&self) -> Option<&CertificateDer<'static>> {
        self.authority.as_ref()
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

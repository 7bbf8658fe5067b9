//! In-process server for tests and examples: started in one line, stopped on drop.

use rustls::pki_types::CertificateDer;
use scenario::ServerSettings;
use tokio::task::JoinHandle;
use trace::record::Record;

use super::tls::Authority;
use super::{Credentials, Edge, Kubeconfig, ServeError, ServeOptions, SteerError};
use crate::server::{Ruled, Server};

/// A server without faults, with the objects that kube-apiserver creates when it starts, on a free loopback port.
///
/// ```
/// # use fake_apiserver::net::Standalone;
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = Standalone::start(Default::default()).await?;
/// println!("kubectl --server {} get namespaces", server.url());
///
/// // Rules add faults, and a test waits for records of the trace.
/// server.rule("{when: {list: next}, do: {reply: {status: 503, retry_after: \"1\"}}}")?;
/// # let connection = std::net::TcpStream::connect(server.url().trim_start_matches("http://"))?;
/// # std::io::Write::write_all(&mut &connection, b"GET /api/v1/pods HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
/// let record = server.wait("{when: {list: 1}, since: 0}").await?;
/// assert_eq!(record.what.name(), "request");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Standalone {
    edge: Edge,
    url: String,
    kubeconfig: Kubeconfig,
    authority: Option<CertificateDer<'static>>,
    serving: JoinHandle<()>,
}

impl Standalone {
    /// Starts it in the current runtime, which must have I/O and time enabled.
    ///
    /// # Errors
    /// No port is available.
    pub async fn start(settings: ServerSettings) -> Result<Self, ServeError> {
        Self::with_options(settings, ServeOptions::default()).await
    }

    /// The same with options: TLS, tokens.
    ///
    /// # Errors
    /// As [`ServeOptions::bind`].
    pub async fn with_options(settings: ServerSettings, options: ServeOptions) -> Result<Self, ServeError> {
        Self::serve(Server::standalone(settings, 0).with_bootstrap_objects(), options).await
    }

    /// The same without the objects that kube-apiserver creates when it starts, except namespaces.
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
        if let Some(mode) = options.authorization {
            server = server.with_authorization(mode);
        }
        let credentials = options.access.as_ref().map_or(Credentials::None, |access| {
            Credentials::Token(access.token.clone())
        });
        let webhooks = options.webhooks;
        let listening = options.bind().await?;
        let url = listening.url();
        let kubeconfig = listening.kubeconfig(credentials, None);
        let authority = listening.authority().map(Authority::certificate_der);
        let edge = Edge::with_webhooks(server, webhooks);
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
            kubeconfig,
            authority,
            serving,
        })
    }

    /// URL: `http://127.0.0.1:…`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns a kubeconfig as YAML, for `kube_client::Config::from_custom_kubeconfig` and kubectl.
    pub fn kubeconfig(&self) -> String {
        self.kubeconfig.text()
    }

    /// CA certificate (PEM), with TLS.
    pub fn authority(&self) -> Option<&CertificateDer<'static>> {
        self.authority.as_ref()
    }

    /// Adds a rule, as [`Edge::rule`].
    ///
    /// # Errors
    /// The text is invalid, or the rule can never match.
    pub fn rule(&self, text: &str) -> Result<Ruled, SteerError> {
        self.edge.rule(text)
    }

    /// Waits for a condition, as [`Edge::wait_for`].
    ///
    /// # Errors
    /// The text is invalid, or its timeout (default 30 s) has passed.
    pub async fn wait(&self, text: &str) -> Result<Record, SteerError> {
        self.edge.wait_for(text).await
    }

    /// Returns the edge, to change objects and add faults.
    pub fn edge(&self) -> &Edge {
        &self.edge
    }
}

impl Drop for Standalone {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

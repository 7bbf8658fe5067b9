//! Clients of kube-client, over sockets or pipes in this process, with its default stack. No other file but `matcher.rs` may depend on
//! kube-client.

use fake_apiserver::net::Edge;
use fake_apiserver::record::Replica;
use kube_client::client::retry::RetryPolicy;
use kube_client::client::{Body, ClientBuilder, ConfigExt as _};
use kube_client::{Client, Config};
use tokio::sync::watch;
use tower::retry::RetryLayer;
use tower::{BoxError, ServiceBuilder};

use crate::FakeApiserver;
use crate::server::Socket;
use crate::service::{HOST, HttpService};

impl FakeApiserver {
    /// Returns a client with kube-client's default stack (retries of 429, 503 and 504 included) and separate
    /// connections: to the server each call looks like another process.
    ///
    /// # Panics
    /// The stack cannot be built: TLS without the feature `tls`.
    #[track_caller]
    pub fn client(&self) -> Client {
        self.client_at(Replica::Primary, None)
    }

    /// The same with a User-Agent, by which verdicts and [`Matcher::user_agent`](crate::Matcher::user_agent)
    /// distinguish clients.
    ///
    /// # Panics
    /// As [`FakeApiserver::client`]; `user_agent` cannot be a header.
    #[track_caller]
    pub fn client_named(&self, user_agent: &str) -> Client {
        self.client_at(Replica::Primary, Some(user_agent))
    }

    /// Returns a client of the secondary: a second apiserver on the same store, with separate watch caches.
    ///
    /// # Panics
    /// There is none ([`Builder::secondary`](crate::Builder::secondary)), or as [`FakeApiserver::client`].
    #[track_caller]
    pub fn secondary_client(&self) -> Client {
        self.client_at(Replica::Secondary, None)
    }

    /// Returns a configuration for clients with another stack: no retries, timeouts, namespace.
    ///
    /// # Panics
    /// The server is in memory, where only its own clients reach it.
    #[track_caller]
    pub fn config(&self) -> Config {
        self.socket("config").config()
    }

    #[track_caller]
    fn client_at(&self, replica: Replica, user_agent: Option<&str>) -> Client {
        let has_secondary = self
            .edge
            .steer(|server, _| server.has_secondary())
            .unwrap_or_default();
        assert!(
            replica == Replica::Primary || has_secondary,
            "there is no secondary: start the server with `.secondary()`"
        );
        let client = match self.sockets.get(usize::from(replica == Replica::Secondary)) {
            Some(socket) => {
                ClientBuilder::try_from(named(socket.config(), user_agent)).map(ClientBuilder::build)
            }
            None => {
                let config = named(in_memory(), user_agent);
                over_pipes(self.edge.at(replica), self.running.subscribe(), &config)
            }
        };
        client.unwrap_or_else(|error| panic!("no client can be built: {error}"))
    }
}

#[track_caller]
fn named(mut config: Config, user_agent: Option<&str>) -> Config {
    if let Some(agent) = user_agent {
        let value = http::HeaderValue::from_str(agent);
        let value = value.unwrap_or_else(|_| panic!("`{agent}` cannot be a User-Agent"));
        config.headers.push((http::header::USER_AGENT, value));
    }
    config
}

impl Socket {
    fn config(&self) -> Config {
        let url = self.url.parse().expect("the URL of a listener is a URI");
        let mut config = Config::new(url);
        config.root_cert = self.authority.clone().map(|authority| vec![authority]);
        config
    }
}

/// Returns the configuration of a client in memory.
fn in_memory() -> Config {
    let base = format!("http://{HOST}").parse();
    Config::new(base.expect("a host makes a URI"))
}

/// Returns a client of `edge` with the layers of kube-client's default stack. Its connections close when the sender of
/// `running` is dropped.
///
/// # Errors
/// As `ConfigExt::extra_headers_layer`.
fn over_pipes(
    edge: Edge,
    running: watch::Receiver<()>,
    config: &Config,
) -> Result<Client, kube_client::Error> {
    let http = HttpService::<Body>::new(edge, running);
    let stack = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .layer(RetryLayer::new(RetryPolicy::server_retry()))
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(http);
    Ok(Client::new(stack, config.default_namespace.clone()))
}

//! A running server, and what a test reads from it. Changes are in `steer`, assertions in `expect`.

use std::collections::BTreeSet;
use std::time::Duration;

use fake_apiserver::net::{Credentials, Edge, Listening};
use fake_apiserver::record::Replica;
use kube_client::client::ClientBuilder;
use kube_client::{Client, Config};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::memory;
use crate::request::{Request, requests};
use crate::trace::Trace;
use crate::verdict::Verdict;

/// A Kubernetes apiserver in memory, for one test. It is stopped when it is dropped.
///
/// Its methods panic when they are misused and when an expectation fails, as assertions do. Call them inside the tokio runtime
/// in which the server was started.
#[derive(Debug)]
pub struct FakeApiserver {
    pub(crate) edge: Edge,
    pub(crate) reach: Reach,
    pub(crate) patience: Duration,
    pub(crate) strict: bool,
    /// Rules not carried out so far; a strict server reports them at its end.
    pub(crate) rules: std::sync::Mutex<BTreeSet<u64>>,
    pub(crate) tasks: Vec<JoinHandle<()>>,
}

/// How clients reach the server.
#[derive(Debug)]
pub(crate) enum Reach {
    /// Over sockets: the server, then its secondary.
    Sockets(Vec<Socket>),
    /// Over in-process pipes, which close when the sender is dropped.
    Memory(watch::Sender<()>),
}

/// One address.
#[derive(Debug)]
pub(crate) struct Socket {
    url: String,
    kubeconfig: String,
    authority: Option<Vec<u8>>,
}

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

    /// Returns its URL: `http://127.0.0.1:PORT`.
    ///
    /// # Panics
    /// The server is in memory.
    #[track_caller]
    pub fn url(&self) -> &str {
        &self.socket("URL").url
    }

    /// Returns a kubeconfig, for kubectl and other processes.
    ///
    /// # Panics
    /// The server is in memory.
    #[track_caller]
    pub fn kubeconfig(&self) -> &str {
        &self.socket("kubeconfig").kubeconfig
    }

    /// Returns every request so far, in order of arrival.
    pub fn requests(&self) -> Vec<Request> {
        self.edge.read_records(0, |records| {
            let requests = requests(records).into_iter();
            requests.map(|(_, request)| request).collect()
        })
    }

    /// Returns everything that happened so far.
    pub fn trace(&self) -> Trace {
        Trace(self.edge.read_records(0, <[_]>::to_vec))
    }

    /// Returns the verdict so far: which clients violated which invariants of LIST and WATCH.
    pub fn verdict(&self) -> Verdict {
        let now = self.edge.elapsed();
        self.edge.read_records(0, |records| Verdict::of(records, now))
    }

    /// Returns the time since it was started.
    pub fn elapsed(&self) -> Duration {
        self.edge.elapsed()
    }

    /// Returns the first socket.
    #[track_caller]
    fn socket(&self, what: &str) -> &Socket {
        match &self.reach {
            Reach::Sockets(sockets) => &sockets[0],
            Reach::Memory(_) => panic!("a server in memory has no {what}: only its own clients reach it"),
        }
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
        let client = match &self.reach {
            Reach::Memory(running) => {
                let config = named(memory::config(), user_agent);
                memory::client(self.edge.at(replica), running.subscribe(), &config)
            }
            Reach::Sockets(sockets) => {
                let socket = &sockets[usize::from(replica == Replica::Secondary)];
                ClientBuilder::try_from(named(socket.config(), user_agent)).map(ClientBuilder::build)
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
    /// Returns the address of a listener.
    pub(crate) fn of(listener: &Listening) -> Self {
        Self {
            url: listener.url(),
            kubeconfig: listener.kubeconfig(Credentials::None, None).text(),
            authority: listener
                .authority()
                .map(|authority| authority.certificate_der().to_vec()),
        }
    }

    fn config(&self) -> Config {
        let url = self.url.parse().expect("the URL of a listener is a URI");
        let mut config = Config::new(url);
        config.root_cert = self.authority.clone().map(|authority| vec![authority]);
        config
    }
}

impl Drop for FakeApiserver {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
        if self.strict && !std::thread::panicking() {
            self.assert_clean();
        }
    }
}

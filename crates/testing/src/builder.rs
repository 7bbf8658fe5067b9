//! Builder of a server. All mistakes are reported at once, at the start.

use std::sync::Mutex;
use std::time::Duration;

use fake_apiserver::net::{Edge, ServeError, ServeOptions, TlsOptions, Webhooks};
use fake_apiserver::record::Replica;
use fake_apiserver::scenario::ServerSettings;
use fake_apiserver::server::Server;
use serde::Serialize;
use serde_json::Value;
use tokio::sync::watch;

use crate::matcher::Requests;
use crate::matcher::kind::RequestKind;
use crate::objects;
use crate::rule::Rule;
use crate::server::{FakeApiserver, Socket};
use crate::steer;

/// Default capacity of a watch cache, in events, as in `fake-apiserver serve`.
const WATCH_CACHE_CAPACITY: usize = 10_000;

/// Longest wait for a request.
const PATIENCE: Duration = Duration::from_secs(30);

/// Settings and initial objects of a server.
#[derive(Debug, Clone)]
pub struct Builder {
    settings: ServerSettings,
    objects: Vec<Value>,
    rules: Vec<Rule<Requests>>,
    mistakes: Vec<String>,
    bootstrap: bool,
    secondary: bool,
    strict: bool,
    tls: bool,
    in_memory: bool,
    seed: u64,
    patience: Duration,
}

/// Failure to start a server.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The builder has mistakes.
    #[error("the builder of this server has mistakes:{}", .0.iter().map(|mistake| format!("\n  {mistake}")).collect::<String>())]
    Mistakes(Vec<String>),
    /// No port or no certificate.
    #[error(transparent)]
    Serve(#[from] ServeError),
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            settings: ServerSettings {
                watch_cache_capacity: WATCH_CACHE_CAPACITY,
                ..ServerSettings::default()
            },
            objects: Vec::new(),
            rules: Vec::new(),
            mistakes: Vec::new(),
            bootstrap: false,
            secondary: false,
            strict: false,
            tls: false,
            in_memory: false,
            seed: 0,
            patience: PATIENCE,
        }
    }
}

impl Builder {
    /// Answers as this Kubernetes minor: `1.34` to `1.37`. Default 1.37.
    #[must_use]
    pub fn version(mut self, minor: &str) -> Self {
        match minor.parse() {
            Ok(version) => self.settings.version = version,
            Err(why) => self.mistakes.push(format!("version `{minor}`: {why}")),
        }
        self
    }

    /// Creates these objects at the start: typed objects of `k8s-openapi` or of a `CustomResource`, `serde_json` values, or
    /// texts in YAML with any number of objects each. They are stored as they are, with their status; missing namespaces
    /// are created.
    #[must_use]
    pub fn objects(mut self, objects: impl IntoIterator<Item = impl Serialize>) -> Self {
        match objects::values(objects) {
            Ok(objects) => self.objects.extend(objects),
            Err(mistake) => self.mistakes.push(mistake),
        }
        self
    }

    /// Creates one object at the start, as [`Builder::objects`].
    #[must_use]
    pub fn object(self, object: impl Serialize) -> Self {
        self.objects([object])
    }

    /// Creates a CustomResourceDefinition at the start, in any of the forms of [`Builder::objects`]:
    /// `.crd(Widget::crd())` with a derived `CustomResource`.
    #[must_use]
    pub fn crd(self, definition: impl Serialize) -> Self {
        self.objects([definition])
    }

    /// Adds a rule. The first rule that matches a request is carried out.
    #[must_use]
    pub fn rule<K: RequestKind>(mut self, rule: Rule<K>) -> Self {
        self.rules.push(rule.erased());
        self
    }

    /// Creates the objects that a kube-apiserver creates when it starts: the service `kubernetes`, default roles, priority
    /// classes and so on.
    #[must_use]
    pub fn bootstrap_objects(mut self) -> Self {
        self.bootstrap = true;
        self
    }

    /// Events of a resource that its watch cache keeps; a watch from before them is 410. Default 10,000.
    #[must_use]
    pub fn watch_cache_capacity(mut self, events: usize) -> Self {
        self.settings.watch_cache_capacity = events;
        self
    }

    /// Time between bookmarks. Default 60 s.
    #[must_use]
    pub fn bookmark_interval(mut self, interval: Duration) -> Self {
        self.settings.bookmark_interval_ms = u64::try_from(interval.as_millis()).unwrap_or(u64::MAX).max(1);
        self
    }

    /// Turns the feature gate `WatchList` off: streaming lists are refused.
    #[must_use]
    pub fn without_streaming_lists(mut self) -> Self {
        self.settings.streaming_lists = Some(false);
        self
    }

    /// Starts a second apiserver on the same store, with separate watch caches, for
    /// [`FakeApiserver::secondary_client`].
    #[must_use]
    pub fn secondary(mut self) -> Self {
        self.secondary = true;
        self
    }

    /// Serves HTTPS with a certificate made at the start; clients and kubeconfig trust it.
    #[must_use]
    pub fn tls(mut self) -> Self {
        self.tls = true;
        self
    }

    /// Serves over pipes in this process instead of sockets, without TLS. With tokio's paused time, no wait takes real
    /// time, and every run is the same. Only the server's own clients reach it. Do not pause time for a server with sockets:
    /// the clock would jump over bytes on their way.
    #[must_use]
    pub fn in_memory(mut self) -> Self {
        self.in_memory = true;
        self
    }

    /// Seed for all randomness (generated names, lifetimes of watches). Default 0.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Longest wait of [`FakeApiserver::wait_for`]. Default 30 s.
    #[must_use]
    pub fn patience(mut self, longest: Duration) -> Self {
        self.patience = longest;
        self
    }

    /// Panics when the server is dropped, unless the thread is panicking already, if a client violated an invariant or a
    /// rule was never carried out. The message has the violations, each with the request that proves it.
    #[must_use]
    pub fn strict(mut self) -> Self {
        self.strict = true;
        self
    }

    /// Starts the server.
    ///
    /// # Panics
    /// As [`Builder::try_start`] fails, and outside a tokio runtime with time and I/O.
    pub async fn start(self) -> FakeApiserver {
        match self.try_start().await {
            Ok(server) => server,
            Err(error) => panic!("{error}"),
        }
    }

    /// Starts the server.
    ///
    /// # Errors
    /// Objects or rules have mistakes, all of which are listed; or no port can be listened on.
    ///
    /// # Panics
    /// Outside a tokio runtime with time and I/O.
    pub async fn try_start(self) -> Result<FakeApiserver, StartError> {
        let Self {
            strict,
            patience,
            tls,
            in_memory,
            ..
        } = self;
        let (server, rules) = self.server()?;
        let replicas: &[Replica] = if server.has_secondary() {
            &[Replica::Primary, Replica::Secondary]
        } else {
            &[Replica::Primary]
        };
        let mut listeners = Vec::new();
        for replica in replicas.iter().filter(|_| !in_memory) {
            let serving = ServeOptions {
                tls: tls.then(TlsOptions::default),
                ..ServeOptions::default()
            };
            listeners.push((*replica, serving.bind().await?));
        }
        // In memory the runtime of the test may have no I/O.
        let webhooks = match in_memory {
            true => Webhooks::None,
            false => Webhooks::default(),
        };
        let edge = Edge::with_webhooks(server, webhooks);
        let time = edge.clone();
        let mut tasks = vec![tokio::spawn(async move { time.keep_time().await })];
        let mut sockets = Vec::new();
        for (replica, listener) in listeners {
            sockets.push(Socket::of(&listener));
            let served = edge.at(replica);
            tasks.push(tokio::spawn(listener.serve(served, std::future::pending())));
        }
        let mut started = FakeApiserver {
            edge,
            sockets,
            running: watch::channel(()).0,
            patience,
            // Until its rules are added: a mistake in a rule is not a verdict.
            strict: false,
            rules: Mutex::default(),
            tasks,
        };
        let mistakes = rules.iter().filter_map(|rule| started.try_rule(rule).err());
        let mistakes: Vec<String> = mistakes.collect();
        if !mistakes.is_empty() {
            return Err(StartError::Mistakes(mistakes));
        }
        started.strict = strict;
        Ok(started)
    }

    /// Builds the server with its objects, and the rules to add once it runs.
    fn server(self) -> Result<(Server, Vec<Rule<Requests>>), StartError> {
        let mut mistakes = self.mistakes;
        if self.tls && self.in_memory {
            mistakes.push("`tls` has no effect on a server in memory".to_owned());
        }
        let mut server = Server::standalone(self.settings, self.seed);
        if self.bootstrap {
            server = server.with_bootstrap_objects();
        }
        let mut found = self.objects;
        found.sort_by_key(objects::rank);
        for object in &found {
            if let Err(mistake) = server.put(object) {
                mistakes.push(format!("{}: {mistake}", called(object)));
            }
        }
        server.mark_initial_state();
        if self.secondary {
            server = server.with_secondary();
        }
        let served = steer::served(&server);
        for rule in &self.rules {
            mistakes.extend(rule.resource(&served).err());
        }
        if !mistakes.is_empty() {
            return Err(StartError::Mistakes(mistakes));
        }
        Ok((server, self.rules))
    }
}

impl FakeApiserver {
    /// Returns a builder with the defaults: Kubernetes 1.37, no TLS, nothing in it but the four namespaces of every cluster.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Starts a server with the defaults of [`FakeApiserver::builder`].
    ///
    /// # Panics
    /// As [`Builder::start`].
    pub async fn start() -> Self {
        Self::builder().start().await
    }
}

/// Returns the name of an object for messages: `ConfigMap "a"`.
fn called(object: &Value) -> String {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    format!(
        "{} {:?}",
        text("/kind").unwrap_or("object"),
        text("/metadata/name").unwrap_or_default()
    )
}

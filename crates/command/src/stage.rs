//! Environment of a running server: listeners, kubeconfigs, control API, state file for `ctl`, log of requests and responses,
//! and signals.

use std::io;
use std::path::{Path, PathBuf};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use clap::ValueEnum;
use fake_apiserver::api::access::ADMINS;
use fake_apiserver::net::tls::{Authority, Identity};
use fake_apiserver::net::{Credentials, Edge, Listening, ServeError, ServeOptions, TlsOptions, Upstream};
use fake_apiserver::record::{Record, Replica};
use fake_apiserver::scenario::{ServerSettings, Version};
use fake_apiserver::server::Server;
use futures::stream::FuturesUnordered;
use futures::{FutureExt as _, StreamExt as _};

use crate::control::{About, Control, page_url};
use crate::judging::Judge;
use crate::kubeconfig::Kubeconfig;
use crate::service_account::ServiceAccount;
use crate::state::{State, StateFile};
use crate::stop::Stop;
use crate::watches::Watches;
use crate::words::quoted;
use crate::{Failure, output, random};

/// Minimum number of records that are kept; older ones are dropped, so that a server can run for weeks.
pub(crate) const RECORDS_KEPT: usize = 100_000;

/// Maximum records processed at a time: the server does not run meanwhile.
const RECORDS_AT_A_TIME: usize = 1_000;

/// Maximum turns of deliveries before records are processed: deliveries may not end.
const DELIVERIES_FIRST: usize = 100;

/// Maximum interval between calls of the listener, which needs the time.
const SILENCE: Duration = Duration::from_secs(1);

/// Format of the output after start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Announce {
    /// `export KUBECONFIG=…`, for a shell.
    #[default]
    Shell,
    /// One line of JSON with URL, kubeconfigs, control API and its token, for a program.
    Json,
}

/// What answers requests before faults apply.
pub(crate) enum Origin {
    /// The model of this Kubernetes version.
    Model(Version),
    /// A real apiserver.
    #[cfg_attr(
        not(feature = "proxy"),
        expect(dead_code, reason = "`proxy` is built only with its feature")
    )]
    Upstream {
        upstream: Arc<dyn Upstream>,
        /// URL.
        url: String,
        /// Version of Kubernetes; `None`: the upstream does not show it to strangers.
        version: Option<String>,
    },
}

impl Origin {
    /// Returns the version of Kubernetes, and what the server does.
    fn words(&self) -> (String, String) {
        match self {
            Self::Model(version) => (version.to_string(), format!("serving Kubernetes {version}")),
            Self::Upstream { url, version, .. } => {
                let version = version.as_deref().unwrap_or("of an unknown version");
                (
                    version.to_owned(),
                    format!("forwarding to {url} (Kubernetes {version})"),
                )
            }
        }
    }
}

/// A server before it is served.
pub(crate) struct Stage {
    pub(crate) server: Server,
    /// Description of what it serves.
    pub(crate) what: String,
    /// What answers its requests.
    pub(crate) origin: Origin,
    /// Clock for the time since 1970 at start; `None`: the epoch of the scenario.
    pub(crate) wall_clock: Option<fn() -> Duration>,
    /// Addresses and TLS.
    pub(crate) serving: ServeOptions,
    pub(crate) control_port: u16,
    pub(crate) control_token: Option<String>,
    /// Whether the control API has the live view.
    pub(crate) ui: bool,
    /// Default namespace of the kubeconfig.
    pub(crate) namespace: Option<String>,
    /// Path of the kubeconfig; `None`: a new folder.
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Directory for clients that load an in-cluster configuration; `None`: there is none.
    pub(crate) service_account: Option<PathBuf>,
}

/// A server with its listeners, before the first connection.
pub(crate) struct Running {
    pub(crate) edge: Edge,
    listeners: Vec<(Replica, Listening)>,
    control: Option<Control>,
    about: About,
    /// What it does, for the log.
    does: String,
    kubeconfigs: Vec<Kubeconfig>,
    _service_account: Option<ServiceAccount>,
    judge: Judge,
    watches: Watches,
    ui: bool,
    state: State,
    _state_file: Option<StateFile>,
}

impl Running {
    /// Listens, and writes the files for clients.
    ///
    /// # Errors
    ///
    /// A system error of a socket or file.
    pub(crate) async fn open(stage: Stage, judge: Judge) -> Result<Self, Failure> {
        let secondary = stage.server.has_secondary();
        let mut listeners = vec![(Replica::Primary, listen(stage.serving.clone()).await?)];
        if secondary {
            let mut beside = stage.serving.clone();
            beside.address.set_port(0);
            listeners.push((Replica::Secondary, listen(beside).await?));
        }
        let (mut servers, mut kubeconfigs, mut service_account) = (Vec::new(), Vec::new(), None);
        for (replica, listener) in &listeners {
            let credentials = match (&stage.serving.access, listener.authority()) {
                (Some(access), _) => Credentials::Token(access.token.clone()),
                // Over TLS kubectl prompts for a user name and password if its kubeconfig has no credentials.
                (None, Some(authority)) => Credentials::Certificate(admin(authority)?),
                (None, None) => Credentials::None,
            };
            let way = listener.kubeconfig(credentials, stage.namespace.as_deref());
            let path = stage.kubeconfig.as_deref().map(|path| match replica {
                Replica::Primary => path.to_owned(),
                Replica::Secondary => path.with_added_extension("secondary"),
            });
            kubeconfigs.push(Kubeconfig::write(&way, path.as_deref())?);
            if let Some(folder) = stage
                .service_account
                .as_deref()
                .filter(|_| service_account.is_none())
            {
                service_account = Some(ServiceAccount::write(&way, folder)?);
            }
            servers.push((replica.word().to_owned(), way.server));
        }
        let token = match stage.control_token {
            Some(token) => token,
            None => random::word()?,
        };
        let control = Control::listen(stage.control_port, token).await?;
        let state = State {
            pid: std::process::id(),
            control: control.url(),
            token: control.token().to_owned(),
            server: servers[0].1.clone(),
            what: stage.what,
            kubeconfigs: kubeconfigs
                .iter()
                .map(|kubeconfig| kubeconfig.path().display().to_string())
                .collect(),
        };
        // A server without state file is served nevertheless; --control finds it.
        let state_file = StateFile::write(&state)
            .inspect_err(|failure| {
                output::log(&format!(
                    "warning: ctl cannot find this server without --control: {failure}"
                ));
            })
            .ok();
        let mut server = stage.server;
        // Read when time starts: other components compare object times with their own clock.
        if let Some(wall_clock) = stage.wall_clock {
            server.starts_at(wall_clock());
        }
        let (kubernetes, does) = stage.origin.words();
        let forwards = matches!(stage.origin, Origin::Upstream { .. });
        Ok(Self {
            edge: match stage.origin {
                Origin::Model(_) => Edge::with_webhooks(server, stage.serving.webhooks),
                Origin::Upstream { upstream, .. } => Edge::with_upstream(server, upstream),
            },
            does,
            listeners,
            about: About {
                kubernetes,
                what: state.what.clone(),
                forwards,
                servers,
                kubeconfig: kubeconfigs[0].path().display().to_string(),
            },
            control: Some(control),
            kubeconfigs,
            _service_account: service_account,
            judge,
            watches: Watches::new(forwards),
            ui: stage.ui,
            state,
            _state_file: state_file,
        })
    }

    /// Prints the address on standard output, and logs it. A closed standard output does not stop the server: its kubeconfig
    /// is logged instead.
    ///
    /// # Errors
    ///
    /// Standard output is not read, and a stop was requested.
    pub(crate) async fn introduce(&self, stop: &Stop, announce: Announce) -> Result<(), Failure> {
        let export = match announce {
            Announce::Shell => format!("export KUBECONFIG={}\n", quoted(&self.about.kubeconfig)),
            Announce::Json => {
                let state = serde_json::to_string(&self.state);
                state.expect("plain strings and numbers always serialize") + "\n"
            }
        };
        if let Err(failure) = output::print(export.clone(), stop).await {
            if stop.is_requested() {
                return Err(failure);
            }
            output::log(&format!("warning: {failure}"));
            output::log(export.trim_end());
        }
        for (kubeconfig, (replica, url)) in self.kubeconfigs.iter().zip(&self.about.servers).skip(1) {
            let path = quoted(&kubeconfig.path().display().to_string());
            output::log(&format!("{replica} replica at {url}: export KUBECONFIG={path}"));
        }
        if let Some(control) = &self.control {
            output::log(&format!(
                "{} at {}, control API at {}; add faults from another shell: fake-apiserver ctl --help",
                self.does,
                self.about.servers[0].1,
                control.url()
            ));
        }
        self.introduce_page();
        Ok(())
    }

    /// Returns the URL of the first replica.
    pub(crate) fn url(&self) -> &str {
        &self.about.servers[0].1
    }

    /// Logs the URL of the live view, if it is served.
    pub(crate) fn introduce_page(&self) {
        if self.ui {
            let State { control, token, .. } = &self.state;
            output::log(&format!("live view at {}", page_url(control, token)));
        }
    }

    /// Returns port and token of the control API.
    pub(crate) fn seat(&self) -> (u16, String) {
        let State { control, token, .. } = &self.state;
        let port = control.rsplit(':').next().and_then(|port| port.parse().ok());
        (port.unwrap_or(0), token.clone())
    }

    /// Returns the path of the kubeconfig of the first replica.
    pub(crate) fn kubeconfig(&self) -> &Path {
        self.kubeconfigs[0].path()
    }

    /// Returns the environment variables by which a process finds the control API.
    pub(crate) fn control(&self) -> [(&'static str, String); 2] {
        let State { control, token, .. } = &self.state;
        [
            ("FAKE_APISERVER_CONTROL", control.clone()),
            ("FAKE_APISERVER_CONTROL_TOKEN", token.clone()),
        ]
    }

    /// Serves until `stop` completes; `hear` receives every record from `from` on, in order, including those of the end.
    pub(crate) async fn serve(
        &mut self,
        from: u64,
        stop: impl Future<Output = ()>,
        mut on_records: impl FnMut(Duration, &[Record]),
    ) {
        let mut next_seq = from;
        let (edge, about, judge) = (self.edge.clone(), self.about.clone(), self.judge.clone());
        let (watches, shows_page) = (self.watches.clone(), self.ui);
        let (stopping, _) = tokio::sync::watch::channel(false);
        let replicas = std::mem::take(&mut self.listeners);
        let control = self.control.take();
        let serving = replicas.into_iter().map(|(replica, listener)| {
            let mut stopped = stopping.subscribe();
            let stop = async move {
                // An error means that the sender was dropped, which is a stop too.
                let _ = stopped.wait_for(|stopped| *stopped).await;
            };
            listener.serve(edge.at(replica), stop)
        });
        let serving = futures::future::join_all(serving);
        let steering = async {
            match control {
                Some(control) => {
                    control
                        .serve(edge.clone(), about, judge, watches, shows_page)
                        .await;
                }
                None => std::future::pending().await,
            }
        };
        let stop = async {
            stop.await;
            // No receiver is left, which is fine.
            let _ = stopping.send(true);
            std::future::pending::<()>().await;
        };
        let others: [Pin<Box<dyn Future<Output = ()> + '_>>; 5] = [
            Box::pin(serving.map(drop)),
            Box::pin(self.edge.keep_time()),
            Box::pin(steering),
            Box::pin(stop),
            Box::pin(self.edge.broken()),
        ];
        // Every request wakes this task, to read its records. The set polls only those of the others that were woken.
        let mut others = FuturesUnordered::from_iter(others);
        tokio::select! {
            _ = others.next() => {}
            () = follow_records(&self.edge, &mut next_seq, &mut on_records) => {}
        }
        drop(others);
        while read_new_records(&self.edge, &mut next_seq, &mut on_records) {}
    }
}

/// Checks that the server has not failed. Called after it was served.
///
/// # Errors
///
/// It panicked, or `net` lost it: its records prove nothing.
pub(crate) fn unbroken(edge: &Edge) -> Result<(), Failure> {
    edge.breakage()
        .map_or(Ok(()), |message| Err(Failure::Broken(message)))
}

/// Runs `work` on a new runtime, with a handle that completes on SIGINT and SIGTERM.
///
/// # Errors
///
/// Those of `work`, or no runtime can be created.
pub(crate) fn block_on<T>(work: impl AsyncFnOnce(Stop) -> Result<T, Failure>) -> Result<T, Failure> {
    bear_many_connections();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::System("cannot start the async runtime".to_owned(), error))?;
    let done = runtime.block_on(async { work(Stop::listen()).await });
    // A write that is not read must not block the exit.
    runtime.shutdown_background();
    done
}

/// Raises the limit of open files of this process to the hard limit: the default is too low for thousands of watches.
fn bear_many_connections() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: maximum,
        maximum,
    };
    if current != maximum
        && let Err(error) = setrlimit(Resource::Nofile, raised)
    {
        tracing::warn!(%error, ?current, "the number of connections stays limited");
    }
}

async fn listen(options: ServeOptions) -> Result<Listening, Failure> {
    options.bind().await.map_err(|error| match error {
        ServeError::NotLoopback(_) => Failure::Usage(format!(
            "{error}: add --tls and --token, or use --address 127.0.0.1"
        )),
        ServeError::Bind(_, _) | ServeError::Address(_) | ServeError::Tls(_) => {
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            Failure::System(error.to_string(), io::Error::other(cause.unwrap_or_default()))
        }
    })
}

/// Returns how to serve a scenario: by its settings, and over TLS if requested.
pub(crate) fn serving(settings: &ServerSettings, tls: bool) -> ServeOptions {
    let options = ServeOptions::for_scenario(settings);
    let asked = tls.then(TlsOptions::default);
    ServeOptions {
        tls: options.tls.or(asked),
        ..options
    }
}

/// Passes on every record. Does not return.
#[expect(clippy::disallowed_methods, reason = "the edge waits")]
async fn follow_records(edge: &Edge, next_seq: &mut u64, on_records: &mut impl FnMut(Duration, &[Record])) {
    // Moved only when it fires: requests come more often than silence, and need no timer each.
    let mut silence = pin!(tokio::time::sleep(SILENCE));
    let mut heard = edge.elapsed();
    loop {
        let stirred = edge.stirred();
        loop {
            let_deliveries_go_first(edge).await;
            if !read_new_records(edge, next_seq, on_records) {
                break;
            }
            heard = edge.elapsed();
            // Long histories must not block other tasks.
            tokio::task::yield_now().await;
        }
        tokio::select! {
            biased;
            () = stirred => {}
            () = silence.as_mut() => {
                let now = edge.elapsed();
                if now >= heard + SILENCE {
                    // Open responses can prove something at the end.
                    on_records(now, &[]);
                    heard = now;
                }
                silence.as_mut().reset(tokio::time::Instant::now() + (heard + SILENCE - now));
            }
        }
    }
}

/// Deliveries take precedence over the log.
async fn let_deliveries_go_first(edge: &Edge) {
    for _ in 0..DELIVERIES_FIRST {
        if !edge.is_delivering() {
            break;
        }
        tokio::task::yield_now().await;
    }
}

/// Passes on some records, if there are any.
fn read_new_records(
    edge: &Edge,
    next_seq: &mut u64,
    on_records: &mut impl FnMut(Duration, &[Record]),
) -> bool {
    edge.read_records(*next_seq, |records| {
        let records = &records[..records.len().min(RECORDS_AT_A_TIME)];
        if let Some(last) = records.last() {
            *next_seq = last.seq + 1;
            on_records(last.at, records);
        }
        !records.is_empty()
    })
}

/// Returns a certificate of an administrator.
fn admin(authority: &Authority) -> Result<Identity, Failure> {
    let identity = authority.client("admin", Some(ADMINS));
    identity.map_err(|error| {
        Failure::System(
            "cannot create a client certificate".to_owned(),
            io::Error::other(error),
        )
    })
}

//! `fake-apiserver serve`: an in-memory apiserver without a scenario, for kubectl or any other client.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::{Args, ValueEnum};
use fake_apiserver::api::access::Authorization;
use fake_apiserver::net::{ServeOptions, TlsOptions};
use fake_apiserver::record::line::printable;
use fake_apiserver::scenario::{ServerSettings, Version};
use fake_apiserver::server::Server;
use judge::wire::Loops;
use recording::Header;

use crate::judging::{Judge, JudgeArguments};
use crate::recorder::RecordArguments;
use crate::session::Session;
use crate::stage::{self, Announce, Origin, Stage};
use crate::token::Tokens;
use crate::webhooks::Called;
use crate::{Failure, objects, output, snapshot};

/// Events per resource that can be replayed: enough for a client that was disconnected for a while. A real watch cache grows
/// with the traffic.
pub(crate) const WATCH_CACHE_CAPACITY: usize = 10_000;

/// Run an in-memory apiserver (no faults until you add rules).
///
/// Listens on 127.0.0.1 until interrupted. Prints `export KUBECONFIG=…` on standard output once it listens, and logs
/// requests and responses on standard error. State is in memory and is lost on exit. Add faults from another shell with
/// `fake-apiserver ctl`.
///
/// Example: fake-apiserver serve --objects pods.yaml --port 6443
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Begin with the objects of a snapshot, at its version.
    ///
    /// What `fake-apiserver snapshot` wrote: versions, uids, times and status stay. Clients of the cluster go on from the versions
    /// and continue tokens that they have. With another --kubernetes-version the server creates what it lacks at start, as after an
    /// upgrade, and kinds that it does not serve are left out.
    #[arg(long, value_name = "DIR|FILE")]
    from: Option<PathBuf>,
    /// Create objects from this file or folder at startup (repeatable).
    ///
    /// Files are YAML or JSON. Missing namespaces are created.
    #[arg(long, value_name = "FILE|DIR")]
    objects: Vec<PathBuf>,
    /// Create the CustomResourceDefinitions of this file or folder (repeatable).
    #[arg(long, value_name = "FILE|DIR")]
    crd: Vec<PathBuf>,
    /// Start without the bootstrap objects of kube-apiserver, except namespaces.
    #[arg(long)]
    bare: bool,
    #[command(flatten)]
    listening: Listening,
    #[arg(
        long,
        value_name = "VERSION",
        help = emulated(),
        long_help = format!("{}\n\nWith --from the default is the version of the snapshot.", emulated())
    )]
    kubernetes_version: Option<Version>,
    /// Serve HTTPS with a CA created at start; the kubeconfig trusts it.
    #[arg(long)]
    tls: bool,
    /// Address to listen on; others than loopback require --tls and --token.
    #[arg(long, default_value = "127.0.0.1", value_name = "IP")]
    address: IpAddr,
    /// Add a host name or address to the certificate (repeatable).
    ///
    /// The listen address and localhost are always included.
    #[arg(long, value_name = "NAME", requires = "tls")]
    tls_name: Vec<String>,
    /// Open a second port: a replica with separate watch caches.
    ///
    /// Both replicas serve the same store. `ctl freeze` and `ctl lag` make one of them stale.
    #[arg(long)]
    secondary: bool,
    /// How to print on standard output where the server is.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Announce::Shell)]
    announce: Announce,
    /// Stop when standard input is closed, as it is when the parent process dies.
    ///
    /// For programs that start a server for a test: none is left behind if the test is killed.
    #[arg(long)]
    exit_with_stdin: bool,
    /// Log only violations by clients.
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    tokens: Tokens,
    /// Authorization mode [default: RBAC with a token, AlwaysAllow without].
    ///
    /// RBAC: roles and bindings decide, as on a real server; members of `system:masters` may do everything. Requires --token
    /// or --tls: without them every client is `system:anonymous`.
    #[arg(long, value_name = "MODE", value_enum, help_heading = "Access")]
    authorization_mode: Option<Mode>,
    /// Webhooks to call: those of this machine, any, or none.
    ///
    /// With `any`, webhook configurations and definitions that clients store cause requests to other machines.
    #[arg(long, value_name = "WHICH", value_enum, default_value_t = Called::Local, help_heading = "Access")]
    webhooks: Called,
    #[command(flatten)]
    judging: JudgeArguments,
    #[command(flatten)]
    recording: RecordArguments,
}

/// Authorization modes, named as by kube-apiserver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Mode {
    /// Everything is allowed.
    #[value(name = "AlwaysAllow")]
    AlwaysAllow,
    /// Roles and bindings decide.
    #[value(name = "RBAC")]
    Rbac,
}

impl From<Mode> for Authorization {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::AlwaysAllow => Self::AlwaysAllow,
            Mode::Rbac => Self::Rbac,
        }
    }
}

/// Options of the served API and the control API, shared by `serve` and `play`.
#[derive(Debug, Args)]
pub(crate) struct Listening {
    /// Port to listen on; 0 selects a free port.
    #[arg(long, default_value_t = 0)]
    pub(crate) port: u16,
    /// Write the kubeconfig to this new file; it is removed on exit.
    ///
    /// An existing file is never overwritten, except a kubeconfig left by a killed server.
    #[arg(long, value_name = "PATH")]
    pub(crate) kubeconfig: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) control: ControlArguments,
}

/// Options of the control API, and the seed.
#[derive(Debug, Args)]
pub(crate) struct ControlArguments {
    /// Port of the control API; 0 selects a free port.
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub(crate) control_port: u16,
    /// Bearer token for the control API [default: random, shared with `ctl`].
    #[arg(
        long,
        value_name = "TOKEN",
        env = "FAKE_APISERVER_CONTROL_TOKEN",
        hide_env_values = true
    )]
    pub(crate) control_token: Option<String>,
    /// Serve the live view on the control API's port, and print its URL.
    ///
    /// A page for a browser on this machine: open watches and how far they are behind, requests, events, rules and violations as
    /// they happen, and buttons for the verbs of `ctl`. The URL contains the control token.
    #[arg(long)]
    pub(crate) ui: bool,
    /// Seed for all randomness (generated names, watch timeouts).
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
}

/// Returns the help of `--kubernetes-version`.
fn emulated() -> String {
    format!(
        "Kubernetes minor version to emulate: {} [default: {}]",
        Version::names(),
        Version::NEWEST
    )
}

/// Returns the time since 1970, so that objects show their true age.
#[expect(clippy::disallowed_methods, reason = "the edge hands in the time")]
pub(crate) fn wall_clock() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// A server before its first request.
struct Beginning {
    server: Server,
    version: Version,
    /// Number of objects of the snapshot.
    count: usize,
    judge: Judge,
}

impl Beginning {
    /// Returns a server of a new cluster, or one that begins with a snapshot.
    fn of(serve: &Serve, settings: ServerSettings) -> Result<Self, Failure> {
        let seed = serve.listening.control.seed;
        let Some(path) = &serve.from else {
            return Ok(Self {
                version: settings.version,
                server: Server::standalone(settings, seed),
                count: 0,
                judge: Judge::new(Loops::Many, Vec::new()),
            });
        };
        let loaded = snapshot::load(snapshot::Wanted {
            path,
            version: serve.kubernetes_version,
            settings,
            seed,
            bare: serve.bare,
        })?;
        loaded.notes.iter().for_each(|note| output::log(&printable(note)));
        Ok(Self {
            server: loaded.server,
            version: loaded.version,
            count: loaded.objects,
            judge: Judge::resuming_from(Loops::Many, loaded.revision),
        })
    }
}

/// Serves until interrupted.
///
/// # Errors
///
/// The objects are invalid, or a system error.
pub(crate) fn run(serve: Serve) -> Result<(), Failure> {
    serve.judging.check()?;
    let settings = ServerSettings {
        version: serve.kubernetes_version.unwrap_or(Version::NEWEST),
        watch_cache_capacity: WATCH_CACHE_CAPACITY,
        epoch_seconds: wall_clock().as_secs(),
        ..ServerSettings::default()
    };
    let kept = serve.recording.kept()?;
    let Beginning {
        mut server,
        version,
        count,
        judge,
    } = Beginning::of(&serve, settings)?;
    let access = serve.tokens.access()?;
    if serve.authorization_mode == Some(Mode::Rbac) && access.is_none() && !serve.tls {
        return Err(Failure::Usage(
            "--authorization-mode=RBAC needs --token or --tls: without them every client is system:anonymous"
                .to_owned(),
        ));
    }
    if let Some(kept) = kept {
        server = server.keeping_content(kept);
    }
    if serve.from.is_none() && !serve.bare {
        server = server.with_bootstrap_objects();
    }
    let count = count + objects::put(&mut server, &serve.crd, &serve.objects)?;
    server.mark_initial_state();
    if let Some(access) = access.clone() {
        server = server.with_access(access);
    }
    if let Some(mode) = serve.authorization_mode {
        server = server.with_authorization(mode.into());
    }
    if serve.secondary {
        server = server.with_secondary();
    }
    let listening = serve.listening;
    let shown_from = server.next_record();
    let recorder = serve
        .recording
        .open(Header::new("serve", version.name(), recording::Origin::Model))?;
    let stage = Stage {
        server: server.keeping(stage::RECORDS_KEPT),
        what: match count {
            0 => "no scenario".to_owned(),
            1 => "no scenario, 1 object".to_owned(),
            count => format!("no scenario, {count} objects"),
        },
        origin: Origin::Model(version),
        wall_clock: Some(wall_clock),
        serving: ServeOptions {
            address: SocketAddr::new(serve.address, listening.port),
            tls: serve.tls.then(|| TlsOptions {
                names: serve.tls_name,
                ..TlsOptions::default()
            }),
            access,
            webhooks: serve.webhooks.into(),
            ..ServeOptions::default()
        },
        control_port: listening.control.control_port,
        control_token: listening.control.control_token,
        ui: listening.control.ui,
        namespace: None,
        kubeconfig: listening.kubeconfig,
        service_account: None,
    };
    let session = Session {
        announce: serve.announce,
        introduction: None,
        exit_with_stdin: serve.exit_with_stdin,
        shows_all: !serve.quiet,
        shown_from,
        judging: serve.judging,
        recorder,
    };
    stage::block_on(async |stop| {
        stop.or_end_unnoticed();
        session.hold(stage, judge, &stop).await
    })
}

//! `fake-apiserver proxy`: a real apiserver with the faults, rules and judge of `serve` in front of it.
//!
//! It must not know how requests are forwarded, or what an upstream can do: the server behind the edge is the same.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use fake_apiserver::api::Access;
use fake_apiserver::net::{ServeOptions, TlsOptions};
use fake_apiserver::record::line::printable;
use fake_apiserver::server::Server;
use fake_apiserver::upstream::{Lends, Settings};
use judge::wire::Loops;
use recording::Header;
use upstream::{Cluster, Lending, LoadError, ProbeError};

use crate::judging::{Judge, JudgeArguments};
use crate::recorder::RecordArguments;
use crate::serve::ControlArguments;
use crate::session::Session;
use crate::stage::{self, Announce, Origin, Stage};
use crate::{Failure, output, random};

/// Put faults, rules and the judge in front of a real apiserver.
///
/// Listens on 127.0.0.1 with TLS until interrupted, and forwards to the apiserver of a kubeconfig. Prints
/// `export KUBECONFIG=…` for clients on standard output. Without rules every response is the apiserver's. LIST and WATCH are
/// requested in JSON without compression, because rules, trace and verdict read them; everything else passes as it is. Add
/// faults from another shell with `fake-apiserver ctl`. Only clients write to the cluster, unless --allow-writes lets rules do so.
///
/// A request with its own credentials (a bearer token) is forwarded with them. One with the proxy's token, which is in the
/// printed kubeconfig, is rejected, unless --as or --as-me lends it an identity.
///
/// Example: fake-apiserver proxy --kubeconfig ~/.kube/config --context staging --as-me
#[derive(Debug, Args)]
pub(crate) struct Proxy {
    /// Kubeconfig of the cluster to forward to.
    #[arg(long, value_name = "FILE")]
    kubeconfig: PathBuf,
    /// Context of the kubeconfig [default: its current one].
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// Lend clients the rights of this user, by impersonation.
    ///
    /// The user of the kubeconfig needs the right to impersonate.
    #[arg(
        long = "as",
        value_name = "USER",
        conflicts_with = "as_me",
        help_heading = "Access"
    )]
    as_user: Option<String>,
    /// Group of the user of --as (repeatable).
    #[arg(long, value_name = "GROUP", requires = "as_user", help_heading = "Access")]
    as_group: Vec<String>,
    /// Lend clients the identity of the kubeconfig.
    #[arg(long, help_heading = "Access")]
    as_me: bool,
    /// Let rules write to the cluster (apply, delete, relabel).
    ///
    /// With the identity of --as or --as-me, and only what a rule of the control API writes. Objects are applied as by
    /// `kubectl apply --server-side --force-conflicts`, by the field manager `fake-apiserver`.
    #[arg(long, help_heading = "Access")]
    allow_writes: bool,
    /// Port to listen on; 0 selects a free port.
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Write the kubeconfig for clients to this new file; it is removed on exit.
    ///
    /// An existing file is never overwritten, except a kubeconfig left by a killed server.
    #[arg(long, value_name = "PATH")]
    client_kubeconfig: Option<PathBuf>,
    #[command(flatten)]
    control: ControlArguments,
    /// How to print on standard output where the proxy is.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Announce::Shell)]
    announce: Announce,
    /// Stop when standard input is closed, as it is when the parent process dies.
    #[arg(long)]
    exit_with_stdin: bool,
    /// Log only violations by clients.
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    judging: JudgeArguments,
    #[command(flatten)]
    recording: RecordArguments,
}

impl Proxy {
    fn lending(&self) -> Lending {
        match &self.as_user {
            Some(name) => Lending::User {
                name: name.clone(),
                groups: self.as_group.clone(),
            },
            None if self.as_me => Lending::Oneself,
            None => Lending::Nothing,
        }
    }
}

/// Forwards until interrupted.
///
/// # Errors
///
/// The kubeconfig cannot be used, its cluster does not answer, or a system error.
pub(crate) fn run(proxy: Proxy) -> Result<(), Failure> {
    proxy.judging.check()?;
    if proxy.allow_writes && proxy.lending() == Lending::Nothing {
        return Err(Failure::Usage(
            "--allow-writes needs an identity to write with: add --as USER or --as-me".to_owned(),
        ));
    }
    let kept = proxy.recording.kept()?;
    let token = random::word()?;
    let signing_secret = random::bytes()?;
    stage::block_on(async |stop| {
        stop.or_end_unnoticed();
        let lending = proxy.lending();
        let cluster = upstream::load(&proxy.kubeconfig, proxy.context.as_deref(), &lending).await;
        let cluster = cluster.map_err(unusable)?;
        let version = cluster.probe().await.map_err(|error| unanswered(&error))?;
        let kubernetes = version.as_deref().unwrap_or_default();
        let recorder = proxy
            .recording
            .open(Header::new("proxy", kubernetes, recording::Origin::Upstream))?;
        let definitions = match proxy.allow_writes {
            true => cluster.definitions().await.unwrap_or_else(|why| {
                let why = printable(&why).into_owned();
                output::log(&format!("rules cannot write custom resources: {why}"));
                Vec::new()
            }),
            false => Vec::new(),
        };
        let mut stage = staged(&proxy, cluster, version, token, signing_secret);
        for definition in &definitions {
            stage.server.know_definition(definition);
        }
        if let Some(kept) = kept {
            stage.server = stage.server.keeping_content(kept);
        }
        let session = Session {
            announce: proxy.announce,
            introduction: Some(introduction(&lending)),
            exit_with_stdin: proxy.exit_with_stdin,
            shows_all: !proxy.quiet,
            shown_from: 0,
            judging: proxy.judging,
            recorder,
        };
        let judge = Judge::of_upstream(Loops::Many);
        session.hold(stage, judge, &stop).await
    })
}

fn staged(
    proxy: &Proxy,
    cluster: Cluster,
    version: Option<String>,
    token: String,
    signing_secret: [u8; 32],
) -> Stage {
    let settings = Settings {
        token: token.clone(),
        lends: match proxy.lending() {
            Lending::Nothing => Lends::Nothing,
            Lending::Oneself | Lending::User { .. } => Lends::ForToken,
        },
        may_write: proxy.allow_writes,
    };
    let url = cluster.server().to_owned();
    Stage {
        server: Server::forwarding(settings, proxy.control.seed).keeping(stage::RECORDS_KEPT),
        what: format!("a proxy for {url}"),
        origin: Origin::Upstream {
            upstream: Arc::new(cluster),
            url,
            version,
        },
        wall_clock: None,
        serving: ServeOptions {
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, proxy.port)),
            tls: Some(TlsOptions::default()),
            access: Some(Access {
                token,
                limited_token: None,
                signing_secret,
            }),
            checks_pages: true,
            ..ServeOptions::default()
        },
        control_port: proxy.control.control_port,
        control_token: proxy.control.control_token.clone(),
        ui: proxy.control.ui,
        namespace: None,
        kubeconfig: proxy.client_kubeconfig.clone(),
    }
}

fn introduction(lending: &Lending) -> String {
    let who = match lending {
        Lending::Nothing => {
            "requests need their own credentials, because neither --as nor --as-me lends any".to_owned()
        }
        Lending::Oneself => "requests with the proxy's token have the identity of the kubeconfig".to_owned(),
        Lending::User { name, .. } => format!("requests with the proxy's token impersonate {name}"),
    };
    format!("{who}; LIST and WATCH are requested in JSON")
}

/// Returns the failure of a kubeconfig that cannot be used.
pub(crate) fn unusable(error: LoadError) -> Failure {
    match error {
        LoadError::Unreadable { .. }
        | LoadError::NoContext { .. }
        | LoadError::NoCurrentContext { .. }
        | LoadError::Unusable { .. } => Failure::Usage(error.to_string()),
        LoadError::NoCredentials { .. } => Failure::NoServer(error.to_string()),
    }
}

/// Returns the failure of a cluster that does not answer.
pub(crate) fn unanswered(error: &ProbeError) -> Failure {
    Failure::NoServer(error.to_string())
}

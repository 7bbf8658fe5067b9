//! `fake-apiserver proxy`: a real apiserver with the faults, rules and judge of `serve` in front of it.
//!
//! It must not know how requests are forwarded, or what an upstream can do: the server behind the edge is the same.

use std::path::PathBuf;

use clap::Args;
use judge::wire::Loops;
use recording::Header;
use upstream::Lending;

use crate::Failure;
use crate::cluster::ClusterArguments;
use crate::judging::{Judge, JudgeArguments};
use crate::recorder::RecordArguments;
use crate::serve::ControlArguments;
use crate::session::Session;
use crate::stage::{self, Announce};

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
    #[command(flatten)]
    cluster: ClusterArguments,
    /// Port to listen on; 0 selects a free port.
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Write the kubeconfig for clients to this new file; it is removed on exit.
    ///
    /// An existing file is never overwritten, except a kubeconfig left by a killed server.
    #[arg(long, value_name = "PATH")]
    client_kubeconfig: Option<PathBuf>,
    /// Also write token, ca.crt and namespace for clients to this directory.
    ///
    /// Laid out as the mount of a service account, for a client that loads an in-cluster configuration: a container of the same pod
    /// that has this directory at /var/run/secrets/kubernetes.io/serviceaccount, KUBERNETES_SERVICE_HOST=127.0.0.1 and
    /// KUBERNETES_SERVICE_PORT as --port. The files are removed on exit.
    #[arg(long, value_name = "DIR")]
    client_service_account: Option<PathBuf>,
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

/// Forwards until interrupted.
///
/// # Errors
///
/// The kubeconfig cannot be used, its cluster does not answer, or a system error.
pub(crate) fn run(proxy: Proxy) -> Result<(), Failure> {
    proxy.judging.check()?;
    proxy.cluster.check()?;
    let kept = proxy.recording.kept()?;
    stage::block_on(async |stop| {
        stop.or_end_unnoticed();
        let connected = proxy.cluster.connect().await?;
        let kubernetes = connected.version.as_deref().unwrap_or_default();
        let recorder = proxy
            .recording
            .open(Header::new("proxy", kubernetes, recording::Origin::Upstream))?;
        let mut stage = connected.stage(proxy.control.seed)?;
        stage.server = stage.server.keeping(stage::RECORDS_KEPT);
        stage.serving.address.set_port(proxy.port);
        stage.control_port = proxy.control.control_port;
        stage.control_token.clone_from(&proxy.control.control_token);
        stage.ui = proxy.control.ui;
        stage.kubeconfig.clone_from(&proxy.client_kubeconfig);
        stage.service_account.clone_from(&proxy.client_service_account);
        if let Some(kept) = kept {
            stage.server = stage.server.keeping_content(kept);
        }
        let session = Session {
            announce: proxy.announce,
            introduction: Some(introduction(&proxy.cluster)),
            exit_with_stdin: proxy.exit_with_stdin,
            shows_all: !proxy.quiet,
            shown_from: 0,
            judging: proxy.judging,
            recorder,
        };
        let judge = Judge::of_upstream(Loops::Many, Vec::new());
        session.hold(stage, judge, &stop).await
    })
}

fn introduction(cluster: &ClusterArguments) -> String {
    let who = match cluster.lending() {
        Lending::Nothing => {
            "requests need their own credentials, because neither --as nor --as-me lends any".to_owned()
        }
        Lending::Oneself => {
            format!(
                "requests with the proxy's token have the identity of the {}",
                cluster.source()
            )
        }
        Lending::User { name, .. } => format!("requests with the proxy's token impersonate {name}"),
    };
    format!("{who}; LIST and WATCH are requested in JSON")
}

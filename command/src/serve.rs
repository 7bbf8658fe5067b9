//! `fake-apiserver serve`: the truth alone, for kubectl or any other client.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Args;
use fake_apiserver::net::{ServeOptions, TlsOptions};
use fake_apiserver::record::Record;
use fake_apiserver::scenario::{ServerSettings, Version};
use fake_apiserver::server::Server;
use judge::wire::Loops;

use crate::judging::{Commentator, Judge, JudgeArguments, conclude};
use crate::stage::{self, Running, Stage};
use crate::token::Tokens;
use crate::{Failure, objects};

/// Events of a resource that can be replayed: enough for a client that was away for a while, as on a real server, whose
/// watch caches grow with the traffic.
const WATCH_CACHE_CAPACITY: usize = 10_000;

/// Serve an apiserver that only tells the truth on 127.0.0.1 until interrupted, for kubectl or any other client.
///
/// Prints `export KUBECONFIG=…` on standard output once the server listens, and what happens, line by line, on
/// standard error. Whatever is written is forgotten at the end.
///
/// Example: fake-apiserver serve --objects pods.yaml --port 6443
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Objects that are there from the start: a file of YAML or JSON, or a folder of them. May be given several times.
    /// Namespaces that they name are made.
    #[arg(long, value_name = "FILE|DIR")]
    objects: Vec<PathBuf>,
    /// CustomResourceDefinitions, served from the start: a file or a folder. May be given several times.
    #[arg(long, value_name = "FILE|DIR")]
    crd: Vec<PathBuf>,
    /// Start with namespaces only, without the objects that a kube-apiserver creates when it starts.
    #[arg(long)]
    bare: bool,
    #[command(flatten)]
    listening: Listening,
    /// The Kubernetes minor to answer as: 1.33, 1.34, 1.35 or 1.36.
    #[arg(long, default_value = "1.36", value_parser = minor)]
    kubernetes_version: Version,
    #[command(flatten)]
    tokens: Tokens,
    /// Serve HTTPS, with an authority made for this run; the kubeconfig has it.
    #[arg(long)]
    tls: bool,
    /// The address to listen on; beyond this machine only with --tls and --token.
    #[arg(long, default_value = "127.0.0.1", value_name = "IP")]
    address: IpAddr,
    /// Host names and addresses the certificate is for, beside the address and localhost.
    #[arg(long, value_name = "NAME", requires = "tls")]
    tls_name: Vec<String>,
    /// Open a second port: another apiserver over the same truth, with watch caches of its own that can be frozen.
    #[arg(long)]
    twin: bool,
    #[command(flatten)]
    judging: JudgeArguments,
    /// Show nothing of what happens but what clients do wrong.
    #[arg(short, long)]
    quiet: bool,
}

/// Where to listen, and how to be steered: the same for whatever is served.
#[derive(Debug, Args)]
pub(crate) struct Listening {
    /// The port to listen on; 0 takes a free one.
    #[arg(long, default_value_t = 0)]
    pub(crate) port: u16,
    /// Write the kubeconfig to this new file; it is removed at the end. A file that exists is never overwritten.
    #[arg(long, value_name = "PATH")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// The port of the control API; 0 takes a free one.
    #[arg(long, default_value_t = 0)]
    pub(crate) control_port: u16,
    /// What the control API lets in; made up by default, and known to `ctl`.
    #[arg(long, env = "FAKE_APISERVER_CONTROL_TOKEN", hide_env_values = true)]
    pub(crate) control_token: Option<String>,
    /// What chance decides by: generated names, how long watches without a timeout live.
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
}

/// Time since 1970, from the only clock this command reads: objects that people look at should be as old as they are.
#[expect(clippy::disallowed_methods, reason = "the edge hands in the time")]
fn wall_clock() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Serves until interrupted.
///
/// # Errors
/// The objects are wrong, or the system refuses something.
pub(crate) fn run(serve: Serve) -> Result<(), Failure> {
    let settings = ServerSettings {
        version: serve.kubernetes_version,
        watch_cache_capacity: WATCH_CACHE_CAPACITY,
        epoch_seconds: wall_clock().as_secs(),
        ..ServerSettings::default()
    };
    let listening = serve.listening;
    let access = serve.tokens.access()?;
    let mut server = Server::standalone(settings, listening.seed);
    if !serve.bare {
        server = server.with_bootstrap_objects();
    }
    let count = objects::put(&mut server, &serve.crd, &serve.objects)?;
    server.begin_here();
    if let Some(access) = access.clone() {
        server = server.with_access(access);
    }
    if serve.twin {
        server = server.with_twin();
    }
    let shown_from = server.next_record();
    let stage = Stage {
        server: server.keeping(stage::RECORDS_KEPT),
        what: match count {
            0 => "the truth".to_owned(),
            1 => "the truth, with 1 object".to_owned(),
            count => format!("the truth, with {count} objects"),
        },
        version: serve.kubernetes_version,
        wall_clock: Some(wall_clock),
        serving: ServeOptions {
            address: SocketAddr::new(serve.address, listening.port),
            tls: serve.tls.then(|| TlsOptions {
                names: serve.tls_name,
                ..TlsOptions::default()
            }),
            access,
            ..ServeOptions::default()
        },
        control_port: listening.control_port,
        control_token: listening.control_token,
        namespace: None,
        kubeconfig: listening.kubeconfig,
    };
    let judge = Judge::new(Loops::Many, Vec::new());
    let commentator = Commentator {
        judge: judge.clone(),
        shows_all: !serve.quiet,
    };
    stage::block_on(async |stop| {
        let mut running = Running::open(stage, judge.clone()).await?;
        running.introduce(&stop).await?;
        let hear = |now, records: &[Record]| commentator.hear(now, records);
        running.serve(shown_from, stop.requested(), hear).await;
        stage::unbroken(&running.edge)?;
        drop(running);
        conclude(&judge.verdict(), &serve.judging, &stop).await
    })
}

pub(crate) fn minor(text: &str) -> Result<Version, String> {
    match text {
        "1.33" => Ok(Version::V1_33),
        "1.34" => Ok(Version::V1_34),
        "1.35" => Ok(Version::V1_35),
        "1.36" => Ok(Version::V1_36),
        _ => Err("known are 1.33, 1.34, 1.35 and 1.36".to_owned()),
    }
}

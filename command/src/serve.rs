//! `fake-apiserver serve`: the truth alone, for kubectl or any other client.

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;
use fake_apiserver::api::Access;
use fake_apiserver::manifests;
use fake_apiserver::scenario::{ServerSettings, Version};
use fake_apiserver::server::Server;

use crate::Failure;
use crate::stage::{self, Stage};

/// Serve an apiserver that only tells the truth on 127.0.0.1 until interrupted, for kubectl or any other client.
///
/// Prints `export KUBECONFIG=…` on standard output once the server listens, and what happens, line by line, on
/// standard error. Whatever is written is forgotten at the end.
///
/// Example: fake-apiserver serve --objects pods.yaml --port 6443
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Objects that are there from the start, as YAML or JSON, one or several documents. Namespaces that they name
    /// are made.
    #[arg(long, value_name = "FILE")]
    objects: Option<PathBuf>,
    /// The port to listen on; 0 takes a free one.
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// The Kubernetes minor to answer as: 1.33, 1.34, 1.35 or 1.36.
    #[arg(long, default_value = "1.36", value_parser = minor)]
    kubernetes_version: Version,
    /// Let in only who sends this bearer token; the kubeconfig has it.
    #[arg(long)]
    token: Option<String>,
    /// The bearer token of the user `limited`, who may read discovery and nothing else.
    #[arg(long, requires = "token")]
    limited_token: Option<String>,
    /// What chance decides by: generated names, how long watches without a timeout live.
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

/// Seconds since 1970, from the only clock this command reads: objects that people look at should be as old as they are.
#[expect(clippy::disallowed_methods, reason = "the edge hands in the time")]
fn wall_clock() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

/// Serves until interrupted.
///
/// # Errors
/// The objects are wrong, or the system refuses something.
pub(crate) fn run(serve: Serve) -> Result<(), Failure> {
    let settings = ServerSettings {
        version: serve.kubernetes_version,
        epoch_seconds: wall_clock(),
        ..ServerSettings::default()
    };
    let mut server = Server::standalone(settings, serve.seed);
    if let Some(file) = &serve.objects {
        let wrong = |message: String| Failure::Objects(format!("{}: {message}", file.display()));
        let text = std::fs::read_to_string(file).map_err(|error| wrong(error.to_string()))?;
        for object in manifests::read(&text).map_err(wrong)? {
            server.put(&object).map_err(wrong)?;
        }
    }
    let (token, limited_token) = (serve.token, serve.limited_token);
    if let Some(token) = token.clone() {
        server = server.with_access(Access { token, limited_token });
    }
    let shown_from = server.records().len();
    stage::run(Stage {
        server,
        port: serve.port,
        namespace: None,
        token,
        shown_from,
    })
}

fn minor(text: &str) -> Result<Version, String> {
    match text {
        "1.33" => Ok(Version::V1_33),
        "1.34" => Ok(Version::V1_34),
        "1.35" => Ok(Version::V1_35),
        "1.36" => Ok(Version::V1_36),
        _ => Err("known are 1.33, 1.34, 1.35 and 1.36".to_owned()),
    }
}

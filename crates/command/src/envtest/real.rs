//! A real kube-apiserver behind this program: it gets the flags of the suite but for its address and certificates, and this
//! program listens in its place and forwards, so that rules apply to real responses.
//!
//! A client certificate ends here. Its user is sent on by impersonation, by an identity that only the two know, and which the
//! real one trusts beside the suite's authority.
//!
//! It must not know which rules there are, or how requests are forwarded.

use std::ffi::OsString;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fake_apiserver::api::access::ADMINS;
use fake_apiserver::net::tls::{Authority, TlsError};
use fake_apiserver::net::{self, Credentials};
use upstream::{Cluster, Lending};

use super::beside::Beside;
use super::options::Front;
use crate::kubeconfig::Kubeconfig;
use crate::{Failure, private};

/// User of the identity that impersonates, as audit logs and webhooks of nobody see it.
const USER: &str = "fake-apiserver";

/// A started kube-apiserver.
pub(super) struct Real {
    pub(super) process: Beside,
    pub(super) cluster: Arc<Cluster>,
    /// Of the identity that impersonates; with certificates beside it, removed on drop.
    pub(super) kubeconfig: Kubeconfig,
}

impl Real {
    /// Starts `program` with the suite's arguments. It is not ready yet.
    ///
    /// # Errors
    ///
    /// A system error.
    pub(super) async fn start(program: &Path, arguments: &[String], front: &Front) -> Result<Self, Failure> {
        let port = free_port()?;
        let authority = Authority::generate().map_err(certificate)?;
        let serving = authority.server(&[]).map_err(certificate)?;
        let identity = authority.client(USER, Some(ADMINS)).map_err(certificate)?;
        let kubeconfig = net::Kubeconfig {
            server: format!("https://127.0.0.1:{port}"),
            authority_pem: Some(authority.certificate_pem()),
            credentials: Credentials::Certificate(identity),
            namespace: "default".to_owned(),
        };
        let kubeconfig = Kubeconfig::write(&kubeconfig, None)?;
        let folder = kubeconfig.path().parent().unwrap_or(Path::new("/"));
        let clients = front.tls.client_authorities.as_deref().unwrap_or_default();
        let clients = format!("{}\n{clients}", authority.certificate_pem());
        let write = |name: &str, text: &str| -> Result<PathBuf, Failure> {
            let path = folder.join(name);
            private::write_new(&path, text).map(|()| path)
        };
        let certificates = [
            ("client-ca-file", write("clients.crt", &clients)?),
            ("tls-cert-file", write("apiserver.crt", &serving.certificate_pem)?),
            ("tls-private-key-file", write("apiserver.key", &serving.key_pem)?),
        ];
        let mut words: Vec<OsString> = arguments.iter().map(OsString::from).collect();
        // Of a flag that is no list the last value counts.
        words.push(format!("--bind-address={}", Ipv4Addr::LOCALHOST).into());
        words.push(format!("--secure-port={port}").into());
        for (flag, path) in certificates {
            let mut word = OsString::from(format!("--{flag}="));
            word.push(path);
            words.push(word);
        }
        let cluster = upstream::load(kubeconfig.path(), None, &Lending::Oneself).await;
        let cluster = cluster.map_err(|error| Failure::Usage(error.to_string()))?;
        Ok(Self {
            process: Beside::start("kube-apiserver", program, &words)?,
            cluster: Arc::new(cluster),
            kubeconfig,
        })
    }
}

/// Returns a port of this machine that nothing listens on.
fn free_port() -> Result<u16, Failure> {
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr());
    port.map(|address| address.port())
        .map_err(|error| Failure::System("no port is free".to_owned(), error))
}

fn certificate(error: TlsError) -> Failure {
    Failure::System(
        "cannot create a certificate".to_owned(),
        std::io::Error::other(error),
    )
}

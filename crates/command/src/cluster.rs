//! Options of `proxy` and of `run --upstream`: the cluster to forward to, and whose rights requests have.
//!
//! It must not know how requests are forwarded, or what an upstream can do.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use fake_apiserver::api::Access;
use fake_apiserver::model::catalog::KindRef;
use fake_apiserver::net::{ServeOptions, TlsOptions};
use fake_apiserver::record::line::printable;
use fake_apiserver::server::Server;
use fake_apiserver::upstream::{Lends, Settings};
use serde_json::Value;
use upstream::{Cluster, Lending, LoadError, ProbeError};

use crate::stage::{Origin, Stage};
use crate::words::quoted;
use crate::{Failure, output, random};

/// Mount of a pod's service account.
const MOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// Longest document of the discovery, in bytes.
const DOCUMENT_BYTES_MAX: usize = 4 << 20;

/// Options of a cluster.
#[derive(Debug, Args)]
pub(crate) struct ClusterArguments {
    /// Kubeconfig of the cluster to forward to.
    #[arg(long, value_name = "FILE", help_heading = "Cluster")]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig [default: its current one].
    #[arg(long, value_name = "NAME", requires = "kubeconfig", help_heading = "Cluster")]
    context: Option<String>,
    /// Forward to the cluster of this pod, as its service account.
    ///
    /// Reads KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT, and token, ca.crt and namespace in
    /// /var/run/secrets/kubernetes.io/serviceaccount.
    #[arg(long, conflicts_with = "kubeconfig", help_heading = "Cluster")]
    in_cluster: bool,
    /// Mount of the service account.
    #[arg(long, value_name = "DIR", default_value = MOUNT, hide = true)]
    service_account: PathBuf,
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
    /// Lend clients the identity of the kubeconfig, or of the service account.
    #[arg(long, help_heading = "Access")]
    as_me: bool,
    /// Let rules write to the cluster (apply, delete, relabel).
    ///
    /// With the identity of --as or --as-me, and only what a rule or a scenario writes. Objects are applied as by
    /// `kubectl apply --server-side --force-conflicts`, by the field manager `fake-apiserver`.
    #[arg(long, help_heading = "Access")]
    pub(crate) allow_writes: bool,
}

/// A cluster that answers.
#[derive(Debug)]
pub(crate) struct Connected {
    cluster: Arc<Cluster>,
    /// Version of Kubernetes; `None`: it is shown to known users only, and no identity is lent.
    pub(crate) version: Option<String>,
    /// CustomResourceDefinitions whose objects rules may write.
    definitions: Vec<Value>,
    settings: (Lends, bool),
}

impl ClusterArguments {
    /// Whether a cluster is named.
    pub(crate) fn names_one(&self) -> bool {
        self.in_cluster || self.kubeconfig.is_some()
    }

    /// What names the cluster, in words.
    pub(crate) fn source(&self) -> &'static str {
        if self.in_cluster {
            "service account"
        } else {
            "kubeconfig"
        }
    }

    /// Returns the options as they were given.
    pub(crate) fn words(&self) -> String {
        let mut words = String::new();
        let mut add = |option: &str, value: &str| {
            words.push_str(option);
            words.push_str(&quoted(value));
        };
        if let Some(path) = &self.kubeconfig {
            add(" --kubeconfig ", &path.display().to_string());
        }
        { self.context.iter() }.for_each(|name| add(" --context ", name));
        { self.as_user.iter() }.for_each(|name| add(" --as ", name));
        { self.as_group.iter() }.for_each(|name| add(" --as-group ", name));
        for (given, option) in [
            (self.in_cluster, " --in-cluster"),
            (self.as_me, " --as-me"),
            (self.allow_writes, " --allow-writes"),
        ] {
            if given {
                words.push_str(option);
            }
        }
        words
    }

    /// Returns whose rights requests with the proxy's token have.
    pub(crate) fn lending(&self) -> Lending {
        match &self.as_user {
            Some(name) => Lending::User {
                name: name.clone(),
                groups: self.as_group.clone(),
            },
            None if self.as_me => Lending::Oneself,
            None => Lending::Nothing,
        }
    }

    /// Checks what can be checked without the cluster.
    ///
    /// # Errors
    ///
    /// No cluster is named, or no identity to write with.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        if !self.names_one() {
            return Err(Failure::Usage(
                "which cluster? add --kubeconfig FILE, or in a pod --in-cluster".to_owned(),
            ));
        }
        if self.allow_writes && self.lending() == Lending::Nothing {
            return Err(Failure::Usage(
                "--allow-writes needs an identity to write with: add --as USER or --as-me".to_owned(),
            ));
        }
        Ok(())
    }

    /// Loads the cluster, and asks it for its version.
    ///
    /// # Errors
    ///
    /// As [`ClusterArguments::check`]; kubeconfig or service account cannot be used, or the cluster does not answer.
    pub(crate) async fn connect(&self) -> Result<Connected, Failure> {
        self.check()?;
        let lending = self.lending();
        let cluster = match &self.kubeconfig {
            Some(path) => upstream::load(path, self.context.as_deref(), &lending).await,
            None => {
                let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
                let host = variable(upstream::SERVICE_HOST);
                let port = variable(upstream::SERVICE_PORT);
                upstream::load_in_cluster(&self.service_account, host, port, &lending).await
            }
        };
        let cluster = cluster.map_err(unusable)?;
        let version = cluster.probe().await.map_err(|error| unanswered(&error))?;
        let definitions = match self.allow_writes {
            true => cluster.definitions().await.unwrap_or_else(|why| {
                let why = printable(&why).into_owned();
                output::log(&format!("rules cannot write custom resources: {why}"));
                Vec::new()
            }),
            false => Vec::new(),
        };
        let lends = match lending {
            Lending::Nothing => Lends::Nothing,
            Lending::Oneself | Lending::User { .. } => Lends::ForToken,
        };
        Ok(Connected {
            cluster: Arc::new(cluster),
            version,
            definitions,
            settings: (lends, self.allow_writes),
        })
    }
}

impl Connected {
    /// Returns the kind of a custom resource that the cluster serves, as its discovery has it. `name`: `widgets.example.com`.
    ///
    /// # Errors
    ///
    /// A message: the cluster serves no such resource, or does not answer.
    pub(crate) async fn custom_resource(&self, name: &str) -> Result<KindRef, String> {
        let missing = || {
            format!("the cluster serves no resource {name}; kubectl api-resources lists them, as NAME.GROUP")
        };
        let (plural, group) = name.split_once('.').ok_or_else(missing)?;
        let is_name = |text: &str| {
            !text.is_empty()
                && text
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(&byte))
        };
        if !is_name(plural) || !is_name(group) {
            return Err(missing());
        }
        let versions = self.read(&format!("/apis/{group}")).await?.ok_or_else(missing)?;
        let version = versions["preferredVersion"]["version"]
            .as_str()
            .ok_or_else(missing)?;
        let resources = self
            .read(&format!("/apis/{group}/{version}"))
            .await?
            .ok_or_else(missing)?;
        let resources = resources["resources"].as_array().into_iter().flatten();
        let found = { resources }
            .find(|resource| resource["name"] == plural)
            .ok_or_else(missing)?;
        fake_apiserver::upstream::custom_resource(group, version, found).ok_or_else(missing)
    }

    /// Reads a document of the cluster, with the identity that is lent; `None`: there is none.
    async fn read(&self, path: &str) -> Result<Option<Value>, String> {
        let (status, document) = self.cluster.read(path, DOCUMENT_BYTES_MAX).await?;
        match status.as_u16() {
            200 => Ok(Some(document)),
            404 => Ok(None),
            other => Err(format!("the cluster answered GET {path} with {other}")),
        }
    }

    /// Returns whether the object at a path exists, with the identity that is lent.
    ///
    /// # Errors
    ///
    /// A message: there is no answer, or another one.
    pub(crate) async fn has(&self, path: &str) -> Result<bool, String> {
        Ok(self.read(path).await?.is_some())
    }

    /// Returns a server that forwards to the cluster, on a free port of loopback, with TLS and a random token.
    ///
    /// # Errors
    ///
    /// No random bytes can be had.
    pub(crate) fn stage(&self, seed: u64) -> Result<Stage, Failure> {
        let token = random::word()?;
        let (lends, may_write) = self.settings;
        let settings = Settings {
            token: token.clone(),
            lends,
            may_write,
        };
        let mut server = Server::forwarding(settings, seed);
        for definition in &self.definitions {
            server.know_definition(definition);
        }
        let url = self.cluster.server().to_owned();
        Ok(Stage {
            server,
            what: format!("a proxy for {url}"),
            origin: Origin::Upstream {
                upstream: self.cluster.clone(),
                url,
                version: self.version.clone(),
            },
            wall_clock: None,
            serving: ServeOptions {
                address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
                tls: Some(TlsOptions::default()),
                access: Some(Access {
                    token,
                    limited_token: None,
                    signing_secret: random::bytes()?,
                }),
                checks_pages: true,
                ..ServeOptions::default()
            },
            control_port: 0,
            control_token: None,
            ui: false,
            namespace: Some(self.cluster.namespace().to_owned()),
            kubeconfig: None,
            service_account: None,
        })
    }
}

/// Returns the failure of a cluster whose credentials or address cannot be used.
pub(crate) fn unusable(error: LoadError) -> Failure {
    match error {
        LoadError::Unreadable { .. }
        | LoadError::NoContext { .. }
        | LoadError::NoCurrentContext { .. }
        | LoadError::NotInCluster { .. }
        | LoadError::Unusable { .. } => Failure::Usage(error.to_string()),
        LoadError::NoCredentials { .. } => Failure::NoServer(error.to_string()),
    }
}

/// Returns the failure of a cluster that does not answer.
pub(crate) fn unanswered(error: &ProbeError) -> Failure {
    Failure::NoServer(error.to_string())
}

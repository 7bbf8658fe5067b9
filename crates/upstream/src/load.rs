//! From a kubeconfig, or the service account of a pod, to a cluster: which context, and whose credentials.

use std::net::Ipv6Addr;
use std::path::{Path, PathBuf};

use fake_apiserver::scenario::nearest;
use fake_apiserver::upstream::innermost;
use kube_client::config::{AuthInfo, Config, KubeConfigOptions, Kubeconfig, KubeconfigError};

use serde_json::json;

use crate::requests::Requests;
use crate::{Cluster, Lending, cause};

/// Variable with the host of the apiserver, in every container of a pod.
pub const SERVICE_HOST: &str = "KUBERNETES_SERVICE_HOST";

/// Variable with its port.
pub const SERVICE_PORT: &str = "KUBERNETES_SERVICE_PORT";

/// Name of the context of a pod's cluster.
const IN_CLUSTER: &str = "in-cluster";

/// Why a kubeconfig cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file cannot be read.
    #[error("{}: {why}", path.display())]
    Unreadable {
        /// File.
        path: PathBuf,
        /// Reason.
        why: String,
    },
    /// There is no such context.
    #[error("{} has no context {name:?}; {}", path.display(), choice(nearest.as_deref(), known))]
    NoContext {
        /// File.
        path: PathBuf,
        /// Name.
        name: String,
        /// The most similar name.
        nearest: Option<String>,
        /// Names of all contexts.
        known: Vec<String>,
    },
    /// No context is given, and the file has no current one.
    #[error("{} has no current context: select one by --context; {}", path.display(), choice(None, known))]
    NoCurrentContext {
        /// File.
        path: PathBuf,
        /// Names of all contexts.
        known: Vec<String>,
    },
    /// A variable of a pod is not set, or not what it should be.
    #[error("{variable} {why}: the containers of a pod have it; elsewhere use --kubeconfig FILE")]
    NotInCluster {
        /// Name of the variable.
        variable: &'static str,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A cluster, user, certificate or proxy of the context cannot be used.
    #[error("{}: {why}", path.display())]
    Unusable {
        /// File.
        path: PathBuf,
        /// Reason.
        why: String,
    },
    /// The credentials cannot be loaded.
    #[error("{}: cannot load the credentials of its user: {why}; run kubectl with this kubeconfig, and log in again if it fails as well", path.display())]
    NoCredentials {
        /// File.
        path: PathBuf,
        /// Reason.
        why: String,
    },
}

fn choice(nearest: Option<&str>, known: &[String]) -> String {
    match (nearest, known) {
        (_, []) => "it has none".to_owned(),
        (Some(nearest), _) => format!("did you mean {nearest:?}?"),
        (None, known) => format!("there are: {}", known.join(", ")),
    }
}

/// Loads the cluster of a context; `None`: the current one. Paths in the file are relative to its folder. Call inside a tokio
/// runtime; exec plugins run.
///
/// # Errors
/// The file has no such context, or something that it names cannot be used.
pub async fn load(path: &Path, context: Option<&str>, lending: &Lending) -> Result<Cluster, LoadError> {
    let file = || path.to_owned();
    let kubeconfig = Kubeconfig::read_from(path).map_err(|error| LoadError::Unreadable {
        path: file(),
        why: words(&error),
    })?;
    let known: Vec<String> = kubeconfig
        .contexts
        .iter()
        .map(|context| context.name.clone())
        .collect();
    let current = kubeconfig.current_context.clone().filter(|name| !name.is_empty());
    let Some(name) = context.map(str::to_owned).or(current) else {
        return Err(LoadError::NoCurrentContext { path: file(), known });
    };
    if !known.contains(&name) {
        let nearest = nearest(&name, known.iter().map(String::as_str)).map(str::to_owned);
        return Err(LoadError::NoContext {
            path: file(),
            name,
            nearest,
            known,
        });
    }
    cluster(kubeconfig, name, path, lending, "kubeconfig").await
}

/// Loads the cluster of a pod, from the mount of its service account; `host` and `port`: [`SERVICE_HOST`](crate::SERVICE_HOST) and
/// [`SERVICE_PORT`](crate::SERVICE_PORT). The token is read again every minute. Call inside a tokio runtime.
///
/// Source: client-go `rest.InClusterConfig`.
///
/// # Errors
/// A variable is not set, or a file cannot be used.
pub async fn load_in_cluster(
    mount: &Path,
    host: Option<String>,
    port: Option<String>,
    lending: &Lending,
) -> Result<Cluster, LoadError> {
    let missing = |variable, why| LoadError::NotInCluster { variable, why };
    let host = host.ok_or(missing(SERVICE_HOST, "is not set"))?;
    let port = port.ok_or(missing(SERVICE_PORT, "is not set"))?;
    let port: u16 = port.parse().map_err(|_| missing(SERVICE_PORT, "is no port"))?;
    let host = match host.parse::<Ipv6Addr>() {
        Ok(address) => format!("[{address}]"),
        Err(_) => host,
    };
    let read = |name: &str| {
        let path = mount.join(name);
        std::fs::read_to_string(&path).map_err(|error| LoadError::Unreadable {
            path,
            why: error.to_string(),
        })
    };
    // A token that is not there is found here, and explained, instead of at the first request.
    read("token")?;
    read("ca.crt")?;
    let kubeconfig = json!({
        "clusters": [{ "name": IN_CLUSTER, "cluster": {
            "server": format!("https://{host}:{port}"),
            "certificate-authority": mount.join("ca.crt"),
        } }],
        "users": [{ "name": IN_CLUSTER, "user": { "tokenFile": mount.join("token") } }],
        "contexts": [{ "name": IN_CLUSTER, "context": {
            "cluster": IN_CLUSTER, "user": IN_CLUSTER, "namespace": read("namespace")?.trim(),
        } }],
    });
    let kubeconfig = serde_json::from_value(kubeconfig).map_err(|error| LoadError::Unusable {
        path: mount.to_owned(),
        why: error.to_string(),
    })?;
    cluster(
        kubeconfig,
        IN_CLUSTER.to_owned(),
        mount,
        lending,
        "service account",
    )
    .await
}

/// Returns the cluster of a context. `path`, `of`: for errors.
async fn cluster(
    kubeconfig: Kubeconfig,
    context: String,
    path: &Path,
    lending: &Lending,
    of: &'static str,
) -> Result<Cluster, LoadError> {
    let file = || path.to_owned();
    let unusable = |why| LoadError::Unusable { path: file(), why };
    let options = KubeConfigOptions {
        context: Some(context),
        ..KubeConfigOptions::default()
    };
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
    let mut config = config.map_err(|error| unusable(words(&error)))?;
    // Responses pass as they are: what fails is for the client to repeat, and what is compressed for it to read.
    config.default_retry = false;
    config.disable_compression = true;
    let client = |config: Config| {
        Requests::of(config).map_err(|error| match cause::of_credentials(&error) {
            Some(why) => LoadError::NoCredentials { path: file(), why },
            None => unusable(innermost(&error)),
        })
    };
    let mut bare = config.clone();
    bare.auth_info = AuthInfo::default();
    Ok(Cluster {
        server: config.cluster_url.to_string().trim_end_matches('/').to_owned(),
        of,
        namespace: config.default_namespace.clone(),
        bare: client(bare)?,
        lending: lent(config, lending).map(client).transpose()?,
    })
}

/// Returns the configuration of the identity that is lent.
fn lent(mut config: Config, lending: &Lending) -> Option<Config> {
    match lending {
        Lending::Nothing => return None,
        Lending::Oneself => {}
        Lending::User { name, groups } => {
            config.auth_info.impersonate = Some(name.clone());
            config.auth_info.impersonate_groups = (!groups.is_empty()).then(|| groups.clone());
            config.auth_info.impersonate_uid = None;
            config.auth_info.impersonate_user_extra = None;
        }
    }
    Some(config)
}

/// Returns the error in words, without text of the file.
fn words(error: &KubeconfigError) -> String {
    match error {
        KubeconfigError::ReadConfig(error, _) => error.to_string(),
        KubeconfigError::Parse(error) => match error.location() {
            Some(at) => format!(
                "no kubeconfig: invalid YAML at line {}, column {}",
                at.line(),
                at.column()
            ),
            None => "no kubeconfig: invalid YAML".to_owned(),
        },
        KubeconfigError::LoadClientCertificate(_) => {
            format!("the client certificate: {}", innermost(error))
        }
        KubeconfigError::LoadClientKey(_) => format!("the client key: {}", innermost(error)),
        KubeconfigError::CurrentContextNotSet
        | KubeconfigError::KindMismatch
        | KubeconfigError::ApiVersionMismatch
        | KubeconfigError::LoadContext(_)
        | KubeconfigError::LoadClusterOfContext(_)
        | KubeconfigError::FindPath
        | KubeconfigError::MissingClusterUrl
        | KubeconfigError::ParseClusterUrl(_)
        | KubeconfigError::ParseProxyUrl(_)
        | KubeconfigError::LoadCertificateAuthority(_)
        | KubeconfigError::ParseCertificates(_)
        | KubeconfigError::ParseNoProxy(_) => error.to_string(),
    }
}

//! From a kubeconfig to a cluster: which context, and whose credentials.

use std::path::{Path, PathBuf};

use fake_apiserver::scenario::nearest;
use fake_apiserver::upstream::innermost;
use kube_client::Client;
use kube_client::config::{AuthInfo, Config, KubeConfigOptions, Kubeconfig, KubeconfigError};

use crate::{Cluster, Lending, cause};

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
    let unusable = |why| LoadError::Unusable { path: file(), why };
    let options = KubeConfigOptions {
        context: Some(name),
        ..KubeConfigOptions::default()
    };
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
    let mut config = config.map_err(|error| unusable(words(&error)))?;
    // Responses pass as they are: what fails is for the client to repeat, and what is compressed for it to read.
    config.default_retry = false;
    config.disable_compression = true;
    let client = |config: Config| {
        Client::try_from(config).map_err(|error| match cause::of_credentials(&error) {
            Some(why) => LoadError::NoCredentials { path: file(), why },
            None => unusable(innermost(&error)),
        })
    };
    let mut bare = config.clone();
    bare.auth_info = AuthInfo::default();
    Ok(Cluster {
        server: config.cluster_url.to_string().trim_end_matches('/').to_owned(),
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

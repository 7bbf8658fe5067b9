//! Options of the apiserver from the flags of kube-apiserver and the files they refer to.
//!
//! It must not know how it is served.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use fake_apiserver::api::access::{AccessSettings, Authorization};
use fake_apiserver::net::TlsOptions;
use fake_apiserver::scenario::{AdmissionPlugin, AdmissionPlugins, Version};

use super::certificates;
use super::flags::Given;

/// How the apiserver listens and logs.
#[derive(Debug)]
pub(super) struct Front {
    pub(super) address: SocketAddr,
    pub(super) tls: TlsOptions,
    pub(super) logs_all: bool,
}

/// Options in the flags.
#[derive(Debug)]
pub(super) struct Options {
    pub(super) front: Front,
    pub(super) access: AccessSettings,
    pub(super) authorization: Authorization,
    pub(super) version: Version,
    pub(super) admission: AdmissionPlugins,
}

/// Returns the options, with the content of files.
///
/// # Errors
///
/// All missing or invalid flags, in the messages of kube-apiserver; or the first invalid file.
pub(super) fn options(given: &Given, version: Option<&str>) -> Result<Options, String> {
    let mut mistakes = missing(given);
    mistakes.extend(port(given).err());
    mistakes.extend(mistaken_plugins(given));
    match mistakes.as_slice() {
        [] => {}
        [one] => return Err(one.clone()),
        many => return Err(format!("[{}]", many.join(", "))),
    }
    let front = front(given)?;
    let modes = given.list("authorization-mode");
    let always_allow = modes.is_empty() || modes.contains(&"AlwaysAllow");
    Ok(Options {
        front,
        access: AccessSettings {
            tokens: certificates::tokens(given)?,
            // "AnonymousAuth is not allowed with the AlwaysAllow authorizer."
            anonymous: given.is_set("anonymous-auth", true) && !always_allow,
        },
        authorization: if always_allow {
            Authorization::AlwaysAllow
        } else {
            Authorization::Rbac
        },
        version: emulated(given, version)?,
        admission: admission(given),
    })
}

/// Returns how the apiserver listens and logs.
///
/// # Errors
///
/// The first invalid flag or file, in the messages of kube-apiserver.
pub(super) fn front(given: &Given) -> Result<Front, String> {
    let port = port(given)?;
    let address = given.last("bind-address").unwrap_or("0.0.0.0");
    let address: IpAddr = address.parse().map_err(|_| {
        format!(
            "invalid argument \"{address}\" for \"--bind-address\" flag: failed to parse IP: \"{address}\""
        )
    })?;
    certificates::check_service_account_keys(given)?;
    Ok(Front {
        address: SocketAddr::new(address, port),
        tls: TlsOptions {
            identity: Some(certificates::serving(given, address)?),
            client_authorities: certificates::client_authorities(given)?,
            ..TlsOptions::default()
        },
        logs_all: given.last("v").is_some_and(|level| level != "0"),
    })
}

fn port(given: &Given) -> Result<u16, String> {
    let port = given.last("secure-port").unwrap_or("6443").parse::<u16>();
    port.ok().filter(|port| *port != 0).ok_or_else(|| {
        format!(
            "--secure-port {} must be between 1 and 65535, inclusive. It cannot be turned off with 0",
            given.last("secure-port").unwrap_or_default()
        )
    })
}

/// Returns the required flags that are missing.
fn missing(given: &Given) -> Vec<String> {
    let has = |name| given.last(name).is_some_and(|value| !value.is_empty());
    let (issuer, endpoint) = (
        has("service-account-issuer"),
        has("service-account-signing-endpoint"),
    );
    let key = has("service-account-signing-key-file");
    let mut mistakes = Vec::new();
    if !has("etcd-servers") {
        mistakes.push("--etcd-servers must be specified");
    }
    if !issuer {
        mistakes.push("service-account-issuer is a required flag");
    }
    if !has("service-account-key-file") && !endpoint {
        mistakes
            .push("either `--service-account-key-file` or `--service-account-signing-endpoint` must be set");
    }
    if !(issuer && (key || endpoint)) {
        mistakes.push("--service-account-signing-key-file and --service-account-issuer are required flags");
    }
    mistakes.into_iter().map(str::to_owned).collect()
}

const ENABLED: &str = "enable-admission-plugins";
const DISABLED: &str = "disable-admission-plugins";

/// Admission plugins of kube-apiserver, in its order. Most have no effect here.
const PLUGINS: [&str; 39] = [
    "AlwaysAdmit",
    "NamespaceAutoProvision",
    "NamespaceLifecycle",
    "NamespaceExists",
    "LimitPodHardAntiAffinityTopology",
    "LimitRanger",
    "ServiceAccount",
    "NodeRestriction",
    "TaintNodesByCondition",
    "AlwaysPullImages",
    "ImagePolicyWebhook",
    "PodSecurity",
    "PodNodeSelector",
    "Priority",
    "DefaultTolerationSeconds",
    "PodTolerationRestriction",
    "EventRateLimit",
    "ExtendedResourceToleration",
    "DefaultStorageClass",
    "StorageObjectInUseProtection",
    "PodGroupProtection",
    "OwnerReferencesPermissionEnforcement",
    "PersistentVolumeClaimResize",
    "RuntimeClass",
    "CertificateApproval",
    "CertificateSigning",
    "ClusterTrustBundleAttest",
    "CertificateSubjectRestriction",
    "DefaultIngressClass",
    "DenyServiceExternalIPs",
    "PodTopologyLabels",
    "NodeDeclaredFeatureValidator",
    "PodResizeValidator",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionWebhook",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionWebhook",
    "ResourceQuota",
    "AlwaysDeny",
];

/// Returns the mistakes in the lists of admission plugins.
fn mistaken_plugins(given: &Given) -> Vec<String> {
    let [enabled, disabled] = [ENABLED, DISABLED].map(|flag| given.list(flag));
    let unknown = |flag: &str, named: &[&str]| -> Vec<String> {
        let unknown = named.iter().filter(|name| !PLUGINS.contains(name));
        unknown
            .map(|name| format!("{flag} plugin \"{name}\" is unknown"))
            .collect()
    };
    let mut mistakes = unknown(ENABLED, &enabled);
    mistakes.extend(unknown(DISABLED, &disabled));
    let both: BTreeSet<&str> = { enabled.into_iter() }
        .filter(|name| disabled.contains(name))
        .collect();
    if !both.is_empty() {
        let both: Vec<&str> = both.into_iter().collect();
        let both = both.join(" ");
        mistakes.push(format!("[{both}] in {ENABLED} and {DISABLED} overlapped"));
    }
    mistakes
}

/// Returns the default admission plugins without the disabled ones.
fn admission(given: &Given) -> AdmissionPlugins {
    let disabled = given
        .list(DISABLED)
        .into_iter()
        .filter_map(AdmissionPlugin::named);
    disabled.fold(AdmissionPlugins::of_kube_apiserver(), AdmissionPlugins::without)
}

/// Returns the version of `--emulated-version` (`1.34` or `kube=1.34`), else of the environment, else the newest.
fn emulated(given: &Given, environment: Option<&str>) -> Result<Version, String> {
    let flags = given.list("emulated-version");
    let flag = flags.iter().find_map(|version| match version.split_once('=') {
        Some(("kube", version)) => Some(version),
        Some(_) => None,
        None => Some(version),
    });
    let Some(wanted) = flag.or(environment) else {
        return Ok(Version::NEWEST);
    };
    let wanted = wanted.trim_start_matches('v');
    wanted
        .parse()
        .map_err(|why| format!("version {wanted} cannot be emulated: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::envtest::flags::{self, Dialect, Parsed};

    fn read(line: &[&str]) -> Given {
        let line: Vec<String> = line.iter().map(|&word| word.to_owned()).collect();
        match flags::parse(
            Dialect::Pflag,
            &flags::table(crate::envtest::apiserver::FLAGS),
            &line,
        ) {
            Ok(Parsed::Run(given)) => given,
            other => panic!("{other:?}"),
        }
    }

    /// Recorded from kube-apiserver 1.36.3 without flags.
    #[test]
    fn all_required_flags_are_reported_at_once() {
        let why = options(&Given::default(), None).unwrap_err();
        assert_eq!(
            why,
            "[--etcd-servers must be specified, service-account-issuer is a required flag, either \
             `--service-account-key-file` or `--service-account-signing-endpoint` must be set, \
             --service-account-signing-key-file and --service-account-issuer are required flags]"
        );
    }

    #[test]
    fn disabled_admission_plugins_have_no_effect() {
        let given = read(&[
            "--disable-admission-plugins=ServiceAccount,AlwaysDeny",
            "--enable-admission-plugins=X",
        ]);
        let plugins = admission(&given);
        assert!(!plugins.has(AdmissionPlugin::ServiceAccount));
        assert!(plugins.has(AdmissionPlugin::TaintNodesByCondition));
        let mistakes = mistaken_plugins(&given);
        assert_eq!(mistakes, ["enable-admission-plugins plugin \"X\" is unknown"]);
        let both = read(&[
            "--disable-admission-plugins=Priority",
            "--enable-admission-plugins=Priority",
        ]);
        assert_eq!(
            mistaken_plugins(&both),
            ["[Priority] in enable-admission-plugins and disable-admission-plugins overlapped"]
        );
    }

    #[test]
    fn flags_set_authentication_and_discovery() {
        use std::os::unix::fs::PermissionsExt as _;

        let folder = std::env::temp_dir().join(format!("fake-apiserver-options-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = |name: &str| folder.join(name).display().to_string();
        std::fs::write(file("key"), "-----BEGIN PRIVATE KEY-----\n").unwrap();
        std::fs::write(file("tokens"), "secret,jane,7\n").unwrap();
        let with = |more: &[&str]| {
            let line = [
                "--etcd-servers=http://127.0.0.1:1".to_owned(),
                "--service-account-issuer=me".to_owned(),
                format!("--service-account-key-file={}", file("key")),
                format!("--service-account-signing-key-file={}", file("key")),
                format!("--cert-dir={}", file("certificates")),
                format!("--token-auth-file={}", file("tokens")),
            ];
            let line: Vec<&str> = line
                .iter()
                .map(String::as_str)
                .chain(more.iter().copied())
                .collect();
            options(&read(&line), None)
        };
        let one = with(&[
            "--authorization-mode=RBAC",
            "--bind-address=127.0.0.1",
            "--secure-port=7",
            "-v=2",
        ])
        .unwrap();
        assert_eq!(one.front.address.to_string(), "127.0.0.1:7");
        assert!(one.access.anonymous && one.authorization == Authorization::Rbac && one.front.logs_all);
        assert_eq!(one.access.tokens[0].1.name, "jane");
        let mode = |name: &str| {
            let metadata = std::fs::metadata(folder.join("certificates").join(name)).unwrap();
            metadata.permissions().mode() & 0o077
        };
        assert_eq!((mode("apiserver.key"), mode("apiserver.crt") & 0o033), (0, 0));

        let again = with(&["--anonymous-auth=false", "--authorization-mode", "Node,RBAC"]).unwrap();
        assert_eq!(
            again.front.tls.identity, one.front.tls.identity,
            "those of the first are there"
        );
        assert!(
            !again.access.anonymous && again.authorization == Authorization::Rbac && !again.front.logs_all
        );
        assert_eq!(again.front.address.to_string(), "0.0.0.0:6443");
        let open = with(&[]).unwrap();
        assert!(
            open.authorization == Authorization::AlwaysAllow && !open.access.anonymous,
            "as the default of kube-apiserver"
        );

        let why = |more: &[&str]| with(more).unwrap_err();
        assert!(why(&["--bind-address=here"]).contains("failed to parse IP: \"here\""));
        assert!(why(&["--secure-port=0"]).starts_with("--secure-port 0 must be between 1 and 65535"));
        assert!(
            why(&[&format!("--client-ca-file={}", file("none"))]).starts_with("unable to load client CA")
        );
        assert!(why(&[&format!("--client-ca-file={}", file("tokens"))]).contains("no certificate"));
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn the_version_is_that_of_the_flag_then_of_the_environment() {
        let of = |line: &[&str], environment| emulated(&read(line), environment);
        assert_eq!(of(&[], None), Ok(Version::NEWEST));
        assert_eq!(of(&[], Some("1.34")), Ok(Version::V1_34));
        assert_eq!(of(&["--emulated-version=1.35"], Some("1.34")), Ok(Version::V1_35));
        assert_eq!(
            of(&["--emulated-version=other=1.2,kube=1.36"], None),
            Ok(Version::V1_36)
        );
        assert!(of(&["--emulated-version=1.20"], None).is_err());
    }
}

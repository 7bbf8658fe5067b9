//! Health: all checks of kube-apiserver, which always pass.
//!
//! Source: apiserver `server/healthz/healthz.go`; names and order were recorded.

use apimachinery::Version;
use http::header::X_CONTENT_TYPE_OPTIONS;

use super::Endpoint;
use crate::api::Answer;

/// Post-start hooks in the order of registration, with the first minor version that has them.
const HOOKS: [(&str, Version); 30] = [
    ("start-apiserver-admission-initializer", Version::OLDEST),
    ("generic-apiserver-start-informers", Version::OLDEST),
    ("priority-and-fairness-config-consumer", Version::OLDEST),
    ("priority-and-fairness-filter", Version::OLDEST),
    ("storage-object-count-tracker-hook", Version::OLDEST),
    ("start-apiextensions-informers", Version::OLDEST),
    ("start-apiextensions-controllers", Version::OLDEST),
    ("crd-informer-synced", Version::OLDEST),
    ("start-system-namespaces-controller", Version::OLDEST),
    ("peer-endpoint-reconciler-controller", Version::V1_36),
    ("start-cluster-authentication-info-controller", Version::OLDEST),
    ("start-kube-apiserver-identity-lease-controller", Version::OLDEST),
    (
        "start-kube-apiserver-identity-lease-garbage-collector",
        Version::OLDEST,
    ),
    ("storage-readiness", Version::V1_36),
    ("start-legacy-token-tracking-controller", Version::OLDEST),
    ("start-service-ip-repair-controllers", Version::OLDEST),
    ("rbac/bootstrap-roles", Version::OLDEST),
    ("scheduling/bootstrap-system-priority-classes", Version::OLDEST),
    ("priority-and-fairness-config-producer", Version::OLDEST),
    ("bootstrap-controller", Version::OLDEST),
    ("start-kubernetes-service-cidr-controller", Version::OLDEST),
    ("start-kube-aggregator-informers", Version::OLDEST),
    ("apiservice-status-local-available-controller", Version::OLDEST),
    ("apiservice-status-remote-available-controller", Version::OLDEST),
    ("apiservice-registration-controller", Version::OLDEST),
    ("apiservice-discovery-controller", Version::OLDEST),
    ("kube-apiserver-autoregistration", Version::OLDEST),
    // Not a hook, but listed among them.
    ("autoregister-completion", Version::OLDEST),
    ("apiservice-openapi-controller", Version::OLDEST),
    ("apiservice-openapiv3-controller", Version::OLDEST),
];

impl Endpoint {
    pub(super) const ALL: [Self; 3] = [Self::Healthz, Self::Livez, Self::Readyz];

    /// Returns the path without the slash.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Healthz => "healthz",
            Self::Livez => "livez",
            Self::Readyz => "readyz",
        }
    }

    /// Returns the names of its checks, in order.
    pub(super) fn checks(self, version: Version) -> Vec<String> {
        let ready = self == Self::Readyz;
        let mut checks = vec!["ping", "log"];
        if !ready && version >= Version::V1_36 {
            checks.push("loopback-serving-certificate");
        }
        checks.push("etcd");
        if ready {
            checks.extend(["etcd-readiness", "informer-sync"]);
        }
        let mut checks: Vec<String> = checks.into_iter().map(str::to_owned).collect();
        for (hook, _) in HOOKS.iter().filter(|(_, since)| *since <= version) {
            checks.push(match *hook {
                "autoregister-completion" => (*hook).to_owned(),
                hook => format!("poststarthook/{hook}"),
            });
        }
        if ready {
            checks.push("shutdown".to_owned());
        }
        checks
    }
}

/// Returns the response for all checks of an endpoint: `ok`, or a line for each with `verbose`; `exclude` skips checks.
pub(super) fn all(endpoint: Endpoint, query: &[(String, String)], version: Version) -> Answer {
    if !query.iter().any(|(name, _)| name == "verbose") {
        return Answer::text(200, "ok");
    }
    let mut excluded: Vec<&str> = query
        .iter()
        .filter(|(name, _)| name == "exclude")
        .map(|(_, check)| check.as_str())
        .collect();
    let mut text = String::new();
    for check in endpoint.checks(version) {
        let before = excluded.len();
        excluded.retain(|name| *name != check);
        let how = if excluded.len() < before {
            "excluded: ok"
        } else {
            "ok"
        };
        text.push_str(&format!("[+]{check} {how}\n"));
    }
    if !excluded.is_empty() {
        let names: Vec<String> = excluded.iter().map(|name| format!("\"{name}\"")).collect();
        text.push_str(&format!(
            "warn: some health checks cannot be excluded: no matches for {}\n",
            names.join(",")
        ));
    }
    text.push_str(&format!("{} check passed\n", endpoint.name()));
    Answer::text(200, &text)
}

/// Returns the response for a single check.
pub(super) fn one(endpoint: Endpoint, check: &str, version: Version) -> Answer {
    if !endpoint.checks(version).iter().any(|known| known == check) {
        return Answer::text(404, "404 page not found\n");
    }
    let mut answer = Answer::text(200, "ok");
    answer.headers.retain(|(name, _)| *name != X_CONTENT_TYPE_OPTIONS);
    answer
}

/// Returns its paths listed by `/`.
pub(super) fn paths(version: Version) -> impl Iterator<Item = String> {
    Endpoint::ALL.into_iter().flat_map(move |endpoint| {
        let checks = endpoint.checks(version).into_iter();
        let below = checks.map(move |check| format!("/{}/{check}", endpoint.name()));
        std::iter::once(format!("/{}", endpoint.name())).chain(below)
    })
}

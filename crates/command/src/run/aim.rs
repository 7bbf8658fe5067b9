//! Compares the resources that a command reads with the target of its scenario: a command that reads others cannot be judged.
//!
//! It must not judge how anything is read.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::time::Duration;

use apimachinery::kind::qualified;
use fake_apiserver::record::{Record, Side, Verb, What};
use fake_apiserver::scenario::{Named, Target, Transport};
use tokio::sync::Notify;
use tokio::time::timeout;

/// Time after the last resource that a command lists or watches for the first time: caches are filled one by one.
pub(super) const ASTRAY: Duration = Duration::from_secs(10);

/// Connections over TLS that a command closes before its first request, after which the next ones will be no better.
const HANDSHAKES: usize = 3;

/// Resources listed and watched so far.
#[derive(Debug)]
pub(super) struct Aim {
    target: Target,
    transport: Transport,
    hit: bool,
    /// Whether there was any request.
    asked: bool,
    /// Connections that the command closed before its first request.
    unused: usize,
    /// Whether a streaming list was requested that the server does not support.
    streams: bool,
    /// Other resources that were read: `deployments.apps in all namespaces`.
    elsewhere: BTreeSet<String>,
    /// Resource and namespace of the first read.
    first: Option<(String, String)>,
}

impl Aim {
    pub(super) fn new(target: Target, transport: Transport) -> Self {
        Self {
            target,
            transport,
            hit: false,
            asked: false,
            unused: 0,
            streams: false,
            elsewhere: BTreeSet::new(),
            first: None,
        }
    }

    /// Processes records.
    pub(super) fn hear(&mut self, records: &[Record]) {
        for record in records {
            let What::Request {
                path, verb, query, ..
            } = &record.what
            else {
                let is_unused = |what| matches!(what, &What::Disconnected { by: Side::Client, .. });
                self.unused += usize::from(!self.asked && is_unused(&record.what));
                continue;
            };
            self.asked = true;
            if *verb != Verb::Other {
                self.take(&Named::by(path));
            } else if query.iter().any(|(name, _)| name == "sendInitialEvents") {
                self.streams = true;
            }
        }
    }

    fn take(&mut self, named: &Named<'_>) {
        let target = &self.target;
        let same = named.group == target.group && named.plural == target.plural;
        // A read of all namespaces includes each of them.
        if same && (named.namespace.is_empty() || target.namespace.as_deref() == Some(named.namespace)) {
            self.hit = true;
        } else {
            self.elsewhere
                .insert(words(named.group, named.plural, named.namespace));
            self.first
                .get_or_insert_with(|| (qualified(named.plural, named.group), named.namespace.to_owned()));
        }
    }

    /// Returns whether something was listed or watched, but not the target, or whether no request can come over TLS.
    pub(super) fn is_astray(&self) -> bool {
        !self.hit && (self.streams || !self.elsewhere.is_empty() || self.cannot_connect())
    }

    /// Whether the handshakes of the command fail, as far as its connections show.
    fn cannot_connect(&self) -> bool {
        self.transport.is_tls() && !self.asked && self.unused >= HANDSHAKES
    }

    /// Returns the number of other resources that were read.
    pub(super) fn others(&self) -> usize {
        self.elsewhere.len()
    }

    /// Returns the options of `run` that change the target to what was read.
    fn hint(&self) -> String {
        let Some((read, namespace)) = &self.first else {
            return "--resource".to_owned();
        };
        let mut options = Vec::new();
        if *read != self.target.resource() {
            options.push(format!("--resource {read}"));
        }
        if !namespace.is_empty() {
            options.push(format!("--namespace {namespace}"));
        }
        options.join(" ")
    }

    /// Returns why nothing can be judged; `None`: the target was listed or watched.
    pub(super) fn missed(&self) -> Option<String> {
        if self.hit {
            return None;
        }
        let target = &self.target;
        let namespace = target.namespace.as_deref().unwrap_or_default();
        let target = words(&target.group, &target.plural, namespace);
        if self.streams && self.elsewhere.is_empty() {
            return Some(
                "the command streams its first list, the scenario is about LIST, and where the server refuses streaming lists the command does not fall back"
                    .to_owned(),
            );
        }
        if self.cannot_connect() {
            let offers = match self.transport {
                Transport::TlsHttp2 => "does not offer HTTP/2, which this scenario is about, or ",
                Transport::Http1 | Transport::TlsHttp1 => "",
            };
            return Some(format!(
                "the command closed {} connections in or after their TLS handshake and sent no request: it {offers}does not trust the CA of its KUBECONFIG",
                self.unused
            ));
        }
        Some(if self.elsewhere.is_empty() {
            format!(
                "the command sent no LIST or WATCH to the server in its KUBECONFIG; the scenario is about {target}"
            )
        } else {
            let read: Vec<&str> = self.elsewhere.iter().take(3).map(String::as_str).collect();
            format!(
                "the command read {}, but the scenario is about {target}: make it read that, or move the scenario: {}",
                read.join(", "),
                self.hint()
            )
        })
    }
}

/// Completes when the command has listed and watched other resources, but not the target of the scenario, for some time. An
/// operator that reads yet another resource is still starting. Returns why it is not judged: the target may be read while it stops.
pub(super) async fn stays_astray(aim: &RefCell<Aim>, heard: &Notify) -> Option<String> {
    loop {
        while !aim.borrow().is_astray() {
            heard.notified().await;
        }
        let others = aim.borrow().others();
        let goes_on = async {
            while aim.borrow().is_astray() && aim.borrow().others() == others {
                heard.notified().await;
            }
        };
        if timeout(ASTRAY, goes_on).await.is_err() {
            return aim.borrow().missed();
        }
    }
}

fn words(group: &str, plural: &str, namespace: &str) -> String {
    let resource = qualified(plural, group);
    if namespace.is_empty() {
        format!("{resource} in all namespaces")
    } else {
        format!("{resource} in namespace {namespace}")
    }
}

#[cfg(test)]
mod tests {
    use fake_apiserver::record::{ConnId, Replica, StreamId};
    use rstest::rstest;

    use super::*;

    fn configmaps(namespace: Option<&str>) -> Target {
        Target {
            group: String::new(),
            version: "v1".to_owned(),
            plural: "configmaps".to_owned(),
            kind: "ConfigMap".to_owned(),
            namespace: namespace.map(str::to_owned),
        }
    }

    #[test]
    fn a_client_that_only_streams_misses_a_scenario_about_lists() {
        let request = |verb, query: &[(&str, &str)]| Record {
            seq: 0,
            at: Duration::ZERO,
            what: What::Request {
                stream: StreamId(1),
                conn: ConnId(1),
                verb,
                method: "GET".to_owned(),
                path: "/api/v1/namespaces/default/configmaps".to_owned(),
                query: query
                    .iter()
                    .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                    .collect(),
                accept: None,
                user_agent: None,
                replica: Replica::Primary,
                violations: Vec::new(),
            },
        };
        let mut aim = Aim::new(configmaps(Some("default")), Transport::Http1);
        aim.hear(&[request(
            Verb::Other,
            &[("watch", "true"), ("sendInitialEvents", "true")],
        )]);
        assert!(aim.is_astray());
        assert!(
            aim.missed()
                .is_some_and(|why| why.contains("streams its first list"))
        );
        aim.hear(&[request(Verb::List, &[])]);
        assert_eq!((aim.is_astray(), aim.missed()), (false, None));
    }

    #[rstest]
    #[case::http2(Transport::TlsHttp2, "does not offer HTTP/2")]
    #[case::tls(Transport::TlsHttp1, "it does not trust the CA")]
    #[case::plain(Transport::Http1, "sent no LIST or WATCH")]
    fn handshakes_that_fail_are_named(#[case] transport: Transport, #[case] named: &str) {
        let closed = Record {
            seq: 0,
            at: Duration::ZERO,
            what: What::Disconnected {
                conn: ConnId(1),
                by: Side::Client,
            },
        };
        let mut aim = Aim::new(configmaps(Some("default")), transport);
        aim.hear(&[closed.clone(), closed.clone()]);
        assert!(!aim.is_astray());
        aim.hear(&[closed]);
        assert_eq!(aim.is_astray(), transport.is_tls());
        let why = aim.missed().unwrap_or_default();
        assert!(why.contains(named), "{why}");
    }

    #[tokio::test(flavor = "current_thread", start_paused = true)]
    async fn an_operator_that_starts_slowly_is_not_astray() {
        let (aim, heard) = (
            RefCell::new(Aim::new(configmaps(None), Transport::Http1)),
            Notify::new(),
        );
        let read = |path: &str| {
            aim.borrow_mut().take(&Named::by(path));
            heard.notify_one();
        };
        let almost = ASTRAY - Duration::from_secs(1);
        let starts = async {
            read("/apis/apiextensions.k8s.io/v1/customresourcedefinitions");
            tokio::time::advance(almost).await;
            read("/apis/crowd.dev/v1/scaffolds");
            tokio::time::advance(almost).await;
            read("/apis/crowd.dev/v1/scaffolds");
        };
        tokio::select! {
            biased;
            _ = stays_astray(&aim, &heard) => panic!("it read another resource nine seconds ago"),
            () = starts => {}
        }
        let why = stays_astray(&aim, &heard).await;
        assert!(why.is_some_and(|why| why.contains("customresourcedefinitions")));
    }

    #[rstest]
    #[case::resource("/apis/apps/v1/deployments", "--resource deployments.apps")]
    #[case::namespace("/api/v1/namespaces/shop/configmaps", "--namespace shop")]
    #[case::both(
        "/apis/apps/v1/namespaces/shop/deployments",
        "--resource deployments.apps --namespace shop"
    )]
    fn reads_of_something_else_name_the_options_to_use(#[case] path: &str, #[case] hint: &str) {
        let mut aim = Aim::new(configmaps(Some("default")), Transport::Http1);
        aim.take(&Named::by(path));
        let why = aim.missed().unwrap_or_default();
        assert!(why.ends_with(&format!("move the scenario: {hint}")), "{why}");
    }

    #[rstest]
    #[case::the_target(Some("default"), "/api/v1/namespaces/default/configmaps", true)]
    #[case::all_namespaces(Some("default"), "/api/v1/configmaps", true)]
    #[case::another_namespace(Some("default"), "/api/v1/namespaces/x/configmaps", false)]
    #[case::one_of_all(None, "/api/v1/namespaces/x/configmaps", false)]
    #[case::another_resource(Some("default"), "/apis/apps/v1/deployments", false)]
    fn only_reads_of_the_target_hit(#[case] namespace: Option<&str>, #[case] path: &str, #[case] hit: bool) {
        let mut aim = Aim::new(configmaps(namespace), Transport::Http1);
        assert!(!aim.is_astray() && aim.missed().is_some());
        aim.take(&Named::by(path));
        assert_eq!((aim.is_astray(), aim.missed().is_none()), (!hit, hit));
        aim.take(&Named::by("/apis/apps/v1/deployments"));
        assert_eq!(aim.missed().is_none(), hit);
    }
}

//! Members of a crowd: processes with a User-Agent and a connection pool, and their loops, which come and go.

use std::sync::Arc;
use std::time::Duration;

use adapter_kube_runtime::KubeRuntime;
use adapter_watcher::WatcherClient;
use conformance::client::{Client, Start};
use conformance::drive::sim::Dialer;
use conformance::drive::stack;
use fake_apiserver::net::{ConnectionSettings, Edge};
use fake_apiserver::scenario::{ClientMode, ClientSettings, InitialList, ListSemantic, Target};
use fastrand::Rng;
use futures::StreamExt as _;
use http::header::{HeaderValue, USER_AGENT};
use http::{Request, Uri};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::Api;
use kube_client::client::Body;
use tower::service_fn;

use crate::reference::Reference;

/// User-Agents of processes: few, so that they are shared. `None`: no User-Agent.
const NAMES: [Option<&str>; 4] = [Some("manager/v1"), Some("manager/v1"), Some("agent/v2"), None];

/// User-Agent of kube-runtime processes, whose known defects are not false positives.
pub const KUBE_RUNTIME: &str = "kube-runtime/5.0.0";

/// A process: its User-Agent, its connection pool, and its library.
pub(super) struct Process {
    pub(super) library: Arc<dyn Client + Send>,
    pub(super) kube: kube_client::Client,
    pub(super) agent: Option<&'static str>,
}

impl Process {
    pub(super) fn draw(rng: &mut Rng, edge: &Edge, connections: &ConnectionSettings) -> Arc<Self> {
        let agent = NAMES[rng.usize(0..NAMES.len())];
        let (library, agent): (Arc<dyn Client + Send>, _) = match rng.u32(0..4) {
            0 => (Arc::new(KubeRuntime), Some(KUBE_RUNTIME)),
            1 => (Arc::new(Reference { mistake: None }), agent),
            _ => (Arc::new(WatcherClient), agent),
        };
        Arc::new(Self {
            library,
            kube: kube(agent, edge, connections),
            agent,
        })
    }

    /// Creates a process of this name that uses our library.
    pub(super) fn named(agent: &'static str, edge: &Edge, connections: &ConnectionSettings) -> Arc<Self> {
        Arc::new(Self {
            library: Arc::new(WatcherClient),
            kube: kube(Some(agent), edge, connections),
            agent: Some(agent),
        })
    }

    /// Returns the API for its writes and reads by name.
    pub(super) fn maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.kube.clone(), "default")
    }
}

fn kube(agent: Option<&'static str>, edge: &Edge, connections: &ConnectionSettings) -> kube_client::Client {
    let dialer = Dialer::with_settings(edge.clone(), connections.clone());
    let bare = stack::client(dialer, Uri::from_static("http://fake"), false);
    let Some(agent) = agent else { return bare };
    let named = service_fn(move |mut request: Request<Body>| {
        let bare = bare.clone();
        request
            .headers_mut()
            .insert(USER_AGENT, HeaderValue::from_static(agent));
        async move { bare.send(request).await }
    });
    kube_client::Client::new(named, "default")
}

/// A loop: starts at a random time, stays for a short or long time, and may return.
pub(super) async fn follow(library: Arc<dyn Client + Send>, process: Arc<Process>, mut rng: Rng, seed: u64) {
    let settings = settings(&mut rng);
    let target = target(&mut rng);
    loop {
        wait(Duration::from_millis(rng.u64(0..5_000))).await;
        let stay = match rng.u32(0..4) {
            0 => Duration::from_secs(rng.u64(1..300)),
            _ => Duration::from_secs(24 * 3600),
        };
        let mut reports = library.start(
            process.kube.clone(),
            Start {
                target: target.clone(),
                settings: settings.clone(),
                seed: seed ^ rng.u64(..),
            },
        );
        let delay = Duration::from_millis(settings.consumer_delay_ms);
        let read = async {
            while let Some(report) = reports.next().await {
                if report.object().is_some() && !delay.is_zero() {
                    wait(delay).await;
                }
            }
        };
        // Members that left or gave up return.
        let _left = tokio::time::timeout(stay, read).await;
    }
}

/// A loop with default settings that does not leave.
pub(super) async fn stay(library: Arc<dyn Client + Send>, process: Arc<Process>, seed: u64) {
    let start = Start {
        target: maps(Some("default")),
        settings: ClientSettings {
            page_size: Some(2),
            ..ClientSettings::default()
        },
        seed,
    };
    let mut reports = library.start(process.kube.clone(), start);
    while reports.next().await.is_some() {}
}

fn settings(rng: &mut Rng) -> ClientSettings {
    let mut settings = ClientSettings {
        page_size: [Some(1), Some(3), Some(500), Some(500), None][rng.usize(0..5)],
        bookmarks: rng.u32(0..5) > 0,
        consumer_delay_ms: [0, 0, 0, 0, 50, 2_000][rng.usize(0..6)],
        timeout_s: [None, None, Some(5), Some(60)][rng.usize(0..4)],
        ..ClientSettings::default()
    };
    if rng.u32(0..3) == 0 {
        // Without bookmarks kube-runtime rejects its own configuration.
        settings.bookmarks = true;
        settings.initial_list = InitialList::StreamingList;
    }
    if rng.u32(0..4) == 0 {
        settings.list_semantic = ListSemantic::Any;
    }
    if rng.u32(0..4) == 0 {
        settings.labels = Some("app=x".to_owned());
    }
    match rng.u32(0..8) {
        0 => settings.mode = ClientMode::Metadata,
        1 => {
            settings.mode = ClientMode::Object;
            settings.object = Some("a".to_owned());
            settings.labels = None;
        }
        _ => {}
    }
    settings
}

fn target(rng: &mut Rng) -> Target {
    maps((rng.u32(0..4) > 0).then_some("default"))
}

fn maps(namespace: Option<&str>) -> Target {
    Target {
        group: String::new(),
        version: "v1".to_owned(),
        plural: "configmaps".to_owned(),
        kind: "ConfigMap".to_owned(),
        namespace: namespace.map(str::to_owned),
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "time is the runtime's, which is paused: nothing sleeps"
)]
pub(super) async fn wait(time: Duration) {
    tokio::time::sleep(time).await;
}

//! SCALE-01, which no scenario can show, because a scenario starts one watcher: with more watches than a connection
//! allows, all of them continue.

use std::time::Duration;

use conformance::drive::stack;
use fake_apiserver::net::tls::Protocols;
use fake_apiserver::net::{ListenerLimits, ServeOptions, Standalone, TlsOptions};
use fake_apiserver::scenario::{ServerSettings, Transport};
use futures::StreamExt as _;
use hyper_util::client::legacy::connect::HttpConnector;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::api::PostParams;
use kube_client::{Api, Client};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use watcher::{Config, Event};

const STREAMS: u32 = 10;
const WATCHERS: usize = 30;
const PATIENCE: Duration = Duration::from_secs(30);
/// A watcher that received nothing by then waits for another's watch to end, which takes minutes.
const STARVED: Duration = Duration::from_secs(3);

/// Messages of a watcher.
#[derive(Debug, PartialEq, Eq)]
enum Word {
    Ready,
    Received,
}

/// kube_client opens a connection per watch, because it uses HTTP/1.1 even over TLS.
#[tokio::test(flavor = "current_thread")]
async fn thirty_watchers_of_one_client_all_go_on() {
    let server = server().await;
    let mut config = kube_client::Config::new(server.url().parse().expect("an address is a URL"));
    config.root_cert = server.authority().map(|authority| vec![authority.to_vec()]);
    assert_eq!(
        count_received(
            Client::try_from(config).expect("an authority of ours is trusted"),
            PATIENCE
        )
        .await,
        WATCHERS
    );
}

/// Without this, the test above would prove nothing.
#[tokio::test(flavor = "current_thread")]
async fn on_one_http2_connection_most_of_them_starve() {
    let server = server().await;
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    let authority = server.authority().expect("it has TLS").clone();
    let tls = stack::with_tls(tcp, authority, Transport::TlsHttp2);
    let client = stack::client(tls, server.url().parse().expect("an address is a URL"), false);
    let received = count_received(client, STARVED).await;
    assert!(received <= STREAMS as usize, "{received}");
}

async fn server() -> Standalone {
    let options = ServeOptions {
        tls: Some(TlsOptions {
            protocols: Protocols::Http2OrHttp1,
            ..TlsOptions::default()
        }),
        limits: ListenerLimits {
            streams: STREAMS,
            ..ListenerLimits::default()
        },
        ..ServeOptions::default()
    };
    let started = Standalone::with_options(ServerSettings::default(), options).await;
    started.expect("a port is free")
}

/// Returns how many watchers receive an object created after all were ready.
async fn count_received(client: Client, within: Duration) -> usize {
    let (sender, mut progress) = mpsc::unbounded_channel();
    let api: Api<ConfigMap> = Api::namespaced(client, "default");
    let mut watchers = JoinSet::new();
    for _ in 0..WATCHERS {
        watchers.spawn(follow(api.clone(), sender.clone()));
    }
    let mut received = 0;
    let all = async {
        for _ in 0..WATCHERS {
            assert_eq!(progress.recv().await, Some(Word::Ready));
        }
        // A write on a separate connection is not blocked by that of the watches.
        let mut object = ConfigMap::default();
        object.metadata.name = Some("b".to_owned());
        api.create(&PostParams::default(), &object)
            .await
            .expect("the object is created");
        while received < WATCHERS {
            assert_eq!(progress.recv().await, Some(Word::Received));
            received += 1;
        }
    };
    // Counts the watchers that received it in time.
    let _starved = tokio::time::timeout(within, all).await;
    received
}

async fn follow(api: Api<ConfigMap>, sender: mpsc::UnboundedSender<Word>) {
    let mut events = watcher::watcher(api, Config::default());
    while let Some(event) = events.next().await {
        let word = match event {
            Ok(Event::InitDone) => Word::Ready,
            Ok(Event::Apply(_)) => Word::Received,
            Ok(Event::Init | Event::InitApply(_) | Event::Delete(_)) | Err(_) => continue,
        };
        if sender.send(word).is_err() {
            return;
        }
    }
}

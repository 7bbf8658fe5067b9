//! SCALE-01, which no scenario can show, for it starts one watcher: with more watches than a connection may carry, all
//! of them go on.

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
/// Who is not told by then waits for the watch of another to end, which takes minutes.
const STARVED: Duration = Duration::from_secs(3);

/// What a watcher had to say.
#[derive(Debug, PartialEq, Eq)]
enum Word {
    Ready,
    Told,
}

/// kube_client opens a connection for each watch: over TLS too it speaks HTTP/1.1.
#[tokio::test(flavor = "current_thread")]
async fn thirty_watchers_of_one_client_all_go_on() {
    let server = server().await;
    let mut config = kube_client::Config::new(server.url().parse().expect("an address is a URL"));
    config.root_cert = server.authority().map(|authority| vec![authority.to_vec()]);
    assert_eq!(
        told(
            Client::try_from(config).expect("an authority of ours is trusted"),
            PATIENCE
        )
        .await,
        WATCHERS
    );
}

/// If this did not hold, the test above would say nothing.
#[tokio::test(flavor = "current_thread")]
async fn on_one_http2_connection_most_of_them_starve() {
    let server = server().await;
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    let authority = server.authority().expect("it has TLS").clone();
    let tls = stack::with_tls(tcp, authority, Transport::TlsHttp2);
    let client = stack::client(tls, server.url().parse().expect("an address is a URL"), false);
    let told = told(client, STARVED).await;
    assert!(told <= STREAMS as usize, "{told}");
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

/// How many of the watchers hear of an object that was made when all were ready.
async fn told(client: Client, within: Duration) -> usize {
    let (say, mut said) = mpsc::unbounded_channel();
    let api: Api<ConfigMap> = Api::namespaced(client, "default");
    let mut watchers = JoinSet::new();
    for _ in 0..WATCHERS {
        watchers.spawn(follow(api.clone(), say.clone()));
    }
    let mut told = 0;
    let all = async {
        for _ in 0..WATCHERS {
            assert_eq!(said.recv().await, Some(Word::Ready));
        }
        // On a connection of its own the write would tell nothing of the watches' one.
        let mut object = ConfigMap::default();
        object.metadata.name = Some("b".to_owned());
        api.create(&PostParams::default(), &object)
            .await
            .expect("it is made");
        while told < WATCHERS {
            assert_eq!(said.recv().await, Some(Word::Told));
            told += 1;
        }
    };
    // Whoever was told by then was told.
    let _starved = tokio::time::timeout(within, all).await;
    told
}

async fn follow(api: Api<ConfigMap>, say: mpsc::UnboundedSender<Word>) {
    let mut events = watcher::watcher(api, Config::default());
    while let Some(event) = events.next().await {
        let word = match event {
            Ok(Event::InitDone) => Word::Ready,
            Ok(Event::Apply(_)) => Word::Told,
            Ok(Event::Init | Event::InitApply(_) | Event::Delete(_)) | Err(_) => continue,
        };
        if say.send(word).is_err() {
            return;
        }
    }
}

//! AUTH-01, which depends on kube_client too: after a 401 the credentials are loaded again, and a rotated token is
//! used without a restart.

use std::path::{Path, PathBuf};

use fake_apiserver::api::Access;
use fake_apiserver::net::{ServeOptions, Standalone};
use fake_apiserver::scenario::ServerSettings;
use futures::{Stream, StreamExt as _};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::config::AuthInfo;
use kube_client::{Api, Client};
use serde_json::{Value, json};
use watcher::{Config, Event};

/// Number of rejections after which a client is considered unable to load the new token.
const REFUSALS_MAX: usize = 3;

const OURS: &str = "the folder is there for tests to write to";

/// A plugin that returns an expired credential is called before every request.
#[tokio::test(flavor = "current_thread")]
async fn a_rotated_credential_is_used_without_a_restart() {
    let file = token_file("asked-again");
    let script = r#"printf '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"%s","expirationTimestamp":"2020-01-01T00:00:00Z"}}' "$(cat "$0")""#;
    let plugin = json!({"exec": {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "sh",
        "args": ["-c", script, file],
        "interactiveMode": "Never",
    }});
    assert!(recovers(plugin, &file).await);
}

/// Without this, the test above would prove nothing.
#[tokio::test(flavor = "current_thread")]
async fn a_credential_that_is_read_once_stays_rejected() {
    let file = token_file("read-once");
    assert!(!recovers(json!({"token": "old"}), &file).await);
}

/// Returns whether a watcher rejected with the old token completes its snapshot after the new one is written to
/// `file`.
async fn recovers(credentials: Value, file: &Path) -> bool {
    let options = ServeOptions {
        access: Some(Access {
            token: "new".to_owned(),
            limited_token: None,
            signing_secret: [0; 32],
        }),
        ..ServeOptions::default()
    };
    let server = Standalone::with_options(ServerSettings::default(), options)
        .await
        .expect("a port is free");
    let mut config = kube_client::Config::new(server.url().parse().expect("an address is a URL"));
    config.auth_info = serde_json::from_value::<AuthInfo>(credentials).expect("as kubeconfigs have them");
    let client = Client::try_from(config).expect("the plugin answers");
    let mut events = watcher::watcher(Api::<ConfigMap>::all(client), Config::default());
    assert!(!is_ready(&mut events, 1).await, "the old token is refused");
    std::fs::write(file, "new").expect(OURS);
    is_ready(&mut events, REFUSALS_MAX).await
}

/// Reads until the snapshot is complete, or until this many rejections.
async fn is_ready(
    events: &mut (impl Stream<Item = Result<Event<ConfigMap>, watcher::Error>> + Unpin),
    refusals: usize,
) -> bool {
    let mut refused = 0;
    while refused < refusals {
        match events.next().await.expect("a watcher does not end") {
            Ok(Event::InitDone) => return true,
            Err(error) if error.code() == Some(401) => refused += 1,
            Err(error) => panic!("{error}"),
            Ok(_) => {}
        }
    }
    false
}

fn token_file(name: &str) -> PathBuf {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&file, "old").expect(OURS);
    file
}

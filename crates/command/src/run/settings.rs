//! Client settings that a scenario assumes, as JSON for the command's environment.

use fake_apiserver::scenario::{ClientMode, ClientSettings, InitialList, ListSemantic, Target};
use serde_json::{Value, json};

/// Returns all keys of `client:` in a scenario file; `null` is the client's own default.
pub(super) fn client(client: &ClientSettings) -> Value {
    let ms = |ms: u64| format!("{ms}ms");
    json!({
        "mode": match client.mode {
            ClientMode::Watcher => "watcher",
            ClientMode::Metadata => "metadata",
            ClientMode::Object => "object",
        },
        "object": client.object,
        "labels": client.labels,
        "fields": client.fields,
        "timeout": client.timeout_s.map(|seconds| format!("{seconds}s")),
        "list_semantic": match client.list_semantic {
            ListSemantic::MostRecent => "most_recent",
            ListSemantic::Any => "any",
        },
        "initial_list": match client.initial_list {
            InitialList::ListWatch => "list_watch",
            InitialList::StreamingList => "streaming_list",
        },
        "page_size": client.page_size.map_or(json!("none"), |size| json!(size)),
        "bookmarks": client.bookmarks,
        "idle_timeout": client.idle_timeout_ms.map(ms),
        "list_timeout": client.list_timeout_ms.map(ms),
        "staleness_probe_after": client.staleness_probe_after_ms.map(|after| after.map_or("none".to_owned(), ms)),
        "backoff": {
            "initial": client.backoff.initial_ms.map(ms),
            "max": client.backoff.max_ms.map(ms),
            "factor": client.backoff.factor,
            "reset_after": client.backoff.reset_after_ms.map(ms),
            "retry_after_max": client.backoff.retry_after_max_ms.map(ms),
        },
        "consumer_delay": ms(client.consumer_delay_ms),
        "consumer_delay_event": client.consumer_delay_event,
        "gzip": client.gzip,
    })
}

/// Returns `target:` of a scenario file; the namespace is `null` for all namespaces and for cluster-scoped resources.
pub(super) fn target(target: &Target) -> Value {
    json!({
        "resource": target.resource(),
        "group": target.group,
        "version": target.version,
        "kind": target.kind,
        "namespace": target.namespace,
    })
}

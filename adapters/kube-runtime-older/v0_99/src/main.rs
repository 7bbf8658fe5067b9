//! kube-runtime 0.99.0: `watcher` with `default_backoff()`, as its documentation has it.

use std::process::ExitCode;

use futures::stream::StreamExt as _;
use kube_client::{Api, Client};
use kube_core::{ApiResource, DynamicObject};
use kube_runtime::watcher::{self, Event, InitialListStrategy, ListSemantic};
use kube_runtime::WatchStreamExt as _;
use protocol::{Hello, Lines};
use serde_json::Value;

fn main() -> ExitCode {
    let hello = Hello {
        name: "kube-runtime",
        version: "0.99.0",
        caps: &[
            "selectors",
            "field-selectors",
            "page-size",
            "resource-version",
            "streaming-list",
            "timeout",
            "bookmarks",
            "init-events",
            "ordered",
            "errors",
        ],
    };
    protocol::serve(hello, async |start| {
        let client = Client::try_default().await.map_err(|error| error.to_string())?;
        let events = watcher::watcher(api(client, &start), config(&start["options"])).default_backoff();
        Ok(events.map(lines).boxed())
    })
}

fn api(client: Client, start: &Value) -> Api<DynamicObject> {
    let of = |key: &str| start["resource"][key].as_str().unwrap_or_default().to_owned();
    let (group, version) = (of("group"), of("version"));
    let resource = ApiResource {
        api_version: if group.is_empty() {
            version.clone()
        } else {
            format!("{group}/{version}")
        },
        group,
        version,
        kind: of("kind"),
        plural: of("plural"),
    };
    match start["namespace"].as_str() {
        Some(namespace) => Api::namespaced_with(client, namespace, &resource),
        None => Api::all_with(client, &resource),
    }
}

fn config(options: &Value) -> watcher::Config {
    let mut config = watcher::Config::default();
    let text = |key: &str| options[key].as_str().map(str::to_owned);
    let number = |key: &str| {
        options[key]
            .as_u64()
            .and_then(|number| u32::try_from(number).ok())
    };
    config.label_selector = text("labelSelector");
    config.field_selector = text("fieldSelector");
    config.timeout = number("timeoutSeconds");
    if let Some(size) = number("pageSize") {
        config.page_size = (size > 0).then_some(size);
    }
    if text("resourceVersion").as_deref() == Some("0") {
        config.list_semantic = ListSemantic::Any;
    }
    if text("initialList").as_deref() == Some("stream") {
        config.initial_list_strategy = InitialListStrategy::StreamingList;
    }
    if let Some(bookmarks) = options["allowBookmarks"].as_bool() {
        config.bookmarks = bookmarks;
    }
    config
}

fn lines(event: watcher::Result<Event<DynamicObject>>) -> Lines {
    let json = |object: DynamicObject| serde_json::to_value(object).unwrap_or_default();
    match event {
        Ok(Event::Init) => protocol::init(),
        Ok(Event::InitApply(object)) => protocol::init_apply(json(object)),
        Ok(Event::InitDone) => protocol::init_done(),
        Ok(Event::Apply(object)) => protocol::apply(json(object)),
        Ok(Event::Delete(object)) => protocol::delete(json(object)),
        Err(error) => {
            let code = match &error {
                watcher::Error::InitialListFailed(kube_client::Error::Api(status))
                | watcher::Error::WatchStartFailed(kube_client::Error::Api(status))
                | watcher::Error::WatchFailed(kube_client::Error::Api(status))
                | watcher::Error::WatchError(status) => Some(status.code),
                _ => None,
            };
            protocol::error(error.to_string(), code)
        }
    }
}

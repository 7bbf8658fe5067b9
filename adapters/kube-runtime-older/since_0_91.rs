//! kube-runtime since 0.91: `watcher` with `default_backoff()`, as documented. One source for several versions, whose
//! only difference is the variants of `Event`.

use std::process::ExitCode;

use futures::stream::StreamExt as _;
use kube_client::Client;
use kube_core::DynamicObject;
use kube_runtime::watcher::{self, Event, InitialListStrategy, ListSemantic};
use kube_runtime::WatchStreamExt as _;
use protocol::{Hello, Lines};
use serde_json::Value;

use crate::api::api;

/// Runs the adapter of this version. `lines` returns the messages of an event.
pub(crate) fn serve(version: &'static str, lines: fn(Event<DynamicObject>) -> Lines) -> ExitCode {
    let hello = Hello {
        name: "kube-runtime",
        version,
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
        Ok(events.map(move |event| event.map_or_else(|error| error_lines(&error), lines)).boxed())
    })
}

/// Returns the JSON of an object.
pub(crate) fn json(object: DynamicObject) -> Value {
    serde_json::to_value(object).unwrap_or_default()
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

fn error_lines(error: &watcher::Error) -> Lines {
    let code = match error {
        watcher::Error::InitialListFailed(kube_client::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube_client::Error::Api(status))
        | watcher::Error::WatchFailed(kube_client::Error::Api(status))
        | watcher::Error::WatchError(status) => Some(status.code),
        _ => None,
    };
    protocol::error(error.to_string(), code)
}

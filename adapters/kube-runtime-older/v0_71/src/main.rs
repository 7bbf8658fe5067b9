//! kube-runtime 0.71.0: `watcher` with `ListParams`, in `StreamBackoff` with `default_backoff()`.

#[path = "../../api.rs"]
mod api;

use std::process::ExitCode;

use api::api;
use futures::stream::StreamExt as _;
use kube_client::Client;
use kube_core::params::ListParams;
use kube_core::DynamicObject;
use kube_runtime::utils::StreamBackoff;
use kube_runtime::watcher::{self, Event};
use protocol::{Hello, Lines};
use serde_json::Value;

fn main() -> ExitCode {
    let hello = Hello {
        name: "kube-runtime",
        version: "0.71.0",
        caps: &[
            "selectors",
            "field-selectors",
            "timeout",
            "bookmarks",
            "init-events",
            "ordered",
            "errors",
        ],
    };
    protocol::serve(hello, async |start| {
        let client = Client::try_default().await.map_err(|error| error.to_string())?;
        let events = watcher::watcher(api(client, &start), params(&start["options"]));
        let events = StreamBackoff::new(events, watcher::default_backoff());
        Ok(events.map(lines).boxed())
    })
}

fn params(options: &Value) -> ListParams {
    let text = |key: &str| options[key].as_str().map(str::to_owned);
    let mut params = ListParams {
        label_selector: text("labelSelector"),
        field_selector: text("fieldSelector"),
        ..ListParams::default()
    };
    params.timeout = options["timeoutSeconds"]
        .as_u64()
        .and_then(|number| u32::try_from(number).ok());
    if let Some(bookmarks) = options["allowBookmarks"].as_bool() {
        params.bookmarks = bookmarks;
    }
    params
}

fn lines(event: Result<Event<DynamicObject>, watcher::Error>) -> Lines {
    let json = |object: DynamicObject| serde_json::to_value(object).unwrap_or_default();
    match event {
        Ok(Event::Applied(object)) => protocol::apply(json(object)),
        Ok(Event::Deleted(object)) => protocol::delete(json(object)),
        Ok(Event::Restarted(objects)) => protocol::set(objects.into_iter().map(json)),
        Err(error) => {
            let code = match &error {
                watcher::Error::InitialListFailed(kube_client::Error::Api(status))
                | watcher::Error::WatchStartFailed(kube_client::Error::Api(status))
                | watcher::Error::WatchFailed(kube_client::Error::Api(status)) => Some(status.code),
                watcher::Error::WatchError(status) => Some(status.code),
                _ => None,
            };
            protocol::error(error.to_string(), code)
        }
    }
}

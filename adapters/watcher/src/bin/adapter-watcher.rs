//! Our watcher as an adapter process, for `fake-apiserver conformance`. It must not know the scenario.

use std::process::ExitCode;

use adapter_watcher::WatcherClient;
use conformance::adapter::serve::{Capability, Recovers, serve};

/// Everything but `cache`: the watcher is a stream and holds no objects.
const CAPABILITIES: [Capability; 20] = [
    Capability::Selectors,
    Capability::FieldSelectors,
    Capability::PageSize,
    Capability::ResourceVersion,
    Capability::StreamingList,
    Capability::MetadataOnly,
    Capability::SingleObject,
    Capability::Timeout,
    Capability::Bookmarks,
    Capability::IdleTimeout,
    Capability::ListTimeout,
    Capability::StalenessProbe,
    Capability::Backoff,
    Capability::RetryAfterMax,
    Capability::Gzip,
    Capability::Http2,
    Capability::Pause,
    Capability::Errors,
    Capability::InitEvents,
    Capability::Ordered,
];

fn main() -> ExitCode {
    serve(&WatcherClient, &CAPABILITIES, Recovers::Library)
}

//! `kube_runtime::watcher` as an adapter process, for `fake-apiserver conformance`. It must not know the scenario.

use std::process::ExitCode;

use adapter_kube_runtime::KubeRuntime;
use conformance::adapter::serve::{Capability, Recovers, Retries, serve_with};

/// Without it, kube-client retries refused requests as it does by default.
const BARE: &str = "--without-client-retries";

/// The library has no option for idle streams (`idle-timeout`, `list-timeout`, `staleness-probe`).
const CAPABILITIES: [Capability; 17] = [
    Capability::Selectors,
    Capability::FieldSelectors,
    Capability::PageSize,
    Capability::ResourceVersion,
    Capability::StreamingList,
    Capability::MetadataOnly,
    Capability::SingleObject,
    Capability::Timeout,
    Capability::Bookmarks,
    Capability::Backoff,
    Capability::Gzip,
    Capability::Http2,
    Capability::Pause,
    Capability::Close,
    Capability::Errors,
    Capability::InitEvents,
    Capability::Ordered,
];

fn main() -> ExitCode {
    let retries = match std::env::args().nth(1).as_deref() {
        Some(BARE) => Retries::OfTheClient,
        Some(_) | None => Retries::OfKubeClient,
    };
    serve_with(&KubeRuntime, &CAPABILITIES, Recovers::Library, retries)
}

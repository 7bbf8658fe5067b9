//! `kube_runtime::watcher` as an adapter process, for `fake-apiserver conformance`. It must not know the scenario.

use std::process::ExitCode;

use adapter_kube_runtime::KubeRuntime;
use conformance::adapter::serve::{Capability, Recovers, serve};

/// The library has no option for idle streams (`idle-timeout`, `list-timeout`, `staleness-probe`), and does not read
/// Retry-After.
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
    serve(&KubeRuntime, &CAPABILITIES, Recovers::Library)
}

//! `kube_client::Api` as an adapter process, for `fake-apiserver conformance`. It must not know the scenario.

use std::process::ExitCode;

use adapter_kube_client::KubeClient;
use conformance::adapter::serve::{Capability, Recovers, serve};

fn main() -> ExitCode {
    let capabilities = [
        Capability::Selectors,
        Capability::FieldSelectors,
        Capability::PageSize,
        Capability::ResourceVersion,
        Capability::Timeout,
        Capability::Bookmarks,
        Capability::Gzip,
        Capability::Http2,
        Capability::Pause,
        Capability::Close,
        Capability::Errors,
        Capability::InitEvents,
        Capability::Ordered,
    ];
    serve(&KubeClient, &capabilities, Recovers::None)
}

//! The reference client as an adapter process, right or with the mistake that its argument names.
//!
//! It shows that the judge of adapters can fail: `tests/tests/mutants_as_adapters.rs`.

use std::process::ExitCode;

use conformance::adapter::serve::{Capability, Recovers, serve};
use tests::reference::{Mistake, Reference};

/// What the reference client can be told.
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
    let mistake = match std::env::args().nth(1) {
        None => None,
        Some(name) => match Mistake::named(&name) {
            Some(mistake) => Some(mistake),
            None => {
                eprintln!("adapter-reference: there is no mistake {name}");
                return ExitCode::from(2);
            }
        },
    };
    serve(&Reference { mistake }, &CAPABILITIES, Recovers::Library)
}

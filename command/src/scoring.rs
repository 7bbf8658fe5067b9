//! Options by which `run` and `conformance` score alike. It must not know how tests are run.

use clap::ValueEnum;
use fake_apiserver::scenario::edition::{self, Edition};

/// What a flaky test is: one that fails in one attempt and passes in another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Flaky {
    /// A failure.
    Fail,
    /// Reported only.
    Report,
}

/// Parses the name of an edition.
///
/// # Errors
///
/// This version has no such edition; the message lists those that it has.
pub(crate) fn edition_of(name: &str) -> Result<&'static Edition, String> {
    edition::edition(name).ok_or_else(|| {
        let names = edition::editions()
            .iter()
            .rev()
            .map(|edition| edition.name.as_str());
        let names: Vec<&str> = names.chain([edition::LATEST]).collect();
        format!("this version has: {}", names.join(", "))
    })
}

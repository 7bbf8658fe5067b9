//! A client under test, in process.

use fake_apiserver::report::Report;
use fake_apiserver::scenario::{ClientSettings, Contract, Target};
use futures::stream::BoxStream;

/// What a client is told when it starts.
#[derive(Debug, Clone)]
pub struct Start {
    /// The collection to keep in step with.
    pub target: Target,
    /// Its settings.
    pub settings: ClientSettings,
    /// Where its chance comes from: same seed, same jitter.
    pub seed: u64,
}

/// A watch client that can be put through scenarios.
///
/// An adapter only reports: it never de-duplicates, retries, repairs or relists on the library's behalf, and it keeps
/// the library's order.
pub trait Client: Sync {
    /// The name to choose it by: `watcher`, `kube-runtime`.
    fn name(&self) -> &'static str;

    /// The library's version.
    fn version(&self) -> &'static str;

    /// What of the library can be started.
    fn contracts(&self) -> &'static [Contract] {
        &[Contract::Informer]
    }

    /// Starts the client. Dropping the stream stops it.
    ///
    /// The stream is polled inside a tokio runtime; it must not spawn work that outlives it. It ends only when the
    /// library gives up for good.
    fn start(&self, kube: kube_client::Client, start: Start) -> BoxStream<'static, Report>;
}

//! Trait for in-process clients under test.

use fake_apiserver::report::Report;
use fake_apiserver::scenario::{ClientSettings, Contract, Target};
use futures::stream::BoxStream;

/// Start parameters of a client.
#[derive(Debug, Clone)]
pub struct Start {
    /// Collection to list and watch.
    pub target: Target,
    /// Client settings of the scenario.
    pub settings: ClientSettings,
    /// Seed for all its randomness: same seed, same jitter.
    pub seed: u64,
}

/// A watch client that scenarios can run against.
///
/// An adapter only reports: it never de-duplicates, retries, repairs or relists on the library's behalf, and it keeps
/// the library's order.
pub trait Client: Sync {
    /// Name on the command line: `watcher`, `kube-runtime`.
    fn name(&self) -> &'static str;

    /// Version of the library.
    fn version(&self) -> &'static str;

    /// Contracts that the library implements.
    fn contracts(&self) -> &'static [Contract] {
        &[Contract::Informer]
    }

    /// Starts the client. Dropping the stream stops it.
    ///
    /// The stream is polled inside a tokio runtime; it must not spawn work that outlives it. It ends only when the
    /// library gives up for good.
    fn start(&self, kube: kube_client::Client, start: Start) -> BoxStream<'static, Report>;
}

//! What is done with a watcher's stream on its way to a consumer, by kube-runtime's names. Every adapter passes errors
//! on, and none can lose a delete.

mod atomic;
mod backoff;
mod filter;
mod objects;
mod reflect;

use futures::Stream;

pub use self::atomic::{Atomic, AtomicEvent};
pub use self::backoff::{Backoff, StreamBackoff};
pub use self::filter::{EventFilter, PredicateConfig, PredicateFilter};
pub use self::objects::{Modify, Objects};
pub use self::reflect::{Deltas, Reflect};
use crate::error::Error;
use crate::event::Event;
use crate::predicates::Predicate;
use crate::reflector::{Lookup, Writer};

/// Adapters for the streams of [`watcher()`](crate::watcher()) and for those made of them.
pub trait WatchStreamExt: Stream {
    /// The stream as it is: a watcher paces itself, and an adapter around it cannot tell progress from noise.
    ///
    /// It is here so that code that had to ask for a backoff need not change. The numbers are in
    /// [`Config::backoff`](crate::Config::backoff).
    fn default_backoff(self) -> Self
    where
        Self: Sized,
    {
        self
    }

    /// Waits after each error for as long as `backoff` says, beyond what the watcher itself waits. It starts over when
    /// an event shows progress: not at [`Event::Init`].
    ///
    /// For streams of other makes. A watcher of this crate needs none.
    fn backoff<K, B>(self, backoff: B) -> StreamBackoff<Self, B>
    where
        Self: Stream<Item = Result<Event<K>, Error>> + Sized,
        B: Backoff,
    {
        StreamBackoff::new(self, backoff)
    }

    /// The objects that were added or changed, from relists too.
    fn applied_objects<K>(self) -> Objects<Self>
    where
        Self: Stream<Item = Result<Event<K>, Error>> + Sized,
    {
        Objects::new(self, false)
    }

    /// The objects that were added, changed or deleted. What a relist does without is not among them: use
    /// [`deltas`](Self::deltas) for that.
    fn touched_objects<K>(self) -> Objects<Self>
    where
        Self: Stream<Item = Result<Event<K>, Error>> + Sized,
    {
        Objects::new(self, true)
    }

    /// Changes each object that passes: to drop what is not needed before it is stored.
    fn modify<K, F>(self, change: F) -> Modify<Self, F>
    where
        Self: Stream<Item = Result<Event<K>, Error>> + Sized,
        F: FnMut(&mut K),
    {
        Modify::new(self, change)
    }

    /// Drops objects whose predicate has the same value as last time. An object that was made again under an old name
    /// has another uid, and passes.
    ///
    /// Behind [`touched_objects`](Self::touched_objects) it is [`Objects::predicate_filter`], by which deletes always
    /// pass. A stream of bare objects from elsewhere does not say which are deleted, and there they are compared like
    /// all others.
    fn predicate_filter<K, P>(self, predicate: P, config: PredicateConfig) -> PredicateFilter<Self, P>
    where
        Self: Stream<Item = Result<K, Error>> + Sized,
        K: Lookup,
        P: Predicate<K>,
    {
        PredicateFilter::new(self, predicate, config)
    }

    /// Keeps a store by the events that pass: each is in the store before it is given on.
    ///
    /// ```
    /// # use futures::TryStreamExt;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use watcher::{Config, WatchStreamExt, reflector, watcher};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = fake_apiserver::net::Standalone::start(Default::default()).await?;
    /// # let client = kube_client::Client::try_from(kube_client::Config::new(server.url().parse()?))?;
    /// # let api = kube_client::Api::<ConfigMap>::namespaced(client, "default");
    /// # let map = serde_json::from_value(serde_json::json!({"metadata": {"name": "a"}}))?;
    /// # api.create(&Default::default(), &map).await?;
    /// let (reader, writer) = reflector::store();
    /// let mut changed = std::pin::pin!(watcher(api, Config::default()).reflect(writer).applied_objects());
    /// while let Some(object) = changed.try_next().await? {
    ///     println!("{:?} changed; there are {}", object.metadata.name, reader.len());
    /// #   break;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    fn reflect<K>(self, writer: Writer<K>) -> Reflect<Self, K>
    where
        Self: Stream<Item = Result<Event<K>, Error>> + Sized,
        K: Lookup + Clone,
    {
        Reflect::new(self, writer)
    }

    /// The same as [`reflect`](Self::reflect): every store can be subscribed to, and no subscriber can hold the stream
    /// back.
    fn reflect_shared<K>(self, writer: Writer<K>) -> Reflect<Self, K>
    where
        Self: Stream<Item = Result<Event<K>, Error>> + Sized,
        K: Lookup + Clone,
    {
        self.reflect(writer)
    }

    /// Keeps a store, and tells what changes in it: old and new state, and the deletes that no event told of, because
    /// they fell into a gap between two watches.
    ///
    /// ```
    /// # use futures::TryStreamExt;
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # use watcher::reflector::{self, Delta};
    /// # use watcher::{Config, WatchStreamExt, watcher};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = fake_apiserver::net::Standalone::start(Default::default()).await?;
    /// # let client = kube_client::Client::try_from(kube_client::Config::new(server.url().parse()?))?;
    /// # let api = kube_client::Api::<Pod>::namespaced(client, "default");
    /// # let pod = serde_json::json!({"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    /// # api.create(&Default::default(), &serde_json::from_value(pod)?).await?;
    /// let (_pods, writer) = reflector::store();
    /// let mut deltas = std::pin::pin!(watcher(api, Config::default()).deltas(writer));
    /// while let Some(delta) = deltas.try_next().await? {
    ///     match delta {
    ///         Delta::Added(pod) => println!("+ {:?}", pod.metadata.name),
    ///         Delta::Modified { old, new } => println!("{:?} -> {:?}", old.status, new.status),
    ///         Delta::Deleted { last, inferred } => println!("- {:?} ({inferred})", last.metadata.name),
    ///     }
    /// #   break;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    fn deltas<K>(self, writer: Writer<K>) -> Deltas<Self, K>
    where
        Self: Stream<Item = Result<Event<K>, Error>> + Sized,
        K: Lookup,
    {
        Deltas::new(self, writer)
    }

    /// The events of before kube-runtime 0.92: a relist is one event with the whole set, and comes only when it is
    /// complete.
    fn atomic<K>(self) -> Atomic<Self, K>
    where
        Self: Stream<Item = Result<Event<K>, Error>> + Sized,
    {
        Atomic::new(self)
    }
}

impl<S: Stream + ?Sized> WatchStreamExt for S {}

#[cfg(test)]
mod tests;

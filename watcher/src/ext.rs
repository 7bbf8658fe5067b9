//! Adapters for watcher streams, named as in kube-runtime. Every adapter forwards errors, and none drops a delete.

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

/// Adapters for [`watcher()`](crate::watcher()) streams and for streams derived from them.
pub trait WatchStreamExt: Stream {
    /// Returns the stream unchanged: the watcher does its own backoff, and an outer adapter cannot distinguish
    /// progress from noise.
    ///
    /// Exists so that code written for kube-runtime compiles. The delays are in
    /// [`Config::backoff`](crate::Config::backoff).
    fn default_backoff(self) -> Self
    where
        Self: Sized,
    {
        self
    }

    /// Waits after each error for as long as `backoff` returns, in addition to the watcher's own delay. It is reset
    /// by events that show progress; [`Event::Init`] does not.
    ///
    /// For other streams. A watcher of this crate does not need it.
    fn backoff<K, B>(self, backoff: B) -> StreamBackoff<Self, B>
    where
        Self: Stream<Item = Result<Event<K>, Error>> + Sized,
        B: Backoff,
    {
        StreamBackoff::new(self, backoff)
    }

    /// Returns the objects that were added or changed, including those of relists.
    fn applied_objects<K>(self) -> Objects<Self>
    where
        Self: Stream<Item = Result<Event<K>, Error>> + Sized,
    {
        Objects::new(self, false)
    }

    /// Returns the objects that were added, changed or deleted. Objects missing from a relist are not included: use
    /// [`deltas`](Self::deltas) for these.
    fn touched_objects<K>(self) -> Objects<Self>
    where
        Self: Stream<Item = Result<Event<K>, Error>> + Sized,
    {
        Objects::new(self, true)
    }

    /// Modifies each object: e.g. to drop fields before it is stored.
    fn modify<K, F>(self, change: F) -> Modify<Self, F>
    where
        Self: Stream<Item = Result<Event<K>, Error>> + Sized,
        F: FnMut(&mut K),
    {
        Modify::new(self, change)
    }

    /// Drops objects whose predicate value is the same as last time. An object that was recreated under the same name
    /// has another uid, and passes.
    ///
    /// After [`touched_objects`](Self::touched_objects) the inherent method [`Objects::predicate_filter`] takes
    /// precedence, which always passes deletes. A stream of bare objects from elsewhere does not mark deletes, so
    /// they are compared like all others.
    fn predicate_filter<K, P>(self, predicate: P, config: PredicateConfig) -> PredicateFilter<Self, P>
    where
        Self: Stream<Item = Result<K, Error>> + Sized,
        K: Lookup,
        P: Predicate<K>,
    {
        PredicateFilter::new(self, predicate, config)
    }

    /// Applies the events to a store; an object is in the store before its event is passed on.
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

    /// Same as [`reflect`](Self::reflect): every store accepts subscribers, and no subscriber blocks the stream.
    fn reflect_shared<K>(self, writer: Writer<K>) -> Reflect<Self, K>
    where
        Self: Stream<Item = Result<Event<K>, Error>> + Sized,
        K: Lookup + Clone,
    {
        self.reflect(writer)
    }

    /// Applies the events to a store and returns what changed: old and new state, including deletes without an event
    /// because they happened between two watches.
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

    /// Returns the events of kube-runtime before 0.92: a relist is one event with all objects, emitted when it is
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

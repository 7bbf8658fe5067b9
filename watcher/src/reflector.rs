//! A local copy of a collection, updated by watcher events: [`Store`] reads it, [`Writer`] writes it, and
//! [`Subscriber`]s receive its changes. Independent of where the events come from.
//!
//! ```
//! use futures::TryStreamExt;
//! use k8s_openapi::api::core::v1::Pod;
//! use kube_client::{Api, Client};
//! use watcher::reflector::{self, ObjectRef};
//! use watcher::{Config, WatchStreamExt, watcher};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let server = fake_apiserver::net::Standalone::start(Default::default()).await?;
//! # let client = Client::try_from(kube_client::Config::new(server.url().parse()?))?;
//! let (pods, writer) = reflector::store();
//! let events = watcher(Api::<Pod>::namespaced(client, "apps"), Config::default()).reflect(writer);
//! tokio::spawn(events.try_for_each(|_| async { Ok(()) }));
//!
//! pods.wait_until_ready().await?;
//! println!("{} pods", pods.len());
//! let web = pods.get(&ObjectRef::new("web-0").within("apps"));
//! # Ok(())
//! # }
//! ```
//!
//! # Guarantees
//! - Readers see the objects as of some event: the old objects until a relist is complete, then the new ones.
//! - A relist costs as much as it changes. Unchanged objects keep their `Arc`, and no second set is built.
//! - An object missing from a relist is a [`Delta::Deleted`], marked as inferred.
//! - No subscriber blocks the watcher or another subscriber, and none misses a wake-up.

mod delta;
mod lookup;
mod ready;
mod set;
mod store;
mod subscriber;
mod sync;
#[cfg(test)]
mod tests;
mod writer;

use futures::{Stream, StreamExt};

pub use self::delta::Delta;
pub use self::lookup::{Lookup, ObjectRef};
pub use self::ready::WriterDropped;
pub use self::store::{Index, Store};
pub use self::subscriber::Subscriber;
pub use self::writer::Writer;
use crate::error::Error;
use crate::event::Event;

/// Creates an empty store and its writer.
pub fn store<K: Lookup>() -> (Store<K>, Writer<K>) {
    let writer = Writer::new();
    (writer.as_reader(), writer)
}

/// Applies the events to a store; an object is in the store before its event is passed on.
///
/// Same as [`reflect`](crate::WatchStreamExt::reflect), with the argument order of kube-runtime's `reflector`.
pub fn reflector<K, S>(mut writer: Writer<K>, stream: S) -> impl Stream<Item = Result<Event<K>, Error>>
where
    K: Lookup + Clone,
    S: Stream<Item = Result<Event<K>, Error>>,
{
    stream.inspect(move |event| {
        if let Ok(event) = event {
            writer.apply_watcher_event(event);
        }
    })
}

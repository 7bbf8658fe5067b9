//! A local copy of a collection, kept by a watcher's events: [`Store`] to read it, [`Writer`] to write it,
//! [`Subscriber`]s to hear what changes. It must not know where the events come from.
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
//! # What it promises
//! - Readers see the set as it was after some event: an old set until a relist is whole, then the new one.
//! - A relist costs what it changes. What it names again unchanged stays the same `Arc`, and no second set is built.
//! - What a relist does without is a [`Delta::Deleted`], marked as inferred.
//! - No subscriber can hold the watcher back, nor another subscriber, nor miss a wake-up.

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

/// An empty store and its writer.
pub fn store<K: Lookup>() -> (Store<K>, Writer<K>) {
    let writer = Writer::new();
    (writer.as_reader(), writer)
}

/// Keeps a store by the events that pass: each is in the store before it is given on.
///
/// The same as [`reflect`](crate::WatchStreamExt::reflect), in the order of arguments of kube-runtime's function of
/// this name.
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

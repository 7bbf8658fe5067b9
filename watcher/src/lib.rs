//! Watches a Kubernetes collection: LIST, WATCH, and recovery from every failure in between.
//!
//! ```
//! use futures::StreamExt;
//! use k8s_openapi::api::core::v1::Pod;
//! use kube_client::{Api, Client};
//! use watcher::{Config, Event, watcher};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let server = fake_apiserver::net::Standalone::start(Default::default()).await?;
//! # let client = Client::try_from(kube_client::Config::new(server.url().parse()?))?;
//! let pods: Api<Pod> = Api::namespaced(client, "apps");
//! let mut events = std::pin::pin!(watcher(pods, Config::default().labels("app=web")));
//! while let Some(event) = events.next().await {
//! #   let pods_are_known = matches!(event, Ok(Event::InitDone));
//!     match event {
//!         Ok(Event::Init) => println!("a snapshot begins"),
//!         Ok(Event::InitApply(pod)) => println!("exists: {:?}", pod.metadata.name),
//!         Ok(Event::InitDone) => println!("the snapshot is complete; what was not in it is gone"),
//!         Ok(Event::Apply(pod)) => println!("changed: {:?}", pod.metadata.name),
//!         Ok(Event::Delete(pod)) => println!("deleted: {:?}", pod.metadata.name),
//!         Err(error) => eprintln!("will be retried: {error}"),
//!     }
//! #   if pods_are_known { break }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Guarantees
//! - After [`Event::InitDone`] the objects equal the server's at one resourceVersion; otherwise `InitDone` is not
//!   emitted.
//! - Retries are paced by the watcher: the delay grows with each failure and is never shorter than the server's
//!   `Retry-After`. No backoff adapter is needed, and none can make it retry faster.
//! - The stream never ends by itself. Errors are reported and followed by a retry.
//! - Every wait is bounded: LISTs, response headers of watches, and silent watches have deadlines.
//! - An object that cannot be decoded is reported and never skipped: the collection is listed again.
//! - Object content is never logged or quoted in an error.
//!
//! The [`guide`] goes from this example to a hundred thousand objects; [`coming_from_kube_runtime`] lists what
//! changes for programs that use kube-runtime's watcher.
//!
//! # With kube's own retries
//! A `kube_client::Client` with the default configuration retries 429, 503 and 504 itself, up to 15 times and for as
//! long as `Retry-After` says, before the watcher sees the error. The watcher handles these with a cap: set
//! `kube_client::Config::default_retry` to false for its client.
//!
//! # Where to start reading
//! [`machine`] decides (a state diagram heads the file), [`decode`] parses bodies, and only the stream behind
//! [`watcher()`] does I/O and waits. Without the feature `client` only the sans-IO modules are compiled.

pub mod backoff;
#[cfg(all(any(doc, doctest), feature = "client"))]
#[doc = include_str!("../docs/coming_from_kube_runtime.md")]
pub mod coming_from_kube_runtime {}
pub mod config;
pub mod decode;
pub mod error;
pub mod event;
#[cfg(feature = "client")]
pub mod ext;
#[cfg(all(any(doc, doctest), feature = "client"))]
#[doc = include_str!("../docs/guide.md")]
pub mod guide {}
#[cfg(feature = "kube-runtime")]
pub mod interop;
pub mod lazy;
pub mod machine;
pub mod object;
#[cfg(feature = "client")]
pub mod predicates;
#[cfg(feature = "client")]
pub mod progress;
mod prune;
#[cfg(feature = "client")]
pub mod reflector;
pub mod request;
pub mod status;
#[cfg(feature = "client")]
mod stream;
pub mod version;

pub use backoff::{BackoffConfig, DefaultBackoff};
pub use config::{Config, InitialListStrategy, ListSemantic};
pub use error::{Error, Fault};
pub use event::Event;
#[cfg(feature = "client")]
pub use ext::WatchStreamExt;
pub use lazy::Lazy;
#[cfg(feature = "client")]
pub use predicates::Predicate;
#[cfg(feature = "client")]
pub use progress::{Progress, Synced};
#[cfg(feature = "client")]
pub use reflector::reflector;
#[cfg(feature = "compress")]
pub use stream::packed_watcher;
#[cfg(feature = "client")]
pub use stream::{
    Watcher, lazy_watcher, metadata_watcher, store_watcher, watch_object, watch_object_with, watcher,
};

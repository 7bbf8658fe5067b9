//! An in-memory Kubernetes apiserver for the tests of a Rust controller: start it, get a [`kube_client::Client`], inject
//! faults, assert on requests.
//!
//! ```
//! use fake_apiserver_testing::{FakeApiserver, List, Rule, Status};
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use kube_client::Api;
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = FakeApiserver::builder()
//!     .objects(["{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: default}}"])
//!     .rule(Rule::on(List::of("configmaps")).respond(Status::too_many_requests(1)))
//!     .start()
//!     .await;
//!
//! let api = Api::<ConfigMap>::default_namespaced(server.client());
//! let list = api.list(&Default::default()).await?; // kube-client retries the 429
//!
//! assert_eq!(list.items.len(), 1);
//! server.expect(List::of("configmaps"), 2);
//! # Ok(())
//! # }
//! ```
//!
//! Requests without a rule are answered as a kube-apiserver answers them. [`Builder::in_memory`] replaces sockets by pipes,
//! so that a test with paused time (`#[tokio::test(start_paused = true)]`) waits for nothing and is deterministic.
//!
//! | task | start with |
//! |---|---|
//! | start a server, create objects | [`FakeApiserver::builder`], [`FakeApiserver::apply`] |
//! | select requests | [`List`], [`Page`], [`Watch`], [`Get`], [`Create`], [`Update`], [`Patch`], [`Delete`], [`Requests`] |
//! | inject a fault | [`Rule`], [`Status`] |
//! | inject one at once | [`FakeApiserver::compact`], [`FakeApiserver::expire_watches`], [`FakeApiserver::restart`] |
//! | wait without sleeping | [`FakeApiserver::wait_for`] |
//! | assert | [`FakeApiserver::expect`], [`FakeApiserver::requests`], [`FakeApiserver::verdict`] |
//!
//! [docs/recipes.md](https://github.com/fake-apiserver/fake-apiserver/blob/main/docs/recipes.md) has thirteen whole tests.
//!
//! This crate must not decide how a request is answered (`fake_apiserver` does) or what violates an invariant (`judge`
//! does).

#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
mod readme {}

mod builder;
mod expect;
#[cfg(feature = "kube")]
mod kube;
mod matcher;
mod objects;
mod request;
mod resource;
mod rule;
mod server;
mod service;
mod status;
mod steer;
mod trace;
mod verdict;

pub use fake_apiserver;
pub use judge::verdict::Contradiction;
pub use judge::wire::{ClientVerdict, Violation};

pub use self::builder::{Builder, StartError};
pub use self::expect::Count;
pub use self::matcher::{
    Create, Delete, DeleteCollection, Get, List, Matcher, Page, Patch, Requests, Update, Watch, kind,
};
pub use self::request::{Request, Verb};
pub use self::rule::{Ending, Rule};
pub use self::server::FakeApiserver;
pub use self::service::HttpService;
pub use self::status::Status;
pub use self::trace::Trace;
pub use self::verdict::Verdict;

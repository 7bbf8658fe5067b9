//! Converts this crate's streams to kube-runtime's types, for programs that use its `Controller`. The only module
//! that depends on kube-runtime.
//!
//! ```
//! use std::sync::Arc;
//! use futures::StreamExt;
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use kube_client::{Api, Client};
//! use kube_runtime::controller::{Action, Controller};
//! use kube_runtime::reflector;
//! use watcher::interop::{KubeRuntimeExt as _, NoBackoff};
//! use watcher::{Config, WatchStreamExt as _, watcher};
//!
//! # #[derive(Debug, thiserror::Error)] #[error("never")] struct Never;
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let server = fake_apiserver::net::Standalone::start(Default::default()).await?;
//! # let client = Client::try_from(kube_client::Config::new(server.url().parse()?))?;
//! # let map = serde_json::from_value(serde_json::json!({"metadata": {"name": "a"}}))?;
//! # Api::<ConfigMap>::namespaced(client.clone(), "default").create(&Default::default(), &map).await?;
//! let (reader, writer) = reflector::store();
//! let events = watcher(Api::<ConfigMap>::all(client), Config::default()).kube_runtime_reflect(writer);
//! Controller::for_stream(events.applied_objects().kube_runtime_objects(), reader)
//!     .trigger_backoff(NoBackoff)
//!     .run(
//!         |object, _| async move {
//!             println!("{:?}", object.metadata.name);
//!             Ok::<_, Never>(Action::await_change())
//!         },
//!         |_, _, _| Action::await_change(),
//!         Arc::new(()),
//!     )
//! #   .take(1)
//!     .for_each(|_| async {})
//!     .await;
//! # Ok(())
//! # }
//! ```

use std::hash::Hash;
use std::time::Duration;

use futures::{Stream, StreamExt, TryStreamExt};
use kube_runtime::reflector::Lookup as KubeLookup;
use kube_runtime::reflector::store::Writer as KubeWriter;
use kube_runtime::utils::Backoff;
use kube_runtime::watcher::{Error as KubeError, Event as KubeEvent};

use crate::error::{During, Error};
use crate::event::Event;
use crate::status::Status;

/// Converts streams of this crate for kube-runtime's `Controller` and adapters.
pub trait KubeRuntimeExt: Stream {
    /// Returns kube-runtime events, for its adapters.
    fn kube_runtime_events<K>(self) -> impl Stream<Item = Result<KubeEvent<K>, KubeError>>
    where
        Self: Stream<Item = Result<Event<K>, Error>> + Sized,
    {
        self.map(|event| event.map(KubeEvent::from).map_err(KubeError::from))
    }

    /// Applies the events to a kube-runtime store, for `Controller::for_stream`.
    fn kube_runtime_reflect<K>(self, mut writer: KubeWriter<K>) -> impl Stream<Item = Result<Event<K>, Error>>
    where
        Self: Stream<Item = Result<Event<K>, Error>> + Sized,
        K: KubeLookup + Clone + 'static,
        K::DynamicType: Eq + Hash + Clone,
    {
        self.inspect(move |event| {
            if let Ok(event) = event {
                writer.apply_watcher_event(&event.clone().into());
            }
        })
    }

    /// Returns objects, for every `Controller` method that takes a stream; call it after this crate's adapters.
    fn kube_runtime_objects<K>(self) -> impl Stream<Item = Result<K, KubeError>>
    where
        Self: Stream<Item = Result<K, Error>> + Sized,
    {
        self.map_err(KubeError::from)
    }
}

impl<S: Stream> KubeRuntimeExt for S {}

/// No delay after an error, for `Controller::trigger_backoff`.
///
/// This crate's streams do their own backoff, each for its own request. The controller has one backoff for all of its
/// streams: while it waits because one stream failed, it polls none of the others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NoBackoff;

impl Iterator for NoBackoff {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        Some(Duration::ZERO)
    }
}

impl Backoff for NoBackoff {
    fn reset(&mut self) {}
}

impl<K> From<Event<K>> for KubeEvent<K> {
    fn from(event: Event<K>) -> Self {
        match event {
            Event::Init => Self::Init,
            Event::InitApply(object) => Self::InitApply(object),
            Event::InitDone => Self::InitDone,
            Event::Apply(object) => Self::Apply(object),
            Event::Delete(object) => Self::Delete(object),
        }
    }
}

/// Maps errors that kube-runtime has a variant for; all others become the source of a failed list or watch.
impl From<Error> for KubeError {
    fn from(error: Error) -> Self {
        match error {
            Error::NoResourceVersion { .. } => Self::NoResourceVersion,
            Error::ErrorEvent { status, .. } => Self::WatchError(Box::new(to_kube(&status))),
            Error::Rejected { during, status, .. } => {
                at(during, kube_client::Error::Api(Box::new(to_kube(&status))))
            }
            Error::OldList { .. } | Error::EndlessList { .. } => at(During::List, wrapped(error)),
            Error::BackInTime { .. } | Error::EndsAtOnce { .. } | Error::SeveralObjects { .. } => {
                at(During::Watch, wrapped(error))
            }
            Error::NoInitialEventsEnd { .. } => at(During::StreamingList, wrapped(error)),
            Error::Transport { during, .. }
            | Error::Silence { during, .. }
            | Error::Undecodable { during, .. }
            | Error::Malformed { during, .. } => at(during, wrapped(error)),
        }
    }
}

fn wrapped(error: Error) -> kube_client::Error {
    kube_client::Error::Service(Box::new(error))
}

fn at(during: During, source: kube_client::Error) -> KubeError {
    match during {
        During::List | During::Page => KubeError::InitialListFailed(source),
        During::WatchStart => KubeError::WatchStartFailed(source),
        During::Watch | During::StreamingList => KubeError::WatchFailed(source),
    }
}

fn to_kube(status: &Status) -> kube_core::Status {
    kube_core::Status::failure(&status.message, &status.reason).with_code(status.code)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::error::TransportError;

    #[rstest]
    #[case::a_list(During::List, "failed to perform initial object list")]
    #[case::a_start(During::WatchStart, "failed to start watching object")]
    #[case::a_watch(During::Watch, "watch stream failed")]
    fn an_error_names_its_phase_and_cause(#[case] during: During, #[case] text: &str) {
        let refused = Error::Rejected {
            during,
            http: 403,
            status: Box::new(Status::from_body(403, b"no")),
        };
        let kube = KubeError::from(refused).to_string();
        assert!(kube.starts_with(text), "{kube}");

        let cut = Error::Transport {
            during,
            source: TransportError::new("reset"),
        };
        let kube = KubeError::from(cut);
        let mut source: Option<&dyn std::error::Error> = Some(&kube);
        let mut texts = Vec::new();
        while let Some(error) = source {
            texts.push(error.to_string());
            source = error.source();
        }
        assert!(texts.iter().any(|text| text.contains("reset")), "{texts:?}");
    }

    #[test]
    fn a_refusal_keeps_its_code() {
        let gone = Error::Rejected {
            during: During::List,
            http: 410,
            status: Box::new(Status::from_body(410, b"gone")),
        };
        let KubeError::InitialListFailed(kube_client::Error::Api(status)) = gone.into() else {
            panic!("another error");
        };
        assert_eq!(status.code, 410);
    }
}

//! `kube_runtime::watcher` 5.0.0 as a client under test, used as documented: the stream with `default_backoff()`, or
//! with its exponential backoff and the scenario's delays.
//!
//! It only translates: whatever the library drops, repeats or gets wrong is reported unchanged. The library has no
//! timeout for an idle watch or LIST and no staleness probe, and does not read Retry-After, so `idle_timeout`,
//! `list_timeout`, `staleness_probe_after` and `backoff.retry_after_max` have no effect here.

use std::fmt::Debug;
use std::time::Duration;

use adapter_kube_client::{Content, api_of, api_status, content, reported, typed_api_of};
use conformance::client::{Client, Start};
use fake_apiserver::report::{Report, ReportedObject};
use fake_apiserver::scenario::{
    BackoffSettings, ClientMode, ClientSettings, InitialList, ListSemantic, Target,
};
use futures::stream::{self, BoxStream, Stream, StreamExt as _};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube_client::Api;
use kube_core::metadata::PartialObjectMeta;
use kube_core::{DynamicObject, NamespaceResourceScope, Resource};
use kube_runtime::WatchStreamExt as _;
use kube_runtime::utils::{Backoff, ResetTimerBackoff};
use kube_runtime::watcher::{self, Event, ExponentialBackoff, watch_object, watcher as watch};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The client under test.
#[derive(Debug, Clone, Copy, Default)]
pub struct KubeRuntime;

impl Client for KubeRuntime {
    fn name(&self) -> &'static str {
        "kube-runtime"
    }

    fn version(&self) -> &'static str {
        "5.0.0"
    }

    fn start(&self, kube: kube_client::Client, start: Start) -> BoxStream<'static, Report> {
        let Target {
            group,
            version,
            plural,
            ..
        } = &start.target;
        match (group.as_str(), version.as_str(), plural.as_str()) {
            ("", "v1", "configmaps") => typed::<ConfigMap>(kube, &start),
            ("", "v1", "pods") => typed::<Pod>(kube, &start),
            _ => {
                let whole: Api<DynamicObject> = api_of(kube.clone(), &start.target);
                let partial = api_of(kube, &start.target);
                follow(whole, partial, &start)
            }
        }
    }
}

fn typed<K>(kube: kube_client::Client, start: &Start) -> BoxStream<'static, Report>
where
    K: Watched + Resource<DynamicType = (), Scope = NamespaceResourceScope>,
{
    let whole: Api<K> = typed_api_of(kube.clone(), &start.target);
    let partial = typed_api_of(kube, &start.target);
    follow(whole, partial, start)
}

/// Bounds of the library and of reports on a watched type.
trait Watched: Resource + Clone + DeserializeOwned + Serialize + Debug + Send + 'static {}

impl<K: Resource + Clone + DeserializeOwned + Serialize + Debug + Send + 'static> Watched for K {}

/// Starts the entry point for the scenario's mode. Metadata is watched as recommended since 3.1.0: the same `watcher`,
/// over an `Api` of partial objects.
fn follow<K>(whole: Api<K>, partial: Api<PartialObjectMeta<K>>, start: &Start) -> BoxStream<'static, Report>
where
    K: Watched,
    PartialObjectMeta<K>: Resource<DynamicType = K::DynamicType>,
{
    let config = config(&start.settings);
    let delays = backoff(start.settings.backoff);
    match start.settings.mode {
        ClientMode::Watcher => reports(watch(whole, config).backoff(delays), content).boxed(),
        ClientMode::Metadata => reports(watch(partial, config).backoff(delays), |_| None).boxed(),
        // `watch_object` accepts only a name; with labels `watcher` is used for the same watch.
        ClientMode::Object if start.settings.labels.is_some() => {
            let name = start.settings.object.as_deref().unwrap_or_default();
            let config = config.fields(&format!("metadata.name={name}"));
            reports(watch(whole, config).backoff(delays), content).boxed()
        }
        ClientMode::Object => {
            let name = start.settings.object.clone().unwrap_or_default();
            let states = watch_object(whole, &name).backoff(delays);
            states_of_one(states, start.target.namespace.clone(), name).boxed()
        }
    }
}

fn config(settings: &ClientSettings) -> watcher::Config {
    watcher::Config {
        label_selector: settings.labels.clone(),
        field_selector: settings.fields.clone(),
        timeout: settings.timeout_s,
        list_semantic: match settings.list_semantic {
            ListSemantic::MostRecent => watcher::ListSemantic::MostRecent,
            ListSemantic::Any => watcher::ListSemantic::Any,
        },
        initial_list_strategy: match settings.initial_list {
            InitialList::ListWatch => watcher::InitialListStrategy::ListWatch,
            InitialList::StreamingList => watcher::InitialListStrategy::StreamingList,
        },
        page_size: settings.page_size,
        bookmarks: settings.bookmarks,
    }
}

/// `DefaultBackoff`, unless the scenario sets delays.
fn backoff(settings: BackoffSettings) -> impl Backoff + 'static {
    let ms = |ms: Option<u64>, default| Duration::from_millis(ms.unwrap_or(default));
    let delays = backon::ExponentialBuilder::default()
        .with_min_delay(ms(settings.initial_ms, 800))
        .with_max_delay(ms(settings.max_ms, 30_000))
        .with_factor(settings.factor.map_or(2.0, |factor| factor as f32))
        .without_max_times()
        .with_jitter();
    ResetTimerBackoff::new(
        ExponentialBackoff::from(delays),
        ms(settings.reset_after_ms, 120_000),
    )
}

fn reports<K: Resource>(
    events: impl Stream<Item = watcher::Result<Event<K>>>,
    content: impl Fn(&K) -> Content,
) -> impl Stream<Item = Report> {
    events.map(move |event| match event {
        Ok(Event::Init) => Report::Init,
        Ok(Event::InitApply(object)) => Report::InitApply(reported(&object, content(&object))),
        Ok(Event::InitDone) => Report::InitDone,
        Ok(Event::Apply(object)) => Report::Apply(reported(&object, content(&object))),
        Ok(Event::Delete(object)) => Report::Delete(reported(&object, content(&object))),
        Err(error) => failure(&error),
    })
}

/// `watch_object` yields the whole state of the object each time: the first is the snapshot, later ones are changes. A
/// state with another key replaces the last.
fn states_of_one<K: Watched>(
    states: impl Stream<Item = watcher::Result<Option<K>>>,
    namespace: Option<String>,
    name: String,
) -> impl Stream<Item = Report> {
    let mut known = false;
    let mut last: Option<ReportedObject> = None;
    // The library does not report the deleted object, only its absence.
    let absent = move |last: Option<ReportedObject>| {
        let (namespace, name) = match last {
            Some(last) => (last.namespace, last.name),
            None => (namespace.clone(), name.clone()),
        };
        Report::Delete(ReportedObject {
            namespace,
            name,
            uid: None,
            resource_version: None,
            content: None,
        })
    };
    states.flat_map(move |state| {
        let reports = match state {
            Err(error) => vec![failure(&error)],
            Ok(state) => {
                let object = state.map(|object| reported(&object, content(&object)));
                let before = std::mem::replace(&mut last, object.clone());
                match (std::mem::replace(&mut known, true), object) {
                    (true, Some(object)) => {
                        let other = before.filter(|before| before.key() != object.key());
                        let gone = other.map(|other| absent(Some(other))).into_iter();
                        gone.chain([Report::Apply(object)]).collect()
                    }
                    (true, None) => vec![absent(before)],
                    (false, Some(object)) => vec![Report::Init, Report::InitApply(object), Report::InitDone],
                    (false, None) => vec![Report::Init, Report::InitDone],
                }
            }
        };
        stream::iter(reports)
    })
}

fn failure(error: &watcher::Error) -> Report {
    let status = match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => api_status(error),
        watcher::Error::WatchError(status) => Some(&**status),
        watcher::Error::NoResourceVersion => None,
    };
    // The library uses 0 for a missing code.
    let code = status.map(|status| status.code).filter(|code| *code != 0);
    Report::Error {
        message: error.to_string(),
        code,
    }
}

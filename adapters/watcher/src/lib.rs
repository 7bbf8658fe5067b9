//! This repository's watcher as a client under test. It reports what the library emits, in that order; it must not know
//! the scenario.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use adapter_kube_client::{api_of, content, reported, typed_api_of};
use conformance::client::{Client, Start};
use fake_apiserver::report::{Report, ReportedObject};
use fake_apiserver::scenario::{ClientMode, ClientSettings, InitialList, ListSemantic};
use futures::stream::BoxStream;
use futures::{Stream, StreamExt};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube_client::Api;
use kube_core::{DynamicObject, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use watcher::{Config, Event};

/// `watcher::watcher`, `watcher::metadata_watcher` and `watcher::watch_object`, by the scenario's mode.
#[derive(Debug, Clone, Copy, Default)]
pub struct WatcherClient;

impl Client for WatcherClient {
    fn name(&self) -> &'static str {
        "watcher"
    }

    fn version(&self) -> &'static str {
        env!("CARGO_PKG_VERSION")
    }

    fn start(&self, kube: kube_client::Client, start: Start) -> BoxStream<'static, Report> {
        let Start { target, .. } = &start;
        // Core ConfigMaps and Pods are typed, all other kinds dynamic.
        match (
            target.group.as_str(),
            target.version.as_str(),
            target.plural.as_str(),
        ) {
            ("", "v1", "configmaps") => reports(typed_api_of::<ConfigMap>(kube, target), &start),
            ("", "v1", "pods") => reports(typed_api_of::<Pod>(kube, target), &start),
            _ => reports(api_of::<DynamicObject>(kube, target), &start),
        }
    }
}

fn config(settings: &ClientSettings, seed: u64) -> Config {
    let mut config = Config::default().seed(seed);
    config.label_selector.clone_from(&settings.labels);
    config.field_selector.clone_from(&settings.fields);
    config.timeout = settings.timeout_s;
    config.list_semantic = match settings.list_semantic {
        ListSemantic::MostRecent => watcher::ListSemantic::MostRecent,
        ListSemantic::Any => watcher::ListSemantic::Any,
    };
    config.initial_list_strategy = match settings.initial_list {
        InitialList::ListWatch => watcher::InitialListStrategy::ListWatch,
        InitialList::StreamingList => watcher::InitialListStrategy::StreamingList,
    };
    config.page_size = settings.page_size;
    config.bookmarks = settings.bookmarks;
    config.idle_timeout = settings.idle_timeout_ms.map(Duration::from_millis);
    set(&mut config.list_timeout, settings.list_timeout_ms);
    if let Some(after) = settings.staleness_probe_after_ms {
        config.staleness_probe_after = after.map(Duration::from_millis);
    }
    let backoff = settings.backoff;
    set(&mut config.backoff.initial, backoff.initial_ms);
    set(&mut config.backoff.max, backoff.max_ms);
    set(&mut config.backoff.reset_after, backoff.reset_after_ms);
    set(&mut config.backoff.retry_after_max, backoff.retry_after_max_ms);
    config.backoff.factor = backoff.factor.unwrap_or(config.backoff.factor);
    config
}

fn set(time: &mut Duration, ms: Option<u64>) {
    *time = ms.map_or(*time, Duration::from_millis);
}

fn reports<K>(api: Api<K>, start: &Start) -> BoxStream<'static, Report>
where
    K: Resource + Clone + DeserializeOwned + Serialize + Debug + Send + 'static,
{
    let settings = &start.settings;
    let config = config(settings, start.seed);
    match settings.mode {
        ClientMode::Watcher => watcher::watcher(api, config)
            .map(|event| report(event, content))
            .boxed(),
        // Metadata has no content: a check must not expect the rest of the object.
        ClientMode::Metadata => watcher::metadata_watcher(api, config)
            .map(|event| report(event, |_| None))
            .boxed(),
        ClientMode::Object => {
            let name = settings.object.as_deref().unwrap_or_default();
            one_object(watcher::watch_object_with(api, name, config)).boxed()
        }
    }
}

fn report<K: Resource>(
    event: Result<Event<K>, watcher::Error>,
    content: impl Fn(&K) -> Option<Arc<serde_json::Value>>,
) -> Report {
    let reported = |object: K| {
        let content = content(&object);
        reported(&object, content)
    };
    match event {
        Ok(Event::Init) => Report::Init,
        Ok(Event::InitApply(object)) => Report::InitApply(reported(object)),
        Ok(Event::InitDone) => Report::InitDone,
        Ok(Event::Apply(object)) => Report::Apply(reported(object)),
        Ok(Event::Delete(object)) => Report::Delete(reported(object)),
        Err(error) => Report::Error {
            message: error.to_string(),
            code: error.code(),
        },
    }
}

/// `watch_object` emits the state of one object, or `None`. The first item is a complete snapshot of one object or
/// none; later, `Some` is an apply, and `None` after `Some` deletes the last state, as does `Some` with another key
/// before its apply. `None` after `None` is reported as an empty snapshot.
fn one_object<K>(
    objects: impl Stream<Item = Result<Option<K>, watcher::Error>> + Send + 'static,
) -> impl Stream<Item = Report> + Send + 'static
where
    K: Resource + Serialize + Send + 'static,
{
    let mut is_in_step = false;
    let mut last: Option<ReportedObject> = None;
    objects.flat_map(move |object| {
        let reports = match object {
            Err(error) => vec![Report::Error {
                message: error.to_string(),
                code: error.code(),
            }],
            Ok(Some(object)) => {
                let object = reported(&object, content(&object));
                let before = last.replace(object.clone());
                if std::mem::replace(&mut is_in_step, true) {
                    let other = before.filter(|before| before.key() != object.key());
                    let gone = other.map(Report::Delete).into_iter();
                    gone.chain([Report::Apply(object)]).collect()
                } else {
                    vec![Report::Init, Report::InitApply(object), Report::InitDone]
                }
            }
            Ok(None) => {
                is_in_step = true;
                match last.take() {
                    Some(object) => vec![Report::Delete(object)],
                    None => vec![Report::Init, Report::InitDone],
                }
            }
        };
        futures::stream::iter(reports)
    })
}

#[cfg(test)]
mod tests {
    use fake_apiserver::scenario::BackoffSettings;

    use super::*;

    fn map(rv: &str) -> ConfigMap {
        let mut object = ConfigMap::default();
        object.metadata.name = Some("a".to_owned());
        object.metadata.resource_version = Some(rv.to_owned());
        object
    }

    /// `word@rv` of each report.
    async fn words(results: Vec<Result<Option<ConfigMap>, watcher::Error>>) -> Vec<String> {
        one_object(futures::stream::iter(results))
            .map(|report| {
                let rv = report
                    .object()
                    .and_then(|object| object.resource_version.clone())
                    .unwrap_or_default();
                format!("{}@{rv}", report.word())
            })
            .collect()
            .await
    }

    #[tokio::test]
    async fn one_object_is_a_snapshot_of_one_or_none_then_changes() {
        let results = vec![
            Ok(Some(map("1"))),
            Ok(Some(map("2"))),
            Ok(None),
            Ok(Some(map("4"))),
        ];
        assert_eq!(
            words(results).await,
            [
                "init@",
                "init_apply@1",
                "init_done@",
                "apply@2",
                "delete@2",
                "apply@4"
            ]
        );
        let results = vec![Ok(None), Ok(Some(map("3"))), Ok(None), Ok(None)];
        assert_eq!(
            words(results).await,
            [
                "init@",
                "init_done@",
                "apply@3",
                "delete@3",
                "init@",
                "init_done@"
            ]
        );
    }

    #[tokio::test]
    async fn an_object_with_another_key_replaces_the_last() {
        let mut elsewhere = map("2");
        elsewhere.metadata.namespace = Some("elsewhere".to_owned());
        let results = vec![Ok(None), Ok(Some(elsewhere)), Ok(Some(map("3")))];
        assert_eq!(
            words(results).await,
            ["init@", "init_done@", "apply@2", "delete@2", "apply@3"]
        );
    }

    #[test]
    fn every_setting_reaches_the_library() {
        let settings = ClientSettings {
            labels: Some("a=b".to_owned()),
            fields: Some("metadata.name=x".to_owned()),
            timeout_s: Some(7),
            list_semantic: ListSemantic::Any,
            initial_list: InitialList::StreamingList,
            page_size: None,
            bookmarks: false,
            idle_timeout_ms: Some(1500),
            list_timeout_ms: Some(2500),
            staleness_probe_after_ms: Some(None),
            backoff: BackoffSettings {
                initial_ms: Some(1),
                max_ms: Some(2),
                factor: Some(3),
                reset_after_ms: Some(4),
                retry_after_max_ms: Some(5),
            },
            ..ClientSettings::default()
        };
        let mut expected = Config::default()
            .labels("a=b")
            .fields("metadata.name=x")
            .timeout(7)
            .any_semantic()
            .streaming_lists()
            .disable_bookmarks()
            .idle_timeout(Duration::from_millis(1500))
            .seed(9);
        expected.page_size = None;
        expected.list_timeout = Duration::from_millis(2500);
        expected.staleness_probe_after = None;
        expected.backoff = watcher::BackoffConfig {
            initial: Duration::from_millis(1),
            max: Duration::from_millis(2),
            factor: 3,
            reset_after: Duration::from_millis(4),
            retry_after_max: Duration::from_millis(5),
        };
        assert_eq!(config(&settings, 9), expected);
        assert_eq!(config(&ClientSettings::default(), 9), Config::default().seed(9));
    }
}

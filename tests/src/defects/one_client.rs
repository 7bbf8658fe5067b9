//! Stories of one client and the fake, in virtual time: aspects that a verdict does not cover, such as error
//! messages, log lines, and the latency of a controller.

use std::fmt::Debug;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use conformance::client::{Client, Start};
use conformance::drive;
use fake_apiserver::record::{Record, What};
use fake_apiserver::report::{Report, ReportedObject};
use fake_apiserver::scenario::{self, SharedScenario, Style};
use futures::channel::mpsc::unbounded;
use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt as _};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube_client::Api;
use kube_client::client::Body;
use kube_client::client::retry::RetryPolicy;
use kube_runtime::controller::{Action, Controller};
use kube_runtime::reflector;
use tower::BoxError;
use tower::retry::RetryLayer;
use watcher::interop::{KubeRuntimeExt as _, NoBackoff};
use watcher::{WatchStreamExt as _, watcher};

use crate::repository;

const SEED: u64 = 0;

/// Maximum latency of an event on a working watch.
const LATE: Duration = Duration::from_millis(500);

/// Latency of an error response.
const ON_THE_WAY: Duration = Duration::from_millis(20);

/// Number of changes.
const CHANGES: usize = 40;

/// Content that must not be logged.
const CONTENT: &str = "hunter2";

fn story(text: &str) -> SharedScenario {
    match scenario::parse("story/story", "story/story.yaml".as_ref(), text) {
        Ok(scenario) => Arc::new(scenario),
        Err(errors) => panic!("{}", errors.render(Style::Plain)),
    }
}

fn play(scenario: &SharedScenario, client: &dyn Client) -> Vec<Record> {
    drive::sim(scenario, client, SEED).records
}

fn reports(records: &[Record]) -> impl Iterator<Item = &Report> {
    records.iter().filter_map(|record| {
        let What::Reported(report) = &record.what else {
            return None;
        };
        Some(report)
    })
}

fn errors(records: &[Record]) -> Vec<&str> {
    reports(records)
        .filter_map(|report| {
            let Report::Error { message, .. } = report else {
                return None;
            };
            Some(message.as_str())
        })
        .collect()
}

pub(super) fn an_error_names_its_object(client: &dyn Client) -> Result<(), String> {
    let scenario = repository::scenario("decode/a-deletion-that-cannot-be-decoded-is-not-skipped");
    let records = play(&scenario, client);
    match errors(&records).as_slice() {
        [] => Err("no error is reported".to_owned()),
        errors if errors.iter().any(|message| message.contains("default/a")) => Ok(()),
        [first, ..] => Err(format!("the error is `{first}`")),
    }
}

pub(super) fn a_cut_is_a_cut(client: &dyn Client) -> Result<(), String> {
    // Some of these cuts are within four-byte characters, most are not.
    for percent in 60..70 {
        let [between, inside] = ["x", "🚢"].map(|letter| {
            let value = letter.repeat(400 / letter.len());
            let scenario = story(&format!(
                "scenario: v1
title: story
why: story
covers: [CONN-01]
objects:
  - configmap: {{name: a}}
steps:
  - when: {{watch: 1}}
    do: {{truncate: {{after_events: 0, percent: {percent}, then: eof}}}}
  - apply: {{configmap: {{name: b, data: {{v: \"{value}\"}}}}}}
  - when: {{watch: next}}
"
            ));
            errors(&play(&scenario, client)).len()
        });
        if between != inside {
            return Err(format!(
                "{between} errors between two characters, {inside} inside one"
            ));
        }
    }
    Ok(())
}

/// The client under test with kube's own retries, which scenarios disable.
struct Retrying<'a>(&'a dyn Client);

impl Client for Retrying<'_> {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn version(&self) -> &'static str {
        self.0.version()
    }

    fn start(&self, kube: kube_client::Client, start: Start) -> BoxStream<'static, Report> {
        let send = tower::service_fn(move |request: http::Request<Body>| {
            let kube = kube.clone();
            async move { kube.send(request).await.map_err(BoxError::from) }
        });
        let retrying = tower::ServiceBuilder::new()
            .layer(RetryLayer::new(RetryPolicy::server_retry()))
            .service(send);
        self.0.start(kube_client::Client::new(retrying, "default"), start)
    }
}

pub(super) fn a_day_of_retry_after(client: &dyn Client) -> Result<(), String> {
    let scenario = story(
        "scenario: v1
title: story
why: story
covers: [RETRY-05]
objects:
  - configmap: {name: a}
steps:
  - when: {list: 1}
    do: {reply: {status: 429, retry_after: \"86400\", reason: TooManyRequests, message: busy}}
expect: {within: 10m}
",
    );
    let records = play(&scenario, &Retrying(client));
    if reports(&records).any(|report| *report == Report::InitDone) {
        Ok(())
    } else {
        let errors = errors(&records).len();
        Err(format!("not ready after 10 min, and {errors} errors reported"))
    }
}

/// A writer whose clones append to one text.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        log.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub(super) fn no_object_is_logged(client: &dyn Client) -> Result<(), String> {
    let scenario = story(&format!(
        "scenario: v1
title: story
why: story
covers: [DECODE-06]
objects:
  - configmap: {{name: a, data: {{password: {CONTENT}}}}}
steps:
  - when: {{list: 1}}
    do: {{edit_page: {{add: [{{apiVersion: v1, kind: ConfigMap, metadata: {{name: bad, namespace: default}}, data: none}}]}}}}
  - when: {{watch: 1}}
"
    ));
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter("kube_client=trace,kube_core=trace,kube_runtime=trace,watcher=trace")
        .with_writer(move || writer.clone())
        .with_ansi(false)
        .finish();
    let records = tracing::subscriber::with_default(subscriber, || play(&scenario, client));
    if errors(&records).is_empty() {
        return Err("no list was refused, so the story proves nothing".to_owned());
    }
    let log = log.0.lock().unwrap_or_else(PoisonError::into_inner);
    let text = String::from_utf8_lossy(&log);
    match text.lines().find(|line| line.contains(CONTENT)) {
        None => Ok(()),
        Some(line) => {
            let level = ["ERROR", "WARN", "INFO", "DEBUG", "TRACE"];
            let level = level.into_iter().find(|level| line.contains(level));
            Err(format!(
                "the list's body is logged as {}",
                level.unwrap_or("a line")
            ))
        }
    }
}

pub(super) fn one_name_in_two_namespaces(client: &dyn Client) -> Result<(), String> {
    let scenario = story(
        "scenario: v1
title: story
why: story
covers: [SEL-01]
target: {resource: configmaps, namespace: all}
client: {object: a}
objects:
  - configmap: {name: a, namespace: one}
  - configmap: {name: a, namespace: two}
steps:
  - when: {watch: 1}
    do: {delete: two/a}
expect: {within: 10s}
",
    );
    let records = play(&scenario, client);
    if reports(&records).any(|report| matches!(report, Report::Delete(_))) {
        Err("reported gone when the other is".to_owned())
    } else if errors(&records).is_empty() {
        Err("the second object is not reported".to_owned())
    } else {
        Ok(())
    }
}

/// A controller of ConfigMaps that owns Secrets and reports reconciled objects.
struct Controlled {
    of: fn(Api<ConfigMap>, Api<Secret>, u64) -> Controller<ConfigMap>,
    /// Listing Secrets fails.
    fails: bool,
}

#[derive(Debug, thiserror::Error)]
#[error("a reconciler here never fails")]
struct Never;

impl Client for Controlled {
    fn name(&self) -> &'static str {
        "controller"
    }

    fn version(&self) -> &'static str {
        "5.0.0"
    }

    fn start(&self, kube: kube_client::Client, start: Start) -> BoxStream<'static, Report> {
        let refused = tower::service_fn(|_: http::Request<Body>| async {
            #[expect(clippy::disallowed_methods, reason = "virtual time: the rejection is delayed")]
            tokio::time::sleep(ON_THE_WAY).await;
            let status = Body::from(br#"{"kind":"Status","code":500}"#.to_vec());
            http::Response::builder().status(500).body(status)
        });
        let neighbour = if self.fails {
            kube_client::Client::new(refused, "default")
        } else {
            kube.clone()
        };
        let controller = (self.of)(
            Api::namespaced(kube, "default"),
            Api::namespaced(neighbour, "default"),
            start.seed,
        );
        let (sender, reconciled) = unbounded();
        let running = controller.run(
            move |map: Arc<ConfigMap>, _| {
                drop(sender.unbounded_send(Report::Apply(ReportedObject {
                    namespace: map.metadata.namespace.clone(),
                    name: map.metadata.name.clone().unwrap_or_default(),
                    uid: map.metadata.uid.clone(),
                    resource_version: map.metadata.resource_version.clone(),
                    content: None,
                })));
                async { Ok::<_, Never>(Action::await_change()) }
            },
            |_, _, _| Action::await_change(),
            Arc::new(()),
        );
        let silent = silent(running);
        stream::select(reconciled, silent).boxed()
    }
}

/// Runs a stream and reports nothing.
fn silent<T: Debug>(running: impl Stream<Item = T>) -> impl Stream<Item = Report> {
    running.filter_map(|_| std::future::ready(None))
}

fn a_failing_neighbour(
    of: fn(Api<ConfigMap>, Api<Secret>, u64) -> Controller<ConfigMap>,
) -> Result<(), String> {
    match [false, true].map(|fails| late(&Controlled { of, fails })) {
        [0, 0] => Ok(()),
        [0, _] => Err(format!("changes are reconciled more than {LATE:?} late")),
        [late, _] => Err(format!(
            "{late} changes are late beside a healthy neighbour too: the story proves nothing"
        )),
    }
}

/// Returns how many changes, half a second apart, were not reconciled in time.
fn late(client: &dyn Client) -> usize {
    let mut text = "scenario: v1
title: story
why: story
covers: [RETRY-01]
objects:
  - configmap: {name: a, data: {v: \"0\"}}
steps:
  - when: {watch: 1}
"
    .to_owned();
    for change in 1..=CHANGES {
        text.push_str(&format!(
            "  - when: {{after: 500ms}}\n    do: {{apply: {{configmap: {{name: a, data: {{v: \"{change}\"}}}}}}}}\n"
        ));
    }
    text.push_str("expect: {within: 30s}\n");
    let records = play(&story(&text), client);
    let late = records.iter().filter(|record| {
        let What::Wrote(write) = &record.what else {
            return false;
        };
        let version = write.object.resource_version.parse::<u64>().unwrap_or_default();
        let in_time = |other: &&Record| other.at >= record.at && other.at <= record.at + LATE;
        !records.iter().filter(in_time).any(|other| {
            let What::Reported(Report::Apply(object)) = &other.what else {
                return false;
            };
            let reconciled = object.resource_version.as_deref().unwrap_or_default();
            reconciled
                .parse::<u64>()
                .is_ok_and(|reconciled| reconciled >= version)
        })
    });
    late.count()
}

/// kube-runtime's controller with kube-runtime's watches.
pub(super) fn a_failing_neighbour_of_kube_runtime() -> Result<(), String> {
    a_failing_neighbour(|maps, secrets, _| {
        let config = kube_runtime::watcher::Config::default();
        Controller::new(maps, config.clone()).owns(secrets, config)
    })
}

/// The same controller with our streams.
pub(super) fn a_failing_neighbour_of_ours() -> Result<(), String> {
    a_failing_neighbour(|maps, secrets, seed| {
        let (reader, writer) = reflector::store();
        let config = watcher::Config::default().seed(seed);
        let maps = watcher(maps, config.clone()).kube_runtime_reflect(writer);
        let secrets = watcher(secrets, config);
        Controller::for_stream(maps.applied_objects().kube_runtime_objects(), reader)
            .owns_stream(secrets.touched_objects().kube_runtime_objects())
            .trigger_backoff(NoBackoff)
    })
}

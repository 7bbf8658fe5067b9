//! Reference client: a simple, correct watch client that can be configured to make one mistake.
//!
//! Shares no code with our watcher: if both pass a scenario and a mutant of this client fails it, the scenario tests
//! correctness rather than one implementation. Independent of the fake; uses only HTTP through `kube_client::Client`.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use conformance::client::{Client, Start};
use fake_apiserver::report::{Report, ReportedObject};
use fake_apiserver::scenario::{ClientMode, InitialList};
use futures::StreamExt as _;
use futures::channel::mpsc;
use futures::stream::{self, BoxStream};
use kube_client::client::Body;
use serde_json::Value;

mod list;
mod mistake;
mod watch;
mod wire;

pub use self::mistake::Mistake;
use self::wire::{Trouble, escaped, text, version_of};

/// The reference client, correct or with one mistake.
#[derive(Debug, Clone, Copy, Default)]
pub struct Reference {
    /// The mistake; `None`: correct.
    pub mistake: Option<Mistake>,
}

impl Client for Reference {
    fn name(&self) -> &'static str {
        "reference"
    }

    fn version(&self) -> &'static str {
        env!("CARGO_PKG_VERSION")
    }

    fn start(&self, kube: kube_client::Client, start: Start) -> BoxStream<'static, Report> {
        let run = Run::new(kube, start, self.mistake);
        let reports = stream::unfold(run, |mut run| async move {
            loop {
                if let Some(report) = run.reports.pop_front() {
                    return Some((report, run));
                }
                if run.over {
                    return None;
                }
                if let Some(pause) = run.pause.take() {
                    wait(pause).await;
                }
                run.step().await;
            }
        })
        .boxed();
        if self.mistake == Some(Mistake::OutlivesStop) {
            apart(reports)
        } else {
            reports
        }
    }
}

/// Failed starts after which a resourceVersion, a token or a streaming list is abandoned.
const DISTRUST: u32 = 3;

type Chunks = BoxStream<'static, Vec<u8>>;

enum Phase {
    /// Read a page.
    List(Listing),
    /// Open a watch. `initial`: as streaming list.
    Open { initial: bool },
    /// Read a watch.
    Read(Box<Reading>),
}

#[derive(Debug)]
struct Listing {
    continue_token: Option<String>,
    found: Vec<Value>,
    /// resourceVersion of page 1.
    resource_version: Option<String>,
    paged: bool,
}

struct Reading {
    chunks: Chunks,
    buffer: Vec<u8>,
    /// Initial events so far; `None` after their end.
    initial: Option<Vec<Value>>,
    opened: tokio::time::Instant,
    /// Number of events and bookmarks received.
    brought: u32,
}

struct Run {
    kube: kube_client::Client,
    start: Start,
    mistake: Option<Mistake>,
    phase: Phase,
    reports: VecDeque<Report>,
    resource_version: String,
    /// Something was listed: later lists never use `0`.
    seen_any: bool,
    streaming: bool,
    /// Failures since the last working watch, from which delays are computed.
    failures: u32,
    /// Consecutive starts from the same version that failed.
    starts: u32,
    /// Lists aborted since the last complete one.
    aborted: u32,
    /// When a list, an event or a bookmark last confirmed the server's version.
    last_received: tokio::time::Instant,
    /// Delay before the next step, after all reports are delivered.
    pause: Option<Duration>,
    over: bool,
    // State used only by mistakes.
    known: BTreeMap<String, ReportedObject>,
    leftovers: Vec<Value>,
    kept: Vec<Chunks>,
    /// The last change of this stream, and of the one before.
    held: Option<Report>,
    late: Option<Report>,
}

impl Run {
    fn new(kube: kube_client::Client, start: Start, mistake: Option<Mistake>) -> Self {
        let streaming = start.settings.initial_list == InitialList::StreamingList;
        let mut run = Self {
            kube,
            start,
            mistake,
            phase: Phase::Open { initial: true },
            reports: VecDeque::new(),
            resource_version: String::new(),
            seen_any: false,
            streaming,
            failures: 0,
            starts: 0,
            aborted: 0,
            last_received: watch::now(),
            pause: None,
            over: false,
            known: BTreeMap::new(),
            leftovers: Vec::new(),
            kept: Vec::new(),
            held: None,
            late: None,
        };
        run.start_over();
        run
    }

    fn is(&self, mistake: Mistake) -> bool {
        self.mistake == Some(mistake)
    }

    async fn step(&mut self) {
        match std::mem::replace(&mut self.phase, Phase::Open { initial: false }) {
            Phase::List(listing) => self.list(listing).await,
            Phase::Open { initial } => self.open(initial).await,
            Phase::Read(reading) => self.read(*reading).await,
        }
    }

    /// Starts a new snapshot.
    fn start_over(&mut self) {
        if self.is(Mistake::EmptiesOnRelist) {
            for object in std::mem::take(&mut self.known).into_values() {
                self.reports.push_back(Report::Delete(object));
            }
        }
        if self.streaming {
            self.phase = Phase::Open { initial: true };
            return;
        }
        let found = if self.is(Mistake::KeepsPageOneLeftovers) {
            std::mem::take(&mut self.leftovers)
        } else {
            Vec::new()
        };
        self.phase = Phase::List(Listing {
            continue_token: None,
            found,
            resource_version: None,
            paged: self.aborted < DISTRUST,
        });
    }

    /// Retries from the same version, or starts a new snapshot after too many failures.
    fn try_again(&mut self) {
        self.starts += 1;
        if self.starts < DISTRUST {
            self.phase = Phase::Open { initial: false };
        } else {
            self.start_over();
        }
    }

    fn selectors(&self, later: bool) -> Vec<(&'static str, String)> {
        let mut query = Vec::new();
        if later && self.is(Mistake::ForgetsSelectors) {
            return query;
        }
        let settings = &self.start.settings;
        if let Some(labels) = &settings.labels {
            query.push(("labelSelector", labels.clone()));
        }
        if let Some(name) = &settings.object {
            query.push(("fieldSelector", format!("metadata.name={name}")));
        } else if let Some(fields) = &settings.fields {
            query.push(("fieldSelector", fields.clone()));
        }
        query
    }

    async fn ask(&mut self, query: Vec<(&'static str, String)>, list: bool) -> Result<Body, Trouble> {
        // HTTP clients decode only the first gzip member, and a watch has one per event.
        let plain = !list && !self.is(Mistake::OffersGzipForWatches);
        let encoding = plain.then_some("identity");
        let patience = if self.is(Mistake::WaitsForever) {
            watch::FOR_EVER
        } else {
            wire::PATIENCE
        };
        let mut answer = wire::get(
            &self.kube,
            &self.start,
            &self.written(query),
            list,
            encoding,
            patience,
        )
        .await;
        if let Err(trouble) = &mut answer
            && trouble.code.is_some()
            && self.is(Mistake::IgnoresRefusalBodies)
        {
            trouble.body.clear();
        }
        answer
    }

    /// Formats a query for the URL.
    fn written(&self, query: Vec<(&'static str, String)>) -> String {
        let pairs = query.into_iter().map(|(name, value)| match name {
            "resourceVersion" if self.is(Mistake::ForgetsEscaping) => {
                format!("{name}={}", value.replace(' ', "+"))
            }
            _ => format!("{name}={}", escaped(&value)),
        });
        pairs.collect::<Vec<_>>().join("&")
    }

    fn lifetime(&self) -> Duration {
        Duration::from_secs(u64::from(self.start.settings.timeout_s.unwrap_or(290)))
    }

    /// Reports an error and continues.
    fn surface(&mut self, message: &str, code: Option<u16>) {
        let is_hidden =
            self.is(Mistake::GivesUpSilently) || (code.is_some() && self.is(Mistake::HidesRefusals));
        if !is_hidden {
            self.reports.push_back(Report::Error {
                message: message.to_owned(),
                code,
            });
        }
        self.over = self.is(Mistake::GivesUp);
    }

    /// Waits before the next request: at least as long as the server's `Retry-After`.
    fn back_off(&mut self, retry_after: Option<Duration>) {
        if self.is(Mistake::NeverBacksOff) {
            return;
        }
        let own = match self.mistake {
            Some(Mistake::RetriesEverySecond) => Duration::from_secs(1),
            Some(Mistake::DelaysForMinutes) => Duration::from_millis(800 << (3 * self.failures).min(12)),
            _ => Duration::from_millis(800 << self.failures.min(5)),
        };
        let asked = retry_after
            .filter(|_| !self.is(Mistake::IgnoresRetryAfter))
            .unwrap_or_default();
        self.failures += 1;
        self.over |= self.failures == 3 && self.is(Mistake::GivesUpSilently);
        self.pause = Some(own.max(asked).min(Duration::from_secs(600)));
    }

    fn is_our_list(&self, list: &Value) -> bool {
        let kind = text(list, "/kind").strip_suffix("List").map(str::to_owned);
        let items = list.get("items").and_then(Value::as_array);
        kind.is_some_and(|kind| self.is_our_kind(&kind))
            && items.is_none_or(|items| items.iter().all(|item| self.is_sound(item)))
    }

    /// Returns whether a typed client would decode the object. Checks only what scenarios break.
    fn is_sound(&self, object: &Value) -> bool {
        let map = |field: &str| {
            object
                .get(field)
                .is_none_or(|value| value.is_object() || value.is_null())
        };
        let kind = text(object, "/kind");
        let is_refused = (self.is(Mistake::RefusesNulls) && has_null(object))
            || (self.is(Mistake::RefusesBareItems) && kind.is_empty());
        !is_refused
            && !text(object, "/metadata/name").is_empty()
            && map("data")
            && map("spec")
            && (kind.is_empty() || self.is_our_kind(&kind) || self.is(Mistake::StoresOtherKinds))
    }

    /// Only a server that ignores selectors sends other objects to a client that follows one.
    fn is_wanted(&self, object: &Value) -> bool {
        let name = self.start.settings.object.as_deref();
        name.is_none_or(|name| text(object, "/metadata/name") == name) || self.is(Mistake::TakesOtherNames)
    }

    fn is_our_kind(&self, kind: &str) -> bool {
        kind == self.start.target.kind || kind == "PartialObjectMetadata"
    }

    fn reported(&self, object: &Value) -> ReportedObject {
        let optional = |pointer: &str| Some(text(object, pointer)).filter(|text| !text.is_empty());
        let mut reported = ReportedObject {
            namespace: optional("/metadata/namespace"),
            name: text(object, "/metadata/name"),
            uid: optional("/metadata/uid"),
            resource_version: optional("/metadata/resourceVersion"),
            content: (self.start.settings.mode != ClientMode::Metadata).then(|| Arc::new(object.clone())),
        };
        if self.is(Mistake::RoundsIntegers) {
            reported.content = Some(Arc::new(rounded(object)));
        }
        if self.is(Mistake::KeepsFirstUid)
            && let Some(known) = self.known.get(&reported.key())
        {
            reported.uid.clone_from(&known.uid);
        }
        reported
    }
}

/// Returns the object as read by a program with floating-point numbers only.
fn rounded(value: &Value) -> Value {
    match value {
        Value::Number(number) => match number.as_f64() {
            // Numbers beyond 2^53 were rounded; others are written as received.
            Some(float) if float.abs() > 9_007_199_254_740_992.0 => Value::from(float as i64),
            Some(_) | None => value.clone(),
        },
        Value::Array(items) => items.iter().map(rounded).collect(),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| (name.clone(), rounded(value)));
            Value::Object(fields.collect())
        }
        Value::Null | Value::Bool(_) | Value::String(_) => value.clone(),
    }
}

fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.iter().any(has_null),
        Value::Object(fields) => fields.values().any(has_null),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn newest_of(objects: &[Value]) -> Option<u64> {
    objects
        .iter()
        .filter_map(|object| version_of(object).parse().ok())
        .max()
}

/// Runs the same client in a task that is never stopped.
fn apart(mut reports: BoxStream<'static, Report>) -> BoxStream<'static, Report> {
    let (sender, receiver) = mpsc::unbounded();
    tokio::spawn(async move {
        while let Some(report) = reports.next().await {
            // The receiver may be gone; the client continues.
            drop(sender.unbounded_send(report));
        }
    });
    receiver.boxed()
}

async fn wait(time: Duration) {
    #[expect(
        clippy::disallowed_methods,
        reason = "the reference client has no pure core: this is its edge"
    )]
    tokio::time::sleep(time).await;
}

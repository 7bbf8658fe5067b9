//! A watch client that is right in the plainest way, and can be told to make one mistake.
//!
//! It shares nothing with our watcher: if both pass a scenario and a mutant of this one fails it, the scenario tells right
//! from wrong and not ours from others. It must not know the fake, only HTTP as `kube_client::Client` gives it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use conformance::client::{Client, Start};
use fake_apiserver::report::{Report, ReportedObject};
use fake_apiserver::scenario::{ClientMode, InitialList, ListSemantic};
use futures::StreamExt as _;
use futures::channel::mpsc;
use futures::stream::{self, BoxStream};
use http_body_util::BodyExt as _;
use kube_client::client::Body;
use serde_json::Value;

mod mistake;
mod wire;

pub use self::mistake::Mistake;
use self::wire::{Trouble, between, collect, key, text, version_of};

/// The reference client, right or with one mistake.
#[derive(Debug, Clone, Copy, Default)]
pub struct Reference {
    /// What it gets wrong; `None`: nothing.
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

/// A watch that ended sooner ended at once.
const SHORT: Duration = Duration::from_secs(1);
/// Starts without progress after which a resourceVersion, a token or a streaming list is not trusted any more.
const DISTRUST: u32 = 3;

type Chunks = BoxStream<'static, Vec<u8>>;

enum Phase {
    /// Read a page.
    List(Listing),
    /// Open a watch. `initial`: a streaming list.
    Open { initial: bool },
    /// Read a watch.
    Read(Box<Reading>),
}

#[derive(Debug)]
struct Listing {
    continue_token: Option<String>,
    found: Vec<Value>,
    /// Of page 1.
    resource_version: Option<String>,
    paged: bool,
}

struct Reading {
    chunks: Chunks,
    buffer: Vec<u8>,
    /// `Some`: before the end of the initial events.
    initial: Option<Vec<Value>>,
    opened: tokio::time::Instant,
    /// Events and bookmarks it brought.
    brought: u32,
}

enum Flow {
    On,
    Leave,
}

struct Run {
    kube: kube_client::Client,
    start: Start,
    mistake: Option<Mistake>,
    phase: Phase,
    reports: VecDeque<Report>,
    resource_version: String,
    /// Something was listed: from now on a list never goes back to `0`.
    seen_any: bool,
    streaming: bool,
    /// Troubles since a watch last lived: what the pauses grow by.
    failures: u32,
    /// Starts from the same place that led nowhere.
    starts: u32,
    /// Lists given up since the last complete one.
    aborted: u32,
    /// How long to wait before the next step, once everything is told.
    pause: Option<Duration>,
    over: bool,
    // What only mistakes need.
    known: BTreeMap<String, ReportedObject>,
    leftovers: Vec<Value>,
    kept: Vec<Chunks>,
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
            pause: None,
            over: false,
            known: BTreeMap::new(),
            leftovers: Vec::new(),
            kept: Vec::new(),
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

    /// Begins a new snapshot.
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

    /// The same place again, or a new snapshot if it led nowhere too often.
    fn try_again(&mut self) {
        self.starts += 1;
        if self.starts < DISTRUST {
            self.phase = Phase::Open { initial: false };
        } else {
            self.start_over();
        }
    }

    // ---- LIST

    async fn list(&mut self, mut listing: Listing) {
        let query = self.list_query(&listing);
        let body = match wire::get(&self.kube, &self.start, &query, true).await {
            Ok(body) => body,
            Err(trouble) => {
                self.surface(&trouble.body, trouble.code);
                if self.is(Mistake::ResendsDeadToken) {
                    self.phase = Phase::List(listing);
                } else {
                    self.abort(listing);
                }
                return self.back_off(trouble.retry_after);
            }
        };
        let Some(list) = collect(body)
            .await
            .ok()
            .and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok())
            .filter(|list| self.is_our_list(list))
        else {
            self.surface("the answer is no list of this kind", None);
            self.abort(listing);
            return self.back_off(None);
        };
        let next = text(&list, "/metadata/continue");
        let items = list.get("items").and_then(Value::as_array).cloned();
        let items = items.unwrap_or_default();
        let is_last = next.is_empty() || (items.is_empty() && self.is(Mistake::StopsAtEmptyPage));
        listing.found.extend(items);
        let version = match listing.resource_version.take() {
            Some(first) if !self.is(Mistake::WatchesFromLastPage) => first,
            Some(_) | None => text(&list, "/metadata/resourceVersion"),
        };
        if is_last && version.is_empty() {
            self.surface("the list has no resourceVersion", None);
            self.abort(listing);
            return self.back_off(None);
        }
        if is_last {
            return self.publish(listing.found, version);
        }
        if listing.continue_token.as_ref() == Some(&next) {
            self.surface("the list does not advance", None);
            self.abort(listing);
            return self.back_off(None);
        }
        if self.is(Mistake::SyncedAfterPageOne) {
            self.publish(listing.found.clone(), version.clone());
        }
        if self.is(Mistake::WatchesBeforeLastPage) {
            self.resource_version = version;
            self.phase = Phase::Open { initial: false };
            return;
        }
        self.phase = Phase::List(Listing {
            continue_token: Some(next),
            resource_version: Some(version),
            ..listing
        });
    }

    fn list_query(&self, listing: &Listing) -> Vec<(&'static str, String)> {
        let settings = &self.start.settings;
        let is_later = listing.continue_token.is_some();
        let mut query = self.selectors(is_later);
        if let Some(limit) = settings.page_size
            && listing.paged
            && !(is_later && self.is(Mistake::ForgetsLimit))
        {
            query.push(("limit", limit.to_string()));
        }
        let from_cache = if self.seen_any {
            self.is(Mistake::RelistsFromZero)
        } else {
            settings.list_semantic == ListSemantic::Any
        };
        if let Some(token) = &listing.continue_token {
            query.push(("continue", token.clone()));
            if let Some(version) = &listing.resource_version
                && self.is(Mistake::PinsLaterPages)
            {
                query.push(("resourceVersion", version.clone()));
            }
        } else if from_cache {
            query.push(("resourceVersion", "0".to_owned()));
            query.push(("resourceVersionMatch", "NotOlderThan".to_owned()));
        }
        query
    }

    /// Gives a list up and begins anew.
    fn abort(&mut self, listing: Listing) {
        if listing.continue_token.is_some() {
            self.aborted += 1;
            self.leftovers = listing.found;
        }
        self.start_over();
    }

    /// A snapshot is complete.
    fn publish(&mut self, found: Vec<Value>, version: String) {
        let objects: Vec<ReportedObject> = found.iter().map(|object| self.reported(object)).collect();
        if self.seen_any && self.is(Mistake::DropsDeletesOnRelist) {
            self.reports.extend(objects.into_iter().map(Report::Apply));
        } else if !(self.is(Mistake::LeaksInitialEvents) && self.streaming) {
            self.known = objects
                .iter()
                .map(|object| (object.key(), object.clone()))
                .collect();
            self.reports.push_back(Report::Init);
            self.reports.extend(objects.into_iter().map(Report::InitApply));
            self.reports.push_back(Report::InitDone);
        }
        self.resource_version = version;
        if self.is(Mistake::ResumesFromItem)
            && let Some(newest) = newest_of(&found)
        {
            self.resource_version = newest.to_string();
        }
        self.seen_any = true;
        self.aborted = 0;
        self.starts = 0;
        self.phase = Phase::Open { initial: false };
    }

    // ---- WATCH

    async fn open(&mut self, initial: bool) {
        let mut query = self.selectors(true);
        query.push(("watch", "true".to_owned()));
        query.push(("timeoutSeconds", self.lifetime().as_secs().to_string()));
        if self.start.settings.bookmarks || initial {
            query.push(("allowWatchBookmarks", "true".to_owned()));
        }
        if initial {
            query.push(("sendInitialEvents", "true".to_owned()));
            query.push(("resourceVersionMatch", "NotOlderThan".to_owned()));
        } else {
            query.push(("resourceVersion", self.resource_version.clone()));
        }
        match wire::get(&self.kube, &self.start, &query, false).await {
            Ok(body) => {
                self.phase = Phase::Read(Box::new(Reading {
                    chunks: chunks(body),
                    buffer: Vec::new(),
                    initial: initial.then(Vec::new),
                    opened: now(),
                    brought: 0,
                }));
            }
            Err(trouble) => {
                self.surface(&trouble.body, trouble.code);
                self.refused(initial, &trouble);
                self.back_off(trouble.retry_after);
            }
        }
    }

    fn refused(&mut self, initial: bool, trouble: &Trouble) {
        let rejected = trouble
            .code
            .is_some_and(|code| (400..500).contains(&code) && code != 429);
        if trouble.expired() && !initial && !self.is(Mistake::IgnoresGoneStatus) {
            self.start_over();
        } else if initial {
            // An older server knows no streaming lists; 410 only means that it is to begin anew.
            self.streaming = !rejected || trouble.expired();
            self.start_over();
        } else if trouble.code == Some(404) {
            // The collection itself is gone, and its history with it.
            self.start_over();
        } else if (rejected || trouble.too_large()) && !trouble.expired() {
            self.try_again();
        } else {
            self.phase = Phase::Open { initial: false };
        }
    }

    async fn read(&mut self, mut reading: Reading) {
        let patience = if self.is(Mistake::WaitsForever) {
            Duration::from_secs(1_000_000)
        } else {
            let own = self.start.settings.idle_timeout_ms;
            own.map_or(self.lifetime() + Duration::from_secs(5), Duration::from_millis)
        };
        while let Ok(Some(bytes)) = tokio::time::timeout(patience, reading.chunks.next()).await {
            if self.is(Mistake::DecodesByChunk) {
                reading.buffer.extend(String::from_utf8_lossy(&bytes).bytes());
            } else {
                reading.buffer.extend_from_slice(&bytes);
            }
            // Only a brace can make a value whole; a large one is not parsed again with every chunk.
            if !bytes.contains(&b'}') {
                continue;
            }
            match self.drain(&mut reading) {
                Flow::On if self.reports.is_empty() => {}
                Flow::On => {
                    self.phase = Phase::Read(Box::new(reading));
                    return;
                }
                Flow::Leave => {
                    if self.is(Mistake::KeepsGivenUpWatch) {
                        self.kept.push(reading.chunks);
                    }
                    return;
                }
            }
        }
        self.torn(&reading);
        self.ended(&reading);
        if self.is(Mistake::KeepsGivenUpWatch) {
            self.kept.push(reading.chunks);
        }
    }

    /// The stream is over, by whatever end.
    fn ended(&mut self, reading: &Reading) {
        let short = now() - reading.opened < SHORT;
        if let Some(found) = &reading.initial {
            if self.is(Mistake::ResumesAmongInitialEvents)
                && let Some(newest) = newest_of(found)
            {
                self.resource_version = newest.to_string();
                self.phase = Phase::Open { initial: false };
                return self.back_off(None);
            }
            // One that was cut may come whole next time; one that lived and never came to its end will not.
            self.starts += if short { 1 } else { DISTRUST };
            self.streaming = self.starts <= DISTRUST;
            self.start_over();
            return self.back_off(None);
        }
        if short {
            // One that brought something is no reason for distrust, but none for haste either.
            if reading.brought == 0 {
                self.try_again();
            } else {
                self.phase = Phase::Open { initial: false };
            }
            return self.back_off(None);
        }
        self.failures = 0;
        self.phase = Phase::Open { initial: false };
    }

    /// What a careless client makes of a line that was cut off.
    fn torn(&mut self, reading: &Reading) {
        let rest = String::from_utf8_lossy(&reading.buffer);
        let Some(version) = between(&rest, "\"resourceVersion\":\"") else {
            return;
        };
        if self.is(Mistake::ResumesPastTornLine) {
            self.resource_version.clone_from(&version);
        }
        if self.is(Mistake::TrustsTornLine) && reading.initial.is_none() {
            self.reports.push_back(Report::Apply(ReportedObject {
                namespace: between(&rest, "\"namespace\":\""),
                name: between(&rest, "\"name\":\"").unwrap_or_default(),
                uid: between(&rest, "\"uid\":\""),
                resource_version: Some(version),
                content: None,
            }));
        }
    }

    /// Takes every whole value from the buffer: lines do not matter, a value is whole when it parses.
    fn drain(&mut self, reading: &mut Reading) -> Flow {
        let mut buffer = std::mem::take(&mut reading.buffer);
        let told = self.reports.len();
        let mut flow = Flow::On;
        let mut done = 0;
        let mut values = serde_json::Deserializer::from_slice(&buffer).into_iter::<Value>();
        loop {
            match values.next() {
                Some(Ok(event)) => {
                    done = values.byte_offset();
                    flow = self.event(reading, &event);
                    if let Flow::Leave = flow {
                        break;
                    }
                }
                Some(Err(problem)) if problem.is_eof() => break,
                Some(Err(problem)) => {
                    flow = self.poisoned(reading.initial.is_some(), &problem.to_string());
                    done = buffer.len();
                    break;
                }
                None => {
                    done = buffer.len();
                    break;
                }
            }
        }
        if self.is(Mistake::ReportsNewestFirst) {
            self.reports.make_contiguous()[told..].reverse();
        }
        reading.buffer = buffer.split_off(done);
        flow
    }

    fn event(&mut self, reading: &mut Reading, event: &Value) -> Flow {
        let initial = reading.initial.is_some();
        let kind = event.get("type").and_then(Value::as_str).unwrap_or_default();
        let Some(object) = event.get("object").filter(|object| object.is_object()) else {
            return self.poisoned(initial, "an event without an object");
        };
        let version = version_of(object);
        match kind {
            "ERROR" => self.error_event(initial, object),
            "BOOKMARK" => {
                reading.brought += 1;
                self.bookmark(reading, object, version);
                Flow::On
            }
            "ADDED" | "MODIFIED" | "DELETED" => {
                if version.is_empty() || !self.is_sound(object) {
                    return self.poisoned(initial, "an object that cannot be decoded");
                }
                reading.brought += 1;
                self.change(reading, kind, object, version);
                Flow::On
            }
            _ => self.poisoned(initial, "an event of unknown type"),
        }
    }

    fn bookmark(&mut self, reading: &mut Reading, object: &Value, version: String) {
        let marked = text(object, "/metadata/annotations/k8s.io~1initial-events-end") == "true";
        if let Some(found) = &mut reading.initial {
            if marked || self.is(Mistake::AnyBookmarkEnds) {
                let found = std::mem::take(found);
                reading.initial = None;
                if self.is(Mistake::LeaksInitialEvents) {
                    self.reports.push_back(Report::InitDone);
                }
                self.publish(found, version);
            }
            return;
        }
        if self.is(Mistake::IgnoresBookmarks) {
            return;
        }
        let newer = match (version.parse::<u64>(), self.resource_version.parse::<u64>()) {
            (Ok(new), Ok(old)) => new >= old,
            _ => !version.is_empty(),
        };
        if newer || self.is(Mistake::RewindsToBookmark) {
            self.resource_version = version;
            self.starts = 0;
        }
    }

    fn change(&mut self, reading: &mut Reading, kind: &str, object: &Value, version: String) {
        let deleted = kind == "DELETED";
        if let Some(found) = &mut reading.initial {
            if self.mistake == Some(Mistake::LeaksInitialEvents) {
                if found.is_empty() {
                    self.reports.push_back(Report::Init);
                }
                found.push(object.clone());
                self.report(object, deleted);
                return;
            }
            if !deleted || self.mistake != Some(Mistake::IgnoresDeletedInInitialEvents) {
                found.retain(|other| key(other) != key(object));
            }
            if !deleted {
                found.push(object.clone());
            }
            return;
        }
        self.resource_version = version;
        self.starts = 0;
        if !(deleted && self.is(Mistake::IgnoresDeleted)) {
            self.report(object, deleted);
        }
    }

    fn report(&mut self, object: &Value, deleted: bool) {
        let object = self.reported(object);
        let report = if deleted {
            self.known.remove(&object.key());
            Report::Delete(object)
        } else {
            self.known.insert(object.key(), object.clone());
            Report::Apply(object)
        };
        if self.is(Mistake::ReportsTwice) {
            self.reports.push_back(report.clone());
        }
        self.reports.push_back(report);
    }

    fn error_event(&mut self, initial: bool, status: &Value) -> Flow {
        let code = status
            .get("code")
            .and_then(Value::as_u64)
            .and_then(|code| u16::try_from(code).ok());
        let reason = text(status, "/reason");
        self.surface(&text(status, "/message"), code);
        if self.is(Mistake::ReadsPastError) {
            return Flow::On;
        }
        let gone = code == Some(410) || reason == "Expired" || reason == "Gone";
        if initial || (gone && !self.is(Mistake::IgnoresGoneEvent)) {
            self.start_over();
        } else if code == Some(429) || gone {
            self.phase = Phase::Open { initial: false };
        } else {
            self.try_again();
        }
        let after = status
            .pointer("/details/retryAfterSeconds")
            .and_then(Value::as_u64)
            .map(Duration::from_secs);
        self.back_off(after);
        Flow::Leave
    }

    /// Something in the stream is no event of ours: what it stood for must be found again.
    fn poisoned(&mut self, initial: bool, message: &str) -> Flow {
        self.surface(message, None);
        if self.is(Mistake::SkipsPoison) && !initial {
            return Flow::On;
        }
        if initial {
            self.starts += 1;
            self.streaming = self.starts < DISTRUST;
            self.start_over();
        } else {
            self.try_again();
        }
        self.back_off(None);
        Flow::Leave
    }

    // ---- What all of it needs

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

    fn lifetime(&self) -> Duration {
        Duration::from_secs(u64::from(self.start.settings.timeout_s.unwrap_or(290)))
    }

    /// Tells of a trouble and goes on.
    fn surface(&mut self, message: &str, code: Option<u16>) {
        self.reports.push_back(Report::Error {
            message: message.to_owned(),
            code,
        });
        self.over = self.is(Mistake::GivesUp);
    }

    /// Waits before the next request: at least as long as the server asked.
    fn back_off(&mut self, retry_after: Option<Duration>) {
        if self.is(Mistake::NeverBacksOff) {
            return;
        }
        let own = Duration::from_millis(800 << self.failures.min(5));
        let asked = retry_after
            .filter(|_| !self.is(Mistake::IgnoresRetryAfter))
            .unwrap_or_default();
        self.failures += 1;
        self.pause = Some(own.max(asked).min(Duration::from_secs(120)));
    }

    fn is_our_list(&self, list: &Value) -> bool {
        let kind = text(list, "/kind").strip_suffix("List").map(str::to_owned);
        let items = list.get("items").and_then(Value::as_array);
        kind.is_some_and(|kind| self.is_our_kind(&kind))
            && items.is_none_or(|items| items.iter().all(|item| self.is_sound(item)))
    }

    /// Would a typed client decode it? Only what the scenarios break is looked at.
    fn is_sound(&self, object: &Value) -> bool {
        let map = |field: &str| {
            object
                .get(field)
                .is_none_or(|value| value.is_object() || value.is_null())
        };
        let kind = text(object, "/kind");
        !text(object, "/metadata/name").is_empty()
            && map("data")
            && map("spec")
            && (kind.is_empty() || self.is_our_kind(&kind) || self.is(Mistake::StoresOtherKinds))
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
        if self.is(Mistake::KeepsFirstUid)
            && let Some(known) = self.known.get(&reported.key())
        {
            reported.uid.clone_from(&known.uid);
        }
        reported
    }
}

fn newest_of(objects: &[Value]) -> Option<u64> {
    objects
        .iter()
        .filter_map(|object| version_of(object).parse().ok())
        .max()
}

/// What a body brings, bit by bit; it ends at its end or at the first fault.
fn chunks(body: Body) -> Chunks {
    body.into_data_stream()
        .take_while(|chunk| std::future::ready(chunk.is_ok()))
        .filter_map(|chunk| std::future::ready(chunk.ok().map(|bytes| bytes.to_vec())))
        .boxed()
}

/// The same client in a task that nobody stops.
fn apart(mut reports: BoxStream<'static, Report>) -> BoxStream<'static, Report> {
    let (sender, receiver) = mpsc::unbounded();
    tokio::spawn(async move {
        while let Some(report) = reports.next().await {
            // The reader may be gone; this goes on.
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

fn now() -> tokio::time::Instant {
    #[expect(
        clippy::disallowed_methods,
        reason = "the runtime's clock, virtual in sim; this is the client's edge"
    )]
    tokio::time::Instant::now()
}

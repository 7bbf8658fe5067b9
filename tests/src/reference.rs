//! A watch client that is right in the plainest way, and can be told to make one mistake.
//!
//! It shares nothing with our watcher: if both pass a scenario and a mutant of this one fails it, the scenario tells right
//! from wrong and not ours from others. It must not know the fake, only HTTP as `kube_client::Client` gives it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use conformance::client::{Client, Start};
use fake_apiserver::report::{Report, ReportedObject};
use fake_apiserver::scenario::{ClientMode, InitialList, ListSemantic};
use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use http_body_util::BodyExt as _;
use kube_client::client::Body;
use serde_json::Value;

/// One way to be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mistake {
    /// Watches from the newest item's resourceVersion instead of the list's.
    ResumesFromItem,
    /// Keeps what page 1 of an aborted list brought when the list restarts.
    KeepsPageOneLeftovers,
    /// Takes HTTP 410 on a watch for a passing trouble and asks for the same resourceVersion again.
    IgnoresGoneStatus,
    /// Takes an ERROR 410 event for a passing trouble and asks for the same resourceVersion again.
    IgnoresGoneEvent,
    /// Reports the object of a line that was cut off.
    TrustsTornLine,
    /// Resumes after the resourceVersion of a line that was cut off.
    ResumesPastTornLine,
    /// Takes any bookmark for the end of the initial events.
    AnyBookmarkEnds,
    /// Reports a relist as changes only, so that what is gone stays.
    DropsDeletesOnRelist,
    /// Asks again at once, whatever happened.
    NeverBacksOff,
    /// Asks again on its own schedule, whatever `Retry-After` says.
    IgnoresRetryAfter,
    /// Resumes from the last change, though a bookmark brought a newer resourceVersion.
    IgnoresBookmarks,
    /// Takes a page without items for the last one.
    StopsAtEmptyPage,
    /// Calls the list complete after its first page.
    SyncedAfterPageOne,
    /// Watches from the last page's resourceVersion instead of the first's.
    WatchesFromLastPage,
    /// Sends the dead continue token again.
    ResendsDeadToken,
    /// Relists with `resourceVersion=0`.
    RelistsFromZero,
    /// Ignores DELETED events.
    IgnoresDeleted,
    /// Ignores DELETED events before the end of the initial events.
    IgnoresDeletedInInitialEvents,
    /// Reports every change twice.
    ReportsTwice,
    /// Forgets the selectors on later pages and on watches.
    ForgetsSelectors,
    /// Decodes every chunk for itself, so that a character split across two is damaged.
    DecodesByChunk,
    /// Lets an empty or older bookmark move its resume point back.
    RewindsToBookmark,
    /// Goes on reading after an ERROR event.
    ReadsPastError,
    /// Never gives up a silent stream.
    WaitsForever,
    /// Skips an event it cannot decode and goes on after it.
    SkipsPoison,
}

impl Mistake {
    /// All of them.
    pub const ALL: [Self; 25] = [
        Self::ResumesFromItem,
        Self::KeepsPageOneLeftovers,
        Self::IgnoresGoneStatus,
        Self::IgnoresGoneEvent,
        Self::TrustsTornLine,
        Self::ResumesPastTornLine,
        Self::AnyBookmarkEnds,
        Self::DropsDeletesOnRelist,
        Self::NeverBacksOff,
        Self::IgnoresRetryAfter,
        Self::IgnoresBookmarks,
        Self::StopsAtEmptyPage,
        Self::SyncedAfterPageOne,
        Self::WatchesFromLastPage,
        Self::ResendsDeadToken,
        Self::RelistsFromZero,
        Self::IgnoresDeleted,
        Self::IgnoresDeletedInInitialEvents,
        Self::ReportsTwice,
        Self::ForgetsSelectors,
        Self::DecodesByChunk,
        Self::RewindsToBookmark,
        Self::ReadsPastError,
        Self::WaitsForever,
        Self::SkipsPoison,
    ];
}

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
        stream::unfold(run, |mut run| async move {
            loop {
                if let Some(report) = run.reports.pop_front() {
                    return Some((report, run));
                }
                if let Some(pause) = run.pause.take() {
                    wait(pause).await;
                }
                run.step().await;
            }
        })
        .boxed()
    }
}

/// How long a request, or silence on one, may last.
const PATIENCE: Duration = Duration::from_secs(60);
/// A watch that ended sooner and said nothing is a failure.
const SHORT: Duration = Duration::from_secs(1);
/// Failures on one resourceVersion after which it is not trusted any more.
const DISTRUST: u32 = 3;

#[derive(Debug)]
enum Phase {
    /// Read a page.
    List {
        continue_token: Option<String>,
        found: Vec<Value>,
        resource_version: Option<String>,
        paged: bool,
    },
    /// Open a watch. `initial`: a streaming list.
    Open { initial: bool },
    /// Read a watch.
    Read(Box<Reading>),
}

#[derive(Debug)]
struct Reading {
    body: Body,
    buffer: Vec<u8>,
    /// `Some`: before the end of the initial events.
    initial: Option<Vec<Value>>,
    changes: u32,
}

struct Run {
    kube: kube_client::Client,
    start: Start,
    mistake: Option<Mistake>,
    phase: Phase,
    reports: VecDeque<Report>,
    resource_version: String,
    /// Newest resourceVersion ever seen, so that a relist never goes back to `0`.
    seen_any: bool,
    /// Failures since the last progress.
    failures: u32,
    /// Lists that an expired token aborted since the last complete one.
    aborted: u32,
    streaming: bool,
    synced: bool,
    leftovers: Vec<Value>,
    /// How long to wait before the next step, once everything is told.
    pause: Option<Duration>,
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
            failures: 0,
            aborted: 0,
            streaming,
            synced: false,
            leftovers: Vec::new(),
            pause: None,
        };
        run.start_over();
        run
    }

    fn is(&self, mistake: Mistake) -> bool {
        self.mistake == Some(mistake)
    }

    async fn step(&mut self) {
        let phase = std::mem::replace(&mut self.phase, Phase::Open { initial: false });
        match phase {
            Phase::List {
                continue_token,
                found,
                resource_version,
                paged,
            } => {
                self.list(continue_token, found, resource_version, paged).await;
            }
            Phase::Open { initial } => self.open(initial).await,
            Phase::Read(reading) => self.read(*reading).await,
        }
    }

    /// Begins a new snapshot.
    fn start_over(&mut self) {
        if self.streaming {
            self.phase = Phase::Open { initial: true };
            return;
        }
        let found = if self.is(Mistake::KeepsPageOneLeftovers) {
            std::mem::take(&mut self.leftovers)
        } else {
            Vec::new()
        };
        let paged = self.aborted < DISTRUST;
        self.phase = Phase::List {
            continue_token: None,
            found,
            resource_version: None,
            paged,
        };
    }

    // ---- LIST

    async fn list(
        &mut self,
        continue_token: Option<String>,
        mut found: Vec<Value>,
        first_version: Option<String>,
        paged: bool,
    ) {
        let mut query = self.selectors(continue_token.is_some());
        if paged && let Some(limit) = self.start.settings.page_size {
            query.push(("limit", limit.to_string()));
        }
        match &continue_token {
            Some(token) => query.push(("continue", token.clone())),
            None if (self.start.settings.list_semantic == ListSemantic::Any && !self.seen_any)
                || (self.seen_any && self.is(Mistake::RelistsFromZero)) =>
            {
                query.push(("resourceVersion", "0".to_owned()));
                query.push(("resourceVersionMatch", "NotOlderThan".to_owned()));
            }
            None => {}
        }
        let again = |run: &mut Self, found| {
            run.phase = Phase::List {
                continue_token: continue_token.clone(),
                found,
                resource_version: first_version.clone(),
                paged,
            };
        };
        match self.get(&query, true).await {
            Err(trouble) => {
                let expired = trouble.expired() && continue_token.is_some();
                self.trouble(&trouble);
                if expired && !self.is(Mistake::ResendsDeadToken) {
                    self.aborted += 1;
                    self.leftovers = found;
                    self.start_over();
                } else if continue_token.is_some() && !self.is(Mistake::ResendsDeadToken) {
                    self.start_over();
                } else {
                    again(self, found);
                }
                self.back_off(trouble.retry_after);
            }
            Ok(response) => {
                let list = match collect(response)
                    .await
                    .ok()
                    .and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok())
                {
                    Some(list) if is_list(&list) && items_are_sound(&list) => list,
                    Some(_) | None => {
                        self.reports
                            .push_back(error("the list is no list of this kind", None));
                        self.start_over();
                        return self.back_off(None);
                    }
                };
                let version = text(&list, "/metadata/resourceVersion");
                let next = text(&list, "/metadata/continue");
                let items = list
                    .get("items")
                    .and_then(Value::as_array)
                    .cloned()
                    .unwrap_or_default();
                let empty = items.is_empty();
                found.extend(items);
                let version = match first_version {
                    Some(first) if !self.is(Mistake::WatchesFromLastPage) => first,
                    Some(_) | None => version,
                };
                if self.is(Mistake::SyncedAfterPageOne) && !next.is_empty() {
                    self.publish(found.clone(), version.clone());
                }
                if !next.is_empty()
                    && continue_token.as_ref() != Some(&next)
                    && !(empty && self.is(Mistake::StopsAtEmptyPage))
                {
                    self.phase = Phase::List {
                        continue_token: Some(next),
                        found,
                        resource_version: Some(version),
                        paged,
                    };
                } else if version.is_empty() {
                    self.reports
                        .push_back(error("the list has no resourceVersion", None));
                    self.start_over();
                    self.back_off(None);
                } else {
                    self.publish(found, version);
                }
            }
        }
    }

    /// A snapshot is complete.
    fn publish(&mut self, found: Vec<Value>, version: String) {
        let quietly = self.synced && self.is(Mistake::DropsDeletesOnRelist);
        let objects: Vec<ReportedObject> = found.iter().map(|object| self.reported(object)).collect();
        if quietly {
            self.reports.extend(objects.into_iter().map(Report::Apply));
        } else {
            self.reports.push_back(Report::Init);
            self.reports.extend(objects.into_iter().map(Report::InitApply));
            self.reports.push_back(Report::InitDone);
        }
        self.resource_version = version;
        if self.is(Mistake::ResumesFromItem)
            && let Some(newest) = found
                .iter()
                .filter_map(|object| version_of(object).parse::<u64>().ok())
                .max()
        {
            self.resource_version = newest.to_string();
        }
        self.seen_any = true;
        self.synced = true;
        self.aborted = 0;
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
        match self.get(&query, false).await {
            Ok(body) => {
                let initial = initial.then(Vec::new);
                self.phase = Phase::Read(Box::new(Reading {
                    body,
                    buffer: Vec::new(),
                    initial,
                    changes: 0,
                }));
            }
            Err(trouble) => {
                self.trouble(&trouble);
                self.failures += 1;
                let refused = trouble
                    .code
                    .is_some_and(|code| (400..500).contains(&code) && code != 429);
                let lost = trouble.expired() || (trouble.too_large() && self.failures >= DISTRUST);
                if initial && refused && !trouble.expired() {
                    self.streaming = false;
                    self.start_over();
                } else if (lost && !(trouble.code == Some(410) && self.is(Mistake::IgnoresGoneStatus)))
                    || (refused && trouble.code != Some(410))
                {
                    self.start_over();
                } else {
                    self.phase = Phase::Open { initial };
                }
                self.back_off(trouble.retry_after);
            }
        }
    }

    async fn read(&mut self, mut reading: Reading) {
        let opened = now();
        let patience = if self.is(Mistake::WaitsForever) {
            Duration::from_secs(1_000_000)
        } else {
            self.start
                .settings
                .idle_timeout_ms
                .map_or(self.lifetime() + Duration::from_secs(5), Duration::from_millis)
        };
        loop {
            let frame = tokio::time::timeout(patience, reading.body.frame()).await;
            match frame {
                Ok(Some(Ok(frame))) => {
                    let Ok(bytes) = frame.into_data() else { continue };
                    if self.is(Mistake::DecodesByChunk) {
                        reading.buffer.extend(String::from_utf8_lossy(&bytes).bytes());
                    } else {
                        reading.buffer.extend_from_slice(&bytes);
                    }
                    match self.drain(&mut reading).await {
                        Flow::On if self.reports.is_empty() => {}
                        Flow::On => {
                            self.phase = Phase::Read(Box::new(reading));
                            return;
                        }
                        Flow::Leave => return,
                    }
                }
                Ok(None) | Ok(Some(Err(_))) | Err(_) => break,
            }
        }
        self.torn(&reading);
        // A final event without its newline is whole if it parses.
        if serde_json::from_slice::<Value>(&reading.buffer).is_ok() {
            reading.buffer.push(b'\n');
            if let Flow::Leave = self.drain(&mut reading).await {
                return;
            }
        }
        if reading.initial.is_some() {
            self.failures += 1;
            self.streaming = self.failures < DISTRUST;
            self.start_over();
            return self.back_off(None);
        }
        let lived = now() - opened;
        self.phase = Phase::Open { initial: false };
        if lived >= SHORT && reading.changes > 0 {
            self.failures = 0;
        } else if lived < SHORT {
            self.failures += 1;
            if self.failures >= DISTRUST {
                self.start_over();
            }
            self.back_off(None);
        }
    }

    fn torn(&mut self, reading: &Reading) {
        let rest = String::from_utf8_lossy(&reading.buffer);
        let Some(version) = between(&rest, "\"resourceVersion\":\"") else {
            return;
        };
        if self.is(Mistake::ResumesPastTornLine) {
            self.resource_version = version.clone();
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

    async fn drain(&mut self, reading: &mut Reading) -> Flow {
        let mut rest = std::mem::take(&mut reading.buffer);
        let mut flow = Flow::On;
        let mut done = 0;
        {
            let mut values = serde_json::Deserializer::from_slice(&rest).into_iter::<Value>();
            loop {
                match values.next() {
                    Some(Ok(event)) => {
                        done = values.byte_offset();
                        flow = self.event(reading, &event).await;
                        if let Flow::Leave = flow {
                            break;
                        }
                    }
                    Some(Err(problem)) if problem.is_eof() => break,
                    Some(Err(problem)) => {
                        flow = self
                            .poisoned(reading.initial.is_some(), &problem.to_string())
                            .await;
                        break;
                    }
                    None => {
                        done = rest.len();
                        break;
                    }
                }
            }
        }
        reading.buffer = rest.split_off(done);
        flow
    }

    async fn event(&mut self, reading: &mut Reading, event: &Value) -> Flow {
        let kind = event.get("type").and_then(Value::as_str).unwrap_or_default();
        let Some(object) = event.get("object").filter(|object| object.is_object()) else {
            return self
                .poisoned(reading.initial.is_some(), "an event without an object")
                .await;
        };
        let version = version_of(object);
        match kind {
            "ERROR" => self.error_event(reading.initial.is_some(), object).await,
            "BOOKMARK" => {
                let marked = text(object, "/metadata/annotations/k8s.io~1initial-events-end");
                if reading.initial.is_some() && (marked == "true" || self.is(Mistake::AnyBookmarkEnds)) {
                    let found = reading.initial.take().unwrap_or_default();
                    self.publish(found, version);
                    self.failures = 0;
                } else if reading.initial.is_none() && !self.is(Mistake::IgnoresBookmarks) {
                    let newer = match (version.parse::<u64>(), self.resource_version.parse::<u64>()) {
                        (Ok(new), Ok(old)) => new >= old,
                        _ => !version.is_empty(),
                    };
                    if newer || self.is(Mistake::RewindsToBookmark) {
                        self.resource_version = version;
                    }
                }
                Flow::On
            }
            "ADDED" | "MODIFIED" | "DELETED" => {
                if version.is_empty() || !is_sound(object) {
                    return self
                        .poisoned(reading.initial.is_some(), "an object that cannot be decoded")
                        .await;
                }
                reading.changes += 1;
                self.change(reading, kind, object, version);
                Flow::On
            }
            _ => {
                self.poisoned(reading.initial.is_some(), "an event of unknown type")
                    .await
            }
        }
    }

    fn change(&mut self, reading: &mut Reading, kind: &str, object: &Value, version: String) {
        let deleted = kind == "DELETED";
        if let Some(found) = &mut reading.initial {
            let same = |other: &Value| key(other) == key(object);
            if !deleted {
                found.retain(|other| !same(other));
                found.push(object.clone());
            } else if self.mistake != Some(Mistake::IgnoresDeletedInInitialEvents) {
                found.retain(|other| !same(other));
            }
            return;
        }
        self.resource_version = version;
        if deleted && self.is(Mistake::IgnoresDeleted) {
            return;
        }
        let object = self.reported(object);
        let report = if deleted {
            Report::Delete(object)
        } else {
            Report::Apply(object)
        };
        if self.is(Mistake::ReportsTwice) {
            self.reports.push_back(report.clone());
        }
        self.reports.push_back(report);
    }

    async fn error_event(&mut self, initial: bool, status: &Value) -> Flow {
        let code = status
            .get("code")
            .and_then(Value::as_u64)
            .and_then(|code| u16::try_from(code).ok());
        let reason = text(status, "/reason");
        self.reports.push_back(error(&text(status, "/message"), code));
        if self.is(Mistake::ReadsPastError) {
            return Flow::On;
        }
        self.failures += 1;
        let gone = code == Some(410) || reason == "Expired" || reason == "Gone";
        if initial || (gone && !self.is(Mistake::IgnoresGoneEvent)) || (!gone && code != Some(429)) {
            self.start_over();
        } else {
            self.phase = Phase::Open { initial: false };
        }
        let after = status
            .pointer("/details/retryAfterSeconds")
            .and_then(Value::as_u64)
            .map(Duration::from_secs);
        self.back_off(after);
        Flow::Leave
    }

    async fn poisoned(&mut self, initial: bool, message: &str) -> Flow {
        self.reports.push_back(error(message, None));
        if self.is(Mistake::SkipsPoison) && !initial {
            return Flow::On;
        }
        self.failures += 1;
        self.start_over();
        self.back_off(None);
        Flow::Leave
    }

    // ---- HTTP

    async fn get(&mut self, query: &[(&str, String)], list: bool) -> Result<Body, Trouble> {
        let target = &self.start.target;
        let base = if target.group.is_empty() {
            "/api".to_owned()
        } else {
            format!("/apis/{}", target.group)
        };
        let namespace = target
            .namespace
            .as_ref()
            .map(|namespace| format!("/namespaces/{namespace}"))
            .unwrap_or_default();
        let query: Vec<String> = query
            .iter()
            .map(|(name, value)| format!("{name}={}", escaped(value)))
            .collect();
        let uri = format!(
            "{base}/{}{namespace}/{}?{}",
            target.version,
            target.plural,
            query.join("&")
        );
        let metadata = self.start.settings.mode == ClientMode::Metadata;
        let accept = match (metadata, list) {
            (true, true) => "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
            (true, false) => "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
            (false, _) => "application/json",
        };
        let request = http::Request::get(uri)
            .header("accept", accept)
            .body(Body::empty())
            .expect("a path and a query that were just escaped make a request");
        let answer = tokio::time::timeout(PATIENCE, self.kube.send(request)).await;
        let response = match answer {
            Err(_) => return Err(Trouble::of_transport("no answer")),
            Ok(Err(problem)) => return Err(Trouble::of_transport(&problem.to_string())),
            Ok(Ok(response)) => response,
        };
        if response.status().is_success() {
            return Ok(response.into_body());
        }
        let code = response.status().as_u16();
        let retry_after = response
            .headers()
            .get("retry-after")
            .and_then(|value| value.to_str().ok())
            .and_then(|value| value.parse().ok())
            .map(Duration::from_secs);
        let body = collect(response.into_body()).await.unwrap_or_default();
        let body = String::from_utf8_lossy(&body).into_owned();
        Err(Trouble {
            code: Some(code),
            body,
            retry_after,
        })
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

    fn lifetime(&self) -> Duration {
        Duration::from_secs(u64::from(self.start.settings.timeout_s.unwrap_or(290)))
    }

    fn trouble(&mut self, trouble: &Trouble) {
        self.reports.push_back(error(&trouble.body, trouble.code));
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
        self.pause = Some(own.max(asked).min(Duration::from_secs(120)));
    }

    fn reported(&self, object: &Value) -> ReportedObject {
        let optional = |pointer: &str| Some(text(object, pointer)).filter(|text| !text.is_empty());
        ReportedObject {
            namespace: optional("/metadata/namespace"),
            name: text(object, "/metadata/name"),
            uid: optional("/metadata/uid"),
            resource_version: optional("/metadata/resourceVersion"),
            content: (self.start.settings.mode != ClientMode::Metadata).then(|| Arc::new(object.clone())),
        }
    }
}

enum Flow {
    On,
    Leave,
}

#[derive(Debug)]
struct Trouble {
    code: Option<u16>,
    body: String,
    retry_after: Option<Duration>,
}

impl Trouble {
    fn of_transport(message: &str) -> Self {
        Self {
            code: None,
            body: message.to_owned(),
            retry_after: None,
        }
    }

    fn expired(&self) -> bool {
        self.code == Some(410) || self.body.contains("\"reason\":\"Expired\"")
    }

    fn too_large(&self) -> bool {
        self.body.contains("Too large resource version") || self.body.contains("ResourceVersionTooLarge")
    }
}

async fn collect(body: Body) -> Result<Vec<u8>, String> {
    match tokio::time::timeout(PATIENCE, body.collect()).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes().to_vec()),
        Ok(Err(problem)) => Err(problem.to_string()),
        Err(_) => Err("the body never ended".to_owned()),
    }
}

fn error(message: &str, code: Option<u16>) -> Report {
    Report::Error {
        message: message.to_owned(),
        code,
    }
}

fn text(value: &Value, pointer: &str) -> String {
    value
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned()
}

fn version_of(object: &Value) -> String {
    text(object, "/metadata/resourceVersion")
}

fn key(object: &Value) -> (String, String) {
    (
        text(object, "/metadata/namespace"),
        text(object, "/metadata/name"),
    )
}

fn is_list(list: &Value) -> bool {
    list.get("kind")
        .and_then(Value::as_str)
        .is_some_and(|kind| kind.ends_with("List"))
}

fn items_are_sound(list: &Value) -> bool {
    list.get("items")
        .and_then(Value::as_array)
        .is_none_or(|items| items.iter().all(is_sound))
}

/// Would a typed client decode it? Only what the scenarios break is looked at.
fn is_sound(object: &Value) -> bool {
    let names = !text(object, "/metadata/name").is_empty();
    let map = |field: &str| {
        object
            .get(field)
            .is_none_or(|value| value.is_object() || value.is_null())
    };
    names && map("data") && map("spec")
}

fn between(text: &str, before: &str) -> Option<String> {
    let rest = &text[text.find(before)? + before.len()..];
    Some(rest[..rest.find('"')?].to_owned())
}

fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            escaped.push_str(&format!("%{byte:02X}"));
        }
    }
    escaped
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

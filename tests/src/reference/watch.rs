//! WATCH of the reference client: value by value, starting at the last certain version.

use std::time::Duration;

use fake_apiserver::report::{Report, ReportedObject};
use futures::StreamExt as _;
use http_body_util::BodyExt as _;
use kube_client::client::Body;
use serde_json::Value;

use super::wire::{Trouble, between, key, text, version_of};
use super::{Chunks, DISTRUST, Mistake, Phase, Reading, Run, newest_of};

/// Minimum lifetime of a watch; shorter ones ended immediately.
const SHORT: Duration = Duration::from_secs(1);

/// How long a version is trusted without confirmation by the server, which may have gone back in time.
const TRUST: Duration = Duration::from_secs(600);

/// Maximum length of a line; nothing in a Kubernetes cluster is longer.
const LINE_MAX: usize = 16 << 20;

/// Longer than any run.
pub(super) const FOR_EVER: Duration = Duration::from_secs(1_000_000);

enum Flow {
    On,
    Leave,
}

impl Run {
    pub(super) async fn open(&mut self, initial: bool) {
        let mut query = self.selectors(true);
        query.push(("watch", "true".to_owned()));
        query.push(("timeoutSeconds", self.lifetime().as_secs().to_string()));
        if initial || (self.start.settings.bookmarks && !self.is(Mistake::AsksForNoBookmarks)) {
            query.push(("allowWatchBookmarks", "true".to_owned()));
        }
        if initial {
            query.push(("sendInitialEvents", "true".to_owned()));
            if !self.is(Mistake::StreamsWithoutMatch) {
                query.push(("resourceVersionMatch", "NotOlderThan".to_owned()));
            }
            if self.seen_any && self.is(Mistake::RepeatsRefusedVersion) {
                query.push(("resourceVersion", self.resource_version.clone()));
            }
        } else if !self.resource_version.is_empty() {
            query.push(("resourceVersion", self.version_to_send()));
        }
        match self.ask(query, false).await {
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

    fn version_to_send(&self) -> String {
        match self.resource_version.parse::<f64>() {
            Ok(number) if self.is(Mistake::ReadsVersionsAsNumbers) => format!("{number:.0}"),
            Ok(_) | Err(_) => self.resource_version.clone(),
        }
    }

    fn refused(&mut self, initial: bool, trouble: &Trouble) {
        let rejected = trouble
            .code
            .is_some_and(|code| (400..500).contains(&code) && code != 429);
        if trouble.code.is_none() && self.is(Mistake::GivesUpOnRefusedConnections) {
            self.over = true;
        } else if (trouble.expired() && !initial && !self.is(Mistake::IgnoresGoneStatus))
            || (trouble.code == Some(429) && self.is(Mistake::ListsAfterThrottling))
        {
            self.start_over();
        } else if initial {
            // An older server does not support streaming lists; 410 only requires a new start. Anything else may last, while
            // a list would be answered.
            self.starts += 1;
            let is_repeated = self.starts < DISTRUST || self.is(Mistake::RepeatsRefusedStreams);
            self.streaming = (!rejected || trouble.expired()) && is_repeated;
            self.start_over();
        } else if trouble.code == Some(404) {
            // The collection itself was deleted, with its history.
            self.start_over();
        } else if (rejected || trouble.too_large()) && !trouble.expired() {
            self.try_again();
        } else {
            self.phase = Phase::Open { initial: false };
        }
    }

    pub(super) async fn read(&mut self, mut reading: Reading) {
        let patience = if self.is(Mistake::WaitsForever) {
            FOR_EVER
        } else if self.is(Mistake::DropsQuietWatches) {
            Duration::from_secs(3)
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
            if self.is(Mistake::SplitsAtLineSeparators) {
                let text = String::from_utf8_lossy(&reading.buffer);
                reading.buffer = text.replace(['\u{85}', '\u{2028}'], "\n").into_bytes();
            }
            let line_max = if self.is(Mistake::RefusesLongLines) {
                64 << 10
            } else {
                LINE_MAX
            };
            if reading.buffer.len() > line_max && !self.is(Mistake::ReadsWithoutLimit) {
                self.poisoned(reading.initial.is_some(), "a line without end");
                return;
            }
            // Only a closing brace can complete a value; a large one is not parsed again with every chunk.
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
        self.late = self.held.take();
        self.ended(&reading);
        if self.is(Mistake::ListsAfterEveryEnd) {
            self.start_over();
        }
        if self.is(Mistake::KeepsGivenUpWatch) {
            self.kept.push(reading.chunks);
        }
    }

    /// Handles the end of a stream.
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
            // A stream that was cut may complete next time; one that lasted without reaching its end will not.
            self.starts += if short { 1 } else { DISTRUST };
            self.streaming = self.starts <= DISTRUST;
            self.start_over();
            return self.back_off(None);
        }
        if short {
            // A stream that received something does not count as failed, but must not cause a busy loop.
            if reading.brought == 0 {
                self.try_again();
            } else {
                self.phase = Phase::Open { initial: false };
            }
            return self.back_off(None);
        }
        if !self.is(Mistake::KeepsLongDelays) {
            self.failures = 0;
        }
        if reading.brought > 0 {
            self.last_received = now();
        }
        if now() - self.last_received > TRUST && !self.is(Mistake::TrustsSilence) {
            return self.start_over();
        }
        self.phase = Phase::Open { initial: false };
    }

    /// The handling of a truncated line by a careless client.
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

    /// Consumes every complete value in the buffer: a value is complete when it parses, regardless of lines.
    fn drain(&mut self, reading: &mut Reading) -> Flow {
        let mut buffer = std::mem::take(&mut reading.buffer);
        let before = self.reports.len();
        let mut flow = Flow::On;
        let mut done = 0;
        let mut values = serde_json::Deserializer::from_slice(&buffer).into_iter::<Value>();
        loop {
            match values.next() {
                Some(Ok(event)) => {
                    done = values.byte_offset();
                    flow = self.event(reading, &event);
                    if let Flow::Leave = flow {
                        if self.is(Mistake::ReportsWholeChunks) {
                            self.report_rest(values);
                        }
                        break;
                    }
                }
                Some(Err(problem)) if problem.is_eof() => break,
                Some(Err(problem)) => {
                    assert!(
                        !self.is(Mistake::CrashesOnBrokenJson),
                        "the stream is no JSON: {problem}"
                    );
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
            self.reports.make_contiguous()[before..].reverse();
        }
        reading.buffer = buffer.split_off(done);
        flow
    }

    /// Reports the changes behind an event with which the stream is left.
    fn report_rest(&mut self, rest: impl Iterator<Item = serde_json::Result<Value>>) {
        for event in rest.map_while(Result::ok) {
            let kind = event.get("type").and_then(Value::as_str).unwrap_or_default();
            if let "ADDED" | "MODIFIED" | "DELETED" = kind {
                self.report(&event["object"], kind == "DELETED");
            }
        }
    }

    fn event(&mut self, reading: &mut Reading, event: &Value) -> Flow {
        let initial = reading.initial.is_some();
        let kind = event.get("type").and_then(Value::as_str).unwrap_or_default();
        if self.is(Mistake::ReadsListsAsEvents)
            && let Some(items) = event.get("items").and_then(Value::as_array)
        {
            for item in items {
                self.report(item, false);
            }
            return Flow::On;
        }
        let Some(object) = event.get("object").filter(|object| object.is_object()) else {
            return self.poisoned(initial, "an event without an object");
        };
        let version = version_of(object);
        match kind {
            "ERROR" => self.error_event(initial, object),
            "BOOKMARK" => {
                reading.brought += 1;
                self.bookmark(reading, object, version);
                if initial && reading.initial.is_none() && self.is(Mistake::WatchesAgainAfterMarker) {
                    Flow::Leave
                } else {
                    Flow::On
                }
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
        if self.is(Mistake::StoresBookmarks) {
            self.report(object, false);
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
        if version == self.resource_version && self.is(Mistake::SkipsSeenVersions) {
            return;
        }
        let number = |version: &str| version.parse::<u64>().unwrap_or_default();
        let goes_back = number(&version) < number(&self.resource_version);
        if deleted && self.is(Mistake::ResumesBeforeDeletion) {
            let known = self.known.get(&self.reported(object).key());
            let before = known.and_then(|known| known.resource_version.clone());
            self.resource_version = before.unwrap_or_else(|| self.resource_version.clone());
        } else if !(goes_back && self.is(Mistake::ResumesFromHighest)) {
            self.resource_version = version;
        }
        self.starts = 0;
        let is_known = self.known.contains_key(&self.reported(object).key());
        let is_ignored = match kind {
            "ADDED" => is_known && self.is(Mistake::IgnoresAdditionsOfKnown),
            "MODIFIED" => !is_known && self.is(Mistake::IgnoresChangesOfUnknown),
            _ => self.is(Mistake::IgnoresDeleted),
        };
        if self.is_wanted(object) && !is_ignored {
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
        if self.is(Mistake::ReportsLateEvents) {
            self.reports.extend(self.held.replace(report));
            return;
        }
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
        if self.is(Mistake::ReportsStatuses) {
            self.report(status, false);
        }
        if self.is(Mistake::ReadsPastError) {
            return Flow::On;
        }
        let gone = code == Some(410) || reason == "Expired" || reason == "Gone";
        if initial {
            self.starts += 1;
            self.streaming = self.starts < DISTRUST || self.is(Mistake::RepeatsRefusedStreams);
        }
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

    /// The stream contains an invalid event: the change it stood for must be recovered.
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
        if !self.is(Mistake::SpinsOnPoison) {
            self.back_off(None);
        }
        Flow::Leave
    }
}

/// Returns the chunks of a body, up to its end or the first error.
fn chunks(body: Body) -> Chunks {
    body.into_data_stream()
        .take_while(|chunk| std::future::ready(chunk.is_ok()))
        .filter_map(|chunk| std::future::ready(chunk.ok().map(|bytes| bytes.to_vec())))
        .boxed()
}

pub(super) fn now() -> tokio::time::Instant {
    #[expect(
        clippy::disallowed_methods,
        reason = "the runtime's clock, virtual in sim; this is the client's edge"
    )]
    tokio::time::Instant::now()
}

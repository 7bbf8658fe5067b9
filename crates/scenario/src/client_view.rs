//! What the client under test has received, and how far its own writes have moved the world since.
//!
//! A scenario describes a world that only its steps change. A controller also writes: leases, events, status, finalizers,
//! objects that it owns, its target. These writes move the revision, so the versions that a client is sent differ from
//! those of a client that only reads. This module decides which requests belong to the loop under test, and which version
//! stands for which. It reads records only: the server and the judge of a saved trace decide alike.

use std::collections::{BTreeMap, BTreeSet};

use apimachinery::path::decoded_path;
use trace::fault::Ending;
use trace::record::{ExchangeRecord, Frame, FrameType, Group, Record, StoreRecord, StreamId, Verb, What};

use super::matching::Read;
use super::{ClientMode, Named, Scenario, Target};

/// The lists and watches of one loop: namespace, selectors and representation, which it repeats in every request.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Collection {
    namespace: String,
    labels: String,
    fields: String,
    /// `as=` of the Accept header, without `List`: empty, `Table`, `PartialObjectMetadata`.
    form: String,
}

/// Decides which requests belong to the loop under test: the first that reads the target.
#[derive(Debug)]
pub struct TargetLoop {
    target: Target,
    /// Whether loops with other selectors and representations are other loops. Not in a scenario that sets them: a client
    /// that forgets its selector is still the client under test.
    is_strict: bool,
    own: Option<Collection>,
    others: BTreeSet<Collection>,
}

impl TargetLoop {
    /// Returns the loop of a scenario before its first request.
    pub fn of(scenario: &Scenario) -> Self {
        let client = &scenario.client;
        let is_strict =
            client.labels.is_none() && client.fields.is_none() && client.mode == ClientMode::Watcher;
        Self {
            target: scenario.target.clone(),
            is_strict,
            own: None,
            others: BTreeSet::new(),
        }
    }

    /// Returns whether a request belongs to the loop. `path`: decoded. Call once per request, in order.
    pub fn takes(&mut self, path: &str, read: Read<'_>, accept: Option<&str>) -> bool {
        let named = Named::by(path);
        if read.verb == Verb::Other || !self.is_of_target(&named) {
            return false;
        }
        let param = |name: &str| read.param(name).unwrap_or_default().to_owned();
        let mut asked = Collection {
            namespace: named.namespace.to_owned(),
            labels: String::new(),
            fields: String::new(),
            form: String::new(),
        };
        if self.is_strict {
            asked.labels = param("labelSelector");
            asked.fields = param("fieldSelector");
            asked.form = form(accept).to_owned();
        }
        let Some(own) = &self.own else {
            self.own = Some(asked);
            return true;
        };
        if asked == *own {
            return true;
        }
        if read.is_start() {
            // A list of every namespace and one of the target's are two loops.
            self.others.insert(asked);
            return false;
        }
        !self.others.contains(&asked)
    }

    /// A read of all namespaces includes each of them.
    fn is_of_target(&self, named: &Named<'_>) -> bool {
        let target = &self.target;
        let is_here = match &target.namespace {
            None => true,
            Some(own) => named.namespace.is_empty() || named.namespace == own,
        };
        named.group == target.group && named.plural == target.plural && is_here
    }
}

/// Requests of the loop under test, and the versions that it was sent after the first write of the client itself.
#[derive(Debug)]
pub struct ClientView {
    target: TargetLoop,
    streams: BTreeSet<StreamId>,
    /// Parameters of the last request that started the loop.
    started_with: Vec<(String, String)>,
    /// Watches of the loop.
    watches: BTreeSet<StreamId>,
    /// Those of them that were answered and did not end.
    open: BTreeSet<StreamId>,
    /// Watches that sent an ERROR or something scripted, or stalled: their reader may be about to leave them.
    troubled: BTreeSet<StreamId>,
    /// Lists like the loop's own, sent while it had a sound watch: a program that also polls sends such.
    beside: BTreeSet<StreamId>,
    /// Every write from the client's first one on: whether it is the client's.
    writes: BTreeMap<u64, bool>,
    /// Versions sent to the loop since, with the records that sent them.
    sent: Vec<(u64, u64)>,
}

impl ClientView {
    /// Returns the state before the first record.
    pub fn of(scenario: &Scenario) -> Self {
        Self {
            target: TargetLoop::of(scenario),
            streams: BTreeSet::new(),
            started_with: Vec::new(),
            watches: BTreeSet::new(),
            open: BTreeSet::new(),
            troubled: BTreeSet::new(),
            beside: BTreeSet::new(),
            writes: BTreeMap::new(),
            sent: Vec::new(),
        }
    }

    /// Returns the state after these records.
    pub fn after(scenario: &Scenario, records: &[Record]) -> Self {
        let mut view = Self::of(scenario);
        records.iter().for_each(|record| view.take(record));
        view
    }

    /// Processes the next record.
    pub fn take(&mut self, record: &Record) {
        let has_written = !self.writes.is_empty();
        if let Some(stream) = troubled_by(&record.what) {
            self.troubled.insert(stream);
        }
        match record.what.group() {
            Group::Exchange(ExchangeRecord::Request {
                stream,
                verb,
                path,
                query,
                accept,
                ..
            }) if *verb != Verb::Other => {
                let read = Read { verb: *verb, query };
                if self.target.takes(&decoded_path(path), read, accept.as_deref()) {
                    self.take_request(*stream, read);
                }
            }
            Group::Exchange(ExchangeRecord::Head {
                stream, status: 200, ..
            }) if self.watches.contains(stream) => {
                self.open.insert(*stream);
            }
            Group::Exchange(ExchangeRecord::End { stream, how, .. }) => {
                self.open.remove(stream);
                // The reader of a stalled stream does not know of its end.
                if *how != Ending::Stall {
                    self.troubled.remove(stream);
                }
            }
            Group::Store(StoreRecord::Wrote(write)) if has_written || write.by.is_some() => {
                if let Ok(version) = write.object.resource_version.parse() {
                    self.writes.insert(version, write.by.is_some());
                }
            }
            Group::Store(StoreRecord::Restored { to }) => {
                self.writes.split_off(&(to + 1));
                self.sent.retain(|(version, _)| version <= to);
            }
            Group::Exchange(ExchangeRecord::Page {
                stream,
                resource_version,
                scripted: false,
                ..
            }) if has_written => self.send(*stream, resource_version, record.seq),
            Group::Exchange(ExchangeRecord::Frame { stream, frame })
                if has_written && !frame.scripted && frame.whole() =>
            {
                if let Some(object) = &frame.object {
                    self.send(*stream, &object.resource_version, record.seq);
                }
            }
            Group::Exchange(
                ExchangeRecord::Request { .. }
                | ExchangeRecord::Page { .. }
                | ExchangeRecord::Frame { .. }
                | ExchangeRecord::Head { .. }
                | ExchangeRecord::Body { .. }
                | ExchangeRecord::Torn { .. }
                | ExchangeRecord::Withheld { .. }
                | ExchangeRecord::Sent { .. }
                | ExchangeRecord::Webhook { .. },
            )
            | Group::Store(StoreRecord::Wrote(_) | StoreRecord::Turned { .. })
            | Group::Connection(_)
            | Group::Script(_)
            | Group::Run(_) => {}
        }
    }

    /// Processes a request to the collection of the loop.
    fn take_request(&mut self, stream: StreamId, read: Read<'_>) {
        let is_beside = read.verb == Verb::List && self.open.iter().any(|watch| self.is_sound(*watch));
        if is_beside {
            // An informer does not list while its watch is sound. A list with another query is not the informer's.
            if !asks_for_the_same(&self.started_with, read.query) {
                return;
            }
            self.beside.insert(stream);
        } else if read.is_start() {
            self.started_with = read.query.to_vec();
        }
        if read.is_watch() {
            self.watches.insert(stream);
        }
        self.streams.insert(stream);
    }

    /// Returns whether a watch gave its reader no reason to leave.
    pub fn is_sound(&self, watch: StreamId) -> bool {
        !self.troubled.contains(&watch)
    }

    /// Returns whether a request of the loop may be a poll of the same program: a list while the loop had a sound watch.
    /// It can meet an expectation, and proves nothing against the client.
    pub fn is_beside(&self, stream: StreamId) -> bool {
        self.beside.contains(&stream)
    }

    /// Returns whether a request belongs to the loop under test.
    pub fn is_of_loop(&self, stream: StreamId) -> bool {
        self.streams.contains(&stream)
    }

    /// Returns whether a client that resumes from `value` before record `seq` is where a scenario expects `expected`: it
    /// was sent `value` later, and the last write up to there is its own.
    pub fn resumes_at(&self, expected: &str, value: &str, seq: u64) -> bool {
        let Some(value) = self.is_moved(expected, value) else {
            return false;
        };
        let mut sent = self.sent.iter().take_while(|(_, at)| *at < seq);
        sent.any(|(version, _)| *version == value)
    }

    /// Returns whether an object at version `value` is what a scenario expects at `expected`, written again by the client.
    pub fn rewrote(&self, expected: &str, value: &str) -> bool {
        self.is_moved(expected, value).is_some()
    }

    /// Returns a later version to which the client itself moved the world.
    fn is_moved(&self, expected: &str, value: &str) -> Option<u64> {
        if self.writes.is_empty() {
            return None;
        }
        let (expected, value) = (expected.parse::<u64>().ok()?, value.parse::<u64>().ok()?);
        let (last, is_own) = self.writes.range(..=value).next_back()?;
        (*is_own && *last > expected).then_some(value)
    }

    fn send(&mut self, stream: StreamId, version: &str, seq: u64) {
        if self.streams.contains(&stream)
            && let Ok(version) = version.parse()
        {
            self.sent.push((version, seq));
        }
    }
}

/// Returns whether a list asks for what another did, or for a page of it.
fn asks_for_the_same(start: &[(String, String)], list: &[(String, String)]) -> bool {
    let list = list.iter().filter(|(name, _)| name != "continue");
    start.iter().eq(list)
}

/// Returns the watch that a record gives its reader a reason to leave.
fn troubled_by(what: &What) -> Option<StreamId> {
    let is_odd =
        |frame: &Frame| frame.scripted || !frame.whole() || matches!(frame.kind, FrameType::Error { .. });
    let is_reason = matches!(what, What::Frame { frame, .. } if is_odd(frame))
        || matches!(what, What::Head { scripted: true, .. } | What::Withheld { .. })
        || matches!(what, What::End { how, .. } if *how == Ending::Stall);
    what.stream().filter(|_| is_reason)
}

/// Returns the object that an Accept header asks for instead of the resource's own: that of a list and that of an event
/// are the same.
pub fn form(accept: Option<&str>) -> &str {
    let first = accept.unwrap_or_default().split(',').next().unwrap_or_default();
    let wanted = first.split(';').find_map(|part| part.trim().strip_prefix("as="));
    let wanted = wanted.unwrap_or_default();
    wanted.strip_suffix("List").unwrap_or(wanted)
}

#[cfg(test)]
mod tests;

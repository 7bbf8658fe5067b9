//! From records to a scenario: what the server did, request by request.
//!
//! A write, an operation on store or watch caches, and each deviation become an action, in the step of the request that they met
//! or in a step after it. Everything else the server does by itself when the scenario is played.

mod answer;
mod events;
mod exchange;
mod text;
mod words;

use std::collections::BTreeSet;
use std::time::Duration;

use exchange::{Exchanges, Kind as RequestKind};
use scenario::raw::{ActionKey, At, Condition, First, Name, OneOrMany, Text};
use trace::record::{
    ConnId, ConnectionRecord, ExchangeRecord, Group, ObjectRef, Record, Side, StoreRecord, StoreWrite,
    StreamId, Turn, What, WriteOp,
};

use crate::chosen::{Cannot, Chosen, choose};
use crate::file::{Origin, Recording};
use crate::manifest::{Contents, Kind, parts};
use crate::operations;
use crate::steps::Steps;
use crate::steps::at as key;
use crate::store::{Change, Object, Store, number};

/// Number of objects that never change up to which all are kept.
const UNTOUCHED_MAX: usize = 20;

/// How a scenario is made of a recording.
#[derive(Debug, Clone)]
pub struct Options {
    /// Name of the recording, for a comment.
    pub source: String,
    /// Violation up to which it goes: `INV-04`, `INV-04#2`; `None`: the first one, or everything.
    pub around: Option<String>,
    /// Longest wait between two actions of the server.
    pub longest_wait: Duration,
}

/// A scenario, as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    /// The file.
    pub text: String,
    /// What the recording does not have; comments of the file have it, too.
    pub unknown: Vec<String>,
}

/// Makes a scenario of a recording.
///
/// # Errors
/// The recording has no list and no watch, or not the violation that is wanted.
pub fn draft(recording: &Recording, options: &Options) -> Result<Draft, Cannot> {
    let chosen = choose(recording, options.around.as_deref())?;
    let mut story = Story::new(recording, &chosen, options);
    story.begin();
    for record in &recording.records {
        if (chosen.from..=chosen.to).contains(&record.seq) {
            story.take(record);
        }
    }
    Ok(story.draft(options))
}

/// The scenario so far.
struct Story<'r> {
    recording: &'r Recording,
    chosen: &'r Chosen,
    origin: Origin,
    exchanges: Exchanges<'r>,
    contents: Contents,
    kind: Kind,
    store: Store,
    steps: Steps,
    /// Open watches of the loop.
    open: BTreeSet<StreamId>,
    /// The request of the current step, until its response begins.
    pending: Option<StreamId>,
    /// Watches that sent an event of the store.
    told: BTreeSet<StreamId>,
    /// Frames that another action makes the server send: by `seq`.
    caused: BTreeSet<u64>,
    /// Time of the last operation that ended watches.
    ended_at: Option<Duration>,
    /// Whether an operation makes old versions 410.
    is_expired: bool,
    is_stale: bool,
    /// The newest version that the scenario has written.
    written: u64,
    /// Version before the first request.
    base: u64,
    /// Responses that end by themselves, after what else they do.
    over: BTreeSet<StreamId>,
    /// Version of the first list.
    start: Option<&'r str>,
    /// Whether the first list was seen.
    is_listed: bool,
    unknown: BTreeSet<String>,
    raw_lines: usize,
    own_writes: usize,
    left_out: usize,
    /// First record after the initial objects.
    first: u64,
}

impl<'r> Story<'r> {
    fn new(recording: &'r Recording, chosen: &'r Chosen, options: &Options) -> Self {
        let records = &recording.records;
        let exchanges = Exchanges::read(records, chosen);
        let contents = Contents::of(records);
        let sample = records.iter().find_map(|record| {
            let (key, version) = shown(&record.what, &chosen.collection.plural)?;
            Some((key.contains('/'), contents.object(key, version).cloned()))
        });
        let (namespaced, sample) = sample.unwrap_or_default();
        let kind = Kind::of(&chosen.collection, sample.as_ref(), namespaced);
        let first = exchanges.first().unwrap_or(chosen.from);
        Self {
            recording,
            chosen,
            origin: recording.origin(),
            exchanges,
            contents,
            kind,
            store: Store::default(),
            steps: Steps::new(options.longest_wait),
            open: BTreeSet::new(),
            pending: None,
            told: BTreeSet::new(),
            caused: BTreeSet::new(),
            ended_at: None,
            is_expired: false,
            is_stale: false,
            written: 0,
            base: 0,
            over: BTreeSet::new(),
            start: None,
            is_listed: false,
            unknown: BTreeSet::new(),
            raw_lines: 0,
            own_writes: 0,
            left_out: 0,
            first,
        }
    }

    /// Finds the initial objects: those written before the first request; of an upstream, those of the first complete list.
    fn begin(&mut self) {
        let records: &'r [Record] = &self.recording.records;
        if self.origin == Origin::Model {
            for record in records.iter().take_while(|record| record.seq < self.first) {
                if let What::Wrote(write) = &record.what {
                    self.store.saw(&write.object.resource_version);
                    if self.is_in_scope(write) {
                        let change = self.change(write);
                        self.store.change(change);
                    }
                }
                if let What::Restored { to } = &record.what {
                    self.store.restore(*to);
                }
            }
        } else if let Some(items) = self.exchanges.first_list() {
            for item in items {
                let object = self.object(item);
                self.store.change(Change::Write(item.key.clone(), object));
            }
            self.is_listed = true;
        }
        self.start = self.exchanges.first_version();
        if let Some(start) = self.start.filter(|_| self.origin != Origin::Model) {
            self.store.saw(start);
        }
        self.base = self.store.newest;
        if self.kind.is_custom {
            self.steps
                .object(self.kind.definition(&self.chosen.collection), "");
        }
        let touched = self.touched();
        let is_paged = self.exchanges.is_paged();
        let untouched = self
            .store
            .objects()
            .keys()
            .filter(|key| !touched.contains(key.as_str()))
            .count();
        let keeps_all = is_paged || untouched <= UNTOUCHED_MAX;
        let mut kept_untouched = 0;
        for (key, object) in self.store.in_order() {
            if !keeps_all && !touched.contains(key.as_str()) {
                kept_untouched += 1;
                if kept_untouched > 1 {
                    self.left_out += 1;
                    continue;
                }
            }
            let manifest = self.kind.manifest(key, &object.version, object.content.as_ref());
            self.steps.object(manifest, &object.version);
            self.written = self.written.max(number(&object.version));
        }
        // A client that takes the version of an item for that of the list must not be right by chance.
        if self.base > self.written && self.steps.objects() > 0 {
            self.steps.object(self.kind.elsewhere(self.base), "");
            self.written = self.base;
        }
    }

    /// Moves the version as writes to other resources did.
    fn move_on(&mut self, at: Duration, at_request: bool) {
        if self.store.newest > self.written {
            self.written = self.store.newest;
            let manifest = self.kind.elsewhere(self.written);
            self.steps
                .apply(manifest, &self.written.to_string(), at, at_request);
        }
    }

    /// Returns the keys of the objects that anything happens to after the start.
    fn touched(&self) -> BTreeSet<&'r str> {
        let records: &'r [Record] = &self.recording.records;
        let after = records
            .iter()
            .filter(|record| record.seq >= self.first && record.seq <= self.chosen.to);
        let plural = self.chosen.collection.plural.as_str();
        let changed = after.clone().filter_map(|record| {
            let is_list = matches!(record.what, What::Page { scripted: false, .. });
            let (key, _) = shown(&record.what, plural).filter(|_| !is_list)?;
            Some(key)
        });
        let mut touched: BTreeSet<&str> = changed.collect();
        // Lists of an upstream show what changed in between.
        let listed = after.filter_map(|record| {
            let What::Page { items, .. } = &record.what else {
                return None;
            };
            Some(items.iter().filter(|item| {
                let known = self.store.get(&item.key);
                known.is_none_or(|known| known.version != item.resource_version)
            }))
        });
        touched.extend(listed.flatten().map(|item| item.key.as_str()));
        // And what is gone.
        if self.origin != Origin::Model
            && let (Some(first), Some(last)) = (self.exchanges.first_list(), self.exchanges.last_list())
        {
            let left: BTreeSet<&str> = last.into_iter().map(|item| item.key.as_str()).collect();
            let listed = first.into_iter().map(|item| item.key.as_str());
            touched.extend(listed.filter(|key| !left.contains(key)));
        }
        touched
    }

    fn take(&mut self, record: &'r Record) {
        let at = record.at;
        if let Some(stream) = record.what.stream()
            && !self.exchanges.has(stream)
        {
            return;
        }
        let is_after_start = record.seq >= self.first;
        match record.what.group() {
            Group::Exchange(ExchangeRecord::Request { stream, .. }) => self.on_request(*stream),
            Group::Exchange(ExchangeRecord::Head { stream, status, .. }) => {
                self.pending = self.pending.filter(|pending| pending != stream);
                if *status == 200 && self.exchanges.of(*stream).kind == RequestKind::Watch {
                    self.open.insert(*stream);
                }
            }
            Group::Exchange(ExchangeRecord::Frame { stream, frame }) => {
                self.on_frame(record.seq, *stream, frame, at);
            }
            Group::Exchange(ExchangeRecord::Page { resource_version, .. }) => {
                if self.origin == Origin::Model {
                    self.store.saw(resource_version);
                }
            }
            Group::Exchange(ExchangeRecord::End {
                stream,
                how,
                by: Side::Server,
            }) => self.on_end(*stream, *how, at),
            Group::Exchange(ExchangeRecord::End {
                stream,
                by: Side::Client,
                ..
            }) => {
                self.open.remove(stream);
            }
            Group::Store(StoreRecord::Wrote(write)) if is_after_start => {
                self.on_write(record.seq, write, at);
            }
            Group::Store(StoreRecord::Restored { to }) if is_after_start => self.on_restore(*to, at),
            Group::Store(StoreRecord::Turned { how, .. }) if is_after_start => self.on_turn(how, at),
            Group::Connection(ConnectionRecord::Goaway { conn }) => self.on_goaway(*conn, at),
            Group::Connection(
                ConnectionRecord::Connected { .. }
                | ConnectionRecord::Refused
                | ConnectionRecord::Disconnected { .. },
            )
            | Group::Exchange(
                ExchangeRecord::Body { .. }
                | ExchangeRecord::Torn { .. }
                | ExchangeRecord::Sent { .. }
                | ExchangeRecord::Withheld { .. }
                | ExchangeRecord::Webhook { .. },
            )
            | Group::Store(
                StoreRecord::Wrote(_) | StoreRecord::Restored { .. } | StoreRecord::Turned { .. },
            )
            | Group::Script(_)
            | Group::Run(_) => {}
        }
    }

    /// Whether what happens now belongs to the request that has just arrived.
    fn is_at_request(&self, at: Duration) -> bool {
        let pending = self.pending.map(|stream| self.exchanges.of(stream));
        pending.is_some_and(|exchange| exchange.at == at) && self.steps.is_at_request()
    }

    /// Whether a version is newer than the list that is being sent.
    fn is_after_page(&self, version: &str) -> bool {
        let pending = self.pending.map(|stream| self.exchanges.of(stream));
        let page = pending
            .and_then(|exchange| exchange.page.as_ref())
            .filter(|page| !page.scripted);
        page.is_some_and(|page| number(version) > number(page.version))
    }

    // ---- the store

    fn is_in_scope(&self, write: &StoreWrite) -> bool {
        let namespace = self.chosen.collection.namespace.as_str();
        let is_here = namespace.is_empty() || parts(&write.object.key).0 == Some(namespace);
        write.resource == self.chosen.collection.plural && is_here
    }

    fn object(&self, of: &ObjectRef) -> Object {
        Object {
            version: of.resource_version.clone(),
            uid: of.uid.clone(),
            content: self.contents.object(&of.key, &of.resource_version).cloned(),
        }
    }

    fn change(&self, write: &StoreWrite) -> Change {
        match write.op {
            WriteOp::Create | WriteOp::Update => {
                Change::Write(write.object.key.clone(), self.object(&write.object))
            }
            WriteOp::Delete => {
                Change::Delete(write.object.key.clone(), write.object.resource_version.clone())
            }
        }
    }

    fn on_write(&mut self, seq: u64, write: &StoreWrite, at: Duration) {
        self.store.saw(&write.object.resource_version);
        if self.kind.is_custom && self.is_definition(write) {
            return self.on_definition(write, at);
        }
        // Behind a proxy watches show every write.
        if !self.is_in_scope(write) || self.origin == Origin::Upstream {
            return;
        }
        let change = self.change(write);
        if write.by.is_some_and(|by| self.chosen.of_client.contains(&by)) {
            self.own_writes += 1;
            self.store.change(change);
            return;
        }
        let at_request = self.is_at_request(at) && !self.is_after_page(&write.object.resource_version);
        self.end_first(seq, &write.object, at);
        self.prepare(&write.object, at, at_request);
        self.make(change, at, at_request);
    }

    fn is_definition(&self, write: &StoreWrite) -> bool {
        let collection = &self.chosen.collection;
        let name = format!("{}.{}", collection.plural, collection.group);
        write.resource == "customresourcedefinitions" && write.object.key == name
    }

    /// The definition of the collection comes or goes.
    fn on_definition(&mut self, write: &StoreWrite, at: Duration) {
        let at_request = self.is_at_request(at);
        match write.op {
            WriteOp::Create => {
                let definition = self.kind.definition(&self.chosen.collection);
                self.steps.apply(definition, "", at, at_request);
            }
            WriteOp::Delete => {
                let name = Name {
                    name: key(write.object.key.as_str()),
                    resource: key("customresourcedefinitions.apiextensions.k8s.io"),
                    namespace: None,
                };
                let delete = ActionKey::Delete(OneOrMany(vec![First(name)]).into());
                self.steps.act(delete, at, false, at_request);
            }
            WriteOp::Update => {}
        }
    }

    /// Ends the newest watch before a write, if it ended at that time and did not send the event of the write.
    fn end_first(&mut self, seq: u64, object: &ObjectRef, at: Duration) {
        let newest = self.open.last().copied();
        let Some(stream) = newest.filter(|stream| self.exchanges.newest_watch() == Some(*stream)) else {
            return;
        };
        let exchange = self.exchanges.of(stream);
        if let Some((ended, how, Side::Server)) = exchange.end
            && ended == at
            && !exchange.sends_after(seq, object)
        {
            self.on_end(stream, how, at);
            self.over.insert(stream);
        }
    }

    /// Sets the rules that the event of a write meets on the newest watch.
    fn prepare(&mut self, object: &ObjectRef, at: Duration, at_request: bool) {
        let on = self.pending.or(self.open.last().copied());
        let Some(stream) = on.filter(|stream| self.exchanges.of(*stream).kind == RequestKind::Watch) else {
            return;
        };
        let rules = self.exchanges.of(stream).rules_for(object);
        for action in rules.actions {
            self.steps.act(action, at, false, at_request);
        }
        self.caused.extend(rules.causes);
    }

    /// Makes a change in the scenario, unless it is known.
    fn make(&mut self, change: Change, at: Duration, at_request: bool) {
        if !self.store.change(change.clone()) {
            return;
        }
        self.written = self.store.newest;
        match change {
            Change::Write(key, object) => {
                let manifest = self.kind.manifest(&key, &object.version, object.content.as_ref());
                self.steps.apply(manifest, &object.version, at, at_request);
            }
            Change::Delete(key, version) => {
                self.steps.delete(self.kind.name(&key), &version, at, at_request);
            }
        }
    }

    fn on_restore(&mut self, to: u64, at: Duration) {
        let at_request = self.is_at_request(at);
        self.store.restore(to);
        let version = self.written_version(&to.to_string());
        if version.starts_with('$') {
            let restore = ActionKey::Restore(Text(version).into());
            self.steps.act(restore, at, true, at_request);
        } else {
            self.unknown.insert(format!(
                "the write of version {to}, to which the store was restored"
            ));
        }
    }

    fn on_turn(&mut self, turn: &Turn, at: Duration) {
        let Some(operation) = operations::of(turn) else {
            return;
        };
        if self.origin == Origin::Upstream && !matches!(turn, Turn::Refused { .. }) {
            self.unknown.insert(format!(
                "stale watch caches of the proxy ({turn}): events are sent when the client got them"
            ));
            return;
        }
        let at_request = self.is_at_request(at);
        if operation.ends_watches {
            self.ended_at = Some(at);
        }
        if operation.expires {
            self.move_on(at, at_request);
        }
        self.is_expired |= operation.expires;
        self.is_stale |= operation.stales;
        self.steps
            .act(operation.action, at, !operation.expires, at_request);
    }

    fn on_goaway(&mut self, conn: ConnId, at: Duration) {
        let newest = self.pending.or(self.open.last().copied());
        if newest.is_some_and(|stream| self.exchanges.of(stream).conn == conn) {
            let at_request = self.is_at_request(at);
            self.steps
                .act(ActionKey::Goaway(().into()), at, false, at_request);
        }
    }

    /// Returns how a version is written: by a name, if a write of the scenario has it.
    fn written_version(&mut self, version: &str) -> String {
        if version.is_empty() {
            return "absent".to_owned();
        }
        match self.steps.version(version) {
            Some(name) => name,
            None if self.start == Some(version) => "$start".to_owned(),
            None => version.to_owned(),
        }
    }

    /// Returns a version as the value of a key.
    fn condition(&mut self, version: &str) -> At<First<Condition>> {
        condition(&self.written_version(version))
    }
}

fn condition(text: &str) -> At<First<Condition>> {
    let condition = Condition {
        bare: key(text),
        ..Condition::default()
    };
    First(condition).into()
}

/// Returns the object that a record shows of a resource: key and version.
fn shown<'r>(what: &'r What, plural: &str) -> Option<(&'r str, &'r str)> {
    let of = |object: &'r ObjectRef| (object.key.as_str(), object.resource_version.as_str());
    if let What::Wrote(write) = what {
        return (write.resource == plural).then(|| of(&write.object));
    }
    if let What::Page { items, .. } = what {
        return items.first().map(of);
    }
    if let What::Withheld { object, .. } = what {
        return Some(of(object));
    }
    if let What::Frame { frame, .. } = what {
        return frame
            .object
            .as_deref()
            .filter(|object| !object.key.is_empty())
            .map(of);
    }
    None
}

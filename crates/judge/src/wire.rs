//! Judges clients from the wire alone, while they run: any client, in any language, without an adapter.
//!
//! # Attribution of requests
//!
//! A request has a User-Agent and a collection, but does not identify the list/watch loop that sent it: replicas,
//! informers of one process, pooled connections and short-lived watchers share both. An *explanation* assigns
//! requests to loops. A violation is reported only if every explanation breaks the invariant:
//!
//! 1. One loop sent all requests of this name and collection: `wire/window.rs`, with the invariants of the suite.
//! 2. Several loops did, each of which started with its own list: `wire/ledger.rs`, and for continue tokens
//!    `wire/chains.rs`, for failing requests `wire/rate.rs`.
//! 3. The version is from another source: the client's own write, an object read by name (`wire/clients.rs`), a wider
//!    collection.
//! 4. A loop sent its requests under several names, as clients do that list by one library and watch by another, or
//!    whose requests lack the header: a name is no identity. If the harness started the only client, all names are one.
//! 5. The evidence for it was forgotten, because memory is bounded.
//!
//! Explanations 2 to 5 are tried first, at constant cost per request. Only a request that none of them explains is
//! checked against all records kept (1), which also produces the text of the violation. Two watches from one list
//! count as two watches of one loop: each loop has its own list.
//!
//! An explanation may be considered possible too often, but never too rarely. Violations by a single request
//! (INV-15), or because no more requests may come (INV-18), need no explanation.
//!
//! Records are processed one by one, in order ([`WireJudge::take`]). Violations are returned immediately, or after
//! the time that a client has to close an abandoned watch. Only the invariants in [`ON_THE_WIRE`] can be decided this
//! way.

mod asked;
mod chains;
mod clients;
mod dead;
mod fit;
mod ledger;
mod open;
mod position;
mod rate;
mod verdict;
mod window;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use ::trace::record::line::line;
use ::trace::record::{
    ConnId, ConnectionRecord, ExchangeRecord, Group, Record, RunRecord, Side, StoreRecord, StreamId, Verb,
    What,
};
use apimachinery::continue_token::ContinueToken;
use apimachinery::path::decoded_path;
use asked::{Asked, Suspicion};
use chains::List;
pub use clients::Loops;
use clients::{Clients, OTHERS};
pub use fit::{
    Needs, SETTINGS, configured, grants, is_set, is_shown_by_requests, needed_settings, needs, needs_model,
    takes,
};
use ledger::{CLOSING, Ledger};
use position::Position;
use scenario::matching::Read;
use scenario::{ClientMode, Named, Scenario, ServerSettings};
pub use verdict::{ClientVerdict, Violation, WireVerdict};
use window::{RECORD_BYTES, Subject, Window};

use crate::invariants::ON_THE_WIRE;
use crate::trace::Moment;

/// Maximum memory for the records of all loops, in bytes.
pub const BYTES_MAX: usize = 64 * 1024 * 1024;

/// Maximum number of records of all loops; beyond it the loops that were silent longest are dropped. Each loop has an
/// equal share …
const RECORDS_MAX: usize = BYTES_MAX / RECORD_BYTES;
/// … within these limits.
const SHARE_MIN: usize = 40;
const SHARE_MAX: usize = 2_000;

/// Maximum number of loops; beyond it the loops that were silent longest are dropped.
const LOOPS_MAX: usize = 10_000;

/// Maximum number of violations listed in a verdict; further ones are only counted.
const LISTED_MAX: usize = 200;

/// Judges every client of one server.
#[derive(Debug)]
pub struct WireJudge {
    loops_of_a_name: Loops,
    /// The User-Agent of the first request, which all requests count as if the harness started the only client.
    first_agent: Option<Option<String>>,
    clients: Clients,
    readers: BTreeMap<u64, Reader>,
    by_reader: BTreeMap<(Arc<str>, Arc<Subject>), u64>,
    by_stream: BTreeMap<StreamId, u64>,
    /// Open connections, and the readers on them.
    by_conn: BTreeSet<(ConnId, u64)>,
    /// Readers to check at a time even without new records.
    due: BTreeSet<(Duration, u64)>,
    /// Memory of all readers, in records.
    held: usize,
    assumed: Assumed,
    /// The newest version written.
    revision: Option<position::Version>,
    /// Versions that earlier processes of a restarted client received, or any of the server that this one began as: it may have
    /// stored one of them.
    stored: Option<Position>,
    /// Revision of the server that this one began as; `None`: it began by itself.
    began_at: Option<u64>,
    excused: Vec<String>,
    made: u64,
    stopped: bool,
    now: Moment,
    /// Violations found by the current call.
    news: Vec<Violation>,
    listed: Vec<Violation>,
    counts: BTreeMap<(Arc<str>, String), u64>,
}

/// The loops of one name that read one collection.
#[derive(Debug)]
struct Reader {
    agent: Arc<str>,
    subject: Arc<Subject>,
    ledger: Ledger,
    window: Window,
    /// Memory of both, in records, when last counted.
    held: usize,
    due: Option<Duration>,
}

/// Default scenarios for clients without configuration, shared by all loops.
#[derive(Debug)]
struct Assumed {
    of_collections: Arc<Scenario>,
    /// A watch of one object may start from the version returned by a GET.
    of_objects: Arc<Scenario>,
}

impl WireJudge {
    /// Creates a judge for all clients. `loops_of_a_name`: how many loops of one collection may share a User-Agent.
    pub fn new(loops_of_a_name: Loops) -> Self {
        Self {
            loops_of_a_name,
            first_agent: None,
            clients: Clients::default(),
            readers: BTreeMap::new(),
            by_reader: BTreeMap::new(),
            by_stream: BTreeMap::new(),
            by_conn: BTreeSet::new(),
            due: BTreeSet::new(),
            held: 0,
            assumed: Assumed::new(),
            revision: None,
            stored: None,
            began_at: None,
            excused: Vec::new(),
            made: 0,
            stopped: false,
            now: Moment {
                seq: 0,
                at: Duration::ZERO,
            },
            news: Vec::new(),
            listed: Vec::new(),
            counts: BTreeMap::new(),
        }
    }

    /// The server is an upstream, which others write to as well: an object that a client reads by name has a version that no
    /// record of a write has.
    #[must_use]
    pub fn behind_upstream(mut self) -> Self {
        self.clients.others_write();
        self
    }

    /// The server began with the state of another one at this revision: clients may resume from versions that they got there,
    /// and continue lists.
    #[must_use]
    pub fn resuming_from(mut self, revision: u64) -> Self {
        let newest = position::Version::of(&revision.to_string());
        self.stored = Some(Position::up_to(Some(newest)));
        self.revision = Some(newest);
        self.began_at = Some(revision);
        self
    }

    /// Excludes invariants that the scenario excuses.
    #[must_use]
    pub fn excusing(mut self, excused: Vec<String>) -> Self {
        self.excused = excused;
        self
    }

    /// Processes the next record; returns the violations it proves.
    pub fn take(&mut self, record: &Record) -> Vec<Violation> {
        self.now = Moment::of(record);
        self.look_again();
        match record.what.group() {
            Group::Exchange(of) => self.exchange(record, of),
            Group::Store(StoreRecord::Wrote(write)) => {
                self.revision = Some(position::Version::of(&write.object.resource_version));
                self.clients.write(write);
            }
            Group::Store(StoreRecord::Restored { to }) => {
                self.revision = Some(position::Version::of(&to.to_string()))
            }
            Group::Connection(ConnectionRecord::Disconnected { conn, by }) => {
                self.disconnected(*conn, *by, record)
            }
            Group::Run(RunRecord::ClientRestarted { .. }) => self.restart(),
            Group::Run(RunRecord::StopRequested) => self.stop(record),
            Group::Connection(ConnectionRecord::Connected { conn, peer, .. }) => {
                self.clients.connect(*conn, *peer)
            }
            Group::Connection(ConnectionRecord::Goaway { .. } | ConnectionRecord::Refused)
            | Group::Store(StoreRecord::Turned { .. })
            | Group::Script(_)
            | Group::Run(
                RunRecord::Reported(_)
                | RunRecord::ClientExited { .. }
                | RunRecord::LeftOpen { .. }
                | RunRecord::RunEnded(_),
            ) => {}
        }
        std::mem::take(&mut self.news)
    }

    fn exchange(&mut self, record: &Record, of: ExchangeRecord<'_>) {
        match of {
            ExchangeRecord::Request {
                stream,
                conn,
                verb,
                method,
                path,
                query,
                user_agent,
                violations,
                ..
            } => {
                let name = self.name_of(user_agent.as_deref());
                let agent = self.clients.ask(name.as_deref(), *conn, clients::is_read(*verb));
                let decoded = decoded_path(path);
                let named = Named::by(&decoded);
                if *verb == Verb::Other {
                    self.clients.touch(&agent, *stream, method, &named);
                } else {
                    let asked = Asked {
                        stream: *stream,
                        conn: *conn,
                        at: self.now,
                        verb: *verb,
                        path,
                        query,
                        revision: self.revision,
                    };
                    self.read(&agent, Subject::of(&named, query), asked, record, violations);
                }
            }
            ExchangeRecord::End { stream, how, by } => {
                self.clients.end(*stream);
                let now = self.now.at;
                self.answer(*stream, record, |ledger| ledger.end(*stream, *how, *by, now));
                self.by_stream.remove(stream);
            }
            ExchangeRecord::Head {
                stream,
                status,
                retry_after,
                ..
            } => {
                let now = self.now.at;
                self.answer(*stream, record, |ledger| {
                    ledger.head(*stream, *status, retry_after.as_deref(), now);
                });
            }
            ExchangeRecord::Page {
                stream,
                resource_version,
                continue_token,
                scripted,
                ..
            } => self.answer(*stream, record, |ledger| {
                ledger.page(*stream, resource_version, continue_token, *scripted);
            }),
            ExchangeRecord::Body {
                stream,
                continue_token,
                ..
            } => self.answer(*stream, record, |ledger| {
                ledger.body(*stream, continue_token.as_deref(), true);
            }),
            ExchangeRecord::Torn { stream, sent, bytes } => self.answer(*stream, record, |ledger| {
                ledger.body(*stream, None, sent >= bytes);
            }),
            ExchangeRecord::Frame { stream, frame } => {
                let now = self.now.at;
                self.answer(*stream, record, |ledger| ledger.frame(*stream, frame, now));
            }
            ExchangeRecord::Withheld { stream, .. } => self.answer(*stream, record, |_| {}),
            ExchangeRecord::Sent { .. } | ExchangeRecord::Webhook { .. } => {}
        }
    }

    /// Advances the time without a record; returns the violations that this proves.
    pub fn pass_time(&mut self, at: Duration) -> Vec<Violation> {
        self.now.at = self.now.at.max(at);
        self.look_again();
        std::mem::take(&mut self.news)
    }

    /// Returns the approximate memory use in bytes: up to [`BYTES_MAX`] for records, and a few MiB for names.
    pub fn bytes(&self) -> usize {
        self.held * RECORD_BYTES + self.readers.len() * size_of::<Reader>() + self.clients.bytes()
    }

    /// Returns the verdict so far.
    pub fn verdict(&self) -> WireVerdict {
        let mut loops = BTreeMap::<&str, usize>::new();
        for there in self.readers.values() {
            let most = loops.entry(&there.agent).or_default();
            *most = there.ledger.loops().max(*most);
        }
        let clients: Vec<ClientVerdict> = self
            .clients
            .tally()
            .map(|(agent, tally)| ClientVerdict {
                client: agent.to_string(),
                loops: tally.loops.max(loops.get(&**agent).copied().unwrap_or(0) as u64),
                connections: tally.connections,
                requests: tally.requests,
                reads: tally.reads,
                violations: self
                    .counts
                    .iter()
                    .filter(|((client, _), _)| client == agent)
                    .map(|((_, check), count)| (check.clone(), *count))
                    .collect(),
                contradictions: self
                    .listed
                    .iter()
                    .filter(|listed| *listed.client == **agent)
                    .cloned()
                    .collect(),
            })
            .collect();
        let outcome = match (
            self.counts.is_empty(),
            clients.iter().any(|client| client.reads > 0),
        ) {
            (false, _) => "mismatch",
            (true, true) => "pass",
            (true, false) => "nothing",
        };
        let judged = ON_THE_WIRE
            .into_iter()
            .filter(|id| !self.excused.iter().any(|excused| excused == id))
            .collect();
        WireVerdict {
            outcome,
            clients,
            judged,
            not_judged: "what a client made of it: the other invariants need reports, which only an adapter gives",
        }
    }

    fn read(
        &mut self,
        agent: &Arc<str>,
        subject: Subject,
        asked: Asked<'_>,
        record: &Record,
        violations: &[String],
    ) {
        let id = self.loops_of(agent, subject);
        self.by_stream.insert(asked.stream, id);
        self.by_conn.insert((asked.conn, id));
        self.keep(id, record);
        // Taken out, because what other readers know is looked for below: it must not explain its request by itself.
        let Some(mut there) = self.readers.remove(&id) else {
            return;
        };
        let read = Read {
            verb: asked.verb,
            query: asked.query,
        };
        if let Some(revision) = asked.revision.and_then(position::Version::number)
            && read.is_start_without_list()
        {
            there.window.begin(record.seq, revision);
        }
        let stored = self.stored.as_ref().filter(|_| !there.ledger.has_snapshot());
        let began_at = self.began_at.and_then(|revision| i64::try_from(revision).ok());
        let begun = List::of(asked.path, asked.query);
        there.ledger.ask(
            asked,
            |version| {
                stored.is_some_and(|stored| stored.allows(version))
                    || self.clients.knows(agent, there.subject.plural(), version)
                    || self.is_known_wider(agent, &there.subject, version)
                    || self.is_known_by_another_name(&there.subject, version)
            },
            |token| {
                let mut namesakes = self
                    .readers
                    .values()
                    .filter(|other| other.subject == there.subject);
                let sent = namesakes.find_map(|other| other.ledger.list_of(token));
                sent.or_else(|| {
                    let token = ContinueToken::decode(token).ok()?;
                    began_at.is_some_and(|at| token.revision <= at).then_some(begun)
                })
            },
        );
        self.readers.insert(id, there);
        let mut certain = Vec::new();
        if !violations.is_empty() {
            certain.push(Suspicion::ILLEGAL_OPTIONS);
        }
        if self.stopped {
            certain.push(Suspicion::AFTER_THE_STOP);
            self.wake(id, self.now.at + CLOSING);
        }
        self.look(id, &certain);
    }

    /// Returns true if the client received this version from a collection that contains this one.
    fn is_known_wider(&self, agent: &Arc<str>, subject: &Subject, version: position::Version) -> bool {
        subject.wider().any(|wider| {
            let id = self.by_reader.get(&(Arc::clone(agent), Arc::new(wider)));
            id.and_then(|id| self.readers.get(id))
                .is_some_and(|there| there.ledger.knows(version))
        })
    }

    /// Returns the name that a request counts as.
    fn name_of(&mut self, user_agent: Option<&str>) -> Option<String> {
        match self.loops_of_a_name {
            Loops::Many => user_agent.map(str::to_owned),
            Loops::One => {
                let first = self
                    .first_agent
                    .get_or_insert_with(|| user_agent.map(str::to_owned));
                first.clone()
            }
        }
    }

    /// Returns true if a loop of another name may be at this version of the collection, or of one that contains it.
    fn is_known_by_another_name(&self, subject: &Subject, version: position::Version) -> bool {
        let wider: Vec<Subject> = subject.wider().collect();
        let mut there = self
            .readers
            .values()
            .filter(|there| *there.subject == *subject || wider.contains(&there.subject));
        there.any(|there| there.ledger.has_sent(version))
    }

    fn loops_of(&mut self, agent: &Arc<str>, subject: Subject) -> u64 {
        let reader = (Arc::clone(agent), Arc::new(subject));
        if let Some(id) = self.by_reader.get(&reader) {
            return *id;
        }
        self.made += 1;
        let forgotten = self.clients.forgotten(agent).cloned();
        let there = Reader {
            agent: Arc::clone(agent),
            subject: Arc::clone(&reader.1),
            window: Window::new(self.assumed.of(&reader.1), forgotten.is_some()),
            ledger: Ledger::new(self.loops_of_a_name == Loops::One, forgotten),
            held: 0,
            due: None,
        };
        self.by_reader.insert(reader, self.made);
        self.readers.insert(self.made, there);
        self.made
    }

    fn answer(&mut self, stream: StreamId, record: &Record, note: impl FnOnce(&mut Ledger)) {
        let Some(id) = self.by_stream.get(&stream).copied() else {
            return;
        };
        self.keep(id, record);
        if let Some(there) = self.readers.get_mut(&id) {
            note(&mut there.ledger);
        }
        self.look(id, &[]);
    }

    fn disconnected(&mut self, conn: ConnId, by: Side, record: &Record) {
        self.clients.disconnect(conn);
        let concerned = self.by_conn.range((conn, 0)..=(conn, u64::MAX));
        for (conn, id) in concerned.copied().collect::<Vec<_>>() {
            self.by_conn.remove(&(conn, id));
            self.keep(id, record);
            if let Some(there) = self.readers.get_mut(&id) {
                there.ledger.disconnect(conn, by, self.now.at);
            }
            self.look(id, &[]);
        }
    }

    /// Drops all loops: the new process has none yet, and nothing that it requests follows from what the last one did.
    fn restart(&mut self) {
        let mut newest = self.stored.take().and_then(|stored| stored.latest());
        let mut has_read = newest.is_some();
        for there in std::mem::take(&mut self.readers).into_values() {
            self.clients.see(&there.agent, there.ledger.loops());
            newest = newest.max(there.ledger.everywhere().latest());
            has_read = true;
        }
        self.stored = has_read.then(|| Position::up_to(newest));
        self.by_reader.clear();
        self.by_stream.clear();
        self.by_conn.clear();
        self.due.clear();
        self.held = 0;
    }

    fn stop(&mut self, record: &Record) {
        self.stopped = true;
        for id in self.readers.keys().copied().collect::<Vec<_>>() {
            self.keep(id, record);
            if let Some(there) = self.readers.get_mut(&id) {
                there.ledger.stop();
            }
            self.look(id, &[]);
            self.wake(id, self.now.at + CLOSING);
        }
    }

    fn keep(&mut self, id: u64, record: &Record) {
        let share = (RECORDS_MAX / self.readers.len().max(1)).clamp(SHARE_MIN, SHARE_MAX);
        let Some(there) = self.readers.get_mut(&id) else {
            return;
        };
        there.window.keep(record);
        there.window.trim(share);
        self.weigh(id);
        if self.held > RECORDS_MAX || self.readers.len() > LOOPS_MAX {
            self.forget_loops();
        }
    }

    /// Recounts the memory of a reader.
    fn weigh(&mut self, id: u64) {
        if let Some(there) = self.readers.get_mut(&id) {
            let held = there.window.held() + there.ledger.held();
            self.held = self.held + held - std::mem::replace(&mut there.held, held);
        }
    }

    /// Schedules a check of a reader at a time, even without new records.
    fn wake(&mut self, id: u64, at: Duration) {
        let Some(there) = self.readers.get_mut(&id) else {
            return;
        };
        if there.due.is_none_or(|due| at < due) {
            if let Some(due) = there.due.replace(at) {
                self.due.remove(&(due, id));
            }
            self.due.insert((at, id));
        }
    }

    /// Checks the readers that are due.
    fn look_again(&mut self) {
        while let Some((at, id)) = self.due.first().copied()
            && at <= self.now.at
        {
            self.due.pop_first();
            let Some(there) = self.readers.get_mut(&id) else {
                continue;
            };
            there.due = None;
            there.ledger.pass_time(self.now.at);
            let certain = self.stopped.then_some(Suspicion::AFTER_THE_STOP);
            self.look(id, certain.as_slice());
        }
    }

    /// Checks unexplained requests against all records kept. `certain`: suspicions that need no explanation.
    fn look(&mut self, id: u64, certain: &[Suspicion]) {
        let Some(there) = self.readers.get_mut(&id) else {
            return;
        };
        let mut suspicions = there.ledger.news();
        if *there.agent == *OTHERS {
            // The user agents counted as `OTHERS` are several clients.
            suspicions.clear();
        }
        suspicions.extend_from_slice(certain);
        let due = there.ledger.due(self.now.at);
        if !suspicions.is_empty() {
            let found = there.window.look(&suspicions, self.now);
            let (agent, reading) = (Arc::clone(&there.agent), there.subject.to_string());
            let listed: Vec<Violation> = found
                .into_iter()
                .filter(|found| !self.excused.iter().any(|check| found.check.is(check)))
                .map(|found| {
                    let proof = there.window.record(&found);
                    Violation {
                        client: agent.to_string(),
                        port: proof
                            .and_then(conn_of)
                            .and_then(|conn| self.clients.port(&agent, conn)),
                        reading: reading.clone(),
                        proof: proof.map(line).unwrap_or_default(),
                        at_ms: self.now.at.as_millis() as u64,
                        found,
                    }
                })
                .collect();
            for violation in listed {
                let count = (Arc::clone(&agent), violation.found.check.to_string());
                *self.counts.entry(count).or_default() += 1;
                if self.listed.len() < LISTED_MAX {
                    self.listed.push(violation.clone());
                }
                self.news.push(violation);
            }
        }
        if let Some(due) = due {
            self.wake(id, due);
        }
        self.weigh(id);
    }

    /// Drops at least a quarter of the loops, because it has to scan all of them: those that were silent longest, and
    /// those with an open response only if no others are left.
    fn forget_loops(&mut self) {
        let mut by_silence: Vec<(bool, u64, u64)> = self
            .readers
            .iter()
            .map(|(id, there)| (there.ledger.is_busy(), there.window.last(), *id))
            .collect();
        by_silence.sort_unstable();
        for (.., id) in by_silence {
            if self.held <= RECORDS_MAX / 4 * 3 && self.readers.len() <= LOOPS_MAX / 4 * 3 {
                break;
            }
            self.forget(id);
        }
    }

    fn forget(&mut self, id: u64) {
        let Some(there) = self.readers.remove(&id) else {
            return;
        };
        self.held -= there.held;
        self.clients.see(&there.agent, there.ledger.loops());
        // The continuation of a loop with an open response is no longer tracked.
        let place = if there.ledger.is_busy() {
            Position::Anywhere
        } else {
            there.ledger.everywhere()
        };
        self.clients.forget(&there.agent, &place);
        self.by_reader.remove(&(there.agent, there.subject));
    }
}

impl Assumed {
    fn new() -> Self {
        let collection = Scenario::empty(ServerSettings::default());
        let mut object = collection.clone();
        object.client.mode = ClientMode::Object;
        Self {
            of_collections: Arc::new(collection),
            of_objects: Arc::new(object),
        }
    }

    fn of(&self, subject: &Subject) -> Arc<Scenario> {
        Arc::clone(if subject.names_an_object() {
            &self.of_objects
        } else {
            &self.of_collections
        })
    }
}

/// Returns the connection of a request.
fn conn_of(record: &Record) -> Option<ConnId> {
    if let What::Request { conn, .. } = &record.what {
        Some(*conn)
    } else {
        None
    }
}

#[cfg(test)]
mod tests;

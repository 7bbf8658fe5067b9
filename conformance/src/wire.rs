//! Judges clients by the wire alone, while they work: any client, in any language, without an adapter.
//!
//! Records are taken one by one, in order ([`WireJudge::take`]); what they prove is told at once. Only the invariants in
//! [`ON_THE_WIRE`] can be decided so. Memory is bounded however long a server runs: of each list/watch loop a window of
//! its newest records is kept, and where something was forgotten, an invariant that needs it gives way.
//!
//! Who is who: see `wire/clients.rs`. What a loop remembers: see `wire/window.rs`.

mod clients;
mod fit;
mod window;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use fake_apiserver::record::line::line;
use fake_apiserver::record::{ConnId, Record, Side, StreamId, Verb, What};
use fake_apiserver::scenario::{ClientMode, Named, Scenario, ServerSettings};
use serde::Serialize;

use crate::invariants::ON_THE_WIRE;
use crate::trace::Moment;
use crate::verdict::Contradiction;

pub use clients::Apart;
use clients::Clients;
pub use fit::{Needs, grants, needs, takes};
use window::{Subject, Window};

/// After a request, what it left open has so long to be closed (CLOSE-01); a little later it can be judged.
const CLOSING: Duration = Duration::from_millis(2_050);

/// Records of all loops together; of more, the loops that were silent for longest are forgotten. Each has an equal share …
const RECORDS_MAX: usize = 200_000;
/// … between these bounds.
const SHARE_MIN: usize = 40;
const SHARE_MAX: usize = 2_000;

/// Loops remembered; of more, the same.
const LOOPS_MAX: usize = 10_000;

/// Violations told in full in a verdict; more are only counted.
const TOLD_MAX: usize = 200;

/// Judges every client that speaks to one server.
#[derive(Debug)]
pub struct WireJudge {
    clients: Clients,
    windows: BTreeMap<u64, Window>,
    /// The loops of each client, by what they read: thousands may read the same.
    by_subject: BTreeMap<Arc<Subject>, BTreeMap<u64, u64>>,
    by_stream: BTreeMap<StreamId, u64>,
    /// Open connections, and the loops that used them.
    by_conn: BTreeSet<(ConnId, u64)>,
    /// When a loop has to be looked at though nothing happens.
    due: BTreeSet<(Duration, u64)>,
    /// Records that all loops take the memory of, and how many those may be that cannot be forgotten.
    held: usize,
    held_max: usize,
    readers: Readers,
    excused: Vec<String>,
    made: u64,
    now: Moment,
    /// Found in this turn.
    news: Vec<Violation>,
    told: Vec<Violation>,
    counts: BTreeMap<(String, String), u64>,
}

/// What is assumed of those nobody knows anything of, once for all loops.
#[derive(Debug)]
struct Readers {
    of_collections: Arc<Scenario>,
    /// Whoever watches one object may know its version from reading it.
    of_objects: Arc<Scenario>,
}

/// A client broke an invariant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Violation {
    /// Who.
    pub client: String,
    /// In reading what: `pods in default`.
    pub reading: String,
    /// What it contradicts.
    #[serde(flatten)]
    pub found: Contradiction,
    /// The request that proves it, as the trace tells it.
    pub proof: String,
    /// When it was found, in milliseconds since the server started.
    pub at_ms: u64,
}

/// What the wire says about every client so far.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WireVerdict {
    /// `pass`, `mismatch`, or `nothing` where no client listed or watched.
    pub outcome: &'static str,
    /// Who was there.
    pub clients: Vec<ClientVerdict>,
    /// The invariants that were decided.
    pub judged: Vec<&'static str>,
    /// What was not, and why.
    pub not_judged: &'static str,
}

/// What the wire says about one user agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClientVerdict {
    /// Its User-Agent.
    pub client: String,
    /// How many of it there were, as far as connections tell them apart.
    pub instances: u64,
    /// Connections it used for lists and watches.
    pub connections: u64,
    /// All requests it sent.
    pub requests: u64,
    /// Lists and watches among them.
    pub reads: u64,
    /// How often it broke which invariant.
    pub violations: BTreeMap<String, u64>,
    /// How, the first of them in full.
    pub contradictions: Vec<Violation>,
}

impl WireJudge {
    /// A judge of whoever comes.
    pub fn new(apart: Apart) -> Self {
        Self {
            clients: Clients::new(apart),
            windows: BTreeMap::new(),
            by_subject: BTreeMap::new(),
            by_stream: BTreeMap::new(),
            by_conn: BTreeSet::new(),
            due: BTreeSet::new(),
            held: 0,
            held_max: RECORDS_MAX,
            readers: Readers::new(),
            excused: Vec::new(),
            made: 0,
            now: Moment {
                seq: 0,
                at: Duration::ZERO,
            },
            news: Vec::new(),
            told: Vec::new(),
            counts: BTreeMap::new(),
        }
    }

    /// Does not judge these invariants: the scenario says they do not hold in it.
    #[must_use]
    pub fn excusing(mut self, excused: Vec<String>) -> Self {
        self.excused = excused;
        self
    }

    /// Takes the next record. Gives what it proves.
    pub fn take(&mut self, record: &Record) -> Vec<Violation> {
        self.now = Moment::of(record);
        self.look_again();
        match &record.what {
            What::Request {
                stream,
                conn,
                verb,
                path,
                query,
                user_agent,
                ..
            } => {
                let agent = user_agent.as_deref().unwrap_or("(no User-Agent)");
                self.clients.on_request(agent, *verb != Verb::Other);
                if *verb != Verb::Other {
                    let subject = Subject::of(&Named::by(path), query);
                    let window = self.window_of(agent, *conn, subject, query);
                    self.by_stream.insert(*stream, window);
                    self.keep(window, record);
                    self.wait(window);
                    if self.windows.get(&window).is_some_and(Window::is_worth_a_look) {
                        self.look(window, window::ON_REQUEST);
                    }
                }
            }
            What::Head { stream, .. } => {
                if let Some(window) = self.keep_of(*stream, record)
                    && self.windows.get(&window).is_some_and(Window::is_worth_a_look)
                {
                    self.look(window, window::ON_HEAD);
                }
            }
            What::Page { stream, .. }
            | What::Body { stream, .. }
            | What::Torn { stream, .. }
            | What::Frame { stream, .. }
            | What::Withheld { stream, .. } => {
                self.keep_of(*stream, record);
            }
            What::End { stream, .. } => {
                self.keep_of(*stream, record);
                self.by_stream.remove(stream);
            }
            What::Disconnected { conn, by } => self.disconnected(*conn, *by, record),
            What::StopRequested => {
                for window in self.windows.keys().copied().collect::<Vec<_>>() {
                    self.keep(window, record);
                    self.wait(window);
                }
            }
            What::Connected { .. }
            | What::Goaway { .. }
            | What::Refused
            | What::Wrote(_)
            | What::Restored { .. }
            | What::Turned { .. }
            | What::Step { .. }
            | What::Rule { .. }
            | What::Bound { .. }
            | What::ScriptDone
            | What::Reported(_)
            | What::LeftOpen { .. }
            | What::RunEnded(_) => {}
        }
        std::mem::take(&mut self.news)
    }

    /// Time passed, and nothing else happened. Gives what that proves.
    pub fn pass_time(&mut self, at: Duration) -> Vec<Violation> {
        self.now.at = self.now.at.max(at);
        self.look_again();
        std::mem::take(&mut self.news)
    }

    /// What came out so far.
    pub fn verdict(&self) -> WireVerdict {
        let clients: Vec<ClientVerdict> = self
            .clients
            .tally()
            .map(|(agent, tally)| ClientVerdict {
                client: agent.to_owned(),
                instances: tally.instances,
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
                    .told
                    .iter()
                    .filter(|told| clients::agent_of(&told.client) == agent)
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

    /// The loop a read belongs to.
    fn window_of(&mut self, agent: &str, conn: ConnId, subject: Subject, query: &[(String, String)]) -> u64 {
        let readers = self.by_subject.get_key_value(&subject);
        let (windows, same_subject) = (&self.windows, readers.map(|(_, clients)| clients));
        let subject = readers.map_or_else(|| Arc::new(subject), |(known, _)| Arc::clone(known));
        let given = window::asks_back(query);
        let client = self.clients.of_read(agent, conn, &|client| {
            let known = same_subject.and_then(|clients| windows.get(clients.get(&client)?));
            clients::Fit {
                was_given: given.is_some_and(|given| known.is_some_and(|window| window.gave(given))),
                is_busy: known.is_some_and(Window::is_busy),
            }
        });
        if let Some(window) = same_subject.and_then(|clients| clients.get(&client)) {
            let window = *window;
            self.by_conn.insert((conn, window));
            return window;
        }
        self.made += 1;
        let window = self.made;
        self.by_conn.insert((conn, window));
        let reader = self.readers.of(&subject);
        self.by_subject
            .entry(Arc::clone(&subject))
            .or_default()
            .insert(client, window);
        let blind = self.clients.is_partly_forgotten(agent) && given.is_some();
        self.windows
            .insert(window, Window::new(client, subject, reader, blind));
        window
    }

    fn keep(&mut self, id: u64, record: &Record) {
        let share = (RECORDS_MAX / self.windows.len().max(1)).clamp(SHARE_MIN, SHARE_MAX);
        let Some(window) = self.windows.get_mut(&id) else {
            return;
        };
        let held = window.held();
        window.keep(record);
        if window.is_full(share) {
            if window.is_unread() {
                // What is forgotten must have been looked at.
                self.look(id, &ON_THE_WIRE);
                if let Some(window) = self.windows.get_mut(&id) {
                    window.trim(share);
                }
            } else {
                window.fit(share);
            }
        }
        self.held = self.held + self.windows.get(&id).map_or(0, Window::held) - held;
        if self.held > self.held_max || self.windows.len() > LOOPS_MAX {
            self.forget_silent_loops();
        }
    }

    fn keep_of(&mut self, stream: StreamId, record: &Record) -> Option<u64> {
        let window = *self.by_stream.get(&stream)?;
        self.keep(window, record);
        Some(window)
    }

    fn disconnected(&mut self, conn: ConnId, by: Side, record: &Record) {
        self.clients.on_disconnected(conn, by);
        let concerned = self.by_conn.range((conn, 0)..=(conn, u64::MAX));
        for (conn, window) in concerned.copied().collect::<Vec<_>>() {
            self.by_conn.remove(&(conn, window));
            self.keep(window, record);
        }
    }

    /// The loop is looked at once there was time to close what it left.
    fn wait(&mut self, id: u64) {
        let at = self.now.at + CLOSING;
        if let Some(window) = self.windows.get_mut(&id)
            && window.settles.replace(at).is_none()
        {
            self.due.insert((at, id));
        }
    }

    /// Judges the loops whose time has come.
    fn look_again(&mut self) {
        while let Some((at, id)) = self.due.first().copied()
            && at <= self.now.at
        {
            self.due.pop_first();
            self.look(id, &ON_THE_WIRE);
            let Some(window) = self.windows.get_mut(&id) else {
                continue;
            };
            match window.settles {
                // It went on meanwhile.
                Some(later) if later > at => _ = self.due.insert((later, id)),
                Some(_) | None => window.settles = None,
            }
        }
    }

    fn look(&mut self, id: u64, wanted: &[&'static str]) {
        let wanted: Vec<&str> = wanted
            .iter()
            .copied()
            .filter(|id| !self.excused.iter().any(|excused| excused == id))
            .collect();
        let Some(window) = self.windows.get_mut(&id) else {
            return;
        };
        let told_apart = self.clients.tells_by_connections();
        let contradictions = window.look(&wanted, self.now, told_apart);
        if contradictions.is_empty() {
            return;
        }
        let label = self.clients.label(window.client);
        for found in contradictions {
            let proof = window.record(&found).map(line).unwrap_or_default();
            let violation = Violation {
                client: label.clone(),
                reading: window.subject.to_string(),
                proof,
                at_ms: self.now.at.as_millis() as u64,
                found,
            };
            let count = (
                clients::agent_of(&label).to_owned(),
                violation.found.check.clone(),
            );
            *self.counts.entry(count).or_default() += 1;
            if self.told.len() < TOLD_MAX {
                self.told.push(violation.clone());
            }
            self.news.push(violation);
        }
    }

    /// Forgets a fourth at least, for it takes looking at all of them.
    fn forget_silent_loops(&mut self) {
        let silent = self.windows.iter().filter(|(_, window)| !window.is_busy());
        let mut silent: Vec<(u64, u64)> = silent.map(|(id, window)| (window.last(), *id)).collect();
        silent.sort_unstable();
        for (_, id) in silent {
            if self.held <= RECORDS_MAX / 4 * 3 && self.windows.len() <= LOOPS_MAX / 4 * 3 {
                break;
            }
            self.look(id, &ON_THE_WIRE);
            self.forget(id);
        }
        self.held_max = RECORDS_MAX.max(self.held + RECORDS_MAX / 4);
    }

    fn forget(&mut self, id: u64) {
        let Some(window) = self.windows.remove(&id) else {
            return;
        };
        self.held -= window.held();
        self.clients.on_forgotten(window.client);
        if let Some(clients) = self.by_subject.get_mut(&window.subject) {
            clients.remove(&window.client);
            if clients.is_empty() {
                self.by_subject.remove(&window.subject);
            }
        }
    }
}

impl Readers {
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

#[cfg(test)]
mod tests;

//! Who is who on the wire.
//!
//! A client is a User-Agent and the connections it uses. Two processes with the same User-Agent cannot be told apart for
//! certain, so a new connection is given to the one it fits best, and to a new client rather than to a wrong one:
//!
//! 1. to the client that was given the version or the continue token which the request brings back;
//! 2. else to the newest client of that User-Agent that still has a connection, or lost its last one to the server, and
//!    is not in the middle of reading the same collection already;
//! 3. else to a new client. One that closed all its connections itself is gone, as a process is that ended.
//!
//! Where it is known that there is one process ([`Apart::ByAgent`]), the User-Agent alone decides.

use std::collections::{BTreeMap, BTreeSet};

use fake_apiserver::record::{ConnId, Side};

/// User agents remembered by name, and clients without a connection; whoever comes later is counted with the others.
const KNOWN_MAX: usize = 1_000;

/// Clients of a User-Agent that a new connection is held against, the newest: among thousands of watchers of one name a
/// connection that comes back is rather a new client than a wrong one.
const CANDIDATES_MAX: usize = 64;

/// What later ones are counted as.
const OTHERS: &str = "(others)";

/// Longest name shown.
const NAME_MAX: usize = 80;

/// How clients are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Apart {
    /// By User-Agent: everything comes from one process, or from processes that share nothing.
    ByAgent,
    /// By User-Agent and connections.
    ByConnections,
}

/// What is known of a client when a connection looks for its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fit {
    /// It was given what the request brings back.
    pub(super) was_given: bool,
    /// It is in the middle of reading the same collection.
    pub(super) is_busy: bool,
}

/// What came from one user agent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) instances: u64,
    pub(super) connections: u64,
    pub(super) requests: u64,
    pub(super) reads: u64,
}

/// All clients there are.
#[derive(Debug)]
pub(super) struct Clients {
    apart: Apart,
    known: BTreeMap<u64, Known>,
    /// Those without a connection, and who closed the last one.
    away: BTreeMap<u64, Side>,
    by_conn: BTreeMap<ConnId, u64>,
    tally: BTreeMap<String, Tally>,
    /// User agents of which something that a client read was forgotten.
    forgotten: BTreeSet<String>,
    made: u64,
}

#[derive(Debug)]
struct Known {
    agent: String,
    /// From 1, among those of the same agent.
    number: u64,
    conns: BTreeSet<ConnId>,
}

impl Clients {
    pub(super) fn new(apart: Apart) -> Self {
        Self {
            apart,
            known: BTreeMap::new(),
            away: BTreeMap::new(),
            by_conn: BTreeMap::new(),
            tally: BTreeMap::new(),
            forgotten: BTreeSet::new(),
            made: 0,
        }
    }

    pub(super) fn tells_by_connections(&self) -> bool {
        self.apart == Apart::ByConnections
    }

    /// Counts a request.
    pub(super) fn on_request(&mut self, agent: &str, is_read: bool) {
        let tally = self.tally_of(agent);
        tally.requests += 1;
        tally.reads += u64::from(is_read);
    }

    /// The client a list or watch on this connection is from.
    pub(super) fn of_read(&mut self, agent: &str, conn: ConnId, fit: &dyn Fn(u64) -> Fit) -> u64 {
        let agent = self.name(agent);
        if let Some(client) = self.by_conn.get(&conn)
            && self.known.get(client).is_some_and(|known| known.agent == agent)
        {
            return *client;
        }
        let same = || {
            let known = self.known.iter().rev();
            known
                .filter(|(_, known)| known.agent == agent)
                .take(CANDIDATES_MAX)
        };
        let found = match self.apart {
            Apart::ByAgent => same().next(),
            Apart::ByConnections => same()
                .find(|(id, _)| fit(**id).was_given)
                .or_else(|| same().find(|(id, _)| !self.is_gone(**id) && !fit(**id).is_busy)),
        };
        let client = match found {
            Some((client, _)) => *client,
            None => self.make(&agent),
        };
        self.by_conn.insert(conn, client);
        if let Some(known) = self.known.get_mut(&client) {
            known.conns.insert(conn);
        }
        self.away.remove(&client);
        self.tally_of(&agent).connections += 1;
        client
    }

    pub(super) fn on_disconnected(&mut self, conn: ConnId, by: Side) {
        let Some(client) = self.by_conn.remove(&conn) else {
            return;
        };
        if let Some(known) = self.known.get_mut(&client) {
            known.conns.remove(&conn);
            if known.conns.is_empty() {
                self.away.insert(client, by);
            }
        }
    }

    /// Something that the client read was forgotten.
    pub(super) fn on_forgotten(&mut self, client: u64) {
        if let Some(known) = self.known.get(&client) {
            self.forgotten.insert(known.agent.clone());
        }
    }

    /// May whoever comes with this User-Agent have read something before that was forgotten?
    pub(super) fn is_partly_forgotten(&self, agent: &str) -> bool {
        self.forgotten.contains(&self.name(agent))
    }

    /// How a client is called: its User-Agent, and its number where there are several.
    pub(super) fn label(&self, client: u64) -> String {
        match self.known.get(&client) {
            Some(known) if known.number > 1 => format!("{} (#{})", known.agent, known.number),
            Some(known) => known.agent.clone(),
            None => OTHERS.to_owned(),
        }
    }

    pub(super) fn tally(&self) -> impl Iterator<Item = (&str, &Tally)> {
        self.tally.iter().map(|(agent, tally)| (agent.as_str(), tally))
    }

    fn make(&mut self, agent: &str) -> u64 {
        self.made += 1;
        let tally = self.tally_of(agent);
        tally.instances += 1;
        let number = tally.instances;
        while self.away.len() > KNOWN_MAX
            && let Some((oldest, _)) = self.away.pop_first()
            && let Some(oldest) = self.known.remove(&oldest)
        {
            self.forgotten.insert(oldest.agent);
        }
        let known = Known {
            agent: agent.to_owned(),
            number,
            conns: BTreeSet::new(),
        };
        self.known.insert(self.made, known);
        self.made
    }

    /// It closed its last connection itself.
    fn is_gone(&self, client: u64) -> bool {
        self.away.get(&client) == Some(&Side::Client)
    }

    /// The name of an agent, of bounded length and number.
    fn name(&self, agent: &str) -> String {
        let name: String = agent.chars().take(NAME_MAX).collect();
        if self.tally.len() >= KNOWN_MAX && !self.tally.contains_key(&name) {
            OTHERS.to_owned()
        } else {
            name
        }
    }

    fn tally_of(&mut self, agent: &str) -> &mut Tally {
        let name = self.name(agent);
        self.tally.entry(name).or_default()
    }
}

/// The User-Agent in a label.
pub(super) fn agent_of(label: &str) -> &str {
    label.rsplit_once(" (#").map_or(label, |(agent, _)| agent)
}

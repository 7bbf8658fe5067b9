//! Clients on the wire: their names, and versions that each may know from other sources than lists and watches.
//!
//! A client is a User-Agent. The number of processes, connections and loops behind it is unknown and not inferred.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ::trace::record::{ConnId, StoreWrite, StreamId, Verb};
use scenario::Named;

use super::position::{Position, Version, hash};

/// Maximum number of user agents tracked by name; further ones are counted together.
const KNOWN_MAX: usize = 1_000;

/// Name for further user agents, for which only violations by a single request can be found.
pub(super) const OTHERS: &str = "(others)";

/// Name for clients without a User-Agent.
const NAMELESS: &str = "(no User-Agent)";

/// Maximum number of connections whose port is kept.
const PORTS_MAX: usize = 10_000;

/// Memory of a version or number in a map, and of a client with its name, in bytes.
const ENTRY_BYTES: usize = 32;
const AGENT_BYTES: usize = 1_024;

/// Maximum length of a name. The end of a longer one is replaced by a hash, so that truncated names stay distinct.
const NAME_MAX: usize = 80;
const HASH_DIGITS: usize = 8;

/// Maximum number of versions and objects per client, for all clients, and for all writes.
const OWN_MAX: usize = 1_024;
const OWN_OF_ALL_MAX: usize = 200_000;
const WRITTEN_MAX: usize = 10_000;

/// How many list/watch loops of one collection may share a User-Agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loops {
    /// One: all requests are from a client started by the harness.
    One,
    /// Any number: replicas, informers of one process, pooled connections.
    Many,
}

/// Counters of one user agent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) loops: u64,
    pub(super) connections: u64,
    pub(super) requests: u64,
    pub(super) reads: u64,
}

/// All clients.
#[derive(Debug, Default)]
pub(super) struct Clients {
    agents: BTreeMap<Arc<str>, Agent>,
    conns: BTreeMap<ConnId, Arc<str>>,
    /// Client ports of connections.
    ports: BTreeMap<ConnId, u16>,
    /// Requests in progress that may write, with their client.
    writing: BTreeMap<StreamId, Arc<str>>,
    writers: BTreeMap<Arc<str>, usize>,
    /// Number of versions written by clients, in total.
    own: usize,
    /// Object of each version written.
    written: BTreeMap<Version, u64>,
    /// Whether there are writes without a record.
    others_write: bool,
}

#[derive(Debug, Default)]
struct Agent {
    tally: Tally,
    /// Possible resume points of its loops that were dropped.
    forgotten: Option<Position>,
    /// Versions that it wrote, by resource.
    own: BTreeMap<String, Recent>,
    /// Objects that it read by name, with their resource, hashed.
    read: BTreeSet<u64>,
    read_of: BTreeSet<String>,
}

/// The newest of many versions.
#[derive(Debug, Default)]
struct Recent {
    versions: BTreeSet<Version>,
    forgotten: Option<Version>,
}

impl Clients {
    /// There are writes without a record.
    pub(super) fn others_write(&mut self) {
        self.others_write = true;
    }

    /// Counts a request; returns the client's name.
    pub(super) fn ask(&mut self, agent: Option<&str>, conn: ConnId, is_read: bool) -> Arc<str> {
        let name = self.name(agent);
        let tally = &mut self.agents.entry(Arc::clone(&name)).or_default().tally;
        tally.requests += 1;
        tally.reads += u64::from(is_read);
        if is_read && self.conns.get(&conn) != Some(&name) {
            tally.connections += 1;
            self.conns.insert(conn, Arc::clone(&name));
        }
        name
    }

    /// Processes a request other than list and watch: its response may contain the version of an object.
    pub(super) fn touch(&mut self, name: &Arc<str>, stream: StreamId, method: &str, named: &Named<'_>) {
        if method != "GET" {
            self.writing.insert(stream, Arc::clone(name));
            *self.writers.entry(Arc::clone(name)).or_default() += 1;
            return;
        }
        if named.name.is_empty() {
            return;
        }
        let Some(agent) = self.agents.get_mut(name) else {
            return;
        };
        if !agent.read_of.contains(named.plural) {
            agent.read_of.insert(named.plural.to_owned());
        }
        if agent.read.len() < OWN_MAX {
            agent.read.insert(match named.namespace {
                "" => hash(&[named.plural, " ", named.name]),
                namespace => hash(&[named.plural, " ", namespace, "/", named.name]),
            });
        }
    }

    /// Processes a write of any client.
    pub(super) fn write(&mut self, write: &StoreWrite) {
        let version = Version::of(&write.object.resource_version);
        self.written
            .insert(version, hash(&[&write.resource, " ", &write.object.key]));
        if self.written.len() > WRITTEN_MAX {
            self.written.pop_first();
        }
        for name in self.writers.keys() {
            if let Some(agent) = self.agents.get_mut(name) {
                let own = match agent.own.get_mut(&write.resource) {
                    Some(own) => own,
                    None => agent.own.entry(write.resource.clone()).or_default(),
                };
                let before = own.versions.len();
                own.add(version, self.own >= OWN_OF_ALL_MAX);
                self.own = self.own + own.versions.len() - before;
            }
        }
    }

    /// Processes the end of a response.
    pub(super) fn end(&mut self, stream: StreamId) {
        if let Some(name) = self.writing.remove(&stream)
            && let Some(count) = self.writers.get_mut(&name)
        {
            *count -= 1;
            if *count == 0 {
                self.writers.remove(&name);
            }
        }
    }

    /// Returns true if a client may know this version from its own write, or from reading an object by name.
    pub(super) fn knows(&self, name: &str, plural: &str, version: Version) -> bool {
        let Some(agent) = self.agents.get(name) else {
            return false;
        };
        if agent.own.get(plural).is_some_and(|own| own.has(version)) {
            return true;
        }
        if !agent.read_of.contains(plural) {
            return false;
        }
        match self.written.get(&version) {
            Some(object) => agent.read.contains(object) || agent.read.len() == OWN_MAX,
            None if self.others_write => true,
            // Older than the versions kept.
            None => self.written.keys().next().is_none_or(|first| version < *first),
        }
    }

    /// Processes a new connection.
    pub(super) fn connect(&mut self, conn: ConnId, port: Option<u16>) {
        if let Some(port) = port {
            self.ports.insert(conn, port);
        }
        // Violations on a closed connection are reported soon after, so the oldest can be dropped.
        if self.ports.len() > PORTS_MAX {
            self.ports.pop_first();
        }
    }

    /// Returns the client's port if it sends no User-Agent, so that the port is all that identifies it.
    pub(super) fn port(&self, name: &str, conn: ConnId) -> Option<u16> {
        (name == NAMELESS)
            .then(|| self.ports.get(&conn).copied())
            .flatten()
    }

    pub(super) fn disconnect(&mut self, conn: ConnId) {
        self.conns.remove(&conn);
    }

    /// Records that loops of a collection were dropped, with their possible resume points.
    pub(super) fn forget(&mut self, name: &str, everywhere: &Position) {
        let Some(agent) = self.agents.get_mut(name) else {
            return;
        };
        let known = agent.forgotten.take();
        agent.forgotten = Some(match known {
            Some(known) if everywhere.is_within(&known) => known,
            Some(_) | None => everywhere.clone(),
        });
    }

    /// Returns the possible resume points of a client's dropped loops.
    pub(super) fn forgotten(&self, name: &str) -> Option<&Position> {
        self.agents.get(name)?.forgotten.as_ref()
    }

    /// Records the number of a client's loops at the same time.
    pub(super) fn see(&mut self, name: &str, loops: usize) {
        if let Some(agent) = self.agents.get_mut(name) {
            agent.tally.loops = agent.tally.loops.max(loops as u64);
        }
    }

    /// Returns the approximate memory use, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let read: usize = self.agents.values().map(|agent| agent.read.len()).sum();
        (self.own + read + self.ports.len() + self.conns.len() + self.written.len()) * ENTRY_BYTES
            + self.agents.len() * AGENT_BYTES
    }

    pub(super) fn tally(&self) -> impl Iterator<Item = (&Arc<str>, &Tally)> {
        self.agents.iter().map(|(name, agent)| (name, &agent.tally))
    }

    /// Returns the name of a user agent, with limits on length and number.
    fn name(&self, agent: Option<&str>) -> Arc<str> {
        let name = agent.map_or_else(|| NAMELESS.to_owned(), shortened);
        match self.agents.get_key_value(name.as_str()) {
            Some((known, _)) => Arc::clone(known),
            None if self.agents.len() >= KNOWN_MAX => OTHERS.into(),
            None => name.into(),
        }
    }
}

impl Recent {
    /// Adds a version. `full`: drops one in exchange.
    fn add(&mut self, version: Version, full: bool) {
        self.versions.insert(version);
        if full || self.versions.len() > OWN_MAX {
            self.forgotten = self.versions.pop_first();
        }
    }

    fn has(&self, version: Version) -> bool {
        self.versions.contains(&version) || self.forgotten.is_some_and(|forgotten| version <= forgotten)
    }
}

/// Returns a name of limited length that is still unique.
fn shortened(agent: &str) -> String {
    if agent.chars().count() <= NAME_MAX {
        return agent.to_owned();
    }
    let kept: String = agent.chars().take(NAME_MAX - HASH_DIGITS - 1).collect();
    format!("{kept}…{:08x}", hash(&[agent]) as u32)
}

/// Returns true for lists and watches.
pub(super) fn is_read(verb: Verb) -> bool {
    verb != Verb::Other
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_cut_do_not_merge() {
        let name = |end: &str| shortened(&format!("{}{end}", "x".repeat(90)));
        assert_ne!(name("a"), name("b"));
        assert_eq!(name("a").chars().count(), NAME_MAX);
        assert_eq!(shortened("kubectl/v1.36.0"), "kubectl/v1.36.0");
    }
}

//! Who is who on the wire: names, and what each may know beside what it listed and watched.
//!
//! A client is its User-Agent. How many processes, connections and loops are behind it nobody can tell for certain, and
//! nothing here tries.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ::trace::record::{ConnId, StreamId, Truth, Verb};
use scenario::Named;

use super::position::{Position, Version, hash};

/// User agents remembered by name; later ones are counted with the others.
const KNOWN_MAX: usize = 1_000;

/// What later ones are counted as: of them nothing can be said that needs more than one request.
pub(super) const OTHERS: &str = "(others)";

/// What those are called that send no User-Agent.
const NAMELESS: &str = "(no User-Agent)";

/// Ports of connections remembered.
const PORTS_MAX: usize = 10_000;

/// Bytes of a version or number in a map, and of a client with its name.
const ENTRY_BYTES: usize = 32;
const AGENT_BYTES: usize = 1_024;

/// Longest name shown. Of a longer one the end is replaced by a hash of all of it: cut names must not merge.
const NAME_MAX: usize = 80;
const HASH_DIGITS: usize = 8;

/// Versions and objects remembered of each client, of all clients, and of all writes.
const OWN_MAX: usize = 1_024;
const OWN_OF_ALL_MAX: usize = 200_000;
const WRITTEN_MAX: usize = 10_000;

/// How many list/watch loops of one collection may share a User-Agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loops {
    /// One: everything comes from a client that was started for this.
    One,
    /// Any number: replicas, informers of one process, pooled connections.
    Many,
}

/// What came from one user agent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) loops: u64,
    pub(super) connections: u64,
    pub(super) requests: u64,
    pub(super) reads: u64,
}

/// All clients there are.
#[derive(Debug, Default)]
pub(super) struct Clients {
    agents: BTreeMap<Arc<str>, Agent>,
    conns: BTreeMap<ConnId, Arc<str>>,
    /// Ports that connections came from.
    ports: BTreeMap<ConnId, u16>,
    /// Requests under way that may write, and from whom.
    writing: BTreeMap<StreamId, Arc<str>>,
    writers: BTreeMap<Arc<str>, usize>,
    /// Versions that clients wrote themselves, of all of them.
    own: usize,
    /// Of which object a version is.
    written: BTreeMap<Version, u64>,
}

#[derive(Debug, Default)]
struct Agent {
    tally: Tally,
    /// Where its loops may be that were forgotten.
    forgotten: Option<Position>,
    /// Versions of its own writes, by resource.
    own: BTreeMap<String, Recent>,
    /// Objects it read by name, and their resources.
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
    /// Counts a request. Gives its sender's name.
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

    /// It was a request that is no list or watch: its answer may tell its sender the version of an object.
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
        agent.read_of.insert(named.plural.to_owned());
        if agent.read.len() < OWN_MAX {
            let key = match named.namespace {
                "" => named.name.to_owned(),
                namespace => format!("{namespace}/{}", named.name),
            };
            agent.read.insert(object(named.plural, &key));
        }
    }

    /// An object was written by any client.
    pub(super) fn write(&mut self, truth: &Truth) {
        let version = Version::of(&truth.object.resource_version);
        self.written
            .insert(version, object(&truth.resource, &truth.object.key));
        if self.written.len() > WRITTEN_MAX {
            self.written.pop_first();
        }
        for name in self.writers.keys() {
            if let Some(agent) = self.agents.get_mut(name) {
                let own = match agent.own.get_mut(&truth.resource) {
                    Some(own) => own,
                    None => agent.own.entry(truth.resource.clone()).or_default(),
                };
                let before = own.versions.len();
                own.add(version, self.own >= OWN_OF_ALL_MAX);
                self.own = self.own + own.versions.len() - before;
            }
        }
    }

    /// An answer is over.
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

    /// May a client know this version from a write of its own, or from reading an object by name?
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
            // Older than what is remembered.
            None => self.written.keys().next().is_none_or(|first| version < *first),
        }
    }

    /// A connection was accepted.
    pub(super) fn connect(&mut self, conn: ConnId, port: Option<u16>) {
        if let Some(port) = port {
            self.ports.insert(conn, port);
        }
        // What a connection that is closed has proved is told soon after: the oldest can go.
        if self.ports.len() > PORTS_MAX {
            self.ports.pop_first();
        }
    }

    /// The port a connection came from, where it is all there is to know of a client: it sends no User-Agent.
    pub(super) fn port(&self, name: &str, conn: ConnId) -> Option<u16> {
        (name == NAMELESS)
            .then(|| self.ports.get(&conn).copied())
            .flatten()
    }

    pub(super) fn disconnect(&mut self, conn: ConnId) {
        self.conns.remove(&conn);
    }

    /// Loops of one collection were forgotten, and may be anywhere there.
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

    /// Where loops of a client may be that were forgotten.
    pub(super) fn forgotten(&self, name: &str) -> Option<&Position> {
        self.agents.get(name)?.forgotten.as_ref()
    }

    /// So many loops of a client were there at once.
    pub(super) fn see(&mut self, name: &str, loops: usize) {
        if let Some(agent) = self.agents.get_mut(name) {
            agent.tally.loops = agent.tally.loops.max(loops as u64);
        }
    }

    /// Bytes of memory it takes, about.
    pub(super) fn bytes(&self) -> usize {
        let read: usize = self.agents.values().map(|agent| agent.read.len()).sum();
        (self.own + read + self.ports.len() + self.conns.len() + self.written.len()) * ENTRY_BYTES
            + self.agents.len() * AGENT_BYTES
    }

    pub(super) fn tally(&self) -> impl Iterator<Item = (&Arc<str>, &Tally)> {
        self.agents.iter().map(|(name, agent)| (name, &agent.tally))
    }

    /// The name of an agent, of bounded length and number.
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
    /// Adds a version. `full`: one has to go for it.
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

/// A name of bounded length, which no other name has.
fn shortened(agent: &str) -> String {
    if agent.chars().count() <= NAME_MAX {
        return agent.to_owned();
    }
    let kept: String = agent.chars().take(NAME_MAX - HASH_DIGITS - 1).collect();
    format!("{kept}…{:08x}", hash(agent) as u32)
}

fn object(plural: &str, key: &str) -> u64 {
    hash(&format!("{plural} {key}"))
}

/// Is a request a list or a watch?
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

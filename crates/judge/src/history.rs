//! History of the watched collection, replayed from the trace: its states, and its content at any time.

use std::collections::BTreeMap;

use ::trace::record::{Record, StoreWrite, What, WriteOp};
use scenario::Scenario;

/// The writes to the scenario's collection, in order.
#[derive(Debug)]
pub struct History<'a> {
    writes: Vec<(u64, &'a StoreWrite)>,
    by_state: BTreeMap<(&'a str, &'a str), Vec<usize>>,
    restores: Vec<Restore>,
}

/// A restore of the store to an earlier revision.
#[derive(Debug)]
struct Restore {
    seq: u64,
    to: u64,
    /// Number of earlier writes.
    writes: usize,
}

impl<'a> History<'a> {
    /// Collects the writes to the scenario's collection from the records.
    pub fn of(scenario: &'a Scenario, records: &'a [Record]) -> Self {
        let plural = scenario.target.plural.as_str();
        let mut history = Self {
            writes: Vec::new(),
            by_state: BTreeMap::new(),
            restores: Vec::new(),
        };
        for record in records {
            if let Some(write) = written(record, plural) {
                let state = (write.object.key.as_str(), write.object.resource_version.as_str());
                history
                    .by_state
                    .entry(state)
                    .or_default()
                    .push(history.writes.len());
                history.writes.push((record.seq, write));
            } else if let What::Restored { to } = &record.what {
                history.restores.push(Restore {
                    seq: record.seq,
                    to: *to,
                    writes: history.writes.len(),
                });
            }
        }
        history
    }

    /// Returns the write that gave `key` this version and uid, with its position in the history.
    pub fn state(&self, key: &str, version: &str, uid: &str) -> Option<(usize, &'a StoreWrite)> {
        self.by_state.get(&(key, version))?.iter().rev().find_map(|at| {
            let write = self.writes[*at].1;
            (uid.is_empty() || write.object.uid == uid).then_some((*at, write))
        })
    }

    /// Returns all states that `key` had at `version`: after a restore versions are reused.
    pub fn states<'s>(&'s self, key: &'s str, version: &'s str) -> impl Iterator<Item = &'s StoreWrite> {
        let writes = self.by_state.get(&(key, version)).into_iter().flatten();
        writes.map(|at| self.writes[*at].1)
    }

    /// Returns true if an object of this key ever existed.
    pub fn knows(&self, key: &str) -> bool {
        self.by_state
            .range((key, "")..)
            .next()
            .is_some_and(|((known, _), _)| *known == key)
    }

    /// Returns the objects the client should hold after all records before `seq`, by key.
    pub fn selected_before(&self, seq: u64) -> BTreeMap<&'a str, &'a StoreWrite> {
        self.replay(seq, u64::MAX)
    }

    /// Returns the objects the client should hold at a revision, by key, according to the history before record
    /// `seq`: a restore undoes later writes, but a client that read them earlier was right.
    pub fn selected_at(&self, revision: u64, seq: u64) -> BTreeMap<&'a str, &'a StoreWrite> {
        self.replay(seq, revision)
    }

    /// Replays the writes before `seq` up to a revision.
    fn replay(&self, seq: u64, until: u64) -> BTreeMap<&'a str, &'a StoreWrite> {
        let writes = |from: usize, to: usize| self.writes[from..to].iter().map(|(_, write)| *write);
        // A restore undoes later writes, so states are kept until the end is known.
        let mut kept: Vec<&StoreWrite> = Vec::new();
        let mut from = 0;
        for restore in self.restores.iter().take_while(|restore| restore.seq < seq) {
            kept.extend(writes(from, restore.writes));
            kept.retain(|write| revision(write) <= restore.to);
            from = restore.writes;
        }
        kept.extend(writes(from, self.writes.partition_point(|(at, _)| *at < seq)));
        let mut objects = BTreeMap::new();
        for write in kept.into_iter().filter(|write| revision(write) <= until) {
            let key = write.object.key.as_str();
            match write.op {
                WriteOp::Create | WriteOp::Update if write.selected => objects.insert(key, write),
                WriteOp::Create | WriteOp::Update | WriteOp::Delete => objects.remove(key),
            };
        }
        objects
    }
}

fn written<'a>(record: &'a Record, plural: &str) -> Option<&'a StoreWrite> {
    crate::trace::written(&record.what).filter(|write| write.resource == plural)
}

fn revision(write: &StoreWrite) -> u64 {
    write.object.resource_version.parse().unwrap_or(0)
}

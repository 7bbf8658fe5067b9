//! Which part of a recording a scenario is made of: the requests of one client to one collection, up to a violation.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use apimachinery::path::{ResourcePath, decoded_path};
use judge::wire::{Loops, Violation, WireJudge};
use scenario::matching::Read;
use trace::record::{Record, StreamId, Verb, What};

use crate::file::{Origin, Recording};

/// Time after the last record in which a client that was to close a stream could still do so.
const AFTERWARDS: Duration = Duration::from_secs(5);

/// Lists and watches of one collection.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Collection {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) plural: String,
    pub(crate) namespace: String,
    pub(crate) labels: String,
    pub(crate) fields: String,
}

impl fmt::Display for Collection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let group = if self.group.is_empty() { "" } else { "." };
        write!(f, "{}{group}{}", self.plural, self.group)?;
        match self.namespace.as_str() {
            "" => Ok(()),
            namespace => write!(f, " in {namespace}"),
        }
    }
}

/// The requests that a scenario is made of.
#[derive(Debug)]
pub(crate) struct Chosen {
    pub(crate) collection: Collection,
    /// User-Agent of the client; `None`: all clients count as one, or it sent none.
    pub(crate) agent: Option<String>,
    /// Lists and watches, in order.
    pub(crate) streams: Vec<StreamId>,
    /// Requests of the client, these included: what they wrote is the client's own.
    pub(crate) of_client: BTreeSet<StreamId>,
    pub(crate) violation: Option<Violation>,
    /// `seq` of the first record, and of the last.
    pub(crate) from: u64,
    pub(crate) to: u64,
}

/// Why no scenario can be made of a recording.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Cannot {
    /// There is no list and no watch.
    #[error(
        "has no list and no watch ({records} records): clients may have used another server, or another resource"
    )]
    NoReads {
        /// Number of records.
        records: usize,
    },
    /// No violation has that name.
    #[error("--around {wanted}: {found}")]
    NoViolation {
        /// What was wanted.
        wanted: String,
        /// Names to choose from.
        found: String,
    },
}

/// Returns the violations that the wire judge finds in a recording, in order.
pub fn violations(recording: &Recording) -> Vec<Violation> {
    let found = judged(recording, recording.records.iter());
    found.into_iter().map(|(_, violation)| violation).collect()
}

/// Returns the violations, each with the `seq` of the record that completes its proof.
fn judged<'r>(recording: &Recording, records: impl Iterator<Item = &'r Record>) -> Vec<(u64, Violation)> {
    // An audit log has no versions, and no ends: it proves nothing.
    if recording.origin() == Origin::AuditLog {
        return Vec::new();
    }
    let mut judge = WireJudge::new(loops(recording));
    if recording.origin() == Origin::Upstream {
        judge = judge.behind_upstream();
    }
    let (mut found, mut last) = (Vec::new(), (0, Duration::ZERO));
    for record in records {
        last = (record.seq, record.at);
        found.extend(
            judge
                .take(record)
                .into_iter()
                .map(|violation| (record.seq, violation)),
        );
    }
    let later = judge.pass_time(last.1 + AFTERWARDS).into_iter();
    found.extend(later.map(|violation| (last.0, violation)));
    found
}

/// `run` starts one command, so that all names are one.
fn loops(recording: &Recording) -> Loops {
    match &recording.header {
        Some(header) if header.command == "run" => Loops::One,
        Some(_) | None => Loops::Many,
    }
}

/// A list or a watch.
struct Asked {
    stream: StreamId,
    seq: u64,
    agent: Option<String>,
    collection: Collection,
    is_watch: bool,
    starts: bool,
}

/// Chooses the client and the collection of a violation: `around` is the check, and which of its violations (`INV-04`,
/// `INV-04#2`); `None`: the first violation, or all of the first collection that is watched.
pub(crate) fn choose(recording: &Recording, around: Option<&str>) -> Result<Chosen, Cannot> {
    let asked: Vec<Asked> = recording.records.iter().filter_map(asked).collect();
    let found = judged(recording, recording.records.iter());
    let violation = match around {
        Some(wanted) => Some(named(&found, wanted)?),
        None => found.first(),
    };
    let of_violation = violation.and_then(|(_, violation)| proof(violation, &asked));
    let first = || asked.iter().find(|asked| asked.is_watch).or(asked.first());
    let of = of_violation.or_else(first).ok_or(Cannot::NoReads {
        records: recording.records.len(),
    })?;
    let is_one = matches!(loops(recording), Loops::One);
    let is_of_client = |agent: &Option<String>| is_one || *agent == of.agent;
    let own: Vec<&Asked> = asked
        .iter()
        .filter(|asked| asked.collection == of.collection && is_of_client(&asked.agent))
        .collect();
    let of_client = recording.records.iter().filter_map(|record| {
        let What::Request {
            stream, user_agent, ..
        } = &record.what
        else {
            return None;
        };
        is_of_client(user_agent).then_some(*stream)
    });
    let last = recording.records.last().map_or(0, |record| record.seq);
    let to = violation.map_or(last, |(seq, _)| *seq);
    let from = violation.map_or(0, |(_, violation)| start(recording, violation, &own, to));
    Ok(Chosen {
        collection: of.collection.clone(),
        agent: of.agent.clone().filter(|_| !is_one),
        streams: own
            .iter()
            .filter(|asked| (from..=to).contains(&asked.seq))
            .map(|asked| asked.stream)
            .collect(),
        of_client: of_client.collect(),
        violation: violation.map(|(_, violation)| violation.clone()),
        from,
        to,
    })
}

/// Returns the `seq` of the latest start of the loop from which on its records still prove the violation.
fn start(recording: &Recording, violation: &Violation, own: &[&Asked], to: u64) -> u64 {
    let is_proven = |from: u64| {
        let left = own.iter().filter(|asked| asked.seq >= from);
        let left: BTreeSet<StreamId> = left.map(|asked| asked.stream).collect();
        // The writes before it are left.
        let is_left = |record: &&Record| match record.what.stream() {
            Some(stream) => left.contains(&stream),
            None => record.seq >= from || matches!(record.what, What::Wrote(_) | What::Connected { .. }),
        };
        let records = recording.records.iter().filter(|record| record.seq <= to);
        let check = &violation.found.check;
        judged(recording, records.filter(is_left))
            .iter()
            .any(|(_, found)| found.found.check == *check)
    };
    let starts = own.iter().filter(|asked| asked.starts && asked.seq < to);
    let starts: Vec<u64> = starts.map(|asked| asked.seq).collect();
    // A loop that lists again and again would be judged as often.
    const TRIED_MAX: usize = 20;
    starts
        .into_iter()
        .rev()
        .take(TRIED_MAX)
        .find(|from| is_proven(*from))
        .unwrap_or(0)
}

fn named<'v>(found: &'v [(u64, Violation)], wanted: &str) -> Result<&'v (u64, Violation), Cannot> {
    let (check, nth) = match wanted.split_once('#') {
        Some((check, nth)) => (check, nth.parse().ok()),
        None => (wanted, Some(1_usize)),
    };
    let mut of_check = found
        .iter()
        .filter(|(_, violation)| violation.found.check.is(check));
    let violation = nth.and_then(|nth| of_check.nth(nth.checked_sub(1)?));
    violation.ok_or_else(|| {
        let mut counts = BTreeMap::<String, usize>::new();
        for (_, violation) in found {
            *counts.entry(violation.found.check.to_string()).or_default() += 1;
        }
        let counts: Vec<String> = counts
            .iter()
            .map(|(check, count)| format!("{check} ({count})"))
            .collect();
        Cannot::NoViolation {
            wanted: wanted.to_owned(),
            found: match counts.is_empty() {
                true => "the recording proves no violation; leave --around out for a scenario of all of it"
                    .to_owned(),
                false => format!("no such violation; the recording has {}", counts.join(", ")),
            },
        }
    })
}

/// Returns the request that proves a violation.
fn proof<'a>(violation: &Violation, asked: &'a [Asked]) -> Option<&'a Asked> {
    let proves = |asked: &&Asked| violation.found.evidence.contains(&asked.seq);
    let of_client = |asked: &&Asked| {
        asked
            .agent
            .as_deref()
            .is_none_or(|agent| agent == violation.client)
    };
    let mut proving = asked.iter().rev().filter(proves);
    let of_it = proving.clone().find(of_client).or_else(|| proving.next());
    // The evidence may be a response.
    let last = violation.found.evidence.iter().copied().max().unwrap_or(u64::MAX);
    of_it.or_else(|| {
        asked
            .iter()
            .rev()
            .filter(|asked| asked.seq <= last)
            .find(of_client)
    })
}

fn asked(record: &Record) -> Option<Asked> {
    let What::Request {
        stream,
        verb,
        path,
        query,
        user_agent,
        ..
    } = &record.what
    else {
        return None;
    };
    let path = decoded_path(path);
    let place = ResourcePath::read(&path).filter(|_| *verb != Verb::Other)?;
    let read = Read { verb: *verb, query };
    let param = |name: &str| read.param(name).unwrap_or_default().to_owned();
    Some(Asked {
        stream: *stream,
        seq: record.seq,
        agent: user_agent.clone(),
        collection: Collection {
            group: place.group.to_owned(),
            version: place.version.to_owned(),
            plural: place.resource.to_owned(),
            namespace: place.within.unwrap_or_default().to_owned(),
            labels: param("labelSelector"),
            fields: param("fieldSelector"),
        },
        is_watch: read.is_watch(),
        starts: read.is_start(),
    })
}

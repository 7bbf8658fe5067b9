//! What is remembered of one list/watch loop: its newest records, from a point on from which they tell a whole story.
//!
//! The story may begin anew with every complete, truthful set. Of a watch that lives for long its older lines are left
//! out; then nobody can say any more that a version was never sent, and the finding that needs it is not made.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use fake_apiserver::record::{ConnId, Record, StreamId, What};
use fake_apiserver::scenario::{Named, Scenario};

use crate::invariants;
use crate::trace::{Moment, Trace};
use crate::verdict::Contradiction;

/// What a request alone can break.
pub(super) const ON_REQUEST: &[&str] = &[
    "INV-01", "INV-02", "INV-03", "INV-04", "INV-05", "INV-15", "INV-18", "INV-22",
];
/// What is known once the server began to answer.
pub(super) const ON_HEAD: &[&str] = &["INV-16"];

/// Requests that are looked at one by one. Looking means reading all of them: of more, so large a part must be new.
const ONE_BY_ONE: usize = 64;
const NEW_PART: usize = 16;

/// Items of a page that are remembered.
const ITEMS_MAX: usize = 1_000;

/// A window without any whole set in it may grow so many times its share before it is given up.
const PATIENCE: usize = 10;

/// A window that shrank keeps room for so many times what it holds.
const SPARE: usize = 2;

/// What a loop reads.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Subject {
    group: String,
    plural: String,
    namespace: String,
    labels: String,
    fields: String,
}

/// One list/watch loop.
#[derive(Debug)]
pub(super) struct Window {
    pub(super) client: u64,
    pub(super) subject: Arc<Subject>,
    /// When what it asked for last can be judged, if it is not yet.
    pub(super) settles: Option<Duration>,
    /// Its answers that are not over, and their connections.
    open: BTreeMap<StreamId, ConnId>,
    scenario: Arc<Scenario>,
    records: Vec<Record>,
    /// Requests among them, and how many there were when they were looked at.
    requests: usize,
    looked_at: usize,
    /// How much that is: a page weighs as much as its items.
    weight: usize,
    /// It is looked for what can be forgotten once it is so much: that takes reading all of it.
    trim_above: usize,
    /// Something came since all of it was looked at that may prove something: anything but a change. What was sent matters
    /// once something is asked.
    unread: bool,
    /// Lines or items were left out since the last whole set.
    forgot: bool,
    /// Nothing can be said until a set begins.
    blind: bool,
    /// What was found already: check, and first and last record that prove it.
    found: BTreeSet<(String, u64, u64)>,
}

impl Window {
    /// `blind`: something of before may have been forgotten.
    pub(super) fn new(client: u64, subject: Arc<Subject>, scenario: Arc<Scenario>, blind: bool) -> Self {
        Self {
            client,
            subject,
            settles: None,
            open: BTreeMap::new(),
            scenario,
            records: Vec::new(),
            requests: 0,
            looked_at: 0,
            weight: 0,
            trim_above: 0,
            unread: false,
            forgot: false,
            blind,
            found: BTreeSet::new(),
        }
    }

    /// Remembers a record; of a long list only its first items.
    pub(super) fn keep(&mut self, record: &Record) {
        if let What::Request { stream, conn, .. } = &record.what {
            self.open.insert(*stream, *conn);
        }
        if let What::End { stream, .. } = &record.what {
            self.open.remove(stream);
        }
        if let What::Disconnected { conn, .. } = &record.what {
            self.open.retain(|_, of| of != conn);
        }
        if self.blind {
            let begins = matches!(&record.what, What::Request { query, .. } if asks_back(query).is_none());
            if !begins {
                return;
            }
            self.blind = false;
        }
        let mut record = record.clone();
        if let What::Page { items, .. } = &mut record.what
            && items.len() > ITEMS_MAX
        {
            items.truncate(ITEMS_MAX);
            items.shrink_to_fit();
            self.forgot = true;
        }
        self.unread |= !is_change(&record);
        self.weight += weight(&record);
        self.requests += usize::from(is_request(&record));
        self.records.push(record);
    }

    /// How many records' memory it takes: its records with their items, and the room kept for more.
    pub(super) fn held(&self) -> usize {
        self.weight + self.records.capacity() - self.records.len()
    }

    /// Is it time to look for what can be forgotten?
    pub(super) fn is_full(&self, share: usize) -> bool {
        self.weight > share.max(self.trim_above.min(share.saturating_mul(PATIENCE)))
    }

    /// May there be something that was not seen when it was looked at last?
    pub(super) fn is_unread(&self) -> bool {
        self.unread
    }

    /// Is so much new that looking at all of it is worth its while?
    pub(super) fn is_worth_a_look(&self) -> bool {
        self.requests <= ONE_BY_ONE || self.requests > self.looked_at + self.looked_at / NEW_PART
    }

    /// Is a watch open, or a list under way?
    pub(super) fn is_busy(&self) -> bool {
        !self.open.is_empty()
    }

    /// Was the client given this version or continue token here?
    pub(super) fn gave(&self, given: &str) -> bool {
        self.records.iter().any(|record| {
            if let What::Page {
                resource_version,
                continue_token,
                ..
            } = &record.what
            {
                return resource_version == given || continue_token == given;
            }
            let What::Frame { frame, .. } = &record.what else {
                return false;
            };
            let object = frame.object.as_ref();
            object.is_some_and(|object| object.resource_version == given)
        })
    }

    /// The newest record's position.
    pub(super) fn last(&self) -> u64 {
        self.records.last().map_or(0, |record| record.seq)
    }

    /// The record that proves a violation: the last one, which is the client's.
    pub(super) fn record(&self, found: &Contradiction) -> Option<&Record> {
        let last = found.evidence.iter().max()?;
        self.records.iter().find(|record| record.seq == *last)
    }

    /// What is newly found. `apart`: it is not certain that all of this is one process.
    pub(super) fn look(&mut self, wanted: &[&str], now: Moment, apart: bool) -> Vec<Contradiction> {
        self.looked_at = self.requests;
        let trace = Trace::as_of(&self.records, now);
        let mut news = Vec::new();
        for found in invariants::each(&self.scenario, &trace, wanted) {
            let unsure = match found.check.as_str() {
                // Nothing shows where the version is from: it may be from what was forgotten.
                "INV-01" => self.forgot && found.evidence.len() == 1,
                "INV-17" => apart && each_listed_by_itself(&trace, &found),
                _ => false,
            };
            let (Some(first), Some(last)) = (found.evidence.first(), found.evidence.last()) else {
                continue;
            };
            let key = match found.check.as_str() {
                // The rate is one story that goes on; what repeats it is no news.
                "INV-16" if found.expected.contains("requests a second") => (found.check.clone(), 0, 0),
                // More lists at the dead version are more of the same.
                "INV-04" if found.evidence.len() > 2 => (found.check.clone(), *first, 0),
                _ => (found.check.clone(), *first, *last),
            };
            if !unsure && self.found.insert(key) {
                news.push(found);
            }
        }
        news
    }

    /// Forgets what is not needed to go on, of what was looked at.
    pub(super) fn trim(&mut self, share: usize) {
        self.unread = false;
        let began = {
            let trace = Trace::new(&self.records);
            let sets = trace.snapshots.iter().rev();
            let mut whole = sets.filter(|set| !set.scripted && !set.opaque);
            whole.next().map(|set| set.began.seq)
        };
        if let Some(began) = began {
            let before = self.records.len();
            self.records.retain(|record| record.seq >= began);
            if self.records.len() < before {
                self.forgot = self.records.iter().any(is_long_page);
            }
        }
        self.fit(share);
        self.looked_at = self.requests;
    }

    /// Keeps only the newest lines, if there are many records; and nothing, if there still are too many.
    pub(super) fn fit(&mut self, share: usize) {
        if self.records.len() > share / 2 {
            let lines = self.records.iter().filter(|record| is_line(record)).count();
            let mut excess = lines.saturating_sub(share / 4);
            self.forgot |= excess > 0;
            self.records.retain(|record| {
                let leaves = excess > 0 && is_line(record);
                excess -= usize::from(leaves);
                !leaves
            });
        }
        self.weigh();
        if self.weight > share.saturating_mul(PATIENCE) {
            self.records.clear();
            self.blind = true;
            self.weigh();
        }
    }

    fn weigh(&mut self) {
        self.weight = self.records.iter().map(weight).sum();
        self.trim_above = self.weight * 2;
        self.requests = self.records.iter().filter(|record| is_request(record)).count();
        self.looked_at = self.looked_at.min(self.requests);
        let oldest = self.records.first().map_or(u64::MAX, |first| first.seq);
        self.found
            .retain(|(_, first, last)| *last == 0 || *first >= oldest);
        self.records.shrink_to(self.records.len() * SPARE);
    }
}

impl Subject {
    pub(super) fn of(named: &Named<'_>, query: &[(String, String)]) -> Self {
        let value = |wanted: &str| {
            let found = query.iter().find(|(name, _)| name == wanted);
            found.map(|(_, value)| value.clone()).unwrap_or_default()
        };
        Self {
            group: named.group.to_owned(),
            plural: named.plural.to_owned(),
            namespace: named.namespace.to_owned(),
            labels: value("labelSelector"),
            fields: value("fieldSelector"),
        }
    }

    /// Is it one object, by its name?
    pub(super) fn names_an_object(&self) -> bool {
        let mut fields = self.fields.split(',');
        fields.any(|field| field.starts_with("metadata.name="))
    }
}

/// `pods in default`, `deployments.apps where app=x`.
impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.plural)?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        if !self.namespace.is_empty() {
            write!(f, " in {}", self.namespace)?;
        }
        for selector in [&self.labels, &self.fields] {
            if !selector.is_empty() {
                write!(f, " where {selector}")?;
            }
        }
        Ok(())
    }
}

/// The version or token a request brings back to the server, if any.
pub(super) fn asks_back(query: &[(String, String)]) -> Option<&str> {
    let value = |wanted: &str| {
        let found = query.iter().find(|(name, _)| name == wanted);
        found
            .map(|(_, value)| value.as_str())
            .filter(|value| !value.is_empty())
    };
    value("continue").or_else(|| value("resourceVersion").filter(|version| *version != "0"))
}

/// Two watches of which each connection carried a list of its own may be those of two processes.
fn each_listed_by_itself(trace: &Trace<'_>, found: &Contradiction) -> bool {
    let of = |seq: Option<&u64>| {
        let seq = *seq?;
        trace.exchanges.iter().find(|exchange| exchange.asked.seq == seq)
    };
    let (Some(first), Some(second)) = (of(found.evidence.first()), of(found.evidence.last())) else {
        return true;
    };
    let listed = trace.exchanges.iter().any(|exchange| {
        exchange.conn == second.conn && exchange.asked.seq <= second.asked.seq && exchange.pinned().is_none()
    });
    first.conn != second.conn && listed
}

fn weight(record: &Record) -> usize {
    if let What::Page { items, .. } = &record.what {
        1 + items.len()
    } else {
        1
    }
}

fn is_request(record: &Record) -> bool {
    matches!(record.what, What::Request { .. })
}

fn is_line(record: &Record) -> bool {
    matches!(record.what, What::Frame { .. })
}

fn is_change(record: &Record) -> bool {
    matches!(&record.what, What::Frame { frame, .. } if frame.kind.is_change())
}

fn is_long_page(record: &Record) -> bool {
    matches!(&record.what, What::Page { items, .. } if items.len() >= ITEMS_MAX)
}

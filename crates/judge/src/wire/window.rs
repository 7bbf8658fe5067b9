//! Explanation by one loop: the newest records of one name and one collection, judged as if a single loop had sent
//! them.
//!
//! The window may start at any complete, unmodified snapshot. Older lines of a long-lived watch are dropped; after
//! that it can no longer be proved that a version was never sent, and violations that need this are not reported.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use ::trace::record::{Frame, FrameType, Record, What};
use scenario::{Named, Scenario};

use super::asked::Suspicion;
use crate::invariants::{self, RATE};
use crate::trace::{Moment, Trace};
use crate::verdict::{Check, Contradiction};

/// Memory of a record without long texts, including spare capacity, in bytes.
pub(super) const RECORD_BYTES: usize = 320;

/// Maximum number of items kept of a page.
const ITEMS_MAX: usize = 1_000;

/// Memory of a query parameter in addition to its text, in bytes.
const PARAMETER_BYTES: usize = 48;

/// Factor by which a window without a complete snapshot may exceed its share before it is cleared.
const PATIENCE: usize = 10;

/// Factor of capacity to content that a shrunken window keeps.
const SPARE: usize = 2;

/// What is read: a collection, or a part of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Subject {
    group: String,
    plural: String,
    namespace: String,
    labels: String,
    fields: String,
}

/// The records of one name and one collection.
#[derive(Debug)]
pub(super) struct Window {
    scenario: Arc<Scenario>,
    records: Vec<Record>,
    /// Size in records: a page counts its items, and a long text the records of its size.
    weight: usize,
    /// Size above which the window is trimmed, which scans all of it.
    trim_above: usize,
    /// Lines or items were dropped since the last complete snapshot.
    forgot: bool,
    /// No violation can be found until a snapshot starts.
    blind: bool,
    /// Violations already reported: check, and first and last record of the evidence.
    found: BTreeSet<(Check, (u64, u64))>,
    /// The store's revision at each watch without a version, by the position of its request: writes are not kept here.
    began: BTreeMap<u64, u64>,
}

impl Window {
    /// Creates a window. `blind`: earlier records may have been dropped.
    pub(super) fn new(scenario: Arc<Scenario>, blind: bool) -> Self {
        Self {
            scenario,
            records: Vec::new(),
            weight: 0,
            trim_above: 0,
            forgot: false,
            blind,
            found: BTreeSet::new(),
            began: BTreeMap::new(),
        }
    }

    /// Records the store's revision at a watch without a version.
    pub(super) fn begin(&mut self, request: u64, revision: u64) {
        self.began.insert(request, revision);
    }

    /// Adds a record; of a long list only its first items.
    pub(super) fn keep(&mut self, record: &Record) {
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
        self.weight += weight(&record);
        self.records.push(record);
    }

    /// Returns the memory use in records: records with items and texts, and spare capacity.
    pub(super) fn held(&self) -> usize {
        self.weight + self.records.capacity() - self.records.len()
    }

    /// Returns true if the window should be trimmed.
    fn is_full(&self, share: usize) -> bool {
        self.weight > share.max(self.trim_above.min(share.saturating_mul(PATIENCE)))
    }

    /// Returns the newest record's position.
    pub(super) fn last(&self) -> u64 {
        self.records.last().map_or(0, |record| record.seq)
    }

    /// Returns the record that proves a violation: the last one, which is the client's.
    pub(super) fn record(&self, found: &Contradiction) -> Option<&Record> {
        let last = found.evidence.iter().max()?;
        self.records.iter().find(|record| record.seq == *last)
    }

    /// Returns new violations, of the invariants that these requests may have broken.
    pub(super) fn look(&mut self, suspicions: &[Suspicion], now: Moment) -> Vec<Contradiction> {
        let wanted: BTreeSet<&str> = suspicions
            .iter()
            .flat_map(|suspicion| suspicion.checks)
            .copied()
            .collect();
        let suspected: BTreeSet<(&str, u64)> = suspicions
            .iter()
            .flat_map(|suspicion| {
                let checks = suspicion.checks.iter();
                checks.filter_map(|check| Some((*check, suspicion.seq?)))
            })
            .collect();
        let open: BTreeSet<&str> = suspicions
            .iter()
            .filter(|suspicion| suspicion.seq.is_none())
            .flat_map(|suspicion| suspicion.checks)
            .copied()
            .collect();
        let wanted: Vec<&str> = wanted.into_iter().collect();
        let trace = Trace::as_of(&self.records, now).began_at(&self.began);
        let mut news = Vec::new();
        for found in invariants::each(&self.scenario, &trace, &wanted) {
            let (Some(first), Some(last)) = (found.evidence.first(), found.evidence.last()) else {
                continue;
            };
            let is_suspected = wanted.iter().any(|check| {
                found.check.is(check) && (suspected.contains(&(*check, *last)) || open.contains(check))
            });
            // The origin of the version is unknown: it may be from a dropped record.
            let unsure = found.check.is("INV-01") && self.forgot && found.evidence.len() == 1;
            let proof = if found.expected == RATE {
                // It continues; repetitions are not reported again.
                (0, 0)
            } else if found.check.is("INV-04") && found.evidence.len() > 2 {
                // Further lists at the expired version are the same violation.
                (*first, 0)
            } else {
                (*first, *last)
            };
            let key = (found.check.clone(), proof);
            if is_suspected && !unsure && self.found.insert(key) {
                news.push(found);
            }
        }
        news
    }

    /// Drops records that are no longer needed, if due.
    pub(super) fn trim(&mut self, share: usize) {
        if !self.is_full(share) {
            return;
        }
        // A watch of many events has no snapshot to look for.
        let began = self.records.iter().any(completes_snapshot).then(|| {
            let trace = Trace::new(&self.records).began_at(&self.began);
            let sets = trace.snapshots.iter().rev();
            let mut whole = sets.filter(|set| !set.scripted && !set.opaque);
            whole.next().map(|set| set.began.seq)
        });
        let began = began.flatten();
        if let Some(began) = began {
            let before = self.records.len();
            self.records.retain(|record| record.seq >= began);
            if self.records.len() < before {
                self.forgot = self.records.iter().any(is_long_page);
            }
        }
        self.fit(share);
    }

    /// Keeps only the newest lines if there are many records; clears the window if there are still too many.
    fn fit(&mut self, share: usize) {
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
        let oldest = self.records.first().map_or(u64::MAX, |first| first.seq);
        self.found
            .retain(|(_, (first, last))| *last == 0 || *first >= oldest);
        self.began.retain(|request, _| *request >= oldest);
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

    /// Returns the plural of the resource.
    pub(super) fn plural(&self) -> &str {
        &self.plural
    }

    /// Returns the collections that contain all of this one.
    pub(super) fn wider(&self) -> impl Iterator<Item = Self> {
        let parts = [&self.namespace, &self.labels, &self.fields];
        let given: Vec<usize> = (0..parts.len()).filter(|part| !parts[*part].is_empty()).collect();
        let without: Vec<Vec<usize>> = (1_u32..1 << given.len())
            .map(|chosen| {
                let left_out = given.iter().enumerate();
                let left_out = left_out.filter(|(at, _)| chosen & (1 << at) != 0);
                left_out.map(|(_, part)| *part).collect()
            })
            .collect();
        without.into_iter().map(|left_out| {
            let kept = |part: usize, text: &str| {
                if left_out.contains(&part) {
                    String::new()
                } else {
                    text.to_owned()
                }
            };
            Self {
                group: self.group.clone(),
                plural: self.plural.clone(),
                namespace: kept(0, &self.namespace),
                labels: kept(1, &self.labels),
                fields: kept(2, &self.fields),
            }
        })
    }

    /// Returns true for a single object, by name.
    pub(super) fn names_an_object(&self) -> bool {
        let mut fields = self.fields.split(',');
        fields.any(|field| field.starts_with("metadata.name="))
    }
}

/// Formats as `pods in default`, `deployments.apps where app=x`.
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

/// Returns whether a snapshot whose items are known may end with this record.
fn completes_snapshot(record: &Record) -> bool {
    let is_marker = |frame: &Frame| {
        let FrameType::Bookmark { initial_events_end } = &frame.kind else {
            return false;
        };
        initial_events_end.is_some()
    };
    matches!(&record.what, What::Page { .. })
        || matches!(&record.what, What::Frame { frame, .. } if is_marker(frame))
}

/// Returns the version or token that a request sends back to the server, if any.
pub(super) fn asks_back(query: &[(String, String)]) -> Option<&str> {
    let value = |wanted: &str| {
        let found = query.iter().find(|(name, _)| name == wanted);
        found
            .map(|(_, value)| value.as_str())
            .filter(|value| !value.is_empty())
    };
    value("continue").or_else(|| value("resourceVersion").filter(|version| *version != "0"))
}

fn weight(record: &Record) -> usize {
    if let What::Page { items, .. } = &record.what {
        return 1 + items.len();
    }
    let What::Request {
        path,
        query,
        accept,
        user_agent,
        violations,
        ..
    } = &record.what
    else {
        return 1;
    };
    let parameter = |(name, value): &(String, String)| PARAMETER_BYTES + name.len() + value.len();
    let optional = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let texts = path.len() + optional(accept) + optional(user_agent);
    let parameters: usize = query.iter().map(parameter).sum();
    let violations: usize = violations.iter().map(|text| PARAMETER_BYTES + text.len()).sum();
    1 + (texts + parameters + violations) / RECORD_BYTES
}

fn is_line(record: &Record) -> bool {
    matches!(record.what, What::Frame { .. })
}

fn is_long_page(record: &Record) -> bool {
    matches!(&record.what, What::Page { items, .. } if items.len() >= ITEMS_MAX)
}

//! Assumed reports of a client without an adapter, derived from the bytes sent to it.
//!
//! A scenario may wait for a report, which such a client never sends: instead the events it received count as reported, and
//! the script then waits a moment for the client to handle them. Assumed reports never enter the trace.

use std::collections::BTreeSet;

use apimachinery::ObjectRef;
use scenario::matching::Read;
use trace::record::{FrameType, Record, StreamId, Verb, What};
use trace::report::{Report, ReportedObject};

/// What the loop under test was sent so far.
#[derive(Debug, Default)]
pub(super) struct Assumed {
    /// Streaming lists past their initial events.
    marked: BTreeSet<StreamId>,
    /// Newest version of an object in what was sent, or of the last list as a whole; 0: nothing was sent.
    newest: u64,
    /// The same, with the snapshot that is being sent.
    arriving: u64,
}

impl Assumed {
    /// Returns the reports of a correct client for what was sent on a stream of the loop under test.
    ///
    /// A client that lists again, or watches again without a version, receives a missed change in the snapshot: an object
    /// there that is newer than everything it was sent before also counts as an event.
    pub(super) fn after(&mut self, stream: StreamId, read: Read<'_>, records: &[Record]) -> Vec<Report> {
        // A torn list is not received.
        if records
            .iter()
            .any(|record| matches!(record.what, What::Torn { .. }))
        {
            return Vec::new();
        }
        // What is sent with the head of a watch without a version is the state that it starts with.
        let is_accepted = |record: &Record| matches!(record.what, What::Head { status: 200, .. });
        let starts = read.is_start_without_list() && records.iter().any(is_accepted);
        // Events of a streaming list before its end marker are the list.
        let mut listing = starts || read.verb == Verb::WatchList && !self.marked.contains(&stream);
        let mut assumed = Vec::new();
        for record in records {
            if let What::Frame { frame, .. } = &record.what
                && is_marker(&frame.kind)
            {
                self.marked.insert(stream);
            }
            self.arriving = self.arriving.max(newest_in(&record.what));
            // The state that a watch without a version starts with is ADDED events; what follows another one is new.
            if starts && let What::Frame { frame, .. } = &record.what {
                listing &= frame.kind == FrameType::Added;
            }
            for report in reports(&record.what, listing) {
                listing &= report != Report::InitDone;
                self.take(report, &mut assumed);
            }
        }
        if starts {
            self.take(Report::InitDone, &mut assumed);
        }
        assumed
    }

    /// The stream has ended.
    pub(super) fn on_end(&mut self, stream: StreamId) {
        self.marked.remove(&stream);
    }

    /// The store was restored to an older version.
    pub(super) fn on_restore(&mut self, to: u64) {
        self.newest = self.newest.min(to);
        self.arriving = self.arriving.min(to);
    }

    fn take(&mut self, report: Report, assumed: &mut Vec<Report>) {
        let version = report
            .object()
            .and_then(|object| object.resource_version.as_deref());
        let is_missed = self.newest > 0 && version.map_or(0, version_of) > self.newest;
        if let Report::InitApply(object) = &report {
            if is_missed {
                assumed.push(Report::Apply(object.clone()));
            }
        } else {
            self.newest = self.arriving;
        }
        assumed.push(report);
    }
}

/// Returns the newest version that the store itself gave to a page or an event; 0 if there is none.
fn newest_in(what: &What) -> u64 {
    if let What::Page {
        resource_version,
        scripted: false,
        ..
    } = what
    {
        return version_of(resource_version);
    }
    if let What::Frame { frame, .. } = what
        && frame.whole()
        && !frame.scripted
        && let Some(object) = &frame.object
    {
        return version_of(&object.resource_version);
    }
    0
}

fn version_of(text: &str) -> u64 {
    text.parse().unwrap_or_default()
}

/// Returns the reports of a correct client for a record.
fn reports(what: &What, listing: bool) -> Vec<Report> {
    if let What::Page {
        continue_token,
        items,
        ..
    } = what
    {
        let items = items.iter().map(|item| Report::InitApply(reported(item)));
        let end = continue_token.is_empty().then_some(Report::InitDone);
        return items.chain(end).collect();
    }
    let What::Frame { frame, .. } = what else {
        return Vec::new();
    };
    let object = frame.object.as_deref().filter(|_| frame.whole()).map(reported);
    match (&frame.kind, object) {
        (FrameType::Added | FrameType::Modified, Some(object)) if listing => vec![Report::InitApply(object)],
        (FrameType::Added | FrameType::Modified, Some(object)) => vec![Report::Apply(object)],
        (FrameType::Deleted, Some(object)) => vec![Report::Delete(object)],
        (marker, _) if is_marker(marker) && frame.whole() => vec![Report::InitDone],
        (
            FrameType::Added
            | FrameType::Modified
            | FrameType::Deleted
            | FrameType::Bookmark { .. }
            | FrameType::Error { .. }
            | FrameType::Raw,
            _,
        ) => Vec::new(),
    }
}

/// Whether it is the bookmark that ends the initial events.
pub(super) fn is_marker(kind: &FrameType) -> bool {
    matches!(kind, FrameType::Bookmark { initial_events_end: Some(value) } if value == "true")
}

fn reported(object: &ObjectRef) -> ReportedObject {
    let (namespace, name) = match object.key.split_once('/') {
        Some((namespace, name)) => (Some(namespace.to_owned()), name.to_owned()),
        None => (None, object.key.clone()),
    };
    ReportedObject {
        namespace,
        name,
        uid: Some(object.uid.clone()).filter(|uid| !uid.is_empty()),
        resource_version: Some(object.resource_version.clone()).filter(|version| !version.is_empty()),
        content: None,
    }
}

#[cfg(test)]
mod tests;

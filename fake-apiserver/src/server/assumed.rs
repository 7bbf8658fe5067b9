//! What a client that reports nothing would have reported: read off the bytes that left.
//!
//! A scenario may wait for a report. With a client nobody adapted that wait would have no end, so what the client was told
//! is taken for what it says; the script then leaves it a while to take it in. Nothing assumed enters the trace.

use std::ops::Range;
use std::time::Duration;

use apimachinery::ObjectRef;
use trace::record::{FrameType, StreamId, Verb, What};
use trace::report::{Report, ReportedObject};

use super::Server;
use super::names::expand;

impl Server {
    /// Takes what left on a stream, the records in `told`, for reports.
    pub(super) fn assume_reports(&mut self, now: Duration, stream: StreamId, told: Range<usize>) {
        if self.goal.hears_reports() || !self.script.awaits_report() {
            return;
        }
        let Some(open) = self.open.get(&stream) else {
            return;
        };
        let collection = open.asked.collection.as_ref();
        if !collection.is_some_and(|collection| self.is_of_target(collection)) {
            return;
        }
        // What a streaming list says before its marker is its list.
        let mut listing = open.asked.verb == Verb::WatchList && !self.is_marked(stream, told.start);
        let bindings = &self.bindings;
        for record in &self.log.records[told] {
            for report in reports(&record.what, listing) {
                listing &= report != Report::InitDone;
                self.script
                    .on_told(now, &report, &|wanted| expand(bindings, wanted));
            }
        }
    }

    /// Has the marker left on this stream, in the records before `end`?
    fn is_marked(&self, stream: StreamId, end: usize) -> bool {
        self.log.records[..end].iter().any(|record| {
            matches!(&record.what, What::Frame { stream: other, frame } if *other == stream && is_marker(&frame.kind))
        })
    }
}

/// What a correct client reports of this, as far as it can be known from outside.
fn reports(what: &What, listing: bool) -> Vec<Report> {
    match what {
        What::Page {
            continue_token,
            items,
            ..
        } => {
            let items = items.iter().map(|item| Report::InitApply(reported(item)));
            let end = continue_token.is_empty().then_some(Report::InitDone);
            items.chain(end).collect()
        }
        What::Frame { frame, .. } if frame.whole() => {
            let object = frame.object.as_deref().map(reported);
            match (&frame.kind, object) {
                (FrameType::Added | FrameType::Modified, Some(object)) if listing => {
                    vec![Report::InitApply(object)]
                }
                (FrameType::Added | FrameType::Modified, Some(object)) => vec![Report::Apply(object)],
                (FrameType::Deleted, Some(object)) => vec![Report::Delete(object)],
                (marker, _) if is_marker(marker) => vec![Report::InitDone],
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
        What::Frame { .. }
        | What::Connected { .. }
        | What::Goaway { .. }
        | What::Refused
        | What::Disconnected { .. }
        | What::Request { .. }
        | What::Head { .. }
        | What::Body { .. }
        | What::Torn { .. }
        | What::End { .. }
        | What::Withheld { .. }
        | What::Wrote(_)
        | What::Restored { .. }
        | What::Turned { .. }
        | What::Step { .. }
        | What::Rule { .. }
        | What::Bound { .. }
        | What::ScriptDone
        | What::Reported(_)
        | What::StopRequested
        | What::LeftOpen { .. }
        | What::RunEnded(_) => Vec::new(),
    }
}

fn is_marker(kind: &FrameType) -> bool {
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

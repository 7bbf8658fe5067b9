//! Assumed reports of a client without an adapter, derived from the bytes sent to it.
//!
//! A scenario may wait for a report, which such a client never sends: instead the events it received count as reported, and
//! the script then waits a moment for the client to handle them. Assumed reports never enter the trace.

use apimachinery::ObjectRef;
use trace::record::{FrameType, What};
use trace::report::{Report, ReportedObject};

/// Returns the reports of a correct client for a record.
pub(super) fn reports(what: &What, listing: bool) -> Vec<Report> {
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
        | What::ClientExited { .. }
        | What::ClientRestarted { .. }
        | What::StopRequested
        | What::Webhook { .. }
        | What::LeftOpen { .. }
        | What::RunEnded(_) => Vec::new(),
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

//! What a client that reports nothing would have reported: read off the bytes that left.
//!
//! A scenario may wait for a report. With a client nobody adapted that wait would have no end, so what the client was told
//! is taken for what it says; the script then leaves it a while to take it in. Nothing assumed enters the trace.

use apimachinery::ObjectRef;
use trace::record::{FrameType, What};
use trace::report::{Report, ReportedObject};

/// What a correct client reports of this, as far as it can be known from outside.
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
        | What::StopRequested
        | What::LeftOpen { .. }
        | What::RunEnded(_) => Vec::new(),
    }
}

/// Is it the bookmark that ends the initial events?
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

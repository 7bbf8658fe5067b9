//! Expectations on a client that was started again: the cache of the last process is lost, and so is the version to resume from.
//!
//! It starts with a LIST, or with a watch without a version; both are correct wherever the last process would have resumed.

use scenario::{Expected, RequestExpect, RequestKind};

use super::{Exchange, Trace};
use crate::check::matching::of_kind;

/// Returns whether the request belongs to the start of a restarted process: its requests up to the first watch.
pub(super) fn is_start(trace: &Trace<'_>, request: &Exchange<'_>) -> bool {
    let process = trace.process(request.asked.seq);
    let mut earlier = trace
        .watches()
        .filter(|watch| watch.asked.seq < request.asked.seq);
    process > 0 && !earlier.any(|watch| trace.process(watch.asked.seq) == process)
}

/// Returns whether both requests are of the same process.
pub(super) fn is_same_process(trace: &Trace<'_>, one: &Exchange<'_>, other: &Exchange<'_>) -> bool {
    trace.process(one.asked.seq) == trace.process(other.asked.seq)
}

/// Returns the largest group of requests that one process sent.
pub(super) fn most_of_a_process<'t, 'a>(
    trace: &Trace<'_>,
    requests: &[&'t Exchange<'a>],
) -> Vec<&'t Exchange<'a>> {
    let groups = requests.chunk_by(|one, other| is_same_process(trace, one, other));
    groups
        .max_by_key(|group| group.len())
        .unwrap_or_default()
        .to_vec()
}

/// Returns the request that replaces an expected resume if the client was restarted after `before`: the first watch of the new
/// process, or its list if it has no watch yet.
pub(super) fn started_instead<'a>(
    trace: &Trace<'a>,
    expected: &RequestExpect,
    reads: &[&Exchange<'a>],
    from: usize,
    before: Option<&Exchange<'a>>,
) -> Option<usize> {
    let resumes = expected.or_relist
        || expected.any_of.iter().any(|request| {
            request.kind == RequestKind::Watch
                && request
                    .query
                    .iter()
                    .any(|condition| condition.name == "resourceVersion" && names_a_version(&condition.value))
        });
    if !resumes {
        return None;
    }
    let process = before.map_or(0, |before| trace.process(before.asked.seq));
    let start = (from..reads.len()).find(|at| {
        let read = reads[*at];
        trace.process(read.asked.seq) > process && has_no_version(read)
    })?;
    let mut rest = (start..reads.len()).take_while(|at| is_same_process(trace, reads[start], reads[*at]));
    rest.find(|at| reads[*at].is_watch()).or(Some(start))
}

fn names_a_version(value: &Expected) -> bool {
    match value {
        Expected::Is(text) => !text.is_empty(),
        Expected::Ref(_) | Expected::Present => true,
        Expected::Not(_) | Expected::Absent => false,
    }
}

/// Returns whether the request follows from nothing that the server sent.
fn has_no_version(read: &Exchange<'_>) -> bool {
    of_kind(read, RequestKind::List) || (read.is_watch() && read.pinned().is_none())
}

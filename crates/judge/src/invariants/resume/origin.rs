//! Where a version comes from that a client must not watch from, and which requirement a watch from there contradicts.
//! It must not know whether the watch is allowed.

use ::trace::record::Verb;

use crate::invariants::Ground;
use crate::trace::{Exchange, ResponseBody, Trace};
use crate::words;

/// Where a wrong version comes from.
pub(super) struct Origin {
    /// Description: `the version of a@5, an item of a list and not the list's own`.
    pub(super) why: String,
    /// The record that proves it; `None`: the server never sent the version.
    pub(super) seq: Option<u64>,
    /// The requirement that a watch from there contradicts.
    pub(super) breaks: &'static str,
}

impl Origin {
    /// Finds the origin of the version that a watch starts from.
    pub(super) fn of(ground: &Ground<'_, '_>, watch: &Exchange<'_>, version: &str) -> Origin {
        let trace = ground.trace;
        // The first watch after a list starts at its version, and a later one resumes.
        let is_first = trace.snapshot_before(watch.asked.seq).is_some_and(|set| {
            let mut asked = trace.asked_before(watch.asked.seq).iter().rev();
            !asked.any(|read| read.is_watch() && read.asked.seq > set.done.seq)
        });
        let wrong = if is_first { "LIST-02" } else { "WATCH-01" };
        let deliveries =
            || {
                trace.deliveries.iter().rev().filter(|state| {
                    state.sent.seq < watch.asked.seq && state.object.resource_version == version
                })
            };
        if let Some(torn) = deliveries().find(|state| !state.whole) {
            let frame = trace
                .exchange(torn.stream)
                .and_then(|stream| stream.frames.iter().find(|sent| sent.sent.seq == torn.sent.seq));
            let share = match frame {
                Some(sent) => format!("{} of {} bytes", sent.frame.sent, sent.frame.bytes),
                None => "a part".to_owned(),
            };
            let object = words::object(ground.scenario, torn.object);
            return Origin {
                why: format!("the version of {object}, of which only {share} were sent"),
                seq: Some(torn.sent.seq),
                breaks: "CONN-01",
            };
        }
        let page = trace
            .lists()
            .filter(|list| list.asked.seq < watch.asked.seq)
            .filter_map(|list| list.page_sent().map(|page| (list, page)))
            .find(|(_, page)| page.resource_version == version);
        if let Some((list, page)) = page {
            let seq = Some(page.sent.seq);
            if list.page > 1 {
                return Origin {
                    why: format!(
                        "the version of page {} of a list that began at another",
                        list.page
                    ),
                    seq,
                    breaks: if continues_elsewhere(trace, list) {
                        "PAGE-06"
                    } else {
                        "PAGE-04"
                    },
                };
            }
            return Origin {
                why: "the version of a list that was given up or replaced".to_owned(),
                seq,
                breaks: wrong,
            };
        }
        let earlier = trace.snapshots_before(watch.asked.seq).iter().rev();
        if let Some(set) = earlier.clone().find(|set| set.resume.contains(&version)) {
            return Origin {
                why: "the version of a list before the last one".to_owned(),
                seq: Some(set.done.seq),
                breaks: wrong,
            };
        }
        if let Some(state) = deliveries().next() {
            let object = words::object(ground.scenario, state.object);
            let (why, breaks) = match (state.listed, trace.exchange(state.stream)) {
                (true, _) => (
                    format!("the version of {object}, an item of a list and not the list's own"),
                    wrong,
                ),
                (false, Some(stream)) if stream.verb == Verb::WatchList => (
                    format!("the version of {object}, an initial event of a stream"),
                    "WLIST-05",
                ),
                (false, Some(stream)) if stream.pinned().is_none() => (
                    format!("the version of {object}, an initial event of a stream"),
                    if had_no_version(trace, stream) {
                        "WATCH-10"
                    } else {
                        "WATCH-05"
                    },
                ),
                (false, _) => (
                    format!("the version of {object}, sent before the last list"),
                    wrong,
                ),
            };
            return Origin {
                why,
                seq: Some(state.sent.seq),
                breaks,
            };
        }
        Origin {
            why: "a version the server never sent".to_owned(),
            seq: None,
            breaks: wrong,
        }
    }
}

/// Whether a page was read with a token that a 410 offered, which continues at another version.
fn continues_elsewhere(trace: &Trace<'_>, page: &Exchange<'_>) -> bool {
    let token = page.query("continue");
    let mut before = trace.lists().filter(|list| list.asked.seq < page.asked.seq);
    before.any(|list| {
        let Some(ResponseBody::Body(body)) = &list.answer else {
            return false;
        };
        body.continue_token.is_some() && body.continue_token == token
    })
}

/// Whether the list before a watch without a version had none, so that the client did not choose to start there.
fn had_no_version(trace: &Trace<'_>, watch: &Exchange<'_>) -> bool {
    let asked = trace.asked_before(watch.asked.seq).iter().rev();
    let last = asked.filter_map(Exchange::page_sent).next();
    last.is_some_and(|page| page.resource_version.is_empty())
}

//! Reports allowed by the events that were sent: INV-06 to INV-08, INV-14, INV-19 to INV-21.

use std::collections::BTreeMap;

use ::trace::record::{FrameType, ObjectRef, RunEnd, Verb, WriteOp};
use ::trace::report::Report;
use scenario::ClientMode;

use super::{Finding, Ground, ids};
use crate::cache::Cache;
use crate::trace::{Delivery, Exchange, Op, Reported};
use crate::words;

/// INV-06 (etcd: Ordered; client-go SharedInformer doc). A relist may contain an older state if the server sent it.
pub(super) fn subsequence(ground: &Ground<'_, '_>) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut highest: BTreeMap<&str, (usize, &Reported<'_>)> = BTreeMap::new();
    for (reported, _) in ground.stated() {
        let mut sources = ground.sources(reported).peekable();
        if sources.peek().is_none() {
            if !ground.may_have_unrecorded_source(reported) {
                found.push(Finding {
                    requirements: ids(&["ORDER-01"]),
                    sentence: format!(
                        "the client reported {} at {}, a state the server never sent",
                        words::report(ground.scenario, reported),
                        words::time(reported.at.at)
                    ),
                    expected: "only states that were sent".to_owned(),
                    actual: words::report(ground.scenario, reported),
                    evidence: vec![reported.at.seq],
                });
            }
            continue;
        }
        if ground.trace.rolled_back.is_some_and(|at| at < reported.at.seq) {
            continue;
        }
        let state = ground
            .history
            .state(&reported.key, reported.resource_version(), reported.uid());
        let Some((position, _)) = state else { continue };
        if let Some((last, before)) = highest.get(reported.key.as_str())
            && position < *last
        {
            // The server itself went back: it sent the older state after the newer one.
            let newer = ground
                .sources(before)
                .map(|source| source.sent.seq)
                .min()
                .unwrap_or(before.at.seq);
            if !sources.any(|source| source.sent.seq > newer)
                && !ground.may_be_of_an_unfinished_page(reported)
            {
                found.push(Finding {
                    requirements: ids(&["ORDER-01"]),
                    sentence: format!(
                        "the client reported {} at {} after {}, against the order in which the server made them",
                        words::report(ground.scenario, reported),
                        words::time(reported.at.at),
                        words::report(ground.scenario, before)
                    ),
                    expected: "the states of an object in the server's order".to_owned(),
                    actual: format!(
                        "{}, then {}",
                        words::report(ground.scenario, before),
                        words::report(ground.scenario, reported)
                    ),
                    evidence: vec![before.at.seq, reported.at.seq],
                });
            }
        }
        highest.insert(&reported.key, (position, reported));
    }
    found
}

/// INV-07 (etcd: Reliable). A stream is read in order: a client that reports the fifth event has read the first four.
/// Changes that do not affect a cache (a delete of an absent object, an unchanged state) need not be reported, and a
/// reported error may replace a line that could not be decoded.
pub(super) fn reliable<'t, 'a>(ground: &'t Ground<'_, 'a>) -> Vec<Finding> {
    let mut said: BTreeMap<(&'t str, &'t str, Op), Vec<&'t Reported<'a>>> = BTreeMap::new();
    let mut by_uid: BTreeMap<(&str, &str), Vec<u64>> = BTreeMap::new();
    let mut by_key: BTreeMap<&str, Vec<&Reported<'_>>> = BTreeMap::new();
    for reported in &ground.trace.reports {
        let Some(op) = reported.op() else { continue };
        by_key.entry(&reported.key).or_default().push(reported);
        if let Report::Apply(_) | Report::Delete(_) = reported.report {
            said.entry((&reported.key, reported.resource_version(), op))
                .or_default()
                .push(reported);
            if op == Op::Gone {
                by_uid
                    .entry((&reported.key, reported.uid()))
                    .or_default()
                    .push(reported.at.seq);
            }
        }
    }
    let mut found = Vec::new();
    for stream in ground.trace.watches() {
        let live = live(ground, stream);
        let reports_of = |event: &'t Delivery<'a>| said.get(&change(event)).into_iter().flatten().copied();
        // A report proves that this stream was read only if no other response sent the same state before.
        let by = |event: &'t Delivery<'a>| {
            reports_of(event).find(|reported| {
                let elsewhere = |source: &Delivery<'_>| source.stream != event.stream;
                reported.at.seq > event.sent.seq && !ground.sources(reported).any(elsewhere)
            })
        };
        let Some((last, witness)) = live
            .iter()
            .enumerate()
            .rev()
            .find_map(|(index, event)| by(event).map(|reported| (index, reported)))
        else {
            continue;
        };
        for event in &live[..last] {
            let key = event.object.key.as_str();
            let gone = by_uid.get(&(key, event.object.uid.as_str()));
            let reported = reports_of(event).next().is_some()
                || event.op == Op::Gone
                    && gone.is_some_and(|seqs| seqs.iter().any(|seq| *seq > event.sent.seq));
            if reported || ground.trace.error_between(event.sent.seq, witness.at.seq) {
                continue;
            }
            let before = by_key
                .get(key)
                .into_iter()
                .flatten()
                .rev()
                .find(|known| known.at.seq < witness.at.seq);
            let unnoticed = match (
                event.op,
                before.and_then(|known| known.op().map(|op| (known, op))),
            ) {
                (Op::Gone, None | Some((_, Op::Gone))) => true,
                (Op::Gone, Some((_, Op::Set))) | (Op::Set, None | Some((_, Op::Gone))) => false,
                (Op::Set, Some((known, Op::Set))) => {
                    known.uid() == event.object.uid
                        && known.resource_version() == event.object.resource_version
                }
            };
            if unnoticed {
                continue;
            }
            let what = words::object(ground.scenario, event.object);
            let op = if event.op == Op::Gone {
                "deletion"
            } else {
                "change"
            };
            let is_reborn = |later: &&Delivery<'_>| {
                later.object.key == event.object.key && later.object.uid != event.object.uid
            };
            let reborn = event.op == Op::Gone && live.iter().any(is_reborn);
            found.push(Finding {
                requirements: ids(&[if reborn { "EVENT-07" } else { "WATCH-03" }]),
                sentence: format!(
                    "the client never reported the {op} {what} it was sent at {}, though it read on: it reported {} from the same stream",
                    words::time(event.sent.at),
                    words::report(ground.scenario, witness)
                ),
                expected: format!("{} {what}", if event.op == Op::Gone { "delete" } else { "apply" }),
                actual: "nothing".to_owned(),
                evidence: vec![event.sent.seq, witness.at.seq],
            });
        }
    }
    found
}

/// Returns the key by which a delivery and a report are matched.
fn change<'a>(live: &Delivery<'a>) -> (&'a str, &'a str, Op) {
    (&live.object.key, &live.object.resource_version, live.op)
}

/// Returns the unmodified events of a stream after its initial ones, up to where a client stops reading.
fn live<'t, 'a>(ground: &'t Ground<'_, 'a>, stream: &Exchange<'a>) -> Vec<&'t Delivery<'a>> {
    let marker = stream.frames.iter().find_map(|sent| match &sent.frame.kind {
        FrameType::Bookmark {
            initial_events_end: Some(end),
        } if end == "true" => Some(sent.sent.seq),
        FrameType::Bookmark { .. }
        | FrameType::Added
        | FrameType::Modified
        | FrameType::Deleted
        | FrameType::Error { .. }
        | FrameType::Raw => None,
    });
    let from = match stream.verb {
        Verb::WatchList => marker.unwrap_or(u64::MAX),
        Verb::List | Verb::Watch | Verb::Other => 0,
    };
    let until = ground.trace.rolled_back.unwrap_or(u64::MAX);
    let scripted = |live: &&Delivery<'_>| {
        // The client may have reported a scripted event that looks like this one.
        let state = (live.object.key.as_str(), live.object.resource_version.as_str());
        ground
            .delivered
            .get(&state)
            .is_some_and(|twins| twins.iter().any(|twin| ground.trace.deliveries[*twin].scripted))
    };
    stream
        .frames
        .iter()
        .filter_map(|sent| {
            let at = ground
                .trace
                .deliveries
                .binary_search_by_key(&sent.sent.seq, |live| live.sent.seq)
                .ok()?;
            Some(&ground.trace.deliveries[at])
        })
        .filter(|live| live.sent.seq > from && live.sent.seq < until && live.whole && !live.after_error)
        .filter(|live| !scripted(live))
        .collect()
}

/// INV-08 (etcd: Unique). A scripted fault since the last relist may have sent it twice.
pub(super) fn unique(ground: &Ground<'_, '_>) -> Vec<Finding> {
    // A client that follows one object reports no relists: a state that is listed again is reported again.
    let is_object = ground.scenario.client.mode == ClientMode::Object;
    let is_slow = ground.scenario.client.consumer_delay_ms > 0;
    let replays: Vec<u64> = ground
        .trace
        .reads()
        .filter(|read| match read.verb {
            Verb::Watch => read.pinned().is_none(),
            Verb::WatchList => true,
            Verb::List => is_object,
            Verb::Other => false,
        })
        .map(|read| read.asked.seq)
        .collect();
    let until = ground.trace.rolled_back.unwrap_or(u64::MAX);
    let mut found = Vec::new();
    let mut said: BTreeMap<(&str, &str, &str, Op), u64> = BTreeMap::new();
    let mut from = 0;
    for reported in ground
        .trace
        .reports
        .iter()
        .take_while(|reported| reported.at.seq < until)
    {
        let op = match reported.report {
            Report::Init | Report::InitDone => {
                said.clear();
                // What follows the marker of a streaming list may be sent before the snapshot is reported.
                let snapshot = ground.trace.snapshot_before(reported.at.seq);
                from = snapshot.map_or(reported.at.seq, |snapshot| snapshot.done.seq);
                continue;
            }
            Report::Apply(_) => Op::Set,
            Report::Delete(_) => Op::Gone,
            Report::InitApply(_) | Report::Error { .. } | Report::Ended | Report::Crashed { .. } => continue,
        };
        let version = reported.resource_version();
        if version.is_empty() {
            continue;
        }
        let Some(first) = said.insert((&reported.key, reported.uid(), version, op), reported.at.seq) else {
            continue;
        };
        // A slow consumer may have received a state only after it was sent again.
        let replayed = replays
            .iter()
            .any(|seq| (is_slow || *seq > first) && *seq < reported.at.seq);
        // The repeated event may have been sent before the relist was reported.
        let sent = ground.sources(reported).map(|source| source.sent.seq).min();
        let since = sent.map_or(from, |sent| from.min(sent.saturating_sub(1)));
        if replayed || ground.lied_between(since, reported.at.seq) {
            continue;
        }
        let what = words::report(ground.scenario, reported);
        found.push(Finding {
            requirements: ids(&["ORDER-02"]),
            sentence: format!(
                "the client reported {what} a second time at {}",
                words::time(reported.at.at)
            ),
            expected: format!("{what} once"),
            actual: format!("{what} twice"),
            evidence: vec![first, reported.at.seq],
        });
    }
    found
}

/// INV-14 (etcd: validateFilter; ListOptions selectors).
pub(super) fn filter(ground: &Ground<'_, '_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for (reported, op) in ground.stated() {
        let state = ground
            .history
            .state(&reported.key, reported.resource_version(), reported.uid());
        let Some((_, write)) = state.filter(|_| op == Op::Set) else {
            continue;
        };
        // After a restore another state has the version: what was read before remains valid.
        let mut states = ground.history.states(&reported.key, reported.resource_version());
        if states.any(|state| state.selected)
            || write.op == WriteOp::Delete
            || ground.sources(reported).any(|source| source.scripted)
        {
            continue;
        }
        let what = words::report(ground.scenario, reported);
        found.push(Finding {
            requirements: ids(&["SEL-01"]),
            sentence: format!(
                "the client reported {what} at {}, an object outside the namespace and selectors of its watch",
                words::time(reported.at.at)
            ),
            expected: "only objects of the namespace that pass the selectors".to_owned(),
            actual: what,
            evidence: vec![reported.at.seq],
        });
    }
    found
}

/// INV-19 (CONN-01): an incomplete event is not an event.
pub(super) fn no_partial_frames(ground: &Ground<'_, '_>) -> Vec<Finding> {
    from_nowhere_else(
        ground,
        "CONN-01",
        |source| source.whole,
        |ground, torn| {
            let frame = ground
                .trace
                .exchange(torn.stream)
                .and_then(|stream| stream.frames.iter().find(|sent| sent.sent.seq == torn.sent.seq));
            match frame {
                Some(sent) => format!(
                    "of which only {} of {} bytes were sent",
                    sent.frame.sent, sent.frame.bytes
                ),
                None => "which was not sent whole".to_owned(),
            }
        },
    )
}

/// INV-21 (client-go RetryWatcher tests): events after an ERROR on the same stream must be ignored.
pub(super) fn error_is_final(ground: &Ground<'_, '_>) -> Vec<Finding> {
    from_nowhere_else(
        ground,
        "GONE-07",
        |source| !source.after_error,
        |_, _| "which came after an ERROR line".to_owned(),
    )
}

/// Returns reports all of whose sources on the wire are invalid.
fn from_nowhere_else<'a>(
    ground: &Ground<'_, 'a>,
    breaks: &str,
    good: impl Fn(&Delivery<'a>) -> bool,
    why: impl Fn(&Ground<'_, 'a>, &Delivery<'a>) -> String,
) -> Vec<Finding> {
    let mut found = Vec::new();
    for (reported, op) in ground.stated() {
        let bad = |source: &&Delivery<'a>| source.op == op && !good(source);
        let Some(source) = ground.sources(reported).find(bad) else {
            continue;
        };
        if ground.may_have_unrecorded_source(reported) || ground.sources(reported).any(&good) {
            continue;
        }
        let what = words::report(ground.scenario, reported);
        found.push(Finding {
            requirements: ids(&[breaks]),
            sentence: format!(
                "the client reported {what} at {}, {}",
                words::time(reported.at.at),
                why(ground, source)
            ),
            expected: "nothing from it".to_owned(),
            actual: what,
            evidence: vec![source.sent.seq, reported.at.seq],
        });
    }
    found
}

/// INV-20 (etcd: IsCreate; kubernetes/kubernetes#115658 for deleted objects reported again from a queue).
pub(super) fn identity(ground: &Ground<'_, '_>) -> Vec<Finding> {
    let trace = ground.trace;
    let mut found = Vec::new();
    let mut gone: BTreeMap<(&str, &str), &Reported<'_>> = BTreeMap::new();
    for reported in trace.reports.iter().filter(|reported| !reported.uid().is_empty()) {
        let who = (reported.key.as_str(), reported.uid());
        match reported.op() {
            Some(Op::Gone) => {
                gone.insert(who, reported);
            }
            Some(Op::Set) => {
                let Some(deleted) = gone.remove(&who) else {
                    continue;
                };
                let of_it = |source: &&Delivery<'_>| source.object.uid == who.1 && source.object.key == who.0;
                let before = || trace.deliveries.iter().filter(of_it);
                let deletions =
                    || before().filter(|source| source.op == Op::Gone && source.sent.seq < deleted.at.seq);
                // Several deletions may have been sent before the client reported one: the reported one counts.
                let reported_one = deletions()
                    .find(|source| source.object.resource_version == deleted.resource_version())
                    .or_else(|| deletions().next());
                let Some(deletion) = reported_one.map(|source| source.sent.seq) else {
                    continue;
                };
                let again = before().any(|source| {
                    source.op == Op::Set && source.sent.seq > deletion && source.sent.seq < reported.at.seq
                });
                if again || ground.may_have_unrecorded_source(reported) {
                    continue;
                }
                let what = words::report(ground.scenario, reported);
                let relisted = trace
                    .snapshot_before(reported.at.seq)
                    .is_some_and(|set| set.done.seq > deletion);
                found.push(Finding {
                    requirements: ids(if relisted { &["ORDER-01", "ORDER-04"] } else { &["ORDER-01"] }),
                    sentence: format!(
                        "the client reported {what} at {} after it had reported that very object deleted, and the server did not send it again",
                        words::time(reported.at.at)
                    ),
                    expected: "the object stays deleted".to_owned(),
                    actual: what,
                    evidence: vec![deletion, deleted.at.seq, reported.at.seq],
                });
            }
            None => {}
        }
    }
    found.extend(back_after_relist(ground));
    let Some((ended, RunEnd::Complete | RunEnd::NotConverged { .. })) = trace.ended else {
        return found;
    };
    if ground.scenario.expect.not_converged_because.is_some() {
        return found;
    }
    let end = trace.stop.map_or(ended.seq, |stop| stop.seq.min(ended.seq));
    let selected = ground.history.selected_before(end);
    let cache = Cache::after(trace.reports.iter().take_while(|reported| reported.at.seq < end));
    for (key, held) in cache.live() {
        let Some(right) = selected.get(key) else { continue };
        let is_scripted = || ground.sources(held).any(|source| source.scripted);
        if held.uid().is_empty() || held.uid() == right.object.uid || is_scripted() {
            continue;
        }
        let name = words::name(ground.scenario, key);
        found.push(Finding {
            requirements: ids(&["EVENT-08"]),
            sentence: format!(
                "the client still holds an earlier {name} (uid {}) where the server has a new one (uid {})",
                held.uid(),
                right.object.uid
            ),
            expected: format!("{name} with uid {}", right.object.uid),
            actual: format!("{name} with uid {}", held.uid()),
            evidence: vec![held.at.seq, ended.seq],
        });
    }
    found
}

/// Returns changes that were reported after a snapshot without their object, though the server did not send it again: events
/// of a stream that the snapshot replaced.
fn back_after_relist(ground: &Ground<'_, '_>) -> Vec<Finding> {
    let trace = ground.trace;
    let mut found = Vec::new();
    // Only a second snapshot replaces a stream.
    if trace.snapshots.len() < 2 {
        return found;
    }
    let mut sent: BTreeMap<(&str, &str), Vec<u64>> = BTreeMap::new();
    for state in trace.deliveries.iter().filter(|state| state.op == Op::Set) {
        let object = (state.object.key.as_str(), state.object.uid.as_str());
        sent.entry(object).or_default().push(state.sent.seq);
    }
    let mut relists = 0;
    for reported in &trace.reports {
        match reported.report {
            Report::InitDone => relists += 1,
            Report::Apply(_) if !reported.uid().is_empty() => {
                let is_it = |object: &ObjectRef| object.uid == reported.uid() && object.key == reported.key;
                let Some(sent) = sent.get(&(reported.key.as_str(), reported.uid())) else {
                    continue;
                };
                let until = sent.partition_point(|seq| *seq < reported.at.seq);
                let Some(last) = sent[..until].last().copied() else {
                    continue;
                };
                // As many relists were reported as snapshots were sent up to this one, so that it is one of them.
                let mut sets = trace.snapshots.iter().take(relists);
                let without = sets.find(|set| {
                    set.began.seq > last
                        && !set.scripted
                        && !set.opaque
                        && set.consistent
                        && !set.items.iter().any(|(object, _)| is_it(object))
                });
                let Some(set) = without
                    .filter(|_| trace.rolled_back.is_none() && !ground.may_have_unrecorded_source(reported))
                else {
                    continue;
                };
                let what = words::report(ground.scenario, reported);
                found.push(Finding {
                    requirements: ids(&["ORDER-04"]),
                    sentence: format!(
                        "the client reported {what} at {} after a list without it, and the server did not send it again",
                        words::time(reported.at.at)
                    ),
                    expected: "nothing from before the list".to_owned(),
                    actual: what,
                    evidence: vec![last, set.done.seq, reported.at.seq],
                });
            }
            Report::Init
            | Report::InitApply(_)
            | Report::Apply(_)
            | Report::Delete(_)
            | Report::Error { .. }
            | Report::Ended
            | Report::Crashed { .. } => {}
        }
    }
    found
}

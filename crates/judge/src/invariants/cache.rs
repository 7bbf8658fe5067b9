//! Content of the cache built from the reports: INV-09 to INV-13.

use std::collections::BTreeMap;

use ::trace::record::{FrameType, RunEnd, StoreWrite, Verb};
use ::trace::report::Report;
use scenario::ClientMode;
use serde_json::{Map, Value};

use super::{Finding, Ground, ids, resume};
use crate::cache::Cache;
use crate::trace::{Delivery, Op, Reported, SentFrame, Snapshot};
use crate::words;

/// INV-09 (client-go Replace; kube's `Event`): readers see the old or the new objects, so no change to the old ones
/// may be reported during a relist.
pub(super) fn relist_in_one_piece(ground: &Ground<'_, '_>) -> Vec<Finding> {
    if ground.scenario.client.mode == ClientMode::Object {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut open: Option<&Reported<'_>> = None;
    for reported in &ground.trace.reports {
        let wrong = match reported.report {
            Report::Init => {
                open = Some(reported);
                continue;
            }
            Report::InitApply(_) if open.is_none() => "outside a relist",
            Report::InitDone if open.take().is_none() => "without an init before it",
            Report::Apply(_) | Report::Delete(_) if open.is_some() => "in the middle of a relist",
            Report::InitApply(_)
            | Report::InitDone
            | Report::Apply(_)
            | Report::Delete(_)
            | Report::Error { .. }
            | Report::Ended
            | Report::Crashed { .. } => continue,
        };
        let what = words::report(ground.scenario, reported);
        let asked = ground.trace.asked_before(reported.at.seq);
        let is_streamed = asked.last().is_some_and(|read| read.verb == Verb::WatchList);
        let breaks: &[&str] = match reported.report {
            Report::Apply(_) | Report::Delete(_) if is_streamed => &["WLIST-02"],
            Report::Apply(_) | Report::Delete(_) => &["GONE-06"],
            Report::Init
            | Report::InitApply(_)
            | Report::InitDone
            | Report::Error { .. }
            | Report::Ended
            | Report::Crashed { .. } => &[],
        };
        found.push(Finding {
            requirements: ids(breaks),
            sentence: format!(
                "the client reported {what} at {} {wrong}",
                words::time(reported.at.at)
            ),
            expected: "init, init_apply…, init_done in one piece".to_owned(),
            actual: format!("{what} {wrong}"),
            evidence: open
                .map(|init| init.at.seq)
                .into_iter()
                .chain([reported.at.seq])
                .collect(),
        });
    }
    found
}

/// INV-10 (client-go Replace semantics). Items that the client could not decode may be missing if it reported an
/// error; items that the server did not send must not be present.
pub(super) fn relist_equals_snapshot(ground: &Ground<'_, '_>) -> Vec<Finding> {
    let mut found = Vec::new();
    let slow = ground.scenario.client.consumer_delay_ms > 0;
    let mut relisted: BTreeMap<&str, &Reported<'_>> = BTreeMap::new();
    let mut from = 0;
    for reported in &ground.trace.reports {
        match reported.report {
            Report::Init => relisted.clear(),
            Report::InitApply(_) => {
                relisted.insert(&reported.key, reported);
            }
            Report::InitDone => {
                let until = reported.at.seq;
                let sets = ground
                    .trace
                    .snapshots
                    .iter()
                    .filter(|set| (slow || set.done.seq > from) && set.done.seq < until);
                let wrong: Vec<Option<Finding>> = sets
                    .map(|set| differs(ground, set, &relisted, reported))
                    .collect();
                // For a single object there may be no snapshot: it was deleted, and is still absent.
                let is_gone = ground.scenario.client.mode == ClientMode::Object
                    && relisted.is_empty()
                    && gone_before(ground, until) > 0;
                // Several snapshots may have been sent; one of them must match.
                if !is_gone && wrong.iter().all(Option::is_some) {
                    found.extend(wrong.into_iter().flatten().next_back());
                }
                relisted.clear();
                from = until;
            }
            Report::Apply(_)
            | Report::Delete(_)
            | Report::Error { .. }
            | Report::Ended
            | Report::Crashed { .. } => {}
        }
    }
    found
}

fn differs(
    ground: &Ground<'_, '_>,
    set: &Snapshot<'_>,
    relisted: &BTreeMap<&str, &Reported<'_>>,
    done: &Reported<'_>,
) -> Option<Finding> {
    if set.opaque {
        return None;
    }
    let streamed = ground
        .trace
        .exchange(set.stream)
        .is_some_and(|exchange| exchange.verb == Verb::WatchList);
    let mut sent: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (object, op) in &set.items {
        let versions = sent.entry(object.key.as_str()).or_default();
        // In a stream the later state counts; of two pages of a list either state may be kept.
        if streamed || *op == Op::Gone {
            versions.clear();
        }
        if *op == Op::Set {
            versions.push(&object.resource_version);
        }
    }
    // A snapshot of one object that contains two is a scripted fault, and no client can report both.
    if set.scripted && ground.scenario.client.mode == ClientMode::Object && sent.len() > 1 {
        return None;
    }
    let excused = ground.trace.error_between(set.began.seq, done.at.seq);
    let missing: Vec<&str> = sent
        .iter()
        .filter(|(key, versions)| !versions.is_empty() && !key.is_empty() && !relisted.contains_key(*key))
        .filter(|(key, versions)| {
            // A scripted set may hold what was never in the store, or what the selectors exclude (INV-14).
            let is_wanted = || {
                let mut states = versions
                    .iter()
                    .flat_map(|version| ground.history.states(key, version));
                states.any(|write| write.selected)
            };
            !excused && (!set.scripted || is_wanted())
        })
        .map(|(key, _)| *key)
        .collect();
    let extra: Vec<&Reported<'_>> = relisted
        .iter()
        .filter(|(key, reported)| {
            !sent
                .get(*key)
                .is_some_and(|versions| versions.contains(&reported.resource_version()))
        })
        .map(|(_, reported)| *reported)
        .collect();
    if missing.is_empty() && extra.is_empty() {
        return None;
    }
    let is_extra =
        |object: &::trace::record::ObjectRef| extra.iter().any(|reported| reported.key == object.key);
    let mut deleted = set.items.iter().filter(|(_, op)| *op == Op::Gone);
    // The items of lists that were given up are no part of a snapshot.
    let was_given_up =
        |state: &Delivery<'_>| state.listed && state.sent.seq < set.began.seq && is_extra(state.object);
    let breaks: &[&str] = if streamed && deleted.any(|(object, _)| is_extra(object)) {
        &["WLIST-04"]
    } else if streamed {
        &["WLIST-03"]
    } else if ground.trace.deliveries.iter().any(was_given_up) {
        &["PAGE-07"]
    } else {
        &[]
    };
    let mut wrong = Vec::new();
    if !missing.is_empty() {
        let names = words::few(&missing, 4, |key| words::name(ground.scenario, key).to_owned());
        wrong.push(format!("without {names}"));
    }
    if !extra.is_empty() {
        let state = |reported: &&Reported<'_>| {
            words::state(ground.scenario, &reported.key, reported.resource_version())
        };
        wrong.push(format!(
            "with {}, which the set does not hold",
            words::few(&extra, 4, state)
        ));
    }
    let items: Vec<String> = sent
        .iter()
        .filter_map(|(key, versions)| Some(words::state(ground.scenario, key, versions.last()?)))
        .collect();
    let said: Vec<String> = relisted
        .values()
        .map(|reported| words::state(ground.scenario, &reported.key, reported.resource_version()))
        .collect();
    Some(Finding {
        requirements: ids(breaks),
        sentence: format!(
            "the client reported the set sent at {} {}",
            words::time(set.done.at),
            wrong.join(", and ")
        ),
        expected: format!("{{{}}}", words::few(&items, 12, Clone::clone)),
        actual: format!("{{{}}}", words::few(&said, 12, Clone::clone)),
        evidence: [set.done.seq]
            .into_iter()
            .chain(extra.iter().map(|reported| reported.at.seq))
            .chain([done.at.seq])
            .collect(),
    })
}

/// INV-11 (etcd: Bookmarkable, extended to every resume). Holds for clients that send the next watch only after their
/// events were consumed, as every poll-driven stream does; not for a slow consumer behind a queue.
pub(super) fn resume_means_in_step(ground: &Ground<'_, '_>) -> Vec<Finding> {
    let (scenario, trace) = (ground.scenario, ground.trace);
    if scenario.client.consumer_delay_ms > 0 || scenario.client.mode == ClientMode::Object {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut cache = Cache::default();
    let mut taken = 0;
    for (watch, version) in resume::pinned_watches(ground) {
        while let Some(reported) = trace
            .reports
            .get(taken)
            .filter(|next| next.at.seq < watch.asked.seq)
        {
            cache.take(reported);
            taken += 1;
        }
        let Ok(revision) = version.parse::<u64>() else {
            continue;
        };
        let Some(set) = trace.snapshot_before(watch.asked.seq) else {
            continue;
        };
        let unmodified = !set.scripted
            && !set.opaque
            && set.consistent
            && watch.verb == Verb::Watch
            && !ground.lied_between(set.began.seq, watch.asked.seq)
            && !ground.may_have_failed_between(set.began.seq, watch.asked.seq)
            && trace.rolled_back.is_none_or(|at| at > watch.asked.seq);
        if !unmodified || cache.relisting() || !cache.synced() {
            continue;
        }
        let standing = resume::Standing::before(ground, watch);
        if !standing.is_some_and(|standing| standing.allows(version)) {
            continue;
        }
        let selected = ground.history.selected_at(revision, watch.asked.seq);
        let wrong = difference(
            ground,
            &cache,
            |key| {
                selected
                    .get(key)
                    .map(|right| right.object.resource_version.as_str())
            },
            selected.keys().copied(),
        );
        let Some(wrong) = wrong else { continue };
        found.push(Finding {
            requirements: ids(&["WATCH-03"]),
            sentence: format!(
                "the client resumed from {version} at {}, but what it had reported by then differs from the store at {version}: {wrong}",
                words::time(watch.asked.at)
            ),
            expected: format!("the cache of {version}"),
            actual: wrong,
            evidence: vec![set.done.seq, watch.asked.seq],
        });
    }
    found
}

/// INV-12 (LIST-01; KEP-3157): before that, the absence of an object means nothing.
pub(super) fn synced_only_when_complete(ground: &Ground<'_, '_>) -> Vec<Finding> {
    let is_object = ground.scenario.client.mode == ClientMode::Object;
    let is_counted = is_object || ground.scenario.client.consumer_delay_ms > 0;
    let mut found = Vec::new();
    let mut from = 0;
    let dones = ground
        .trace
        .reports
        .iter()
        .enumerate()
        .filter(|(_, reported)| matches!(reported.report, Report::InitDone));
    for (index, (place, reported)) in dones.enumerate() {
        // If a single object is followed, it is the complete snapshot, even if the rest of its page has not arrived.
        let before = place
            .checked_sub(1)
            .map(|before| ground.trace.reports[before].report);
        if is_object && matches!(before, Some(Report::InitApply(_))) {
            from = reported.at.seq;
            continue;
        }
        let until = reported.at.seq;
        let sets = ground
            .trace
            .snapshots
            .iter()
            .filter(|set| set.done.seq < until && (is_counted || set.done.seq > from));
        // For a slow consumer the next list may be complete before the consumer has processed the last one: lists are
        // counted. For a single object deletions are counted too: its absence is a complete, empty snapshot if there
        // was an object before.
        let gone = if is_object { gone_before(ground, until) } else { 0 };
        if sets.count() + gone <= if is_counted { index } else { 0 } {
            found.push(Finding {
                requirements: ids(breaks_by_early_end(ground, until)),
                sentence: format!(
                    "the client reported init_done at {} though no list, and no streaming list up to its end marker, had been sent whole",
                    words::time(reported.at.at)
                ),
                expected: "init_done after the last page, or after the bookmark that ends the initial events"
                    .to_owned(),
                actual: "init_done before".to_owned(),
                evidence: vec![until],
            });
        }
        from = until;
    }
    found
}

/// Returns the requirements that a client contradicts which reported init_done before any snapshot was complete.
fn breaks_by_early_end(ground: &Ground<'_, '_>, until: u64) -> &'static [&'static str] {
    let last = ground.trace.asked_before(until).last();
    let Some(stream) = last.filter(|read| read.verb == Verb::WatchList) else {
        return &["LIST-01"];
    };
    let sent = || stream.frames.iter().take_while(|sent| sent.sent.seq < until);
    let is_bookmark = |sent: &SentFrame<'_>| matches!(sent.frame.kind, FrameType::Bookmark { .. });
    if stream.over().is_some_and(|over| over.seq < until) {
        &["LIST-01", "WLIST-02", "WLIST-09"]
    } else if sent().any(is_bookmark) {
        &["LIST-01", "WLIST-02", "BOOKMARK-06"]
    } else {
        &["LIST-01", "WLIST-02"]
    }
}

/// Counts deletions sent before a position.
fn gone_before(ground: &Ground<'_, '_>, until: u64) -> usize {
    let states = ground.trace.deliveries.iter();
    states
        .filter(|state| state.op == Op::Gone && state.sent.seq < until)
        .count()
}

/// INV-13 (eventual consistency: the promise of every cache).
pub(super) fn convergence(ground: &Ground<'_, '_>) -> Vec<Finding> {
    let (scenario, trace) = (ground.scenario, ground.trace);
    let Some((ended, RunEnd::Complete | RunEnd::NotConverged { .. })) = trace.ended else {
        return Vec::new();
    };
    if scenario.expect.not_converged_because.is_some() {
        return Vec::new();
    }
    let end = trace.stop.map_or(ended.seq, |stop| stop.seq.min(ended.seq));
    let selected = ground.history.selected_before(end);
    let cache = Cache::after(trace.reports.iter().take_while(|reported| reported.at.seq < end));
    let wrong = difference(
        ground,
        &cache,
        |key| {
            selected
                .get(key)
                .map(|right| right.object.resource_version.as_str())
        },
        selected.keys().copied(),
    );
    let wrong = wrong.or_else(|| {
        cache.live().iter().find_map(|(key, held)| {
            let right = selected.get(key)?;
            // For a state created by the script the client knows only the scripted content.
            if ground.sources(held).any(|source| source.scripted) {
                return None;
            }
            let content = held.report.object()?.content.as_deref()?;
            let differs =
                |from: &StoreWrite| unlike(&from.content.as_ref()?.json(), content, scenario.client.mode);
            let (path, wants, has) = differs(right)?;
            // States of this version before a restore: the run ended before the client had a reason to read again.
            let mut states = ground.history.states(key, held.resource_version());
            if states.any(|state| state.content.is_some() && differs(state).is_none()) {
                return None;
            }
            let name = words::name(scenario, key);
            Some(format!("{name}{path} is {has} where the server has {wants}"))
        })
    });
    let Some(wrong) = wrong else { return Vec::new() };
    let state = |(key, version): &(&str, &str)| words::state(scenario, key, version);
    let right: Vec<(&str, &str)> = selected
        .iter()
        .map(|(key, right)| (*key, right.object.resource_version.as_str()))
        .collect();
    let held: Vec<(&str, &str)> = cache
        .live()
        .iter()
        .map(|(key, held)| (*key, held.resource_version()))
        .collect();
    let quiet = match trace.ended {
        Some((_, RunEnd::NotConverged { waited_ms })) => {
            format!(", after {} without faults", words::span(*waited_ms))
        }
        Some(_) | None => String::new(),
    };
    vec![Finding {
        requirements: scenario.expect.converges.clone(),
        sentence: format!("the client does not hold what the server holds at the end{quiet}: {wrong}"),
        expected: format!("{{{}}}", words::few(&right, 12, state)),
        actual: format!("{{{}}}", words::few(&held, 12, state)),
        evidence: vec![ended.seq],
    }]
}

/// Describes how keys and versions of the cache differ from the store.
fn difference<'k>(
    ground: &Ground<'_, '_>,
    cache: &Cache<'_, '_>,
    right: impl Fn(&str) -> Option<&'k str>,
    keys: impl Iterator<Item = &'k str>,
) -> Option<String> {
    let name = |key: &&str| words::name(ground.scenario, key).to_owned();
    let missing: Vec<&str> = keys.filter(|key| !cache.live().contains_key(key)).collect();
    let mut extra = Vec::new();
    let mut stale = Vec::new();
    for (key, held) in cache.live() {
        match right(key) {
            None => extra.push(*key),
            Some(version) if held.resource_version() != version && !held.resource_version().is_empty() => {
                stale.push((*key, held.resource_version(), version));
            }
            Some(_) => {}
        }
    }
    let mut wrong = Vec::new();
    if !missing.is_empty() {
        wrong.push(format!("{} missing", words::few(&missing, 4, name)));
    }
    if !extra.is_empty() {
        wrong.push(format!("{} still there", words::few(&extra, 4, name)));
    }
    if !stale.is_empty() {
        let change = |(key, held, version): &(&str, &str, &str)| {
            format!(
                "{} at {held} instead of {version}",
                words::name(ground.scenario, key)
            )
        };
        wrong.push(words::few(&stale, 4, change));
    }
    (!wrong.is_empty()).then(|| wrong.join("; "))
}

/// A difference of two objects: path, expected value, actual value.
type Difference = (String, String, String);

/// Returns the first difference of two objects, in the order of their fields. Typed clients drop unknown fields, so
/// missing values are ignored; different or additional ones count. In metadata mode only metadata is compared.
fn unlike(right: &Value, held: &Value, mode: ClientMode) -> Option<Difference> {
    let none = Map::new();
    let (right, held) = (
        right.as_object().unwrap_or(&none),
        held.as_object().unwrap_or(&none),
    );
    let counts = |key: &str| match mode {
        ClientMode::Metadata => key == "metadata",
        ClientMode::Watcher | ClientMode::Object => key != "apiVersion" && key != "kind",
    };
    let mut fields: Vec<(&String, &Value)> = held.iter().filter(|(key, _)| counts(key)).collect();
    fields.sort_unstable_by_key(|(key, _)| *key);
    fields
        .into_iter()
        .find_map(|(key, held)| within(key, below(right.get(key), held)))
}

fn below(right: Option<&Value>, held: &Value) -> Option<Difference> {
    match (right, held) {
        (_, held) if empty(held) => None,
        (Some(Value::Object(right)), Value::Object(held)) => held
            .iter()
            .find_map(|(key, held)| within(key, below(right.get(key), held))),
        (Some(Value::Array(right)), Value::Array(held)) if right.len() == held.len() => right
            .iter()
            .zip(held)
            .enumerate()
            .find_map(|(at, (right, held))| {
                let (path, right, held) = below(Some(right), held)?;
                Some((format!("[{at}]{path}"), right, held))
            }),
        (Some(right), held) if right == held => None,
        (right, held) => {
            let word = |value: Option<&Value>| match value {
                None => "absent".to_owned(),
                Some(value) => value.to_string().chars().take(60).collect(),
            };
            Some((String::new(), word(right), word(Some(held))))
        }
    }
}

fn within(key: &str, difference: Option<Difference>) -> Option<Difference> {
    difference.map(|(path, right, held)| (format!(".{key}{path}"), right, held))
}

/// Returns true for values that an encoder may add or omit.
fn empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

//! Where a client may list and watch from: INV-01 to INV-05. Uses only the server's side of the trace.

use std::collections::BTreeMap;
use std::time::Duration;

use ::trace::record::{Frame, FrameType, ObjectRef, Side, Verb};
use ::trace::report::Report;
use scenario::{ClientMode, Transport};

use self::origin::Origin;
use super::{Finding, Ground, ids};
use crate::trace::{End, Exchange, Moment, ResponseBody, SentFrame, Snapshot, Trace, readable};
use crate::words;

mod origin;

/// Minimum time that clients wait on a silent stream before they give it up.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// INV-01 (etcd: Resumable). A version that the server never sent, sent only in part, or sent for something else (an
/// item, a later page) is not a valid resume point.
pub(super) fn from_what_was_sent(ground: &Ground<'_, '_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for (watch, version) in pinned_watches(ground) {
        let Some(standing) = Standing::before(ground, watch) else {
            continue;
        };
        if standing.unknown || standing.allows(version) {
            continue;
        }
        let Origin { why, seq, breaks } = Origin::of(ground, watch, version);
        // Bytes that are not an event of a known type may still contain a version.
        if seq.is_none() && ground.opaque_before(watch.asked.seq) {
            continue;
        }
        let allowed: Vec<&str> = standing.allowed().collect();
        found.push(Finding {
            requirements: ids(&[breaks]),
            sentence: format!(
                "the client watched from {version} at {}, {why}; {}",
                words::time(watch.asked.at),
                match allowed.as_slice() {
                    [] => "it could only start again".to_owned(),
                    allowed => {
                        let allowed = words::few(allowed, 4, |version| (*version).to_owned());
                        format!("it could resume only from {allowed}")
                    }
                }
            ),
            expected: format!(
                "WATCH resourceVersion={}",
                standing.latest.last().copied().unwrap_or("(none)")
            ),
            actual: words::request(watch),
            evidence: seq.into_iter().chain([watch.asked.seq]).collect(),
        });
    }
    found
}

/// INV-02 (etcd: Resumable, Bookmarkable). Streams that were reset, given up, or followed by a reported error may
/// have lost their last lines, and lines after the first scripted one need not have been read. A streaming list does
/// not resume: it reads a new snapshot, not older than its version.
pub(super) fn from_the_latest(ground: &Ground<'_, '_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for (watch, version) in pinned_watches(ground).filter(|(watch, _)| watch.verb == Verb::Watch) {
        let Some(standing) = Standing::before(ground, watch) else {
            continue;
        };
        if standing.unknown
            || !standing.allows(version)
            || standing.lists.len() > 1
            || standing.latest.contains(&version)
        {
            continue;
        }
        let latest = standing.latest.last().copied().unwrap_or("(none)");
        found.push(Finding {
            requirements: ids(&[breaks_by_rewind(ground, standing.latest_seq)]),
            sentence: format!(
                "the client watched from {version} at {} though it had received everything up to {latest}",
                words::time(watch.asked.at)
            ),
            expected: format!("WATCH resourceVersion={latest}"),
            actual: words::request(watch),
            evidence: standing.latest_seq.into_iter().chain([watch.asked.seq]).collect(),
        });
    }
    found
}

/// INV-03 (list, then watch; API concepts, "Efficient detection of changes").
pub(super) fn not_before_a_snapshot(ground: &Ground<'_, '_>) -> Vec<Finding> {
    if ground.scenario.client.mode == ClientMode::Object {
        return Vec::new();
    }
    pinned_watches(ground)
        .filter(|(watch, _)| {
            let trace = ground.trace;
            let until = watch.asked.seq;
            trace.snapshot_before(until).is_none() && starts_without_list(trace, 0, until).next().is_none()
        })
        .map(|(watch, version)| Finding {
            requirements: ids(&[if streamed_before(ground.trace, watch.asked.seq) {
                "WLIST-09"
            } else {
                "LIST-01"
            }]),
            sentence: format!(
                "the client watched from {version} at {} before any list or streaming list was sent whole",
                words::time(watch.asked.at)
            ),
            expected: "a complete list first".to_owned(),
            actual: words::request(watch),
            evidence: vec![watch.asked.seq],
        })
        .collect()
}

/// INV-04 (API concepts: relist after 410; kubernetes/kubernetes#133810 for endless lists at the expired version).
pub(super) fn not_again_after_expiry(ground: &Ground<'_, '_>) -> Vec<Finding> {
    let trace = ground.trace;
    let watches: Vec<&Exchange<'_>> = pinned_watches(ground)
        .map(|(watch, _)| watch)
        .filter(|watch| watch.verb == Verb::Watch)
        .collect();
    let lists = PinnedLists::of(trace);
    let mut found = Vec::new();
    for expired in trace.watches() {
        let (Some(version), Some(at)) = (expired.pinned(), expired.expired()) else {
            continue;
        };
        if may_be_lost(expired) || may_have_given_up(ground, expired, at) {
            continue;
        }
        let next = watches.partition_point(|watch| watch.asked.seq <= at.seq);
        if let Some(next) = watches.get(next)
            && trace
                .snapshot_before(next.asked.seq)
                .is_none_or(|set| set.done.seq <= at.seq)
            && starts_without_list(trace, at.seq, next.asked.seq)
                .next()
                .is_none()
            && !may_have_stopped_before(ground, expired, at.seq, next.asked.seq)
        {
            found.push(Finding {
                requirements: ids(&[breaks_by_watching_again(expired)]),
                sentence: format!(
                    "the client watched from {} at {} though the server had sent 410 at {} and no new list was complete",
                    next.pinned().unwrap_or_default(),
                    words::time(next.asked.at),
                    words::time(at.at)
                ),
                expected: "a new LIST (or streaming list) after 410".to_owned(),
                actual: words::request(next),
                evidence: vec![at.seq, next.asked.seq],
            });
        }
        let pinned = lists.at(version, at.seq);
        if pinned.len() > 2 {
            found.push(Finding {
                requirements: ids(&["GONE-04"]),
                sentence: format!(
                    "the client listed at {version} {} times after the server had sent 410 for it: that version cannot succeed any more",
                    pinned.len()
                ),
                expected: "LIST without resourceVersion".to_owned(),
                actual: format!("{} × LIST resourceVersion={version}", pinned.len()),
                evidence: pinned.to_vec(),
            });
            break;
        }
    }
    found
}

/// Positions of lists, precomputed because each 410 of a long trace needs the lists after it.
struct PinnedLists<'a> {
    /// By version: lists at it which show that the client cannot get past it.
    shown: BTreeMap<&'a str, Vec<u64>>,
    /// Lists without a version.
    fresh: Vec<u64>,
}

impl<'a> PinnedLists<'a> {
    fn of(trace: &Trace<'a>) -> Self {
        let mut sets: BTreeMap<u64, Vec<&Snapshot<'a>>> = BTreeMap::new();
        for set in &trace.snapshots {
            sets.entry(set.began.seq).or_default().push(set);
        }
        let (mut shown, mut fresh): (BTreeMap<&str, Vec<u64>>, _) = (BTreeMap::new(), Vec::new());
        for list in trace.lists() {
            let seq = list.asked.seq;
            match (list.pinned(), list.status()) {
                (None, _) if list.query("continue").is_none() => fresh.push(seq),
                (Some(version), Some(410)) => shown.entry(version).or_default().push(seq),
                // A list that was truncated, whose next page was rejected, that was not a list or got past the
                // version, proves nothing.
                (Some(version), Some(200)) => {
                    let mut sets = sets.get(&seq).into_iter().flatten();
                    let is_whole = |set: &&Snapshot<'_>| {
                        set.resume.contains(&version)
                            && trace.exchange(set.stream).is_some_and(Exchange::is_whole)
                    };
                    if sets.any(is_whole) {
                        shown.entry(version).or_default().push(seq);
                    }
                }
                (None | Some(_), _) => {}
            }
        }
        Self { shown, fresh }
    }

    /// Returns the lists at `version` after `seq`, up to the next list without a version, which may return the
    /// version again.
    fn at(&self, version: &str, seq: u64) -> &[u64] {
        let Some(shown) = self.shown.get(version) else {
            return &[];
        };
        let fresh = self.fresh.partition_point(|fresh| *fresh <= seq);
        let until = self.fresh.get(fresh).copied().unwrap_or(u64::MAX);
        let after = shown.partition_point(|list| *list <= seq);
        let before = shown.partition_point(|list| *list < until);
        &shown[after..before]
    }
}

/// INV-05 (kubernetes/kubernetes#59848: version 0 may be served from a cache that lags far behind).
pub(super) fn no_rewind_by_choice(ground: &Ground<'_, '_>) -> Vec<Finding> {
    ground
        .trace
        .reads()
        .filter(|read| read.query("resourceVersion") == Some("0"))
        .filter_map(|read| {
            let (version, seq) = newest_seen(ground, read.asked.seq)?;
            Some(Finding {
                requirements: ids(&["LIST-05"]),
                sentence: format!(
                    "the client asked for resourceVersion=0 at {} though it had seen {version}: the answer may be older",
                    words::time(read.asked.at)
                ),
                expected: format!("resourceVersion={version} or none"),
                actual: words::request(read),
                evidence: vec![seq, read.asked.seq],
            })
        })
        .collect()
}

/// Returns the newest version that the client has certainly seen before a request, and the record that proves it. A
/// sent snapshot is not necessarily read: it was if the client watched from its version, or reported it.
fn newest_seen<'a>(ground: &Ground<'_, 'a>, before: u64) -> Option<(&'a str, u64)> {
    let trace = ground.trace;
    let usable = |set: &Snapshot<'a>| !set.scripted && set.resume.iter().any(|version| *version != "0");
    let asked = trace.asked_before(before).iter().rev();
    let used = asked
        .filter(|read| read.is_watch())
        .find_map(|watch| Some((watch, watch.pinned()?)))
        .filter(|(watch, _)| trace.snapshots_before(watch.asked.seq).iter().rev().any(usable));
    // For a slow consumer an init_done may belong to an earlier snapshot.
    let is_slow = ground.scenario.client.consumer_delay_ms > 0;
    let until = trace.reports.partition_point(|reported| reported.at.seq < before);
    let reported = trace.reports[..until]
        .iter()
        .rev()
        .find(|reported| !is_slow && matches!(reported.report, Report::InitDone))
        .and_then(|done| trace.snapshot_before(done.at.seq))
        .filter(|set| usable(set));
    match (used, reported) {
        (Some((watch, version)), set) if set.is_none_or(|set| set.done.seq < watch.asked.seq) => {
            Some((version, watch.asked.seq))
        }
        (_, Some(set)) => Some((set.resume.first().copied()?, set.done.seq)),
        (_, None) => None,
    }
}

/// Returns WATCH and streaming-list requests that start from a version, in order.
pub(super) fn pinned_watches<'t, 'a>(
    ground: &Ground<'t, 'a>,
) -> impl Iterator<Item = (&'t Exchange<'a>, &'a str)> + use<'t, 'a> {
    ground
        .trace
        .watches()
        .filter_map(|watch| Some((watch, watch.pinned()?)))
}

/// Returns the watches between two positions that began without a version and were accepted: a loop starts with one as
/// with a list ("Get State and Start at Any", API concepts), even if it ends with an ERROR.
fn starts_without_list<'t, 'a>(
    trace: &'t Trace<'a>,
    after: u64,
    before: u64,
) -> impl Iterator<Item = &'t Exchange<'a>> {
    let asked = trace.asked_before(before).iter();
    asked.filter(move |start| {
        start.asked.seq >= after
            && start.verb == Verb::Watch
            && start.pinned().is_none()
            && start.status() == Some(200)
    })
}

/// Returns true if the client may not have read all bytes sent in this response.
fn may_be_lost(exchange: &Exchange<'_>) -> bool {
    exchange.end.is_some_and(|end| {
        end.by == Side::Server && (end.how.may_lose_bytes() || exchange.left_by(end.at.at))
    }) || matches!(exchange.answer, Some(ResponseBody::Torn { .. }))
}

/// Returns true if the client may have been giving up the stream when this was sent: it had just reported an error,
/// or had received nothing for as long as clients wait, and it left at that instant. If the server ended an HTTP/2
/// stream meanwhile, there is no record of the client leaving.
fn may_have_given_up(ground: &Ground<'_, '_>, exchange: &Exchange<'_>, sent: Moment) -> bool {
    let is_http2 = ground.scenario.server.transport == Transport::TlsHttp2;
    ground.failed_at_once(exchange, sent)
        || (silence_before(exchange, sent.at) >= PATIENCE && (is_http2 || exchange.left_by(sent.at)))
}

/// Returns true if the client may have stopped reading at an event before `seq`: it reported an error in place of
/// that event, before it sent the request at `until`.
fn may_have_stopped_before(ground: &Ground<'_, '_>, exchange: &Exchange<'_>, seq: u64, until: u64) -> bool {
    let reports = &ground.trace.reports;
    let since = reports.partition_point(|reported| reported.at.seq < exchange.asked.seq);
    let is_reported = |object: &ObjectRef| {
        reports[since..]
            .iter()
            .take_while(|reported| reported.at.seq < until)
            .any(|reported| {
                reported.key == object.key && reported.resource_version() == object.resource_version
            })
    };
    exchange
        .frames
        .iter()
        .filter(|sent| sent.sent.seq < seq && !matches!(sent.frame.kind, FrameType::Bookmark { .. }))
        .filter_map(|sent| Some((sent.sent.seq, sent.frame.object.as_deref()?)))
        .any(|(sent, object)| ground.may_have_failed_between(sent, until) && !is_reported(object))
}

/// Returns how long the client had received nothing at an instant, ignoring other records of that instant.
fn silence_before(exchange: &Exchange<'_>, at: Duration) -> Duration {
    let head = exchange.head.map(|head| head.sent.at);
    let frames = exchange.frames.iter().map(|sent| sent.sent.at);
    let heard = frames
        .chain(head)
        .chain([exchange.asked.at])
        .filter(|heard| *heard < at)
        .max();
    heard.map_or(Duration::ZERO, |heard| at - heard)
}

/// Returns true if the client may have rejected this snapshot: it reported an error after it, but no snapshot before
/// the error, and did not watch from there. For a slow consumer reports come late, and an init_done may belong to an
/// earlier snapshot.
fn may_be_refused(ground: &Ground<'_, '_>, set: &Snapshot<'_>, until: u64) -> bool {
    let trace = ground.trace;
    let is_slow = ground.scenario.client.consumer_delay_ms > 0;
    let is_watched = trace
        .asked_before(until)
        .iter()
        .rev()
        .take_while(|watch| watch.asked.seq > set.done.seq)
        .any(|watch| watch.is_watch() && watch.pinned().is_some_and(|from| set.resume.contains(&from)));
    let since = trace
        .reports
        .partition_point(|reported| reported.at.seq < set.done.seq);
    let first = trace.reports[since..]
        .iter()
        .take_while(|reported| is_slow || reported.at.seq < until)
        .find(|reported| {
            matches!(reported.report, Report::Error { .. })
                || (!is_slow && matches!(reported.report, Report::InitDone))
        });
    !is_watched && first.is_some_and(|reported| matches!(reported.report, Report::Error { .. }))
}

/// What a client may know just before a watch request.
pub(super) struct Standing<'t, 'a> {
    /// The last certain snapshot, and possible snapshots after it.
    pub(super) lists: &'t [Snapshot<'a>],
    /// Requests before the watch.
    asked: &'t [Exchange<'a>],
    /// Range of the trace in which it was received.
    from: u64,
    until: u64,
    /// Versions, one of which is the latest received.
    pub(super) latest: Vec<&'a str>,
    pub(super) latest_seq: Option<u64>,
    /// A snapshot whose content is not in the trace was sent since.
    pub(super) unknown: bool,
}

impl<'t, 'a> Standing<'t, 'a> {
    /// Returns `None` before the first snapshot, or watch without a version.
    pub(super) fn before(ground: &Ground<'t, 'a>, watch: &Exchange<'a>) -> Option<Self> {
        let trace = ground.trace;
        let until = watch.asked.seq;
        let done = trace.snapshots_before(until);
        let base = done
            .iter()
            .rposition(|set| {
                let may_be_unread = || {
                    let stream = trace.exchange(set.stream);
                    stream.is_some_and(|stream| may_have_given_up(ground, stream, set.done))
                };
                !set.scripted && !set.opaque && !may_be_refused(ground, set, until) && !may_be_unread()
            })
            .unwrap_or(0);
        let lists = &done[base..];
        let from = match lists.first() {
            Some(set) => set.done.seq,
            None => starts_without_list(trace, 0, until).next()?.asked.seq,
        };
        let mut standing = Standing {
            lists,
            asked: trace.asked_before(until),
            from,
            until,
            latest: lists.iter().flat_map(|set| set.resume.iter().copied()).collect(),
            latest_seq: Some(from),
            unknown: lists.iter().any(|set| set.opaque),
        };
        for stream in standing.asked.iter().filter(|stream| stream.is_watch()) {
            standing.read(ground, stream);
        }
        Some(standing)
    }

    /// Returns the versions a watch may resume from: those of the snapshots, then those of events and bookmarks
    /// received completely since.
    pub(super) fn allowed(&self) -> impl Iterator<Item = &'a str> {
        let since = self
            .asked
            .iter()
            .filter(|stream| stream.is_watch())
            .flat_map(|stream| received(stream, self.from, self.until))
            .map(|line| line.version);
        self.lists
            .iter()
            .flat_map(|set| set.resume.iter().copied())
            .chain(since)
    }

    pub(super) fn allows(&self, version: &str) -> bool {
        self.allowed().any(|allowed| allowed == version)
    }

    fn read(&mut self, ground: &Ground<'t, 'a>, stream: &Exchange<'a>) {
        if stream.asked.seq > self.from
            && let Some(version) = stream.pinned()
        {
            // The version a watch resumes from shows which of the possibly lost lines were read. A watch from before
            // all of them resets nothing: only what it receives then is newer.
            if self.latest.contains(&version) {
                self.latest.clear();
            }
            self.latest.push(version);
            self.latest_seq = Some(stream.asked.seq);
        }
        // Most streams of a retry storm are empty, and what follows reads the whole trace.
        if stream.frames.is_empty() {
            return;
        }
        let is_left = |end: End| may_have_given_up(ground, stream, end.at);
        let certain = stream.read_to_end()
            && !stream.end.is_some_and(is_left)
            && !ground.may_have_failed_between(stream.asked.seq, self.until);
        for line in received(stream, self.from, self.until) {
            if certain && line.certain {
                self.latest.clear();
            }
            self.latest.push(line.version);
            self.latest_seq = Some(line.seq);
        }
    }
}

/// A line of a watch that advances its reader to a version.
struct Received<'a> {
    seq: u64,
    version: &'a str,
    /// This line and all before it on the stream are unmodified, and could be read.
    certain: bool,
}

/// Returns these lines of a stream between two positions (both exclusive).
fn received<'s, 'a>(
    stream: &'s Exchange<'a>,
    from: u64,
    until: u64,
) -> impl Iterator<Item = Received<'a>> + use<'s, 'a> {
    let mut started = stream.pinned().is_some() && stream.verb == Verb::Watch;
    let mut certain = true;
    let before = move |sent: &&SentFrame<'a>| sent.sent.seq < until;
    stream.frames.iter().take_while(before).filter_map(move |sent| {
        // Versions of initial events are unordered: they are no resume points before the first frame that cannot be
        // one of them (kubernetes-client/python#819, client-go propagateRVFromStart; KEP-3157).
        started |= starts_live(stream.verb, sent.frame)
            || (stream.verb == Verb::Watch && stream.is_created_since(sent.frame));
        let version = resumes_from(sent.frame);
        certain &= !sent.frame.scripted && readable(sent.frame) && version.is_some();
        let seq = sent.sent.seq;
        Some(Received {
            seq,
            version: version.filter(|_| started && seq > from)?,
            certain,
        })
    })
}

/// Returns true for a frame after which the stream is past its initial events.
pub(crate) fn starts_live(verb: Verb, frame: &Frame) -> bool {
    match &frame.kind {
        FrameType::Bookmark { initial_events_end } => {
            verb != Verb::WatchList || initial_events_end.as_deref() == Some("true")
        }
        FrameType::Modified | FrameType::Deleted => verb != Verb::WatchList,
        FrameType::Added | FrameType::Error { .. } | FrameType::Raw => false,
    }
}

/// Returns the version that a complete frame advances a client to.
pub(crate) fn resumes_from(frame: &Frame) -> Option<&str> {
    match &frame.kind {
        FrameType::Added | FrameType::Modified | FrameType::Deleted | FrameType::Bookmark { .. } => frame
            .object
            .as_ref()
            .filter(|_| readable(frame))
            .map(|object| object.resource_version.as_str())
            .filter(|version| !version.is_empty()),
        FrameType::Error { .. } | FrameType::Raw => None,
    }
}

/// Returns the requirement that a client contradicts which resumed from an earlier version than the one it received
/// at `latest`.
fn breaks_by_rewind(ground: &Ground<'_, '_>, latest: Option<u64>) -> &'static str {
    let watches = ground.trace.watches();
    let mut frames = watches.flat_map(|stream| &stream.frames);
    let last = latest.and_then(|latest| frames.find(|sent| sent.sent.seq == latest));
    match last.map(|sent| &sent.frame.kind) {
        Some(FrameType::Bookmark { .. }) => "BOOKMARK-02",
        Some(FrameType::Deleted) => "EVENT-03",
        Some(FrameType::Added | FrameType::Modified | FrameType::Error { .. } | FrameType::Raw) | None => {
            "WATCH-01"
        }
    }
}

/// Returns the requirement that a client contradicts which watched again after this watch had expired.
fn breaks_by_watching_again(expired: &Exchange<'_>) -> &'static str {
    let is_ended = expired.end.is_some_and(|end| end.by == Side::Server);
    let has_reason = match (&expired.answer, expired.error_frame()) {
        (_, Some((_, _, reason))) => !reason.is_empty(),
        (Some(ResponseBody::Body(body)), None) => body.reason.is_some_and(|reason| !reason.is_empty()),
        (Some(ResponseBody::Page(_) | ResponseBody::Torn { .. }) | None, None) => false,
    };
    match (has_reason, expired.status() == Some(410), is_ended) {
        (false, _, _) => "GONE-10",
        (true, true, _) => "GONE-02",
        (true, false, true) => "GONE-01",
        (true, false, false) => "GONE-09",
    }
}

/// Whether events of a streaming list were sent before a position.
fn streamed_before(trace: &Trace<'_>, seq: u64) -> bool {
    let asked = trace.asked_before(seq).iter();
    asked
        .filter(|stream| stream.verb == Verb::WatchList)
        .any(|stream| !stream.frames.is_empty())
}

//! Requests: valid, not too frequent, one at a time, none after stop (INV-15 to INV-18, INV-22).

use std::time::Duration;

use ::trace::fault::Ending;
use ::trace::record::{FrameType, Side};

use super::{Finding, Ground, ids};
use crate::trace::{Exchange, Moment, ResponseBody, readable};
use crate::words;

/// Time for a client to close a response that it no longer reads (CLOSE-01).
const CLOSING: Duration = Duration::from_secs(2);
/// Time for requests and reports in flight when stop was called.
const ON_THE_WAY: Duration = Duration::from_millis(100);
/// Minimum lifetime of a watch; shorter ones ended immediately (client-go: "very short watch").
const AT_ONCE: Duration = Duration::from_secs(1);
/// The budget: after this many requests …
const FREE_REQUESTS: usize = 5;
/// … at most this many in any window, which is 1.5 per second.
const WINDOW_REQUESTS: usize = 45;
const WINDOW: Duration = Duration::from_secs(30);
/// What a client that keeps failing is expected to keep to: exceeding it is one violation, however long it lasts.
pub(crate) const RATE: &str = "at most 1.5 requests a second over 30 s while failing";
/// So many requests in this time are a hot loop: ten a second.
const HOT_LOOP: Duration = Duration::from_millis(4_500);
/// Longest `Retry-After` that is enforced, because a client may cap it: a server that sends hours by mistake would
/// switch the client off (our watcher caps at 10 min).
const RETRY_AFTER_MAX: Duration = Duration::from_secs(600);
/// Start of the server's message about a non-numeric version.
const INVALID_VERSION: &str = "resourceVersion: Invalid value";
/// Tolerance for requests before `Retry-After` is over: clocks differ.
const RETRY_AFTER_SLACK: Duration = Duration::from_millis(50);

/// INV-15 (apimachinery `ValidateListOptions`; API concepts, tables of list and watch parameters). Exceptions: a
/// client may learn by a request that an older server lacks a feature, and a non-numeric version is the server's
/// fault if the server sent it.
pub(super) fn legal(ground: &Ground<'_, '_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for read in ground.trace.reads() {
        let of_the_server = |violation: &str| {
            violation.starts_with(INVALID_VERSION)
                && read
                    .query("resourceVersion")
                    .is_some_and(|version| ground.sent_version(version, read.asked.seq))
        };
        let broken: Vec<&str> = read
            .violations
            .iter()
            .map(String::as_str)
            .filter(|violation| !violation.contains("feature gate") && !of_the_server(violation))
            .collect();
        if broken.is_empty() {
            continue;
        }
        let of_streaming_list = read.query("sendInitialEvents").is_some();
        found.push(Finding {
            requirements: ids(&[if of_streaming_list { "WLIST-01" } else { "LIST-06" }]),
            sentence: format!(
                "the client sent an illegal request at {}: {}: {}",
                words::time(read.asked.at),
                words::request(read),
                broken.join("; ")
            ),
            expected: "a request the server's validation accepts".to_owned(),
            actual: words::request(read),
            evidence: vec![read.asked.seq],
        });
    }
    found
}

/// INV-16 (client-go's backoff; API Priority and Fairness; KEP-4568 for Retry-After).
pub(super) fn rate(ground: &Ground<'_, '_>) -> Vec<Finding> {
    let mut found = too_soon(ground);
    found.extend(over_budget(ground));
    found
}

fn too_soon(ground: &Ground<'_, '_>) -> Vec<Finding> {
    let reads: Vec<&Exchange<'_>> = ground.trace.reads().collect();
    let mut found = Vec::new();
    for (index, refused) in reads.iter().enumerate() {
        let Some(head) = refused.head.filter(|head| matches!(head.status, 429 | 503)) else {
            continue;
        };
        let Some(seconds) = head
            .retry_after
            .and_then(|after| after.trim().parse::<u64>().ok())
        else {
            continue;
        };
        let Some(next) = reads[index + 1..]
            .iter()
            .find(|next| next.asked.seq > head.sent.seq)
        else {
            continue;
        };
        let gap = next.asked.at.saturating_sub(head.sent.at);
        // The cap that the scenario configures, or the shortest of those that clients have.
        let cap = ground.scenario.client.backoff.retry_after_max_ms;
        let due = Duration::from_secs(seconds).min(cap.map_or(RETRY_AFTER_MAX, Duration::from_millis));
        let is_unread =
            lost(refused) || refused.left_by(head.sent.at) || ground.failed_at_once(refused, head.sent);
        if is_unread || gap + RETRY_AFTER_SLACK >= due {
            continue;
        }
        found.push(Finding {
            requirements: ids(&[if head.status == 429 {
                "RETRY-05"
            } else {
                "RETRY-13"
            }]),
            sentence: format!(
                "the client sent {} only {} after {} with Retry-After: {seconds}",
                words::request(next),
                words::span(gap.as_millis() as u64),
                head.status
            ),
            expected: format!("nothing for {} s", due.as_secs()),
            actual: format!("a request after {}", words::span(gap.as_millis() as u64)),
            evidence: vec![head.sent.seq, next.asked.seq],
        });
    }
    found
}

fn over_budget(ground: &Ground<'_, '_>) -> Vec<Finding> {
    let trace = ground.trace;
    // Requests in order, with whether each leaves the client failing, and whether it was refused.
    let mut tries: Vec<(Moment, bool, bool)> = trace.refused.iter().map(|at| (*at, true, true)).collect();
    let mut watch_failed = false;
    for read in trace.reads() {
        let failing = if read.is_watch() {
            let failing = watch_fails(read);
            watch_failed |= failing == Some(true);
            failing
        } else {
            list_fails(read, &mut watch_failed)
        };
        let is_refused = read.status().is_none_or(|status| status >= 300);
        tries.extend(failing.map(|failing| (read.asked, failing, is_refused)));
    }
    tries.sort_unstable();
    let mut streak: Vec<Moment> = Vec::new();
    let mut refused = 0;
    for (at, failing, is_refused) in tries {
        if !failing {
            streak.clear();
            refused = 0;
            continue;
        }
        streak.push(at);
        refused += usize::from(is_refused);
        let counted = &streak[streak.len().min(FREE_REQUESTS)..];
        let Some(first) = counted
            .len()
            .checked_sub(WINDOW_REQUESTS + 1)
            .map(|first| counted[first])
        else {
            continue;
        };
        if at.at - first.at < WINDOW {
            return vec![Finding {
                requirements: ids(match (refused, at.at - first.at < HOT_LOOP) {
                    (0, true) => &["RETRY-07", "RETRY-14"],
                    (0, false) => &["RETRY-14"],
                    _ => &["RETRY-01"],
                }),
                sentence: format!(
                    "the client kept failing and sent {} requests within {} from {} on",
                    WINDOW_REQUESTS + 1,
                    words::span((at.at - first.at).as_millis() as u64),
                    words::time(first.at)
                ),
                expected: RATE.to_owned(),
                actual: format!(
                    "{} requests in {}",
                    WINDOW_REQUESTS + 1,
                    words::span((at.at - first.at).as_millis() as u64)
                ),
                evidence: vec![first.seq, at.seq],
            }];
        }
    }
    Vec::new()
}

/// Returns false for a watch that lasted, which shows that the client got through; `None` for one that the client
/// closed without an error.
fn watch_fails(read: &Exchange<'_>) -> Option<bool> {
    if read.status().is_none_or(|status| status >= 300) {
        return Some(true);
    }
    let lived = read
        .over()
        .is_none_or(|over| over.at.saturating_sub(read.asked.at) >= AT_ONCE);
    if lived {
        return Some(false);
    }
    let by_server = match (read.end, read.disconnected) {
        (Some(end), _) => end.by == Side::Server,
        (None, Some((_, by))) => by == Side::Server,
        (None, None) => false,
    };
    let troubled = read.frames.iter().any(|sent| {
        sent.frame.scripted || !readable(sent.frame) || matches!(sent.frame.kind, FrameType::Error { .. })
    });
    (by_server || troubled).then_some(true)
}

/// Returns whether a list counts as a failure. A successful list is neither failure nor recovery, because 410,
/// relist, 410 … is failing too: it counts once for every watch that failed before it. A successful page is progress.
fn list_fails(read: &Exchange<'_>, watch_failed: &mut bool) -> Option<bool> {
    let refused = read.status().is_none_or(|status| status >= 300);
    let answered = !refused && matches!(read.answer, Some(ResponseBody::Page(_) | ResponseBody::Body(_)));
    if !answered {
        return Some(true);
    }
    (read.page <= 1 && std::mem::take(watch_failed)).then_some(true)
}

fn lost(exchange: &Exchange<'_>) -> bool {
    exchange
        .end
        .is_some_and(|end| end.how.may_lose_bytes() && end.by == Side::Server)
}

/// INV-17 (RETRY-10): two watches feeding one cache interleave. A dropped watch is recorded as closed with some
/// delay.
pub(super) fn single_flight(ground: &Ground<'_, '_>) -> Vec<Finding> {
    let trace = ground.trace;
    let last = trace.last().map(|last| last.at).unwrap_or_default();
    let mut found = Vec::new();
    let mut open: Vec<&Exchange<'_>> = Vec::new();
    for read in trace.reads() {
        open.retain(|earlier| earlier.over().is_none_or(|over| over.seq > read.asked.seq));
        let deadline = read.asked.at + CLOSING;
        let rival = open.iter().find(|earlier| {
            earlier.is_watch() == read.is_watch()
                && match earlier.over() {
                    Some(over) => over.at > deadline,
                    None => last > deadline,
                }
        });
        if let Some(rival) = rival {
            let (kind, kinds) = if read.is_watch() {
                ("watch", "watches")
            } else {
                ("list", "lists")
            };
            found.push(Finding {
                requirements: ids(if read.is_watch() {
                    &["RETRY-10", "CLOSE-04"]
                } else {
                    &["RETRY-10"]
                }),
                sentence: format!(
                    "the client had two {kinds} at once: {} at {} while {} of {} was still open",
                    words::request(read),
                    words::time(read.asked.at),
                    words::request(rival),
                    words::time(rival.asked.at)
                ),
                expected: format!("one {kind} at a time"),
                actual: "two".to_owned(),
                evidence: vec![rival.asked.seq, read.asked.seq],
            });
        }
        open.push(read);
    }
    found
}

/// INV-18 (CLOSE-01, CLOSE-02; client-go's goroutine leak test).
pub(super) fn quiescence(ground: &Ground<'_, '_>) -> Vec<Finding> {
    let trace = ground.trace;
    let Some(stop) = trace.stop else { return Vec::new() };
    let late = stop.at + ON_THE_WAY;
    let mut found = Vec::new();
    let mut add = |breaks: &str, sentence: String, expected: &str, actual: String, seq: u64| {
        found.push(Finding {
            requirements: ids(&[breaks]),
            sentence,
            expected: expected.to_owned(),
            actual,
            evidence: vec![stop.seq, seq],
        });
    };
    for read in trace
        .exchanges
        .iter()
        .filter(|read| read.asked.seq > stop.seq && read.asked.at > late)
    {
        let what = words::request(read);
        let after = words::span((read.asked.at - stop.at).as_millis() as u64);
        add(
            "CLOSE-02",
            format!("the client sent {what} {after} after it was stopped"),
            "no request",
            what,
            read.asked.seq,
        );
    }
    for said in trace
        .reports
        .iter()
        .filter(|said| said.at.seq > stop.seq && said.at.at > late)
    {
        let what = words::report(ground.scenario, said);
        let after = words::span((said.at.at - stop.at).as_millis() as u64);
        add(
            "CLOSE-02",
            format!("the client reported {what} {after} after it was stopped"),
            "no report",
            what,
            said.at.seq,
        );
    }
    let last = trace.last().map(|last| last.at).unwrap_or_default();
    for open in trace.reads().filter(|open| open.asked.seq < stop.seq) {
        // A stalled response is over for the server, but the client still holds the connection.
        let stalled = open
            .end
            .is_some_and(|end| end.how == Ending::Stall && end.by == Side::Server);
        let closed = if stalled {
            open.disconnected.map(|(at, _)| at)
        } else {
            open.over()
        };
        let overdue = match closed {
            Some(closed) => closed.at > stop.at + CLOSING,
            None => last >= stop.at + CLOSING,
        };
        if overdue {
            let what = words::request(open);
            let is_slow = ground.scenario.client.consumer_delay_ms > 0;
            let breaks = match (is_slow, open.is_watch()) {
                (true, _) => "CLOSE-03",
                (false, true) => "CLOSE-01",
                (false, false) => "CLOSE-02",
            };
            add(
                breaks,
                format!("the client left {what} open for more than 2 s after it was stopped"),
                "every stream closed within 2 s",
                format!("{what} still open"),
                open.asked.seq,
            );
        }
    }
    found
}

/// INV-22 (KEP-365; ListOptions.Continue).
pub(super) fn token_hygiene(ground: &Ground<'_, '_>) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut attempt: Vec<&Exchange<'_>> = Vec::new();
    for list in ground.trace.lists() {
        let Some(token) = list.query("continue") else {
            attempt = vec![list];
            continue;
        };
        if let Some((breaks, why, seq)) = misused(ground, &attempt, list, token) {
            found.push(Finding {
                requirements: ids(&[breaks]),
                sentence: format!(
                    "the client asked for page {} at {} with {why}",
                    list.page,
                    words::time(list.asked.at)
                ),
                expected: "the token of the page before, with the parameters of the first page".to_owned(),
                actual: words::request(list),
                evidence: vec![seq, list.asked.seq],
            });
        }
        attempt.push(list);
    }
    found
}

/// Returns the requirement that a request for a page contradicts, why, and the record that proves it.
fn misused(
    ground: &Ground<'_, '_>,
    attempt: &[&Exchange<'_>],
    list: &Exchange<'_>,
    token: &str,
) -> Option<(&'static str, String, u64)> {
    let Some(first) = attempt.first() else {
        return Some((
            "PAGE-02",
            "a continue token before any list".to_owned(),
            list.asked.seq,
        ));
    };
    // The newest response that may have contained a token; responses whose content is not in the trace may contain
    // any.
    let mut given = None;
    for asked in attempt.iter().rev() {
        match &asked.answer {
            Some(ResponseBody::Page(page)) => {
                given = Some((page.continue_token, page.sent.seq));
                // A page that the client rejected or abandoned is requested again with the token of the previous
                // page.
                let taken = !page.scripted
                    && asked.read_to_end()
                    && !ground.failed_at_once(asked, page.sent)
                    && !ground.may_have_failed_between(page.sent.seq, list.asked.seq);
                if taken || page.continue_token == token {
                    break;
                }
            }
            Some(ResponseBody::Body(_)) if asked.status().is_some_and(|status| status < 300) => return None,
            Some(ResponseBody::Body(body)) => {
                if let Some(offered) = body.continue_token {
                    if offered == token {
                        given = Some((offered, body.sent.seq));
                        break;
                    }
                } else if asked.status() == Some(410)
                    && asked.query("continue") == Some(token)
                    && !lost(asked)
                    && !ground.failed_at_once(asked, body.sent)
                {
                    return Some((
                        "PAGE-05",
                        "a token the server had refused with 410".to_owned(),
                        body.sent.seq,
                    ));
                }
            }
            Some(ResponseBody::Torn {
                bytes_sent, bytes, ..
            }) if bytes_sent >= bytes => return None,
            Some(ResponseBody::Torn { .. }) | None => {}
        }
    }
    match given {
        Some((given, _)) if given == token => {}
        Some(("", seq)) => {
            return Some((
                "PAGE-02",
                "a token although the list was complete".to_owned(),
                seq,
            ));
        }
        Some((_, seq)) => return Some(("PAGE-02", "a token the page before had not given".to_owned(), seq)),
        None => {
            return Some((
                "PAGE-02",
                "a token no page of this list had given".to_owned(),
                first.asked.seq,
            ));
        }
    }
    let changed = first_difference(first, list)?;
    Some((
        "PAGE-02",
        format!("another {changed} than the first page had"),
        first.asked.seq,
    ))
}

/// Returns the parameter in which two pages of a list differ, ignoring those that belong to a single page.
fn first_difference<'a>(first: &Exchange<'a>, list: &Exchange<'a>) -> Option<&'a str> {
    if first.path != list.path {
        return Some("path");
    }
    let own = |name: &str| matches!(name, "continue" | "resourceVersion" | "resourceVersionMatch");
    let names = first
        .query
        .iter()
        .chain(list.query)
        .map(|(name, _)| name.as_str());
    names
        .filter(|name| !own(name))
        .find(|name| first.query(name) != list.query(name))
}

//! Invariants of every list/watch client in every scenario, regardless of the script (INV-01 to INV-22).
//!
//! Each invariant is a pure function of scenario and trace. It must be *sound*: a client that meets the requirements
//! never violates it. Where the server sent scripted frames, heads or pages (`scripted`), lost bytes, or sent a body
//! whose content is not in the trace, an invariant is skipped if in doubt.
//!
//! The names Ordered, Unique, Reliable, Resumable and Bookmarkable are those of etcd's watch guarantees (etcd v3.6,
//! "API guarantees", and its robustness tests); Kubernetes adds the rest.

use ::trace::report::Report;
use scenario::{Contract, Place, Scenario};

use crate::history::History;
use crate::trace::{Delivery, Exchange, Moment, Op, Reported, ResponseBody, Trace, any_between};
use crate::verdict::{Check, Contradiction};

mod cache;
mod events;
mod requests;
mod resume;

pub(crate) use requests::RATE;
pub(crate) use resume::{PATIENCE, resumes_from, starts_live};

/// An invariant.
pub struct Invariant {
    /// Id, e.g. `INV-07`.
    pub id: &'static str,
    /// The invariant, in one line.
    pub statement: &'static str,
    /// Requirements of the catalogue that a violation may contradict; each violation names its own. Empty: those that the
    /// scenario names under `converges`.
    pub requirements: &'static [&'static str],
    find: fn(&Ground<'_, '_>) -> Vec<Finding>,
}

/// All invariants, by id.
pub const INVARIANTS: [Invariant; 22] = [
    Invariant {
        id: "INV-01",
        statement: "a watch starts from the version of the last complete list, or of a later event or bookmark received completely",
        requirements: &[
            "LIST-02", "WATCH-01", "WATCH-05", "WATCH-10", "PAGE-04", "PAGE-06", "WLIST-05", "CONN-01",
        ],
        find: resume::from_what_was_sent,
    },
    Invariant {
        id: "INV-02",
        statement: "a watch resumes from the latest version received, not from an earlier one",
        requirements: &["WATCH-01", "BOOKMARK-02", "EVENT-03"],
        find: resume::from_the_latest,
    },
    Invariant {
        id: "INV-03",
        statement: "no watch starts from a version before a complete list was received",
        requirements: &["LIST-01", "WLIST-09"],
        find: resume::not_before_a_snapshot,
    },
    Invariant {
        id: "INV-04",
        statement: "after 410 on a watch, no watch from a version before a new list was received, and no endless lists at the expired version",
        requirements: &["GONE-01", "GONE-02", "GONE-04", "GONE-09", "GONE-10"],
        find: resume::not_again_after_expiry,
    },
    Invariant {
        id: "INV-05",
        statement: "resourceVersion=0 is never requested once a newer version was seen",
        requirements: &["LIST-05"],
        find: resume::no_rewind_by_choice,
    },
    Invariant {
        id: "INV-06",
        statement: "every reported state is one the server sent, and states of an object are reported in the server's order",
        requirements: &["ORDER-01"],
        find: events::subsequence,
    },
    Invariant {
        id: "INV-07",
        statement: "no unmodified event of a stream is skipped when a later one of the same stream is reported",
        requirements: &["WATCH-03", "EVENT-07"],
        find: events::reliable,
    },
    Invariant {
        id: "INV-08",
        statement: "between two relists no change is reported twice",
        requirements: &["ORDER-02"],
        find: events::unique,
    },
    Invariant {
        id: "INV-09",
        statement: "a relist is reported without other events in between: init, init_apply…, init_done",
        requirements: &["GONE-06", "WLIST-02"],
        find: cache::relist_in_one_piece,
    },
    Invariant {
        id: "INV-10",
        statement: "a relist reports exactly the objects the server sent",
        requirements: &["PAGE-07", "PAGE-10", "WLIST-03", "WLIST-04"],
        find: cache::relist_equals_snapshot,
    },
    Invariant {
        id: "INV-11",
        statement: "when a watch resumes from a version, the cache equals the store at that version",
        requirements: &["WATCH-03"],
        find: cache::resume_means_in_step,
    },
    Invariant {
        id: "INV-12",
        statement: "init_done is reported only after a complete list, or a streaming list up to its end marker",
        requirements: &["LIST-01", "BOOKMARK-06", "WLIST-02", "WLIST-09"],
        find: cache::synced_only_when_complete,
    },
    Invariant {
        id: "INV-13",
        statement: "after the last fault, the cache converges to the store",
        requirements: &[],
        find: cache::convergence,
    },
    Invariant {
        id: "INV-14",
        statement: "no object outside the namespace and selectors is reported as existing",
        requirements: &["SEL-01"],
        find: events::filter,
    },
    Invariant {
        id: "INV-15",
        statement: "every request passes the server's validation of list options",
        requirements: &["LIST-06", "WLIST-01"],
        find: requests::legal,
    },
    Invariant {
        id: "INV-16",
        statement: "failing requests keep to 1.5 a second over any 30 s after the fifth, and Retry-After is honoured",
        requirements: &["RETRY-01", "RETRY-05", "RETRY-07", "RETRY-13", "RETRY-14"],
        find: requests::rate,
    },
    Invariant {
        id: "INV-17",
        statement: "at most one watch is open and at most one list in flight",
        requirements: &["RETRY-10", "CLOSE-04"],
        find: requests::single_flight,
    },
    Invariant {
        id: "INV-18",
        statement: "after stop nothing is requested or reported, and every stream is closed within 2 s",
        requirements: &["CLOSE-01", "CLOSE-02", "CLOSE-03"],
        find: requests::quiescence,
    },
    Invariant {
        id: "INV-19",
        statement: "nothing is reported from a truncated line",
        requirements: &["CONN-01"],
        find: events::no_partial_frames,
    },
    Invariant {
        id: "INV-20",
        statement: "an object that was reported deleted does not come back by itself, and the cached uid is the server's",
        requirements: &["EVENT-08", "ORDER-01", "ORDER-04"],
        find: events::identity,
    },
    Invariant {
        id: "INV-21",
        statement: "nothing is reported from lines after an ERROR line of the same stream",
        requirements: &["GONE-07"],
        find: events::error_is_final,
    },
    Invariant {
        id: "INV-22",
        statement: "a continue token is that of the previous page, sent with the same parameters, and never again after a rejection",
        requirements: &["PAGE-02", "PAGE-05"],
        find: requests::token_hygiene,
    },
];

/// Returns the first violation of each invariant that the scenario does not excuse, by id, with the number of further
/// ones.
pub fn violated(scenario: &Scenario, trace: &Trace<'_>) -> Vec<Contradiction> {
    let ground = Ground::new(scenario, trace);
    let excused = |id: &str| {
        scenario
            .expect
            .excused
            .iter()
            .any(|excuse| excuse.invariant == id)
    };
    INVARIANTS
        .iter()
        .filter(|invariant| !excused(invariant.id) && concerns(scenario.client.contract, invariant.id))
        .filter_map(|invariant| {
            let mut findings = (invariant.find)(&ground).into_iter();
            let mut first = findings.next()?.of(invariant, &ground);
            let mut more = 0;
            for finding in findings {
                more += 1;
                for id in finding.requirements {
                    if !first.requirements.contains(&id) {
                        first.requirements.push(id);
                    }
                }
            }
            match more {
                0 => {}
                1 => first.sentence.push_str(" (and once more)"),
                more => first.sentence.push_str(&format!(" (and {more} more times)")),
            }
            Some(first)
        })
        .collect()
}

/// Whether the invariant applies to a contract: most are about a cache.
fn concerns(contract: Contract, invariant: &str) -> bool {
    const OF_A_WATCH: [&str; 9] = [
        "INV-06", "INV-07", "INV-14", "INV-15", "INV-16", "INV-17", "INV-18", "INV-19", "INV-21",
    ];
    const OF_A_LIST: [&str; 9] = [
        "INV-06", "INV-10", "INV-12", "INV-14", "INV-15", "INV-16", "INV-17", "INV-18", "INV-22",
    ];
    match contract {
        Contract::Informer => true,
        Contract::Watch => OF_A_WATCH.contains(&invariant),
        Contract::List => OF_A_LIST.contains(&invariant),
    }
}

/// The invariants that can be decided from the wire, without reports.
pub const ON_THE_WIRE: [&str; 10] = [
    "INV-01", "INV-02", "INV-03", "INV-04", "INV-05", "INV-15", "INV-16", "INV-17", "INV-18", "INV-22",
];

/// Returns every violation of the `wanted` [`INVARIANTS`].
pub(crate) fn each(scenario: &Scenario, trace: &Trace<'_>, wanted: &[&str]) -> Vec<Contradiction> {
    let ground = Ground::new(scenario, trace);
    let wanted = INVARIANTS
        .iter()
        .filter(|invariant| wanted.contains(&invariant.id));
    wanted
        .flat_map(|invariant| {
            let found = (invariant.find)(&ground).into_iter();
            let ground = &ground;
            found.map(move |finding| finding.of(invariant, ground))
        })
        .collect()
}

/// A violation, without the id of its invariant.
#[derive(Debug)]
struct Finding {
    /// Requirements whose text it contradicts.
    requirements: Vec<String>,
    sentence: String,
    expected: String,
    actual: String,
    evidence: Vec<u64>,
}

impl Finding {
    fn of(self, invariant: &Invariant, ground: &Ground<'_, '_>) -> Contradiction {
        debug_assert!(
            invariant.requirements.is_empty()
                || self
                    .requirements
                    .iter()
                    .all(|id| invariant.requirements.contains(&id.as_str())),
            "{} names {:?}",
            invariant.id,
            self.requirements
        );
        Contradiction {
            check: Check::Invariant(invariant.id),
            requirements: self.requirements,
            place: ground.step_before(&self.evidence),
            sentence: self.sentence,
            evidence: self.evidence,
            expected: self.expected,
            actual: self.actual,
        }
    }
}

fn ids(requirements: &[&str]) -> Vec<String> {
    requirements.iter().map(|id| (*id).to_owned()).collect()
}

/// Input shared by all invariants.
struct Ground<'t, 'a> {
    scenario: &'t Scenario,
    trace: &'t Trace<'a>,
    history: History<'t>,
    /// Deliveries, by key and version.
    delivered: std::collections::BTreeMap<(&'a str, &'a str), Vec<usize>>,
    /// Positions of data that is not in the trace: scripted bodies, and bytes that are not events.
    opaque: Vec<u64>,
    /// Positions of scripted faults on the wire: frames, pages, dropped events, bytes that are not events.
    lies: Vec<u64>,
}

impl<'t, 'a> Ground<'t, 'a> {
    fn new(scenario: &'t Scenario, trace: &'t Trace<'a>) -> Self {
        let mut delivered = std::collections::BTreeMap::<_, Vec<usize>>::new();
        for (index, delivery) in trace.deliveries.iter().enumerate() {
            let state = (
                delivery.object.key.as_str(),
                delivery.object.resource_version.as_str(),
            );
            delivered.entry(state).or_default().push(index);
        }
        let frames = || trace.exchanges.iter().flat_map(|exchange| &exchange.frames);
        let raw = frames().filter(|sent| sent.frame.kind == ::trace::record::FrameType::Raw);
        let unknown_sets = trace.snapshots.iter().filter(|snapshot| snapshot.opaque);
        let mut opaque: Vec<u64> = raw
            .map(|sent| sent.sent.seq)
            .chain(unknown_sets.map(|snapshot| snapshot.done.seq))
            .collect();
        opaque.sort_unstable();
        let pages = trace.exchanges.iter().filter_map(|exchange| exchange.page_sent());
        let mut lies: Vec<u64> = frames()
            .filter(|sent| sent.frame.scripted)
            .map(|sent| sent.sent.seq)
            .chain(pages.filter(|page| page.scripted).map(|page| page.sent.seq))
            .chain(trace.withheld.iter().map(|withheld| withheld.at.seq))
            .chain(opaque.iter().copied())
            .collect();
        lies.sort_unstable();
        Self {
            scenario,
            trace,
            history: History::of(scenario, trace.records()),
            delivered,
            opaque,
            lies,
        }
    }

    /// Returns true if the client may have failed between two positions, of which the later is a request: it reported an
    /// error between them, or has a slow consumer and reported it later.
    fn may_have_failed_between(&self, since: u64, request: u64) -> bool {
        let is_slow = self.scenario.client.consumer_delay_ms > 0;
        self.trace
            .error_between(since, if is_slow { u64::MAX } else { request })
    }

    /// Returns true if the client had just reported an error when this was sent: events of one instant come in either order,
    /// and a client that gives up an HTTP/2 stream as the server ends it leaves no record of that.
    fn failed_at_once(&self, exchange: &Exchange<'_>, sent: Moment) -> bool {
        let reports = &self.trace.reports;
        let before = reports.partition_point(|reported| reported.at.seq < sent.seq);
        reports[..before]
            .iter()
            .rev()
            .take_while(|reported| reported.at.at == sent.at && reported.at.seq > exchange.asked.seq)
            .any(|reported| matches!(reported.report, Report::Error { .. }))
    }

    /// Returns the position of the last step that ran before a violation: an invariant has no line in the file.
    fn step_before(&self, evidence: &[u64]) -> Option<Place> {
        let last = evidence.iter().max()?;
        let before = self.trace.steps.iter().rev().find(|(at, _)| at.seq < *last)?;
        self.scenario.steps.get(before.1).map(|step| step.at)
    }

    /// Returns the deliveries of a reported state, up to the report.
    fn sources<'s>(&'s self, reported: &'s Reported<'a>) -> impl Iterator<Item = &'s Delivery<'a>> + 's {
        let state = (reported.key.as_str(), reported.resource_version());
        let uid = reported.uid();
        self.delivered
            .get(&state)
            .into_iter()
            .flatten()
            .map(|index| &self.trace.deliveries[*index])
            .filter(move |delivery| {
                delivery.sent.seq < reported.at.seq && (uid.is_empty() || delivery.object.uid == uid)
            })
    }

    /// Returns true if the report may come from bytes that are not in the trace: a scripted body, a line that is not
    /// an event, or a page whose items are read while it is being sent.
    fn may_have_unrecorded_source(&self, reported: &Reported<'_>) -> bool {
        self.opaque_before(reported.at.seq) || self.may_be_of_an_unfinished_page(reported)
    }

    /// Returns true if the report may come from an unfinished page: a client may report items while the page is still
    /// being sent, and of a page that never completes. How much was sent is not recorded, but its items are those of
    /// the store.
    fn may_be_of_an_unfinished_page(&self, reported: &Reported<'_>) -> bool {
        let at = reported.at.seq;
        let state = self
            .history
            .state(&reported.key, reported.resource_version(), reported.uid());
        state.is_some()
            && self.trace.lists().any(|list| {
                let is_unfinished = match &list.answer {
                    None | Some(ResponseBody::Torn { .. }) => true,
                    Some(ResponseBody::Page(page)) => page.sent.seq > at,
                    Some(ResponseBody::Body(_)) => false,
                };
                let began = list.head.filter(|head| head.status == 200);
                is_unfinished && began.is_some_and(|head| head.sent.seq < at)
            })
    }

    /// Returns true if unknown data was sent before `seq`, from which a report may come.
    fn opaque_before(&self, seq: u64) -> bool {
        self.opaque.first().is_some_and(|first| *first < seq)
    }

    /// Returns true if the server sent this version before `seq`: of a list, an object or a bookmark.
    fn sent_version(&self, version: &str, seq: u64) -> bool {
        let of = |exchange: &Exchange<'a>| {
            let is_page = exchange
                .page_sent()
                .is_some_and(|page| page.resource_version == version);
            let mut objects = exchange
                .frames
                .iter()
                .filter_map(|sent| sent.frame.object.as_deref());
            is_page || objects.any(|object| object.resource_version == version)
        };
        self.opaque_before(seq) || self.trace.asked_before(seq).iter().any(of)
    }

    /// Returns true if there was a scripted fault between two positions (both exclusive).
    fn lied_between(&self, after: u64, before: u64) -> bool {
        any_between(&self.lies, after, before)
    }

    /// Returns reports about objects with a version, with their effect.
    fn stated(&self) -> impl Iterator<Item = (&'t Reported<'a>, Op)> {
        self.trace.reports.iter().filter_map(|reported| {
            let op = reported.op()?;
            (!reported.resource_version().is_empty() && !reported.key.is_empty()).then_some((reported, op))
        })
    }
}

#[cfg(test)]
mod tests;

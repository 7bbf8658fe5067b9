//! Known reasons for unreachable cells. A cell without a reason that was never reached is a gap.

use crate::generate::Profile;
use crate::generate::names::NAMES;

use super::{ANSWERS, Coverage, INPUTS, PHASES, rare, requests, times};

/// A cell that was never reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreached {
    /// Table: `inputs`, `decisions`, `faults`.
    pub table: &'static str,
    /// Row.
    pub row: String,
    /// Column.
    pub column: String,
    /// Why it is unreachable; `None`: a gap.
    pub why: Option<&'static str>,
}

/// Returns all cells that were never reached, in order.
pub fn unreached(coverage: &Coverage, profile: Profile) -> Vec<Unreached> {
    let mut found = Vec::new();
    let mut add = |table, row: &str, column: &str, why: Option<&'static str>| {
        let why = why.or_else(|| rare::reason(profile, table, row, column));
        found.push(Unreached {
            table,
            row: row.to_owned(),
            column: column.to_owned(),
            why,
        });
    };
    for phase in PHASES {
        for input in INPUTS {
            if times(&coverage.inputs, phase, input) == 0 {
                let why = match (input, profile) {
                    ("no event", Profile::Honest) => Some("only a server that lies sends it"),
                    _ => no_input(phase, input),
                };
                add("inputs", phase, input, why);
            }
        }
    }
    for request in requests() {
        let was_sent = coverage.decisions.contains_key(&request);
        for answer in ANSWERS {
            if times(&coverage.decisions, &request, answer) == 0 {
                let why = if was_sent {
                    no_answer(&request, answer)
                } else {
                    Some("the client never sends such a request")
                };
                add("decisions", &request, answer, why);
            }
        }
    }
    for fault in NAMES {
        if fault.starts_with("lie") && profile == Profile::Honest {
            continue;
        }
        for phase in PHASES {
            if times(&coverage.faults, fault, phase) == 0 {
                let why = match (fault, profile) {
                    ("restore", Profile::Lies) => Some("restores are drawn for the profile honest"),
                    _ => no_fault(fault, phase),
                };
                add("faults", fault, phase, why);
            }
        }
    }
    found
}

fn no_input(phase: &str, input: &str) -> Option<&'static str> {
    let is_watch_frame = matches!(
        input,
        "change" | "bookmark" | "end marker" | "ERROR 410" | "other ERROR" | "torn line" | "no event"
    );
    let is_page = matches!(input, "page" | "last page" | "torn page");
    let is_head =
        input.starts_with(['2', '4', '5']) || input.starts_with("other 4") || input.starts_with("other 5");
    match phase {
        "empty" | "between requests" if input != "connection refused" => Some("no request is open"),
        "empty" => Some("connections are refused by steps, and the first needs a request"),
        "listing" | "paging" | "probing" if is_watch_frame => Some("a LIST has no events"),
        "listed" | "opening initial watch" | "initial watch" | "watching" if is_page => {
            Some("a watch has no pages")
        }
        "listed" | "opening initial watch" if is_watch_frame => Some("events come after the head"),
        "initial watch" | "watching" if is_head => Some("the head came before"),
        "watching" | "initial watch" if input == "other body" => Some("a watch that was opened has events"),
        "initial watch" if input == "end marker" => None,
        "watching" if input == "end marker" => Some("a second end marker is never sent"),
        _ if input == "connection refused" => Some("a request that is open has its connection"),
        _ => None,
    }
}

fn no_answer(request: &str, answer: &str) -> Option<&'static str> {
    let is_list = request.starts_with("LIST");
    match answer {
        "opened" | "ERROR 410 first" if is_list => Some("a LIST is not a watch"),
        "page" | "last page" if !is_list => Some("a watch has no pages"),
        "page" if request.contains("rv=0") => Some("the watch cache answers it whole"),
        "other refusal" if !request.starts_with("WATCH-LIST") => {
            Some("a legal request is refused by scripts only")
        }
        "410" if request.contains("NotOlderThan") => Some("any newer state answers it"),
        "410" if !is_list => Some("the fake sends it as an ERROR event"),
        "ERROR 410 first" if request.starts_with("WATCH-LIST") => {
            Some("a streaming list reads the set again")
        }
        "page" if !request.ends_with("limit") && !request.ends_with("continue") => {
            Some("without a limit there is one page")
        }
        "410" if is_list && !request.ends_with("continue") && !request.contains("exact") => {
            Some("the newest or any state is never expired")
        }
        "504" if request.starts_with("WATCH-LIST") => Some("the fake sends it as an ERROR event"),
        "504" if request.starts_with("WATCH") => {
            Some("a watch from a version of the future opens, and waits for what is newer")
        }
        "504" if !request.contains("exact") => Some("no version is asked for that could be too large"),
        "410" | "ERROR 410 first" if request.starts_with("WATCH") && !request.contains("exact") => {
            Some("a watch from now is never expired")
        }
        _ => None,
    }
}

fn no_fault(fault: &str, phase: &str) -> Option<&'static str> {
    let is_write = matches!(
        fault,
        "apply"
            | "apply many"
            | "delete"
            | "relabel"
            | "compact"
            | "clear_watch_cache"
            | "freeze_watch_cache"
            | "lag_watch_cache"
            | "thaw_watch_cache"
            | "one replica's watch cache"
            | "restore"
            | "restart"
            | "restart of one replica"
            | "jump_clock"
            | "refuse"
    );
    let shapes_an_answer = fault.starts_with("reply")
        || matches!(
            fault,
            "delay" | "gzip" | "no_answer" | "edit_page" | "lie: unreadable answer" | "lie: page"
        );
    let is_of_watches = matches!(
        fault,
        "error 410"
            | "other error"
            | "bookmark"
            | "no_bookmarks"
            | "end_marker"
            | "repeat_event"
            | "coalesce"
            | "truncate eof"
            | "end eof"
    ) || (fault.starts_with("lie") && !shapes_an_answer);
    let has_request = matches!(
        phase,
        "listing" | "paging" | "probing" | "listed" | "opening initial watch"
    );
    match phase {
        _ if is_write => None,
        "empty" | "between requests" => Some("such a step waits for a request or an open watch"),
        _ if shapes_an_answer && !has_request => Some("an answer is shaped when its request comes"),
        "listing" | "paging" | "probing" if is_of_watches => Some("it is done to watches"),
        "listed" | "opening initial watch" if matches!(fault, "edit_page" | "lie: page") => {
            Some("it is done to pages")
        }
        _ => None,
    }
}

//! Formats parts of a trace for sentences and transcripts: times, names, requests, events.

pub use ::trace::record::line::{span, time};
use ::trace::record::{ObjectRef, line};
use ::trace::report::Report;
use scenario::Scenario;

use crate::trace::{Exchange, Reported, Trace};

/// Returns the key without the namespace if all keys of the scenario share it.
pub fn name<'k>(scenario: &Scenario, key: &'k str) -> &'k str {
    scenario
        .target
        .namespace
        .as_deref()
        .and_then(|namespace| key.strip_prefix(namespace)?.strip_prefix('/'))
        .unwrap_or(key)
}

/// Formats a state: `a@1001`.
pub fn state(scenario: &Scenario, key: &str, version: &str) -> String {
    line::state(name(scenario, key), version)
}

/// Formats an object on the wire: `a@1001`.
pub fn object(scenario: &Scenario, object: &ObjectRef) -> String {
    state(scenario, &object.key, &object.resource_version)
}

/// Formats a report: `apply a@1001`, `init_done`, `error …`.
pub fn report(scenario: &Scenario, reported: &Reported<'_>) -> String {
    let word = reported.report.word();
    match reported.report {
        Report::InitApply(_) | Report::Apply(_) | Report::Delete(_) => {
            format!(
                "{word} {}",
                state(scenario, &reported.key, reported.resource_version())
            )
        }
        Report::Error {
            message,
            code: Some(code),
        } => format!("{word} {code} {message:?}"),
        Report::Error { message, code: None } | Report::Crashed { message } => format!("{word} {message:?}"),
        Report::Init | Report::InitDone | Report::Ended => word.to_owned(),
    }
}

/// Formats a request: `WATCH resourceVersion=1006 timeoutSeconds=290`; long continue tokens are truncated.
pub fn request(exchange: &Exchange<'_>) -> String {
    let mut text = exchange.verb.word().to_owned();
    for (key, value) in exchange.query {
        if key == "watch" || key == "sendInitialEvents" && exchange.is_watch() {
            continue;
        }
        let value: String = if value.chars().count() > 40 {
            value.chars().take(37).chain("...".chars()).collect()
        } else {
            value.clone()
        };
        text.push_str(&format!(" {key}={value}"));
    }
    text
}

/// Describes the client's last action before `seq`: `its last act was LIST limit=2 at 3.800s`.
pub fn last_of_client(scenario: &Scenario, trace: &Trace<'_>, before: u64) -> String {
    let asked = trace
        .exchanges
        .iter()
        .rev()
        .find(|exchange| exchange.asked.seq < before);
    let said = trace
        .reports
        .iter()
        .rev()
        .find(|reported| reported.at.seq < before);
    match (asked, said) {
        (Some(asked), Some(said)) if said.at.seq > asked.asked.seq => {
            format!(
                "its last act was {} at {}",
                report(scenario, said),
                time(said.at.at)
            )
        }
        (Some(asked), _) => format!("its last act was {} at {}", request(asked), time(asked.asked.at)),
        (None, Some(said)) => format!(
            "its last act was {} at {}",
            report(scenario, said),
            time(said.at.at)
        ),
        (None, None) => "it sent no request and reported nothing".to_owned(),
    }
}

/// Lists at most `show` items: `every request`, `requests a, b and 3 more`.
pub fn few<T>(items: &[T], show: usize, word: impl Fn(&T) -> String) -> String {
    let mut text = items.iter().take(show).map(word).collect::<Vec<_>>().join(", ");
    if items.len() > show {
        text.push_str(&format!(" and {} more", items.len() - show));
    }
    text
}

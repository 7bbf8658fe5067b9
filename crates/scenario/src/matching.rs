//! Matches requests and reports against a scenario's conditions, and describes the conditions in one line.
//!
//! Independent of which step is armed and of how often anything matched.

use trace::report::Report;

use super::{EmittedKind, EmittedMatch, Expected, RequestKind, RequestTrigger};

/// Returns true if `value` satisfies `wanted`; absent and empty values are `None`.
pub fn value_meets(
    wanted: &Expected,
    value: Option<&str>,
    expand: &dyn Fn(&Expected) -> Option<String>,
) -> bool {
    match wanted {
        Expected::Is(_) | Expected::Ref(_) => match expand(wanted) {
            Some(text) => value.unwrap_or_default() == text,
            None => false,
        },
        Expected::Not(inner) => !value_meets(inner, value, expand),
        Expected::Absent => value.is_none(),
        Expected::Present => value.is_some(),
    }
}

/// Returns true if the report matches, ignoring the ordinal.
pub fn report_meets(
    wanted: &EmittedMatch,
    report: &Report,
    expand: &dyn Fn(&Expected) -> Option<String>,
) -> bool {
    let object = report.object();
    let name_meets = wanted
        .name
        .as_ref()
        .is_none_or(|name| object.is_some_and(|object| object.name == *name || object.key() == *name));
    let version_meets = wanted.resource_version.as_ref().is_none_or(|wanted| {
        value_meets(
            wanted,
            object.and_then(|object| object.resource_version.as_deref()),
            expand,
        )
    });
    kind_meets(wanted, report) && name_meets && version_meets
}

/// Returns true if the report is of the right kind and, for an error, has the right code and message.
pub fn kind_meets(wanted: &EmittedMatch, report: &Report) -> bool {
    match (wanted.kind, report) {
        (EmittedKind::Error, Report::Error { message, code }) => {
            let part = wanted.message.as_deref();
            part.is_none_or(|part| message.contains(part))
                && wanted.code.is_none_or(|wanted| *code == Some(wanted))
        }
        (EmittedKind::Init, Report::Init)
        | (EmittedKind::InitApply, Report::InitApply(_))
        | (EmittedKind::InitDone, Report::InitDone)
        | (EmittedKind::Apply, Report::Apply(_))
        | (EmittedKind::Delete, Report::Delete(_)) => true,
        (
            EmittedKind::Init
            | EmittedKind::InitApply
            | EmittedKind::InitDone
            | EmittedKind::Apply
            | EmittedKind::Delete
            | EmittedKind::Error,
            _,
        ) => false,
    }
}

/// Describes a request trigger: `the 2nd WATCH with resourceVersion=1003`.
pub fn words_for_request(trigger: &RequestTrigger) -> String {
    let what = match trigger.kind {
        RequestKind::List => "LIST".to_owned(),
        RequestKind::Page { page } => format!("page {page} of a LIST"),
        RequestKind::Watch => "WATCH".to_owned(),
        RequestKind::Any => "request".to_owned(),
    };
    let which = match (trigger.kind, trigger.nth) {
        (_, None) => format!("the next {what}"),
        (RequestKind::Page { page }, Some(nth)) => format!("page {page} of the {} LIST", ordinal(nth)),
        (_, Some(nth)) => format!("the {} {what}", ordinal(nth)),
    };
    let query: Vec<String> = trigger
        .query
        .iter()
        .map(|wanted| format!("{} {}", wanted.name, words_for_expected(&wanted.value)))
        .collect();
    if query.is_empty() {
        which
    } else {
        format!("{which} with {}", query.join(", "))
    }
}

/// Describes an event: `the client to report apply b`.
pub fn words_for_emitted(wanted: &EmittedMatch) -> String {
    let name = wanted
        .name
        .as_ref()
        .map(|name| format!(" {name}"))
        .unwrap_or_default();
    let version = wanted
        .resource_version
        .as_ref()
        .map(|version| format!(" with resourceVersion {}", words_for_expected(version)))
        .unwrap_or_default();
    let times = if wanted.nth > 1 {
        format!(" for the {} time", ordinal(wanted.nth))
    } else {
        String::new()
    };
    format!(
        "the client to report {}{name}{version}{}{times}",
        wanted.kind.word(),
        words_for_error(wanted)
    )
}

/// Describes the conditions on an error: ` 410 "too old"`; empty for any.
pub fn words_for_error(wanted: &EmittedMatch) -> String {
    let code = wanted.code.map(|code| format!(" {code}"));
    let message = wanted.message.as_ref().map(|message| format!(" {message:?}"));
    code.unwrap_or_default() + &message.unwrap_or_default()
}

/// Describes a condition on a value: `= "1003"`, `absent`, `= $b`.
pub fn words_for_expected(value: &Expected) -> String {
    match value {
        Expected::Is(text) => format!("= {text:?}"),
        Expected::Not(inner) => format!("not {}", words_for_expected(inner)),
        Expected::Absent => "absent".to_owned(),
        Expected::Present => "present".to_owned(),
        Expected::Ref(name) => format!("= {name}"),
    }
}

/// Formats an ordinal: `1st`, `2nd`, `3rd`, `11th`.
pub fn ordinal(n: u32) -> String {
    let ending = match (n % 10, n % 100) {
        (1, rest) if rest != 11 => "st",
        (2, rest) if rest != 12 => "nd",
        (3, rest) if rest != 13 => "rd",
        _ => "th",
    };
    format!("{n}{ending}")
}

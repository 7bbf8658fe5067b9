//! Does a request or a report meet what a scenario waits for, and how to name that in one line.
//!
//! It must not know which step is armed, nor how often anything was met.

use trace::report::Report;

use super::{EmittedKind, EmittedMatch, Expected, RequestKind, RequestTrigger};

/// Does `value` (absent and empty are `None`) meet what is `wanted`?
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

/// Is this the report that is wanted, whatever its ordinal?
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

/// Is the report of the kind that is wanted, and an error the one that is?
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

/// `the 2nd WATCH with resourceVersion=1003`.
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

/// `the client to report apply b`.
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

/// ` 410 "too old"`: what is wanted of an error; empty for any.
pub fn words_for_error(wanted: &EmittedMatch) -> String {
    let code = wanted.code.map(|code| format!(" {code}"));
    let message = wanted.message.as_ref().map(|message| format!(" {message:?}"));
    code.unwrap_or_default() + &message.unwrap_or_default()
}

/// `= "1003"`, `absent`, `= $b`.
pub fn words_for_expected(value: &Expected) -> String {
    match value {
        Expected::Is(text) => format!("= {text:?}"),
        Expected::Not(inner) => format!("not {}", words_for_expected(inner)),
        Expected::Absent => "absent".to_owned(),
        Expected::Present => "present".to_owned(),
        Expected::Ref(name) => format!("= {name}"),
    }
}

/// `1st`, `2nd`, `3rd`, `11th`.
pub fn ordinal(n: u32) -> String {
    let ending = match (n % 10, n % 100) {
        (1, rest) if rest != 11 => "st",
        (2, rest) if rest != 12 => "nd",
        (3, rest) if rest != 13 => "rd",
        _ => "th",
    };
    format!("{n}{ending}")
}

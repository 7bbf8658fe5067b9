//! Matches requests and reports against a scenario's conditions, and describes the conditions in one line.
//!
//! Independent of which step is armed and of how often anything matched.

use std::borrow::Cow;

use trace::record::Verb;
use trace::report::Report;

use super::{EmittedKind, EmittedMatch, Expected, QueryMatch, Ref, RequestKind, RequestTrigger};

/// Values of a scenario's names, as far as they are known.
pub trait Names {
    /// Returns the value of a reference; `None` while it has none.
    fn value(&self, reference: &Ref) -> Option<Cow<'_, str>>;

    /// Returns whether a client that sends or reports `value` is where the scenario expects `expected`, because only the
    /// client's own writes lie in between ([`super::ClientView`]).
    fn stands_for(&self, expected: &str, value: &str) -> bool;
}

/// Names of a rule, which has none.
#[derive(Debug, Clone, Copy)]
pub struct NoNames;

impl Names for NoNames {
    fn value(&self, _: &Ref) -> Option<Cow<'_, str>> {
        None
    }

    fn stands_for(&self, _: &str, _: &str) -> bool {
        false
    }
}

/// A LIST, WATCH or streaming list, as conditions see it.
#[derive(Debug, Clone, Copy)]
pub struct Read<'a> {
    /// LIST, WATCH or streaming list.
    pub verb: Verb,
    /// Query parameters, decoded.
    pub query: &'a [(String, String)],
}

impl<'a> Read<'a> {
    /// Returns a query parameter; `None` if it is absent or empty, which are equivalent in the API.
    pub fn param(self, name: &str) -> Option<&'a str> {
        let found = self.query.iter().find(|(key, _)| key == name);
        found
            .map(|(_, value)| value.as_str())
            .filter(|value| !value.is_empty())
    }

    /// Returns true for a WATCH or streaming list.
    pub fn is_watch(self) -> bool {
        matches!(self.verb, Verb::Watch | Verb::WatchList)
    }

    /// Returns true for a WATCH that begins with the current state: one without a version, or at version 0.
    pub fn is_start_without_list(self) -> bool {
        self.verb == Verb::Watch && matches!(self.param("resourceVersion"), None | Some("0"))
    }

    /// Returns true for a request with which a loop starts, or starts again: it needs no version of an earlier response.
    pub fn is_start(self) -> bool {
        match self.verb {
            Verb::List => self.param("continue").is_none(),
            Verb::WatchList => true,
            Verb::Watch => self.is_start_without_list(),
            Verb::Other => false,
        }
    }
}

/// Returns true if the conditions on a query are met.
pub fn query_meets(wanted: &[QueryMatch], read: Read<'_>, names: &dyn Names) -> bool {
    wanted
        .iter()
        .all(|wanted| value_meets(&wanted.value, read.param(&wanted.name), names))
}

/// Returns true if the conditions on a query are met to the letter: a version stands only for itself.
pub fn query_is(wanted: &[QueryMatch], read: Read<'_>, names: &dyn Names) -> bool {
    wanted
        .iter()
        .all(|wanted| value_is(&wanted.value, read.param(&wanted.name), names))
}

/// Returns true if a WATCH without a version stands for an expected LIST: it starts a loop like a list.
pub fn starts_instead(kind: RequestKind, query: &[QueryMatch], read: Read<'_>, names: &dyn Names) -> bool {
    kind == RequestKind::List && read.is_start_without_list() && query_meets(query, read, names)
}

/// Returns true if such a start also stands for the WATCH that is expected after the LIST, which has no other version.
pub fn continues_start(kind: RequestKind, query: &[QueryMatch], read: Read<'_>, names: &dyn Names) -> bool {
    let mut others = query.iter().filter(|wanted| wanted.name != "resourceVersion");
    kind == RequestKind::Watch
        && read.is_start_without_list()
        && others.all(|wanted| value_meets(&wanted.value, read.param(&wanted.name), names))
}

/// Returns true if `value` satisfies `wanted`; absent and empty values are `None`.
pub fn value_meets(wanted: &Expected, value: Option<&str>, names: &dyn Names) -> bool {
    if let (Expected::Ref(reference), Some(value)) = (wanted, value)
        && let Some(expected) = names.value(reference)
        && names.stands_for(&expected, value)
    {
        return true;
    }
    value_is(wanted, value, names)
}

/// Returns true if `value` satisfies `wanted` to the letter.
pub fn value_is(wanted: &Expected, value: Option<&str>, names: &dyn Names) -> bool {
    match wanted {
        Expected::Is(text) => value.unwrap_or_default() == text,
        Expected::Ref(reference) => names
            .value(reference)
            .is_some_and(|expected| value.unwrap_or_default() == expected),
        Expected::Not(inner) => !value_is(inner, value, names),
        Expected::Absent => value.is_none_or(str::is_empty),
        Expected::Present => value.is_some_and(|value| !value.is_empty()),
    }
}

/// Returns true if the report matches, ignoring the ordinal.
pub fn report_meets(wanted: &EmittedMatch, report: &Report, names: &dyn Names) -> bool {
    let object = report.object();
    let name_meets = wanted
        .name
        .as_ref()
        .is_none_or(|name| object.is_some_and(|object| object.name == *name || object.key() == *name));
    let version_meets = wanted.resource_version.as_ref().is_none_or(|wanted| {
        value_meets(
            wanted,
            object.and_then(|object| object.resource_version.as_deref()),
            names,
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

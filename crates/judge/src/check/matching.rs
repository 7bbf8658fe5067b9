//! Matches requests and events against expectations, and describes the expectations.

use ::trace::record::{FrameType, Verb};
use scenario::matching::{kind_meets, words_for_error};
use scenario::{EmittedMatch, Expected, QueryMatch, Ref, RequestExpect, RequestKind};

use super::{Exchange, Reported, Trace};

/// Values of the scenario's names.
pub(super) struct Names<'t, 'a> {
    trace: &'t Trace<'a>,
    /// Names of expected requests, with the requests that met them.
    met: Vec<(String, &'t Exchange<'a>)>,
}

impl<'t, 'a> Names<'t, 'a> {
    pub(super) fn new(trace: &'t Trace<'a>) -> Self {
        Self {
            trace,
            met: Vec::new(),
        }
    }

    pub(super) fn bind(&mut self, name: &str, exchange: &'t Exchange<'a>) {
        self.met.push((name.to_owned(), exchange));
    }

    /// Returns the value of `reference` at record `seq`: the newest by then, or the first one bound later.
    pub(super) fn value(&self, reference: &Ref, seq: u64) -> Option<&'a str> {
        match reference {
            Ref::Start => self.bound("start", seq, |binding| Some(binding.value)),
            Ref::ResourceVersion(name) => self
                .met(name)
                .and_then(|exchange| version_of(exchange, seq))
                .or_else(|| self.bound(name, seq, |binding| Some(binding.value))),
            Ref::Continue(name) => self
                .met(name)
                .and_then(|exchange| {
                    let page = exchange.page_sent().map(|page| page.continue_token);
                    page.or_else(|| exchange.body_sent().and_then(|body| body.continue_token))
                })
                .or_else(|| self.bound(name, seq, |binding| binding.continue_token)),
        }
    }

    fn met(&self, name: &str) -> Option<&'t Exchange<'a>> {
        self.met
            .iter()
            .rev()
            .find(|(met, _)| met == name)
            .map(|(_, exchange)| *exchange)
    }

    fn bound(
        &self,
        name: &str,
        seq: u64,
        part: impl Fn(&crate::trace::Binding<'a>) -> Option<&'a str>,
    ) -> Option<&'a str> {
        let named = || self.trace.bindings.iter().filter(|binding| binding.name == name);
        let value = |binding| part(binding).filter(|value| !value.is_empty());
        named()
            .rev()
            .filter(|binding| binding.at.seq <= seq)
            .find_map(value)
            .or_else(|| named().find_map(value))
    }
}

/// Returns the version of a response: its list's, or its newest bookmark's.
fn version_of<'a>(exchange: &Exchange<'a>, seq: u64) -> Option<&'a str> {
    if let Some(page) = exchange.page_sent() {
        return Some(page.resource_version);
    }
    exchange
        .frames
        .iter()
        .rev()
        .filter(|sent| sent.sent.seq <= seq)
        .find_map(|sent| match &sent.frame.kind {
            FrameType::Bookmark { .. } => sent
                .frame
                .object
                .as_ref()
                .map(|object| object.resource_version.as_str()),
            FrameType::Added
            | FrameType::Modified
            | FrameType::Deleted
            | FrameType::Error { .. }
            | FrameType::Raw => None,
        })
}

/// Returns true if the request is of the kind.
pub(super) fn of_kind(exchange: &Exchange<'_>, kind: RequestKind) -> bool {
    match kind {
        RequestKind::List => exchange.verb == Verb::List && exchange.query("continue").is_none(),
        RequestKind::Page { page } => {
            exchange.verb == Verb::List && exchange.query("continue").is_some() && exchange.page == page
        }
        RequestKind::Watch => exchange.is_watch(),
        RequestKind::Any => exchange.verb != Verb::Other,
    }
}

/// Returns true if the request matches one of the alternatives and was answered as expected.
pub(super) fn any_of(names: &Names<'_, '_>, expected: &RequestExpect, exchange: &Exchange<'_>) -> bool {
    let mut alternatives = expected.any_of.iter();
    let status = exchange.head.map(|head| head.status);
    alternatives.any(|request| of_kind(exchange, request.kind) && matches(names, &request.query, exchange))
        && expected.answered.is_none_or(|wanted| status == Some(wanted))
        && expected.headers.iter().all(|header| {
            let value = header_of(exchange, &header.name);
            is(names, &header.value, value, exchange.asked.seq)
        })
}

/// Returns a request header that is recorded in the trace.
fn header_of<'a>(exchange: &Exchange<'a>, name: &str) -> Option<&'a str> {
    match name {
        "Accept" => exchange.accept,
        "User-Agent" => exchange.user_agent,
        _ => None,
    }
}

/// Describes expected headers: ` with header Accept=application/json`; empty if none.
pub(super) fn header_words(names: &Names<'_, '_>, headers: &[QueryMatch]) -> String {
    let words = headers.iter().map(|header| {
        let value = expected_words(names, &header.value, u64::MAX);
        format!(" with header {}{value}", header.name)
    });
    words.collect()
}

/// Returns the values of the headers that an expectation names.
pub(super) fn header_values(headers: &[QueryMatch], exchange: &Exchange<'_>) -> String {
    let words = headers
        .iter()
        .map(|header| match header_of(exchange, &header.name) {
            Some(value) => format!(", {}={value}", header.name),
            None => format!(", no {}", header.name),
        });
    words.collect()
}

/// Returns the next WATCH if it starts where expected, or if the client relisted: by a LIST before it, or by a
/// streaming list.
pub(super) fn resumed<'a>(
    names: &Names<'_, 'a>,
    expected: &RequestExpect,
    reads: &[&Exchange<'a>],
    from: usize,
) -> Option<usize> {
    let next = (from..reads.len()).find(|at| reads[*at].is_watch())?;
    let relisted = reads[from..next]
        .iter()
        .any(|read| of_kind(read, RequestKind::List))
        || reads[next].verb == Verb::WatchList;
    (relisted || any_of(names, expected, reads[next])).then_some(next)
}

/// Returns true if the request satisfies every condition.
pub(super) fn matches(names: &Names<'_, '_>, query: &[QueryMatch], exchange: &Exchange<'_>) -> bool {
    query.iter().all(|condition| {
        is(
            names,
            &condition.value,
            exchange.query(&condition.name),
            exchange.asked.seq,
        )
    })
}

/// Returns true if the value satisfies a condition. Absent and empty are equivalent in the API.
fn is(names: &Names<'_, '_>, expected: &Expected, value: Option<&str>, seq: u64) -> bool {
    match expected {
        Expected::Is(text) => value.unwrap_or_default() == text,
        Expected::Not(not) => !is(names, not, value, seq),
        Expected::Absent => value.is_none_or(str::is_empty),
        Expected::Present => value.is_some_and(|value| !value.is_empty()),
        Expected::Ref(reference) => match names.value(reference, seq) {
            Some(stands_for) => value.unwrap_or_default() == stands_for,
            None => false,
        },
    }
}

/// Returns true if the report is of the kind, object and version.
pub(super) fn emitted(names: &Names<'_, '_>, expected: &EmittedMatch, reported: &Reported<'_>) -> bool {
    kind_meets(expected, reported.report)
        && expected
            .name
            .as_ref()
            .is_none_or(|name| same_name(name, &reported.key))
        && expected.resource_version.as_ref().is_none_or(|version| {
            let value = Some(reported.resource_version()).filter(|value| !value.is_empty());
            is(names, version, value, reported.at.seq)
        })
}

/// Returns true if `name` or `namespace/name` refers to the object of this key.
pub(super) fn same_name(name: &str, key: &str) -> bool {
    key == name || key.rsplit_once('/').is_some_and(|(_, last)| last == name)
}

/// Describes a request: `WATCH resourceVersion=$b (1004)`.
pub(super) fn query_words(
    names: &Names<'_, '_>,
    kind: RequestKind,
    query: &[QueryMatch],
    seq: u64,
) -> String {
    let mut text = asked_words(kind);
    for condition in query {
        text.push_str(&format!(
            " {}{}",
            condition.name,
            expected_words(names, &condition.value, seq)
        ));
    }
    text
}

/// Describes a kind: `LIST`, `page 2 of a LIST`, `WATCH`, `any request`.
fn asked_words(kind: RequestKind) -> String {
    match kind {
        RequestKind::List => "LIST".to_owned(),
        RequestKind::Page { page } => format!("LIST (page {page})"),
        RequestKind::Watch => "WATCH".to_owned(),
        RequestKind::Any => "any request".to_owned(),
    }
}

/// Describes an event: `apply b@1004`.
pub(super) fn emitted_words(names: &Names<'_, '_>, expected: &EmittedMatch, seq: u64) -> String {
    let mut text = expected.kind.word().to_owned();
    if let Some(name) = &expected.name {
        text.push_str(&format!(" {name}"));
    }
    if let Some(version) = &expected.resource_version {
        text.push_str(&format!(
            " resourceVersion{}",
            expected_words(names, version, seq)
        ));
    }
    text.push_str(&words_for_error(expected));
    if expected.nth > 1 {
        text.push_str(&format!(" (time {})", expected.nth));
    }
    text
}

fn expected_words(names: &Names<'_, '_>, expected: &Expected, seq: u64) -> String {
    match expected {
        Expected::Is(text) => format!("={text}"),
        Expected::Not(not) => format!(" not {}", expected_words(names, not, seq).trim_start_matches('=')),
        Expected::Absent => " absent".to_owned(),
        Expected::Present => " present".to_owned(),
        Expected::Ref(reference) => {
            let name = match reference {
                Ref::Start => "$start".to_owned(),
                Ref::ResourceVersion(name) => format!("${name}"),
                Ref::Continue(name) => format!("${name}.continue"),
            };
            match names.value(reference, seq) {
                Some(value) if value.chars().count() <= 40 => format!("={value} ({name})"),
                Some(_) => format!("={name}"),
                None => format!("={name} (which never got a value)"),
            }
        }
    }
}

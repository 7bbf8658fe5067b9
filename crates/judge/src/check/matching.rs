//! Matches requests and events against expectations, and describes the expectations.

use std::borrow::Cow;

use ::trace::record::{FrameType, Verb};
use scenario::matching::{self, Read, kind_meets, words_for_error};
use scenario::{ClientView, EmittedMatch, Expected, QueryMatch, Ref, RequestExpect, RequestKind, rule};

use super::{Exchange, Reported, Trace};

/// Values of the scenario's names.
pub(super) struct Names<'t, 'a> {
    trace: &'t Trace<'a>,
    view: &'t ClientView,
    /// Names of expected requests, with the requests that met them.
    met: Vec<(String, &'t Exchange<'a>)>,
}

/// Values of names at a record.
pub(super) struct At<'n, 't, 'a> {
    names: &'n Names<'t, 'a>,
    seq: u64,
    /// Whether a value is compared with those of reports, not of requests.
    reports: bool,
}

impl matching::Names for At<'_, '_, '_> {
    fn value(&self, reference: &Ref) -> Option<Cow<'_, str>> {
        self.names.value(reference, self.seq).map(Cow::Borrowed)
    }

    fn stands_for(&self, expected: &str, value: &str) -> bool {
        if self.reports {
            self.names.view.rewrote(expected, value)
        } else {
            self.names.view.resumes_at(expected, value, self.seq)
        }
    }
}

impl<'t, 'a> Names<'t, 'a> {
    pub(super) fn new(trace: &'t Trace<'a>, view: &'t ClientView) -> Self {
        Self {
            trace,
            view,
            met: Vec::new(),
        }
    }

    /// Returns the values at a request.
    fn at(&self, exchange: &Exchange<'_>) -> At<'_, 't, 'a> {
        At {
            names: self,
            seq: exchange.asked.seq,
            reports: false,
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
    let is_page = match kind {
        RequestKind::Page { page } => exchange.page == page,
        RequestKind::List | RequestKind::Watch | RequestKind::Any => true,
    };
    exchange.verb != Verb::Other && is_page && rule::kind_meets(kind, exchange.verb, exchange.query)
}

/// Returns true if the request matches one of the alternatives and was answered as expected.
pub(super) fn any_of(names: &Names<'_, '_>, expected: &RequestExpect, exchange: &Exchange<'_>) -> bool {
    let mut alternatives = expected.any_of.iter();
    alternatives.any(|request| {
        let is_meant = of_kind(exchange, request.kind) && matches(names, &request.query, exchange);
        is_meant || starts_instead(names, request.kind, &request.query, exchange)
    }) && is_answered(names, expected, exchange)
}

/// Returns true if the request is a WATCH that stands for an expected LIST.
pub(super) fn starts_instead(
    names: &Names<'_, '_>,
    kind: RequestKind,
    query: &[QueryMatch],
    exchange: &Exchange<'_>,
) -> bool {
    matching::starts_instead(kind, query, read(exchange), &names.at(exchange))
}

/// Returns true if a WATCH that stands for the LIST before it stands for the expected WATCH too.
pub(super) fn continues_start(
    names: &Names<'_, '_>,
    expected: &RequestExpect,
    exchange: &Exchange<'_>,
) -> bool {
    let mut alternatives = expected.any_of.iter();
    alternatives.any(|request| {
        matching::continues_start(request.kind, &request.query, read(exchange), &names.at(exchange))
    }) && is_answered(names, expected, exchange)
}

fn is_answered(names: &Names<'_, '_>, expected: &RequestExpect, exchange: &Exchange<'_>) -> bool {
    let status = exchange.head.map(|head| head.status);
    expected.answered.is_none_or(|wanted| status == Some(wanted))
        && expected.headers.iter().all(|header| {
            let value = header_of(exchange, &header.name);
            matching::value_is(&header.value, value, &names.at(exchange))
        })
}

/// Returns the request as conditions see it.
fn read<'a>(exchange: &Exchange<'a>) -> Read<'a> {
    Read {
        verb: exchange.verb,
        query: exchange.query,
    }
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
    let relisted = reads[from..=next].iter().any(|start| read(start).is_start());
    (relisted || any_of(names, expected, reads[next])).then_some(next)
}

/// Returns true if the request satisfies every condition.
pub(super) fn matches(names: &Names<'_, '_>, query: &[QueryMatch], exchange: &Exchange<'_>) -> bool {
    matching::query_meets(query, read(exchange), &names.at(exchange))
}

/// Returns true if the request satisfies every condition to the letter: for what a client must not send.
pub(super) fn is_exactly(names: &Names<'_, '_>, query: &[QueryMatch], exchange: &Exchange<'_>) -> bool {
    matching::query_is(query, read(exchange), &names.at(exchange))
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
            let at = At {
                names,
                seq: reported.at.seq,
                reports: true,
            };
            matching::value_meets(version, value, &at)
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

//! Validates expectations: requests, events, cache, and excused invariants.

use super::Validator;
use super::names::Named;
use super::world::World;
use crate::problem::{Code, Problem};
use crate::raw::RequestMatch;
use crate::read::{At, Both, WordOr};
use crate::span::Span;
use crate::words::nearest;
use crate::{
    Covered, EmittedExpect, EmittedNever, Excuse, Expect, Expected, QueryMatch, Ref, RequestCount,
    RequestExpect, RequestKind, RequestNever, RequestPattern, catalogue, raw,
};

impl Validator<'_> {
    pub(super) fn expect(&mut self, world: &World, covers: &[Covered], expect: raw::Expectations) -> Expect {
        // Names given by expected requests must not be visible to earlier keys: requests are validated first.
        let requests: Vec<RequestExpect> = expect
            .requests
            .unwrap_or_default()
            .into_iter()
            .filter_map(|request| self.request_expected(covers, request))
            .collect();
        let only = expect.only.as_ref().is_some_and(|only| only.value);
        if let Some(at) = expect
            .only
            .as_ref()
            .filter(|only| only.value && requests.is_empty())
        {
            self.problem(
                Problem::new(
                    Code::Conflict,
                    at.span,
                    "`only` without `requests` would forbid every request",
                )
                .label("only which?")
                .hint("list the requests that may come under `requests`"),
            );
        }
        let never = expect
            .never
            .unwrap_or_default()
            .into_iter()
            .filter_map(|request| self.request_forbidden(covers, &request))
            .collect();
        let counts = expect
            .counts
            .unwrap_or_default()
            .into_iter()
            .filter_map(|request| self.request_counted(covers, &request))
            .collect();
        let events = expect.events.unwrap_or_default();
        let events = events
            .into_iter()
            .filter_map(|event| self.event_expected(world, covers, &event))
            .collect();
        let never_emitted = expect.never_emitted.unwrap_or_default();
        let never_emitted = never_emitted
            .into_iter()
            .filter_map(|event| self.event_forbidden(world, covers, &event))
            .collect();
        let cache = expect.cache.map(|names| {
            let mut cache: Vec<String> = Vec::new();
            for name in names {
                self.known_name(world, &name.value.0, name.span, Code::UnknownObject);
                if cache.contains(&name.value.0) {
                    self.repeated(name.span, &format!("`{}` is in the cache once", name.value.0));
                }
                cache.push(name.value.0);
            }
            cache
        });
        let sole: Vec<String> = match covers {
            [sole] => vec![sole.id.clone()],
            _ => Vec::new(),
        };
        let mut named_or = |ids: Option<&At<Vec<At<String>>>>, default: &[String]| match ids {
            None => default.to_vec(),
            Some(none) if none.value.is_empty() => Vec::new(),
            Some(ids) => self.named(covers, ids),
        };
        let converges = named_or(expect.converges.as_ref(), &sole);
        let goes_on = named_or(expect.goes_on.as_ref(), &converges);
        let survives = named_or(expect.survives.as_ref(), &converges);
        let not_converged_because = expect
            .not_converged
            .as_ref()
            .map(|_| self.prose(expect.not_converged.as_ref(), "not_converged"));
        Expect {
            requests,
            only,
            never,
            counts,
            events,
            never_emitted,
            cache,
            converges,
            goes_on,
            survives,
            not_converged_because,
            within_ms: self.positive_ms(expect.within.as_ref()),
            settle_ms: self.ms(expect.settle.as_ref()).unwrap_or(0),
            excused: self.excuses(expect.excused.unwrap_or_default()),
        }
    }

    fn request_expected(
        &mut self,
        covers: &[Covered],
        at: At<WordOr<raw::RequestExpected>>,
    ) -> Option<RequestExpect> {
        let At {
            span,
            value: WordOr(Both(keys, own)),
        } = at;
        let any_of = match (&keys.any_of, &keys.resume) {
            (None, None) => vec![self.request(&own, span)?],
            (Some(alternatives), None) => {
                if let Some((word, span)) = own.given().first() {
                    self.problem(
                        Problem::new(
                            Code::Conflict,
                            *span,
                            format!("both `{word}` and `any_of` are given"),
                        )
                        .label("belongs into `any_of`")
                        .hint("make it one of the alternatives"),
                    );
                    return None;
                }
                self.alternatives(alternatives)?
            }
            (alternatives, Some(version)) => {
                let other = alternatives.as_ref().map(|any_of| ("any_of", any_of.span));
                if let Some((word, span)) = other.or_else(|| own.given().first().copied()) {
                    self.problem(
                        Problem::new(
                            Code::Conflict,
                            span,
                            format!("both `{word}` and `resume` are given"),
                        )
                        .label("needs a separate entry")
                        .hint("a `resume` is a watch from that version, or a relist"),
                    );
                    return None;
                }
                let value = self.condition(version);
                let from = QueryMatch {
                    name: "resourceVersion".to_owned(),
                    value,
                    at: self.place(version.span),
                };
                vec![RequestPattern {
                    kind: RequestKind::Watch,
                    query: vec![from],
                }]
            }
        };
        let headers = keys.headers.as_ref().map(|headers| {
            let raw::Headers { accept, user_agent } = &headers.value;
            self.conditions([("Accept", accept), ("User-Agent", user_agent)])
        });
        let headers = headers.unwrap_or_default();
        let gap = keys.gap.as_ref();
        let at_least_after_ms = gap.and_then(|gap| self.ms(gap.value.at_least.as_ref()));
        let at_most_after_ms = gap.and_then(|gap| self.ms(gap.value.at_most.as_ref()));
        if let Some(gap) = gap {
            let bounds = gap.value.at_least.is_some() || gap.value.at_most.is_some();
            let order = at_least_after_ms
                .zip(at_most_after_ms)
                .is_none_or(|(least, most)| least <= most);
            if !bounds || !order {
                self.problem(
                    Problem::new(
                        Code::Conflict,
                        gap.span,
                        "`gap` needs `at_least`, `at_most`, or both with the smaller one first",
                    )
                    .label("no such time"),
                );
            }
        }
        let name = keys.name.as_ref().map(|name| {
            let lists = |request: &RequestPattern| {
                matches!(request.kind, RequestKind::List | RequestKind::Page { .. })
            };
            let named = if any_of.iter().all(lists) {
                Named::List
            } else {
                Named::Moment
            };
            self.bind(name, named)
        });
        Some(RequestExpect {
            any_of,
            or_relist: keys.resume.is_some(),
            answered: keys
                .answered
                .as_ref()
                .and_then(|status| u16::try_from(status.value).ok()),
            headers,
            at_least_after_ms,
            at_most_after_ms,
            name,
            requirements: self.requirements(covers, keys.requirements.as_ref()),
            at: self.place(span),
        })
    }

    fn alternatives(&mut self, at: &At<Vec<At<WordOr<RequestMatch>>>>) -> Option<Vec<RequestPattern>> {
        if at.value.is_empty() {
            self.problem(
                Problem::new(Code::Empty, at.span, "`any_of` has no alternative")
                    .label("requests belong here"),
            );
            return None;
        }
        let alternatives = at.value.iter();
        alternatives
            .map(|alternative| self.request(&alternative.value.0, alternative.span))
            .collect()
    }

    fn request_forbidden(
        &mut self,
        covers: &[Covered],
        at: &At<WordOr<raw::RequestForbidden>>,
    ) -> Option<RequestNever> {
        let At {
            span,
            value: WordOr(Both(keys, own)),
        } = at;
        let RequestPattern { kind, query } = self.request(own, *span)?;
        let after = self.step_named(keys.after.as_ref());
        Some(RequestNever {
            kind,
            query,
            after,
            requirements: self.requirements(covers, keys.requirements.as_ref()),
            at: self.place(*span),
        })
    }

    fn request_counted(&mut self, covers: &[Covered], at: &At<raw::RequestCounted>) -> Option<RequestCount> {
        let At {
            span,
            value: Both(keys, own),
        } = at;
        let RequestPattern { kind, query } = self.request(own, *span)?;
        let count = |at: &Option<At<u64>>| at.as_ref().map(|at| u32::try_from(at.value).unwrap_or(u32::MAX));
        let (at_least, at_most, exactly) =
            (count(&keys.at_least), count(&keys.at_most), count(&keys.exactly));
        let sound = match (at_least, at_most, exactly) {
            (None, None, Some(_)) => true,
            (Some(least), Some(most), None) => least <= most,
            (Some(_), None, None) | (None, Some(_), None) => true,
            (None, None, None) | (Some(_), _, Some(_)) | (None, Some(_), Some(_)) => false,
        };
        if !sound {
            self.problem(
                Problem::new(
                    Code::Conflict,
                    *span,
                    "a count is `exactly`, or `at_least` and `at_most` with the smaller one first",
                )
                .label("how many?")
                .hint("e.g. `{list: {}, at_most: 3}`"),
            );
        }
        Some(RequestCount {
            kind,
            query,
            at_least: at_least.or(exactly),
            at_most: at_most.or(exactly),
            requirements: self.requirements(covers, keys.requirements.as_ref()),
            at: self.place(*span),
        })
    }

    fn event_expected(
        &mut self,
        world: &World,
        covers: &[Covered],
        at: &At<WordOr<raw::EventExpected>>,
    ) -> Option<EmittedExpect> {
        let At {
            span,
            value: WordOr(Both(keys, emitted)),
        } = at;
        let event = self.emitted(world, emitted, *span, Code::UnknownObject)?;
        let requirements = self.requirements(covers, keys.requirements.as_ref());
        Some(EmittedExpect { event, requirements })
    }

    fn event_forbidden(
        &mut self,
        world: &World,
        covers: &[Covered],
        at: &At<WordOr<raw::EventForbidden>>,
    ) -> Option<EmittedNever> {
        let At {
            span,
            value: WordOr(Both(window, emitted)),
        } = at;
        let event = self.emitted(world, emitted, *span, Code::UnknownObject)?;
        let before = self.step_named(window.before.as_ref());
        let after = self.step_named(window.after.as_ref());
        Some(EmittedNever {
            event,
            before,
            after,
            requirements: self.requirements(covers, window.requirements.as_ref()),
        })
    }

    /// Validates the `requirements` of an expectation. Default: the first that the scenario covers.
    fn requirements(&mut self, covers: &[Covered], ids: Option<&At<Vec<At<String>>>>) -> Vec<String> {
        match ids {
            Some(ids) => self.named(covers, ids),
            None => covers.first().map(|first| first.id.clone()).into_iter().collect(),
        }
    }

    /// Validates ids, which must be among those that the scenario covers.
    pub(super) fn named(&mut self, covers: &[Covered], ids: &At<Vec<At<String>>>) -> Vec<String> {
        if ids.value.is_empty() {
            self.problem(
                Problem::new(Code::Empty, ids.span, "no requirement is named")
                    .label("an id of `covers` belongs here")
                    .hint("leave the key out for the default"),
            );
        }
        let mut requirements: Vec<String> = Vec::new();
        for id in &ids.value {
            if !covers.iter().any(|covered| covered.id == id.value) {
                self.not_covered(covers, id);
            } else if requirements.contains(&id.value) {
                self.repeated(id.span, &format!("`{}` is listed twice", id.value));
            }
            requirements.push(id.value.clone());
        }
        requirements
    }

    fn not_covered(&mut self, covers: &[Covered], id: &At<String>) {
        let covered = covers.iter().map(|covered| covered.id.as_str());
        let exists = catalogue::requirement(&id.value).is_some();
        let hint = match (exists, nearest(&id.value, covered)) {
            (true, None) => String::from("add it to `covers`"),
            (true, Some(meant)) => format!("add it to `covers`, or did you mean `{meant}`?"),
            (false, Some(meant)) => format!("did you mean `{meant}`?"),
            (false, None) => {
                String::from("use an id of `covers`; requirements/catalogue.yaml lists them all")
            }
        };
        self.problem(
            Problem::new(
                Code::UnknownRequirement,
                id.span,
                format!("the scenario does not cover `{}`", id.value),
            )
            .label("not in `covers`")
            .hint(hint),
        );
    }

    /// Validates the kind of a request and its query.
    fn request(&mut self, request: &RequestMatch, span: Span) -> Option<RequestPattern> {
        let given = request.given();
        let &[(word, _)] = given.as_slice() else {
            self.problem(
                Problem::new(
                    Code::Conflict,
                    given.get(1).map_or(span, |(_, span)| *span),
                    "a request is of one kind",
                )
                .label("one kind belongs here")
                .hint("one of `list`, `page`, `watch`, `request`"),
            );
            return None;
        };
        if let Some(query) = request.query.as_ref().filter(|_| word != "page") {
            self.problem(
                Problem::new(
                    Code::Misplaced,
                    query.span,
                    format!("the query of a `{word}` belongs under the word itself"),
                )
                .label("does not belong here")
                .hint(format!("write `{word}: {{…}}`; only `page` has a `query`")),
            );
        }
        let (kind, query) = match request {
            RequestMatch {
                list: Some(query), ..
            } => (RequestKind::List, query.value.0.as_ref()),
            RequestMatch {
                watch: Some(query), ..
            } => (RequestKind::Watch, query.value.0.as_ref()),
            RequestMatch {
                request: Some(query), ..
            } => (RequestKind::Any, query.value.0.as_ref()),
            RequestMatch { page, query, .. } => {
                let page = page
                    .as_ref()
                    .map_or(2, |page| u32::try_from(page.value).unwrap_or(u32::MAX));
                (
                    RequestKind::Page { page },
                    query.as_ref().map(|query| &query.value),
                )
            }
        };
        let query = query.map(|query| self.query(query)).unwrap_or_default();
        let token = query.iter().find(|condition| condition.name == "continue");
        if let (RequestKind::List, Some(QueryMatch { value, .. })) = (kind, token)
            && matches!(
                value,
                Expected::Is(_) | Expected::Present | Expected::Ref(Ref::Continue(_))
            )
        {
            self.problem(
                Problem::new(
                    Code::NeverMet,
                    span,
                    "a `list` is a LIST without a continue token, so it never has one",
                )
                .label("never comes")
                .hint("write `page: 2` (or another page) with a `query`"),
            );
        }
        Some(RequestPattern { kind, query })
    }

    fn excuses(&mut self, excuses: Vec<At<raw::Excuses>>) -> Vec<Excuse> {
        let mut out: Vec<Excuse> = Vec::new();
        for (id, reason) in excuses.into_iter().flat_map(|excuse| excuse.value.0) {
            if catalogue::invariant(&id.value).is_none() {
                let known = catalogue::invariants()
                    .iter()
                    .map(|invariant| invariant.id.as_str());
                let hint = match nearest(&id.value, known) {
                    Some(meant) => {
                        format!("did you mean `{meant}`? requirements/catalogue.yaml lists them all")
                    }
                    None => String::from("requirements/catalogue.yaml lists them all"),
                };
                self.problem(
                    Problem::new(
                        Code::UnknownInvariant,
                        id.span,
                        format!("there is no invariant `{}`", id.value),
                    )
                    .label("unknown id")
                    .hint(hint),
                );
            } else if out.iter().any(|earlier| earlier.invariant == id.value) {
                self.repeated(id.span, &format!("`{}` is excused twice", id.value));
            }
            let because = reason
                .value
                .0
                .map(|text| text.0.trim().to_owned())
                .unwrap_or_default();
            if because.is_empty() {
                self.problem(
                    Problem::new(
                        Code::Empty,
                        id.span,
                        format!("`{}` is excused without a reason", id.value),
                    )
                    .label("why does it not hold here?")
                    .hint(format!(
                        "write `{}: <the lie of the server that breaks it>`",
                        id.value
                    )),
                );
            }
            out.push(Excuse {
                invariant: id.value,
                because,
                at: self.place(id.span),
            });
        }
        out
    }
}

impl RequestMatch {
    fn given(&self) -> Vec<(&'static str, Span)> {
        let kinds = [
            self.list.as_ref().map(|at| ("list", at.span)),
            self.page.as_ref().map(|at| ("page", at.span)),
            self.watch.as_ref().map(|at| ("watch", at.span)),
            self.request.as_ref().map(|at| ("request", at.span)),
        ];
        kinds.into_iter().flatten().collect()
    }
}

//! Validates steps: triggers, and the actions that fit them.

use super::Validator;
use super::fit::{Progress, ResponseKind};
use super::names::Named;
use super::reach::{Awaited, Reach};
use super::world::World;
use crate::problem::{Code, Problem};
use crate::raw::{ActionKeys, Condition, Query, When};
use crate::read::{At, Both, First, WordOr};
use crate::span::Span;
use crate::{Action, Covered, QueryMatch, RequestKind, RequestTrigger, Step, Times, Trigger, raw};

impl Validator<'_> {
    pub(super) fn step(
        &mut self,
        world: &mut World,
        reach: &mut Reach,
        covers: &[Covered],
        step: At<WordOr<raw::Step>>,
    ) -> Step {
        let At {
            span,
            value: WordOr(Both(keys, mut own)),
        } = step;
        let at = self.place(span);
        let name = own.name.take();
        let times = self.times(keys.times.as_ref(), keys.lasts.as_ref(), "a step");
        let (when, answer) = match &keys.when {
            Some(when) => self.trigger(world, when),
            None => (Trigger::Now, ResponseKind::OpenWatch),
        };
        let optional = keys.optional.as_ref().is_some_and(|optional| optional.value);
        if when == Trigger::Now {
            self.follows_optional(keys.optional.as_ref());
        }
        self.optional = keys.optional.as_ref().filter(|_| optional).map(|at| at.span);
        let required = reach.clone();
        if let (Trigger::Request(request), Some(when)) = (&when, &keys.when) {
            let awaited = Awaited {
                kind: request.kind,
                nth: request.nth.map(u64::from),
                times,
                span: when.span,
                line: at.line,
            };
            let problem = reach.wait(awaited);
            self.problems.extend(problem);
            if optional {
                *reach = required;
            }
        } else if let Some(many) = keys
            .times
            .as_ref()
            .map(|times| times.span)
            .or(keys.lasts.as_ref().map(|l| l.span))
        {
            self.problem(
                Problem::new(
                    Code::Misplaced,
                    many,
                    "only a step that waits for a request can be met several times",
                )
                .label("does not belong here")
                .hint("wait for `list`, `page`, `watch` or `request`, or leave it out"),
            );
        }

        let mut items: Vec<(ActionKeys, Span)> = Vec::new();
        let alone = own.given();
        match (keys.actions, alone.first()) {
            (Some(actions), Some((word, span))) => {
                self.problem(
                    Problem::new(Code::Conflict, *span, format!("both `{word}` and `do` are given"))
                        .label("belongs into `do`")
                        .hint("put actions either in the step itself or in its `do`"),
                );
                items.extend(
                    actions
                        .value
                        .0
                        .into_iter()
                        .map(|action| (action.value.0, action.span)),
                );
            }
            (Some(actions), None) => {
                if actions.value.0.is_empty() {
                    self.problem(
                        Problem::new(Code::Empty, actions.span, "`do` does nothing")
                            .label("an action belongs here"),
                    );
                }
                items.extend(
                    actions
                        .value
                        .0
                        .into_iter()
                        .map(|action| (action.value.0, action.span)),
                );
            }
            (None, Some(_)) => items.push((own, span)),
            (None, None) if keys.when.is_none() => self.problem(
                Problem::new(Code::Empty, span, "this step neither waits nor does anything")
                    .label("a trigger or an action belongs here")
                    .hint("e.g. `apply: {configmap: {name: b}}`, or `when: {watch: 1}` and `do: …`"),
            ),
            (None, None) => {}
        }

        let mut actions = Vec::new();
        let mut progress = Progress::default();
        for (keys, span) in items {
            actions.extend(self.action(world, reach, keys, span, answer, &mut progress));
        }
        if let Some(name) = &name {
            self.name_step(&name.value);
            let list = matches!(&when, Trigger::Request(r) if matches!(r.kind, RequestKind::List | RequestKind::Page { .. }));
            let waits_for_request = matches!(when, Trigger::Request(_));
            let write = actions
                .iter_mut()
                .rev()
                .find_map(Action::binds_mut)
                .filter(|binds| binds.is_none() && !waits_for_request);
            match write {
                Some(binds) => *binds = Some(self.bind(name, Named::Version)),
                None => {
                    self.bind(name, if list { Named::List } else { Named::Moment });
                }
            }
        }
        let within_ms = self.positive_ms(keys.within.as_ref());
        Step {
            at,
            name: name.map(|name| name.value),
            when,
            optional,
            times,
            actions,
            within_ms,
            requirements: keys
                .requirements
                .as_ref()
                .map(|ids| self.named(covers, ids))
                .unwrap_or_default(),
        }
    }

    /// Reports an error for a step without trigger after an optional one: it would always be met first.
    fn follows_optional(&mut self, own: Option<&At<bool>>) {
        let (at, message, hint) = match (own, self.optional) {
            (Some(own), _) if own.value => (
                own.span,
                "a step that waits for nothing cannot be optional",
                "give it a `when`, or leave `optional` out",
            ),
            (_, Some(optional)) => (
                optional,
                "this step is always skipped: the one behind it waits for nothing",
                "let the next step wait, e.g. `when: synced`, or `when: {after: 5s}`",
            ),
            (_, None) => return,
        };
        self.problem(
            Problem::new(Code::NeverMet, at, message)
                .label("never met")
                .hint(hint),
        );
    }

    /// Checks that the last step, which determines the end of the script, is required.
    pub(super) fn last_step_is_required(&mut self) {
        if let Some(optional) = self.optional.take() {
            self.problem(
                Problem::new(Code::Conflict, optional, "the last step cannot be optional")
                    .label("nothing would skip it")
                    .hint("add a step that must be met, e.g. `when: synced`"),
            );
        }
    }

    /// Validates how often a step or a rule, called `what`, matches.
    pub(super) fn times(
        &mut self,
        times: Option<&At<u64>>,
        lasts: Option<&At<raw::Duration>>,
        what: &str,
    ) -> Times {
        match (times, lasts) {
            (Some(times), Some(_)) => {
                self.problem(
                    Problem::new(
                        Code::Conflict,
                        times.span,
                        format!("{what} is met so many times or for so long, not both"),
                    )
                    .label("leave this or `for` out"),
                );
                Times::Count(1)
            }
            (Some(times), None) => Times::Count(u32::try_from(times.value).unwrap_or(u32::MAX)),
            (None, Some(_)) => Times::For(self.positive_ms(lasts).unwrap_or(0)),
            (None, None) => Times::Count(1),
        }
    }

    pub(super) fn trigger(&mut self, world: &World, at: &At<WordOr<When>>) -> (Trigger, ResponseKind) {
        let when = &at.value.0;
        let given: Vec<(&str, Span)> = [
            when.list.as_ref().map(|at| ("list", at.span)),
            when.page
                .as_ref()
                .filter(|_| when.list.is_none())
                .map(|at| ("page", at.span)),
            when.watch.as_ref().map(|at| ("watch", at.span)),
            when.request.as_ref().map(|at| ("request", at.span)),
            when.emitted.as_ref().map(|at| ("emitted", at.span)),
            when.after.as_ref().map(|at| ("after", at.span)),
            when.quiet.as_ref().map(|at| ("quiet", at.span)),
            when.synced.as_ref().map(|at| ("synced", at.span)),
        ]
        .into_iter()
        .flatten()
        .collect();
        let &[(word, span)] = given.as_slice() else {
            let problem = match given.first() {
                None => Problem::new(Code::Empty, at.span, "`when` waits for nothing")
                    .hint("wait for one of `list`, `page`, `watch`, `request`, `emitted`, `after`, `quiet`, `synced`, or leave `when` out"),
                Some((first, _)) => {
                    let span = given.get(1).map_or(at.span, |(_, span)| *span);
                    Problem::new(Code::Conflict, span, format!("a step waits for one thing, and this one already for `{first}`"))
                        .label("a second trigger")
                        .hint("make two steps of it: they are met one after the other")
                }
            };
            self.problem(problem);
            return (Trigger::Now, ResponseKind::Any);
        };
        if let Some(query) = when
            .query
            .as_ref()
            .filter(|_| !matches!(word, "list" | "page" | "watch" | "request"))
        {
            self.problem(
                Problem::new(
                    Code::Misplaced,
                    query.span,
                    format!("only a request has a query; this step waits for `{word}`"),
                )
                .label("does not belong here"),
            );
        }
        let query = when
            .query
            .as_ref()
            .map(|query| self.query(&query.value))
            .unwrap_or_default();
        let request = |kind, nth| Trigger::Request(RequestTrigger { kind, nth, query });
        match (word, when) {
            (
                _,
                When {
                    list: Some(nth),
                    page: None,
                    ..
                },
            ) => (request(RequestKind::List, self.nth(nth)), ResponseKind::List),
            (
                _,
                When {
                    list,
                    page: Some(page),
                    ..
                },
            ) => {
                let of = list.as_ref().and_then(|nth| self.nth(nth));
                if let (Some(list), None) = (list, of) {
                    self.problem(
                        Problem::new(
                            Code::Conflict,
                            list.span,
                            "a page of the `next` list cannot be waited for",
                        )
                        .label("which one?")
                        .hint("write `page: …` alone for the latest list, or give the list's number"),
                    );
                }
                let page = u32::try_from(page.value).unwrap_or(u32::MAX);
                (request(RequestKind::Page { page }, of), ResponseKind::List)
            }
            (_, When { watch: Some(nth), .. }) => {
                (request(RequestKind::Watch, self.nth(nth)), ResponseKind::Watch)
            }
            (
                _,
                When {
                    request: Some(nth), ..
                },
            ) => (request(RequestKind::Any, self.nth(nth)), ResponseKind::Any),
            (
                _,
                When {
                    emitted: Some(emitted),
                    ..
                },
            ) => {
                let wanted = self.emitted(world, &emitted.value.0, emitted.span, Code::NeverMet);
                (
                    wanted.map_or(Trigger::Now, Trigger::Emitted),
                    ResponseKind::OpenWatch,
                )
            }
            (_, When { synced: Some(_), .. }) => (Trigger::Synced, ResponseKind::OpenWatch),
            (_, When { after: Some(_), .. }) => (
                Trigger::After(self.positive_ms(when.after.as_ref()).unwrap_or(0)),
                ResponseKind::OpenWatch,
            ),
            _ => {
                let _ = span;
                (
                    Trigger::Quiet(self.positive_ms(when.quiet.as_ref()).unwrap_or(0)),
                    ResponseKind::OpenWatch,
                )
            }
        }
    }

    fn nth(&mut self, nth: &At<raw::Nth>) -> Option<u32> {
        let number = nth.value.0.parse().ok();
        if number.is_none() && nth.value.0 != "next" {
            self.problem(
                Problem::new(Code::OutOfRange, nth.span, "too large a number")
                    .label("no client asks so often"),
            );
        }
        number
    }

    /// Converts conditions on query parameters.
    pub(super) fn query(&mut self, query: &Query) -> Vec<QueryMatch> {
        let Query {
            resource_version,
            resource_version_match,
            limit,
            continue_token,
            watch,
            allow_watch_bookmarks,
            send_initial_events,
            timeout_seconds,
            label_selector,
            field_selector,
        } = query;
        let parameters = [
            ("resourceVersion", resource_version),
            ("resourceVersionMatch", resource_version_match),
            ("limit", limit),
            ("continue", continue_token),
            ("watch", watch),
            ("allowWatchBookmarks", allow_watch_bookmarks),
            ("sendInitialEvents", send_initial_events),
            ("timeoutSeconds", timeout_seconds),
            ("labelSelector", label_selector),
            ("fieldSelector", field_selector),
        ];
        self.conditions(parameters)
    }

    /// Returns the conditions given, in order.
    pub(super) fn conditions<'r>(
        &mut self,
        given: impl IntoIterator<Item = (&'r str, &'r Option<At<First<Condition>>>)>,
    ) -> Vec<QueryMatch> {
        let mut matches = Vec::new();
        for (name, condition) in given {
            if let Some(condition) = condition {
                let value = self.condition(condition);
                matches.push(QueryMatch {
                    name: name.to_owned(),
                    value,
                    at: self.place(condition.span),
                });
            }
        }
        matches
    }
}

//! Steps: triggers, and which actions make sense for them.

use super::Validator;
use super::names::Named;
use super::objects::World;
use super::reach::{Awaited, Reach};
use crate::fault::{Cut, Ending, Pace};
use crate::scenario::errors::{Code, Problem};
use crate::scenario::raw::{self, ActionKeys, Condition, Emitted, EndingWord, Name, Query, StatusKeys, When};
use crate::scenario::read::{At, Both, First, OneOrMany, OrNothing, Text, WordOr};
use crate::scenario::tree::Span;
use crate::scenario::words::suggest;
use crate::scenario::{
    Action, EmittedKind, EmittedMatch, ItemsShape, PageEdit, QueryMatch, RawFrame, Reply, ReplyBody,
    RequestKind, RequestTrigger, StatusSpec, Step, Times, Trigger,
};

/// What the actions of a step act on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    /// A LIST or a page.
    List,
    /// A WATCH.
    Watch,
    /// A request of any kind.
    Any,
    /// No request: the newest open watch.
    OpenWatch,
}

/// How far the answer is when an action's turn comes.
#[derive(Debug, Default)]
struct Progress {
    replied: Option<Span>,
    begun: Option<Span>,
    truncated: Option<Span>,
    ended: Option<Span>,
}

impl Validator<'_> {
    pub(super) fn step(&mut self, world: &mut World, reach: &mut Reach, step: At<WordOr<raw::Step>>) -> Step {
        let At {
            span,
            value: WordOr(Both(keys, mut own)),
        } = step;
        let at = self.place(span);
        let name = own.name.take();
        let times = self.times(&keys);
        let (when, answer) = match &keys.when {
            Some(when) => self.trigger(world, when),
            None => (Trigger::Now, Answer::OpenWatch),
        };
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
                    Problem::new(Code::Conflict, *span, format!("`{word}` stands beside `do`"))
                        .label("belongs into `do`")
                        .hint("an action stands either in the step itself or in its `do`"),
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
                .find_map(binds_of)
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
            times,
            actions,
            within_ms,
        }
    }

    fn times(&mut self, keys: &raw::StepKeys) -> Times {
        match (&keys.times, &keys.lasts) {
            (Some(times), Some(_)) => {
                self.problem(
                    Problem::new(
                        Code::Conflict,
                        times.span,
                        "a step is met so many times or for so long, not both",
                    )
                    .label("leave this or `for` out"),
                );
                Times::Count(1)
            }
            (Some(times), None) => Times::Count(u32::try_from(times.value).unwrap_or(u32::MAX)),
            (None, Some(_)) => Times::For(self.positive_ms(keys.lasts.as_ref()).unwrap_or(0)),
            (None, None) => Times::Count(1),
        }
    }

    fn trigger(&mut self, world: &World, at: &At<When>) -> (Trigger, Answer) {
        let when = &at.value;
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
        ]
        .into_iter()
        .flatten()
        .collect();
        let &[(word, span)] = given.as_slice() else {
            let problem = match given.first() {
                None => Problem::new(Code::Empty, at.span, "`when` waits for nothing")
                    .hint("wait for one of `list`, `page`, `watch`, `request`, `emitted`, `after`, `quiet`, or leave `when` out"),
                Some((first, _)) => {
                    let span = given.get(1).map_or(at.span, |(_, span)| *span);
                    Problem::new(Code::Conflict, span, format!("a step waits for one thing, and this one already for `{first}`"))
                        .label("a second trigger")
                        .hint("make two steps of it: they are met one after the other")
                }
            };
            self.problem(problem);
            return (Trigger::Now, Answer::Any);
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
            ) => (request(RequestKind::List, self.nth(nth)), Answer::List),
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
                (request(RequestKind::Page { page }, of), Answer::List)
            }
            (_, When { watch: Some(nth), .. }) => (request(RequestKind::Watch, self.nth(nth)), Answer::Watch),
            (
                _,
                When {
                    request: Some(nth), ..
                },
            ) => (request(RequestKind::Any, self.nth(nth)), Answer::Any),
            (
                _,
                When {
                    emitted: Some(emitted),
                    ..
                },
            ) => {
                let wanted = self.emitted(world, &emitted.value.0, emitted.span, Code::NeverMet);
                (wanted.map_or(Trigger::Now, Trigger::Emitted), Answer::OpenWatch)
            }
            (_, When { after: Some(_), .. }) => (
                Trigger::After(self.positive_ms(when.after.as_ref()).unwrap_or(0)),
                Answer::OpenWatch,
            ),
            _ => {
                let _ = span;
                (
                    Trigger::Quiet(self.positive_ms(when.quiet.as_ref()).unwrap_or(0)),
                    Answer::OpenWatch,
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

    /// Conditions on query parameters.
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
        let mut matches = Vec::new();
        for (name, condition) in parameters {
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

    /// An event the client reports. `unknown`: what it is called when its object was never written.
    pub(super) fn emitted(
        &mut self,
        world: &World,
        emitted: &Emitted,
        span: Span,
        unknown: Code,
    ) -> Option<EmittedMatch> {
        let Emitted {
            init,
            init_apply,
            init_done,
            apply,
            delete,
            error,
            nth,
            rv,
        } = emitted;
        let plain = |at: &Option<At<()>>, kind| at.as_ref().map(|at| (kind, at.span, None));
        let named = |at: &Option<At<OrNothing<Text>>>, kind| {
            at.as_ref()
                .map(|at| (kind, at.span, at.value.0.as_ref().map(|text| text.0.clone())))
        };
        let kinds: Vec<(EmittedKind, Span, Option<String>)> = [
            plain(init, EmittedKind::Init),
            named(init_apply, EmittedKind::InitApply),
            plain(init_done, EmittedKind::InitDone),
            named(apply, EmittedKind::Apply),
            named(delete, EmittedKind::Delete),
            plain(error, EmittedKind::Error),
        ]
        .into_iter()
        .flatten()
        .collect();
        let [(kind, at, name)] = kinds.as_slice() else {
            self.problem(
                Problem::new(Code::Conflict, span, "an event is of one kind")
                    .label("one kind belongs here")
                    .hint("one of `init`, `init_apply`, `init_done`, `apply`, `delete`, `error`"),
            );
            return None;
        };
        let name = name.clone().filter(|name| name != "any");
        if let Some(name) = &name {
            self.known_name(world, name, *at, unknown);
        }
        let resource_version = rv.as_ref().map(|rv| self.condition(rv));
        if let Some(rv) = rv.as_ref().filter(|_| {
            matches!(
                kind,
                EmittedKind::Init | EmittedKind::InitDone | EmittedKind::Error
            )
        }) {
            self.problem(
                Problem::new(
                    Code::Misplaced,
                    rv.span,
                    format!("`{}` is about no object, so it has no version", kind.word()),
                )
                .label("does not belong here"),
            );
        }
        let nth = nth
            .as_ref()
            .map_or(1, |nth| u32::try_from(nth.value).unwrap_or(u32::MAX));
        Some(EmittedMatch {
            kind: *kind,
            name,
            resource_version,
            nth,
            at: self.place(span),
        })
    }

    /// Says so when `name` was never an object of the target.
    pub(super) fn known_name(&mut self, world: &World, name: &str, span: Span, code: Code) {
        if world.knows(name) {
            return;
        }
        let hint = match crate::scenario::words::nearest(name, world.names_of_target()) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => String::from("write it under `objects:` or with `apply:` in an earlier step"),
        };
        let message = match code {
            Code::NeverMet => format!("this never comes: no object `{name}` is written before it"),
            _ => format!("no object `{name}` is ever written"),
        };
        self.problem(
            Problem::new(code, span, message)
                .label("unknown object")
                .hint(hint),
        );
    }

    fn action(
        &mut self,
        world: &mut World,
        reach: &mut Reach,
        keys: ActionKeys,
        span: Span,
        answer: Answer,
        progress: &mut Progress,
    ) -> Option<Action> {
        let given = keys.given();
        let (word, at) = match given.as_slice() {
            &[one] => one,
            [] => {
                self.problem(
                    Problem::new(Code::Empty, span, "this item does nothing")
                        .label("an action belongs here")
                        .hint(suggest("", ActionKeys::ACTIONS.iter().copied())),
                );
                return None;
            }
            [(first, _), (second, second_at), ..] => {
                self.problem(
                    Problem::new(
                        Code::Conflict,
                        *second_at,
                        format!("`{first}` and `{second}` are two actions in one item"),
                    )
                    .label("the second one")
                    .hint("make each an item of `do: [ … ]`, in the order they are done"),
                );
                return None;
            }
        };
        self.placed(word, at, &keys, answer, progress);
        let name = keys.name.as_ref();
        let mut action = self.truth(world, &keys);
        reach.objects(world.count_of_target());
        if keys.restore.is_some()
            || (keys.reply.is_some() && answer != Answer::Watch)
            || keys.edit_page.is_some()
        {
            reach.scripts_lists();
        }
        if action.is_none() {
            action = self.on_the_answer(world, &keys);
        }
        if action.is_none() {
            action = self.on_the_socket(&keys);
        }
        if let Some(name) = name {
            match action.as_mut().and_then(binds_of) {
                Some(binds @ None) => *binds = Some(self.bind(name, Named::Version)),
                Some(Some(_)) => self.problem(
                    Problem::new(Code::DuplicateName, name.span, "this write has a name already")
                        .label("the second name"),
                ),
                None => self.problem(
                    Problem::new(
                        Code::Misplaced,
                        name.span,
                        format!("`{word}` has no version to give a name to"),
                    )
                    .label("does not belong here")
                    .hint("`as` stands beside `apply`, `delete`, `relabel` and `bookmark`, or in a step"),
                ),
            }
        }
        action
    }

    /// Does an action make sense for what the step waits for, and for what the actions before it did?
    fn placed(&mut self, word: &str, span: Span, keys: &ActionKeys, answer: Answer, progress: &mut Progress) {
        let by_events = keys
            .truncate
            .as_ref()
            .is_some_and(|truncate| truncate.value.after_events.is_some());
        let on_stream = by_events
            || matches!(
                word,
                "send"
                    | "event"
                    | "error"
                    | "bookmark"
                    | "drop_events"
                    | "repeat_event"
                    | "reorder_events"
                    | "no_bookmarks"
                    | "end_marker"
                    | "coalesce"
            );
        let on_request = matches!(word, "reply" | "edit_page" | "delay");
        let on_end = matches!(word, "end" | "eof" | "fin" | "rst" | "stall");
        let on_body = matches!(word, "drip" | "split_utf8" | "truncate") || on_end;
        if !(on_stream || on_request || on_body) {
            return;
        }
        let misplaced = match answer {
            Answer::List if on_stream => Some((
                "a LIST has no stream of events",
                "wait for a `watch`, or change the page with `edit_page`",
            )),
            Answer::Any if on_stream => Some((
                "a request of any kind may have no stream of events",
                "wait for a `watch`",
            )),
            Answer::Watch if word == "edit_page" => Some((
                "a WATCH has no page",
                "wait for a `list` or a `page`, or send events of your own",
            )),
            Answer::Any if word == "edit_page" => Some((
                "a request of any kind may have no page",
                "wait for a `list` or a `page`",
            )),
            Answer::OpenWatch if on_request => Some((
                "there is no request to answer",
                "wait for one: `when: {list: next}`, `when: {watch: next}`",
            )),
            Answer::List | Answer::Watch | Answer::Any | Answer::OpenWatch => None,
        };
        if let Some((message, hint)) = misplaced {
            self.problem(
                Problem::new(
                    Code::Misplaced,
                    span,
                    format!("`{word}` makes no sense here: {message}"),
                )
                .label("does not fit what the step waits for")
                .hint(hint),
            );
            return;
        }
        let line = |v: &Self, span: Span| v.place(span).line;
        let unreachable = if let Some(ended) = progress.ended {
            Some((
                format!("the answer is over since `end` in line {}", line(self, ended)),
                "put it before the end, or into a later step",
            ))
        } else if let Some(replied) = progress
            .replied
            .filter(|_| on_stream || word == "edit_page" || word == "reply")
        {
            Some((
                format!("the answer is written by `reply` in line {}", line(self, replied)),
                "`reply` replaces the whole answer: take one of the two",
            ))
        } else if let Some(begun) = progress.begun.filter(|_| word == "reply" || word == "delay") {
            Some((
                format!("the answer has begun in line {}", line(self, begun)),
                "put it first",
            ))
        } else {
            progress
                .truncated
                .filter(|_| on_end || word == "truncate")
                .map(|truncated| {
                    (
                        format!(
                            "`truncate` in line {} says already how the answer ends",
                            line(self, truncated)
                        ),
                        "take one of the two",
                    )
                })
        };
        if let Some((message, hint)) = unreachable {
            self.problem(
                Problem::new(
                    Code::Unreachable,
                    span,
                    format!("`{word}` comes too late: {message}"),
                )
                .label("has no effect")
                .hint(hint),
            );
        }
        if word == "reply" {
            progress.replied = Some(span);
        } else if on_end {
            progress.ended = Some(span);
        } else if word == "truncate" {
            progress.truncated = Some(span);
        } else if (on_stream || word == "edit_page") && !by_events {
            progress.begun = Some(span);
        }
    }

    fn truth(&mut self, world: &mut World, keys: &ActionKeys) -> Option<Action> {
        if let Some(apply) = &keys.apply {
            let mut objects = Vec::new();
            for object in &apply.value.0 {
                objects.extend(self.manifests(world, object.clone()));
            }
            if apply.value.0.is_empty() {
                self.problem(
                    Problem::new(Code::Empty, apply.span, "`apply` writes nothing")
                        .label("an object belongs here"),
                );
            }
            return Some(Action::Apply(objects));
        }
        if let Some(delete) = &keys.delete {
            let OneOrMany(names) = &delete.value;
            if names.is_empty() {
                self.problem(
                    Problem::new(Code::Empty, delete.span, "`delete` deletes nothing")
                        .label("a name belongs here"),
                );
            }
            let mut objects = Vec::new();
            for name in names {
                let span = name.0.name.as_ref().map_or(delete.span, |name| name.span);
                if let Some(object) = self.present(world, name, span) {
                    self.remove(world, &object);
                    objects.push(object);
                }
            }
            return Some(Action::Delete { objects, binds: None });
        }
        if let Some(relabel) = &keys.relabel {
            let raw::Relabel {
                name,
                namespace,
                resource,
                labels,
            } = &relabel.value;
            let name = First(Name {
                name: name.clone(),
                namespace: namespace.clone(),
                resource: resource.clone(),
            });
            let span = name.0.name.as_ref().map_or(relabel.span, |name| name.span);
            let object = self.present(world, &name, span)?;
            let mut changes = Vec::new();
            for (key, OrNothing(value)) in labels.iter().flat_map(|labels| &labels.value.0) {
                self.label(key, value.as_ref().map(|text| text.0.as_str()));
                changes.push((key.value.clone(), value.as_ref().map(|text| text.0.clone())));
            }
            if changes.is_empty() {
                self.problem(
                    Problem::new(Code::Empty, relabel.span, "`relabel` changes no label")
                        .label("a label belongs here"),
                );
            }
            return Some(Action::Relabel {
                object,
                labels: changes,
                binds: None,
            });
        }
        if let Some(restore) = &keys.restore {
            world.restore();
            return Some(Action::Restore {
                to: self.only_reference(restore),
            });
        }
        let words = [
            (&keys.compact, Action::Compact),
            (&keys.clear_watch_cache, Action::ClearWatchCache),
            (&keys.freeze_watch_cache, Action::FreezeWatchCache),
            (&keys.thaw_watch_cache, Action::ThawWatchCache),
        ];
        words
            .into_iter()
            .find_map(|(given, action)| given.as_ref().map(|_| action))
    }

    fn on_the_answer(&mut self, world: &mut World, keys: &ActionKeys) -> Option<Action> {
        let count = |at: &At<u64>| u32::try_from(at.value).unwrap_or(u32::MAX);
        if let Some(reply) = &keys.reply {
            return Some(Action::Reply(self.reply(world, &reply.value)));
        }
        if let Some(edit) = &keys.edit_page {
            return Some(Action::EditPage(self.edit_page(world, edit)));
        }
        if let Some(send) = &keys.send {
            let frames = send.value.0.iter().map(|First(line)| RawFrame {
                text: line.text.as_ref().map(|text| text.0.clone()).unwrap_or_default(),
                newline: line.newline.as_ref().is_none_or(|newline| newline.value),
            });
            let frames: Vec<RawFrame> = frames.collect();
            frames
                .iter()
                .for_each(|frame| world.may_hold_anything(frame.text.clone()));
            if frames.is_empty() {
                self.problem(
                    Problem::new(Code::Empty, send.span, "`send` sends nothing").label("a line belongs here"),
                );
            }
            return Some(Action::Send(frames));
        }
        if let Some(event) = &keys.event {
            let event = &event.value;
            let object = event
                .object
                .as_ref()
                .map(|object| self.loose(world, object))
                .unwrap_or_default();
            let resource_version = event.rv.as_ref().map(|rv| self.written(rv));
            let kind = event
                .kind
                .as_ref()
                .map(|kind| kind.value.0.clone())
                .unwrap_or_default();
            return Some(Action::SendEvent {
                kind,
                object,
                resource_version,
            });
        }
        if let Some(error) = &keys.error {
            return Some(Action::SendError(status(&error.value)));
        }
        if let Some(bookmark) = &keys.bookmark {
            let (rv, marker) = match &bookmark.value.0 {
                Some(bookmark) => (bookmark.rv.as_ref(), bookmark.initial_events_end.as_ref()),
                None => (None, None),
            };
            return Some(Action::SendBookmark {
                resource_version: rv.map(|rv| self.written(rv)),
                initial_events_end: marker.map(|marker| marker.value.0.clone()),
                binds: None,
            });
        }
        if let Some(marker) = &keys.end_marker {
            return Some(Action::EndMarker(
                Some(marker.value.0.clone()).filter(|marker| marker != "absent"),
            ));
        }
        let counted = keys.drop_events.as_ref().map(|n| Action::DropEvents(count(n)));
        let counted = counted.or_else(|| keys.repeat_event.as_ref().map(|n| Action::RepeatEvent(count(n))));
        let counted = counted.or_else(|| {
            keys.reorder_events
                .as_ref()
                .map(|n| Action::ReorderEvents(count(n)))
        });
        counted.or_else(|| keys.no_bookmarks.as_ref().map(|_| Action::NoBookmarks))
    }

    fn on_the_socket(&mut self, keys: &ActionKeys) -> Option<Action> {
        if keys.delay.is_some() {
            return Some(Action::Delay(self.positive_ms(keys.delay.as_ref()).unwrap_or(0)));
        }
        if keys.refuse.is_some() {
            return Some(Action::Refuse(
                self.positive_ms(keys.refuse.as_ref()).unwrap_or(0),
            ));
        }
        if let Some(drip) = &keys.drip {
            let bytes = drip
                .value
                .bytes
                .as_ref()
                .map_or(1, |bytes| u32::try_from(bytes.value).unwrap_or(u32::MAX));
            let every_ms = self.positive_ms(drip.value.every.as_ref()).unwrap_or(0);
            return Some(Action::Pace(Pace::Drip { bytes, every_ms }));
        }
        if let Some(coalesce) = &keys.coalesce {
            let events = u32::try_from(coalesce.value).unwrap_or(u32::MAX);
            return Some(Action::Pace(Pace::Coalesce { events }));
        }
        if keys.split_utf8.is_some() {
            return Some(Action::Pace(Pace::SplitUtf8));
        }
        if let Some(truncate) = &keys.truncate {
            let raw::Truncate {
                after_bytes,
                after_events,
                percent,
                then,
            } = &truncate.value;
            let cut = match (after_bytes, after_events, percent) {
                (Some(bytes), None, None) => Cut::AfterBytes(bytes.value),
                (None, events, percent) if events.is_some() || percent.is_some() => Cut::AfterEvents {
                    events: events
                        .as_ref()
                        .map_or(0, |events| u32::try_from(events.value).unwrap_or(u32::MAX)),
                    percent: percent
                        .as_ref()
                        .map_or(0, |percent| u8::try_from(percent.value).unwrap_or(99)),
                },
                _ => {
                    self.problem(
                        Problem::new(
                            Code::Conflict,
                            truncate.span,
                            "`truncate` cuts after bytes, or after events and a share of the next line",
                        )
                        .label("where?")
                        .hint(
                            "`{after_bytes: 17, then: fin}` or `{after_events: 0, percent: 40, then: rst}`",
                        ),
                    );
                    Cut::AfterBytes(0)
                }
            };
            let ending = then.as_ref().map_or(Ending::Fin, |then| ending(then.value));
            return Some(Action::Truncate { cut, ending });
        }
        if let Some(end) = &keys.end {
            return Some(Action::End(ending(end.value)));
        }
        let words = [
            (&keys.eof, Ending::Eof),
            (&keys.fin, Ending::Fin),
            (&keys.rst, Ending::Rst),
            (&keys.stall, Ending::Stall),
        ];
        words
            .into_iter()
            .find_map(|(given, ending)| given.as_ref().map(|_| Action::End(ending)))
    }

    fn reply(&mut self, world: &mut World, reply: &raw::Reply) -> Reply {
        let code = reply
            .status
            .as_ref()
            .map_or(500, |status| u16::try_from(status.value).unwrap_or(500));
        let mut headers = Vec::new();
        for (name, value) in reply.headers.iter().flat_map(|headers| &headers.0) {
            let fault = http::HeaderName::from_bytes(name.value.as_bytes()).is_err()
                || http::HeaderValue::from_str(&value.0).is_err();
            if fault {
                self.problem(
                    Problem::new(
                        Code::BadForm,
                        name.span,
                        format!("`{}: {}` cannot be a header", name.value, value.0),
                    )
                    .label("not a header"),
                );
            }
            headers.push((name.value.clone(), value.0.clone()));
        }
        let of_status: Vec<(&str, Span)> = [
            reply.code.as_ref().map(|at| ("code", at.span)),
            reply.reason.as_ref().map(|at| ("reason", at.span)),
            reply.message.as_ref().map(|at| ("message", at.span)),
            reply
                .retry_after_seconds
                .as_ref()
                .map(|at| ("retry_after_seconds", at.span)),
            reply.causes.as_ref().map(|at| ("causes", at.span)),
            reply
                .inconsistent_token
                .as_ref()
                .map(|at| ("inconsistent_token", at.span)),
        ]
        .into_iter()
        .flatten()
        .collect();
        let bodies: Vec<(&str, Span)> = [
            of_status.first().copied(),
            reply.body.as_ref().map(|at| ("body", at.span)),
            reply.json.as_ref().map(|at| ("json", at.span)),
            reply.truth.as_ref().map(|at| ("truth", at.span)),
        ]
        .into_iter()
        .flatten()
        .collect();
        if let [(first, _), (second, span), ..] = bodies.as_slice() {
            self.problem(
                Problem::new(
                    Code::Conflict,
                    *span,
                    format!("`{first}` and `{second}` both say what the body is"),
                )
                .label("the second body")
                .hint("a body is a Status (`reason`, `message` …), or `body`, or `json`, or `truth`"),
            );
        }
        if let Some(truth) = reply.truth.as_ref().filter(|truth| !truth.value) {
            self.problem(
                Problem::new(Code::NotOneOf, truth.span, "`truth` is `true` or not given")
                    .label("leave it out"),
            );
        }
        let body = if let Some(body) = &reply.body {
            world.may_hold_anything(body.value.0.clone());
            ReplyBody::Raw(body.value.0.clone())
        } else if let Some(json) = &reply.json {
            world.may_hold_anything(json.value.0.to_string());
            ReplyBody::Json(json.value.0.clone())
        } else if reply.truth.is_some() {
            ReplyBody::Truth
        } else {
            ReplyBody::Status(StatusSpec {
                code: self.status_code(reply.code.as_ref(), code),
                reason: text(&reply.reason),
                message: text(&reply.message),
                retry_after_seconds: seconds(reply.retry_after_seconds.as_ref()),
                causes: causes(reply.causes.as_ref()),
                inconsistent_token: reply.inconsistent_token.as_ref().is_some_and(|token| token.value),
            })
        };
        Reply {
            status: code,
            headers,
            retry_after: reply.retry_after.as_ref().map(|text| text.0.clone()),
            body,
        }
    }

    fn status_code(&mut self, code: Option<&At<Text>>, status: u16) -> Option<u16> {
        let Some(code) = code else { return Some(status) };
        if code.value.0 == "absent" {
            return None;
        }
        let number = code.value.0.parse().ok();
        if number.is_none() {
            self.problem(
                Problem::new(
                    Code::BadForm,
                    code.span,
                    format!("`{}` is not a code", code.value.0),
                )
                .label("a number or `absent` belongs here"),
            );
        }
        number
    }

    fn edit_page(&mut self, world: &mut World, at: &At<raw::EditPage>) -> PageEdit {
        let edit = &at.value;
        let raw::EditPage {
            rv,
            continue_token,
            remaining,
            without,
            add,
            items,
            kind,
        } = edit;
        let mut add_values = Vec::new();
        for object in add.iter().flat_map(|add| &add.value.0) {
            add_values.push(self.loose(world, object));
        }
        let without: Vec<&At<Text>> = without.iter().flat_map(|without| &without.value.0).collect();
        for name in without.iter().filter(|name| name.value.0 != "*") {
            self.known_name(world, &name.value.0, name.span, Code::UnknownObject);
        }
        let page = PageEdit {
            resource_version: rv.as_ref().map(|rv: &At<First<Condition>>| self.written(rv)),
            continue_token: continue_token.as_ref().map(|token| self.written(token)),
            remaining: remaining.as_ref().map(|remaining| remaining.value),
            without: without.into_iter().map(|name| name.value.0.clone()).collect(),
            add: add_values,
            items: items.as_ref().map(|items| match items.value {
                raw::ItemsWord::Null => ItemsShape::Null,
                raw::ItemsWord::Missing => ItemsShape::Missing,
            }),
            kind: text(kind),
        };
        if page == PageEdit::default() {
            self.problem(
                Problem::new(Code::Empty, at.span, "`edit_page` changes nothing")
                    .label("a change belongs here"),
            );
        }
        page
    }
}

/// Where the name of a write goes.
fn binds_of(action: &mut Action) -> Option<&mut Option<String>> {
    match action {
        Action::Apply(objects) => objects.last_mut().map(|object| &mut object.binds),
        Action::Delete { binds, .. } | Action::Relabel { binds, .. } | Action::SendBookmark { binds, .. } => {
            Some(binds)
        }
        Action::Compact
        | Action::ClearWatchCache
        | Action::FreezeWatchCache
        | Action::ThawWatchCache
        | Action::Restore { .. }
        | Action::Reply(_)
        | Action::EditPage(_)
        | Action::Send(_)
        | Action::SendEvent { .. }
        | Action::SendError(_)
        | Action::DropEvents(_)
        | Action::RepeatEvent(_)
        | Action::ReorderEvents(_)
        | Action::NoBookmarks
        | Action::EndMarker(_)
        | Action::Delay(_)
        | Action::Pace(_)
        | Action::Truncate { .. }
        | Action::End(_)
        | Action::Refuse(_) => None,
    }
}

fn ending(word: EndingWord) -> Ending {
    match word {
        EndingWord::Eof => Ending::Eof,
        EndingWord::Fin => Ending::Fin,
        EndingWord::Rst => Ending::Rst,
        EndingWord::Stall => Ending::Stall,
    }
}

fn status(keys: &StatusKeys) -> StatusSpec {
    StatusSpec {
        code: keys
            .code
            .as_ref()
            .map(|code| u16::try_from(code.value).unwrap_or(u16::MAX)),
        reason: text(&keys.reason),
        message: text(&keys.message),
        retry_after_seconds: seconds(keys.retry_after_seconds.as_ref()),
        causes: causes(keys.causes.as_ref()),
        inconsistent_token: false,
    }
}

fn text(at: &Option<At<Text>>) -> Option<String> {
    at.as_ref().map(|at| at.value.0.clone())
}

fn seconds(at: Option<&At<u64>>) -> Option<u32> {
    at.map(|at| u32::try_from(at.value).unwrap_or(u32::MAX))
}

fn causes(at: Option<&At<OneOrMany<Text>>>) -> Vec<String> {
    at.into_iter()
        .flat_map(|at| &at.value.0)
        .map(|text| text.0.clone())
        .collect()
}

impl ActionKeys {
    /// The words of all actions.
    const ACTIONS: &'static [&'static str] = &[
        "apply",
        "delete",
        "relabel",
        "compact",
        "clear_watch_cache",
        "freeze_watch_cache",
        "thaw_watch_cache",
        "restore",
        "reply",
        "edit_page",
        "send",
        "event",
        "error",
        "bookmark",
        "drop_events",
        "repeat_event",
        "reorder_events",
        "no_bookmarks",
        "end_marker",
        "delay",
        "drip",
        "split_utf8",
        "coalesce",
        "truncate",
        "end",
        "eof",
        "fin",
        "rst",
        "stall",
        "refuse",
    ];

    /// The actions given, with their words and places.
    fn given(&self) -> Vec<(&'static str, Span)> {
        fn at<T>(key: &Option<At<T>>) -> Option<Span> {
            key.as_ref().map(|key| key.span)
        }
        let spans = [
            at(&self.apply),
            at(&self.delete),
            at(&self.relabel),
            at(&self.compact),
            at(&self.clear_watch_cache),
            at(&self.freeze_watch_cache),
            at(&self.thaw_watch_cache),
            at(&self.restore),
            at(&self.reply),
            at(&self.edit_page),
            at(&self.send),
            at(&self.event),
            at(&self.error),
            at(&self.bookmark),
            at(&self.drop_events),
            at(&self.repeat_event),
            at(&self.reorder_events),
            at(&self.no_bookmarks),
            at(&self.end_marker),
            at(&self.delay),
            at(&self.drip),
            at(&self.split_utf8),
            at(&self.coalesce),
            at(&self.truncate),
            at(&self.end),
            at(&self.eof),
            at(&self.fin),
            at(&self.rst),
            at(&self.stall),
            at(&self.refuse),
        ];
        Self::ACTIONS
            .iter()
            .copied()
            .zip(spans)
            .filter_map(|(word, span)| Some((word, span?)))
            .collect()
    }
}

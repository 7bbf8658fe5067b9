//! Converts the keys of an item to its action.

use trace::fault::{Cut, Ending, Pace};
use trace::record::Replica;

use super::Validator;
use super::answers::status;
use super::fit::{Answer, Progress};
use super::names::Named;
use super::reach::Reach;
use super::world::World;
use crate::problem::{Code, Problem};
use crate::raw::{ActionKeys, EndingKeys, Name};
use crate::read::{At, First, OneOrMany, OrNothing, WordOr};
use crate::span::Span;
use crate::words::suggest;
use crate::{Action, RawFrame, Restart, RuleAction, ShapeAction, StoreAction, StreamAction, Where, raw};

/// Makes an action of an ending.
type MadeBy = fn(Ending) -> ShapeAction;

impl Validator<'_> {
    pub(super) fn action(
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
        let mut action = self.store_action(world, &keys);
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
        if let Some(action) = &action {
            self.cut_inside(action, at, progress);
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
                    .hint("`as` belongs next to `apply`, `delete`, `relabel` and `bookmark`, or in a step"),
                ),
            }
        }
        action
    }

    fn store_action(&mut self, world: &mut World, keys: &ActionKeys) -> Option<Action> {
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
            return Some(Action::Store(StoreAction::Apply(objects)));
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
                    world.remove(&object);
                    objects.push(object);
                }
            }
            return Some(Action::Store(StoreAction::Delete { objects, binds: None }));
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
            return Some(Action::Store(StoreAction::Relabel {
                object,
                labels: changes,
                binds: None,
            }));
        }
        if let Some(restore) = &keys.restore {
            world.restore();
            return Some(Action::Store(StoreAction::Restore {
                to: self.only_reference(restore),
            }));
        }
        keys.compact
            .as_ref()
            .map(|_| Action::Store(StoreAction::Compact))
            .or_else(|| self.on_the_server(keys).map(Action::Store))
    }

    /// Returns the action on watch caches, process and clock.
    fn on_the_server(&mut self, keys: &ActionKeys) -> Option<StoreAction> {
        if let Some(lag) = &keys.lag_watch_cache {
            let First(raw::Lag { by, replica }) = &lag.value;
            return Some(StoreAction::LagWatchCache {
                by_ms: self.positive_ms(by.as_ref()).unwrap_or(0),
                at: self.replica(replica.as_ref()),
            });
        }
        if let Some(restart) = &keys.restart {
            let Some(raw::Restart {
                down,
                filling,
                replica,
            }) = &restart.value.0
            else {
                return Some(StoreAction::Restart(Restart::default()));
            };
            return Some(StoreAction::Restart(Restart {
                down_ms: self.ms(down.as_ref()).unwrap_or(0),
                filling_ms: self.ms(filling.as_ref()).unwrap_or(0),
                at: self.replica(replica.as_ref()),
            }));
        }
        if let Some(jump) = &keys.jump_clock {
            let forward = self.positive_ms(jump.value.forward.as_ref());
            let back = self.positive_ms(jump.value.back.as_ref());
            let by = |ms: u64| i64::try_from(ms).unwrap_or(i64::MAX);
            if forward.is_some() == back.is_some() {
                self.problem(
                    Problem::new(
                        Code::Conflict,
                        jump.span,
                        "`jump_clock` sets the clock `forward` or `back`",
                    )
                    .label("which one?")
                    .hint("`jump_clock: {forward: 1h}` or `jump_clock: {back: 5m}`"),
                );
            }
            return Some(StoreAction::JumpClock {
                by_ms: forward.map_or_else(|| -by(back.unwrap_or(0)), by),
            });
        }
        let mut turned = |turned: &At<OrNothing<raw::Turned>>| {
            let turned = turned.value.0.as_ref();
            self.replica(turned.and_then(|turned| turned.replica.as_ref()))
        };
        if let Some(clear) = &keys.clear_watch_cache {
            return Some(StoreAction::ClearWatchCache(turned(clear)));
        }
        if let Some(freeze) = &keys.freeze_watch_cache {
            return Some(StoreAction::FreezeWatchCache(turned(freeze)));
        }
        let thaw = keys.thaw_watch_cache.as_ref()?;
        Some(StoreAction::ThawWatchCache(turned(thaw)))
    }

    /// Returns the replica of a word. The server must have two.
    fn replica(&mut self, word: Option<&At<raw::ReplicaWord>>) -> Where {
        let word = word?;
        if !self.has_replicas {
            self.problem(
                Problem::new(Code::Conflict, word.span, "the server has one replica")
                    .label("which other one?")
                    .hint("`server: {replicas: 2}`, or leave it out"),
            );
        }
        Some(match word.value {
            raw::ReplicaWord::Primary => Replica::Primary,
            raw::ReplicaWord::Secondary => Replica::Secondary,
        })
    }

    fn on_the_answer(&mut self, world: &mut World, keys: &ActionKeys) -> Option<Action> {
        let count = |at: &At<u64>| u32::try_from(at.value).unwrap_or(u32::MAX);
        if let Some(reply) = &keys.reply {
            return Some(Action::Shape(ShapeAction::Reply(self.reply(world, &reply.value))));
        }
        if let Some(edit) = &keys.edit_page {
            return Some(Action::Shape(ShapeAction::EditPage(self.edit_page(world, edit))));
        }
        if let Some(send) = &keys.send {
            let frames = send.value.0.iter().map(|First(line)| RawFrame {
                bytes: self.line(world, line, send.span),
                newline: line.newline.as_ref().is_none_or(|newline| newline.value),
            });
            let frames: Vec<RawFrame> = frames.collect();
            if frames.is_empty() {
                self.problem(
                    Problem::new(Code::Empty, send.span, "`send` sends nothing").label("a line belongs here"),
                );
            }
            return Some(Action::Stream(StreamAction::Send(frames)));
        }
        if let Some(event) = &keys.event {
            let event = &event.value;
            let object = self.event_object(world, event.object.as_ref());
            let resource_version = event.rv.as_ref().map(|rv| self.written(rv));
            let kind = event
                .kind
                .as_ref()
                .map(|kind| kind.value.0.clone())
                .unwrap_or_default();
            return Some(Action::Stream(StreamAction::SendEvent {
                kind,
                object,
                resource_version,
            }));
        }
        if let Some(error) = &keys.error {
            return Some(Action::Stream(StreamAction::SendError(status(&error.value))));
        }
        if let Some(bookmark) = &keys.bookmark {
            let (rv, marker) = match &bookmark.value.0 {
                Some(bookmark) => (bookmark.rv.as_ref(), bookmark.initial_events_end.as_ref()),
                None => (None, None),
            };
            return Some(Action::Stream(StreamAction::SendBookmark {
                resource_version: rv.map(|rv| self.written(rv)),
                initial_events_end: marker.map(|marker| marker.value.0.clone()),
                binds: None,
            }));
        }
        if let Some(marker) = &keys.end_marker {
            return Some(Action::Rule(RuleAction::EndMarker(
                Some(marker.value.0.clone()).filter(|marker| marker != "absent"),
            )));
        }
        let counted = keys
            .drop_events
            .as_ref()
            .map(|n| Action::Rule(RuleAction::DropEvents(count(n))));
        let counted = counted.or_else(|| {
            keys.repeat_event
                .as_ref()
                .map(|n| Action::Rule(RuleAction::RepeatEvent(count(n))))
        });
        let counted = counted.or_else(|| {
            keys.reorder_events
                .as_ref()
                .map(|n| Action::Rule(RuleAction::ReorderEvents(count(n))))
        });
        counted.or_else(|| {
            keys.no_bookmarks
                .as_ref()
                .map(|_| Action::Rule(RuleAction::NoBookmarks))
        })
    }

    fn on_the_socket(&mut self, keys: &ActionKeys) -> Option<Action> {
        if keys.delay.is_some() {
            return Some(Action::Shape(ShapeAction::Delay(
                self.positive_ms(keys.delay.as_ref()).unwrap_or(0),
            )));
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
            return Some(Action::Shape(ShapeAction::Pace(Pace::Drip { bytes, every_ms })));
        }
        if let Some(coalesce) = &keys.coalesce {
            let events = u32::try_from(coalesce.value).unwrap_or(u32::MAX);
            return Some(Action::Shape(ShapeAction::Pace(Pace::Coalesce { events })));
        }
        if keys.split_utf8.is_some() {
            return Some(Action::Shape(ShapeAction::Pace(Pace::SplitUtf8)));
        }
        if keys.gzip.is_some() {
            return Some(Action::Shape(ShapeAction::Gzip));
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
            let ending = then
                .as_ref()
                .map_or(Ending::Fin, |then| self.ending(&then.value.0, then.span));
            return Some(Action::Rule(RuleAction::Truncate { cut, ending }));
        }
        if let Some((silence, action)) = keys.silence() {
            if let Some(eof) = &silence.value.0.eof {
                self.problem(
                    Problem::new(Code::NotOneOf, eof.span, "no answer cannot end cleanly")
                        .label("not without an answer")
                        .hint("it is one of `fin`, `rst`, `stall`; `eof` alone ends an answer cleanly"),
                );
            }
            let ending = self.ending(&silence.value.0, silence.span);
            return Some(Action::Shape(action(ending)));
        }
        if let Some(end) = &keys.end {
            let ending = self.ending(&end.value.0, end.span);
            return Some(Action::Stream(StreamAction::End(ending)));
        }
        if let Some(goaway) = &keys.goaway {
            self.needs_http2("goaway", goaway.span);
            return Some(Action::Stream(StreamAction::Goaway));
        }
        let short = EndingKeys {
            eof: keys.eof.clone(),
            fin: keys.fin.clone(),
            rst: keys.rst.clone(),
            stall: keys.stall.clone(),
            no_close_notify: keys.no_close_notify.clone(),
            rst_stream: keys.rst_stream.clone(),
            goaway: None,
        };
        let (ending, word, span) = short.given().into_iter().next()?;
        self.fits_transport(ending, word, span);
        Some(Action::Stream(StreamAction::End(ending)))
    }

    /// Returns the single ending of a map.
    fn ending(&mut self, keys: &EndingKeys, span: Span) -> Ending {
        match keys.given().as_slice() {
            [(ending, word, span)] => {
                self.fits_transport(*ending, word, *span);
                *ending
            }
            given => {
                let message = if given.is_empty() {
                    "how it ends is missing"
                } else {
                    "an answer ends in one way"
                };
                self.problem(
                    Problem::new(Code::Conflict, span, message)
                        .label("which one?")
                        .hint("a word (`eof`, `fin`, `rst`, `stall`, `no_close_notify`), `{rst_stream: CODE}` or `{goaway: CODE}`"),
                );
                Ending::Fin
            }
        }
    }

    fn fits_transport(&mut self, ending: Ending, word: &str, span: Span) {
        match ending {
            Ending::Eof | Ending::Fin | Ending::Rst | Ending::Stall => {}
            Ending::NoCloseNotify => self.needs_tls(word, span),
            Ending::RstStream(_) | Ending::Goaway(_) => self.needs_http2(word, span),
        }
    }
}

impl EndingKeys {
    /// Returns the endings given, with words and positions.
    fn given(&self) -> Vec<(Ending, &'static str, Span)> {
        let words = [
            (&self.eof, Ending::Eof, "eof"),
            (&self.fin, Ending::Fin, "fin"),
            (&self.rst, Ending::Rst, "rst"),
            (&self.stall, Ending::Stall, "stall"),
            (&self.no_close_notify, Ending::NoCloseNotify, "no_close_notify"),
        ];
        let words = words
            .into_iter()
            .filter_map(|(key, ending, word)| Some((ending, word, key.as_ref()?.span)));
        let reset = self.rst_stream.as_ref();
        let goaway = self.goaway.as_ref();
        words
            .chain(reset.map(|code| (Ending::RstStream(code.value), "rst_stream", code.span)))
            .chain(goaway.map(|code| (Ending::Goaway(code.value), "goaway", code.span)))
            .collect()
    }
}

/// Returns the field for the name of a write.
pub(super) fn binds_of(action: &mut Action) -> Option<&mut Option<String>> {
    match action {
        Action::Store(StoreAction::Apply(objects)) => objects.last_mut().map(|object| &mut object.binds),
        Action::Store(StoreAction::Delete { binds, .. } | StoreAction::Relabel { binds, .. })
        | Action::Stream(StreamAction::SendBookmark { binds, .. }) => Some(binds),
        Action::Store(_) | Action::Shape(_) | Action::Rule(_) | Action::Stream(_) | Action::Refuse(_) => None,
    }
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
        "lag_watch_cache",
        "thaw_watch_cache",
        "restore",
        "restart",
        "jump_clock",
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
        "gzip",
        "truncate",
        "no_answer",
        "lose_answer",
        "end",
        "eof",
        "fin",
        "rst",
        "stall",
        "no_close_notify",
        "rst_stream",
        "goaway",
        "refuse",
    ];

    /// Returns how a response is left out, and the action that does it.
    fn silence(&self) -> Option<(&At<WordOr<EndingKeys>>, MadeBy)> {
        let refused = self.no_answer.as_ref();
        let refused = refused.map(|at| (at, ShapeAction::NoAnswer as MadeBy));
        let lost = self.lose_answer.as_ref();
        refused.or(lost.map(|at| (at, ShapeAction::LoseAnswer as MadeBy)))
    }

    /// Returns the actions given, with words and positions.
    pub(super) fn given(&self) -> Vec<(&'static str, Span)> {
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
            at(&self.lag_watch_cache),
            at(&self.thaw_watch_cache),
            at(&self.restore),
            at(&self.restart),
            at(&self.jump_clock),
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
            at(&self.gzip),
            at(&self.truncate),
            at(&self.no_answer),
            at(&self.lose_answer),
            at(&self.end),
            at(&self.eof),
            at(&self.fin),
            at(&self.rst),
            at(&self.stall),
            at(&self.no_close_notify),
            at(&self.rst_stream),
            at(&self.goaway),
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

//! Converts the key of an item to its action.

use trace::fault::{Cut, Ending, Pace};
use trace::record::Replica;

use super::Validator;
use super::answers::status;
use super::fit::{Progress, ResponseKind};
use super::names::Named;
use super::reach::Reach;
use super::world::World;
use crate::problem::{Code, Problem};
use crate::raw::{ActionKey, ActionKeys, EndingKeys, Name};
use crate::read::{At, First, OneOrMany, OrNothing, WordOr};
use crate::span::Span;
use crate::words::suggest;
use crate::{Action, RawFrame, Restart, RuleAction, ShapeAction, StoreAction, StreamAction, Where, raw};

impl Validator<'_> {
    pub(super) fn action(
        &mut self,
        world: &mut World,
        reach: &mut Reach,
        mut keys: ActionKeys,
        span: Span,
        answer: ResponseKind,
        progress: &mut Progress,
    ) -> Option<Action> {
        let given = keys.given();
        let (word, at) = match given.as_slice() {
            &[one] => one,
            [] => {
                self.problem(
                    Problem::new(Code::Empty, span, "this item does nothing")
                        .label("an action belongs here")
                        .hint(suggest("", ActionKeys::KEYS.iter().copied())),
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
        let name = keys.name.take();
        let mut action = keys.keys.pop().and_then(|key| self.converted(world, key));
        reach.objects(world.count_of_target());
        if let Some(action) = &action {
            let scripts_lists = match action {
                Action::Shape(ShapeAction::Reply(_)) => answer != ResponseKind::Watch,
                Action::Shape(ShapeAction::EditPage(_)) | Action::Store(StoreAction::Restore { .. }) => true,
                Action::Store(_)
                | Action::Shape(_)
                | Action::Rule(_)
                | Action::Stream(_)
                | Action::Refuse(_) => false,
            };
            if scripts_lists {
                reach.scripts_lists();
            }
            self.fits(word, at, action, answer, progress);
        }
        if let Some(name) = name {
            match action.as_mut().map(Action::binds_mut) {
                Some(Some(binds @ None)) => *binds = Some(self.bind(&name, Named::Version)),
                Some(Some(Some(_))) => self.problem(
                    Problem::new(Code::DuplicateName, name.span, "this write has a name already")
                        .label("the second name"),
                ),
                Some(None) | None => self.problem(
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

    /// Returns the action of a key; `None`: it has none, because of a problem.
    fn converted(&mut self, world: &mut World, key: ActionKey) -> Option<Action> {
        let count = |at: &At<u64>| u32::try_from(at.value).unwrap_or(u32::MAX);
        Some(match key {
            ActionKey::Apply(objects) => Action::Store(self.apply(world, objects)),
            ActionKey::Delete(names) => Action::Store(self.delete(world, &names)),
            ActionKey::Relabel(relabel) => Action::Store(self.relabel(world, &relabel)?),
            ActionKey::Compact(At { .. }) => Action::Store(StoreAction::Compact),
            ActionKey::ClearWatchCache(at) => Action::Store(StoreAction::ClearWatchCache(self.turned(&at))),
            ActionKey::FreezeWatchCache(at) => Action::Store(StoreAction::FreezeWatchCache(self.turned(&at))),
            ActionKey::LagWatchCache(lag) => Action::Store(self.lag(&lag.value.0)),
            ActionKey::ThawWatchCache(at) => Action::Store(StoreAction::ThawWatchCache(self.turned(&at))),
            ActionKey::Restore(to) => {
                world.restore();
                let to = self.only_reference(&to);
                Action::Store(StoreAction::Restore { to })
            }
            ActionKey::Restart(restart) => Action::Store(StoreAction::Restart(self.restart(&restart.value))),
            ActionKey::JumpClock(jump) => Action::Store(self.jump_clock(&jump)),
            ActionKey::Reply(reply) => Action::Shape(ShapeAction::Reply(self.reply(world, &reply.value))),
            ActionKey::EditPage(edit) => Action::Shape(ShapeAction::EditPage(self.edit_page(world, &edit))),
            ActionKey::Send(lines) => Action::Stream(self.send(world, &lines)),
            ActionKey::Event(event) => Action::Stream(self.event(world, &event.value)),
            ActionKey::Error(error) => Action::Stream(StreamAction::SendError(status(&error.value))),
            ActionKey::Bookmark(bookmark) => Action::Stream(self.bookmark(&bookmark.value)),
            ActionKey::DropEvents(n) => Action::Rule(RuleAction::DropEvents(count(&n))),
            ActionKey::RepeatEvent(n) => Action::Rule(RuleAction::RepeatEvent(count(&n))),
            ActionKey::ReorderEvents(n) => Action::Rule(RuleAction::ReorderEvents(count(&n))),
            ActionKey::NoBookmarks(At { .. }) => Action::Rule(RuleAction::NoBookmarks),
            ActionKey::EndMarker(marker) => {
                let marker = Some(marker.value.0).filter(|marker| marker != "absent");
                Action::Rule(RuleAction::EndMarker(marker))
            }
            ActionKey::Delay(time) => Action::Shape(ShapeAction::Delay(self.positive(&time))),
            ActionKey::Drip(drip) => Action::Shape(ShapeAction::Pace(Pace::Drip {
                bytes: drip.value.bytes.as_ref().map_or(1, count),
                every_ms: self.positive_ms(drip.value.every.as_ref()).unwrap_or(0),
            })),
            ActionKey::SplitUtf8(At { .. }) => Action::Shape(ShapeAction::Pace(Pace::SplitUtf8)),
            ActionKey::Coalesce(n) => Action::Shape(ShapeAction::Pace(Pace::Coalesce { events: count(&n) })),
            ActionKey::Gzip(At { .. }) => Action::Shape(ShapeAction::Gzip),
            ActionKey::Truncate(truncate) => Action::Rule(self.truncate(&truncate)),
            ActionKey::NoAnswer(how) => Action::Shape(ShapeAction::NoAnswer(self.silence(&how))),
            ActionKey::LoseAnswer(how) => Action::Shape(ShapeAction::LoseAnswer(self.silence(&how))),
            ActionKey::End(how) => Action::Stream(StreamAction::End(self.ending(&how.value.0, how.span))),
            ActionKey::EndAfter(limit) => Action::Rule(RuleAction::EndAfter {
                ms: self.positive_ms(limit.value.time.as_ref()).unwrap_or(0),
                ending: limit
                    .value
                    .then
                    .as_ref()
                    .map_or(Ending::Eof, |then| self.ending(&then.value.0, then.span)),
            }),
            ActionKey::Eof(At { .. }) => Action::Stream(StreamAction::End(Ending::Eof)),
            ActionKey::Fin(At { .. }) => Action::Stream(StreamAction::End(Ending::Fin)),
            ActionKey::Rst(At { .. }) => Action::Stream(StreamAction::End(Ending::Rst)),
            ActionKey::Stall(At { .. }) => Action::Stream(StreamAction::End(Ending::Stall)),
            ActionKey::NoCloseNotify(at) => {
                self.needs_tls("no_close_notify", at.span);
                Action::Stream(StreamAction::End(Ending::NoCloseNotify))
            }
            ActionKey::RstStream(code) => {
                self.needs_http2("rst_stream", code.span);
                Action::Stream(StreamAction::End(Ending::RstStream(code.value)))
            }
            ActionKey::Goaway(at) => {
                self.needs_http2("goaway", at.span);
                Action::Stream(StreamAction::Goaway)
            }
            ActionKey::Refuse(time) => Action::Refuse(self.positive(&time)),
        })
    }

    fn apply(&mut self, world: &mut World, apply: At<OneOrMany<At<raw::Object>>>) -> StoreAction {
        let At {
            span,
            value: OneOrMany(objects),
        } = apply;
        if objects.is_empty() {
            self.problem(
                Problem::new(Code::Empty, span, "`apply` writes nothing").label("an object belongs here"),
            );
        }
        let mut manifests = Vec::new();
        for object in objects {
            manifests.extend(self.manifests(world, object));
        }
        StoreAction::Apply(manifests)
    }

    fn delete(&mut self, world: &mut World, delete: &At<raw::Names>) -> StoreAction {
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
        StoreAction::Delete { objects, binds: None }
    }

    fn relabel(&mut self, world: &World, relabel: &At<raw::Relabel>) -> Option<StoreAction> {
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
        Some(StoreAction::Relabel {
            object,
            labels: changes,
            binds: None,
        })
    }

    fn turned(&mut self, at: &At<OrNothing<raw::Turned>>) -> Where {
        let turned = at.value.0.as_ref();
        self.replica(turned.and_then(|turned| turned.replica.as_ref()))
    }

    fn lag(&mut self, lag: &raw::Lag) -> StoreAction {
        StoreAction::LagWatchCache {
            by_ms: self.positive_ms(lag.by.as_ref()).unwrap_or(0),
            at: self.replica(lag.replica.as_ref()),
        }
    }

    fn restart(&mut self, OrNothing(restart): &OrNothing<raw::Restart>) -> Restart {
        let Some(restart) = restart else {
            return Restart::default();
        };
        Restart {
            down_ms: self.ms(restart.down.as_ref()).unwrap_or(0),
            filling_ms: self.ms(restart.filling.as_ref()).unwrap_or(0),
            at: self.replica(restart.replica.as_ref()),
        }
    }

    fn jump_clock(&mut self, jump: &At<raw::JumpClock>) -> StoreAction {
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
        StoreAction::JumpClock {
            by_ms: forward.map_or_else(|| -by(back.unwrap_or(0)), by),
        }
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

    fn send(&mut self, world: &mut World, send: &At<OneOrMany<First<raw::RawLine>>>) -> StreamAction {
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
        StreamAction::Send(frames)
    }

    fn event(&mut self, world: &mut World, event: &raw::SentEvent) -> StreamAction {
        let kind = event.kind.as_ref().map(|kind| kind.value.0.clone());
        StreamAction::SendEvent {
            kind: kind.unwrap_or_default(),
            object: self.event_object(world, event.object.as_ref()),
            resource_version: event.rv.as_ref().map(|rv| self.written(rv)),
        }
    }

    fn bookmark(&mut self, OrNothing(bookmark): &OrNothing<raw::Bookmark>) -> StreamAction {
        let rv = bookmark.as_ref().and_then(|bookmark| bookmark.rv.as_ref());
        let marker = bookmark
            .as_ref()
            .and_then(|bookmark| bookmark.initial_events_end.as_ref());
        StreamAction::SendBookmark {
            resource_version: rv.map(|rv| self.written(rv)),
            initial_events_end: marker.map(|marker| marker.value.0.clone()),
            binds: None,
        }
    }

    fn truncate(&mut self, truncate: &At<raw::Truncate>) -> RuleAction {
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
                    .hint("`{after_bytes: 17, then: fin}` or `{after_events: 0, percent: 40, then: rst}`"),
                );
                Cut::AfterBytes(0)
            }
        };
        let ending = then
            .as_ref()
            .map_or(Ending::Fin, |then| self.ending(&then.value.0, then.span));
        RuleAction::Truncate { cut, ending }
    }

    /// Returns how a connection ends that is sent no response.
    fn silence(&mut self, how: &At<WordOr<EndingKeys>>) -> Ending {
        let WordOr(keys) = &how.value;
        if let Some(eof) = &keys.eof {
            self.problem(
                Problem::new(Code::NotOneOf, eof.span, "no answer cannot end cleanly")
                    .label("not without an answer")
                    .hint("it is one of `fin`, `rst`, `stall`; `eof` alone ends an answer cleanly"),
            );
        }
        self.ending(keys, how.span)
    }

    fn positive(&mut self, time: &At<raw::Duration>) -> u64 {
        self.positive_ms(Some(time)).unwrap_or(0)
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

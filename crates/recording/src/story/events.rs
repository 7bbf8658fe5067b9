//! Events of watches, and the ends of watches.

use std::time::Duration;

use scenario::raw::{
    ActionKey, Bookmark, First, Json, Loose, OneOrMany, OrNothing, RawLine, SentEvent, Text,
};
use serde_json::{Value, json};
use trace::fault::Ending;
use trace::record::{Frame, FrameType, ObjectRef, StreamId};

use super::{Story, words};
use crate::file::Origin;
use crate::steps::at as key;
use crate::store::{Change, number};

impl Story<'_> {
    /// Whether an action on a watch belongs to the step of its request: the script comes before events that were missed.
    fn is_at_watch(&self, stream: StreamId, at: Duration) -> bool {
        let exchange = self.exchanges.of(stream);
        exchange.at == at
            && !self.told.contains(&stream)
            && self.steps.is_at_request()
            && self.is_newest(stream)
    }

    fn is_newest(&self, stream: StreamId) -> bool {
        self.exchanges.newest_watch() == Some(stream)
    }

    /// Adds an action on a watch.
    pub(super) fn on_watch(&mut self, stream: StreamId, action: ActionKey, at: Duration, waits: bool) {
        if !self.is_newest(stream) {
            self.unknown
                .insert("what was sent on a watch after the client had begun another one".to_owned());
            return;
        }
        let at_request = self.is_at_watch(stream, at);
        self.steps.act(action, at, waits, at_request);
    }

    pub(super) fn on_frame(&mut self, seq: u64, stream: StreamId, frame: &Frame, at: Duration) {
        if self.caused.contains(&seq) {
            return;
        }
        let is_of_write = self.origin == Origin::Model && frame.kind.is_change() && !frame.scripted;
        if !frame.whole() && !is_of_write {
            let exchange = self.exchanges.of(stream);
            self.on_watch(stream, exchange.cut(0, frame), at, false);
        }
        if frame.scripted {
            return self.on_scripted(stream, frame, at);
        }
        match &frame.kind {
            FrameType::Added | FrameType::Modified | FrameType::Deleted => {
                self.told.insert(stream);
                if self.origin != Origin::Model
                    && let Some(object) = &frame.object
                {
                    self.on_upstream_event(&frame.kind, object, stream, at);
                }
            }
            FrameType::Bookmark { initial_events_end } => {
                self.store.saw(frame.resource_version().unwrap_or_default());
                if initial_events_end.is_none() {
                    self.on_bookmark();
                }
            }
            FrameType::Error { code, reason } => {
                let is_natural = self.origin == Origin::Model && (*code != 410 || self.is_expired);
                if is_natural {
                    self.over.insert(stream);
                } else {
                    let status = self.contents.take(stream, |sent| sent["type"] == "ERROR");
                    let action = words::error(*code, reason, status.as_ref().map(|sent| &sent["object"]));
                    self.on_watch(stream, action, at, true);
                }
            }
            FrameType::Raw => self.on_raw(stream, frame, at),
        }
    }

    /// A bookmark of the server. One with a version that no event had is of writes to other resources: the server of the
    /// scenario sends it by itself, if it gets the time.
    fn on_bookmark(&mut self) {
        if self.store.newest > self.written {
            self.move_on(self.steps.ended_at(), false);
            self.steps.await_bookmark();
        }
    }

    /// An event of an upstream shows a write.
    fn on_upstream_event(&mut self, kind: &FrameType, object: &ObjectRef, stream: StreamId, at: Duration) {
        let change = match kind {
            FrameType::Deleted => Change::Delete(object.key.clone(), object.resource_version.clone()),
            FrameType::Added
            | FrameType::Modified
            | FrameType::Bookmark { .. }
            | FrameType::Error { .. }
            | FrameType::Raw => Change::Write(object.key.clone(), self.object(object)),
        };
        let at_request = self.is_at_watch(stream, at);
        if !self.is_listed && self.exchanges.of(stream).read.is_start() && *kind == FrameType::Added {
            // One of the initial events of a watch without a list.
            if self.store.change(change) {
                let manifest = self.kind.manifest(
                    &object.key,
                    &object.resource_version,
                    self.object(object).content.as_ref(),
                );
                self.steps.object(manifest, &object.resource_version);
            }
            return;
        }
        self.make(change, at, at_request);
    }

    fn on_raw(&mut self, stream: StreamId, frame: &Frame, at: Duration) {
        let sent = self
            .contents
            .take(stream, |sent| sent.is_string() || sent["type"].is_string());
        match sent {
            Some(Value::String(text)) => {
                let newline = text.ends_with('\n');
                let line = text.strip_suffix('\n').unwrap_or(&text);
                self.on_watch(stream, send(line.to_owned(), newline), at, false);
            }
            Some(line) => {
                let event = SentEvent {
                    kind: line["type"].as_str().and_then(key),
                    object: key(Loose::Whole(Json(line["object"].clone()))),
                    rv: None,
                };
                self.on_watch(stream, ActionKey::Event(event.into()), at, false);
            }
            None => {
                self.raw_lines += 1;
                let line = format!("{} bytes that were not recorded", frame.bytes);
                self.on_watch(stream, send(line, true), at, false);
            }
        }
    }

    /// Something that the script of the recorded server sent.
    fn on_scripted(&mut self, stream: StreamId, frame: &Frame, at: Duration) {
        let is = |word: &'static str| move |sent: &Value| sent["type"] == word;
        match &frame.kind {
            FrameType::Error { code, reason } => {
                let sent = self.contents.take(stream, is("ERROR"));
                let action = words::error(*code, reason, sent.as_ref().map(|sent| &sent["object"]));
                self.on_watch(stream, action, at, true);
            }
            FrameType::Bookmark { initial_events_end } => {
                let version = frame.resource_version().unwrap_or_default();
                let is_own = number(version) != self.store.newest || number(version) == 0;
                let bookmark = Bookmark {
                    rv: is_own.then(|| self.condition(version)),
                    initial_events_end: initial_events_end.as_deref().and_then(key),
                };
                let bookmark = Some(bookmark).filter(|bookmark| *bookmark != Bookmark::default());
                self.on_watch(stream, ActionKey::Bookmark(OrNothing(bookmark).into()), at, false);
            }
            FrameType::Added | FrameType::Modified | FrameType::Deleted => {
                if let Some(object) = &frame.object {
                    self.on_event(stream, frame.kind.word(), object, at);
                }
            }
            FrameType::Raw => self.on_raw(stream, frame, at),
        }
    }

    /// An event that is none of the store.
    fn on_event(&mut self, stream: StreamId, word: &'static str, of: &ObjectRef, at: Duration) {
        let matches = |sent: &Value| {
            let text = |name: &str| sent["object"]["metadata"][name].as_str().unwrap_or_default();
            sent["type"] == word
                && text("resourceVersion") == of.resource_version
                && of.key.ends_with(text("name"))
        };
        let sent = self.contents.take(stream, matches);
        let stored = self.store.get(&of.key).cloned();
        let is_current = stored
            .as_ref()
            .is_some_and(|stored| stored.version == of.resource_version);
        let mut rv = None;
        let object = if is_current {
            Value::String(self.kind.name(&of.key))
        } else {
            rv = Some(self.condition(&of.resource_version));
            let mut manifest = match &sent {
                Some(sent) => sent["object"].clone(),
                None => self.kind.manifest(&of.key, &of.resource_version, None),
            };
            let is_same = stored.is_some_and(|stored| stored.uid == of.uid);
            if let Some(metadata) = manifest.get_mut("metadata").and_then(Value::as_object_mut) {
                metadata.shift_remove("resourceVersion");
                if is_same {
                    metadata.shift_remove("uid");
                } else if !of.uid.is_empty() {
                    metadata.insert("uid".to_owned(), json!(of.uid));
                }
            }
            manifest
        };
        let event = SentEvent {
            kind: key(word),
            object: key(Loose::Whole(Json(object))),
            rv,
        };
        self.on_watch(stream, ActionKey::Event(event.into()), at, false);
    }

    pub(super) fn on_end(&mut self, stream: StreamId, how: Ending, at: Duration) {
        let was_open = self.open.remove(&stream);
        let exchange = self.exchanges.of(stream);
        let is_caused = self.ended_at == Some(at) || self.over.contains(&stream) || exchange.is_cut();
        if was_open && !is_caused {
            self.on_watch(stream, words::ending(how), at, true);
        }
        if self.pending == Some(stream) {
            self.pending = None;
        }
    }
}

/// Returns a line that is sent as it is.
fn send(line: String, newline: bool) -> ActionKey {
    let line = RawLine {
        text: Some(Text(line)),
        bytes: None,
        newline: (!newline).then(|| false.into()),
    };
    ActionKey::Send(OneOrMany(vec![First(line)]).into())
}

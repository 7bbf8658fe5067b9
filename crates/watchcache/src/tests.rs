//! The storage over small objects: a key and a tag to select by.
//!
//! The fixture: `a/1` to `a/5` (written at 2 to 6, tag `x` on 1, 3 and 5) and `b/1` (7), beside another resource.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use apimachinery::continue_token::ContinueToken;
use apimachinery::options::{RequestedVersion, VersionMatch};
use apimachinery::status::Status;

use crate::{
    Frame, ListOptions, Lookup, Object, Page, Poll, Read, Replica, ResourceId, Settings, Storage, View,
    Watch, WatchCacheOp, WatchOptions,
};

mod decisions;
mod history;
mod lag;
mod lists;
mod properties;
mod watches;

/// One version of a note.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Note {
    key: String,
    revision: u64,
    tag: &'static str,
}

impl Object for Note {
    fn key(&self) -> &str {
        &self.key
    }

    fn at_revision(&self, revision: u64) -> Self {
        Self {
            revision,
            ..self.clone()
        }
    }

    fn weight(&self) -> usize {
        100
    }
}

/// Selects notes by their tag; empty: all.
struct Tagged(&'static str);

impl View<Note> for Tagged {
    fn selects(&self, note: &Note) -> bool {
        self.0.is_empty() || note.tag == self.0
    }
}

/// Reads notes in another version, which has tags in upper case.
struct Loud(&'static str);

impl View<Note> for Loud {
    fn selects(&self, note: &Note) -> bool {
        note.tag == self.0
    }

    fn convert<'a>(&self, note: &'a Arc<Note>) -> Cow<'a, Arc<Note>> {
        let tag = match note.tag {
            "x" => "X",
            other => other,
        };
        Cow::Owned(Arc::new(Note {
            tag,
            ..Note::clone(note)
        }))
    }
}

const ALL: Tagged = Tagged("");

struct World {
    storage: Storage<Note>,
    now: Duration,
    notes: ResourceId,
    others: ResourceId,
}

impl World {
    fn empty(settings: &Settings) -> Self {
        let mut storage = Storage::new(settings);
        Self {
            notes: storage.add_resource("notes", true),
            others: storage.add_resource("others", true),
            storage,
            now: Duration::ZERO,
        }
    }

    fn fixture() -> Self {
        let mut world = Self::empty(&Settings::default());
        for n in 1..=5 {
            world.put(&format!("a/{n}"), if n % 2 == 1 { "x" } else { "" });
        }
        world.put("b/1", "");
        assert_eq!(world.storage.revision(), 7);
        world
    }

    fn put(&mut self, key: &str, tag: &'static str) -> Arc<Note> {
        self.put_into(self.notes, key, tag)
    }

    fn put_into(&mut self, resource: ResourceId, key: &str, tag: &'static str) -> Arc<Note> {
        self.storage.put(self.now, resource, |revision| Note {
            key: key.to_owned(),
            revision,
            tag,
        })
    }

    /// Is it there to be deleted?
    fn delete(&mut self, key: &str) -> bool {
        let last = self.storage.current(self.notes).get(key).cloned();
        last.is_some_and(|last| self.storage.delete(self.now, self.notes, &last).is_some())
    }

    fn operate(&mut self, op: WatchCacheOp) {
        self.storage.operate(self.now, op, Some(self.notes), None);
    }

    fn read(&self, replica: Replica) -> Read {
        Read {
            resource: self.notes,
            replica,
            arrived: self.now,
        }
    }

    fn answer(&self, options: &ListOptions, view: &impl View<Note>) -> Lookup<Page<Note>> {
        self.storage
            .list(self.now, self.read(Replica::FIRST), options, view)
    }

    fn page(&self, options: &ListOptions, view: &impl View<Note>) -> Page<Note> {
        let Lookup::Found(page) = self.answer(options, view) else {
            panic!("no page");
        };
        page
    }

    /// What a list comes to at once: `revision: keys`, `wait` or a refusal.
    fn list(&self, options: &ListOptions) -> String {
        self.list_after(Duration::ZERO, options)
    }

    /// The same, so long after the request arrived.
    fn list_after(&self, since: Duration, options: &ListOptions) -> String {
        let read = self.read(Replica::FIRST);
        match self.storage.list(self.now + since, read, options, &ALL) {
            Lookup::Found(page) => story(&page),
            Lookup::Refused(status) => refusal(&status),
            Lookup::Wait { until } => format!("wait {:?}", until - self.now),
        }
    }

    fn watch(&self, options: &WatchOptions, view: &impl View<Note>) -> Watch<Note> {
        Watch::open(&self.storage, self.now, self.notes, Replica::FIRST, options, view)
    }

    /// Watches everything from a revision.
    fn watch_from(&self, revision: u64) -> Watch<Note> {
        self.watch(&from(revision), &ALL)
    }

    /// All that a watch sends until it is pending or over, e.g. `ADDED a/1@2`.
    fn drain(&self, watch: &mut Watch<Note>, view: &impl View<Note>) -> Vec<String> {
        let mut sent = Vec::new();
        loop {
            match watch.poll(&self.storage, self.now, view) {
                Poll::Send(frame) => sent.push(summary(&frame)),
                Poll::Pending { .. } => return sent,
                Poll::End => {
                    sent.push("end".to_owned());
                    return sent;
                }
            }
        }
    }
}

fn summary(frame: &Frame<Note>) -> String {
    let word = frame.word();
    match frame {
        Frame::Initial(note) => format!("{word} {}@{}", note.key, note.revision),
        Frame::Written { event, .. } => {
            let note = frame.object().unwrap();
            assert_eq!(note.revision, event.revision());
            format!("{word} {}@{}", note.key, note.revision)
        }
        Frame::Bookmark {
            revision,
            ends_initial_events,
        } => format!(
            "{word} {revision}{}",
            if *ends_initial_events { " end" } else { "" }
        ),
        Frame::Error(status) => format!("{word} {}", refusal(status)),
    }
}

fn story(page: &Page<Note>) -> String {
    let keys: Vec<&str> = page.items.iter().map(|note| note.key.as_str()).collect();
    let more = page.continue_token.as_ref().map_or("", |_| " continue");
    let remaining = page
        .remaining
        .map(|remaining| format!(" +{remaining}"))
        .unwrap_or_default();
    format!("{}: {}{more}{remaining}", page.revision, keys.join(" "))
}

fn refusal(status: &Status) -> String {
    format!("{} {}", status.code, status.message)
}

fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

fn at(revision: u64) -> ListOptions {
    ListOptions {
        resource_version: RequestedVersion::At(revision),
        ..ListOptions::default()
    }
}

fn exactly(revision: u64) -> ListOptions {
    ListOptions {
        version_match: Some(VersionMatch::Exact),
        ..at(revision)
    }
}

fn from(revision: u64) -> WatchOptions {
    WatchOptions {
        resource_version: RequestedVersion::At(revision),
        ..WatchOptions::default()
    }
}

fn next(options: &ListOptions, token: Option<ContinueToken>) -> ListOptions {
    ListOptions {
        resource_version: RequestedVersion::Newest,
        version_match: None,
        continue_token: token,
        ..options.clone()
    }
}

//! Drops what does not matter to a consumer. What is remembered of an object goes with it.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures::Stream;
use pin_project_lite::pin_project;
use tokio::time::Instant;

use crate::error::Error;
use crate::event::Event;
use crate::predicates::Predicate;
use crate::reflector::Lookup;

/// How long a filter remembers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PredicateConfig {
    ttl: Duration,
}

impl Default for PredicateConfig {
    fn default() -> Self {
        Self {
            ttl: Duration::from_secs(3600),
        }
    }
}

impl PredicateConfig {
    /// Forgets an object that did not pass by for so long; default one hour. A relist counts as passing by.
    #[must_use]
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }
}

/// The values of the objects that passed by, by namespace, name and uid.
#[derive(Debug)]
struct Memory {
    values: BTreeMap<(String, String, String), (Option<u64>, Instant)>,
    config: PredicateConfig,
    swept: Option<Instant>,
}

impl Memory {
    fn new(config: PredicateConfig) -> Self {
        Self {
            values: BTreeMap::new(),
            config,
            swept: None,
        }
    }

    /// Is this another value than the object had last?
    fn is_news<K: Lookup>(&mut self, object: &K, value: Option<u64>) -> bool {
        let now = now();
        self.sweep(now);
        let last = self.values.insert(key(object), (value, now));
        value.is_none() || last.is_none_or(|(last, _)| last != value)
    }

    fn forget<K: Lookup>(&mut self, object: &K) {
        self.values.remove(&key(object));
    }

    /// Looks through all at most twice in a lifetime, so that it costs nothing for each.
    fn sweep(&mut self, now: Instant) {
        let ttl = self.config.ttl;
        let swept = *self.swept.get_or_insert(now);
        if now.duration_since(swept) < ttl / 2 {
            return;
        }
        self.swept = Some(now);
        self.values.retain(|_, (_, seen)| now.duration_since(*seen) < ttl);
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "this adapter is an edge: what it remembers grows old by the clock, tokio's, which tests can pause"
)]
fn now() -> Instant {
    Instant::now()
}

fn key<K: Lookup>(object: &K) -> (String, String, String) {
    let owned = |field: Option<std::borrow::Cow<'_, str>>| field.unwrap_or_default().into_owned();
    (
        owned(object.namespace()),
        owned(object.name()),
        owned(object.uid()),
    )
}

pin_project! {
    /// From [`predicate_filter`](super::WatchStreamExt::predicate_filter).
    #[derive(Debug)]
    #[must_use = "streams do nothing unless polled"]
    pub struct PredicateFilter<S, P> {
        #[pin]
        objects: S,
        predicate: P,
        memory: Memory,
    }
}

impl<S, P> PredicateFilter<S, P> {
    pub(super) fn new(objects: S, predicate: P, config: PredicateConfig) -> Self {
        Self {
            objects,
            predicate,
            memory: Memory::new(config),
        }
    }
}

impl<S, K, P> Stream for PredicateFilter<S, P>
where
    S: Stream<Item = Result<K, Error>>,
    K: Lookup,
    P: Predicate<K>,
{
    type Item = S::Item;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<S::Item>> {
        let mut this = self.project();
        loop {
            let item = ready!(this.objects.as_mut().poll_next(cx));
            if let Some(Ok(object)) = &item
                && !this.memory.is_news(object, this.predicate.hash_property(object))
            {
                continue;
            }
            return Poll::Ready(item);
        }
    }
}

pin_project! {
    /// From [`Objects::predicate_filter`](super::Objects::predicate_filter): the same on events, where deletes can be
    /// told from changes.
    #[derive(Debug)]
    #[must_use = "streams do nothing unless polled"]
    pub struct EventFilter<S, P> {
        #[pin]
        events: S,
        predicate: P,
        memory: Memory,
    }
}

impl<S, P> EventFilter<S, P> {
    pub(super) fn new(events: S, predicate: P, config: PredicateConfig) -> Self {
        Self {
            events,
            predicate,
            memory: Memory::new(config),
        }
    }
}

impl<S, K, P> Stream for EventFilter<S, P>
where
    S: Stream<Item = Result<Event<K>, Error>>,
    K: Lookup,
    P: Predicate<K>,
{
    type Item = S::Item;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<S::Item>> {
        let mut this = self.project();
        loop {
            let item = ready!(this.events.as_mut().poll_next(cx));
            match &item {
                Some(Ok(Event::InitApply(object) | Event::Apply(object))) => {
                    if !this.memory.is_news(object, this.predicate.hash_property(object)) {
                        continue;
                    }
                }
                Some(Ok(Event::Delete(object))) => this.memory.forget(object),
                Some(Ok(Event::Init | Event::InitDone) | Err(_)) | None => {}
            }
            return Poll::Ready(item);
        }
    }
}

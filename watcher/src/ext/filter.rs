//! Drops objects whose relevant part did not change. State about an object is removed with the object.

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

/// How long a predicate filter keeps its state.
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
    /// Sets after how long without an event an object is forgotten; default one hour. A relist counts as an event.
    #[must_use]
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }
}

/// Last predicate values, by namespace, name and uid.
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

    /// Returns true if the value differs from the last one of this object; records it.
    fn is_changed<K: Lookup>(&mut self, object: &K, value: Option<u64>) -> bool {
        let now = now();
        self.sweep(now);
        let last = self.values.insert(key(object), (value, now));
        value.is_none() || last.is_none_or(|(last, _)| last != value)
    }

    fn forget<K: Lookup>(&mut self, object: &K) {
        self.values.remove(&key(object));
    }

    /// Removes expired entries. Scans at most twice per TTL, so that the cost per event stays constant.
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
    reason = "adapters do I/O-side timing: entries expire by tokio's clock, which tests can pause"
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
    /// Stream returned by [`predicate_filter`](super::WatchStreamExt::predicate_filter).
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
                && !this
                    .memory
                    .is_changed(object, this.predicate.hash_property(object))
            {
                continue;
            }
            return Poll::Ready(item);
        }
    }
}

pin_project! {
    /// Stream returned by [`Objects::predicate_filter`](super::Objects::predicate_filter): filters events, where
    /// deletes are distinguishable from changes.
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
                    if !this
                        .memory
                        .is_changed(object, this.predicate.hash_property(object))
                    {
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

//! Turns events into objects, and modifies objects in a stream.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures::Stream;
use pin_project_lite::pin_project;

use super::filter::{EventFilter, PredicateConfig};
use crate::error::Error;
use crate::event::Event;
use crate::predicates::Predicate;
use crate::reflector::Lookup;

pin_project! {
    /// Stream returned by [`applied_objects`](super::WatchStreamExt::applied_objects) and
    /// [`touched_objects`](super::WatchStreamExt::touched_objects).
    #[derive(Debug)]
    #[must_use = "streams do nothing unless polled"]
    pub struct Objects<S> {
        #[pin]
        events: S,
        with_deleted: bool,
    }
}

impl<S> Objects<S> {
    pub(super) fn new(events: S, with_deleted: bool) -> Self {
        Self { events, with_deleted }
    }

    /// Drops objects whose predicate value is the same as last time, but never deleted or recreated ones: the event
    /// type is still available here.
    pub fn predicate_filter<K, P>(self, predicate: P, config: PredicateConfig) -> Objects<EventFilter<S, P>>
    where
        S: Stream<Item = Result<Event<K>, Error>>,
        K: Lookup,
        P: Predicate<K>,
    {
        Objects {
            events: EventFilter::new(self.events, predicate, config),
            with_deleted: self.with_deleted,
        }
    }
}

impl<S, K> Stream for Objects<S>
where
    S: Stream<Item = Result<Event<K>, Error>>,
{
    type Item = Result<K, Error>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut this = self.project();
        loop {
            return Poll::Ready(match ready!(this.events.as_mut().poll_next(cx)) {
                Some(Ok(Event::InitApply(object) | Event::Apply(object))) => Some(Ok(object)),
                Some(Ok(Event::Delete(object))) if *this.with_deleted => Some(Ok(object)),
                Some(Ok(Event::Init | Event::InitDone | Event::Delete(_))) => continue,
                Some(Err(error)) => Some(Err(error)),
                None => None,
            });
        }
    }
}

pin_project! {
    /// Stream returned by [`modify`](super::WatchStreamExt::modify).
    #[must_use = "streams do nothing unless polled"]
    pub struct Modify<S, F> {
        #[pin]
        events: S,
        change: F,
    }
}

impl<S, F> Modify<S, F> {
    pub(super) fn new(events: S, change: F) -> Self {
        Self { events, change }
    }
}

impl<S, K, F> Stream for Modify<S, F>
where
    S: Stream<Item = Result<Event<K>, Error>>,
    F: FnMut(&mut K),
{
    type Item = S::Item;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<S::Item>> {
        let this = self.project();
        let event = ready!(this.events.poll_next(cx));
        Poll::Ready(event.map(|event| event.map(|event| event.modify(&mut *this.change))))
    }
}

impl<S: std::fmt::Debug, F> std::fmt::Debug for Modify<S, F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Modify")
            .field("events", &self.events)
            .finish_non_exhaustive()
    }
}

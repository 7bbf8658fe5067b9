//! Applies the events of a stream to a store.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures::{Stream, TryStreamExt};
use pin_project_lite::pin_project;

use crate::error::Error;
use crate::event::Event;
use crate::reflector::{Delta, Lookup, Writer};

pin_project! {
    /// Stream returned by [`reflect`](super::WatchStreamExt::reflect).
    #[must_use = "streams do nothing unless polled"]
    pub struct Reflect<S, K: Lookup> {
        #[pin]
        events: S,
        writer: Writer<K>,
    }
}

impl<S, K: Lookup> Reflect<S, K> {
    pub(super) fn new(events: S, writer: Writer<K>) -> Self {
        Self { events, writer }
    }
}

impl<S, K> Stream for Reflect<S, K>
where
    S: Stream<Item = Result<Event<K>, Error>>,
    K: Lookup + Clone,
{
    type Item = S::Item;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<S::Item>> {
        let this = self.project();
        let event = ready!(this.events.poll_next(cx));
        if let Some(Ok(event)) = &event {
            this.writer.apply_watcher_event(event);
        }
        Poll::Ready(event)
    }
}

pin_project! {
    /// Stream returned by [`deltas`](super::WatchStreamExt::deltas).
    #[must_use = "streams do nothing unless polled"]
    pub struct Deltas<S, K: Lookup> {
        #[pin]
        events: S,
        writer: Writer<K>,
        pending: VecDeque<Delta<K>>,
    }
}

impl<S, K: Lookup> Deltas<S, K> {
    pub(super) fn new(events: S, writer: Writer<K>) -> Self {
        Self {
            events,
            writer,
            pending: VecDeque::new(),
        }
    }
}

impl<S, K: Lookup> Deltas<S, K> {
    /// Returns the objects that were added, changed or deleted, including objects missing from a relist.
    pub fn touched_objects(self) -> impl Stream<Item = Result<K, Error>>
    where
        S: Stream<Item = Result<Event<K>, Error>>,
        K: Clone,
    {
        self.map_ok(|delta| K::clone(delta.object()))
    }
}

impl<S, K> Stream for Deltas<S, K>
where
    S: Stream<Item = Result<Event<K>, Error>>,
    K: Lookup,
{
    type Item = Result<Delta<K>, Error>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut this = self.project();
        loop {
            if let Some(delta) = this.pending.pop_front() {
                return Poll::Ready(Some(Ok(delta)));
            }
            match ready!(this.events.as_mut().poll_next(cx)) {
                Some(Ok(event)) => this.pending.extend(this.writer.apply(event)),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
        }
    }
}

impl<S, K: Lookup> std::fmt::Debug for Reflect<S, K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reflect").finish_non_exhaustive()
    }
}

impl<S, K: Lookup> std::fmt::Debug for Deltas<S, K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Deltas").finish_non_exhaustive()
    }
}

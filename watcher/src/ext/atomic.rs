//! Events of kube-runtime before 0.92, in which a relist is one event.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures::Stream;
use pin_project_lite::pin_project;

use crate::error::Error;
use crate::event::Event;

/// A change to a local copy of a collection, with relists as a single event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AtomicEvent<K> {
    /// An object was added or changed.
    Applied(K),
    /// An object was deleted.
    Deleted(K),
    /// All objects of the collection; objects missing from it are gone.
    Restarted(Vec<K>),
}

pin_project! {
    /// Stream returned by [`WatchStreamExt::atomic`](super::WatchStreamExt::atomic). Buffers a relist until it is
    /// complete.
    #[derive(Debug)]
    #[must_use = "streams do nothing unless polled"]
    pub struct Atomic<S, K> {
        #[pin]
        stream: S,
        relist: Vec<K>,
    }
}

impl<S, K> Atomic<S, K> {
    pub(super) fn new(stream: S) -> Self {
        Self {
            stream,
            relist: Vec::new(),
        }
    }
}

impl<S, K> Stream for Atomic<S, K>
where
    S: Stream<Item = Result<Event<K>, Error>>,
{
    type Item = Result<AtomicEvent<K>, Error>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut this = self.project();
        loop {
            let event = match ready!(this.stream.as_mut().poll_next(cx)) {
                Some(Ok(event)) => event,
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            };
            let whole = match event {
                Event::Init => {
                    this.relist.clear();
                    continue;
                }
                Event::InitApply(object) => {
                    this.relist.push(object);
                    continue;
                }
                Event::InitDone => AtomicEvent::Restarted(std::mem::take(this.relist)),
                Event::Apply(object) => AtomicEvent::Applied(object),
                Event::Delete(object) => AtomicEvent::Deleted(object),
            };
            return Poll::Ready(Some(Ok(whole)));
        }
    }
}

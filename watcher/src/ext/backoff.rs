//! Adds a delay after each error of a stream that has no backoff.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures::Stream;
use pin_project_lite::pin_project;
use tokio::time::Sleep;

use crate::backoff::DefaultBackoff;
use crate::error::Error;
use crate::event::Event;

/// A sequence of delays: an iterator of durations that can be reset.
pub trait Backoff: Iterator<Item = Duration> + Send {
    /// Resets to the first delay.
    fn reset(&mut self);
}

impl Iterator for DefaultBackoff {
    type Item = Duration;

    /// Returns the delay after one more failure; never `None`.
    fn next(&mut self) -> Option<Duration> {
        Some(self.next_delay())
    }
}

impl Backoff for DefaultBackoff {
    fn reset(&mut self) {
        DefaultBackoff::reset(self);
    }
}

pin_project! {
    /// Stream returned by [`WatchStreamExt::backoff`](super::WatchStreamExt::backoff). Ends when the backoff returns
    /// `None`.
    #[derive(Debug)]
    #[must_use = "streams do nothing unless polled"]
    pub struct StreamBackoff<S, B> {
        #[pin]
        stream: S,
        backoff: B,
        #[pin]
        pause: Option<Sleep>,
        is_over: bool,
    }
}

impl<S, B> StreamBackoff<S, B> {
    pub(super) fn new(stream: S, backoff: B) -> Self {
        Self {
            stream,
            backoff,
            pause: None,
            is_over: false,
        }
    }
}

impl<S, K, B> Stream for StreamBackoff<S, B>
where
    S: Stream<Item = Result<Event<K>, Error>>,
    B: Backoff,
{
    type Item = S::Item;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<S::Item>> {
        let mut this = self.project();
        if *this.is_over {
            return Poll::Ready(None);
        }
        if let Some(pause) = this.pause.as_mut().as_pin_mut() {
            ready!(pause.poll(cx));
            this.pause.set(None);
        }
        let item = ready!(this.stream.poll_next(cx));
        match &item {
            Some(Err(_)) => match this.backoff.next() {
                #[expect(
                    clippy::disallowed_methods,
                    reason = "adapters do I/O-side timing: sleeps for the delay of the backoff"
                )]
                Some(delay) => this.pause.set(Some(tokio::time::sleep(delay))),
                None => *this.is_over = true,
            },
            // Both show only that a relist started, not that it completes.
            Some(Ok(Event::Init | Event::InitApply(_))) => {}
            Some(Ok(Event::InitDone | Event::Apply(_) | Event::Delete(_))) => this.backoff.reset(),
            None => *this.is_over = true,
        }
        Poll::Ready(item)
    }
}

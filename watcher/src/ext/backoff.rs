//! A pause after each error of a stream that has none of its own.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures::Stream;
use pin_project_lite::pin_project;
use tokio::time::Sleep;

use crate::backoff::DefaultBackoff;
use crate::error::Error;
use crate::event::Event;

/// A sequence of pauses. Every iterator of durations that can start over is one.
pub trait Backoff: Iterator<Item = Duration> + Send {
    /// Starts over at the first pause.
    fn reset(&mut self);
}

impl Iterator for DefaultBackoff {
    type Item = Duration;

    /// The pause after one more failure. There is always one.
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
    /// From [`WatchStreamExt::backoff`](super::WatchStreamExt::backoff). Ends when the backoff has no more pauses.
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
                    reason = "this adapter is an edge: it carries out a pause that was decided"
                )]
                Some(delay) => this.pause.set(Some(tokio::time::sleep(delay))),
                None => *this.is_over = true,
            },
            // Neither says that anything but the beginning of a relist works.
            Some(Ok(Event::Init | Event::InitApply(_))) => {}
            Some(Ok(Event::InitDone | Event::Apply(_) | Event::Delete(_))) => this.backoff.reset(),
            None => *this.is_over = true,
        }
        Poll::Ready(item)
    }
}

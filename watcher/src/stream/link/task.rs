//! A spawned future: it makes progress while the stream is not polled. Independent of HTTP.
//!
//! Sending a request takes several polls: a place in a queue, a connection, a token. A consumer that is busy with
//! earlier events does not poll the stream, so a request polled only with the stream would stay unsent while its
//! resourceVersion or continue token ages.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::task::JoinHandle;
use tracing::Instrument;

/// A future spawned on the runtime. Dropping it aborts the future.
pub(super) struct Task<T>(JoinHandle<T>);

impl<T: Send + 'static> Task<T> {
    /// Spawns the future.
    pub(super) fn start(future: impl Future<Output = T> + Send + 'static) -> Self {
        Self(tokio::spawn(future.in_current_span()))
    }

    /// Polls for the result. A panic in the future is propagated; if the runtime is shutting down, stays pending.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<T> {
        match ready!(Pin::new(&mut self.0).poll(cx)) {
            Ok(given) => Poll::Ready(given),
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_cancelled) => Poll::Pending,
            },
        }
    }
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

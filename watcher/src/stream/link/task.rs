//! A future that makes progress while nobody polls the stream. Knows nothing of HTTP.
//!
//! A request takes several turns until it is sent: a place in a queue, a connection, a token. A consumer that is busy
//! with the events it has gives the stream none of them, so a request that were polled with the stream alone would lie
//! unsent, and the resourceVersion or continue token in it would age.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::task::JoinHandle;
use tracing::Instrument;

/// A future that the runtime drives. Dropping this drops it, at the runtime's next turn.
pub(super) struct Task<T>(JoinHandle<T>);

impl<T: Send + 'static> Task<T> {
    /// Starts it.
    pub(super) fn start(future: impl Future<Output = T> + Send + 'static) -> Self {
        Self(tokio::spawn(future.in_current_span()))
    }

    /// What it gave. A panic in it goes on here; where the runtime shuts down, it gives nothing any more.
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

//! Resettable deadline of a connection.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::Sleep;

/// A deadline that may be unset; costs nothing while it is.
#[derive(Debug, Default)]
pub(crate) struct Deadline {
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Deadline {
    /// Sets the deadline to `after` from now, and replaces an earlier one.
    #[expect(
        clippy::disallowed_methods,
        reason = "the edge carries out the patience its limits decide"
    )]
    pub(crate) fn set(&mut self, after: Duration) {
        self.sleep = Some(Box::pin(tokio::time::sleep(after)));
    }

    pub(crate) fn clear(&mut self) {
        self.sleep = None;
    }

    pub(crate) fn is_set(&self) -> bool {
        self.sleep.is_some()
    }

    /// Ready once it has passed; pending while it is unset.
    pub(crate) fn poll_passed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.sleep {
            Some(sleep) => sleep.as_mut().poll(cx),
            None => Poll::Pending,
        }
    }
}

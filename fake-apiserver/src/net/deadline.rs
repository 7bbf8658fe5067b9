//! A moment after which a connection is not waited for any longer.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::Sleep;

/// Set while something is waited for; costs nothing while nothing is.
#[derive(Debug, Default)]
pub(crate) struct Deadline {
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Deadline {
    /// `after` from now. A deadline set before is forgotten.
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

    /// Ready once it has passed. Never while it is not set.
    pub(crate) fn poll_passed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.sleep {
            Some(sleep) => sleep.as_mut().poll(cx),
            None => Poll::Pending,
        }
    }
}

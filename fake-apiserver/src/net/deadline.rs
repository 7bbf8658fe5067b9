//! Resettable deadline of a connection.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

/// A deadline that may be unset.
///
/// Every request of a connection sets and clears it, and nearly none waits for it. So a timer, once made, is kept, and moved
/// only where it would fire too late: one that fires too soon is then moved to the deadline.
#[derive(Debug, Default)]
pub(crate) struct Deadline {
    due: Option<Instant>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Deadline {
    /// Sets the deadline to `after` from now, and replaces an earlier one.
    #[expect(
        clippy::disallowed_methods,
        reason = "the edge carries out the patience its limits decide"
    )]
    pub(crate) fn set(&mut self, after: Duration) {
        let due = Instant::now() + after;
        self.due = Some(due);
        match &mut self.timer {
            Some(timer) if timer.deadline() <= due => {}
            Some(timer) => timer.as_mut().reset(due),
            None => self.timer = Some(Box::pin(tokio::time::sleep_until(due))),
        }
    }

    pub(crate) fn clear(&mut self) {
        self.due = None;
    }

    pub(crate) fn is_set(&self) -> bool {
        self.due.is_some()
    }

    /// Ready once it has passed; pending while it is unset.
    pub(crate) fn poll_passed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let (Some(due), Some(timer)) = (self.due, &mut self.timer) else {
            return Poll::Pending;
        };
        ready!(timer.as_mut().poll(cx));
        if timer.deadline() < due {
            timer.as_mut().reset(due);
            return timer.as_mut().poll(cx);
        }
        Poll::Ready(())
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    /// Milliseconds until the deadline passes; `None`: not within a minute.
    #[expect(clippy::disallowed_methods, reason = "the clock is paused")]
    async fn passed(deadline: &mut Deadline) -> Option<u128> {
        let start = Instant::now();
        let passed = poll_fn(|cx| deadline.poll_passed(cx));
        let passed = tokio::time::timeout(Duration::from_secs(60), passed).await;
        passed.ok().map(|()| start.elapsed().as_millis())
    }

    #[tokio::test(flavor = "current_thread", start_paused = true)]
    async fn it_passes_when_it_was_set_to_last() {
        let mut deadline = Deadline::default();
        assert_eq!(passed(&mut deadline).await, None);
        deadline.set(Duration::from_millis(500));
        deadline.set(Duration::from_millis(900));
        assert_eq!(passed(&mut deadline).await, Some(900), "later");
        deadline.set(Duration::from_millis(900));
        deadline.set(Duration::from_millis(500));
        assert_eq!(passed(&mut deadline).await, Some(500), "sooner");
        deadline.set(Duration::from_millis(500));
        deadline.clear();
        assert_eq!(passed(&mut deadline).await, None, "cleared");
        deadline.set(Duration::from_millis(700));
        assert_eq!(
            passed(&mut deadline).await,
            Some(700),
            "after its timer has fired"
        );
    }
}

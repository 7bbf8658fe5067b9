//! A one-time event that any number of tasks can await. Independent of stores.
//!
//! Each waiter has its own waker: kube-runtime's store keeps one for all of them, so that a second waiter replaces
//! the first, which then sleeps forever.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use super::sync::{Mutex, lock};

/// The writer was dropped before the first snapshot was complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the writer of this store was dropped before its set was complete")]
pub struct WriterDropped;

#[derive(Debug, Default)]
pub(super) struct Ready {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    outcome: Option<Result<(), WriterDropped>>,
    waiting: BTreeMap<u64, Waker>,
    last_waiter: u64,
}

impl Ready {
    /// Settles the outcome. Only the first call counts.
    pub(super) fn settle(&self, outcome: Result<(), WriterDropped>) {
        let waiting = {
            let mut state = lock(&self.state);
            state.outcome.get_or_insert(outcome);
            std::mem::take(&mut state.waiting)
        };
        // After unlocking: a waker may run arbitrary code.
        waiting.into_values().for_each(Waker::wake);
    }

    /// Returns the outcome, if settled.
    pub(super) fn outcome(&self) -> Option<Result<(), WriterDropped>> {
        lock(&self.state).outcome
    }

    /// Waits for the outcome.
    pub(super) fn wait(&self) -> Wait<'_> {
        Wait {
            ready: self,
            waiter: None,
        }
    }
}

/// Future of one waiter.
#[derive(Debug)]
pub(super) struct Wait<'a> {
    ready: &'a Ready,
    waiter: Option<u64>,
}

impl Future for Wait<'_> {
    type Output = Result<(), WriterDropped>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = lock(&self.ready.state);
        if let Some(outcome) = state.outcome {
            return Poll::Ready(outcome);
        }
        let waiter = match self.waiter {
            Some(waiter) => waiter,
            None => {
                state.last_waiter += 1;
                state.last_waiter
            }
        };
        state.waiting.insert(waiter, cx.waker().clone());
        drop(state);
        self.waiter = Some(waiter);
        Poll::Pending
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        if let Some(waiter) = self.waiter {
            lock(&self.ready.state).waiting.remove(&waiter);
        }
    }
}

//! Streams of a store's changes. A slow subscriber blocks no one: changes it misses are merged, so its queue is never
//! longer than the number of objects.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};

use futures::{Stream, StreamExt};

use super::delta::Delta;
use super::lookup::Lookup;
use super::set::Key;
use super::sync::{Mutex, lock};

/// A stream of changes to a store. It starts with the current objects as [`Delta::Added`], and ends after the last
/// change when the writer is dropped.
///
/// Folding the deltas yields the objects of the store. Several changes of one object between two polls are merged
/// into one delta: added in its current state; modified, from the last delivered state to the current one; or
/// deleted. An object that was added and deleted in between is not delivered. An object that was deleted and
/// recreated is delivered as both.
#[must_use = "streams do nothing unless polled"]
pub struct Subscriber<K> {
    queue: Arc<Queue<K>>,
}

/// The subscribers of one store.
pub(super) struct Subscribers<K> {
    state: Mutex<Listening<K>>,
}

struct Listening<K> {
    queues: Vec<Weak<Queue<K>>>,
    is_closed: bool,
}

impl<K> Default for Subscribers<K> {
    fn default() -> Self {
        Self {
            state: Mutex::new(Listening {
                queues: Vec::new(),
                is_closed: false,
            }),
        }
    }
}

impl<K: Lookup> Subscribers<K> {
    /// Adds a subscriber whose queue starts with these objects.
    pub(super) fn add<'a>(&self, objects: impl Iterator<Item = &'a Arc<K>>) -> Subscriber<K>
    where
        K: 'a,
    {
        let mut state = lock(&self.state);
        let queue = Arc::new(Queue::starting_with(objects, state.is_closed));
        state.queues.push(Arc::downgrade(&queue));
        Subscriber { queue }
    }

    /// Queues the changes for every subscriber; returns the wakers to wake after all locks are released.
    #[must_use]
    pub(super) fn notify(&self, deltas: &[Delta<K>]) -> Vec<Waker> {
        let mut state = lock(&self.state);
        state.queues.retain(|queue| queue.strong_count() > 0);
        let queues = state.queues.iter().filter_map(Weak::upgrade);
        queues.filter_map(|queue| queue.push(deltas)).collect()
    }
}

impl<K> Subscribers<K> {
    /// Ends all streams; returns the wakers to wake.
    #[must_use]
    pub(super) fn close(&self) -> Vec<Waker> {
        let mut state = lock(&self.state);
        state.is_closed = true;
        let queues = state.queues.iter().filter_map(Weak::upgrade);
        queues.filter_map(|queue| queue.close()).collect()
    }
}

/// Changes not yet delivered to one subscriber.
struct Queue<K> {
    state: Mutex<State<K>>,
}

struct State<K> {
    missed: BTreeMap<Key, (u64, Missed<K>)>,
    /// Delivery order: keys by when their first undelivered change was queued.
    turns: BTreeMap<u64, Key>,
    last_turn: u64,
    is_closed: bool,
    waiting: Option<Waker>,
}

/// Merged changes of one object since its last delivery.
enum Missed<K> {
    Added(Arc<K>),
    Modified {
        old: Arc<K>,
        new: Arc<K>,
    },
    Deleted {
        last: Arc<K>,
        inferred: bool,
    },
    Replaced {
        last: Arc<K>,
        inferred: bool,
        new: Arc<K>,
    },
}

impl<K> Missed<K> {
    fn first(delta: Delta<K>) -> Self {
        match delta {
            Delta::Added(object) => Self::Added(object),
            Delta::Modified { old, new } => Self::Modified { old, new },
            Delta::Deleted { last, inferred } => Self::Deleted { last, inferred },
        }
    }

    /// Merges another change; `None` if nothing is left to deliver.
    fn and_then(self, delta: Delta<K>) -> Option<Self> {
        Some(match (self, delta) {
            (Self::Added(_), Delta::Added(new) | Delta::Modified { new, .. }) => Self::Added(new),
            (Self::Added(_), Delta::Deleted { .. }) => return None,
            (Self::Modified { old, .. }, Delta::Added(new) | Delta::Modified { new, .. }) => {
                Self::Modified { old, new }
            }
            (Self::Modified { .. }, Delta::Deleted { last, inferred }) => Self::Deleted { last, inferred },
            (Self::Deleted { last, inferred }, Delta::Added(new) | Delta::Modified { new, .. }) => {
                Self::Replaced { last, inferred, new }
            }
            (deleted @ Self::Deleted { .. }, Delta::Deleted { .. }) => deleted,
            (Self::Replaced { last, inferred, .. }, Delta::Added(new) | Delta::Modified { new, .. }) => {
                Self::Replaced { last, inferred, new }
            }
            (Self::Replaced { last, inferred, .. }, Delta::Deleted { .. }) => {
                Self::Deleted { last, inferred }
            }
        })
    }
}

impl<K: Lookup> Queue<K> {
    fn starting_with<'a>(objects: impl Iterator<Item = &'a Arc<K>>, is_closed: bool) -> Self
    where
        K: 'a,
    {
        let mut state = State {
            missed: BTreeMap::new(),
            turns: BTreeMap::new(),
            last_turn: 0,
            is_closed,
            waiting: None,
        };
        for object in objects {
            state.push(Delta::Added(Arc::clone(object)));
        }
        Self {
            state: Mutex::new(state),
        }
    }

    fn push(&self, deltas: &[Delta<K>]) -> Option<Waker> {
        let mut state = lock(&self.state);
        for delta in deltas {
            state.push(delta.clone());
        }
        state.waiting.take()
    }
}

impl<K> Queue<K> {
    fn close(&self) -> Option<Waker> {
        let mut state = lock(&self.state);
        state.is_closed = true;
        state.waiting.take()
    }
}

impl<K: Lookup> State<K> {
    fn push(&mut self, delta: Delta<K>) {
        let key = Key::of(&**delta.object());
        match self.missed.remove(&key) {
            None => {
                self.last_turn += 1;
                self.turns.insert(self.last_turn, key.clone());
                self.missed.insert(key, (self.last_turn, Missed::first(delta)));
            }
            Some((turn, missed)) => match missed.and_then(delta) {
                Some(missed) => {
                    self.missed.insert(key, (turn, missed));
                }
                None => {
                    self.turns.remove(&turn);
                }
            },
        }
    }
}

impl<K> State<K> {
    fn pop(&mut self) -> Option<Delta<K>> {
        let (turn, key) = self.turns.pop_first()?;
        let (_, missed) = self.missed.remove(&key)?;
        Some(match missed {
            Missed::Added(object) => Delta::Added(object),
            Missed::Modified { old, new } => Delta::Modified { old, new },
            Missed::Deleted { last, inferred } => Delta::Deleted { last, inferred },
            Missed::Replaced { last, inferred, new } => {
                // The new object is next. It stays in the queue, because it may change before that.
                self.turns.insert(turn, key.clone());
                self.missed.insert(key, (turn, Missed::Added(new)));
                Delta::Deleted { last, inferred }
            }
        })
    }
}

impl<K> Subscriber<K> {
    /// Returns the objects that were added, changed or deleted: for `Controller::for_shared_stream` and similar
    /// methods.
    pub fn touched_objects(self) -> impl Stream<Item = Arc<K>> {
        self.map(|delta| Arc::clone(delta.object()))
    }
}

impl<K> Stream for Subscriber<K> {
    type Item = Delta<K>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Delta<K>>> {
        let mut state = lock(&self.queue.state);
        match state.pop() {
            Some(delta) => Poll::Ready(Some(delta)),
            None if state.is_closed => Poll::Ready(None),
            None => {
                state.waiting = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl<K> Unpin for Subscriber<K> {}

impl<K> std::fmt::Debug for Subscriber<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let missed = lock(&self.queue.state).missed.len();
        f.debug_struct("Subscriber").field("missed", &missed).finish()
    }
}

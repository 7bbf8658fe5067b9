//! Who else wants to hear of a store's changes. A subscriber can be as slow as it likes: it holds nobody back, and what
//! it misses is folded into what it will be told, so that no more waits for it than there are objects.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};

use futures::{Stream, StreamExt};

use super::delta::Delta;
use super::lookup::Lookup;
use super::set::Key;
use super::sync::{Mutex, lock};

/// A stream of what changes in a store, from the set it has at the subscription on: that comes first, as
/// [`Delta::Added`]. It ends when the store's writer is gone and everything is told.
///
/// Folding the deltas gives the store's set. Of several changes of one object between two polls it is told one: that it
/// was added, as it is now; that it changed, from what was told last to what is; that it is gone. An object that came
/// and went meanwhile is not told of. One that was deleted and made again is told as both.
#[must_use = "streams do nothing unless polled"]
pub struct Subscriber<K> {
    queue: Arc<Queue<K>>,
    /// The second half of what was deleted and made again.
    next: Option<Arc<K>>,
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
    /// One more, who was told nothing of these.
    pub(super) fn add<'a>(&self, objects: impl Iterator<Item = &'a Arc<K>>) -> Subscriber<K>
    where
        K: 'a,
    {
        let mut state = lock(&self.state);
        let queue = Arc::new(Queue::starting_with(objects, state.is_closed));
        state.queues.push(Arc::downgrade(&queue));
        Subscriber { queue, next: None }
    }

    /// Tells all of them; gives whom to wake, once no lock is held.
    #[must_use]
    pub(super) fn tell(&self, deltas: &[Delta<K>]) -> Vec<Waker> {
        let mut state = lock(&self.state);
        state.queues.retain(|queue| queue.strong_count() > 0);
        let queues = state.queues.iter().filter_map(Weak::upgrade);
        queues.filter_map(|queue| queue.push(deltas)).collect()
    }
}

impl<K> Subscribers<K> {
    /// Nothing will come any more; gives whom to wake.
    #[must_use]
    pub(super) fn close(&self) -> Vec<Waker> {
        let mut state = lock(&self.state);
        state.is_closed = true;
        let queues = state.queues.iter().filter_map(Weak::upgrade);
        queues.filter_map(|queue| queue.close()).collect()
    }
}

/// What one subscriber was not told yet.
struct Queue<K> {
    state: Mutex<State<K>>,
}

struct State<K> {
    missed: BTreeMap<Key, (u64, Missed<K>)>,
    /// Whose turn it is, by when it was first missed.
    turns: BTreeMap<u64, Key>,
    last_turn: u64,
    is_closed: bool,
    waiting: Option<Waker>,
}

/// All that happened to one object since the subscriber was told of it last.
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

    /// `None`: nothing is left to tell.
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
    fn pop(&mut self) -> Option<Missed<K>> {
        let (_, key) = self.turns.pop_first()?;
        self.missed.remove(&key).map(|(_, missed)| missed)
    }
}

impl<K> Subscriber<K> {
    /// The objects that were added, changed or deleted: for `Controller::for_shared_stream` and its kin.
    pub fn touched_objects(self) -> impl Stream<Item = Arc<K>> {
        self.map(|delta| Arc::clone(delta.object()))
    }
}

impl<K> Stream for Subscriber<K> {
    type Item = Delta<K>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Delta<K>>> {
        if let Some(new) = self.next.take() {
            return Poll::Ready(Some(Delta::Added(new)));
        }
        let missed = {
            let mut state = lock(&self.queue.state);
            match state.pop() {
                Some(missed) => missed,
                None if state.is_closed => return Poll::Ready(None),
                None => {
                    state.waiting = Some(cx.waker().clone());
                    return Poll::Pending;
                }
            }
        };
        Poll::Ready(Some(match missed {
            Missed::Added(object) => Delta::Added(object),
            Missed::Modified { old, new } => Delta::Modified { old, new },
            Missed::Deleted { last, inferred } => Delta::Deleted { last, inferred },
            Missed::Replaced { last, inferred, new } => {
                self.next = Some(new);
                Delta::Deleted { last, inferred }
            }
        }))
    }
}

impl<K> Unpin for Subscriber<K> {}

impl<K> std::fmt::Debug for Subscriber<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let missed = lock(&self.queue.state).missed.len();
        f.debug_struct("Subscriber").field("missed", &missed).finish()
    }
}

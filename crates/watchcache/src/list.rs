//! LIST and GET: finds the state that the decision asks for, and the page of it that is returned.

use std::sync::Arc;
use std::time::Duration;

use apimachinery::continue_token::ContinueToken;
use apimachinery::options::RequestedVersion;
use apimachinery::status::Status;

use crate::decision::{Decision, ListOptions, Source, Wanted};
use crate::object::{Object, View};
use crate::storage::{Replica, Resource, ResourceId, Storage};
use crate::store::{self, Mark, Objects, Store};

/// How long the watch cache waits for a revision before it gives up (apiserver `watch_cache.go`, `blockTimeout`).
pub const FRESH_WAIT: Duration = Duration::from_secs(3);

/// Lookup to a LIST or GET.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lookup<T> {
    /// The answer.
    Found(T),
    /// A refusal.
    Refused(Status),
    /// Not yet: try again after every change of the storage (a write, a thaw, a relist, a restore), and at `until`.
    Wait {
        /// When the server gives up waiting.
        until: Duration,
    },
}

/// One page of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<O> {
    /// `metadata.resourceVersion`.
    pub revision: u64,
    /// Where the next page starts; `None`: this is the last one.
    pub continue_token: Option<ContinueToken>,
    /// `metadata.remainingItemCount`.
    pub remaining: Option<u64>,
    /// The items, in key order, in the version of the request.
    pub items: Vec<Arc<O>>,
}

/// A LIST or GET on its way.
#[derive(Debug, Clone, Copy)]
pub struct Read {
    /// Which resource.
    pub resource: ResourceId,
    /// At which apiserver.
    pub replica: Replica,
    /// When the request arrived: it waits at most [`FRESH_WAIT`] from then on.
    pub arrived: Duration,
}

/// State from which a page is read.
struct State<O> {
    objects: Objects<O>,
    revision: u64,
    cached: bool,
}

/// Why no state can be read.
enum NoState {
    Wait(Duration),
    Refused(Status),
}

impl<O: Object, K> Storage<O, K> {
    /// Answers a LIST at `now`.
    pub fn list(
        &self,
        now: Duration,
        read: Read,
        options: &ListOptions,
        view: &impl View<O>,
    ) -> Lookup<Page<O>> {
        let resource = self.resource(read.resource);
        let unready = self.unready(now, read.resource, read.replica);
        // What etcd can page is passed on to it (KEP-4568).
        if let Some(status) = unready
            .clone()
            .filter(|_| options.selective || options.limit.is_none())
        {
            return Lookup::Refused(status);
        }
        let watch_cached = resource.watch_cached && unready.is_none();
        let decision = Decision::of_list(watch_cached, options);
        let token = options.continue_token.as_ref();
        let state = match self.state(now, read, decision) {
            Ok(state) => state,
            Err(NoState::Wait(until)) => return Lookup::Wait { until },
            Err(NoState::Refused(status)) => {
                tracing::debug!(resource = &*resource.name, code = status.code, "list refused");
                return Lookup::Refused(match token {
                    Some(token) if status.code == 410 => {
                        Status::expired_continue(Some(&token.inconsistent().encode()))
                    }
                    Some(_) | None => status,
                });
            }
        };
        let page = page(&resource.store, &state, decision.limit, options, view);
        tracing::trace!(
            resource = &*resource.name,
            items = page.items.len(),
            remaining = page.remaining,
            "page"
        );
        Lookup::Found(page)
    }

    /// Answers a GET at `now` with the object of this key, in the version of the request, or `None`.
    pub fn get(
        &self,
        now: Duration,
        read: Read,
        key: &str,
        resource_version: RequestedVersion,
        view: &impl View<O>,
    ) -> Lookup<Option<Arc<O>>> {
        let unready = self.unready(now, read.resource, read.replica).is_some();
        let watch_cached = self.resource(read.resource).watch_cached && !unready;
        match self.state(now, read, Decision::of_get(watch_cached, resource_version)) {
            Ok(state) => {
                let object = state.objects.get(key);
                Lookup::Found(object.map(|object| view.convert(object).into_owned()))
            }
            Err(NoState::Wait(until)) => Lookup::Wait { until },
            Err(NoState::Refused(status)) => Lookup::Refused(status),
        }
    }

    fn state(&self, now: Duration, read: Read, decision: Decision) -> Result<State<O>, NoState> {
        let resource = self.resource(read.resource);
        match decision.source {
            Source::WatchCache => self.cached_state(now, read, resource, decision.wanted),
            Source::Etcd => self.stored_state(resource, decision.wanted),
        }
    }

    fn cached_state(
        &self,
        now: Duration,
        read: Read,
        resource: &Resource<O, K>,
        wanted: Wanted,
    ) -> Result<State<O>, NoState> {
        let newest = || {
            let (revision, objects) = self.cached(resource, read.replica);
            State {
                objects: objects.clone(),
                revision,
                cached: true,
            }
        };
        let until = read.arrived + FRESH_WAIT;
        let wait_for = |revision: u64| {
            let reached = self.catch_up(resource, read.replica, revision);
            if reached >= revision {
                Ok(())
            } else if now < until {
                Err(NoState::Wait(until))
            } else {
                Err(NoState::Refused(Status::too_large(revision, reached, 1)))
            }
        };
        match wanted {
            Wanted::Any => Ok(newest()),
            Wanted::NotOlderThan(revision) => wait_for(revision).map(|()| newest()),
            Wanted::Exact(revision) => {
                wait_for(revision)?;
                self.exactly(resource, revision, Some(read.replica))
            }
            Wanted::Newest | Wanted::Latest => match wait_for(self.revision) {
                // A cache that does not catch up is bypassed.
                Err(NoState::Refused(_)) => self.stored_state(resource, wanted),
                fresh => fresh.map(|()| newest()),
            },
        }
    }

    fn stored_state(&self, resource: &Resource<O, K>, wanted: Wanted) -> Result<State<O>, NoState> {
        let newest = || State {
            objects: resource.store.current().clone(),
            revision: self.revision,
            cached: false,
        };
        match wanted {
            Wanted::Newest | Wanted::Any | Wanted::Latest => Ok(newest()),
            Wanted::NotOlderThan(revision) if revision <= self.revision => Ok(newest()),
            Wanted::Exact(revision) if revision <= self.revision => self.exactly(resource, revision, None),
            Wanted::NotOlderThan(revision) | Wanted::Exact(revision) => {
                Err(NoState::Refused(Status::too_large(revision, self.revision, 0)))
            }
        }
    }

    fn exactly(
        &self,
        resource: &Resource<O, K>,
        revision: u64,
        cached_at: Option<Replica>,
    ) -> Result<State<O>, NoState> {
        if revision < self.compacted {
            return Err(NoState::Refused(Status::expired_list()));
        }
        match resource.store.at(revision) {
            Some(objects) => Ok(State {
                objects,
                revision,
                // Only etcd still has what precedes the cache.
                cached: cached_at.is_some_and(|replica| revision >= resource.cache(replica).oldest_start()),
            }),
            None => Err(NoState::Refused(Status::expired_list())),
        }
    }
}

fn page<O: Object>(
    store: &Store<O>,
    state: &State<O>,
    limit: Option<usize>,
    options: &ListOptions,
    view: &impl View<O>,
) -> Page<O> {
    let namespace = options.namespace.as_deref();
    let token = options.continue_token.as_ref();
    let start = token.map(ContinueToken::start_key).unwrap_or_default();
    let mut keys = store::range(&state.objects, namespace, start);
    let mut items: Vec<Arc<O>> = Vec::new();
    let mut seen = 0;
    let full = |items: &Vec<Arc<O>>| limit.is_some_and(|limit| items.len() >= limit);
    while !full(&items) {
        let Some(object) = keys.next() else { break };
        seen += 1;
        let object = view.convert(object);
        if view.selects(&object) {
            items.push(object.into_owned());
        }
    }
    let mark = |start: &str| Mark {
        revision: state.revision,
        namespace: namespace.map(str::to_owned),
        start: start.to_owned(),
    };
    // The page is full and more keys follow, whether or not they match.
    let more = if !full(&items) {
        0
    } else if namespace.is_none() && token.is_none() {
        state.objects.len() - seen
    } else {
        let known = store.behind(&mark(start));
        known.map_or_else(|| keys.count(), |from_start| from_start.saturating_sub(seen))
    };
    let last = items.last().filter(|_| more > 0);
    let continue_token = last.map(|last| {
        let key = last.key();
        let relative = namespace.map_or(key, |namespace| &key[namespace.len() + 1..]);
        ContinueToken::after(state.revision, relative, state.cached)
    });
    if let Some(next) = &continue_token {
        store.remember_behind(mark(next.start_key()), more);
    }
    Page {
        revision: state.revision,
        remaining: (continue_token.is_some() && !options.selective).then_some(more as u64),
        continue_token,
        items,
    }
}

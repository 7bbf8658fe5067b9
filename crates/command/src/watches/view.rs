//! What a view shows of the watches at a time.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use fake_apiserver::record::{Replica, StreamId};
use serde::Serialize;

use super::asked::Filter;
use super::rate::per_second;
use super::{Position, State, Tracker, Watch};

/// Maximum number of names in a view, of clients and of resources.
const NAMES_MAX: usize = 200;

/// Time by which a watch may be behind in normal operation.
const NORMAL_LAG: Duration = Duration::from_secs(1);

/// The watches at a time.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WatchesView {
    /// Time since the start of the server, in milliseconds.
    now_ms: u64,
    /// Number of open watches.
    pub(super) open: usize,
    /// Of these, those that the filter lets pass.
    matched: usize,
    /// Of those, the ones that are behind for more than a second.
    pub(super) behind: usize,
    /// Of those, the ones on which nothing is sent any more.
    pub(super) stalled: usize,
    /// Events sent to them in a second.
    events_per_second: u64,
    /// Names of clients with open watches.
    clients: Vec<Arc<str>>,
    /// Resources with open watches.
    resources: Vec<Arc<str>>,
    /// The watches: those that are stalled or behind first.
    pub(super) watches: Vec<WatchView>,
}

/// An open watch.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WatchView {
    pub(super) stream: u64,
    connection: u64,
    replica: Replica,
    client: Arc<str>,
    resource: Arc<str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<Arc<str>>,
    pub(super) state: State,
    /// Whether it has a selector.
    selective: bool,
    /// Last version sent, or requested.
    resource_version: String,
    /// Changes after that version; `None`: not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) behind: Option<usize>,
    /// Age of the oldest of them, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) behind_ms: Option<u64>,
    events: u64,
    events_per_second: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_event_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) last_bookmark_ms: Option<u64>,
    open_ms: u64,
}

impl Tracker {
    /// Returns at most `limit` of the watches that `filter` lets pass. `ambiguous`: plurals that several groups serve.
    pub(super) fn view(
        &self,
        now: Duration,
        filter: &Filter,
        limit: usize,
        ambiguous: &BTreeSet<String>,
    ) -> WatchesView {
        let (mut clients, mut resources) = (BTreeSet::new(), BTreeSet::new());
        for watch in self.open.values() {
            clients.insert(&watch.asked.client);
            resources.insert(&watch.asked.resource);
        }
        let fitting = self.open.iter().filter(|(_, watch)| filter.fits(&watch.asked));
        let mut sum = 0;
        let mut watches: Vec<WatchView> = fitting
            .map(|(stream, watch)| {
                sum += watch.rate.sum(now);
                self.viewed(now, *stream, watch, ambiguous)
            })
            .collect();
        let lags = |watch: &WatchView| u128::from(watch.behind_ms.unwrap_or(0)) > NORMAL_LAG.as_millis();
        let stalls = |watch: &WatchView| watch.state == State::Stalled;
        let (behind, stalled) = (
            watches.iter().filter(|watch| lags(watch)).count(),
            watches.iter().filter(|watch| stalls(watch)).count(),
        );
        let matched = watches.len();
        watches.sort_by_key(|watch| {
            let late = watch.behind_ms.filter(|_| lags(watch)).unwrap_or(0);
            (!stalls(watch), Reverse(late), watch.stream)
        });
        watches.truncate(limit);
        WatchesView {
            now_ms: now.as_millis() as u64,
            open: self.open.len() + self.untracked.len(),
            matched,
            behind,
            stalled,
            events_per_second: per_second(sum),
            clients: clients.into_iter().take(NAMES_MAX).cloned().collect(),
            resources: resources.into_iter().take(NAMES_MAX).cloned().collect(),
            watches,
        }
    }

    fn viewed(
        &self,
        now: Duration,
        stream: StreamId,
        watch: &Watch,
        ambiguous: &BTreeSet<String>,
    ) -> WatchView {
        let ago = |at: Duration| now.saturating_sub(at).as_millis() as u64;
        let late = match watch.position {
            Position::At(version) if !ambiguous.contains(&*watch.scope.0) => {
                self.changes.after(&watch.scope, version)
            }
            Position::At(_) | Position::Unknown | Position::Hidden => None,
        };
        WatchView {
            stream: stream.0,
            connection: watch.conn.0,
            replica: watch.replica,
            client: watch.asked.client.clone(),
            resource: watch.asked.resource.clone(),
            namespace: watch.asked.namespace.clone(),
            state: watch.state,
            selective: watch.position == Position::Hidden,
            resource_version: watch.shown.clone(),
            behind: late.map(|(behind, _)| behind),
            behind_ms: late.and_then(|(_, oldest)| oldest).map(ago),
            events: watch.events,
            events_per_second: per_second(watch.rate.sum(now)),
            last_event_ms: watch.last_event.map(ago),
            last_bookmark_ms: watch.last_bookmark.map(ago),
            open_ms: ago(watch.opened),
        }
    }
}

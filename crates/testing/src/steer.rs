//! Changes to a running server: rules, writes, faults at once, waits.

use std::future::Future;
use std::panic::Location;
use std::time::Duration;

use fake_apiserver::net::SteerError;
use fake_apiserver::record::line::span;
use fake_apiserver::server::{Control, RuleRefused, Ruled, Server};
use serde::Serialize;
use serde_json::{Value, json};

use crate::expect;
use crate::matcher::{Matcher, Watch, kind, words};
use crate::objects;
use crate::request::{Request, requests};
use crate::rule::{Ending, Rule};
use crate::server::FakeApiserver;
use crate::status::Status;

impl FakeApiserver {
    /// Adds a rule. The first rule that matches a request is carried out; [`Rule::now`] is carried out at once.
    ///
    /// # Panics
    /// The rule has mistakes: an unknown resource, an action that has no effect, no open watch for [`Rule::now`].
    #[track_caller]
    pub fn rule<K: kind::RequestKind>(&self, rule: Rule<K>) {
        if let Err(mistake) = self.try_rule(&rule) {
            panic!("{mistake}");
        }
    }

    /// Removes all rules.
    pub fn clear_rules(&self) {
        self.edge.steer(|server, _| {
            for rule in server.rules() {
                server.remove_rule(rule.id);
            }
        });
        self.lock_rules().clear();
    }

    /// Creates or replaces objects, as another client would, in the forms of [`Builder::objects`](crate::Builder::objects).
    ///
    /// # Panics
    /// An object is of a kind that is not served, or has no name.
    #[track_caller]
    pub fn apply(&self, object: impl Serialize) {
        let objects = objects::values([object]).unwrap_or_else(|mistake| panic!("{mistake}"));
        self.act(&json!([{ "apply": objects }]));
    }

    /// Deletes an object, as another client would. `name` is `NAME` (in the namespace `default`) or `NAMESPACE/NAME`.
    ///
    /// # Panics
    /// There is no such object or resource.
    #[track_caller]
    pub fn delete(&self, resource: &str, name: &str) {
        let served = self.served();
        let resource = crate::resource::resolved(resource, &served);
        let resource = resource.unwrap_or_else(|mistake| panic!("{mistake}"));
        self.act(&json!([{ "delete": objects::deletion(&resource, name) }]));
    }

    /// Compacts the history: from now on older continue tokens, exact lists and watch starts are 410 Expired. Open watches
    /// go on.
    pub fn compact(&self) {
        self.act(&json!(["compact"]));
    }

    /// Resets the connections of all open watches. Returns how many there were.
    ///
    /// # Panics
    /// No watch is open.
    #[track_caller]
    pub fn cut_watches(&self) -> usize {
        self.now(Rule::now(Watch::any()).end(Ending::Rst))
    }

    /// Sends a 410 ERROR event on all open watches and ends them. Returns how many there were.
    ///
    /// # Panics
    /// No watch is open.
    #[track_caller]
    pub fn expire_watches(&self) -> usize {
        self.now(Rule::now(Watch::any()).error(Status::expired()).end(Ending::Eof))
    }

    /// Sends nothing more on all open watches; their connections stay open. Returns how many there were.
    ///
    /// # Panics
    /// No watch is open.
    #[track_caller]
    pub fn stall_watches(&self) -> usize {
        self.now(Rule::now(Watch::any()).stall())
    }

    /// Sends a bookmark on all open watches. Returns how many there were.
    ///
    /// # Panics
    /// No watch is open.
    #[track_caller]
    pub fn send_bookmarks(&self) -> usize {
        self.now(Rule::now(Watch::any()).bookmark())
    }

    /// Restarts the apiserver: closes the connections of open watches, refuses new ones for `downtime`, and refills the
    /// watch caches, so that a watch from an older resourceVersion is 410. Connections without a watch stay open.
    #[track_caller]
    pub fn restart(&self, downtime: Duration) {
        let open = self.edge.steer(|server, now| {
            let streams = server.streams(now);
            streams.iter().any(|stream| stream.verb.starts_with("WATCH"))
        });
        if open.unwrap_or_default() {
            self.now(Rule::now(Watch::any()).named("restart").end(Ending::Fin));
        }
        if !downtime.is_zero() {
            self.refuse_connections(downtime);
        }
        self.edge.control(Control::RestartWatchCaches);
    }

    /// Refuses new connections for this long.
    #[track_caller]
    pub fn refuse_connections(&self, duration: Duration) {
        self.now(Rule::now(Watch::any()).refuse_connections(duration));
    }

    /// Freezes the watch caches of a resource: reads at `resourceVersion=0` become stale, watches receive nothing new.
    ///
    /// # Panics
    /// The resource is not served.
    #[track_caller]
    pub fn freeze_watch_cache(&self, resource: &str) {
        self.now(Rule::now(Watch::of(resource)).freeze_watch_cache());
    }

    /// Delays the watch caches of a resource: reads at `resourceVersion=0` and watches see a write this much later.
    ///
    /// # Panics
    /// The resource is not served.
    #[track_caller]
    pub fn lag_watch_cache(&self, resource: &str, by: Duration) {
        self.now(Rule::now(Watch::of(resource)).action("lag_watch_cache", json!(crate::status::time(by))));
    }

    /// Lets the watch caches of a resource catch up.
    ///
    /// # Panics
    /// The resource is not served.
    #[track_caller]
    pub fn thaw_watch_cache(&self, resource: &str) {
        self.now(Rule::now(Watch::of(resource)).thaw_watch_cache());
    }

    /// Restores the state of the start: no rules, fresh watch caches, the objects of the builder. Written as normal
    /// changes, which open watches are sent.
    pub fn reset(&self) {
        self.edge.steer(|server, now| server.reset(now));
        self.lock_rules().clear();
    }

    /// Returns the latest resourceVersion.
    pub fn resource_version(&self) -> String {
        let revision = self.edge.steer(|server, _| server.revision());
        revision.unwrap_or_default().to_string()
    }

    /// Waits for a request and returns it, with its status if it was answered already. A request that came before the call
    /// counts: [`Matcher::nth`] waits for a later one. The wait ends with the request, never with a time.
    ///
    /// # Panics
    /// The matcher has mistakes, or the request does not come within [`Builder::patience`](crate::Builder::patience).
    #[track_caller]
    pub fn wait_for<K: kind::RequestKind>(
        &self,
        matcher: Matcher<K>,
    ) -> impl Future<Output = Request> + use<'_, K> {
        let caller = Location::caller();
        let (pattern, served) = (matcher.pattern, self.served());
        let wait = pattern.wait(&served, self.patience);
        let wait = wait.unwrap_or_else(|mistake| panic!("{mistake}"));
        async move {
            let Ok(record) = self.edge.wait(wait).await else {
                let records = |records: &[_]| expect::others(records, &pattern, &served);
                let report = self.edge.read_records(0, records);
                let time = span(self.patience.as_millis() as u64);
                panic!("waited {time} for {pattern} at {caller}\n{report}");
            };
            self.edge.read_records(record.seq, |records| {
                let mut requests = requests(records).into_iter();
                let (_, request) = requests
                    .next()
                    .expect("the wait returned the record of a request");
                request
            })
        }
    }

    /// Waits until an event was sent whole on a matching watch: its type (`ADDED`, `MODIFIED`, `DELETED`, `BOOKMARK`, `ERROR`)
    /// and the object's name, `NAME` or `NAMESPACE/NAME`; an empty name is any. An event that was sent before the call
    /// counts.
    ///
    /// # Panics
    /// The matcher or the type has mistakes, or the event is not sent within
    /// [`Builder::patience`](crate::Builder::patience).
    #[track_caller]
    pub fn wait_for_event(
        &self,
        matcher: Matcher<Watch>,
        kind: &str,
        name: &str,
    ) -> impl Future<Output = ()> + use<'_> {
        let caller = Location::caller();
        let (pattern, served) = (matcher.pattern, self.served());
        let wait = pattern.event_wait(&served, self.patience, kind, name);
        let wait = wait.unwrap_or_else(|mistake| panic!("{mistake}"));
        let words = format!("{kind} {name}").trim_end().to_owned();
        async move {
            if self.edge.wait(wait).await.is_err() {
                let records = |records: &[_]| expect::others(records, &pattern, &served);
                let report = self.edge.read_records(0, records);
                let time = span(self.patience.as_millis() as u64);
                panic!("waited {time} for {words} on {pattern} at {caller}\n{report}");
            }
        }
    }

    /// Adds a rule.
    ///
    /// # Errors
    /// The mistakes of the rule.
    pub(crate) fn try_rule<K>(&self, rule: &Rule<K>) -> Result<Ruled, String> {
        let served = self.served();
        let text = rule.text(rule.resource(&served)?);
        let ruled = self.edge.rule(&text);
        let ruled = ruled.map_err(|error| format!("{}: {}", rule.called(), refused(error)))?;
        if let Ruled::Standing(view) = &ruled {
            self.lock_rules().insert(view.id);
        }
        Ok(ruled)
    }

    /// Carries out actions on the store.
    #[track_caller]
    fn act(&self, actions: &Value) {
        let text = format!("{:#}", json!({ "do": actions }));
        if let Err(error) = self.edge.rule(&text) {
            panic!("{}", refused(error));
        }
    }

    /// Returns the number of watches a rule was carried out on.
    #[track_caller]
    fn now(&self, rule: Rule<Watch>) -> usize {
        match self.try_rule(&rule) {
            Ok(Ruled::Done { streams, .. }) => streams.len(),
            Ok(Ruled::Standing(_)) => 0,
            Err(mistake) => panic!("{mistake}"),
        }
    }

    /// Returns the resources served now.
    pub(crate) fn served(&self) -> Vec<String> {
        self.edge.steer(|server, _| served(server)).unwrap_or_default()
    }

    pub(crate) fn lock_rules(&self) -> std::sync::MutexGuard<'_, std::collections::BTreeSet<u64>> {
        // A set of numbers is consistent even after a panic.
        self.rules
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// Formats why an action failed, and what to do.
fn refused(error: SteerError) -> String {
    match &error {
        SteerError::Mistakes(mistakes) => words(mistakes),
        SteerError::Refused(refused @ RuleRefused::NoWatch { .. }) => {
            format!("{refused}; wait for it first: `server.wait_for(Watch::any()).await`")
        }
        SteerError::Refused(_) | SteerError::TimedOut(_) | SteerError::Stopped => error.to_string(),
    }
}

/// Returns the resources that a server serves, with their groups.
pub(crate) fn served(server: &Server) -> Vec<String> {
    let kinds = server.catalog().kinds().iter();
    kinds.map(|kind| kind.qualified()).collect()
}

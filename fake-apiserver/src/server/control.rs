//! Standalone servers, and operations on any server outside of the Kubernetes API.

use std::time::Duration;

use builtin_kinds::catalog::Catalog;
use scenario::{ServerSettings, SharedScenario, StoreAction};
use serde_json::Value;
use trace::content::Kept;

use super::rules::Rules;
use super::run::Run;
use super::{Limits, MemoryView, Server, StreamView};
use crate::api::Access;
use crate::api::access::{AccessSettings, Authorization};
use crate::apiserver::{ApiServer, Followed};
use crate::model::Snapshot;

impl Server {
    /// Returns a server without a scenario, for any client. It has the namespaces of every cluster, and rejects writes into
    /// missing ones. `seed`: for all randomness.
    pub fn standalone(settings: ServerSettings, seed: u64) -> Self {
        Self {
            api: ApiServer::standalone(settings, seed),
            run: None,
            rules: Rules::default(),
        }
    }

    /// Returns a server without a scenario that begins with the objects of a snapshot, at its version: clients of the server that it
    /// was taken of go on from the versions and continue tokens that they have. `upgraded`: the snapshot is of another minor version,
    /// and the server creates what it lacks at start. `settings` are those of the snapshot; `seed`: for all randomness.
    pub fn from_snapshot(snapshot: Snapshot, upgraded: bool, settings: ServerSettings, seed: u64) -> Self {
        Self {
            api: ApiServer::from_snapshot(snapshot, upgraded, settings, seed),
            run: None,
            rules: Rules::default(),
        }
    }

    /// Returns a server without a scenario whose requests are answered by an upstream. `seed`: for all randomness.
    pub fn forwarding(upstream: crate::upstream::Settings, seed: u64) -> Self {
        Self {
            api: ApiServer::forwarding(ServerSettings::default(), upstream, seed),
            run: None,
            rules: Rules::default(),
        }
    }

    /// Returns the same with the steps of `scenario`; `$start` is the version of the first list. Its initial objects are written to
    /// the upstream if rules may write: their writes are the first ones, one each.
    #[must_use]
    pub fn with_steps(mut self, scenario: SharedScenario, limits: Limits) -> Self {
        if self.api.may_write_upstream() {
            let objects = StoreAction::Apply(scenario.objects.clone());
            self.api.write_upstream(Duration::ZERO, &objects);
        }
        self.api.follow(Followed::of(&scenario, false));
        self.run = Some(Run::new(scenario, limits));
        self.advance(Duration::ZERO);
        self
    }

    /// Whether an upstream answers.
    pub fn forwards(&self) -> bool {
        self.api.forwards()
    }

    /// Returns the same with the objects and steps of `scenario`, for any client and any resource that it names.
    pub fn standalone_with_scenario(scenario: SharedScenario, seed: u64) -> Self {
        let mut api = ApiServer::standalone(scenario.server.clone(), seed);
        api.separate_writes();
        Self::over(api, scenario, Limits::endless())
    }

    /// Adds a secondary replica over the same storage: connections to
    /// [`Replica::Secondary`](trace::record::Replica::Secondary) are served from separate watch caches, which can freeze or lag.
    #[must_use]
    pub fn with_secondary(mut self) -> Self {
        self.api.open_secondary();
        self
    }

    /// Creates the objects that kube-apiserver creates when it starts: the service `kubernetes` with its endpoints, default
    /// roles and bindings, priority classes, flow schemas, API services and so on. Call before any [`Server::put`];
    /// [`Server::reset`] restores them.
    #[must_use]
    pub fn with_bootstrap_objects(mut self) -> Self {
        self.api.bootstrap();
        self
    }

    /// Keeps content in the trace, for a recording. Call before any [`Server::put`]. The default keeps none, except of a scenario
    /// that compares the client's cache with the store.
    #[must_use]
    pub fn keeping_content(mut self, kept: Kept) -> Self {
        self.api.keep_content(kept);
        self
    }

    /// Turns authentication and authorization on.
    #[must_use]
    pub fn with_access(mut self, access: Access) -> Self {
        self.api.set_access(access);
        self
    }

    /// Sets what the flags of kube-apiserver set of authentication; only with [`Server::with_access`].
    #[must_use]
    pub fn with_access_settings(mut self, settings: AccessSettings) -> Self {
        self.api.set_access_settings(settings);
        self
    }

    /// Sets the authorization mode. Default: RBAC for a server with [`Access`], AlwaysAllow without.
    #[must_use]
    pub fn with_authorization(mut self, mode: Authorization) -> Self {
        self.api.set_authorization(mode);
        self
    }

    /// Stores an object with its status, and creates its namespace if it is missing.
    ///
    /// # Errors
    /// A message: the object has no name, its kind is not served, or it is an invalid CustomResourceDefinition.
    pub fn put(&mut self, object: &Value) -> Result<(), String> {
        self.api.put(object)
    }

    /// Reads the kinds of a CustomResourceDefinition of the upstream, so that rules can write their objects.
    pub fn know_definition(&mut self, definition: &Value) {
        self.api.know_definition(definition);
    }

    /// Makes the current objects the state that [`Server::reset`] restores: call once the initial objects are put. Default: the
    /// objects of the scenario; for a standalone server the namespaces of every cluster.
    pub fn mark_initial_state(&mut self) {
        self.api.mark_initial_state();
    }

    /// Sets the Unix time of the server's time zero. Timestamps of existing objects stay.
    pub fn starts_at(&mut self, epoch: Duration) {
        self.api.starts_at(epoch);
    }

    /// Wall clock at `now`, since 1970: it dates objects and responses.
    pub fn wall_clock(&self, now: Duration) -> Duration {
        self.api.wall_clock(now)
    }

    /// Resets the server: removes every rule, restores the initial objects under new resourceVersions, resumes watch caches,
    /// accepts connections, and removes deviations from open responses. The steps of a scenario continue where they are; ended
    /// responses and dropped events stay so.
    pub fn reset(&mut self, now: Duration) {
        self.rules = Rules::default();
        self.api.reset(now);
    }

    /// Whether there is a secondary replica.
    pub fn has_secondary(&self) -> bool {
        self.api.has_secondary()
    }

    /// Served kinds, custom resources included.
    pub fn catalog(&self) -> &Catalog {
        self.api.catalog()
    }

    /// Newest resourceVersion.
    pub fn revision(&self) -> u64 {
        self.api.revision()
    }

    /// Sequence number of the next record.
    pub fn next_record(&self) -> u64 {
        self.api.next_record()
    }

    /// Returns the number of open responses.
    pub fn open_streams(&self) -> usize {
        self.api.open_streams()
    }

    /// Returns the open responses, in order of their requests.
    pub fn streams(&self, now: Duration) -> Vec<StreamView> {
        self.api.streams(now)
    }

    /// Returns the memory in use beside the objects, without buffers of connections.
    pub fn memory(&self) -> MemoryView {
        self.api.memory()
    }
}

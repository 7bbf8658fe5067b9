//! A server without a scenario, and what can be done to any server from outside of its API, beside rules.

use std::time::Duration;

use builtin_kinds::catalog::Catalog;
use scenario::ServerSettings;
use serde_json::Value;

use super::rules::Rules;
use super::{MemoryView, Server, StreamView};
use crate::api::Access;
use crate::apiserver::ApiServer;

impl Server {
    /// A server without a script, for any client and any time. It has the namespaces every cluster
    /// has, and takes nothing into one that is not there. `seed` decides what chance decides on a real server.
    pub fn standalone(settings: ServerSettings, seed: u64) -> Self {
        Self {
            api: ApiServer::standalone(settings, seed),
            run: None,
            rules: Rules::default(),
        }
    }

    /// Opens a second apiserver over the same truth: connections that come to
    /// [`Replica::Secondary`](trace::record::Replica::Secondary) are answered from watch caches of their own, which can stand
    /// still or lag.
    #[must_use]
    pub fn with_twin(mut self) -> Self {
        self.api.open_secondary();
        self
    }

    /// Adds the objects that kube-apiserver itself creates when it starts: the service `kubernetes` with its endpoints,
    /// default roles and bindings (which grant nothing), priority classes, flow schemas, API services and so on. To be
    /// called before any object is put; they belong to what [`Server::reset`] brings back.
    #[must_use]
    pub fn with_bootstrap_objects(mut self) -> Self {
        self.api.bootstrap();
        self
    }

    /// Lets in only who has one of these tokens.
    #[must_use]
    pub fn with_access(mut self, access: Access) -> Self {
        self.api.set_access(access);
        self
    }

    /// Puts an object into the store as it is, its status too, and makes its namespace where there is none.
    ///
    /// # Errors
    /// In words: the object has no name, or is of no kind that is served; or a definition of custom resources is wrong.
    pub fn put(&mut self, object: &Value) -> Result<(), String> {
        self.api.put(object)
    }

    /// What there is now is what [`Server::reset`] brings back: to be called once the objects a server begins with are
    /// put. Otherwise it is a scenario's own objects, or none but the namespaces every cluster has.
    pub fn begin_here(&mut self) {
        self.api.begin_here();
    }

    /// Sets the moment at which the server's time is zero, as time since 1970. The times of objects that are there stay.
    pub fn starts_at(&mut self, epoch: Duration) {
        self.api.starts_at(epoch);
    }

    /// Begins again: every rule is gone, watch caches follow the store, connections are let in, open answers leave as
    /// they are meant, and the objects are those of the beginning, under new resourceVersions. The steps of a scenario
    /// go on where they are, and what is ended or was withheld stays so.
    pub fn reset(&mut self, now: Duration) {
        self.rules = Rules::default();
        self.api.reset(now);
    }

    /// Is there a second apiserver over the same truth?
    pub fn has_secondary(&self) -> bool {
        self.api.has_secondary()
    }

    /// The kinds that are served now, custom resources included.
    pub fn catalog(&self) -> &Catalog {
        self.api.catalog()
    }

    /// The newest resourceVersion.
    pub fn revision(&self) -> u64 {
        self.api.revision()
    }

    /// The number the next record will have.
    pub fn next_record(&self) -> u64 {
        self.api.next_record()
    }

    /// The answers that are not over, in order of their requests.
    pub fn streams(&self, now: Duration) -> Vec<StreamView> {
        self.api.streams(now)
    }

    /// Memory in use beside the objects, without what connections hold.
    pub fn memory(&self) -> MemoryView {
        self.api.memory()
    }
}

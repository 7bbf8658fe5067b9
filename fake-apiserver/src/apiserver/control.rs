//! Operations on an apiserver outside of the Kubernetes API: setup, reset, restart, compaction, and views for operators.

use std::time::Duration;

use apimachinery::kind::KindRef;
use apimachinery::options::{Collection, Representation};
use apimachinery::status::Status;
use builtin_kinds::catalog::Catalog;
use builtin_kinds::types;
use scenario::{Manifest, ObjectName, Place, ServerSettings};
use serde::Serialize;
use serde_json::{Value, json};
use trace::record::{ConnId, Replica, StreamId, Turn};

use super::balancer::Balancer;
use super::compaction::Compaction;
use super::joined::Joined;
use super::{ApiServer, Open};
use crate::api::access::{AccessSettings, Authorization, Issuer};
use crate::api::write::WriteAction;
use crate::api::{Access, WriteRequest};
use crate::model::{Model, NAMESPACES, Setting, Snapshot, WatchCacheOp};

/// Resource of the namespaces.
const NAMESPACES_OF: &str = "namespaces";

/// Operation on a running server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Control {
    /// Compact etcd: exact lists and continue tokens of older revisions get 410 at once. Watch caches keep their events.
    Compact,
    /// Restart: every watch ends, and every watch cache is refilled at the current resourceVersion.
    RestartWatchCaches,
}

/// View of an open response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StreamView {
    /// Number of the request.
    pub stream: StreamId,
    /// Connection.
    pub connection: ConnId,
    /// Replica.
    pub replica: Replica,
    /// `LIST`, `WATCH`, `WATCH-LIST`, `OTHER`.
    pub verb: &'static str,
    /// HTTP method.
    pub method: String,
    /// Path and query, as sent.
    pub target: String,
    /// User-Agent header.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_agent: Option<String>,
    /// Age, in milliseconds.
    pub open_ms: u64,
}

impl ApiServer {
    /// Returns an apiserver for a scenario, with the objects of a cluster that fit its `setting`. `seed`: for all randomness.
    pub(crate) fn new(settings: ServerSettings, setting: &Setting<'_>, seed: u64) -> Self {
        let replicas = settings.replicas;
        let mut model = Model::new(&settings);
        model.preload(setting);
        let mut api = Self::over(model, settings, seed);
        if replicas > 1 {
            api.balance();
        }
        api
    }

    /// Returns an apiserver for any client whose requests are answered by an upstream. `seed`: for all randomness.
    pub(crate) fn forwarding(
        settings: ServerSettings,
        upstream: crate::upstream::Settings,
        seed: u64,
    ) -> Self {
        let mut api = Self::over(Model::new(&settings), settings, seed);
        api.joined = Joined::allowed();
        api.forward_to(upstream);
        api
    }

    /// Returns an apiserver for any client, with the namespaces of every cluster; writes into missing namespaces are rejected.
    /// `seed`: for all randomness.
    pub(crate) fn standalone(settings: ServerSettings, seed: u64) -> Self {
        let replicas = settings.replicas;
        let mut api = Self::over(Model::standalone(&settings), settings, seed);
        if replicas > 1 {
            api.balance();
        }
        api.joined = Joined::allowed();
        api.compaction = Some(Compaction::new(api.model.revision()));
        for name in NAMESPACES {
            let manifest = api.model.namespace_manifest(name);
            api.apply(Duration::ZERO, &manifest);
            api.settle(Duration::ZERO);
        }
        api.mark_initial_state();
        api
    }

    /// Returns an apiserver for any client that begins with the objects of a snapshot. `upgraded`: it creates what it lacks at start.
    /// `seed`: for all randomness.
    pub(crate) fn from_snapshot(
        snapshot: Snapshot,
        upgraded: bool,
        settings: ServerSettings,
        seed: u64,
    ) -> Self {
        let (model, written) = snapshot.into_model(upgraded);
        let mut api = Self::over(model, settings, seed);
        api.joined = Joined::allowed();
        api.compaction = Some(Compaction::new(api.model.revision()));
        api.record_writes(Duration::ZERO, None, written);
        api.mark_initial_state();
        api
    }

    /// Adds a secondary replica over the same storage.
    pub(crate) fn open_secondary(&mut self) {
        self.model.open_secondary();
    }

    /// Whether there is a secondary replica.
    pub(crate) fn has_secondary(&self) -> bool {
        self.model.has_secondary()
    }

    /// Creates the objects that kube-apiserver creates when it starts.
    pub(crate) fn bootstrap(&mut self) {
        let written = self.model.bootstrap();
        self.record_writes(Duration::ZERO, None, written);
        self.mark_initial_state();
    }

    /// Turns authentication and authorization on.
    pub(crate) fn set_access(&mut self, access: Access) {
        self.issuer = Issuer::new(access.signing_secret);
        self.access = Some(access);
    }

    /// Sets what the flags of kube-apiserver set of authentication; only with [`ApiServer::set_access`].
    pub(crate) fn set_access_settings(&mut self, settings: AccessSettings) {
        self.access_settings = settings;
    }

    /// Sets the authorization mode.
    pub(crate) fn set_authorization(&mut self, mode: Authorization) {
        self.authorization = Some(mode);
    }

    /// Sends every watch event in a separate write, as scenarios count them.
    pub(crate) fn separate_writes(&mut self) {
        self.joined = Joined::default();
    }

    /// Makes the current objects the state that [`ApiServer::reset`] restores.
    pub(crate) fn mark_initial_state(&mut self) {
        self.model.mark_initial_state();
    }

    /// Sets the Unix time of the server's time zero. Timestamps of existing objects stay.
    pub(crate) fn starts_at(&mut self, epoch: Duration) {
        self.model.starts_at(epoch);
    }

    /// Restores the initial objects under new resourceVersions, resumes watch caches, accepts connections, and removes
    /// deviations from open responses.
    pub(crate) fn reset(&mut self, now: Duration) {
        self.refused_until = Duration::ZERO;
        self.balancer = self.balancer.take().map(|_| Balancer::default());
        self.model.turn_watch_caches(now, WatchCacheOp::Thaw, None, None);
        for open in self.open.values_mut() {
            open.exchange.release();
        }
        let how = "reset: no rules, nothing stale, nothing refused";
        self.turned(now, Turn::Other(how.to_owned()));
        if let Some(upstream) = &mut self.upstream {
            upstream.thaw();
            return self.touch_all();
        }
        let written = self.model.reset(now);
        self.record_writes(now, None, written);
        self.compact_if_due(now);
        self.touch_all();
    }

    /// Served kinds, custom resources included.
    pub(crate) fn catalog(&self) -> &Catalog {
        self.model.catalog()
    }

    /// The newest resourceVersion.
    pub(crate) fn revision(&self) -> u64 {
        self.newest_of_upstream().unwrap_or_else(|| self.model.revision())
    }

    /// Whether the object exists.
    pub(crate) fn has(&self, name: &ObjectName) -> bool {
        self.model.has(name)
    }

    /// Returns the number of open responses.
    pub(crate) fn open_streams(&self) -> usize {
        self.unfinished().count()
    }

    /// Returns the open responses, in order of their requests.
    pub(crate) fn streams(&self, now: Duration) -> Vec<StreamView> {
        self.unfinished()
            .map(|(stream, open)| {
                let (asked, conn) = (&open.asked, open.asked.conn);
                let request = &asked.request;
                let query = if request.query.as_str().is_empty() {
                    ""
                } else {
                    "?"
                };
                StreamView {
                    stream: *stream,
                    connection: conn,
                    replica: self.replica_of(conn),
                    verb: asked.verb.word(),
                    method: request.method.to_string(),
                    target: format!("{}{query}{}", request.path, request.query.as_str()),
                    user_agent: asked.user_agent(),
                    open_ms: now.saturating_sub(asked.at).as_millis() as u64,
                }
            })
            .collect()
    }

    /// Returns the exchanges whose response is not complete.
    fn unfinished(&self) -> impl Iterator<Item = (&StreamId, &Open)> {
        { self.open.iter() }
            .map(|(stream, open)| (stream, &**open))
            .filter(|(_, open)| !open.exchange.is_over())
    }

    /// Stores an object with its status, and creates its namespace if it is missing.
    ///
    /// # Errors
    /// A message: the object has no name, its kind is not served, or it is an invalid CustomResourceDefinition.
    pub(crate) fn put(&mut self, object: &Value) -> Result<(), String> {
        let text = |pointer: &str| {
            object
                .pointer(pointer)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let (api_version, kind_name, name) = (text("/apiVersion"), text("/kind"), text("/metadata/name"));
        let kind = self
            .model
            .catalog()
            .find_kind(api_version, kind_name)
            .cloned()
            .ok_or_else(|| format!("{kind_name:?} of {api_version:?} is not served"))?;
        if name.is_empty() {
            return Err(format!("a {kind_name} has no metadata.name"));
        }
        let namespace = match text("/metadata/namespace") {
            _ if !kind.namespaced => None,
            "" => Some("default"),
            namespace => Some(namespace),
        };
        if kind.plural == NAMESPACES_OF {
            self.create_namespace(object["metadata"].clone());
            return Ok(());
        }
        if kind.defines {
            return self
                .create(&kind, object.clone())
                .map_err(|status| status.message);
        }
        if let Some(namespace) = namespace {
            self.create_namespace(json!({ "name": namespace }));
        }
        let manifest = Manifest {
            group: kind.group.to_string(),
            plural: kind.plural.to_string(),
            namespace: namespace.map(str::to_owned),
            name: name.to_owned(),
            json: builtin_kinds::convert::received(&kind, object.clone()),
            binds: None,
            at: Place::default(),
        };
        self.apply(Duration::ZERO, &manifest);
        self.settle(Duration::ZERO);
        Ok(())
    }

    /// Creates a namespace, unless it exists.
    fn create_namespace(&mut self, metadata: Value) {
        let Some(kind) = self.model.catalog().find("", NAMESPACES_OF).cloned() else {
            return;
        };
        if let Err(status) = self.create(&kind, json!({ "metadata": metadata })) {
            tracing::debug!(message = status.message, "no new namespace");
        }
    }

    /// Creates a cluster-scoped object as a client would.
    fn create(&mut self, kind: &KindRef, object: Value) -> Result<(), Status> {
        let object = types::conform(kind, &object)
            .map_err(Status::bad_request)?
            .unwrap_or(object);
        let request = WriteRequest {
            collection: Collection {
                kind: kind.clone(),
                namespace: None,
            },
            action: WriteAction::Create { object },
            dry_run: false,
            form: Representation::Full,
            manager: "kube-apiserver".to_owned(),
            warnings: Vec::new(),
            options: Vec::new(),
        };
        let done = self.model.write(Duration::ZERO, request, 0);
        let done = done.map_err(|refused| refused.status)?;
        self.record_writes(Duration::ZERO, None, done.written);
        Ok(())
    }

    /// Runs an operation.
    pub(crate) fn control(&mut self, now: Duration, control: Control) {
        match control {
            Control::Compact => {
                self.model.storage_mut().compact_store();
                let to = self.model.revision();
                self.turned(now, Turn::Compacted { to, of_etcd: true });
            }
            Control::RestartWatchCaches => {
                self.model.storage_mut().restart_watch_caches();
                self.turned(now, Turn::CachesRestarted);
            }
        }
        self.touch_all();
    }
}

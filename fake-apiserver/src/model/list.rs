//! LIST and GET of a kind: converts requests for `watchcache`, and its results to pages and bodies.
//!
//! The state that a read returns is decided there ([`watchcache::Decision`]).

use std::sync::Arc;
use std::time::Duration;

use apimachinery::kind::KindRef;
use apimachinery::object::Stored;
use apimachinery::options::{GetRequest, ListRequest};
use apimachinery::selector::Selector;
use apimachinery::status::Status;
use builtin_kinds::scale;
use bytes::Bytes;
use trace::record::Replica;
use watchcache::{ListOptions, Lookup, Read, View as _};

use super::page::Page;
use super::view::View;
use super::{Model, components, replica_id, table};

/// Outcome of a LIST.
#[derive(Debug)]
pub enum ListOutcome {
    /// A page.
    Page(Page),
    /// A refusal.
    Refused(Status),
    /// Not yet: try again after every change of the model (a write, a thaw, a relist, a restore), and at `until`.
    Wait {
        /// When the server gives up waiting.
        until: Duration,
    },
}

/// Outcome of a GET.
#[derive(Debug)]
pub enum GetOutcome {
    /// The object and its body.
    Found {
        /// The object.
        object: Arc<Stored>,
        /// The body, with its newline.
        body: Bytes,
    },
    /// A refusal.
    Refused(Status),
    /// Not yet: try again after every change of the model (a write, a thaw, a relist, a restore), and at `until`.
    Wait {
        /// When the server gives up waiting.
        until: Duration,
    },
}

impl Model {
    /// Answers a LIST that arrived at `arrived`.
    pub fn list(&self, now: Duration, arrived: Duration, request: &ListRequest) -> ListOutcome {
        self.list_at(Replica::Primary, now, arrived, request)
    }

    /// Like [`Model::list`], at one of two apiservers.
    pub fn list_at(
        &self,
        replica: Replica,
        now: Duration,
        arrived: Duration,
        request: &ListRequest,
    ) -> ListOutcome {
        let kind = &request.collection.kind;
        let view = View {
            kind,
            conversions: &self.conversions,
            selector: &request.selector,
        };
        let page = |revision, continue_token, remaining, items| Page {
            kind: kind.clone(),
            form: request.form,
            resource_version: revision,
            continue_token,
            remaining,
            items,
            version: self.version,
            read_at: self.epoch + now,
        };
        if !kind.is_stored() {
            let statuses = components::statuses(kind).into_iter();
            let selected = statuses.filter(|status| view.selects(status));
            return ListOutcome::Page(page(0, None, None, selected.collect()));
        }
        let namespace = &request.collection.namespace;
        let named = request.selector.fields.exact_name().is_some();
        let options = ListOptions {
            namespace: namespace.clone(),
            single: named && (namespace.is_some() || !kind.namespaced),
            selective: !request.selector.is_empty(),
            resource_version: request.resource_version,
            version_match: request.version_match,
            limit: request.limit,
            continue_token: request.continue_token.clone(),
        };
        let read = self.read(kind, replica, arrived);
        match self.storage.list(now, read, &options, &view) {
            Lookup::Found(found) => ListOutcome::Page(page(
                found.revision,
                found.continue_token.map(|token| token.encode()),
                found
                    .remaining
                    .map(|count| i64::try_from(count).unwrap_or(i64::MAX)),
                found.items,
            )),
            Lookup::Refused(status) => ListOutcome::Refused(status),
            Lookup::Wait { until } => ListOutcome::Wait { until },
        }
    }

    /// Answers a GET that arrived at `arrived`.
    pub fn get(&self, now: Duration, arrived: Duration, request: &GetRequest) -> GetOutcome {
        self.get_at(Replica::Primary, now, arrived, request)
    }

    /// Like [`Model::get`], at one of two apiservers.
    pub fn get_at(
        &self,
        replica: Replica,
        now: Duration,
        arrived: Duration,
        request: &GetRequest,
    ) -> GetOutcome {
        let kind = &request.collection.kind;
        let key = kind.key(request.collection.namespace.as_deref(), &request.name);
        let answer = if kind.is_stored() {
            let view = View {
                kind,
                conversions: &self.conversions,
                selector: &Selector::default(),
            };
            let read = self.read(kind, replica, arrived);
            self.storage.get(now, read, &key, request.resource_version, &view)
        } else {
            let mut statuses = components::statuses(kind).into_iter();
            Lookup::Found(statuses.find(|status| status.key == key))
        };
        let object = match answer {
            Lookup::Found(Some(object)) => object,
            Lookup::Found(None) => return GetOutcome::Refused(Status::not_found(kind, &request.name)),
            Lookup::Refused(status) => return GetOutcome::Refused(status),
            Lookup::Wait { until } => return GetOutcome::Wait { until },
        };
        let object = match request.scale.then(|| scale::of(&object)) {
            None => object,
            Some(Ok(scale)) => Arc::new(scale),
            Some(Err(status)) => return GetOutcome::Refused(status),
        };
        let wall = self.epoch + now;
        let body = table::body(&object, request.form, self.version, wall);
        GetOutcome::Found { object, body }
    }

    fn read(&self, kind: &KindRef, replica: Replica, arrived: Duration) -> Read {
        Read {
            resource: self.resource_id(kind),
            replica: replica_id(replica),
            arrived,
        }
    }
}

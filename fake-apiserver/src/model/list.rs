//! LIST and GET: which state answers a read, and which part of it is returned.
//!
//! The decision is the table in "Resource versions" of the API concepts page (`resourceVersion` ×
//! `resourceVersionMatch` × paging), as the apiserver's cacher and etcd3 store carry it out.

use std::sync::Arc;
use std::time::Duration;

use apimachinery::Version;
use apimachinery::continue_token::ContinueToken;
use apimachinery::encode::encode_json;
use apimachinery::kind::Kind;
use apimachinery::object::{Stored, decode};
use apimachinery::options::{Form, GetRequest, ListRequest, RequestedVersion, VersionMatch};
use apimachinery::status::Status;
use builtin_kinds::{convert, scale};
use bytes::Bytes;
use serde_json::{Map, Value, json};
use trace::record::Replica;

use super::store::{self, Mark, Objects, Store};
use super::{Model, Resource, components, table};
use crate::api::LongList;

/// How long the watch cache waits for a revision before it gives up (apiserver `watch_cache.go`, `blockTimeout`).
pub(super) const FRESH_WAIT: Duration = Duration::from_secs(3);

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

/// Size of the items, in bytes, above which a page is encoded piecemeal.
const LONG: usize = 1024 * 1024;

/// Approximate size of a piece, in bytes.
const PIECE: usize = 64 * 1024;

/// One page of a list.
#[derive(Debug, Clone)]
pub struct Page {
    /// Kind of the items.
    pub kind: &'static Kind,
    /// Representation of the items.
    pub form: Form,
    /// `metadata.resourceVersion`; 0: none, because the kind is not stored.
    pub resource_version: u64,
    /// `metadata.continue`.
    pub continue_token: Option<String>,
    /// `metadata.remainingItemCount`.
    pub remaining: Option<i64>,
    /// The items, in order.
    pub items: Vec<Arc<Stored>>,
    /// Kubernetes version whose printer columns apply, for a table.
    pub version: Version,
    /// Time of the read, from which ages are counted.
    pub read_at: Duration,
}

impl Page {
    /// Encodes the body, with its newline.
    pub fn encode(&self) -> Bytes {
        if let Form::Table(table) = self.form {
            let mut out = table::page(self, table, &self.metadata());
            out.push(b'\n');
            return out.into();
        }
        let (before, after) = self.frame();
        let items = self.items.iter().map(|item| item.encoded(self.form).len() + 1);
        let mut out = Vec::with_capacity(before.len() + items.sum::<usize>() + after.len());
        out.extend_from_slice(&before);
        for index in 0..self.items.len() {
            self.write_item(index, &mut out);
        }
        out.extend_from_slice(&after);
        out.into()
    }

    /// Is it large enough to be encoded while it is sent?
    pub fn is_long(&self) -> bool {
        self.items.iter().map(|item| item.length()).sum::<usize>() > LONG
    }

    /// Returns the bytes of [`Page::encode`] piecemeal.
    pub fn into_text(self) -> PageText {
        let printer = match self.form {
            Form::Table(table) => Some(table::Printer::new(self.kind, table, self.version, self.read_at)),
            Form::Full | Form::Metadata(_) => None,
        };
        let (before, after) = match &printer {
            Some(printer) => (printer.begin(&self.metadata(), true), b"]}\n".to_vec()),
            None => self.frame(),
        };
        PageText {
            page: self,
            printer,
            written: 0,
            out: before,
            after,
        }
    }

    /// Returns the list as JSON in the key order of the wire, for a script that edits it; [`encode_json`] and a newline make
    /// the body of it.
    pub fn to_json(&self) -> Value {
        if let Form::Table(_) = self.form {
            return decode(&self.encode());
        }
        let mut list = self.envelope();
        list.insert(
            "items".to_owned(),
            self.items.iter().map(|item| item.item_json(self.form)).collect(),
        );
        Value::Object(list)
    }

    fn metadata(&self) -> Map<String, Value> {
        let custom = self.kind.custom && self.form == Form::Full;
        let mut metadata = Map::new();
        if self.resource_version > 0 {
            let version = self.resource_version.to_string();
            metadata.insert("resourceVersion".to_owned(), version.into());
        }
        match &self.continue_token {
            Some(token) => drop(metadata.insert("continue".to_owned(), token.as_str().into())),
            // An unstructured list has the key even where it is empty.
            None if custom => drop(metadata.insert("continue".to_owned(), "".into())),
            None => {}
        }
        if let Some(remaining) = self.remaining {
            metadata.insert("remainingItemCount".to_owned(), remaining.into());
        }
        metadata
    }

    /// Returns the list with empty `items`.
    fn envelope(&self) -> Map<String, Value> {
        let custom = self.kind.custom && self.form == Form::Full;
        let metadata = self.metadata();
        let (kind, api_version) = match self.form {
            Form::Full | Form::Table(_) => (self.kind.list_kind.to_owned(), self.kind.api_version()),
            Form::Metadata(version) => (
                "PartialObjectMetadataList".to_owned(),
                version.api_version().to_owned(),
            ),
        };
        let mut list = json!({ "kind": kind, "apiVersion": api_version, "metadata": metadata, "items": [] });
        if custom {
            list.sort_all_objects();
        }
        match list {
            Value::Object(list) => list,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                Map::new()
            }
        }
    }

    /// Returns the bytes before and after the items.
    fn frame(&self) -> (Vec<u8>, Vec<u8>) {
        let (mut before, mut after) = (Vec::new(), Vec::new());
        let mut out = &mut before;
        for (index, (key, value)) in self.envelope().iter().enumerate() {
            out.push(if index == 0 { b'{' } else { b',' });
            out.extend_from_slice(&encode_json(key));
            out.push(b':');
            if key != "items" {
                out.extend_from_slice(&encode_json(value));
                continue;
            }
            if matches!(self.form, Form::Metadata(_)) && self.items.is_empty() {
                // A nil slice in Go.
                out.extend_from_slice(b"null");
            } else {
                out.push(b'[');
                out = &mut after;
                out.push(b']');
            }
        }
        out.extend_from_slice(b"}\n");
        (before, after)
    }

    fn write_item(&self, index: usize, out: &mut Vec<u8>) {
        if index > 0 {
            out.push(b',');
        }
        self.items[index].write_item(self.form, out);
    }
}

/// A page that is encoded piecemeal.
#[derive(Debug)]
pub struct PageText {
    page: Page,
    /// For a table.
    printer: Option<table::Printer<'static>>,
    /// Number of items that are encoded.
    written: usize,
    /// Encoded bytes that are not taken yet.
    out: Vec<u8>,
    after: Vec<u8>,
}

impl Iterator for PageText {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        while self.out.len() < PIECE && self.written < self.page.items.len() {
            match &self.printer {
                None => self.page.write_item(self.written, &mut self.out),
                Some(printer) => {
                    if self.written > 0 {
                        self.out.push(b',');
                    }
                    printer.stored(&self.page.items[self.written], self.page.form, &mut self.out);
                }
            }
            self.written += 1;
        }
        if self.written == self.page.items.len() {
            self.out.append(&mut self.after);
        }
        let piece = std::mem::take(&mut self.out);
        (!piece.is_empty()).then(|| piece.into())
    }
}

impl LongList for PageText {
    fn envelope(&self) -> (Map<String, Value>, &'static str) {
        let Some(printer) = &self.printer else {
            return (self.page.envelope(), "items");
        };
        let mut empty = printer.begin(&self.page.metadata(), true);
        empty.extend_from_slice(b"]}");
        match decode(&empty) {
            Value::Object(table) => (table, "rows"),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                (Map::new(), "rows")
            }
        }
    }

    fn next_item(&mut self) -> Option<Value> {
        let item = self.page.items.get(self.written)?;
        self.written += 1;
        let Some(printer) = &self.printer else {
            return Some(item.item_json(self.page.form));
        };
        let mut row = Vec::new();
        printer.stored(item, self.page.form, &mut row);
        Some(decode(&row))
    }
}

/// State that a list requires.
enum Wanted {
    /// The newest one at the arrival of the request.
    Newest,
    /// Any.
    Any,
    /// This revision or a later one.
    NotOlderThan(u64),
    /// Exactly this revision.
    Exact(u64),
    /// What etcd has now: the rest of a list whose snapshot is compacted.
    Latest,
}

/// State from which a page is read.
struct State {
    objects: Objects,
    revision: u64,
    cached: bool,
}

impl State {
    /// Objects without storage, which have no versions.
    fn unversioned(objects: Objects) -> Self {
        Self {
            objects,
            revision: 0,
            cached: false,
        }
    }
}

/// Why no state can be read.
enum NoState {
    Wait(Duration),
    Refused(Status),
}

pub(super) fn list(
    model: &Model,
    replica: Replica,
    now: Duration,
    arrived: Duration,
    request: &ListRequest,
) -> ListOutcome {
    let kind = request.collection.kind;
    if !kind.is_stored() {
        let state = State::unversioned(components::statuses(kind));
        let store = Store::new(0);
        return ListOutcome::Page(page(model, now, request, &store, &state, None, None));
    }
    // A LIST of one object by name reads its key: it is not paged.
    let single = request.continue_token.is_none()
        && request.selector.fields.exact_name().is_some()
        && (request.collection.namespace.is_some() || !kind.namespaced);
    let mut limit = if single { None } else { request.limit };
    let token = request.continue_token.as_ref();
    let wanted = match (token, request.resource_version, request.version_match) {
        (Some(token), _, _) => match u64::try_from(token.revision) {
            Ok(revision) => Wanted::Exact(revision),
            Err(_) => Wanted::Latest,
        },
        (None, RequestedVersion::Newest, _) => Wanted::Newest,
        (None, RequestedVersion::Any, _) => Wanted::Any,
        (None, RequestedVersion::At(revision), Some(VersionMatch::Exact)) => Wanted::Exact(revision),
        (None, RequestedVersion::At(revision), Some(VersionMatch::NotOlderThan)) => {
            Wanted::NotOlderThan(revision)
        }
        (None, RequestedVersion::At(revision), None) if limit.is_some() => Wanted::Exact(revision),
        (None, RequestedVersion::At(revision), None) => Wanted::NotOlderThan(revision),
    };
    // Before 1.34 the watch cache had one snapshot only: exact reads and all pages but the first went to etcd.
    let snapshots = model.version > Version::V1_33;
    let exact = matches!(wanted, Wanted::Exact(_));
    // With a limit the cache delegates a read at a revision to etcd, but etcd does not page a single object.
    let passed_on = single
        && request.limit.is_some()
        && request.version_match.is_none()
        && matches!(wanted, Wanted::NotOlderThan(_));
    // The cache has snapshots of whole collections: a single object at a past revision is read from etcd.
    let from_cache =
        kind.watch_cached && (snapshots || !(token.is_some() || exact)) && !(single && (exact || passed_on));
    if from_cache && matches!(request.resource_version, RequestedVersion::Any) {
        limit = None;
    }
    let resource = model.resource(kind);
    let state = if from_cache {
        from_watch_cache(model, resource, replica, &wanted, now, arrived)
    } else {
        from_etcd(model, resource, &wanted)
    };
    let state = match state {
        Ok(state) => state,
        Err(NoState::Wait(until)) => return ListOutcome::Wait { until },
        Err(NoState::Refused(status)) => {
            tracing::debug!(resource = kind.plural, code = status.code, "list refused");
            return ListOutcome::Refused(match token {
                Some(token) if status.code == 410 => {
                    Status::expired_continue(Some(&token.inconsistent().encode()))
                }
                Some(_) | None => status,
            });
        }
    };
    ListOutcome::Page(page(model, now, request, &resource.store, &state, token, limit))
}

fn from_watch_cache(
    model: &Model,
    resource: &Resource,
    replica: Replica,
    wanted: &Wanted,
    now: Duration,
    arrived: Duration,
) -> Result<State, NoState> {
    let newest = || {
        let (revision, objects) = model.cached(resource, replica);
        State {
            objects: objects.clone(),
            revision,
            cached: true,
        }
    };
    let until = arrived + FRESH_WAIT;
    let wait_for = |revision: u64| {
        let reached = model.catch_up(resource, replica, revision);
        if reached >= revision {
            Ok(())
        } else if now < until {
            Err(NoState::Wait(until))
        } else {
            Err(NoState::Refused(Status::too_large(revision, reached, 1)))
        }
    };
    match *wanted {
        Wanted::Any => Ok(newest()),
        Wanted::NotOlderThan(revision) => wait_for(revision).map(|()| newest()),
        Wanted::Exact(revision) => {
            wait_for(revision)?;
            exactly(model, resource, revision, Some(replica))
        }
        Wanted::Newest | Wanted::Latest => match wait_for(model.revision) {
            // A cache that does not catch up is bypassed.
            Err(NoState::Refused(_)) => from_etcd(model, resource, wanted),
            fresh => fresh.map(|()| newest()),
        },
    }
}

fn from_etcd(model: &Model, resource: &Resource, wanted: &Wanted) -> Result<State, NoState> {
    let newest = State {
        objects: resource.store.current().clone(),
        revision: model.revision,
        cached: false,
    };
    match *wanted {
        Wanted::Newest | Wanted::Any | Wanted::Latest => Ok(newest),
        Wanted::NotOlderThan(revision) if revision <= model.revision => Ok(newest),
        Wanted::Exact(revision) if revision <= model.revision => exactly(model, resource, revision, None),
        Wanted::Exact(_) if model.version == Version::V1_33 => {
            Err(NoState::Refused(Status::future_revision()))
        }
        Wanted::NotOlderThan(revision) | Wanted::Exact(revision) => {
            Err(NoState::Refused(Status::too_large(revision, model.revision, 0)))
        }
    }
}

fn exactly(
    model: &Model,
    resource: &Resource,
    revision: u64,
    cached_at: Option<Replica>,
) -> Result<State, NoState> {
    if revision < model.compacted {
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

fn page(
    model: &Model,
    now: Duration,
    request: &ListRequest,
    store: &Store,
    state: &State,
    token: Option<&ContinueToken>,
    limit: Option<usize>,
) -> Page {
    let namespace = request.collection.namespace.as_deref();
    let start = token.map(ContinueToken::start_key).unwrap_or_default();
    let mut keys = store::range(&state.objects, namespace, start);
    let mut items = Vec::new();
    let mut seen = 0;
    let full = |items: &Vec<Arc<Stored>>| limit.is_some_and(|limit| items.len() >= limit);
    while !full(&items) {
        let Some(object) = keys.next() else { break };
        seen += 1;
        let object = convert::as_kind(object, request.collection.kind);
        if request.selector.matches(&object) {
            items.push(object);
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
    let next = last.map(|last| {
        let relative = namespace.map_or(last.key.as_str(), |namespace| &last.key[namespace.len() + 1..]);
        ContinueToken::after(state.revision, relative, state.cached)
    });
    let continue_token = next.map(|next| {
        store.remember_behind(mark(next.start_key()), more);
        next.encode()
    });
    tracing::trace!(
        resource = request.collection.kind.plural,
        items = items.len(),
        seen,
        more,
        "page"
    );
    Page {
        kind: request.collection.kind,
        form: request.form,
        resource_version: state.revision,
        remaining: (continue_token.is_some() && request.selector.is_empty())
            .then(|| i64::try_from(more).unwrap_or(i64::MAX)),
        continue_token,
        items,
        version: model.version,
        read_at: model.epoch + now,
    }
}

pub(super) fn get(
    model: &Model,
    replica: Replica,
    now: Duration,
    arrived: Duration,
    request: &GetRequest,
) -> GetOutcome {
    let kind = request.collection.kind;
    let key = kind.key(request.collection.namespace.as_deref(), &request.name);
    let wanted = match request.resource_version {
        // Read from etcd, with or without a cache.
        RequestedVersion::Newest => Wanted::Latest,
        RequestedVersion::Any => Wanted::Any,
        RequestedVersion::At(revision) => Wanted::NotOlderThan(revision),
    };
    let state = if !kind.is_stored() {
        Ok(State::unversioned(components::statuses(kind)))
    } else if kind.watch_cached && !matches!(wanted, Wanted::Latest) {
        from_watch_cache(model, model.resource(kind), replica, &wanted, now, arrived)
    } else {
        from_etcd(model, model.resource(kind), &wanted)
    };
    match state {
        Err(NoState::Wait(until)) => GetOutcome::Wait { until },
        Err(NoState::Refused(status)) => GetOutcome::Refused(status),
        Ok(state) => match state.objects.get(key.as_str()) {
            None => GetOutcome::Refused(Status::not_found(kind, &request.name)),
            Some(object) => {
                let object = convert::as_kind(object, kind);
                let object = match request.scale.then(|| scale::of(&object)) {
                    None => object,
                    Some(Ok(scale)) => Arc::new(scale),
                    Some(Err(status)) => return GetOutcome::Refused(status),
                };
                let wall = model.epoch + now;
                let mut body = table::shown(&object, request.form, model.version, wall, true).to_vec();
                body.push(b'\n');
                GetOutcome::Found {
                    object,
                    body: body.into(),
                }
            }
        },
    }
}

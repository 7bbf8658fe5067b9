//! Custom resources in other versions, as a webhook makes them: what is known of them, and what an answer would need.
//!
//! Who reads an object in another version gets it if it is known. Else the answer is of no use: what it needs is noted, and it is
//! computed again when the outcomes of the calls are there. It must not know who carries calls out.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use apimachinery::kind::{ApiResource, KindRef};
use apimachinery::object::Stored;
use apimachinery::status::Status;
use builtin_kinds::convert;
use builtin_kinds::crd::Definition;
use builtin_kinds::crd::conversion::{Conversion, TIMEOUT, in_store};
use builtin_kinds::webhook::Outcome;
use bytes::Bytes;

use super::{HookCall, Model, write};

/// Bytes of converted objects that are kept.
const BYTES_MAX: usize = 64 * 1024 * 1024;

/// Bytes of the objects of a call, unless it is a single one.
const CALL_BYTES_MAX: usize = 1024 * 1024;

/// Key, revision, and the version it is converted to.
type ConversionKey = (String, u64, KindId);

/// API version and digest of the definition of a custom resource.
type KindId = (String, [u8; 32]);

/// Converted objects.
#[derive(Debug, Default)]
pub(super) struct Conversions(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    known: BTreeMap<ConversionKey, Result<Arc<Stored>, String>>,
    /// The known ones, the oldest first, with their bytes.
    order: VecDeque<(ConversionKey, usize)>,
    bytes: usize,
    wanted: BTreeMap<ConversionKey, Wanted>,
    failed: Option<String>,
    /// Number of calls, which makes their identifiers unique.
    calls: u64,
}

/// An object that is needed in another version.
#[derive(Debug, Clone)]
struct Wanted {
    object: Arc<Stored>,
    to: KindRef,
}

/// What an answer needs before it is of use.
#[derive(Debug)]
pub(crate) enum Need {
    /// Nothing.
    Nothing,
    /// It is not available, for this reason.
    Failed(Status),
    /// These calls.
    Calls(Vec<(Batch, HookCall)>),
}

/// Objects that are converted by one call.
#[derive(Debug)]
pub(crate) struct Batch {
    uid: String,
    wanted: Vec<(ConversionKey, Wanted)>,
}

impl Conversions {
    /// The object as this kind shows it.
    pub(super) fn as_kind(&self, object: &Arc<Stored>, kind: &KindRef) -> Arc<Stored> {
        if Conversion::between(&object.kind, kind).is_none() {
            return convert::as_kind(object, kind);
        }
        let place = (object.key.clone(), object.revision, id_of(kind));
        let mut inner = self.lock();
        match inner.known.get(&place) {
            Some(Ok(known)) => return Arc::clone(known),
            Some(Err(why)) => inner.failed = Some(why.clone()),
            None => {
                let wanted = Wanted {
                    object: Arc::clone(object),
                    to: kind.clone(),
                };
                inner.wanted.insert(place, wanted);
            }
        }
        convert::as_kind(object, kind)
    }

    /// Keeps an object that was converted when it was written.
    pub(super) fn keep(&self, object: Arc<Stored>) {
        let place = (object.key.clone(), object.revision, id_of(&object.kind));
        self.lock().add(place, Ok(object));
    }

    /// Forgets what answers before this one needed.
    pub(super) fn begin(&self) {
        let mut inner = self.lock();
        inner.wanted.clear();
        inner.failed = None;
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn add(&mut self, place: ConversionKey, object: Result<Arc<Stored>, String>) {
        let bytes = object.as_ref().map_or(0, |object| object.weight());
        if self.known.insert(place.clone(), object).is_none() {
            self.order.push_back((place, bytes));
            self.bytes += bytes;
        }
    }

    /// Drops the oldest ones.
    fn trim(&mut self) {
        while self.bytes > BYTES_MAX
            && let Some((place, bytes)) = self.order.pop_front()
        {
            self.known.remove(&place);
            self.bytes -= bytes;
        }
    }
}

fn id_of(kind: &ApiResource) -> KindId {
    let definition = kind.definition.as_ref();
    let digest = definition.map_or([0; 32], |definition| definition.digest);
    (kind.api_version(), digest)
}

/// Parts that are not too large for a call.
fn parts(wanted: Vec<(ConversionKey, Wanted)>) -> Vec<Vec<(ConversionKey, Wanted)>> {
    let mut parts = Vec::new();
    let (mut part, mut bytes) = (Vec::new(), 0);
    for (place, object) in wanted {
        let more = object.object.length();
        if bytes + more > CALL_BYTES_MAX && !part.is_empty() {
            parts.push(std::mem::take(&mut part));
            bytes = 0;
        }
        bytes += more;
        part.push((place, object));
    }
    parts.push(part);
    parts
}

impl Model {
    /// Whether reads of this kind may need a webhook.
    pub(crate) fn may_convert(kind: &ApiResource) -> bool {
        Definition::of(kind).is_some_and(|definition| definition.conversion.is_some())
    }

    /// Whether the answer that was just computed needs something.
    pub(crate) fn needs(&self) -> bool {
        let inner = self.conversions.lock();
        inner.failed.is_some() || !inner.wanted.is_empty()
    }

    /// Returns what the answer that was just computed needs, and forgets it.
    pub(crate) fn take_need(&self) -> Need {
        let mut inner = self.conversions.lock();
        if let Some(why) = inner.failed.take() {
            // The next answer asks again.
            inner.known.retain(|_, object| object.is_ok());
            let known = &inner.known;
            let kept = inner.order.iter().filter(|(place, _)| known.contains_key(place));
            let kept = kept.cloned().collect();
            inner.order = kept;
            inner.wanted.clear();
            return Need::Failed(Status::unexplained(why));
        }
        if inner.wanted.is_empty() {
            return Need::Nothing;
        }
        inner.trim();
        let mut batches: BTreeMap<(KindId, KindId), Vec<(ConversionKey, Wanted)>> = BTreeMap::new();
        for (place, wanted) in std::mem::take(&mut inner.wanted) {
            let kinds = (id_of(&wanted.object.kind), id_of(&wanted.to));
            batches.entry(kinds).or_default().push((place, wanted));
        }
        let batches = batches.into_values().flat_map(parts);
        let calls = batches.filter_map(|wanted| {
            let (_, first) = wanted.first()?;
            let conversion = Conversion::between(&first.object.kind, &first.to)?;
            inner.calls += 1;
            let uid = write::uid(inner.calls, &conversion.name);
            let objects = wanted.iter().map(|(_, wanted)| in_store(wanted.object.json()));
            let objects: Vec<_> = objects.collect();
            let review = conversion.review(&objects, &first.to, &uid);
            let call = HookCall {
                webhook: conversion.name.clone(),
                url: conversion.client.url(TIMEOUT),
                address: self.address_of(&conversion.client),
                server_name: conversion.client.server_name(),
                authority_pem: conversion.client.authority_pem.clone(),
                body: Bytes::from(review.to_string()),
                timeout: TIMEOUT,
            };
            Some((Batch { uid, wanted }, call))
        });
        Need::Calls(calls.collect())
    }

    /// Adds the outcome of a call.
    pub(crate) fn add_converted(&self, batch: Batch, url: &str, outcome: &Outcome) {
        let Some((_, first)) = batch.wanted.first() else {
            return;
        };
        let (from, to) = (&first.object.kind, &first.to);
        let Some(conversion) = Conversion::between(from, to) else {
            return;
        };
        let sent: Vec<_> = batch
            .wanted
            .iter()
            .map(|(_, wanted)| wanted.object.json())
            .collect();
        let converted = conversion.converted((&batch.uid, url, outcome), &sent, (from, to));
        let mut inner = self.conversions.lock();
        match converted {
            Ok(objects) => {
                for ((place, wanted), mut json) in batch.wanted.into_iter().zip(objects) {
                    if let Some(definition) = Definition::of(&wanted.to) {
                        definition.receive(&mut json);
                    }
                    let Wanted { object, to } = wanted;
                    let converted = Stored::as_is(&to, object.key.clone(), object.revision, json);
                    inner.add(place, Ok(Arc::new(converted)));
                }
            }
            Err(why) => {
                for (place, _) in batch.wanted {
                    inner.add(place, Err(why.clone()));
                }
            }
        }
    }
}

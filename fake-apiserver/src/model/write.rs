//! Result of a write: the server sets identity, times and generation, an unchanged object is not written, and an object with
//! finalizers is marked for deletion.
//!
//! A write is not rejected here: it comes from the scenario, or `registry` has checked it.

use std::sync::Arc;
use std::time::Duration;

use apimachinery::kind::{ApiResource, Deletion, Generation};
use apimachinery::object::{SERVER_OWNED, Stored, canonical, field, field_mut, is_same, ordered_metadata};
use apimachinery::time::timestamp;
use builtin_kinds::ownership;
use serde_json::{Map, Value};

/// Result of a write.
pub(super) enum Outcome {
    /// No change.
    Same(Arc<Stored>),
    /// The object is stored, in the order of the wire.
    Put(Value),
    /// The object is deleted.
    Gone,
    /// The object was marked for deletion, and this write removed its last finalizer but changed nothing else.
    Released(Value),
}

/// An object as stored, and its tree, which costs much to decode.
pub(super) type Live<'a> = (&'a Arc<Stored>, &'a Value);

/// Creates or replaces `current` by `manifest`, at `time` since 1970. `uid` is that of a new object.
pub(super) fn replace(
    kind: &ApiResource,
    key: &str,
    current: Option<Live<'_>>,
    manifest: Value,
    time: Duration,
    uid: String,
) -> Outcome {
    let mut object = match manifest {
        Value::Object(_) => manifest,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Value::Object(Map::new())
        }
    };
    let sent = match field_mut(&mut object, "metadata").map(Value::take) {
        Some(Value::Object(metadata)) => metadata,
        Some(_) | None => Map::new(),
    };
    // The server adds five fields to every object.
    let mut metadata: Vec<(String, Value)> = Vec::with_capacity(sent.len() + 5);
    metadata.extend(
        sent.into_iter()
            .filter(|(field, _)| !SERVER_OWNED.contains(&field.as_str())),
    );
    let mut say = |field: &str, value| metadata.push((field.to_owned(), value));
    let (namespace, name) = match key.split_once('/') {
        Some((namespace, name)) => (Some(namespace), name),
        None => (None, key),
    };
    say("name", name.into());
    if let Some(namespace) = namespace {
        say("namespace", namespace.into());
    }
    let kept = |name: &str| {
        let (_, old) = current?;
        let value = field(field(old, "metadata"), name);
        (!value.is_null()).then(|| value.clone())
    };
    say("uid", kept("uid").unwrap_or_else(|| uid.into()));
    let created = kept("creationTimestamp");
    say(
        "creationTimestamp",
        created.unwrap_or_else(|| timestamp(time).into()),
    );
    // A new object gets its version when it is stored; this reserves the position of the field.
    say(
        "resourceVersion",
        kept("resourceVersion").unwrap_or_else(|| "0".into()),
    );
    if kind.generation != Generation::None && current.is_none() {
        say("generation", 1.into());
    }
    for lasting in ["generation", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        if let Some(value) = kept(lasting) {
            say(lasting, value);
        }
    }
    let metadata = ordered_metadata(metadata);
    match field_mut(&mut object, "metadata") {
        Some(place) => *place = metadata,
        None => object["metadata"] = metadata,
    }
    let Some((current, old)) = current else {
        return Outcome::Put(object);
    };
    let mut object = canonical(kind, object);
    ownership::keep_times(old, &mut object);
    if is_same(old, &object) {
        return Outcome::Same(Arc::clone(current));
    }
    if old["metadata"].get("deletionTimestamp").is_some() && !is_held(kind, &object) {
        return Outcome::Released(object);
    }
    let annotations = |object: &Value| object["metadata"]["annotations"] != old["metadata"]["annotations"];
    let is_counted = match kind.generation {
        Generation::None | Generation::One => false,
        Generation::Spec | Generation::SpecAsSent => spec(kind, old) != spec(kind, &object),
        Generation::SpecAndAnnotations => annotations(&object) || spec(kind, old) != spec(kind, &object),
    };
    if is_counted {
        bump_generation(&mut object);
    }
    Outcome::Put(object)
}

/// Deletes `current`.
pub(super) fn delete(current: &Arc<Stored>, time: Duration) -> Outcome {
    let mut object = current.json();
    if object["metadata"].get("finalizers").is_none() {
        return Outcome::Gone;
    }
    if object["metadata"].get("deletionTimestamp").is_some() {
        return Outcome::Same(Arc::clone(current));
    }
    mark_deleted(&mut object, time, Some(0), true);
    Outcome::Put(object)
}

/// Marks an object for deletion `grace` seconds after `time`; `None`: it is deleted once it is empty. `first`: it was not marked
/// before.
pub(super) fn mark_deleted(object: &mut Value, time: Duration, grace: Option<i64>, first: bool) {
    let seconds = u64::try_from(grace.unwrap_or(0)).unwrap_or(0);
    object["metadata"]["deletionTimestamp"] = timestamp(time + Duration::from_secs(seconds)).into();
    if let Some(grace) = grace {
        object["metadata"]["deletionGracePeriodSeconds"] = grace.into();
    }
    if first {
        bump_generation(object);
    }
}

/// Returns whether an object marked for deletion has to be kept.
fn is_held(kind: &ApiResource, object: &Value) -> bool {
    let metadata = &object["metadata"];
    let grace = metadata.get("deletionGracePeriodSeconds").and_then(Value::as_i64);
    metadata.get("finalizers").is_some()
        || grace.is_some_and(|grace| grace > 0)
        || kind.deletion == Deletion::WhenEmpty && object.pointer("/spec/finalizers/0").is_some()
}

/// Returns the manifest of `current` with changed labels.
pub(super) fn relabelled(current: &Stored, labels: &[(String, Option<String>)]) -> Value {
    let mut object = current.json();
    let mut changed = object["metadata"]
        .get("labels")
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    for (label, value) in labels {
        match value {
            Some(value) => drop(changed.insert(label.clone(), value.as_str().into())),
            None => drop(changed.remove(label)),
        }
    }
    object["metadata"]["labels"] = Value::Object(changed);
    object
}

/// Returns the part that the generation counts: all but metadata and, if it is a subresource, the status.
fn spec(kind: &ApiResource, object: &Value) -> Map<String, Value> {
    let counts = |key: &str| key != "metadata" && !(kind.status && key == "status");
    let fields = object.as_object().into_iter().flatten();
    fields
        .filter(|(key, _)| counts(key))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// Returns the outcome of a write that differs from `current` although it may be stored alike.
pub(super) fn counted(current: &Stored, outcome: Outcome) -> Outcome {
    let mut object = match outcome {
        Outcome::Same(stored) => stored.json(),
        Outcome::Put(object) => object,
        Outcome::Gone | Outcome::Released(_) => return outcome,
    };
    if object["metadata"]["generation"] == current.json()["metadata"]["generation"] {
        bump_generation(&mut object);
    }
    Outcome::Put(object)
}

/// Increments the generation, if the object has one.
fn bump_generation(object: &mut Value) {
    if let Some(generation) = object["metadata"].get("generation").and_then(Value::as_u64) {
        object["metadata"]["generation"] = (generation + 1).into();
    }
}

/// Returns a uid in the format of a random one, but the same in every run: that of write number `nth` of a store.
pub(super) fn uid(nth: u64, key: &str) -> String {
    let mut bits = 0_u128;
    for round in 0..2_u64 {
        let mut hash = 0xcbf2_9ce4_8422_2325 ^ round;
        for byte in nth.to_le_bytes().into_iter().chain(key.bytes()) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        hash = (hash ^ (hash >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        bits = bits << 64 | u128::from(hash ^ (hash >> 29));
    }
    // Version 4, variant 1 (RFC 9562).
    let bits = bits & !(0xf << 76) & !(0x3 << 62) | 0x4 << 76 | 0x2 << 62;
    let mut text = [b'-'; 36];
    let places = (0..36).filter(|place| !matches!(place, 8 | 13 | 18 | 23));
    for (nth, place) in (1..).zip(places) {
        text[place] = b"0123456789abcdef"[(bits >> (128 - 4 * nth)) as usize & 0xf];
    }
    String::from_utf8(text.to_vec()).expect("digits are ASCII")
}

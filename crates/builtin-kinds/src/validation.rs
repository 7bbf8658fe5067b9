//! Which objects a server refuses (422): what people forget or mistype when they write them by hand. It is not all that a
//! real server checks; what is checked is told in its words, in its order.
//!
//! Most of it is data (`data/validation.yaml`); the functions here are for what needs more than one field. It must not
//! know who writes, nor the store: it is given the object, complete, and the one it replaces.
//!
//! Source: kubernetes `pkg/apis/*/validation`; apimachinery `api/validation`.

use apimachinery::Version;
use apimachinery::kind::{ApiResource, Review};
use apimachinery::status::Cause;
use apimachinery::write::Subresource;
use serde_json::Value;

use super::error_list::ErrorList;
use super::types;

mod amounts;
mod autoscaling;
mod changes;
mod formats;
mod indexes;
mod metadata;
mod network;
mod objects;
mod place;
mod placement;
mod pods;
mod resize;
mod reviews;
mod rules;
mod schedule;
mod status;
mod volumes;
mod webhooks;
mod workloads;
mod zones;

use indexes::Indexes;
use place::Place;

/// What is wrong with a new object of this name; empty: it can be stored.
pub fn new_faults(kind: &ApiResource, object: &Value, name: &str, version: Version) -> Vec<Cause> {
    let mut found = ErrorList::default();
    metadata::new(kind, &object["metadata"], name, version, &mut found);
    if let Some(known) = types::of(kind) {
        let indexes = Indexes::default();
        rules::check(
            known,
            &Place::of(object, known.name, version, &indexes).walked_by(rules::check),
            &mut found,
        );
        pods::created(known, object, &mut found);
    }
    found.into_causes()
}

/// What is wrong with a review of access; empty: it can be answered.
pub fn review_faults(review: Review, object: &Value, version: Version) -> Vec<Cause> {
    let mut found = ErrorList::default();
    reviews::check(review, object, version, &mut found);
    found.into_causes()
}

/// What is wrong with `object`, which is to replace `old`; `part` is the path by which that is done.
///
/// What was wrong already is nobody's fault now: only a script can have put it there.
pub fn changed_faults(
    kind: &ApiResource,
    object: &Value,
    old: &Value,
    part: Option<Subresource>,
    version: Version,
) -> Vec<Cause> {
    let mut found = ErrorList::default();
    metadata::changed(kind, &object["metadata"], &old["metadata"], version, &mut found);
    let Some(known) = types::of(kind) else {
        return found.into_causes();
    };
    let all = |object: &Value| {
        let mut found = ErrorList::default();
        match part {
            None | Some(Subresource::EphemeralContainers | Subresource::Resize) => {
                let indexes = Indexes::default();
                rules::check(
                    known,
                    &Place::of(object, known.name, version, &indexes).walked_by(rules::check),
                    &mut found,
                );
            }
            Some(Subresource::Status) => status::check(known, object, version, rules::check, &mut found),
            Some(Subresource::Finalize | Subresource::Scale) => {}
        }
        found.into_causes()
    };
    found.extend_with_new(all(object), &all(old));
    match part {
        None => changes::check(known, object, old, &mut found),
        Some(Subresource::Status) => status::check_change(known, object, old, &mut found),
        Some(Subresource::EphemeralContainers) => changes::ephemeral_containers(object, old, &mut found),
        Some(Subresource::Resize) => resize::check(object, old, version, &mut found),
        Some(Subresource::Finalize | Subresource::Scale) => {}
    }
    found.into_causes()
}

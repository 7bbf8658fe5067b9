//! Validation of objects (422): mistakes that are common in manifests written by hand. It is a subset of the checks of
//! kube-apiserver, with the same texts in the same order.
//!
//! Most rules are data (`data/validation.yaml`); the functions are for rules over several fields. It must not know users or
//! the store: it is given the complete object and the one it replaces.
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
mod context;
pub(crate) mod formats;
mod indexes;
mod metadata;
mod network;
mod objects;
mod placement;
mod pods;
mod policies;
mod resize;
mod reviews;
mod rules;
mod schedule;
mod status;
mod volumes;
pub(crate) mod webhooks;
mod workloads;
mod zones;

use context::FieldContext;
pub(crate) use formats::{label_value, qualified_name};
use indexes::Indexes;

/// Returns the errors of a new object of this name; none if it is valid.
pub fn validate_create(kind: &ApiResource, object: &Value, name: &str, version: Version) -> Vec<Cause> {
    let mut errors = ErrorList::default();
    metadata::new(kind, object, name, version, &mut errors);
    if let Some(known) = types::of(kind) {
        let indexes = Indexes::default();
        rules::check(
            known,
            &FieldContext::of(object, known.name, version, &indexes).with_walk(rules::check),
            &mut errors,
        );
        pods::created(known, object, &mut errors);
    }
    errors.into_causes()
}

/// Returns the errors of the metadata of a resource that is embedded in a custom resource.
pub(crate) fn embedded_metadata(metadata: &Value, version: Version) -> Vec<Cause> {
    let mut errors = ErrorList::default();
    metadata::embedded(metadata, version, &mut errors);
    errors.into_causes()
}

/// Returns the errors of a review of access; none if it is valid.
pub fn validate_review(review: Review, object: &Value, version: Version) -> Vec<Cause> {
    let mut errors = ErrorList::default();
    reviews::check(review, object, version, &mut errors);
    errors.into_causes()
}

/// Returns the errors of an update from `old` to `object`, through the subresource `part` if there is one.
///
/// Errors that `old` has as well are not returned: a script can store invalid objects, and an update of one must remain
/// possible.
pub fn validate_update(
    kind: &ApiResource,
    object: &Value,
    old: &Value,
    part: Option<Subresource>,
    version: Version,
) -> Vec<Cause> {
    let mut errors = ErrorList::default();
    metadata::changed(kind, &object["metadata"], &old["metadata"], version, &mut errors);
    let Some(known) = types::of(kind) else {
        return errors.into_causes();
    };
    let all = |object: &Value| {
        let mut errors = ErrorList::default();
        match part {
            None | Some(Subresource::EphemeralContainers | Subresource::Resize) => {
                let indexes = Indexes::default();
                rules::check(
                    known,
                    &FieldContext::of(object, known.name, version, &indexes).with_walk(rules::check),
                    &mut errors,
                );
            }
            Some(Subresource::Status) => status::check(known, object, version, rules::check, &mut errors),
            Some(Subresource::Finalize | Subresource::Scale) => {}
        }
        errors.into_causes()
    };
    errors.extend_with_new(all(object), &all(old));
    match part {
        None => changes::check(known, object, old, version, &mut errors),
        Some(Subresource::Status) => status::check_change(known, object, old, &mut errors),
        Some(Subresource::EphemeralContainers) => changes::ephemeral_containers(object, old, &mut errors),
        Some(Subresource::Resize) => resize::check(object, old, version, &mut errors),
        Some(Subresource::Finalize | Subresource::Scale) => {}
    }
    errors.into_causes()
}

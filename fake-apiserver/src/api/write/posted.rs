//! What is POSTed to a pod and stored nowhere: its binding to a node, its eviction.
//!
//! It must not know the pod: whether it can be bound or evicted, the store decides.
//!
//! Source: kubernetes `pkg/registry/core/pod/storage/{storage,eviction}.go`.

use apimachinery::kind::ApiResource;
use builtin_kinds::catalog;
use serde_json::Value;

use super::deletion::body_dry_run;
use super::{DeleteOptions, WriteAction};

/// The Kind of what is POSTed to this part of a pod; `None`: nothing can be POSTed there.
pub(super) fn kind(part: &str) -> Option<&'static ApiResource> {
    match part {
        "binding" => Some(catalog::binding()),
        "eviction" => Some(catalog::eviction()),
        _ => None,
    }
}

/// What the POST of `object` to `resource` does to the pod of this name, and whether it is itself a dry run.
pub(super) fn action(
    kind: &ApiResource,
    object: Value,
    name: String,
    resource: &'static ApiResource,
) -> (WriteAction, bool) {
    if kind.kind == "Binding" {
        let binding = Box::new(object);
        let action = WriteAction::Bind {
            name,
            binding,
            resource,
        };
        return (action, false);
    }
    let options = &object["deleteOptions"];
    let dry_run = !body_dry_run(options).is_empty();
    let options = DeleteOptions::of(options);
    let eviction = Box::new(object);
    let action = WriteAction::Evict {
        name,
        eviction,
        options,
    };
    (action, dry_run)
}

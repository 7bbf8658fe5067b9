//! POSTs to subresources of a pod: binding and eviction.
//!
//! It must not know the pod: the store decides whether it can be bound or evicted.
//!
//! Source: kubernetes `pkg/registry/core/pod/storage/{storage,eviction}.go`.

use apimachinery::kind::{ApiResource, KindRef};
use builtin_kinds::catalog;
use serde_json::Value;

use super::deletion::body_dry_run;
use super::{DeleteOptions, WriteAction};

/// Returns the kind of a POST to this subresource of a pod; `None`: it does not support POST.
pub(super) fn kind(part: &str) -> Option<KindRef> {
    match part {
        "binding" => Some(catalog::binding()),
        "eviction" => Some(catalog::eviction()),
        _ => None,
    }
}

/// Returns the action of a POST of `object` to `resource` for the pod of this name, and whether the body makes it a dry run.
pub(super) fn action(
    kind: &ApiResource,
    object: Value,
    name: String,
    resource: KindRef,
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

//! What is POSTed below an object and is none itself: the binding of a pod to a node, its eviction. Read in JSON only.
//!
//! Source: kubernetes `pkg/registry/core/pod/storage/{storage,eviction}.go`.

use serde_json::Value;

use crate::api::{HttpRequest, Status};

use super::{DeleteOptions, WriteAction, bounded, text};

/// What a POST to this part of a pod does; `None`: nothing can be POSTed there.
///
/// # Errors
/// 400 and 413 for a body that cannot be read or is about another object; 500 for a binding to no node.
pub(super) fn read(request: &HttpRequest, name: &str, part: &str) -> Result<Option<WriteAction>, Status> {
    let kind = match part {
        "binding" => "Binding",
        "eviction" => "Eviction",
        _ => return Ok(None),
    };
    bounded(request)?;
    let object: Value =
        serde_json::from_slice(&request.body).map_err(|why| Status::bad_request(why.to_string()))?;
    if text(&object, "name") != name {
        let message = format!("name in URL does not match name in {kind} object");
        return Err(Status::bad_request(message));
    }
    let name = name.to_owned();
    if part == "binding" {
        return match object["target"]["name"].as_str() {
            Some(node) if !node.is_empty() => Ok(Some(WriteAction::Bind {
                name,
                node: node.to_owned(),
            })),
            Some(_) | None => Err(Status::unreadable_version("target.name: Required value")),
        };
    }
    let options = &object["deleteOptions"];
    let precondition = |field: &str| options["preconditions"][field].as_str().map(str::to_owned);
    Ok(Some(WriteAction::Evict {
        name,
        options: DeleteOptions {
            grace_period_seconds: options["gracePeriodSeconds"].as_i64(),
            uid: precondition("uid"),
            resource_version: precondition("resourceVersion"),
            ..DeleteOptions::default()
        },
    }))
}

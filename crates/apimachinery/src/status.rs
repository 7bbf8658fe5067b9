//! Kubernetes Status, the body of every error response, with one constructor for each error, so that each text exists once.
//!
//! Source: apimachinery `api/errors` and `meta/v1/types.go` (order of the fields); KEP-365 for the texts of paging.

mod revisions;

use std::collections::HashSet;
use std::time::Duration;

use bytes::Bytes;
use serde::Serialize;
use serde_json::Value;

use crate::encode::encode_json;
use crate::kind::ApiResource;

/// Kubernetes Status with `status: Failure`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Status {
    /// `code`.
    pub code: u16,
    /// `reason`; omitted if empty.
    pub reason: String,
    /// `message`.
    pub message: String,
    /// `metadata.continue`; omitted if empty.
    pub continue_token: String,
    /// `details`; `None`: omitted. Empty details are encoded as `{}`.
    pub details: Option<Box<Details>>,
}

/// `details` of a Status. Empty fields are omitted.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Details {
    /// `name`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// `group`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// `kind`: the resource's name, or the Kind for validation errors.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// `uid`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// `causes`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<Cause>,
    /// `retryAfterSeconds`.
    #[serde(rename = "retryAfterSeconds", skip_serializing_if = "is_zero")]
    pub retry_after_seconds: u32,
}

/// One of `details.causes`. Empty fields are omitted.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize)]
pub struct Cause {
    /// `reason`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// `message`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// `field`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub field: String,
}

/// Status with its fields in the order of the wire.
#[derive(Serialize)]
struct Wire<'a> {
    kind: &'static str,
    #[serde(rename = "apiVersion")]
    api_version: &'static str,
    metadata: WireMeta<'a>,
    status: &'static str,
    message: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    reason: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<&'a Details>,
    code: u16,
}

#[derive(Serialize)]
struct WireMeta<'a> {
    #[serde(rename = "continue", skip_serializing_if = "str::is_empty")]
    continue_token: &'a str,
}

impl Status {
    fn new(code: u16, reason: &str, message: impl Into<String>) -> Self {
        Self {
            code,
            reason: reason.to_owned(),
            message: message.into(),
            ..Self::default()
        }
    }

    /// Returns the Status with these details.
    #[must_use]
    pub fn with_details(mut self, details: Details) -> Self {
        self.details = Some(Box::new(details));
        self
    }

    /// 400: part of the request cannot be parsed.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// 422: read options that contradict each other, one cause each, without duplicates.
    pub fn invalid_list_options(faults: &[Cause]) -> Self {
        Self::invalid_options("ListOptions", faults)
    }

    /// 422: options that are invalid or contradict each other, one cause each, without duplicates. `options` is their kind.
    pub fn invalid_options(options: &str, faults: &[Cause]) -> Self {
        Self::invalid(
            &format!("{options}.meta.k8s.io"),
            Details {
                group: "meta.k8s.io".to_owned(),
                kind: options.to_owned(),
                ..Details::default()
            },
            faults,
        )
    }

    /// 422: an object that fails validation, by its kind.
    pub fn invalid_object(kind: &ApiResource, name: &str, faults: &[Cause]) -> Self {
        // Validation runs on the stored version.
        let (group, _) = kind.storage();
        let what = if group.is_empty() {
            kind.kind.to_string()
        } else {
            format!("{}.{group}", kind.kind)
        };
        Self::invalid(&what, details_of(name, group, &kind.kind), faults)
    }

    /// 422: an object that fails validation, by the version and kind that it has.
    pub fn invalid_sent(api_version: &str, kind: &str, name: &str, faults: &[Cause]) -> Self {
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        Self::invalid(&format!("{kind}.{group}"), details_of(name, group, kind), faults)
    }

    /// 422: an incomplete review. The Status has neither kind nor name.
    pub fn invalid_review(kind: &ApiResource, faults: &[Cause]) -> Self {
        Self::invalid(
            &format!(".{}", kind.group),
            details_of("", &kind.group, ""),
            faults,
        )
    }

    /// 422: an update without `metadata.resourceVersion`, by its resource.
    pub fn version_required(kind: &ApiResource, name: &str) -> Self {
        Self::invalid(
            &kind.qualified(),
            details_of(name, &kind.group, &kind.plural),
            &[Cause {
                reason: "FieldValueInvalid".to_owned(),
                message: "Invalid value: 0: must be specified for an update".to_owned(),
                field: "metadata.resourceVersion".to_owned(),
            }],
        )
    }

    /// 422: a patch whose result is not a valid object.
    pub fn invalid_patch(fault: Cause) -> Self {
        Self::invalid("", Details::default(), &[fault])
    }

    fn invalid(what: &str, details: Details, faults: &[Cause]) -> Self {
        let mut known = HashSet::new();
        let causes = faults.iter().filter(|fault| known.insert(*fault));
        let causes: Vec<Cause> = causes.cloned().collect();
        let mut texts: Vec<String> = causes
            .iter()
            .map(|cause| format!("{}: {}", cause.field, cause.message))
            .collect();
        let text = if texts.len() == 1 {
            texts.remove(0)
        } else {
            format!("[{}]", texts.join(", "))
        };
        let name = details.name.clone();
        Self::new(422, "Invalid", format!("{what} \"{name}\" is invalid: {text}"))
            .with_details(Details { causes, ..details })
    }

    /// 403: an operation that is forbidden to every user; `why` is the reason.
    pub fn forbidden(kind: &ApiResource, name: &str, why: &str, causes: Vec<Cause>) -> Self {
        Self::new(
            403,
            "Forbidden",
            format!("{} \"{name}\" is forbidden: {why}", kind.qualified()),
        )
        .with_details(Details {
            causes,
            ..details_of(name, &kind.group, &kind.plural)
        })
    }

    /// 403: a create in a namespace that is terminating.
    pub fn namespace_terminating(kind: &ApiResource, name: &str, namespace: &str) -> Self {
        let cause = Cause {
            reason: "NamespaceTerminating".to_owned(),
            message: format!("namespace {namespace} is being terminated"),
            field: "metadata.namespace".to_owned(),
        };
        let why =
            format!("unable to create new content in namespace {namespace} because it is being terminated");
        Self::forbidden(kind, name, &why, vec![cause])
    }

    /// 409: the name exists.
    pub fn already_exists(kind: &ApiResource, name: &str) -> Self {
        Self::new(
            409,
            "AlreadyExists",
            format!("{} \"{name}\" already exists", kind.qualified()),
        )
        .with_details(details_of(name, &kind.group, &kind.plural))
    }

    /// 409: all names generated from the prefix exist.
    pub fn no_name_left(kind: &ApiResource, name: &str) -> Self {
        Self::new(
            409,
            "AlreadyExists",
            format!(
                "{} \"{name}\" already exists, the server was not able to generate a unique name for the object",
                kind.qualified()
            ),
        )
        .with_details(Details {
            retry_after_seconds: 1,
            ..details_of(name, &kind.group, &kind.plural)
        })
    }

    /// 409: the object has changed since it was read; named by its resource.
    pub fn conflict(kind: &ApiResource, name: &str, why: &str) -> Self {
        Self::new(
            409,
            "Conflict",
            format!(
                "Operation cannot be fulfilled on {} \"{name}\": {why}",
                kind.qualified()
            ),
        )
        .with_details(details_of(name, &kind.group, &kind.plural))
    }

    /// 429: the watch cache is being filled for `unready` so far. The delay grows with it, from 1 s to 30 s (apiserver
    /// `storage/cacher/cacher.go`, `calculateRetryAfterForUnreadyCache`).
    pub fn initializing(unready: Duration) -> Self {
        let seconds = (0.06 * unready.as_secs_f64()).exp().clamp(1.0, 30.0);
        Self::new(429, "TooManyRequests", "storage is (re)initializing").with_details(Details {
            retry_after_seconds: seconds as u32,
            ..Details::default()
        })
    }

    /// 429: an eviction would violate a PodDisruptionBudget. Retry after `retry_after_seconds`; 0: no such hint.
    pub fn disruption(why: &str, retry_after_seconds: u32) -> Self {
        let message = "Cannot evict pod as it would violate the pod's disruption budget.";
        Self::new(429, "TooManyRequests", message).with_details(Details {
            causes: vec![Cause {
                reason: "DisruptionBudget".to_owned(),
                message: why.to_owned(),
                field: String::new(),
            }],
            retry_after_seconds,
            ..Details::default()
        })
    }

    /// 403: the status of a PodDisruptionBudget is not up to date.
    pub fn budget_forbidden(name: &str, why: &str) -> Self {
        let message = format!("poddisruptionbudget.policy \"{name}\" is forbidden: {why}");
        Self::new(403, "Forbidden", message).with_details(details_of(name, "policy", "poddisruptionbudget"))
    }

    /// 409: the pod cannot be bound to a node.
    pub fn not_bound(kind: &ApiResource, name: &str, why: &str) -> Self {
        let part = format!("{}/binding", kind.plural);
        let message = format!("Operation cannot be fulfilled on {part} \"{name}\": pod {name} {why}");
        Self::new(409, "Conflict", message).with_details(details_of(name, &kind.group, &part))
    }

    /// 501: a resource or subresource (`what`) in discovery that this server does not implement.
    pub fn not_served(what: &str) -> Self {
        let message = format!(
            "{what} is listed, as on every server, and not served here: it needs a kubelet or another \
             component of a cluster, and there is none"
        );
        Self::new(501, "", message).with_details(Details::default())
    }

    /// 409: conflicts with other field managers in a server-side apply.
    pub fn apply_conflict(message: &str, causes: Vec<Cause>) -> Self {
        Self::new(409, "Conflict", message).with_details(Details {
            causes,
            ..Details::default()
        })
    }

    /// 409: a precondition of a deletion failed; named by its kind.
    pub fn precondition_failed(kind: &ApiResource, name: &str, why: &str) -> Self {
        let what = if kind.group.is_empty() {
            kind.kind.to_string()
        } else {
            format!("{}.{}", kind.kind, kind.group)
        };
        Self::new(
            409,
            "Conflict",
            format!("Operation cannot be fulfilled on {what} \"{name}\": {why}"),
        )
        .with_details(details_of(name, &kind.group, &kind.kind))
    }

    /// 413: a body or patch above its limit.
    pub fn too_large_entity(what: &str) -> Self {
        Self::new(
            413,
            "RequestEntityTooLarge",
            format!("Request entity too large: {what}"),
        )
    }

    /// 413: a body above [`super::BODY_BYTES_MAX`].
    pub fn too_large_body() -> Self {
        Self::too_large_entity(&format!("limit is {}", super::BODY_BYTES_MAX))
    }

    /// 415 of the handler: the format of the body is not in `accepted`.
    pub fn unknown_format(accepted: &[&str]) -> Self {
        Self::new(
            415,
            "UnsupportedMediaType",
            format!(
                "the body of the request was in an unknown format - accepted media types include: {}",
                accepted.join(", ")
            ),
        )
    }

    /// 415 of the router, before the handler.
    pub fn unrouted_format() -> Self {
        Self::new(415, "UnsupportedMediaType", "415: Unsupported Media Type").with_details(Details::default())
    }

    /// 422: a JSON patch that cannot be applied.
    pub fn patch_failed() -> Self {
        Self::new(
            422,
            "Invalid",
            "the server rejected our request due to an error in our request",
        )
        .with_details(Details::default())
    }

    /// 500: a create with a `resourceVersion`.
    pub fn version_of_new_object() -> Self {
        Self::new(
            500,
            "",
            "resourceVersion should not be set on objects to be created",
        )
    }

    /// Returns the body of a successful deletion: a Status with `status: Success`, with its newline.
    pub fn deleted(kind: &ApiResource, name: &str, uid: &str) -> Bytes {
        let mut body = encode_json(&serde_json::json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Success",
            "details": Details { uid: uid.to_owned(), ..details_of(name, &kind.group, &kind.plural) },
        }));
        body.push(b'\n');
        body.into()
    }

    /// 404: no such object. A resource that is not stored is named by its singular.
    pub fn not_found(kind: &ApiResource, name: &str) -> Self {
        if !kind.is_stored() {
            let message = format!("{} \"{name}\" not found", kind.singular);
            return Self::new(404, "NotFound", message).with_details(details_of(
                name,
                &kind.group,
                &kind.singular,
            ));
        }
        Self::new(
            404,
            "NotFound",
            format!("{} \"{name}\" not found", kind.qualified()),
        )
        .with_details(details_of(name, &kind.group, &kind.plural))
    }

    /// 404: an unknown path below a group that the apiserver serves itself.
    pub fn unknown_path() -> Self {
        Self::new(
            404,
            "NotFound",
            "the server could not find the requested resource",
        )
        .with_details(Details::default())
    }

    /// 405: a verb that the resource does not support.
    pub fn not_supported(kind: &ApiResource, verb: &str) -> Self {
        let message = format!(
            "{verb} is not supported on resources of kind \"{}\"",
            kind.qualified()
        );
        Self::new(405, "MethodNotAllowed", message).with_details(details_of("", &kind.group, &kind.plural))
    }

    /// 405: the path exists, but not with this method.
    pub fn method_not_allowed() -> Self {
        Self::new(
            405,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        )
        .with_details(Details::default())
    }

    /// 406 of the router, before the handler: no requested media type is among those of the route. A collection also has
    /// those of a watch.
    pub fn unrouted_answer(streams: bool) -> Self {
        let mut message =
            "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, \
                           application/vnd.kubernetes.protobuf"
                .to_owned();
        if streams {
            message.push_str(
                ", application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch",
            );
        }
        Self::wrong_form(message).with_details(Details::default())
    }

    /// 406 of the handler: no requested media type is in `accepted`.
    pub fn not_acceptable(accepted: &[&str]) -> Self {
        Self::wrong_form(format!(
            "only the following media types are accepted: {}",
            accepted.join(", ")
        ))
    }

    /// 406: a list was requested as a single object (`go_type` is the type of the list), or the reverse.
    pub fn wrong_form(message: impl Into<String>) -> Self {
        Self::new(406, "NotAcceptable", message)
    }

    /// 500: an unexpected error, whose message is sent unchanged.
    pub fn unexplained(message: impl Into<String>) -> Self {
        Self::new(500, "", message)
    }

    /// 503: no backend for the request.
    pub fn unavailable(message: String) -> Self {
        Self::new(503, "ServiceUnavailable", message)
    }

    /// 500: an inconsistency inside the server.
    pub fn internal_error(why: &str) -> Self {
        Self::new(500, "InternalError", format!("Internal error occurred: {why}")).with_details(Details {
            causes: vec![Cause {
                message: why.to_owned(),
                ..Cause::default()
            }],
            ..Details::default()
        })
    }

    /// Encodes the Status as JSON without newline, as in an ERROR event.
    pub fn encode(&self) -> Vec<u8> {
        encode_json(&self.wire())
    }

    /// Encodes the Status as a response body, with its newline.
    pub fn to_bytes(&self) -> Bytes {
        let mut body = self.encode();
        body.push(b'\n');
        body.into()
    }

    /// Returns the Status as JSON value, in the order of the wire.
    pub fn to_json(&self) -> Value {
        serde_json::to_value(self.wire()).expect("a struct of strings and numbers is a JSON value")
    }

    /// 401: an unknown user.
    pub fn unauthorized() -> Self {
        Self {
            code: 401,
            reason: "Unauthorized".to_owned(),
            message: "Unauthorized".to_owned(),
            ..Self::default()
        }
    }

    /// 403: the user is not authorized. `resource` is empty for a path that is not that of a resource.
    pub fn forbidden_to(group: &str, resource: &str, name: &str, why: &str) -> Self {
        let qualified = match (resource, group) {
            ("", _) => String::new(),
            (resource, "") => resource.to_owned(),
            (resource, group) => format!("{resource}.{group}"),
        };
        let what = match (qualified.as_str(), name) {
            ("", _) => "forbidden".to_owned(),
            (qualified, "") => format!("{qualified} is forbidden"),
            (qualified, name) => format!("{qualified} \"{name}\" is forbidden"),
        };
        Self {
            code: 403,
            reason: "Forbidden".to_owned(),
            message: format!("{what}: {why}"),
            ..Self::default()
        }
        .with_details(Details {
            name: name.to_owned(),
            group: group.to_owned(),
            kind: resource.to_owned(),
            ..Details::default()
        })
    }

    fn wire(&self) -> Wire<'_> {
        Wire {
            kind: "Status",
            api_version: "v1",
            metadata: WireMeta {
                continue_token: &self.continue_token,
            },
            status: "Failure",
            message: &self.message,
            reason: &self.reason,
            details: self.details.as_deref(),
            code: self.code,
        }
    }
}

fn details_of(name: &str, group: &str, kind: &str) -> Details {
    Details {
        name: name.to_owned(),
        group: group.to_owned(),
        kind: kind.to_owned(),
        ..Details::default()
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands the field by reference"
)]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

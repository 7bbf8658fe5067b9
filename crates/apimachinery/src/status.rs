//! The body of every refusal: a Kubernetes Status, with one constructor for every refusal the fake makes, so that each
//! text stands once.
//!
//! Source: apimachinery `api/errors` and `meta/v1/types.go` (order of the fields); KEP-365 for the texts of paging.

mod revisions;

use std::collections::HashSet;

use bytes::Bytes;
use serde::Serialize;
use serde_json::Value;

use crate::Version;
use crate::encode::encode_json;
use crate::kind::ApiResource;

/// A Kubernetes Status with `status: Failure`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Status {
    /// `code`.
    pub code: u16,
    /// `reason`; empty: left out.
    pub reason: String,
    /// `message`.
    pub message: String,
    /// `metadata.continue`; empty: left out.
    pub continue_token: String,
    /// `details`; `None`: left out, while empty details are written as `{}`.
    pub details: Option<Box<Details>>,
}

/// `details` of a Status. What is empty is left out.
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

/// One of `details.causes`. What is empty is left out.
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

/// The Status in the order of the wire.
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

    /// With these details.
    #[must_use]
    pub fn with_details(mut self, details: Details) -> Self {
        self.details = Some(Box::new(details));
        self
    }

    /// 400: something in the request cannot be read.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// 422: options of a read that contradict each other, one cause each; the same fault is named once.
    pub fn invalid_list_options(faults: &[Cause]) -> Self {
        Self::invalid_options("ListOptions", faults)
    }

    /// 422: options that are wrong or contradict each other, one cause each; the same fault is named once. `options` is
    /// their kind.
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

    /// 422: an object that does not validate, by its Kind.
    pub fn invalid_object(kind: &ApiResource, name: &str, faults: &[Cause]) -> Self {
        // Validation speaks of what is stored.
        let (group, _) = kind.storage();
        let what = if group.is_empty() {
            kind.kind.to_owned()
        } else {
            format!("{}.{group}", kind.kind)
        };
        Self::invalid(&what, details_of(name, group, kind.kind), faults)
    }

    /// 422: a review that does not say what it asks. It has neither Kind nor name.
    pub fn invalid_review(kind: &ApiResource, faults: &[Cause]) -> Self {
        Self::invalid(
            &format!(".{}", kind.group),
            details_of("", kind.group, ""),
            faults,
        )
    }

    /// 422: an update without the version it is about, by its resource. Before 1.34 numbers are shown the Go way.
    pub fn version_required(kind: &ApiResource, name: &str, version: Version) -> Self {
        let zero = if version == Version::V1_33 { "0x0" } else { "0" };
        Self::invalid(
            &kind.qualified(),
            details_of(name, kind.group, kind.plural),
            &[Cause {
                reason: "FieldValueInvalid".to_owned(),
                message: format!("Invalid value: {zero}: must be specified for an update"),
                field: "metadata.resourceVersion".to_owned(),
            }],
        )
    }

    /// 422: a patch whose outcome is no such object.
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

    /// 403: something that is forbidden to everybody, for the reason given.
    pub fn forbidden(kind: &ApiResource, name: &str, why: &str, causes: Vec<Cause>) -> Self {
        Self::new(
            403,
            "Forbidden",
            format!("{} \"{name}\" is forbidden: {why}", kind.qualified()),
        )
        .with_details(Details {
            causes,
            ..details_of(name, kind.group, kind.plural)
        })
    }

    /// 403: nothing new comes into a namespace that ends.
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

    /// 409: the name is taken.
    pub fn already_exists(kind: &ApiResource, name: &str) -> Self {
        Self::new(
            409,
            "AlreadyExists",
            format!("{} \"{name}\" already exists", kind.qualified()),
        )
        .with_details(details_of(name, kind.group, kind.plural))
    }

    /// 409: every name made of the prefix was taken.
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
            ..details_of(name, kind.group, kind.plural)
        })
    }

    /// 409: the object is another one than the writer thinks; named by its resource.
    pub fn conflict(kind: &ApiResource, name: &str, why: &str) -> Self {
        Self::new(
            409,
            "Conflict",
            format!(
                "Operation cannot be fulfilled on {} \"{name}\": {why}",
                kind.qualified()
            ),
        )
        .with_details(details_of(name, kind.group, kind.plural))
    }

    /// 429: a budget protects the pod; to be asked again after so many seconds, 0: nobody knows when.
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

    /// 403: a budget that counts no more.
    pub fn budget_forbidden(name: &str, why: &str) -> Self {
        let message = format!("poddisruptionbudget.policy \"{name}\" is forbidden: {why}");
        Self::new(403, "Forbidden", message).with_details(details_of(name, "policy", "poddisruptionbudget"))
    }

    /// 409: the pod cannot be placed on a node.
    pub fn not_bound(kind: &ApiResource, name: &str, why: &str) -> Self {
        let part = format!("{}/binding", kind.plural);
        let message = format!("Operation cannot be fulfilled on {part} \"{name}\": pod {name} {why}");
        Self::new(409, "Conflict", message).with_details(details_of(name, kind.group, &part))
    }

    /// 501: what a server lists, and this one has nothing to serve it with. `what` is the resource or part.
    pub fn not_served(what: &str) -> Self {
        let message = format!(
            "{what} is listed, as on every server, and not served here: it needs a kubelet or another \
             component of a cluster, and there is none"
        );
        Self::new(501, "", message).with_details(Details::default())
    }

    /// 409: server-side apply of what others own.
    pub fn apply_conflict(message: &str, causes: Vec<Cause>) -> Self {
        Self::new(409, "Conflict", message).with_details(Details {
            causes,
            ..Details::default()
        })
    }

    /// 409: a deletion means another object; named by its Kind.
    pub fn precondition_failed(kind: &ApiResource, name: &str, why: &str) -> Self {
        let what = if kind.group.is_empty() {
            kind.kind.to_owned()
        } else {
            format!("{}.{}", kind.kind, kind.group)
        };
        Self::new(
            409,
            "Conflict",
            format!("Operation cannot be fulfilled on {what} \"{name}\": {why}"),
        )
        .with_details(details_of(name, kind.group, kind.kind))
    }

    /// 413: more than the server reads, or than a patch may have.
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

    /// 415 of the handler: a body in a format that is not among `accepted`.
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

    /// 415 of the router, before any handler.
    pub fn unrouted_format() -> Self {
        Self::new(415, "UnsupportedMediaType", "415: Unsupported Media Type").with_details(Details::default())
    }

    /// 422: a JSON patch that cannot be carried out.
    pub fn patch_failed() -> Self {
        Self::new(
            422,
            "Invalid",
            "the server rejected our request due to an error in our request",
        )
        .with_details(Details::default())
    }

    /// 500: a new object cannot have a version.
    pub fn version_of_new_object() -> Self {
        Self::new(
            500,
            "",
            "resourceVersion should not be set on objects to be created",
        )
    }

    /// The body that tells of a deletion: a Status with `status: Success`, without newline.
    pub fn deleted(kind: &ApiResource, name: &str, uid: &str) -> Vec<u8> {
        encode_json(&serde_json::json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Success",
            "details": Details { uid: uid.to_owned(), ..details_of(name, kind.group, kind.plural) },
        }))
    }

    /// 404: no such object. What is not stored is called by its singular.
    pub fn not_found(kind: &ApiResource, name: &str) -> Self {
        if !kind.is_stored() {
            let message = format!("{} \"{name}\" not found", kind.singular);
            return Self::new(404, "NotFound", message).with_details(details_of(
                name,
                kind.group,
                kind.singular,
            ));
        }
        Self::new(
            404,
            "NotFound",
            format!("{} \"{name}\" not found", kind.qualified()),
        )
        .with_details(details_of(name, kind.group, kind.plural))
    }

    /// 404: a path that leads nowhere, below a group the apiserver itself serves.
    pub fn unknown_path() -> Self {
        Self::new(
            404,
            "NotFound",
            "the server could not find the requested resource",
        )
        .with_details(Details::default())
    }

    /// 405: a verb that the resource has not.
    pub fn not_supported(kind: &ApiResource, verb: &str) -> Self {
        let message = format!(
            "{verb} is not supported on resources of kind \"{}\"",
            kind.qualified()
        );
        Self::new(405, "MethodNotAllowed", message).with_details(details_of("", kind.group, kind.plural))
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

    /// 406 of the router, before any handler: no type asked for is among those of the route. A route of a collection
    /// has those of a watch too.
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

    /// 406 of the handler: nothing asked for is among `accepted`.
    pub fn not_acceptable(accepted: &[&str]) -> Self {
        Self::wrong_form(format!(
            "only the following media types are accepted: {}",
            accepted.join(", ")
        ))
    }

    /// 406: a list was asked for in the form of one object (`go_type` is the list's), or the other way round.
    pub fn wrong_form(message: impl Into<String>) -> Self {
        Self::new(406, "NotAcceptable", message)
    }

    /// 500: what no handler of a real server expects, and so says as it is.
    pub fn unexplained(message: impl Into<String>) -> Self {
        Self::new(500, "", message)
    }

    /// 503: nothing is there to pass a request on to.
    pub fn unavailable(message: String) -> Self {
        Self::new(503, "ServiceUnavailable", message)
    }

    /// 500: something inside is not as it must be.
    pub fn internal_error(why: &str) -> Self {
        Self::new(500, "InternalError", format!("Internal error occurred: {why}")).with_details(Details {
            causes: vec![Cause {
                message: why.to_owned(),
                ..Cause::default()
            }],
            ..Details::default()
        })
    }

    /// The JSON, without newline: what stands in an ERROR event.
    pub fn encode(&self) -> Vec<u8> {
        encode_json(&self.wire())
    }

    /// The body, with its newline.
    pub fn to_bytes(&self) -> Bytes {
        let mut body = self.encode();
        body.push(b'\n');
        body.into()
    }

    /// As JSON value, in the order of the wire.
    pub fn to_json(&self) -> Value {
        serde_json::to_value(self.wire()).expect("a struct of strings and numbers is a JSON value")
    }

    /// 401: a user that is not known.
    pub fn unauthorized() -> Self {
        Self {
            code: 401,
            reason: "Unauthorized".to_owned(),
            message: "Unauthorized".to_owned(),
            ..Self::default()
        }
    }

    /// 403: this user has no right to this. `resource` is empty for a path that names none.
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

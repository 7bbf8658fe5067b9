//! Writes as they are asked for: a method, options and a body become a typed [`WriteRequest`], or the refusal that needs
//! no look at the store.
//!
//! Source: apiserver `endpoints/handlers/{create,update,patch,delete}.go`; "Dry-run", "Field validation" and "Resource
//! deletion" in the API concepts page; RFC 6902 and RFC 7386 for patches.

use http::Method;
use serde_json::Value;

use crate::model::catalog::Deletion;
use crate::scenario::Version;

use super::accept::{self, Shape};
use super::body;
use super::go_text;
use super::options::truthy;
use super::request::{Collection, Form, ListRequest, Request};
use super::status::{Cause, Status};
use super::{HttpRequest, check_timeout, query_pairs, read_collection};

/// Operations a JSON patch may have (apiserver `maxJSONPatchOperations`).
const PATCH_OPERATIONS_MAX: usize = 10_000;

/// A write whose form is legal. Whether it may be done, the store decides.
#[derive(Debug, Clone)]
pub struct WriteRequest {
    /// Where it is done.
    pub collection: Collection,
    /// What is done.
    pub action: WriteAction,
    /// `dryRun=All`: answer as if, and store nothing.
    pub dry_run: bool,
    /// How much of the object is answered.
    pub form: Form,
    /// What is told in `Warning` headers.
    pub warnings: Vec<String>,
}

/// What a write does.
#[derive(Debug, Clone)]
pub enum WriteAction {
    /// POST.
    Create {
        /// The body.
        object: Value,
    },
    /// PUT.
    Update {
        /// The name in the path.
        name: String,
        /// The part of the object it is about.
        subresource: Option<Subresource>,
        /// The body.
        object: Value,
    },
    /// PATCH.
    Patch {
        /// The name in the path.
        name: String,
        /// The part of the object it is about.
        subresource: Option<Subresource>,
        /// The body.
        patch: Patch,
        /// What becomes of fields that nobody knows.
        validation: FieldValidation,
    },
    /// DELETE of one object.
    Delete {
        /// The name in the path.
        name: String,
        /// How.
        options: DeleteOptions,
    },
    /// DELETE of what a LIST would give.
    DeleteCollection {
        /// That LIST.
        list: Box<ListRequest>,
        /// How.
        options: DeleteOptions,
    },
}

/// A part of an object with a path of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subresource {
    /// `status`.
    Status,
    /// `finalize`: what a namespace waits for before it goes.
    Finalize,
}

/// A patch.
#[derive(Debug, Clone)]
pub enum Patch {
    /// JSON Merge Patch (RFC 7386).
    Merge(Value),
    /// JSON Patch (RFC 6902).
    Json(json_patch::Patch),
}

/// `fieldValidation`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldValidation {
    /// Unknown fields are dropped.
    Ignore,
    /// Dropped, and told in a `Warning` header.
    Warn,
    /// Refused.
    Strict,
}

/// `DeleteOptions`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeleteOptions {
    /// `gracePeriodSeconds`.
    pub grace_period_seconds: Option<i64>,
    /// `preconditions.uid`.
    pub uid: Option<String>,
    /// `preconditions.resourceVersion`.
    pub resource_version: Option<String>,
    /// `propagationPolicy`, or what `orphanDependents` says of it.
    pub propagation: Option<Propagation>,
    /// `orphanDependents: false`: the deletion of what cannot go at once is only accepted (202).
    pub accepted_only: bool,
}

/// `propagationPolicy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Propagation {
    /// Dependents go first.
    Foreground,
    /// Dependents go later.
    Background,
    /// Dependents stay.
    Orphan,
}

/// What a path names, as far as a write cares.
pub(super) struct Place {
    pub(super) collection: Collection,
    /// `None`: the collection itself.
    pub(super) name: Option<String>,
    pub(super) subresource: Option<Subresource>,
}

/// Reads a write.
///
/// # Errors
/// 400, 405, 413, 415 and 422 in the order of the handlers of each method.
pub(super) fn parse(request: &HttpRequest, place: Place, version: Version) -> Result<WriteRequest, Status> {
    let kind = place.collection.kind;
    // A namespaced kind is written in its namespace, never across all.
    let placed = place.collection.namespace.is_some() || !kind.namespaced;
    let Place {
        collection,
        name,
        subresource,
    } = place;
    let options = Options::read(request);
    match (name, request.method.clone()) {
        (None, Method::POST) if placed => create(request, collection, &options, version),
        (None, Method::DELETE) if placed && kind.deletion != Deletion::WhenEmpty => {
            delete_collection(request, collection, &options, version)
        }
        (None, Method::PUT | Method::PATCH) if kind.custom => {
            Err(Status::bad_request("name must be provided"))
        }
        (Some(name), Method::PUT) => update(request, collection, name, subresource, &options, version),
        (Some(name), Method::PATCH) if subresource != Some(Subresource::Finalize) => {
            patch(request, collection, name, subresource, &options, version)
        }
        (Some(name), Method::DELETE) if subresource.is_none() => {
            delete(request, collection, name, &options, version)
        }
        (_, _) => Err(Status::method_not_allowed()),
    }
}

fn create(
    request: &HttpRequest,
    collection: Collection,
    options: &Options,
    version: Version,
) -> Result<WriteRequest, Status> {
    check_timeout(&options.query)?;
    let form = accept::form(request.header("accept"), Shape::Object, collection.kind)?;
    bounded(request)?;
    let media_type = body::media_type(request, collection.kind)?;
    let validation = options.check("CreateOptions", version)?;
    let (object, warnings) = body::object(&request.body, media_type, collection.kind, validation)?;
    check_namespace(&object, &collection)?;
    Ok(WriteRequest {
        collection,
        action: WriteAction::Create { object },
        dry_run: options.dry_run(),
        form,
        warnings,
    })
}

fn update(
    request: &HttpRequest,
    collection: Collection,
    name: String,
    subresource: Option<Subresource>,
    options: &Options,
    version: Version,
) -> Result<WriteRequest, Status> {
    check_timeout(&options.query)?;
    let form = accept::form(request.header("accept"), Shape::Object, collection.kind)?;
    bounded(request)?;
    let media_type = body::media_type(request, collection.kind)?;
    let validation = options.check("UpdateOptions", version)?;
    let (object, warnings) = body::object(&request.body, media_type, collection.kind, validation)?;
    check_namespace(&object, &collection)?;
    check_name(&object, &name)?;
    Ok(WriteRequest {
        collection,
        action: WriteAction::Update {
            name,
            subresource,
            object,
        },
        dry_run: options.dry_run(),
        form,
        warnings,
    })
}

fn patch(
    request: &HttpRequest,
    collection: Collection,
    name: String,
    subresource: Option<Subresource>,
    options: &Options,
    version: Version,
) -> Result<WriteRequest, Status> {
    check_timeout(&options.query)?;
    let media_type = body::content_type(request).unwrap_or_default();
    let apply = media_type == APPLY_YAML;
    match (media_type.as_str(), collection.kind.custom) {
        (JSON_PATCH | MERGE_PATCH, _) | (STRATEGIC_PATCH, false) | (APPLY_YAML, _) => {}
        (_, false) => return Err(Status::unrouted_format()),
        (_, true) => return Err(Status::unknown_format(&[JSON_PATCH, MERGE_PATCH, APPLY_YAML])),
    }
    let form = accept::form(request.header("accept"), Shape::Object, collection.kind)?;
    bounded(request)?;
    let mut faults = options.faults(version);
    let force = options.first("force").is_some_and(truthy);
    match (apply, options.first("fieldManager").unwrap_or_default()) {
        (true, "") => faults.push(Cause {
            reason: "FieldValueRequired".to_owned(),
            message: "Required value: is required for apply patch".to_owned(),
            field: "fieldManager".to_owned(),
        }),
        (false, _) if force => faults.push(Cause {
            reason: "FieldValueForbidden".to_owned(),
            message: "Forbidden: may not be specified for non-apply patch".to_owned(),
            field: "force".to_owned(),
        }),
        (_, _) => {}
    }
    if !faults.is_empty() {
        return Err(Status::invalid_options("PatchOptions", &faults));
    }
    let patch = match media_type.as_str() {
        JSON_PATCH => Patch::Json(json_patch_of(&request.body)?),
        MERGE_PATCH => Patch::Merge(merge_patch_of(&request.body)?),
        // Field ownership and merge keys are not known here, and a guess would be a lie.
        _ => return Err(Status::unknown_format(&[JSON_PATCH, MERGE_PATCH])),
    };
    Ok(WriteRequest {
        collection,
        action: WriteAction::Patch {
            name,
            subresource,
            patch,
            validation: options.validation().unwrap_or(FieldValidation::Warn),
        },
        dry_run: options.dry_run(),
        form,
        warnings: Vec::new(),
    })
}

fn json_patch_of(body: &[u8]) -> Result<json_patch::Patch, Status> {
    let operations: Vec<Value> = match serde_json::from_slice::<Value>(body) {
        Ok(Value::Array(operations)) => operations,
        Ok(_) => {
            return Err(Status::bad_request(
                "error decoding patch: json: cannot unmarshal object into Go value of type jsonpatch.Patch",
            ));
        }
        Err(error) => {
            return Err(Status::bad_request(format!(
                "error decoding patch: {}",
                go_text::json_error(body, &error)
            )));
        }
    };
    if operations.len() > PATCH_OPERATIONS_MAX {
        return Err(Status::too_large_entity(&format!(
            "The allowed maximum operations in a JSON patch is {PATCH_OPERATIONS_MAX}, got {}",
            operations.len()
        )));
    }
    // An operation nobody knows is refused when it is carried out, as one that fails.
    serde_json::from_value(Value::Array(operations)).map_err(|_| Status::patch_failed())
}

fn merge_patch_of(body: &[u8]) -> Result<Value, Status> {
    match serde_json::from_slice(body) {
        Ok(patch @ Value::Object(_)) => Ok(patch),
        Ok(_) => Err(Status::bad_request("error decoding patch: Invalid JSON Patch")),
        Err(error) => Err(Status::bad_request(format!(
            "error decoding patch: {}",
            go_text::json_error(body, &error)
        ))),
    }
}

fn delete(
    request: &HttpRequest,
    collection: Collection,
    name: String,
    options: &Options,
    version: Version,
) -> Result<WriteRequest, Status> {
    check_timeout(&options.query)?;
    let form = accept::form(request.header("accept"), Shape::Object, collection.kind)?;
    let (how, dry_run) = delete_options(request, options, version)?;
    Ok(WriteRequest {
        collection,
        action: WriteAction::Delete { name, options: how },
        dry_run,
        form,
        warnings: Vec::new(),
    })
}

fn delete_collection(
    request: &HttpRequest,
    collection: Collection,
    options: &Options,
    version: Version,
) -> Result<WriteRequest, Status> {
    let read = read_collection(request, collection.clone(), false, None, version)?;
    let Request::List(list) = read else {
        return Err(Status::method_not_allowed());
    };
    let (how, dry_run) = delete_options(request, options, version)?;
    Ok(WriteRequest {
        collection,
        form: list.form,
        action: WriteAction::DeleteCollection {
            list: Box::new(list),
            options: how,
        },
        dry_run,
        warnings: Vec::new(),
    })
}

/// From the body, or from the query where there is no body; and whether it is a dry run.
fn delete_options(
    request: &HttpRequest,
    options: &Options,
    version: Version,
) -> Result<(DeleteOptions, bool), Status> {
    bounded(request)?;
    let body = if request.body.is_empty() {
        options.as_delete_options()?
    } else {
        body::delete_options(request)?
    };
    let mut faults = dry_run_faults(&body_dry_run(&body), version);
    let orphan = body["orphanDependents"].as_bool();
    let policy = body["propagationPolicy"].as_str();
    let propagation = match (policy, orphan) {
        (Some(policy), Some(_)) => {
            faults.push(Cause {
                reason: "FieldValueInvalid".to_owned(),
                message: format!(
                    "Invalid value: {}: orphanDependents and deletionPropagation cannot be both set",
                    go_text::quote(policy)
                ),
                field: "propagationPolicy".to_owned(),
            });
            None
        }
        (Some("Foreground"), None) => Some(Propagation::Foreground),
        (Some("Background"), None) => Some(Propagation::Background),
        (Some("Orphan"), None) | (None, Some(true)) => Some(Propagation::Orphan),
        (Some(other), None) => {
            faults.push(Cause {
                reason: "FieldValueNotSupported".to_owned(),
                message: format!(
                    "Unsupported value: {}: supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\"",
                    go_text::quote(other)
                ),
                field: "propagationPolicy".to_owned(),
            });
            None
        }
        (None, Some(false)) => Some(Propagation::Background),
        (None, None) => None,
    };
    if !faults.is_empty() {
        return Err(Status::invalid_options("DeleteOptions", &faults));
    }
    let text = |pointer: &str| body.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    let how = DeleteOptions {
        grace_period_seconds: body["gracePeriodSeconds"].as_i64(),
        uid: text("/preconditions/uid"),
        resource_version: text("/preconditions/resourceVersion"),
        propagation,
        accepted_only: orphan == Some(false),
    };
    Ok((how, !body_dry_run(&body).is_empty()))
}

fn body_dry_run(body: &Value) -> Vec<String> {
    let values = body["dryRun"].as_array().into_iter().flatten();
    values
        .map(|value| value.as_str().unwrap_or_default().to_owned())
        .collect()
}

const JSON_PATCH: &str = "application/json-patch+json";
const MERGE_PATCH: &str = "application/merge-patch+json";
const STRATEGIC_PATCH: &str = "application/strategic-merge-patch+json";
const APPLY_YAML: &str = "application/apply-patch+yaml";

/// What the query says of a write.
struct Options {
    query: Vec<(String, String)>,
}

impl Options {
    fn read(request: &HttpRequest) -> Self {
        Self {
            query: query_pairs(&request.query),
        }
    }

    fn first(&self, name: &str) -> Option<&str> {
        self.query
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }

    fn all(&self, name: &str) -> Vec<String> {
        let of_name = self.query.iter().filter(|(key, _)| key == name);
        of_name.map(|(_, value)| value.clone()).collect()
    }

    fn dry_run(&self) -> bool {
        !self.all("dryRun").is_empty()
    }

    fn validation(&self) -> Option<FieldValidation> {
        match self.first("fieldValidation").unwrap_or_default() {
            "" | "Warn" => Some(FieldValidation::Warn),
            "Ignore" => Some(FieldValidation::Ignore),
            "Strict" => Some(FieldValidation::Strict),
            _ => None,
        }
    }

    fn faults(&self, version: Version) -> Vec<Cause> {
        let mut faults = dry_run_faults(&self.all("dryRun"), version);
        if self.validation().is_none() {
            faults.push(Cause {
                reason: "FieldValueNotSupported".to_owned(),
                message: format!(
                    "Unsupported value: {}: supported values: \"\", \"Ignore\", \"Strict\", \"Warn\"",
                    go_text::quote(self.first("fieldValidation").unwrap_or_default())
                ),
                field: "fieldValidation".to_owned(),
            });
        }
        faults
    }

    fn check(&self, kind: &str, version: Version) -> Result<FieldValidation, Status> {
        let faults = self.faults(version);
        match self.validation() {
            Some(validation) if faults.is_empty() => Ok(validation),
            Some(_) | None => Err(Status::invalid_options(kind, &faults)),
        }
    }

    /// The options of a deletion as their body would have them.
    fn as_delete_options(&self) -> Result<Value, Status> {
        let mut body = serde_json::json!({ "dryRun": self.all("dryRun") });
        for name in ["propagationPolicy", "orphanDependents", "gracePeriodSeconds"] {
            let Some(value) = self.first(name) else { continue };
            body[name] = match name {
                "propagationPolicy" => value.into(),
                "orphanDependents" => truthy(value).into(),
                _ => go_text::parse_int(value).map_err(Status::bad_request)?.into(),
            };
        }
        for name in ["uid", "resourceVersion"] {
            if let Some(value) = self.first(name) {
                body["preconditions"][name] = value.into();
            }
        }
        Ok(body)
    }
}

/// Only `All` is known. Before 1.34 lists are shown the Go way.
fn dry_run_faults(values: &[String], version: Version) -> Vec<Cause> {
    if values.iter().all(|value| value == "All") {
        return Vec::new();
    }
    let quoted: Vec<String> = values.iter().map(|value| go_text::quote(value)).collect();
    let shown = if version == Version::V1_33 {
        format!("[]string{{{}}}", quoted.join(", "))
    } else {
        format!("[{}]", quoted.join(","))
    };
    vec![Cause {
        reason: "FieldValueNotSupported".to_owned(),
        message: format!("Unsupported value: {shown}: supported values: \"All\""),
        field: "dryRun".to_owned(),
    }]
}

fn bounded(request: &HttpRequest) -> Result<(), Status> {
    if request.body.len() > super::BODY_BYTES_MAX {
        return Err(Status::too_large_body());
    }
    Ok(())
}

/// A body may leave its namespace out, and must not name another one.
fn check_namespace(object: &Value, collection: &Collection) -> Result<(), Status> {
    let sent = text(object, "namespace");
    if sent.is_empty() || sent == collection.namespace.as_deref().unwrap_or_default() {
        Ok(())
    } else {
        Err(Status::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ))
    }
}

/// An object must have the name it is written under.
///
/// # Errors
/// 400.
pub(crate) fn check_name(object: &Value, name: &str) -> Result<(), Status> {
    match text(object, "name") {
        sent if sent == name => Ok(()),
        "" => Err(Status::bad_request(
            "the name of the object (based on URL) was undeterminable: name must be provided",
        )),
        sent => Err(Status::bad_request(format!(
            "the name of the object ({sent}) does not match the name on the URL ({name})"
        ))),
    }
}

fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object["metadata"][field].as_str().unwrap_or_default()
}

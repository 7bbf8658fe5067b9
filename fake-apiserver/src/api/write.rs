//! Parsing of writes: method, options and body become a typed [`WriteRequest`], or an error that needs no read of the store.
//!
//! Source: apiserver `endpoints/handlers/{create,update,patch,delete}.go`; "Dry-run", "Field validation" and "Resource
//! deletion" in the API concepts page; RFC 6902 and RFC 7386 for patches.

use apimachinery::kind::{ApiResource, Deletion, KindRef, Review};
use apimachinery::object::metadata_text as text;
use apimachinery::options::{Collection, ListRequest, Representation};
use apimachinery::status::Status;
use apimachinery::write::{FieldValidation, Patch, Subresource};
use builtin_kinds::catalog;
use http::Method;
use serde_json::Value;

use super::accept::{self, Shape};
use super::options::truthy;
use super::request::{Request, ReviewRequest};
use super::{HttpRequest, body, read_collection};

mod deletion;
mod options;
mod patch;
mod posted;

pub(crate) use deletion::check as check_options;
pub use deletion::{DeleteOptions, Propagation};
use options::{MANAGER_BYTES_MAX, Options};
use patch::Format;

/// A well-formed write. The store decides whether it succeeds.
#[derive(Debug, Clone)]
pub struct WriteRequest {
    /// Collection of the object.
    pub collection: Collection,
    /// Type of the write.
    pub action: WriteAction,
    /// `dryRun=All`: the response without the write.
    pub dry_run: bool,
    /// Representation of the object in the response.
    pub form: Representation,
    /// Field manager: `fieldManager`, or the name of the program.
    pub manager: String,
    /// Texts of `Warning` headers.
    pub warnings: Vec<String>,
    /// Its options except `dryRun`, as admission shows them.
    pub options: ShownOptions,
}

/// Options by name, in the order of the wire.
pub type ShownOptions = Vec<(&'static str, Value)>;

/// Type of a write.
#[derive(Debug, Clone)]
pub enum WriteAction {
    /// POST.
    Create {
        /// Body of the request.
        object: Value,
    },
    /// PUT.
    Update {
        /// Name in the path.
        name: String,
        /// Subresource in the path.
        subresource: Option<Subresource>,
        /// Body of the request.
        object: Value,
    },
    /// PATCH.
    Patch {
        /// Name in the path.
        name: String,
        /// Subresource in the path.
        subresource: Option<Subresource>,
        /// Body of the request.
        patch: Patch,
        /// Duplicate fields of the body: `duplicate field "spec.x"`.
        duplicates: Vec<String>,
        /// Handling of unknown fields.
        validation: FieldValidation,
    },
    /// PATCH: server-side apply.
    Apply {
        /// Name in the path.
        name: String,
        /// Subresource in the path.
        subresource: Option<Subresource>,
        /// Applied configuration.
        config: Value,
        /// Whether to take over the fields of other managers.
        force: bool,
    },
    /// DELETE of one object.
    Delete {
        /// Name in the path.
        name: String,
        /// Options of the deletion.
        options: DeleteOptions,
    },
    /// POST of a binding: sets the node of a pod.
    Bind {
        /// Name in the path.
        name: String,
        /// Body of the request.
        binding: Box<Value>,
        /// Resource of the POST: pods, or bindings.
        resource: KindRef,
    },
    /// POST of an eviction: a deletion that disruption budgets can forbid.
    Evict {
        /// Name in the path.
        name: String,
        /// Body of the request.
        eviction: Box<Value>,
        /// Options of the deletion.
        options: DeleteOptions,
    },
    /// DELETE of the objects of a LIST.
    DeleteCollection {
        /// The LIST.
        list: Box<ListRequest>,
        /// Options of the deletion.
        options: DeleteOptions,
    },
}

impl WriteAction {
    /// Name of the object that it changes; `None`: it creates one, or deletes several.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Create { .. } | Self::DeleteCollection { .. } => None,
            Self::Update { name, .. }
            | Self::Patch { name, .. }
            | Self::Apply { name, .. }
            | Self::Delete { name, .. }
            | Self::Bind { name, .. }
            | Self::Evict { name, .. } => Some(name),
        }
    }
}

/// Target of a path, for a write.
pub(super) struct WriteTarget {
    pub(super) collection: Collection,
    /// Name of the object; `None`: the collection.
    pub(super) name: Option<String>,
    pub(super) subresource: Option<Subresource>,
}

/// Parses a write.
///
/// # Errors
///
/// 400, 405, 413, 415 and 422, in the order of the handlers of each method.
pub(super) fn parse(request: &HttpRequest, place: WriteTarget) -> Result<WriteRequest, Status> {
    let WriteTarget {
        collection,
        name,
        subresource,
    } = place;
    let kind = collection.kind.clone();
    // A namespaced kind can only be written in a namespace.
    let placed = collection.namespace.is_some() || !kind.namespaced;
    let asked = Asked {
        request,
        collection,
        options: Options::read(request),
    };
    match (name, request.method.clone()) {
        (None, Method::POST) if placed => asked.create(),
        (None, Method::DELETE) if placed && kind.deletion != Deletion::WhenEmpty => asked.delete_collection(),
        (None, Method::PUT | Method::PATCH) if kind.custom => {
            Err(Status::bad_request("name must be provided"))
        }
        (Some(name), Method::PUT) => asked.update(name, subresource),
        (Some(name), Method::PATCH) if subresource != Some(Subresource::Finalize) => {
            asked.patch(name, subresource)
        }
        (Some(name), Method::DELETE) if subresource.is_none() => asked.delete(name),
        // The handler of custom resources ignores the name in the path.
        (Some(_), Method::POST) if kind.custom && subresource.is_none() => asked.create(),
        (_, method) if kind.custom => Err(Status::not_supported(&kind, super::verb(&method, false))),
        (_, _) => Err(Status::method_not_allowed()),
    }
}

/// Parses a POST to a subresource of a pod; `None`: it does not support POST. Without a name in the path, the body has it.
///
/// # Errors
///
/// Those of a create.
pub(super) fn parse_posted(
    request: &HttpRequest,
    collection: Collection,
    name: Option<&str>,
    part: &str,
) -> Result<Option<WriteRequest>, Status> {
    let Some(kind) = posted::kind(part) else {
        return Ok(None);
    };
    let asked = Asked {
        request,
        collection,
        options: Options::read(request),
    };
    let (object, form, warnings) = asked.object("CreateOptions", &kind)?;
    let resource = if name.is_some() {
        asked.collection.kind.clone()
    } else {
        kind.clone()
    };
    let name = name.unwrap_or_else(|| text(&object, "name")).to_owned();
    let (action, dry_run) = posted::action(&kind, object, name, resource);
    let mut write = asked.into_write(action, form, warnings);
    write.dry_run |= dry_run;
    Ok(Some(write))
}

/// Parses a review: a create that stores nothing.
///
/// # Errors
///
/// Those of a create; 406 for a table.
pub(super) fn parse_review(
    request: &HttpRequest,
    review: Review,
    (collection, name): (Collection, String),
) -> Result<ReviewRequest, Status> {
    let asked = Asked {
        request,
        collection,
        options: Options::read(request),
    };
    let (object, form, warnings) = asked.object("CreateOptions", &asked.collection.kind)?;
    if matches!(form, Representation::Table(_)) {
        return Err(accept::no_table());
    }
    Ok(ReviewRequest {
        review,
        manager: asked.manager(),
        collection: asked.collection,
        name,
        object,
        form,
        warnings,
    })
}

/// A write that is being parsed.
struct Asked<'a> {
    request: &'a HttpRequest,
    collection: Collection,
    options: Options<'a>,
}

impl Asked<'_> {
    fn create(self) -> Result<WriteRequest, Status> {
        let (object, form, warnings) = self.object("CreateOptions", &self.collection.kind)?;
        Ok(self.into_write(WriteAction::Create { object }, form, warnings))
    }

    fn update(self, name: String, subresource: Option<Subresource>) -> Result<WriteRequest, Status> {
        let of = self.written(subresource).kind;
        let (object, form, warnings) = self.object("UpdateOptions", &of)?;
        check_name(&object, &name)?;
        let action = WriteAction::Update {
            name,
            subresource,
            object,
        };
        Ok(self.into_write(action, form, warnings))
    }

    fn patch(self, name: String, subresource: Option<Subresource>) -> Result<WriteRequest, Status> {
        let format = patch::format(self.request, &self.collection.kind)?;
        let form = self.form()?;
        bounded(self.request)?;
        patch::check_options(format, &self.options)?;
        let mut warnings = Vec::new();
        let action = match format {
            Format::Apply => {
                let validation = self.options.validation().unwrap_or(FieldValidation::Warn);
                let (config, twice) =
                    patch::config(&self.request.body, &self.written(subresource), validation)?;
                warnings = twice;
                WriteAction::Apply {
                    config,
                    name,
                    subresource,
                    force: self.options.first("force").is_some_and(truthy),
                }
            }
            Format::Json => self.change(name, subresource, patch::operations(&self.request.body)?),
            Format::Merge => self.change(name, subresource, patch::merge(&self.request.body)?),
            Format::Strategic => self.change(name, subresource, patch::strategic(&self.request.body)?),
        };
        Ok(self.into_write(action, form, warnings))
    }

    /// Returns the collection of the subresource's bodies.
    fn written(&self, subresource: Option<Subresource>) -> Collection {
        let kind = match subresource {
            Some(Subresource::Scale) => catalog::scale(),
            None
            | Some(
                Subresource::Status
                | Subresource::Finalize
                | Subresource::EphemeralContainers
                | Subresource::Resize,
            ) => self.collection.kind.clone(),
        };
        Collection {
            kind,
            namespace: self.collection.namespace.clone(),
        }
    }

    fn change(&self, name: String, subresource: Option<Subresource>, patch: Patch) -> WriteAction {
        WriteAction::Patch {
            name,
            subresource,
            duplicates: patch::duplicates(&patch, &self.request.body),
            patch,
            validation: self.options.validation().unwrap_or(FieldValidation::Warn),
        }
    }

    fn delete(self, name: String) -> Result<WriteRequest, Status> {
        let form = self.form()?;
        let (how, dry_run, options) = deletion::read(self.request, &self.options)?;
        let action = WriteAction::Delete { name, options: how };
        Ok(WriteRequest {
            dry_run,
            options,
            ..self.into_write(action, form, Vec::new())
        })
    }

    fn delete_collection(self) -> Result<WriteRequest, Status> {
        let read = read_collection(self.request, self.collection.clone(), false, None, true)?;
        let Request::List(list) = read else {
            return Err(Status::method_not_allowed());
        };
        let (how, dry_run, options) = deletion::read(self.request, &self.options)?;
        let form = list.form;
        let list = Box::new(list);
        let action = WriteAction::DeleteCollection { list, options: how };
        Ok(WriteRequest {
            dry_run,
            options,
            ..self.into_write(action, form, Vec::new())
        })
    }

    /// Returns the object of a create or update, the representation of the response, and warnings. `options` is the kind of
    /// its options.
    fn object(
        &self,
        options: &str,
        kind: &ApiResource,
    ) -> Result<(Value, Representation, Vec<String>), Status> {
        let form = self.form()?;
        bounded(self.request)?;
        let media_type = body::media_type(self.request, kind)?;
        let validation = self.options.check(options)?;
        let (object, warnings) = body::object(&self.request.body, media_type, kind, validation)?;
        check_namespace(&object, &self.collection)?;
        Ok((object, form, warnings))
    }

    fn form(&self) -> Result<Representation, Status> {
        accept::form(self.request, Shape::Object, &self.collection.kind)
    }

    /// Returns the field manager.
    fn manager(&self) -> String {
        let manager = self
            .options
            .first("fieldManager")
            .filter(|manager| !manager.is_empty());
        match manager {
            Some(manager) => manager.to_owned(),
            None => program(self.request.header(http::header::USER_AGENT).unwrap_or_default()),
        }
    }

    fn into_write(self, action: WriteAction, form: Representation, warnings: Vec<String>) -> WriteRequest {
        let given = ["fieldManager", "fieldValidation"]
            .into_iter()
            .filter_map(|name| {
                let value = self.options.first(name).filter(|value| !value.is_empty())?;
                Some((name, value.into()))
            });
        WriteRequest {
            options: given.collect(),
            dry_run: self.options.dry_run(),
            manager: self.manager(),
            collection: self.collection,
            action,
            form,
            warnings,
        }
    }
}

/// The field manager of a request without `fieldManager`: the printable characters of the `User-Agent` before its first
/// slash, as many as fit; `unknown` if there are none (apiserver `endpoints/handlers/create.go`, `prefixFromUserAgent`).
fn program(agent: &str) -> String {
    let mut program = String::new();
    let named = agent.split('/').next().unwrap_or_default();
    for character in named.chars().filter(|character| !character.is_control()) {
        if program.len() + character.len_utf8() > MANAGER_BYTES_MAX {
            break;
        }
        program.push(character);
    }
    if program.is_empty() {
        program.push_str("unknown");
    }
    program
}

fn bounded(request: &HttpRequest) -> Result<(), Status> {
    if request.body.len() > apimachinery::BODY_BYTES_MAX {
        return Err(Status::too_large_body());
    }
    Ok(())
}

/// Checks the namespace in a body, which may be absent, but must not be another one. For a cluster-scoped kind it is ignored.
///
/// # Errors
///
/// 400.
pub(crate) fn check_namespace(object: &Value, collection: &Collection) -> Result<(), Status> {
    match (text(object, "namespace"), collection.namespace.as_deref()) {
        ("", _) | (_, None) => Ok(()),
        (sent, Some(namespace)) if sent == namespace => Ok(()),
        (_, Some(_)) => Err(Status::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        )),
    }
}

/// Checks that an object has the name in the path.
///
/// # Errors
///
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

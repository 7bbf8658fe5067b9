//! Writes as they are asked for: a method, options and a body become a typed [`WriteRequest`], or the refusal that needs
//! no look at the store.
//!
//! Source: apiserver `endpoints/handlers/{create,update,patch,delete}.go`; "Dry-run", "Field validation" and "Resource
//! deletion" in the API concepts page; RFC 6902 and RFC 7386 for patches.

use apimachinery::Version;
use apimachinery::kind::{ApiResource, Deletion, Review};
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

pub use deletion::{DeleteOptions, Propagation};
use options::Options;
use patch::Format;

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
    pub form: Representation,
    /// Who writes: `fieldManager`, or the program's name.
    pub manager: String,
    /// Texts of `Warning` headers.
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
        /// What the body said twice: `duplicate field "spec.x"`.
        duplicates: Vec<String>,
        /// What becomes of fields that nobody knows.
        validation: FieldValidation,
    },
    /// PATCH: server-side apply.
    Apply {
        /// The name in the path.
        name: String,
        /// The part of the object it is about.
        subresource: Option<Subresource>,
        /// What is to be so.
        config: Value,
        /// Whatever others own.
        force: bool,
    },
    /// DELETE of one object.
    Delete {
        /// The name in the path.
        name: String,
        /// How.
        options: DeleteOptions,
    },
    /// POST of a binding: the pod is placed on a node.
    Bind {
        /// The name in the path.
        name: String,
        /// The body.
        binding: Box<Value>,
        /// What it was POSTed to: pods, or bindings.
        resource: &'static ApiResource,
    },
    /// POST of an eviction: a deletion that budgets can forbid.
    Evict {
        /// The name in the path.
        name: String,
        /// The body.
        eviction: Box<Value>,
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
    let Place {
        collection,
        name,
        subresource,
    } = place;
    let kind = collection.kind;
    // A namespaced kind is written in its namespace, never across all.
    let placed = collection.namespace.is_some() || !kind.namespaced;
    let asked = Asked {
        request,
        collection,
        options: Options::read(request),
        version,
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
        (_, _) => Err(Status::method_not_allowed()),
    }
}

/// Reads a POST to a part of a pod; `None`: nothing can be POSTed there. Without a name in the path, the body has it.
///
/// # Errors
/// Those of a creation.
pub(super) fn parse_posted(
    request: &HttpRequest,
    collection: Collection,
    name: Option<&str>,
    part: &str,
    version: Version,
) -> Result<Option<WriteRequest>, Status> {
    let Some(kind) = posted::kind(part) else {
        return Ok(None);
    };
    let asked = Asked {
        request,
        collection,
        options: Options::read(request),
        version,
    };
    let (object, form, warnings) = asked.object("CreateOptions", kind)?;
    let resource = if name.is_some() {
        asked.collection.kind
    } else {
        kind
    };
    let name = name.unwrap_or_else(|| text(&object, "name")).to_owned();
    let (action, dry_run) = posted::action(kind, object, name, resource);
    let mut write = asked.into_write(action, form, warnings);
    write.dry_run |= dry_run;
    Ok(Some(write))
}

/// Reads a review: a creation, but for that nothing comes into being.
///
/// # Errors
/// Those of a creation; 406 for a table, which reviews are not shown in.
pub(super) fn parse_review(
    request: &HttpRequest,
    review: Review,
    (collection, name): (Collection, String),
    version: Version,
) -> Result<ReviewRequest, Status> {
    let asked = Asked {
        request,
        collection,
        options: Options::read(request),
        version,
    };
    let (object, form, warnings) = asked.object("CreateOptions", asked.collection.kind)?;
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

/// A write that is being read.
struct Asked<'a> {
    request: &'a HttpRequest,
    collection: Collection,
    options: Options,
    version: Version,
}

impl Asked<'_> {
    fn create(self) -> Result<WriteRequest, Status> {
        let (object, form, warnings) = self.object("CreateOptions", self.collection.kind)?;
        Ok(self.into_write(WriteAction::Create { object }, form, warnings))
    }

    fn update(self, name: String, subresource: Option<Subresource>) -> Result<WriteRequest, Status> {
        let of = self.written(subresource).kind;
        let (object, form, warnings) = self.object("UpdateOptions", of)?;
        check_name(&object, &name)?;
        let action = WriteAction::Update {
            name,
            subresource,
            object,
        };
        Ok(self.into_write(action, form, warnings))
    }

    fn patch(self, name: String, subresource: Option<Subresource>) -> Result<WriteRequest, Status> {
        let format = patch::format(self.request, self.collection.kind)?;
        let form = self.form()?;
        bounded(self.request)?;
        patch::check_options(format, &self.options, self.version)?;
        let mut warnings = Vec::new();
        let action = match format {
            Format::Apply => {
                let config = patch::config(&self.request.body, &self.written(subresource))?;
                let validation = self.options.validation().unwrap_or(FieldValidation::Warn);
                warnings = patch::duplicate_keys(&self.request.body, validation)?;
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

    /// Where what is written to this part is, in its own kind.
    fn written(&self, subresource: Option<Subresource>) -> Collection {
        let kind = match subresource {
            Some(Subresource::Scale) => catalog::scale(),
            None
            | Some(
                Subresource::Status
                | Subresource::Finalize
                | Subresource::EphemeralContainers
                | Subresource::Resize,
            ) => self.collection.kind,
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
        let (options, dry_run) = deletion::read(self.request, &self.options, self.version)?;
        Ok(WriteRequest {
            dry_run,
            ..self.into_write(WriteAction::Delete { name, options }, form, Vec::new())
        })
    }

    fn delete_collection(self) -> Result<WriteRequest, Status> {
        let read = read_collection(self.request, self.collection.clone(), false, None, self.version)?;
        let Request::List(list) = read else {
            return Err(Status::method_not_allowed());
        };
        let (options, dry_run) = deletion::read(self.request, &self.options, self.version)?;
        let form = list.form;
        let list = Box::new(list);
        Ok(WriteRequest {
            dry_run,
            ..self.into_write(WriteAction::DeleteCollection { list, options }, form, Vec::new())
        })
    }

    /// The object of a create or update, the form of the answer, and what is to be warned of. `options` is the kind of
    /// its options.
    fn object(
        &self,
        options: &str,
        kind: &'static ApiResource,
    ) -> Result<(Value, Representation, Vec<String>), Status> {
        let form = self.form()?;
        bounded(self.request)?;
        let media_type = body::media_type(self.request, kind)?;
        let validation = self.options.check(options, self.version)?;
        let (object, warnings) =
            body::object(&self.request.body, media_type, kind, validation, self.version)?;
        check_namespace(&object, &self.collection)?;
        Ok((object, form, warnings))
    }

    fn form(&self) -> Result<Representation, Status> {
        accept::form(self.request, Shape::Object, self.collection.kind)
    }

    /// Who writes.
    fn manager(&self) -> String {
        let manager = self
            .options
            .first("fieldManager")
            .filter(|manager| !manager.is_empty());
        match manager {
            Some(manager) => manager.to_owned(),
            None => program(self.request.header("user-agent").unwrap_or_default()),
        }
    }

    fn into_write(self, action: WriteAction, form: Representation, warnings: Vec<String>) -> WriteRequest {
        WriteRequest {
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
    const MANAGER_BYTES_MAX: usize = 128;
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

/// A body may leave its namespace out, and must not name another one. Where there is none, what it names does not matter.
///
/// # Errors
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

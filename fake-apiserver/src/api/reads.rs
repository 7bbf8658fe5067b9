//! Reads: the options of a LIST, WATCH or GET are parsed into a valid request, or rejected if they contradict each other.
//!
//! It must not know routing.

use apimachinery::continue_token::ContinueToken;
use apimachinery::go_text;
use apimachinery::kind::ApiResource;
use apimachinery::options::{
    Collection, GetRequest, ListRequest, RequestedVersion, VersionMatch, WatchRequest,
};
use apimachinery::selector::{FieldSelector, LabelSelector, Selector};
use apimachinery::status::Status;

use super::HttpRequest;
use super::accept::{self, Shape};
use super::options::{ListOptions, truthy};
use super::request::Request;

pub(super) const VERSION_WITH_CONTINUE: &str =
    "specifying resource version is not allowed when using continue";

/// Error of the parameter of kubectl that servers before 1.18 supported.
const NO_EXPORT: &str = "the export parameter, deprecated since v1.14, is no longer supported";

/// Returns the option rules that a read violates; none for a valid one. `watch_path`: its path is that of a deprecated watch.
/// Streaming lists violate none: no client can know before it asks that a server has them switched off.
pub(super) fn broken_rules(query: &[(String, String)], watch_path: bool) -> Vec<String> {
    let options = match ListOptions::read(query) {
        Ok(mut options) => {
            options.set_defaults(true);
            options
        }
        Err(message) => return vec![message],
    };
    let mut broken: Vec<String> = options
        .faults(true)
        .iter()
        .map(|fault| format!("{}: {}", fault.field, fault.message))
        .collect();
    match requested_version(&options.resource_version) {
        Err(message) => broken.push(message),
        Ok(RequestedVersion::At(_))
            if !(options.continue_token.is_empty() || options.watch || watch_path) =>
        {
            broken.push(VERSION_WITH_CONTINUE.to_owned());
        }
        Ok(RequestedVersion::At(_) | RequestedVersion::Newest | RequestedVersion::Any) => {}
    }
    broken
}

/// Parses the options of a LIST or WATCH; `name` is that in the path of a deprecated watch.
pub(super) fn read_collection(
    request: &HttpRequest,
    collection: Collection,
    watch_path: bool,
    name: Option<&str>,
    watch_list: bool,
) -> Result<Request, Status> {
    let mut options = ListOptions::read(request.query.pairs()).map_err(Status::bad_request)?;
    let watch = watch_path || options.watch;
    let kind = &collection.kind;
    let shape = if watch { Shape::Watch } else { Shape::List };
    let form = accept::form(request, shape, kind)?;
    let selector = selector(&options)?;
    options.set_defaults(watch_list);
    let faults = options.faults(watch_list);
    if !faults.is_empty() {
        return Err(Status::invalid_list_options(&faults));
    }
    let selector = restricted_to(selector, name, kind)?;
    if watch {
        accept::fit(request, shape, kind)?;
        let resource_version = requested_version(&options.resource_version)
            .map_err(|message| Status::unreadable_version(&message))?;
        return Ok(Request::Watch(WatchRequest {
            collection,
            selector,
            resource_version,
            send_initial_events: options.send_initial_events,
            bookmarks: options.allow_watch_bookmarks,
            timeout_seconds: options.timeout_seconds,
            form,
            shows_objects: accept::shows_objects(request),
        }));
    }
    let continue_token = continue_token(&options)?;
    let resource_version =
        requested_version(&options.resource_version).map_err(|message| unreadable_for_etcd(&message))?;
    Ok(Request::List(ListRequest {
        collection,
        selector,
        resource_version,
        version_match: match options.version_match.as_str() {
            "Exact" => Some(VersionMatch::Exact),
            "NotOlderThan" => Some(VersionMatch::NotOlderThan),
            _ => None,
        },
        limit: usize::try_from(options.limit).ok().filter(|limit| *limit > 0),
        continue_token,
        form,
    }))
}

/// Restricts the selector to the name of a deprecated watch path, and checks that the kind supports its fields.
fn restricted_to(mut selector: Selector, name: Option<&str>, kind: &ApiResource) -> Result<Selector, Status> {
    selector.fields.check(kind).map_err(Status::bad_request)?;
    match name {
        Some(name) if selector.fields.is_empty() => selector.fields = FieldSelector::name(name),
        Some(name) if selector.fields.exact_name() != Some(name) => {
            return Err(Status::bad_request(
                "fieldSelector metadata.name doesn't match requested name",
            ));
        }
        Some(_) | None => {}
    }
    Ok(selector)
}

fn continue_token(options: &ListOptions) -> Result<Option<ContinueToken>, Status> {
    if options.continue_token.is_empty() {
        return Ok(None);
    }
    let token = ContinueToken::decode(&options.continue_token)
        .map_err(|message| Status::bad_request(format!("invalid continue token: {message}")))?;
    if !matches!(options.resource_version.as_str(), "" | "0") {
        return Err(Status::bad_request(VERSION_WITH_CONTINUE));
    }
    Ok(Some(token))
}

/// Returns the error of an invalid resourceVersion of a read from etcd. The watch cache has another one.
fn unreadable_for_etcd(message: &str) -> Status {
    Status::bad_request(format!("invalid resource version: {message}"))
}

/// Parses the options of a GET.
pub(super) fn read_object(
    request: &HttpRequest,
    collection: Collection,
    name: String,
    scale: bool,
) -> Result<Request, Status> {
    let query = request.query.pairs();
    let first = |wanted: &str| query.iter().find(|(name, _)| name == wanted);
    if first("export").is_some_and(|(_, value)| truthy(value)) {
        return Err(Status::bad_request(NO_EXPORT));
    }
    let form = accept::form(request, Shape::Object, &collection.kind)?;
    let resource_version = requested_version(first("resourceVersion").map_or("", |(_, value)| value))
        .map_err(|message| match collection.kind.watch_cached {
            true => Status::unreadable_version(&message),
            false => unreadable_for_etcd(&message),
        })?;
    Ok(Request::Get(GetRequest {
        scale,
        collection,
        name,
        resource_version,
        form,
    }))
}

/// Parses the options of a read of computed objects, which ignores versions and pages.
pub(super) fn read_unstored(
    request: &HttpRequest,
    collection: Collection,
    name: Option<String>,
    watch_list: bool,
) -> Result<Request, Status> {
    let (kind, any) = (&collection.kind, RequestedVersion::Any);
    if let Some(name) = name {
        return Ok(Request::Get(GetRequest {
            scale: false,
            name,
            resource_version: any,
            form: accept::form(request, Shape::Object, kind)?,
            collection,
        }));
    }
    let mut options = ListOptions::read(request.query.pairs()).map_err(Status::bad_request)?;
    if options.watch {
        return Err(Status::not_supported(kind, "watch"));
    }
    let form = accept::form(request, Shape::List, kind)?;
    let selector = selector(&options)?;
    options.set_defaults(watch_list);
    let faults = options.faults(watch_list);
    if !faults.is_empty() {
        return Err(Status::invalid_list_options(&faults));
    }
    Ok(Request::List(ListRequest {
        selector: restricted_to(selector, None, kind)?,
        collection,
        resource_version: any,
        version_match: None,
        limit: None,
        continue_token: None,
        form,
    }))
}

fn selector(options: &ListOptions) -> Result<Selector, Status> {
    Ok(Selector {
        labels: LabelSelector::parse(&options.label_selector).map_err(Status::bad_request)?,
        fields: FieldSelector::parse(&options.field_selector).map_err(Status::bad_request)?,
    })
}

/// Parses `resourceVersion`. The error is the message of kube-apiserver.
fn requested_version(text: &str) -> Result<RequestedVersion, String> {
    if text.is_empty() {
        return Ok(RequestedVersion::Newest);
    }
    match go_text::parse_uint(text) {
        Ok(0) => Ok(RequestedVersion::Any),
        Ok(revision) => Ok(RequestedVersion::At(revision)),
        Err(error) => Err(format!(
            "resourceVersion: Invalid value: {}: {error}",
            go_text::quote(text)
        )),
    }
}

//! Content negotiation: representation and encoding of a response, from `Accept`.
//!
//! The fake encodes JSON and YAML. Clauses for protobuf or CBOR are skipped if another one can be satisfied; a client that
//! accepts only protobuf gets a 406 in protobuf.
//!
//! Source: go-restful's route selection (built-in kinds only), then apiserver `endpoints/handlers/negotiation` and
//! `endpoints/handlers/response.go`.

use apimachinery::go_text;
use apimachinery::kind::ApiResource;
use apimachinery::options::{MetaVersion, Representation, RowObject, TableOptions};
use apimachinery::status::Status;

use super::HttpRequest;

const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
pub(super) const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// Type of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    List,
    Object,
    /// Events, each with an object.
    Watch,
}

/// Encoding of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Writing {
    /// Compact JSON with a newline.
    Json,
    /// Indented JSON without a newline: for browsers and curl, and for a Status without a requested encoding.
    Indented,
    Yaml,
    Protobuf,
}

/// Returns the requested representation. Whether the response supports it is checked later, in [`fit`].
///
/// # Errors
///
/// 406 if nothing that is requested can be encoded.
pub(super) fn form(
    request: &HttpRequest,
    shape: Shape,
    kind: &ApiResource,
) -> Result<Representation, Status> {
    let accept = request.header(http::header::ACCEPT).unwrap_or_default();
    if !kind.custom && !is_routed(accept) {
        return Err(Status::unrouted_answer(shape != Shape::Object));
    }
    let Some(chosen) = choose(accept) else {
        return Err(not_acceptable(accept, kind, shape));
    };
    if shape == Shape::Watch && chosen.writing == Writing::Yaml {
        return Err(Status::not_acceptable(&[
            "application/json;stream=watch",
            "application/vnd.kubernetes.protobuf;stream=watch",
        ]));
    }
    Ok(match chosen.transform {
        None => Representation::Full,
        Some((Transform::Table, version)) => Representation::Table(TableOptions {
            version,
            object: included(request).unwrap_or(RowObject::Metadata),
        }),
        // An error is sent in full; there is no other event (`shows_objects`).
        Some((Transform::List, _)) if shape == Shape::Watch => Representation::Full,
        Some((Transform::Object | Transform::List, version)) => Representation::Metadata(version),
    })
}

/// Returns whether the objects of a watch have the requested representation: that of a list they do not have.
pub(super) fn shows_objects(request: &HttpRequest) -> bool {
    let chosen = choose(request.header(http::header::ACCEPT).unwrap_or_default());
    let transform = chosen.and_then(|chosen| chosen.transform);
    !matches!(transform, Some((Transform::List, _)))
}

/// 406: the response has no table.
pub(super) fn no_table() -> Status {
    Status::not_acceptable(&[JSON, YAML, PROTOBUF])
}

/// Checks that the response is available in the requested representation.
///
/// # Errors
///
/// 406 if the representation is that of a list and the response is an object, or the reverse; 400 for an unknown
/// `includeObject`.
pub(super) fn fit(request: &HttpRequest, shape: Shape, kind: &ApiResource) -> Result<(), Status> {
    let chosen = choose(request.header(http::header::ACCEPT).unwrap_or_default());
    match (chosen.and_then(|chosen| chosen.transform), shape) {
        (Some((Transform::Table, _)), _) => included(request).map(|_| ()),
        (Some((Transform::Object, _)), Shape::List) => Err(Status::wrong_form(format!(
            "you requested PartialObjectMetadata, but the requested object is a list ({})",
            kind.go_list_type()
        ))),
        (Some((Transform::List, _)), Shape::Object) => Err(Status::wrong_form(format!(
            "you requested PartialObjectMetadataList, but the requested object is not a list ({})",
            kind.go_list_type().trim_end_matches("List")
        ))),
        (None | Some((Transform::Object | Transform::List, _)), _) => Ok(()),
    }
}

/// Returns the encoding of a response.
pub(super) fn writing(request: &HttpRequest) -> Writing {
    let accept = request.header(http::header::ACCEPT).unwrap_or_default();
    let chosen = choose(accept);
    match chosen.as_ref().map_or(Writing::Json, |chosen| chosen.writing) {
        Writing::Json if wants_indentation(request, chosen.as_ref()) => Writing::Indented,
        writing @ (Writing::Json | Writing::Indented | Writing::Yaml | Writing::Protobuf) => writing,
    }
}

/// Returns the encoding of a Status. It has no other representations, so clauses with a transform are skipped.
pub(super) fn status_writing(request: &HttpRequest) -> Writing {
    let accept = request.header(http::header::ACCEPT).unwrap_or_default();
    if accept.is_empty() {
        return writing(request);
    }
    let clauses: Vec<Clause<'_>> = clauses(accept);
    let plain = |clause: &&Clause<'_>| !clause.converts();
    let chosen = clauses.iter().filter(plain).find_map(Clause::chosen);
    match chosen {
        Some(chosen) if chosen.writing == Writing::Yaml => Writing::Yaml,
        Some(chosen) if wants_indentation(request, Some(&chosen)) => Writing::Indented,
        Some(_) => Writing::Json,
        None if clauses.iter().filter(plain).any(Clause::is_protobuf) => Writing::Protobuf,
        None => Writing::Indented,
    }
}

/// A clause that can be satisfied.
#[derive(Debug)]
struct Chosen {
    writing: Writing,
    pretty: bool,
    transform: Option<(Transform, MetaVersion)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Transform {
    /// `PartialObjectMetadata`.
    Object,
    /// `PartialObjectMetadataList`.
    List,
    Table,
}

fn choose(accept: &str) -> Option<Chosen> {
    if accept.is_empty() || accept == JSON {
        return Some(Chosen {
            writing: Writing::Json,
            pretty: false,
            transform: None,
        });
    }
    clauses(accept).iter().find_map(Clause::chosen)
}

/// Returns whether go-restful routes a request with this `Accept` to a built-in kind.
fn is_routed(accept: &str) -> bool {
    matches!(accept, "" | JSON)
        || accept.split(',').any(|clause| {
            let media_type = clause.split(';').next().unwrap_or_default().trim();
            matches!(media_type, "*/*" | JSON | YAML | PROTOBUF)
        })
}

/// 406 with the accepted types: protobuf is not among them if the client requested protobuf.
fn not_acceptable(accept: &str, kind: &ApiResource, shape: Shape) -> Status {
    let protobuf = clauses(accept).iter().any(Clause::is_protobuf);
    match (protobuf && !kind.custom, shape) {
        (true, Shape::Watch) => Status::not_acceptable(&["application/json;stream=watch"]),
        (true, Shape::List | Shape::Object) => Status::not_acceptable(&[JSON, YAML]),
        (false, _) => Status::not_acceptable(&[JSON, YAML, PROTOBUF]),
    }
}

/// `includeObject`.
fn included(request: &HttpRequest) -> Result<RowObject, Status> {
    let query = request.query.pairs();
    let include = query.iter().find(|(name, _)| name == "includeObject");
    match include.map_or("", |(_, value)| value.as_str()) {
        "None" => Ok(RowObject::None),
        "" | "Metadata" => Ok(RowObject::Metadata),
        "Object" => Ok(RowObject::Full),
        other => Err(Status::bad_request(format!(
            "Unable to convert to Table as requested: includeObject: Invalid value: {}: must be 'Metadata', \
             'Object', 'None', or empty",
            go_text::quote(other)
        ))),
    }
}

/// Returns whether the client wants indented JSON: by the satisfied clause, by `pretty`, or by its `User-Agent`.
fn wants_indentation(request: &HttpRequest, chosen: Option<&Chosen>) -> bool {
    let query = request.query.pairs();
    let by_query = query
        .iter()
        .find(|(name, value)| name == "pretty" && !value.is_empty())
        .map(|(_, value)| matches!(value.as_str(), "1" | "t" | "T" | "true" | "TRUE" | "True"));
    let agent = request.header(http::header::USER_AGENT).unwrap_or_default();
    let by_agent = ["curl", "Wget", "Mozilla/5.0"]
        .iter()
        .any(|name| agent.starts_with(name));
    chosen.is_some_and(|chosen| chosen.pretty) || by_query.unwrap_or(by_agent)
}

#[derive(Debug, Default)]
struct Clause<'a> {
    main: &'a str,
    sub: &'a str,
    weight: f32,
    kind: Option<&'a str>,
    group: Option<&'a str>,
    version: Option<&'a str>,
    stream: &'a str,
    server_version: &'a str,
    pretty: bool,
}

/// Returns the clauses by descending weight; those of equal weight without wildcards first.
fn clauses(accept: &str) -> Vec<Clause<'_>> {
    let mut sorted: Vec<Clause<'_>> = Vec::new();
    let mut read = accept.split(',').filter_map(Clause::read);
    for clause in read.by_ref().take(CLAUSES_INSERTED) {
        // Insertion sort, as in Go for so few elements: the comparison is no order if weights and wildcards disagree, so
        // another algorithm has other results.
        let mut at = sorted.len();
        while at > 0 && clause.is_before(&sorted[at - 1]) {
            at -= 1;
        }
        sorted.insert(at, clause);
    }
    let before = sorted.len();
    sorted.extend(read);
    if sorted.len() > before {
        sorted.sort_by(|one, other| {
            let rank = |clause: &Clause<'_>| (clause.main == "*", clause.sub == "*");
            other
                .weight
                .total_cmp(&one.weight)
                .then(rank(one).cmp(&rank(other)))
        });
    }
    sorted
}

/// Number of elements up to which Go uses insertion sort (`sort.Sort`).
const CLAUSES_INSERTED: usize = 12;

impl<'a> Clause<'a> {
    fn read(text: &'a str) -> Option<Self> {
        let mut parts = text.trim().split(';');
        let media_type = parts.next().unwrap_or_default();
        let (main, sub) = match media_type.split_once('/') {
            Some((main, sub)) => (main.trim(), sub.trim()),
            None if media_type.trim() == "*" => ("*", "*"),
            None => return None,
        };
        let mut clause = Self {
            main,
            sub,
            weight: 1.0,
            ..Self::default()
        };
        if sub.contains('/') {
            return None;
        }
        for (name, value) in parts.filter_map(|part| part.split_once('=')) {
            let value = value.trim();
            match name.trim() {
                "q" => clause.weight = value.parse().unwrap_or(0.0),
                "as" => clause.kind = Some(value),
                "g" => clause.group = Some(value),
                "v" => clause.version = Some(value),
                "stream" => clause.stream = value,
                "sv" => clause.server_version = value,
                "pretty" => clause.pretty = value == "1",
                _ => {}
            }
        }
        Some(clause)
    }

    fn is_before(&self, other: &Self) -> bool {
        self.weight > other.weight
            || self.main != "*" && other.main == "*"
            || self.sub != "*" && other.sub == "*"
    }

    fn converts(&self) -> bool {
        self.kind.is_some() || self.group.is_some() || self.version.is_some()
    }

    fn is_protobuf(&self) -> bool {
        self.main == "application" && self.sub == "vnd.kubernetes.protobuf"
    }

    /// Returns how the clause is satisfied; `None` if it cannot be.
    fn chosen(&self) -> Option<Chosen> {
        let writing = match (self.main, self.sub) {
            ("application", "json" | "*") | ("*", "*") => Writing::Json,
            ("application", "yaml") => Writing::Yaml,
            _ => return None,
        };
        let streams = self.stream.is_empty() || self.stream == "watch" && writing == Writing::Json;
        if !streams || !self.server_version.is_empty() {
            return None;
        }
        let transform = match (self.converts(), self.kind, self.group, self.version) {
            (false, _, _, _) => None,
            (true, Some(kind), Some("meta.k8s.io"), Some(version @ ("v1" | "v1beta1"))) => {
                let transform = match kind {
                    "PartialObjectMetadata" => Transform::Object,
                    "PartialObjectMetadataList" => Transform::List,
                    "Table" => Transform::Table,
                    _ => return None,
                };
                let version = match version {
                    "v1" => MetaVersion::V1,
                    _ => MetaVersion::V1beta1,
                };
                Some((transform, version))
            }
            (true, _, _, _) => return None,
        };
        Some(Chosen {
            writing,
            pretty: self.pretty,
            transform,
        })
    }
}

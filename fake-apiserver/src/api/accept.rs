//! How much of each object an answer shows, from `Accept`.
//!
//! The fake speaks JSON. Clauses for anything else (protobuf, CBOR, tables) are passed over, as a server that does not
//! have them does; with none left, the answer is JSON all the same.

use crate::model::catalog::Kind;

use super::request::Form;
use super::status::Status;

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    List,
    Object,
}

/// The form of the answer.
///
/// # Errors
/// 406 when the form is one of a list and the answer is an object, or the other way round.
pub(super) fn form(accept: Option<&str>, shape: Shape, kind: &Kind) -> Result<Form, Status> {
    let mut clauses: Vec<Clause<'_>> = accept.unwrap_or_default().split(',').map(Clause::read).collect();
    // Stable: clauses of one weight stay in the order sent.
    clauses.sort_by_key(|clause| std::cmp::Reverse(clause.weight));
    for clause in clauses {
        if !matches!(clause.media_type, "application/json" | "application/*" | "*/*") || clause.weight == 0 {
            continue;
        }
        match (clause.transform, shape) {
            (None, _) => return Ok(Form::Full),
            (Some("PartialObjectMetadata"), Shape::Object)
            | (Some("PartialObjectMetadataList"), Shape::List) => {
                return Ok(Form::Metadata);
            }
            (Some("PartialObjectMetadata"), Shape::List) => {
                return Err(Status::wrong_form(format!(
                    "you requested PartialObjectMetadata, but the requested object is a list ({})",
                    kind.go_list_type()
                )));
            }
            (Some("PartialObjectMetadataList"), Shape::Object) => {
                return Err(Status::wrong_form(format!(
                    "you requested PartialObjectMetadataList, but the requested object is not a list ({})",
                    kind.go_list_type().trim_end_matches("List")
                )));
            }
            (Some(_), _) => {}
        }
    }
    Ok(Form::Full)
}

/// Can a watch be written in one of the types asked for? Not in YAML, nor in any type nobody serves.
///
/// # Errors
/// 406.
pub(super) fn streamable(accept: Option<&str>) -> Result<(), Status> {
    let accept = accept.unwrap_or_default();
    let can = |clause: Clause<'_>| {
        matches!(
            clause.media_type,
            "application/json"
                | "application/*"
                | "*/*"
                | "application/vnd.kubernetes.protobuf"
                | "application/cbor"
                | "application/cbor-seq"
        )
    };
    if accept.is_empty() || accept.split(',').map(Clause::read).any(can) {
        return Ok(());
    }
    Err(Status::wrong_form(
        "only the following media types are accepted: application/json;stream=watch, \
         application/vnd.kubernetes.protobuf;stream=watch",
    ))
}

/// Can a Status be written in one of the types asked for? It has no form but its own, so not where every clause asks for
/// a transform; it is then written raw: indented, without a newline.
pub(super) fn takes_a_status(accept: Option<&str>) -> bool {
    let accept = accept.unwrap_or_default();
    accept.is_empty()
        || !accept
            .split(',')
            .map(Clause::read)
            .all(|clause| clause.transform.is_some())
}

struct Clause<'a> {
    media_type: &'a str,
    /// `q` in thousandths.
    weight: u32,
    /// `as` of the group and version of the metadata transforms; any other `as` as it is.
    transform: Option<&'a str>,
}

impl<'a> Clause<'a> {
    fn read(text: &'a str) -> Self {
        let mut parts = text.split(';').map(str::trim);
        let mut clause = Self {
            media_type: parts.next().unwrap_or_default(),
            weight: 1000,
            transform: None,
        };
        let (mut group, mut version) = ("", "");
        for (name, value) in parts.filter_map(|part| part.split_once('=')) {
            match name.trim() {
                "q" => clause.weight = thousandths(value.trim()),
                "as" => clause.transform = Some(value.trim()),
                "g" => group = value.trim(),
                "v" => version = value.trim(),
                _ => {}
            }
        }
        if clause.transform.is_some() && (group, version) != ("meta.k8s.io", "v1") {
            clause.transform = Some("");
        }
        clause
    }
}

/// A quality value (RFC 9110, 12.4.2).
fn thousandths(text: &str) -> u32 {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let fraction: u32 = format!("{fraction:0<3}")
        .get(..3)
        .and_then(|digits| digits.parse().ok())
        .unwrap_or(0);
    (whole.parse::<u32>().unwrap_or(1).saturating_mul(1000) + fraction).min(1000)
}

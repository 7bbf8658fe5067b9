//! Lines of a snapshot: a header, objects, and an end with a list of the resources. All are JSON, one value a line: a snapshot is
//! written and read as a stream, and edited by hand.
//!
//! It must not know files, or what is chosen.

use serde::{Deserialize, Serialize};

/// Version of the format.
const FORMAT: &str = "v1";

/// File of a folder with header and end. The other files have the objects of one resource each.
pub(crate) const HEAD_FILE: &str = "snapshot.json";

/// First line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Header {
    /// Version of the format.
    snapshot: String,
    /// Program and version that wrote it.
    pub(crate) program: String,
    /// Version of Kubernetes; empty: unknown.
    pub(crate) kubernetes: String,
    /// Version of the lists, unless the end has another for a resource.
    pub(crate) resource_version: String,
    /// Time at which it was begun.
    pub(crate) taken_at: String,
    /// Fields that were removed from objects. Values of Secrets always are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) redacted: Vec<String>,
}

/// Last line. Without it the snapshot is cut.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct End {
    /// Version of the format.
    snapshot_end: String,
    /// Number of objects, before anybody edited it.
    pub(crate) objects: u64,
    /// Resources that were read.
    pub(crate) resources: Vec<Listed>,
    /// Resources that were not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) left_out: Vec<LeftOut>,
}

/// A resource that was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Listed {
    /// Plural and group: `deployments.apps`.
    pub(crate) resource: String,
    pub(crate) api_version: String,
    pub(crate) kind: String,
    pub(crate) objects: u64,
    /// Whether all objects of the cluster were read.
    pub(crate) all: bool,
    /// Version of the list, if it is newer than that of the header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) resource_version: Option<String>,
}

/// A resource that was not read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LeftOut {
    /// Plural and group, or a group and its version.
    pub(crate) resource: String,
    pub(crate) why: String,
}

impl Header {
    /// Returns the header of a snapshot that this program writes.
    #[cfg(feature = "proxy")]
    pub(crate) fn new(
        kubernetes: String,
        resource_version: String,
        taken_at: String,
        redacted: Vec<String>,
    ) -> Self {
        Self {
            snapshot: FORMAT.to_owned(),
            program: concat!("fake-apiserver ", env!("CARGO_PKG_VERSION")).to_owned(),
            kubernetes,
            resource_version,
            taken_at,
            redacted,
        }
    }
}

impl End {
    /// Returns the end of a snapshot that this program writes.
    #[cfg(feature = "proxy")]
    pub(crate) fn new(resources: Vec<Listed>, left_out: Vec<LeftOut>) -> Self {
        Self {
            snapshot_end: FORMAT.to_owned(),
            objects: resources.iter().map(|listed| listed.objects).sum(),
            resources,
            left_out,
        }
    }
}

/// What a line is.
#[derive(Debug)]
pub(crate) enum Line {
    Header(Header),
    End(End),
    /// An object of this kind.
    Object(String),
}

/// Fields that distinguish lines.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Marks {
    snapshot: Option<String>,
    snapshot_end: Option<String>,
    api_version: Option<String>,
    kind: Option<String>,
}

/// Returns the kind of a line; an object is not decoded.
///
/// # Errors
/// It is none of a snapshot; in words, with what to do.
pub(crate) fn classified(line: &[u8]) -> Result<Line, String> {
    let marks: Marks = serde_json::from_slice(line).map_err(|error| unreadable(line, &error))?;
    if let Some(format) = marks.snapshot.as_ref().or(marks.snapshot_end.as_ref())
        && format != FORMAT
    {
        return Err(format!(
            "this snapshot has format {format:?}, and this version reads {FORMAT}: use the version that wrote it"
        ));
    }
    let broken = |error: serde_json::Error| {
        format!("the header or end is not complete: {error}; take the snapshot again")
    };
    match (marks.snapshot, marks.snapshot_end, marks.api_version, marks.kind) {
        (Some(_), ..) => serde_json::from_slice(line).map(Line::Header).map_err(broken),
        (None, Some(_), ..) => serde_json::from_slice(line).map(Line::End).map_err(broken),
        (None, None, Some(_), Some(kind)) => Ok(Line::Object(kind)),
        (None, None, ..) => {
            Err("an object needs apiVersion and kind: add them, or remove the line".to_owned())
        }
    }
}

/// Returns why a line is no JSON object, without its text.
pub(crate) fn unreadable(line: &[u8], error: &serde_json::Error) -> String {
    let text = String::from_utf8_lossy(&line[..line.len().min(16)])
        .trim_start()
        .to_lowercase();
    let hint = match text.chars().next() {
        Some('<') => "it is HTML, as a login page or a file browser sends it",
        Some('{') if error.is_eof() => {
            "an object has to be on one line: remove what is cut, or convert the file by jq -c . FILE"
        }
        Some('{') => "correct it, or remove the line",
        Some(_) | None => "a snapshot has a JSON object a line: correct it, or remove the line",
    };
    format!("no JSON object, at column {}: {hint}", error.column().max(1))
}

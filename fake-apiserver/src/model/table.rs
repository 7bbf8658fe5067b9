//! Tables, as `kubectl get` requests them.
//!
//! The cells are computed in `columns`; here is the encoding of a table: of a page, of an object, and of the events of a
//! watch, of which only the first has the column definitions.
//!
//! Source: "Receiving resources as Tables" in the API concepts page; apiserver `endpoints/handlers/response.go`.

use std::time::Duration;

use apimachinery::Version;
use apimachinery::encode::encode_json;
use apimachinery::kind::KindRef;
use apimachinery::object::Stored;
use apimachinery::options::{Representation, TableOptions};
use builtin_kinds::columns::{Columns, Row};
use builtin_kinds::convert;
use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::page::Page;

/// Returns an object in the requested representation, without newline; a table has its column definitions if `named`.
pub(super) fn shown(
    stored: &Stored,
    form: Representation,
    version: Version,
    now: Duration,
    named: bool,
) -> Bytes {
    let Representation::Table(table) = form else {
        return stored.encoded(form);
    };
    let printer = Printer::new(&stored.kind, table, version, now);
    let object = printed(stored);
    let version = object["metadata"].get("resourceVersion");
    let metadata: Map<_, _> = version
        .map(|version| ("resourceVersion".to_owned(), version.clone()))
        .into_iter()
        .collect();
    let mut out = printer.begin(&metadata, named);
    printer.row(&object, &stored.encoded(form), &mut out);
    out.extend_from_slice(b"]}");
    out.into()
}

/// Returns an object as a body in the requested representation, with its newline.
pub(super) fn body(stored: &Stored, form: Representation, version: Version, now: Duration) -> Bytes {
    match form {
        Representation::Full => stored.body(),
        Representation::Metadata(_) | Representation::Table(_) => {
            [&shown(stored, form, version, now, true)[..], b"\n"]
                .concat()
                .into()
        }
    }
}

/// Encodes a page as a table, without newline.
pub(super) fn page(page: &Page, table: TableOptions, metadata: &Map<String, Value>) -> Vec<u8> {
    let printer = Printer::new(&page.kind, table, page.version, page.read_at);
    let mut out = printer.begin(metadata, true);
    for (index, item) in page.items.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        printer.stored(item, page.form, &mut out);
    }
    if page.items.is_empty() && printer.columns.has_null_rows() {
        // In Go nothing was appended to the nil slice.
        out.truncate(out.len() - 1);
        out.extend_from_slice(b"null}");
        return out;
    }
    out.extend_from_slice(b"]}");
    out
}

/// Returns the object in the version that columns read.
fn printed(stored: &Stored) -> Value {
    convert::received(&stored.kind, stored.json())
}

/// Encodes the table of a bookmark: a row of an object with only a resourceVersion; `carried` is the `object` of the row.
pub(super) fn bookmark(
    kind: &KindRef,
    table: TableOptions,
    version: Version,
    object: &Value,
    carried: &[u8],
    named: bool,
) -> Vec<u8> {
    // An object without a time has no age, at any time.
    let printer = Printer::new(kind, table, version, Duration::ZERO);
    let metadata = json!({ "resourceVersion": object["metadata"]["resourceVersion"] });
    let mut out = printer.begin(&metadata, named);
    printer.row(object, carried, &mut out);
    out.extend_from_slice(b"]}");
    out
}

/// Encoder of objects of one kind as rows.
#[derive(Debug)]
pub(super) struct Printer {
    kind: KindRef,
    table: TableOptions,
    columns: Columns,
    version: Version,
    now: Duration,
}

impl Printer {
    pub(super) fn new(kind: &KindRef, table: TableOptions, version: Version, now: Duration) -> Self {
        Self {
            kind: kind.clone(),
            table,
            columns: Columns::of(kind, version),
            version,
            now,
        }
    }

    /// Encodes the table up to its first row.
    pub(super) fn begin<M: serde::Serialize>(&self, metadata: &M, named: bool) -> Vec<u8> {
        let mut out = Vec::new();
        let api_version = self.table.version.api_version();
        out.extend_from_slice(b"{\"kind\":\"Table\",\"apiVersion\":");
        out.extend_from_slice(&encode_json(api_version));
        out.extend_from_slice(b",\"metadata\":");
        out.extend_from_slice(&encode_json(metadata));
        out.extend_from_slice(b",\"columnDefinitions\":");
        match named {
            true => out.extend_from_slice(&encode_json(self.columns.heads())),
            false => out.extend_from_slice(b"null"),
        }
        out.extend_from_slice(b",\"rows\":[");
        out
    }

    /// Encodes the row of a stored object.
    pub(super) fn stored(&self, stored: &Stored, form: Representation, out: &mut Vec<u8>) {
        self.row(&printed(stored), &stored.encoded(form), out);
    }

    fn row(&self, object: &Value, carried: &[u8], out: &mut Vec<u8>) {
        let row = Row {
            object,
            now: self.now,
            version: self.version,
        };
        out.extend_from_slice(b"{\"cells\":");
        out.extend_from_slice(&encode_json(&self.columns.cells(&row)));
        if let Some(conditions) = Columns::conditions(&self.kind, &row) {
            out.extend_from_slice(b",\"conditions\":");
            out.extend_from_slice(&encode_json(&conditions));
        }
        out.extend_from_slice(b",\"object\":");
        out.extend_from_slice(carried);
        out.push(b'}');
    }
}

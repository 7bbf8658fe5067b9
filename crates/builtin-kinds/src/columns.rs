//! Printer columns: their definitions, recorded from kube-apiserver (`data/columns.json`), and the cell under each, as a rule
//! for a field or as code.
//!
//! It must not know how a table is encoded.
//!
//! Source: tables of kube-apiserver (`fidelity/oracle/probes/tables.yaml`, recorded by `cargo xtask oracle columns`); kubernetes
//! `pkg/printers/internalversion`; apiextensions-apiserver `tableconvertor`.

use std::sync::LazyLock;
use std::time::Duration;

use apimachinery::Version;
use apimachinery::kind::ApiResource;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::age;
use super::json_path::JsonPath;
use crate::crd::Definition;

mod cluster;
mod extension;
mod network;
mod pods;
mod rules;
mod selectors;
mod workloads;

/// Column definition, with its fields in the order of the wire.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Column {
    name: String,
    #[serde(rename = "type")]
    kind: String,
    format: String,
    description: String,
    priority: i32,
}

/// The columns of one kind.
#[derive(Debug)]
pub struct Columns {
    heads: Vec<Column>,
    cells: Cells,
}

#[derive(Debug)]
enum Cells {
    /// A built-in kind.
    Known(&'static [Cell]),
    /// A custom resource: its columns after the name; `None`: an invalid path.
    Custom(Vec<Option<JsonPath>>),
}

/// Value of a cell.
#[derive(Debug, Clone, Copy)]
enum Cell {
    /// `metadata.name`.
    Name,
    /// Time since the creation.
    Age,
    /// Creation timestamp.
    CreatedAt,
    /// String field; empty if there is none.
    Text(&'static str),
    /// String field, or a replacement.
    TextOr(&'static str, &'static str),
    /// Number field; 0 if there is none.
    Number(&'static str),
    /// Boolean field, and its default.
    Flag(&'static str, bool),
    /// Number of entries in several lists or maps together.
    Count(&'static [&'static str]),
    /// Computed from several fields.
    Computed(fn(&Row<'_>) -> Value),
}

/// One object as a table row.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    /// The object in its stored version.
    pub object: &'a Value,
    /// Time since 1970, for ages.
    pub now: Duration,
    /// Kubernetes minor version of the table.
    pub version: Version,
}

impl Columns {
    /// Returns the columns of a kind in a server of this version.
    pub fn of(kind: &ApiResource, version: Version) -> Self {
        if kind.custom {
            return Self::custom(kind, version);
        }
        let heads = recorded(&kind.group, &kind.plural, version);
        let rule = rules::RULES
            .iter()
            .find(|(group, plural, _)| *group == kind.group && *plural == kind.plural);
        match (heads, rule) {
            (Some(heads), Some((_, _, cells))) => {
                // Older versions had columns that were removed since.
                let cells = match rules::OLDER.iter().find(|older| older.applies_to(kind, version)) {
                    Some(older) => older.cells,
                    None => cells,
                };
                Self {
                    heads,
                    cells: Cells::Known(cells),
                }
            }
            (_, _) => Self {
                heads: recorded("", "limitranges", version).unwrap_or_default(),
                cells: Cells::Known(rules::FALLBACK),
            },
        }
    }

    fn custom(kind: &ApiResource, version: Version) -> Self {
        let default = recorded("probe.example.com", "widgets", version).unwrap_or_default();
        let columns = Definition::of(kind).map(|definition| definition.columns.as_slice());
        match columns {
            None | Some([]) => Self {
                heads: default,
                cells: Cells::Custom(vec![JsonPath::parse(".metadata.creationTimestamp")]),
            },
            Some(columns) => Self {
                heads: default
                    .into_iter()
                    .take(1)
                    .chain(columns.iter().map(|column| Column {
                        name: column.name.clone(),
                        kind: column.kind.clone(),
                        format: column.format.clone(),
                        description: if column.description.is_empty() {
                            format!(
                                "Custom resource definition column (in JSONPath format): {}",
                                column.json_path
                            )
                        } else {
                            column.description.clone()
                        },
                        priority: column.priority,
                    }))
                    .collect(),
                cells: Cells::Custom(
                    columns
                        .iter()
                        .map(|column| JsonPath::parse(&column.json_path))
                        .collect(),
                ),
            },
        }
    }

    /// Returns whether the rows of an empty list are null: with the default columns, and of definitions.
    pub fn has_null_rows(&self) -> bool {
        let printers = [rules::FALLBACK, rules::DEFINITION];
        matches!(self.cells, Cells::Known(cells) if printers.iter().any(|known| std::ptr::eq(cells, *known)))
    }

    /// Returns the column definitions, from left to right.
    pub fn heads(&self) -> &[Column] {
        &self.heads
    }

    /// Returns the cells of a row.
    pub fn cells(&self, row: &Row<'_>) -> Vec<Value> {
        match &self.cells {
            Cells::Known(cells) => cells.iter().map(|cell| cell.of(row)).collect(),
            Cells::Custom(paths) => {
                let name = row.text("/metadata/name").into();
                let types = self.heads.iter().skip(1).map(|column| column.kind.as_str());
                let cells = paths.iter().zip(types).map(|(path, kind)| {
                    let found = path.as_ref().and_then(|path| path.first(row.object));
                    found.map_or(Value::Null, |found| extension::printed(found, kind, row.now))
                });
                std::iter::once(name).chain(cells).collect()
            }
        }
    }

    /// Returns the `conditions` of a row as JSON; `None`, as for most rows.
    pub fn conditions(kind: &ApiResource, row: &Row<'_>) -> Option<Value> {
        (kind.group.is_empty() && kind.plural == "pods").then(|| pods::conditions(row))?
    }
}

impl Cell {
    fn of(self, row: &Row<'_>) -> Value {
        let field = |pointer: &str| row.object.pointer(pointer).filter(|value| !value.is_null());
        match self {
            Self::Name => row.text("/metadata/name").into(),
            Self::Age => row.age("/metadata/creationTimestamp").into(),
            Self::CreatedAt => match row.text("/metadata/creationTimestamp") {
                "" => "0001-01-01T00:00:00Z".into(),
                time => time.into(),
            },
            Self::Text(pointer) => row.text(pointer).into(),
            Self::TextOr(pointer, otherwise) => match row.text(pointer) {
                "" => otherwise.into(),
                text => text.into(),
            },
            Self::Number(pointer) => field(pointer).cloned().unwrap_or_else(|| 0.into()),
            Self::Flag(pointer, otherwise) => field(pointer).cloned().unwrap_or_else(|| otherwise.into()),
            Self::Count(pointers) => {
                let entries = pointers.iter().map(|pointer| match field(pointer) {
                    Some(Value::Array(items)) => items.len(),
                    Some(Value::Object(fields)) => fields.len(),
                    Some(_) | None => 0,
                });
                entries.sum::<usize>().into()
            }
            Self::Computed(compute) => compute(row),
        }
    }
}

impl<'a> Row<'a> {
    /// Returns a string field; empty if there is none.
    fn text(&self, pointer: &str) -> &'a str {
        text(self.object, pointer)
    }

    fn number(&self, pointer: &str) -> i64 {
        number(self.object, pointer)
    }

    /// Returns a list; empty if there is none.
    fn list(&self, pointer: &str) -> &'a [Value] {
        list(self.object, pointer)
    }

    /// Returns the age of the time in a field.
    fn age(&self, pointer: &str) -> String {
        let time = self.object.pointer(pointer).and_then(Value::as_str);
        age::since(time, self.now)
    }

    fn is_deleted(&self) -> bool {
        !self.text("/metadata/deletionTimestamp").is_empty()
    }

    /// Returns the condition of this type.
    fn condition(&self, kind: &str) -> Option<&'a Value> {
        self.list("/status/conditions")
            .iter()
            .find(|condition| condition["type"] == kind)
    }
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn number(value: &Value, pointer: &str) -> i64 {
    value.pointer(pointer).and_then(Value::as_i64).unwrap_or_default()
}

fn list<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    let list = value.pointer(pointer).and_then(Value::as_array);
    list.map_or(&[], Vec::as_slice)
}

/// Joins one field of all items.
fn joined(items: &[Value], pointer: &str, separator: &str) -> String {
    let fields: Vec<&str> = items.iter().map(|item| text(item, pointer)).collect();
    fields.join(separator)
}

/// Joins the first `shown` texts, followed by the number of the others; empty for no texts.
fn first_of(texts: &[String], shown: usize, separator: &str) -> String {
    let head = texts[..texts.len().min(shown)].join(separator);
    match texts.len().checked_sub(shown) {
        None | Some(0) => head,
        Some(more) => format!("{head} + {more} more..."),
    }
}

/// Returns the recorded column definitions of the newest version that is not newer than `version`.
fn recorded(group: &str, plural: &str, version: Version) -> Option<Vec<Column>> {
    static RECORDED: LazyLock<Recorded> = LazyLock::new(|| {
        serde_json::from_str(include_str!("../data/columns.json"))
            .expect("a test reads the file that is compiled in")
    });
    let table = RECORDED
        .tables
        .iter()
        .filter(|table| table.group == group && table.resource == plural && table.since <= version.minor())
        .max_by_key(|table| table.since)?;
    let heads = table
        .columns
        .iter()
        .map(|(name, kind, format, priority, description)| Column {
            name: name.clone(),
            kind: kind.clone(),
            format: format.clone(),
            description: RECORDED
                .descriptions
                .get(*description)
                .cloned()
                .unwrap_or_default(),
            priority: *priority,
        });
    Some(heads.collect())
}

/// `data/columns.json`.
#[derive(Debug, Deserialize)]
struct Recorded {
    descriptions: Vec<String>,
    tables: Vec<RecordedTable>,
}

#[derive(Debug, Deserialize)]
struct RecordedTable {
    group: String,
    resource: String,
    /// First minor version with these columns.
    since: u8,
    /// Name, type, format, priority, and index of the description.
    columns: Vec<(String, String, String, i32, usize)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A missing or an extra cell would shift all cells after it.
    #[test]
    fn every_recorded_column_has_a_cell() {
        for (group, plural, cells) in rules::RULES {
            let heads = recorded(group, plural, Version::NEWEST).expect("a recorded table");
            // kube-apiserver returns a cell with the age of an IPAddress, without a column for it.
            let extra = usize::from(*plural == "ipaddresses");
            assert_eq!(heads.len() + extra, cells.len(), "{group}/{plural}");
        }
    }
}

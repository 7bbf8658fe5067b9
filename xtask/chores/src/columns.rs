//! `cargo xtask oracle columns`: collects the columns of every kind's tables from the recordings of probes, in the
//! table that the fake reads.

use std::collections::BTreeMap;
use std::path::Path;

use ::fidelity::Error;
use fake_apiserver::scenario::Version;
use serde::Deserialize;
use serde_json::json;

use crate::clients::root;

/// Probes whose recordings have tables of every kind, and of a custom one.
const PROBES: [&str; 2] = ["tables-columns-", "negotiation-117-"];

#[derive(Deserialize)]
struct Table {
    #[serde(rename = "columnDefinitions")]
    columns: Vec<Column>,
}

#[derive(Deserialize)]
struct Column {
    name: String,
    #[serde(rename = "type")]
    kind: String,
    format: String,
    description: String,
    priority: i32,
}

/// Name, type, format, priority, and index of the description.
type Head = (String, String, String, i32, usize);

/// First minor, and its columns.
type Since = (u8, Vec<Head>);

#[derive(Default)]
struct Gathered {
    descriptions: Vec<String>,
    /// Columns by group, resource and first minor.
    tables: BTreeMap<(String, String), Vec<Since>>,
}

/// Reads the recordings and writes the table.
///
/// # Errors
/// A recording is missing or is not a table, or the file cannot be written.
pub(crate) fn renew() -> Result<(), Error> {
    let mut gathered = Gathered::default();
    for version in Version::ALL {
        let folder = root().join("fidelity/oracle/recordings").join(version.name());
        let listed = std::fs::read_dir(&folder).map_err(|why| Error::file(&folder, &why))?;
        let mut files: Vec<_> = listed.filter_map(Result::ok).map(|entry| entry.path()).collect();
        files.sort();
        for file in files {
            let probe = file
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            if PROBES.iter().any(|prefix| probe.starts_with(prefix)) {
                let text = std::fs::read_to_string(&file).map_err(|why| Error::file(&file, &why))?;
                gathered.read(version.minor(), &text, &file)?;
            }
        }
    }
    let file = root().join("crates/builtin-kinds/data/columns.json");
    std::fs::write(&file, gathered.text()).map_err(|why| Error::file(&file, &why))
}

impl Gathered {
    /// Reads a transcript: requests, and tables as responses.
    fn read(&mut self, minor: u8, transcript: &str, file: &Path) -> Result<(), Error> {
        let mut asked = None;
        for line in transcript.lines() {
            if let Some(path) = line.strip_prefix("> GET ") {
                asked = resource(path);
            } else if line.starts_with(r#"{"kind":"Table""#)
                && let Some(resource) = asked.take()
            {
                let table: Table =
                    serde_json::from_str(line).map_err(|why| Error::file(file, &why.into()))?;
                self.note(minor, resource, table);
            }
        }
        Ok(())
    }

    fn note(&mut self, minor: u8, resource: (String, String), table: Table) {
        let mut heads = Vec::new();
        for column in table.columns {
            let known = self
                .descriptions
                .iter()
                .position(|known| *known == column.description);
            let description = known.unwrap_or(self.descriptions.len());
            if known.is_none() {
                self.descriptions.push(column.description);
            }
            heads.push((
                column.name,
                column.kind,
                column.format,
                column.priority,
                description,
            ));
        }
        let versions = self.tables.entry(resource).or_default();
        if versions.last().is_none_or(|(_, last)| *last != heads) {
            versions.push((minor, heads));
        }
    }

    /// Formats one column per line.
    fn text(&self) -> String {
        let lines = |items: Vec<String>| items.join(",\n");
        let descriptions = self
            .descriptions
            .iter()
            .map(|text| format!("    {}", json!(text)));
        let tables = self.tables.iter().flat_map(|((group, resource), versions)| {
            versions.iter().map(move |(since, heads)| {
                let heads = heads.iter().map(|head| format!("      {}", json!(head)));
                format!(
                    "    {{\"group\": {}, \"resource\": {}, \"since\": {since}, \"columns\": [\n{}\n    ]}}",
                    json!(group),
                    json!(resource),
                    lines(heads.collect())
                )
            })
        });
        format!(
            "{{\n  \"descriptions\": [\n{}\n  ],\n  \"tables\": [\n{}\n  ]\n}}\n",
            lines(descriptions.collect()),
            lines(tables.collect())
        )
    }
}

/// Returns group and resource of a collection's path, or of a scale, which is the same for every resource.
fn resource(path: &str) -> Option<(String, String)> {
    let path = path.split('?').next().unwrap_or_default();
    if path.ends_with("/scale") {
        return Some(("autoscaling".to_owned(), "scales".to_owned()));
    }
    let mut parts = path.trim_matches('/').split('/');
    let group = match parts.next()? {
        "api" => String::new(),
        _ => parts.next()?.to_owned(),
    };
    Some((group, parts.next_back()?.to_owned()))
}

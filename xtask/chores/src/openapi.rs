//! `cargo xtask oracle schemas`: splits the OpenAPI v3 documents of real servers into the two tables from which the
//! fake reads types and paths. `crates/builtin-kinds/data/openapi/README.md` describes the tables.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::path::PathBuf;

use ::fidelity::{Error, Remote};
use fake_apiserver::api::published::Sample;
use fake_apiserver::scenario::Version;
use flate2::read::GzDecoder;
use flate2::{Compression, GzBuilder};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::clients::root;
use crate::oracle::{self, Running};

/// `/openapi/v3`.
#[derive(Deserialize)]
struct Index {
    paths: BTreeMap<String, GroupEntry>,
}

#[derive(Deserialize)]
struct GroupEntry {
    #[serde(rename = "serverRelativeURL")]
    url: String,
}

/// Parts of a document that the tables keep.
#[derive(Deserialize)]
struct Document {
    #[serde(default)]
    paths: BTreeMap<String, Box<RawValue>>,
    #[serde(default)]
    components: Components,
}

#[derive(Deserialize, Default)]
struct Components {
    #[serde(default)]
    schemas: BTreeMap<String, Box<RawValue>>,
}

/// Texts of each name, with the first and last minor that publishes them.
type Table = BTreeMap<String, Vec<(u8, u8, String)>>;

/// Reads the documents of every version with a built oracle, and writes the tables: other versions keep what the tables have.
///
/// # Errors
/// An oracle does not respond, a document cannot be parsed, or a file cannot be read or written.
pub(crate) fn renew() -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|why| Error::caller(format!("no runtime: {why}")))?;
    let (known_schemas, known_paths) = (read("schemas.gz")?, read("paths.gz")?);
    let mut schemas = Table::new();
    let mut paths = Table::new();
    for version in Version::ALL {
        if !oracle::is_built(version) {
            keep(&known_schemas, &mut schemas, version.minor());
            keep(&known_paths, &mut paths, version.minor());
            continue;
        }
        let oracle = Running::begin(version)?;
        let mut server = oracle.connect()?;
        let documents = runtime.block_on(documents(&mut server))?;
        let minor = version.minor();
        for document in documents {
            for (name, text) in document.components.schemas {
                note(&mut schemas, name, minor, text.get());
            }
            for (name, text) in document.paths {
                note(&mut paths, name, minor, text.get());
            }
        }
    }
    write("schemas.gz", &schemas)?;
    write("paths.gz", &paths)
}

/// Returns all documents of a server by name, those of the samples included; the core group's precedes those that
/// repeat its types.
async fn documents(server: &mut Remote) -> Result<Vec<Document>, Error> {
    for sample in &Sample::ALL {
        let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        server
            .create(definitions, definition(sample).to_string().into_bytes())
            .await?;
    }
    // A definition is published a moment after its creation.
    let mut asked = 0;
    let index: Index = loop {
        let index: Index = parse("/openapi/v3", &server.document("/openapi/v3").await?)?;
        let published = |sample: &Sample| {
            let name = format!("apis/{}/{}", sample.group, sample.version);
            index.paths.contains_key(&name)
        };
        asked += 1;
        if Sample::ALL.iter().all(published) {
            break index;
        } else if asked == 10_000 {
            return Err(Error::server("the samples are not published"));
        }
    };
    let mut documents = Vec::new();
    for place in index.paths.values() {
        documents.push(parse(&place.url, &server.document(&place.url).await?)?);
    }
    Ok(documents)
}

/// Returns the definition of a sample, with every subresource.
fn definition(sample: &Sample) -> serde_json::Value {
    let names = serde_json::json!({
        "plural": sample.plural,
        "singular": sample.plural.trim_end_matches('s'),
        "kind": sample.kind,
        "listKind": sample.list_kind,
    });
    serde_json::json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{}.{}", sample.plural, sample.group) },
        "spec": {
            "group": sample.group,
            "scope": sample.scope,
            "names": names,
            "versions": [{
                "name": sample.version,
                "served": true,
                "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object" } },
                "subresources": {
                    "status": {},
                    "scale": { "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas" },
                },
            }],
        },
    })
}

fn parse<'a, T: Deserialize<'a>>(what: &str, body: &'a [u8]) -> Result<T, Error> {
    serde_json::from_slice(body).map_err(|why| Error::server(format!("GET {what}: {why}")))
}

/// Adds a text. Versions come in order, so an unchanged text is the last one. The first document of a version decides.
fn note(table: &mut Table, name: String, minor: u8, text: &str) {
    let rows = table.entry(name).or_default();
    match rows.last_mut() {
        Some((_, last, _)) if *last == minor => {}
        Some((_, last, known)) if *last + 1 == minor && known == text => *last = minor,
        Some(_) | None => rows.push((minor, minor, text.to_owned())),
    }
}

/// Adds what a table has of a minor.
fn keep(from: &Table, table: &mut Table, minor: u8) {
    for (name, rows) in from {
        for (_, _, text) in rows
            .iter()
            .filter(|(first, last, _)| (*first..=*last).contains(&minor))
        {
            note(table, name.clone(), minor, text);
        }
    }
}

fn read(file: &str) -> Result<Table, Error> {
    let path = folder().join(file);
    let failed = |why: &str| Error::caller(format!("{}: {why}", path.display()));
    let packed = std::fs::read(&path).map_err(|why| Error::file(&path, &why))?;
    let mut text = String::new();
    GzDecoder::new(packed.as_slice())
        .read_to_string(&mut text)
        .map_err(|why| failed(&why.to_string()))?;
    let mut table = Table::new();
    for line in text.lines() {
        let mut columns = line.splitn(3, ['\t']);
        let mut column = || columns.next().ok_or_else(|| failed("a line has three columns"));
        let (minors, name, text) = (column()?, column()?, column()?);
        let (first, last) = minors
            .split_once('-')
            .ok_or_else(|| failed("no range of minors"))?;
        let number = |text: &str| text.parse().map_err(|_| failed("a minor is a number"));
        let row = (number(first)?, number(last)?, text.to_owned());
        table.entry(name.to_owned()).or_default().push(row);
    }
    Ok(table)
}

fn folder() -> PathBuf {
    root().join("crates/builtin-kinds/data/openapi")
}

fn write(file: &str, table: &Table) -> Result<(), Error> {
    let path = folder().join(file);
    let failed = |why: std::io::Error| Error::caller(format!("{}: {why}", path.display()));
    let mut packed = GzBuilder::new().write(Vec::new(), Compression::best());
    for (name, rows) in table {
        for (first, last, text) in rows {
            writeln!(packed, "{first}-{last}\t{name}\t{text}").map_err(failed)?;
        }
    }
    let packed = packed.finish().map_err(failed)?;
    std::fs::write(&path, &packed).map_err(failed)?;
    let _closed_pipe = writeln!(
        std::io::stdout(),
        "wrote {} ({} bytes)",
        path.display(),
        packed.len()
    );
    Ok(())
}

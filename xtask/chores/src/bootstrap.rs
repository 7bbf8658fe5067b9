//! `cargo xtask oracle bootstrap`: collects the objects that kube-apiserver creates at its start, from real servers of
//! every version, in `fake-apiserver/data/bootstrap.txt`.
//!
//! One object per line: the first and last minor that creates it this way, its apiVersion, kind, namespace, name and labels
//! (`-`: none), which the server reads instead of parsing the last column, and its JSON, byte for byte. `@uid`, `@version`,
//! `@time`, `@micros` and `@date` replace values that differ between servers. A version without a built oracle keeps what the
//! file has.

use std::collections::{BTreeMap, BTreeSet};

use ::fidelity::{Error, Remote};
use fake_apiserver::scenario::Version;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::clients::root;
use crate::oracle::{self, Running};

/// Flags of a production server that the oracle does not have: the service range of kubeadm, and an address for the
/// endpoints of the service `kubernetes`, which must not be loopback (validation rejects it); RFC 5737 reserves this
/// one.
const FLAGS: [&str; 3] = [
    "--service-cluster-ip-range=10.96.0.0/12",
    "--endpoint-reconciler-type=master-count",
    "--advertise-address=192.0.2.1",
];

/// kube-apiserver's default `--secure-port`.
const PORT: &str = "6443";

/// Host name of the server that the fake represents.
const HOST: &str = "fake-apiserver";

/// Identity of a kube-apiserver on [`HOST`], and its lease (base32 of half a SHA-256: apiserver `server/config.go`).
const IDENTITY: &str = "apiserver-e5qkngmlmxhbsrsdtwo2wntlsm";

/// Namespaces, which the fake always creates, and a resource that is not stored.
const ELSEWHERE: [&str; 2] = ["namespaces", "componentstatuses"];

#[derive(Deserialize)]
struct Groups {
    groups: Vec<Group>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Group {
    preferred_version: GroupVersion,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GroupVersion {
    group_version: String,
}

#[derive(Deserialize)]
struct Resources {
    resources: Vec<Resource>,
}

#[derive(Deserialize)]
struct Resource {
    name: String,
    kind: String,
    verbs: Vec<String>,
}

#[derive(Deserialize)]
struct List {
    items: Vec<Box<RawValue>>,
}

/// JSON of the objects of one version, by apiVersion, kind, namespace and name.
type Objects = BTreeMap<[String; 4], String>;

/// Reads the objects of every version with a built oracle, and writes the file.
///
/// # Errors
/// An oracle does not respond, or the file cannot be read or written.
pub(crate) fn renew() -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|why| Error::caller(format!("no runtime: {why}")))?;
    let file = root().join("fake-apiserver/data/bootstrap.txt");
    let known = std::fs::read_to_string(&file).map_err(|why| Error::file(&file, &why))?;
    let mut merged: BTreeMap<[String; 4], Vec<(BTreeSet<u8>, String)>> = BTreeMap::new();
    for version in Version::ALL {
        let minor = version.minor();
        let objects = if oracle::is_built(version) {
            let oracle = Running::begin_with(version, &FLAGS)?;
            let mut server = oracle.connect()?;
            runtime.block_on(gather(oracle.port(), &mut server))?
        } else {
            kept(&known, minor)?
        };
        for (key, json) in objects {
            note(merged.entry(key).or_default(), minor, json);
        }
    }
    let mut text = String::new();
    for ([api_version, kind, namespace, name], versions) in &merged {
        for (minors, json) in versions {
            let (Some(first), Some(last)) = (minors.first(), minors.last()) else {
                continue;
            };
            let object: Value = parse("an object", json.as_bytes())?;
            let labels = labels(&object);
            let [namespace, labels] = [namespace, &labels].map(|value| column(value));
            text.push_str(&format!(
                "{first} {last} {api_version} {kind} {namespace} {name} {labels} {json}\n"
            ));
        }
    }
    std::fs::write(&file, text).map_err(|why| Error::file(&file, &why))
}

/// Returns the labels of an object as `name=value,…`.
fn labels(object: &Value) -> String {
    let labels = object["metadata"]["labels"].as_object();
    let labels = labels.into_iter().flatten();
    let labels = labels.map(|(name, value)| format!("{name}={}", value.as_str().unwrap_or_default()));
    labels.collect::<Vec<_>>().join(",")
}

/// Returns what a column has that may be without a value.
fn column(value: &str) -> &str {
    if value.is_empty() { "-" } else { value }
}

/// Returns the objects of a minor in the text of the file.
fn kept(text: &str, minor: u8) -> Result<Objects, Error> {
    let mut objects = Objects::new();
    for line in text.lines() {
        let columns: Vec<&str> = line.splitn(8, ' ').collect();
        let no_object = || Error::caller(format!("bootstrap.txt: no object: {line}"));
        let [first, last, api_version, kind, namespace, name, _, json] = columns[..] else {
            return Err(no_object());
        };
        let number = |column: &str| column.parse::<u8>().map_err(|_| no_object());
        if (number(first)?..=number(last)?).contains(&minor) {
            let namespace = if namespace == column("") { "" } else { namespace };
            let key = [api_version, kind, namespace, name].map(str::to_owned);
            objects.insert(key, json.to_owned());
        }
    }
    Ok(objects)
}

/// Returns the objects of one server.
async fn gather(port: &str, server: &mut Remote) -> Result<Objects, Error> {
    let mut gathered = Objects::new();
    let groups: Groups = parse("/apis", &server.document("/apis").await?)?;
    let mut versions = vec![("v1".to_owned(), "/api/v1".to_owned())];
    versions.extend(groups.groups.into_iter().map(|group| {
        let version = group.preferred_version.group_version;
        let path = format!("/apis/{version}");
        (version, path)
    }));
    for (api_version, path) in versions {
        let resources: Resources = parse(&path, &server.document(&path).await?)?;
        let stored = resources.resources.into_iter().filter(|resource| {
            let listed = resource.verbs.iter().any(|verb| verb == "list");
            listed && !resource.name.contains('/') && !ELSEWHERE.contains(&resource.name.as_str())
        });
        for resource in stored {
            let path = format!("{path}/{}", resource.name);
            let list: List = parse(&path, &server.document(&path).await?)?;
            for item in list.items {
                let object: Value = parse(&path, item.get().as_bytes())?;
                // Items do not repeat kind and apiVersion of their list.
                let head = format!(r#"{{"kind":"{}","apiVersion":"{api_version}","#, resource.kind);
                let json = item.get().replacen('{', &head, 1);
                let json = anonymous(json, &object, port);
                let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
                let name = text("name").replace(&identity(&object), IDENTITY);
                let key = [
                    api_version.clone(),
                    resource.kind.clone(),
                    text("namespace"),
                    name,
                ];
                gathered.insert(key, json);
            }
        }
    }
    Ok(gathered)
}

/// Adds an object of one minor.
fn note(known: &mut Vec<(BTreeSet<u8>, String)>, minor: u8, json: String) {
    match known
        .iter_mut()
        .find(|(minors, text)| *text == json && minors.last().is_some_and(|last| last + 1 == minor))
    {
        Some((minors, _)) => drop(minors.insert(minor)),
        None => known.push((BTreeSet::from([minor]), json)),
    }
}

/// Returns the name of the server's lease if the object is it, else a text that occurs nowhere.
fn identity(object: &Value) -> String {
    match object["spec"]["holderIdentity"].as_str() {
        Some(_) => object["metadata"]["name"].as_str().unwrap_or("\0").to_owned(),
        None => "\0".to_owned(),
    }
}

/// Returns the JSON of an object with placeholders for values that differ between servers.
fn anonymous(mut json: String, object: &Value, port: &str) -> String {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    let quoted = |value: &str| format!("\"{value}\"");
    if let Some(uid) = text("/metadata/uid") {
        json = json.replace(&quoted(uid), "\"@uid\"");
    }
    if let Some(version) = text("/metadata/resourceVersion") {
        let field = |version: &str| format!(r#""resourceVersion":"{version}""#);
        json = json.replace(&field(version), &field("@version"));
    }
    let mut texts = BTreeSet::new();
    texts_of(object, &mut texts);
    for value in texts {
        let shape: String = value
            .chars()
            .map(|letter| if letter.is_ascii_digit() { '0' } else { letter })
            .collect();
        let instead = match shape.as_str() {
            "0000-00-00" => "@date",
            "0000-00-00T00:00:00Z" => "@time",
            "0000-00-00T00:00:00.000000Z" => "@micros",
            _ if value.starts_with("oracle-") => "kube-apiserver",
            _ => continue,
        };
        json = json.replace(&quoted(value), &quoted(instead));
    }
    if let Some(host) = text("/metadata/labels/kubernetes.io~1hostname") {
        json = json.replace(&quoted(host), &quoted(HOST));
    }
    let identity = identity(object);
    if let Some((_, process)) = text("/spec/holderIdentity").and_then(|holder| holder.split_once('_')) {
        json = json.replace(process, "@uid").replace(&identity, IDENTITY);
    }
    for before in ["\"port\":", "\"targetPort\":", "192.0.2.1:"] {
        json = json.replace(&format!("{before}{port}"), &format!("{before}{PORT}"));
    }
    json
}

/// Collects every string in a value.
fn texts_of<'a>(value: &'a Value, found: &mut BTreeSet<&'a str>) {
    match value {
        Value::String(text) => drop(found.insert(text)),
        Value::Array(items) => items.iter().for_each(|item| texts_of(item, found)),
        Value::Object(fields) => fields.values().for_each(|field| texts_of(field, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn parse<'a, T: Deserialize<'a>>(path: &str, body: &'a [u8]) -> Result<T, Error> {
    serde_json::from_slice(body).map_err(|why| Error::server(format!("{path}: {why}")))
}

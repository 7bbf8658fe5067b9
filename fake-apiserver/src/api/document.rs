//! Documents that are no objects: discovery, version, health. What kubectl and discovery clients ask for before they
//! ask for objects.
//!
//! Aggregated discovery and OpenAPI are not served: clients take the plain documents instead.

use serde_json::{Value, json};

use crate::model::catalog::{Catalog, Group, Kind};
use crate::model::object::{encode_json, encode_json_indented};
use crate::scenario::Version;

use super::Answer;

/// A document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Document {
    /// `/`: the paths there are.
    Root,
    /// `/version`.
    Version,
    /// `/healthz`, `/livez`, `/readyz` and the checks below them.
    Health(String),
    /// `/api`.
    ApiVersions,
    /// `/apis`.
    Groups,
    /// `/apis/{group}`.
    Group(String),
    /// `/api/v1`, `/apis/{group}/{version}`.
    Resources {
        /// The group, empty for core.
        group: String,
        /// The version.
        version: String,
    },
}

impl Document {
    /// The document, whole.
    pub fn answer(&self, catalog: &Catalog, version: Version) -> Answer {
        match self {
            Self::Health(_) => Answer::text(200, "ok"),
            Self::Root => indented(&json!({ "paths": paths(catalog) })),
            Self::Version => indented(&server_version(version)),
            Self::ApiVersions => compact(&json!({
                "kind": "APIVersions",
                "versions": ["v1"],
                "serverAddressByClientCIDRs": [
                    { "clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1:6443" }
                ],
            })),
            Self::Groups => compact(&json!({
                "kind": "APIGroupList",
                "apiVersion": "v1",
                "groups": catalog.groups().iter().map(api_group).collect::<Vec<_>>(),
            })),
            Self::Group(group) => {
                let mut document = json!({ "kind": "APIGroup", "apiVersion": "v1" });
                let groups = catalog.groups();
                let shown = groups.iter().find(|known| known.name == *group).map(api_group);
                if let (Some(fields), Some(Value::Object(shown))) = (document.as_object_mut(), shown) {
                    fields.extend(shown);
                }
                compact(&document)
            }
            Self::Resources { group, version } => compact(&resources(catalog, group, version)),
        }
    }
}

fn compact(document: &Value) -> Answer {
    let mut body = encode_json(document);
    body.push(b'\n');
    Answer::json(200, body.into())
}

fn indented(document: &Value) -> Answer {
    Answer::json(200, encode_json_indented(document).into())
}

fn api_group(group: &Group) -> Value {
    let versions: Vec<Value> = group
        .versions
        .iter()
        .map(|version| json!({ "groupVersion": format!("{}/{version}", group.name), "version": version }))
        .collect();
    json!({ "name": group.name, "versions": versions, "preferredVersion": versions[0] })
}

fn resources(catalog: &Catalog, group: &str, version: &str) -> Value {
    let mut document = json!({ "kind": "APIResourceList" });
    if !group.is_empty() {
        document["apiVersion"] = "v1".into();
    }
    let group_version = if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    };
    document["groupVersion"] = group_version.into();
    let mut kinds: Vec<&Kind> = catalog
        .kinds()
        .iter()
        .copied()
        .filter(|kind| kind.group == group && kind.version == version)
        .collect();
    kinds.sort_by_key(|kind| kind.plural);
    document["resources"] = kinds.into_iter().flat_map(resource).collect();
    document
}

/// A kind's entry and its status's. The verbs are those a client may use here; others are refused by authorization,
/// which discovery does not tell of.
fn resource(kind: &Kind) -> Vec<Value> {
    let verbs = if kind.custom {
        json!([
            "delete",
            "deletecollection",
            "get",
            "list",
            "patch",
            "create",
            "update",
            "watch"
        ])
    } else {
        json!([
            "create",
            "delete",
            "deletecollection",
            "get",
            "list",
            "patch",
            "update",
            "watch"
        ])
    };
    let mut entry = json!({
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": verbs,
    });
    if !kind.short_names.is_empty() {
        entry["shortNames"] = kind.short_names.into();
    }
    let mut entries = vec![entry];
    if kind.status {
        entries.push(json!({
            "name": format!("{}/status", kind.plural),
            "singularName": "",
            "namespaced": kind.namespaced,
            "kind": kind.kind,
            "verbs": ["get", "patch", "update"],
        }));
    }
    entries
}

fn paths(catalog: &Catalog) -> Vec<String> {
    let mut paths = vec![
        "/api".to_owned(),
        "/api/v1".to_owned(),
        "/apis".to_owned(),
        "/apis/".to_owned(),
    ];
    for Group { name, versions } in catalog.groups() {
        paths.push(format!("/apis/{name}"));
        paths.extend(versions.iter().map(|version| format!("/apis/{name}/{version}")));
    }
    paths.extend(["/healthz", "/livez", "/readyz", "/version"].map(str::to_owned));
    paths
}

fn server_version(version: Version) -> Value {
    let minor = match version {
        Version::V1_33 => 33,
        Version::V1_34 => 34,
        Version::V1_35 => 35,
        Version::V1_36 => 36,
    };
    json!({
        "major": "1",
        "minor": minor.to_string(),
        "emulationMajor": "1",
        "emulationMinor": minor.to_string(),
        "minCompatibilityMajor": "1",
        "minCompatibilityMinor": (minor - 1).to_string(),
        "gitVersion": format!("v1.{minor}.0"),
        "gitCommit": "0000000000000000000000000000000000000000",
        "gitTreeState": "clean",
        "buildDate": "2026-01-01T00:00:00Z",
        "goVersion": "go1.25.0",
        "compiler": "gc",
        "platform": "linux/amd64",
    })
}

//! Discovery: groups, versions and resources, as separate documents and as the aggregated one.
//!
//! Source: KEP-3352 (aggregated discovery), `apidiscovery.k8s.io/v2`; apiserver `endpoints/discovery`.

use apimachinery::Version;
use apimachinery::kind::{ApiResource, KindRef, Part};
use apimachinery::status::Status;
use builtin_kinds::catalog::{Catalog, Group};
use http::HeaderValue;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha512};

use super::{compact, routed};
use crate::api::{Answer, HttpRequest, VARY_ACCEPT};

/// Encodings of the separate documents.
const TYPES: [&str; 3] = [
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
];

/// Suffix of the type of the aggregated document.
const AGGREGATED: &[u8] = b";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// Discovery document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Discovery {
    /// `/api`.
    Versions,
    /// `/apis`.
    Groups,
    /// `/apis/{group}`.
    Group(String),
    /// `/api/v1`, `/apis/{group}/{version}`.
    Resources {
        /// API group, empty for core.
        group: String,
        /// API version.
        version: String,
    },
}

impl Discovery {
    /// Returns the response with the document in the requested format, or the error.
    pub(super) fn answer(&self, request: &HttpRequest, catalog: &Catalog, version: Version) -> Answer {
        let dialect = dialect(request, matches!(self, Self::Versions | Self::Groups));
        let answer = || match dialect {
            Some(Dialect::Plain) => compact(&self.plain(request, catalog, version)).in_the_style_of(request),
            Some(Dialect::Aggregated) => aggregated(self, request, catalog, version),
            None => refused(request),
        };
        let is_routed = match self {
            Self::Versions => dialect != Some(Dialect::Aggregated),
            Self::Groups | Self::Group(_) => false,
            Self::Resources { group, .. } => {
                let mut kinds = catalog.kinds().iter();
                !kinds.any(|kind| kind.custom && kind.group == *group)
            }
        };
        if is_routed {
            routed(request, &TYPES, answer)
        } else {
            answer()
        }
    }

    fn plain(&self, request: &HttpRequest, catalog: &Catalog, version: Version) -> Value {
        match self {
            Self::Versions => json!({
                "kind": "APIVersions",
                "versions": ["v1"],
                "serverAddressByClientCIDRs": [{
                    "clientCIDR": "0.0.0.0/0",
                    "serverAddress": request.header(http::header::HOST).unwrap_or("127.0.0.1:6443"),
                }],
            }),
            Self::Groups => json!({
                "kind": "APIGroupList",
                "apiVersion": "v1",
                "groups": catalog.groups().iter().map(api_group).collect::<Vec<_>>(),
            }),
            Self::Group(name) => {
                let mut document = json!({ "kind": "APIGroup", "apiVersion": "v1" });
                let groups = catalog.groups();
                let group = groups.iter().find(|group| group.name == name).map(api_group);
                if let (Value::Object(document), Some(Value::Object(group))) = (&mut document, group) {
                    document.extend(group);
                }
                document
            }
            Self::Resources {
                group,
                version: group_version,
            } => resources(catalog, group, group_version, version),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dialect {
    Plain,
    Aggregated,
}

/// Returns the format of the first clause of `Accept` that can be satisfied.
fn dialect(request: &HttpRequest, aggregates: bool) -> Option<Dialect> {
    let accept = request.header(http::header::ACCEPT).unwrap_or_default();
    if accept.is_empty() {
        return Some(Dialect::Plain);
    }
    accept.split(',').find_map(|clause| {
        let mut parts = clause.split(';').map(str::trim);
        let media_type = parts.next().unwrap_or_default();
        if !matches!(
            media_type,
            "application/json" | "application/yaml" | "application/*" | "*/*"
        ) {
            return None;
        }
        let parameters: Vec<(&str, &str)> = parts.filter_map(|part| part.split_once('=')).collect();
        let given = |name: &str| {
            let found = parameters.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| *value)
        };
        match (given("g"), given("v"), given("as")) {
            (None, None, None) => Some(Dialect::Plain),
            (Some("apidiscovery.k8s.io"), Some("v2"), Some("APIGroupDiscoveryList")) if aggregates => {
                Some(Dialect::Aggregated)
            }
            _ => None,
        }
    })
}

fn refused(request: &HttpRequest) -> Answer {
    let message = format!(
        "only the following media types are accepted: {}",
        TYPES.join(", ")
    );
    Answer::from(Status::wrong_form(message)).in_the_style_of(request)
}

// ---- the separate documents

fn api_group(group: &Group<'_>) -> Value {
    let versions: Vec<Value> = group
        .versions
        .iter()
        .map(|version| json!({ "groupVersion": format!("{}/{version}", group.name), "version": version }))
        .collect();
    let preferred = versions.first().cloned();
    json!({ "name": group.name, "versions": versions, "preferredVersion": preferred })
}

fn resources(catalog: &Catalog, group: &str, group_version: &str, version: Version) -> Value {
    let mut document = Map::new();
    document.insert("kind".to_owned(), "APIResourceList".into());
    if !group.is_empty() {
        document.insert("apiVersion".to_owned(), "v1".into());
    }
    let name = match group {
        "" => group_version.to_owned(),
        group => format!("{group}/{group_version}"),
    };
    document.insert("groupVersion".to_owned(), name.into());
    let resources = kinds(catalog, group, group_version)
        .into_iter()
        .flat_map(|kind| {
            let parts = kind.subresources().into_iter();
            std::iter::once(resource(kind, version)).chain(parts.map(|part| subresource(kind, &part)))
        })
        .collect();
    document.insert("resources".to_owned(), resources);
    Value::Object(document)
}

/// Returns the kinds of a group version, by plural.
fn kinds<'a>(catalog: &'a Catalog, group: &str, version: &str) -> Vec<&'a KindRef> {
    let mut kinds: Vec<&KindRef> = catalog
        .kinds()
        .iter()
        .filter(|kind| kind.group == group && kind.version == version)
        .collect();
    kinds.sort_by_key(|kind| &kind.plural);
    kinds
}

fn resource(kind: &ApiResource, version: Version) -> Value {
    let mut entry = json!({
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": kind.verbs,
    });
    if !kind.short_names.is_empty() {
        entry["shortNames"] = kind.short_names.iter().collect();
    }
    if !kind.categories.is_empty() {
        entry["categories"] = kind.categories.iter().collect();
    }
    if let Some(hash) = kind.storage_version_hash(version) {
        entry["storageVersionHash"] = hash.into();
    }
    entry
}

fn subresource(kind: &ApiResource, part: &Part<'_>) -> Value {
    let mut entry = json!({
        "name": format!("{}/{}", kind.plural, part.name),
        "singularName": "",
        "namespaced": kind.namespaced,
    });
    if let Some((group, version)) = part.group_version {
        if !group.is_empty() {
            entry["group"] = group.into();
        }
        entry["version"] = version.into();
    }
    entry["kind"] = part.kind.into();
    entry["verbs"] = part.verbs.into();
    entry
}

// ---- the aggregated document

fn aggregated(of: &Discovery, request: &HttpRequest, catalog: &Catalog, version: Version) -> Answer {
    let groups = if *of == Discovery::Groups {
        let groups = catalog.groups();
        groups
            .iter()
            .map(|group| aggregated_group(catalog, group, version))
            .collect()
    } else {
        let core = Group {
            name: "",
            versions: vec!["v1"],
        };
        vec![aggregated_group(catalog, &core, version)]
    };
    let list = json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": Value::Array(groups),
    });
    let mut answer = compact(&list);
    let tag = quoted(&hash(&answer.body));
    let same = request.headers.get(IF_NONE_MATCH) == Some(&tag);
    if same {
        answer = Answer {
            status: 304,
            headers: Vec::new(),
            body: bytes::Bytes::new(),
        };
    } else {
        answer = answer.in_the_style_of(request);
    }
    for (name, value) in &mut answer.headers {
        if *name == CONTENT_TYPE {
            let whole = [value.as_bytes(), AGGREGATED].concat();
            *value = HeaderValue::try_from(whole).expect("both are values");
        }
    }
    answer.headers.extend([
        (CACHE_CONTROL, HeaderValue::from_static("public")),
        (ETAG, tag),
        VARY_ACCEPT,
    ]);
    answer
}

fn aggregated_group(catalog: &Catalog, group: &Group<'_>, version: Version) -> Value {
    let mut metadata = Map::new();
    if !group.name.is_empty() {
        metadata.insert("name".to_owned(), group.name.into());
    }
    if version < Version::V1_34 {
        metadata.insert("creationTimestamp".to_owned(), Value::Null);
    }
    let versions: Vec<Value> = group
        .versions
        .iter()
        .map(|version| {
            let kinds = kinds(catalog, group.name, version);
            json!({
                "version": version,
                "resources": kinds.into_iter().map(|kind| aggregated_resource(kind)).collect::<Vec<_>>(),
                "freshness": "Current",
            })
        })
        .collect();
    json!({ "metadata": metadata, "versions": versions })
}

fn aggregated_resource(kind: &ApiResource) -> Value {
    let mut entry = json!({
        "resource": kind.plural,
        "responseKind": response_kind(kind, &kind.kind, None),
        "scope": if kind.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": kind.singular,
        "verbs": kind.verbs,
    });
    if !kind.short_names.is_empty() {
        entry["shortNames"] = kind.short_names.iter().collect();
    }
    if !kind.categories.is_empty() {
        entry["categories"] = kind.categories.iter().collect();
    }
    let parts: Vec<Value> = kind
        .subresources()
        .iter()
        .map(|part| {
            json!({
                "subresource": part.name,
                "responseKind": response_kind(kind, part.kind, part.group_version),
                "verbs": part.verbs,
            })
        })
        .collect();
    if !parts.is_empty() {
        entry["subresources"] = parts.into();
    }
    entry
}

/// A built-in kind omits the group and version of its document.
fn response_kind(of: &ApiResource, kind: &str, group_version: Option<(&str, &str)>) -> Value {
    let (group, version) = match group_version {
        Some(other) => other,
        None if of.custom => (&*of.group, &*of.version),
        None => ("", ""),
    };
    json!({ "group": group, "version": version, "kind": kind })
}

/// Returns an ETag.
pub(super) fn quoted(tag: &str) -> HeaderValue {
    HeaderValue::try_from(format!("\"{tag}\"")).expect("a hash is ASCII")
}

/// Returns the SHA-512 in upper-case hex, as in the ETags of kube-apiserver.
pub(super) fn hash(bytes: &[u8]) -> String {
    Sha512::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02X}"))
        .collect()
}

//! OpenAPI: the index, and a document for each group version, composed of the documents of kube-apiserver and the schemas of
//! definitions. Only served kinds are included.
//!
//! Source: KEP-2896 (OpenAPI v3); kube-openapi `handler3/handler.go` for ETags and caching.

use std::collections::{BTreeMap, BTreeSet};

use apimachinery::Version;
use apimachinery::encode::encode_json;
use apimachinery::kind::KindRef;
use builtin_kinds::catalog::Catalog;
use builtin_kinds::published;
use http::HeaderValue;
use http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, ETAG, EXPIRES, IF_NONE_MATCH, LAST_MODIFIED,
    LOCATION,
};
use serde_json::json;

use super::discovery::{hash, quoted};
use crate::api::{Answer, Header, HttpRequest, JSON, TEXT, VARY_ACCEPT};

mod custom;
mod version_2;

use custom::Draft;

/// Constant modification time for caches.
const FIRST_MODIFIED: HeaderValue = HeaderValue::from_static("Thu, 01 Jan 2026 00:00:00 GMT");
const FAR_FUTURE: HeaderValue = HeaderValue::from_static("Fri, 01 Jan 2027 00:00:00 UTC");

/// `/openapi/v3`.
pub(super) fn index(catalog: &Catalog, version: Version) -> Answer {
    let paths: serde_json::Map<String, serde_json::Value> = contents(catalog, version)
        .iter()
        .map(|(name, paths)| {
            let tag = tag(name, paths, catalog, version);
            let url = format!("/openapi/v3/{name}?hash={tag}");
            (name.clone(), json!({ "serverRelativeURL": url }))
        })
        .collect();
    let body = encode_json(&json!({ "paths": paths }));
    whole(TEXT, body, Vec::new())
}

/// Returns a document below it.
pub(super) fn document(name: &str, request: &HttpRequest, catalog: &Catalog, version: Version) -> Answer {
    let contents = contents(catalog, version);
    let Some(paths) = contents.get(name) else {
        return bare(404, Vec::new());
    };
    if !takes_json(request) {
        return bare(406, vec![VARY_ACCEPT]);
    }
    let tag = tag(name, paths, catalog, version);
    let etag = quoted(&tag);
    let is_known = request.headers.get(IF_NONE_MATCH) == Some(&etag);
    let mut headers = vec![(ETAG, etag), VARY_ACCEPT];
    let query = request.query.pairs();
    let asked = query.iter().find(|(name, _)| name == "hash");
    match asked.map_or("", |(_, hash)| hash.as_str()) {
        "" => {}
        hash if hash == tag => headers.extend([
            (CACHE_CONTROL, HeaderValue::from_static("public, immutable")),
            (EXPIRES, FAR_FUTURE),
        ]),
        _ => {
            headers.push((CONTENT_TYPE, JSON));
            let location = HeaderValue::try_from(format!("/openapi/v3/{name}?hash={tag}"));
            headers.extend(location.ok().map(|location| (LOCATION, location)));
            return bare(301, headers);
        }
    }
    if is_known {
        return bare(304, headers);
    }
    whole(JSON, text(name, paths, catalog, version).into_bytes(), headers)
}

/// `/openapi/v2`.
pub(super) fn version_2(request: &HttpRequest, catalog: &Catalog, version: Version) -> Answer {
    version_2::answer(request, catalog, version)
}

/// JSON of paths or schemas, by name.
type Texts = BTreeMap<String, String>;

/// Returns the paths of each document.
fn contents(catalog: &Catalog, version: Version) -> BTreeMap<String, Texts> {
    let mut documents: BTreeMap<String, Texts> = BTreeMap::new();
    for (path, text) in published::paths(version) {
        if is_served(path, catalog) {
            let document = documents.entry(document_of(path)).or_default();
            document.insert((*path).to_owned(), (*text).to_owned());
        }
    }
    for kind in catalog.kinds().iter().filter(|kind| kind.custom) {
        let document = documents.entry(custom::document_of(kind)).or_default();
        document.extend(custom::paths(kind, version));
    }
    documents
}

/// `/apis/apps/v1/deployments` is in `apis/apps/v1`, `/version/` in `version`.
fn document_of(path: &str) -> String {
    let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
    let length = match segments.first() {
        Some(&"apis") => 3,
        Some(&"api") => 2,
        Some(_) | None => segments.len(),
    };
    segments[..length.min(segments.len())].join("/")
}

/// Returns whether the path is served. A path without a kind always is.
fn is_served(path: &str, catalog: &Catalog) -> bool {
    let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
    let (group, version, below) = match segments.as_slice() {
        ["api", version, below @ ..] => ("", *version, below),
        ["apis", group, version, below @ ..] => (*group, *version, below),
        ["apis", group] => return catalog.groups().iter().any(|known| known.name == *group),
        _ => return true,
    };
    let below = below.strip_prefix(&["watch"]).unwrap_or(below);
    let below = match below {
        ["namespaces", "{namespace}", below @ ..] if !below.is_empty() => below,
        below => below,
    };
    match below {
        [] => catalog
            .kinds()
            .iter()
            .any(|kind| kind.group == group && kind.version == version),
        [plural, below @ ..] => {
            catalog
                .find_version(group, version, plural)
                .is_some_and(|kind| match below {
                    [_, part, ..] => kind.subresources().iter().any(|known| known.name == *part),
                    [_] | [] => true,
                })
        }
    }
}

/// Returns the ETag, which changes with the document: recorded documents are constant, of custom resources all relevant input
/// is hashed.
fn tag(name: &str, paths: &Texts, catalog: &Catalog, version: Version) -> String {
    let mut text = format!("{} 1.{} {name}\n", env!("CARGO_PKG_VERSION"), version.minor());
    for path in paths.keys() {
        text.push_str(path);
        text.push('\n');
    }
    for kind in customs(name, catalog) {
        text.push_str(&custom::schema(kind, version, Draft::Version3).to_string());
    }
    hash(text.as_bytes())
}

/// Returns the custom kinds in a document.
fn customs<'a>(name: &'a str, catalog: &'a Catalog) -> impl Iterator<Item = &'a KindRef> {
    let kinds = catalog.kinds().iter();
    kinds.filter(move |kind| kind.custom && custom::document_of(kind) == name)
}

fn text(name: &str, paths: &Texts, catalog: &Catalog, version: Version) -> String {
    let schemas = schemas_of(name, paths, catalog, version);
    let custom = customs(name, catalog).next().is_some();
    let info = match custom {
        true => r#"{"title":"Kubernetes CRD Swagger","version":"v0.1.0"}"#.to_owned(),
        false => format!(r#"{{"title":"Kubernetes","version":"1.{}"}}"#, version.minor()),
    };
    let mut components = Vec::new();
    if !schemas.is_empty() {
        components.push(format!(r#""schemas":{}"#, object(&schemas)));
    }
    if !custom {
        components.push(SECURITY.to_owned());
    }
    format!(
        r#"{{"openapi":"3.0.0","info":{info},"paths":{},"components":{{{}}}}}"#,
        object(paths),
        components.join(",")
    )
}

const SECURITY: &str = concat!(
    r#""securitySchemes":{"BearerToken":{"type":"apiKey","description":"Bearer Token authentication","#,
    r#""name":"authorization","in":"header"}}"#
);

/// Returns all schemas that the paths of a document refer to, directly or indirectly.
fn schemas_of(document: &str, paths: &Texts, catalog: &Catalog, version: Version) -> Texts {
    let known: Texts = customs(document, catalog)
        .flat_map(|kind| custom::schemas(kind, version))
        .collect();
    let published = published::schemas(version);
    let mut schemas = Texts::new();
    let mut wanted: BTreeSet<&str> = paths.values().flat_map(|text| references(text)).collect();
    while let Some(name) = wanted.pop_first() {
        if schemas.contains_key(name) {
            continue;
        }
        let text: &str = match (known.get(name), published.get(name)) {
            (Some(text), _) => text,
            (None, Some(text)) => text,
            (None, None) => continue,
        };
        schemas.insert(name.to_owned(), of_document(name, text, document, version));
        wanted.extend(references(text));
    }
    schemas
}

/// Returns the names of the schemas that a text refers to.
fn references(text: &str) -> impl Iterator<Item = &str> {
    text.split("\"#/components/schemas/")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
}

/// Since 1.36 types common to all group versions have a copy in each.
fn of_document(name: &str, text: &str, document: &str, version: Version) -> String {
    let shared = ["DeleteOptions", "WatchEvent"]
        .into_iter()
        .find(|kind| name.strip_suffix(kind) == Some("io.k8s.apimachinery.pkg.apis.meta.v1."));
    let own = document
        .strip_prefix("apis/")
        .and_then(|name| name.split_once('/'));
    match (shared, own, text.strip_suffix("]}")) {
        (Some(kind), Some((group, group_version)), Some(rest)) if version >= Version::V1_36 => {
            format!(r#"{rest},{{"group":"{group}","kind":"{kind}","version":"{group_version}"}}]}}"#)
        }
        _ => text.to_owned(),
    }
}

/// Joins JSON texts to an object. The names need no escapes: none has a quote.
fn object(texts: &Texts) -> String {
    let mut out = String::from("{");
    for (name, text) in texts {
        if out.len() > 1 {
            out.push(',');
        }
        out.push('"');
        out.push_str(name);
        out.push_str("\":");
        out.push_str(text);
    }
    out.push('}');
    out
}

/// Returns whether the client accepts JSON, the only encoding of these documents.
fn takes_json(request: &HttpRequest) -> bool {
    let accept = request.header(http::header::ACCEPT).unwrap_or_default();
    accept.is_empty()
        || accept.split(',').any(|clause| {
            let media_type = clause.split(';').next().unwrap_or_default().trim();
            matches!(media_type, "application/json" | "application/*" | "*/*")
        })
}

/// Returns a document with its length, as Go's `http.ServeContent` does.
fn whole(content_type: HeaderValue, body: Vec<u8>, mut headers: Vec<Header>) -> Answer {
    headers.extend([
        (ACCEPT_RANGES, HeaderValue::from_static("bytes")),
        (CONTENT_LENGTH, body.len().into()),
        (CONTENT_TYPE, content_type),
        (LAST_MODIFIED, FIRST_MODIFIED),
    ]);
    Answer {
        status: 200,
        headers,
        body: body.into(),
    }
}

fn bare(status: u16, headers: Vec<Header>) -> Answer {
    Answer {
        status,
        headers,
        body: bytes::Bytes::new(),
    }
}

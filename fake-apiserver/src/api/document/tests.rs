//! Documents in all formats.

use std::collections::BTreeSet;

use apimachinery::Version;
use builtin_kinds::catalog::Catalog;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use rstest::rstest;
use serde_json::{Value, json};

use crate::api::access::Issuer;
use crate::api::path::{Route, route};
use crate::api::{Answer, HttpRequest};

const NEWEST: Version = Version::NEWEST;
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const REMOVED: &str = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";

fn ask_as(version: Version, method: &str, target: &str, headers: &[(&str, &str)]) -> Answer {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let pairs = headers.iter().map(|(name, value)| {
        let name: HeaderName = name.parse().unwrap();
        (name, HeaderValue::from_str(value).unwrap())
    });
    let request = HttpRequest {
        method: method.parse().unwrap(),
        path: path.to_owned(),
        query: query.into(),
        headers: HeaderMap::from_iter(pairs),
        body: Bytes::new(),
    };
    let catalog = Catalog::of_scenarios(version);
    let Route::Document(document) = route(path, &catalog) else {
        panic!("{path} leads to no document");
    };
    document.answer(&request, &catalog, version, &Issuer::new([0; 32]))
}

fn get(target: &str, headers: &[(&str, &str)]) -> Answer {
    ask_as(NEWEST, "GET", target, headers)
}

fn json_of(answer: &Answer) -> Value {
    serde_json::from_slice(&answer.body).unwrap()
}

fn header<'a>(answer: &'a Answer, name: &str) -> Option<&'a str> {
    let mut headers = answer.headers.iter();
    headers
        .find(|(known, _)| *known == name)
        .and_then(|(_, value)| value.to_str().ok())
}

#[rstest]
#[case("/api", "", 200, "APIVersions")]
#[case("/api", AGGREGATED, 200, "APIGroupDiscoveryList")]
#[case("/apis", "*/*", 200, "APIGroupList")]
#[case(
    "/apis",
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList;profile=nopeer",
    200,
    "APIGroupDiscoveryList"
)]
#[case("/apis", REMOVED, 406, "Status")]
#[case("/apis", "text/html", 406, "Status")]
#[case("/apis/apps", AGGREGATED, 406, "Status")]
#[case("/apis/apps/v1", "application/json", 200, "APIResourceList")]
#[case("/apis/apps/v1", "text/html", 406, "Status")]
#[case("/api/v1", AGGREGATED, 406, "Status")]
#[case("/version", "application/yaml", 406, "Status")]
#[case("/version", AGGREGATED, 200, "")]
fn the_type_asked_for_decides(
    #[case] path: &str,
    #[case] accept: &str,
    #[case] status: u16,
    #[case] kind: &str,
) {
    let accept = if accept.is_empty() {
        vec![]
    } else {
        vec![("accept", accept)]
    };
    let answer = get(path, &accept);
    assert_eq!(answer.status, status);
    if accept
        .first()
        .is_none_or(|(_, accept)| *accept != "application/yaml")
    {
        assert_eq!(json_of(&answer)["kind"].as_str().unwrap_or_default(), kind);
    }
}

#[rstest]
#[case("/apis", &format!("{REMOVED},{AGGREGATED},application/json"), "APIGroupDiscoveryList")]
#[case("/apis", &format!("{REMOVED},application/json"), "APIGroupList")]
#[case("/api/v1", &format!("{AGGREGATED},application/json"), "APIResourceList")]
fn the_first_satisfiable_clause_decides(#[case] path: &str, #[case] accept: &str, #[case] kind: &str) {
    assert_eq!(json_of(&get(path, &[("accept", accept)]))["kind"], kind);
}

#[rstest]
#[case("POST", "/version", 405)]
#[case("POST", "/api", 405)]
#[case("HEAD", "/apis/apps/v1", 405)]
#[case("POST", "/apis", 200)]
#[case("HEAD", "/apis/apps", 200)]
#[case("PUT", "/apis/probe.example.com/v1", 200)]
#[case("DELETE", "/healthz", 200)]
#[case("POST", "/", 200)]
#[case("PATCH", "/openapi/v3", 200)]
fn only_routed_documents_check_the_method(#[case] method: &str, #[case] path: &str, #[case] status: u16) {
    assert_eq!(ask_as(NEWEST, method, path, &[]).status, status);
}

#[test]
fn a_current_aggregated_document_gets_304() {
    let first = get("/apis", &[("accept", AGGREGATED)]);
    assert_eq!(header(&first, "content-type"), Some(AGGREGATED));
    let tag = header(&first, "etag").unwrap();
    let again = get("/apis", &[("accept", AGGREGATED), ("if-none-match", tag)]);
    assert_eq!((again.status, again.body.len()), (304, 0));
    assert_eq!(header(&again, "etag"), Some(tag));
    assert_ne!(header(&get("/api", &[("accept", AGGREGATED)]), "etag"), Some(tag));
}

#[test]
fn both_discovery_formats_have_every_kind() {
    for version in Version::ALL {
        let catalog = Catalog::of_scenarios(version);
        for kind in catalog.kinds() {
            let place = match &*kind.group {
                "" => format!("/api/{}", kind.version),
                group => format!("/apis/{group}/{}", kind.version),
            };
            let entries = json_of(&ask_as(version, "GET", &place, &[]))["resources"].take();
            let names: Vec<&str> = entries
                .as_array()
                .unwrap()
                .iter()
                .map(|entry| entry["name"].as_str().unwrap())
                .collect();
            assert!(names.contains(&&*kind.plural), "{version:?} {}", kind.qualified());
            assert!(kind.custom || names.is_sorted(), "{names:?}");
        }
    }
}

#[rstest]
#[case("/livez", "ok")]
#[case("/livez?exclude=etcd", "ok")]
#[case("/readyz/etcd-readiness", "ok")]
#[case("/healthz/poststarthook/rbac/bootstrap-roles", "ok")]
#[case("/livez/etcd-readiness", "404 page not found\n")]
#[case("/livez/", "404 page not found\n")]
fn health_without_verbose_is_short(#[case] target: &str, #[case] body: &str) {
    assert_eq!(get(target, &[]).body, body);
}

#[test]
fn verbose_health_lists_every_check() {
    let body = get("/readyz?verbose&exclude=ping&exclude=nope", &[]).body;
    let text = std::str::from_utf8(&body).unwrap();
    assert!(text.starts_with("[+]ping excluded: ok\n[+]log ok\n[+]etcd ok\n[+]etcd-readiness ok\n"));
    assert!(text.ends_with(
        "[+]shutdown ok\nwarn: some health checks cannot be excluded: no matches for \"nope\"\nreadyz check passed\n"
    ));
}

#[test]
fn listed_paths_are_served() {
    for version in Version::ALL {
        let listed = json_of(&ask_as(version, "GET", "/", &[]));
        for path in listed["paths"].as_array().unwrap() {
            let path = path.as_str().unwrap();
            // The prefix of the documents is listed as such.
            if path != "/openapi/v3/" {
                assert_eq!(
                    ask_as(version, "GET", path, &[]).status,
                    200,
                    "{version:?} {path}"
                );
            }
        }
    }
}

#[test]
fn openapi_documents_have_no_dangling_references() {
    for version in [Version::OLDEST, NEWEST] {
        let index = json_of(&ask_as(version, "GET", "/openapi/v3", &[]));
        for (name, place) in index["paths"].as_object().unwrap() {
            let url = place["serverRelativeURL"].as_str().unwrap();
            let answer = ask_as(version, "GET", url, &[]);
            assert_eq!(answer.status, 200, "{url}");
            assert_eq!(header(&answer, "cache-control"), Some("public, immutable"));
            let document = json_of(&answer);
            assert!(!document["paths"].as_object().unwrap().is_empty(), "{name}");
            let text = std::str::from_utf8(&answer.body).unwrap();
            let wanted: BTreeSet<&str> = text
                .split("#/components/schemas/")
                .skip(1)
                .map(|rest| rest.split('"').next().unwrap())
                .collect();
            let none = serde_json::Map::new();
            let schemas = document["components"]["schemas"].as_object().unwrap_or(&none);
            for schema in wanted {
                assert!(schemas.contains_key(schema), "{name} lacks {schema}");
            }
        }
    }
}

#[rstest]
#[case("/openapi/v3/apis/apps/v1", &[], 200)]
#[case("/openapi/v3/apis/apps/v1", &[("accept", "application/yaml")], 406)]
#[case("/openapi/v3/apis/apps/v1?hash=0", &[], 301)]
#[case("/openapi/v3/apis/apps/v9", &[], 404)]
#[case("/openapi/v3/", &[], 404)]
#[case("/openapi/v2", &[("accept", "text/html")], 406)]
fn documents_of_openapi_are_cached(
    #[case] target: &str,
    #[case] headers: &[(&str, &str)],
    #[case] status: u16,
) {
    assert_eq!(get(target, headers).status, status);
}

#[test]
fn documents_have_what_kubectl_needs() {
    for (document, path, kind) in [
        (
            "api/v1",
            "/api/v1/namespaces/{namespace}/configmaps/{name}",
            "ConfigMap",
        ),
        (
            "apis/probe.example.com/v1",
            "/apis/probe.example.com/v1/namespaces/{namespace}/widgets/{name}",
            "Widget",
        ),
    ] {
        let document = json_of(&get(&format!("/openapi/v3/{document}"), &[]));
        let patch = &document["paths"][path]["patch"];
        assert_eq!(patch["x-kubernetes-group-version-kind"]["kind"], kind);
        let parameters = patch["parameters"].as_array().unwrap();
        assert!(
            parameters
                .iter()
                .any(|parameter| parameter["name"] == "fieldValidation")
        );
    }
}

#[test]
fn version_2_has_the_structure_of_swagger_2() {
    let document = json_of(&get("/openapi/v2", &[]));
    assert_eq!(document["swagger"], "2.0");
    let meta = "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
    let definitions = &document["definitions"];
    assert_eq!(
        definitions["io.k8s.api.core.v1.Pod"]["properties"]["metadata"]["$ref"],
        meta
    );
    // It allows any field, and so lists none, because a list would be taken as complete.
    let names = json!([{"group": "probe.example.com", "kind": "Widget", "version": "v1"}]);
    assert_eq!(
        definitions["com.example.probe.v1.Widget"],
        json!({"type": "object", "x-kubernetes-group-version-kind": names})
    );
    assert_eq!(
        definitions["io.k8s.apimachinery.pkg.api.resource.Quantity"]["type"],
        "string"
    );
    let create = &document["paths"]["/api/v1/namespaces/{namespace}/pods"]["post"];
    assert_eq!(
        create["parameters"][0],
        json!({"name": "body", "in": "body", "schema": {"$ref": "#/definitions/io.k8s.api.core.v1.Pod"}, "required": true})
    );
    assert!(!document.to_string().contains("#/components/"));
}

#[test]
fn version_2_is_encoded_in_protobuf_on_request() {
    let accept = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
    let answer = get("/openapi/v2", &[("accept", accept)]);
    assert_eq!(
        header(&answer, "content-type"),
        Some("application/com.github.proto-openapi.spec.v2.v1.0+protobuf")
    );
    assert!(answer.body.starts_with(b"\x0a\x032.0\x12"), "swagger, info, …");
    assert_ne!(header(&answer, "etag"), header(&get("/openapi/v2", &[]), "etag"));
}

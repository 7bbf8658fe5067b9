//! Invariants of all rows, and the orders of a real apiserver.

use rstest::rstest;
use serde_json::Value;

use super::*;

fn newest() -> Catalog {
    Catalog::builtin(Version::NEWEST)
}

fn json(kind: &ApiResource, text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{}: {error}: {text}", kind.qualified()))
}

#[test]
fn a_row_is_named_once() {
    let catalog = Catalog::of_scenarios(Version::NEWEST);
    for kind in catalog.kinds() {
        let found = catalog.find_version(&kind.group, &kind.version, &kind.plural);
        assert_eq!(found, Some(kind), "{}", kind.qualified());
        assert_eq!(catalog.find_kind(&kind.api_version(), &kind.kind), Some(kind));
    }
}

#[test]
fn zero_values_and_first_statuses_are_json() {
    for kind in newest().kinds() {
        let zero = json(kind, &format!("{{\"\":0{}}}", kind.zero));
        let shown: Vec<&str> = zero
            .as_object()
            .unwrap()
            .keys()
            .skip(1)
            .map(String::as_str)
            .collect();
        let known: Vec<&str> = kind
            .fields
            .iter()
            .copied()
            .filter(|field| shown.contains(field))
            .collect();
        assert_eq!(shown, known, "{}: the order of its fields", kind.qualified());
        if let Some(first) = kind.first_status.filter(|first| !first.is_empty()) {
            json(kind, first);
        }
    }
}

#[test]
fn rows_with_shared_objects_name_the_stored_row() {
    for kind in newest().kinds() {
        if let Some((group, version)) = &kind.shows {
            assert!(newest().find_version(group, version, &kind.plural).is_some());
        }
        assert_eq!(kind.allows("watch"), kind.is_stored(), "{}", kind.qualified());
    }
}

#[rstest]
#[case("", "v1", "configmaps", Version::NEWEST, Some("qFsyl6wFWjQ="))]
#[case("events.k8s.io", "v1", "events", Version::NEWEST, Some("r2yiGXH7wu8="))]
#[case(
    "autoscaling",
    "v1",
    "horizontalpodautoscalers",
    Version::NEWEST,
    Some("qwQve8ut294=")
)]
#[case(
    "networking.k8s.io",
    "v1",
    "ipaddresses",
    Version::V1_34,
    Some("3f/plJFChNE=")
)]
#[case(
    "apiextensions.k8s.io",
    "v1",
    "customresourcedefinitions",
    Version::NEWEST,
    Some("jfWCUB31mvA=")
)]
#[case("authentication.k8s.io", "v1", "tokenreviews", Version::NEWEST, None)]
fn the_stored_version_is_hashed(
    #[case] group: &str,
    #[case] version: &str,
    #[case] plural: &str,
    #[case] minor: Version,
    #[case] hash: Option<&str>,
) {
    let kind = Catalog::builtin(minor)
        .find_version(group, version, plural)
        .cloned()
        .unwrap();
    assert_eq!(kind.storage_version_hash(minor).as_deref(), hash);
}

#[rstest]
#[case(Version::V1_34, "resource.k8s.io", true)]
#[case(Version::NEWEST, "apps", true)]
fn a_minor_serves_its_own_groups(#[case] minor: Version, #[case] group: &str, #[case] served: bool) {
    let catalog = Catalog::builtin(minor);
    let groups = catalog.groups();
    assert_eq!(groups.iter().any(|known| known.name == group), served);
}

#[test]
fn the_newest_version_is_preferred() {
    let mut versions = [
        "v1alpha1", "v2", "x", "v1", "v10beta2", "v0", "v1beta1", "v3beta01", "a",
    ];
    versions.sort_by(|one, other| by_age(one, other));
    assert_eq!(
        versions,
        [
            "v2", "v1", "v0", "v10beta2", "v3beta01", "v1beta1", "v1alpha1", "a", "x"
        ]
    );
}

#[test]
fn subresources_are_those_of_discovery() {
    let pods = newest().find("", "pods").cloned().unwrap();
    let names: Vec<&str> = pods.subresources().iter().map(|part| part.name).collect();
    assert_eq!(
        names,
        [
            "attach",
            "binding",
            "ephemeralcontainers",
            "eviction",
            "exec",
            "log",
            "portforward",
            "proxy",
            "resize",
            "status"
        ]
    );
    let deployments = newest().find("apps", "deployments").cloned().unwrap();
    let scale = deployments.subresources()[0];
    assert_eq!(
        (scale.name, scale.group_version),
        ("scale", Some(("autoscaling", "v1")))
    );
}

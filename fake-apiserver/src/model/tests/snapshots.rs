//! Stores that begin with the objects of a snapshot, at 2000 or, what was read later, at 2010.

use rstest::rstest;

use super::super::{NotAdded, Snapshot};
use super::*;

const OLDEST: u64 = 2000;
const NEWEST: u64 = 2010;

fn begun(bare: bool) -> Snapshot {
    let settings = ServerSettings {
        revision: OLDEST,
        ..ServerSettings::default()
    };
    Snapshot::new(&settings, NEWEST, bare)
}

fn config_map(name: &str, version: u64) -> Value {
    let metadata = json!({
        "name": name, "namespace": "probe", "uid": format!("uid-of-{name}"), "resourceVersion": version.to_string(),
        "generation": 7, "creationTimestamp": "2020-01-01T00:00:00Z",
    });
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata })
}

fn definition() -> Value {
    let schema =
        json!({ "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "gadgets.example.com", "resourceVersion": "1500" },
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": { "plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": schema }],
        },
    })
}

fn gadget() -> Value {
    json!({ "apiVersion": "example.com/v1", "kind": "Gadget", "metadata": { "name": "g", "namespace": "probe" }, "spec": {} })
}

/// Returns the object of this key as JSON.
fn stored(model: &Model, plural: &str, key: &str) -> Value {
    let mut kinds = model.catalog().kinds().iter();
    let kind = kinds.rfind(|kind| kind.plural == plural).expect("it is served");
    model.objects(kind).get(key).expect("it is there").json()
}

#[test]
fn objects_stay_as_they_are_and_new_ones_differ() {
    let mut snapshot = begun(false);
    snapshot.add(config_map("a", 1999)).expect("a valid object");
    let by_hand =
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "b", "namespace": "other" } });
    snapshot.add(by_hand).expect("a valid object");
    let (mut model, written) = snapshot.into_model(false);
    assert!(written.is_empty());
    assert_eq!((model.compacted(), model.revision()), (OLDEST, NEWEST));
    assert_eq!(model.oldest_watchable("", "configmaps"), Some(OLDEST));
    let mut expected = config_map("a", 1999);
    expected["metadata"]["name"] = "a".into();
    assert_eq!(stored(&model, "configmaps", "probe/a"), expected);
    let by_hand = stored(&model, "configmaps", "other/b");
    assert_eq!(by_hand["metadata"]["resourceVersion"], NEWEST.to_string());
    assert!(by_hand["metadata"]["uid"].is_string() && by_hand["metadata"]["creationTimestamp"].is_string());
    for namespace in ["default", "probe", "other"] {
        stored(&model, "namespaces", namespace);
    }
    let manifest = model.namespace_manifest("late");
    let late = model.apply(Duration::ZERO, &manifest).expect("it is valid");
    assert_eq!(late.revision, NEWEST + 1);
}

#[test]
fn definitions_are_established_without_a_write_that_a_watch_sees() {
    let mut snapshot = begun(false);
    assert_eq!(
        snapshot.add(gadget()),
        Err(NotAdded::NotServed(
            "example.com/v1".to_owned(),
            "Gadget".to_owned()
        )),
        "definitions come first"
    );
    snapshot.add(definition()).expect("a valid definition");
    snapshot.define();
    snapshot.add(gadget()).expect("a valid object");
    let (model, _) = snapshot.into_model(false);
    assert_eq!(model.revision(), NEWEST);
    assert_eq!(model.oldest_watchable("example.com", "gadgets"), Some(OLDEST));
    let service = stored(&model, "apiservices", "v1.example.com");
    let version: u64 = service["metadata"]["resourceVersion"]
        .as_str()
        .expect("a text")
        .parse()
        .expect("a number");
    assert!(version < OLDEST, "{version}");
    let definition = stored(&model, "customresourcedefinitions", "gadgets.example.com");
    assert!(
        definition["status"]["conditions"]
            .to_string()
            .contains("Established"),
        "{definition}"
    );
}

#[rstest]
#[case::all_that_a_cluster_has(false, false, true)]
#[case::namespaces_only(true, false, false)]
#[case::roles_of_the_snapshot(false, true, false)]
fn the_rest_is_that_of_a_new_cluster(#[case] bare: bool, #[case] has_all: bool, #[case] expected: bool) {
    let mut snapshot = begun(bare);
    if has_all {
        snapshot.has_all_of("rbac.authorization.k8s.io/v1", "ClusterRole");
    }
    let (model, _) = snapshot.into_model(false);
    let kind = model
        .catalog()
        .find("rbac.authorization.k8s.io", "clusterroles")
        .expect("it is built in");
    assert_eq!(!model.objects(kind).is_empty(), expected);
    assert_eq!(model.revision(), NEWEST);
}

#[test]
fn an_upgraded_server_creates_what_it_lacks() {
    let mut snapshot = begun(false);
    snapshot.has_all_of("rbac.authorization.k8s.io/v1", "ClusterRole");
    let (model, written) = snapshot.into_model(true);
    assert!(!written.is_empty());
    assert_eq!(model.revision(), NEWEST + written.len() as u64);
    assert!(
        written
            .iter()
            .all(|written| &*written.stored.kind.plural == "clusterroles")
    );
}

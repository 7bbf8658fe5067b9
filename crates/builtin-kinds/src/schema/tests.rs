//! Tests of schemas from published types and from definitions.

use apimachinery::Version;
use apimachinery::kind::KindRef;
use rstest::rstest;
use serde_json::{Value, json};

use super::{Schema, Shape, published};
use crate::catalog::Catalog;

fn kind(group: &str, plural: &str) -> KindRef {
    Catalog::builtin(Version::NEWEST)
        .find(group, plural)
        .cloned()
        .unwrap()
}

fn at(group: &str, plural: &str, path: &str) -> &'static Schema {
    let mut schema = Schema::of_builtin(&kind(group, plural), Version::NEWEST).unwrap();
    for step in path.split('.') {
        schema = match step {
            "[]" => schema.items().unwrap(),
            name => schema.field(name).unwrap(),
        };
    }
    schema
}

#[test]
fn every_version_publishes_every_built_in_kind() {
    for version in Version::ALL {
        assert!(published::schemas(version).len() > 500);
        assert!(published::paths(version).contains_key("/api/v1/namespaces/{namespace}/pods/{name}"));
        let catalog = Catalog::builtin(version);
        for kind in catalog.kinds().iter().filter(|kind| !kind.custom) {
            let schema = Schema::of_builtin(kind, version);
            assert_eq!(
                schema
                    .and_then(|schema| schema.field("metadata"))
                    .map(Schema::shape),
                Some(Shape::Object),
                "{version:?} {}",
                kind.qualified()
            );
        }
    }
}

#[test]
fn versions_differ() {
    // Storage version migration (KEP-4192) is served as v1 since 1.37.
    let migration = "io.k8s.api.storagemigration.v1.StorageVersionMigration";
    let has = |version| published::schemas(version).contains_key(migration);
    assert_eq!(Version::ALL.map(has), [false, false, false, true]);
}

#[rstest]
#[case("", "pods", "spec.containers", Shape::List, Some("name"), true, Some("map"))]
#[case(
    "",
    "pods",
    "spec.containers.[].ports",
    Shape::List,
    Some("containerPort"),
    true,
    Some("map")
)]
#[case("", "pods", "spec.tolerations", Shape::List, None, false, Some("atomic"))]
#[case(
    "",
    "pods",
    "spec.containers.[].command",
    Shape::List,
    None,
    false,
    Some("atomic")
)]
#[case("", "pods", "metadata.finalizers", Shape::List, None, true, Some("set"))]
#[case("", "pods", "metadata.labels", Shape::Map, None, false, None)]
#[case(
    "",
    "pods",
    "spec.containers.[].resources.limits.cpu",
    Shape::Anything,
    None,
    false,
    None
)]
#[case("apps", "deployments", "spec.replicas", Shape::Integer, None, false, None)]
#[case("apps", "deployments", "spec.template.spec", Shape::Object, None, false, None)]
#[case("", "configmaps", "data.whatever", Shape::Text, None, false, None)]
fn schemas_of_lists_have_merge_keys(
    #[case] group: &str,
    #[case] plural: &str,
    #[case] path: &str,
    #[case] shape: Shape,
    #[case] merge_key: Option<&str>,
    #[case] merges: bool,
    #[case] list_type: Option<&str>,
) {
    let schema = at(group, plural, path);
    assert_eq!(schema.shape(), shape);
    assert_eq!(schema.merge_key(), merge_key);
    assert_eq!(schema.merges(), merges);
    assert_eq!(schema.list_type(), list_type);
}

#[test]
fn merge_strategies_are_read() {
    assert!(at("", "pods", "spec.volumes").retains_keys());
    assert!(at("apps", "deployments", "spec.strategy").retains_keys());
    assert!(at("apps", "deployments", "spec.selector").is_atomic());
    assert_eq!(at("apps", "deployments", "spec.replicas").format(), "int32");
    assert_eq!(
        at("", "services", "spec.ports").list_map_keys(),
        ["port", "protocol"]
    );
    assert_eq!(
        at("", "pods", "spec").type_name(),
        Some("io.k8s.api.core.v1.PodSpec")
    );
}

#[rstest]
#[case("", "configmaps", json!({"data": {"a.b": "c"}, "metadata": {"labels": {"x": "y"}}}), &[])]
#[case("", "configmaps", json!({"kind": "ConfigMap", "apiVersion": "v1", "datas": {}}), &["datas"])]
#[case("", "pods", json!({"spec": {"containers": [{}, {"nam": 1, "ports": [{"port": 1}]}]}}),
    &["spec.containers[1].nam", "spec.containers[1].ports[0].port"])]
#[case("", "pods", json!({"metadata": {"managedFields": [{"fieldsV1": {"f:x": {}}}]}}), &[])]
fn unknown_fields_are_named_by_their_path(
    #[case] group: &str,
    #[case] plural: &str,
    #[case] object: Value,
    #[case] expected: &[&str],
) {
    let schema = Schema::of_builtin(&kind(group, plural), Version::NEWEST).unwrap();
    assert_eq!(schema.unknown_fields(&object), expected);
}

#[test]
fn schema_of_a_custom_resource_is_that_of_its_definition() {
    let schema = Schema::of_custom(
        &json!({
            "type": "object",
            "properties": {
                "spec": {
                    "type": "object",
                    "properties": {
                        "size": {"type": "integer"},
                        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                        "either": {"x-kubernetes-int-or-string": true},
                        "named": {"type": "object", "additionalProperties": {"type": "object", "properties": {}}},
                    },
                },
                "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            },
        }),
        Version::NEWEST,
    );
    let unknown = schema.unknown_fields(&json!({
        "apiVersion": "a/v1", "kind": "A", "metadata": {"name": "a", "lable": {}}, "status": {"any": 1},
        "spec": {"size": 1, "sise": 1, "free": {"a": {"b": 1}}, "either": "5%", "named": {"one": {"x": 1}}},
    }));
    assert_eq!(unknown, ["metadata.lable", "spec.sise", "spec.named.one.x"]);
    let free = Schema::of_custom(
        &json!({"x-kubernetes-preserve-unknown-fields": true}),
        Version::NEWEST,
    );
    assert!(free.unknown_fields(&json!({"a": 1})).is_empty());
}

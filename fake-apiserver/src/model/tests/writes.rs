//! Objects that result from writing a manifest.

use rstest::rstest;
use trace::record::WriteOp;

use super::*;

#[test]
fn the_server_sets_identity_and_times() {
    let mut world = World::fixture(Version::NEWEST);
    world.now = seconds(86_400.0 * 59.0 + 3_661.5);
    let forged = json!({ "apiVersion": "v2", "kind": "Other", "metadata": {
        "name": "other", "namespace": "other", "uid": "u", "resourceVersion": "7", "generation": 9,
        "creationTimestamp": "1999-01-01T00:00:00Z", "deletionTimestamp": "1999-01-01T00:00:00Z", "selfLink": "/x",
    }});
    let written = world.apply("", "configmaps", Some("probe"), "new", forged);
    assert_eq!(written.op, Some(WriteOp::Create));
    let uid = written.uid.clone();
    assert_eq!(
        written.stored.json(),
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": {
            "name": "new", "namespace": "probe", "uid": uid, "resourceVersion": "1010",
            "creationTimestamp": "2026-03-01T01:01:01Z",
        }})
    );
    assert_eq!((uid.len(), &uid[14..15]), (36, "4"));
}

#[test]
fn a_write_without_changes_is_not_stored() {
    let mut world = World::fixture(Version::NEWEST);
    let before = world.model.object(&cm("cm-1")).unwrap();
    world.now = seconds(100.0);
    let written = world.put("cm-1", "1", Some("x"));
    assert_eq!(
        (written.op, written.revision, world.model.revision()),
        (None, 1003, 1009)
    );
    assert!(std::sync::Arc::ptr_eq(&written.stored, &before));
    assert_eq!(world.relabel("cm-2", None).op, None);
}

#[test]
fn an_update_keeps_uid_and_creation_and_names_the_version_before() {
    let mut world = World::fixture(Version::NEWEST);
    let before = world.model.object(&cm("cm-1")).unwrap();
    world.now = seconds(100.0);
    let written = world.put("cm-1", "2", None);
    assert_eq!(
        (written.op, written.uid.as_str()),
        (Some(WriteOp::Update), before.uid.as_str())
    );
    assert_eq!(
        written.stored.json()["metadata"]["creationTimestamp"],
        before.json()["metadata"]["creationTimestamp"]
    );
    assert!(std::sync::Arc::ptr_eq(&written.previous.unwrap(), &before));
}

/// Each row: what is written over `{spec: {a: 1}}` of a Widget, and the generation after it.
#[rstest]
#[case::the_same(json!({ "spec": { "a": 1 } }), 1)]
#[case::a_label(json!({ "metadata": { "labels": { "l": "1" } }, "spec": { "a": 1 } }), 1)]
#[case::its_status(json!({ "spec": { "a": 1 }, "status": { "s": 1 } }), 1)]
#[case::its_spec(json!({ "spec": { "a": 2 } }), 2)]
fn generation_counts_changes_of_the_spec(#[case] object: Value, #[case] generation: u64) {
    let mut world = World::fixture(Version::NEWEST);
    let written = world.apply("probe.example.com", "widgets", Some("probe"), "wd-1", object);
    assert_eq!(written.stored.json()["metadata"]["generation"], generation);
}

#[test]
fn a_delete_has_a_revision_and_the_last_object() {
    let mut world = World::fixture(Version::NEWEST);
    let written = world.delete("cm-1");
    assert_eq!((written.op, written.revision), (Some(WriteOp::Delete), 1010));
    assert_eq!(written.stored.json()["metadata"]["resourceVersion"], "1010");
    assert_eq!(written.stored.json()["data"], json!({ "k": "1" }));
    assert_eq!(
        world.model.object(&cm("cm-1")).map(|object| object.revision),
        None
    );
}

#[test]
fn missing_objects_cannot_be_deleted_or_relabelled() {
    let mut world = World::fixture(Version::NEWEST);
    let refused = "404 configmaps \"zzz\" not found";
    assert_eq!(
        refusal(&world.model.delete(world.now, &cm("zzz")).unwrap_err()),
        refused
    );
    assert_eq!(
        refusal(&world.model.relabel(world.now, &cm("zzz"), &[]).unwrap_err()),
        refused
    );
    let unknown = ObjectName {
        plural: "nopes".to_owned(),
        ..cm("x")
    };
    assert_eq!(world.model.delete(world.now, &unknown).unwrap_err().code, 404);
    assert_eq!(world.model.revision(), 1009);
}

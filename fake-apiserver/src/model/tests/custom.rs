//! Custom resources, from the creation of their definition to its deletion.

use std::sync::Weak;

use apimachinery::kind::{ApiResource, KindRef};
use rstest::rstest;
use trace::record::WriteOp;

use super::*;

pub(super) const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
pub(super) const GADGETS: &str = "/apis/x.example.com/v1/namespaces/probe/gadgets";
const OLD_GADGETS: &str = "/apis/x.example.com/v1beta1/namespaces/probe/gadgets";

/// Returns a definition of gadgets with this schema for `spec`, in two versions.
fn definition(spec: &Value) -> Value {
    let schema = json!({ "openAPIV3Schema": { "type": "object", "properties": {
        "spec": spec,
        "status": { "type": "object", "properties": { "n": { "type": "integer" } } },
    } } });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "gadgets.x.example.com" },
        "spec": {
            "group": "x.example.com",
            "scope": "Namespaced",
            "names": { "plural": "gadgets", "kind": "Gadget", "shortNames": ["gd"] },
            "versions": [
                { "name": "v1", "served": true, "storage": true, "schema": schema, "subresources": { "status": {} } },
                { "name": "v1beta1", "served": true, "storage": false, "schema": schema },
            ],
        },
    })
}

fn sized() -> Value {
    json!({ "type": "object", "properties": {
        "size": { "type": "integer", "minimum": 1 },
        "color": { "type": "string", "default": "red" },
    } })
}

pub(super) fn gadget(name: &str, spec: Value) -> String {
    let object = json!({
        "apiVersion": "x.example.com/v1",
        "kind": "Gadget",
        "metadata": { "name": name },
        "spec": spec,
    });
    object.to_string()
}

impl World {
    /// Returns an object as a GET shows it.
    pub(super) fn object(&self, target: &str) -> Value {
        match self.model.get(self.now, self.now, &self.object_request(target)) {
            GetOutcome::Found { object, .. } => object.json(),
            other @ (GetOutcome::Refused(_) | GetOutcome::Wait { .. }) => panic!("{target}: {other:?}"),
        }
    }
}

pub(super) fn defined() -> World {
    let mut world = World::fixture(Version::NEWEST);
    // The writes of the definition: itself, its APIServices, its names, established.
    assert_eq!(
        world.outcome("POST", CRDS, &definition(&sized()).to_string()),
        "201 5"
    );
    world
}

#[test]
fn a_definition_is_served_once_it_is_established() {
    let mut world = World::fixture(Version::NEWEST);
    assert!(world.parse(GADGETS).is_err());
    let done = world
        .write("POST", CRDS, &definition(&sized()).to_string())
        .unwrap();
    let story: Vec<String> = done
        .written
        .iter()
        .map(|written| {
            let json = written.stored.json();
            let conditions = json["status"]["conditions"].as_array().into_iter().flatten();
            let outcome: Vec<String> = conditions
                .map(|condition| format!("{}={}", condition["type"], condition["reason"]).replace('"', ""))
                .collect();
            format!(
                "{} {} {}",
                written.revision,
                written.stored.name(),
                outcome.join(" ")
            )
        })
        .collect();
    assert_eq!(
        story,
        [
            "1010 gadgets.x.example.com ",
            "1011 v1.x.example.com Available=Local",
            "1012 v1beta1.x.example.com Available=Local",
            "1013 gadgets.x.example.com NamesAccepted=NoConflicts Established=Installing",
            "1014 gadgets.x.example.com NamesAccepted=NoConflicts Established=InitialNamesAccepted",
        ]
    );
    let kind = world.model.catalog().find("x.example.com", "gadgets").unwrap();
    assert_eq!(
        (&*kind.kind, &*kind.list_kind, &*kind.singular),
        ("Gadget", "GadgetList", "gadget")
    );
    assert!(kind.short_names.iter().eq(["gd"]));
    let versions = world.model.catalog().groups().pop().unwrap().versions;
    assert_eq!(versions, ["v1", "v1beta1"]);
}

#[test]
fn a_definition_of_a_built_in_group_serves_nothing() {
    const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    let mut world = World::fixture(Version::NEWEST);
    assert_eq!(
        world.outcome("POST", ROLES, r#"{"metadata":{"name":"kept"}}"#),
        "201 1"
    );
    let definition = json!({
        "metadata": {
            "name": "clusterroles.rbac.authorization.k8s.io",
            "annotations": { "api-approved.kubernetes.io": "unapproved" },
        },
        "spec": {
            "group": "rbac.authorization.k8s.io",
            "scope": "Cluster",
            "names": { "plural": "clusterroles", "kind": "ClusterRole" },
            "versions": [{
                "name": "v9", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object" } },
            }],
        },
    });
    world.write("POST", CRDS, &definition.to_string()).unwrap();
    let made =
        r#"{"apiVersion":"rbac.authorization.k8s.io/v9","kind":"ClusterRole","metadata":{"name":"made"}}"#;
    assert_eq!(
        world.outcome("POST", "/apis/rbac.authorization.k8s.io/v9/clusterroles", made),
        "404 the server could not find the requested resource"
    );
    let name = format!("{CRDS}/clusterroles.rbac.authorization.k8s.io");
    world.write("DELETE", &name, "").unwrap();
    assert_eq!(world.object(&format!("{ROLES}/kept"))["metadata"]["name"], "kept");
}

#[test]
fn rows_of_the_same_definition_are_equal() {
    let row = |world: World| world.model.catalog().find("x.example.com", "gadgets").cloned();
    assert_eq!(row(defined()), row(defined()));
}

/// Returns references to the rows of the served custom resources that do not keep them.
fn rows(world: &World) -> Vec<Weak<ApiResource>> {
    let kinds = world.model.catalog().kinds().iter();
    kinds.filter_map(KindRef::downgrade).collect()
}

fn alive(rows: &[Weak<ApiResource>]) -> usize {
    rows.iter().filter(|row| row.strong_count() > 0).count()
}

fn rename(world: &mut World, short_name: &str) {
    let patch = json!({ "spec": { "names": { "shortNames": [short_name] } } });
    world.shown(
        "PATCH",
        &format!("{CRDS}/gadgets.x.example.com"),
        &patch.to_string(),
    );
}

#[test]
fn rows_of_replaced_definitions_are_freed() {
    let mut world = defined();
    let mut replaced = Vec::new();
    for n in 0..100 {
        replaced.extend(rows(&world));
        rename(&mut world, &format!("g{n}"));
    }
    assert_eq!((replaced.len(), alive(&replaced)), (200, 0));
    assert_eq!(alive(&rows(&world)), 2);
    world.shown("DELETE", &format!("{CRDS}/gadgets.x.example.com"), "");
    assert!(rows(&world).is_empty());
}

#[test]
fn an_unchanged_definition_keeps_its_rows() {
    let mut world = defined();
    let before = rows(&world);
    let patch = r#"{"metadata":{"labels":{"a":"b"}}}"#;
    world.shown("PATCH", &format!("{CRDS}/gadgets.x.example.com"), patch);
    let after = rows(&world);
    assert!(before.iter().zip(&after).all(|(one, other)| one.ptr_eq(other)));
    assert_eq!(alive(&before), 2);
}

#[test]
fn an_object_and_its_history_keep_a_row() {
    let mut world = defined();
    let stored = rows(&world).remove(0);
    world.shown("POST", GADGETS, &gadget("a", json!({ "size": 1 })));
    rename(&mut world, "g");
    assert_eq!(world.object(&format!("{GADGETS}/a"))["spec"]["size"], 1);
    assert_eq!(stored.strong_count(), 1, "the object");
    for size in 2..=3 {
        let patch = json!({ "spec": { "size": size } }).to_string();
        world.shown("PATCH", &format!("{GADGETS}/a"), &patch);
    }
    assert_eq!(stored.strong_count(), 1, "etcd and the watch cache");
    world.model.storage_mut().compact();
    world.model.storage_mut().evict_events(0);
    assert_eq!(stored.strong_count(), 0);
}

#[test]
fn objects_are_pruned_defaulted_and_shown_in_every_version() {
    let mut world = defined();
    let shown = world.shown("POST", GADGETS, &gadget("a", json!({ "size": 1, "bogus": 2 })));
    assert_eq!(shown["spec"], json!({ "color": "red", "size": 1 }));
    let old: Value = world.object(&format!("{OLD_GADGETS}/a"));
    assert_eq!(old["apiVersion"], "x.example.com/v1beta1");
    assert_eq!(old["spec"], shown["spec"]);
    let mut watch = world.watch(&format!("{OLD_GADGETS}?watch=1&resourceVersion=0"));
    let mut newer = shown.clone();
    newer["spec"]["size"] = json!(2);
    world.shown("PUT", &format!("{GADGETS}/a"), &newer.to_string());
    assert_eq!(
        world.drain(&mut watch),
        ["ADDED probe/a@1015", "MODIFIED probe/a@1016"]
    );
}

#[test]
fn an_unknown_field_is_a_warning_or_an_error() {
    let mut world = defined();
    let object = gadget("a", json!({ "bogus": 2 }));
    let done = world.write("POST", GADGETS, &object).unwrap();
    assert_eq!(done.warnings, ["unknown field \"spec.bogus\""]);
    assert_eq!(
        world.outcome("POST", &format!("{GADGETS}?fieldValidation=Strict"), &object),
        "400 Gadget in version \"v1\" cannot be handled as a Gadget: strict decoding error: unknown field \"spec.bogus\""
    );
}

#[rstest]
#[case(json!({ "size": 0 }), "spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1")]
#[case(
    json!({ "size": "1" }),
    "spec.size: Invalid value: \"string\": spec.size in body must be of type integer: \"string\""
)]
fn objects_are_validated_by_their_schema(#[case] spec: Value, #[case] why: &str) {
    let mut world = defined();
    let outcome = world.outcome("POST", GADGETS, &gadget("a", spec.clone()));
    assert_eq!(
        outcome,
        format!("422 Gadget.x.example.com \"a\" is invalid: {why}")
    );
    // The result must be valid too.
    world.shown("POST", GADGETS, &gadget("a", json!({})));
    let outcome = world.outcome(
        "PATCH",
        &format!("{GADGETS}/a"),
        &json!({ "spec": spec }).to_string(),
    );
    assert_eq!(
        outcome,
        format!("422 Gadget.x.example.com \"a\" is invalid: {why}")
    );
}

#[test]
fn invalid_values_can_be_kept() {
    let mut world = defined();
    world.shown("POST", GADGETS, &gadget("a", json!({ "size": 1 })));
    let mut stricter = definition(
        &json!({ "type": "object", "properties": { "size": { "type": "integer", "minimum": 5 } } }),
    );
    stricter["metadata"]["resourceVersion"] = json!("1014");
    assert!(
        world
            .outcome(
                "PUT",
                &format!("{CRDS}/gadgets.x.example.com"),
                &stricter.to_string()
            )
            .starts_with("200")
    );
    let labelled = r#"{"metadata":{"labels":{"l":"1"}}}"#;
    assert_eq!(world.outcome("PATCH", &format!("{GADGETS}/a"), labelled), "200 1");
    assert!(
        world
            .outcome("PATCH", &format!("{GADGETS}/a"), r#"{"spec":{"size":2}}"#)
            .starts_with("422")
    );
}

#[test]
fn a_changed_definition_ends_watches() {
    let mut world = defined();
    let mut watch = world.watch(&format!("{GADGETS}?watch=1&resourceVersion=0"));
    assert!(world.drain(&mut watch).is_empty());
    let patch = r#"{"spec":{"names":{"shortNames":["gd","gg"]}}}"#;
    world.shown("PATCH", &format!("{CRDS}/gadgets.x.example.com"), patch);
    assert_eq!(watch.poll(&world.model, world.now), WatchPoll::End);
    let kind = world.model.catalog().find("x.example.com", "gadgets").unwrap();
    assert!(kind.short_names.iter().eq(["gd", "gg"]));
}

#[test]
fn names_in_use_are_not_accepted() {
    let mut world = defined();
    let mut other = definition(&sized());
    other["metadata"]["name"] = json!("others.x.example.com");
    other["spec"]["names"] = json!({ "plural": "others", "kind": "Gadget", "shortNames": ["gd"] });
    let done = world.write("POST", CRDS, &other.to_string()).unwrap();
    let status = done.written.last().unwrap().stored.json()["status"].clone();
    assert_eq!(status["acceptedNames"], json!({ "plural": "others", "kind": "" }));
    assert_eq!(status["conditions"][0]["reason"], "ListKindConflict");
    assert_eq!(
        status["conditions"][0]["message"],
        "\"GadgetList\" is already in use"
    );
    assert_eq!(status["conditions"][1]["reason"], "NotAccepted");
    assert!(world.model.catalog().find("x.example.com", "others").is_none());
    // The names are available when the first definition is deleted.
    world.shown("DELETE", &format!("{CRDS}/gadgets.x.example.com"), "");
    assert!(world.model.catalog().find("x.example.com", "others").is_some());
}

#[test]
fn deleting_a_definition_deletes_its_objects() {
    let mut world = defined();
    world.shown("POST", GADGETS, &gadget("a", json!({})));
    let held = r#"{"apiVersion":"x.example.com/v1","kind":"Gadget","metadata":{"name":"b","finalizers":["x.example.com/f"]}}"#;
    world.shown("POST", GADGETS, held);
    let mut watch = world.watch(&format!("{GADGETS}?watch=1&resourceVersion=1016"));
    let done = world
        .write("DELETE", &format!("{CRDS}/gadgets.x.example.com"), "")
        .unwrap();
    let shown: Value = serde_json::from_slice(&done.body).unwrap();
    assert_eq!(
        shown["metadata"]["finalizers"][0],
        "customresourcecleanup.apiextensions.k8s.io"
    );
    assert_eq!(
        shown["status"]["conditions"][2]["reason"],
        "InstanceDeletionPending"
    );
    assert_eq!(
        world.drain(&mut watch),
        ["DELETED probe/a@1019", "MODIFIED probe/b@1020"]
    );
    assert_eq!(
        world.outcome("POST", GADGETS, &gadget("c", json!({}))),
        "403 gadgets.x.example.com \"c\" is forbidden: create not allowed while custom resource definition is \
         terminating"
    );
    let freed = world
        .write(
            "PATCH",
            &format!("{GADGETS}/b"),
            r#"{"metadata":{"finalizers":null}}"#,
        )
        .unwrap();
    let story: Vec<(WriteOp, &str)> = freed
        .written
        .iter()
        .filter_map(|written| Some((written.op?, written.stored.name())))
        .collect();
    assert_eq!(
        story,
        [
            (WriteOp::Delete, "b"),
            (WriteOp::Delete, "gadgets.x.example.com"),
            (WriteOp::Delete, "v1.x.example.com"),
            (WriteOp::Delete, "v1beta1.x.example.com"),
        ]
    );
    assert_eq!(world.drain(&mut watch), ["DELETED probe/b@1021", "end"]);
    assert!(world.parse(GADGETS).is_err());
    // The definition can be created again.
    assert_eq!(
        world.outcome("POST", CRDS, &definition(&sized()).to_string()),
        "201 5"
    );
    assert_eq!(world.list(GADGETS), "1029: ");
}

#[test]
fn events_are_the_same_in_both_their_groups() {
    let mut world = World::fixture(Version::NEWEST);
    let event = r#"{"metadata":{"name":"e"},"involvedObject":{"kind":"Pod","namespace":"probe"},"message":"m","reason":"R"}"#;
    world.shown("POST", "/api/v1/namespaces/probe/events", event);
    let path = "/apis/events.k8s.io/v1/namespaces/probe/events";
    let shown: Value = world.object(&format!("{path}/e"));
    assert_eq!(shown["apiVersion"], "events.k8s.io/v1");
    assert_eq!(
        (&shown["note"], &shown["regarding"]["kind"]),
        (&json!("m"), &json!("Pod"))
    );
    assert_eq!(
        world
            .list(&format!("{path}?fieldSelector=regarding.kind%3DPod"))
            .lines()
            .count(),
        1
    );
}

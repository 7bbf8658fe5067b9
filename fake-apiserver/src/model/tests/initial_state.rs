//! Reset to the initial objects, and the events that watches receive.

use super::custom::{CRDS, GADGETS, defined, gadget};
use super::*;

fn again(world: &mut World) -> Vec<String> {
    let written = world.model.reset(world.now);
    let outcome = written.iter().map(|written| {
        let op = written.op.map(|op| format!("{op:?}")).unwrap_or_default();
        format!("{op} {} {}", written.stored.kind.plural, written.key)
    });
    outcome.collect()
}

#[test]
fn a_reset_writes_only_changed_objects() {
    let mut world = World::fixture(Version::NEWEST);
    let first = world.object(&format!("{CM}/cm-2"));
    world.model.mark_initial_state();
    world.put("cm-1", "2", None);
    world.delete("cm-2");
    world.put("new", "1", None);
    world.delete("cm-3");
    world.put("cm-3", "1", Some("x"));
    world.put("cm-4", "2", None);
    world.put("cm-4", "1", None);
    let mut watch = world.watch(&format!("{CM}?watch=1&resourceVersion=1016"));
    assert_eq!(world.model.revision(), 1016);
    assert_eq!(
        again(&mut world),
        [
            "Delete configmaps probe/cm-3",
            "Delete configmaps probe/new",
            "Update configmaps probe/cm-1",
            "Create configmaps probe/cm-2",
            "Create configmaps probe/cm-3",
        ]
    );
    assert_eq!(
        world.drain(&mut watch),
        [
            "DELETED probe/cm-3@1017",
            "DELETED probe/new@1018",
            "MODIFIED probe/cm-1@1019",
            "ADDED probe/cm-2@1020",
            "ADDED probe/cm-3@1021",
        ]
    );
    let mut back = world.object(&format!("{CM}/cm-2"));
    assert_eq!(back["metadata"]["resourceVersion"], "1020");
    back["metadata"]["resourceVersion"] = first["metadata"]["resourceVersion"].clone();
    assert_eq!(back, first, "the same one, uid and all");
    assert_eq!(again(&mut world), [""; 0]);
}

#[test]
fn a_reset_ignores_finalizers() {
    let mut world = World::fixture(Version::NEWEST);
    world.model.mark_initial_state();
    let held = json!({ "metadata": { "finalizers": ["x.example.com/held"] } });
    world.apply("", "configmaps", Some("probe"), "held", held);
    world.delete("held");
    assert_eq!(again(&mut world), ["Delete configmaps probe/held"]);
}

#[test]
fn definitions_are_reset_with_their_objects() {
    let mut without = World::fixture(Version::NEWEST);
    without.model.mark_initial_state();
    let mut world = defined();
    world.outcome("POST", GADGETS, &gadget("g", json!({ "size": 1 })));
    world.model.mark_initial_state();
    world.outcome("DELETE", &format!("{CRDS}/gadgets.x.example.com"), "");
    assert!(world.parse(GADGETS).is_err());
    again(&mut world);
    assert_eq!(world.object(&format!("{GADGETS}/g"))["spec"]["size"], 1);
    assert_eq!(again(&mut world), [""; 0]);
    world.model.initial_state = without.model.initial_state;
    again(&mut world);
    assert!(world.parse(GADGETS).is_err(), "it was not there");
    assert_eq!(again(&mut world), [""; 0]);
}

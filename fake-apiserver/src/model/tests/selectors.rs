//! Selected objects, and errors of invalid selectors.

use apimachinery::selector::{FieldSelector, LabelSelector};
use rstest::rstest;

use super::*;

/// `none` has no labels, `x` and `y` have `app` of their name, `n5` has `app=x,n=5`, `empty` has `app=`.
#[rstest]
#[case("", "empty n5 none x y")]
#[case("app", "empty n5 x y")]
#[case("!app", "none")]
#[case("app=x", "n5 x")]
#[case("app==x", "n5 x")]
#[case("app!=x", "empty none y")]
#[case("app=", "empty")]
#[case("app in (x, y)", "n5 x y")]
#[case("app in (x)", "n5 x")]
#[case("app in ()", "empty")]
#[case("app in (,x)", "empty n5 x")]
#[case("app notin (x,y)", "empty none")]
#[case("app,app!=x", "empty y")]
#[case(" app = x , !n ", "x")]
#[case("n>4", "n5")]
#[case("n>5", "")]
#[case("n<6,app", "n5")]
#[case("example.com/app", "")]
#[case("in in (in)", "")]
#[case("app=in", "")]
fn a_label_selector_selects(#[case] selector: &str, #[case] expected: &str) {
    let mut world = World::empty(&ServerSettings::default());
    world.put("none", "1", None);
    for name in ["x", "y"] {
        world.put(name, "1", Some(name));
    }
    world.put("empty", "1", Some(""));
    let labels = json!({ "metadata": { "labels": { "app": "x", "n": "5" } } });
    world.apply("", "configmaps", Some("probe"), "n5", labels);
    let mut request = world.list_request(CM);
    request.selector.labels = LabelSelector::parse(selector).unwrap();
    let ListOutcome::Page(page) = world.model.list(world.now, world.now, &request) else {
        panic!("no page")
    };
    let names: Vec<&str> = page.items.iter().map(|item| item.name()).collect();
    assert_eq!(names.join(" "), expected);
}

#[rstest]
#[case("=x", "found '=', expected: !, identifier, or 'end of string'")]
#[case(
    "a b",
    "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"
)]
#[case("a=b c", "found 'c', expected: ',' or 'end of string'")]
#[case("a,", "found '', expected: identifier after ','")]
#[case("!", "unable to parse requirement: found '', expected: identifier")]
#[case("a in x", "unable to parse requirement: found 'x' expected: '('")]
#[case("a in (x", "unable to parse requirement: found '', expected: ',' or ')'")]
#[case(
    "a in (=)",
    "unable to parse requirement: found '=', expected: ',', ')' or identifier"
)]
#[case(
    "a>b",
    "unable to parse requirement: values[0]: Invalid value: \"b\": for 'Gt', 'Lt' operators, the value must be an integer"
)]
fn a_label_selector_that_cannot_be_read_is_refused(#[case] selector: &str, #[case] expected: &str) {
    assert_eq!(LabelSelector::parse(selector), Err(expected.to_owned()));
}

#[rstest]
#[case("status.phase=Running", "run")]
#[case("status.phase!=Running", "wait")]
#[case("status.phase==Running,spec.nodeName=n1", "run")]
#[case("spec.nodeName=", "wait")]
#[case("spec.hostNetwork=true", "wait")]
#[case("spec.hostNetwork=false", "run")]
#[case("metadata.namespace=probe", "run wait")]
#[case("metadata.namespace!=probe", "")]
#[case("metadata.name=run,", "run")]
#[case("metadata.name=r\\,n", "")]
fn a_field_selector_selects(#[case] selector: &str, #[case] expected: &str) {
    let mut world = World::empty(&ServerSettings::default());
    let running = json!({ "spec": { "nodeName": "n1" }, "status": { "phase": "Running" } });
    world.apply("", "pods", Some("probe"), "run", running);
    world.apply(
        "",
        "pods",
        Some("probe"),
        "wait",
        json!({ "spec": { "hostNetwork": true } }),
    );
    let mut request = world.list_request("/api/v1/pods");
    request.selector.fields = FieldSelector::parse(selector).unwrap();
    assert_eq!(request.selector.fields.check(&request.collection.kind), Ok(()));
    let ListOutcome::Page(page) = world.model.list(world.now, world.now, &request) else {
        panic!("no page")
    };
    let names: Vec<&str> = page.items.iter().map(|item| item.name()).collect();
    assert_eq!(names.join(" "), expected);
}

#[rstest]
#[case("a", "invalid selector: 'a'; can't understand 'a'")]
#[case(
    "metadata.name=a,b",
    "invalid selector: 'metadata.name=a,b'; can't understand 'b'"
)]
#[case(
    "metadata.name=a=b",
    "invalid field selector: unescaped character in value: ="
)]
#[case("metadata.name=a\\b", "invalid field selector: invalid escape sequence: \\b")]
fn invalid_field_selectors_are_rejected(#[case] selector: &str, #[case] expected: &str) {
    assert_eq!(FieldSelector::parse(selector), Err(expected.to_owned()));
}

/// A changed field adds an object to a watch or removes it, as a label does.
#[test]
fn a_changed_field_adds_or_removes_objects_of_a_watch() {
    let mut world = World::empty(&ServerSettings::default());
    let mut watch =
        world.watch("/api/v1/pods?watch=1&resourceVersion=1000&fieldSelector=status.phase%3DRunning");
    for phase in ["Pending", "Running", "Running", "Failed"] {
        let object = json!({ "status": { "phase": phase, "message": world.model.revision().to_string() } });
        world.apply("", "pods", Some("probe"), "p", object);
    }
    assert_eq!(
        world.drain(&mut watch),
        [
            "ADDED probe/p@1002",
            "MODIFIED probe/p@1003",
            "DELETED probe/p@1004"
        ]
    );
}

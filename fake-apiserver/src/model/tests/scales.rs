//! Scales: reads, writes and errors as recorded.

use rstest::rstest;

use super::*;

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/probe/deployments";

fn deployed() -> World {
    let mut world = World::fixture(Version::NEWEST);
    let body = json!({
        "metadata": { "name": "d" },
        "spec": {
            "selector": { "matchLabels": { "a": "b" } },
            "template": {
                "metadata": { "labels": { "a": "b" } },
                "spec": { "containers": [{ "name": "c", "image": "i" }] },
            },
        },
    });
    world.shown("POST", DEPLOYMENTS, &body.to_string());
    world
}

#[test]
fn scales_are_read_and_written() {
    let mut world = deployed();
    let scale = format!("{DEPLOYMENTS}/d/scale");
    let read = |world: &World| match world
        .model
        .get(world.now, world.now, &world.object_request(&scale))
    {
        GetOutcome::Found { object, .. } => object.json(),
        other @ (GetOutcome::Refused(_) | GetOutcome::Wait { .. }) => panic!("{other:?}"),
    };
    let before = read(&world);
    assert_eq!(
        (&before["kind"], &before["apiVersion"]),
        (&json!("Scale"), &json!("autoscaling/v1"))
    );
    assert_eq!(before["spec"], json!({ "replicas": 1 }));
    assert_eq!(before["status"], json!({ "replicas": 0, "selector": "a=b" }));
    let shown = world.shown(
        "PUT",
        &scale,
        r#"{"metadata":{"name":"d"},"spec":{"replicas":3}}"#,
    );
    assert_eq!(shown["spec"], json!({ "replicas": 3 }));
    let shown = world.shown("PATCH", &scale, r#"{"spec":{"replicas":0}}"#);
    assert_eq!(shown["spec"], json!({}));
    assert_eq!(read(&world)["spec"], json!({}));
}

#[test]
fn an_invalid_scale_is_rejected() {
    let mut world = deployed();
    let scale = format!("{DEPLOYMENTS}/d/scale");
    assert_eq!(
        world.outcome(
            "PUT",
            &scale,
            r#"{"metadata":{"name":"d"},"spec":{"replicas":-1}}"#
        ),
        "422 Scale.autoscaling \"d\" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0"
    );
    assert_eq!(
        world.outcome(
            "PUT",
            &scale,
            r#"{"metadata":{"name":"d","resourceVersion":"1"},"spec":{"replicas":2}}"#
        ),
        "409 Operation cannot be fulfilled on deployments.apps \"d\": the object has been modified; please apply your \
         changes to the latest version and try again"
    );
    assert_eq!(
        world.outcome(
            "PUT",
            &format!("{DEPLOYMENTS}/none/scale"),
            r#"{"metadata":{"name":"none"},"spec":{}}"#
        ),
        "404 deployments.apps \"none\" not found"
    );
    assert_eq!(
        world.outcome(
            "PUT",
            &scale,
            r#"{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"name":"d"}}"#
        ),
        "400 Deployment in version \"v1\" cannot be handled as a Scale: converting (v1.Deployment) to \
         (autoscaling.Scale): unknown conversion"
    );
}

#[test]
fn several_conflicts_are_listed_by_owner() {
    let mut world = deployed();
    let scale = format!("{DEPLOYMENTS}/d/scale?fieldManager=b");
    world.shown("PATCH", &scale, r#"{"spec":{"replicas":3}}"#);
    let image = r#"{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"k"}]}}}}"#;
    world.shown("PATCH", &format!("{DEPLOYMENTS}/d?fieldManager=b-2"), image);
    let config = r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d"},"spec":{"replicas":4,
                     "template":{"spec":{"containers":[{"name":"c","image":"j"}]}}}}"#;
    assert_eq!(
        world.outcome("APPLY", &format!("{DEPLOYMENTS}/d?fieldManager=c"), config),
        "409 Apply failed with 2 conflicts: conflicts with \"b\" with subresource \"scale\" using apps/v1:\n\
         - .spec.replicas\n\
         conflicts with \"b-2\" using apps/v1:\n\
         - .spec.template.spec.containers[name=\"c\"].image"
    );
}

/// `lastappliedmanager.go`: fields that still have the value of the client-side apply are moved to kubectl's server-side
/// apply.
#[rstest]
#[case::as_it_was("i", "kubectl", None)]
#[case::changed_since(
    "k",
    "kubectl",
    Some(
        "409 Apply failed with 1 conflict: conflict with \"a\" using apps/v1: .spec.template.spec.containers[name=\"c\"].image"
    )
)]
#[case::another_manager(
    "i",
    "other",
    Some(
        "409 Apply failed with 1 conflict: conflict with \"a\" using apps/v1: .spec.template.spec.containers[name=\"c\"].image"
    )
)]
fn kubectl_takes_over_what_it_applied_before(
    #[case] last: &str,
    #[case] manager: &str,
    #[case] refused: Option<&str>,
) {
    let mut world = World::fixture(Version::NEWEST);
    let deployment = |image: &str| {
        json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": { "name": "d", "annotations": {} },
            "spec": {
                "selector": { "matchLabels": { "a": "b" } },
                "template": {
                    "metadata": { "labels": { "a": "b" } },
                    "spec": { "containers": [{ "name": "c", "image": image }] },
                },
            },
        })
    };
    let mut made = deployment("i");
    made["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"] =
        deployment(last).to_string().into();
    let at = |manager: &str| format!("{DEPLOYMENTS}?fieldManager={manager}");
    world.shown("POST", &at("a"), &made.to_string());
    let target = format!("{DEPLOYMENTS}/d?fieldManager={manager}");
    let outcome = world.outcome("APPLY", &target, &deployment("j").to_string());
    match refused {
        Some(refused) => assert_eq!(outcome, refused),
        None => assert!(outcome.starts_with("200"), "{outcome}"),
    }
}

//! Validation beyond the recordings: invalid objects stored by a script, and subresources with other rules than an update.

use rstest::rstest;

use super::*;

const PODS: &str = "/api/v1/namespaces/probe/pods";

/// Returns a world with an invalid pod, stored by a script.
fn with_impossible_pod() -> World {
    let mut world = World::fixture(Version::NEWEST);
    let pod = json!({ "metadata": { "labels": { "a b": "x" } }, "spec": {} });
    world.apply("", "pods", Some("probe"), "p", pod);
    world
}

#[rstest]
#[case::a_label("PATCH", r#"{"metadata":{"labels":{"c":"d"}}}"#, "200 1")]
#[case::the_faults_stay("PATCH", r#"{"metadata":{"annotations":{"c":"d"}}}"#, "200 1")]
#[case::a_fault_of_ones_own(
    "PATCH",
    r#"{"metadata":{"finalizers":["bad"]}}"#,
    "422 Pod \"p\" is invalid: metadata.finalizers[0]: Invalid value: \"bad\": name is neither a standard finalizer name nor is it fully qualified"
)]
#[case::the_whole_object_again("PUT", r#"{"metadata":{"name":"p","labels":{"a b":"x"}},"spec":{}}"#, "200 1")]
fn errors_of_the_old_object_are_ignored(#[case] method: &str, #[case] body: &str, #[case] outcome: &str) {
    assert_eq!(
        with_impossible_pod().outcome(method, &format!("{PODS}/p"), body),
        outcome
    );
}

#[test]
fn subresources_of_a_pod_change_immutable_fields() {
    let mut world = World::fixture(Version::NEWEST);
    let pod = r#"{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"2"}}}]}}"#;
    assert_eq!(world.outcome("POST", PODS, pod), "201 1");
    let at = |part: &str| format!("{PODS}/p{part}");
    let moved = r#"{"spec":{"nodeName":"n"}}"#;
    assert!(
        world
            .outcome("PATCH", &at(""), moved)
            .starts_with("422 Pod \"p\" is invalid: spec: Forbidden")
    );
    let less = r#"{"spec":{"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"1"}}}]}}"#;
    assert_eq!(world.outcome("PATCH", &at("/resize"), less), "200 1");
    let binding =
        r#"{"apiVersion":"v1","kind":"Binding","metadata":{"name":"p"},"target":{"kind":"Node","name":"n"}}"#;
    assert_eq!(world.outcome("POST", &at("/binding"), binding), "201 1");
    let guest = r#"{"spec":{"ephemeralContainers":[{"name":"e","image":"i"}]}}"#;
    assert_eq!(
        world.outcome("PATCH", &at("/ephemeralcontainers"), guest),
        "200 1"
    );
    let more = r#"{"spec":{"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"3"}}}]}}"#;
    assert_eq!(
        world.outcome("PATCH", &at("/resize"), more),
        "403 pods \"p\" is forbidden: node \"n\" not found"
    );
}

/// Each row: the type of a service that changes to another one, with no other change.
#[rstest]
#[case("NodePort", "ClusterIP")]
#[case("LoadBalancer", "ClusterIP")]
#[case("LoadBalancer", "NodePort")]
#[case("ClusterIP", "LoadBalancer")]
fn a_changed_service_type_clears_fields_of_the_old_type(#[case] before: &str, #[case] after: &str) {
    let mut world = World::fixture(Version::NEWEST);
    let services = "/api/v1/namespaces/probe/services";
    let service =
        json!({ "metadata": { "name": "s" }, "spec": { "type": before, "ports": [{ "port": 80 }] } });
    world.shown("POST", services, &service.to_string());
    let patch = json!({ "spec": { "type": after } }).to_string();
    let spec = &world.shown("PATCH", &format!("{services}/s"), &patch)["spec"];
    let ported = after != "ClusterIP";
    assert_eq!(spec["ports"][0].get("nodePort").is_some(), ported);
    assert_eq!(spec.get("externalTrafficPolicy").is_some(), ported);
    assert_eq!(
        spec.get("allocateLoadBalancerNodePorts").is_some(),
        after == "LoadBalancer"
    );
}

#[test]
fn a_service_keeps_its_cluster_ip() {
    let mut world = World::fixture(Version::NEWEST);
    let services = "/api/v1/namespaces/probe/services";
    let service = r#"{"metadata":{"name":"s"},"spec":{"clusterIP":"10.96.0.99","ports":[{"port":80}]}}"#;
    assert_eq!(world.outcome("POST", services, service), "201 1");
    let path = format!("{services}/s");
    assert_eq!(
        world.outcome(
            "PATCH",
            &path,
            r#"{"spec":{"clusterIP":"10.96.0.98","clusterIPs":["10.96.0.98"]}}"#
        ),
        "422 Service \"s\" is invalid: spec.clusterIPs[0]: Invalid value: [\"10.96.0.98\"]: may not change once set"
    );
    // Of a client that knows only one of the fields.
    let one = world.outcome("PATCH", &path, r#"{"spec":{"clusterIP":"10.96.0.98"}}"#);
    assert!(
        one.starts_with("422 ") && one.contains("spec.clusterIPs[0]"),
        "{one}"
    );
    assert_eq!(
        world.outcome("PATCH", &path, r#"{"spec":{"clusterIP":""}}"#),
        "200 1"
    );
    let named = r#"{"spec":{"type":"ExternalName","externalName":"x.example.com","clusterIP":null,"clusterIPs":null,"ipFamilies":null,"ipFamilyPolicy":null,"internalTrafficPolicy":null}}"#;
    assert_eq!(world.outcome("PATCH", &path, named), "200 1");
}

/// Each row: a service, and its defaulted fields.
#[rstest]
#[case::reached_by_its_own_addresses(json!({ "externalIPs": ["1.2.3.4"] }), "externalTrafficPolicy", true)]
#[case::not_reached(json!({}), "externalTrafficPolicy", false)]
#[case::asked_by_a_load_balancer(json!({ "type": "LoadBalancer", "externalTrafficPolicy": "Local" }), "healthCheckNodePort", true)]
#[case::not_asked(json!({ "type": "LoadBalancer" }), "healthCheckNodePort", false)]
fn services_have_defaults(#[case] mut spec: Value, #[case] field: &str, #[case] said: bool) {
    let mut world = World::fixture(Version::NEWEST);
    spec["ports"] = json!([{ "port": 80 }]);
    let service = json!({ "metadata": { "name": "s" }, "spec": spec });
    let shown = world.shown("POST", "/api/v1/namespaces/probe/services", &service.to_string());
    assert_eq!(shown["spec"].get(field).is_some(), said);
}

#[test]
fn services_with_equal_addresses_can_be_updated() {
    let mut world = World::fixture(Version::NEWEST);
    let spec = json!({ "type": "NodePort", "clusterIP": "10.96.0.9", "clusterIPs": ["10.96.0.9"],
                       "ports": [{ "port": 80, "nodePort": 30_080 }] });
    for name in ["a", "b"] {
        world.apply("", "services", Some("probe"), name, json!({ "spec": spec }));
    }
    let services = "/api/v1/namespaces/probe/services";
    let labelled = r#"{"metadata":{"labels":{"c":"d"}}}"#;
    assert_eq!(
        world.outcome("PATCH", &format!("{services}/a"), labelled),
        "200 1"
    );
    let third = json!({ "metadata": { "name": "c" }, "spec": spec }).to_string();
    assert_eq!(
        world.outcome("POST", services, &third),
        "422 Service \"c\" is invalid: [spec.clusterIPs: Invalid value: [\"10.96.0.9\"]: failed to allocate IP \
         10.96.0.9: provided IP is already allocated, spec.ports[0].nodePort: Invalid value: 30080: provided port is \
         already allocated]"
    );
}

//! Admission plugins: what each changes in a new object.
//!
//! Source: recordings `kinds-nodes`, `kinds-persistentvolumes` and `kinds-persistentvolumeclaims`; kubernetes 1.37.2 with
//! `--disable-admission-plugins=ServiceAccount`.

use rstest::rstest;
use scenario::{AdmissionPlugin, AdmissionPlugins};

use super::*;

const POD: (&str, &str) = (
    "/api/v1/namespaces/probe/pods",
    r#"{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}}"#,
);
const NODE: (&str, &str) = ("/api/v1/nodes", r#"{"metadata":{"name":"n"}}"#);
const CLAIM: (&str, &str) = (
    "/api/v1/namespaces/probe/persistentvolumeclaims",
    r#"{"metadata":{"name":"c"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1"}}}}"#,
);

#[rstest]
#[case(AdmissionPlugin::ServiceAccount, POD, "/spec/serviceAccountName", json!("default"))]
#[case(AdmissionPlugin::Priority, POD, "/spec/priority", json!(0))]
#[case(AdmissionPlugin::DefaultTolerationSeconds, POD, "/spec/tolerations/0/tolerationSeconds", json!(300))]
#[case(AdmissionPlugin::TaintNodesByCondition, NODE, "/spec/taints/0/key", json!("node.kubernetes.io/not-ready"))]
#[case(AdmissionPlugin::StorageObjectInUseProtection, CLAIM, "/metadata/finalizers/0", json!("kubernetes.io/pvc-protection"))]
fn a_disabled_plugin_changes_nothing(
    #[case] plugin: AdmissionPlugin,
    #[case] (path, body): (&str, &str),
    #[case] field: &str,
    #[case] expected: Value,
) {
    let all = AdmissionPlugins::of_kube_apiserver();
    for (admission, expected) in [(all, Some(&expected)), (all.without(plugin), None)] {
        let mut world = World::empty(&ServerSettings {
            admission,
            ..ServerSettings::default()
        });
        world.apply("", "namespaces", None, "probe", json!({}));
        let created = world.shown("POST", path, body);
        assert_eq!(created.pointer(field), expected);
    }
}

#[test]
fn without_controllers_nothing_stays_that_they_would_remove() {
    let mut world = World::fixture(Version::NEWEST);
    let node = world.shown("POST", NODE.0, NODE.1);
    assert_eq!(node["spec"], json!({}));
    let claim = world.shown("POST", CLAIM.0, CLAIM.1);
    assert!(claim["metadata"].get("finalizers").is_none());
}

//! Decisions by roles and bindings, with their reasons.

use rstest::rstest;
use serde_json::json;

use super::*;

fn policy() -> Policy {
    let objects = [
        (
            "clusterroles",
            json!({ "metadata": { "name": "reader" }, "rules": [
                { "verbs": ["get", "list", "watch"], "apiGroups": [""], "resources": ["pods", "pods/log"] },
                { "verbs": ["get"], "apiGroups": ["apps"], "resources": ["*/scale"] },
                { "verbs": ["update"], "apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["lock"] },
                { "verbs": ["get"], "nonResourceURLs": ["/metrics", "/logs/*"] },
            ] }),
        ),
        (
            "clusterroles",
            json!({ "metadata": { "name": "part", "labels": { "to": "sum" } }, "rules": [
                { "verbs": ["*"], "apiGroups": ["*"], "resources": ["leases"] },
            ] }),
        ),
        (
            "clusterroles",
            json!({ "metadata": { "name": "sum", "labels": { "to": "total" } }, "aggregationRule": {
                "clusterRoleSelectors": [{ "matchLabels": { "to": "sum" } }, { "matchLabels": { "to": "total" } }]
            }, "rules": null }),
        ),
        (
            "clusterroles",
            json!({ "metadata": { "name": "total" }, "aggregationRule": {
                "clusterRoleSelectors": [{ "matchExpressions": [{ "key": "to", "operator": "In", "values": ["total"] }] }]
            } }),
        ),
        (
            "roles",
            json!({ "metadata": { "name": "secrets", "namespace": "a" }, "rules": [
                { "verbs": ["get"], "apiGroups": [""], "resources": ["secrets"] },
            ] }),
        ),
        (
            "clusterrolebindings",
            json!({ "metadata": { "name": "readers" }, "roleRef": { "kind": "ClusterRole", "name": "reader" }, "subjects": [
                { "kind": "User", "name": "ann" }, { "kind": "ServiceAccount", "name": "robot", "namespace": "a" },
            ] }),
        ),
        (
            "clusterrolebindings",
            json!({ "metadata": { "name": "totals" }, "roleRef": { "kind": "ClusterRole", "name": "total" }, "subjects": [
                { "kind": "Group", "name": "ops" },
            ] }),
        ),
        (
            "clusterrolebindings",
            json!({ "metadata": { "name": "lost" }, "roleRef": { "kind": "ClusterRole", "name": "gone" }, "subjects": [
                { "kind": "User", "name": "joe" },
            ] }),
        ),
        (
            "rolebindings",
            json!({ "metadata": { "name": "keys", "namespace": "a" }, "roleRef": { "kind": "Role", "name": "secrets" }, "subjects": [
                { "kind": "ServiceAccount", "name": "robot" }, { "kind": "User", "name": "joe" },
            ] }),
        ),
        (
            "rolebindings",
            json!({ "metadata": { "name": "here", "namespace": "b" }, "roleRef": { "kind": "ClusterRole", "name": "reader" }, "subjects": [
                { "kind": "User", "name": "joe" },
            ] }),
        ),
        ("pods", json!({ "metadata": { "name": "x" } })),
    ];
    Policy::new(objects.iter().map(|(resource, object)| (*resource, object)))
}

/// `VERB RESOURCE.GROUP/SUBRESOURCE NAME -n NAMESPACE`, or `VERB /PATH`.
fn attributes(asked: &str) -> Attributes {
    let (asked, namespace) = asked.split_once(" -n ").unwrap_or((asked, ""));
    let mut words = asked.split(' ');
    let mut word = || words.next().unwrap_or_default().to_owned();
    let (verb, what, name) = (word(), word(), word());
    if what.starts_with('/') {
        return Attributes::Path { verb, path: what };
    }
    let (what, subresource) = what.split_once('/').unwrap_or((&what, ""));
    let (resource, group) = what.split_once('.').unwrap_or((what, ""));
    Attributes::Resource {
        verb,
        group: group.to_owned(),
        resource: resource.to_owned(),
        subresource: subresource.to_owned(),
        name,
        namespace: namespace.to_owned(),
    }
}

const READERS: &str =
    r#"RBAC: allowed by ClusterRoleBinding "readers" of ClusterRole "reader" to User "ann""#;
const NO: &str = "";
const LOST: &str = r#"RBAC: clusterrole.rbac.authorization.k8s.io "gone" not found"#;

#[rstest]
#[case("ann", "list pods", READERS)]
#[case("ann", "watch pods -n b", READERS)]
#[case("ann", "get pods/log x -n b", READERS)]
#[case("ann", "get pods/exec x -n b", NO)]
#[case("ann", "delete pods x -n b", NO)]
#[case("ann", "list pods.metrics.k8s.io", NO)]
#[case("ann", "get deployments.apps/scale x -n b", READERS)]
#[case("ann", "get deployments.apps x -n b", NO)]
#[case("ann", "update configmaps lock -n b", READERS)]
#[case("ann", "update configmaps other -n b", NO)]
#[case("ann", "list configmaps", NO)]
#[case("ann", "get /metrics", READERS)]
#[case("ann", "get /metrics/x", NO)]
#[case("ann", "get /logs/a/b", READERS)]
#[case("ann", "post /metrics", NO)]
#[case(
    "system:serviceaccount:a:robot",
    "get pods x",
    r#"RBAC: allowed by ClusterRoleBinding "readers" of ClusterRole "reader" to ServiceAccount "robot/a""#
)]
#[case(
    "system:serviceaccount:a:robot",
    "get secrets s -n a",
    r#"RBAC: allowed by RoleBinding "keys/a" of Role "secrets" to ServiceAccount "robot/a""#
)]
#[case("system:serviceaccount:a:robot", "get secrets s -n b", NO)]
#[case("system:serviceaccount:b:robot", "get secrets s -n a", NO)]
#[case(
    "eve in ops",
    "delete leases.coordination.k8s.io l -n a",
    r#"RBAC: allowed by ClusterRoleBinding "totals" of ClusterRole "total" to Group "ops""#
)]
#[case("eve", "delete leases.coordination.k8s.io l -n a", NO)]
#[case(
    "joe",
    "get secrets s -n a",
    r#"RBAC: allowed by RoleBinding "keys/a" of Role "secrets" to User "joe""#
)]
#[case("joe", "get secrets s", LOST)]
#[case(
    "joe",
    "list pods -n b",
    r#"RBAC: allowed by RoleBinding "here/b" of ClusterRole "reader" to User "joe""#
)]
#[case("joe", "list pods", LOST)]
#[case("joe", "get /metrics", LOST)]
fn what_is_allowed_and_why(#[case] user: &str, #[case] asked: &str, #[case] expected: &str) {
    let (name, group) = user.split_once(" in ").unwrap_or((user, "nobodies"));
    let groups = [group.to_owned()];
    let user = User {
        name,
        groups: &groups,
    };
    let decision = policy().decide(user, &attributes(asked));
    assert_eq!(decision.reason, expected);
    assert_eq!(decision.allowed, expected.contains("allowed by"));
}

#[test]
fn rules_are_those_of_the_cluster_and_of_the_namespace() {
    let policy = policy();
    let user = User {
        name: "joe",
        groups: &[],
    };
    let rules = policy.rules(user, "a");
    assert_eq!(rules.rules.len(), 1);
    assert_eq!(
        rules.error,
        r#"clusterrole.rbac.authorization.k8s.io "gone" not found"#
    );
    assert_eq!(policy.rules(user, "b").rules.len(), 4);
    assert!(policy.rules(user, "").rules.is_empty());
}

fn rule(verbs: &[&str], groups: &[&str], resources: &[&str], names: &[&str]) -> PolicyRule {
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    PolicyRule {
        verbs: texts(verbs),
        api_groups: texts(groups),
        resources: texts(resources),
        resource_names: texts(names),
        non_resource_urls: Vec::new(),
    }
}

#[rstest]
#[case(rule(&["get"], &[""], &["pods"], &[]), "")]
#[case(rule(&["get"], &[""], &["pods"], &["x"]), "")]
#[case(rule(&["get"], &["apps"], &["deployments/scale"], &[]), "")]
#[case(rule(&["update"], &[""], &["configmaps"], &["lock"]), "")]
#[case(
    rule(&["update"], &[""], &["configmaps"], &[]),
    r#"{APIGroups:[""], Resources:["configmaps"], Verbs:["update"]}"#
)]
#[case(
    rule(&["create", "get", "delete"], &[""], &["pods", "nodes"], &[]),
    "{APIGroups:[\"\"], Resources:[\"nodes\"], Verbs:[\"create\" \"get\" \"delete\"]}\n\
     {APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"create\" \"delete\"]}"
)]
#[case(
    rule(&["get"], &["*"], &["*"], &["x"]),
    r#"{APIGroups:["*"], Resources:["*"], ResourceNames:["x"], Verbs:["get"]}"#
)]
fn only_rights_that_are_held_can_be_granted(#[case] granted: PolicyRule, #[case] expected: &str) {
    let policy = policy();
    let groups = ["team".to_owned(), "system:authenticated".to_owned()];
    let user = User {
        name: "ann",
        groups: &groups,
    };
    let message = missing(user, &policy.rules(user, "a"), &[granted]);
    let head = "user \"ann\" (groups=[\"team\" \"system:authenticated\"]) is attempting to grant RBAC permissions not \
                currently held:\n";
    let expected = (!expected.is_empty()).then(|| format!("{head}{expected}"));
    assert_eq!(message, expected);
}

#[test]
fn paths_are_granted_like_resources() {
    let paths = |path: &str| PolicyRule {
        verbs: vec!["get".to_owned()],
        non_resource_urls: vec![path.to_owned()],
        ..PolicyRule::default()
    };
    let held = Rules {
        rules: vec![paths("/logs/*")],
        error: String::new(),
    };
    let user = User {
        name: "ann",
        groups: &[],
    };
    assert_eq!(missing(user, &held, &[paths("/logs/a")]), None);
    let message = missing(user, &held, &[paths("/metrics")]).unwrap();
    assert!(
        message.ends_with("\n{NonResourceURLs:[\"/metrics\"], Verbs:[\"get\"]}"),
        "{message}"
    );
}

#[test]
fn millions_of_permissions_are_compared_as_rules() {
    let many = |letter: char| -> Vec<String> { (0..2_000).map(|nth| format!("{letter}{nth}")).collect() };
    let granted = PolicyRule {
        verbs: many('v'),
        api_groups: many('g'),
        resources: many('r'),
        ..PolicyRule::default()
    };
    let user = User {
        name: "eve",
        groups: &[],
    };
    let held = |rules: Vec<PolicyRule>| Rules {
        rules,
        error: String::new(),
    };
    assert_eq!(
        missing(
            user,
            &held(vec![PolicyRule::everything()]),
            std::slice::from_ref(&granted)
        ),
        None
    );
    // Each holds a part of the permissions, and together all of them.
    let half = |verbs: &[String]| PolicyRule {
        verbs: verbs.to_vec(),
        ..granted.clone()
    };
    let (some, rest) = granted.verbs.split_at(1_000);
    let both = held(vec![half(some), half(rest)]);
    assert_eq!(missing(user, &both, std::slice::from_ref(&granted)), None);
    let message = missing(user, &held(vec![half(some)]), &[granted]).unwrap();
    assert!(message.contains("{APIGroups:[\"g0\"], Resources:[\"r0\"], Verbs:[\"v1000\" \"v1001\" "));
    assert!(
        message.ends_with("\n…") && message.len() < 1_000_000,
        "{} bytes",
        message.len()
    );
}

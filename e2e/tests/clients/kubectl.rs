//! kubectl as users run it, without `--validate=false`: its output is that in a cluster.

use e2e::kubectl::Kubectl;
use e2e::server::{Server, Transport};
use e2e::toolchain::or_skip;
use rstest::rstest;
use serde_json::{Value, json};

/// Returns a server and kubectl for it, or skips the test.
macro_rules! kubectl_at {
    ($transport:expr, $server:ident, $kubectl:ident) => {
        let $server = Server::serve($transport);
        let Some($kubectl) = or_skip(Kubectl::new(&$server)) else {
            return;
        };
    };
}

mod changes;
mod kubelet;
mod rights;

const PODS: &str = "
apiVersion: v1
kind: Pod
metadata: {name: one, labels: {app: x}}
spec: {containers: [{name: c, image: nginx}]}
---
apiVersion: v1
kind: Pod
metadata: {name: two, labels: {app: z}}
spec: {containers: [{name: c, image: nginx}, {name: d, image: busybox}]}
";

const DEPLOYMENT: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: nginx}]}
";

const CRD: &str = r#"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.shop.example.com}
spec:
  group: shop.example.com
  scope: Namespaced
  names: {plural: gadgets, singular: gadget, kind: Gadget, shortNames: [gd]}
  versions:
    - name: v1
      served: true
      storage: true
      subresources: {status: {}}
      additionalPrinterColumns:
        - {name: Size, type: integer, jsonPath: .spec.size}
      schema:
        openAPIV3Schema:
          type: object
          description: A thing to be sold.
          properties:
            spec:
              type: object
              properties:
                size: {type: integer, description: How large it is.}
            status: {type: object, x-kubernetes-preserve-unknown-fields: true}
"#;

const GADGET: &str = "
apiVersion: shop.example.com/v1
kind: Gadget
metadata: {name: lamp}
spec: {size: 3}
";

/// Returns the words of a table, row by row.
fn words(table: &str) -> Vec<Vec<&str>> {
    table
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect()
}

/// Returns the text with one space between words.
fn squeezed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns whether a line of the log is that of a watch below this path, however it starts.
fn is_watch(line: &str, path: &str) -> bool {
    line.contains(" WATCH") && line.contains(path)
}

fn value(json: &str) -> Value {
    serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {json}"))
}

#[rstest]
fn get_prints_tables_and_objects(#[values(Transport::Http, Transport::Tls)] transport: Transport) {
    kubectl_at!(transport, server, kubectl);
    assert_eq!(
        kubectl.ok_with(&["apply", "-f", "-"], PODS),
        "pod/one created\npod/two created\n"
    );

    let table = kubectl.ok(&["get", "pods"]);
    let rows = words(&table);
    assert_eq!(rows[0], ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]);
    assert_eq!(rows[1][..4], ["one", "0/1", "Pending", "0"]);
    assert_eq!(rows[2][..4], ["two", "0/2", "Pending", "0"]);

    let wide = kubectl.ok(&["get", "pods", "-o", "wide", "-l", "app=x"]);
    let rows = words(&wide);
    assert_eq!(rows.len(), 2, "{wide}");
    let header = rows[0].join(" ");
    assert_eq!(
        header,
        "NAME READY STATUS RESTARTS AGE IP NODE NOMINATED NODE READINESS GATES"
    );

    let listed = value(&kubectl.ok(&["get", "pods", "-o", "json"]));
    assert_eq!(listed["kind"], "List");
    assert_eq!(listed["items"][1]["spec"]["containers"][1]["image"], "busybox");
    let yaml = kubectl.ok(&["get", "pod", "one", "-o", "yaml"]);
    assert!(
        yaml.starts_with("apiVersion: v1\nkind: Pod\nmetadata:\n"),
        "{yaml}"
    );
    assert_eq!(kubectl.ok(&["get", "po", "-o", "name"]), "pod/one\npod/two\n");
    assert_eq!(
        kubectl.ok(&[
            "get",
            "pods",
            "--field-selector",
            "metadata.name=two",
            "-o",
            "jsonpath={.items[*].metadata.name}"
        ]),
        "two"
    );

    let namespaces = kubectl.ok(&["get", "namespaces"]);
    assert_eq!(words(&namespaces)[1][..2], ["default", "Active"], "{namespaces}");
    let everywhere = kubectl.ok(&["get", "pods", "--all-namespaces"]);
    assert_eq!(words(&everywhere)[1][..2], ["default", "one"], "{everywhere}");

    let missing = kubectl.run(&["get", "pod", "none"]);
    assert_eq!(
        missing.err,
        "Error from server (NotFound): pods \"none\" not found\n"
    );
    assert!(!missing.success);
}

#[rstest]
fn get_watch_sees_what_happens(#[values(Transport::Http, Transport::Tls)] transport: Transport) {
    kubectl_at!(transport, server, kubectl);
    kubectl.ok(&["create", "configmap", "a", "--from-literal=k=v"]);
    let mut watch = kubectl.start(&["get", "configmaps", "--watch", "--output-watch-events"]);
    watch.expect(&["EVENT", "NAME", "DATA", "AGE"]);
    watch.expect(&["ADDED", "a ", "1 "]);
    kubectl.ok(&["create", "configmap", "b"]);
    watch.expect(&["ADDED", "b ", "0 "]);
    kubectl.ok(&["patch", "configmap", "b", "-p", r#"{"data":{"x":"1","y":"2"}}"#]);
    watch.expect(&["MODIFIED", "b ", "2 "]);
    kubectl.ok(&["delete", "configmap", "b"]);
    watch.expect(&["DELETED", "b ", "2 "]);
    server.expect("the watch as a table", |line| {
        is_watch(line, "/api/v1/namespaces/default/configmaps")
    });
}

#[rstest]
#[case::configmap(&["configmap", "a", "--from-literal=k=v"], "configmap/a created", "/api/v1/namespaces/default/configmaps/a", "/data/k", json!("v"))]
#[case::secret(&["secret", "generic", "a", "--from-literal=k=v"], "secret/a created", "/api/v1/namespaces/default/secrets/a", "/data/k", json!("dg=="))]
#[case::namespace(&["namespace", "team"], "namespace/team created", "/api/v1/namespaces/team", "/status/phase", json!("Active"))]
#[case::deployment(&["deployment", "web", "--image=nginx", "--replicas=0"], "deployment.apps/web created", "/apis/apps/v1/namespaces/default/deployments/web", "/spec/replicas", json!(0))]
#[case::service(&["service", "clusterip", "web", "--tcp=80:8080"], "service/web created", "/api/v1/namespaces/default/services/web", "/spec/ports/0/targetPort", json!(8080))]
#[case::service_account(&["serviceaccount", "robot"], "serviceaccount/robot created", "/api/v1/namespaces/default/serviceaccounts/robot", "/metadata/name", json!("robot"))]
#[case::job(&["job", "once", "--image=busybox", "--", "date"], "job.batch/once created", "/apis/batch/v1/namespaces/default/jobs/once", "/spec/template/spec/containers/0/command/0", json!("date"))]
#[case::cron_job(&["cronjob", "often", "--image=busybox", "--schedule=*/5 * * * *"], "cronjob.batch/often created", "/apis/batch/v1/namespaces/default/cronjobs/often", "/spec/schedule", json!("*/5 * * * *"))]
#[case::ingress(&["ingress", "door", "--rule=shop.example.com/*=web:80"], "ingress.networking.k8s.io/door created", "/apis/networking.k8s.io/v1/namespaces/default/ingresses/door", "/spec/rules/0/http/paths/0/backend/service/port/number", json!(80))]
#[case::role(&["role", "reader", "--verb=get,list", "--resource=pods"], "role.rbac.authorization.k8s.io/reader created", "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles/reader", "/rules/0/verbs", json!(["get", "list"]))]
#[case::role_binding(&["rolebinding", "readers", "--role=reader", "--user=jane"], "rolebinding.rbac.authorization.k8s.io/readers created", "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings/readers", "/subjects/0/name", json!("jane"))]
#[case::disruption_budget(&["poddisruptionbudget", "careful", "--selector=app=web", "--min-available=50%"], "poddisruptionbudget.policy/careful created", "/apis/policy/v1/namespaces/default/poddisruptionbudgets/careful", "/spec/minAvailable", json!("50%"))]
#[case::priority_class(&["priorityclass", "high", "--value=1000"], "priorityclass.scheduling.k8s.io/high created", "/apis/scheduling.k8s.io/v1/priorityclasses/high", "/value", json!(1000))]
#[case::quota(&["quota", "small", "--hard=pods=2"], "resourcequota/small created", "/api/v1/namespaces/default/resourcequotas/small", "/spec/hard/pods", json!("2"))]
fn create_creates_the_object(
    #[case] what: &[&str],
    #[case] printed: &str,
    #[case] path: &str,
    #[case] pointer: &str,
    #[case] expected: Value,
) {
    kubectl_at!(Transport::Http, server, kubectl);
    let command = [&["create"], what].concat();
    assert_eq!(kubectl.ok(&command).trim_end(), printed);
    let object = value(&kubectl.ok(&["get", "--raw", path]));
    assert_eq!(object.pointer(pointer), Some(&expected), "{object:#}");
    // It exists now.
    let again = kubectl.run(&command);
    assert!(again.err.contains("already exists"), "{again:?}");
    drop(server);
}

/// OpenAPI v3 lacks the kind `List` and unknown kinds: kubectl then requests v2.
#[test]
fn lists_are_validated_and_what_is_unknown_is_called_so() {
    kubectl_at!(Transport::Http, _server, kubectl);
    let list = |field: &str| {
        format!(
            "{{apiVersion: v1, kind: List, items: [{{apiVersion: v1, kind: ConfigMap, metadata: {{name: a}}, {field}: {{}}}}]}}"
        )
    };
    let apply = ["apply", "-f", "-"];
    assert_eq!(kubectl.ok_with(&apply, &list("data")), "configmap/a created\n");
    let mistyped = kubectl.run_with(&apply, &list("dat"));
    assert!(
        mistyped
            .err
            .contains("unknown field \"dat\" in io.k8s.api.core.v1.ConfigMap"),
        "{mistyped:?}"
    );
    let unknown = kubectl.run_with(
        &apply,
        "{apiVersion: foo.example.com/v1, kind: Foo, metadata: {name: a}}",
    );
    assert!(
        unknown
            .err
            .contains("no matches for kind \"Foo\" in version \"foo.example.com/v1\""),
        "{unknown:?}"
    );
}

#[test]
fn run_makes_a_pod_and_get_shows_its_type() {
    kubectl_at!(Transport::Http, _server, kubectl);
    assert_eq!(kubectl.ok(&["run", "web", "--image=nginx"]), "pod/web created\n");
    let expose = kubectl.ok(&["expose", "pod", "web", "--port=80"]);
    assert_eq!(expose, "service/web exposed\n");
    let table = kubectl.ok(&["get", "service", "web"]);
    let rows = words(&table);
    let header = rows[0].join(" ");
    assert_eq!(header, "NAME TYPE CLUSTER-IP EXTERNAL-IP PORT(S) AGE");
    assert_eq!(rows[1][1], "ClusterIP");
    assert_eq!(rows[1][4], "80/TCP");
}

#[rstest]
fn a_rollout_is_followed_to_its_end(#[values(Transport::Http, Transport::Tls)] transport: Transport) {
    kubectl_at!(transport, _server, kubectl);
    kubectl.ok_with(&["apply", "-f", "-"], DEPLOYMENT);
    assert_eq!(
        kubectl.ok(&["scale", "deployment", "web", "--replicas=3"]),
        "deployment.apps/web scaled\n"
    );
    assert_eq!(
        kubectl.ok(&["get", "deployment", "web", "-o", "jsonpath={.spec.replicas}"]),
        "3"
    );
    kubectl.ok(&["set", "image", "deployment/web", "c=nginx:2"]);

    let mut rollout = kubectl.start(&["rollout", "status", "deployment/web"]);
    rollout.expect(&["Waiting for deployment"]);
    // No controller runs, so the test writes the status.
    let report = |updated: u32, available: u32| {
        let generation =
            value(&kubectl.ok(&["get", "deployment", "web", "-o", "json"]))["metadata"]["generation"].clone();
        let status = json!({"status": {
            "observedGeneration": generation, "replicas": 3, "updatedReplicas": updated,
            "readyReplicas": available, "availableReplicas": available,
        }});
        let status = status.to_string();
        kubectl.ok(&[
            "patch",
            "deployment",
            "web",
            "--subresource=status",
            "--type=merge",
            "-p",
            &status,
        ]);
    };
    report(1, 0);
    rollout.expect(&["1 out of 3 new replicas have been updated"]);
    report(3, 2);
    rollout.expect(&["2 of 3 updated replicas are available"]);
    report(3, 3);
    rollout.expect(&["deployment \"web\" successfully rolled out"]);
    assert!(rollout.ends_well());

    let table = kubectl.ok(&["get", "deployment", "web"]);
    assert_eq!(words(&table)[1][..4], ["web", "3/3", "3", "3"]);
}

#[rstest]
fn a_definition_makes_a_kind_like_any_other(#[values(Transport::Http, Transport::Tls)] transport: Transport) {
    kubectl_at!(transport, _server, kubectl);
    let created = kubectl.ok_with(&["create", "-f", "-"], CRD);
    assert_eq!(
        created,
        "customresourcedefinition.apiextensions.k8s.io/gadgets.shop.example.com created\n"
    );
    kubectl.ok(&[
        "wait",
        "crd/gadgets.shop.example.com",
        "--for=condition=Established",
        "--timeout=30s",
    ]);
    assert_eq!(
        kubectl.ok_with(&["apply", "-f", "-"], GADGET),
        "gadget.shop.example.com/lamp created\n"
    );
    assert_eq!(
        kubectl.ok_with(&["apply", "-f", "-"], GADGET),
        "gadget.shop.example.com/lamp unchanged\n"
    );
    let larger = GADGET.replace('3', "4");
    assert_eq!(
        kubectl.ok_with(&["apply", "-f", "-"], &larger),
        "gadget.shop.example.com/lamp configured\n"
    );
    let table = kubectl.ok(&["get", "gd"]);
    assert_eq!(words(&table)[0], ["NAME", "SIZE"], "{table}");
    assert_eq!(words(&table)[1], ["lamp", "4"]);
    let explained = kubectl.ok(&["explain", "gadget.spec"]);
    assert!(explained.contains("How large it is."), "{explained}");
    let mut watch = kubectl.start(&["get", "gadgets", "--watch"]);
    watch.expect(&["lamp", "4"]);
    kubectl.ok(&[
        "patch",
        "gadget",
        "lamp",
        "--type=merge",
        "-p",
        r#"{"spec":{"size":5}}"#,
    ]);
    watch.expect(&["lamp", "5"]);
    let wrong = kubectl.run(&[
        "patch",
        "gadget",
        "lamp",
        "--type=strategic",
        "-p",
        r#"{"spec":{"size":5}}"#,
    ]);
    assert!(!wrong.success, "custom resources have no strategic merge patch");
    kubectl.ok(&["delete", "gadget", "lamp"]);
    kubectl.ok(&["delete", "crd", "gadgets.shop.example.com"]);
    let gone = kubectl.run(&["get", "gadgets"]);
    assert!(!gone.success, "{gone:?}");
}

#[test]
fn discovery_and_explanations() {
    kubectl_at!(Transport::Http, _server, kubectl);
    let resources = kubectl.ok(&["api-resources"]);
    for expected in [
        ["pods", "po", "v1", "true", "Pod"],
        ["deployments", "deploy", "apps/v1", "true", "Deployment"],
        [
            "customresourcedefinitions",
            "crd,crds",
            "apiextensions.k8s.io/v1",
            "false",
            "CustomResourceDefinition",
        ],
    ] {
        assert!(
            words(&resources).contains(&expected.to_vec()),
            "{expected:?} in {resources}"
        );
    }
    let versions = kubectl.ok(&["api-versions"]);
    assert!(
        versions
            .lines()
            .any(|line| line == "rbac.authorization.k8s.io/v1"),
        "{versions}"
    );
    let explained = kubectl.ok(&["explain", "pod.spec.containers.image"]);
    assert!(explained.contains("Container image name"), "{explained}");
    let version = kubectl.ok(&["version", "-o", "json"]);
    assert_eq!(value(&version)["serverVersion"]["minor"], "37");
    assert_eq!(kubectl.ok(&["get", "--raw", "/readyz"]), "ok");
    kubectl.ok(&["cluster-info"]);
}

#[test]
fn describe_shows_an_object_and_its_events() {
    kubectl_at!(Transport::Http, _server, kubectl);
    kubectl.ok_with(&["apply", "-f", "-"], &format!("{PODS}---{DEPLOYMENT}"));
    let uid = kubectl.ok(&["get", "pod", "one", "-o", "jsonpath={.metadata.uid}"]);
    let event = json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "one.1", "namespace": "default"},
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": "one", "uid": uid},
        "type": "Warning", "reason": "FailedScheduling", "message": "no nodes available",
        "source": {"component": "scheduler"},
    });
    kubectl.ok_with(&["create", "-f", "-"], &event.to_string());
    let pod = squeezed(&kubectl.ok(&["describe", "pod", "one"]));
    for expected in [
        "Name: one",
        "Labels: app=x",
        "Image: nginx",
        "FailedScheduling",
        "no nodes available",
    ] {
        assert!(pod.contains(expected), "{expected:?} in {pod}");
    }
    let deployment = squeezed(&kubectl.ok(&["describe", "deployment", "web"]));
    assert!(deployment.contains("Replicas: 2 desired"), "{deployment}");
    kubectl.ok(&["describe", "namespace", "default"]);
    let events = kubectl.ok(&["events"]);
    assert!(events.contains("FailedScheduling"), "{events}");
}

#[test]
fn wait_returns_when_the_condition_is_met() {
    kubectl_at!(Transport::Http, server, kubectl);
    let mut created = kubectl.start(&["wait", "configmap/late", "--for=create", "--timeout=60s"]);
    server.expect("the watch of what is to come", |line| {
        line.contains("/configmaps")
    });
    kubectl.ok(&["create", "configmap", "late"]);
    created.expect(&["configmap/late condition met"]);
    assert!(created.ends_well());

    kubectl.ok_with(&["apply", "-f", "-"], PODS);
    let mut ready = kubectl.start(&["wait", "pod/one", "--for=condition=Ready", "--timeout=60s"]);
    server.expect("the watch of the pod", |line| {
        is_watch(line, "/api/v1/namespaces/default/pods")
    });
    kubectl.ok(&[
        "patch",
        "pod",
        "one",
        "--subresource=status",
        "-p",
        r#"{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}"#,
    ]);
    ready.expect(&["pod/one condition met"]);
    assert!(ready.ends_well());

    let deleted = kubectl.start(&["wait", "pod/one", "--for=delete", "--timeout=60s"]);
    server.expect("the watch of its end", |line| {
        is_watch(line, "/api/v1/namespaces/default/pods")
    });
    kubectl.ok(&["delete", "pod", "one"]);
    assert!(deleted.ends_well());
}

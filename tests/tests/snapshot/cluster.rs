//! A cluster to take snapshots of, and the folders that they go to.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tests::programs::program;

use crate::running::{Running, UPSTREAM_TOKEN};

/// Value of the Secret, and the same in its annotation.
pub(crate) const PASSWORD: &str = "c25hcHNob3Q=";
pub(crate) const PLAIN_PASSWORD: &str = "in-an-annotation";

/// Token of a user whose rights the objects grant.
const LIMITED_TOKEN: &str = "token-of-the-limited";

/// Returns an empty folder for a test.
pub(crate) fn folder(test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("snapshot").join(test);
    // That of an earlier run.
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Objects of several kinds, one of them with a definition, with status and all.
fn objects() -> Vec<Value> {
    let schema =
        json!({ "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } });
    let subjects = json!([{ "kind": "User", "name": "limited", "apiGroup": "rbac.authorization.k8s.io" }]);
    vec![
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": { "name": "widgets.example.com" },
            "spec": {
                "group": "example.com", "scope": "Namespaced",
                "names": { "plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList" },
                "versions": [{ "name": "v1", "served": true, "storage": true, "schema": schema }],
            },
        }),
        json!({
            "apiVersion": "example.com/v1", "kind": "Widget",
            "metadata": { "name": "w", "namespace": "shop", "finalizers": ["example.com/f"] },
            "spec": { "size": 3, "ratio": 0.1, "big": 9_007_199_254_740_993_u64 }, "status": { "ready": true },
        }),
        json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "p", "namespace": "shop", "labels": { "app": "a" } },
            "spec": { "containers": [{ "name": "c", "image": "i", "env": [{ "name": "E", "value": "of-the-environment" }] }] },
            "status": { "phase": "Running" },
        }),
        json!({
            "apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", "metadata": { "name": "h", "namespace": "shop" },
            "spec": { "maxReplicas": 3, "scaleTargetRef": { "kind": "Deployment", "name": "d", "apiVersion": "apps/v1" } },
        }),
        json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": { "name": "s", "namespace": "shop", "annotations": {
                "kubectl.kubernetes.io/last-applied-configuration": PLAIN_PASSWORD,
            } },
            "type": "Opaque", "data": { "password": PASSWORD },
        }),
        json!({ "apiVersion": "v1", "kind": "Event", "metadata": { "name": "e", "namespace": "shop" } }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": { "name": "reads-config-maps" },
            "rules": [{ "apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"] }],
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": { "name": "reads-config-maps" },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reads-config-maps" },
            "subjects": subjects,
        }),
    ]
}

/// A ConfigMap with some data.
pub(crate) fn config_map(number: usize) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": format!("m-{number:04}"), "namespace": "shop" }, "data": { "k": "v" },
    })
}

/// Starts a cluster with the objects, and as many ConfigMaps.
pub(crate) fn cluster(folder: &Path, config_maps: usize, more: &[&str]) -> Running {
    let mut objects = objects();
    objects.extend((0..config_maps).map(config_map));
    let text: String = objects.iter().map(|object| format!("{object}\n")).collect();
    let file = folder.join("objects.json");
    std::fs::write(&file, text).unwrap();
    let access = [
        "--tls",
        "--token",
        UPSTREAM_TOKEN,
        "--limited-token",
        LIMITED_TOKEN,
        "--objects",
        file.to_str().unwrap(),
    ];
    Running::start("serve", &[access.as_slice(), more].concat())
}

/// Starts a server with a snapshot.
pub(crate) fn served(from: &Path, more: &[&str]) -> Running {
    let access = [
        "--tls",
        "--token",
        UPSTREAM_TOKEN,
        "--from",
        from.to_str().unwrap(),
    ];
    Running::start("serve", &[access.as_slice(), more].concat())
}

/// Exit code and log of a snapshot.
pub(crate) fn snapshot(kubeconfig: &Path, output: &Path, more: &[&str]) -> (Option<i32>, String) {
    let done = program("fake-apiserver")
        .args(["snapshot", "--kubeconfig"])
        .arg(kubeconfig)
        .arg("-o")
        .arg(output)
        .args(more)
        .output()
        .unwrap();
    (
        done.status.code(),
        String::from_utf8_lossy(&done.stderr).into_owned(),
    )
}

/// Takes a snapshot, and returns its log.
pub(crate) fn taken(of: &Running, output: &Path, more: &[&str]) -> String {
    let (code, log) = snapshot(&of.kubeconfig(), output, more);
    assert_eq!(code, Some(0), "{log}");
    log
}

/// Body of a response to the administrator, with its status.
pub(crate) async fn get(server: &Running, target: &str) -> (u16, String) {
    let token = format!("Bearer {UPSTREAM_TOKEN}");
    let (status, _, text) = server.send("GET", target, &[("authorization", &token)]).await;
    (status, text)
}

/// Body of a successful response.
pub(crate) async fn read(server: &Running, target: &str) -> String {
    let (status, text) = get(server, target).await;
    assert_eq!(status, 200, "{target}: {text}");
    text
}

/// Writes a kubeconfig for a cluster with another user.
pub(crate) fn kubeconfig(of: &Running, folder: &Path, user: &Value) -> PathBuf {
    let text = std::fs::read_to_string(of.kubeconfig()).unwrap();
    let mut config: Value = serde_json::from_str(&text).unwrap();
    config["users"][0]["user"] = user.clone();
    let path = folder.join("kubeconfig.json");
    std::fs::write(&path, config.to_string()).unwrap();
    path
}

/// Kubeconfig of the limited user.
pub(crate) fn of_limited(of: &Running, folder: &Path) -> PathBuf {
    kubeconfig(of, folder, &json!({ "token": LIMITED_TOKEN }))
}

/// All lines of the files of a snapshot, as values.
pub(crate) fn lines(path: &Path) -> Vec<Value> {
    let files: Vec<PathBuf> = match path.is_dir() {
        true => std::fs::read_dir(path)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect(),
        false => vec![path.to_owned()],
    };
    let texts = files.iter().map(|file| std::fs::read_to_string(file).unwrap());
    let lines: Vec<String> = texts
        .flat_map(|text| {
            text.lines()
                .filter(|line| !line.is_empty())
                .map(str::to_owned)
                .collect::<Vec<_>>()
        })
        .collect();
    lines
        .iter()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The last line of a snapshot.
pub(crate) fn end(path: &Path) -> Value {
    let found = lines(path)
        .into_iter()
        .find(|line| line.get("snapshotEnd").is_some());
    found.unwrap()
}

/// Version of a snapshot.
pub(crate) fn version(path: &Path) -> String {
    let header = lines(path)
        .into_iter()
        .find(|line| line.get("snapshot").is_some())
        .unwrap();
    header["resourceVersion"].as_str().unwrap().to_owned()
}

/// Path of the collection of a resource that was read.
pub(crate) fn path_of(listed: &Value) -> String {
    let (resource, api_version) = (
        listed["resource"].as_str().unwrap(),
        listed["apiVersion"].as_str().unwrap(),
    );
    let plural = resource.split('.').next().unwrap();
    match api_version.contains('/') {
        true => format!("/apis/{api_version}/{plural}"),
        false => format!("/api/{api_version}/{plural}"),
    }
}

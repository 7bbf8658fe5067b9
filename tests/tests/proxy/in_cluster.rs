//! `--in-cluster`: the proxy is a client of its pod's cluster, and serves another container of the pod as one.
//!
//! The manifest of the sidecar decides about arguments, variables and mounts, so that what is tried here is what is deployed.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::api::{Api, ListParams};
use kube_client::{Client, Config};
use kube_core::ResourceExt as _;
use serde_json::Value;
use tests::repository::root;

use crate::running::{Running, UPSTREAM_TOKEN, failing_with};

const OURS: &str = "the folder is there for tests to write to";

/// Where every in-cluster client reads its files.
const MOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// An empty folder of this test.
fn folder(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("in-cluster-{name}"));
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).expect(OURS);
    path
}

/// Writes what a kubelet mounts for a service account of this cluster.
fn mounted(upstream: &Running, name: &str, token: &str) -> PathBuf {
    use base64::Engine as _;
    let folder = folder(name);
    let text = std::fs::read_to_string(upstream.kubeconfig()).expect("it is there while the upstream runs");
    let kubeconfig: Value = serde_json::from_str(&text).expect("it is JSON");
    let authority = kubeconfig["clusters"][0]["cluster"]["certificate-authority-data"].as_str();
    let authority = base64::engine::general_purpose::STANDARD
        .decode(authority.expect("it is served over TLS"))
        .expect("it is base64");
    std::fs::write(folder.join("ca.crt"), authority).expect(OURS);
    std::fs::write(folder.join("token"), token).expect(OURS);
    std::fs::write(folder.join("namespace"), "default").expect(OURS);
    folder
}

/// The variables that a pod of this cluster has.
fn variables(upstream: &Running) -> Vec<(&'static str, String)> {
    let port = upstream
        .url()
        .rsplit(':')
        .next()
        .expect("it has a port")
        .to_owned();
    vec![
        ("KUBERNETES_SERVICE_HOST", "127.0.0.1".to_owned()),
        ("KUBERNETES_SERVICE_PORT", port),
    ]
}

/// Objects of the sidecar's manifest.
fn manifest() -> Vec<Value> {
    let text = std::fs::read_to_string(root().join("deploy/sidecar.yaml")).unwrap();
    let parts = text.split("\n---\n");
    parts.map(|part| serde_saphyr::from_str(part).unwrap()).collect()
}

/// Returns the pod of the manifest.
fn pod() -> Value {
    let objects = manifest();
    let deployment = objects
        .iter()
        .find(|object| object["kind"] == "Deployment")
        .unwrap();
    deployment["spec"]["template"]["spec"].clone()
}

/// Starts the proxy with the arguments of the manifest, on a free port. `folder`: the volume that both containers have.
fn sidecar(upstream: &Running, mount: &Path, folder: &Path) -> Running {
    let pod = pod();
    let mut arguments: Vec<String> = {
        pod["initContainers"][0]["args"]
            .as_array()
            .unwrap()
            .iter()
            .skip(1)
    }
    .map(|argument| match argument.as_str().unwrap() {
        "--client-service-account=/proxy" => format!("--client-service-account={}", folder.display()),
        "--port=6443" => "--port=0".to_owned(),
        other => other.to_owned(),
    })
    .collect();
    arguments.push(format!("--service-account={}", mount.display()));
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    Running::start_with("proxy", &arguments, &variables(upstream))
}

/// Runs the controller's container: this program in a mount namespace where `folder` is mounted as the manifest mounts it, with
/// the variables of the manifest. `None`: this machine allows no mount namespace.
fn controller(proxy: &Running, folder: &Path) -> Option<Output> {
    let pod = pod();
    let container = &pod["containers"][0];
    assert_eq!(container["volumeMounts"][0]["mountPath"], MOUNT);
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-euc"]);
    // The folder may be below one that is hidden by the mount.
    let script = format!(
        "exec 9<\"$1\"; mount -t tmpfs none /run; mkdir -p {MOUNT}; mount --bind /proc/self/fd/9 {MOUNT}; shift; exec \"$@\""
    );
    command.args([script.as_str(), "sh"]).arg(folder);
    command.arg(std::env::current_exe().unwrap());
    command.args([
        "--exact",
        "in_cluster::the_container_of_a_controller",
        "--ignored",
        "--nocapture",
    ]);
    for variable in container["env"].as_array().unwrap() {
        let value = variable["value"].as_str().unwrap();
        let value = if value == "6443" {
            proxy.url().rsplit(':').next().unwrap()
        } else {
            value
        };
        command.env(variable["name"].as_str().unwrap(), value);
    }
    let is_allowed = Command::new("unshare")
        .args([
            "--user",
            "--map-root-user",
            "--mount",
            "mount",
            "-t",
            "tmpfs",
            "none",
            "/run",
        ])
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !is_allowed {
        // Writing to the log of the test cannot fail.
        let _ = writeln!(
            std::io::stderr(),
            "skipped: unshare --user --mount is not allowed here"
        );
        return None;
    }
    Some(command.output().unwrap())
}

#[tokio::test]
#[ignore = "a part of another test, which runs it in a mount namespace"]
async fn the_container_of_a_controller() {
    let config = Config::incluster_env().unwrap();
    assert_eq!(config.default_namespace, "default");
    let maps: Api<ConfigMap> = Api::default_namespaced(Client::try_from(config).unwrap());
    for map in maps.list(&ListParams::default()).await.unwrap() {
        // Writing to the log of the test cannot fail.
        let _ = writeln!(std::io::stdout(), "read {}", map.name_any());
    }
}

#[tokio::test]
async fn a_controller_in_the_pod_reads_through_the_proxy() {
    let upstream = Running::upstream();
    upstream.steer(&["apply", "do: {apply: {configmap: {name: of-the-cluster}}}"]);
    let mount = mounted(&upstream, "mount", UPSTREAM_TOKEN);
    let shared = folder("shared");
    let proxy = sidecar(&upstream, &mount, &shared);
    let token = std::fs::read_to_string(shared.join("token")).unwrap();
    assert_eq!(token, proxy.token());
    assert_ne!(token, UPSTREAM_TOKEN);

    match controller(&proxy, &shared) {
        Some(done) => {
            let text = String::from_utf8_lossy(&done.stdout).into_owned();
            let errors = String::from_utf8_lossy(&done.stderr).into_owned();
            assert!(text.contains("read of-the-cluster"), "{text} {errors}");
            let trace = proxy.steer(&["trace"]);
            assert!(
                trace.contains("LIST /api/v1/namespaces/default/configmaps"),
                "{trace}"
            );
        }
        None => assert!(
            std::env::var_os("CI").is_none(),
            "the gate needs mount namespaces: sysctl user.max_user_namespaces, kernel.apparmor_restrict_unprivileged_userns"
        ),
    }
    let ended = proxy.stop();
    assert!(
        ended.log.contains("identity of the service account"),
        "{}",
        ended.log
    );
    assert!(
        std::fs::read_dir(&shared).unwrap().next().is_none(),
        "its files are removed"
    );
}

#[tokio::test]
async fn a_container_that_starts_again_replaces_its_files_alone() {
    let upstream = Running::upstream();
    let mount = mounted(&upstream, "again", UPSTREAM_TOKEN);
    let shared = folder("again-shared");
    for name in ["ca.crt", "namespace", "token", ".fake-apiserver"] {
        std::fs::write(shared.join(name), "of a container that was killed").unwrap();
    }
    let proxy = sidecar(&upstream, &mount, &shared);
    assert_eq!(
        std::fs::read_to_string(shared.join("token")).unwrap(),
        proxy.token()
    );
    drop(proxy);

    let other = format!("--client-service-account={}", mount.display());
    let (code, message) = failing_with(
        &[
            "--in-cluster",
            "--as-me",
            &format!("--service-account={}", mount.display()),
            &other,
        ],
        &variables(&upstream),
    );
    assert_eq!(code, Some(2), "{message}");
    assert!(message.contains("was not written by fake-apiserver"), "{message}");
    assert_eq!(
        std::fs::read_to_string(mount.join("token")).unwrap(),
        UPSTREAM_TOKEN
    );
}

#[tokio::test]
async fn the_manifest_is_accepted_by_an_apiserver() {
    let upstream = Running::upstream();
    let client = upstream.client().await;
    for object in manifest() {
        let group = object["apiVersion"].as_str().unwrap().to_owned();
        let prefix = if group.contains('/') {
            format!("/apis/{group}")
        } else {
            format!("/api/{group}")
        };
        let plural = format!("{}s", object["kind"].as_str().unwrap().to_lowercase());
        let path = format!("{prefix}/namespaces/default/{plural}?fieldValidation=Strict");
        let request = http::Request::post(path)
            .header("content-type", "application/json")
            .body(object.to_string().into_bytes())
            .unwrap();
        let created: Value = client.request(request).await.unwrap();
        assert_eq!(created["kind"], object["kind"]);
    }
}

#[test]
fn outside_of_a_pod_it_is_explained() {
    let (code, message) = failing_with(&["--in-cluster"], &[("KUBERNETES_SERVICE_HOST", String::new())]);
    assert_eq!(code, Some(2), "{message}");
    for part in ["KUBERNETES_SERVICE_HOST is not set", "--kubeconfig FILE"] {
        assert!(message.contains(part), "{part}: {message}");
    }
    let nowhere = [
        ("KUBERNETES_SERVICE_HOST", "127.0.0.1".to_owned()),
        ("KUBERNETES_SERVICE_PORT", "1".to_owned()),
    ];
    let (code, message) = failing_with(&["--in-cluster", "--service-account=/nowhere"], &nowhere);
    assert_eq!(code, Some(2), "{message}");
    assert!(message.contains("/nowhere/token"), "{message}");
}

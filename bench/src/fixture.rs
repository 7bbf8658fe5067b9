//! Objects of realistic sizes.

use serde_json::json;

/// Padding of a ConfigMap of about 0.5 KB.
pub(crate) const SMALL: usize = 130;

/// Bytes around the object in a line of a watch: `{"type":"MODIFIED","object":`, `}` and a newline.
pub(crate) const AROUND: u64 = 30;

/// Returns a Pod that takes about 2.7 KB of JSON in a server, of which 1.1 KB are managed fields of its creation.
pub(crate) fn pod(number: u64) -> Vec<u8> {
    let name = format!("web-{:05}-{number:07}", number % 30_000);
    let condition = |kind: &str| {
        json!({
            "type": kind,
            "status": "True",
            "lastProbeTime": null,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        })
    };
    let conditions = ["Ready", "PodScheduled"].map(condition);
    let pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            "labels": { "app": "web", "pod-template-hash": format!("{:010x}", number % 1000), "tier": "front" },
            "ownerReferences": [{
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "name": format!("web-{:05}", number % 30_000),
                "uid": format!("00000000-0000-4000-8000-{:012x}", number % 30_000),
                "controller": true,
                "blockOwnerDeletion": true,
            }],
        },
        "spec": {
            "volumes": [{
                "name": "config",
                "configMap": { "name": "web-config", "defaultMode": 420 },
            }],
            "containers": [{
                "name": "web",
                "image": "registry.example.com/web:v1.2.3",
                "ports": [{ "name": "http", "containerPort": 8080, "protocol": "TCP" }],
                "resources": {
                    "limits": { "cpu": "500m", "memory": "256Mi" },
                    "requests": { "cpu": "100m", "memory": "128Mi" },
                },
                "volumeMounts": [{ "name": "config", "readOnly": true, "mountPath": "/etc/config" }],
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
                "imagePullPolicy": "IfNotPresent",
            }],
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "serviceAccountName": "default",
            "nodeName": format!("node-{:04}", number % 5000),
            "securityContext": {},
            "schedulerName": "default-scheduler",
        },
        "status": {
            "phase": "Running",
            "conditions": conditions,
            "hostIP": format!("10.0.{}.{}", number / 250 % 250, number % 250),
            "podIP": format!("10.1.{}.{}", number / 250 % 250, number % 250),
            "startTime": "2026-01-01T00:00:00Z",
            "qosClass": "Burstable",
        },
    });
    pod.to_string().into_bytes()
}

/// Returns a ConfigMap with `padding` bytes. `n` changes its content but not its length.
pub(crate) fn config_map(name: &str, label: &str, padding: usize, n: u64) -> Vec<u8> {
    let map = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": name, "namespace": "default", "labels": { "bench": label } },
        "data": { "n": format!("{n:08}"), "padding": "x".repeat(padding) },
    });
    map.to_string().into_bytes()
}

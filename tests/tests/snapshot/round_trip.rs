//! A server that begins with a snapshot is the one that it was taken of.

use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::Api;
use rstest::rstest;
use serde_json::Value;

use crate::cluster::{cluster, end, folder, get, lines, path_of, read, served, snapshot, taken, version};
use crate::running::Running;

const CONFIG_MAPS: &str = "/api/v1/namespaces/shop/configmaps";

async fn maps(server: &Running) -> Api<ConfigMap> {
    Api::namespaced(server.client().await, "shop")
}

#[rstest]
#[case::folder("all", "s")]
#[case::file("one-file", "s.json")]
#[tokio::test]
async fn every_list_is_the_same_byte_for_byte(#[case] test: &str, #[case] name: &str) {
    let folder = folder(test);
    let before = cluster(&folder, 3, &[]);
    let output = folder.join(name);
    taken(&before, &output, &[]);
    let listed = end(&output)["resources"].as_array().unwrap().clone();
    let paths: Vec<String> = listed.iter().map(path_of).collect();
    for expected in [
        "/api/v1/pods",
        "/apis/example.com/v1/widgets",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    ] {
        assert!(paths.iter().any(|path| path == expected), "{expected}: {paths:?}");
    }
    let after = served(&output, &[]);
    for path in &paths {
        let (was, is) = (read(&before, path).await, read(&after, path).await);
        match path.as_str() {
            "/api/v1/secrets" => {
                assert_ne!(was, is);
                let secret: Value = serde_json::from_str(&is).unwrap();
                assert_eq!(secret["items"][0]["data"]["password"], "");
            }
            _ => assert_eq!(was, is, "{path}"),
        }
    }
    // In other representations and versions, too.
    for path in [
        "/apis/autoscaling/v1/horizontalpodautoscalers",
        "/apis/example.com/v1/namespaces/shop/widgets/w",
    ] {
        assert_eq!(read(&before, path).await, read(&after, path).await, "{path}");
    }
}

#[tokio::test]
async fn clients_go_on_from_the_version_of_the_snapshot() {
    let folder = folder("go-on");
    let output = folder.join("s");
    let (version, token) = {
        let before = cluster(&folder, 3, &[]);
        taken(&before, &output, &[]);
        let page: Value =
            serde_json::from_str(&read(&before, &format!("{CONFIG_MAPS}?limit=2")).await).unwrap();
        assert_eq!(page["metadata"]["resourceVersion"], version(&output));
        (
            version(&output),
            page["metadata"]["continue"].as_str().unwrap().to_owned(),
        )
    };
    let after = served(&output, &["--strict"]);
    let rest = read(&after, &format!("{CONFIG_MAPS}?limit=2&continue={token}")).await;
    assert!(rest.contains("m-0002") && !rest.contains("m-0001"), "{rest}");
    let exactly = format!("/api/v1/pods?resourceVersion={version}&resourceVersionMatch=Exact");
    let exact: Value = serde_json::from_str(&read(&after, &exactly).await).unwrap();
    assert_eq!(exact["metadata"]["resourceVersion"], version);
    // A watch from there has what happens from now on, and nothing else.
    let map = serde_json::json!({ "metadata": { "name": "new" } });
    maps(&after)
        .await
        .create(&Default::default(), &serde_json::from_value(map).unwrap())
        .await
        .unwrap();
    let watched = read(
        &after,
        &format!("{CONFIG_MAPS}?watch=true&resourceVersion={version}&timeoutSeconds=1"),
    )
    .await;
    let events: Vec<Value> = watched
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(events.len(), 1, "{watched}");
    assert_eq!(
        (&events[0]["type"], &events[0]["object"]["metadata"]["name"]),
        (&"ADDED".into(), &"new".into())
    );
    let newer: u64 = events[0]["object"]["metadata"]["resourceVersion"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap();
    assert!(newer > version.parse().unwrap(), "{newer} after {version}");
    // Before the snapshot there is nothing.
    let older = version.parse::<u64>().unwrap() - 1;
    let watch = format!("/api/v1/services?watch=true&resourceVersion={older}&timeoutSeconds=1");
    let expired = read(&after, &watch).await;
    assert!(expired.contains("\"code\":410"), "{expired}");
    let ended = after.stop();
    assert_eq!(ended.code, Some(0), "the judge accuses nobody: {}", ended.log);
}

#[tokio::test]
async fn a_reset_restores_the_snapshot() {
    let folder = folder("reset");
    let output = folder.join("s");
    taken(&cluster(&folder, 2, &[]), &output, &[]);
    let after = served(&output, &[]);
    let names = async || {
        let list: Value = serde_json::from_str(&read(&after, CONFIG_MAPS).await).unwrap();
        let items = list["items"].as_array().unwrap().clone();
        items
            .iter()
            .map(|item| item["metadata"]["uid"].clone())
            .collect::<Vec<_>>()
    };
    let before = names().await;
    maps(&after)
        .await
        .delete("m-0000", &Default::default())
        .await
        .unwrap();
    assert_eq!(names().await.len(), 1);
    after.steer(&["reset"]);
    assert_eq!(names().await, before);
}

#[tokio::test]
async fn chosen_resources_bring_their_definitions() {
    let folder = folder("chosen");
    let output = folder.join("s.json");
    let before = cluster(&folder, 2, &[]);
    let log = taken(
        &before,
        &output,
        &["--resource", "widget", "--resource", "po", "--namespace", "shop"],
    );
    assert!(log.contains("3 objects of 3 resources"), "{log}");
    let after = served(&output, &[]);
    for path in ["/apis/example.com/v1/widgets", "/api/v1/pods"] {
        assert_eq!(read(&before, path).await, read(&after, path).await, "{path}");
    }
    // The rest is that of a new cluster, and older.
    let namespaces = read(&after, "/api/v1/namespaces").await;
    for name in ["default", "kube-system", "shop"] {
        assert!(
            namespaces.contains(&format!("\"name\":\"{name}\"")),
            "{name}: {namespaces}"
        );
    }
    let list: Value = serde_json::from_str(&namespaces).unwrap();
    assert_eq!(list["metadata"]["resourceVersion"], version(&output));
    let (status, _) = get(&after, "/api/v1/namespaces/shop/configmaps/m-0000").await;
    assert_eq!(status, 404);
}

#[test]
fn a_namespace_is_read_with_what_is_in_it() {
    let folder = folder("namespace");
    let output = folder.join("s.json");
    taken(&cluster(&folder, 1, &[]), &output, &["--namespace", "shop"]);
    let objects: Vec<Value> = lines(&output)
        .into_iter()
        .filter(|line| line.get("kind").is_some())
        .collect();
    let kinds: Vec<&str> = objects
        .iter()
        .map(|object| object["kind"].as_str().unwrap())
        .collect();
    assert_eq!(
        kinds,
        [
            "CustomResourceDefinition",
            "ConfigMap",
            "Namespace",
            "Pod",
            "Secret",
            "HorizontalPodAutoscaler",
            "Widget"
        ]
    );
}

#[tokio::test]
async fn a_snapshot_is_edited_by_hand() {
    let folder = folder("edited");
    let output = folder.join("s");
    taken(&cluster(&folder, 2, &[]), &output, &["--resource", "configmaps"]);
    let file = output.join("configmaps.json");
    let text = std::fs::read_to_string(&file).unwrap();
    let (removed, kept) = text.split_once('\n').unwrap();
    assert!(
        removed.contains("m-0000") || removed.contains("kube-"),
        "{removed}"
    );
    let added =
        r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"by-hand","namespace":"elsewhere"}}"#;
    std::fs::write(&file, format!("\n{added}\n{kept}")).unwrap();
    let after = served(&output, &[]);
    let list = read(&after, "/api/v1/configmaps").await;
    assert!(
        list.contains("by-hand") && list.contains(&version(&output)),
        "{list}"
    );
}

#[tokio::test]
async fn an_upgraded_server_creates_what_it_lacks() {
    let folder = folder("upgraded");
    let output = folder.join("s");
    let before = cluster(&folder, 1, &["--kubernetes-version", "1.34"]);
    taken(&before, &output, &[]);
    let same = served(&output, &[]);
    assert!(read(&same, "/version").await.contains("\"minor\": \"34\""));
    let after = served(&output, &["--kubernetes-version", "1.37"]);
    assert!(read(&after, "/version").await.contains("\"minor\": \"37\""));
    for path in ["/api/v1/pods", "/apis/example.com/v1/widgets"] {
        let [was, is] = [read(&before, path).await, read(&after, path).await];
        let items = |text: &str| serde_json::from_str::<Value>(text).unwrap()["items"].clone();
        assert_eq!(items(&was), items(&is), "{path}");
    }
    let roles = |text: String| {
        serde_json::from_str::<Value>(&text).unwrap()["items"]
            .as_array()
            .unwrap()
            .len()
    };
    let path = "/apis/apiregistration.k8s.io/v1/apiservices";
    assert!(roles(read(&after, path).await) >= roles(read(&before, path).await));
}

#[test]
fn kinds_that_a_version_does_not_serve_are_named() {
    let folder = folder("unserved");
    let output = folder.join("s.json");
    taken(&cluster(&folder, 1, &[]), &output, &["--resource", "configmaps"]);
    let text = std::fs::read_to_string(&output).unwrap();
    let unknown = r#"{"kind":"Later","apiVersion":"apps/v2","metadata":{"name":"l"}}"#;
    let (header, rest) = text.split_once('\n').unwrap();
    std::fs::write(&output, format!("{header}\n{unknown}\n{unknown}\n{rest}")).unwrap();
    let ended = served(&output, &[]).stop();
    assert!(
        ended
            .log
            .contains("warning: 2 objects of Later (apps/v2) left out: Kubernetes 1.37 does not serve them"),
        "{}",
        ended.log
    );
}

#[test]
fn what_is_left_out_is_in_the_log_and_in_the_file() {
    let folder = folder("left-out");
    let output = folder.join("s.json");
    let before = cluster(&folder, 1, &[]);
    let log = taken(&before, &output, &[]);
    for expected in [
        "left out: events (",
        "left out: leases.coordination.k8s.io (",
        "left out: componentstatuses (",
    ] {
        assert!(log.contains(expected), "{expected}: {log}");
    }
    let left_out = end(&output)["leftOut"].to_string();
    assert!(
        left_out.contains("\"events\"") && left_out.contains("componentstatuses"),
        "{left_out}"
    );
    // Unless it is asked for.
    let (code, log) = snapshot(
        &before.kubeconfig(),
        &folder.join("events.json"),
        &["--resource", "events"],
    );
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("1 object of 1 resource"), "{log}");
}

//! Lists in pages that expire, are too many, or are not answered.

use std::path::Path;

use rstest::rstest;
use serde_json::Value;

use crate::cluster::{cluster, end, folder, lines, snapshot, taken, version};

/// Names of the ConfigMaps in a snapshot.
fn names(path: &Path) -> Vec<String> {
    let objects = lines(path).into_iter().filter(|line| line["kind"] == "ConfigMap");
    let names = objects.filter_map(|object| object["metadata"]["name"].as_str().map(str::to_owned));
    names.filter(|name| name.starts_with("m-")).collect()
}

fn expected(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("m-{number:04}")).collect()
}

/// A list of three pages begins again when one of them expires: nothing is there twice.
#[rstest]
#[case::first_list_in_a_folder("first-folder", "s", &["--resource", "configmaps"])]
#[case::first_list_in_a_file("first-file", "s.json", &["--resource", "configmaps"])]
#[case::later_list_in_a_folder("later-folder", "s", &["--resource", "pods", "--resource", "configmaps"])]
#[case::later_list_in_a_file("later-file", "s.json", &["--resource", "pods", "--resource", "configmaps"])]
fn pages_that_expire_begin_again(#[case] test: &str, #[case] name: &str, #[case] resources: &[&str]) {
    let folder = folder(test);
    let cluster = cluster(&folder, 1_100, &[]);
    for page in [2, 3] {
        cluster.steer(&[
            "apply",
            &format!("when: {{page: {page}}}, from: {{resource: configmaps}}, do: {{reply: {{status: 410, reason: Expired}}}}"),
        ]);
    }
    let output = folder.join(name);
    taken(&cluster, &output, resources);
    assert_eq!(names(&output), expected(1_100));
    let trace = cluster.steer(&["trace"]);
    assert!(
        trace.matches("server < ").count() > 0 && trace.contains(" 410"),
        "{trace}"
    );
}

#[test]
fn pages_that_always_expire_end_it_and_nothing_stays() {
    let folder = folder("always");
    let cluster = cluster(&folder, 600, &[]);
    for _ in 0..2 * 6 {
        cluster.steer(&[
            "apply",
            "when: {page: 2}, from: {resource: configmaps}, do: {reply: {status: 410, reason: Expired}}",
        ]);
    }
    for name in ["s", "s.json"] {
        let output = folder.join(name);
        let (code, log) = snapshot(&cluster.kubeconfig(), &output, &["--resource", "configmaps"]);
        assert_eq!(code, Some(3), "{log}");
        assert!(
            log.contains("the pages of configmaps expire before all are read (410)"),
            "{log}"
        );
        assert!(!output.exists(), "{name} is incomplete");
    }
}

/// The version of the first list is gone when another one is read: that one is newer, and reported.
#[test]
fn a_version_that_is_compacted_is_replaced_by_a_newer_one() {
    let folder = folder("compacted");
    let cluster = cluster(&folder, 1, &[]);
    cluster.steer(&[
        "apply",
        "when: {list: next}, from: {resource: pods}, do: [{apply: {configmap: {name: later}}}, {reply: {status: 410, reason: Expired}}]",
    ]);
    let output = folder.join("s.json");
    let log = taken(
        &cluster,
        &output,
        &["--resource", "configmaps", "--resource", "pods"],
    );
    assert!(log.contains("pods is of version"), "{log}");
    let end = end(&output);
    let newer = end["resources"][1]["resourceVersion"]
        .as_str()
        .unwrap()
        .parse::<u64>()
        .unwrap();
    let oldest: u64 = version(&output).parse().unwrap();
    assert!(newer > oldest, "{end}");
    // Clients of both versions go on.
    let after = crate::cluster::served(&output, &[]);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        for version in [oldest, newer] {
            let target = format!("/api/v1/pods?watch=true&timeoutSeconds=1&resourceVersion={version}");
            assert_eq!(crate::cluster::read(&after, &target).await, "", "from {version}");
        }
        let list: Value = serde_json::from_str(&crate::cluster::read(&after, "/api/v1/pods").await).unwrap();
        assert_eq!(list["metadata"]["resourceVersion"], newer.to_string());
    });
}

#[test]
fn a_busy_server_is_asked_again() {
    let folder = folder("busy");
    let cluster = cluster(&folder, 1, &[]);
    cluster.steer(&[
        "apply",
        "when: {list: next}, do: {reply: {status: 429, retry_after: 0}}",
    ]);
    let output = folder.join("s.json");
    taken(&cluster, &output, &["--resource", "configmaps"]);
    assert_eq!(names(&output), expected(1));
}

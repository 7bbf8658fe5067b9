//! Attacks on the promises of a snapshot: no value of a Secret, no named field, no credentials, and files for its user only.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::cluster::{PASSWORD, PLAIN_PASSWORD, cluster, folder, snapshot, taken};
use crate::running::UPSTREAM_TOKEN;

/// Path, mode and text of everything that was written.
fn written(path: &Path) -> Vec<(PathBuf, u32, String)> {
    let mut all = Vec::new();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    if path.is_dir() {
        all.push((path.to_owned(), mode(path), String::new()));
        for entry in std::fs::read_dir(path).unwrap() {
            all.extend(written(&entry.unwrap().path()));
        }
    } else {
        all.push((
            path.to_owned(),
            mode(path),
            std::fs::read_to_string(path).unwrap(),
        ));
    }
    all
}

#[test]
fn secrets_and_credentials_are_in_no_file_and_no_log() {
    let folder = folder("secrets");
    let cluster = cluster(&folder, 1, &[]);
    for (name, more) in [
        ("s", vec![]),
        ("s.json", vec!["--resource", "secrets"]),
        ("n.json", vec!["--namespace", "shop"]),
    ] {
        let output = folder.join(name);
        let log = taken(&cluster, &output, &more);
        let text: String = written(&output).into_iter().map(|(.., text)| text).collect();
        assert!(
            text.contains("\"data\":{\"password\":\"\"}"),
            "the key stays: {text}"
        );
        for secret in [PASSWORD, PLAIN_PASSWORD, "snapshot-of", UPSTREAM_TOKEN] {
            assert!(
                !text.contains(secret) && !log.contains(secret),
                "{secret} in {name}: {log}"
            );
        }
    }
}

#[test]
fn named_fields_are_in_no_file() {
    let folder = folder("redacted");
    let cluster = cluster(&folder, 1, &[]);
    let output = folder.join("s");
    let redact = [
        "--redact",
        "metadata.managedFields",
        "--redact",
        "spec.containers.env",
    ];
    taken(&cluster, &output, &redact);
    let files = written(&output);
    for (path, _, text) in &files {
        if !path.ends_with("snapshot.json") {
            assert!(
                !text.contains("managedFields") && !text.contains("of-the-environment"),
                "{text}"
            );
        }
    }
    let head = files
        .iter()
        .find(|(path, ..)| path.ends_with("snapshot.json"))
        .unwrap();
    assert!(
        head.2
            .contains("\"redacted\":[\"metadata.managedFields\",\"spec.containers.env\"]"),
        "{}",
        head.2
    );
}

#[test]
fn files_are_their_users_alone_and_never_overwritten() {
    let folder = folder("private");
    let cluster = cluster(&folder, 1, &[]);
    for name in ["s", "s.json"] {
        let output = folder.join(name);
        taken(&cluster, &output, &["--resource", "configmaps"]);
        for (path, mode, _) in written(&output) {
            let expected = if path.is_dir() { 0o700 } else { 0o600 };
            assert_eq!(mode, expected, "{}", path.display());
        }
        let before = written(&output);
        let (code, log) = snapshot(&cluster.kubeconfig(), &output, &[]);
        assert_eq!(code, Some(2), "{log}");
        assert!(log.contains("exists, and is never overwritten"), "{log}");
        assert_eq!(written(&output), before);
    }
    let link = folder.join("link.json");
    std::os::unix::fs::symlink(folder.join("elsewhere.json"), &link).unwrap();
    let (code, log) = snapshot(&cluster.kubeconfig(), &link, &[]);
    assert_eq!(code, Some(2), "{log}");
    assert!(
        !folder.join("elsewhere.json").exists(),
        "nothing is written through a link"
    );
}

#[test]
fn a_snapshot_only_reads() {
    let folder = folder("reads");
    let cluster = cluster(&folder, 1, &[]);
    taken(&cluster, &folder.join("s"), &[]);
    let trace = cluster.steer(&["trace"]);
    let requests = trace.lines().filter(|line| line.contains("client > #"));
    let others: Vec<&str> = requests
        .filter(|line| !["LIST", "GET", "closed"].iter().any(|word| line.contains(word)))
        .collect();
    assert!(others.is_empty(), "{others:?}");
}

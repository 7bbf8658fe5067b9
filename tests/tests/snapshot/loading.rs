//! Snapshots that no server can begin with: every mistake is named with file and line, all at once.

use std::path::{Path, PathBuf};

use rstest::rstest;
use tests::programs::program;

use crate::cluster::folder;

const HEADER: &str =
    r#"{"snapshot":"v1","program":"p","kubernetes":"v1.37.2","resourceVersion":"100","takenAt":"t"}"#;
const END: &str = r#"{"snapshotEnd":"v1","objects":0,"resources":[]}"#;

fn map(name: &str, more: &str) -> String {
    format!(
        r#"{{"kind":"ConfigMap","apiVersion":"v1","metadata":{{"name":"{name}","namespace":"n"{more}}}}}"#
    )
}

/// Exit code and message of a server that does not start.
fn refused(from: &Path) -> (Option<i32>, String) {
    let done = program("fake-apiserver")
        .args(["serve", "--from"])
        .arg(from)
        .output()
        .unwrap();
    (
        done.status.code(),
        String::from_utf8_lossy(&done.stderr).into_owned(),
    )
}

fn file(test: &str, lines: &[&str]) -> PathBuf {
    let file = folder(&format!("loading-{test}")).join("s.json");
    std::fs::write(&file, lines.join("\n") + "\n").unwrap();
    file
}

#[test]
fn every_mistake_is_named_with_its_line() {
    let (fine, newer) = (map("a", ""), map("b", r#","resourceVersion":"101""#));
    let (no_number, no_text) = (
        map("c", r#","resourceVersion":"x""#),
        map("d", r#","resourceVersion":7"#),
    );
    let wrong_type =
        r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"e","namespace":"n"},"data":5}"#;
    let lines = [
        HEADER,
        &fine,
        "{\"kind\":",
        "[]",
        r#"{"kind":"ConfigMap"}"#,
        r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"namespace":"n"}}"#,
        r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"f"}}"#,
        r#"{"kind":"Node","apiVersion":"v1","metadata":{"name":"f","namespace":"n"}}"#,
        &newer,
        &no_number,
        &no_text,
        wrong_type,
        &fine,
        r#"{"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1","metadata":{"name":"x"},"spec":{}}"#,
        r#"{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1","metadata":{"name":"x"}}"#,
        HEADER,
        END,
    ];
    let file = file("every", &lines);
    let (code, message) = refused(&file);
    assert_eq!(code, Some(2), "{message}");
    for (line, expected) in [
        (3, "an object has to be on one line"),
        (4, "no JSON object"),
        (
            5,
            "an object needs apiVersion and kind: add them, or remove the line",
        ),
        (6, "an object needs metadata.name"),
        (7, "needs metadata.namespace"),
        (8, "has no metadata.namespace: remove it"),
        (
            9,
            "resourceVersion 101 is after that of the snapshot, 100: remove the field, or take the snapshot again",
        ),
        (10, "metadata.resourceVersion is no number: remove the field"),
        (11, "resourceVersion"),
        (12, "cannot unmarshal number"),
        (
            13,
            "configmaps \"n/a\" is in the snapshot twice: remove one of them",
        ),
        (14, "is invalid"),
        (15, "are not stored"),
        (16, "a second header or end"),
    ] {
        let at = format!("{}:{line}: ", file.display());
        let found = message.lines().find(|found| found.starts_with(&at));
        assert!(
            found.is_some_and(|found| found.contains(expected)),
            "{line} {expected}: {message}"
        );
    }
    assert!(
        message.contains("14 mistakes; the server was not started"),
        "{message}"
    );
}

#[rstest]
#[case::cut("cut", &[HEADER], "the snapshot is cut: its last line is missing; take it again")]
#[case::no_header("no-header", &[END], "no snapshot: it has no header; fake-apiserver snapshot writes one, and --objects reads other files")]
#[case::empty("empty", &[""], "no snapshot: it has no header")]
#[case::html("html", &["<!DOCTYPE html>"], "it is HTML, as a login page or a file browser sends it")]
#[case::later_format("later", &[r#"{"snapshot":"v9"}"#, END], "format \"v9\", and this version reads v1: use the version that wrote it")]
#[case::broken_header("broken", &[r#"{"snapshot":"v1"}"#, END], "the header or end is not complete: missing field")]
#[case::no_version("no-version", &[r#"{"snapshot":"v1","program":"p","kubernetes":"","resourceVersion":"x","takenAt":"t"}"#, END], "the resourceVersion of its header is no number")]
fn what_is_no_snapshot_is_named(#[case] test: &str, #[case] lines: &[&str], #[case] expected: &str) {
    let (code, message) = refused(&file(test, lines));
    assert_eq!(code, Some(2), "{message}");
    assert!(message.contains(expected), "{message}");
}

#[test]
fn a_folder_needs_its_head() {
    let folder = folder("loading-folder");
    std::fs::write(folder.join("configmaps.json"), map("a", "")).unwrap();
    let (code, message) = refused(&folder);
    assert_eq!(code, Some(2), "{message}");
    assert!(message.contains("it has no header (snapshot.json)"), "{message}");
    let (code, message) = refused(Path::new("/nowhere/snapshot"));
    assert_eq!(
        (code, message.as_str()),
        (Some(2), "error: --from /nowhere/snapshot: it does not exist\n")
    );
}

#[test]
fn objects_of_a_snapshot_are_not_read_as_files() {
    let done = program("fake-apiserver")
        .args(["serve", "--objects"])
        .arg(file("as-objects", &[HEADER, END]))
        .output()
        .unwrap();
    let message = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(2), "{message}");
    assert!(
        message.contains("a snapshot: start with it by --from"),
        "{message}"
    );
}

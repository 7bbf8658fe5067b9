//! Scenario files of any kind and location, passed to every program that reads them: `check`, `run`, `cargo xtask
//! scenarios`.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::{Path, PathBuf};
use std::process::Output;

use rstest::rstest;
use serde_json::Value;
use tests::programs::program;

const GOOD: &str = "scenario: v1\ntitle: The first set is read\nwhy: w\ncovers: [LIST-01]\nobjects: [{configmap: {name: a}}]\n";
const WARNED: &str = "expect: {events: [{delete: a}]}\n";
const BAD: &str = "scenario: v1\ntitle: t\nwhy: w\ncovers: [LIST-01]\nsteps:\n  - wenn: {list: 1}\n";

/// Returns a folder with these files, outside the repository's scenarios.
fn folder(name: &str, files: &[(&str, &str)]) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    // It may not exist.
    let _ = std::fs::remove_dir_all(&folder);
    for (file, text) in files {
        let file = folder.join(file);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }
    folder
}

fn ended(name: &str, arguments: &[&str], last: &[&Path]) -> Output {
    let mut command = program(name);
    command.args(arguments).args(last).env("NO_COLOR", "1");
    command.output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[rstest]
#[case::good("good", GOOD.to_owned(), &[], 0, "1 file checked: 0 mistakes in 0, 0 warnings")]
#[case::bad("bad", BAD.to_owned(), &[], 2, "claim.yaml:6:5")]
#[case::warned("warned", format!("{GOOD}{WARNED}"), &[], 0, "claim.yaml:6:19: warning: `delete` of `a` is never emitted")]
#[case::strict("strict", format!("{GOOD}{WARNED}"), &["--strict"], 1, "1 warning")]
fn check_reports_every_error(
    #[case] name: &str,
    #[case] scenario: String,
    #[case] arguments: &[&str],
    #[case] code: i32,
    #[case] message: &str,
) {
    let folder = folder(&format!("check-{name}"), &[("claim.yaml", &scenario)]);
    let arguments = [&["check"], arguments].concat();
    for path in [folder.join("claim.yaml"), folder] {
        let ended = ended("fake-apiserver", &arguments, &[&path]);
        let printed = text(&ended.stdout);
        assert_eq!(ended.status.code(), Some(code), "{printed}");
        assert!(printed.contains(message), "no {message:?} in\n{printed}");
    }
}

#[test]
fn check_prints_a_record_a_file() {
    let folder = folder("check-json", &[("a.yaml", GOOD), ("b.yml", BAD)]);
    let ended = ended("fake-apiserver", &["check", "--format", "json"], &[&folder]);
    assert_eq!(ended.status.code(), Some(2));
    let lines: Vec<Value> = text(&ended.stdout)
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 3);
    let mistakes: Vec<&Value> = lines.iter().map(|line| &line["mistakes"]).collect();
    assert_eq!(mistakes[..2], [&Value::from(0), &Value::from(1)]);
    assert_eq!(lines[1]["errors"][0]["line"], 6);
    assert_eq!(lines[2]["footer"]["mistaken"], 1);
}

#[rstest]
#[case::text("text", "1 file has mistakes")]
#[case::json("json", "\"outcome\":\"invalid_file\"")]
#[case::junit("junit", "type=\"invalid_file\"")]
fn a_bad_file_does_not_stop_the_rest(#[case] format: &str, #[case] message: &str) {
    let folder = folder(
        &format!("run-{format}"),
        &[("bad.yaml", BAD), ("good.yaml", GOOD)],
    );
    let mut command = program("fake-apiserver");
    let ended = command
        .args(["run", "--format", format])
        .arg(&folder)
        .args(["--", env!("CARGO_BIN_EXE_follow")])
        .output()
        .unwrap();
    let (printed, complaints) = (text(&ended.stdout), text(&ended.stderr));
    assert_eq!(ended.status.code(), Some(2), "{printed}");
    assert!(printed.contains(message), "no {message:?} in\n{printed}");
    assert!(
        printed.contains("good"),
        "the other one was not played:\n{printed}"
    );
    assert!(complaints.contains("bad.yaml:6:5"), "{complaints}");
}

#[test]
fn scenarios_from_anywhere_are_played() {
    let folder = folder(
        "xtask-paths",
        &[("group/bad.yaml", BAD), ("group/good.yaml", GOOD)],
    );
    let good = folder.join("group/good.yaml");
    let played = ended("xtask", &["scenarios", "--format", "json"], &[&good]);
    assert_eq!(played.status.code(), Some(0), "{}", text(&played.stderr));
    assert!(
        text(&played.stdout).contains("\"id\":\"good\""),
        "{}",
        text(&played.stdout)
    );
    let played = ended("xtask", &["scenarios", "--format", "json"], &[&folder]);
    assert_eq!(played.status.code(), Some(2));
    assert!(
        text(&played.stdout).contains("\"id\":\"group/good\""),
        "{}",
        text(&played.stdout)
    );
    assert!(
        text(&played.stderr).contains("bad.yaml:6:5"),
        "{}",
        text(&played.stderr)
    );
}

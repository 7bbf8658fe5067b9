//! `fake-apiserver run`: what it prints about a command, and the codes it ends with.

use std::process::Output;

use rstest::rstest;
use tests::programs::program;

/// Waits for a list; nothing in it needs reports.
const PLAYABLE: &str = "scenarios/auth/a-forbidden-list-is-surfaced-and-retried.yaml";
/// Waits for what a client reports.
const NEEDS_ADAPTER: &str = "scenarios/watch/clean-ends-cost-no-list.yaml";

fn run(arguments: &[&str]) -> Output {
    let mut command = program("fake-apiserver");
    command.arg("run").args(arguments).env("NO_COLOR", "1");
    command.output().expect("it was just built")
}

#[rstest]
#[case::needs_an_adapter(&[NEEDS_ADAPTER, "--", "true"], 4, "needs an adapter: step 3 (line 17) waits for the client to report apply a")]
#[case::ends_by_itself(&[PLAYABLE, "--", "false"], 1, "the command ended by itself with exit code 1 before the scenario was over")]
#[case::as_junit(&[PLAYABLE, "--format", "junit", "--", "false"], 1, "<failure type=\"crash\"")]
#[case::as_json(&[PLAYABLE, "--format", "json", "--", "false"], 1, "\"outcome\":\"crash\"")]
fn what_came_of_it_is_said_with_a_code(#[case] arguments: &[&str], #[case] code: i32, #[case] said: &str) {
    let ended = run(arguments);
    let printed = String::from_utf8_lossy(&ended.stdout);
    assert_eq!(ended.status.code(), Some(code), "{printed}");
    assert!(printed.contains(said), "no {said:?} in\n{printed}");
}

#[rstest]
#[case::no_such_command(&[PLAYABLE, "--", "/no/such/command"], 3, "cannot start /no/such/command")]
#[case::no_such_scenario(&["no-such.yaml", "--", "true"], 2, "no-such.yaml")]
fn what_cannot_be_done_is_said_with_a_code(
    #[case] arguments: &[&str],
    #[case] code: i32,
    #[case] said: &str,
) {
    let ended = run(arguments);
    let printed = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(code), "{printed}");
    assert!(printed.contains(said), "no {said:?} in\n{printed}");
}

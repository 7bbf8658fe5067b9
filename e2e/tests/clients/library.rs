//! `fake-apiserver run --library`: what a library does wrong is known, what the program on it does wrong is not.

use tests::programs::program;

/// kube-runtime watches from the expired version again.
const OF_THE_LIBRARY: &str = "gone/http-410-at-watch-start-forces-a-relist";

/// The program asks again and again.
const OF_THE_PROGRAM: &str = "auth/a-forbidden-list-is-surfaced-and-retried";

#[test]
fn failures_of_the_library_differ_from_those_of_the_program() {
    let mut command = program("fake-apiserver");
    command.env("NO_COLOR", "1").args(["run", "--jobs", "2"]);
    command.args([
        "--library",
        "kube-runtime@5",
        OF_THE_LIBRARY,
        OF_THE_PROGRAM,
        "--",
    ]);
    command.args([env!("CARGO_BIN_EXE_kube-runtime"), "without-backoff"]);
    let ended = command.output().expect("it was just built");
    let printed = String::from_utf8_lossy(&ended.stdout);
    assert_eq!(ended.status.code(), Some(1), "{printed}");
    let has = |mark: &str, id: &str| {
        printed
            .lines()
            .any(|line| line.starts_with(&format!("{mark} {id} ")))
    };
    assert!(has("✓", OF_THE_LIBRARY) && has("✘", OF_THE_PROGRAM), "{printed}");
    for message in [
        "known failure of kube-runtime 5.0.0: ",
        " RETRY-01 ",
        "0 passed, 1 failed, 1 known, ",
    ] {
        assert!(printed.contains(message), "no {message:?} in\n{printed}");
    }
}

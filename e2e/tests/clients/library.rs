//! `fake-apiserver run --library`: what a library does wrong is known, what the program on it does wrong is not.

use rstest::rstest;
use tests::programs::program;

/// kube-runtime watches from the expired version again.
const OF_THE_LIBRARY: &str = "gone/http-410-at-watch-start-forces-a-relist";

/// The program ends, which breaks a SHOULD.
const OF_THE_PROGRAM: &str = "auth/a-forbidden-list-is-surfaced-and-retried";

#[rstest]
#[case::a_warning(&[], 0, "!", "0 passed, 0 failed, 1 warned, 1 known, ")]
#[case::strict(&["--strict"], 1, "✘", "0 passed, 1 failed, 1 known, ")]
fn failures_of_the_library_differ_from_those_of_the_program(
    #[case] options: &[&str],
    #[case] code: i32,
    #[case] mark: &str,
    #[case] counts: &str,
) {
    let mut command = program("fake-apiserver");
    command.env("NO_COLOR", "1").args(["run", "--jobs", "2"]);
    command.args(["--library", "kube-runtime@5"]).args(options);
    command.args([OF_THE_LIBRARY, OF_THE_PROGRAM, "--"]);
    command.args([env!("CARGO_BIN_EXE_kube-runtime"), "gives-up"]);
    let ended = command.output().expect("it was just built");
    let printed = String::from_utf8_lossy(&ended.stdout);
    assert_eq!(ended.status.code(), Some(code), "{printed}");
    let has = |mark: &str, id: &str| {
        printed
            .lines()
            .any(|line| line.starts_with(&format!("{mark} {id} ")))
    };
    assert!(has("✓", OF_THE_LIBRARY) && has(mark, OF_THE_PROGRAM), "{printed}");
    for message in ["known failure of kube-runtime 5.0.0: ", counts] {
        assert!(printed.contains(message), "no {message:?} in\n{printed}");
    }
}

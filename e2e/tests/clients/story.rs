//! Plays the kubectl commands of the chapters against the fake and compares their output with that of a real server.

use std::path::PathBuf;

use e2e::kubectl::Kubectl;
use e2e::server::Server;
use e2e::story::{self, Chapter};
use e2e::suites;
use e2e::toolchain::{or_skip, repository};
use rstest::rstest;

/// Tokens of the oracle, used in chapters about users without rights.
const TOKENS: [&str; 5] = [
    "--tls",
    "--token",
    "oracle-admin-token",
    "--limited-token",
    "oracle-limited-token",
];

#[rstest]
fn kubectl_prints_the_same_as_with_a_real_server(
    #[files("../fidelity/oracle/kubectl/*/story.sh")] story: PathBuf,
) {
    let server = Server::start("serve", &TOKENS);
    let Some(kubectl) = or_skip(Kubectl::new(&server)) else {
        return;
    };
    let chapter =
        Chapter::read(story.parent().expect("a file lies in a folder")).unwrap_or_else(|why| panic!("{why}"));
    let played = chapter.play(&kubectl);
    let verdict = played.and_then(|played| chapter.judge(&played));
    drop(server);
    verdict.unwrap_or_else(|why| panic!("{why}"));
}

#[test]
fn the_page_shows_the_chapters() {
    let page =
        std::fs::read_to_string(repository().join("docs/fidelity.md")).expect("docs/fidelity.md is there");
    let expected = story::page().unwrap_or_else(|why| panic!("{why}"));
    let suites = suites::page::page().unwrap_or_else(|why| panic!("{why}"));
    let expected = suites + &expected;
    assert!(
        page.ends_with(&expected),
        "docs/fidelity.md differs from fidelity/oracle/kubectl and e2e/suites; run `cargo xtask fidelity --write-docs`"
    );
}

//! End-to-end test of the conformance suite: adapters in other languages, built as `cargo xtask conformance` builds them, and
//! a fixed small set of scenarios. Exactly the known failures fail.

use std::process::Command;

use e2e::adapters::Registry;
use e2e::toolchain;
use rstest::rstest;

/// Quick scenarios that include known failures of each client.
const SCENARIOS: [&str; 4] = [
    "bookmark/older-bookmark-does-not-rewind",
    "event/a-name-reborn-in-the-stream-is-two-events",
    "stream/bytes-that-are-no-text-lose-nothing",
    "watch/clean-eof-resumes-from-the-last-event",
];

#[rstest]
#[case::client_go("client-go-reflector")]
#[case::javascript("kubernetes-javascript-1")]
fn a_client_does_what_is_known_of_it(#[case] name: &str) {
    let root = toolchain::repository();
    let registry = Registry::read(root).unwrap();
    let client = registry.chosen(&[name.to_owned()]).unwrap()[0];
    let fake_apiserver = toolchain::fake_apiserver();
    let target = fake_apiserver.ancestors().nth(2).unwrap();
    let Some(command) = toolchain::or_skip(registry.command(root, target, client, &[])) else {
        return;
    };
    let output = Command::new(fake_apiserver)
        .args(["conformance", "--jobs", "8"])
        .args(SCENARIOS)
        .arg("--known-failures")
        .arg(root.join(format!("adapters/known-failures/{name}.yaml")))
        .arg("--")
        .args(command)
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{printed}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(printed.contains("known failure"), "{printed}");
}

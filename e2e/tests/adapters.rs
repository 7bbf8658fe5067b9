//! End-to-end test of the conformance suite: adapters in all languages, built as `cargo xtask conformance` builds them, and a
//! fixed small set of scenarios. Exactly the known failures fail.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use e2e::adapters::{Client, Registry};
use e2e::toolchain;
use rstest::rstest;
use tests::programs;

/// Quick scenarios that include a known failure of almost every client, those without recovery too.
const SCENARIOS: [&str; 7] = [
    "bookmark/older-bookmark-does-not-rewind",
    "contract-watch/an-expired-version-is-shown-to-the-caller",
    "contract-watch/changes-come-in-order-up-to-the-end",
    "contract-watch/what-follows-an-error-event-is-not-delivered",
    "event/a-name-reborn-in-the-stream-is-two-events",
    "stream/bytes-that-are-no-text-lose-nothing",
    "watch/clean-eof-resumes-from-the-last-event",
];

/// Clients of an ecosystem that run at a time: their tests mostly wait.
const AT_A_TIME: usize = 3;

#[rstest]
#[case::rust("rust")]
#[case::go("go")]
#[case::python("python")]
#[case::javascript("javascript")]
#[case::java("java")]
fn clients_do_what_is_known_of_them(#[case] ecosystem: &str) {
    let registry = Registry::read(toolchain::repository()).unwrap();
    let clients = registry.clients.iter();
    let clients: Vec<&Client> = clients.filter(|client| client.ecosystem == ecosystem).collect();
    assert!(clients.len() > 1, "{ecosystem}");
    let programs = match ecosystem {
        "rust" => ["adapter-watcher", "adapter-kube-runtime", "adapter-kube-client"]
            .map(|name| (name, programs::path(name)))
            .to_vec(),
        _ => Vec::new(),
    };
    for clients in clients.chunks(AT_A_TIME) {
        let mut running = Vec::new();
        for client in clients {
            let Some(started) = started(&registry, client, &programs) else {
                return;
            };
            running.push((client.name.as_str(), started));
        }
        for (name, child) in running {
            check(name, child);
        }
    }
}

/// The part of the matrix that every change is tested with.
#[test]
fn at_least_fourteen_clients_in_five_languages_are_tested() {
    let registry = Registry::read(toolchain::repository()).unwrap();
    let tested = ["rust", "go", "python", "javascript", "java"];
    let count = |ecosystem: &str| {
        let clients = registry.clients.iter();
        clients.filter(|client| client.ecosystem == ecosystem).count()
    };
    assert!(tested.iter().all(|ecosystem| count(ecosystem) > 0));
    let all: usize = tested.iter().map(|ecosystem| count(ecosystem)).sum();
    assert!(all >= 14, "{all} clients");
}

/// Starts the scenarios with a client; `None`: its adapter cannot be built here.
fn started(registry: &Registry, client: &Client, programs: &[(&str, PathBuf)]) -> Option<Child> {
    let fake_apiserver = toolchain::fake_apiserver();
    let target = fake_apiserver
        .ancestors()
        .nth(2)
        .expect("the folder of the profile lies in the target's");
    let programs: Vec<(&str, &Path)> = programs
        .iter()
        .map(|(name, path)| (*name, path.as_path()))
        .collect();
    let root = toolchain::repository();
    let command = toolchain::or_skip(registry.command(root, target, client, &programs))?;
    let mut run = Command::new(fake_apiserver);
    run.args(["conformance", "--jobs", "8"])
        .args(SCENARIOS)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if let Some(known) = known_failures(&client.name) {
        run.arg("--known-failures").arg(known);
    }
    Some(
        run.arg("--")
            .args(command)
            .spawn()
            .expect("fake-apiserver was built and starts"),
    )
}

/// Checks that exactly what is known to fail has failed.
fn check(name: &str, child: Child) {
    let output = child.wait_with_output().expect("its output is text in pipes");
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{name}: {printed}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let read = |path| std::fs::read_to_string(path).expect("a file of the repository can be read");
    let known = known_failures(name).map(read);
    let fails = SCENARIOS.iter().any(|id| {
        let entry = format!("- scenario: {id}\n");
        known.as_ref().is_some_and(|known| known.contains(&entry))
    });
    // What nobody is known to send is not scored, known or not.
    let failed = printed.contains("known failure") || printed.contains("not scored, ");
    assert_eq!(failed, fails, "{name}: {printed}");
}

/// The file of what a client is known to fail, if it fails anything.
fn known_failures(name: &str) -> Option<PathBuf> {
    let file = toolchain::repository().join(format!("adapters/known-failures/{name}.yaml"));
    file.is_file().then_some(file)
}

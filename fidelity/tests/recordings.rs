//! Plays all recordings of all versions against the fake: differences must be accepted or listed as open.

use std::collections::BTreeSet;
use std::path::Path;

use fake_apiserver::scenario::Version;
use fidelity::page;
use fidelity::verdict::{Files, Outcome, Verdict, replay};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the crate is a folder of the repository")
}

fn outcomes() -> Vec<Outcome> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("the system lets a runtime wait for sockets");
    runtime
        .block_on(replay(&Files::below(root()), &Version::ALL, &[]))
        .expect("probes, recordings and accepted differences can be read")
}

#[test]
fn differences_are_accepted_or_listed_as_open() {
    let page = std::fs::read_to_string(root().join("docs/fidelity.md")).expect("docs/fidelity.md is there");
    let listed = page::listed(&page);
    let outcomes = outcomes();
    let open: BTreeSet<(String, String)> = outcomes
        .iter()
        .filter(|outcome| outcome.verdict == Verdict::Open)
        .map(|outcome| (outcome.probe.clone(), outcome.version.to_owned()))
        .collect();
    let news: Vec<_> = open.difference(&listed).collect();
    assert!(
        news.is_empty(),
        "the fake no longer answers as a real server did: {news:?}\nsee `cargo xtask fidelity --only <probe>`"
    );
    let fixed: Vec<_> = listed.difference(&open).collect();
    assert!(
        fixed.is_empty(),
        "docs/fidelity.md lists differences that are fixed: {fixed:?}\nrun `cargo xtask fidelity --write-docs`"
    );
}

#[test]
fn reads_of_collections_are_identical_on_the_newest_version() {
    let strange: Vec<String> = outcomes()
        .into_iter()
        .filter(|outcome| outcome.version == Version::NEWEST.name() && outcome.verdict == Verdict::Open)
        .map(|outcome| outcome.probe)
        .filter(|probe| {
            ["list-", "watch-", "random-"]
                .iter()
                .any(|about| probe.starts_with(about))
        })
        .collect();
    assert!(strange.is_empty(), "{strange:?}");
}

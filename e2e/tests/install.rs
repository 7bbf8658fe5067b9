//! Every install line of the documentation, tried from a local build in a new folder without Rust, up to a first verdict.
//!
//! `cargo test --workspace --test install`. The lines are in e2e/install/lines.yaml.

use e2e::install::{self, lines::Lines};
use e2e::toolchain::{or_skip, repository};

#[test]
fn archive() {
    or_skip(install::archive());
}

#[test]
fn python() {
    or_skip(install::python());
}

#[test]
fn javascript() {
    or_skip(install::javascript());
}

#[test]
fn go() {
    or_skip(install::go());
}

#[test]
fn java() {
    or_skip(install::java());
}

#[test]
fn envtest() {
    or_skip(install::envtest());
}

#[test]
fn action() {
    or_skip(install::action());
}

#[test]
fn the_page_about_installation_has_every_line() {
    let page = std::fs::read_to_string(repository().join("docs/install.md")).unwrap();
    let lines = Lines::read();
    let missing: Vec<&str> = lines.missing(&page).collect();
    assert!(missing.is_empty(), "docs/install.md lacks {missing:#?}");
}

#[test]
fn every_page_marks_what_is_not_published() {
    let Some(pages) = or_skip(install::pages()) else {
        return;
    };
    let lines = Lines::read();
    let faults = pages.iter().flat_map(|(path, text)| {
        lines
            .faults(text)
            .into_iter()
            .map(move |fault| format!("{}: {fault}", path.display()))
    });
    let faults: Vec<String> = faults.collect();
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn the_dependency_of_maven_is_that_of_the_test() {
    const COMMENT: &str = "<!-- unpublished -->";
    let page = std::fs::read_to_string(repository().join("docs/install.md")).unwrap();
    let block = page
        .split("```xml\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next())
        .expect("a block of XML");
    let pom = std::fs::read_to_string(repository().join("e2e/install/java/pom.xml")).unwrap();
    assert!(block.contains(COMMENT), "{block}");
    let trimmed = |text: &str| text.replace(COMMENT, "").split_whitespace().collect::<String>();
    assert!(
        trimmed(&pom).contains(&trimmed(block)),
        "e2e/install/java/pom.xml lacks {block}"
    );
}

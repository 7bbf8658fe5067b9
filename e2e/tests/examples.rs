//! The packages for tests in Python, Go, Java and JavaScript, and their examples: a controller that gets a 410.

use std::process::Command;

use e2e::control_clients::{DOCUMENT, generate};
use e2e::ecosystems;
use e2e::toolchain::{fake_apiserver, or_skip, repository};

#[test]
fn python() {
    or_skip(ecosystems::python());
}

#[test]
fn wheel() {
    or_skip(ecosystems::wheel());
}

#[test]
fn go() {
    or_skip(ecosystems::go());
}

#[test]
fn java() {
    or_skip(ecosystems::java());
}

#[test]
fn javascript() {
    or_skip(ecosystems::javascript());
}

#[test]
fn the_document_of_the_control_api_is_current() {
    let served = Command::new(fake_apiserver())
        .args(["ctl", "openapi"])
        .output()
        .unwrap();
    let kept = std::fs::read_to_string(repository().join(DOCUMENT)).unwrap();
    assert!(
        String::from_utf8_lossy(&served.stdout) == kept,
        "{DOCUMENT} is stale: run `fake-apiserver ctl openapi > {DOCUMENT}` and commit it"
    );
}

#[test]
fn the_clients_of_the_control_api_are_current() {
    let document = std::fs::read_to_string(repository().join(DOCUMENT)).unwrap();
    for (file, text) in generate(&document).unwrap() {
        let kept = std::fs::read_to_string(repository().join(file)).unwrap_or_default();
        assert!(kept == text, "{file} is stale: run `cargo xtask control-clients`");
    }
}

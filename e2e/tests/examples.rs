//! The packages for tests in Python, Go, Java and JavaScript, and their examples: a controller that gets a 410. Their clients
//! of the control API are written by hand, and compared with its OpenAPI document here.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeSet;
use std::process::Command;

use e2e::ecosystems;
use e2e::toolchain::{fake_apiserver, or_skip, repository};
use regex::Regex;
use rstest::rstest;
use serde_json::Value;

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

const DOCUMENT: &str = "schema/control.v1.openapi.json";

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

/// Returns `METHOD /path` of every operation except that of the document itself, which clients do not need.
fn documented() -> BTreeSet<String> {
    let text = std::fs::read_to_string(repository().join(DOCUMENT)).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    let mut operations = BTreeSet::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for method in methods
            .as_object()
            .unwrap()
            .keys()
            .filter(|key| *key != "parameters")
        {
            operations.insert(format!("{} {path}", method.to_uppercase()));
        }
    }
    assert!(operations.remove("GET /v1/openapi.json"));
    operations
}

/// Returns the requests of a client: methods next to paths, in the syntax of any of the languages.
fn called(source: &str) -> BTreeSet<String> {
    let call = Regex::new(r#"["'](GET|POST|PUT|PATCH|DELETE)["'],\s*(?:f|fmt\.Sprintf\()?["'`](/v1[^"'`]*)"#)
        .unwrap();
    let number = Regex::new(r"/(\$?\{\w+\}|%d|)$").unwrap();
    call.captures_iter(source)
        .map(|found| {
            let path = found[2].split('?').next().unwrap_or_default();
            format!("{} {}", &found[1], number.replace(path, "/{id}"))
        })
        .collect()
}

#[rstest]
#[case::python("python/src/fake_apiserver/control.py")]
#[case::go("go/fakeapiserver/control.go")]
#[case::java("java/junit5/src/main/java/io/github/fakeapiserver/Control.java")]
#[case::javascript("javascript/src/control.mjs")]
fn a_client_has_every_operation_and_no_other(#[case] source: &str) {
    let source = std::fs::read_to_string(repository().join(source)).unwrap();
    assert_eq!(called(&source), documented());
}

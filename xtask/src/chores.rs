//! The chores that `cargo xtask` hands over to the package `chores`, which is built on first use.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt as _;

use crate::cargo::cargo;
use crate::clients::root;

/// Name and purpose of each, as in its help.
pub const CHORES: [(&str, &str); 18] = [
    (
        "defects",
        "Compare kube-runtime and our watcher, defect by defect",
    ),
    (
        "conformance",
        "Run the scenarios with clients in other languages and write CONFORMANCE.md",
    ),
    (
        "site",
        "Write the results, requirements and failures of all clients as static pages",
    ),
    (
        "edition",
        "Freeze the requirements that the scenarios test as a new edition",
    ),
    (
        "schema",
        "Write schema/scenario.v1.json, the JSON Schema of the scenario language",
    ),
    (
        "control-clients",
        "Write the clients of the control API from its OpenAPI document",
    ),
    (
        "book",
        "Check the links of the documentation and build it as a book (needs mdBook)",
    ),
    ("dist", "Build a release and every package of it into target/dist"),
    (
        "tidy",
        "Check dependencies between crates, file headers, local paths and wording",
    ),
    (
        "clocks",
        "Run wall-clock tests under shifted clocks and time zones (needs libfaketime)",
    ),
    (
        "fidelity",
        "Compare the fake with recorded responses of real kube-apiservers",
    ),
    (
        "oracle",
        "Build, start and stop a real kube-apiserver; renew data taken from it",
    ),
    ("fuzz", "Fuzz the parsers with mutated requests of real clients"),
    (
        "suites",
        "Run test suites of other projects against the fake or a real server",
    ),
    (
        "crowd",
        "Run programs of other libraries and check what they are accused of",
    ),
    (
        "sweep",
        "Play random scenarios in an optimized build and shrink each failure to a file",
    ),
    ("soak", "Check that memory stays flat under a mixed load"),
    ("bench", "Run benchmarks"),
];

/// Builds the package `chores` and replaces this process by it. Returns only on failure, with the error.
pub fn hand_over(arguments: &[OsString]) -> io::Error {
    let mut run = cargo();
    run.args(["run", "--package", "chores", "--manifest-path"])
        .arg(root().join("Cargo.toml"))
        .arg("--")
        .args(arguments);
    run.exec()
}

//! Scenario files become test cases when the tests are compiled: a new file must lead to new tests.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=../scenarios");
}

//! Scenario files become test cases at compile time: a new file must trigger a new build.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=../scenarios");
}

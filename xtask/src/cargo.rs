//! Cargo as a child of a program that Cargo itself may have started.

use std::process::Command;

/// Returns a Cargo command without the variables that make it build differently than in a shell.
///
/// A program run by Cargo inherits the variables of its package, and the build scripts of some dependencies read them
/// (ring's does): a Cargo that inherits them recompiles such a dependency, and everything that depends on it.
pub fn cargo() -> Command {
    let mut cargo = Command::new("cargo");
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if OF_A_PACKAGE.iter().any(|prefix| text.starts_with(prefix)) {
            cargo.env_remove(&name);
        }
    }
    // Under a shifted clock a library is preloaded, with which compilers hang.
    cargo.env_remove("LD_PRELOAD");
    cargo
}

/// Prefixes of the variables that Cargo sets for a package.
const OF_A_PACKAGE: [&str; 7] = [
    "CARGO_MANIFEST_",
    "CARGO_PKG_",
    "CARGO_CRATE_",
    "CARGO_BIN_",
    "CARGO_PRIMARY_",
    "CARGO_TARGET_TMPDIR",
    "OUT_DIR",
];

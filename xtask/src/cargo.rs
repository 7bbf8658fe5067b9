//! Cargo as a child of a program that Cargo itself may have started.

use std::process::Command;

/// Returns a Cargo command without the variables that make it build differently than in a shell.
pub fn cargo() -> Command {
    let mut cargo = Command::new("cargo");
    as_in_a_shell(&mut cargo);
    // Under a shifted clock a library is preloaded, with which compilers hang.
    cargo.env_remove("LD_PRELOAD");
    cargo
}

/// Removes the variables that Cargo sets for a package from a command that may start Cargo.
///
/// A program run by Cargo inherits them, and the build scripts of some dependencies read them (ring's does): a Cargo that
/// inherits them recompiles such a dependency, and everything that depends on it.
pub fn as_in_a_shell(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if OF_A_PACKAGE.iter().any(|prefix| text.starts_with(prefix)) {
            command.env_remove(&name);
        }
    }
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

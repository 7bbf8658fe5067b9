//! Embeds the scenarios, so that `fake-apiserver conformance` needs no checkout: a table of ids and texts.
//! `scenarios` is a link to the repository's: a published package has no other folder than its own.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

#[path = "src/reference.rs"]
mod reference;

fn main() -> io::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
    println!("cargo::rerun-if-changed={}", root.display());
    let mut found = Vec::new();
    gather(&root, &mut found)?;
    found.sort();
    let mut table = String::from("&[\n");
    for path in found {
        println!("cargo::rerun-if-changed={}", path.display());
        let id = path
            .strip_prefix(&root)
            .map_err(io::Error::other)?
            .with_extension("");
        // Writing to a String cannot fail.
        let _ = writeln!(
            table,
            "    ({:?}, include_str!({:?}), {}),",
            id.display().to_string(),
            path.display().to_string(),
            reference_of(&path)
        );
    }
    table.push_str("]\n");
    let out = env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("Cargo sets OUT_DIR"))?;
    fs::write(Path::new(&out).join("scenarios.rs"), table)
}

/// Time that our watcher needs for a scenario, by its transcript.
fn reference_of(scenario: &Path) -> u64 {
    let transcript = scenario.with_extension("watcher.snap");
    // Cargo takes a missing file for a changed one, and would run this again in every build. A new one changes its folder.
    let Ok(text) = fs::read_to_string(&transcript) else {
        return reference::reference_ms("");
    };
    println!("cargo::rerun-if-changed={}", transcript.display());
    reference::reference_ms(&text)
}

fn gather(folder: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    println!("cargo::rerun-if-changed={}", folder.display());
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            gather(&path, found)?;
        } else if path.extension().is_some_and(|ending| ending == "yaml") {
            found.push(path);
        }
    }
    Ok(())
}

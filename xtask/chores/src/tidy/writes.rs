//! Files that a published crate writes other than by `private-files`, which alone never overwrites one, follows no link, and
//! leaves nothing half written.
//!
//! Text is searched, not parsed: a call under another name is not found.

/// Crate that may write files.
const WRITER: &str = "private-files";

/// What opens a file for writing.
const CALLS: [&str; 3] = ["fs::write(", "File::create", "OpenOptions::"];

/// Returns the lines of a source file that open a file for writing. `crates`: names and folders of the published crates.
pub(super) fn found(crates: &[(&str, &str)], file: &str, text: &str) -> Vec<String> {
    let inside = |folder: &str| file.starts_with(&format!("{folder}/src/"));
    let product = crates
        .iter()
        .any(|(name, folder)| *name != WRITER && inside(folder));
    if !product || file.contains("/tests") {
        return Vec::new();
    }
    let lines = text.lines().take_while(|line| !line.contains("cfg(test)"));
    { lines.enumerate() }
        .filter(|(_, line)| CALLS.iter().any(|call| line.contains(call)))
        .map(|(number, _)| format!("{file}:{}: only {WRITER} writes files: use it", number + 1))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_is_found_outside_of_its_crate_and_of_tests() {
        let crates = [("private-files", "crates/private-files"), ("a", "a")];
        let text = "use x;\nstd::fs::write(path, text)\n#[cfg(test)]\nstd::fs::write(path, text)\n";
        let wrong = found(&crates, "a/src/lib.rs", text);
        assert_eq!(wrong, ["a/src/lib.rs:2: only private-files writes files: use it"]);
        for file in [
            "crates/private-files/src/lib.rs",
            "a/src/tests.rs",
            "a/tests/b.rs",
            "b/src/lib.rs",
        ] {
            assert_eq!(found(&crates, file, text), Vec::<String>::new(), "{file}");
        }
    }
}

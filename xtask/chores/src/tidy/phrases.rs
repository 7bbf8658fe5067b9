//! Phrases that no reader would search for, in the files whose wording is checked. It must not read files.

/// Paths whose wording is checked, as prefixes. Extend the list when a part of the repository is clean.
const CHECKED: &[&str] = &[
    "README.md",
    "ARCHITECTURE.md",
    "bench/",
    "command/src/",
    "crates/apimachinery/",
    "crates/builtin-kinds/src/catalog",
    "crates/builtin-kinds/src/columns",
    "crates/builtin-kinds/src/convert",
    "crates/builtin-kinds/src/crd",
    "crates/builtin-kinds/src/defaults",
    "crates/builtin-kinds/src/expression",
    "crates/builtin-kinds/src/lib.rs",
    "crates/builtin-kinds/src/ownership",
    "crates/builtin-kinds/src/patch",
    "crates/builtin-kinds/src/rbac",
    "crates/builtin-kinds/src/schema",
    "crates/builtin-kinds/src/types",
    "crates/builtin-kinds/src/validation",
    "crates/judge/",
    "crates/scenario/",
    "crates/testing/",
    "crates/trace/",
    "crates/watchcache/",
    "docs/adapter-protocol.md",
    "docs/conformance.md",
    "docs/control-api.md",
    "docs/envtest.md",
    "docs/judge.md",
    "docs/recipes.md",
    "docs/run.md",
    "docs/scenario-language.md",
    "docs/try-it.md",
    "e2e/src/",
    "e2e/tests/",
    "fake-apiserver/src/apiserver",
    "fake-apiserver/src/api",
    "fake-apiserver/src/model",
    "fake-apiserver/src/net",
    "fake-apiserver/src/script",
    "fake-apiserver/src/server",
    "fake-apiserver/src/model.rs",
    "fake-apiserver/src/model/list.rs",
    "fake-apiserver/src/model/page.rs",
    "fake-apiserver/src/model/watch.rs",
    "fidelity/",
    "sweep/",
    "tests/src/attacks",
    "tests/src/crowd",
    "tests/src/lib.rs",
    "tests/src/programs.rs",
    "tests/src/reference",
    "tests/src/story.rs",
    "tests/tests/",
    "watcher/",
    "xtask/",
];

/// Lists the phrases, and so cannot be checked.
const THIS_FILE: &str = "xtask/chores/src/tidy/phrases.rs";

/// Phrases in lower case, and what to write instead.
const PHRASES: [(&str, &str); 19] = [
    ("anew", "again"),
    ("goes without saying", "is defaulted, or is implied"),
    ("goes on from its place", "resumes from the last resourceVersion"),
    ("has it not", "does not have it"),
    ("in peace", "without faults"),
    ("is told", "receives, or the name of the setting"),
    ("are told", "receive, or the name of the setting"),
    ("made up", "random, or generated"),
    ("makes up", "generates"),
    ("nobody is asked", "no … is needed"),
    ("of its own", "separate, or its own"),
    ("tells the truth", "injects no faults"),
    ("the watcher's mind", "the state machine"),
    ("what chance decides", "seed, or randomness"),
    ("what there is", "the name of the thing"),
    ("tell the truth", "inject no faults"),
    ("what came of", "the result of"),
    ("whoever", "a client that …, if …"),
    ("without its hands", "without its I/O driver"),
];

/// Returns the phrases in `text`, each with its line and what to write instead; none where the wording of `file` is not
/// checked. A phrase may run over the end of a line, also in a comment. Fenced blocks of Markdown quote programs and files,
/// which are checked where they are, and are skipped.
pub(super) fn found(file: &str, text: &str) -> Vec<String> {
    if file == THIS_FILE || !CHECKED.iter().any(|prefix| file.starts_with(prefix)) {
        return Vec::new();
    }
    let is_markdown = file.ends_with(".md");
    let mut fenced = false;
    let words: Vec<(usize, String)> = text
        .lines()
        .enumerate()
        .filter(|(_, line)| {
            fenced ^= is_markdown && line.starts_with("```");
            !fenced
        })
        .flat_map(|(index, line)| {
            line.split(|c: char| !c.is_alphanumeric() && c != '\'')
                .filter(|word| !word.is_empty())
                .map(move |word| (index + 1, word.to_lowercase()))
        })
        .collect();
    let mut found = Vec::new();
    for (phrase, instead) in PHRASES {
        let wanted: Vec<&str> = phrase.split(' ').collect();
        for window in words.windows(wanted.len()) {
            if window
                .iter()
                .map(|(_, word)| word.as_str())
                .eq(wanted.iter().copied())
            {
                let line = window[0].0;
                found.push(format!("{file}:{line}: \"{phrase}\": write {instead}"));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phrases_are_found_where_wording_is_checked() {
        for (file, text, count) in [
            ("README.md", "# A\n\nWhoever reads this.\n", 1),
            ("command/src/a.rs", "//! a folder of its\n//! own\n", 1),
            ("xtask/src/a.rs", "// set anew, and is told\n", 2),
            ("README.md", "```text\nleft in peace\n```\nin peace\n", 1),
            ("README.md", "renewed, anewly\n", 0),
            ("adapters/src/a.rs", "// whoever\n", 0),
            ("README.md", "resumes from the last resourceVersion\n", 0),
        ] {
            let found = found(file, text);
            assert_eq!(found.len(), count, "{file} {text:?}: {found:?}");
        }
    }

    #[test]
    fn a_finding_has_its_line() {
        assert_eq!(
            found("README.md", "a\nb\nis\ntold\n"),
            ["README.md:3: \"is told\": write receives, or the name of the setting"]
        );
    }
}

//! Phrases that no reader would search for, in tracked text files. It must not read files.

/// Endings of the files that are checked.
const CHECKED: [&str; 14] = [
    ".rs",
    ".md",
    ".yaml",
    ".yml",
    ".toml",
    ".py",
    ".go",
    ".java",
    ".js",
    ".mjs",
    ".ts",
    ".sh",
    "Containerfile",
    ".ci/run",
];

/// Paths that are not checked, as prefixes, with the reason.
const EXEMPT: [(&str, &str); 3] = [
    ("xtask/chores/src/tidy/phrases.rs", "lists the phrases"),
    (
        "crates/report/page/dist/",
        "bundle with the text of other projects",
    ),
    ("requirements/editions/", "frozen"),
];

/// Phrases in lower case, and what to write instead.
const PHRASES: [(&str, &str); 65] = [
    ("anew", "again"),
    ("are told", "receive, or the name of the setting"),
    ("as it likes", "any …"),
    ("as it wants", "any …"),
    ("as they like", "any …"),
    ("been told", "received"),
    ("courtesy", "optional"),
    ("farewell", "close_notify, or GOAWAY"),
    ("from its place", "from the last resourceVersion"),
    ("goes without saying", "is defaulted, or is implied"),
    ("handed on", "passed on, emitted, or returned"),
    ("hands on", "passes on, emits, or returns"),
    ("has it not", "does not have it"),
    ("have it not", "do not have it"),
    ("hears of", "receives"),
    ("how clients do", "conformance of clients"),
    ("in peace", "without faults"),
    ("is said", "is sent, reported, or listed"),
    ("is told", "receives, or the name of the setting"),
    ("knows nothing", "must not know, or ignores"),
    ("made up", "random, or generated"),
    ("makes up", "generates"),
    ("mend", "fix"),
    ("mended", "fixed"),
    ("nobody hears", "no client receives"),
    ("nobody is asked", "no … is needed"),
    ("of its own", "separate, or its own"),
    ("of their own", "separate, or their own"),
    ("old news", "known"),
    ("on cue", "scriptable, or on request"),
    ("rules that stand", "active rules"),
    ("says how", "describes"),
    ("says nothing", "is empty, proves nothing, or does not depend on"),
    ("says otherwise", "sets another value"),
    ("says so", "reports, requires, or lists it"),
    ("says what", "describes, or lists"),
    ("says where", "lists, or reports"),
    ("says whether", "is true if"),
    ("says which", "lists, selects, or returns"),
    ("says who", "names"),
    ("says why", "has the reason"),
    ("serves the truth", "injects no faults"),
    ("speaks of", "is about, or uses"),
    ("stands beside", "is next to"),
    ("take the place", "replace"),
    ("takes the place", "replaces"),
    ("tell the set", "relist, or emit the snapshot"),
    ("tell the truth", "inject no faults"),
    ("tells of", "reports"),
    ("tells the truth", "injects no faults"),
    ("the house stands", "design rules"),
    ("the watcher's mind", "the state machine"),
    ("told of", "reported"),
    ("took the place", "replaced"),
    ("what chance", "seed, or randomness"),
    ("what came of", "the result of"),
    ("what comes of", "the result of"),
    ("what it came to", "the verdict, or the outcome"),
    ("what there is", "the name of the thing"),
    ("whatever is written", "state, or writes"),
    ("where chance", "seed, or randomness"),
    ("whoever", "a client that …, if …"),
    ("whom it concerns", "the object key"),
    ("without a word", "without an error, or without an event"),
    ("without its hands", "without its I/O driver"),
];

/// Returns the phrases in `text`, each with its line and what to write instead; none if the wording of `file` is not
/// checked. A phrase may continue on the next line, also in a comment. Words joined by hyphens are ids of scenarios, and
/// count as one. Fenced blocks of Markdown are skipped: they quote programs and files, which are checked themselves.
pub(super) fn found(file: &str, text: &str) -> Vec<String> {
    let is_exempt = EXEMPT.iter().any(|(prefix, _)| file.starts_with(prefix));
    if is_exempt || !CHECKED.iter().any(|ending| file.ends_with(ending)) {
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
            line.split(|c: char| !c.is_alphanumeric() && !matches!(c, '\'' | '-'))
                .map(|word| word.trim_matches('-'))
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
    fn phrases_are_found_in_text_files() {
        for (file, text, count) in [
            ("README.md", "# A\n\nWhoever reads this.\n", 1),
            ("command/src/a.rs", "//! a folder of its\n//! own\n", 1),
            ("xtask/src/a.rs", "// set anew, and is told\n", 2),
            ("README.md", "```text\nleft in peace\n```\nin peace\n", 1),
            ("README.md", "renewed, anewly, mending\n", 0),
            ("README.md", "resumes from the last resourceVersion\n", 0),
            ("a.snap", "whoever\n", 0),
        ] {
            let found = found(file, text);
            assert_eq!(found.len(), count, "{file} {text:?}: {found:?}");
        }
    }

    #[test]
    fn a_phrase_is_found_in_any_folder() {
        for file in [
            ".ci/run",
            "CHANGELOG.md",
            "a/new/folder/file.rs",
            "deploy/action/action.yml",
            "adapters/go/main.go",
            "adapters/python/adapter.py",
            "e2e/clients/java/src/main/java/Informer.java",
            "e2e/clients/javascript/informer.mjs",
            "crates/report/page/src/page.js",
            "deploy/Containerfile",
            "scenarios/page/a.yaml",
            "tests/Cargo.toml",
        ] {
            assert_eq!(found(file, "# Whoever\n").len(), 1, "{file}");
        }
    }

    #[test]
    fn ids_of_scenarios_are_no_phrases() {
        assert_eq!(found("a.yaml", "- bookmark/none-are-told-so, is-told\n"), [""; 0]);
        assert_eq!(found("a.rs", "fn who_is_told() {}\n").len(), 1);
    }

    #[test]
    fn exemptions_are_of_tracked_paths() {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
        for (path, _) in EXEMPT {
            assert!(std::path::Path::new(root).join(path).exists(), "{path}");
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

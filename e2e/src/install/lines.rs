//! The list of lines that install something of this project, and the lines that pages print. It must not run any.

use serde::Deserialize;

/// Comment after a line that works only when a release is published.
const MARK: &str = "# unpublished";

/// The list, `e2e/install/lines.yaml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lines {
    lines: Vec<Line>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    line: String,
    #[serde(default)]
    unpublished: bool,
    tried: String,
}

impl Lines {
    /// Reads the list.
    ///
    /// # Panics
    /// If it is not valid.
    pub fn read() -> Self {
        serde_saphyr::from_str(include_str!("../../install/lines.yaml")).expect("the list is tested")
    }

    /// Returns the lines that a test runs.
    pub fn of<'a>(&'a self, test: &'a str) -> impl Iterator<Item = &'a str> {
        self.lines
            .iter()
            .filter(move |line| line.tried == test)
            .map(|line| line.line.as_str())
    }

    /// Returns what is wrong with the lines of a page: one that installs something and is not in the list, and one whose comment
    /// is missing or false.
    pub fn faults(&self, page: &str) -> Vec<String> {
        let printed = page
            .lines()
            .filter_map(|line| line.trim_start().strip_prefix("$ "));
        let installing = printed.filter(|line| installs(line));
        let fault = |line: &str| {
            // One may be the beginning of another.
            let known = self.lines.iter().filter(|known| line.contains(&known.line));
            let Some(known) = known.max_by_key(|known| known.line.len()) else {
                return Some(format!("not in e2e/install/lines.yaml: {line}"));
            };
            (line.contains(MARK) != known.unpublished).then(|| {
                let wrong = if known.unpublished { "lacks" } else { "has" };
                format!("{wrong} the comment `{MARK}`: {line}")
            })
        };
        installing.filter_map(fault).collect()
    }

    /// Returns the lines that a page does not have.
    pub fn missing<'a>(&'a self, page: &'a str) -> impl Iterator<Item = &'a str> {
        let lines = self.lines.iter().map(|line| line.line.as_str());
        lines.filter(|line| !page.contains(&format!("$ {line}")))
    }
}

/// Whether a line of a shell installs something of this project.
fn installs(line: &str) -> bool {
    const VERBS: [&str; 12] = [
        "pip install",
        "npm install",
        "go get",
        "go install",
        "cargo install",
        "cargo binstall",
        "cargo add",
        "podman run",
        "docker run",
        "setup-envtest use",
        "curl",
        "brew install",
    ];
    // A local build is named by its folder, and a local image has no registry in its name.
    let image = line.contains("podman run") && !line.contains("ghcr.io");
    let local = image || line.contains("target/dist");
    line.contains("fake-apiserver") && VERBS.iter().any(|verb| line.contains(verb)) && !local
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines() -> Lines {
        serde_saphyr::from_str(
            "lines:\n- {line: pip install fake-apiserver, unpublished: true, tried: a}\n- {line: cargo install --path fake-apiserver, tried: b}\n",
        )
        .unwrap()
    }

    #[test]
    fn a_line_is_listed_and_marked() {
        let good = "```console\n$ pip install fake-apiserver   # unpublished\n$ cargo install --path fake-apiserver\n$ ls\n```";
        assert_eq!(lines().faults(good), Vec::<String>::new());
        for (page, fault) in [
            ("$ pip install fake-apiserver", "lacks the comment"),
            (
                "$ cargo install --path fake-apiserver # unpublished",
                "has the comment",
            ),
            ("$ npm install fake-apiserver", "not in e2e/install/lines.yaml"),
        ] {
            let found = lines().faults(page);
            assert!(
                found.len() == 1 && found[0].starts_with(fault),
                "{page}: {found:?}"
            );
        }
    }

    #[test]
    fn a_page_without_a_line_is_found() {
        let lines = lines();
        let missing: Vec<&str> = lines
            .missing("$ pip install fake-apiserver  # unpublished")
            .collect();
        assert_eq!(missing, ["cargo install --path fake-apiserver"]);
    }
}

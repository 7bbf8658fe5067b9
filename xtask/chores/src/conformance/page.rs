//! CONFORMANCE.md, docs/known-bugs.md and the form for objections: written, or compared with what is there.

use std::path::Path;

use e2e::adapters::Registry;

use super::bugs;
use super::contest;
use super::gather::gather;
use super::readable;

const PAGE: &str = "CONFORMANCE.md";

/// What is written, and what is wrong with what it is made of.
pub(crate) struct Pages {
    page: String,
    bugs: String,
    form: String,
    pub(crate) wrong: Vec<String>,
}

/// Makes the pages.
///
/// # Errors
/// A file cannot be read, or has mistakes.
pub(crate) fn pages(root: &Path, registry: &Registry) -> Result<Pages, String> {
    let gathered = gather(root, registry)?;
    let mut wrong = gathered.wrong;
    let (bugs, unshown) = bugs::page(root, registry)?;
    wrong.extend(unshown);
    Ok(Pages {
        page: readable::text(&gathered.published, &gathered.unrecorded),
        bugs,
        form: contest::form(registry),
        wrong,
    })
}

impl Pages {
    /// Writes them.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(crate) fn write(&self, root: &Path) -> Result<(), String> {
        let write = |file: &str, text: &str| {
            std::fs::write(root.join(file), text).map_err(|error| format!("{file}: {error}"))
        };
        self.files()
            .into_iter()
            .try_for_each(|(file, text)| write(file, text))
    }

    /// The files that are not as they would be written.
    pub(crate) fn stale(&self, root: &Path) -> Vec<String> {
        let mut stale = Vec::new();
        for (file, text) in self.files() {
            let there = std::fs::read_to_string(root.join(file)).unwrap_or_default();
            if there != text {
                stale.push(format!("{file} is stale: run `cargo xtask conformance --page`"));
            }
        }
        stale
    }

    fn files(&self) -> [(&str, &str); 3] {
        [
            (PAGE, &self.page),
            (bugs::PAGE, &self.bugs),
            (contest::PAGE, &self.form),
        ]
    }
}

/// ` ([owner/repo#1](…))`; nothing where there is no public issue.
pub(super) fn issue_link(issue: &str) -> String {
    let path = issue
        .split_once('#')
        .map(|(repository, number)| format!("{repository}/issues/{number}"));
    match path {
        _ if issue == "none public" => String::new(),
        Some(path) if !issue.contains("://") => format!(" ([{issue}](https://github.com/{path}))"),
        Some(_) | None => format!(" ([issue]({issue}))"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of a page that a person reads.
    const LINES_MAX: usize = 400;

    #[test]
    fn the_pages_are_what_the_results_say() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"))
            .ancestors()
            .nth(2)
            .expect("a member lies in its workspace");
        let registry = Registry::read(root).unwrap();
        let pages = pages(root, &registry).unwrap();
        assert_eq!(pages.wrong, Vec::<String>::new());
        assert_eq!(pages.stale(root), Vec::<String>::new());
        let lines = pages.page.lines().count();
        assert!(lines <= LINES_MAX, "{PAGE} has {lines} lines");
    }

    #[test]
    fn issues_become_links() {
        assert_eq!(issue_link("none public"), "");
        assert_eq!(issue_link("a/b#1"), " ([a/b#1](https://github.com/a/b/issues/1))");
        assert_eq!(issue_link("https://x.org/1"), " ([issue](https://x.org/1))");
    }
}

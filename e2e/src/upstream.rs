//! upstream/: texts for the maintainers of client libraries, each about a defect that no public issue describes. It reads and
//! checks them, and must not know how their programs are built and run.

pub mod owed;
pub mod run;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use serde::Deserialize;

/// Folder of the texts in the repository: a folder per library in it, and a file per defect in that.
pub const FOLDER: &str = "upstream";

/// Page about them, with a table of all.
pub const PAGE: &str = "upstream/README.md";

/// Headings of a text, in order.
const HEADINGS: [&str; 8] = [
    "What users see",
    "Program",
    "Command",
    "Expected",
    "Suspected lines",
    "Fix",
    "Public issues",
    "Try a fix",
];

/// Front matter of a text.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Head {
    /// Title of the issue.
    pub title: String,
    /// Clients of adapters/adapters.yaml that have the defect.
    pub clients: Vec<String>,
    /// Library that has it, by its name in adapters/versions.yaml.
    pub library: String,
    /// Version of the library.
    pub version: String,
    /// Requirements that the command shows to be broken.
    pub requirements: Vec<String>,
    /// Requirements that the defect breaks in other scenarios.
    #[serde(default)]
    pub also: Vec<String>,
    /// Scenario that the command plays.
    pub scenario: String,
    /// Path of the program in the repository.
    pub program: String,
    /// Command that shows the defect, in a folder with the program.
    pub command: String,
    /// Searches in public issues that did not find it.
    pub searched: Vec<Search>,
    /// When the maintainers were told, and what they answered; `null`: they were not.
    pub told: Option<String>,
    /// Whether the gate runs the command.
    #[serde(default)]
    pub gate: bool,
}

/// A search in public issues.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Search {
    /// Words that were searched for.
    pub query: String,
    /// Day, as `2026-11-27`.
    pub date: String,
}

/// A text.
#[derive(Debug, Clone)]
pub struct Text {
    /// Path in the repository.
    pub path: String,
    /// Its front matter.
    pub head: Head,
    /// What follows the front matter: the issue as it is filed.
    pub body: String,
}

impl Text {
    /// Reads all texts, by their paths.
    ///
    /// # Errors
    ///
    /// A file cannot be read, or has no front matter.
    pub fn all(root: &Path) -> Result<Vec<Self>, String> {
        let mut texts = Vec::new();
        for folder in entries(&root.join(FOLDER))? {
            if !folder.is_dir() {
                continue;
            }
            for file in entries(&folder)? {
                if file.extension().is_some_and(|extension| extension == "md") {
                    let path = file.strip_prefix(root).unwrap_or(&file).display().to_string();
                    texts.push(Self::parse(&path, &read(&file)?)?);
                }
            }
        }
        Ok(texts)
    }

    /// Parses a text.
    ///
    /// # Errors
    ///
    /// Its front matter is missing or has mistakes.
    pub fn parse(path: &str, text: &str) -> Result<Self, String> {
        let (head, body) = text
            .strip_prefix("---\n")
            .and_then(|text| text.split_once("\n---\n"))
            .ok_or_else(|| format!("{path}:1: a text begins with front matter between `---`"))?;
        Ok(Self {
            path: path.to_owned(),
            head: serde_saphyr::from_str(head).map_err(|error| format!("{path}: {error}"))?,
            body: body.trim_start().to_owned(),
        })
    }

    /// Returns the parts that the text lacks or has wrongly. `program` is the content of its program.
    pub fn wrong(&self, program: &str) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut must = |holds: bool, what: &str| {
            if !holds {
                wrong.push(format!("{}: {what}", self.path));
            }
        };
        let head = &self.head;
        must(
            self.body.starts_with(&format!("# {}\n", head.title)),
            "the first line after the front matter is its title",
        );
        let sections = self.sections();
        let found: Vec<&str> = sections.iter().map(|(heading, _)| *heading).collect();
        must(
            found == HEADINGS,
            &format!("its headings are {found:?}, not {HEADINGS:?}"),
        );
        let section = |heading: &str| {
            let of = sections.iter().find(|(found, _)| *found == heading);
            of.map_or("", |(_, text)| *text)
        };
        for (heading, text) in &sections {
            must(!text.trim().is_empty(), &format!("`{heading}` is empty"));
        }
        must(
            code(section("Program")).is_some_and(|code| code.trim() == program.trim()),
            &format!("the code under `Program` is not {}", head.program),
        );
        must(
            code(section("Command"))
                .is_some_and(|code| code.lines().any(|line| line == format!("$ {}", head.command))),
            "the code under `Command` has the line `$ ` and the command of the front matter",
        );
        let words: Vec<&str> = head.command.split(' ').collect();
        must(
            matches!(words.get(..2), Some(["fake-apiserver", "run" | "conformance"]))
                && words.contains(&head.scenario.as_str())
                && words.contains(&"--"),
            "the command is `fake-apiserver run` or `conformance` with the scenario, `--` and the program",
        );
        must(!head.requirements.is_empty(), "the command shows a requirement");
        for id in &head.requirements {
            let Some(requirement) = scenario::catalogue::requirement(id) else {
                must(false, &format!("there is no requirement {id}"));
                continue;
            };
            let expected = section("Expected");
            must(
                expected.contains(&format!(
                    "**{id}** ({}): {}",
                    requirement.level.word(),
                    requirement.text
                )),
                &format!(
                    "`Expected` has the text of {id}: **{id}** ({}): {}",
                    requirement.level.word(),
                    requirement.text
                ),
            );
            for source in &requirement.sources {
                must(
                    expected.contains(source.as_str()),
                    &format!("`Expected` has the source of {id}: {source}"),
                );
            }
        }
        must(
            section("Suspected lines").contains(&head.version),
            "`Suspected lines` names the version that has them",
        );
        must(
            section("Suspected lines").split(['`', ' ']).any(|word| {
                let line = word.rsplit_once(':').map_or("", |(_, line)| line);
                word.contains('.') && line.starts_with(|c: char| c.is_ascii_digit())
            }),
            "`Suspected lines` has a line as `file:line`",
        );
        must(!head.searched.is_empty(), "`searched` has a search");
        for search in &head.searched {
            must(
                is_day(&search.date) && section("Public issues").contains(&search.query),
                &format!("`Public issues` has the search {:?} and its day", search.query),
            );
        }
        let last = self.body.trim_end().lines().last().unwrap_or_default();
        let tries =
            |client: &String| last == format!("`cargo xtask conformance --client {client} --with PATH`");
        must(
            head.clients.iter().any(tries),
            "the last line is `cargo xtask conformance --client NAME --with PATH` with one of its clients",
        );
        wrong
    }

    /// Returns the headings of the second level with the text below each.
    fn sections(&self) -> Vec<(&str, &str)> {
        let sections = self.body.split("\n## ").skip(1);
        sections
            .map(|section| section.split_once('\n').unwrap_or((section, "")))
            .collect()
    }
}

/// Returns the table of all texts for [`PAGE`].
pub fn table(texts: &[Text]) -> String {
    let mut table =
        String::from("| library | version | text | requirements | told |\n|---|---|---|---|---|\n");
    for Text { path, head, .. } in texts {
        let requirements: Vec<&str> = { head.requirements.iter().chain(&head.also) }
            .map(String::as_str)
            .collect();
        let _infallible = writeln!(
            table,
            "| {} | {} | [{}]({}) | {} | {} |",
            head.library,
            head.version,
            head.title,
            path.trim_start_matches("upstream/"),
            requirements.join(", "),
            head.told.as_deref().unwrap_or("no")
        );
    }
    table
}

/// Versions in adapters/versions.yaml by library.
///
/// # Errors
///
/// The file is missing or has mistakes.
pub fn versions(root: &Path) -> Result<BTreeMap<String, Vec<String>>, String> {
    const FILE: &str = "adapters/versions.yaml";
    type Registries = BTreeMap<String, BTreeMap<String, Vec<String>>>;
    let read: Registries =
        serde_saphyr::from_str(&read(&root.join(FILE))?).map_err(|error| format!("{FILE}: {error}"))?;
    Ok(read.into_values().flatten().collect())
}

/// Returns the first block of code of a section.
fn code(section: &str) -> Option<&str> {
    let (_, block) = section.split_once("```")?;
    let (_, block) = block.split_once('\n')?;
    block.split_once("\n```").map(|(code, _)| code)
}

/// Whether a text is a day as `2026-11-27`.
fn is_day(text: &str) -> bool {
    let shape: String = text
        .chars()
        .map(|c| if c.is_ascii_digit() { '0' } else { c })
        .collect();
    shape == "0000-00-00"
}

fn entries(folder: &Path) -> Result<Vec<std::path::PathBuf>, String> {
    let read = std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut paths: Vec<_> = read.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    Ok(paths)
}

fn read(file: &Path) -> Result<String, String> {
    std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROGRAM: &str = "print(1)\n";

    /// A text without mistakes.
    fn good() -> String {
        let requirement = scenario::catalogue::requirement("RETRY-07").unwrap();
        format!(
            "---\ntitle: It loops\nclients: [x]\nlibrary: l\nversion: 1.2.3\nrequirements: [RETRY-07]\nscenario: a/b\n\
             program: p/main.py\ncommand: fake-apiserver run a/b -- python3 main.py\n\
             searched: [{{query: l loops, date: \"2026-11-27\"}}]\ntold: null\n---\n\n# It loops\n\n## What users see\n\nLoad.\n\n\
             ## Program\n\n```python\n{PROGRAM}```\n\n## Command\n\n```console\n$ fake-apiserver run a/b -- python3 main.py\n```\n\n\
             ## Expected\n\n**RETRY-07** (MUST): {}\n\n## Suspected lines\n\nIn 1.2.3: `l/loop.py:17`.\n\n## Fix\n\nA delay.\n\n\
             ## Public issues\n\n- l loops (2026-11-27)\n\n## Try a fix\n\n`cargo xtask conformance --client x --with PATH`\n",
            requirement.text
        )
    }

    fn wrong(text: &str) -> Vec<String> {
        Text::parse("upstream/l/it-loops.md", text)
            .unwrap()
            .wrong(PROGRAM)
    }

    #[test]
    fn a_whole_text_has_nothing_wrong() {
        assert_eq!(wrong(&good()), Vec::<String>::new());
    }

    #[test]
    fn what_a_text_lacks_is_named() {
        for (from, to, expected) in [
            ("# It loops", "# It hangs", "its title"),
            ("Load.", "", "`What users see` is empty"),
            ("```python\nprint(1)", "```python\nprint(2)", "is not p/main.py"),
            (
                "$ fake-apiserver",
                "$ ./fake-apiserver",
                "the code under `Command`",
            ),
            (" run a/b -- python3", " serve -- python3", "with the scenario"),
            ("**RETRY-07**", "RETRY-07", "`Expected` has the text of RETRY-07"),
            ("l/loop.py:17", "l/loop.py", "as `file:line`"),
            ("In 1.2.3", "In the newest", "names the version"),
            ("- l loops", "- l", "has the search"),
            ("2026-11-27\"", "today\"", "has the search"),
            ("## Fix", "## Idea", "its headings are"),
            ("--client x", "--client y", "the last line"),
        ] {
            let text = good().replace(from, to);
            assert_ne!(text, good(), "{from}");
            let wrong = wrong(&text).join("\n");
            assert!(wrong.contains(expected), "{from}: {wrong}");
        }
        let why = Text::parse("upstream/l/x.md", "# It loops\n").unwrap_err();
        assert!(why.starts_with("upstream/l/x.md:1:"), "{why}");
    }
}

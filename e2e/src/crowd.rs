//! e2e/crowd: programs as the documentation of other libraries shows them, and how each folder of them is built. It must not
//! know what a judge reports about them.

pub mod libraries;
pub mod plan;
pub mod record;
pub mod results;
pub mod writer;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::build;
use crate::toolchain::Missing;

/// Folder of the ecosystems in the repository.
pub const FOLDER: &str = "e2e/crowd";

/// Description of the programs in the folder of an ecosystem.
const FILE: &str = "programs.yaml";

/// Options of `fake-apiserver run` that the runner sets itself, or that would make it play something else.
const NOT_OPTIONS: [&str; 13] = [
    "--format",
    "--grace",
    "--hang-after",
    "--help",
    "--jobs",
    "-j",
    "-h",
    "--namespace",
    "--profile",
    "--resource",
    "--seed",
    "--timeout",
    "--trace",
];

/// Options of `run` that `serve` has too, and whether a value follows.
const SERVED: [(&str, bool); 2] = [("--kubernetes-version", true), ("--tls", false)];

/// All ecosystems, by name.
#[derive(Debug)]
pub struct Crowd {
    /// In the order of their names.
    pub ecosystems: Vec<Ecosystem>,
}

/// Folder of programs that are built together.
#[derive(Debug)]
pub struct Ecosystem {
    /// Name of the folder.
    pub name: String,
    /// Programs in the order of the file.
    pub programs: Vec<Program>,
    needs: Vec<String>,
    build: Vec<Vec<String>>,
}

/// The parsed file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    needs: Vec<String>,
    build: Vec<Vec<String>>,
    programs: Vec<Program>,
}

/// A program that lists and watches by a library.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// Name in options, in the record and in files; unique over all ecosystems.
    pub name: String,
    /// Library, and what of it is used.
    pub title: String,
    /// Library and its version.
    pub library: String,
    /// What `fake-apiserver run --library` calls it; without it, its accusations are not of the library alone.
    #[serde(default)]
    pub known_as: Option<KnownAs>,
    /// URL of the documented program that it follows.
    pub source: String,
    /// Size of the program.
    pub kind: Kind,
    /// Command with placeholders: {out} is the build folder.
    pub run: Vec<String>,
    /// Options of `fake-apiserver run` that it needs.
    #[serde(default)]
    pub options: Vec<String>,
    /// Whether `--gate` runs it.
    #[serde(default)]
    pub gate: bool,
}

/// Names of a library, or of a part of it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnownAs {
    /// Name in `--library`.
    pub library: String,
    /// Client in adapters/adapters.yaml, whose known failures have the public issues.
    pub client: String,
}

/// Size of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// List and watch, and nothing else.
    Minimal,
    /// It writes too, as a controller does.
    Operator,
}

impl Program {
    /// Returns the version of its library.
    pub fn version(&self) -> &str {
        let version = self.library.split_whitespace().next_back().unwrap_or_default();
        version.strip_prefix('v').unwrap_or(version)
    }

    /// Returns its options that `fake-apiserver serve` has too.
    pub fn served_options(&self) -> Vec<String> {
        let mut served = Vec::new();
        let mut options = self.options.iter();
        while let Some(option) = options.next() {
            let of = |(name, _): &&(&str, bool)| option.split('=').next() == Some(name);
            let Some((name, has_value)) = SERVED.iter().find(of) else {
                continue;
            };
            served.push(option.clone());
            if *has_value && option == name {
                served.extend(options.next().cloned());
            }
        }
        served
    }

    /// Returns what is wrong with the description.
    fn mistake(&self) -> Option<String> {
        let named = |text: &str| {
            !text.is_empty()
                && text
                    .chars()
                    .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || ".-_".contains(c))
        };
        if !named(&self.name) {
            return Some("`name` has lower-case letters, digits, `.`, `-` and `_` only".to_owned());
        }
        if self.run.is_empty() {
            return Some("`run` is empty".to_owned());
        }
        if !self.source.starts_with("https://") {
            return Some("`source` is the URL of the documented program that it follows".to_owned());
        }
        let set = |option: &&String| {
            let name = option.split('=').next().unwrap_or_default();
            NOT_OPTIONS.contains(&name)
        };
        self.options.iter().find(set).map(|option| {
            format!("`options` cannot have {option}: the runner chooses scenarios, target and format")
        })
    }
}

impl Crowd {
    /// Reads the descriptions in all folders.
    ///
    /// # Errors
    ///
    /// A file cannot be read or has mistakes, or two programs have one name.
    pub fn read(root: &Path) -> Result<Self, String> {
        let folder = root.join(FOLDER);
        let entries = std::fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let mut files: Vec<(String, PathBuf)> = entries
            .filter_map(|entry| {
                let entry = entry.ok()?;
                let file = entry.path().join(FILE);
                let name = entry.file_name().into_string().ok()?;
                file.is_file().then_some((name, file))
            })
            .collect();
        files.sort();
        let mut texts = Vec::new();
        for (name, file) in files {
            let text =
                std::fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
            texts.push((name, text));
        }
        Self::parse(&texts)
    }

    /// Parses descriptions, given as name of the ecosystem and text.
    ///
    /// # Errors
    ///
    /// One has mistakes, or two programs have one name.
    pub fn parse(texts: &[(String, String)]) -> Result<Self, String> {
        let mut ecosystems = Vec::new();
        let mut by_name: BTreeMap<String, String> = BTreeMap::new();
        for (name, text) in texts {
            let path = format!("{FOLDER}/{name}/{FILE}");
            let File {
                needs,
                build,
                programs,
            } = parsed(&path, text)?;
            for program in &programs {
                let at = format!("{path}:{}", line_of_name(text, &program.name));
                if let Some(mistake) = program.mistake() {
                    return Err(format!("{at}: {}: {mistake}", program.name));
                }
                if let Some(other) = by_name.insert(program.name.clone(), path.clone()) {
                    return Err(format!("{at}: {other} has a program {} too", program.name));
                }
            }
            ecosystems.push(Ecosystem {
                name: name.clone(),
                programs,
                needs,
                build,
            });
        }
        Ok(Self { ecosystems })
    }

    /// Returns all programs.
    pub fn programs(&self) -> impl Iterator<Item = &Program> {
        self.ecosystems.iter().flat_map(|ecosystem| &ecosystem.programs)
    }
}

impl Ecosystem {
    /// Builds the programs into `target`/crowd if their files have changed, and returns the folder.
    ///
    /// # Errors
    ///
    /// The reason why they cannot be built on this machine.
    pub fn built(&self, root: &Path, target: &Path) -> Result<PathBuf, Missing> {
        let out = target.join("crowd").join(&self.name);
        let out = std::path::absolute(&out).map_err(|error| format!("{}: {error}", out.display()))?;
        let source = root.join(FOLDER).join(&self.name);
        build::built(&source, &out, &self.needs, &self.build)?;
        Ok(out)
    }
}

impl Program {
    /// Returns its command; `out` is the folder of its ecosystem's build.
    ///
    /// # Errors
    ///
    /// The program was not built.
    pub fn command(&self, out: &Path) -> Result<Vec<String>, Missing> {
        build::command(&self.run, out)
    }
}

/// Parses a file in YAML. Errors start with `file:line:column:`.
fn parsed<T: DeserializeOwned>(file: &str, text: &str) -> Result<T, String> {
    serde_saphyr::from_str(text).map_err(|error| {
        let message = error.without_snippet().to_string();
        match error.location() {
            Some(at) => {
                // The message repeats the place.
                let place = format!(" at line {}, column {}", at.line(), at.column());
                format!(
                    "{file}:{}:{}: {}",
                    at.line(),
                    at.column(),
                    message.replace(&place, "")
                )
            }
            None => format!("{file}: {message}"),
        }
    })
}

/// Returns the line of a program in its file, counted from 1.
fn line_of_name(text: &str, name: &str) -> usize {
    let is_name = |line: &str| {
        line.trim_start()
            .trim_start_matches("- ")
            .strip_prefix("name:")
            .is_some_and(|value| value.trim().trim_matches('"') == name)
    };
    text.lines().position(is_name).map_or(1, |index| index + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toolchain::repository;

    const GO: &str = "\
needs: [go]
build:
  - [go, build]
programs:
  - name: informer
    title: an informer
    library: k8s.io/client-go v0.37.0
    source: https://example.com/informer
    kind: minimal
    run: [\"{out}/informer\", --quick]
    options: [--kubernetes-version, \"1.34\", --assume-configured=page_size, --tls]
    gate: true
";

    fn parse(texts: &[(&str, &str)]) -> Result<Crowd, String> {
        let texts: Vec<(String, String)> = texts
            .iter()
            .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
            .collect();
        Crowd::parse(&texts)
    }

    #[test]
    fn a_description_is_read() {
        let crowd = parse(&[("go", GO)]).unwrap();
        let program = crowd.programs().next().unwrap();
        assert_eq!(program.kind, Kind::Minimal);
        assert!(program.gate);
        assert_eq!(
            program.served_options(),
            ["--kubernetes-version", "1.34", "--tls"]
        );
        let missing = program.command(Path::new("/no/such")).unwrap_err();
        assert!(missing.starts_with("/no/such/informer is not there"), "{missing}");
    }

    #[test]
    fn mistakes_name_file_and_line() {
        let wrong = |from: &str, to: &str| parse(&[("go", &GO.replacen(from, to, 1))]).unwrap_err();
        assert_eq!(
            wrong("    gate:", "    gates:"),
            "e2e/crowd/go/programs.yaml:12:5: unknown field `gates`, expected one of name, title, library, known_as, source, kind, run, options, gate"
        );
        let unknown = wrong("kind: minimal", "kind: huge");
        assert!(unknown.starts_with("e2e/crowd/go/programs.yaml:9:"), "{unknown}");
        let missing = wrong("    library: k8s.io/client-go v0.37.0\n", "");
        assert!(
            missing.starts_with("e2e/crowd/go/programs.yaml:11:5: missing field `library`"),
            "{missing}"
        );
        let option = wrong("--tls", "--resource=pods");
        assert_eq!(
            option,
            "e2e/crowd/go/programs.yaml:5: informer: `options` cannot have --resource=pods: the runner chooses scenarios, \
             target and format"
        );
        let source = wrong("https://example.com/informer", "somewhere");
        assert!(source.contains("programs.yaml:5: informer: `source`"), "{source}");
    }

    #[test]
    fn names_are_unique_over_all_ecosystems() {
        assert_eq!(
            parse(&[("go", GO), ("java", GO)]).unwrap_err(),
            "e2e/crowd/java/programs.yaml:5: e2e/crowd/go/programs.yaml has a program informer too"
        );
    }

    #[test]
    fn the_descriptions_of_this_repository_are_valid() {
        Crowd::read(repository()).unwrap_or_else(|why| panic!("{why}"));
    }
}

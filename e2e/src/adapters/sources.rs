//! adapters/sources: lines of the libraries' sources that cause known failures, by the names that `source` in
//! adapters/known-failures has.
//!
//! The lines are those of the version that is pinned and was measured. It must not fetch a source.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use conformance::baseline::Baseline;
use scenario::nearest;
use serde::Deserialize;
use serde_saphyr::Spanned;

use crate::upstream;

/// Folder in the repository.
const FOLDER: &str = "adapters/sources";

/// Characters of a quote: what a reader recognises, and no more of a text of others than that.
const QUOTE_MAX: usize = 100;

/// Lines of the libraries behind some clients.
#[derive(Debug)]
pub struct Sources {
    /// Path in the repository.
    pub file: String,
    /// Names of the clients.
    pub clients: Vec<String>,
    /// Libraries by name.
    pub libraries: BTreeMap<String, Library>,
    /// Places by the names that known failures have.
    pub places: BTreeMap<String, FailureCause>,
}

/// A library whose lines are named.
#[derive(Debug, Clone)]
pub struct Library {
    /// Name on pages.
    pub name: String,
    /// Name in its registry.
    pub package: String,
    /// Folder in the package that the paths are relative to; empty for the package itself.
    pub folder: String,
    /// Library in adapters/versions.yaml whose version it has.
    pub pin: String,
    /// Version, if no manifest names one because the pinned library brings it.
    pub version: Option<String>,
    /// Address of a file, with the placeholders `{version}` and `{path}`.
    pub url: String,
}

/// What causes a failure.
#[derive(Debug)]
pub struct FailureCause {
    /// Lines of the source.
    pub lines: Vec<Lines>,
    /// Why none can be named.
    pub no_source: Option<String>,
    /// Line in the file of what stands under the name, from 1.
    pub line: u64,
}

/// Lines of one file.
#[derive(Debug)]
pub struct Lines {
    /// Name of the library.
    pub library: String,
    /// File, relative to the library's package.
    pub path: String,
    /// First line, from 1.
    pub first: usize,
    /// Last line.
    pub last: usize,
    /// Function, method or type around them.
    pub function: String,
    /// Words of these lines; one space stands for any white space.
    pub quote: String,
    /// Line in the file of this repository, from 1.
    pub line: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSources {
    clients: Vec<String>,
    libraries: Vec<RawLibrary>,
    places: BTreeMap<String, Spanned<RawPlace>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLibrary {
    name: String,
    /// The name if there is none.
    package: Option<String>,
    #[serde(default)]
    folder: String,
    /// The package if there is none.
    pin: Option<String>,
    version: Option<String>,
    url: Spanned<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPlace {
    #[serde(default)]
    lines: Vec<RawLines>,
    no_source: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLines {
    /// `FILE#L3-L5`.
    at: Spanned<String>,
    /// The first library if there is none.
    library: Option<Spanned<String>>,
    function: Spanned<String>,
    quote: Spanned<String>,
}

impl Sources {
    /// Reads every file of the folder.
    ///
    /// # Errors
    ///
    /// All mistakes of all files, a line each.
    pub fn read_all(root: &Path) -> Result<Vec<Self>, String> {
        let folder = root.join(FOLDER);
        let read = std::fs::read_dir(&folder).map_err(|error| format!("{FOLDER}: {error}"))?;
        let mut names: Vec<String> = read
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .collect();
        names.sort();
        let (mut all, mut faults) = (Vec::new(), Vec::new());
        for name in names {
            let file = format!("{FOLDER}/{name}");
            let text = std::fs::read_to_string(root.join(&file)).map_err(|error| error.to_string());
            match text
                .map_err(|error| vec![error])
                .and_then(|text| Self::parse(&file, &text))
            {
                Ok(sources) => all.push(sources),
                Err(found) => faults.extend(found),
            }
        }
        if faults.is_empty() {
            Ok(all)
        } else {
            Err(faults.join("\n"))
        }
    }

    /// Parses the text of a file; `file` stands in messages.
    ///
    /// # Errors
    ///
    /// All mistakes, as `file:line:column: what`.
    pub fn parse(file: &str, text: &str) -> Result<Self, Vec<String>> {
        let raw: RawSources = serde_saphyr::from_str(text).map_err(|error| {
            let (line, column) = error.location().map_or((1, 1), |at| (at.line(), at.column()));
            let what = error.to_string();
            vec![format!(
                "{file}:{line}:{column}: {}",
                what.lines().next().unwrap_or_default()
            )]
        })?;
        let mut faults = Faults {
            file,
            found: Vec::new(),
        };
        let Some(first) = raw.libraries.first().map(|library| library.name.clone()) else {
            return Err(vec![format!(
                "{file}:1:1: there are no libraries: name at least one"
            )]);
        };
        let names: Vec<String> = raw.libraries.iter().map(|library| library.name.clone()).collect();
        let libraries = raw
            .libraries
            .into_iter()
            .map(|library| faults.library(library))
            .collect();
        let mut places = BTreeMap::new();
        for (
            name,
            Spanned {
                value, referenced, ..
            },
        ) in raw.places
        {
            let (line, column) = (referenced.line(), referenced.column());
            if value.lines.is_empty() == value.no_source.is_none() {
                let what = format!("{name} needs either `lines` or `no_source`");
                faults.at(line, column, &what);
            }
            let lines = value.lines.into_iter();
            let place = FailureCause {
                lines: lines
                    .filter_map(|lines| faults.lines(lines, &first, &names))
                    .collect(),
                no_source: value.no_source,
                line,
            };
            places.insert(name, place);
        }
        if !faults.found.is_empty() {
            return Err(faults.found);
        }
        Ok(Self {
            file: file.to_owned(),
            clients: raw.clients,
            libraries,
            places,
        })
    }

    /// Returns what is wrong between these files and the known failures of all clients, a line each: an entry that breaks a
    /// requirement and has no source, a source that does not exist, and a place that no entry names.
    pub fn wrong(all: &[Self], known: &[(&str, &Baseline)]) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut named = BTreeSet::new();
        for (client, baseline) in known {
            let file = format!("adapters/known-failures/{client}.yaml");
            let sources = Self::of(all, client);
            for entry in &baseline.entries {
                let at = format!("{file}:{}: {}", entry.line, entry.scenario);
                let breaks = entry.breaks.as_ref().is_some_and(|breaks| !breaks.is_empty());
                match (&entry.source, sources) {
                    (None, _) if !breaks => {}
                    (None, Some(sources)) => wrong.push(format!(
                        "{at} breaks a requirement and has no `source`: read the library and name a place of {}, with its lines \
                         or with `no_source`",
                        sources.file
                    )),
                    (_, None) => wrong.push(format!(
                        "{at}: no file of {FOLDER} lists the client {client} under `clients`"
                    )),
                    (Some(name), Some(sources)) if sources.places.contains_key(name) => {
                        named.insert((sources.file.as_str(), name.as_str()));
                    }
                    (Some(name), Some(sources)) => {
                        let near = nearest(name, sources.places.keys().map(String::as_str));
                        let near = near.map(|near| format!("; did you mean {near}?")).unwrap_or_default();
                        wrong.push(format!("{at}: {} has no place {name}{near}", sources.file));
                    }
                }
            }
        }
        for sources in all {
            let places = sources.places.iter();
            let unnamed = places.filter(|(name, _)| !named.contains(&(sources.file.as_str(), name.as_str())));
            wrong.extend(unnamed.map(|(name, place)| {
                format!(
                    "{}:{}: no known failure has the source {name}: remove it",
                    sources.file, place.line
                )
            }));
        }
        wrong
    }

    /// Returns the file of a client.
    pub fn of<'s>(all: &'s [Self], client: &str) -> Option<&'s Self> {
        all.iter()
            .find(|sources| sources.clients.iter().any(|name| name == client))
    }

    /// Returns the version of a library: that of its pin; of several, the one that was `measured`.
    ///
    /// # Errors
    ///
    /// adapters/versions.yaml has no such library, or has several versions of it and none was measured.
    pub fn version(&self, library: &str, versions: &Versions, measured: &str) -> Result<String, String> {
        let file = &self.file;
        let Some(library) = self.libraries.get(library) else {
            return Err(format!("{file}: there is no library {library}"));
        };
        if let Some(version) = &library.version {
            return Ok(version.clone());
        }
        let pin = &library.pin;
        let pinned = versions.get(pin).map(Vec::as_slice).unwrap_or_default();
        match pinned {
            [] => Err(format!(
                "{file}: adapters/versions.yaml has no library {pin}: write its name as `pin`"
            )),
            [version] => Ok(version.clone()),
            several if several.iter().any(|version| version == measured) => Ok(measured.to_owned()),
            several => Err(format!(
                "{file}: {pin} has the versions {}, and adapters/results has {measured}",
                several.join(", ")
            )),
        }
    }
}

/// Versions in adapters/versions.yaml by library.
pub type Versions = BTreeMap<String, Vec<String>>;

/// Reads adapters/versions.yaml.
///
/// # Errors
///
/// The file is missing or has mistakes.
pub fn versions(root: &Path) -> Result<Versions, String> {
    upstream::versions(root)
}

impl Library {
    /// Returns the address of lines at a version.
    pub fn address(&self, version: &str, lines: &Lines) -> String {
        let file = self
            .url
            .replace("{version}", version)
            .replace("{path}", &lines.path);
        match lines.first == lines.last {
            true => format!("{file}#L{}", lines.first),
            false => format!("{file}#L{}-L{}", lines.first, lines.last),
        }
    }
}

/// Mistakes of a file.
struct Faults<'f> {
    file: &'f str,
    found: Vec<String>,
}

impl Faults<'_> {
    fn at(&mut self, line: u64, column: u64, what: &str) {
        self.found.push(format!("{}:{line}:{column}: {what}", self.file));
    }

    fn add(&mut self, at: &Spanned<String>, what: &str) {
        self.at(at.referenced.line(), at.referenced.column(), what);
    }

    fn library(&mut self, raw: RawLibrary) -> (String, Library) {
        let url = &raw.url.value;
        if !(url.starts_with("https://") && url.contains("{version}") && url.contains("{path}")) {
            self.add(
                &raw.url,
                "the url of a library is https and has {version} and {path}",
            );
        }
        let package = raw.package.unwrap_or_else(|| raw.name.clone());
        let library = Library {
            pin: raw.pin.unwrap_or_else(|| package.clone()),
            package,
            folder: raw.folder,
            name: raw.name.clone(),
            version: raw.version,
            url: raw.url.value,
        };
        (raw.name, library)
    }

    fn lines(&mut self, raw: RawLines, first: &str, names: &[String]) -> Option<Lines> {
        let library = raw
            .library
            .as_ref()
            .map_or(first, |library| library.value.as_str());
        if let Some(unknown) = raw
            .library
            .as_ref()
            .filter(|library| !names.contains(&library.value))
        {
            let all = names.join(", ");
            self.add(
                unknown,
                &format!("there is no library {}; there are: {all}", unknown.value),
            );
        }
        for (name, value) in [("function", &raw.function), ("quote", &raw.quote)] {
            if value.value.trim().is_empty() {
                self.add(value, &format!("{name} is empty"));
            }
        }
        let length = raw.quote.value.chars().count();
        if length > QUOTE_MAX {
            let what = format!(
                "the quote has {length} characters, at most {QUOTE_MAX}: keep the words that show the defect"
            );
            self.add(&raw.quote, &what);
        }
        let Some((path, range)) = range(&raw.at.value) else {
            self.add(&raw.at, "`at` is not FILE#L3-L5, lines of a file from 1");
            return None;
        };
        Some(Lines {
            library: library.to_owned(),
            path: path.to_owned(),
            first: range.0,
            last: range.1,
            function: raw.function.value,
            quote: raw.quote.value,
            line: raw.at.referenced.line(),
        })
    }
}

/// Returns file, first and last line of `FILE#L3-L5` or `FILE#L3`.
fn range(at: &str) -> Option<(&str, (usize, usize))> {
    let (path, range) = at.split_once("#L")?;
    let (first, last) = range.split_once("-L").unwrap_or((range, range));
    let (first, last) = (first.parse().ok()?, last.parse().ok()?);
    let is_right = !path.is_empty() && 0 < first && first <= last;
    is_right.then_some((path, (first, last)))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const FILE: &str = "\
clients: [x]
libraries:
  - {name: lib, url: 'https://example.org/{version}/src/{path}'}
  - {name: other, pin: lib, url: 'https://example.org/other/{version}/{path}'}
places:
  loops:
    lines:
      - {at: a.go#L3-L5, function: run, quote: 'for {'}
      - {at: b.go#L7, library: other, function: stop, quote: 'return'}
  absent:
    no_source: nothing closes it
";

    fn read(text: &str) -> Result<Sources, String> {
        Sources::parse("s.yaml", text).map_err(|faults| faults.join("\n"))
    }

    fn known(source: &str) -> Baseline {
        let text = format!(
            "- {{scenario: a/b, outcome: fail, breaks: [LIST-01], reason: r, issue: none public{source}}}\n"
        );
        Baseline::parse(&text, Path::new("k.yaml")).unwrap()
    }

    #[test]
    fn lines_become_addresses_at_the_pinned_version() {
        let sources = read(FILE).unwrap();
        let versions =
            |of: &[&str]| Versions::from([("lib".to_owned(), of.iter().map(|&v| v.to_owned()).collect())]);
        let addresses = |versions: &Versions, measured: &str| -> Result<Vec<String>, String> {
            let lines = sources.places["loops"].lines.iter();
            let address = |lines: &Lines| {
                let version = sources.version(&lines.library, versions, measured)?;
                Ok(sources.libraries[&lines.library].address(&version, lines))
            };
            lines.map(address).collect()
        };
        assert_eq!(
            addresses(&versions(&["v1"]), "1").unwrap(),
            [
                "https://example.org/v1/src/a.go#L3-L5",
                "https://example.org/other/v1/b.go#L7"
            ]
        );
        assert_eq!(
            addresses(&versions(&["2", "1"]), "1").unwrap(),
            [
                "https://example.org/1/src/a.go#L3-L5",
                "https://example.org/other/1/b.go#L7"
            ]
        );
        let error = addresses(&versions(&["2", "1"]), "3").unwrap_err();
        assert!(
            error.contains("lib has the versions 2, 1, and adapters/results has 3"),
            "{error}"
        );
        assert!(
            addresses(&Versions::new(), "1")
                .unwrap_err()
                .contains("has no library lib")
        );
    }

    #[rstest]
    #[case::range("a.go#L3-L5", "a.go#L5-L3", "s.yaml:8:14: `at` is not FILE#L3-L5")]
    #[case::library(
        "library: other",
        "library: othr",
        "s.yaml:9:32: there is no library othr; there are: lib, other"
    )]
    #[case::function("function: run", "function: ''", "function is empty")]
    #[case::both(
        "no_source: nothing closes it",
        "{}",
        "s.yaml:11:5: absent needs either `lines` or `no_source`"
    )]
    #[case::url(
        "https://example.org/{version}/src/{path}",
        "https://example.org/",
        "s.yaml:3:22: the url of a library"
    )]
    #[case::unknown_key("function: run", "fn: run", "s.yaml:8:")]
    fn mistakes_have_a_position(#[case] from: &str, #[case] to: &str, #[case] fault: &str) {
        let error = read(&FILE.replace(from, to)).unwrap_err();
        assert!(error.contains(fault), "{error}");
    }

    #[test]
    fn a_long_quote_is_refused() {
        let error = read(&FILE.replace("for {", &"x".repeat(101))).unwrap_err();
        assert!(error.contains("has 101 characters, at most 100"), "{error}");
    }

    #[rstest]
    #[case::none(
        "",
        "adapters/known-failures/x.yaml:1: a/b breaks a requirement and has no `source`"
    )]
    #[case::mistyped(", source: lops", "s.yaml has no place lops; did you mean loops?")]
    #[case::unused(
        ", source: loops",
        "s.yaml:11: no known failure has the source absent: remove it"
    )]
    fn every_charge_has_a_source(#[case] source: &str, #[case] fault: &str) {
        let all = [read(FILE).unwrap()];
        let wrong = Sources::wrong(&all, &[("x", &known(source))]).join("\n");
        assert!(wrong.contains(fault), "{wrong}");
    }

    #[test]
    fn a_client_has_a_file() {
        let all = [read(FILE).unwrap()];
        let wrong = Sources::wrong(&all, &[("y", &known(", source: loops"))]).join("\n");
        assert!(
            wrong.contains("no file of adapters/sources lists the client y"),
            "{wrong}"
        );
    }
}

//! `cargo xtask conformance --sources`: compares the lines of adapters/sources with the sources of the pinned libraries.
//!
//! The tools of each language fetch the sources. It must not know what the lines cause.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use e2e::adapters::sources::{self, Library, Lines, Sources};
use flate2::read::GzDecoder;
use serde::Deserialize;

use super::outdated::output;
use super::record::Record;
use crate::versions::{FILE, Versions};

/// Manifests whose crates cargo has fetched.
const CARGO: [&str; 2] = ["Cargo.toml", "adapters/kube-runtime-older/Cargo.toml"];

/// Folders of the `pom.xml` that has a pinned library, and of the one whose library brings another.
const MAVEN: [&str; 2] = ["adapters/java", "adapters/java/operator-sdk"];

/// Prints a JSON array: for each line of a generated file the line that it was generated from, or 0.
const MAPPED: &str = "\
const { readFileSync } = require('node:fs');
const { SourceMap } = require('node:module');
const [, file] = process.argv;
const map = new SourceMap(JSON.parse(readFileSync(`${file}.map`, 'utf8')));
const lines = readFileSync(file, 'utf8').split('\\n');
const line = (text, at) => {
    const column = text.search(/\\S/);
    return column < 0 ? 0 : (map.findEntry(at, column).originalLine ?? -1) + 1;
};
console.log(JSON.stringify(lines.map(line)));
";

/// What a comparison found.
#[derive(Debug, Default)]
pub(super) struct Compared {
    /// Number of ranges that have their words.
    pub(super) right: usize,
    /// Ranges that have other words, and libraries that cannot be fetched, a line each.
    pub(super) wrong: Vec<String>,
    /// Libraries that publish no sources, a line each.
    pub(super) skipped: BTreeSet<String>,
}

/// Compares every range.
///
/// # Errors
/// A file of the repository cannot be read.
pub(super) fn compared(root: &Path) -> Result<Compared, String> {
    // The tools run in other folders.
    let root = &std::path::absolute(root).map_err(|why| format!("{}: {why}", root.display()))?;
    let versions = sources::versions(root)?;
    let text = std::fs::read_to_string(root.join(FILE)).map_err(|why| format!("{FILE}: {why}"))?;
    let mut shelf = Shelf {
        root,
        registries: Versions::parse(&text)?,
        crates: BTreeMap::new(),
        fetched: BTreeMap::new(),
    };
    let mut compared = Compared::default();
    let mut unfetched = BTreeSet::new();
    for file in Sources::read_all(root)? {
        let measured = match file.clients.first() {
            Some(client) => Record::read(root, client)?.client.version,
            None => String::new(),
        };
        let mut read = BTreeMap::new();
        for lines in file.places.values().flat_map(|place| &place.lines) {
            let Some(library) = file.libraries.get(&lines.library) else {
                continue;
            };
            let version = file.version(&lines.library, &versions, &measured)?;
            let name = format!("{}: {} {version}", file.file, library.name);
            let folder = match shelf.folder(library, &version) {
                Ok(Some(folder)) => folder,
                Ok(None) => {
                    compared
                        .skipped
                        .insert(format!("{name}: not compared: no sources are published"));
                    continue;
                }
                Err(why) => {
                    unfetched.insert(format!("{name}: {why}"));
                    continue;
                }
            };
            let path = folder.join(&library.folder).join(&lines.path);
            let text = read
                .entry(path.clone())
                .or_insert_with(|| text_of(&folder, &path));
            match text
                .as_ref()
                .map_err(Clone::clone)
                .and_then(|text| differs(text, lines))
            {
                Ok(()) => compared.right += 1,
                Err(why) => compared.wrong.push(format!(
                    "{}:{}: {} {version} {}: {why}",
                    file.file, lines.line, library.name, lines.path
                )),
            }
        }
    }
    compared.wrong.extend(unfetched);
    Ok(compared)
}

/// Returns what to correct if the lines have other words.
fn differs(text: &[String], lines: &Lines) -> Result<(), String> {
    let joined = |first: usize, last: usize| {
        let part = text.get(first - 1..last.min(text.len())).unwrap_or_default();
        one_line(&part.join("\n"))
    };
    let quote = one_line(&lines.quote);
    let (first, last) = (lines.first, lines.last);
    if last <= text.len() && joined(first, last).contains(&quote) {
        return Ok(());
    }
    let length = last - first;
    let found = (1..=text.len()).find(|start| joined(*start, start + length).contains(&quote));
    // The first window that has the words ends with them.
    Err(match found {
        Some(start) => format!(
            "lines {first} to {last} have no `{quote}`; it is in line {} or near: read what the lines do now, and correct `at`",
            (start + length).min(text.len())
        ),
        None => format!(
            "the file has no `{quote}`: read what it does now, and correct the place, or whether the client still fails"
        ),
    })
}

/// Returns the text with one space for any white space.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the lines of a file; of one that is not packed, what the generated file beside has of them.
fn text_of(folder: &Path, path: &Path) -> Result<Vec<String>, String> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(text.lines().map(str::to_owned).collect()),
        Err(why) => match generated(folder, path) {
            Some(file) if file.is_file() => mapped(&file),
            Some(_) | None => Err(why.to_string()),
        },
    }
}

/// Returns `dist/a.js` of `src/a.ts`.
fn generated(folder: &Path, path: &Path) -> Option<PathBuf> {
    let inner = path.strip_prefix(folder.join("src")).ok()?;
    (inner.extension()? == "ts").then(|| folder.join("dist").join(inner).with_extension("js"))
}

/// Returns the lines that a file was generated from, as far as they are in it.
fn mapped(file: &Path) -> Result<Vec<String>, String> {
    let printed = output(Command::new("node").args(["--eval", MAPPED, "--"]).arg(file))?;
    let origins: Vec<usize> = serde_json::from_str(&printed).map_err(|why| format!("node: {why}"))?;
    let text = std::fs::read_to_string(file).map_err(|why| format!("{}: {why}", file.display()))?;
    let mut lines = vec![String::new(); origins.iter().max().copied().unwrap_or_default()];
    for (origin, generated) in origins.into_iter().zip(text.lines()) {
        if let Some(line) = origin.checked_sub(1).and_then(|at| lines.get_mut(at)) {
            line.push_str(generated);
            line.push('\n');
        }
    }
    Ok(lines)
}

/// Folder of a library's source; `None`: it publishes none.
type Fetched = Result<Option<PathBuf>, String>;

/// The sources that were fetched.
struct Shelf<'r> {
    root: &'r Path,
    registries: Versions,
    /// Folders of crates by name and version; empty until one is wanted.
    crates: BTreeMap<(String, String), PathBuf>,
    fetched: BTreeMap<(String, String), Fetched>,
}

impl Shelf<'_> {
    /// Returns the folder of a library's source.
    fn folder(&mut self, library: &Library, version: &str) -> Fetched {
        let key = (library.package.clone(), version.to_owned());
        if let Some(fetched) = self.fetched.get(&key) {
            return fetched.clone();
        }
        let fetched = self.fetch(library, version);
        self.fetched.insert(key, fetched.clone());
        fetched
    }

    fn fetch(&mut self, library: &Library, version: &str) -> Fetched {
        let (package, pin) = (&library.package, &library.pin);
        let registries = &self.registries;
        let folder = fetched(self.root, package, version);
        let found = if registries.go.contains_key(pin) {
            go_module(package, version)?
        } else if registries.npm.contains_key(pin) {
            npm_package(&folder, package, version)?
        } else if registries.pypi.contains_key(pin) {
            distribution(&folder, package, version)?
        } else if registries.crates.contains_key(pin) {
            self.crate_folder(package, version)?
        } else {
            return artifact(self.root, &folder, library, version);
        };
        Ok(Some(found))
    }

    fn crate_folder(&mut self, name: &str, version: &str) -> Result<PathBuf, String> {
        if self.crates.is_empty() {
            for manifest in CARGO {
                self.crates.extend(crates(&self.root.join(manifest))?);
            }
        }
        let key = (name.to_owned(), version.to_owned());
        self.crates
            .get(&key)
            .cloned()
            .ok_or_else(|| "no manifest has it".to_owned())
    }
}

fn go_module(name: &str, version: &str) -> Result<PathBuf, String> {
    #[derive(Deserialize)]
    struct Module {
        #[serde(rename = "Dir")]
        folder: PathBuf,
    }
    let printed =
        output(Command::new("go").args(["mod", "download", "-json", &format!("{name}@{version}")]))?;
    let module: Module = serde_json::from_str(&printed).map_err(|why| format!("go: {why}"))?;
    Ok(module.folder)
}

fn npm_package(folder: &Path, name: &str, version: &str) -> Result<PathBuf, String> {
    created(folder)?;
    let mut npm = Command::new("npm");
    npm.args(["pack", "--silent", "--pack-destination"]).arg(folder);
    let printed = output(npm.arg(format!("{name}@{version}")))?;
    let packed = folder.join(printed.trim());
    let wrong = |why: std::io::Error| format!("{}: {why}", packed.display());
    let file = File::open(&packed).map_err(wrong)?;
    tar::Archive::new(GzDecoder::new(file))
        .unpack(folder)
        .map_err(wrong)?;
    Ok(folder.join("package"))
}

fn distribution(folder: &Path, name: &str, version: &str) -> Result<PathBuf, String> {
    let options = [
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "--no-compile",
        "--upgrade",
    ];
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "install"])
        .args(options)
        .arg("--target")
        .arg(folder);
    output(pip.arg(format!("{name}=={version}")))?;
    Ok(folder.to_owned())
}

/// Returns the folders of the crates that a manifest needs, by name and version.
fn crates(manifest: &Path) -> Result<BTreeMap<(String, String), PathBuf>, String> {
    #[derive(Deserialize)]
    struct Metadata {
        packages: Vec<Package>,
    }
    #[derive(Deserialize)]
    struct Package {
        name: String,
        version: String,
        manifest_path: PathBuf,
    }
    let mut cargo = Command::new("cargo");
    cargo.args(["metadata", "--format-version", "1", "--locked", "--manifest-path"]);
    let printed = output(cargo.arg(manifest))?;
    let metadata: Metadata = serde_json::from_str(&printed).map_err(|why| format!("cargo: {why}"))?;
    let folder = |package: Package| {
        let folder = package.manifest_path.parent()?.to_owned();
        Some(((package.name, package.version), folder))
    };
    Ok(metadata.packages.into_iter().filter_map(folder).collect())
}

/// Unpacks the sources of a Java library as the adapter resolves it: another version is an error.
fn artifact(root: &Path, folder: &Path, library: &Library, version: &str) -> Fetched {
    let [pinned, brought] = MAVEN;
    let pom = if library.version.is_some() {
        brought
    } else {
        pinned
    };
    let (group, name) = library
        .package
        .split_once(':')
        .ok_or("its name is not GROUP:ARTIFACT")?;
    created(folder)?;
    let mut mvn = Command::new("mvn");
    mvn.args([
        "--batch-mode",
        "--quiet",
        "dependency:copy-dependencies",
        "-Dclassifier=sources",
    ])
    .arg("-Dmdep.failOnMissingClassifierArtifact=false")
    .arg(format!("-DincludeGroupIds={group}"))
    .arg(format!("-DincludeArtifactIds={name}"))
    .arg(format!("-DoutputDirectory={}", folder.display()))
    .arg("--file")
    .arg(root.join(pom).join("pom.xml"));
    output(&mut mvn)?;
    let jar = format!("{name}-{version}-sources.jar");
    let wrong = |why: &dyn std::fmt::Display| format!("{}: {why}", folder.display());
    let mut jars = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(|why| wrong(&why))? {
        let file = entry.map_err(|why| wrong(&why))?.file_name();
        jars.extend(
            file.into_string()
                .ok()
                .filter(|file| file.ends_with("-sources.jar")),
        );
    }
    if jars.is_empty() {
        return Ok(None);
    }
    if !jars.contains(&jar) {
        return Err(format!("{pom} resolves {}: correct the version", jars.join(", ")));
    }
    let file = File::open(folder.join(jar)).map_err(|why| wrong(&why))?;
    let mut archive = zip::ZipArchive::new(file).map_err(|why| wrong(&why))?;
    archive.extract(folder).map_err(|why| wrong(&why))?;
    Ok(Some(folder.to_owned()))
}

fn created(folder: &Path) -> Result<(), String> {
    std::fs::create_dir_all(folder).map_err(|why| format!("{}: {why}", folder.display()))
}

/// Returns the folder for a source of this name and version.
fn fetched(root: &Path, name: &str, version: &str) -> PathBuf {
    let name: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    root.join("target/sources").join(format!("{name}-{version}"))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const TEXT: [&str; 5] = [
        "fn run() {",
        "    for   event in",
        "        stream {",
        "    }",
        "}",
    ];

    fn lines(first: usize, last: usize, quote: &str) -> Lines {
        Lines {
            library: String::new(),
            path: String::new(),
            first,
            last,
            function: String::new(),
            quote: quote.to_owned(),
            line: 1,
        }
    }

    #[rstest]
    #[case::over_two_lines(2, 3, "for event in stream {", "")]
    #[case::moved(4, 5, "fn run()", "lines 4 to 5 have no `fn run()`; it is in line 2 or near")]
    #[case::gone(1, 2, "while", "the file has no `while`")]
    #[case::shorter(5, 6, "}", "lines 5 to 6 have no `}`")]
    fn words_are_found_in_their_lines(
        #[case] first: usize,
        #[case] last: usize,
        #[case] quote: &str,
        #[case] fault: &str,
    ) {
        let text: Vec<String> = TEXT.map(str::to_owned).to_vec();
        let found = differs(&text, &lines(first, last, quote))
            .err()
            .unwrap_or_default();
        assert!(
            found.starts_with(fault) && found.is_empty() == fault.is_empty(),
            "{found}"
        );
    }

    #[test]
    fn what_is_not_packed_is_read_from_what_was_generated_of_it() {
        let generated = |path: &str| generated(Path::new("p"), Path::new(path));
        assert_eq!(generated("p/src/a/b.ts"), Some(PathBuf::from("p/dist/a/b.js")));
        assert_eq!(generated("p/src/a.js"), None);
        assert_eq!(generated("p/a.ts"), None);
    }
}

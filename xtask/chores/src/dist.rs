//! `cargo xtask dist`: makes every artefact of a release in target/dist, from one build per platform.
//!
//! Each format is a function from values to bytes, in its own file; here they are read, chosen and written. The same input
//! gives the same bytes: entries are sorted, times are SOURCE_DATE_EPOCH.

mod archives;
mod build;
mod crates;
mod envtest;
mod files;
mod golang;
mod image;
mod java;
mod maven;
mod npm;
mod platform;
mod read;
mod release;
mod sbom;
mod wheels;

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::ValueEnum;
use fake_apiserver::scenario::Version;

use self::files::{Entry, Style, sha256};
use self::platform::{PLATFORMS, Platform};
use self::read::Runnable;
use self::release::{Artifact, Binary, Release};
use crate::clients::{USAGE, root};

/// Time of all files unless SOURCE_DATE_EPOCH is set: the first that a zip file can have, 1980-01-01.
const EPOCH: u64 = 315_532_800;

const SUMS: &str = "SHA256SUMS";

/// Default of `--to`.
const TARGET: &str = "target/dist";

/// What is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
enum Kind {
    /// An archive per platform: program, completions, manual pages, scenarios, licences
    Archives,
    /// Python wheels
    Wheels,
    /// npm packages
    Npm,
    /// A Maven repository with the JUnit extension and the programs (needs Maven)
    Java,
    /// A module proxy with the Go module, and the archives it downloads
    Go,
    /// Packages for crates.io, and their order
    Crates,
    /// Container image, an OCI archive of all platforms
    Image,
    /// Archives and index for `setup-envtest use --index`
    Envtest,
    /// SBOM of the program (CycloneDX)
    Sbom,
}

impl Kind {
    /// Returns its name on the command line.
    fn name(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Platform to build [default: those of Linux, or none with --binary]; may be repeated.
    #[arg(long, value_name = "TARGET")]
    platform: Vec<String>,
    /// Package this program instead of building one; may be repeated, once per platform.
    #[arg(long, value_name = "FILE")]
    binary: Vec<PathBuf>,
    /// Also write the digests of the archives into the repository, for the Go module and the action.
    #[arg(long)]
    record: bool,
    /// Accept programs that are not for publication: linked dynamically.
    #[arg(long, requires = "binary")]
    draft: bool,
    /// Make only these.
    #[arg(long, value_delimiter = ',', value_name = "KIND,…")]
    only: Vec<Kind>,
    /// Folder to write into; its earlier files are removed.
    #[arg(long, value_name = "FOLDER", default_value = TARGET)]
    to: PathBuf,
    /// URL of the folder of the published files [default: the release of this version on GitHub].
    #[arg(long)]
    url: Option<String>,
    /// Compression, 0 to 9.
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u32).range(0..=9))]
    level: u32,
}

/// Exit code 0: written; 2: something is missing or wrong, and the folder is incomplete.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    match dist(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            note(&problem);
            ExitCode::from(USAGE)
        }
    }
}

fn dist(arguments: &Arguments) -> Result<(), String> {
    // A relative path would be another one in each folder, and the folder's name is part of the build.
    let root = root()
        .canonicalize()
        .map_err(|why| format!("the repository: {why}"))?;
    let kinds: BTreeSet<Kind> = match arguments.only.as_slice() {
        [] => Kind::value_variants().iter().copied().collect(),
        some => some.iter().copied().collect(),
    };
    let to = root.join(&arguments.to);
    // Beside the result: two of this program do not share it.
    let work = to.with_extension("work");
    let release = release(arguments, &root, &work)?;
    emptied(&to)?;
    let mut artifacts = Vec::new();
    let mut archives = Vec::new();
    for kind in kinds {
        // Each takes seconds.
        note(&format!("{}: packaging", kind.name()));
        let made = match kind {
            Kind::Archives => {
                archives = archives::artifacts(&release)?;
                Vec::new()
            }
            Kind::Wheels => wheels::artifacts(&release)?,
            Kind::Npm => npm::artifacts(&release)?,
            Kind::Java => java::artifacts(&release, &maven::compiled(&root, &work)?)?,
            Kind::Go => {
                if archives.is_empty() {
                    archives = archives::artifacts(&release)?;
                }
                golang::artifacts(&release, &archives)?
            }
            Kind::Crates => crates::artifacts(&root, &work)?,
            Kind::Image => image::artifacts(&release)?,
            Kind::Envtest => envtest::artifacts(
                &release,
                Version::NEWEST.recorded_release().trim_start_matches('v'),
            )?,
            Kind::Sbom => {
                let sbom = release
                    .documents
                    .iter()
                    .filter(|entry| entry.path == "sbom.cdx.json");
                sbom.map(|entry| named_sbom(entry, &release.version)).collect()
            }
        };
        write(&to, &made)?;
        artifacts.extend(made);
    }
    write(&to, &archives)?;
    if arguments.record {
        let digests = golang::digests(&release, &archives)?;
        write(&root, &[digests])?;
    }
    artifacts.extend(archives);
    write(&to, &[sums(&artifacts)])
}

/// Removes the files of an earlier run from a folder, and of nothing else. The empty list of digests is replaced at the end of a run.
fn emptied(to: &Path) -> Result<(), String> {
    let failed = |why: std::io::Error| format!("{}: {why}", to.display());
    std::fs::create_dir_all(to).map_err(failed)?;
    let sums = to.join(SUMS);
    if !sums.exists() && std::fs::read_dir(to).map_err(failed)?.next().is_some() {
        return Err(format!(
            "{} has files and no {SUMS}: it is not of this command; name another folder, or remove it",
            to.display()
        ));
    }
    std::fs::remove_dir_all(to).map_err(failed)?;
    std::fs::create_dir_all(to).map_err(failed)?;
    std::fs::write(sums, "").map_err(failed)
}

/// Builds or reads the programs, and gathers everything that is packaged with them.
fn release(arguments: &Arguments, root: &Path, work: &Path) -> Result<Release, String> {
    let version = read::version(root)?;
    let programs = programs(arguments, root)?;
    for program in &programs {
        program.check(arguments.draft)?;
    }
    std::fs::create_dir_all(work).map_err(|why| format!("{}: {why}", work.display()))?;
    note("documents: completions, manual pages, licences, SBOM");
    let platforms: Vec<&Platform> = programs.iter().map(|program| program.binary.platform).collect();
    let sources = read::sources(root)?;
    let linked = read::linked(root, &platforms)?;
    let mut documents = read::documents(&sources, &linked, &version)?;
    let runnable = programs
        .iter()
        .map(|program| (program.binary.platform, &*program.path));
    documents.extend(Runnable::first(runnable, &version)?.documents(work)?);
    let published = || format!("{}/releases/download/v{version}", env!("CARGO_PKG_REPOSITORY"));
    let url = arguments.url.clone().unwrap_or_else(published);
    Ok(Release {
        url: url.trim_end_matches('/').to_owned(),
        style: Style {
            epoch: epoch()?,
            level: arguments.level,
        },
        version,
        binaries: programs.into_iter().map(|program| program.binary).collect(),
        sources,
        documents,
    })
}

/// A program that is packaged.
struct Program {
    path: PathBuf,
    binary: Binary,
    /// Whether it needs the C library of the machine.
    dynamic: bool,
}

impl Program {
    /// Reads an executable, whose header has its platform.
    fn read(path: &Path) -> Result<Self, String> {
        let wrong = |why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
        let path = path.canonicalize().map_err(|why| wrong(&why))?;
        let bytes = std::fs::read(&path).map_err(|why| wrong(&why))?;
        let platform::Executable { platform, dynamic } =
            platform::executable(&bytes).map_err(|why| wrong(&why))?;
        Ok(Self {
            path,
            binary: Binary { platform, bytes },
            dynamic,
        })
    }

    /// Checks that it runs where it is installed, and notes what it is. `is_draft`: it is not for publication.
    fn check(&self, is_draft: bool) -> Result<(), String> {
        let Binary { platform, bytes } = &self.binary;
        if self.dynamic && platform.go.0 == "linux" {
            let what = format!(
                "{} is linked dynamically: it runs only where the C library is as new",
                self.path.display()
            );
            if !is_draft {
                return Err(format!("{what}; let this command build it, or add --draft"));
            }
            note(&format!("{what}; do not publish it"));
        }
        note(&format!(
            "{}: {}, {} kB",
            platform.target,
            platform.state.word(),
            bytes.len().div_ceil(1000)
        ));
        Ok(())
    }
}

/// Returns the program of each platform: named, or built here.
fn programs(arguments: &Arguments, root: &Path) -> Result<Vec<Program>, String> {
    let mut programs: Vec<Program> = Vec::new();
    for path in &arguments.binary {
        let program = Program::read(path)?;
        let target = program.binary.platform.target;
        if programs
            .iter()
            .any(|other| other.binary.platform.target == target)
        {
            return Err(format!("{}: a second program for {target}", path.display()));
        }
        programs.push(program);
    }
    let platforms: Vec<&Platform> = if !programs.is_empty() && arguments.platform.is_empty() {
        Vec::new()
    } else if arguments.platform.is_empty() {
        PLATFORMS.iter().filter(|platform| platform.default).collect()
    } else {
        arguments
            .platform
            .iter()
            .map(|target| platform::named(target))
            .collect::<Result<_, _>>()?
    };
    for platform in platforms {
        note(&format!(
            "{}: building (minutes, unless it is built already)",
            platform.target
        ));
        programs.push(Program::read(&build::program(platform, root)?)?);
    }
    Ok(programs)
}

fn named_sbom(entry: &Entry, version: &str) -> Artifact {
    let bytes = match &entry.content {
        files::Content::File(bytes) => bytes.clone(),
        files::Content::Folder => Vec::new(),
    };
    Artifact::new(format!("fake-apiserver-{version}.cdx.json"), bytes)
}

/// Returns the list of digests that `sha256sum --check` reads.
fn sums(artifacts: &[Artifact]) -> Artifact {
    let mut lines: Vec<String> = artifacts
        .iter()
        .map(|artifact| format!("{}  {}\n", sha256(&artifact.bytes), artifact.path))
        .collect();
    lines.sort_by(|one, other| one[66..].cmp(&other[66..]));
    Artifact::new(SUMS, lines.concat())
}

/// Returns SOURCE_DATE_EPOCH, or [`EPOCH`].
fn epoch() -> Result<u64, String> {
    match std::env::var("SOURCE_DATE_EPOCH") {
        Ok(text) => text
            .parse()
            .map_err(|_| format!("SOURCE_DATE_EPOCH is {text:?}, not a number of seconds")),
        Err(_) => Ok(EPOCH),
    }
}

/// Returns a time as RFC 3339 has it.
fn timestamp(epoch: u64) -> Result<String, String> {
    let time = i64::try_from(epoch)
        .ok()
        .and_then(|seconds| jiff::Timestamp::from_second(seconds).ok());
    time.map(|time| time.to_string())
        .ok_or_else(|| format!("{epoch} s is no time"))
}

fn write(folder: &Path, artifacts: &[Artifact]) -> Result<(), String> {
    for artifact in artifacts {
        let path = folder.join(&artifact.path);
        let failed = |why: std::io::Error| format!("{}: {why}", path.display());
        std::fs::create_dir_all(path.parent().unwrap_or(folder)).map_err(failed)?;
        std::fs::write(&path, &artifact.bytes).map_err(failed)?;
        note(&format!(
            "{} ({} kB)",
            artifact.path,
            artifact.bytes.len().div_ceil(1000)
        ));
    }
    Ok(())
}

fn note(line: &str) {
    let _closed_pipe = writeln!(std::io::stderr(), "dist: {line}");
}

#[cfg(test)]
mod tests {
    use super::release::samples;
    use super::*;

    /// Files of Cargo would be taken for those of an earlier release, or be removed with them.
    #[test]
    fn cargo_does_not_build_into_the_folder() {
        let manifest = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
        let manifest: toml::Table = toml::from_str(&manifest).unwrap();
        let profiles = manifest["profile"].as_table().unwrap().keys();
        let folders: Vec<String> = profiles.map(|profile| format!("target/{profile}")).collect();
        assert!(!folders.iter().any(|folder| folder == TARGET), "{folders:?}");
    }

    fn all(release: &Release) -> Vec<Artifact> {
        let archives = archives::artifacts(release).unwrap();
        let compiled = maven::Compiled {
            classes: vec![Entry::file("A.class", "class")],
            documentation: vec![Entry::file("index.html", "page")],
        };
        let made = [
            wheels::artifacts(release),
            npm::artifacts(release),
            java::artifacts(release, &compiled),
            golang::artifacts(release, &archives),
            image::artifacts(release),
            envtest::artifacts(release, "1.37.2"),
        ];
        let mut all: Vec<Artifact> = made.into_iter().flat_map(Result::unwrap).collect();
        all.extend(archives);
        all
    }

    #[test]
    fn packaging_twice_gives_the_same_bytes() {
        let (once, twice) = (all(&samples::release()), all(&samples::release()));
        assert_eq!(sums(&once), sums(&twice));
        let paths: BTreeSet<&str> = once.iter().map(|artifact| artifact.path.as_str()).collect();
        assert_eq!(paths.len(), once.len(), "every artefact has its own path");
    }

    #[test]
    fn a_folder_with_other_files_is_kept() {
        let folder = std::env::temp_dir().join(format!("fake-apiserver-dist-{}", std::process::id()));
        emptied(&folder).unwrap();
        std::fs::write(folder.join("an artefact"), "").unwrap();
        emptied(&folder).unwrap();
        assert!(!folder.join("an artefact").exists());
        std::fs::remove_file(folder.join(SUMS)).unwrap();
        std::fs::write(folder.join("a file"), "").unwrap();
        let refused = emptied(&folder).unwrap_err();
        assert!(refused.contains("it is not of this command"), "{refused}");
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn sums_are_sorted_by_path() {
        let text = sums(&[Artifact::new("b", "1"), Artifact::new("a", "2")]);
        let text = std::str::from_utf8(&text.bytes).unwrap();
        let paths: Vec<&str> = text.lines().map(|line| &line[66..]).collect();
        assert_eq!(paths, ["a", "b"]);
    }
}

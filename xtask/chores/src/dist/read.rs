//! Reads what a release is made of: tracked files, documents that the program prints, and Cargo's metadata. It must not know a
//! packaging format.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;
use serde_json::Value;

use super::files::Entry;
use super::platform::Platform;
use super::sbom::{self, Linked};
use crate::cargo::cargo;

/// Folders and files that packages are made from.
const SOURCES: [&str; 3] = ["packages", "scenarios", "LICENSE"];

/// Returns the files of the repository that packages are made from, by path: tracked ones, and new ones that are not ignored.
///
/// # Errors
/// Git cannot list them, or one cannot be read.
pub(super) fn sources(root: &Path) -> Result<BTreeMap<String, Vec<u8>>, String> {
    let paths = listed(root, &SOURCES)?;
    let read = paths.into_iter().map(|path| {
        let bytes = std::fs::read(root.join(&path)).map_err(|why| format!("{path}: {why}"))?;
        Ok((path, bytes))
    });
    read.collect()
}

/// Returns the paths of files below some folders that exist and that Git does not ignore.
///
/// # Errors
/// Git is missing or fails.
pub(super) fn listed(root: &Path, folders: &[&str]) -> Result<Vec<String>, String> {
    let mut git = Command::new("git");
    git.args([
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
        "--",
    ])
    .args(folders);
    let output = output(git.current_dir(root))?;
    let paths: BTreeSet<&str> = output.split('\0').filter(|path| !path.is_empty()).collect();
    let exists = |path: &&str| root.join(path).symlink_metadata().is_ok();
    Ok(paths.into_iter().filter(exists).map(str::to_owned).collect())
}

/// Returns the version of the workspace.
///
/// # Errors
/// Its manifest has none.
pub(super) fn version(root: &Path) -> Result<String, String> {
    #[derive(Deserialize)]
    struct Manifest {
        workspace: Workspace,
    }
    #[derive(Deserialize)]
    struct Workspace {
        package: Package,
    }
    #[derive(Deserialize)]
    struct Package {
        version: String,
    }
    let text =
        std::fs::read_to_string(root.join("Cargo.toml")).map_err(|why| format!("Cargo.toml: {why}"))?;
    let manifest: Manifest = toml::from_str(&text).map_err(|why| format!("Cargo.toml: {why}"))?;
    Ok(manifest.workspace.package.version)
}

/// A program of the release that this machine can run.
pub(super) struct Runnable(Vec<PathBuf>);

impl Runnable {
    /// Returns the first of these binaries that can run here, also by an emulator, after comparing its version.
    ///
    /// # Errors
    /// None can run, or one has another version.
    pub(super) fn first<'p>(
        binaries: impl Iterator<Item = (&'p Platform, &'p Path)>,
        version: &str,
    ) -> Result<Self, String> {
        for (platform, path) in binaries {
            let emulator = format!(
                "qemu-{}-static",
                platform.target.split('-').next().unwrap_or_default()
            );
            for command in [vec![path.to_owned()], vec![emulator.into(), path.to_owned()]] {
                let program = Self(command);
                let Ok(printed) = program.run(&["--version"]) else {
                    continue;
                };
                if printed.trim() != format!("fake-apiserver {version}") {
                    let path = path.display();
                    return Err(format!(
                        "{path} is {}, not version {version}: build it from this commit",
                        printed.trim()
                    ));
                }
                return Ok(program);
            }
        }
        Err("no binary runs on this machine, to print completions and manual pages: add one that does by --binary, \
             or install an emulator: apt-get install qemu-user-static"
            .to_owned())
    }

    fn run(&self, arguments: &[&str]) -> Result<String, String> {
        let mut command = Command::new(&self.0[0]);
        output(command.args(&self.0[1..]).args(arguments))
    }

    /// Returns the completions and manual pages that the program prints. `work`: a folder for the pages.
    ///
    /// # Errors
    /// The program fails.
    pub(super) fn documents(&self, work: &Path) -> Result<Vec<Entry>, String> {
        let shells = [
            ("bash", "fake-apiserver.bash"),
            ("zsh", "_fake-apiserver"),
            ("fish", "fake-apiserver.fish"),
        ];
        let mut entries = Vec::new();
        for (shell, file) in shells {
            entries.push(Entry::file(
                format!("completions/{file}"),
                self.run(&["completions", shell])?,
            ));
        }
        let manuals = work.join("man");
        let failed = |why: std::io::Error| format!("{}: {why}", manuals.display());
        if manuals.exists() {
            std::fs::remove_dir_all(&manuals).map_err(failed)?;
        }
        self.run(&["man", &manuals.display().to_string()])?;
        for page in std::fs::read_dir(&manuals).map_err(failed)? {
            let page = page.map_err(failed)?;
            let text = std::fs::read(page.path()).map_err(failed)?;
            entries.push(Entry::file(
                format!("man/man1/{}", page.file_name().display()),
                text,
            ));
        }
        entries.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(entries)
    }
}

/// Returns the scenarios and licences of an archive, with the SBOM, from the files of the repository and the linked crates.
///
/// # Errors
/// A licence text is missing.
pub(super) fn documents(
    sources: &BTreeMap<String, Vec<u8>>,
    linked: &[Linked],
    version: &str,
) -> Result<Vec<Entry>, String> {
    let scenarios = sources
        .iter()
        .filter(|(path, _)| path.starts_with("scenarios/") && path.ends_with(".yaml"));
    let mut entries: Vec<Entry> = scenarios
        .map(|(path, bytes)| Entry::file(path.clone(), bytes.clone()))
        .collect();
    let licence = sources.get("LICENSE").ok_or("LICENSE is not tracked")?;
    entries.push(Entry::file("LICENSE", licence.clone()));
    entries.push(Entry::file("THIRD-PARTY.txt", sbom::licences(linked)?));
    entries.push(Entry::file("sbom.cdx.json", sbom::cyclonedx(linked, version)));
    Ok(entries)
}

/// Returns the crates that the program is linked with on some platforms, in the order of their names.
///
/// # Errors
/// Cargo fails, or a source is missing.
pub(super) fn linked(root: &Path, platforms: &[&Platform]) -> Result<Vec<Linked>, String> {
    let mut wanted = BTreeSet::new();
    for platform in platforms {
        let mut tree = cargo();
        tree.args([
            "tree",
            "--locked",
            "--package",
            "fake-apiserver-cli",
            "--edges",
            "normal,no-proc-macro",
            "--prefix",
            "none",
        ]);
        tree.args(["--format", "{p}", "--target", platform.target]);
        let printed = output(tree.current_dir(root))?;
        wanted.extend(printed.lines().filter_map(|line| {
            let mut words = line.split(' ');
            let (name, version) = (words.next()?, words.next()?.strip_prefix('v')?);
            Some(format!("{name}@{version}"))
        }));
    }
    let mut metadata = cargo();
    metadata.args(["metadata", "--locked", "--format-version", "1"]);
    let metadata: Value =
        serde_json::from_str(&output(metadata.current_dir(root))?).map_err(|why| why.to_string())?;
    let lock =
        std::fs::read_to_string(root.join("Cargo.lock")).map_err(|why| format!("Cargo.lock: {why}"))?;
    crates(&metadata, &checksums(&lock)?, &wanted)
}

/// Returns the checksums of packages in a lock file, by `name@version`.
fn checksums(lock: &str) -> Result<BTreeMap<String, String>, String> {
    #[derive(Deserialize)]
    struct Lock {
        package: Vec<Locked>,
    }
    #[derive(Deserialize)]
    struct Locked {
        name: String,
        version: String,
        checksum: Option<String>,
    }
    let lock: Lock = toml::from_str(lock).map_err(|why| format!("Cargo.lock: {why}"))?;
    let sums = lock
        .package
        .into_iter()
        .filter_map(|one| Some((format!("{}@{}", one.name, one.version), one.checksum?)));
    Ok(sums.collect())
}

/// Joins Cargo's metadata and checksums for the wanted crates.
fn crates(
    metadata: &Value,
    checksums: &BTreeMap<String, String>,
    wanted: &BTreeSet<String>,
) -> Result<Vec<Linked>, String> {
    let packages = metadata["packages"]
        .as_array()
        .ok_or("metadata without packages")?;
    let text = |package: &Value, key: &str| package[key].as_str().unwrap_or_default().to_owned();
    let id = |package: &Value| format!("{}@{}", text(package, "name"), text(package, "version"));
    let ids: BTreeMap<String, String> = packages
        .iter()
        .map(|package| (text(package, "id"), id(package)))
        .collect();
    let nodes = metadata["resolve"]["nodes"]
        .as_array()
        .ok_or("metadata without dependencies")?;
    let edges: BTreeMap<&str, &Value> = nodes
        .iter()
        .filter_map(|node| Some((node["id"].as_str()?, node)))
        .collect();
    let mut found = Vec::new();
    for package in packages.iter().filter(|package| wanted.contains(&id(package))) {
        let node = edges
            .get(text(package, "id").as_str())
            .map(|node| &node["dependencies"]);
        let on = node.and_then(Value::as_array).into_iter().flatten();
        let on = on
            .filter_map(|on| ids.get(on.as_str()?))
            .filter(|on| wanted.contains(*on));
        let folder = PathBuf::from(text(package, "manifest_path"));
        let folder = folder.parent().unwrap_or(Path::new("."));
        found.push(Linked {
            name: text(package, "name"),
            version: text(package, "version"),
            license: text(package, "license"),
            description: text(package, "description")
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" "),
            checksum: checksums.get(&id(package)).cloned(),
            dependencies: on.cloned().collect(),
            texts: licence_files(folder)?,
        });
    }
    found.sort_by_key(Linked::id);
    Ok(found)
}

/// Returns the licence files in the folder of a crate, by name.
fn licence_files(folder: &Path) -> Result<Vec<(String, String)>, String> {
    const NAMES: [&str; 5] = ["license", "licence", "copying", "notice", "unlicense"];
    let failed = |why: std::io::Error| format!("{}: {why}", folder.display());
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if path.is_file() && NAMES.iter().any(|start| name.to_lowercase().starts_with(start)) {
            let bytes = std::fs::read(&path).map_err(failed)?;
            found.push((name, String::from_utf8_lossy(&bytes).replace("\r\n", "\n")));
        }
    }
    found.sort();
    Ok(found)
}

/// Runs a command and returns what it prints.
///
/// # Errors
/// It is missing or fails; then the error has what it printed.
pub(super) fn output(command: &mut Command) -> Result<String, String> {
    let program = command.get_program().display().to_string();
    let output = command
        .output()
        .map_err(|why| format!("cannot run {program}: {why}"))?;
    if !output.status.success() {
        let printed = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
        return Err(format!(
            "{program} failed ({}): {}",
            output.status,
            printed.concat().trim()
        ));
    }
    String::from_utf8(output.stdout).map_err(|_| format!("{program} printed no UTF-8"))
}

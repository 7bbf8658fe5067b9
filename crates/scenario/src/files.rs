//! Scenario files on disk: finds the files for command-line paths and reads their text, with limits.
//!
//! Independent of the content of scenarios.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::Scenario;
use super::errors::LoadErrors;
use super::problem::{Code, Problem};
use super::span::Span;

/// Maximum size of a scenario file, in bytes; checked before reading.
pub(super) const LARGEST_FILE: usize = 1 << 20;

/// File extensions of scenarios in a folder.
const ENDINGS: [&str; 2] = ["yaml", "yml"];

/// A scenario file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScenarioFile {
    /// Path of the file.
    pub path: PathBuf,
    /// The folder that its id is relative to: `root/group/claim.yaml` is `group/claim`.
    pub root: PathBuf,
    /// Whether the file itself was named, not a folder that contains it.
    pub named: bool,
}

impl ScenarioFile {
    /// Creates an entry for a file named by the user.
    pub fn named(path: &Path) -> Self {
        let root = root_of(path).or(path.parent()).unwrap_or(Path::new(""));
        Self {
            path: path.to_owned(),
            root: root.to_owned(),
            named: true,
        }
    }

    /// Reads the scenario.
    ///
    /// # Errors
    /// All errors of the file.
    pub fn load(&self) -> Result<Scenario, LoadErrors> {
        super::load(&self.path, &self.root)
    }
}

/// Finds the scenario files for `paths`: files themselves, and for folders all `.yaml` and `.yml` files including
/// subfolders, sorted by name. A folder is entered once, even if several links lead to it. Transcripts (`.snap`) are
/// skipped, because shell patterns match them too.
///
/// Ids are relative to the nearest ancestor folder called `scenarios`; without one to the given folder, or to the
/// folder of the file.
///
/// Returns the files, and an error for each folder that cannot be read or contains no scenario.
pub fn find(paths: &[PathBuf]) -> (Vec<ScenarioFile>, Vec<LoadErrors>) {
    let (mut files, mut errors) = (Vec::new(), Vec::new());
    for path in paths {
        if !path.is_dir() {
            if path.extension().is_none_or(|ending| ending != "snap") {
                files.push(ScenarioFile::named(path));
            }
            continue;
        }
        let before = (files.len(), errors.len());
        let root = root_of(&path.join("file")).unwrap_or(path).to_owned();
        collect(path, &root, &mut BTreeSet::new(), &mut files, &mut errors);
        if (files.len(), errors.len()) == before {
            let problem = Problem::new(
                Code::Empty,
                Span::default(),
                format!("there is no scenario in {}", path.display()),
            )
            .hint("scenarios end in .yaml or .yml");
            errors.push(LoadErrors::new(path, "", vec![problem]));
        }
    }
    (files, errors)
}

/// Returns the nearest ancestor folder called `scenarios`.
fn root_of(path: &Path) -> Option<&Path> {
    path.ancestors()
        .skip(1)
        .find(|folder| folder.ends_with("scenarios"))
}

fn collect(
    folder: &Path,
    root: &Path,
    entered: &mut BTreeSet<PathBuf>,
    files: &mut Vec<ScenarioFile>,
    errors: &mut Vec<LoadErrors>,
) {
    let read = std::fs::canonicalize(folder).and_then(|real| {
        if !entered.insert(real) {
            return Ok(Vec::new());
        }
        let entries = std::fs::read_dir(folder)?;
        entries.map(|entry| entry.map(|entry| entry.path())).collect()
    });
    let mut entries: Vec<PathBuf> = match read {
        Ok(entries) => entries,
        Err(error) => {
            let message = format!("the folder cannot be read: {error}");
            let problem = Problem::new(Code::Unreadable, Span::default(), message);
            return errors.push(LoadErrors::new(folder, "", vec![problem]));
        }
    };
    entries.sort();
    for path in entries {
        if path.is_dir() {
            collect(&path, root, entered, files, errors);
        } else if path
            .extension()
            .is_some_and(|ending| ENDINGS.iter().any(|known| ending == *known))
        {
            files.push(ScenarioFile {
                path,
                root: root.to_owned(),
                named: false,
            });
        }
    }
}

/// Reads a regular file of limited size.
///
/// # Errors
/// If it is not a regular file, is too large, is not UTF-8 (with the position of the first invalid byte), or cannot
/// be read.
pub(super) fn read(path: &Path) -> Result<String, LoadErrors> {
    let unreadable = |message: String, hint: &str| {
        let problem = Problem::new(Code::Unreadable, Span::default(), message).hint(hint);
        LoadErrors::new(path, "", vec![problem])
    };
    let failed = |error: std::io::Error| {
        unreadable(
            format!("the file cannot be read: {error}"),
            "look at its path and its rights",
        )
    };
    let metadata = std::fs::metadata(path).map_err(failed)?;
    if !metadata.is_file() {
        // Opening a pipe blocks until there is a writer, and a device may be endless.
        let kind = if metadata.is_dir() {
            "a folder"
        } else {
            "a pipe or a device"
        };
        return Err(unreadable(
            format!("this is {kind}, not a regular file"),
            "write the scenario to a file",
        ));
    }
    let mut bytes = Vec::new();
    // Reads one byte more than allowed to detect larger files; the file may also grow meanwhile.
    let opened = File::open(path).map_err(failed)?;
    opened
        .take(LARGEST_FILE as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    if bytes.len() > LARGEST_FILE {
        let length = metadata.len().max(bytes.len() as u64);
        return Err(LoadErrors::new(path, "", vec![too_large(length, "a scenario")]));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let byte = error.as_bytes().get(at).copied().unwrap_or_default();
        let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
        let span = Span {
            start: at,
            end: at + 1,
        };
        let message = format!("the file is not UTF-8: byte 0x{byte:02x} at offset {at}");
        let problem = Problem::new(Code::Unreadable, span, message)
            .label("not UTF-8 from here on")
            .hint("save it as UTF-8");
        LoadErrors::new(path, &text, vec![problem])
    })
}

/// Returns the error for a text of `length` bytes that exceeds the limit.
pub(super) fn too_large(length: u64, what: &str) -> Problem {
    let message = format!("the file has {length} bytes; {what} has at most {LARGEST_FILE}");
    Problem::new(Code::OutOfRange, Span::default(), message)
        .hint("`repeat:` makes many objects and `filler:` makes large ones")
}

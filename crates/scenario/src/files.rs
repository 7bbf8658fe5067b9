//! Scenario files on disk: which files a path on a command line means, and their text, bounded.
//!
//! It must not know what a scenario says.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::Scenario;
use super::errors::LoadErrors;
use super::problem::{Code, Problem};
use super::span::Span;

/// No scenario is larger, in bytes: what comes in is bounded before it is read.
pub(super) const LARGEST_FILE: usize = 1 << 20;

/// Endings of the files in a folder that are scenarios.
const ENDINGS: [&str; 2] = ["yaml", "yml"];

/// A scenario file that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScenarioFile {
    /// Where it is.
    pub path: PathBuf,
    /// The folder its id is counted from: `root/group/claim.yaml` is `group/claim`.
    pub root: PathBuf,
    /// The file itself was named, not a folder it is in.
    pub named: bool,
}

impl ScenarioFile {
    /// The file at `path`, named by its user.
    pub fn named(path: &Path) -> Self {
        let root = root_of(path).or(path.parent()).unwrap_or(Path::new(""));
        Self {
            path: path.to_owned(),
            root: root.to_owned(),
            named: true,
        }
    }

    /// Reads the scenario in it.
    ///
    /// # Errors
    /// Everything that is wrong with it, at once.
    pub fn load(&self) -> Result<Scenario, LoadErrors> {
        super::load(&self.path, &self.root)
    }
}

/// Finds the scenario files that `paths` mean: files as they are, and of folders what ends in `.yaml` or `.yml`, in order of
/// their names, folders inside them too. A folder is entered once, whatever links lead to it. Transcripts (`.snap`) are left
/// out, since a pattern of the shell takes them along.
///
/// Ids are counted from the nearest folder called `scenarios` above a file; without one from the folder given, or from the
/// file's own.
///
/// Returns the files, and an error for each folder that cannot be read or has no scenario.
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

/// The nearest folder called `scenarios` above a file.
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

/// Reads the text of a regular file of bounded size.
///
/// # Errors
/// It is no regular file, too large, no UTF-8 (with the place of the first byte that is not), or cannot be read.
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
        // Opening a pipe waits for somebody who writes, and a device may have no end.
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
    // One more than allowed shows that there is more; the file may also grow meanwhile.
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

/// The mistake of a text of `length` bytes that is larger than anything of its kind.
pub(super) fn too_large(length: u64, what: &str) -> Problem {
    let message = format!("the file has {length} bytes; {what} has at most {LARGEST_FILE}");
    Problem::new(Code::OutOfRange, Span::default(), message)
        .hint("`repeat:` makes many objects and `filler:` makes large ones")
}

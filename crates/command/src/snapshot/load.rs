//! `serve --from`: reads a snapshot from its file or folder. All mistakes are reported at once, each with file and line.
//!
//! It must not know kinds: the server reports unknown ones.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::path::{Path, PathBuf};

use fake_apiserver::model::{NotAdded, Snapshot};
use fake_apiserver::scenario::{ServerSettings, Version};
use fake_apiserver::server::Server;
use serde_json::Value;

use super::format::{End, HEAD_FILE, Header, Line, classified, unreadable};
use crate::Failure;

/// Mistakes that are shown; more are counted.
const SHOWN_MAX: usize = 100;

/// Kinds that are read before all others, because they say what is served.
const FIRST: [&str; 2] = ["CustomResourceDefinition", "APIService"];

/// A server that begins with a snapshot.
pub(crate) struct Loaded {
    pub(crate) server: Server,
    /// Version that it emulates.
    pub(crate) version: Version,
    /// Newest revision of the snapshot.
    pub(crate) revision: u64,
    /// Number of objects.
    pub(crate) objects: usize,
    /// What the user should know, one a line.
    pub(crate) notes: Vec<String>,
}

/// Choices of the user.
pub(crate) struct Wanted<'a> {
    pub(crate) path: &'a Path,
    /// Version to emulate; `None`: that of the snapshot.
    pub(crate) version: Option<Version>,
    pub(crate) settings: ServerSettings,
    pub(crate) seed: u64,
    /// Without the objects that kube-apiserver creates, except namespaces.
    pub(crate) bare: bool,
}

/// Reads a snapshot into a server.
///
/// # Errors
/// All mistakes, or the files cannot be read.
pub(crate) fn load(wanted: Wanted<'_>) -> Result<Loaded, Failure> {
    let files = files_of(wanted.path)?;
    let mut mistakes = Mistakes::default();
    let mut found = Found::default();
    for file in &files {
        each_line(file, |number, line| match classified(line) {
            Ok(Line::Header(header)) if found.header.is_none() => found.header = Some(header),
            Ok(Line::End(end)) if found.end.is_none() => found.end = Some(end),
            Ok(Line::Header(_) | Line::End(_)) => {
                mistakes.add(
                    file,
                    number,
                    "a second header or end: a snapshot has one, so these are several",
                );
            }
            Ok(Line::Object(kind)) if FIRST.contains(&kind.as_str()) => match serde_json::from_slice(line) {
                Ok(object) => found.first.push((file.clone(), number, object)),
                Err(error) => mistakes.add(file, number, &unreadable(line, &error)),
            },
            Ok(Line::Object(..)) => {}
            Err(why) => mistakes.add(file, number, &why),
        })?;
    }
    let (header, end) = found.whole(wanted.path, &mut mistakes);
    let (Some(header), Some(end)) = (header, end) else {
        return Err(mistakes.failure());
    };
    let Some(oldest) = header
        .resource_version
        .parse::<u64>()
        .ok()
        .filter(|oldest| *oldest > 0)
    else {
        mistakes.whole(
            wanted.path,
            "the resourceVersion of its header is no number: take the snapshot again",
        );
        return Err(mistakes.failure());
    };
    let mut notes = Vec::new();
    let version = version(&header, wanted.version, &mut notes);
    let settings = ServerSettings {
        version,
        revision: oldest,
        ..wanted.settings
    };
    let newer = end
        .resources
        .iter()
        .filter_map(|listed| listed.resource_version.as_ref()?.parse().ok());
    let revision = newer.max().unwrap_or(oldest).max(oldest);
    let mut snapshot = Snapshot::new(&settings, revision, wanted.bare);
    for listed in end.resources.iter().filter(|listed| listed.all) {
        snapshot.has_all_of(&listed.api_version, &listed.kind);
    }
    let mut adding = Adding {
        snapshot,
        mistakes,
        unserved: BTreeMap::new(),
        objects: 0,
    };
    for (file, number, object) in found.first {
        adding.add(&file, number, object);
    }
    adding.snapshot.define();
    for file in &files {
        each_line(file, |number, line| {
            let is_later =
                matches!(classified(line), Ok(Line::Object(kind)) if !FIRST.contains(&kind.as_str()));
            if !is_later {
                return;
            }
            match serde_json::from_slice(line) {
                Ok(object) => adding.add(file, number, object),
                Err(error) => adding.mistakes.add(file, number, &unreadable(line, &error)),
            }
        })?;
    }
    if !adding.mistakes.is_empty() {
        return Err(adding.mistakes.failure());
    }
    for ((api_version, kind), count) in &adding.unserved {
        let objects = if *count == 1 { "object" } else { "objects" };
        notes.push(format!(
            "warning: {count} {objects} of {kind} ({api_version}) left out: Kubernetes {version} does not serve them"
        ));
    }
    let upgraded = minor_of(&header.kubernetes).is_some_and(|minor| minor != u32::from(version.minor()));
    Ok(Loaded {
        server: Server::from_snapshot(adding.snapshot, upgraded, settings, wanted.seed),
        version,
        revision,
        objects: adding.objects,
        notes,
    })
}

/// What the first reading finds.
#[derive(Default)]
struct Found {
    header: Option<Header>,
    end: Option<End>,
    /// Definitions, and what belongs to them.
    first: Vec<(PathBuf, usize, Value)>,
}

impl Found {
    /// Returns header and end, if it is a whole snapshot.
    fn whole(&mut self, path: &Path, mistakes: &mut Mistakes) -> (Option<Header>, Option<End>) {
        let (header, end) = (self.header.take(), self.end.take());
        if header.is_none() {
            let folder = if path.is_dir() {
                format!(" ({HEAD_FILE})")
            } else {
                String::new()
            };
            mistakes.whole(
                path,
                &format!(
                    "no snapshot: it has no header{folder}; fake-apiserver snapshot writes one, and --objects reads other files"
                ),
            );
        } else if end.is_none() {
            mistakes.whole(
                path,
                "the snapshot is cut: its last line is missing; take it again",
            );
        }
        (header, end)
    }
}

/// Adds objects.
struct Adding {
    snapshot: Snapshot,
    mistakes: Mistakes,
    /// Number of objects by API version and kind.
    unserved: BTreeMap<(String, String), u64>,
    objects: usize,
}

impl Adding {
    fn add(&mut self, file: &Path, number: usize, object: Value) {
        match self.snapshot.add(object) {
            Ok(()) => self.objects += 1,
            Err(NotAdded::NotServed(api_version, kind)) => {
                *self.unserved.entry((api_version, kind)).or_default() += 1;
            }
            Err(NotAdded::Invalid(why)) => self.mistakes.add(file, number, &why),
        }
    }
}

/// Mistakes in the files.
#[derive(Default)]
struct Mistakes {
    lines: Vec<String>,
    more: usize,
}

impl Mistakes {
    fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    fn add(&mut self, file: &Path, number: usize, why: &str) {
        self.push(format!("{}:{number}: {why}", file.display()));
    }

    fn whole(&mut self, path: &Path, why: &str) {
        self.push(format!("{}: {why}", path.display()));
    }

    fn push(&mut self, mistake: String) {
        if self.lines.len() < SHOWN_MAX {
            self.lines.push(mistake);
        } else {
            self.more += 1;
        }
    }

    fn failure(&self) -> Failure {
        let mut text: String = self.lines.iter().map(|line| format!("{line}\n")).collect();
        if self.more > 0 {
            text.push_str(&format!("and {} more\n", self.more));
        }
        let many = match self.lines.len() + self.more {
            1 => "1 mistake".to_owned(),
            count => format!("{count} mistakes"),
        };
        let text = crate::output::printable_lines(&text).into_owned();
        Failure::Drawn(format!("{text}{many}; the server was not started\n"))
    }
}

/// Returns the version to emulate.
fn version(header: &Header, wanted: Option<Version>, notes: &mut Vec<String>) -> Version {
    if let Some(wanted) = wanted {
        return wanted;
    }
    let minor = minor_of(&header.kubernetes);
    let known = Version::ALL
        .into_iter()
        .find(|known| Some(u32::from(known.minor())) == minor);
    known.unwrap_or_else(|| {
        let older = minor.is_some_and(|minor| minor < u32::from(Version::OLDEST.minor()));
        let version = if older { Version::OLDEST } else { Version::NEWEST };
        let was = match header.kubernetes.as_str() {
            "" => "an unknown version",
            known => known,
        };
        notes.push(format!(
            "the snapshot is of Kubernetes {was}; {version} is emulated (--kubernetes-version)"
        ));
        version
    })
}

/// Returns the minor number of a version of Kubernetes: 37 for `v1.37.2`.
fn minor_of(kubernetes: &str) -> Option<u32> {
    let rest = kubernetes.trim_start_matches('v').strip_prefix("1.")?;
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok()
}

/// Returns the files of a snapshot, in order of their names.
fn files_of(path: &Path) -> Result<Vec<PathBuf>, Failure> {
    let unreadable = |error: io::Error| unreadable_file(path, &error);
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path).map_err(unreadable)? {
        let file = entry.map_err(unreadable)?.path();
        if file.extension().is_some_and(|ending| ending == "json") {
            files.push(file);
        }
    }
    files.sort();
    Ok(files)
}

fn unreadable_file(path: &Path, error: &io::Error) -> Failure {
    if error.kind() == io::ErrorKind::NotFound {
        return Failure::Usage(format!("--from {}: it does not exist", path.display()));
    }
    Failure::Usage(format!("--from {}: {error}", path.display()))
}

/// Passes the lines of a file on that are not blank, with their numbers.
fn each_line(file: &Path, mut take: impl FnMut(usize, &[u8])) -> Result<(), Failure> {
    let unreadable = |error: io::Error| unreadable_file(file, &error);
    let mut reader = BufReader::with_capacity(1 << 20, File::open(file).map_err(unreadable)?);
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        if reader.read_until(b'\n', &mut line).map_err(unreadable)? == 0 {
            break;
        }
        if !line.trim_ascii().is_empty() {
            take(number, &line);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minors_of_versions() {
        for (text, minor) in [
            ("v1.37.2", Some(37)),
            ("1.28+", Some(28)),
            ("v1.31-gke", Some(31)),
            ("", None),
            ("v2.0.0", None),
        ] {
            assert_eq!(minor_of(text), minor, "{text}");
        }
    }
}

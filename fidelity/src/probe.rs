//! A probe as it stands in `oracle/probes/*.yaml`: what is true before, what is
//! asked, and for how long the answer is read. Pure data; it must not know how a
//! request is sent nor what the answer should be.
//! The format is explained for its authors in `oracle/probes/README.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::error::Error;

/// One question, with what must be true before it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Probe {
    /// Stable name; also the name of its recording.
    pub id: String,
    /// Row in the list of fidelity probes the project started from; 0 for later ones.
    pub row: u32,
    /// What it asks, in words.
    pub title: String,
    /// The minors it is recorded from; empty: all of them.
    #[serde(default)]
    pub versions: Vec<String>,
    #[serde(default)]
    pub(crate) fixture: Fixture,
    /// Played, but not recorded.
    #[serde(default)]
    pub(crate) before: Vec<Step>,
    /// Played and recorded.
    pub(crate) play: Vec<Step>,
    #[serde(default)]
    pub(crate) normalise: Vec<Rule>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub(crate) enum Fixture {
    /// The fixture is put back to its first state before the probe.
    #[default]
    F,
    /// The probe needs nothing to be there.
    #[serde(rename = "none")]
    None,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Step {
    Request(Request),
    Watch(Watch),
    Websocket(Watch),
    Control(Control),
    WaitMs(u64),
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Request {
    #[serde(default = "get")]
    pub(crate) method: String,
    pub(crate) path: String,
    #[serde(default)]
    pub(crate) user: User,
    /// Added to the defaults; a null takes a default away.
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, Option<String>>,
    #[serde(default)]
    pub(crate) body: Option<String>,
    /// A body that is no text, instead of `body`: unpadded, URL-safe base64.
    #[serde(default)]
    pub(crate) body_base64: Option<String>,
    /// Name to JSON pointer into the answer's body, or `header:<name>`. What a name with a question mark stands for need
    /// not be there; it is `none` then.
    #[serde(default)]
    pub(crate) capture: BTreeMap<String, String>,
    /// Sent this many times, one after the other; only the last is recorded.
    #[serde(default = "one")]
    pub(crate) repeat: u32,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Watch {
    pub(crate) path: String,
    #[serde(default)]
    pub(crate) user: User,
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, Option<String>>,
    /// The reader goes away after this time, if the server has not ended before.
    #[serde(default = "ten_seconds")]
    pub(crate) read_ms: u64,
    /// The reader goes away after this many lines.
    #[serde(default)]
    pub(crate) lines: Option<usize>,
    /// The reader goes away after a line that holds this text. What happens meanwhile is then done before anything is
    /// read, and also when there is nothing to read.
    #[serde(default)]
    pub(crate) until: Option<String>,
    /// Nothing is read from the socket for this long after the headers.
    #[serde(default)]
    pub(crate) stall_ms: u64,
    /// What others do while the stream is open, in order of time.
    #[serde(default)]
    pub(crate) meanwhile: Vec<Meanwhile>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Meanwhile {
    /// Counted from the arrival of the headers.
    pub(crate) at_ms: u64,
    pub(crate) request: Request,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum User {
    #[default]
    Admin,
    Limited,
    BadToken,
    Anonymous,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Control {
    /// Compacts the store at its current revision and waits until every reader sees it.
    Compact,
    /// Ends the API server and starts it again on the same store.
    RestartApiserver,
}

/// What is taken out of a transcript on top of what always is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Rule {
    /// managedFields stay, for the probes that are about them.
    KeepManagedFields,
    /// Bookmarks with equal resourceVersion that follow each other become one.
    CollapseBookmarks,
    /// Bookmarks that do not end the initial events are left out.
    DropPlainBookmarks,
    /// When a line came and when the stream ended is left out.
    HideTimes,
    /// retryAfterSeconds is drawn by lot.
    HideRetryAfter,
    /// Only the kinds of lines and how the stream ended, for streams cut at a random place.
    CountOnly,
    /// What several checks of a real server find is one cause.
    CausesOnce,
}

fn get() -> String {
    "GET".to_owned()
}

fn one() -> u32 {
    1
}

fn ten_seconds() -> u64 {
    10_000
}

/// Reads every `*.yaml` of a folder, in order of file name, and says all that is
/// wrong with a file's probes before anything is sent.
pub fn load(folder: &Path) -> Result<Vec<Probe>, Error> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .map_err(|source| Error::file(folder, &source))?
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .collect();
    files.sort();
    let mut probes = Vec::new();
    let mut seen = BTreeSet::new();
    for file in files {
        let text = std::fs::read_to_string(&file).map_err(|source| Error::file(&file, &source))?;
        let parsed: Vec<Probe> = serde_saphyr::from_str(&text)
            .map_err(|why| Error::author(format!("{}: {why}", file.display())))?;
        for probe in parsed {
            if !seen.insert(probe.id.clone()) {
                return Err(Error::author(format!(
                    "{}: the id {} is there twice",
                    file.display(),
                    probe.id
                )));
            }
            probes.push(probe);
        }
    }
    probes.sort_by(|a, b| (a.row, &a.id).cmp(&(b.row, &b.id)));
    Ok(probes)
}

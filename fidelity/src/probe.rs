//! A probe in `fidelity/oracle/probes/*.yaml`: preconditions, requests, and how long responses are read. Pure data; it must not know
//! how a request is sent or what the response should be. `fidelity/oracle/probes/README.md` describes the format for authors.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use fake_apiserver::scenario::Version;
use serde::Deserialize;

use crate::error::Error;
use crate::webhook::Webhook;

/// A probe with its preconditions.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Probe {
    /// Stable id; also the name of its recording.
    pub id: String,
    /// Row in the first list of fidelity probes; 0 for later ones.
    pub row: u32,
    /// What it tests, in words.
    pub title: String,
    /// First minor version that it is recorded from.
    #[serde(default = "oldest")]
    since: Version,
    #[serde(default)]
    pub(crate) fixture: Fixture,
    /// Played, but not recorded.
    #[serde(default)]
    pub(crate) before: Vec<Step>,
    /// Played and recorded.
    pub(crate) play: Vec<Step>,
    #[serde(default)]
    pub(crate) normalise: Vec<Rule>,
    /// Webhooks that are served while it is played, by the last part of their URL.
    #[serde(default)]
    pub(crate) webhooks: BTreeMap<String, Webhook>,
}

fn oldest() -> Version {
    Version::OLDEST
}

impl Probe {
    /// Returns a probe of no file and without steps, for any version.
    pub(crate) fn unnamed(title: &str, normalise: Vec<Rule>) -> Self {
        Self {
            id: String::new(),
            row: 0,
            title: title.to_owned(),
            since: Version::OLDEST,
            fixture: Fixture::None,
            before: Vec::new(),
            play: Vec::new(),
            normalise,
            webhooks: BTreeMap::new(),
        }
    }

    /// Returns whether it is recorded from this version.
    pub fn is_of(&self, version: Version) -> bool {
        version >= self.since
    }

    /// Whether the server under test calls back, for which it needs sockets.
    pub(crate) fn needs_sockets(&self) -> bool {
        !self.webhooks.is_empty()
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub(crate) enum Fixture {
    /// The fixture is restored before the probe.
    #[default]
    F,
    /// The probe needs no objects.
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
    /// Added to the defaults; null removes a default.
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, Option<String>>,
    #[serde(default)]
    pub(crate) body: Option<String>,
    /// A binary body, instead of `body`: unpadded, URL-safe base64.
    #[serde(default)]
    pub(crate) body_base64: Option<String>,
    /// JSON pointers into the body of the response, or `header:<name>`, by name. The value of a name with a question mark is
    /// optional, and `none` if it is absent.
    #[serde(default)]
    pub(crate) capture: BTreeMap<String, String>,
    /// Number of times it is sent; only the last is recorded.
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
    /// Time after which the reader disconnects, unless the server ends the response first.
    #[serde(default = "ten_seconds")]
    pub(crate) read_ms: u64,
    /// Number of lines after which the reader disconnects.
    #[serde(default)]
    pub(crate) lines: Option<usize>,
    /// The reader disconnects after a line with this text. In this case `meanwhile` is executed before anything is read, and
    /// also if there is nothing to read.
    #[serde(default)]
    pub(crate) until: Option<String>,
    /// Time after the headers during which nothing is read from the socket.
    #[serde(default)]
    pub(crate) stall_ms: u64,
    /// Requests of others while the stream is open, in order of time.
    #[serde(default)]
    pub(crate) meanwhile: Vec<Meanwhile>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Meanwhile {
    /// Time since the headers were received.
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
    /// Restarts the apiserver on the same store.
    RestartApiserver,
}

/// Additional normalisation of a transcript.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Rule {
    /// Keeps managedFields, for probes of these.
    KeepManagedFields,
    /// Merges consecutive bookmarks with equal resourceVersion.
    CollapseBookmarks,
    /// Removes bookmarks that do not end the initial events.
    DropPlainBookmarks,
    /// Removes the times of lines, of responses and of the end of the stream.
    HideTimes,
    /// Removes the random retryAfterSeconds.
    HideRetryAfter,
    /// Keeps only the types of lines and how the stream ended, for streams that are cut at a random position.
    CountOnly,
    /// Removes the calls of webhooks, which a real server also makes on its own.
    HideCalls,
    /// Keeps the first of equal calls of webhooks: a real server repeats conversions, also for its watch caches.
    CallsOnce,
    /// Merges equal causes, which several checks of a real server can report.
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

/// Reads all `*.yaml` of a folder, in order of file name, and reports all mistakes of a file before anything is sent.
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

//! Measurements, in groups that share a set-up.

mod fanout;
mod idle;
mod list;
mod once;
mod peers;
mod proxy;
mod requests;
mod snapshot;
mod start;

use std::io;
use std::path::{Path, PathBuf};

use crate::child::Child;
use crate::http::{Connection, HttpResponse, request, watch};
use crate::table::Measured;

/// Programs and sizes of a run.
pub(crate) struct Ground {
    /// The server under test.
    pub(crate) server: PathBuf,
    /// This program, which also contains the baselines.
    pub(crate) own: PathBuf,
    /// Folder of installed peers.
    pub(crate) peers: Option<PathBuf>,
    pub(crate) sizes: Sizes,
}

/// Sizes of the measurements.
pub(crate) struct Sizes {
    /// Number of interleaved repetitions; the median counts.
    pub(crate) repetitions: usize,
    pub(crate) starts: usize,
    /// The official thresholds.
    pub(crate) pods: u64,
    /// Objects of a snapshot.
    pub(crate) config_maps: u64,
    pub(crate) watchers: usize,
    /// Number of watchers of the smaller fan-out.
    pub(crate) fewer_watchers: usize,
    /// Events per repetition delivered one by one, to the smaller and to the full fan-out.
    pub(crate) paced: u64,
    pub(crate) paced_to_all: u64,
    /// Number of events of a burst.
    pub(crate) burst: u64,
    pub(crate) requests: u64,
    pub(crate) connections: u64,
}

impl Sizes {
    pub(crate) fn full() -> Self {
        Self {
            repetitions: 5,
            starts: 15,
            pods: 150_000,
            config_maps: 100_000,
            watchers: 5_000,
            fewer_watchers: 1_000,
            paced: 200,
            paced_to_all: 40,
            burst: 1_000,
            requests: 60_000,
            connections: 8_000,
        }
    }

    pub(crate) fn smoke() -> Self {
        Self {
            repetitions: 1,
            starts: 2,
            pods: 1_500,
            config_maps: 1_000,
            watchers: 100,
            fewer_watchers: 50,
            paced: 20,
            paced_to_all: 10,
            burst: 50,
            requests: 1_000,
            connections: 200,
        }
    }
}

/// Rows that are measured together.
pub(crate) struct Group {
    pub(crate) rows: &'static [&'static str],
    pub(crate) measure: fn(&Ground) -> io::Result<Measured>,
}

/// All groups, in the order of the table.
pub(crate) const GROUPS: [Group; 9] = [
    Group {
        rows: &["S1", "S2", "S3"],
        measure: fanout::measure,
    },
    Group {
        rows: &["S4"],
        measure: once::measure,
    },
    Group {
        rows: &["S5"],
        measure: idle::measure,
    },
    Group {
        rows: &["S6", "S7"],
        measure: requests::measure,
    },
    Group {
        rows: &["S8"],
        measure: start::measure,
    },
    Group {
        rows: &["LIST", "MEM"],
        measure: list::measure,
    },
    Group {
        rows: &["SNAP"],
        measure: snapshot::measure,
    },
    Group {
        rows: &["PROXY"],
        measure: proxy::measure,
    },
    Group {
        rows: &["PEER"],
        measure: peers::measure,
    },
];

impl Ground {
    /// Starts a server under test that contains only the default objects of a cluster.
    pub(crate) fn ours(&self) -> io::Result<Child> {
        Child::start(&self.server, &["serve", "--quiet"])
    }

    /// Starts a baseline server.
    pub(crate) fn floor(&self, which: &str) -> io::Result<Child> {
        Child::start(&self.own, &["floor", which])
    }
}

/// A temporary folder.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> io::Result<Self> {
        let folder = std::env::temp_dir().join(format!("bench-{name}-{}", std::process::id()));
        std::fs::create_dir(&folder)?;
        Ok(Self(folder))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A file that stays costs some disk.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Returns a path as an argument of a program.
fn text(path: &Path) -> io::Result<&str> {
    path.to_str()
        .ok_or_else(|| io::Error::other("a temporary file has a name that is no text"))
}

pub(crate) const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Creates an object by POST.
fn create(connection: &mut Connection, path: &str, body: &[u8]) -> io::Result<HttpResponse> {
    connection.ask(&request("POST", path, body), true)?.good("a POST")
}

/// Returns the resourceVersion of a LIST.
pub(crate) fn current_version(connection: &mut Connection) -> io::Result<String> {
    let answer = connection.ask(&request("GET", &format!("{CONFIG_MAPS}?limit=1"), b""), true)?;
    let list: serde_json::Value = serde_json::from_slice(&answer.good("a LIST")?.body)?;
    let version = list
        .pointer("/metadata/resourceVersion")
        .and_then(|version| version.as_str());
    version
        .map(str::to_owned)
        .ok_or_else(|| io::Error::other("a list has no resourceVersion"))
}

/// Formats a watch request for ConfigMaps, starting at a version.
pub(crate) fn watch_from(version: &str) -> Vec<u8> {
    watch(CONFIG_MAPS, version)
}

//! What is measured, in groups that share a set-up.

mod fanout;
mod idle;
mod list;
mod once;
mod peers;
mod requests;
mod start;

use std::io;
use std::path::PathBuf;

use crate::child::Child;
use crate::http::{Answer, Connection, request, watch};
use crate::table::Measured;

/// Where and how much.
pub(crate) struct Ground {
    /// The server under test.
    pub(crate) server: PathBuf,
    /// This program, which is the floors too.
    pub(crate) own: PathBuf,
    /// Where peers are installed.
    pub(crate) peers: Option<PathBuf>,
    pub(crate) sizes: Sizes,
}

/// How much of everything.
pub(crate) struct Sizes {
    /// Interleaved repetitions of which the median counts.
    pub(crate) repetitions: usize,
    pub(crate) starts: usize,
    /// The official thresholds.
    pub(crate) pods: u64,
    pub(crate) watchers: usize,
    /// Watchers of the smaller fan-out.
    pub(crate) fewer_watchers: usize,
    /// Events a repetition delivers one by one to the fewer and to all watchers.
    pub(crate) paced: u64,
    pub(crate) paced_to_all: u64,
    /// Events of a burst.
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

/// All of them, in the order of the table.
pub(crate) const GROUPS: [Group; 7] = [
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
        rows: &["PEER"],
        measure: peers::measure,
    },
];

impl Ground {
    /// A server under test that has nothing but what every cluster has.
    pub(crate) fn ours(&self) -> io::Result<Child> {
        Child::start(&self.server, &["serve", "--quiet"])
    }

    /// A server to compare with.
    pub(crate) fn floor(&self, which: &str) -> io::Result<Child> {
        Child::start(&self.own, &["floor", which])
    }
}

pub(crate) const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// POSTs an object.
fn create(connection: &mut Connection, path: &str, body: &[u8]) -> io::Result<Answer> {
    connection.ask(&request("POST", path, body), true)?.good("a POST")
}

/// The resourceVersion a list would have now.
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

/// A watch of ConfigMaps from a version on.
pub(crate) fn watch_from(version: &str) -> Vec<u8> {
    watch(CONFIG_MAPS, version)
}

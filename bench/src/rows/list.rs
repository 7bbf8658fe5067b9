//! LIST and MEM: the official thresholds of a cluster, 150,000 Pods and 5,000 watchers of them, on one server.

use std::io;

use super::Ground;
use crate::fixture::pod;
use crate::http::{Connection, request, watch};
use crate::load::{self, Use};
use crate::swarm::{Swarm, now};
use crate::table::{Judged, Line, Measured, Row, median};

const PODS: &str = "/api/v1/namespaces/default/pods";
const ALL_PODS: &str = "/api/v1/pods";
const PAGE: u64 = 500;
const MIB: f64 = 1024.0 * 1024.0;

/// Metadata of a page.
#[derive(serde::Deserialize)]
struct Page {
    metadata: PageMetadata,
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct PageMetadata {
    resource_version: String,
    #[serde(rename = "continue", default)]
    token: String,
}

pub(super) fn measure(ground: &Ground) -> io::Result<Measured> {
    let sizes = &ground.sizes;
    let (server, floor) = (ground.ours()?, ground.floor("bare")?);
    let empty = server.memory()?.own;
    let took = load::run(server.address, 16, sizes.pods, Use::Kept, |n, out| {
        out.extend_from_slice(&request("POST", PODS, &pod(n)));
    })?;
    let filled = server.memory()?.own;
    let mut connection = Connection::open(server.address)?;
    let mut bare = Connection::open(floor.address)?;

    let (mut pages, mut pages_floor, mut whole, mut whole_floor) = (vec![], vec![], vec![], vec![]);
    let (mut bytes, mut version) = (0, String::new());
    for _ in 0..sizes.repetitions.min(3) {
        let began = now();
        let mut token = String::new();
        let mut lengths = Vec::new();
        loop {
            let path = format!("{ALL_PODS}?limit={PAGE}&continue={token}");
            let answer = connection
                .ask(&request("GET", &path, b""), true)?
                .good("a page")?;
            lengths.push(answer.length);
            // A page's metadata precedes its items.
            let page = head_of(&answer.body)?;
            version = page.metadata.resource_version;
            token = page.metadata.token;
            if token.is_empty() {
                break;
            }
        }
        pages.push(began.elapsed().as_secs_f64());
        bytes = lengths.iter().sum();
        let began = now();
        for length in &lengths {
            bare.ask(&request("GET", &format!("/{length}"), b""), true)?;
        }
        pages_floor.push(began.elapsed().as_secs_f64());

        let began = now();
        let length = connection
            .ask(&request("GET", ALL_PODS, b""), false)?
            .good("a LIST")?
            .length;
        whole.push(began.elapsed().as_secs_f64());
        let began = now();
        bare.ask(&request("GET", &format!("/{length}"), b""), false)?;
        whole_floor.push(began.elapsed().as_secs_f64());
    }

    let mut swarm = Swarm::open(server.address, &watch(ALL_PODS, &version), sizes.watchers)?;
    // Every watcher receives some Pod changes during the LISTs.
    let changes = 100;
    connection.send(&request("GET", ALL_PODS, b""))?;
    let mut writer = Connection::open(server.address)?;
    for n in 0..changes {
        let path = format!("{PODS}/{}", pod_name(n));
        let patch = br#"{"metadata":{"labels":{"tier":"back"}}}"#;
        let mut ask = request("PATCH", &path, patch);
        let json = b"application/json\r\nContent-Length";
        if let Some(at) = ask.windows(json.len()).position(|part| part == json) {
            ask.splice(at..at + 16, b"application/merge-patch+json".iter().copied());
        }
        writer.ask(&ask, true)?.good("a PATCH")?;
    }
    connection.receive(false)?.good("a LIST")?;
    swarm.reach_lines(changes)?;
    let memory = server.memory()?;

    let row = |name, work: String, unit, ours, other, judged| Row {
        name,
        work,
        unit,
        ours,
        other,
        judged,
    };
    let object = bytes as f64 / sizes.pods as f64;
    let count = sizes.pods;
    Ok(vec![
        row(
            "LIST",
            format!("{count} pods of {object:.0} B in pages of {PAGE}"),
            "s",
            median(pages),
            Some(("bare hyper", median(pages_floor))),
            Judged::Not,
        ),
        row(
            "LIST",
            format!("{count} pods whole"),
            "s",
            median(whole),
            Some(("bare hyper", median(whole_floor))),
            Judged::Not,
        ),
        row(
            "LIST",
            format!("POST of {count} pods"),
            "s",
            took.as_secs_f64(),
            None,
            Judged::Not,
        ),
        row(
            "MEM",
            "memory of a stored object of that size".to_owned(),
            "B/object",
            filled.saturating_sub(empty) as f64 / count as f64,
            Some(("its JSON", object)),
            Judged::Not,
        ),
        row(
            "MEM",
            format!(
                "peak with {count} pods, {} watchers, {changes} changes, whole lists",
                sizes.watchers
            ),
            "MiB",
            memory.peak as f64 / MIB,
            None,
            Judged::Value {
                must: Line::AtMost(1024.0),
                moonshot: Line::AtMost(768.0),
            },
        ),
    ]
    .into())
}

/// Parses a page up to its items, which add up to half a terabyte per day of benchmarks.
fn head_of(body: &[u8]) -> io::Result<Page> {
    let items = b",\"items\":[";
    let end = body
        .windows(items.len())
        .take(4096)
        .position(|part| part == items)
        .ok_or_else(|| io::Error::other("a page has no items"))?;
    let mut head = body[..end].to_vec();
    head.push(b'}');
    serde_json::from_slice(&head).map_err(io::Error::other)
}

fn pod_name(number: u64) -> String {
    format!("web-{:05}-{number:07}", number % 30_000)
}

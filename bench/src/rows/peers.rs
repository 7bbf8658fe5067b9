//! PEER: other servers of the Kubernetes API for tests, for equivalent requests. The fake of client-go has no wire,
//! so its requests cost no bytes, while ours are still sent over HTTP.

use std::io;
use std::path::Path;

use super::{CONFIG_MAPS, Ground, create, watch_from};
use crate::child::{Child, pinned};
use crate::fixture::config_map;
use crate::http::{Connection, request};
use crate::load::{self, Use};
use crate::swarm::{Swarm, now};
use crate::table::{Judged, Measured, Row};

/// A number of requests that the slowest peer completes within seconds: kmock scans all earlier requests for each
/// one.
const REQUESTS: u64 = 200;
const OBJECTS: u64 = 200;
const WATCHERS: usize = 100;
const EVENTS: u64 = 50;

/// Padding for objects of about 0.5 KB and 1 KB.
const SMALL: usize = 130;
const LARGE: usize = 640;

/// Results of a server.
#[derive(Debug, serde::Deserialize)]
struct Did {
    gets_per_second: f64,
    list_seconds: f64,
    deliveries_per_second: f64,
}

pub(super) fn measure(ground: &Ground) -> io::Result<Measured> {
    let mut measured = Measured::default();
    let Some(folder) = &ground.peers else {
        measured
            .skipped
            .push("PEER: no peers are installed for this run".to_owned());
        return Ok(measured);
    };
    let ours = served(|| ground.ours(), "0")?;
    for (name, did) in [
        ("kmock", kmock(folder)),
        ("client-go's fake, in process", client_go(folder)),
    ] {
        match did {
            Ok(did) => measured.rows.extend(rows(&ours, name, &did)),
            Err(why) => measured.skipped.push(format!("PEER: {name}: {why}")),
        }
    }
    Ok(measured)
}

fn rows(ours: &Did, name: &'static str, peer: &Did) -> [Row; 3] {
    let row = |work: String, unit, ours, peer| Row {
        name: "PEER",
        work,
        unit,
        ours,
        other: Some((name, peer)),
        judged: Judged::Not,
    };
    [
        row(
            "GET of 0.5 KB, one connection".to_owned(),
            "requests/s",
            ours.gets_per_second,
            peer.gets_per_second,
        ),
        row(
            format!("LIST of {OBJECTS} ConfigMaps of 1 KB"),
            "ms",
            ours.list_seconds * 1e3,
            peer.list_seconds * 1e3,
        ),
        row(
            format!("creates one by one to {WATCHERS} watchers"),
            "deliveries/s",
            ours.deliveries_per_second,
            peer.deliveries_per_second,
        ),
    ]
}

fn kmock(folder: &Path) -> io::Result<Did> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/peers/kmock_serve.py");
    served(|| Child::start(&folder.join("kmock/bin/python"), &[script]), "")
}

fn client_go(folder: &Path) -> io::Result<Did> {
    let sizes = [REQUESTS, OBJECTS, WATCHERS as u64, EVENTS].map(|size| size.to_string());
    let output = pinned(&folder.join("client-go")).args(sizes).output()?;
    serde_json::from_slice(&output.stdout).map_err(io::Error::other)
}

/// Measures a server of the API over HTTP, with a second instance for watches: some peers stay slow after watches
/// were dropped. `version`: where a watch of an empty collection starts.
fn served(start: impl Fn() -> io::Result<Child>, version: &str) -> io::Result<Did> {
    let deliveries_per_second = delivered(&start()?, version)?;
    let server = start()?;
    let mut connection = Connection::open(server.address)?;
    create(&mut connection, CONFIG_MAPS, &config_map("one", "one", SMALL, 0))?;
    let get = request("GET", &format!("{CONFIG_MAPS}/one"), b"");
    let took = load::run(server.address, 1, REQUESTS, Use::Kept, |_, out| {
        out.extend_from_slice(&get)
    })?;
    let gets_per_second = REQUESTS as f64 / took.as_secs_f64();

    for n in 1..OBJECTS {
        create(
            &mut connection,
            CONFIG_MAPS,
            &config_map(&format!("list-{n:05}"), "peer", LARGE, n),
        )?;
    }
    let began = now();
    connection
        .ask(&request("GET", CONFIG_MAPS, b""), false)?
        .good("a LIST")?;
    Ok(Did {
        gets_per_second,
        list_seconds: began.elapsed().as_secs_f64(),
        deliveries_per_second,
    })
}

/// Returns events per second; all watchers receive an event before the next one is sent.
fn delivered(server: &Child, version: &str) -> io::Result<f64> {
    let mut connection = Connection::open(server.address)?;
    let mut swarm = Swarm::open(server.address, &watch_from(version), WATCHERS)?;
    let began = now();
    for n in 0..EVENTS {
        create(
            &mut connection,
            CONFIG_MAPS,
            &config_map(&format!("event-{n:05}"), "peer", LARGE, n),
        )?;
        swarm.reach_lines(n + 1)?;
    }
    Ok((EVENTS * WATCHERS as u64) as f64 / began.elapsed().as_secs_f64())
}

//! SNAP: a snapshot of many ConfigMaps, of a server under test, and a server that begins with it.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use super::{CONFIG_MAPS, Folder, Ground, text};
use crate::child::{Child, memory_of};
use crate::fixture::config_map;
use crate::http::{Connection, request};
use crate::load::{self, Use};
use crate::swarm::now;
use crate::table::{Judged, Line, Measured, Row};

const MIB: f64 = 1024.0 * 1024.0;

/// Padding of a ConfigMap of about 1 KB.
const PADDING: usize = 600;

pub(super) fn measure(ground: &Ground) -> io::Result<Measured> {
    let folder = Folder::new("snapshot")?;
    let file = folder.0.join("snapshot.json");
    let server = Child::start(&ground.server, &["serve", "--quiet"])?;
    let count = ground.sizes.config_maps;
    load::run(server.address, 16, count, Use::Kept, |n, out| {
        let map = config_map(&format!("map-{n:07}"), "snapshot", PADDING, n);
        out.extend_from_slice(&request("POST", CONFIG_MAPS, &map));
    })?;
    let began = now();
    let peak = peak_of(
        &ground.server,
        &[
            "snapshot",
            "--kubeconfig",
            text(server.kubeconfig()?)?,
            "-o",
            text(&file)?,
        ],
    )?;
    let took = began.elapsed().as_secs_f64();
    drop(server);
    let began = now();
    let again = Child::start_anywhere(&ground.server, &["serve", "--quiet", "--from", text(&file)?])?;
    let asked = request("GET", &format!("{CONFIG_MAPS}/map-{:07}", count - 1), b"");
    Connection::open(again.address)?
        .ask(&asked, false)?
        .good("the last ConfigMap")?;
    let started = began.elapsed().as_secs_f64();
    let memory = again.memory()?.peak;
    let row = |work: String, unit, ours, judged| Row {
        name: "SNAP",
        work,
        unit,
        ours,
        other: None,
        judged,
    };
    let at_most = |must, moonshot| Judged::Value {
        must: Line::AtMost(must),
        moonshot: Line::AtMost(moonshot),
    };
    Ok(vec![
        row(
            format!("snapshot of {count} ConfigMaps of 1 KB"),
            "s",
            took,
            at_most(20.0, 5.0),
        ),
        row(
            "its peak memory".to_owned(),
            "MiB",
            peak as f64 / MIB,
            at_most(400.0, 100.0),
        ),
        row(
            "start from it to the first answer".to_owned(),
            "s",
            started,
            Judged::Not,
        ),
        row(
            "peak memory of that server".to_owned(),
            "MiB",
            memory as f64 / MIB,
            Judged::Not,
        ),
    ]
    .into())
}

/// Runs a program to its end, and returns its peak resident memory in bytes.
fn peak_of(program: &Path, arguments: &[&str]) -> io::Result<u64> {
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let mut peak = 0;
    loop {
        // A process that has ended has no memory.
        if let Ok(memory) = memory_of(child.id()) {
            peak = peak.max(memory.peak);
        }
        if let Some(status) = child.try_wait()? {
            return match status.success() {
                true => Ok(peak),
                false => Err(io::Error::other(format!(
                    "{} {arguments:?}: {status}",
                    program.display()
                ))),
            };
        }
        std::thread::yield_now();
    }
}

//! S5: cost of an idle watcher.

use std::io;

use super::{CONFIG_MAPS, Ground, create, current_version, watch_from};
use crate::child::Child;
use crate::fixture::config_map;
use crate::http::{Connection, request};
use crate::swarm::Swarm;
use crate::table::{Judged, Line, Measured, Row, median};

pub(super) fn measure(ground: &Ground) -> io::Result<Measured> {
    let (watchers, fewer) = (ground.sizes.watchers, ground.sizes.fewer_watchers);
    let (mut plain, mut tls) = (Vec::new(), Vec::new());
    for _ in 0..ground.sizes.repetitions {
        plain.push(over_plain_http(ground, watchers)?);
        tls.push(over_tls(ground, fewer)?);
    }
    let row = |watchers: usize, transport: &str, found, must, moonshot| Row {
        name: "S5",
        work: format!("memory of {watchers} idle watchers, {transport}"),
        unit: "KB/watcher",
        ours: median(found),
        other: None,
        judged: Judged::Value {
            must: Line::AtMost(must),
            moonshot: Line::AtMost(moonshot),
        },
    };
    Ok(vec![
        row(watchers, "plain HTTP", plain, 16.0, 11.0),
        row(fewer, "TLS", tls, 40.0, 25.0),
    ]
    .into())
}

/// Measures KB per watcher over plain HTTP.
fn over_plain_http(ground: &Ground, watchers: usize) -> io::Result<f64> {
    let server = ground.ours()?;
    let mut commander = Connection::open(server.address)?;
    create(&mut commander, CONFIG_MAPS, &config_map("tick", "tick", 0, 0))?;
    let version = current_version(&mut commander)?;
    grown(&server, watchers, || {
        Swarm::open(server.address, &watch_from(&version), watchers)
    })
}

/// Measures KB per watcher over TLS. Sequential handshakes are slow, so there are fewer watchers.
fn over_tls(ground: &Ground, watchers: usize) -> io::Result<f64> {
    let server = Child::start(&ground.server, &["serve", "--quiet", "--tls"])?;
    let place = server.place()?;
    // Excludes one-time allocations of the first request.
    let list = request("GET", CONFIG_MAPS, b"");
    Connection::open(place.clone())?
        .ask(&list, false)?
        .good("a LIST")?;
    grown(&server, watchers, || {
        Swarm::open(place, &watch_from("0"), watchers)
    })
}

/// Returns the growth of memory while watches are opened.
fn grown<W>(server: &Child, watchers: usize, open: impl FnOnce() -> io::Result<W>) -> io::Result<f64> {
    let before = server.memory()?.own;
    let _watches = open()?;
    let grown = server.memory()?.own.saturating_sub(before);
    Ok(grown as f64 / watchers as f64 / 1024.0)
}

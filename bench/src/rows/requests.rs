//! S6 and S7: requests and connections per second, compared with plain hyper.

use std::io;
use std::net::SocketAddr;

use super::{CONFIG_MAPS, Ground, create};
use crate::fixture::{SMALL as PADDING, config_map};
use crate::http::{Connection, request, with_header};
use crate::load::{self, Use};
use crate::table::{Judged, Line, Measured, Row, median};

/// Number of concurrent connections.
const AT_ONCE: usize = 64;

pub(super) fn measure(ground: &Ground) -> io::Result<Measured> {
    let sizes = &ground.sizes;
    let path = format!("{CONFIG_MAPS}/one");
    let mut rates: [[Vec<f64>; 2]; 3] = Default::default();
    for _ in 0..sizes.repetitions {
        let (ours, floor) = (ground.ours()?, ground.floor("bare")?);
        let mut commander = Connection::open(ours.address)?;
        let length = create(&mut commander, CONFIG_MAPS, &config_map("one", "one", PADDING, 0))?.length;
        let get = request("GET", &path, b"");
        let get_floor = request("GET", &format!("/{length}"), b"");
        rates[0][0].push(rate(ours.address, sizes.requests, Use::Kept, &get)?);
        rates[0][1].push(rate(floor.address, sizes.requests, Use::Kept, &get_floor)?);
        rates[1][0].push(posts(ours.address, sizes.requests / 2)?);
        rates[1][1].push(posts(floor.address, sizes.requests / 2)?);
        rates[2][0].push(rate(ours.address, sizes.connections, Use::Once, &closing(&get))?);
        rates[2][1].push(rate(
            floor.address,
            sizes.connections,
            Use::Once,
            &closing(&get_floor),
        )?);
    }
    let [gets, posts, connections] = rates;
    let row = |name, work: &str, unit, [ours, floor]: [Vec<f64>; 2], other, must, moonshot| Row {
        name,
        work: work.to_owned(),
        unit,
        ours: median(ours),
        other: Some((other, median(floor))),
        judged: Judged::Ratio {
            must: Line::AtLeast(must),
            moonshot: Line::AtLeast(moonshot),
        },
    };
    Ok(vec![
        row(
            "S6",
            "GET of 0.5 KB, 64 connections",
            "requests/s",
            gets,
            "bare hyper",
            0.5,
            0.8,
        ),
        row(
            "S6",
            "POST of 0.5 KB, 64 connections",
            "requests/s",
            posts,
            "bare hyper and a map",
            0.4,
            0.7,
        ),
        row(
            "S7",
            "connect, GET, close, 64 at once",
            "connections/s",
            connections,
            "bare hyper",
            0.8,
            0.95,
        ),
    ]
    .into())
}

fn rate(address: SocketAddr, count: u64, usage: Use, request: &[u8]) -> io::Result<f64> {
    let took = load::run(address, AT_ONCE, count, usage, |_, out| {
        out.extend_from_slice(request)
    })?;
    Ok(count as f64 / took.as_secs_f64())
}

fn posts(address: SocketAddr, count: u64) -> io::Result<f64> {
    let took = load::run(address, AT_ONCE, count, Use::Kept, |n, out| {
        let body = config_map(&format!("post-{n:07}"), "post", PADDING, n);
        out.extend_from_slice(&request("POST", CONFIG_MAPS, &body));
    })?;
    Ok(count as f64 / took.as_secs_f64())
}

/// Returns the same request with `Connection: close`.
fn closing(request: &[u8]) -> Vec<u8> {
    with_header(request, "Connection: close")
}

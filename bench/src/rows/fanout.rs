//! S1 to S3: one write, many watchers.
//!
//! Paced: the next event is sent when every watcher has received the previous one. Burst: one request deletes many
//! objects.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use super::{CONFIG_MAPS, Ground, create, current_version, watch_from};
use crate::child::Child;
use crate::fixture::{AROUND, config_map};
use crate::http::{Connection, request};
use crate::load::{self, Use};
use crate::swarm::{Swarm, now};
use crate::table::{Judged, Line, Measured, Row, median};

/// Padding for an event line of about 1 KB.
pub(super) const PADDING: usize = 640;

/// Results of paced delivery.
#[derive(Debug, Default)]
pub(super) struct Paced {
    /// Deliveries per second.
    pub(super) rates: Vec<f64>,
    /// Milliseconds to the slowest of a hundred watchers, over all events.
    slowest: Vec<f64>,
    /// Server CPU time per delivery, in microseconds.
    pub(super) cpu: Vec<f64>,
}

pub(super) fn measure(ground: &Ground) -> io::Result<Measured> {
    let sizes = &ground.sizes;
    let mut rows = Vec::new();
    let (ours, floor, bursts) = compared(ground, sizes.fewer_watchers, sizes.paced, sizes.burst)?;
    let (ours_all, floor_all, bursts_all) =
        compared(ground, sizes.watchers, sizes.paced_to_all, sizes.burst)?;
    for (watchers, ours, floor) in [
        (sizes.fewer_watchers, &ours, &floor),
        (sizes.watchers, &ours_all, &floor_all),
    ] {
        rows.push(Row {
            name: "S1",
            work: format!("1 KB events one by one to {watchers} watchers"),
            unit: "deliveries/s",
            ours: median(ours.rates.clone()),
            other: Some(("raw socket writer", median(floor.rates.clone()))),
            judged: Judged::Ratio {
                must: Line::AtLeast(0.6),
                moonshot: Line::AtLeast(0.75),
            },
        });
        rows.push(Row {
            name: "S1",
            work: format!("the server's processor time of that, {watchers} watchers"),
            unit: "us/delivery",
            ours: median(ours.cpu.clone()),
            other: Some(("raw socket writer", median(floor.cpu.clone()))),
            judged: Judged::Not,
        });
    }
    for (watchers, paced, bursts) in [
        (sizes.fewer_watchers, &ours, &bursts),
        (sizes.watchers, &ours_all, &bursts_all),
    ] {
        let judged = if watchers == sizes.fewer_watchers {
            Judged::Ratio {
                must: Line::AtLeast(10.0),
                moonshot: Line::AtLeast(15.0),
            }
        } else {
            Judged::Not
        };
        rows.push(Row {
            name: "S2",
            work: format!("a burst of {} events to {watchers} watchers", sizes.burst),
            unit: "deliveries/s",
            ours: median(bursts.clone()),
            other: Some(("one by one", median(paced.rates.clone()))),
            judged,
        });
    }
    for (watchers, ours, floor) in [
        (sizes.fewer_watchers, &ours, &floor),
        (sizes.watchers, &ours_all, &floor_all),
    ] {
        rows.push(Row {
            name: "S3",
            work: format!("p99 of one event to {watchers} idle watchers"),
            unit: "ms",
            ours: median(ours.slowest.clone()),
            other: Some(("raw socket writer", median(floor.slowest.clone()))),
            judged: Judged::Ratio {
                must: Line::AtMost(1.5),
                moonshot: Line::AtMost(if watchers == sizes.fewer_watchers {
                    1.2
                } else {
                    1.3
                }),
            },
        });
    }
    Ok(rows.into())
}

/// Measures ours and the baseline alternately, and our bursts.
fn compared(
    ground: &Ground,
    watchers: usize,
    events: u64,
    burst: u64,
) -> io::Result<(Paced, Paced, Vec<f64>)> {
    let (mut ours, mut floor, mut bursts) = (Paced::default(), Paced::default(), Vec::new());
    for _ in 0..ground.sizes.repetitions {
        let line = {
            let server = ground.ours()?;
            let mut commander = Connection::open(server.address)?;
            create(
                &mut commander,
                CONFIG_MAPS,
                &config_map("tick", "tick", PADDING, 0),
            )?;
            let version = current_version(&mut commander)?;
            let swarm = Swarm::open(server.address, &watch_from(&version), watchers)?;
            let mut n = 0;
            let path = format!("{CONFIG_MAPS}/tick");
            let line = paced(&server, swarm, events, &mut ours, || {
                n += 1;
                let body = config_map("tick", "tick", PADDING, n);
                let answer = commander
                    .ask(&request("PUT", &path, &body), false)?
                    .good("a PUT")?;
                Ok(answer.length - 1 + AROUND)
            })?;
            bursts.push(one_burst(server.address, watchers, burst, |watch| {
                Swarm::open(server.address, watch, watchers)
            })?);
            line
        };
        let server = ground.floor("writer")?;
        let swarm = Swarm::open(server.address, &request("GET", "/", b""), watchers)?;
        let mut commander = Connection::open(server.address)?;
        let fire = request("POST", &format!("/{line}"), b"");
        paced(&server, swarm, events, &mut floor, || {
            commander.ask(&fire, false)?.good("a command")?;
            Ok(line)
        })?;
    }
    Ok((ours, floor, bursts))
}

/// Delivers events one by one. `fire` sends one and returns the length of its line.
pub(super) fn paced(
    server: &Child,
    mut swarm: Swarm,
    events: u64,
    found: &mut Paced,
    mut fire: impl FnMut() -> io::Result<u64>,
) -> io::Result<u64> {
    let (mut content, mut line) = (swarm.content(), 0);
    let mut spent = Duration::ZERO;
    let mut delivered = 0;
    // Warm-up: the first event hits cold caches on both sides.
    content += fire()?;
    swarm.reach(content)?;
    let cpu = server.cpu()?;
    for _ in 0..events {
        let sent = now();
        line = fire()?;
        content += line;
        let mut arrivals: Vec<Duration> = swarm.reach(content)?.iter().map(|at| *at - sent).collect();
        arrivals.sort_unstable();
        spent += arrivals.last().copied().unwrap_or_default();
        delivered += arrivals.len();
        let p99 = arrivals[(arrivals.len() * 99 / 100).min(arrivals.len() - 1)];
        found.slowest.push(p99.as_secs_f64() * 1e3);
    }
    let cpu = server.cpu()?.saturating_sub(cpu);
    found.rates.push(delivered as f64 / spent.as_secs_f64());
    found.cpu.push(cpu.as_secs_f64() * 1e6 / delivered as f64);
    Ok(line)
}

/// Deletes many objects by one request; returns deliveries per second. `open`: sends this request for each watcher.
pub(super) fn one_burst(
    server: SocketAddr,
    watchers: usize,
    events: u64,
    open: impl FnOnce(&[u8]) -> io::Result<Swarm>,
) -> io::Result<f64> {
    load::run(server, 16, events, Use::Kept, |n, out| {
        let body = config_map(&format!("burst-{n:05}"), "burst", PADDING, n);
        out.extend_from_slice(&request("POST", CONFIG_MAPS, &body));
    })?;
    let mut commander = Connection::open(server)?;
    let version = current_version(&mut commander)?;
    let mut swarm = open(&watch_from(&version))?;
    let delete = request(
        "DELETE",
        &format!("{CONFIG_MAPS}?labelSelector=bench%3Dburst"),
        b"",
    );
    let sent = now();
    // The response is read after the watchers are done: it is not measured.
    commander.send(&delete)?;
    let arrivals = swarm.reach_lines(events)?;
    let last = arrivals.into_iter().max().unwrap_or(sent);
    commander.receive(false)?.good("a DELETE")?;
    Ok(events as f64 * watchers as f64 / (last - sent).as_secs_f64())
}

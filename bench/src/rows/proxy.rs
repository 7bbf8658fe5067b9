//! PROXY: `fake-apiserver proxy` compared with a reverse proxy of hyper alone, both with TLS to clients and a plain connection to
//! the same server. That server shares the clients' core, so that the proxies have theirs to themselves.

use std::io;

use super::fanout::{PADDING, Paced, one_burst, paced};
use super::{CONFIG_MAPS, Folder, Ground, create, current_version, text, watch_from};
use crate::child::Child;
use crate::fixture::{AROUND, SMALL, config_map};
use crate::http::{Connection, request, with_header};
use crate::link::Place;
use crate::load::{self, Use};
use crate::swarm::{Swarm, now};
use crate::table::{Judged, Line, Measured, Row, median};

/// Number of concurrent connections.
const AT_ONCE: usize = 16;

const MB: f64 = 1e6;

/// A proxy, and what its clients need.
struct Proxy {
    child: Child,
    place: Place,
    /// Line of a request's head.
    authorization: Option<String>,
}

/// Results of a proxy.
#[derive(Default)]
struct Found {
    /// Requests per second, and the proxy's CPU time of each in microseconds.
    gets: Vec<f64>,
    cpu: Vec<f64>,
    paced: Paced,
    bursts: Vec<f64>,
    /// Milliseconds of a request.
    latency: Vec<f64>,
}

pub(super) fn measure(ground: &Ground) -> io::Result<Measured> {
    let sizes = &ground.sizes;
    let watchers = sizes.fewer_watchers / 5;
    let (mut ours, mut bare, mut direct) = (Found::default(), Found::default(), Vec::new());
    for _ in 0..sizes.repetitions {
        let folder = Folder::new("proxy")?;
        let upstream = upstream(ground)?;
        let ours_running = Proxy::ours(ground, &upstream)?;
        let bare_running = Proxy::bare(ground, &upstream, &folder)?;
        for (proxy, found) in [(&ours_running, &mut ours), (&bare_running, &mut bare)] {
            proxy.ask(sizes.requests / 2, found)?;
            proxy.deliver(&upstream, watchers, sizes.paced, &mut found.paced)?;
            found
                .bursts
                .push(one_burst(upstream.address, watchers, sizes.burst, |watch| {
                    proxy.watch(watch, watchers)
                })?);
        }
        let count = sizes.requests / 20;
        direct.push(latency(upstream.address.into(), &one(), count)?);
        for (proxy, found) in [(&ours_running, &mut ours), (&bare_running, &mut bare)] {
            let place = proxy.place.clone();
            found.latency.push(latency(place, &proxy.known(&one()), count)?);
        }
    }
    let memory = {
        let folder = Folder::new("proxy")?;
        let upstream = upstream(ground)?;
        let ours = Proxy::ours(ground, &upstream)?.memory(&upstream, sizes.watchers, 1)?;
        let bare = Proxy::bare(ground, &upstream, &folder)?;
        (ours, bare.memory(&upstream, sizes.watchers, 2)?)
    };
    let direct = median(direct);
    let row = |work: String, unit, ours, bare, judged| Row {
        name: "PROXY",
        work,
        unit,
        ours,
        other: Some(("bare hyper proxy", bare)),
        judged,
    };
    let at_least = |must, moonshot| Judged::Ratio {
        must: Line::AtLeast(must),
        moonshot: Line::AtLeast(moonshot),
    };
    let at_most = |must, moonshot| Judged::Value {
        must: Line::AtMost(must),
        moonshot: Line::AtMost(moonshot),
    };
    Ok(vec![
        row(
            format!("GET of 0.5 KB, {AT_ONCE} connections"),
            "requests/s",
            median(ours.gets),
            median(bare.gets),
            at_least(0.7, 0.9),
        ),
        row(
            "the proxy's processor time of that".to_owned(),
            "us/request",
            median(ours.cpu),
            median(bare.cpu),
            Judged::Not,
        ),
        row(
            format!("1 KB events one by one to {watchers} watchers"),
            "deliveries/s",
            median(ours.paced.rates),
            median(bare.paced.rates),
            at_least(0.7, 0.9),
        ),
        row(
            format!("the proxy's processor time of that, {watchers} watchers"),
            "us/delivery",
            median(ours.paced.cpu),
            median(bare.paced.cpu),
            Judged::Not,
        ),
        row(
            format!("a burst of {} events to {watchers} watchers", sizes.burst),
            "deliveries/s",
            median(ours.bursts),
            median(bare.bursts),
            at_least(0.7, 0.9),
        ),
        row(
            format!("median latency added to a GET, which takes {direct:.2} ms directly"),
            "ms",
            median(ours.latency) - direct,
            median(bare.latency) - direct,
            at_most(0.3, 0.1),
        ),
        row(
            format!("memory with {} watches after an event", sizes.watchers),
            "MB",
            memory.0,
            memory.1,
            at_most(150.0, 100.0),
        ),
    ]
    .into())
}

/// Starts a server to forward to, on the core of the clients, with the objects that are read and changed.
fn upstream(ground: &Ground) -> io::Result<Child> {
    let upstream = Child::start_anywhere(&ground.server, &["serve", "--quiet"])?;
    let mut connection = Connection::open(upstream.address)?;
    for (name, padding) in [("one", SMALL), ("tick", PADDING)] {
        create(&mut connection, CONFIG_MAPS, &config_map(name, name, padding, 0))?;
    }
    Ok(upstream)
}

fn one() -> Vec<u8> {
    request("GET", &format!("{CONFIG_MAPS}/one"), b"")
}

impl Proxy {
    fn ours(ground: &Ground, upstream: &Child) -> io::Result<Self> {
        let kubeconfig = text(upstream.kubeconfig()?)?;
        let arguments = ["proxy", "--quiet", "--as-me", "--kubeconfig", kubeconfig];
        Self::of(Child::start(&ground.server, &arguments)?)
    }

    fn bare(ground: &Ground, upstream: &Child, folder: &Folder) -> io::Result<Self> {
        let (address, kubeconfig) = (upstream.address.to_string(), folder.0.join("kubeconfig"));
        let arguments = ["floor", "proxy", &address, text(&kubeconfig)?];
        Self::of(Child::start(&ground.own, &arguments)?)
    }

    fn of(child: Child) -> io::Result<Self> {
        let token = child.token.as_ref();
        Ok(Self {
            place: child.place()?,
            authorization: token.map(|token| format!("Authorization: Bearer {token}")),
            child,
        })
    }

    /// Returns a request with the proxy's token.
    fn known(&self, request: &[u8]) -> Vec<u8> {
        match &self.authorization {
            Some(line) => with_header(request, line),
            None => request.to_vec(),
        }
    }

    fn ask(&self, count: u64, found: &mut Found) -> io::Result<()> {
        let (get, before) = (self.known(&one()), self.child.cpu()?);
        let took = load::run(self.place.clone(), AT_ONCE, count, Use::Kept, |_, out| {
            out.extend_from_slice(&get)
        })?;
        let cpu = self.child.cpu()?.saturating_sub(before);
        found.gets.push(count as f64 / took.as_secs_f64());
        found.cpu.push(cpu.as_secs_f64() * 1e6 / count as f64);
        Ok(())
    }

    fn watch(&self, watch: &[u8], watchers: usize) -> io::Result<Swarm> {
        Swarm::open(self.place.clone(), &self.known(watch), watchers)
    }

    /// Delivers events one by one, written to the upstream.
    fn deliver(&self, upstream: &Child, watchers: usize, events: u64, found: &mut Paced) -> io::Result<()> {
        let mut commander = Connection::open(upstream.address)?;
        let version = current_version(&mut commander)?;
        let swarm = self.watch(&watch_from(&version), watchers)?;
        let mut n = 0;
        paced(&self.child, swarm, events, found, || {
            n += 1;
            change(&mut commander, n)
        })?;
        Ok(())
    }

    /// Returns the memory of the proxy, in MB, with watches that have received an event. `n`: new each time, because a
    /// write that changes nothing has none.
    fn memory(&self, upstream: &Child, watchers: usize, n: u64) -> io::Result<f64> {
        let mut commander = Connection::open(upstream.address)?;
        let version = current_version(&mut commander)?;
        let mut swarm = self.watch(&watch_from(&version), watchers)?;
        let line = change(&mut commander, n)?;
        swarm.reach(line)?;
        Ok(self.child.memory()?.own as f64 / MB)
    }
}

/// Changes an object, and returns the length of the line that watches get.
fn change(commander: &mut Connection, n: u64) -> io::Result<u64> {
    let body = config_map("tick", "tick", PADDING, n);
    let put = request("PUT", &format!("{CONFIG_MAPS}/tick"), &body);
    Ok(commander.ask(&put, false)?.good("a PUT")?.length - 1 + AROUND)
}

/// Returns the median of requests one by one on a connection, in milliseconds.
fn latency(place: Place, request: &[u8], count: u64) -> io::Result<f64> {
    let mut connection = Connection::open(place)?;
    let mut took = Vec::new();
    for _ in 0..count {
        let began = now();
        connection.ask(request, false)?.good("a GET")?;
        took.push(began.elapsed().as_secs_f64() * 1e3);
    }
    Ok(median(took))
}

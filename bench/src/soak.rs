//! `cargo xtask soak`: runs a bounded, mixed load for a given time, and checks that the server's memory stays flat.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::Format;
use crate::child::Child;
use crate::fixture::config_map;
use crate::http::{Connection, request};
use crate::rows::{CONFIG_MAPS, current_version, watch_from};
use crate::swarm::{Swarm, now};
use crate::table::median;

#[derive(clap::Args)]
pub(crate) struct Soak {
    /// Server under test: a release build of `fake-apiserver`.
    #[arg(long, value_name = "PATH")]
    binary: PathBuf,
    /// Duration in minutes.
    #[arg(long, default_value_t = 10.0)]
    minutes: f64,
    /// Output format.
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
}

/// Rounds per second. A round has about fifty requests and a few new watches.
const ROUNDS_A_SECOND: u32 = 20;

/// Maximum number of objects.
const OBJECTS: u64 = 500;

/// Number of permanent and of short-lived watchers.
const STAYING: usize = 50;
const PASSING: usize = 5;

/// Lifetime of a short-lived watcher, in rounds.
const STAY: u64 = 40;

/// Padding of every object, in bytes.
const PADDING: usize = 900;

/// Interval between memory samples.
const LOOK: Duration = Duration::from_secs(2);

/// Share of the run in which bounded buffers fill: the trace, the history, the allocator's pools.
const WARM_UP: f64 = 0.35;

/// Allowed growth of memory over the rest of the run, as a share or in bytes.
const GROWTH_MAX: f64 = 0.05;
const GROWTH_BYTES: f64 = 4.0 * 1024.0 * 1024.0;

const MIB: f64 = 1024.0 * 1024.0;

/// Returns exit code 0 if memory is flat, 1 if not.
pub(crate) fn run(soak: &Soak) -> io::Result<ExitCode> {
    let server = Child::start(&soak.binary, &["serve", "--quiet"])?;
    let whole = Duration::from_secs_f64(soak.minutes * 60.0);
    let began = now();
    let mut load = Load::new(&server)?;
    let mut samples: Vec<(f64, f64)> = Vec::new();
    while began.elapsed() < whole {
        let round_began = now();
        load.round()?;
        let passed = began.elapsed();
        if samples.len() as f64 * LOOK.as_secs_f64() <= passed.as_secs_f64() {
            samples.push((passed.as_secs_f64() / 60.0, server.memory()?.own as f64));
            if samples.len() % 30 == 1 {
                let (minute, bytes) = samples[samples.len() - 1];
                let _closed_pipe = writeln!(
                    io::stderr(),
                    "{minute:5.1} min  {:7.1} MiB  {} requests, {} events",
                    bytes / MIB,
                    load.requests,
                    load.lines
                );
            }
        }
        rest(round_began);
    }
    let verdict = Verdict::of(&samples, soak.minutes);
    let text = match soak.format {
        Format::Human => format!(
            "{}: {:.1} MiB in the middle of the last {:.0} %, {:+.2} MiB a minute, {:+.1} MiB over that time (allowed {:.1}); {} requests, {} events delivered, peak {:.1} MiB",
            if verdict.flat { "flat" } else { "NOT flat" },
            verdict.middle / MIB,
            (1.0 - WARM_UP) * 100.0,
            verdict.slope / MIB,
            verdict.growth / MIB,
            verdict.allowed / MIB,
            load.requests,
            load.lines,
            server.memory()?.peak as f64 / MIB,
        ),
        Format::Json => json!({
            "flat": verdict.flat,
            "middle_bytes": verdict.middle,
            "bytes_per_minute": verdict.slope,
            "growth_bytes": verdict.growth,
            "allowed_bytes": verdict.allowed,
            "requests": load.requests,
            "events": load.lines,
            "peak_bytes": server.memory()?.peak,
            "samples": samples,
        })
        .to_string(),
    };
    writeln!(io::stdout(), "{text}")?;
    Ok(if verdict.flat {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// The load on the server.
struct Load {
    connection: Connection,
    address: std::net::SocketAddr,
    staying: Swarm,
    /// Short-lived watchers, with the round in which they leave.
    passing: Vec<(u64, Swarm)>,
    round: u64,
    /// Whether each object exists, as far as requests show.
    there: Vec<bool>,
    /// An older version, to start watches and exact lists from.
    old: String,
    requests: u64,
    lines: u64,
}

impl Load {
    fn new(server: &Child) -> io::Result<Self> {
        let mut connection = Connection::open(server.address)?;
        let version = current_version(&mut connection)?;
        Ok(Self {
            connection,
            address: server.address,
            staying: Swarm::open(server.address, &watch_from(&version), STAYING)?,
            passing: Vec::new(),
            round: 0,
            there: vec![false; OBJECTS as usize],
            old: version,
            requests: 0,
            lines: 0,
        })
    }

    fn round(&mut self) -> io::Result<()> {
        self.round += 1;
        let round = self.round;
        for n in 0..40 {
            // Visits all names in an order that does not repeat.
            let number = (round * 97 + n * 31 + round / 7) % OBJECTS;
            self.touch(number, round + n)?;
        }
        self.ask("GET", &format!("{CONFIG_MAPS}?limit=50"), b"")?;
        self.ask(
            "GET",
            &format!("{CONFIG_MAPS}?labelSelector=bench%3Dsoak&resourceVersion=0"),
            b"",
        )?;
        self.ask("GET", &format!("{CONFIG_MAPS}/soak-{:05}", round % OBJECTS), b"")?;
        self.ask("GET", "/api/v1/pods", b"")?;
        // An old version: 200 or 410, depending on whether it is still available.
        let old = format!(
            "{CONFIG_MAPS}?resourceVersion={}&resourceVersionMatch=Exact&limit=10",
            self.old
        );
        self.ask("GET", &old, b"")?;
        if round.is_multiple_of(10) {
            let version = current_version(&mut self.connection)?;
            let swarm = Swarm::open(self.address, &watch_from(&version), PASSING)?;
            self.passing.push((round + STAY, swarm));
            let all = request("GET", &format!("{CONFIG_MAPS}?watch=true&timeoutSeconds=1"), b"");
            self.passing
                .push((round + 1, Swarm::open(self.address, &all, 1)?));
        }
        if round.is_multiple_of(400) {
            self.old = current_version(&mut self.connection)?;
        }
        if round.is_multiple_of(1000) {
            self.ask(
                "DELETE",
                &format!("{CONFIG_MAPS}?labelSelector=bench%3Dsoak"),
                b"",
            )?;
            self.there.fill(false);
        }
        self.passing.retain(|(until, _)| *until > round);
        for (_, swarm) in &mut self.passing {
            swarm.drain()?;
        }
        self.staying.drain()?;
        self.lines = self.staying.lines() * STAYING as u64;
        Ok(())
    }

    /// Creates, changes or deletes an object.
    fn touch(&mut self, number: u64, n: u64) -> io::Result<()> {
        let name = format!("soak-{number:05}");
        let path = format!("{CONFIG_MAPS}/{name}");
        let body = config_map(&name, "soak", PADDING, n);
        let there = &mut self.there[number as usize];
        match (*there, n % 5) {
            (false, _) => {
                *there = true;
                self.ask("POST", CONFIG_MAPS, &body)
            }
            (true, 0) => {
                *there = false;
                self.ask("DELETE", &path, b"")
            }
            (true, _) => self.ask("PUT", &path, &body),
        }
    }

    fn ask(&mut self, method: &str, path: &str, body: &[u8]) -> io::Result<()> {
        self.requests += 1;
        let answer = self.connection.ask(&request(method, path, body), false)?;
        // 404 and 410 are expected; other errors mean that the load is not the intended one.
        if matches!(answer.status, 200 | 201 | 404 | 410) {
            return Ok(());
        }
        answer.good(&format!("{method} {path}")).map(drop)
    }
}

/// Result: whether memory is flat.
#[derive(Debug)]
struct Verdict {
    flat: bool,
    middle: f64,
    /// Growth in bytes per minute.
    slope: f64,
    growth: f64,
    allowed: f64,
}

impl Verdict {
    /// Evaluates samples of minutes and bytes.
    fn of(samples: &[(f64, f64)], minutes: f64) -> Self {
        let warm: Vec<(f64, f64)> = samples
            .iter()
            .copied()
            .filter(|(minute, _)| *minute >= minutes * WARM_UP)
            .collect();
        let middle = median(warm.iter().map(|(_, bytes)| *bytes).collect());
        let slope = slope(&warm);
        let growth = slope * minutes * (1.0 - WARM_UP);
        let allowed = (middle * GROWTH_MAX).max(GROWTH_BYTES);
        Self {
            // Without samples the result is not flat.
            flat: growth <= allowed,
            middle,
            slope,
            growth,
            allowed,
        }
    }
}

/// Returns the median of the slopes of all pairs of samples (Theil–Sen estimator), which a sawtooth does not affect.
fn slope(samples: &[(f64, f64)]) -> f64 {
    let pairs = samples.iter().enumerate().flat_map(|(index, early)| {
        samples[index + 1..]
            .iter()
            .map(move |late| (late.1 - early.1) / (late.0 - early.0))
    });
    median(pairs.collect())
}

#[expect(clippy::disallowed_methods, reason = "a soak test runs in real time")]
fn rest(round_began: Instant) {
    let round = Duration::from_secs(1) / ROUNDS_A_SECOND;
    std::thread::sleep(round.saturating_sub(round_began.elapsed()));
}

#[cfg(test)]
mod tests {
    use super::{MIB, Verdict};

    fn minutes(memory: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
        (0..300)
            .map(|n| f64::from(n) / 30.0)
            .map(|minute| (minute, memory(minute) * MIB))
            .collect()
    }

    #[test]
    fn growth_is_distinguished_from_warm_up_and_sawtooth() {
        let filling = Verdict::of(&minutes(|minute| 100.0 - 90.0 * (-minute * 3.0).exp()), 10.0);
        assert!(filling.flat, "{filling:?}");
        let sawtooth = Verdict::of(&minutes(|minute| 80.0 + 20.0 * minute.fract()), 10.0);
        assert!(sawtooth.flat, "{sawtooth:?}");
        let leaking = Verdict::of(
            &minutes(|minute| 80.0 + 2.0 * minute + 20.0 * minute.fract()),
            10.0,
        );
        assert!(!leaking.flat, "{leaking:?}");
        assert!(!Verdict::of(&[], 10.0).flat, "nothing was seen");
    }
}

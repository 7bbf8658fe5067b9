//! `cargo xtask bench attacks`: measures attacks on a served fake, each on a new process, while another client sends
//! requests. Each runs at half its size and at its size: the cost may grow linearly with its bytes, no faster.
//!
//! The attacks are in `sieges.rs`; `SECURITY.md` states the measured limits.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use e2e::attacks::{cpu_time, neighbour, peak_memory};
use e2e::server::Server;

use crate::cargo::{self, Build};

mod sieges;

use sieges::Siege;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Only attacks with these finding or name prefixes, e.g. S5,unread.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Small sizes; costs are not judged.
    #[arg(long)]
    smoke: bool,
    /// Path of the fake-apiserver binary [default: a new build].
    #[arg(long, value_name = "PATH")]
    binary: Option<PathBuf>,
}

const MIB: usize = 1024 * 1024;

/// Peak memory of a server under any of them.
const PEAK_MAX: usize = 1024 * MIB;

/// Longest latency of another client's request.
const WAIT_MAX: Duration = Duration::from_secs(2);

/// Largest ratio of the costs at full and half size.
const GROWTH_MAX: f64 = 2.5;

/// CPU time below which costs are not compared: start and other clients would dominate.
const COMPARED_FROM: Duration = Duration::from_millis(100);

/// Interval of the other client's requests.
const PACE: Duration = Duration::from_millis(5);

/// Cost of one attack.
struct Cost {
    /// Status of the response, if there was one request.
    status: Option<u16>,
    /// Peak memory of the process in bytes; `None` if the system does not report it.
    peak: Option<usize>,
    cpu: Option<Duration>,
    /// Slowest response to the other client; `None`: one was not answered.
    slowest: Option<Duration>,
}

/// Measures and prints. Exit code 0: all attacks stay within their limits; 1: one does not; 3: the build failed.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let built = arguments.binary.clone().map_or_else(
        || {
            let how = Build::of_benchmark(arguments.smoke);
            cargo::programs(how, [("fake-apiserver-cli", "fake-apiserver")]).map(|[program]| program)
        },
        Ok,
    );
    let program = match built {
        Ok(program) => program,
        Err(problem) => {
            eprintln!("bench: {problem}");
            return ExitCode::from(3);
        }
    };
    print(
        "| finding | attack | size | answer | peak memory | slowest neighbour | CPU of half, and of all | ratio | |",
    );
    print("|---|---|---|---|---|---|---|---|---|");
    let mut failed = 0;
    for siege in Siege::all().iter().filter(|siege| arguments.picks(siege)) {
        let size = if arguments.smoke { siege.small } else { siege.full };
        let costs = [size.div_ceil(2), size].map(|size| play(&program, siege, size));
        let exceeded = exceeded(&costs, arguments.smoke);
        failed += usize::from(!exceeded.is_empty());
        print(&row(siege, size, &costs, &exceeded));
    }
    if failed == 0 {
        return ExitCode::SUCCESS;
    }
    eprintln!("bench: {failed} attacks exceed a limit");
    ExitCode::from(1)
}

fn print(line: &str) {
    let _closed_pipe = writeln!(io::stdout(), "{line}");
}

impl Arguments {
    fn picks(&self, siege: &Siege) -> bool {
        let picks = |only: &String| siege.finding == only || siege.name.starts_with(only.as_str());
        self.only.is_empty() || self.only.iter().any(picks)
    }
}

/// Runs an attack on a new server.
fn play(program: &Path, siege: &Siege, size: usize) -> Cost {
    let server = Server::of_program(program, "serve", &[]);
    let (address, pid) = (server.address(), server.pid());
    siege.prepare(address, size);
    let before = cpu_time(pid);
    let (stop, stopped) = mpsc::channel();
    thread::scope(|scope| {
        let asking = scope.spawn(move || slowest_answer(address, &stopped));
        let outcome = siege.play(address, size);
        let cpu = cpu_time(pid)
            .zip(before)
            .map(|(after, before)| after.saturating_sub(before));
        // Fails if the other client has ended.
        let _ = stop.send(());
        let slowest = asking.join().ok().flatten();
        Cost {
            status: outcome.status,
            peak: peak_memory(pid),
            cpu,
            slowest,
        }
    })
}

/// Sends requests until `stopped`; `None`: one was not answered.
#[expect(
    clippy::disallowed_methods,
    reason = "a benchmark is an edge: it measures real time"
)]
fn slowest_answer(address: SocketAddr, stopped: &mpsc::Receiver<()>) -> Option<Duration> {
    let mut slowest = Duration::ZERO;
    loop {
        let over = stopped.recv_timeout(PACE) != Err(RecvTimeoutError::Timeout);
        let sent = Instant::now();
        // Once more at the end: the server must still answer.
        if neighbour(address, "/api/v1/namespaces/default").status != 200 {
            return None;
        }
        slowest = slowest.max(sent.elapsed());
        if over {
            return Some(slowest);
        }
    }
}

/// Returns the ratio of the costs, if they are large enough to compare.
fn growth([half, all]: &[Cost; 2]) -> Option<f64> {
    let (half, all) = half.cpu.zip(all.cpu)?;
    (all >= COMPARED_FROM).then(|| all.as_secs_f64() / half.as_secs_f64().max(f64::EPSILON))
}

/// Returns the limits that an attack exceeds.
fn exceeded(costs: &[Cost; 2], smoke: bool) -> Vec<&'static str> {
    let mut exceeded = Vec::new();
    for cost in costs {
        if cost.status == Some(0) {
            exceeded.push("no answer");
        }
        if cost.slowest.is_none() {
            exceeded.push("no answer to a neighbour");
        }
        if smoke {
            continue;
        }
        if cost.peak.is_some_and(|peak| peak >= PEAK_MAX) {
            exceeded.push("memory");
        }
        if cost.slowest.is_some_and(|slowest| slowest > WAIT_MAX) {
            exceeded.push("a neighbour waits");
        }
    }
    if !smoke && growth(costs).is_some_and(|ratio| ratio > GROWTH_MAX) {
        exceeded.push("more than linear");
    }
    exceeded.dedup();
    exceeded
}

fn row(siege: &Siege, size: usize, costs: &[Cost; 2], exceeded: &[&str]) -> String {
    let [half, all] = costs;
    let milliseconds = |time: Option<Duration>| match time {
        Some(time) => format!("{:.0} ms", time.as_secs_f64() * 1e3),
        None => "-".to_owned(),
    };
    let status = all.status.map_or("-".to_owned(), |status| status.to_string());
    let peak = all
        .peak
        .map_or("-".to_owned(), |peak| format!("{} MiB", peak / MIB));
    let ratio = growth(costs).map_or("-".to_owned(), |ratio| format!("{ratio:.1}"));
    let mut row = format!(
        "| {} | {} | {size} | {status} | {peak}",
        siege.finding, siege.name
    );
    // Writing to a String cannot fail.
    let _ = write!(
        row,
        " | {} | {}, {} | {ratio} | {} |",
        milliseconds(all.slowest.max(half.slowest)),
        milliseconds(half.cpu),
        milliseconds(all.cpu),
        if exceeded.is_empty() {
            "ok".to_owned()
        } else {
            exceeded.join(", ")
        },
    );
    row
}

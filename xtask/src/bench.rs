//! `cargo xtask bench sim`: how fast scenarios are played, judged and written down.

use std::io::Write;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use conformance::baseline::Baseline;
use conformance::report::transcript;
use conformance::suite::{self, Driver, Plan};
use conformance::trace::Trace;

use crate::clients;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The client under test.
    #[arg(long, default_value = "watcher", value_name = "NAME")]
    client: String,
    /// How to print.
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
    /// For how long to repeat the set on one thread, in seconds.
    #[arg(long, default_value_t = 3)]
    seconds: u64,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    Human,
    Json,
}

/// Measures and prints.
#[expect(
    clippy::disallowed_methods,
    reason = "a benchmark is an edge: it measures real time"
)]
pub(crate) fn sim(arguments: &Arguments) -> ExitCode {
    let loaded = clients::named(&arguments.client)
        .and_then(|client| clients::load(&clients::root()).map(|scenarios| (client, scenarios)));
    let (client, scenarios) = match loaded {
        Ok(loaded) => loaded,
        Err(message) => {
            let _closed_pipe = writeln!(std::io::stderr(), "{message}");
            return ExitCode::from(clients::USAGE);
        }
    };
    if scenarios.is_empty() {
        let _closed_pipe = writeln!(std::io::stderr(), "there are no scenarios to measure");
        return ExitCode::from(4);
    }
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let plan = Plan {
        driver: Driver::Sim,
        seed: 0,
        jobs,
    };
    let baseline = Baseline::default();
    let written = |judged: &suite::Judged| {
        let trace = Trace::new(&judged.records);
        transcript::accepted(&judged.scenario, &trace, &judged.verdict).len()
    };

    let began = Instant::now();
    let results = suite::run(&scenarios, client, plan, &baseline, &|_| {});
    let bytes: usize = results.iter().map(written).sum();
    let whole_set = began.elapsed();

    let began = Instant::now();
    let budget = Duration::from_secs(arguments.seconds);
    let mut played = 0_u64;
    let (mut judging, mut records) = (Duration::ZERO, 0_usize);
    while began.elapsed() < budget {
        for scenario in &scenarios {
            let run = Driver::Sim.play(scenario, client, 0);
            let judged = Instant::now();
            let verdict = conformance::judge::judge(scenario, &run);
            let text = transcript::accepted(scenario, &Trace::new(&run), &verdict);
            judging += judged.elapsed();
            records += run.len();
            std::hint::black_box(text);
            played += 1;
        }
    }
    let spent = began.elapsed();
    let per_second = played as f64 / spent.as_secs_f64();
    let judging_us = judging.as_secs_f64() * 1e6 / played as f64;
    let line = match arguments.format {
        Format::Human => format!(
            "{} scenarios in {:.3} s on {jobs} threads, {bytes} bytes of transcript\n{per_second:.0} scenarios a second on one thread ({judging_us:.0} µs and {:.0} records each to judge and write down)",
            scenarios.len(),
            whole_set.as_secs_f64(),
            records as f64 / played as f64,
        ),
        Format::Json => serde_json::json!({
            "client": client.name(),
            "scenarios": scenarios.len(),
            "threads": jobs,
            "whole_set_ms": whole_set.as_secs_f64() * 1e3,
            "scenarios_per_second_per_thread": per_second,
            "judge_us": judging_us,
        })
        .to_string(),
    };
    let _closed_pipe = writeln!(std::io::stdout(), "{line}");
    ExitCode::SUCCESS
}

//! `cargo xtask bench sim`: throughput of running, judging and printing scenarios.

use std::io::Write;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use conformance::baseline::Baseline;
use conformance::client::Client;
use conformance::judge;
use conformance::report::transcript;
use conformance::suite::{self, Driver, Plan};
use conformance::trace::Trace;
use conformance::verdict::Verdict;
use fake_apiserver::record::Record;
use fake_apiserver::scenario::{Scenario, SharedScenario};

use crate::clients;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Client under test: watcher or kube-runtime.
    #[arg(long, default_value = "watcher", value_name = "NAME")]
    client: String,
    /// Output format.
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
    /// Seconds to repeat the set on one thread.
    #[arg(long, default_value_t = 3)]
    seconds: u64,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    Human,
    Json,
}

/// Number of slowest scenarios listed.
const SLOWEST: usize = 5;

/// Measures and prints.
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
    let measured = Measured::of(&scenarios, client, Duration::from_secs(arguments.seconds));
    let text = match arguments.format {
        Format::Human => measured.human(),
        Format::Json => measured.json().to_string(),
    };
    let _closed_pipe = writeln!(std::io::stdout(), "{text}");
    ExitCode::SUCCESS
}

/// Result of the benchmark.
struct Measured<'s> {
    client: &'static str,
    threads: usize,
    /// Time of the whole set on all threads, with verdicts and transcripts.
    whole_set: Duration,
    /// Bytes of all transcripts.
    transcripts: usize,
    /// Rounds on one thread.
    rounds: u32,
    scenarios: Vec<Spent<'s>>,
}

/// Time of one scenario on one thread, over all rounds.
#[derive(Clone, Copy)]
struct Spent<'s> {
    id: &'s str,
    records: usize,
    playing: Duration,
    /// Judging and printing the transcript.
    judging: Duration,
}

impl<'s> Measured<'s> {
    /// Runs `scenarios` once on all processors, then on one thread in rounds, for `budget`.
    #[expect(
        clippy::disallowed_methods,
        reason = "a benchmark is an edge: it measures real time"
    )]
    fn of(scenarios: &'s [SharedScenario], client: &dyn Client, budget: Duration) -> Self {
        let threads = clients::processors();
        let plan = Plan {
            driver: Driver::Sim,
            seed: 0,
            jobs: threads,
        };
        let began = Instant::now();
        let results = suite::run(scenarios, client, plan, &Baseline::default(), &|_| {});
        let transcripts = results
            .iter()
            .map(|judged| write_down(&judged.scenario, &judged.records, &judged.verdict).len())
            .sum();
        let whole_set = began.elapsed();

        let mut spent: Vec<Spent<'s>> = scenarios
            .iter()
            .map(|scenario| Spent {
                id: &scenario.id,
                records: 0,
                playing: Duration::ZERO,
                judging: Duration::ZERO,
            })
            .collect();
        let mut rounds = 0;
        let began = Instant::now();
        while rounds == 0 || began.elapsed() < budget {
            rounds += 1;
            for (scenario, spent) in scenarios.iter().zip(&mut spent) {
                let begun = Instant::now();
                let records = Driver::Sim.play(scenario, client, plan.seed);
                let played = Instant::now();
                let verdict = judge::judge(scenario, &records);
                std::hint::black_box(write_down(scenario, &records, &verdict));
                spent.playing += played - begun;
                spent.judging += played.elapsed();
                spent.records = records.len();
            }
        }
        Self {
            client: client.name(),
            threads,
            whole_set,
            transcripts,
            rounds,
            scenarios: spent,
        }
    }

    /// Returns the scenarios per second on one thread, run only.
    fn played_per_second(&self) -> f64 {
        self.per_second(|spent| spent.playing)
    }

    /// Returns the scenarios per second on one thread: run, judged and printed.
    fn per_second_in_all(&self) -> f64 {
        self.per_second(|spent| spent.in_all())
    }

    fn per_second(&self, time: impl Fn(&Spent<'_>) -> Duration) -> f64 {
        let spent: Duration = self.scenarios.iter().map(time).sum();
        self.scenarios.len() as f64 * f64::from(self.rounds) / spent.as_secs_f64()
    }

    fn slowest(&self) -> Vec<Spent<'s>> {
        let mut scenarios = self.scenarios.clone();
        scenarios.sort_by_key(|spent| std::cmp::Reverse(spent.in_all()));
        scenarios.truncate(SLOWEST);
        scenarios
    }

    fn milliseconds(&self, time: Duration) -> f64 {
        time.as_secs_f64() * 1e3 / f64::from(self.rounds)
    }

    fn human(&self) -> String {
        let mut text = format!(
            "{} scenarios with {}\n{:>8.3} s for the whole set on {} threads, {} bytes of transcript\n{:>8.0} scenarios a second on one thread, played, judged and written down\n{:>8.0} scenarios a second on one thread, played only\nThe slowest:",
            self.scenarios.len(),
            self.client,
            self.whole_set.as_secs_f64(),
            self.threads,
            self.transcripts,
            self.per_second_in_all(),
            self.played_per_second(),
        );
        for spent in self.slowest() {
            text.push_str(&format!(
                "\n{:>8.2} ms {} ({:.2} ms of it to judge {} records)",
                self.milliseconds(spent.in_all()),
                spent.id,
                self.milliseconds(spent.judging),
                spent.records,
            ));
        }
        text
    }

    fn json(&self) -> serde_json::Value {
        let slowest: Vec<serde_json::Value> = self
            .slowest()
            .iter()
            .map(|spent| {
                serde_json::json!({
                    "id": spent.id,
                    "records": spent.records,
                    "play_ms": self.milliseconds(spent.playing),
                    "judge_ms": self.milliseconds(spent.judging),
                })
            })
            .collect();
        serde_json::json!({
            "client": self.client,
            "scenarios": self.scenarios.len(),
            "threads": self.threads,
            "whole_set_ms": self.whole_set.as_secs_f64() * 1e3,
            "scenarios_per_second_per_thread": self.per_second_in_all(),
            "played_per_second_per_thread": self.played_per_second(),
            "slowest": slowest,
        })
    }
}

impl Spent<'_> {
    fn in_all(&self) -> Duration {
        self.playing + self.judging
    }
}

fn write_down(scenario: &Scenario, records: &[Record], verdict: &Verdict) -> String {
    transcript::accepted(scenario, &Trace::new(records), verdict)
}

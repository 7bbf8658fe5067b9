//! `cargo xtask sweep live`: the verdicts of short random scenarios, in virtual time and over sockets.

use std::fmt::Write as _;
use std::time::Duration;

use sweep::parity::{self, Parity, Plan};

use super::arguments::{Played, Span};
use super::{Chosen, FLAGGED, NOTHING_PLAYED, differing, out, print_line, processors, progress};

/// Runs over sockets at the same time, per processor: most of them wait.
const JOBS_PER_PROCESSOR: usize = 4;

/// Longest run that may be asked for: a longer one meets the time limits of both drivers.
const LONGEST_MAX: Duration = Duration::from_secs(30);

#[derive(clap::Args)]
pub(super) struct Live {
    /// Number of seeds to compare.
    #[arg(long, value_name = "N", default_value_t = 500)]
    seeds: u64,
    #[command(flatten)]
    played: Played,
    /// Longest run in virtual time that is played over sockets, at most 30s.
    #[arg(long, value_name = "TIME", default_value = "5s")]
    longest: Span,
    /// Number of runs over sockets at the same time [default: 4 per processor].
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
}

/// Compares, prints, and returns the exit code.
pub(super) fn compare(options: &Live) -> Result<u8, String> {
    if options.longest.0 > LONGEST_MAX {
        return Err("--longest is more than 30s".to_owned());
    }
    let client = Chosen::by(&options.played.client)?;
    let plan = Plan {
        client: client.client(),
        client_over_sockets: client.client(),
        profile: options.played.profile.value(),
        first: options.played.first,
        seeds: options.seeds,
        longest: options.longest.0,
        jobs: options.jobs.unwrap_or_else(|| processors() * JOBS_PER_PROCESSOR),
    };
    print_line(&format!(
        "sweep live: {} short seeds from {}, profile {}, client {}, generator {}, {} at a time",
        options.seeds,
        options.played.first,
        plan.profile.word(),
        options.played.client,
        sweep::generate::VERSION,
        plan.jobs,
    ));
    let bar = progress(options.seeds);
    let parity = parity::run(&plan, &|compared| bar.set_position(compared));
    bar.finish_and_clear();
    out(&screen(&parity));
    Ok(match parity {
        Parity { compared: 0, .. } => NOTHING_PLAYED,
        Parity { differences, .. } if differences.is_empty() => 0,
        Parity { .. } => FLAGGED,
    })
}

fn screen(parity: &Parity) -> String {
    let mut text = format!(
        "{} seeds compared, {} left out because they take longer, or are storms of requests; {} flagged in sim, {} differ over sockets\n",
        parity.compared,
        parity.too_long,
        parity.flagged.values().sum::<u64>(),
        parity.differences.len(),
    );
    // Writing to a String does not fail.
    for (cause, count) in &parity.flagged {
        let _ = writeln!(text, "{count:>8} × {cause}");
    }
    text + &differing(&parity.differences, ["sim", "sockets"])
}

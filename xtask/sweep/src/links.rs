//! `cargo xtask sweep links`: the verdicts of random scenarios with and without HTTP libraries.

use sweep::links::{self, Compared, Plan};

use super::arguments::Played;
use super::{Chosen, FLAGGED, NOTHING_PLAYED, differing, out, print_line, processors, progress};

#[derive(clap::Args)]
pub(super) struct Links {
    /// Number of seeds to compare.
    #[arg(long, value_name = "N", default_value_t = 2_000)]
    seeds: u64,
    #[command(flatten)]
    played: Played,
    /// Number of threads [default: number of processors].
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
}

/// Compares, prints, and returns the exit code.
pub(super) fn compare(options: &Links) -> Result<u8, String> {
    let client = Chosen::by(&options.played.client)?;
    let plan = Plan {
        client: client.client(),
        client_in_process: client.client(),
        profile: options.played.profile.value(),
        first: options.played.first,
        seeds: options.seeds,
        jobs: options.jobs.unwrap_or_else(processors),
    };
    print_line(&format!(
        "sweep links: {} seeds from {}, profile {}, client {}, generator {}, {} threads",
        options.seeds,
        options.played.first,
        plan.profile.word(),
        options.played.client,
        sweep::generate::VERSION,
        plan.jobs,
    ));
    let bar = progress(options.seeds);
    let compared = links::run(&plan, &|done| bar.set_position(done));
    bar.finish_and_clear();
    out(&format!(
        "{} seeds compared; {} with the same trace; {} flagged over pipes, {} differ in process\n{}",
        compared.compared,
        compared.same_traces,
        compared.flagged,
        compared.differences.len(),
        differing(&compared.differences, ["pipes", "in process"]),
    ));
    Ok(match compared {
        Compared { compared: 0, .. } => NOTHING_PLAYED,
        Compared { differences, .. } if differences.is_empty() => 0,
        Compared { .. } => FLAGGED,
    })
}

//! `cargo xtask sweep`: plays random scenarios on all cores, and prints what is wrong.
//!
//! A package apart from the other chores, so that little is compiled with optimizations. `fake-apiserver` has no such command: a
//! sweep runs clients in this process, over kube-client, which that program must not depend on.

use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ::tests::reference::{Mistake, Reference};
use clap::Subcommand;
use conformance::client::Client;
use conformance::drive::sim::Link;
use fake_apiserver::scenario::{self, SharedScenario, Style};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rustix::time::{ClockId, clock_gettime};
use sweep::generate::rarity;
use sweep::play::Difference;
use sweep::result::Sweep;
use sweep::run::{Plan, Progress, Shard, Times};
use sweep::{Draft, play, report, run};

use self::arguments::{Linked, Options, Profiles};
use self::links::Links;
use self::live::Live;
use self::reach::Reach;
use xtask::clients::{self, Clients, USAGE, processors};

mod arguments;
mod links;
mod live;
mod reach;

const EXIT_CODES: &str = "\
Exit codes:
  0   no seed is flagged
  1   at least one seed is flagged
  2   invalid command line, or a file that cannot be read or written
  4   no seed was played";

const FLAGGED: u8 = 1;
const NOTHING_PLAYED: u8 = 4;

/// Every client under test, the default first.
static CLIENTS: Clients = Clients(&[
    &adapter_watcher::WatcherClient,
    &adapter_kube_runtime::KubeRuntime,
    &adapter_kube_client::KubeClient,
]);

/// The control client: right, and independent of the clients under test.
static CONTROL: Reference = Reference { mistake: None };

/// Arguments of the command.
#[derive(clap::Args)]
#[command(after_help = EXIT_CODES, subcommand_negates_reqs = true, args_conflicts_with_subcommands = true)]
pub struct Arguments {
    #[command(subcommand)]
    what: Option<What>,
    #[command(flatten)]
    options: Options,
}

#[derive(Subcommand)]
enum What {
    /// Add up the results of shards (--result) and print them.
    Merge {
        /// Results of shards, as JSON.
        #[arg(required = true, value_name = "FILE")]
        results: Vec<PathBuf>,
        /// Write the sum as JSON.
        #[arg(long, value_name = "FILE")]
        result: Option<PathBuf>,
        /// Folder for the shrunk scenarios in the results [default: not written].
        #[arg(long, value_name = "FOLDER")]
        found: Option<PathBuf>,
        /// Print all coverage tables.
        #[arg(long)]
        coverage: bool,
    },
    /// Play one scenario file and print what both judges find.
    Replay {
        /// Scenario file.
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Client under test.
        #[arg(long, default_value = "watcher", value_name = "NAME")]
        client: String,
        /// Seed for all randomness.
        #[arg(long, default_value_t = 0, value_name = "N")]
        seed: u64,
        #[command(flatten)]
        linked: Linked,
    },
    /// Play short seeds in virtual time and over sockets, and compare the verdicts.
    Live(Live),
    /// Play seeds with and without HTTP libraries, and compare the verdicts.
    Links(Links),
    /// Search for a seed that reaches a cell of the coverage tables.
    Reach(Reach),
    /// Print the scenario of a seed.
    Show {
        /// Seed.
        #[arg(value_name = "N")]
        seed: u64,
        /// How far the server can be believed.
        #[arg(long, value_enum, default_value_t = Profiles::Honest)]
        profile: Profiles,
    },
}

impl Arguments {
    /// Returns whether the command plays so many seeds that an optimized build pays.
    pub fn needs_optimization(&self) -> bool {
        match &self.what {
            None => !self.options.debug,
            Some(What::Links(_) | What::Reach(_)) => true,
            Some(What::Merge { .. } | What::Replay { .. } | What::Show { .. } | What::Live(_)) => false,
        }
    }
}

/// Plays, merges or replays, and returns the exit code.
pub fn run(arguments: &Arguments) -> ExitCode {
    let done = match &arguments.what {
        Some(What::Merge {
            results,
            result,
            found,
            coverage,
        }) => merge(results, result.as_deref(), found.as_deref(), *coverage),
        Some(What::Replay {
            file,
            client,
            seed,
            linked,
        }) => replay(file, client, *seed, linked.link.value()),
        Some(What::Show { seed, profile }) => {
            out(&Draft::of(*seed, profile.value()).to_string());
            Ok(0)
        }
        Some(What::Live(live)) => live::compare(live),
        Some(What::Links(links)) => links::compare(links),
        Some(What::Reach(cell)) => reach::find(cell),
        None => sweep(&arguments.options),
    };
    match done {
        Ok(code) => ExitCode::from(code),
        Err(problem) => {
            print_line(&format!("sweep: {problem}"));
            ExitCode::from(USAGE)
        }
    }
}

/// A client that can be swept: one of the clients under test, or the reference client, right or with a mistake.
enum Chosen {
    Named(&'static dyn Client),
    Reference(Reference),
}

impl Chosen {
    fn by(name: &str) -> Result<Self, String> {
        match name.split_once(':') {
            None if name == "reference" => Ok(Self::Reference(Reference { mistake: None })),
            Some(("reference", wanted)) => {
                let mut all = Mistake::ALL.into_iter();
                let mistake = all.find(|mistake| format!("{mistake:?}") == wanted);
                let mistake =
                    mistake.ok_or_else(|| format!("the reference client has no mistake {wanted}"))?;
                Ok(Self::Reference(Reference {
                    mistake: Some(mistake),
                }))
            }
            Some(_) | None => CLIENTS.named(Some(name)).map(Self::Named),
        }
    }

    fn client(&self) -> &dyn Client {
        match self {
            Self::Named(client) => *client,
            Self::Reference(client) => client,
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a command is an edge: --time-limit and the rate are in real time"
)]
fn sweep(options: &Options) -> Result<u8, String> {
    let client = Chosen::by(&options.played.client)?;
    let Shard { index, of } = options.shard.0;
    let folder = options.found.display().to_string();
    let plan = Plan {
        client: client.client(),
        name: &options.played.client,
        control: (options.played.client != "reference").then_some(&CONTROL),
        profile: options.played.profile.value(),
        link: options.linked.link.value(),
        first: options.played.first,
        seeds: options.seeds,
        shard: options.shard.0,
        jobs: options.jobs.unwrap_or_else(processors),
        digest: options.digest,
        shrink_plays_max: options.shrink_plays,
        shrunk_max: options.shrink_causes,
        folder: &folder,
    };
    print_line(&format!(
        "sweep: seeds {} to {}, shard {index}/{of}, profile {}, client {}, generator {}, {} threads",
        options.played.first,
        options.played.first + options.seeds.saturating_sub(1),
        plan.profile.word(),
        options.played.client,
        sweep::generate::VERSION,
        plan.jobs,
    ));
    let began = Instant::now();
    let limit = options.time_limit.map(|limit| limit.0);
    let goes_on = || limit.is_none_or(|limit| began.elapsed() < limit);
    let bar = progress(plan.shard.share(plan.seeds));
    let show = |progress| match progress {
        Progress::Played { played, flagged } => {
            bar.set_position(played);
            bar.set_message(format!("{flagged} flagged"));
        }
        Progress::Shrinking { seed } => bar.set_message(format!("shrinking seed {seed}")),
    };
    let (swept, times) = run::run_timed(&plan, &goes_on, &show, &processor_time);
    bar.finish_and_clear();
    print_line(&speed(began.elapsed(), times));
    if options.write_rarity {
        write_rarity(&swept)?;
    }
    write_found(&swept, &options.found)?;
    finish(&swept, options.result.as_deref(), options.coverage)
}

/// Processor time of this thread, which other programs on the machine do not change. A scenario stays in its thread.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or_default(),
        u32::try_from(time.tv_nsec).unwrap_or_default(),
    )
}

/// Scenarios a second, and where the processor time went.
fn speed(took: Duration, mut times: Times) -> String {
    times.each_us.sort_unstable();
    let played = times.each_us.len();
    let at = |share: f64| {
        let index = (played as f64 * share) as usize;
        f64::from(times.each_us.get(index).copied().unwrap_or_default()) / 1e3
    };
    let mean = |time: Duration| time.as_secs_f64() * 1e3 / played.max(1) as f64;
    format!(
        "sweep: {:.1} s, {:.0} scenarios a second; processor time of a scenario: median {:.3} ms, 99 % {:.1} ms, longest {:.0} ms, mean {:.3} ms \
         (to draw {:.3}, to play {:.3}, to judge {:.3})",
        took.as_secs_f64(),
        played as f64 / took.as_secs_f64(),
        at(0.5),
        at(0.99),
        at(1.0 - 1e-9),
        mean(times.drawing + times.playing + times.judging),
        mean(times.drawing),
        mean(times.playing),
        mean(times.judging),
    )
}

fn merge(
    results: &[PathBuf],
    result: Option<&Path>,
    found: Option<&Path>,
    coverage: bool,
) -> Result<u8, String> {
    let parts = results.iter().map(|path| {
        let text =
            std::fs::read_to_string(path).map_err(|why| format!("cannot read {}: {why}", path.display()))?;
        serde_json::from_str::<Sweep>(&text).map_err(|why| format!("{}: {why}", path.display()))
    });
    let parts = parts.collect::<Result<Vec<_>, _>>()?;
    let merged = Sweep::merge(parts).map_err(|why| why.to_string())?;
    if let Some(folder) = found {
        write_found(&merged, folder)?;
    }
    finish(&merged, result, coverage)
}

/// Prints the screen, writes the result, and returns the exit code.
fn finish(swept: &Sweep, result: Option<&Path>, coverage: bool) -> Result<u8, String> {
    if let Some(path) = result {
        let json = serde_json::to_string_pretty(swept).map_err(|why| why.to_string())?;
        write(path, &format!("{json}\n"))?;
    }
    out(&report::screen(swept));
    if coverage {
        out(&report::tables(swept));
    }
    Ok(match swept {
        Sweep { played: 0, .. } => NOTHING_PLAYED,
        Sweep { flagged: 0, .. } => 0,
        Sweep { .. } => FLAGGED,
    })
}

fn replay(file: &Path, name: &str, seed: u64, link: Link) -> Result<u8, String> {
    let scenario = load(file)?;
    let client = Chosen::by(name)?;
    let played = play::play(link, &scenario, client.client(), seed);
    for found in &played.found {
        out(&format!("{}\n  {}\n", found.cause, found.sentence));
    }
    if played.found.is_empty() {
        out("nothing is flagged\n");
        return Ok(0);
    }
    Ok(FLAGGED)
}

fn load(file: &Path) -> Result<SharedScenario, String> {
    let text =
        std::fs::read_to_string(file).map_err(|why| format!("cannot read {}: {why}", file.display()))?;
    let stem = file
        .file_stem()
        .and_then(|stem| stem.to_str())
        .unwrap_or_default();
    scenario::parse(&format!("found/{stem}"), file, &text)
        .map(Arc::new)
        .map_err(|errors| errors.render(Style::for_stderr()))
}

fn write_found(swept: &Sweep, folder: &Path) -> Result<(), String> {
    for group in swept.causes.values() {
        if let (Some(name), Some(text)) = (&group.file, &group.scenario) {
            std::fs::create_dir_all(folder)
                .map_err(|why| format!("cannot create {}: {why}", folder.display()))?;
            write(&folder.join(name), text)?;
        }
    }
    Ok(())
}

fn write_rarity(swept: &Sweep) -> Result<(), String> {
    let counts = swept.coverage.triggers.iter().flat_map(|(fault, triggers)| {
        triggers
            .iter()
            .map(move |(when, count)| (fault.as_str(), when.as_str(), *count))
    });
    write(
        &clients::root().join("crates/sweep/src/generate/rarity.tsv"),
        &rarity::file(counts),
    )
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|why| format!("cannot write {}: {why}", path.display()))
}

/// Progress bar on standard error; hidden if that is not a terminal.
fn progress(seeds: u64) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::with_draw_target(Some(seeds), ProgressDrawTarget::stderr());
    match ProgressStyle::with_template("{pos}/{len} {wide_bar} {per_sec} {eta} {msg}") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// Lists seeds with two verdicts.
fn differing(differences: &[Difference], ways: [&str; 2]) -> String {
    let mut text = String::new();
    for Difference { seed, one, other } in differences {
        text += &format!("seed {seed}\n");
        for (way, verdict) in ways.into_iter().zip([one, other]) {
            text += &match verdict {
                Some((cause, sentence)) => format!("  {way:<10} {cause}\n             {sentence}\n"),
                None => format!("  {way:<10} not flagged\n"),
            };
        }
    }
    text
}

// A reader that went away (`| head`) is no reason to fail.
fn out(text: &str) {
    let _closed_pipe = std::io::stdout().write_all(text.as_bytes());
}

fn print_line(text: &str) {
    let _closed_pipe = writeln!(std::io::stderr(), "{text}");
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        arguments: Arguments,
    }

    /// deploy/sweep.yaml is a command line of this program, and its indices are all shards.
    #[test]
    fn the_job_plays_every_shard_once() {
        let job = include_str!("../../../deploy/sweep.yaml");
        let completions = job
            .lines()
            .find_map(|line| line.trim().strip_prefix("completions: "));
        let completions: u64 = completions
            .and_then(|number| number.parse().ok())
            .expect("completions");
        let arguments: Vec<&str> = job
            .lines()
            .filter_map(|line| line.trim().strip_prefix("- "))
            .filter(|word| word.starts_with("--"))
            .collect();
        for index in 0..completions {
            let words = arguments
                .iter()
                .map(|word| word.replace("$(JOB_COMPLETION_INDEX)", &index.to_string()));
            let line = Line::try_parse_from(std::iter::once("sweep".to_owned()).chain(words));
            let options = line.map(|line| line.arguments.options);
            let options = options.unwrap_or_else(|problem| panic!("{problem}"));
            assert_eq!(
                options.shard.0,
                Shard {
                    index,
                    of: completions
                }
            );
            let result = options.result.map(|path| path.display().to_string());
            assert_eq!(result, Some(format!("/results/shard-{index}.json")));
        }
    }

    #[test]
    fn clients_are_chosen_by_name() {
        for (name, found) in [
            ("watcher", true),
            ("reference", true),
            ("reference:IgnoresDeleted", true),
            ("reference:x", false),
            ("y", false),
        ] {
            assert_eq!(Chosen::by(name).is_ok(), found, "{name}");
        }
    }
}

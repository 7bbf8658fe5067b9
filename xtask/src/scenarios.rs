//! `cargo xtask scenarios`: selects, runs and prints.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::ValueEnum;
use conformance::baseline::{self, Baseline};
use conformance::client::Client;
use conformance::coverage;
use conformance::report::terminal::Style;
use conformance::report::{json, markdown, requirements, terminal, transcript};
use conformance::suite::{self, Counts, Driver, Judged, Plan, Standing};
use conformance::trace::Trace;
use fake_apiserver::scenario::{Contract, SharedScenario};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::clients::{self, Clients, USAGE};

const EXIT_CODES: &str = "\
Exit codes:
  0   every scenario passed, or failed as known-failures.yaml lists it
  1   unexpected failure
  2   invalid command line, scenario file (the others are run) or known-failures.yaml
  4   no scenario selected
  5   no unexpected failure, but known-failures.yaml lists scenarios that pass
  70  harness error in at least one scenario";

const FAILED: u8 = 1;
const NOTHING_SELECTED: u8 = 4;
const STALE: u8 = 5;
const HARNESS: u8 = 70;

/// Arguments of `cargo xtask scenarios`.
#[derive(clap::Args)]
#[command(after_help = EXIT_CODES)]
pub struct Arguments {
    /// Prefixes of scenario ids, or paths of files and folders (`./mine`).
    #[arg(value_name = "PREFIX|PATH")]
    prefixes: Vec<String>,
    /// Client under test: watcher, kube-runtime or kube-client.
    ///
    /// Only scenarios of its contracts are run [default: watcher, and kube-client for the contracts watch and list].
    #[arg(long, value_name = "NAME")]
    client: Option<String>,
    /// Virtual time in memory (sim), or real time over sockets (live).
    #[arg(long, value_enum, default_value_t = Drivers::Sim)]
    driver: Drivers,
    /// Seed for all randomness; the same seed gives the same run.
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
    /// Number of scenarios to run in parallel [default: number of processors].
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// Output format: text, one JSON object per line, or a table of failures.
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
    /// Accept the new transcripts: rewrite the .snap files.
    ///
    /// Expectations never change, and the transcript of an unexpected failure is never accepted.
    #[arg(long)]
    bless: bool,
    /// Print the transcript and verdict of one scenario.
    #[arg(long, value_name = "ID", conflicts_with_all = ["prefixes", "bless"])]
    show: Option<String>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Drivers {
    Sim,
    Live,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Human,
    Json,
    Markdown,
}

impl Arguments {
    /// Returns the name of the requested client.
    pub fn client(&self) -> Option<&str> {
        self.client.as_deref()
    }
}

/// Runs the selected scenarios and returns the exit code.
pub fn run(arguments: &Arguments, clients: &Clients) -> ExitCode {
    match play(arguments, *clients) {
        Ok(code) => ExitCode::from(code),
        Err(message) => {
            let _closed_pipe = writeln!(std::io::stderr(), "{message}");
            ExitCode::from(USAGE)
        }
    }
}

fn play(arguments: &Arguments, clients: Clients) -> Result<u8, String> {
    let client = clients.named(arguments.client())?;
    let root = clients::root();
    let known_path = baseline::path_of(&root, client.name());
    let known = Baseline::read(&known_path).map_err(|error| error.to_string())?;
    let asked = arguments.show.as_ref();
    let asked = asked.map_or(&*arguments.prefixes, std::slice::from_ref);
    let (paths, prefixes): (Vec<String>, Vec<String>) =
        asked.iter().cloned().partition(|asked| is_path(asked));
    // The repository's own scenarios are not needed for files from elsewhere.
    let (all, mut faults) = match paths.is_empty() || !prefixes.is_empty() {
        true => clients::load_paths(&[root.join("scenarios")]),
        false => (Vec::new(), Vec::new()),
    };
    let paths: Vec<PathBuf> = paths.into_iter().map(PathBuf::from).collect();
    if paths.is_empty() && faults.is_empty() {
        let orphans = known.orphans(&known_path, |id| all.iter().any(|scenario| scenario.id == id));
        if !orphans.is_empty() {
            return Err(orphans.join("\n"));
        }
    }
    let mut chosen = match paths.is_empty() || !prefixes.is_empty() {
        true => suite::select(&all, &prefixes),
        false => Vec::new(),
    };
    let (elsewhere, more_faults) = clients::load_paths(&paths);
    chosen.extend(elsewhere);
    if arguments.client.is_some() {
        chosen.retain(|scenario| client.contracts().contains(&scenario.client.contract));
    }
    faults.extend(more_faults);
    for fault in &faults {
        print_error(fault);
    }
    let jobs = arguments.jobs.unwrap_or_else(clients::processors);
    let driver = match arguments.driver {
        Drivers::Sim => Driver::Sim,
        Drivers::Live => Driver::Live,
    };
    let plan = Plan {
        driver,
        seed: arguments.seed,
        jobs,
    };
    if let Some(id) = &arguments.show {
        let shown = chosen.iter().find(|scenario| scenario.id == *id || is_path(id));
        let Some(scenario) = shown else {
            print_error(&format!("there is no scenario {id}"));
            return Ok(if faults.is_empty() {
                NOTHING_SELECTED
            } else {
                USAGE
            });
        };
        let (client, known) = player(clients, client, scenario, &root)?;
        return Ok(show(&suite::one(scenario, client, plan, &known)));
    }
    if chosen.is_empty() {
        if !faults.is_empty() {
            return Ok(USAGE);
        }
        print_error(&format!("no scenario matches {}", arguments.prefixes.join(", ")));
        return Ok(NOTHING_SELECTED);
    }
    let progress = progress(&chosen, arguments.format);
    let done = |judged: &Judged| {
        progress.set_message(judged.scenario.id.clone());
        progress.inc(1);
    };
    let by_contract = |scenario: &SharedScenario| scenario.client.contract == Contract::Informer;
    let (informers, others): (Vec<_>, Vec<_>) = chosen.iter().cloned().partition(by_contract);
    let mut results = Vec::new();
    for part in [informers, others] {
        if let Some(first) = part.first() {
            let (client, known) = player(clients, client, first, &root)?;
            results.extend(suite::run(&part, client, plan, &known, &done));
        }
    }
    results.sort_by(|one, other| one.scenario.id.cmp(&other.scenario.id));
    progress.finish_and_clear();
    if arguments.bless {
        bless(&results)?;
    }
    print(
        &results,
        arguments.format,
        paths.is_empty() && chosen.len() == all.len(),
    );
    // All loadable scenarios ran; an unreadable file still fails the run.
    match exit_code(&Counts::of(&results)) {
        HARNESS => Ok(HARNESS),
        code if faults.is_empty() => Ok(code),
        _ => Ok(USAGE),
    }
}

/// Returns the client for a scenario and its known failures: the requested one, or the first that offers the scenario's
/// contract.
fn player(
    clients: Clients,
    chosen: &'static dyn Client,
    scenario: &SharedScenario,
    root: &Path,
) -> Result<(&'static dyn Client, Baseline), String> {
    let contract = scenario.client.contract;
    let is_offered = chosen.contracts().contains(&contract);
    let client = if is_offered {
        chosen
    } else {
        clients.offering(contract).unwrap_or(chosen)
    };
    let known = Baseline::read(&baseline::path_of(root, client.name())).map_err(|error| error.to_string())?;
    Ok((client, known))
}

/// Whether this is a file or folder, not a prefix of an id.
fn is_path(asked: &str) -> bool {
    let path = Path::new(asked);
    let ends_as_file = path
        .extension()
        .is_some_and(|ending| ending == "yaml" || ending == "yml");
    let is_explicit = path.is_absolute()
        || [".", "..", "scenarios"]
            .iter()
            .any(|first| path.iter().next().is_some_and(|part| part == *first));
    ends_as_file || (is_explicit && path.exists())
}

fn show(judged: &Judged) -> u8 {
    let trace = Trace::new(&judged.records);
    out(&format!("{}\n{}\n\n", judged.scenario.id, judged.scenario.title));
    out(&transcript::accepted(&judged.scenario, &trace, &judged.verdict));
    let mut counts = Counts::default();
    counts.add(judged);
    exit_code(&counts)
}

fn print(results: &[Judged], format: Format, whole: bool) {
    match format {
        Format::Json => {
            for judged in results {
                out(&format!("{}\n", json::entry(judged)));
            }
            out(&format!("{}\n", json::footer(&Counts::of(results))));
        }
        Format::Markdown => out(&markdown::failures(results)),
        Format::Human => {
            let style = style();
            for judged in results
                .iter()
                .filter(|judged| judged.standing == Standing::Failed)
            {
                out(&format!("{}\n", terminal::failure(judged, style)));
            }
            for remark in results.iter().filter_map(terminal::remark) {
                out(&format!("{remark}\n"));
            }
            out(&terminal::summary(results, style));
            // The summary of requirements needs all scenarios.
            if whole {
                out(&format!(
                    "\n{}",
                    requirements::table(&coverage::of_caching_clients(results))
                ));
            }
        }
    }
}

fn exit_code(counts: &Counts) -> u8 {
    match counts {
        Counts {
            harness_errors: 1.., ..
        } => HARNESS,
        Counts { failed: 1.., .. } => FAILED,
        Counts { stale: 1.., .. } => STALE,
        Counts { .. } => 0,
    }
}

/// Writes accepted transcripts that changed.
fn bless(results: &[Judged]) -> Result<(), String> {
    let mut written = 0;
    for judged in results {
        if judged.standing == Standing::Failed {
            print_error(&format!(
                "not accepted: {} failed unexpectedly",
                judged.scenario.id
            ));
            continue;
        }
        let trace = Trace::new(&judged.records);
        let text = transcript::accepted(&judged.scenario, &trace, &judged.verdict);
        let text = transcript::snapshot(&judged.scenario, &text);
        let path = transcript::snapshot_path(&judged.scenario, judged.client);
        if std::fs::read_to_string(&path).is_ok_and(|old| old == text) {
            continue;
        }
        write(&path, &text)?;
        written += 1;
    }
    print_error(&format!("{written} of {} transcripts rewritten", results.len()));
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))
}

/// Progress bar on standard error; hidden if that is not a terminal.
fn progress(chosen: &[SharedScenario], format: Format) -> ProgressBar {
    if format != Format::Human || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::with_draw_target(Some(chosen.len() as u64), ProgressDrawTarget::stderr());
    match ProgressStyle::with_template("{pos}/{len} {wide_bar} {elapsed} {msg}") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// Colours only for a terminal that supports them (<https://no-color.org>); the width of the terminal.
fn style() -> Style {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let columns = std::env::var("COLUMNS")
        .ok()
        .and_then(|columns| columns.parse().ok())
        .unwrap_or(100);
    Style {
        colour: std::io::stdout().is_terminal() && !refused,
        columns,
    }
}

// A closed pipe (`| head`) is not an error.
fn out(text: &str) {
    let _closed_pipe = std::io::stdout().write_all(text.as_bytes());
}

fn print_error(text: &str) {
    let _closed_pipe = writeln!(std::io::stderr(), "{text}");
}

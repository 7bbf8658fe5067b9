//! `cargo xtask crowd`: runs programs of other libraries in the scenarios and against a served apiserver, and compares what
//! they are accused of with what a person upheld. `e2e::crowd` has the programs, the plan and the record.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use clap::ValueEnum;
use e2e::crowd::plan::{Step, plan};
use e2e::crowd::record::{Known, Record, Seen};
use e2e::crowd::results::Results;
use e2e::crowd::{Crowd, Program, libraries};
use fake_apiserver::scenario;

use self::report::{Outcome, Report};
use self::selection::Selection;
use crate::cargo::{self, Build};
use crate::clients::{USAGE, processors, root};

mod report;
mod scenarios;
mod selection;
mod served;

const EXIT_CODES: &str = "\
Exit codes:
  0  every accusation is upheld in e2e/crowd/record.yaml
  1  an accusation is not upheld or no longer occurs, or a program is seldom judged
  2  invalid command line, or a file of e2e/crowd has mistakes or an entry without a sentence
  3  a program could not be built or run; with CI=1 also if a toolchain is missing";

const DIFFERENT: u8 = 1;
const NOT_RUN: u8 = 3;

/// Scenarios of a program in parallel, and programs per processor: they mostly wait, but a start takes processor time.
const JOBS: usize = 6;
const PROGRAMS_PER_PROCESSOR: usize = 2;

/// The same with `--gate`, whose scenarios are few and whose longest decides how long it takes.
const GATE_JOBS: usize = 12;
const GATE_PROGRAMS_PER_PROCESSOR: usize = 3;

/// Time of `serve` for the whole plan, in seconds.
const WHOLE_SERVE_S: u64 = 120;

/// Time of `serve` with `--gate`, in seconds.
const GATE_SERVE_S: u64 = 20;

/// `run --timeout` with `--gate`: scenarios that grant a program minutes are not played, and none takes much longer.
const GATE_TIMEOUT: &str = "40s";

/// Scenarios of `--gate`.
const GATE_SCENARIOS: [&str; 3] = ["event", "conn", "gone"];

#[derive(clap::Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Arguments {
    /// Programs to run [default: all].
    #[arg(value_name = "NAME")]
    programs: Vec<String>,
    /// Run only the programs with `gate: true`, in some scenarios, and serve them for 20 s.
    #[arg(long)]
    gate: bool,
    /// Play these scenarios only, by ids or their beginnings [default: all; with --gate event,conn,gone].
    ///
    /// A scenario that takes minutes is played only if its id is given in full.
    #[arg(long, value_name = "PREFIX", value_delimiter = ',')]
    scenarios: Vec<String>,
    /// Seconds of `serve`; 0 skips it [default: 120; with --gate 20].
    #[arg(long, value_name = "SECONDS")]
    serve_s: Option<u64>,
    /// Seed of the scenarios, and of the changes and faults in `serve`.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Number of scenarios to run in parallel per program [default: 6; with --gate 12].
    #[arg(long, short, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// Programs to run in parallel [default: two per processor; with --gate three].
    #[arg(long, value_name = "N")]
    parallel: Option<NonZeroUsize>,
    /// Add accusations to e2e/crowd/record.yaml with an empty `upheld`.
    ///
    /// After a full run of a program, also write its counts to e2e/crowd/results.yaml.
    #[arg(long)]
    write: bool,
    /// Write crates/command/libraries.yaml from the record, and run nothing.
    #[arg(long, conflicts_with = "write")]
    write_libraries: bool,
    /// Also print why scenarios were not judged.
    #[arg(long)]
    verbose: bool,
    /// Output format.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Path of the fake-apiserver binary [default: a new build].
    #[arg(long, value_name = "PATH")]
    binary: Option<PathBuf>,
}

/// Output format.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A line per program, and each difference from the record.
    Text,
    /// One JSON object per program, and a footer with counts.
    Json,
}

/// Failure of the chore itself, with its exit code.
struct Failure(u8, String);

/// A built program.
struct Entrant<'c> {
    program: &'c Program,
    command: Vec<String>,
    known: Known,
}

/// Everything that is the same for all programs.
struct Settings<'a> {
    fake_apiserver: PathBuf,
    /// Folder for the output of the programs, one each.
    runs: PathBuf,
    selection: &'a Selection,
    steps: Vec<Step>,
    serve_lasts: Duration,
    whole_plan: bool,
    jobs: usize,
    /// Time limit per scenario [default: that of `run`].
    timeout: Option<&'static str>,
    seed: u64,
}

/// Runs programs and prints differences from the record. `--help` lists the exit codes.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    match crowd(arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(DIFFERENT),
        Err(Failure(code, why)) => {
            note(&why);
            ExitCode::from(code)
        }
    }
}

/// Returns whether everything is as recorded.
fn crowd(arguments: &Arguments) -> Result<bool, Failure> {
    let usage = |why: String| Failure(USAGE, why);
    let root = root();
    let crowd = Crowd::read(&root).map_err(usage)?;
    let names: Vec<&str> = crowd.programs().map(|program| program.name.as_str()).collect();
    let chosen = chosen(&crowd, arguments).map_err(usage)?;
    let prefixes = match arguments.scenarios.as_slice() {
        [] if arguments.gate => GATE_SCENARIOS.map(str::to_owned).to_vec(),
        prefixes => prefixes.to_vec(),
    };
    let ids = selection::ids(&root).map_err(usage)?;
    let selection = Selection::of(&ids, &prefixes).map_err(usage)?;
    let mut record = Record::read(&root).map_err(usage)?;
    let mut mistakes = record.mistakes(&names, &ids);
    if !arguments.write {
        mistakes.extend(record.undecided());
    }
    if !mistakes.is_empty() {
        return Err(usage(mistakes.join("\ncrowd: ")));
    }
    if arguments.write_libraries {
        let text = libraries::text(&root, &crowd, &record).map_err(usage)?;
        let file = root.join(libraries::FILE);
        std::fs::write(&file, text).map_err(|error| usage(format!("{}: {error}", file.display())))?;
        return Ok(true);
    }
    let fake_apiserver = match &arguments.binary {
        Some(binary) => {
            std::path::absolute(binary).map_err(|why| usage(format!("{}: {why}", binary.display())))?
        }
        None => {
            let wanted = [("fake-apiserver-cli", "fake-apiserver")];
            let [built] = cargo::programs(Build::Debug, wanted).map_err(|why| Failure(NOT_RUN, why))?;
            built
        }
    };
    let target = root.join("target");
    let entrants = built(&root, &target, &crowd, &chosen, &record)?;
    let (default_s, jobs, per_processor) = if arguments.gate {
        (GATE_SERVE_S, GATE_JOBS, GATE_PROGRAMS_PER_PROCESSOR)
    } else {
        (WHOLE_SERVE_S, JOBS, PROGRAMS_PER_PROCESSOR)
    };
    let serve_lasts = Duration::from_secs(arguments.serve_s.unwrap_or(default_s));
    served::stop_at_ctrl_c().map_err(|why| Failure(NOT_RUN, why))?;
    let settings = Settings {
        fake_apiserver,
        runs: target.join("crowd/runs"),
        selection: &selection,
        steps: plan(arguments.seed, serve_lasts),
        serve_lasts,
        whole_plan: arguments.seed == 0 && serve_lasts >= Duration::from_secs(WHOLE_SERVE_S),
        jobs: arguments.jobs.map_or(jobs, NonZeroUsize::get),
        timeout: arguments.gate.then_some(GATE_TIMEOUT),
        seed: arguments.seed,
    };
    let parallel = arguments
        .parallel
        .map_or(per_processor * processors(), NonZeroUsize::get);
    let report = Report::new(
        arguments.format == Format::Json,
        arguments.verbose,
        entrants.len() * (selection.ids.len() + usize::from(!serve_lasts.is_zero())),
    );
    let outcomes = run_all(&root, &settings, &entrants, parallel, &report);
    report.ends(&outcomes, &settings.runs);
    if arguments.write {
        write(&root, &mut record, &names, &outcomes).map_err(usage)?;
    }
    if served::is_interrupted() {
        return Err(Failure(NOT_RUN, "interrupted".to_owned()));
    }
    if outcomes.iter().any(|outcome| outcome.seen.is_err()) {
        return Err(Failure(NOT_RUN, "a program could not be run".to_owned()));
    }
    Ok(outcomes.iter().all(|outcome| outcome.differences.is_empty()))
}

/// Returns the selected programs.
fn chosen<'c>(crowd: &'c Crowd, arguments: &Arguments) -> Result<Vec<&'c Program>, String> {
    let names = || crowd.programs().map(|program| program.name.as_str());
    if let Some(unknown) = arguments
        .programs
        .iter()
        .find(|name| !names().any(|known| known == name.as_str()))
    {
        let hint = match scenario::nearest(unknown, names()) {
            Some(near) => format!("did you mean {near}?"),
            None => format!("there are: {}", names().collect::<Vec<&str>>().join(", ")),
        };
        return Err(format!("there is no program {unknown}; {hint}"));
    }
    let is_chosen = |program: &&Program| {
        let is_named = arguments.programs.is_empty() || arguments.programs.contains(&program.name);
        is_named && (program.gate || !arguments.gate)
    };
    let chosen: Vec<&Program> = crowd.programs().filter(is_chosen).collect();
    if chosen.is_empty() {
        return Err(if arguments.gate {
            "none of the programs has `gate: true`".to_owned()
        } else {
            "e2e/crowd has no programs".to_owned()
        });
    }
    Ok(chosen)
}

/// Builds the programs, folder by folder. Those whose toolchain is missing are left out, with the reason.
fn built<'c>(
    root: &Path,
    target: &Path,
    crowd: &'c Crowd,
    chosen: &[&'c Program],
    record: &Record,
) -> Result<Vec<Entrant<'c>>, Failure> {
    let is_chosen = |program: &&Program| chosen.iter().any(|chosen| chosen.name == program.name);
    let mut entrants = Vec::new();
    for ecosystem in &crowd.ecosystems {
        let programs: Vec<&Program> = ecosystem.programs.iter().filter(is_chosen).collect();
        if programs.is_empty() {
            continue;
        }
        let commands = ecosystem.built(root, target).and_then(|out| {
            let command = |program: &&'c Program| Ok((*program, program.command(&out)?));
            programs.iter().map(command).collect::<Result<Vec<_>, String>>()
        });
        match commands {
            Ok(commands) => entrants.extend(commands.into_iter().map(|(program, command)| Entrant {
                program,
                command,
                known: record.of(&program.name),
            })),
            Err(why) if in_ci() => return Err(Failure(NOT_RUN, format!("{}: {why}", ecosystem.name))),
            Err(why) => {
                let names: Vec<&str> = programs.iter().map(|program| program.name.as_str()).collect();
                note(&format!("left out {}: {why}", names.join(", ")));
            }
        }
    }
    if entrants.is_empty() {
        return Err(Failure(NOT_RUN, "no program could be built".to_owned()));
    }
    Ok(entrants)
}

/// Runs all programs, so many in parallel, and reports each at its end. Returns the outcomes in the order of the programs.
fn run_all<'e>(
    root: &Path,
    settings: &Settings<'_>,
    entrants: &'e [Entrant<'_>],
    parallel: usize,
    report: &Report,
) -> Vec<Outcome<'e>> {
    let next = AtomicUsize::new(0);
    let outcomes: Mutex<BTreeMap<usize, Outcome<'_>>> = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for _ in 0..parallel.min(entrants.len()) {
            scope.spawn(|| {
                while !served::is_interrupted() {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(entrant) = entrants.get(number) else {
                        break;
                    };
                    let outcome = run_one(root, settings, entrant, report);
                    report.program(&outcome);
                    let mut outcomes = outcomes.lock().unwrap_or_else(PoisonError::into_inner);
                    outcomes.insert(number, outcome);
                }
            });
        }
    });
    let outcomes = outcomes.into_inner().unwrap_or_else(PoisonError::into_inner);
    outcomes.into_values().collect()
}

/// Runs one program: scenarios and `serve` side by side, since both mostly wait.
#[expect(clippy::disallowed_methods, reason = "the duration of a run is printed")]
fn run_one<'e>(
    root: &Path,
    settings: &Settings<'_>,
    entrant: &'e Entrant<'_>,
    report: &Report,
) -> Outcome<'e> {
    let began = Instant::now();
    let seen = seen(root, settings, entrant, report);
    Outcome {
        program: entrant.program,
        differences: seen
            .as_ref()
            .map_or(Vec::new(), |(seen, _)| entrant.known.differences(seen)),
        upheld: seen.as_ref().map_or(0, |(seen, _)| entrant.known.upheld(seen)),
        seen,
        took: began.elapsed(),
    }
}

fn seen(
    root: &Path,
    settings: &Settings<'_>,
    entrant: &Entrant<'_>,
    report: &Report,
) -> Result<(Seen, Option<served::Served>), String> {
    let folder = settings.runs.join(&entrant.program.name);
    let _absent = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).map_err(|why| format!("{}: {why}", folder.display()))?;
    let (played, served) = std::thread::scope(|scope| {
        let served = scope.spawn(|| {
            if settings.serve_lasts.is_zero() {
                return Ok(None);
            }
            let served = served::serve(settings, entrant, &folder);
            report.step();
            served.map(Some)
        });
        let played = scenarios::play(root, settings, entrant, &folder, || report.step());
        let served = served
            .join()
            .unwrap_or_else(|_| Err("the runner panicked".to_owned()));
        (played, served)
    });
    let (scenarios, mut accusations) = played?;
    let served = served.map_err(|why| format!("serve: {why}"))?;
    accusations.extend(served.iter().flat_map(|served| served.accusations.clone()));
    let seen = Seen {
        scenarios,
        all_scenarios: settings.selection.is_all,
        reads: served.as_ref().map(|served| served.reads),
        whole_plan: settings.whole_plan,
        accusations,
    };
    Ok((seen, served))
}

/// Adds new accusations to the record, and the counts of full runs to the results.
fn write(root: &Path, record: &mut Record, names: &[&str], outcomes: &[Outcome<'_>]) -> Result<(), String> {
    let mut results = Results::read(root)?;
    results.retain(names);
    let mut added = 0;
    for outcome in outcomes {
        let Ok((seen, _)) = &outcome.seen else { continue };
        added += record.add(&outcome.program.name, seen);
        if seen.all_scenarios && seen.whole_plan && seen.reads.is_some() {
            results.set(&outcome.program.name, seen.counts());
        }
    }
    if added > 0 {
        record.write(root)?;
        note(&format!(
            "{added} accusations added to e2e/crowd/record.yaml: decide each, and write why it is true in `upheld`"
        ));
    }
    results.write(root)
}

/// Nothing may be left out there.
fn in_ci() -> bool {
    std::env::var("CI").is_ok_and(|ci| ci == "1" || ci == "true")
}

fn note(line: &str) {
    let _closed_pipe = writeln!(io::stderr(), "crowd: {line}");
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn crowd() -> Crowd {
        let program = |name: &str, gate: bool| {
            format!(
                "  - {{name: {name}, title: t, library: l 1, source: 'https://example.com', kind: minimal, run: [x], gate: \
                 {gate}}}\n"
            )
        };
        let text = format!(
            "needs: []\nbuild: []\nprograms:\n{}{}",
            program("informer", true),
            program("operator", false)
        );
        Crowd::parse(&[("go".to_owned(), text)]).unwrap()
    }

    fn chosen_by(words: &[&str]) -> Result<Vec<String>, String> {
        let words = [&["crowd"], words].concat();
        let arguments = Command::try_parse_from(words).unwrap().arguments;
        let crowd = crowd();
        let chosen = chosen(&crowd, &arguments)?;
        Ok(chosen.into_iter().map(|program| program.name.clone()).collect())
    }

    #[test]
    fn programs_are_chosen_by_name_and_gate() {
        assert_eq!(chosen_by(&[]).unwrap(), ["informer", "operator"]);
        assert_eq!(chosen_by(&["operator"]).unwrap(), ["operator"]);
        assert_eq!(chosen_by(&["--gate"]).unwrap(), ["informer"]);
        assert_eq!(
            chosen_by(&["operator", "--gate"]).unwrap_err(),
            "none of the programs has `gate: true`"
        );
    }

    #[test]
    fn an_unknown_program_has_a_similar_name() {
        assert_eq!(
            chosen_by(&["informr"]).unwrap_err(),
            "there is no program informr; did you mean informer?"
        );
        assert_eq!(
            chosen_by(&["kubectl"]).unwrap_err(),
            "there is no program kubectl; there are: informer, operator"
        );
    }
}

//! `cargo xtask conformance`: runs the scenarios with the clients of adapters/adapters.yaml and writes CONFORMANCE.md.
//!
//! What the clients did is kept in adapters/results, a file each; the page is made of these files alone.

mod behaviour;
mod bugs;
mod contest;
pub(crate) mod gather;
mod outdated;
mod page;
mod pool;
mod progress;
mod readable;
mod record;
mod sources;
mod trimmed;

use std::io::{self, Write as _};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use conformance::baseline::Baseline;
use e2e::adapters::{Client, Registry, known_failures};

use self::behaviour::Behaviour;
use self::pool::{Entrant, Options};
use self::record::Record;
use self::trimmed::{Measured, Trimmed};
use crate::cargo::{self, Build};
use crate::clients;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Test this client only; can be given several times [default: all].
    #[arg(long, value_name = "NAME")]
    client: Vec<String>,
    /// Compare with the recorded results and CONFORMANCE.md instead of writing them.
    #[arg(long)]
    check: bool,
    /// Write CONFORMANCE.md from the recorded results; run nothing.
    #[arg(long, conflicts_with_all = ["client", "check"])]
    page: bool,
    /// Measure only what the clients ask first and how they wait, for the page's table of behaviour.
    #[arg(long, conflicts_with_all = ["check", "page", "from"])]
    behaviour: bool,
    /// List libraries of the adapters and test programs that have a newer release; run nothing.
    #[arg(long, conflicts_with_all = ["client", "check", "page", "behaviour"])]
    outdated: bool,
    /// Compare the lines that adapters/sources names with the sources of the pinned libraries; run nothing.
    #[arg(long, conflicts_with_all = ["client", "check", "page", "behaviour", "outdated"])]
    sources: bool,
    /// Take the output of earlier runs, NAME.jsonl in this folder, instead of running the clients.
    #[arg(long, value_name = "FOLDER", conflicts_with = "page")]
    from: Option<PathBuf>,
    /// Play these scenarios only, by ids or their beginnings; can be given several times [default: all].
    #[arg(long, value_name = "ID", conflicts_with_all = ["page", "behaviour", "from"])]
    scenario: Vec<String>,
    /// Play only what the record has as failures, which renews the evidence of them.
    #[arg(long, conflicts_with_all = ["page", "behaviour", "from", "scenario"])]
    failed: bool,
    /// Which scenarios to play; the record is of the full profile, and keeps the results of what is not played.
    #[arg(long, value_enum, default_value_t = Profile::Full, conflicts_with_all = ["page", "behaviour", "from"])]
    profile: Profile,
    /// Run one client on another version of its library, and print what that fixes and breaks against the record.
    ///
    /// The folder of the library's source: a Go module, a Python project, an npm package, the workspace of kube-rs. For Java
    /// GROUP:ARTIFACT:VERSION, which the local Maven repository has (`mvn install`). Nothing is written.
    #[arg(long, value_name = "LIBRARY", requires = "client", conflicts_with_all = ["check", "page", "behaviour", "outdated", "from"])]
    with: Option<String>,
    /// Number of tests to run in parallel, over all clients.
    ///
    /// Tests mostly wait. Adapters start only while a processor is free, so that more jobs than cores do not delay each other.
    #[arg(long, value_name = "N", default_value_t = NonZeroUsize::new(96).unwrap_or(NonZeroUsize::MIN))]
    jobs: NonZeroUsize,
    /// Keep the evidence of attempts that did not pass in this folder, for `fake-apiserver recheck` and `report`.
    #[arg(long, value_name = "FOLDER")]
    evidence: Option<PathBuf>,
}

/// Which scenarios are played.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Profile {
    /// Skip scenarios that take minutes.
    Quick,
    /// Include scenarios that take minutes, up to an hour and more.
    Full,
}

/// Exit code 0: done, or nothing differs; 1: a result differs or has no reason, or `--with` breaks one; 2: something is missing or broken.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    if arguments.outdated {
        return match outdated::outdated(&clients::root()) {
            Ok(lines) => {
                for line in lines {
                    let _closed_pipe = writeln!(io::stdout(), "{line}");
                }
                ExitCode::SUCCESS
            }
            Err(problem) => {
                note(&problem);
                ExitCode::from(clients::USAGE)
            }
        };
    }
    let found = match arguments.sources {
        true => compared(&clients::root()),
        false => conformance(arguments),
    };
    match found {
        Ok(wrong) if wrong.is_empty() => ExitCode::SUCCESS,
        Ok(wrong) => {
            wrong.iter().for_each(|line| note(line));
            ExitCode::FAILURE
        }
        Err(problem) => {
            note(&problem);
            ExitCode::from(clients::USAGE)
        }
    }
}

/// Compares adapters/sources with the libraries, and returns what differs.
fn compared(root: &Path) -> Result<Vec<String>, String> {
    let compared = sources::compared(root)?;
    compared.skipped.iter().for_each(|line| note(line));
    note(&format!(
        "{} ranges of sources have their quotes, {} have not",
        compared.right,
        compared.wrong.len()
    ));
    Ok(compared.wrong)
}

/// What is wrong with the results.
fn conformance(arguments: &Arguments) -> Result<Vec<String>, String> {
    let root = clients::root();
    let registry = Registry::read(&root)?;
    let mut wrong = Vec::new();
    if !arguments.page {
        let chosen = registry.chosen(&arguments.client)?;
        let fresh = match &arguments.from {
            Some(folder) => read(folder, &chosen, &mut wrong),
            None => {
                let programs = Programs::build()?;
                if let Some(library) = &arguments.with {
                    return tried(&root, &programs, &registry, &chosen, library, arguments);
                }
                let built = programs.commands(&root, &registry, &chosen)?;
                if arguments.behaviour {
                    measured(&root, &programs, &built)?;
                    Vec::new()
                } else {
                    played(&root, programs.target(&root), &registry, &built, arguments)?
                }
            }
        };
        for fresh in fresh {
            let client = fresh.client;
            // What is left out may come out in any way.
            let judged = |line: &String| {
                let id = line.split(": ").nth(1).unwrap_or_default();
                registry.left_out(client, id).is_none()
            };
            wrong.extend(fresh.complaints.iter().filter(|line| judged(line)).cloned());
            // What was not selected is as it is recorded now: another run may have written it meanwhile.
            let fresh = match Record::exists(&root, &client.name) && arguments.is_part() {
                true => fresh.completed(&Record::read(&root, &client.name)?),
                false => fresh,
            };
            if arguments.check {
                let recorded = Record::read(&root, &client.name)?;
                let differences = recorded.differences(&client.name, &fresh.record);
                wrong.extend(differences.into_iter().filter(judged));
            } else {
                fresh.write(&root, |id| registry.left_out(client, id).is_none())?;
            }
        }
    }
    let pages = page::pages(&root, &registry)?;
    wrong.extend(pages.wrong.iter().cloned());
    if arguments.check {
        wrong.extend(pages.stale(&root));
    } else {
        pages.write(&root)?;
    }
    Ok(wrong)
}

/// Runs a client on another version of its library, prints what that fixes, and returns what it breaks.
fn tried(
    root: &Path,
    programs: &Programs,
    registry: &Registry,
    chosen: &[&Client],
    library: &str,
    arguments: &Arguments,
) -> Result<Vec<String>, String> {
    let [client] = chosen else {
        return Err("--with takes one --client".to_owned());
    };
    let recorded = Record::read(root, &client.name)?;
    let command = registry.command_with(root, programs.target(root), client, library)?;
    let built = [(*client, command)];
    let fresh = played(root, programs.target(root), registry, &built, arguments)?;
    let (mut fixed, mut broken) = (Vec::new(), Vec::new());
    for Fresh {
        client, mut record, ..
    } in fresh
    {
        record
            .tests
            .retain(|id, _| registry.left_out(client, id).is_none());
        let (fixes, breaks) = recorded.changes(&record);
        fixed.extend(fixes);
        broken.extend(breaks);
    }
    let mut out = io::stdout();
    let _closed_pipe = writeln!(
        out,
        "{} with {library}: {} fixed, {} broken, against the record of {}",
        client.name,
        fixed.len(),
        broken.len(),
        recorded.client.version
    );
    for line in &fixed {
        let _closed_pipe = writeln!(out, "fixed: {line}");
    }
    Ok(broken.into_iter().map(|line| format!("broken: {line}")).collect())
}

/// What a client did.
struct Fresh<'r> {
    client: &'r Client,
    record: Record,
    /// What of it is not as expected.
    complaints: Vec<String>,
    /// Evidence of its failures; none of a run whose output alone was read.
    evidence: Vec<Trimmed>,
}

/// Reads the output of earlier runs.
fn read<'r>(folder: &Path, clients: &[&'r Client], wrong: &mut Vec<String>) -> Vec<Fresh<'r>> {
    let mut fresh = Vec::new();
    for client in clients {
        let output = match std::fs::read_to_string(folder.join(format!("{}.jsonl", client.name))) {
            Ok(output) => output,
            Err(why) => {
                note(&format!("skipped {}: {why}", client.name));
                continue;
            }
        };
        match Record::of_run(client, &output) {
            Ok((record, complaints)) => fresh.push(Fresh {
                client,
                record,
                complaints,
                evidence: Vec::new(),
            }),
            Err(why) => wrong.push(why),
        }
    }
    fresh
}

/// Measures what the clients ask first and how they wait.
fn measured(root: &Path, programs: &Programs, built: &[(&Client, Vec<String>)]) -> Result<(), String> {
    for (client, command) in built {
        note(&format!("{}: measuring …", client.name));
        match Behaviour::measure(root, &programs.fake_apiserver, client, command) {
            Ok(behaviour) => behaviour.write(root, &client.name)?,
            Err(why) => note(&format!("skipped {}: {why}", client.name)),
        }
    }
    Ok(())
}

/// Runs the scenarios with all of the clients.
fn played<'r>(
    root: &Path,
    target: &Path,
    registry: &Registry,
    built: &[(&'r Client, Vec<String>)],
    arguments: &Arguments,
) -> Result<Vec<Fresh<'r>>, String> {
    let entrant = |(client, command): &(&Client, Vec<String>)| {
        let left_out = registry.left_out.iter();
        Ok(Entrant {
            name: client.name.clone(),
            command: command.clone(),
            known: Baseline::read(&known_failures(root, &client.name)).map_err(|error| error.to_string())?,
            record: match Record::exists(root, &client.name) {
                true => Some(Record::read(root, &client.name)?),
                false => None,
            },
            left_out: left_out
                .filter(|left| left.clients.contains(&client.name))
                .flat_map(|left| left.scenarios.clone())
                .collect(),
        })
    };
    let entrants: Vec<Entrant> = built.iter().map(entrant).collect::<Result<_, String>>()?;
    let options = Options {
        jobs: arguments.jobs.get(),
        prefixes: arguments.scenario.clone(),
        failed: arguments.failed,
        quick: arguments.profile == Profile::Quick,
        evidence: arguments.evidence.clone(),
        homes: target.join(format!("conformance/{}", std::process::id())),
    };
    let runs = pool::play_all(root, &entrants, &options)?;
    let measured = measured_here()?;
    let mut fresh = Vec::new();
    for ((client, _), run) in built.iter().zip(runs) {
        let run = run.map_err(|why| format!("{}: {why}", client.name))?;
        note(&format!(
            "{} {}: {}; {}",
            client.name,
            run.client.hello.client.version,
            pool::counts(&run.tests),
            pool::times(&run.tests)
        ));
        let (record, complaints) = Record::of_tests(&client.name, &run.client.hello, &run.tests);
        let mut evidence = Vec::new();
        for test in &run.tests {
            let path = &test.scenario.path;
            let text =
                std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
            evidence.extend(Trimmed::of(test, &text, &measured));
        }
        fresh.push(Fresh {
            client,
            record,
            complaints,
            evidence,
        });
    }
    Ok(fresh)
}

impl Arguments {
    /// Whether only some of the scenarios are played.
    fn is_part(&self) -> bool {
        !self.scenario.is_empty() || self.failed || self.profile == Profile::Quick
    }
}

impl Fresh<'_> {
    /// Takes over what was not played from a record.
    fn completed(self, recorded: &Record) -> Self {
        Self {
            record: self.record.completed(recorded),
            ..self
        }
    }

    /// Writes results, and evidence of the failures that are `published`: what is left out has no page.
    fn write(self, root: &Path, published: impl Fn(&str) -> bool) -> Result<(), String> {
        let name = &self.client.name;
        self.record.write(root, name)?;
        let mut kept = trimmed::Kept::read(root, name)?;
        kept.renew(self.evidence, |id| self.record.is_failure(id) && published(id));
        let variable = |name| std::env::var_os(name).map(PathBuf::from);
        let here = std::fs::canonicalize(root).map_err(|error| format!("{}: {error}", root.display()))?;
        // A folder comes before the one that contains it.
        let machine = [variable("CARGO_TARGET_DIR"), Some(here), variable("HOME")];
        let named = |path: &PathBuf| path.components().count() > 1;
        let machine: Vec<PathBuf> = machine.into_iter().flatten().filter(named).collect();
        kept.write(root, name, &machine)
    }
}

/// Returns today, and what this machine is.
fn measured_here() -> Result<Measured, String> {
    let now = i64::try_from(now().as_secs()).map_err(|error| error.to_string())?;
    let now = jiff::Timestamp::from_second(now).map_err(|error| error.to_string())?;
    Ok(Measured {
        day: now.strftime("%Y-%m-%d").to_string(),
        platform: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        program: env!("CARGO_PKG_VERSION").to_owned(),
        kubernetes: fake_apiserver::scenario::Version::NEWEST.name().to_owned(),
    })
}

/// Returns the time since 1970.
#[expect(
    clippy::disallowed_methods,
    reason = "the edge hands in the day of a measurement"
)]
fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// The programs of this workspace.
struct Programs {
    fake_apiserver: PathBuf,
    watcher: PathBuf,
    kube_runtime: PathBuf,
    kube_client: PathBuf,
}

impl Programs {
    fn build() -> Result<Self, String> {
        let [fake_apiserver, watcher, kube_runtime, kube_client] = cargo::programs(
            Build::Debug,
            [
                ("fake-apiserver-cli", "fake-apiserver"),
                ("adapter-watcher", "adapter-watcher"),
                ("adapter-kube-runtime", "adapter-kube-runtime"),
                ("adapter-kube-client", "adapter-kube-client"),
            ],
        )?;
        Ok(Self {
            fake_apiserver,
            watcher,
            kube_runtime,
            kube_client,
        })
    }

    /// Builds the adapters. A client whose toolchain is missing is skipped with the reason.
    fn commands<'r>(
        &self,
        root: &Path,
        registry: &Registry,
        clients: &[&'r Client],
    ) -> Result<Vec<(&'r Client, Vec<String>)>, String> {
        let mut built = Vec::new();
        for client in clients {
            match self.command(root, registry, client) {
                Ok(command) => built.push((*client, command)),
                Err(why) if in_ci() => return Err(format!("{}: {why}", client.name)),
                Err(why) => note(&format!("skipped {}: {why}", client.name)),
            }
        }
        Ok(built)
    }

    fn command(&self, root: &Path, registry: &Registry, client: &Client) -> Result<Vec<String>, String> {
        let programs: [(&str, &Path); 3] = [
            ("adapter-watcher", &self.watcher),
            ("adapter-kube-runtime", &self.kube_runtime),
            ("adapter-kube-client", &self.kube_client),
        ];
        registry.command(root, self.target(root), client, &programs)
    }

    /// The target folder.
    fn target<'p>(&'p self, root: &'p Path) -> &'p Path {
        // `target/debug/fake-apiserver`: the folder of the profile lies in the target's.
        self.fake_apiserver.ancestors().nth(2).unwrap_or(root)
    }
}

/// Nothing may be skipped there.
fn in_ci() -> bool {
    std::env::var("CI").is_ok_and(|ci| ci == "1" || ci == "true")
}

fn note(line: &str) {
    let _closed_pipe = writeln!(io::stderr(), "conformance: {line}");
}

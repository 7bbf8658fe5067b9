//! `cargo xtask suites`: runs test suites of other projects against the fake or a real kube-apiserver, each on a new
//! server. `e2e::suites` judges the outcomes.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use clap::ValueEnum;
use e2e::suites::expected::{Against, KnownFailures, Verdict, judge, known_failures};
use e2e::suites::{Runner, SUITES, Suite, page};
use fake_apiserver::scenario::Version;

use crate::cargo::{self, Build};
use crate::clients::{USAGE, root};

mod beside;
mod crates;
mod envtest;
mod programs;
mod running;
mod target;

use beside::Beside;
use programs::Programs;
use target::Target;

const EXIT_CODES: &str = "\
Exit codes:
  0  every result matches e2e/suites/expected.yaml
  1  unlisted failure, listed failure that passed, or test not run
  2  invalid command line, or a file of e2e/suites cannot be read
  3  a suite could not be built or started (Go, except for kube-rs; --against real: the oracle)";

const UNEXPECTED: u8 = 1;
const NOT_RUN: u8 = 3;

#[derive(clap::Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Arguments {
    /// Suites to run [default: all].
    #[arg(value_name = "NAME", value_parser = named)]
    suites: Vec<&'static Suite>,
    /// Server under test.
    #[arg(long, value_enum, default_value_t = Server::Fake)]
    against: Server,
    /// Only tests whose full name contains this text (repeatable).
    #[arg(long, value_name = "TEXT")]
    only: Vec<String>,
    /// Path of the fake-apiserver binary [default: a new build].
    #[arg(long, value_name = "PATH")]
    binary: Option<PathBuf>,
    /// Write the counts to e2e/suites/counts.json, for docs/fidelity.md.
    #[arg(long, conflicts_with = "only")]
    record: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Server {
    /// `fake-apiserver serve`.
    Fake,
    /// The oracle: a real kube-apiserver with etcd.
    Real,
}

fn named(name: &str) -> Result<&'static Suite, String> {
    Suite::named(name).ok_or_else(|| {
        let names: Vec<&str> = SUITES.iter().map(|suite| suite.name).collect();
        format!("the suites are: {}", names.join(", "))
    })
}

/// Runs suites and prints counts. `--help` lists the exit codes.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let known = match known_failures() {
        Ok(known) => known,
        Err(why) => return failed(&why, USAGE),
    };
    let suites = if arguments.suites.is_empty() {
        SUITES.iter().collect()
    } else {
        arguments.suites.clone()
    };
    let fake = match (arguments.against, &arguments.binary) {
        (Server::Real, _) => None,
        (Server::Fake, Some(binary)) => Some(binary.clone()),
        (Server::Fake, None) => {
            match cargo::programs(Build::Debug, [("fake-apiserver-cli", "fake-apiserver")]) {
                Ok([program]) => Some(program),
                Err(why) => return failed(&why, NOT_RUN),
            }
        }
    };
    let mut worst = 0;
    for suite in suites {
        let code = match one(arguments, suite, fake.as_deref(), &known) {
            Ok(verdict) if verdict.is_as_expected() => 0,
            Ok(_) => UNEXPECTED,
            Err(why) => {
                print_line(&format!("{}: {why}", suite.name));
                NOT_RUN
            }
        };
        worst = worst.max(code);
    }
    ExitCode::from(worst)
}

fn failed(why: &str, code: u8) -> ExitCode {
    print_line(why);
    ExitCode::from(code)
}

#[expect(clippy::disallowed_methods, reason = "the duration of a suite is printed")]
fn one(
    arguments: &Arguments,
    suite: &Suite,
    fake: Option<&Path>,
    known: &KnownFailures,
) -> Result<Verdict, String> {
    let against = fake.map_or(Against::Real, |_| Against::Fake);
    let wanted = |name: &String| {
        arguments.only.is_empty() || arguments.only.iter().any(|text| name.contains(text.as_str()))
    };
    let mut specs = suite.specs()?.unwrap_or_default();
    specs.retain(wanted);
    let mut known = known.get(suite.name).cloned().unwrap_or_default();
    for expected in &mut known {
        expected.specs.retain(wanted);
    }
    let listed: Vec<&String> = known.iter().flat_map(|expected| &expected.specs).collect();
    print_line(&format!("{}: building", suite.name));
    let folder = folder(suite)?;
    let mut began = Instant::now();
    let mut running = || {
        print_line(&format!(
            "{}: running, output in {}",
            suite.name,
            folder.display()
        ));
        began = Instant::now();
    };
    let mut outcomes = match suite.runner {
        Runner::Envtest(packages) => {
            let planned = envtest::Planned::build(suite, packages, fake, &folder)?;
            running();
            planned.run(suite, &folder)?
        }
        Runner::Ginkgo | Runner::Specs | Runner::GoTest(_) | Runner::Ignored(_) => {
            let programs = Programs::build(suite, &folder)?;
            let target = Target::start(fake, &folder)?;
            let mut beside = Beside::start(&programs, &target, &folder)?;
            running();
            let outcomes = running::run(suite, &programs, &specs, &listed, &target, &folder)?;
            beside.still_there()?;
            outcomes
        }
    };
    outcomes.retain(|name, _| wanted(name));
    let verdict = judge(&outcomes, &known, &specs, against);
    print(suite, against, &verdict, began.elapsed().as_secs());
    if arguments.record {
        page::record(suite, against, Version::NEWEST.name(), &verdict)?;
    }
    Ok(verdict)
}

/// Returns the folder of a suite's programs and output: `target/suites/<name>`.
fn folder(suite: &Suite) -> Result<PathBuf, String> {
    let folder = root().join("target/suites").join(suite.name);
    let absolute = std::path::absolute(&folder).map_err(|why| why.to_string())?;
    std::fs::create_dir_all(&absolute).map_err(|why| format!("{}: {why}", absolute.display()))?;
    Ok(absolute)
}

fn print(suite: &Suite, against: Against, verdict: &Verdict, seconds: u64) {
    let mut out = std::io::stdout().lock();
    let server = match against {
        Against::Fake => "fake",
        Against::Real => "real",
    };
    let Verdict {
        passed,
        of,
        again,
        unexpected,
        stale,
        missing,
    } = verdict;
    let _closed_pipe = writeln!(out, "{}: {passed} of {of} on {server} in {seconds} s", suite.name);
    for spec in again {
        let _closed_pipe = writeln!(out, "  passed at the second attempt: {spec}");
    }
    for (spec, message) in unexpected {
        let message = message.lines().next().unwrap_or_default();
        let _closed_pipe = writeln!(out, "  failed: {spec}\n          {message}");
    }
    for spec in stale {
        let _closed_pipe = writeln!(out, "  listed in expected.yaml, did not fail: {spec}");
    }
    for spec in missing {
        let _closed_pipe = writeln!(out, "  was not run: {spec}");
    }
}

/// Prints a line of progress.
fn print_line(line: &str) {
    let _closed_pipe = writeln!(std::io::stderr(), "suites: {line}");
}

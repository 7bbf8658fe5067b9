//! `cargo xtask fidelity`: compares the fake with recordings of real servers, and records them.

use std::io::Write;
use std::process::ExitCode;

use ::fidelity::random::{Subject, Summary};
use ::fidelity::verdict::{Files, Outcome, Verdict, replay};
use ::fidelity::{Error, page, side_by_side};
use clap::{Args, Subcommand, ValueEnum};
use e2e::kubectl::Kubectl;
use e2e::story::{self, Chapter};
use e2e::suites;
use fake_apiserver::scenario::Version;

use crate::clients::{USAGE, root};
use crate::oracle;

/// What to do.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: Option<What>,
    /// Only this Kubernetes minor version, e.g. 1.37 (repeatable).
    #[arg(long)]
    version: Vec<Version>,
    /// Compare only probes whose id contains this text, side by side (repeatable).
    #[arg(long, num_args = 1..)]
    only: Vec<String>,
    /// Output format.
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
    /// Write docs/fidelity.md.
    #[arg(long)]
    write_docs: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Human,
    Json,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Of {
    /// Lists, gets and watches with all options.
    Reads,
    /// Server-side apply, updates and patches by several managers.
    Writes,
    /// Definitions with random schemas.
    Definitions,
}

#[derive(Subcommand)]
enum What {
    /// Record the responses of a real server to the probes, in fidelity/oracle/recordings.
    Record {
        /// Kubernetes minor version, e.g. 1.37.
        #[arg(long)]
        kubernetes_version: Version,
        /// Only probes whose id contains this text.
        #[arg(long, num_args = 1..)]
        only: Vec<String>,
    },
    /// Record the output of the kubectl commands in fidelity/oracle/kubectl.
    Kubectl {
        /// Only chapters whose name contains this text.
        #[arg(long, num_args = 1..)]
        only: Vec<String>,
    },
    /// Compare a real server and the fake on random programs.
    Random {
        /// Requests of the programs.
        #[arg(long, value_enum, default_value_t = Of::Reads)]
        of: Of,
        /// Number of programs.
        #[arg(long, default_value_t = 200)]
        seeds: u64,
        /// First seed.
        #[arg(long, default_value_t = 0)]
        first: u64,
        /// Kubernetes minor version.
        #[arg(long, default_value_t = Version::NEWEST)]
        kubernetes_version: Version,
        /// Number of differing programs to minimise.
        ///
        /// Takes minutes if a compaction is among the steps.
        #[arg(long, default_value_t = 5)]
        shrink: u64,
    },
}

/// Exit code 0: no unknown difference; 1: a difference that is neither accepted nor listed as open; 2: an error.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(why) => return failed(&Error::caller(format!("no runtime: {why}"))),
    };
    let done = match &arguments.what {
        None => runtime.block_on(compare(arguments)),
        Some(What::Record {
            kubernetes_version,
            only,
        }) => runtime
            .block_on(record(*kubernetes_version, only))
            .map(|failures| match failures {
                0 => ExitCode::SUCCESS,
                _ => ExitCode::from(USAGE),
            }),
        Some(What::Kubectl { only }) => kubectl(only),
        Some(What::Random {
            of,
            seeds,
            first,
            kubernetes_version,
            shrink,
        }) => {
            let subject = match of {
                Of::Reads => Subject::Reads,
                Of::Writes => Subject::Writes,
                Of::Definitions => Subject::Definitions,
            };
            runtime.block_on(random((subject, *kubernetes_version), (*first, *seeds), *shrink))
        }
    };
    done.unwrap_or_else(|why| failed(&why))
}

fn failed(why: &Error) -> ExitCode {
    let _closed_pipe = writeln!(std::io::stderr(), "{why}");
    ExitCode::from(USAGE)
}

async fn compare(arguments: &Arguments) -> Result<ExitCode, Error> {
    let versions = match arguments.version.as_slice() {
        [] => &Version::ALL,
        some => some,
    };
    let outcomes = replay(&Files::below(&root()), versions, &arguments.only).await?;
    let text = match arguments.format {
        Format::Human => human(&outcomes, !arguments.only.is_empty()),
        Format::Json => json(&outcomes),
    };
    let _closed_pipe = std::io::stdout().write_all(text.as_bytes());
    let file = root().join("docs").join("fidelity.md");
    if arguments.write_docs {
        std::fs::write(
            &file,
            page::write(&outcomes)
                + &suites::page::page().map_err(Error::caller)?
                + &story::page().map_err(Error::caller)?,
        )
        .map_err(|why| Error::caller(format!("{}: {why}", file.display())))?;
    }
    let listed = page::listed(&std::fs::read_to_string(&file).unwrap_or_default());
    let news = outcomes.iter().any(|outcome| {
        outcome.verdict == Verdict::Open
            && !listed.contains(&(outcome.probe.clone(), outcome.version.to_owned()))
    });
    Ok(ExitCode::from(u8::from(news)))
}

fn human(outcomes: &[Outcome], differences: bool) -> String {
    let mut out = String::new();
    for outcome in outcomes {
        let word = match &outcome.verdict {
            Verdict::Identical => continue,
            Verdict::Accepted(_) => "accepted",
            Verdict::Open => "open",
        };
        out.push_str(&format!("{}  {word:8}  {}\n", outcome.version, outcome.probe));
        if differences {
            out.push_str(&side_by_side(&outcome.recorded, &outcome.played));
            out.push('\n');
        }
    }
    out.push_str("\nKubernetes  identical  accepted  open\n");
    for (version, numbers) in page::numbers(outcomes) {
        out.push_str(&format!(
            "{version:10}  {:9}  {:8}  {:4}\n",
            numbers.identical, numbers.accepted, numbers.open
        ));
    }
    out
}

fn json(outcomes: &[Outcome]) -> String {
    let versions: serde_json::Map<String, serde_json::Value> = page::numbers(outcomes)
        .into_iter()
        .map(|(version, numbers)| {
            let probes = |wanted: fn(&Verdict) -> bool| -> Vec<&str> {
                outcomes
                    .iter()
                    .filter(|outcome| outcome.version == version && wanted(&outcome.verdict))
                    .map(|outcome| outcome.probe.as_str())
                    .collect()
            };
            let value = serde_json::json!({
                "identical": numbers.identical,
                "accepted": numbers.accepted,
                "open": numbers.open,
                "acceptedProbes": probes(|verdict| matches!(verdict, Verdict::Accepted(_))),
                "openProbes": probes(|verdict| *verdict == Verdict::Open),
            });
            (version.to_owned(), value)
        })
        .collect();
    format!("{}\n", serde_json::Value::Object(versions))
}

/// Records every probe of a version.
///
/// # Errors
/// A probe cannot be recorded.
pub(crate) fn record_all(version: Version) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|why| Error::caller(format!("no runtime: {why}")))?;
    match runtime.block_on(record(version, &[]))? {
        0 => Ok(()),
        failures => Err(Error::server(format!("{failures} probes cannot be recorded"))),
    }
}

/// Returns how many probes cannot be recorded.
async fn record(version: Version, only: &[String]) -> Result<u32, Error> {
    let files = Files::below(&root());
    let folder = files.recordings(version.name());
    std::fs::create_dir_all(&folder).map_err(|why| Error::caller(format!("{}: {why}", folder.display())))?;
    let mut failures = 0_u32;
    for probe in files.probes()? {
        let is_wanted = only.is_empty() || only.iter().any(|text| probe.id.contains(text));
        if !(is_wanted && probe.is_of(version)) {
            continue;
        }
        let file = folder.join(format!("{}.txt", probe.id));
        // A new server each, so that no probe sees what another left.
        let oracle = oracle::Running::begin(version)?;
        let mut server = ::fidelity::Server::Remote(Box::new(oracle.connect()?));
        let transcript = match ::fidelity::transcript(&probe, &mut server).await {
            Ok(text) => {
                std::fs::write(&file, text)
                    .map_err(|why| Error::caller(format!("{}: {why}", file.display())))?;
                format!("recorded  {}", probe.id)
            }
            Err(why) => {
                failures += 1;
                format!("failed    {}: {why}", probe.id)
            }
        };
        let _closed_pipe = writeln!(std::io::stdout(), "{transcript}");
    }
    Ok(failures)
}

fn kubectl(only: &[String]) -> Result<ExitCode, Error> {
    for chapter in Chapter::all().map_err(Error::caller)? {
        let name = chapter.name();
        if !only.is_empty() && !only.iter().any(|text| name.contains(text)) {
            continue;
        }
        // A new server each, so that no chapter depends on another.
        let oracle = oracle::Running::begin(Version::NEWEST)?;
        let kubectl = Kubectl::with(&oracle.kubeconfig()?).map_err(Error::caller)?;
        if !kubectl.run(&["get", "--raw", "/version"]).success {
            return Err(Error::server("kubectl does not reach the oracle"));
        }
        let transcript = chapter.play(&kubectl).map_err(Error::caller)?;
        chapter.record(&transcript).map_err(Error::caller)?;
        let _closed_pipe = writeln!(std::io::stdout(), "recorded  {name}");
    }
    Ok(ExitCode::SUCCESS)
}

/// Programs that one real server plays: nothing gives addresses of deleted services back to its range, which is full after some 1,600.
const PROGRAMS_PER_SERVER: u64 = 1_200;

async fn random(
    of: (Subject, Version),
    (mut first, mut left): (u64, u64),
    shrink: u64,
) -> Result<ExitCode, Error> {
    let (_, version) = of;
    let mut total = Summary::default();
    while left > 0 {
        let programs = left.min(PROGRAMS_PER_SERVER);
        let oracle = oracle::Running::begin(version)?;
        let mut real = oracle.connect()?;
        let before = total;
        let summary = ::fidelity::random::run(
            of,
            &mut real,
            (first, programs),
            shrink.saturating_sub(before.different),
            &mut |difference| {
                let _closed_pipe = writeln!(
                    std::io::stdout(),
                    "seed {}\n{}\n{}",
                    difference.seed,
                    difference.probe,
                    difference.side_by_side
                );
            },
            &mut |summary| {
                let so_far = before.and(*summary);
                let _closed_pipe = writeln!(
                    std::io::stderr(),
                    "{version}: {} programs, {} steps, {} different, {} passed over",
                    so_far.programs,
                    so_far.steps,
                    so_far.different,
                    so_far.passed_over
                );
            },
        )
        .await?;
        total = before.and(summary);
        (first, left) = (first + programs, left - programs);
    }
    Ok(ExitCode::from(u8::from(total.different > 0)))
}

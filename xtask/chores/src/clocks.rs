//! `cargo xtask clocks`: runs the tests that read the wall clock under wrong clocks, with Debian's libfaketime.
//!
//! Only the wall clock is shifted; timers keep the real monotonic one. Go programs (kubectl among them) read the clock
//! without the C library and keep the real time: for them the server's clock is ahead or behind, except under the
//! unshifted clock.

use std::fmt;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::cargo::{self, Executable};
use crate::clients;

/// Path of the library of Debian's package `faketime`, below the architecture's folder.
const LIBRARY: &str = "faketime/libfaketime.so.1";

/// A clock that tests run under.
struct Clock {
    name: &'static str,
    shift: Shift,
    /// POSIX form: works without a time zone database.
    zone: &'static str,
    /// Whether slow suites run too, as far as [`Takes`] allows.
    thorough: bool,
}

enum Shift {
    Days(i64),
    /// To noon (UTC) of the next 29 February.
    LeapDay,
}

const CLOCKS: [Clock; 6] = [
    Clock {
        name: "1 day ahead",
        shift: Shift::Days(1),
        zone: "UTC0",
        thorough: false,
    },
    Clock {
        name: "400 days ahead, UTC+14",
        shift: Shift::Days(400),
        zone: "KIR-14",
        thorough: true,
    },
    Clock {
        name: "10 years ahead, UTC+05:45",
        shift: Shift::Days(3_653),
        zone: "NPT-5:45",
        thorough: false,
    },
    Clock {
        name: "the next 29 February, UTC-12",
        shift: Shift::LeapDay,
        zone: "AOE12",
        thorough: false,
    },
    Clock {
        name: "100 days behind, UTC-03:30",
        shift: Shift::Days(-100),
        zone: "NST3:30",
        thorough: false,
    },
    Clock {
        name: "the machine's date, UTC+05:45",
        shift: Shift::Days(0),
        zone: "NPT-5:45",
        thorough: false,
    },
];

/// Tests of one target that read the wall clock, or start a program that does.
struct Suite {
    package: &'static str,
    target: &'static str,
    /// Filters of the test harness; empty runs all.
    filters: &'static [&'static str],
    takes: Takes,
}

/// Duration of a suite, which decides under which clocks it runs.
#[derive(Clone, Copy)]
enum Takes {
    /// Runs under every clock.
    Seconds,
    /// Runs under every clock; with `--quick`, under thorough ones only.
    AMinute,
    /// Runs under thorough clocks only, and not with `--quick`.
    Minutes,
}

impl Takes {
    fn runs(self, thorough: bool, quick: bool) -> bool {
        match self {
            Self::Seconds => true,
            Self::AMinute => thorough || !quick,
            Self::Minutes => thorough && !quick,
        }
    }
}

const fn suite(package: &'static str, target: &'static str, filters: &'static [&'static str]) -> Suite {
    Suite {
        package,
        target,
        filters,
        takes: Takes::Seconds,
    }
}

const SUITES: [Suite; 15] = [
    suite("builtin-kinds", "builtin_kinds", &[]),
    suite("fake-apiserver", "fake_apiserver", &[]),
    suite("fake-apiserver", "reviews", &[]),
    suite("fake-apiserver", "recorded_writes", &[]),
    suite("fake-apiserver-cli", "fake-apiserver", &[]),
    suite(
        "fake-apiserver-testing",
        "api",
        &["server::a_client", "server::sockets"],
    ),
    suite("conformance", "tls", &[]),
    suite("conformance", "edge", &[]),
    suite("tests", "credentials", &[]),
    Suite {
        takes: Takes::Minutes,
        ..suite("tests", "ctl", &[])
    },
    Suite {
        takes: Takes::Minutes,
        ..suite("tests", "cli", &[])
    },
    suite("e2e", "e2e", &[]),
    // Chapters whose manifests have dates, certificates or tokens.
    Suite {
        takes: Takes::AMinute,
        ..suite(
            "e2e",
            "clients",
            &[
                "kubectl_access",
                "kubectl_events",
                "kubectl_nodes",
                "kubectl_pods",
                "kubectl_workloads",
            ],
        )
    },
    // kubectl keeps the real time. A discovery document from a server that is ahead has a negative age, which its cache
    // treats as fresh (gregjones/httpcache `getFreshness`): it does not see a new definition, as with a real server.
    Suite {
        takes: Takes::Minutes,
        ..suite(
            "e2e",
            "clients",
            &["kubectl::", "--skip", "a_definition_makes_a_kind_like_any_other"],
        )
    },
    Suite {
        takes: Takes::Minutes,
        ..suite("fidelity", "recordings", &[])
    },
];

/// What to run.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Only clocks whose names contain this text, e.g. February.
    #[arg(long, value_name = "TEXT")]
    clock: Option<String>,
    /// Skip the suites that take minutes.
    #[arg(long)]
    quick: bool,
    /// Only this package (repeatable).
    #[arg(long, value_name = "NAME")]
    package: Vec<String>,
}

/// Exit code 0: every test passed under every clock; 1: one did not, and its output is printed; 2: no clock or package
/// matches; 3: libfaketime is missing, or the tests do not build.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let built = library().and_then(|library| Ok((library, build()?)));
    let (library, binaries) = match built {
        Ok(built) => built,
        Err(problem) => {
            eprintln!("clocks: {problem}");
            return ExitCode::from(3);
        }
    };
    let clocks = CLOCKS.iter().filter(|clock| {
        let wanted = arguments.clock.as_deref();
        wanted.is_none_or(|text| clock.name.contains(text))
    });
    let (mut runs, mut failed) = (0, 0);
    for clock in clocks {
        let suites = SUITES.iter().filter(|suite| {
            let wanted =
                arguments.package.is_empty() || arguments.package.iter().any(|name| name == suite.package);
            wanted && suite.takes.runs(clock.thorough, arguments.quick)
        });
        print_line(format_args!("{}", clock.name));
        for suite in suites {
            runs += 1;
            match under(&library, clock, suite, &binaries) {
                Ok(passed) => print_line(format_args!(
                    "  {passed:>4} passed  {} {}",
                    suite.package, suite.target
                )),
                Err(problem) => {
                    failed += 1;
                    print_line(format_args!("  FAILED       {} {}", suite.package, suite.target));
                    eprintln!(
                        "clocks: {}: {} {}: {problem}",
                        clock.name, suite.package, suite.target
                    );
                }
            }
        }
    }
    match (runs, failed) {
        (0, _) => {
            eprintln!("clocks: no such clock or package");
            ExitCode::from(2)
        }
        (_, 0) => ExitCode::SUCCESS,
        (_, _) => ExitCode::FAILURE,
    }
}

/// Prints a line; a closed pipe is not an error.
fn print_line(line: fmt::Arguments<'_>) {
    let _closed_pipe = writeln!(std::io::stdout(), "{line}");
}

/// Returns the path of libfaketime for this architecture.
fn library() -> Result<PathBuf, String> {
    let folders = Path::new("/usr/lib").read_dir().into_iter().flatten().flatten();
    let mut found = folders
        .map(|folder| folder.path().join(LIBRARY))
        .filter(|file| file.exists());
    found
        .next()
        .ok_or_else(|| "libfaketime is missing: install Debian's package `faketime`".to_owned())
}

/// Builds every test of the workspace, as `cargo test --workspace` does.
fn build() -> Result<Vec<Executable>, String> {
    let mut cargo = cargo::cargo();
    cargo
        .args(["test", "--workspace", "--no-run", "--quiet"])
        .current_dir(clients::root());
    let built = cargo::executables(cargo)?;
    Ok(built.into_iter().filter(|built| built.is_test).collect())
}

/// Runs a suite under a clock. Returns the number of tests passed; none is a failure.
fn under(library: &Path, clock: &Clock, suite: &Suite, binaries: &[Executable]) -> Result<u64, String> {
    let binary = binaries
        .iter()
        .find(|binary| binary.package == suite.package && binary.target == suite.target)
        .ok_or("there is no such test binary")?;
    let output = Command::new(&binary.path)
        .args(suite.filters)
        .current_dir(&binary.folder)
        .env("CARGO_MANIFEST_DIR", &binary.folder)
        .env("LD_PRELOAD", library)
        .env("FAKETIME", offset(&clock.shift)?)
        .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
        .env("DONT_FAKE_MONOTONIC", "1")
        .env("FAKETIME_NO_CACHE", "1")
        // Files keep their times: Cargo, which some tests call, compares them.
        .env("NO_FAKE_STAT", "1")
        // Cargo would consider its downloads unused for long, and remove them.
        .env("CARGO_CACHE_AUTO_CLEAN_FREQUENCY", "never")
        .env("CARGO_NET_OFFLINE", "true")
        .env("TZ", clock.zone)
        .stdin(Stdio::null())
        .output()
        .map_err(|why| format!("{}: {why}", binary.path.display()))?;
    verdict(&output)
}

fn verdict(output: &Output) -> Result<u64, String> {
    let printed = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{}\n{printed}\n{errors}", output.status));
    }
    match passed(&printed) {
        Some(0) | None => Err("no test ran".to_owned()),
        Some(passed) => Ok(passed),
    }
}

/// `test result: ok. 5 passed; …`.
fn passed(printed: &str) -> Option<u64> {
    let result = printed
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix("test result: ok. "))?;
    result.split_once(" passed")?.0.parse().ok()
}

/// Formats a shift for libfaketime: seconds relative to the real clock, so that all processes agree.
fn offset(shift: &Shift) -> Result<String, String> {
    let seconds = match shift {
        Shift::Days(days) => days * 86_400,
        Shift::LeapDay => seconds_to_leap_day(now()?),
    };
    Ok(format!("{seconds:+}s"))
}

#[expect(clippy::disallowed_methods, reason = "the edge reads the clock it shifts")]
fn now() -> Result<Duration, String> {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_err(|why| format!("the clock: {why}"))
}

/// Returns the seconds from `now` (since 1970) to noon of the next 29 February.
fn seconds_to_leap_day(now: Duration) -> i64 {
    let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    // 29 February 1972 was day 789; a leap day follows every 1,461 days, until 2100.
    let (first, every) = (789 * 86_400 + 43_200, 1_461 * 86_400);
    let wait = (first - now).rem_euclid(every);
    if wait == 0 { every } else { wait }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_next_leap_day_is_found() {
        // 2026-11-22T00:00:00Z to 2028-02-29T12:00:00Z.
        assert_eq!(
            seconds_to_leap_day(Duration::from_secs(1_795_305_600)),
            1_835_438_400 - 1_795_305_600
        );
        // At that noon, the next one: 2032-02-29T12:00:00Z.
        assert_eq!(
            seconds_to_leap_day(Duration::from_secs(1_835_438_400)),
            1_961_668_800 - 1_835_438_400
        );
    }

    #[test]
    fn no_test_is_no_success() {
        assert_eq!(
            passed("running 2 tests\n\ntest result: ok. 2 passed; 0 failed\n"),
            Some(2)
        );
        assert_eq!(
            passed("test result: ok. 0 passed; 0 failed; 9 filtered out\n"),
            Some(0)
        );
        assert_eq!(passed("error"), None);
    }

    #[test]
    fn no_suite_is_listed_twice() {
        let listed: BTreeSet<_> = SUITES
            .iter()
            .map(|suite| (suite.package, suite.target, suite.filters))
            .collect();
        assert_eq!(listed.len(), SUITES.len());
    }
}

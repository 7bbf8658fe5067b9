//! Runs the test binary of a suite to its end, as its runner requires, and parses its report.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use e2e::suites::report::{self, Outcomes};
use e2e::suites::{Runner, Suite};

use super::crates;
use super::print_line;
use super::programs::Programs;
use super::target::Target;

/// Processes that share the specs of the Kubernetes e2e suite: a spec mostly waits.
const SHARDS: usize = 4;

/// Specs whose names contain this run alone.
const SERIAL: &str = "[Serial]";

/// Some specs race with their informers on any server: failed ones run once more.
pub(super) const ATTEMPTS: &str = "--ginkgo.flake-attempts=2";

/// Tests between two lines of progress.
const PROGRESS_EVERY: usize = 20;

/// Runs a suite. `specs` is the selection of the Kubernetes e2e suite, `known` its expected failures.
///
/// # Errors
/// It does not start, or reports nothing.
pub(crate) fn run(
    suite: &Suite,
    programs: &Programs,
    specs: &[String],
    known: &[&String],
    target: &Target,
    folder: &Path,
) -> Result<Outcomes, String> {
    match suite.runner {
        Runner::Ginkgo => ginkgo(suite, programs, target, folder),
        Runner::Envtest(_) => Err("it starts its own servers".to_owned()),
        Runner::GoTest(test) => go_test(suite, programs, test, target, folder),
        Runner::Ignored(names) => crates::run(suite, names, &programs.tests, target, folder),
        Runner::Specs => specs_in_shards(suite, programs, specs, known, target, folder),
    }
}

/// Specs of one process.
struct Shard<'a> {
    /// Number in the names of its report and log.
    number: usize,
    specs: Vec<&'a String>,
    /// Ginkgo's time limit.
    time_limit: &'static str,
}

/// Runs specs in several processes. Expected failures have a process each: some wait until the time limit, which in
/// Ginkgo applies to all specs of a process.
fn specs_in_shards(
    suite: &Suite,
    programs: &Programs,
    specs: &[String],
    known: &[&String],
    target: &Target,
    folder: &Path,
) -> Result<Outcomes, String> {
    let (failing, passing): (Vec<&String>, Vec<&String>) =
        specs.iter().partition(|spec| known.contains(spec));
    let (serial, parallel): (Vec<&String>, Vec<&String>) =
        passing.iter().partition(|spec| spec.contains(SERIAL));
    let large = (0..SHARDS).map(|shard| {
        let part = parallel.iter().skip(shard).step_by(SHARDS);
        (part.copied().collect(), "15m")
    });
    let small = failing.into_iter().map(|spec| (vec![spec], "45s"));
    let shards = large.chain(small).chain([(serial, "15m")]).enumerate();
    let mut shards: Vec<Shard<'_>> = shards
        .map(|(number, (specs, time_limit))| Shard {
            number,
            specs,
            time_limit,
        })
        .collect();
    let last = shards.pop();
    let queue = Mutex::new(shards.into_iter());
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
    let outcomes = Mutex::new(Ok(Outcomes::new()));
    let one = |shard: &Shard<'_>| {
        let ran = kubernetes(suite, programs, shard, target, folder);
        let mut all = outcomes.lock().unwrap_or_else(PoisonError::into_inner);
        match (ran, all.as_mut()) {
            (Ok(ran), Ok(all)) => all.extend(ran),
            (Err(why), _) => *all = Err(why),
            (Ok(_), Err(_)) => {}
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..SHARDS {
            scope.spawn(|| {
                while let Some(shard) = next() {
                    one(&shard);
                }
            });
        }
    });
    if let Some(serial) = last {
        one(&serial);
    }
    outcomes.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn ginkgo(suite: &Suite, programs: &Programs, target: &Target, folder: &Path) -> Result<Outcomes, String> {
    let report = folder.join("report.json");
    // Fixtures are beside the tests, in the module.
    let sources = package_folder(suite, suite.package)?;
    let mut command = Command::new(programs.only());
    command
        .args(["--ginkgo.v", "--ginkgo.no-color", ATTEMPTS])
        .arg(format!("--ginkgo.json-report={}", report.display()))
        .env("USE_EXISTING_CLUSTER", "true")
        .env("KUBECONFIG", &target.kubeconfig)
        .current_dir(sources);
    reported(suite, command, &report, &folder.join("tests.log"))
}

fn kubernetes(
    suite: &Suite,
    programs: &Programs,
    shard: &Shard<'_>,
    target: &Target,
    folder: &Path,
) -> Result<Outcomes, String> {
    let Shard {
        number,
        specs,
        time_limit,
    } = shard;
    if specs.is_empty() {
        return Ok(Outcomes::new());
    }
    let report = folder.join(format!("report-{number}.json"));
    let mut command = Command::new(programs.only());
    command
        .args([
            "--provider=skeleton",
            "--disable-log-dump",
            "--dump-logs-on-failure=false",
        ])
        // No kubelet renews the nodes, and no admission plugin requires service accounts.
        .args(["--num-nodes=2", "--allowed-not-ready-nodes=-1"])
        .args(["--e2e-verify-service-account=false"])
        .args(["--ginkgo.v", "--ginkgo.no-color", ATTEMPTS])
        .arg(format!("--ginkgo.timeout={time_limit}"))
        .arg(format!("--kubeconfig={}", target.kubeconfig.display()))
        .args(
            programs
                .kubectl
                .iter()
                .map(|path| format!("--kubectl-path={}", path.display())),
        )
        .arg(format!("--ginkgo.json-report={}", report.display()))
        .args(
            specs
                .iter()
                .map(|spec| format!("--ginkgo.focus={}$", escaped(spec))),
        )
        .current_dir(folder);
    let mut outcomes = reported(
        suite,
        command,
        &report,
        &folder.join(format!("tests-{number}.log")),
    )?;
    // A name may end like another one.
    outcomes.retain(|name, _| specs.contains(&name));
    Ok(outcomes)
}

fn go_test(
    suite: &Suite,
    programs: &Programs,
    test: &str,
    target: &Target,
    folder: &Path,
) -> Result<Outcomes, String> {
    let mut tests = Command::new(programs.only());
    tests
        .args(["-test.v", "-test.run"])
        .arg(format!("^{test}$"))
        .env("KUBECONFIG", &target.kubeconfig);
    let text = listened(suite, tests, &folder.join("tests.log"), None)?;
    let outcomes = report::go_test(&text);
    if outcomes.is_empty() {
        return Err("its tests reported nothing; see tests.log".to_owned());
    }
    Ok(outcomes)
}

/// Runs a Ginkgo suite and parses its report.
///
/// # Errors
/// It does not start, or writes no report.
pub(super) fn reported(
    suite: &Suite,
    command: Command,
    report: &Path,
    log: &Path,
) -> Result<Outcomes, String> {
    let _was_not_there = std::fs::remove_file(report);
    listened(suite, command, log, None)?;
    let text = std::fs::read_to_string(report)
        .map_err(|_| format!("it ended without a report; see {}", log.display()))?;
    report::ginkgo(&text).map_err(|why| format!("{why}; see {}", log.display()))
}

/// Runs a program, copies its output to `log`, and prints progress; kills it after `time_limit`. Returns its standard
/// output; the report has the outcome.
pub(super) fn listened(
    suite: &Suite,
    mut command: Command,
    log: &Path,
    time_limit: Option<Duration>,
) -> Result<String, String> {
    let mut to = create(log)?;
    let errors = to.try_clone().map_err(|why| why.to_string())?;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(errors)
        .spawn()
        .map_err(|why| format!("{}: {why}", command.get_program().display()))?;
    let (over, waiting) = channel::<()>();
    let process = child.id().to_string();
    let watchdog = time_limit.map(|limit| {
        std::thread::spawn(move || {
            if waiting.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
                let _gone = Command::new("kill").arg(process).status();
            }
        })
    });
    let (mut text, mut ended, mut failed) = (String::new(), 0_usize, 0_usize);
    for line in child
        .stdout
        .take()
        .into_iter()
        .flat_map(|out| BufReader::new(out).split(b'\n'))
    {
        let Ok(line) = line else { break };
        let line = String::from_utf8_lossy(&line);
        writeln!(to, "{line}").map_err(|why| format!("{}: {why}", log.display()))?;
        text.push_str(&line);
        text.push('\n');
        let line = line.trim_start();
        let bad = line.starts_with("• [FAILED]") || line.starts_with("--- FAIL");
        if bad || line.starts_with("• [") || line.starts_with("--- PASS") {
            ended += 1;
            failed += usize::from(bad);
            if ended.is_multiple_of(PROGRESS_EVERY) {
                print_line(&format!("{}: {ended} ended, {failed} failed", suite.name));
            }
        }
    }
    drop(over);
    let _in_the_report = child.wait();
    if let Some(watchdog) = watchdog {
        let _done = watchdog.join();
    }
    Ok(text)
}

/// Returns the folder of a package's sources.
///
/// # Errors
/// Go does not find it.
pub(super) fn package_folder(suite: &Suite, package: &str) -> Result<String, String> {
    let output = Command::new("go")
        .args(["list", "-f", "{{.Dir}}", package])
        .current_dir(suite.folder())
        .output()
        .map_err(|why| format!("go list: {why}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    } else {
        Err(format!(
            "go list {package}: {}",
            String::from_utf8_lossy(&output.stderr)
        ))
    }
}

/// Escapes a name for a regular expression of Go.
fn escaped(name: &str) -> String {
    let special = |c: char| r"\.+*?()|[]{}^$".contains(c);
    name.chars()
        .flat_map(|c| special(c).then_some('\\').into_iter().chain([c]))
        .collect()
}

pub(crate) fn create(file: &Path) -> Result<File, String> {
    File::create(file).map_err(|why| format!("{}: {why}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn names_of_specs_are_no_patterns() {
        assert_eq!(
            escaped("[sig-api] a (b) v1.2 $x"),
            r"\[sig-api\] a \(b\) v1\.2 \$x"
        );
    }
}

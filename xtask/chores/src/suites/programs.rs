//! Programs of a suite, built from its pinned module. It starts none of them.

use std::path::{Path, PathBuf};
use std::process::Command;

use e2e::suites::{Runner, Suite};
use e2e::toolchain;

use super::crates;

/// Built programs.
pub(crate) struct Programs {
    /// Test binaries; one for a Go module.
    pub(crate) tests: Vec<PathBuf>,
    /// Components that run beside the suite, in start order.
    pub(crate) beside: Vec<PathBuf>,
    /// kubectl, for suites that call it.
    pub(crate) kubectl: Option<PathBuf>,
}

impl Programs {
    /// Builds the programs in `folder`. The first build of a module takes minutes; Go's build cache keeps the results.
    ///
    /// # Errors
    /// Go or Cargo is missing, or fails.
    pub(crate) fn build(suite: &Suite, folder: &Path) -> Result<Self, String> {
        if let Runner::Ignored(names) = suite.runner {
            return Ok(Self {
                tests: crates::build(suite, names, folder)?,
                beside: Vec::new(),
                kubectl: None,
            });
        }
        let flags = linked(suite)?;
        let tests = folder.join("tests");
        go(
            suite,
            &["test", "-c", "-ldflags", &flags, "-o"],
            &tests,
            suite.package,
        )?;
        let mut beside = Vec::new();
        for program in suite.beside {
            let to = folder.join(program);
            let package = format!("./{program}");
            go(suite, &["build", "-ldflags", &flags, "-o"], &to, &package)?;
            beside.push(to);
        }
        let kubectl = match suite.runner {
            Runner::Specs => Some(PathBuf::from(toolchain::go("kubectl")?.get_program())),
            Runner::Ginkgo | Runner::Envtest(_) | Runner::GoTest(_) | Runner::Ignored(_) => None,
        };
        Ok(Self {
            tests: vec![tests],
            beside,
            kubectl,
        })
    }

    /// Returns the test binary of a Go module.
    pub(crate) fn only(&self) -> &Path {
        self.tests.first().expect("`build` made it, or failed")
    }
}

/// Returns linker flags: no debug information, and the version reported by released binaries of Kubernetes.
fn linked(suite: &Suite) -> Result<String, String> {
    const VARIABLES: &str = "k8s.io/component-base/version";
    let (project, version) = suite.pinned()?;
    if project != "Kubernetes" {
        return Ok("-s -w".to_owned());
    }
    let mut numbers = version.split('.');
    let (major, minor) = (
        numbers.next().unwrap_or_default(),
        numbers.next().unwrap_or_default(),
    );
    Ok(format!(
        "-s -w -X {VARIABLES}.gitVersion=v{version} -X {VARIABLES}.gitMajor={major} -X {VARIABLES}.gitMinor={minor}"
    ))
}

fn go(suite: &Suite, arguments: &[&str], to: &Path, package: &str) -> Result<(), String> {
    go_in(&suite.folder(), arguments, to, package)
}

/// Runs Go's toolchain in a module's folder, with `to` and `package` after the arguments.
///
/// # Errors
/// Go is missing, or fails.
pub(super) fn go_in(folder: &Path, arguments: &[&str], to: &Path, package: &str) -> Result<(), String> {
    let status = Command::new("go")
        .args(arguments)
        .arg(to)
        .arg(package)
        .current_dir(folder)
        // The checkout's version control does not apply to a pinned module.
        .env("GOFLAGS", goflags())
        .status()
        .map_err(|why| format!("go is needed and cannot be run: {why}"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("go {} {package}: {status}", arguments.join(" ")))
    }
}

/// Returns the caller's flags and ours.
fn goflags() -> String {
    let given = std::env::var("GOFLAGS").unwrap_or_default();
    format!("{given} -buildvcs=false").trim().to_owned()
}

//! The programs of a suite, built from its pinned module. It starts none of them.

use std::path::{Path, PathBuf};
use std::process::Command;

use e2e::suites::{Runner, Suite};
use e2e::toolchain;

use super::crates;

/// What was built.
pub(crate) struct Programs {
    /// The test binaries; of a Go module one.
    pub(crate) tests: Vec<PathBuf>,
    /// What runs beside it, in the order it is started.
    pub(crate) beside: Vec<PathBuf>,
    /// kubectl, for suites that call it.
    pub(crate) kubectl: Option<PathBuf>,
}

impl Programs {
    /// Builds them in `folder`. The first time takes minutes for a module; Go's build cache keeps what was compiled.
    ///
    /// # Errors
    /// Go or Cargo is missing, or does not build them.
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

    /// The test binary of a Go module.
    pub(crate) fn only(&self) -> &Path {
        self.tests.first().expect("`build` made it, or failed")
    }
}

/// Linker flags: no debug information, and the version that released binaries of Kubernetes report.
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

/// Runs Go's toolchain in the folder of a module, with `to` and `package` behind the arguments.
///
/// # Errors
/// Go is missing, or fails.
pub(super) fn go_in(folder: &Path, arguments: &[&str], to: &Path, package: &str) -> Result<(), String> {
    let status = Command::new("go")
        .args(arguments)
        .arg(to)
        .arg(package)
        .current_dir(folder)
        // A checkout's version control says nothing about a pinned module.
        .env("GOFLAGS", goflags())
        .status()
        .map_err(|why| format!("go is needed and cannot be run: {why}"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("go {} {package}: {status}", arguments.join(" ")))
    }
}

/// The caller's flags, and ours.
fn goflags() -> String {
    let given = std::env::var("GOFLAGS").unwrap_or_default();
    format!("{given} -buildvcs=false").trim().to_owned()
}

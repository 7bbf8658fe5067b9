//! Suites that start their own control planes by envtest: on the links made by `fake-apiserver envtest-assets`, or on a
//! real kube-apiserver and etcd, built from the oracle's module.
//!
//! It does not judge outcomes.

use std::path::{Path, PathBuf};
use std::process::Command;

use e2e::suites::Suite;
use e2e::suites::report::Outcomes;

use super::print_line;
use super::programs::go_in;
use super::running::{ATTEMPTS, package_folder, reported};
use crate::clients::root;

/// Test binaries, and the directory for `KUBEBUILDER_ASSETS`.
pub(super) struct Planned {
    assets: PathBuf,
    packages: Vec<Package>,
}

struct Package {
    name: &'static str,
    tests: PathBuf,
    /// Folder of the sources: fixtures are beside the tests.
    sources: String,
}

impl Planned {
    /// Builds the assets and tests.
    ///
    /// # Errors
    /// Go is missing, or fails.
    pub(super) fn build(
        suite: &Suite,
        packages: &[&'static str],
        fake: Option<&Path>,
        folder: &Path,
    ) -> Result<Self, String> {
        let assets = match fake {
            Some(program) => links(program, &folder.join("fake"))?,
            None => real(&folder.join("real"))?,
        };
        let built = packages.iter().map(|&name| {
            let package = format!("{}/{name}", suite.package);
            let tests = folder.join(format!("{}.test", name.replace('/', "-")));
            go_in(
                &suite.folder(),
                &["test", "-c", "-ldflags", "-s -w", "-o"],
                &tests,
                &package,
            )?;
            Ok(Package {
                name,
                tests,
                sources: package_folder(suite, &package)?,
            })
        });
        Ok(Self {
            assets,
            packages: built.collect::<Result<_, String>>()?,
        })
    }

    /// Runs the packages one after another. Test names begin with the package.
    ///
    /// # Errors
    /// A suite does not start, or fails before its first test.
    pub(super) fn run(&self, suite: &Suite, folder: &Path) -> Result<Outcomes, String> {
        let mut outcomes = Outcomes::new();
        for Package { name, tests, sources } in &self.packages {
            print_line(&format!("{}: {name}", suite.name));
            let report = tests.with_extension("json");
            let mut command = Command::new(tests);
            command
                .args(["--ginkgo.v", "--ginkgo.no-color", ATTEMPTS])
                .arg(format!("--ginkgo.json-report={}", report.display()))
                .env("KUBEBUILDER_ASSETS", &self.assets)
                .current_dir(sources);
            let log = folder.join(format!("{}.log", name.replace('/', "-")));
            let of_package = reported(suite, command, &report, &log);
            end_left(&self.assets);
            let of_package = of_package.map_err(|why| format!("{name}: {why}"))?;
            let named = of_package
                .into_iter()
                .map(|(test, outcome)| (format!("{name}: {test}"), outcome));
            outcomes.extend(named);
        }
        Ok(outcomes)
    }
}

/// Kills programs of `assets` that a suite left running: some never stop their environments. Without `/proc` they stay.
fn end_left(assets: &Path) {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    for process in processes {
        let line = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
        let program = line.split(|byte| *byte == 0).next().unwrap_or_default();
        if Path::new(&*String::from_utf8_lossy(program)).starts_with(assets) {
            // A real kube-apiserver ignores SIGTERM when its etcd is gone.
            let _gone = Command::new("kill")
                .arg("-KILL")
                .arg(process.file_name())
                .status();
        }
    }
}

/// Returns the directory printed by `fake-apiserver envtest-assets`.
fn links(program: &Path, folder: &Path) -> Result<PathBuf, String> {
    let output = Command::new(program).arg("envtest-assets").arg(folder).output();
    let output = output.map_err(|why| format!("{}: {why}", program.display()))?;
    if output.status.success() {
        Ok(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim_end()))
    } else {
        Err(format!(
            "envtest-assets: {}",
            String::from_utf8_lossy(&output.stderr)
        ))
    }
}

/// Builds the real programs at the versions of the oracle's module. Its `go.sum` lacks what only etcd's command line
/// needs, so a copy is extended.
fn real(folder: &Path) -> Result<PathBuf, String> {
    let oracle = root().join("fidelity/oracle");
    let failed = |why: std::io::Error| format!("{}: {why}", folder.display());
    std::fs::create_dir_all(folder).map_err(failed)?;
    for file in ["go.mod", "go.sum"] {
        std::fs::copy(oracle.join(file), folder.join(file)).map_err(failed)?;
    }
    let module = folder.join("go.mod");
    let text = std::fs::read_to_string(&module).map_err(failed)?;
    let mut lines = text.lines().map(str::trim);
    let version = lines.find_map(|line| line.strip_prefix("k8s.io/kubernetes "));
    // As fidelity/oracle/build.sh, so that /version responds as a released kube-apiserver does.
    let stamp = "-s -w -X k8s.io/component-base/version.gitVersion";
    let flags = format!("{stamp}={}", version.unwrap_or_default());
    let module = format!("-modfile={}", module.display());
    for (program, package) in [
        ("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"),
        ("etcd", "go.etcd.io/etcd/server/v3"),
    ] {
        let arguments = ["build", "-mod=mod", &module, "-ldflags", &flags, "-o"];
        go_in(&oracle, &arguments, &folder.join(program), package)?;
    }
    Ok(folder.to_owned())
}

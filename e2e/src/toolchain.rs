//! Programs for the tests, built from this repository with the toolchains of the machine.
//!
//! Every builder returns the program or the reason why it cannot be built. With a reason [`or_skip`] skips the test and
//! prints it, or fails the test if `CI=1`, where nothing may be missing.

use std::ffi::OsStr;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

/// Reason why a program cannot be built on this machine.
pub type Missing = String;

/// Returns the program, or `None` to skip the test.
///
/// # Panics
///
/// If there is none and `CI=1`.
pub fn or_skip<T>(built: Result<T, Missing>) -> Option<T> {
    match built {
        Ok(built) => Some(built),
        Err(why) if std::env::var("CI").is_ok_and(|ci| ci == "1" || ci == "true") => {
            panic!("nothing may be skipped where CI=1: {why}")
        }
        Err(why) => {
            let test = std::thread::current();
            let test = test.name().unwrap_or("a test");
            // Not by `eprintln!`, whose output the test harness hides for tests that pass.
            drop(writeln!(io::stderr(), "skipped {test}: {why}"));
            None
        }
    }
}

/// Returns the root of the repository.
pub fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("a member lies in its workspace")
}

/// Returns `fake-apiserver`, built in the profile of the tests.
///
/// # Panics
///
/// If it does not build.
pub fn fake_apiserver() -> &'static Path {
    static BUILT: LazyLock<PathBuf> = LazyLock::new(|| tests::programs::path("fake-apiserver"));
    &BUILT
}

/// Returns a program of `clients/go`: `kubectl` or `informer`.
///
/// # Errors
///
/// Go is missing, or the build fails.
pub fn go(name: &str) -> Result<Command, Missing> {
    static BUILT: LazyLock<Result<PathBuf, Missing>> = LazyLock::new(|| {
        let to = kept("go");
        let module = clients("go");
        let version = kubernetes_version(&module)?;
        std::fs::create_dir_all(&to).map_err(|error| format!("{}: {error}", to.display()))?;
        let stamp = "-X k8s.io/component-base/version";
        let built = run(
            "go build (the first time it takes some minutes)",
            Command::new("go")
                .args(["build", "-buildvcs=false", "-ldflags"])
                .arg(format!("-s -w {stamp}.gitVersion={version}"))
                .arg("-o")
                .arg(&to)
                .args(["./kubectl", "./informer"])
                .current_dir(module),
        );
        built.map(|_| to)
    });
    BUILT.clone().map(|folder| Command::new(folder.join(name)))
}

/// Returns the tests of the project in `e2e/envtest`, as a command in its folder.
///
/// # Errors
///
/// Go is missing, or the build fails.
pub fn envtest_project() -> Result<Command, Missing> {
    static BUILT: LazyLock<Result<(PathBuf, PathBuf), Missing>> = LazyLock::new(|| {
        let (module, to) = (repository().join("e2e/envtest"), kept("envtest"));
        std::fs::create_dir_all(&to).map_err(|error| format!("{}: {error}", to.display()))?;
        let (package, tests) = ("internal/controller", to.join("controller.test"));
        let mut go = Command::new("go");
        go.args(["test", "-c", "-ldflags", "-s -w", "-o"]).arg(&tests);
        go.arg(format!("./{package}")).current_dir(&module);
        run("go test -c (the first time it takes some minutes)", &mut go)?;
        Ok((tests, module.join(package)))
    });
    BUILT.clone().map(|(tests, folder)| {
        let mut command = Command::new(tests);
        command.current_dir(folder);
        command
    })
}

/// Returns the version of Kubernetes that `clients/go` is pinned to: `v1.36.3` for `k8s.io/kubectl v0.36.3`.
fn kubernetes_version(module: &Path) -> Result<String, Missing> {
    let pinned = read(&module.join("go.mod"))?;
    let version = pinned
        .lines()
        .find_map(|line| line.trim().strip_prefix("k8s.io/kubectl v0."));
    version
        .map(|version| format!("v1.{version}"))
        .ok_or_else(|| "clients/go/go.mod pins no k8s.io/kubectl".to_owned())
}

/// Returns a program of `clients/python`.
///
/// # Errors
///
/// Python is missing, or the pinned packages cannot be installed.
pub fn python(script: &str) -> Result<Command, Missing> {
    static ENVIRONMENT: LazyLock<Result<PathBuf, Missing>> =
        LazyLock::new(|| virtual_environment(&clients("python"), &kept("python")));
    ENVIRONMENT.clone().map(|environment| {
        let mut command = Command::new(environment.join("bin/python"));
        command.arg(clients("python").join(script));
        command
    })
}

/// Creates the virtual environment `to` with the pinned packages in `requirements.txt` of a folder.
pub(crate) fn virtual_environment(from: &Path, to: &Path) -> Result<PathBuf, Missing> {
    environment(from, to, "requirements.txt", |from, to| {
        let clear = ["-m", "venv", "--clear"].map(OsStr::new);
        run("python3 -m venv", Command::new("python3").args(clear).arg(to))?;
        let install = ["-m", "pip", "install", "--quiet", "--requirement"];
        let mut pip = Command::new(to.join("bin/python"));
        run(
            "pip install",
            pip.args(install).arg(from.join("requirements.txt")),
        )
    })
}

/// Returns the program of `clients/javascript`.
///
/// # Errors
///
/// Node or npm is missing, or the pinned packages cannot be installed.
pub fn javascript_informer() -> Result<Command, Missing> {
    static ENVIRONMENT: LazyLock<Result<PathBuf, Missing>> = LazyLock::new(|| {
        let from = clients("javascript");
        let to = environment(&from, &kept("javascript"), "package-lock.json", npm_ci)?;
        // Node searches for packages next to the program.
        copy(&from.join("informer.mjs"), &to.join("informer.mjs"))?;
        Ok(to)
    });
    ENVIRONMENT.clone().map(|environment| {
        let mut command = Command::new("node");
        command.arg(environment.join("informer.mjs"));
        command
    })
}

/// Returns a script of `e2e/browser` that tests pages in Chromium.
///
/// # Errors
///
/// Chromium, Node or npm is missing, or the pinned packages cannot be installed.
pub fn browser(script: &str) -> Result<Command, Missing> {
    static ENVIRONMENT: LazyLock<Result<(PathBuf, PathBuf), Missing>> = LazyLock::new(|| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let found = ["chromium", "chromium-browser", "google-chrome"]
            .iter()
            .find_map(|name| {
                let mut all = std::env::split_paths(&path).map(|folder| folder.join(name));
                all.find(|program| program.is_file())
            });
        let chromium = found.ok_or_else(|| "chromium is needed and not there".to_owned())?;
        let from = repository().join("e2e/browser");
        let to = environment(&from, &kept("browser"), "package-lock.json", npm_ci)?;
        for script in ["live.mjs", "pages.mjs", "report.mjs", "site.mjs"] {
            copy(&from.join(script), &to.join(script))?;
        }
        Ok((chromium, to))
    });
    ENVIRONMENT.clone().map(|(chromium, folder)| {
        let mut command = Command::new("node");
        command.arg(folder.join(script)).arg(chromium);
        command
    })
}

/// Bundles the scripts of HTML reports and of the live view again, and returns the folder with the new bundles.
///
/// # Errors
/// Node or npm is missing, or cannot install the pinned packages.
pub fn report_bundle() -> Result<PathBuf, Missing> {
    let from = repository().join("crates/report/page");
    let to = environment(&from, &kept("report-page"), "package-lock.json", npm_ci)?;
    copy(&from.join("build.mjs"), &to.join("build.mjs"))?;
    let sources = from.join("src");
    let entries = std::fs::read_dir(&sources).map_err(|error| format!("{}: {error}", sources.display()))?;
    for entry in entries.filter_map(Result::ok) {
        copy(&entry.path(), &to.join("src").join(entry.file_name()))?;
    }
    run(
        "node build.mjs",
        Command::new("node").arg("build.mjs").current_dir(&to),
    )?;
    Ok(to.join("dist"))
}

/// Installs the packages of a lock file.
pub(crate) fn npm_ci(from: &Path, to: &Path) -> Result<Output, Missing> {
    for file in ["package.json", "package-lock.json"] {
        copy(&from.join(file), &to.join(file))?;
    }
    let quietly = ["ci", "--no-audit", "--no-fund", "--loglevel=error"];
    run("npm ci", Command::new("npm").args(quietly).current_dir(to))
}

/// Returns the program of `clients/java`.
///
/// # Errors
///
/// Java or Maven is missing, or the build with the pinned packages fails.
pub fn java_informer() -> Result<Command, Missing> {
    const SOURCE: &str = "src/main/java/Informer.java";
    static BUILT: LazyLock<Result<(PathBuf, String), Missing>> = LazyLock::new(|| {
        let to = kept("java");
        let (from, classpath) = (clients("java"), to.join("classpath"));
        for file in ["pom.xml", SOURCE] {
            copy(&from.join(file), &to.join(file))?;
        }
        let goals = ["--batch-mode", "--quiet", "compile", "dependency:build-classpath"];
        let mut maven = Command::new("mvn");
        maven.args(goals).current_dir(&to);
        maven.arg(format!("-Dmdep.outputFile={}", classpath.display()));
        run("mvn compile", &mut maven)?;
        Ok((to.join("target/classes"), read(&classpath)?))
    });
    BUILT.clone().map(|(classes, packages)| {
        let mut command = Command::new("java");
        command
            .arg("-cp")
            .arg(format!("{}:{packages}", classes.display()));
        command.arg("Informer");
        command
    })
}

/// Returns the folder `to` for the packages `pinned` in a file of the folder `from`, created by `make` if it does not exist.
pub(crate) fn environment(
    from: &Path,
    to: &Path,
    pinned: &str,
    make: impl FnOnce(&Path, &Path) -> Result<Output, Missing>,
) -> Result<PathBuf, Missing> {
    let wanted = read(&from.join(pinned))?;
    // Written last: exists only if the build is complete.
    let complete = to.join("complete");
    if std::fs::read_to_string(&complete).is_ok_and(|made| made == wanted) {
        return Ok(to.to_owned());
    }
    std::fs::create_dir_all(to).map_err(|error| format!("{}: {error}", to.display()))?;
    make(from, to)?;
    std::fs::write(&complete, wanted).map_err(|error| format!("{}: {error}", complete.display()))?;
    Ok(to.to_owned())
}

/// Returns the folder of the programs in a language.
fn clients(language: &str) -> PathBuf {
    repository().join("e2e/clients").join(language)
}

/// Returns the folder in which builds are kept between runs.
pub(crate) fn kept(what: &str) -> PathBuf {
    let profile = fake_apiserver().parent().expect("a program lies in a folder");
    let target = profile.parent().expect("a profile's folder lies in the target's");
    target.join("e2e").join(what)
}

pub(crate) fn copy(from: &Path, to: &Path) -> Result<(), Missing> {
    let folder = to.parent().map_or(Ok(()), std::fs::create_dir_all);
    let copied = folder.and_then(|()| std::fs::copy(from, to));
    copied
        .map(drop)
        .map_err(|error| format!("{}: {error}", to.display()))
}

fn read(file: &Path) -> Result<String, Missing> {
    std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))
}

/// Runs a tool until it ends, and prints that it runs: it may take minutes.
pub(crate) fn run(what: &str, command: &mut Command) -> Result<Output, Missing> {
    drop(writeln!(io::stderr(), "e2e: {what} …"));
    let output = command.output().map_err(|error| {
        let program = command.get_program().display();
        format!("{program} is needed and cannot be run: {error}")
    })?;
    if output.status.success() {
        return Ok(output);
    }
    // Test runners report on standard output.
    let outputs = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    Err(format!("{what} failed: {}", outputs.join("\n").trim()))
}

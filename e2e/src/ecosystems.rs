//! Runs the tests of the packages for other languages and of their examples with the tools of each language. It must not know
//! these tests.
//!
//! Tools that write next to their sources get a copy in the target folder, with the layout of the repository.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::install;
use crate::toolchain::{self, Missing, copy, environment, fake_apiserver, kept, npm_ci, repository, run};

/// Files that tools create next to the sources of a copy.
const BUILT: [&str; 4] = ["node_modules", "target", "complete", "__pycache__"];

/// Tests `packages/python` and `examples/python`, and type-checks the package.
///
/// # Errors
///
/// Python is missing, or a package cannot be installed.
///
/// # Panics
///
/// If a test fails.
pub fn python() -> Result<(), Missing> {
    let package = repository().join("packages/python");
    let python = toolchain::virtual_environment(&package, &kept("packages-python"))?.join("bin/python");
    let tool = |module: &str, folder: &Path| {
        let mut command = with_server(Command::new(&python));
        command
            .env("PYTHONPATH", package.join("src"))
            .env("PYTHONDONTWRITEBYTECODE", "1");
        command.args(["-m", module]).current_dir(folder);
        command
    };
    let mut types = tool("mypy", &package);
    types.arg("--cache-dir").arg(kept("mypy"));
    tested("mypy", types.args(["src", "tests/test_fixture.py"]));
    let quietly = [
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "fake_apiserver.pytest_plugin",
    ];
    tested("pytest, of the package", tool("pytest", &package).args(quietly));
    let mut example = tool("pytest", &repository().join("examples/python"));
    tested("pytest, of the example", example.args(quietly));
    Ok(())
}

/// Installs the wheel of `cargo xtask dist` as `examples/python` says, in a new environment, and tests the example with what was
/// installed.
///
/// # Errors
///
/// Python is missing, or a package cannot be installed.
///
/// # Panics
///
/// If the wheel cannot be made, or a test fails.
pub fn wheel() -> Result<(), Missing> {
    let package = repository().join("packages/python");
    let built = install::dist("wheels", "wheels")?.folder;
    let example = repository().join("examples/python");
    let fresh = kept("wheel-installed");
    let mut environment = Command::new("python3");
    run(
        "python3 -m venv",
        environment.args(["-m", "venv", "--clear"]).arg(&fresh),
    )?;
    let mut install = Command::new(fresh.join("bin/python"));
    install
        .args(["-m", "pip", "install", "--quiet", "--find-links"])
        .arg(&built)
        .args([
            OsStr::new("--requirement"),
            example.join("requirements.txt").as_ref(),
        ])
        .args([
            OsStr::new("--constraint"),
            package.join("requirements.txt").as_ref(),
        ]);
    run("pip install, of the wheel", &mut install)?;

    // The entry point loads the plugin, and the plugin finds the binary beside Python.
    let mut pytest = Command::new(fresh.join("bin/pytest"));
    pytest
        .args(["-q", "-p", "no:cacheprovider"])
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env_remove("PYTHONPATH")
        .env_remove("FAKE_APISERVER_BIN")
        .env_remove("KUBECONFIG")
        .current_dir(example);
    tested("pytest, of the example with the wheel", &mut pytest);
    Ok(())
}

/// Tests `packages/go/fakeapiserver` and `examples/go`.
///
/// # Errors
///
/// Go is missing, or a package cannot be downloaded.
///
/// # Panics
///
/// If a test fails.
pub fn go() -> Result<(), Missing> {
    for module in ["packages/go/fakeapiserver", "examples/go"] {
        let go = |arguments: &[&str]| {
            let mut go = with_server(Command::new("go"));
            go.args(arguments).current_dir(repository().join(module));
            go
        };
        run("go mod download", &mut go(&["mod", "download"]))?;
        let what = format!("go test, of {module}");
        tested(&what, &mut go(&["test", "-count=1", "./..."]));
    }
    Ok(())
}

/// Tests `packages/java` and `examples/java`.
///
/// # Errors
///
/// Java or Maven is missing, or a package cannot be downloaded.
///
/// # Panics
///
/// If a test fails.
pub fn java() -> Result<(), Missing> {
    let folder = copied("packages/java")?;
    copied("examples/java")?;
    let maven = |goal: &str| {
        let mut maven = with_server(Command::new("mvn"));
        maven.args(["--batch-mode", "--quiet", goal]).current_dir(&folder);
        maven
    };
    run("mvn test-compile", &mut maven("test-compile"))?;
    tested("mvn test", &mut maven("test"));
    Ok(())
}

/// Tests `packages/javascript` and `examples/javascript`.
///
/// # Errors
///
/// Node or npm is missing, or a package cannot be installed.
///
/// # Panics
///
/// If a test fails.
pub fn javascript() -> Result<(), Missing> {
    let package = copied("packages/javascript")?;
    let example = copied("examples/javascript")?;
    let from = repository().join("examples/javascript");
    environment(&from, &example, "package-lock.json", npm_ci)?;
    for folder in [package, example] {
        let mut npm = with_server(Command::new("npm"));
        npm.args(["test", "--silent"]).current_dir(&folder);
        tested("npm test", &mut npm);
    }
    Ok(())
}

/// Runs tests. Their failure fails the test; only a missing tool skips it.
fn tested(what: &str, command: &mut Command) {
    if let Err(why) = run(what, command) {
        panic!("{why}");
    }
}

/// Returns a command with the path of this build of `fake-apiserver` in its environment.
fn with_server(mut command: Command) -> Command {
    command.env("FAKE_APISERVER_BIN", fake_apiserver());
    command.env_remove("KUBECONFIG");
    command
}

/// Returns a copy of a folder of the repository, which has no other files than those and the output of tools.
fn copied(folder: &str) -> Result<PathBuf, Missing> {
    let to = kept("packages").join(folder);
    mirror(&repository().join(folder), &to)?;
    Ok(to)
}

fn mirror(from: &Path, to: &Path) -> Result<(), Missing> {
    let failed = |path: &Path| {
        let path = path.display().to_string();
        move |error: std::io::Error| format!("{path}: {error}")
    };
    std::fs::create_dir_all(to).map_err(failed(to))?;
    let is_source = |path: &Path| !BUILT.iter().any(|built| path.ends_with(built));
    for old in std::fs::read_dir(to).map_err(failed(to))? {
        let old = old.map_err(failed(to))?.path();
        let name = old.file_name().unwrap_or_default();
        if is_source(&old) && old.is_file() && !from.join(name).exists() {
            std::fs::remove_file(&old).map_err(failed(&old))?;
        }
    }
    for entry in std::fs::read_dir(from).map_err(failed(from))? {
        let path = entry.map_err(failed(from))?.path();
        let beside = to.join(path.file_name().unwrap_or_default());
        if !is_source(&path) {
            continue;
        }
        if path.is_dir() {
            mirror(&path, &beside)?;
        } else if std::fs::read(&path).ok() != std::fs::read(&beside).ok() {
            copy(&path, &beside)?;
        }
    }
    Ok(())
}

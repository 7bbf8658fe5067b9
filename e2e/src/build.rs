//! Builds a folder of programs outside this workspace in a copy of it, whenever a file has changed. It must not know what
//! the programs do.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tests::programs::as_in_a_shell;

use crate::toolchain::{Missing, run};

/// Files that are not copied: results of builds in the folder itself, and the description of the programs.
const NOT_COPIED: [&str; 4] = ["__pycache__", "node_modules", "programs.yaml", "target"];

/// Copies the folder `source` to `out` and runs the commands of `build` there, if a file or a command has changed since the
/// last complete build. `needs` are required programs.
///
/// # Errors
///
/// The reason why it cannot be built on this machine.
pub(crate) fn built(
    source: &Path,
    out: &Path,
    needs: &[String],
    build: &[Vec<String>],
) -> Result<(), Missing> {
    for program in needs {
        let found = Command::new(program)
            .arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        found.map_err(|error| format!("{program} is needed and cannot be run: {error}"))?;
    }
    let mut stamp = format!("{build:?}\n");
    copied(source, out, &mut stamp)?;
    // Written last: exists only if the build is complete.
    let complete = out.join("complete");
    if fs::read_to_string(&complete).is_ok_and(|built| built == stamp) {
        return Ok(());
    }
    ran(build, out)?;
    fs::write(&complete, stamp).map_err(|error| format!("{}: {error}", complete.display()))
}

/// Runs commands in a folder, one after the other.
///
/// # Errors
///
/// One cannot be run, or fails.
pub(crate) fn ran(commands: &[Vec<String>], out: &Path) -> Result<(), Missing> {
    for command in commands {
        let Some((program, arguments)) = command.split_first() else {
            continue;
        };
        // A program in the folder itself has a relative path.
        let local = out.join(program);
        let program = if local.is_file() {
            local
        } else {
            PathBuf::from(program)
        };
        let mut started = Command::new(program);
        started.args(arguments).current_dir(out).stdin(Stdio::null());
        as_in_a_shell(&mut started);
        run(&command.join(" "), &mut started)?;
    }
    Ok(())
}

/// Returns `run` with the placeholder `{out}` replaced by the build folder.
///
/// # Errors
///
/// The program was not built, or there is none.
pub(crate) fn command(run: &[String], out: &Path) -> Result<Vec<String>, Missing> {
    let fill = |word: &String| word.replace("{out}", &out.to_string_lossy());
    let command: Vec<String> = run.iter().map(fill).collect();
    match command.first() {
        Some(program) if program.contains('/') && !Path::new(program).is_file() => Err(format!(
            "{program} is not there: its package is not made for this platform"
        )),
        Some(_) => Ok(command),
        None => Err("`run` is empty".to_owned()),
    }
}

/// Copies the files of a folder that differ, and appends their names and contents to `stamp`.
fn copied(from: &Path, to: &Path, stamp: &mut String) -> Result<(), Missing> {
    let failed = |path: &Path| {
        let path = path.display().to_string();
        move |error: std::io::Error| format!("{path}: {error}")
    };
    fs::create_dir_all(to).map_err(failed(to))?;
    let entries = fs::read_dir(from).map_err(failed(from))?;
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.sort();
    for file in files {
        let name = file.file_name().unwrap_or_default();
        if NOT_COPIED.iter().any(|not_copied| name == *not_copied) {
            continue;
        }
        let copy = to.join(name);
        if file.is_dir() {
            copied(&file, &copy, stamp)?;
            continue;
        }
        let text = fs::read_to_string(&file).map_err(failed(&file))?;
        if !fs::read_to_string(&copy).is_ok_and(|there| there == text) {
            fs::write(&copy, &text).map_err(failed(&copy))?;
        }
        let _infallible = writeln!(stamp, "{}\n{text}", name.display());
    }
    Ok(())
}

//! Builds adapters into target/adapters if their files have changed.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{Client, Registry};
use crate::toolchain::{Missing, run};

impl Registry {
    /// Returns the command of a client's adapter, built into `target`/adapters if its files have changed. `programs` are
    /// those of this workspace by their names in `run`.
    ///
    /// # Errors
    ///
    /// The reason why it cannot be built on this machine.
    pub fn command(
        &self,
        root: &Path,
        target: &Path,
        client: &Client,
        programs: &[(&str, &Path)],
    ) -> Result<Vec<String>, Missing> {
        let out = self.built(root, target, &client.ecosystem)?;
        let fill = |word: &String| {
            let filled = word.replace("{out}", &out.to_string_lossy());
            programs.iter().fold(filled, |word, (name, path)| {
                word.replace(&format!("{{{name}}}"), &path.to_string_lossy())
            })
        };
        let command: Vec<String> = client.run.iter().map(fill).collect();
        match command.first() {
            Some(program) if program.contains('/') && !Path::new(program).is_file() => Err(format!(
                "{program} is not there: its package is not made for this platform"
            )),
            Some(_) => Ok(command),
            None => Err("`run` is empty".to_owned()),
        }
    }

    /// Builds an ecosystem, and returns its folder.
    fn built(&self, root: &Path, target: &Path, name: &str) -> Result<PathBuf, Missing> {
        let out = target.join("adapters").join(name);
        let ecosystem = &self.ecosystems[name];
        if ecosystem.build.is_empty() {
            return Ok(out);
        }
        for program in &ecosystem.needs {
            let found = Command::new(program)
                .arg("--version")
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status();
            found.map_err(|error| format!("{program} is needed and cannot be run: {error}"))?;
        }
        let source = root.join("adapters").join(name);
        let mut stamp = format!("{:?}\n", ecosystem.build);
        copied(&source, &out, &mut stamp)?;
        // Written last: exists only if the build is complete.
        let complete = out.join("complete");
        if fs::read_to_string(&complete).is_ok_and(|built| built == stamp) {
            return Ok(out);
        }
        for command in &ecosystem.build {
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
            run(
                &command.join(" "),
                started.args(arguments).current_dir(&out).stdin(Stdio::null()),
            )?;
        }
        fs::write(&complete, stamp).map_err(|error| format!("{}: {error}", complete.display()))?;
        Ok(out)
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
        if name == "__pycache__" {
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

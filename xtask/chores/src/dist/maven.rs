//! Compiles the Java extension and its documentation in a copy, with Maven and a JDK. It must not know a jar.

use std::path::Path;
use std::process::Command;

use super::files::Entry;
use super::java::PACKAGE;
use super::read::{listed, output};

/// The line that installs what is needed.
const TOOLS: &str = "install it: apt-get install maven default-jdk-headless";

/// What Maven and javadoc wrote.
pub(super) struct Compiled {
    pub(super) classes: Vec<Entry>,
    /// Pages of javadoc; Maven Central rejects a library without.
    pub(super) documentation: Vec<Entry>,
}

/// Compiles the extension. `work`: a folder for the copy.
///
/// # Errors
/// Maven or javadoc is missing or fails.
pub(super) fn compiled(root: &Path, work: &Path) -> Result<Compiled, String> {
    let copy = work.join("java");
    let failed = |path: &Path, why: std::io::Error| format!("{}: {why}", path.display());
    if copy.exists() {
        std::fs::remove_dir_all(&copy).map_err(|why| failed(&copy, why))?;
    }
    let mut sources = Vec::new();
    for path in listed(root, &[PACKAGE])? {
        let to = copy.join(path.trim_start_matches(PACKAGE).trim_start_matches('/'));
        let folder = to.parent().unwrap_or(&copy);
        std::fs::create_dir_all(folder).map_err(|why| failed(folder, why))?;
        std::fs::copy(root.join(&path), &to).map_err(|why| failed(&to, why))?;
        if path.contains("/src/main/") && path.ends_with(".java") {
            sources.push(to);
        }
    }
    let classpath = copy.join("classpath");
    let mut maven = Command::new("mvn");
    maven
        .args(["--batch-mode", "--quiet", "compile", "dependency:build-classpath"])
        .arg(format!("-Dmdep.outputFile={}", classpath.display()))
        .current_dir(&copy);
    output(&mut maven).map_err(|why| format!("java: {why} ({TOOLS})"))?;
    let packages = std::fs::read_to_string(&classpath).map_err(|why| failed(&classpath, why))?;
    let pages = copy.join("target/apidocs");
    let mut javadoc = Command::new("javadoc");
    javadoc
        .args([
            "-quiet",
            "-notimestamp",
            "-Xdoclint:none",
            "-encoding",
            "UTF-8",
            "-d",
        ])
        .arg(&pages)
        .args(["-classpath", packages.trim()])
        .args(sources);
    output(&mut javadoc).map_err(|why| format!("java: {why} ({TOOLS})"))?;
    Ok(Compiled {
        classes: entries(&copy.join("target/classes"))?,
        documentation: entries(&pages)?,
    })
}

/// Returns the files below a folder.
fn entries(root: &Path) -> Result<Vec<Entry>, String> {
    let failed = |path: &Path, why: std::io::Error| format!("{}: {why}", path.display());
    let mut entries = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(&folder).map_err(|why| failed(&folder, why))? {
            let path = path.map_err(|why| failed(&folder, why))?.path();
            if path.is_dir() {
                folders.push(path);
            } else if let Ok(inside) = path.strip_prefix(root) {
                let bytes = std::fs::read(&path).map_err(|why| failed(&path, why))?;
                entries.push(Entry::file(inside.display().to_string(), bytes));
            }
        }
    }
    Ok(entries)
}

//! Builds adapters into target/adapters if their files have changed, and into target/adapters-with on another version of their
//! library.

use std::path::Path;

use super::{Client, FILE, Registry};
use crate::build;
use crate::toolchain::Missing;

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
        let out = target.join("adapters").join(&client.ecosystem);
        self.built(root, &out, &client.ecosystem)?;
        build::command(&filled(&client.run, programs), &out)
    }

    /// Returns the command of a client's adapter on another version of its library, built into another folder.
    ///
    /// `library` is a folder with the library's source, or what the ecosystem's `with` takes instead.
    ///
    /// # Errors
    ///
    /// The reason why it cannot be built: among others, the ecosystem takes no other version.
    pub fn command_with(
        &self,
        root: &Path,
        target: &Path,
        client: &Client,
        library: &str,
    ) -> Result<Vec<String>, Missing> {
        let ecosystem = &self.ecosystems[&client.ecosystem];
        if ecosystem.with.is_empty() {
            return Err(format!(
                "{}: its library cannot be replaced ({FILE} has no `with` for {})",
                client.name, client.ecosystem
            ));
        }
        let out = target.join("adapters-with").join(&client.ecosystem);
        let out = std::path::absolute(&out).map_err(|error| format!("{}: {error}", out.display()))?;
        self.built(root, &out, &client.ecosystem)?;
        let commands = Library::named(library)?.filled(&ecosystem.with, root, &out);
        // Cargo writes the other version into the lock file of this workspace.
        let lock = root.join("Cargo.lock");
        let pinned = std::fs::read(&lock).map_err(|error| format!("{}: {error}", lock.display()))?;
        let ran = build::ran(&commands, &out);
        std::fs::write(&lock, pinned).map_err(|error| format!("{}: {error}", lock.display()))?;
        ran?;
        // Programs of this workspace are built there too.
        let programs = ["adapter-kube-runtime", "adapter-kube-client"];
        let programs = programs.map(|name| (name, out.join("debug").join(name)));
        let programs = programs.each_ref().map(|(name, path)| (*name, path.as_path()));
        build::command(&filled(&client.run, &programs), &out)
    }

    /// Builds an ecosystem into a folder.
    pub(crate) fn built(&self, root: &Path, out: &Path, name: &str) -> Result<(), Missing> {
        let ecosystem = &self.ecosystems[name];
        if ecosystem.build.is_empty() {
            return std::fs::create_dir_all(out).map_err(|error| format!("{}: {error}", out.display()));
        }
        let source = root.join("adapters").join(name);
        build::built(&source, out, &ecosystem.needs, &ecosystem.build)
    }
}

/// Replaces the names of programs.
fn filled(run: &[String], programs: &[(&str, &Path)]) -> Vec<String> {
    let fill = |word: &String| {
        programs.iter().fold(word.clone(), |word, (name, path)| {
            word.replace(&format!("{{{name}}}"), &path.to_string_lossy())
        })
    };
    run.iter().map(fill).collect()
}

/// Another version of a library: a folder with its source, or a name and a version that a repository of this machine has.
struct Library {
    /// Absolute, or as given.
    path: String,
    /// `module` of its `go.mod`, or `group:artifact`.
    name: String,
    version: String,
}

impl Library {
    /// Reads what a caller gives.
    fn named(given: &str) -> Result<Self, Missing> {
        let folder = Path::new(given);
        if !folder.is_dir() {
            return match given.rsplit_once(':') {
                Some((name, version)) if name.contains(':') => Ok(Self {
                    path: given.to_owned(),
                    name: name.to_owned(),
                    version: version.to_owned(),
                }),
                Some(_) | None => Err(format!("{given} is neither a folder nor GROUP:ARTIFACT:VERSION")),
            };
        }
        let path = folder
            .canonicalize()
            .map_err(|error| format!("{given}: {error}"))?;
        let module = std::fs::read_to_string(path.join("go.mod")).unwrap_or_default();
        let module = module.lines().find_map(|line| line.strip_prefix("module "));
        Ok(Self {
            path: path.to_string_lossy().into_owned(),
            name: module.unwrap_or_default().trim().to_owned(),
            version: String::new(),
        })
    }

    fn filled(&self, commands: &[Vec<String>], root: &Path, out: &Path) -> Vec<Vec<String>> {
        let fill = |word: &String| {
            word.replace("{path}", &self.path)
                .replace("{name}", &self.name)
                .replace("{version}", &self.version)
                .replace("{root}", &root.to_string_lossy())
                .replace("{out}", &out.to_string_lossy())
        };
        let filled = commands.iter().map(|command| command.iter().map(fill).collect());
        filled.collect()
    }
}

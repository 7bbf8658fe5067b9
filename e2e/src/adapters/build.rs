//! Builds adapters into target/adapters if their files have changed.

use std::path::{Path, PathBuf};

use super::{Client, Registry};
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
        let out = self.built(root, target, &client.ecosystem)?;
        let fill = |word: &String| {
            programs.iter().fold(word.clone(), |word, (name, path)| {
                word.replace(&format!("{{{name}}}"), &path.to_string_lossy())
            })
        };
        let run: Vec<String> = client.run.iter().map(fill).collect();
        build::command(&run, &out)
    }

    /// Builds an ecosystem, and returns its folder.
    fn built(&self, root: &Path, target: &Path, name: &str) -> Result<PathBuf, Missing> {
        let out = target.join("adapters").join(name);
        let ecosystem = &self.ecosystems[name];
        if !ecosystem.build.is_empty() {
            let source = root.join("adapters").join(name);
            build::built(&source, &out, &ecosystem.needs, &ecosystem.build)?;
        }
        Ok(out)
    }
}

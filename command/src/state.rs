//! How `ctl` finds a running server: a small file a server leaves for as long as it runs, readable by its user alone.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// What a running server says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct State {
    /// Its process.
    pub(crate) pid: u32,
    /// Where its control API is.
    pub(crate) control: String,
    /// What the control API lets in.
    pub(crate) token: String,
    /// Where its clients find it.
    pub(crate) server: String,
    /// What it serves, in words.
    pub(crate) what: String,
}

impl State {
    /// A process may serve several at a time, and each has a control API of its own.
    fn file_name(&self) -> String {
        let port = self.control.rsplit_once(':').map_or("", |(_, port)| port);
        format!("{}-{port}.json", self.pid)
    }
}

/// The file, removed with this value.
#[derive(Debug)]
pub(crate) struct StateFile(PathBuf);

impl StateFile {
    /// Writes it.
    ///
    /// # Errors
    /// The folder cannot be made or written to.
    pub(crate) fn write(state: &State) -> io::Result<Self> {
        let folder = folder();
        make_private(&folder)?;
        let path = folder.join(state.file_name());
        let text = serde_json::to_string_pretty(state)?;
        write_private(&path, &text)?;
        Ok(Self(path))
    }
}

impl Drop for StateFile {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&self.0) {
            tracing::warn!(%error, file = %self.0.display(), "left behind");
        }
    }
}

/// The servers that say they run, in order of their processes. Some may have died without a word.
pub(crate) fn running() -> Vec<State> {
    let Ok(files) = std::fs::read_dir(folder()) else {
        return Vec::new();
    };
    let mut states: Vec<State> = files
        .filter_map(|file| std::fs::read_to_string(file.ok()?.path()).ok())
        .filter_map(|text| serde_json::from_str(&text).ok())
        .collect();
    states.sort_by_key(|state| state.pid);
    states
}

/// Forgets a server that died without a word.
pub(crate) fn forget(state: &State) {
    // Somebody else may have forgotten it first.
    let _ = std::fs::remove_file(folder().join(state.file_name()));
}

/// Writes a file that only its user may read.
pub(crate) fn write_private(path: &Path, text: &str) -> io::Result<()> {
    use std::io::Write as _;
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)?.write_all(text.as_bytes())
}

fn folder() -> PathBuf {
    match std::env::var_os("XDG_RUNTIME_DIR").filter(|folder| !folder.is_empty()) {
        Some(folder) => PathBuf::from(folder).join("fake-apiserver"),
        None => {
            // A temporary folder is shared: one for each user.
            let user = std::env::var("USER").or_else(|_| std::env::var("USERNAME"));
            let user = user.unwrap_or_else(|_| "anyone".to_owned());
            std::env::temp_dir().join(format!("fake-apiserver-of-{user}"))
        }
    }
}

/// Makes a folder that only its user may look into.
fn make_private(folder: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

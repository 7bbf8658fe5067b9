//! How `ctl` finds a running server: a small file a server leaves for as long as it runs, readable by its user alone.

use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use serde::{Deserialize, Serialize};

use crate::{Failure, kubeconfig, private};

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
    /// The kubeconfigs that lead to it.
    #[serde(default)]
    pub(crate) kubeconfigs: Vec<String>,
}

impl State {
    /// One process may run several servers, each with its own control API.
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
    /// The folder cannot be made or written to, or is not this user's own.
    pub(crate) fn write(state: &State) -> Result<Self, Failure> {
        let folder = folder();
        if let Some(parent) = folder.parent() {
            // XDG_RUNTIME_DIR may name a folder that nobody has made. If it cannot be made, the next line reports it.
            drop(std::fs::create_dir_all(parent));
        }
        private::own_folder(&folder)
            .map_err(|error| Failure::System(format!("cannot use the folder {}", folder.display()), error))?;
        let text = serde_json::to_string_pretty(state).expect("plain strings and numbers always serialize");
        private::write(&folder, &state.file_name(), &text).map(Self)
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
    let folder = folder();
    // In a folder of somebody else a file may lead anywhere.
    if private::check_folder(&folder).is_err() {
        return Vec::new();
    }
    let Ok(files) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut states: Vec<State> = files
        .filter_map(|file| {
            let file = file.ok()?;
            // A link or a pipe is nothing a server left.
            let is_file = file.file_type().is_ok_and(|kind| kind.is_file());
            is_file.then(|| std::fs::read_to_string(file.path()).ok())?
        })
        .filter_map(|text| serde_json::from_str(&text).ok())
        .collect();
    states.sort_by_key(|state| state.pid);
    states
}

/// Removes what servers left that were killed: their files, and the folders of their kubeconfigs.
pub(crate) fn forget_killed() {
    for state in running() {
        let pid = i32::try_from(state.pid).ok().and_then(Pid::from_raw);
        if pid.is_none_or(|pid| test_kill_process(pid) != Err(Errno::SRCH)) {
            continue;
        }
        forget(&state);
        for kubeconfig in &state.kubeconfigs {
            if let Some(folder) = Path::new(kubeconfig)
                .parent()
                .filter(|folder| kubeconfig::is_ours(folder))
            {
                // Another apiserver may do the same at this moment.
                let _ = std::fs::remove_dir_all(folder);
            }
        }
    }
}

/// Forgets a server that died without a word.
pub(crate) fn forget(state: &State) {
    // Somebody else may have forgotten it first.
    let _ = std::fs::remove_file(folder().join(state.file_name()));
}

/// The folder of these files.
pub(crate) fn folder() -> PathBuf {
    match std::env::var_os("XDG_RUNTIME_DIR").filter(|folder| !folder.is_empty()) {
        Some(folder) => PathBuf::from(folder).join("fake-apiserver"),
        None => {
            // A temporary folder is shared: one for each user.
            std::env::temp_dir().join(format!("fake-apiserver-of-{}", private::user()))
        }
    }
}

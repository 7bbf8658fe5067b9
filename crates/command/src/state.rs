//! State files, by which `ctl` finds a running server. They exist while a server runs, and are readable by its user only.

use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use serde::{Deserialize, Serialize};

use crate::{Failure, kubeconfig, private};

/// A running server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct State {
    /// Process id.
    pub(crate) pid: u32,
    /// URL of the control API.
    pub(crate) control: String,
    /// Token of the control API.
    pub(crate) token: String,
    /// URL of the server.
    pub(crate) server: String,
    /// Description of what it serves.
    pub(crate) what: String,
    /// Paths of its kubeconfigs.
    #[serde(default)]
    pub(crate) kubeconfigs: Vec<String>,
}

impl State {
    /// One process can run several servers, each with its own control API.
    fn file_name(&self) -> String {
        let port = self.control.rsplit_once(':').map_or("", |(_, port)| port);
        format!("{}-{port}.json", self.pid)
    }
}

/// The state file, removed on drop.
#[derive(Debug)]
pub(crate) struct StateFile(PathBuf);

impl StateFile {
    /// Writes the file.
    ///
    /// # Errors
    ///
    /// The folder cannot be created or written to, or is not private to this user.
    pub(crate) fn write(state: &State) -> Result<Self, Failure> {
        let folder = folder();
        if let Some(parent) = folder.parent() {
            // The folder in XDG_RUNTIME_DIR may not exist. If it cannot be created, the next line reports it.
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

/// Returns the servers with a state file, in order of process ids. Some may have been killed.
pub(crate) fn running() -> Vec<State> {
    let folder = folder();
    // A file in a folder of another user could be a link.
    if private::check_folder(&folder).is_err() {
        return Vec::new();
    }
    let Ok(files) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut states: Vec<State> = files
        .filter_map(|file| {
            let file = file.ok()?;
            // State files are neither links nor pipes.
            let is_file = file.file_type().is_ok_and(|kind| kind.is_file());
            is_file.then(|| std::fs::read_to_string(file.path()).ok())?
        })
        .filter_map(|text| serde_json::from_str(&text).ok())
        .collect();
    states.sort_by_key(|state| state.pid);
    states
}

/// Removes the state files and kubeconfig folders of servers that were killed.
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
                // Another process may remove it at the same time.
                let _ = std::fs::remove_dir_all(folder);
            }
        }
    }
}

/// Removes the files of a server that was killed.
pub(crate) fn forget(state: &State) {
    // Another process may have removed it first.
    let _ = std::fs::remove_file(folder().join(state.file_name()));
}

/// Returns the folder of state files.
pub(crate) fn folder() -> PathBuf {
    match std::env::var_os("XDG_RUNTIME_DIR").filter(|folder| !folder.is_empty()) {
        Some(folder) => PathBuf::from(folder).join("fake-apiserver"),
        None => {
            // The temporary folder is shared: one folder per user.
            std::env::temp_dir().join(format!("fake-apiserver-of-{}", private::user()))
        }
    }
}

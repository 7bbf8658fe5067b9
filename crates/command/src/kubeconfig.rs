//! Kubeconfig of a running server.

use std::fs::File;
use std::io;
use std::net::{TcpStream, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use fake_apiserver::net;

use crate::{Failure, private};

/// Timeout for connecting to a server whose kubeconfig exists, to find out whether it still runs.
const STILL_SERVED: Duration = Duration::from_millis(500);

/// Prefix of the name of the folder of a kubeconfig.
const PREFIX: &str = "fake-apiserver-";

/// Maximum size of our kubeconfigs.
const BYTES_MAX: u64 = 64 << 10;

/// A kubeconfig file, removed on drop if it is still the file that was written.
#[derive(Debug)]
pub(crate) struct Kubeconfig {
    /// Folder created for the file, unless the user chose its path.
    folder: Option<PathBuf>,
    path: PathBuf,
    /// Open while the file is ours, so that no other file gets its inode.
    file: File,
}

impl Kubeconfig {
    /// Writes a new file: at `path`, or in a private folder with a random name.
    ///
    /// # Errors
    ///
    /// `path` exists, or the file cannot be written. Nothing is changed or left behind.
    pub(crate) fn write(text: &net::Kubeconfig, path: Option<&Path>) -> Result<Self, Failure> {
        if let Some(path) = path {
            let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
            remove_abandoned(&path);
            let file = text.write(&path).map_err(|error| refused(&path, error))?;
            return Ok(Self {
                folder: None,
                path,
                file,
            });
        }
        let folder = private::new_folder(&std::env::temp_dir(), PREFIX)?;
        let path = folder.join("kubeconfig");
        match text.write(&path) {
            Ok(file) => Ok(Self {
                folder: Some(folder),
                path,
                file,
            }),
            Err(error) => {
                // It was just created and is empty.
                let _ = std::fs::remove_dir(&folder);
                Err(refused(&path, error))
            }
        }
    }

    /// Returns its path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Kubeconfig {
    fn drop(&mut self) {
        let (removed, left) = match &self.folder {
            Some(folder) => (std::fs::remove_dir_all(folder), folder),
            None if private::is_same_file(&self.file, &self.path) => {
                (std::fs::remove_file(&self.path), &self.path)
            }
            // The file was removed or replaced: the new one is not ours.
            None => (Ok(()), &self.path),
        };
        if let Err(error) = removed {
            tracing::warn!(%error, left = %left.display(), "left behind");
        }
    }
}

/// Returns whether this folder was created for a kubeconfig, by this user.
pub(crate) fn is_ours(folder: &Path) -> bool {
    let name = folder
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    let parent = folder.parent().unwrap_or(folder);
    parent == std::env::temp_dir() && name.starts_with(PREFIX) && private::check_folder(folder).is_ok()
}

/// Removes a kubeconfig left by a server that was killed. Any other file is kept.
fn remove_abandoned(path: &Path) {
    let is_small_file = std::fs::symlink_metadata(path)
        .is_ok_and(|metadata| metadata.is_file() && metadata.len() <= BYTES_MAX);
    let text = is_small_file
        .then(|| std::fs::read_to_string(path).ok())
        .flatten();
    let Some(server) = text.and_then(|text| net::Kubeconfig::server_of(&text)) else {
        return;
    };
    let authority = server
        .split_once("://")
        .map_or(&*server, |(_, authority)| authority);
    let served = authority.to_socket_addrs().is_ok_and(|mut addresses| {
        addresses.any(|address| TcpStream::connect_timeout(&address, STILL_SERVED).is_ok())
    });
    if !served {
        // If it cannot be removed, creating the new one fails and reports it.
        let _ = std::fs::remove_file(path);
    }
}

fn refused(path: &Path, error: io::Error) -> Failure {
    let path = path.display();
    if error.kind() == io::ErrorKind::AlreadyExists {
        Failure::Usage(format!(
            "--kubeconfig {path} exists and is never overwritten: name a new file, and use both with \
             KUBECONFIG=NEW:{path} kubectl --context fake …"
        ))
    } else {
        Failure::System(format!("cannot write {path}"), error)
    }
}

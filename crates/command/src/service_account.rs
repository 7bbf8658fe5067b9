//! A directory for clients in other containers of a pod, laid out as the mount of a service account.
//!
//! client-go's `rest.InClusterConfig`, and what other libraries made of it, read `token`, `ca.crt` and `namespace` there.

use std::io;
use std::path::{Path, PathBuf};

use fake_apiserver::net::{self, Credentials};

use crate::{Failure, private};

/// Marks a directory as one of ours, whose files are replaced when a container starts again.
const MARK: &str = ".fake-apiserver";

/// Files of the mount; the token is written last, so that it is there when everything is.
const FILES: [&str; 3] = ["ca.crt", "namespace", "token"];

/// The files, removed on drop.
#[derive(Debug)]
pub(crate) struct ServiceAccount {
    folder: PathBuf,
}

impl ServiceAccount {
    /// Writes the files, readable by this user only. `folder` is created if it does not exist.
    ///
    /// # Errors
    ///
    /// The folder has such files of something else, or cannot be written to.
    pub(crate) fn write(way: &net::Kubeconfig, folder: &Path) -> Result<Self, Failure> {
        let failed = |error| Failure::System(format!("cannot write to {}", folder.display()), error);
        if !folder.exists() {
            private::own_folder(folder).map_err(failed)?;
        }
        let at = |name: &str| folder.join(name);
        let is_there = |name: &str| std::fs::symlink_metadata(at(name)).is_ok();
        if let Some(foreign) = FILES.iter().find(|name| is_there(name))
            && !is_there(MARK)
        {
            return Err(Failure::Usage(format!(
                "{} exists, and was not written by fake-apiserver: choose an empty directory for --client-service-account",
                at(foreign).display()
            )));
        }
        let token = match &way.credentials {
            Credentials::Token(token) => token.as_str(),
            Credentials::None | Credentials::Certificate(_) => "",
        };
        let authority = way.authority_pem.as_deref().unwrap_or_default();
        let written = Self {
            folder: folder.to_owned(),
        };
        private::write(folder, MARK, "")?;
        for (name, text) in FILES.into_iter().zip([authority, &way.namespace, token]) {
            private::write(folder, name, text)?;
        }
        Ok(written)
    }
}

impl Drop for ServiceAccount {
    fn drop(&mut self) {
        for name in FILES.into_iter().chain([MARK]) {
            match std::fs::remove_file(self.folder.join(name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    tracing::warn!(%error, name, "left behind");
                }
                Ok(()) | Err(_) => {}
            }
        }
    }
}

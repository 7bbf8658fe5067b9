//! The file every client reads to find the server, for as long as the server runs.

use std::path::{Path, PathBuf};

use fake_apiserver::net;

use crate::Failure;

/// A kubeconfig file, removed with this value.
#[derive(Debug)]
pub(crate) struct Kubeconfig {
    /// A folder of our own around the file, unless the user named the file.
    folder: Option<PathBuf>,
    path: PathBuf,
}

impl Kubeconfig {
    /// Writes one: at `path`, or in a folder of its own under a name that nothing else has.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn write(text: &net::Kubeconfig, path: Option<&Path>) -> Result<Self, Failure> {
        let folder = path.is_none().then(|| {
            // A process may serve several at a time.
            let port = text.server.rsplit_once(':').map_or("", |(_, port)| port);
            let name = format!("fake-apiserver-{}-{port}", std::process::id());
            std::env::temp_dir().join(name)
        });
        let path = match (path, &folder) {
            (Some(path), _) => std::path::absolute(path).unwrap_or_else(|_| path.to_owned()),
            (None, Some(folder)) => folder.join("kubeconfig"),
            (None, None) => PathBuf::from("kubeconfig"),
        };
        let refused = |error| Failure::System(format!("cannot write {}", path.display()), error);
        if let Some(folder) = &folder {
            // What an earlier process of this number left is nobody's.
            let _ = std::fs::remove_dir_all(folder);
            let mut builder = std::fs::DirBuilder::new();
            #[cfg(unix)]
            std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
            builder.create(folder).map_err(refused)?;
        }
        text.write(&path).map_err(refused)?;
        Ok(Self { folder, path })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Kubeconfig {
    fn drop(&mut self) {
        let (removed, left) = match &self.folder {
            Some(folder) => (std::fs::remove_dir_all(folder), folder),
            None => (std::fs::remove_file(&self.path), &self.path),
        };
        if let Err(error) = removed {
            tracing::warn!(%error, left = %left.display(), "left behind");
        }
    }
}

//! The file every client reads to find the server.

use std::path::{Path, PathBuf};

use crate::Failure;

/// A kubeconfig file for as long as the server runs.
pub(crate) struct Kubeconfig {
    folder: PathBuf,
    path: PathBuf,
}

impl Kubeconfig {
    /// Writes one that names `url`, for clients that use `namespace` where they are not told another.
    pub(crate) fn write(url: &str, namespace: Option<&str>, token: Option<&str>) -> Result<Self, Failure> {
        let folder = std::env::temp_dir().join(format!("fake-apiserver-{}", std::process::id()));
        let path = folder.join("kubeconfig");
        let user = match token {
            Some(token) => serde_json::json!({ "token": token }),
            None => serde_json::json!({}),
        };
        let text = serde_json::json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "fake", "cluster": {"server": url}}],
            "users": [{"name": "fake", "user": user}],
            "contexts": [{
                "name": "fake",
                "context": {"cluster": "fake", "user": "fake", "namespace": namespace.unwrap_or("default")},
            }],
            "current-context": "fake",
        });
        // JSON is YAML.
        std::fs::create_dir(&folder)
            .and_then(|()| std::fs::write(&path, format!("{text:#}\n")))
            .map_err(|error| Failure::System(format!("cannot write {}", path.display()), error))?;
        Ok(Self { folder, path })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Kubeconfig {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.folder) {
            tracing::warn!(%error, folder = %self.folder.display(), "left behind");
        }
    }
}

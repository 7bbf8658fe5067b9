//! Files and folders that belong to this user alone. Shared folders such as `/tmp` are full of other people's names: nothing
//! is written through a link, into a folder of somebody else, or over a file that exists.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use crate::{Failure, random};

/// Makes a new folder `PREFIX<random>` in `parent` that only its user may enter.
///
/// # Errors
/// The system refuses it.
pub(crate) fn new_folder(parent: &Path, prefix: &str) -> Result<PathBuf, Failure> {
    let folder = parent.join(format!("{prefix}{}", random::word()?));
    std::fs::DirBuilder::new()
        .mode(0o700)
        .create(&folder)
        .map_err(|error| {
            Failure::System(format!("cannot create the directory {}", folder.display()), error)
        })?;
    Ok(folder)
}

/// Makes `folder` if it is not there, and makes sure that it belongs to this user alone.
///
/// # Errors
/// It is a link or no folder, belongs to somebody else, or the system refuses it.
pub(crate) fn own_folder(folder: &Path) -> io::Result<()> {
    match std::fs::DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        Ok(()) | Err(_) => {}
    }
    check_folder(folder)?;
    let mode = std::fs::symlink_metadata(folder)?.permissions().mode();
    if mode & 0o077 != 0 {
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}

/// Checks that `folder` is a folder of this user, and no link to one.
///
/// # Errors
/// It is not, or it is not there.
pub(crate) fn check_folder(folder: &Path) -> io::Result<()> {
    let metadata = std::fs::symlink_metadata(folder)?;
    let refused = |why: &str| {
        let message = format!("{} {why}: not used", folder.display());
        Err(io::Error::new(io::ErrorKind::PermissionDenied, message))
    };
    if !metadata.is_dir() {
        return refused("is not a directory");
    }
    if metadata.uid() != user() {
        return refused("belongs to another user");
    }
    Ok(())
}

/// Writes `name` in `folder` whole or not at all, readable by its user alone. Whatever has the name is replaced, never
/// written through.
///
/// # Errors
/// The system refuses it.
pub(crate) fn write(folder: &Path, name: &str, text: &str) -> Result<PathBuf, Failure> {
    let path = folder.join(name);
    let failed = |error| Failure::System(format!("cannot write {}", path.display()), error);
    let unfinished = folder.join(format!(".{name}.{}", random::word()?));
    let written = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&unfinished)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .and_then(|()| std::fs::rename(&unfinished, &path));
    if written.is_err() {
        // It may not even have been created.
        let _ = std::fs::remove_file(&unfinished);
    }
    written.map_err(failed)?;
    Ok(path)
}

/// Is `file` the one at `path`?
pub(crate) fn is_same_file(file: &File, path: &Path) -> bool {
    let (Ok(ours), Ok(there)) = (file.metadata(), std::fs::symlink_metadata(path)) else {
        return false;
    };
    (ours.dev(), ours.ino()) == (there.dev(), there.ino())
}

/// The number of this process's user.
pub(crate) fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

//! Private files and folders. Shared folders such as `/tmp` contain names of other users: nothing is written through a link,
//! into a folder of another user, or over an existing file.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use crate::{Failure, random};

/// Creates a new folder `PREFIX<random>` in `parent` that only this user can enter.
///
/// # Errors
///
/// A system error.
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

/// Creates `folder` if it does not exist, and checks that it is private to this user.
///
/// # Errors
///
/// It is a link or not a folder, belongs to another user, or a system error.
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

/// Checks that `folder` is a folder of this user, and not a link.
///
/// # Errors
///
/// It is not, or does not exist.
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

/// Writes `name` in `folder` atomically, readable by this user only. An existing file or link is replaced, never written
/// through.
///
/// # Errors
///
/// A system error.
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
        // It may not exist.
        let _ = std::fs::remove_file(&unfinished);
    }
    written.map_err(failed)?;
    Ok(path)
}

/// Returns whether `file` is the one at `path`.
pub(crate) fn is_same_file(file: &File, path: &Path) -> bool {
    let (Ok(ours), Ok(there)) = (file.metadata(), std::fs::symlink_metadata(path)) else {
        return false;
    };
    (ours.dev(), ours.ino()) == (there.dev(), there.ino())
}

/// Returns the user id of this process.
pub(crate) fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

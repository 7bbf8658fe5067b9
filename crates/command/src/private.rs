//! Private files and folders. Shared folders such as `/tmp` contain names of other users: nothing is written through a link,
//! into a folder of another user, or over an existing file.

use std::fs::File;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
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

/// Creates a folder that the user named, which only this user can enter.
///
/// # Errors
///
/// Something has that name; a system error.
#[cfg(feature = "proxy")]
pub(crate) fn create_folder(path: &Path) -> Result<(), Failure> {
    let created = std::fs::DirBuilder::new().mode(0o700).create(path);
    created.map_err(|error| unwritten(path, error))
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
    private_files::replace(&path, text.as_bytes())
        .map_err(|error| Failure::System(format!("cannot write {}", path.display()), error))?;
    Ok(path)
}

/// Checks, before long work, that a file that the user named can be written.
///
/// # Errors
///
/// Something has that name, or its folder does not exist.
pub(crate) fn check_new(path: &Path) -> Result<(), Failure> {
    private_files::check_new(path).map_err(|error| unwritten(path, error))
}

/// Creates a file that the user named, to be written piece by piece.
///
/// # Errors
///
/// Something has that name; a system error.
pub(crate) fn create(path: &Path) -> Result<File, Failure> {
    private_files::create(path).map_err(|error| unwritten(path, error))
}

/// Writes a file that the user named.
///
/// # Errors
///
/// Something has that name; a system error, such as a full disk. No file is left behind.
pub(crate) fn write_new(path: &Path, text: &str) -> Result<(), Failure> {
    private_files::write_new(path, text.as_bytes()).map_err(|error| unwritten(path, error))
}

fn unwritten(path: &Path, error: io::Error) -> Failure {
    let shown = path.display();
    let kind = error.kind();
    if kind == io::ErrorKind::AlreadyExists {
        Failure::Usage(format!(
            "{shown} exists, and is never overwritten: remove it, or name a new file"
        ))
    } else if kind == io::ErrorKind::NotFound {
        Failure::Usage(format!("cannot write {shown}: its directory does not exist"))
    } else {
        Failure::System(format!("cannot write {shown}"), error)
    }
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

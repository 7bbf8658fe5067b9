//! Files of a program that runs beside other users and reads what strangers send. What it writes is new, complete, and
//! readable by its user only; what it reads is a regular file of bounded size; neither goes through a link.
//!
//! `cargo xtask tidy` makes this the only place that writes a file. It must not know what is in a file, nor which program
//! writes it.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

/// Mode of a file that only its user may read.
const PRIVATE: u32 = 0o600;

/// Mode of a file that everyone may read, such as a certificate.
const PUBLIC: u32 = 0o644;

/// Names tried for an unfinished file. A process that was killed may have left one, under the same process id.
const NAMES_MAX: u32 = 100;

/// Creates a file at `path`, to be written piece by piece.
///
/// # Errors
///
/// [`AlreadyExists`](io::ErrorKind::AlreadyExists) if there is anything at `path`, a link to nowhere included; system errors.
pub fn create(path: &Path) -> io::Result<File> {
    open_new(path, PRIVATE)
}

/// Writes `bytes` to a new file at `path`. It has all of them or does not exist: an unfinished file has another name, beside
/// it, and is removed.
///
/// # Errors
///
/// As [`create`]; a full disk.
pub fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    publish(path, bytes, PRIVATE, link_new)
}

/// Like [`write_new`], readable by everyone.
///
/// # Errors
///
/// As [`write_new`].
pub fn write_new_public(path: &Path, bytes: &[u8]) -> io::Result<()> {
    publish(path, bytes, PUBLIC, link_new)
}

/// Like [`write_new`], but what is at `path` is replaced, never written through.
///
/// # Errors
///
/// A system error.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    publish(path, bytes, PRIVATE, |unfinished, path| {
        std::fs::rename(unfinished, path)
    })
}

/// Opens the file at `path` for appending, and creates it if it does not exist.
///
/// # Errors
///
/// There is a link or something else that is no regular file; system errors.
pub fn append(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    regular(open(&mut options, path, PRIVATE)?)
}

/// Checks, before long work whose result goes to `path`, that nothing is there and that its folder exists.
///
/// # Errors
///
/// [`AlreadyExists`](io::ErrorKind::AlreadyExists); the error of the folder.
pub fn check_new(path: &Path) -> io::Result<()> {
    match std::fs::symlink_metadata(path) {
        Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let folder = folder_of(path);
            match std::fs::metadata(folder)?.is_dir() {
                true => Ok(()),
                false => Err(io::ErrorKind::NotADirectory.into()),
            }
        }
        Err(error) => Err(error),
    }
}

/// Reads the file at `path`, of at most `max` bytes.
///
/// # Errors
///
/// It is larger ([`FileTooLarge`](io::ErrorKind::FileTooLarge)), a link, or no regular file; system errors.
pub fn read(path: &Path, max: u64) -> io::Result<Vec<u8>> {
    let mut options = OpenOptions::new();
    let file = regular(open(options.read(true), path, PRIVATE)?)?;
    let too_large = || {
        let message = format!("is larger than {max} bytes");
        io::Error::new(io::ErrorKind::FileTooLarge, message)
    };
    if file.metadata()?.len() > max {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    // It may grow meanwhile.
    file.take(max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max {
        return Err(too_large());
    }
    Ok(bytes)
}

/// Writes an unfinished file beside `path`, and gives it that name.
fn publish(
    path: &Path,
    bytes: &[u8],
    mode: u32,
    name: impl FnOnce(&Path, &Path) -> io::Result<()>,
) -> io::Result<()> {
    let (mut file, unfinished) = open_beside(path, mode)?;
    let written = file.write_all(bytes).and_then(|()| name(&unfinished, path));
    if written.is_err() {
        // It may be gone.
        let _ = std::fs::remove_file(&unfinished);
    }
    written
}

/// Gives a file a name that is not in use; its old name is gone afterwards.
fn link_new(unfinished: &Path, path: &Path) -> io::Result<()> {
    match std::fs::hard_link(unfinished, path) {
        Ok(()) => std::fs::remove_file(unfinished),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
        // A file system without hard links.
        Err(_) => {
            check_new(path)?;
            std::fs::rename(unfinished, path)
        }
    }
}

/// Creates an unfinished file in the folder of `path`.
fn open_beside(path: &Path, mode: u32) -> io::Result<(File, PathBuf)> {
    let named = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let mut attempt = 0;
    loop {
        let mut name = OsString::from(".");
        name.push(named);
        name.push(format!(".{}-{attempt}", std::process::id()));
        let unfinished = folder_of(path).join(name);
        match open_new(&unfinished, mode) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && attempt < NAMES_MAX => attempt += 1,
            opened => return opened.map(|file| (file, unfinished)),
        }
    }
}

fn open_new(path: &Path, mode: u32) -> io::Result<File> {
    open(OpenOptions::new().write(true).create_new(true), path, mode)
}

/// Returns the folder that a path is in.
fn folder_of(path: &Path) -> &Path {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}

#[cfg(unix)]
fn open(options: &mut OpenOptions, path: &Path, mode: u32) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;

    use rustix::fs::OFlags;

    // NONBLOCK: opening a pipe does not wait for its other end. It does nothing to a regular file.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY).bits();
    let opened = options.mode(mode).custom_flags(flags.cast_signed()).open(path);
    opened.map_err(|error| match error.raw_os_error() {
        Some(code) if code == rustix::io::Errno::LOOP.raw_os_error() => irregular("is a symbolic link"),
        Some(_) | None => error,
    })
}

#[cfg(not(unix))]
fn open(options: &mut OpenOptions, path: &Path, _mode: u32) -> io::Result<File> {
    if path.is_symlink() {
        return Err(irregular("is a symbolic link"));
    }
    options.open(path)
}

fn regular(file: File) -> io::Result<File> {
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(irregular("is not a regular file")),
    }
}

fn irregular(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, why.to_owned())
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    /// A folder that is removed at the end of the test.
    struct Folder(PathBuf);

    impl Folder {
        fn new(test: &str) -> Self {
            let folder = std::env::temp_dir().join(format!("files-{test}-{}", std::process::id()));
            std::fs::create_dir(&folder).unwrap();
            Self(folder)
        }

        fn names(&self) -> Vec<String> {
            let entries = std::fs::read_dir(&self.0).unwrap();
            let mut names: Vec<String> = { entries }
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            names.sort();
            names
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            std::fs::remove_dir_all(&self.0).unwrap();
        }
    }

    fn kind<T: std::fmt::Debug>(result: io::Result<T>) -> io::ErrorKind {
        result.unwrap_err().kind()
    }

    #[test]
    fn a_new_file_is_private_complete_and_alone() {
        let folder = Folder::new("new");
        let path = folder.0.join("a");
        // What a process of this id left when it was killed.
        std::fs::write(folder.0.join(format!(".a.{}-0", std::process::id())), "torn").unwrap();
        write_new(&path, b"whole").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"whole");
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o600);
        let public = folder.0.join("b");
        write_new_public(&public, b"").unwrap();
        assert_eq!(
            mode(&public) & 0o077,
            0o044 & mode(&public),
            "no more than the mask allows"
        );
        assert_eq!(folder.names().len(), 3, "{:?}", folder.names());
    }

    #[test]
    fn nothing_is_overwritten_or_written_through_a_link() {
        let folder = Folder::new("link");
        let (file, link, nowhere) = (
            folder.0.join("file"),
            folder.0.join("link"),
            folder.0.join("nowhere"),
        );
        std::fs::write(&file, "kept").unwrap();
        symlink(&file, &link).unwrap();
        symlink(folder.0.join("gone"), &nowhere).unwrap();
        for taken in [&file, &link, &nowhere] {
            assert_eq!(kind(write_new(taken, b"x")), io::ErrorKind::AlreadyExists);
            assert_eq!(kind(create(taken)), io::ErrorKind::AlreadyExists);
            assert_eq!(kind(check_new(taken)), io::ErrorKind::AlreadyExists);
        }
        assert_eq!(kind(append(&link)), io::ErrorKind::InvalidInput);
        assert_eq!(kind(append(&nowhere)), io::ErrorKind::InvalidInput);
        assert_eq!(std::fs::read(&file).unwrap(), b"kept");
        assert_eq!(folder.names(), ["file", "link", "nowhere"]);

        replace(&link, b"new").unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), b"kept");
        assert_eq!(std::fs::read(&link).unwrap(), b"new");
    }

    #[test]
    fn an_appended_file_grows_and_is_private() {
        let folder = Folder::new("append");
        let path = folder.0.join("log");
        append(&path).unwrap().write_all(b"1").unwrap();
        append(&path).unwrap().write_all(b"2").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"12");
        assert_eq!(
            std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
    }

    #[test]
    fn only_regular_files_of_bounded_size_are_read() {
        let folder = Folder::new("read");
        let (file, link) = (folder.0.join("file"), folder.0.join("link"));
        std::fs::write(&file, "12345").unwrap();
        symlink(&file, &link).unwrap();
        assert_eq!(read(&file, 5).unwrap(), b"12345");
        assert_eq!(kind(read(&file, 4)), io::ErrorKind::FileTooLarge);
        assert_eq!(kind(read(&link, 5)), io::ErrorKind::InvalidInput);
        assert_eq!(kind(read(&folder.0, 5)), io::ErrorKind::InvalidInput);
        assert_eq!(kind(read(Path::new("/dev/zero"), 5)), io::ErrorKind::InvalidInput);
        let pipe = folder.0.join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        assert_eq!(kind(read(&pipe, 5)), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn a_missing_folder_is_found_before_the_work() {
        assert_eq!(
            kind(check_new(Path::new("/nowhere/file"))),
            io::ErrorKind::NotFound
        );
        assert_eq!(
            kind(check_new(Path::new("/dev/null/file"))),
            io::ErrorKind::NotADirectory
        );
        check_new(Path::new("a-file-that-does-not-exist")).unwrap();
    }
}

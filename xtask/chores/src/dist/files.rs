//! Archives in memory: entries become bytes of a tar, gzip or zip file, the same for the same entries.
//!
//! Entries are sorted, and all have one time and no owner. It must not know what is in an archive.

use std::io::{Cursor, Write as _};

use flate2::Compression;
use flate2::write::GzEncoder;
use ring::digest::{SHA256, SHA512, digest};
use tar::{EntryType, Header};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

/// What a path of an archive is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Content {
    File(Vec<u8>),
    Folder,
}

/// A path of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Relative path, with `/` between names.
    pub(super) path: String,
    /// Permissions.
    pub(super) mode: u32,
    pub(super) content: Content,
}

impl Entry {
    /// Returns a file that everybody may read.
    pub(super) fn file(path: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        Self {
            path: path.into(),
            mode: 0o644,
            content: Content::File(bytes.into()),
        }
    }

    /// Returns a file that everybody may run.
    pub(super) fn program(path: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        Self {
            mode: 0o755,
            ..Self::file(path, bytes)
        }
    }

    /// Returns it below a folder.
    pub(super) fn below(&self, folder: &str) -> Self {
        Self {
            path: format!("{folder}/{}", self.path),
            ..self.clone()
        }
    }

    fn bytes(&self) -> &[u8] {
        match &self.content {
            Content::File(bytes) => bytes,
            Content::Folder => &[],
        }
    }
}

/// How archives are written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Style {
    /// Seconds since 1970 that every entry has as its time.
    pub(super) epoch: u64,
    /// Compression from 0 (none) to 9.
    pub(super) level: u32,
}

/// Returns a tar file.
///
/// # Errors
/// A path is not valid in a tar file.
pub(super) fn tar(entries: &[Entry], style: Style) -> Result<Vec<u8>, String> {
    let mut writer = tar::Builder::new(Vec::new());
    for entry in sorted(entries) {
        let mut header = Header::new_ustar();
        let kind = match entry.content {
            Content::File(_) => EntryType::Regular,
            Content::Folder => EntryType::Directory,
        };
        header.set_entry_type(kind);
        header.set_mode(entry.mode);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(style.epoch);
        header.set_size(entry.bytes().len() as u64);
        let written = writer.append_data(&mut header, &entry.path, entry.bytes());
        written.map_err(|why| format!("{}: {why}", entry.path))?;
    }
    writer.into_inner().map_err(|why| why.to_string())
}

/// Returns bytes as a gzip file, without a name or a time in its header.
///
/// # Errors
/// None that memory can have.
pub(super) fn gzip(bytes: &[u8], style: Style) -> Result<Vec<u8>, String> {
    let mut writer = GzEncoder::new(Vec::new(), Compression::new(style.level));
    let written = writer.write_all(bytes).and_then(|()| writer.finish());
    written.map_err(|why| why.to_string())
}

/// Returns a compressed tar file.
///
/// # Errors
/// As [`tar()`].
pub(super) fn tar_gz(entries: &[Entry], style: Style) -> Result<Vec<u8>, String> {
    gzip(&tar(entries, style)?, style)
}

/// Returns a zip file: a wheel, a jar or a Go module. Entries keep their order, because a jar starts with its manifest.
///
/// # Errors
/// A path occurs twice.
pub(super) fn zip(entries: &[Entry], style: Style) -> Result<Vec<u8>, String> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for entry in entries {
        let (method, level) = match style.level {
            0 => (CompressionMethod::Stored, None),
            level => (CompressionMethod::Deflated, Some(i64::from(level))),
        };
        let options = SimpleFileOptions::default()
            .compression_method(method)
            .compression_level(level)
            .last_modified_time(dos_time(style.epoch))
            .unix_permissions(entry.mode);
        let written = match &entry.content {
            Content::File(bytes) => writer
                .start_file(entry.path.as_str(), options)
                .and_then(|()| Ok(writer.write_all(bytes)?)),
            Content::Folder => writer.add_directory(entry.path.as_str(), options),
        };
        written.map_err(|why| format!("{}: {why}", entry.path))?;
    }
    Ok(writer.finish().map_err(|why| why.to_string())?.into_inner())
}

/// Returns the time of a zip entry, which starts in 1980 and counts two seconds.
fn dos_time(epoch: u64) -> DateTime {
    let time = i64::try_from(epoch)
        .ok()
        .and_then(|seconds| jiff::Timestamp::from_second(seconds).ok());
    let parts = time.and_then(|time| {
        let time = jiff::tz::TimeZone::UTC.to_datetime(time);
        let small = |part: i8| u8::try_from(part).ok();
        let (date, clock) = (
            (small(time.month())?, small(time.day())?),
            (small(time.hour())?, small(time.minute())?, small(time.second())?),
        );
        DateTime::from_date_and_time(
            u16::try_from(time.year()).ok()?,
            date.0,
            date.1,
            clock.0,
            clock.1,
            clock.2,
        )
        .ok()
    });
    parts.unwrap_or_default()
}

/// Returns entries in the order of their paths.
pub(super) fn sorted(entries: &[Entry]) -> Vec<&Entry> {
    let mut sorted: Vec<&Entry> = entries.iter().collect();
    sorted.sort_by(|one, other| one.path.cmp(&other.path));
    sorted
}

/// Returns a SHA-256 digest in hexadecimal digits.
pub(super) fn sha256(bytes: &[u8]) -> String {
    hexadecimal(digest(&SHA256, bytes).as_ref())
}

/// Returns a SHA-512 digest in hexadecimal digits.
pub(super) fn sha512(bytes: &[u8]) -> String {
    hexadecimal(digest(&SHA512, bytes).as_ref())
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STYLE: Style = Style {
        epoch: 1_000_000_000,
        level: 6,
    };

    #[test]
    fn the_order_of_entries_does_not_change_a_tar_file() {
        let (one, two) = (Entry::file("b/c", "x"), Entry::program("a", "y"));
        let forth = tar_gz(&[one.clone(), two.clone()], STYLE).unwrap();
        assert_eq!(forth, tar_gz(&[two, one], STYLE).unwrap());
    }

    #[test]
    fn a_zip_file_has_one_time_and_the_permissions() {
        let bytes = zip(&[Entry::program("a", "y")], STYLE).unwrap();
        let mut read = ::zip::ZipArchive::new(Cursor::new(bytes)).unwrap();
        let entry = read.by_index(0).unwrap();
        assert_eq!(entry.unix_mode().unwrap() & 0o777, 0o755);
        assert_eq!(entry.last_modified().unwrap().to_string(), "2001-09-09 01:46:40");
        assert_eq!(dos_time(0), DateTime::default(), "zip files start in 1980");
    }

    #[test]
    fn a_long_path_is_kept() {
        let path = format!("{}/{}", "a".repeat(90), "b".repeat(90));
        let bytes = tar(&[Entry::file(path.clone(), "x")], STYLE).unwrap();
        let mut read = ::tar::Archive::new(&bytes[..]);
        let entry = read.entries().unwrap().next().unwrap().unwrap();
        assert_eq!(entry.path().unwrap().to_string_lossy(), path);
    }
}

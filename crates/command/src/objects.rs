//! Objects from files and folders, with their positions; all mistakes are reported at once.
//!
//! It must not know kinds: the server reports unknown ones.

use std::path::{Path, PathBuf};

use fake_apiserver::manifests;
use fake_apiserver::server::Server;
use serde_json::Value;

use crate::Failure;

/// Extensions of the files that are read in a folder.
const ENDINGS: [&str; 3] = ["yaml", "yml", "json"];

/// An object and its position.
struct Found {
    object: Value,
    file: PathBuf,
    line: usize,
}

/// Puts the objects of files and folders (recursively, in order of file names) into the server: resource definitions first,
/// so that their objects are known. Returns the number of objects.
///
/// # Errors
///
/// All mistakes, each with file, line and column.
pub(crate) fn put(
    server: &mut Server,
    definitions: &[PathBuf],
    objects: &[PathBuf],
) -> Result<usize, Failure> {
    let mut mistakes = Vec::new();
    let mut found = Vec::new();
    for path in definitions.iter().chain(objects) {
        read(path, &mut found, &mut mistakes);
    }
    found.sort_by_key(|found| rank(&found.object));
    let count = found.len();
    for Found { object, file, line } in found {
        if object.get("snapshot").is_some() {
            let why = "a snapshot: start with it by --from, at its version";
            mistakes.push(format!("{}:{line}:1: {why}", file.display()));
        } else if let Err(message) = server.put(&object) {
            mistakes.push(format!("{}:{line}:1: {message}", file.display()));
        }
    }
    if mistakes.is_empty() {
        return Ok(count);
    }
    let many = match mistakes.len() {
        1 => "1 mistake".to_owned(),
        count => format!("{count} mistakes"),
    };
    let lines: String = mistakes.iter().map(|mistake| format!("{mistake}\n")).collect();
    Err(Failure::Drawn(format!(
        "{lines}{many}; the server was not started\n"
    )))
}

/// Orders definitions, then namespaces, then other objects as found.
fn rank(object: &Value) -> u8 {
    match object.get("kind").and_then(Value::as_str) {
        Some("CustomResourceDefinition") => 0,
        Some("Namespace") => 1,
        Some(_) | None => 2,
    }
}

fn read(path: &Path, found: &mut Vec<Found>, mistakes: &mut Vec<String>) {
    if path.is_dir() {
        return match files_of(path) {
            Ok(files) => files.iter().for_each(|file| read(file, found, mistakes)),
            Err(error) => mistakes.push(format!("{}: {error}", path.display())),
        };
    }
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) => return mistakes.push(format!("{}: {error}", path.display())),
    };
    for (first_line, document) in documents(&text) {
        match manifests::read(document) {
            Ok(objects) => {
                // Objects in a list have the position of the list.
                let line = first_line + leading_lines(document);
                found.extend(objects.into_iter().map(|object| Found {
                    object,
                    file: path.to_owned(),
                    line,
                }));
            }
            Err(error) => {
                let (line, column) = error.place.unwrap_or((1, 1));
                mistakes.push(format!(
                    "{}:{}:{column}: {}",
                    path.display(),
                    first_line + line - 1,
                    error.message
                ));
            }
        }
    }
}

/// Returns the files of a folder that can contain objects, in order of their names.
fn files_of(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let known = path
            .extension()
            .and_then(|ending| ending.to_str())
            .is_some_and(|ending| ENDINGS.contains(&ending));
        if known || path.is_dir() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Splits YAML into documents with their first lines, from 1; JSON is one document. A mistake in one does not hide the
/// others.
pub(crate) fn documents(text: &str) -> Vec<(usize, &str)> {
    if text.trim_start().starts_with('{') {
        return vec![(1, text)];
    }
    let mut documents = Vec::new();
    let (mut begin, mut begin_line, mut at) = (0, 1, 0);
    for (index, line) in text.split_inclusive('\n').enumerate() {
        // Lines of a block scalar are indented, so this is a document marker.
        if line.trim_end() == "---" || line.starts_with("--- ") {
            documents.push((begin_line, &text[begin..at]));
            begin = at + if line.trim_end() == "---" { line.len() } else { 3 };
            begin_line = if line.trim_end() == "---" {
                index + 2
            } else {
                index + 1
            };
        }
        at += line.len();
    }
    documents.push((begin_line, &text[begin..]));
    documents.retain(|(_, document)| {
        document
            .lines()
            .any(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#'))
    });
    documents
}

/// Returns the number of empty or comment lines at the beginning.
fn leading_lines(document: &str) -> usize {
    document
        .lines()
        .take_while(|line| line.trim().is_empty() || line.trim_start().starts_with('#'))
        .count()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::one("kind: A\n", &[(1, "kind: A\n")])]
    #[case::two("kind: A\n---\nkind: B\n", &[(1, "kind: A\n"), (3, "kind: B\n")])]
    #[case::marker_first("---\nkind: A\n", &[(2, "kind: A\n")])]
    #[case::comments_only("# nothing\n---\n\n# here\n", &[])]
    #[case::on_the_markers_line("--- {kind: A}\n", &[(1, " {kind: A}\n")])]
    #[case::json("{\n\"kind\": \"A\"}", &[(1, "{\n\"kind\": \"A\"}")])]
    fn documents_know_their_lines(#[case] text: &str, #[case] expected: &[(usize, &str)]) {
        assert_eq!(documents(text), expected);
    }
}

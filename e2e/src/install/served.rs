//! Local registries: files by HTTP, the two documents of an npm registry, the settings of Maven. Only for tests: a request is a
//! path, a response a whole file.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Component, Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use serde_json::{Value, json};

use crate::toolchain::{Missing, run};

/// Starts a server of the files in a folder, once, and returns its URL.
///
/// # Errors
/// No port is free.
pub(super) fn url(folder: &Path) -> Result<String, Missing> {
    static STARTED: OnceLock<Result<String, Missing>> = OnceLock::new();
    let start = || {
        let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| format!("no port: {error}"))?;
        let address = listener
            .local_addr()
            .map_err(|error| format!("no port: {error}"))?;
        let folder = folder.to_owned();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let folder = folder.clone();
                // A client that goes away has its reasons.
                std::thread::spawn(move || drop(answer(stream, &folder)));
            }
        });
        Ok(format!("http://{address}"))
    };
    STARTED.get_or_init(start).clone()
}

/// Answers one request, and closes the connection.
fn answer(mut stream: TcpStream, folder: &Path) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let request = lines.next().transpose()?.unwrap_or_default();
    while lines.next().transpose()?.is_some_and(|header| !header.is_empty()) {}
    let path = request.split(' ').nth(1).unwrap_or_default();
    let file = path
        .split('?')
        .next()
        .and_then(|path| inside(folder, path))
        .and_then(|path| std::fs::read(path).ok());
    let (status, body) = file.map_or(("404 Not Found", Vec::new()), |file| ("200 OK", file));
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(&body)
}

/// Returns the file of a path; none if it would be outside of the folder.
fn inside(folder: &Path, path: &str) -> Option<PathBuf> {
    // npm encodes the slash in the name of a package.
    let path = path
        .trim_start_matches('/')
        .replace("%2f", "/")
        .replace("%2F", "/");
    let plain = Path::new(&path)
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    plain.then(|| folder.join(path))
}

/// Writes the document of each npm package in a folder, into its folder `registry`. `url`: that of the folder.
///
/// # Errors
/// A package cannot be read.
pub(super) fn npm_registry(folder: &Path, url: &str) -> Result<(), Missing> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_none_or(|ending| ending != "tgz") {
            continue;
        }
        let mut tar = Command::new("tar");
        let manifest = run("tar", tar.arg("xzOf").arg(&path).arg("package/package.json"))?;
        let mut manifest: Value =
            serde_json::from_slice(&manifest.stdout).map_err(|why| format!("package.json: {why}"))?;
        let file = path.file_name().unwrap_or_default().display();
        manifest["dist"] = json!({"tarball": format!("{url}/{file}")});
        let (name, version) = (manifest["name"].clone(), manifest["version"].clone());
        let versions =
            serde_json::Map::from_iter([(version.as_str().unwrap_or_default().to_owned(), manifest)]);
        let document = json!({"name": name, "dist-tags": {"latest": version}, "versions": versions});
        let to = folder.join("registry").join(name.as_str().unwrap_or_default());
        std::fs::create_dir_all(to.parent().unwrap_or(folder)).map_err(failed)?;
        std::fs::write(&to, document.to_string()).map_err(failed)?;
    }
    Ok(())
}

/// Returns settings of Maven with an additional repository, which no mirror of this machine replaces.
pub(super) fn maven_settings(url: &str) -> String {
    format!(
        "<settings>\n  <mirrors><mirror><id>dist-files</id><mirrorOf>dist</mirrorOf><url>{url}</url></mirror></mirrors>\n  \
         <profiles><profile><id>dist</id><repositories><repository><id>dist</id><url>{url}</url></repository></repositories></profile></profiles>\n  \
         <activeProfiles><activeProfile>dist</activeProfile></activeProfiles>\n</settings>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_stays_in_its_folder() {
        let folder = Path::new("/dist");
        assert_eq!(
            inside(folder, "/npm/@a%2fb"),
            Some(PathBuf::from("/dist/npm/@a/b"))
        );
        assert_eq!(inside(folder, "/../etc/passwd"), None);
        assert_eq!(
            inside(folder, "//etc/passwd"),
            Some(PathBuf::from("/dist/etc/passwd"))
        );
    }
}

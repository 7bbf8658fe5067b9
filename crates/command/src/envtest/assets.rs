//! `fake-apiserver envtest-assets`: the directory for `KUBEBUILDER_ASSETS`, with links to this program under the names of the
//! programs it substitutes.
//!
//! It must not know the behaviour under those names.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use clap::Args;

use super::behind::{CONTROLLERS, REAL};
use super::faults::Faults;
use super::{Role, print, verdict};
use crate::{Failure, output, random};

const ENVIRONMENT: &str = "\
Environment of the suite:
  FAKE_APISERVER_RULES               file with rules (faults), a document each
  FAKE_APISERVER_SCENARIO            scenario file whose steps apply
  FAKE_APISERVER_VERDICT             file that gets a line of JSON per apiserver
  FAKE_APISERVER_KUBERNETES_VERSION  minor version to emulate, as --kubernetes-version of serve
  FAKE_APISERVER_WEBHOOKS            webhooks to call: none, local or any [default: local]";

/// Create a KUBEBUILDER_ASSETS directory: run envtest suites on this program.
///
/// Creates DIR with `etcd` and `kube-apiserver`, which are links to this program, and `kubectl` if it is found on PATH; prints
/// DIR on standard output. Also checks the files with faults that the environment names.
///
/// Example: KUBEBUILDER_ASSETS=$(fake-apiserver envtest-assets) go test ./...
#[derive(Debug, Args)]
#[command(after_help = ENVIRONMENT)]
pub(crate) struct EnvtestAssets {
    /// Directory [default: fake-apiserver/envtest-VERSION in the user's cache].
    ///
    /// The user's cache is $XDG_CACHE_HOME, or .cache in the home directory.
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Directory of a real kube-apiserver and etcd to put rules and verdict before.
    ///
    /// `setup-envtest use -p path` prints such a directory. A suite gets the responses of a real apiserver, and the faults.
    #[cfg(feature = "proxy")]
    #[arg(long, value_name = "DIR")]
    real: Option<PathBuf>,
    /// Run the namespace and garbage collection controllers beside the apiserver.
    ///
    /// kube-controller-manager is looked for in the directory of --real, then on PATH. With it a deleted namespace and what it has disappear, and so do
    /// objects whose owner is deleted; envtest alone leaves both.
    #[arg(long)]
    controllers: bool,
}

impl EnvtestAssets {
    #[cfg(feature = "proxy")]
    fn real(&self) -> Option<&Path> {
        self.real.as_deref()
    }

    #[cfg(not(feature = "proxy"))]
    fn real(&self) -> Option<&Path> {
        None
    }
}

/// Creates the directory and prints its path.
///
/// # Errors
///
/// The directory contains a file of the user, a system error, or a file with faults has mistakes.
pub(crate) fn run(arguments: &EnvtestAssets) -> Result<(), Failure> {
    Faults::from_environment().check()?;
    verdict::check_environment()?;
    let real = arguments.real().map(Real::of).transpose()?;
    let folder = match &arguments.folder {
        Some(folder) => folder.clone(),
        None => default_folder(real.is_some(), |name| std::env::var_os(name).map(PathBuf::from))?,
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let controllers = arguments
        .controllers
        .then(|| controllers(arguments.real(), &path));
    let controllers = controllers.transpose()?;
    let failed = |error| Failure::System(format!("cannot create {}", folder.display()), error);
    std::fs::create_dir_all(&folder).map_err(failed)?;
    let folder = folder.canonicalize().map_err(failed)?;
    let program = std::env::current_exe()
        .map_err(|error| Failure::System("cannot find this program".to_owned(), error))?;
    if real.as_ref().is_some_and(|real| real.folder == folder) {
        return Err(Failure::Usage(format!(
            "{} has the real programs: name another directory for the links",
            folder.display()
        )));
    }
    let etcd = real.as_ref().map_or(&program, |real| &real.etcd);
    link(&program, &folder.join(Role::Apiserver.name()))?;
    link(etcd, &folder.join(Role::Etcd.name()))?;
    let apiserver = real.as_ref().map(|real| real.apiserver.as_path());
    for (name, program) in [(REAL, apiserver), (CONTROLLERS, controllers.as_deref())] {
        match program {
            Some(program) => link(program, &folder.join(name))?,
            None => unlink(&folder.join(name))?,
        }
    }
    let beside = real
        .map(|real| real.folder.join(KUBECTL))
        .filter(|file| file.is_file());
    match beside.or_else(|| on_path(KUBECTL, std::env::split_paths(&path), &folder)) {
        Some(kubectl) => link(&kubectl, &folder.join(KUBECTL))?,
        None => output::log("no kubectl on PATH: left out"),
    }
    print(&format!("{}\n", folder.display()));
    Ok(())
}

const KUBECTL: &str = "kubectl";

/// Real programs.
struct Real {
    folder: PathBuf,
    apiserver: PathBuf,
    etcd: PathBuf,
}

impl Real {
    /// Finds the programs in a directory.
    fn of(folder: &Path) -> Result<Self, Failure> {
        let folder = folder
            .canonicalize()
            .map_err(|error| Failure::Usage(format!("--real {}: {error}", folder.display())))?;
        let [apiserver, etcd] = [Role::Apiserver, Role::Etcd].map(|role| folder.join(role.name()));
        let missing: Vec<&str> = [Role::Apiserver, Role::Etcd]
            .into_iter()
            .map(Role::name)
            .filter(|name| !folder.join(name).is_file())
            .collect();
        if missing.is_empty() {
            Ok(Self {
                folder,
                apiserver,
                etcd,
            })
        } else {
            Err(Failure::Usage(format!(
                "--real {}: there is no {}; `setup-envtest use -p path` prints a directory that has both, after a download",
                folder.display(),
                missing.join(" and no ")
            )))
        }
    }
}

/// Finds kube-controller-manager.
fn controllers(real: Option<&Path>, path: &OsStr) -> Result<PathBuf, Failure> {
    let folders = real
        .map(Path::to_owned)
        .into_iter()
        .chain(std::env::split_paths(path));
    let folders: Vec<PathBuf> = folders
        .filter(|folder| folder.is_absolute() || real == Some(folder))
        .collect();
    let found = folders
        .iter()
        .map(|folder| folder.join(CONTROLLERS))
        .find(|program| program.is_file());
    let found = found.and_then(|program| program.canonicalize().ok());
    found.ok_or_else(|| {
        let folders: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
        Failure::Usage(format!(
            "--controllers: there is no {CONTROLLERS} in {}; it is part of the server binaries of a Kubernetes release",
            folders.join(", ")
        ))
    })
}

fn default_folder(is_real: bool, variable: impl Fn(&str) -> Option<PathBuf>) -> Result<PathBuf, Failure> {
    let absolute = |name| variable(name).filter(|folder| folder.is_absolute());
    let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
    let cache =
        cache.ok_or_else(|| Failure::Usage("there is no home directory: name the directory".to_owned()))?;
    let name = concat!("envtest-", env!("CARGO_PKG_VERSION"));
    let name = if is_real {
        format!("{name}-real")
    } else {
        name.to_owned()
    };
    Ok(cache.join("fake-apiserver").join(name))
}

/// Returns the first program of this name in these folders that is not one of our links.
fn on_path(name: &str, folders: impl Iterator<Item = PathBuf>, ours: &Path) -> Option<PathBuf> {
    folders
        .filter(|folder| folder.is_absolute() && folder.canonicalize().is_ok_and(|folder| folder != ours))
        .map(|folder| folder.join(name))
        .find(|program| program.is_file())
}

/// Removes a link of an earlier run. A file is not: the user put it there.
fn unlink(link: &Path) -> Result<(), Failure> {
    match std::fs::symlink_metadata(link) {
        Ok(metadata) if metadata.is_symlink() => std::fs::remove_file(link)
            .map_err(|error| Failure::System(format!("cannot remove {}", link.display()), error)),
        Ok(_) => Err(Failure::Usage(format!(
            "{} exists and is no link, and would be run beside the apiserver: name another directory, or remove it",
            link.display()
        ))),
        Err(_) => Ok(()),
    }
}

/// Creates a link to `program` at `to`, or a copy if links are not supported. An existing link is replaced, a file is not: it
/// may be a real kube-apiserver.
fn link(program: &Path, to: &Path) -> Result<(), Failure> {
    let failed = |error| Failure::System(format!("cannot create {}", to.display()), error);
    match std::fs::symlink_metadata(to) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed(error)),
        Ok(metadata) if metadata.is_symlink() => {}
        Ok(_) if is_copy(program, to) => return Ok(()),
        Ok(_) => {
            return Err(Failure::Usage(format!(
                "{} exists and is no link: name another directory, or remove it",
                to.display()
            )));
        }
    }
    // Renamed, so that a suite that starts concurrently finds the old link or the new one.
    let unfinished = to.with_extension(random::word()?);
    let made = std::os::unix::fs::symlink(program, &unfinished)
        .or_else(|_| std::fs::copy(program, &unfinished).map(drop))
        .and_then(|()| std::fs::rename(&unfinished, to));
    if made.is_err() {
        // It may not exist.
        let _ = std::fs::remove_file(&unfinished);
    }
    made.map_err(failed)
}

fn is_copy(program: &Path, to: &Path) -> bool {
    let length = |path: &Path| std::fs::metadata(path).map(|metadata| metadata.len()).ok();
    length(program) == length(to) && std::fs::read(program).ok() == std::fs::read(to).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_in_the_cache_of_the_user() {
        let of = |cache: &str, home: &str| {
            let found = default_folder(false, |name| {
                let value = if name == "HOME" { home } else { cache };
                Some(PathBuf::from(value)).filter(|value| !value.as_os_str().is_empty())
            });
            found
                .map(|folder| folder.parent().unwrap().display().to_string())
                .ok()
        };
        assert_eq!(of("/c", "/h").as_deref(), Some("/c/fake-apiserver"));
        assert_eq!(of("", "/h").as_deref(), Some("/h/.cache/fake-apiserver"));
        assert_eq!(of("relative", "/h").as_deref(), Some("/h/.cache/fake-apiserver"));
        assert_eq!(of("", ""), None);
    }

    #[test]
    fn links_are_replaced_and_files_kept() {
        let folder = std::env::temp_dir().join(format!("fake-apiserver-assets-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (old, new, to) = (folder.join("old"), folder.join("new"), folder.join("etcd"));
        for program in [&old, &new] {
            std::fs::write(program, program.display().to_string()).unwrap();
        }
        link(&old, &to).unwrap();
        link(&new, &to).unwrap();
        assert_eq!(std::fs::read_link(&to).unwrap(), new);
        std::fs::remove_file(&to).unwrap();
        std::fs::write(&to, "a real etcd").unwrap();
        assert!(matches!(link(&new, &to), Err(Failure::Usage(_))));
        assert_eq!(std::fs::read_to_string(&to).unwrap(), "a real etcd");
        std::fs::copy(&new, &to).unwrap();
        assert!(link(&new, &to).is_ok(), "a copy of ours stays");
        let bin = folder.join("bin");
        std::fs::create_dir_all(&bin).unwrap();
        for place in [&folder, &bin] {
            std::fs::write(place.join(KUBECTL), "").unwrap();
        }
        let ours = folder.canonicalize().unwrap();
        let found = on_path(KUBECTL, [folder.clone(), bin.clone()].into_iter(), &ours);
        assert_eq!(found, Some(bin.join(KUBECTL)), "not the link of an earlier run");
        std::fs::remove_dir_all(folder).unwrap();
    }
}

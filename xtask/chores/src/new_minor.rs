//! `cargo xtask oracle new`: everything that a program can do for a new Kubernetes minor; `docs/new-minor.md` has the rest.
//!
//! It builds the oracle, renews the tables that are generated from it, records every probe, and lists what differs from the
//! minor before. It must not know what a difference means.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use ::fidelity::Error;
use fake_apiserver::scenario::Version;

use crate::clients::root;

/// Does it for a release, e.g. 1.38.0.
///
/// # Errors
/// The version is not one of `Version` yet, Go is missing, or a server or a file fails.
pub(crate) fn add(release: &str) -> Result<(), Error> {
    let newest = Version::NEWEST;
    let minor = release.splitn(3, '.').take(2).collect::<Vec<_>>().join(".");
    if minor != newest.name() {
        return Err(Error::caller(format!(
            "{minor} is not the newest version, which is {newest}: add it to crates/apimachinery/src/version.rs first"
        )));
    }
    if newest.recorded_release() != format!("v{release}") {
        return Err(Error::caller(format!(
            "crates/apimachinery/src/version.rs says that {} is recorded, not v{release}",
            newest.recorded_release()
        )));
    }
    let oracle = root().join("fidelity/oracle");
    keep_modules(&oracle)?;
    say(&format!("fidelity/oracle/go.mod of {release}"));
    run(Command::new("./versions.sh")
        .args([release, "go.mod"])
        .current_dir(&oracle))?;
    say("build (minutes)");
    crate::oracle::build(newest)?;
    say("Go types");
    let types = run(Command::new("go").args(["run", "./types"]).current_dir(&oracle))?;
    let file = root().join("crates/builtin-kinds/data/types.txt");
    std::fs::write(&file, types).map_err(|why| Error::file(&file, &why))?;
    say("OpenAPI documents");
    crate::openapi::renew()?;
    say("objects of a new server");
    crate::bootstrap::renew()?;
    say("recordings (an hour: a new server for each probe)");
    crate::fidelity::record_all(newest)?;
    say("columns");
    crate::columns::renew()?;
    differences()
}

/// Keeps the module file of the version that was the newest, unless it was kept before.
fn keep_modules(oracle: &Path) -> Result<(), Error> {
    let file = oracle.join("go.mod");
    let text = std::fs::read_to_string(&file).map_err(|why| Error::file(&file, &why))?;
    let before = Version::ALL.into_iter().rev().nth(1);
    let Some(before) =
        before.filter(|before| text.contains(&format!("k8s.io/kubernetes {}", before.recorded_release())))
    else {
        return Ok(());
    };
    let folder = oracle.join("versions").join(before.name());
    std::fs::create_dir_all(&folder).map_err(|why| Error::file(&folder, &why))?;
    for name in ["go.mod", "go.sum"] {
        let to = folder.join(name);
        std::fs::copy(oracle.join(name), &to).map_err(|why| Error::file(&to, &why))?;
    }
    Ok(())
}

/// Prints the probes whose recordings differ from those of the minor before; the first line, a title, does not count.
fn differences() -> Result<(), Error> {
    let mut versions = Version::ALL.into_iter().rev();
    let (Some(newest), Some(before)) = (versions.next(), versions.next()) else {
        return Ok(());
    };
    let recordings = root().join("fidelity/oracle/recordings");
    let text = |version: Version, name: &str| {
        let text = std::fs::read_to_string(recordings.join(version.name()).join(name)).unwrap_or_default();
        text.split_once('\n').map(|(_, rest)| rest.to_owned())
    };
    let folder = recordings.join(newest.name());
    let listed = std::fs::read_dir(&folder).map_err(|why| Error::file(&folder, &why))?;
    let names: BTreeSet<String> = listed
        .filter_map(Result::ok)
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    let differ: Vec<&str> = names
        .iter()
        .filter(|name| text(newest, name) != text(before, name))
        .map(|name| name.trim_end_matches(".txt"))
        .collect();
    say(&format!(
        "{} of {} recordings differ from those of {before}, some only by chance (docs/new-minor.md has the next steps):",
        differ.len(),
        names.len()
    ));
    for probe in differ {
        say(&format!("  {probe}"));
    }
    Ok(())
}

fn say(line: &str) {
    let _closed_pipe = writeln!(std::io::stdout(), "{line}");
}

/// Runs a command to its end, and returns its standard output.
fn run(command: &mut Command) -> Result<Vec<u8>, Error> {
    let name = command.get_program().to_string_lossy().into_owned();
    let ran = command.stderr(std::process::Stdio::inherit()).output();
    match ran {
        Ok(ran) if ran.status.success() => Ok(ran.stdout),
        Ok(ran) => Err(Error::caller(format!("{name}: {}", ran.status))),
        Err(why) => Err(Error::caller(format!("{name}: {why}"))),
    }
}

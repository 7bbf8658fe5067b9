//! `cargo xtask edition NAME`: freezes the requirements that the scenarios test today, and their digest; `--check`
//! compares the frozen editions and the page of their errata, which `--page` writes. `scenario::edition` and
//! `scenario::errata` describe them and the comparison.

use std::io::{self, Write as _};
use std::process::ExitCode;

use fake_apiserver::scenario::edition;
use fake_apiserver::scenario::errata::errata;

use crate::clients;

/// Arguments of `cargo xtask edition`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Name of the new edition: the year and a number, e.g. 2026.1.
    #[arg(value_name = "NAME", value_parser = name, required_unless_present_any = ["check", "page"])]
    name: Option<String>,
    /// Compare the editions with their digests, the errata, the catalogue and the scenarios; write nothing.
    #[arg(long, conflicts_with_all = ["name", "page"])]
    check: bool,
    /// Write docs/withdrawn.md from requirements/errata.yaml.
    #[arg(long, conflicts_with = "name")]
    page: bool,
}

/// What was withdrawn, for people.
const PAGE: &str = "docs/withdrawn.md";

/// Exit code 0: the file is written, or nothing differs; 1: an edition was changed, or lists a missing scenario or
/// requirement; 2: the file exists, or the scenarios have mistakes.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let done = match &arguments.name {
        Some(name) => write(name).map(|line| (line, ExitCode::SUCCESS)),
        None if arguments.page => write_page().map(|line| (line, ExitCode::SUCCESS)),
        None => check(),
    };
    match done {
        Ok((lines, code)) => {
            let _closed_pipe = writeln!(io::stdout(), "{lines}");
            code
        }
        Err(problem) => {
            let _closed_pipe = writeln!(io::stderr(), "{problem}");
            ExitCode::from(clients::USAGE)
        }
    }
}

fn write(name: &str) -> Result<String, String> {
    let root = clients::root();
    let scenarios = clients::load(&root)?;
    let path = root.join("requirements/editions").join(format!("{name}.yaml"));
    let text = edition::text(name, scenarios.iter().map(AsRef::as_ref));
    // An edition never changes: clients pin it.
    let file = std::fs::File::create_new(&path);
    file.and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|error| format!("{}: {error}", path.display()))?;
    let sums = root.join("requirements/editions/SHA256SUMS");
    let line = format!("{}  {name}.yaml\n", edition::digest(&text));
    let file = std::fs::File::options().append(true).open(&sums);
    file.and_then(|mut file| file.write_all(line.as_bytes()))
        .map_err(|error| format!("{}: {error}", sums.display()))?;
    Ok(format!(
        "wrote {}; add it to TEXTS in crates/scenario/src/edition.rs",
        path.display()
    ))
}

fn write_page() -> Result<String, String> {
    let path = clients::root().join(PAGE);
    std::fs::write(&path, errata().page()).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(format!("wrote {}", path.display()))
}

/// Returns every edition with its digest, and the mistakes.
fn check() -> Result<(String, ExitCode), String> {
    let scenarios = clients::load(&clients::root())?;
    let mut lines: Vec<String> = edition::editions()
        .iter()
        .map(|edition| {
            let (name, digest) = (&edition.name, &edition.digest);
            format!(
                "edition {name}: {} requirements, sha256 {digest}",
                edition.requirements.len()
            )
        })
        .collect();
    let mut wrong = edition::changed();
    wrong.extend(errata().disagreements());
    let page = std::fs::read_to_string(clients::root().join(PAGE)).unwrap_or_default();
    if page != errata().page() {
        wrong.push(format!("{PAGE} is stale: run `cargo xtask edition --page`"));
    }
    for edition in edition::editions() {
        wrong.extend(edition.disagreements(scenarios.iter().map(AsRef::as_ref)));
    }
    let code = if wrong.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    };
    lines.append(&mut wrong);
    Ok((lines.join("\n"), code))
}

fn name(text: &str) -> Result<String, String> {
    let parts: Vec<&str> = text.split('.').collect();
    let numbers = parts.iter().all(|part| part.parse::<u32>().is_ok());
    match parts.as_slice() {
        [_, _] if numbers => Ok(text.to_owned()),
        _ => Err("expected YEAR.NUMBER, such as 2026.1".to_owned()),
    }
}

//! `cargo xtask edition NAME`: freezes the requirements that the scenarios test today, and their digest; `--check`
//! compares the frozen editions, the page of their errata and that of the next edition, which `--page` writes.
//! `scenario::edition` and `scenario::errata` describe them and the comparison.

mod next;

use std::io::{self, Write as _};
use std::process::ExitCode;

use fake_apiserver::scenario::SharedScenario;
use fake_apiserver::scenario::edition::{self, Edition};
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
    /// Write docs/withdrawn.md from requirements/errata.yaml, and docs/next-edition.md from the catalogue and the scenarios.
    #[arg(long, conflicts_with = "name")]
    page: bool,
}

/// What was withdrawn, for people.
const PAGE: &str = "docs/withdrawn.md";

/// What the next edition changes, for people.
const NEXT: &str = "docs/next-edition.md";

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
    let root = clients::root();
    for (page, text) in pages(&clients::load(&root)?)? {
        std::fs::write(root.join(page), text).map_err(|error| format!("{page}: {error}"))?;
    }
    Ok(format!("wrote {PAGE} and {NEXT}"))
}

/// Returns the pages for people, by path.
fn pages(scenarios: &[SharedScenario]) -> Result<[(&'static str, String); 2], String> {
    let newest = edition::editions().last().ok_or("there is no edition")?;
    let text = edition::text(&next::name(&newest.name), scenarios.iter().map(AsRef::as_ref));
    let next = Edition::parse(&text).ok_or("what would be frozen is no edition")?;
    Ok([
        (PAGE, errata().page()),
        (NEXT, next::page(newest, &next, errata())),
    ])
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
    for (page, text) in pages(&scenarios)? {
        if std::fs::read_to_string(clients::root().join(page)).unwrap_or_default() != text {
            wrong.push(format!("{page} is stale: run `cargo xtask edition --page`"));
        }
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

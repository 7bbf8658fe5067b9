//! `cargo xtask edition NAME`: freezes the requirements that the scenarios test today. What an edition is, and what it is
//! compared with, is in `scenario::edition`.

use std::io::{self, Write as _};
use std::process::ExitCode;

use fake_apiserver::scenario::edition;

use crate::clients;

/// Arguments of `cargo xtask edition`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Name of the new edition: the year and a number, e.g. 2026.1.
    #[arg(value_name = "NAME", value_parser = name)]
    name: String,
}

/// Exit code 0: the file is written; 2: it exists, or the scenarios have mistakes.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    match write(&arguments.name) {
        Ok(line) => {
            let _closed_pipe = writeln!(io::stdout(), "{line}");
            ExitCode::SUCCESS
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
    // An edition is never changed: clients rely on it.
    let file = std::fs::File::create_new(&path);
    file.and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(format!(
        "wrote {}; add it to TEXTS in crates/scenario/src/edition.rs",
        path.display()
    ))
}

fn name(text: &str) -> Result<String, String> {
    let parts: Vec<&str> = text.split('.').collect();
    let numbers = parts.iter().all(|part| part.parse::<u32>().is_ok());
    match parts.as_slice() {
        [_, _] if numbers => Ok(text.to_owned()),
        _ => Err("expected YEAR.NUMBER, such as 2026.1".to_owned()),
    }
}

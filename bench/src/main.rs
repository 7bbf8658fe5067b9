//! `cargo xtask bench server` and `cargo xtask soak`: the served fake from outside, as a process of its own, beside
//! floors and peers in the same run.
//!
//! Only ratios taken side by side mean something; absolute numbers are those of the machine.

mod child;
mod dechunk;
mod fixture;
mod floor;
mod http;
mod load;
mod rows;
mod soak;
mod swarm;
mod table;
mod tls;

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};

use rows::Ground;
use table::Table;

#[derive(Parser)]
#[command(name = "bench", about, disable_help_subcommand = true)]
struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Measures a served fake and prints the table of rows.
    Server(Server),
    /// Loads a served fake for a while and says whether its memory stays flat.
    Soak(soak::Soak),
    /// A server to compare with, for as long as it is not killed.
    #[command(hide = true)]
    Floor {
        #[arg(value_enum)]
        which: Floor,
    },
}

#[derive(clap::Args)]
struct Server {
    /// The server under test: a release build of `fake-apiserver`.
    #[arg(long, value_name = "PATH")]
    binary: PathBuf,
    /// Where peers are installed; without it they are left out.
    #[arg(long, value_name = "FOLDER")]
    peers: Option<PathBuf>,
    /// How to print.
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
    /// Only these rows, by the beginning of their names: `S1,S5,LIST`.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Small sizes and one repetition: does it all still run? Nothing is judged.
    #[arg(long)]
    smoke: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Human,
    Json,
}

#[derive(Clone, Copy, ValueEnum)]
enum Floor {
    Writer,
    Bare,
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().what {
        What::Server(server) => measure(&server),
        What::Soak(soak) => soak::run(&soak),
        What::Floor { which: Floor::Writer } => floor::writer::serve().map(|()| ExitCode::SUCCESS),
        What::Floor { which: Floor::Bare } => floor::bare::serve().map(|()| ExitCode::SUCCESS),
    };
    outcome.unwrap_or_else(|error| {
        let _closed_pipe = writeln!(io::stderr(), "bench: {error}");
        ExitCode::from(3)
    })
}

/// Exit code 0: every row that is judged meets its must, or nothing is judged; 1: one does not; 3: something broke.
fn measure(server: &Server) -> io::Result<ExitCode> {
    let ground = Ground {
        server: server.binary.clone(),
        own: std::env::current_exe()?,
        peers: server.peers.clone(),
        sizes: if server.smoke {
            rows::Sizes::smoke()
        } else {
            rows::Sizes::full()
        },
    };
    let mut table = Table::new(!server.smoke);
    for group in rows::GROUPS {
        let wanted = server.only.is_empty()
            || group
                .rows
                .iter()
                .any(|row| server.only.iter().any(|only| row.starts_with(only.as_str())));
        if !wanted {
            continue;
        }
        let _closed_pipe = writeln!(io::stderr(), "measuring {}", group.rows.join(", "));
        table.add((group.measure)(&ground)?);
    }
    let text = match server.format {
        Format::Human => table.human(),
        Format::Json => table.json().to_string(),
    };
    writeln!(io::stdout(), "{text}")?;
    Ok(if table.all_met() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

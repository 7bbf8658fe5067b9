//! `cargo xtask bench server`, `cargo xtask bench instructions` and `cargo xtask soak`: measures the served fake as a separate
//! process, compared with baselines and peers in the same run, or counts its instructions.
//!
//! Of times only ratios within one run are meaningful; absolute numbers depend on the machine.

mod child;
mod dechunk;
mod fixture;
mod floor;
mod http;
mod instructions;
mod link;
mod load;
mod play;
mod rows;
mod soak;
mod swarm;
mod table;

use std::io::{self, Write as _};
use std::net::SocketAddr;
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
    /// Measure a served fake and print the table of rows
    Server(Server),
    /// Count the instructions of single operations and compare them with the committed counts
    Instructions(instructions::Instructions),
    /// Run a scenario in the simulator and judge it
    #[command(hide = true)]
    Play(play::Play),
    /// Run a load on a served fake and check that its memory stays flat
    Soak(soak::Soak),
    /// Run a baseline server until killed
    #[command(hide = true)]
    Floor {
        #[command(subcommand)]
        which: Floor,
    },
}

#[derive(clap::Args)]
struct Server {
    /// Server under test: a release build of `fake-apiserver`
    #[arg(long, value_name = "PATH")]
    binary: PathBuf,
    /// Folder of installed peers; without it they are skipped
    #[arg(long, value_name = "FOLDER")]
    peers: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
    /// Only these rows, by name prefix: `S1,S5,LIST`
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Small sizes and one repetition, to test the benchmark itself; nothing is judged
    #[arg(long)]
    smoke: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Human,
    Json,
}

#[derive(Subcommand)]
enum Floor {
    /// Writes prepared chunks to watchers
    Writer,
    /// Answers by hyper
    Bare,
    /// Forwards by hyper
    Proxy {
        /// Server to forward to
        upstream: SocketAddr,
        /// New file for the kubeconfig of clients
        kubeconfig: PathBuf,
    },
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().what {
        What::Server(server) => measure(&server),
        What::Instructions(instructions) => instructions::run(&instructions),
        What::Play(play) => play::run(&play).map(|()| ExitCode::SUCCESS),
        What::Soak(soak) => soak::run(&soak),
        What::Floor { which } => match which {
            Floor::Writer => floor::writer::serve(),
            Floor::Bare => floor::bare::serve(),
            Floor::Proxy { upstream, kubeconfig } => floor::proxy::serve(upstream, &kubeconfig),
        }
        .map(|()| ExitCode::SUCCESS),
    };
    outcome.unwrap_or_else(|error| {
        let _closed_pipe = writeln!(io::stderr(), "bench: {error}");
        ExitCode::from(3)
    })
}

/// Returns exit code 0 if every judged row meets its "must", or nothing is judged; 1 if one does not; 3 on errors.
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

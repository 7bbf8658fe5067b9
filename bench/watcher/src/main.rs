//! `cargo xtask bench watcher`: this project's watcher and kube-runtime's, one after the other on the same server and
//! the same data, each measurement in a new process.
//!
//! Only the ratios of pairs are meaningful; absolute numbers depend on the machine.

mod fixture;
mod process;
mod rows;
mod sample;
mod server;
mod table;

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, ExitCode, Stdio};

use clap::{Parser, Subcommand, ValueEnum};

use rows::{Against, GROUPS, Group};
use sample::{Sample, Side, Taken};
use table::Table;

#[derive(Parser)]
#[command(name = "bench-watcher", about, disable_help_subcommand = true)]
struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Measure, and print the table
    Measure(Measure),
    /// Run the server of the measurements until killed
    #[command(hide = true)]
    Serve,
    /// Run one measurement and print it as JSON
    #[command(hide = true)]
    Sample(Sample),
}

#[derive(clap::Args)]
struct Measure {
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
    /// Only these rows: `W1,L2`
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Small sizes and one pair, to test the benchmark itself; nothing is judged
    #[arg(long)]
    smoke: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Human,
    Json,
}

/// Number of objects and events of a smoke run.
const SMOKE: u64 = 1_000;

fn main() -> ExitCode {
    let outcome = match Arguments::parse().what {
        What::Measure(arguments) => measure(&arguments),
        What::Serve => {
            process::pin(process::SERVER);
            server::serve().map(|()| ExitCode::SUCCESS)
        }
        What::Sample(sample) => sample::take(&sample).and_then(|taken| {
            writeln!(io::stdout(), "{}", serde_json::to_string(&taken)?)?;
            Ok(ExitCode::SUCCESS)
        }),
    };
    outcome.unwrap_or_else(|error| {
        let _closed_pipe = writeln!(io::stderr(), "bench-watcher: {error}");
        ExitCode::from(3)
    })
}

/// Returns exit code 0 if every "must" is met, or nothing is judged; 1 if one is not; 3 on errors.
fn measure(arguments: &Measure) -> io::Result<ExitCode> {
    let server = Server::start()?;
    let mut table = Table::new(!arguments.smoke);
    for group in GROUPS {
        let names: Vec<&str> = group.rows.iter().map(|row| row.name).collect();
        if !arguments.only.is_empty() && !arguments.only.iter().any(|only| names.contains(&only.as_str())) {
            continue;
        }
        let _closed_pipe = writeln!(
            io::stderr(),
            "measuring {}: {}",
            names.join(", "),
            group.rows[0].work
        );
        let count = if arguments.smoke { SMOKE } else { group.count };
        let (other, other_count) = match group.against {
            Against::Theirs => (Side::Theirs, count),
            Against::OursAt(other) => (Side::Ours, other.min(count)),
        };
        let mut pairs = Vec::new();
        for pair in 0..if arguments.smoke { 1 } else { group.pairs } {
            // The order alternates, so that thermal effects favour neither side.
            let ours = |server: &Server| server.sample(group, Side::Ours, count);
            let theirs = |server: &Server| server.sample(group, other, other_count);
            pairs.push(if pair % 2 == 0 {
                let theirs = theirs(&server)?;
                (ours(&server)?, theirs)
            } else {
                (ours(&server)?, theirs(&server)?)
            });
        }
        table.add(group, &pairs, (count, other_count));
    }
    let text = match arguments.format {
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

/// The server, as a separate process. Killed on drop.
struct Server {
    process: Child,
    address: String,
}

impl Server {
    fn start() -> io::Result<Self> {
        let mut process = Command::new(std::env::current_exe()?)
            .arg("serve")
            .stdout(Stdio::piped())
            .spawn()?;
        let mut address = String::new();
        if let Some(stdout) = &mut process.stdout {
            BufReader::new(stdout).read_line(&mut address)?;
        }
        let address = address.trim().to_owned();
        Ok(Self { process, address })
    }

    fn sample(&self, group: &Group, side: Side, count: u64) -> io::Result<Taken> {
        let word = |value: Option<clap::builder::PossibleValue>| {
            value.map(|value| value.get_name().to_owned()).unwrap_or_default()
        };
        let url = format!("http://{}{}", self.address, group.collection(count).path());
        let output = Command::new(std::env::current_exe()?)
            .arg("sample")
            .args(["--side", &word(side.to_possible_value())])
            .args(["--objects", &word(group.objects.to_possible_value())])
            .args(["--usage", &word(group.usage.to_possible_value())])
            .args(["--reading", &word(group.reading.to_possible_value())])
            .args(["--count", &count.to_string(), "--url", &url])
            .stderr(Stdio::inherit())
            .output()?;
        if !output.status.success() {
            return Err(io::Error::other(format!("{side:?} could not do {group:?}")));
        }
        Ok(serde_json::from_slice(&output.stdout)?)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have exited already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

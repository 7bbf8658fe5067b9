//! `fake-apiserver doctor`: common reasons why clients cannot reach a server on this machine, with remedies.
//!
//! `facts` examines the machine, `checks` decides from facts alone, and this file prints.

mod checks;
mod facts;

use std::fmt::Write as _;

use clap::{Args, ValueEnum};
use fake_apiserver::record::line::printable;
use serde_json::json;

use self::checks::{Finding, Level};
use crate::{Failure, output, stage};

const EXIT_CODES: &str = "\
Exit codes:
  0   no check failed; there may be warnings
  1   a check failed
  2   invalid command line
  70  system error";

/// Check this machine for what keeps clients from a server.
///
/// Checks the port, loopback, KUBECONFIG, proxy variables, the limit of open files, folders, kubectl and the control API that
/// FAKE_APISERVER_CONTROL names, and changes nothing. A warning is what some clients trip over; its second line is what to
/// do.
///
/// Example: fake-apiserver doctor --port 6443
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Doctor {
    /// Port that you want to serve on; 0 selects a free port.
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Output format.
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
}

/// Format of findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Text: a line per check, and what to do.
    Human,
    /// One JSON object with all checks.
    Json,
}

/// Examines the machine and prints the findings.
///
/// # Errors
///
/// A check failed, or standard output is closed.
pub(crate) fn run(doctor: &Doctor) -> Result<(), Failure> {
    stage::block_on(async |stop| {
        let findings = checks::findings(&facts::gather(doctor.port).await);
        let text = match doctor.format {
            Format::Human => human(&findings),
            Format::Json => format!("{:#}\n", as_json(&findings)),
        };
        output::print(text, &stop).await?;
        match worst(&findings) {
            Level::Fail => Err(Failure::Silent(1)),
            Level::Ok | Level::Warn => Ok(()),
        }
    })
}

fn worst(findings: &[Finding]) -> Level {
    findings
        .iter()
        .map(|finding| finding.level)
        .max()
        .unwrap_or(Level::Ok)
}

fn human(findings: &[Finding]) -> String {
    let mut text = String::new();
    for finding in findings {
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "{:<5} {:<10} {}",
            finding.level.word(),
            finding.check,
            printable(&finding.message)
        );
        if let Some(remedy) = &finding.remedy {
            let _ = writeln!(text, "{:17}→ {}", "", printable(remedy));
        }
    }
    text
}

fn as_json(findings: &[Finding]) -> serde_json::Value {
    let checks: Vec<_> = findings
        .iter()
        .map(|finding| {
            json!({
                "check": finding.check,
                "level": finding.level.word(),
                "message": finding.message,
                "remedy": finding.remedy,
            })
        })
        .collect();
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "outcome": worst(findings).word(),
        "checks": checks,
    })
}

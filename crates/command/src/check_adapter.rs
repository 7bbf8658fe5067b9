//! `fake-apiserver check-adapter`: finds mistakes of an adapter before they are attributed to its client.

use std::time::Duration;

use clap::Args;
use conformance::adapter::attempt::{Plan, probe};
use conformance::adapter::check::Check;
use conformance::adapter::child::TimeLimits;
use conformance::adapter::limiter::Limiter;
use fake_apiserver::record::line::printable;
use futures::{StreamExt as _, stream};

use crate::conformance::{Folder, unstartable};
use crate::words::span;
use crate::{Failure, output, stage};

const EXIT_CODES: &str = "\
Exit codes:
  0   no mistakes
  1   the adapter has mistakes
  3   the adapter cannot be started
  70  system error";

/// Number of checks that run in parallel.
const AT_ONCE: usize = 4;

/// Check an adapter for mistakes, and report which line is missing.
///
/// Starts the adapter once per check: the first message, the exit, an unknown contract, list and watch, and each declared
/// capability and contract. The protocol is docs/adapter-protocol.md.
///
/// Example: fake-apiserver check-adapter -- python3 adapter.py
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct CheckAdapter {
    /// Command that starts the adapter, with its arguments.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
    /// Time limit for `hello`: the start of a slow runtime.
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = span)]
    hello_timeout: Duration,
    /// Time limit per check.
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = span)]
    timeout: Duration,
}

/// Checks the adapter.
///
/// # Errors
/// It has mistakes, or cannot be started.
pub(crate) fn run(arguments: &CheckAdapter) -> Result<(), Failure> {
    let mistakes = stage::block_on(async |stop| {
        let folder = Folder::create()?;
        let plan = Plan {
            command: arguments.command.clone(),
            limits: TimeLimits {
                hello: arguments.hello_timeout,
                ..TimeLimits::default()
            },
            timeout: arguments.timeout,
            seed: 0,
            edition: None,
            limiter: Limiter::new(),
        };
        let all = async {
            let hello = match probe(&plan, &folder.0.join("probe")).await.map_err(unstartable)? {
                Ok(hello) => hello,
                Err(why) => {
                    output::print(line("`hello`, and exit at the end of input", Some(&why)), &stop).await?;
                    return Ok(1);
                }
            };
            output::print(line("`hello`, and exit at the end of input", None), &stop).await?;
            if !Check::covers(&hello) {
                let text =
                    "– events and capabilities are not checked: `resources` in `hello` has no `configmaps`\n";
                output::print(text.to_owned(), &stop).await?;
            }
            let mut results = stream::iter(Check::all(&hello).into_iter().enumerate())
                .map(async |(number, check)| {
                    let home = folder.0.join(number.to_string());
                    (check, check.run(&plan, &hello, &home).await)
                })
                .buffered(AT_ONCE);
            let mut mistakes = 0;
            while let Some((check, result)) = results.next().await {
                let wrong = result.map_err(unstartable)?;
                mistakes += usize::from(wrong.is_some());
                output::print(line(&check.title(), wrong.as_deref()), &stop).await?;
            }
            Ok(mistakes)
        };
        let mistakes = tokio::select! {
            mistakes = all => mistakes?,
            () = stop.requested() => return Err(Failure::Silent(1)),
        };
        let last = match mistakes {
            0 => "\nno mistakes; next: fake-apiserver conformance -- COMMAND\n".to_owned(),
            1 => "\n1 mistake\n".to_owned(),
            mistakes => format!("\n{mistakes} mistakes\n"),
        };
        output::print(last, &stop).await?;
        Ok(mistakes)
    })?;
    if mistakes == 0 {
        Ok(())
    } else {
        Err(Failure::Silent(1))
    }
}

fn line(checked: &str, wrong: Option<&str>) -> String {
    match wrong {
        None => format!("✔ {checked}\n"),
        Some(why) => format!("✘ {checked}\n  {}\n", printable(why)),
    }
}

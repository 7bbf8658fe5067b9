//! `cargo xtask bench instructions`: instructions of single operations, counted by callgrind and compared with the committed
//! counts.
//!
//! Instructions repeat on any calm or busy machine, so that a change that makes an operation dearer is seen when it is made.
//! They say nothing about system calls, caches and locks: those are in the tables of ratios.

mod callgrind;
mod cases;

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use serde::{Deserialize, Serialize};

use cases::{CASES, Case, Programs};

/// Largest difference of a count that is not judged, in percent of it.
const PERCENT_MAX: u64 = 3;

/// Folder below the scratch folder into which callgrind writes.
const FOLDER: &str = "instructions";

/// Exit code: the counts were made by other versions of the tools, so that nothing is judged.
const NOT_JUDGED: u8 = 4;

#[derive(clap::Args)]
pub(crate) struct Instructions {
    /// Server under test: a build of `fake-apiserver` with the profile
    #[arg(long, value_name = "PATH")]
    binary: PathBuf,
    /// A build of `bench-watcher` with the profile
    #[arg(long, value_name = "PATH")]
    watcher: PathBuf,
    /// Cargo's profile of the programs: the counts of each are apart
    #[arg(long, value_name = "NAME")]
    profile: String,
    /// File of the committed counts
    #[arg(long, value_name = "PATH")]
    counts: PathBuf,
    /// Folder for files of callgrind
    #[arg(long, value_name = "FOLDER")]
    scratch: PathBuf,
    /// Only these operations, by name
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Write the counts to the file instead of comparing them
    #[arg(long)]
    write: bool,
}

/// The committed file.
#[derive(Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
struct Committed {
    /// `rustc --version` of the build.
    rustc: String,
    /// `valgrind --version`.
    valgrind: String,
    /// Instructions of one operation, by name, for each of Cargo's profiles.
    counts: BTreeMap<String, Counts>,
}

/// Instructions of one operation, by its name.
type Counts = BTreeMap<String, u64>;

/// Counts, and compares or writes. Exit code 0: no operation is dearer or cheaper than the file says; 1: one is; 3: a program
/// cannot run; 4: the file is of another rustc or valgrind.
pub(crate) fn run(arguments: &Instructions) -> io::Result<ExitCode> {
    let known = CASES.map(|case| case.name);
    if let Some(unknown) = arguments.only.iter().find(|only| !known.contains(&only.as_str())) {
        return Err(io::Error::other(format!(
            "there is no operation {unknown}; there are: {}",
            known.join(", ")
        )));
    }
    let scratch = arguments.scratch.join(FOLDER);
    std::fs::create_dir_all(&scratch)?;
    let programs = Programs {
        own: std::env::current_exe()?,
        server: arguments.binary.clone(),
        watcher: arguments.watcher.clone(),
        scratch,
    };
    let tools = [callgrind::version("rustc")?, callgrind::version("valgrind")?];
    let chosen =
        |case: &&Case| arguments.only.is_empty() || arguments.only.iter().any(|only| only == case.name);
    let chosen = CASES.iter().filter(chosen);
    if arguments.write {
        let counted = count(chosen, &programs, &Counts::new())?;
        return written(arguments, tools, counted);
    }
    let text = std::fs::read_to_string(&arguments.counts)?;
    let mut committed: Committed = serde_json::from_str(&text).map_err(io::Error::other)?;
    let counts = committed.counts.remove(&arguments.profile).unwrap_or_default();
    let counted = count(chosen, &programs, &counts)?;
    let [rustc, valgrind] = &tools;
    let is_judged = committed.rustc == *rustc && committed.valgrind == *valgrind;
    let mut differing = 0;
    for (name, count) in &counted {
        let Some(case) = CASES.iter().find(|case| case.name == name) else {
            continue;
        };
        let change = counts.get(name).map(|before| Change::of(*before, *count));
        differing += usize::from(!matches!(change, Some(Change::None(_))));
        let words = change.map_or_else(|| "is new".to_owned(), Change::words);
        writeln!(
            io::stdout(),
            "{name:<18} {:>10}  {words}  ({})",
            grouped(*count),
            case.work
        )?;
    }
    for name in counts.keys().filter(|name| !known.contains(&name.as_str())) {
        differing += 1;
        writeln!(io::stdout(), "{name:<18} is no operation any more")?;
    }
    if !is_judged {
        writeln!(
            io::stdout(),
            "nothing is judged: the counts are of {} and {}, this machine has {rustc} and {valgrind}; renew them with --write",
            committed.rustc,
            committed.valgrind
        )?;
        return Ok(ExitCode::from(NOT_JUDGED));
    }
    if differing > 0 {
        let file = arguments.counts.display();
        writeln!(
            io::stdout(),
            "{differing} of {} differ by more than {PERCENT_MAX} % from {file}: make the change cheaper, or commit the new counts with it: \
             cargo xtask bench instructions --write",
            counted.len()
        )?;
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

/// Counts operations. A count that differs from the one before is made again, and the nearer of the two is taken: a hash seed or
/// a short read changes one count in some hundred by more than is judged, a change of the program both.
fn count<'c>(
    cases: impl Iterator<Item = &'c Case>,
    programs: &Programs,
    before: &Counts,
) -> io::Result<Counts> {
    let mut counted = Counts::new();
    for case in cases {
        let mut count = (case.count)(programs)?;
        if let Some(before) = before.get(case.name)
            && !matches!(Change::of(*before, count), Change::None(_))
        {
            let again = (case.count)(programs)?;
            count = std::cmp::min_by_key(count, again, |count| count.abs_diff(*before));
        }
        counted.insert(case.name.to_owned(), count);
        writeln!(io::stderr(), "counted: {}", case.name)?;
    }
    Ok(counted)
}

/// Writes the counts of a profile; those of other operations and profiles stay.
fn written(
    arguments: &Instructions,
    [rustc, valgrind]: [String; 2],
    counted: Counts,
) -> io::Result<ExitCode> {
    let file = &arguments.counts;
    let before = std::fs::read_to_string(file).ok();
    let before = before.and_then(|text| serde_json::from_str::<Committed>(&text).ok());
    let before = before.filter(|before| before.rustc == rustc && before.valgrind == valgrind);
    let mut profiles = before.map(|before| before.counts).unwrap_or_default();
    let mut counts = profiles.remove(&arguments.profile).unwrap_or_default();
    counts.retain(|name, _| CASES.iter().any(|case| case.name == name));
    // A count within the noise stays, so that only what changed is in the diff.
    counts.extend(
        counted
            .into_iter()
            .filter(|(name, count)| {
                let before = counts.get(name).map(|before| Change::of(*before, *count));
                !matches!(before, Some(Change::None(_)))
            })
            .collect::<Vec<_>>(),
    );
    profiles.insert(arguments.profile.clone(), counts);
    let committed = Committed {
        rustc,
        valgrind,
        counts: profiles,
    };
    let text = serde_json::to_string_pretty(&committed).map_err(io::Error::other)?;
    std::fs::write(file, text + "\n")?;
    Ok(ExitCode::SUCCESS)
}

/// Difference between two counts, as a share of the first.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Change {
    None(f64),
    Rise(f64),
    Fall(f64),
}

impl Change {
    fn of(before: u64, now: u64) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "a share needs no more")]
        let share = now as f64 / before.max(1) as f64 - 1.0;
        if now * 100 > before * (100 + PERCENT_MAX) {
            Self::Rise(share)
        } else if now * 100 < before * (100 - PERCENT_MAX) {
            Self::Fall(share)
        } else {
            Self::None(share)
        }
    }

    fn words(self) -> String {
        match self {
            Self::None(share) => format!("{:+5.1} %", share * 100.0),
            Self::Rise(share) => format!("{:+5.1} % ✘", share * 100.0),
            Self::Fall(share) => format!("{:+5.1} % not committed", share * 100.0),
        }
    }
}

/// Formats a number with a comma between groups of three digits.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rise_above_three_percent_is_seen_and_a_fall_is_to_be_committed() {
        assert!(matches!(Change::of(1_000, 1_030), Change::None(_)));
        assert!(matches!(Change::of(1_000, 1_031), Change::Rise(_)));
        assert!(matches!(Change::of(1_000, 970), Change::None(_)));
        assert!(matches!(Change::of(1_000, 969), Change::Fall(_)));
    }

    #[test]
    fn digits_are_grouped() {
        assert_eq!(grouped(7), "7");
        assert_eq!(grouped(49_100), "49,100");
        assert_eq!(grouped(1_234_567), "1,234,567");
    }
}

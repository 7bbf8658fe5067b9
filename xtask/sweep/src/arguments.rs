//! Options of the command, and how their values are parsed. It must not play anything.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::ValueEnum;
use conformance::drive::sim::Link;
use sweep::Profile;
use sweep::run::Shard;

/// Seeds without `--seeds`.
const SEEDS: u64 = 10_000;

/// What is played, from which seed on.
#[derive(clap::Args)]
pub(crate) struct Played {
    /// First seed.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) first: u64,
    /// Client under test: watcher, kube-runtime, reference, or reference:MISTAKE.
    #[arg(long, default_value = "watcher", value_name = "NAME")]
    pub(crate) client: String,
    /// How far the server can be believed: it fails (honest), or it lies as well (lies).
    #[arg(long, value_enum, default_value_t = Profiles::Honest)]
    pub(crate) profile: Profiles,
}

/// What joins client and server.
#[derive(clap::Args)]
pub(crate) struct Linked {
    /// What joins client and server: HTTP as values (in-process), or bytes over pipes, with TLS and HTTP libraries.
    #[arg(long, value_enum, default_value_t = LinkName::InProcess)]
    pub(crate) link: LinkName,
}

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Number of seeds [default: 10000].
    #[arg(long, value_name = "N", default_value_t = SEEDS, hide_default_value = true)]
    pub(crate) seeds: u64,
    #[command(flatten)]
    pub(crate) played: Played,
    #[command(flatten)]
    pub(crate) linked: Linked,
    /// Stop taking new seeds after so long: 90s, 10m or 2h.
    #[arg(long, value_name = "TIME")]
    pub(crate) time_limit: Option<Span>,
    /// Play only this part of the seeds: INDEX/COUNT, the index from 0.
    #[arg(long, value_name = "I/N", default_value = "0/1")]
    pub(crate) shard: ShardOf,
    /// Number of threads [default: number of processors].
    #[arg(long, value_name = "N")]
    pub(crate) jobs: Option<usize>,
    /// Write the result as JSON, for `merge`.
    #[arg(long, value_name = "FILE")]
    pub(crate) result: Option<PathBuf>,
    /// Folder for shrunk scenarios.
    #[arg(long, value_name = "FOLDER", default_value = "scenarios/found")]
    pub(crate) found: PathBuf,
    /// Number of plays to shrink one failure; 0: do not shrink.
    #[arg(long, value_name = "N", default_value_t = 4_000)]
    pub(crate) shrink_plays: u32,
    /// Number of causes to shrink, those of the lowest seeds first.
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) shrink_causes: usize,
    /// Print all coverage tables.
    #[arg(long)]
    pub(crate) coverage: bool,
    /// Print a digest of all traces: equal for equal seeds, on any machine.
    #[arg(long)]
    pub(crate) digest: bool,
    /// Renew the counts by which the generator prefers rare faults. Changes what every seed is.
    #[arg(long)]
    pub(crate) write_rarity: bool,
    /// Play in this build, without an optimized one.
    #[arg(long)]
    pub(crate) debug: bool,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Profiles {
    Honest,
    Lies,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum LinkName {
    InProcess,
    Pipe,
}

impl LinkName {
    pub(crate) fn value(self) -> Link {
        match self {
            Self::InProcess => Link::InProcess,
            Self::Pipe => Link::Pipe,
        }
    }
}

impl Profiles {
    pub(crate) fn value(self) -> Profile {
        match self {
            Self::Honest => Profile::Honest,
            Self::Lies => Profile::Lies,
        }
    }
}

/// `10m`.
#[derive(Clone, Copy)]
pub(crate) struct Span(pub(crate) Duration);

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is no time: write 90s, 10m or 2h");
        let unit = text.chars().next_back().ok_or_else(wrong)?;
        let seconds = match unit {
            's' => 1,
            'm' => 60,
            'h' => 3_600,
            _ => return Err(wrong()),
        };
        let number: u64 = text[..text.len() - unit.len_utf8()]
            .parse()
            .map_err(|_| wrong())?;
        let seconds = number.checked_mul(seconds).ok_or_else(wrong)?;
        Ok(Self(Duration::from_secs(seconds)))
    }
}

/// `0/4`.
#[derive(Clone, Copy)]
pub(crate) struct ShardOf(pub(crate) Shard);

impl FromStr for ShardOf {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = text
            .split_once('/')
            .and_then(|(index, of)| Some((index.parse::<u64>().ok()?, of.parse::<u64>().ok()?)));
        match parsed {
            Some((index, of)) if index < of => Ok(Self(Shard { index, of })),
            Some(_) | None => Err(format!("`{text}` is no shard: write 0/4 for the first of four")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_shards_are_read_or_refused() {
        for (text, seconds) in [
            ("90s", Some(90)),
            ("10m", Some(600)),
            ("2h", Some(7_200)),
            ("10", None),
            ("m", None),
            ("", None),
        ] {
            assert_eq!(
                text.parse::<Span>().ok().map(|span| span.0.as_secs()),
                seconds,
                "{text}"
            );
        }
        for (text, shard) in [
            ("0/1", Some(Shard::WHOLE)),
            ("3/4", Some(Shard { index: 3, of: 4 })),
            ("4/4", None),
            ("1", None),
        ] {
            assert_eq!(text.parse::<ShardOf>().ok().map(|shard| shard.0), shard, "{text}");
        }
    }
}

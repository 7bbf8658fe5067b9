//! Changes of store, watch caches and server that no write makes, and the words for them, which are written and read here alone.
//! It must not know who makes a change.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::Replica;

/// A change of store, watch caches or server that no write makes. In a file it is its text; an unknown text is [`Turn::Other`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", from = "String")]
pub enum Turn {
    /// Versions up to this one are gone.
    Compacted {
        /// The version.
        to: u64,
        /// Whether the watch caches still have them.
        of_etcd: bool,
    },
    /// All watch caches were restarted: they have the current state alone.
    CachesRestarted,
    /// Watch caches follow the store in another way.
    Cache {
        /// How.
        now: CacheTurn,
        /// Plural of the resource; `None`: every one.
        plural: Option<String>,
        /// `None`: both.
        replica: Option<Replica>,
    },
    /// Connections are refused for some time.
    Refused {
        /// The time, in milliseconds.
        ms: u64,
    },
    /// The apiserver restarted.
    Restarted {
        /// `None`: both replicas.
        replica: Option<Replica>,
        /// Time until it accepts connections, in milliseconds.
        down_ms: u64,
        /// Time from then on until its watch caches are filled, in milliseconds.
        filling_ms: u64,
    },
    /// The wall clock was set.
    ClockSet {
        /// Forward; negative: back. In milliseconds.
        by_ms: i64,
    },
    /// Anything else, e.g. an operation that was refused, and why.
    Other(String),
}

/// How a watch cache follows the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheTurn {
    /// It has the current state alone.
    Cleared,
    /// Not at all.
    Frozen,
    /// Later, by this many milliseconds.
    LagsBy(u64),
    /// Without delay.
    Thawed,
}

impl fmt::Display for CacheTurn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cleared => f.write_str("cleared"),
            Self::Frozen => f.write_str("frozen"),
            Self::LagsBy(ms) => write!(f, "lags by {ms} ms"),
            Self::Thawed => f.write_str("thawed"),
        }
    }
}

impl fmt::Display for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Compacted { to, of_etcd } => {
                let of = if *of_etcd { "etcd " } else { "" };
                write!(f, "{of}compacted up to {to}")
            }
            Self::CachesRestarted => f.write_str("watch caches restarted"),
            Self::Cache { now, plural, replica } => {
                match plural {
                    Some(plural) => write!(f, "watch cache of {plural}")?,
                    None => f.write_str("every watch cache")?,
                }
                if let Some(replica) = replica {
                    write!(f, " of replica {}", replica.word())?;
                }
                write!(f, " {now}")
            }
            Self::Refused { ms } => write!(f, "connections refused for {ms} ms"),
            Self::Restarted {
                replica,
                down_ms,
                filling_ms,
            } => {
                if let Some(replica) = replica {
                    write!(f, "{} ", replica.word())?;
                }
                f.write_str("apiserver restarted")?;
                if *down_ms > 0 {
                    write!(f, ", down for {down_ms} ms")?;
                }
                if *filling_ms > 0 {
                    write!(f, ", watch caches filled {filling_ms} ms later")?;
                }
                Ok(())
            }
            Self::ClockSet { by_ms } => {
                let way = if *by_ms < 0 { "back" } else { "forward" };
                write!(f, "clock set {way} by {} ms", by_ms.unsigned_abs())
            }
            Self::Other(text) => f.write_str(text),
        }
    }
}

impl FromStr for Turn {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        // A text that says more than the change it begins like is not that change.
        let read = read(text).filter(|read| read.to_string() == text);
        Ok(read.unwrap_or_else(|| Self::Other(text.to_owned())))
    }
}

impl From<Turn> for String {
    fn from(turn: Turn) -> Self {
        turn.to_string()
    }
}

impl From<String> for Turn {
    fn from(text: String) -> Self {
        let Ok(turn) = text.parse();
        turn
    }
}

fn read(text: &str) -> Option<Turn> {
    let compacted = |text: &str, of_etcd| {
        let to = text.strip_prefix("compacted up to ")?.parse().ok()?;
        Some(Turn::Compacted { to, of_etcd })
    };
    if text == Turn::CachesRestarted.to_string() {
        return Some(Turn::CachesRestarted);
    }
    if let Some(text) = text.strip_prefix("etcd ") {
        return compacted(text, true);
    }
    if let Some(ms) = text.strip_prefix("connections refused for ") {
        return Some(Turn::Refused { ms: millis(ms)? });
    }
    if let Some(jump) = text.strip_prefix("clock set ") {
        let (way, by) = jump.split_once(" by ")?;
        let by = i64::try_from(millis(by)?).ok()?;
        let by_ms = if way == "back" { -by } else { by };
        return Some(Turn::ClockSet { by_ms });
    }
    compacted(text, false)
        .or_else(|| restarted(text))
        .or_else(|| cache(text))
}

fn restarted(text: &str) -> Option<Turn> {
    let (replica, after) = text.split_once("apiserver restarted")?;
    Some(Turn::Restarted {
        replica: match replica.strip_suffix(' ') {
            Some(word) => Some(named(word)?),
            None => None,
        },
        down_ms: between(after, ", down for ", " ms").unwrap_or(0),
        filling_ms: between(after, ", watch caches filled ", " ms later").unwrap_or(0),
    })
}

fn cache(text: &str) -> Option<Turn> {
    let (of, now) = match text
        .strip_suffix(" ms")
        .and_then(|text| text.rsplit_once(" lags by "))
    {
        Some((of, ms)) => (of, CacheTurn::LagsBy(ms.parse().ok()?)),
        None => {
            let (of, word) = text.rsplit_once(' ')?;
            let all = [CacheTurn::Cleared, CacheTurn::Frozen, CacheTurn::Thawed];
            (of, all.into_iter().find(|known| known.to_string() == word)?)
        }
    };
    let (of, replica) = match of.split_once(" of replica ") {
        Some((of, word)) => (of, Some(named(word)?)),
        None => (of, None),
    };
    let plural = of.strip_prefix("watch cache of ").map(str::to_owned);
    Some(Turn::Cache { now, plural, replica })
}

fn named(replica: &str) -> Option<Replica> {
    let all = [Replica::Primary, Replica::Secondary];
    all.into_iter().find(|known| known.word() == replica)
}

/// Reads `300 ms`.
fn millis(text: &str) -> Option<u64> {
    text.strip_suffix(" ms")?.parse().ok()
}

/// Returns the number between two texts.
fn between(text: &str, before: &str, after: &str) -> Option<u64> {
    let (_, rest) = text.split_once(before)?;
    let (number, _) = rest.split_once(after)?;
    number.parse().ok()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn cache(now: CacheTurn, plural: Option<&str>, replica: Option<Replica>) -> Turn {
        let plural = plural.map(str::to_owned);
        Turn::Cache { now, plural, replica }
    }

    #[rstest]
    #[case("compacted up to 1007", Turn::Compacted { to: 1007, of_etcd: false })]
    #[case("etcd compacted up to 7", Turn::Compacted { to: 7, of_etcd: true })]
    #[case("watch caches restarted", Turn::CachesRestarted)]
    #[case(
        "watch cache of configmaps cleared",
        cache(CacheTurn::Cleared, Some("configmaps"), None)
    )]
    #[case(
        "every watch cache of replica primary frozen",
        cache(CacheTurn::Frozen, None, Some(Replica::Primary))
    )]
    #[case(
        "watch cache of pods of replica secondary lags by 5000 ms",
        cache(CacheTurn::LagsBy(5000), Some("pods"), Some(Replica::Secondary))
    )]
    #[case("every watch cache thawed", cache(CacheTurn::Thawed, None, None))]
    #[case("connections refused for 300 ms", Turn::Refused { ms: 300 })]
    #[case("apiserver restarted", Turn::Restarted { replica: None, down_ms: 0, filling_ms: 0 })]
    #[case(
        "primary apiserver restarted, down for 3000 ms, watch caches filled 20 ms later",
        Turn::Restarted { replica: Some(Replica::Primary), down_ms: 3000, filling_ms: 20 }
    )]
    #[case("clock set back by 9 ms", Turn::ClockSet { by_ms: -9 })]
    #[case("clock set forward by 9 ms", Turn::ClockSet { by_ms: 9 })]
    fn a_change_is_read_from_its_words(#[case] text: &str, #[case] turn: Turn) {
        assert_eq!(turn.to_string(), text);
        assert_eq!(Turn::from(text.to_owned()), turn);
    }

    #[rstest]
    #[case("no event sent: the request is refused")]
    #[case("write refused: the apiserver restarted")]
    #[case("x}}\n  - do: compact # apiserver restarted")]
    #[case("every watch cache lags by 1ms}}\n  - do: compact # ms")]
    #[case("no response of the upstream: connections refused for 9 ms")]
    #[case("clock set back by 9 hours")]
    #[case("clock set aside by 9 ms")]
    #[case("every watch cache of replica third frozen")]
    #[case("compacted up to +7")]
    fn other_words_are_none(#[case] text: &str) {
        assert_eq!(Turn::from(text.to_owned()), Turn::Other(text.to_owned()));
    }
}

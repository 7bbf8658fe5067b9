//! Kubernetes minor versions. Differences between them are handled where they occur.

use std::fmt;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Kubernetes minor version of the fake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Version {
    /// 1.34, the oldest.
    V1_34,
    /// 1.35.
    V1_35,
    /// 1.36.
    V1_36,
    /// 1.37, the newest.
    #[default]
    V1_37,
}

impl Version {
    /// All versions, the oldest first.
    pub const ALL: [Self; 4] = [Self::V1_34, Self::V1_35, Self::V1_36, Self::V1_37];
    /// The oldest version.
    pub const OLDEST: Self = Self::ALL[0];
    /// The newest version, the default.
    pub const NEWEST: Self = Self::ALL[Self::ALL.len() - 1];

    /// Returns the version as users write it: `1.37`.
    pub fn name(self) -> &'static str {
        match self {
            Self::V1_34 => "1.34",
            Self::V1_35 => "1.35",
            Self::V1_36 => "1.36",
            Self::V1_37 => "1.37",
        }
    }

    /// Returns the minor number: 37 for 1.37.
    pub fn minor(self) -> u8 {
        match self {
            Self::V1_34 => 34,
            Self::V1_35 => 35,
            Self::V1_36 => 36,
            Self::V1_37 => 37,
        }
    }

    /// Returns the patch release that was recorded (`fidelity/oracle/go.mod`, `fidelity/oracle/versions`).
    pub fn recorded_release(self) -> &'static str {
        match self {
            Self::V1_34 => "v1.34.4",
            Self::V1_35 => "v1.35.4",
            Self::V1_36 => "v1.36.3",
            Self::V1_37 => "v1.37.2",
        }
    }

    /// Returns the names of all versions, in words: `1.34, 1.35, 1.36 or 1.37`.
    pub fn names() -> String {
        let names = Self::ALL.map(Self::name);
        let (newest, older) = names.split_last().expect("there are versions");
        format!("{} or {newest}", older.join(", "))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Version {
    type Err = String;

    /// Parses `1.37`.
    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|version| version.name() == text);
        found.ok_or_else(|| format!("expected {}", Self::names()))
    }
}

impl Serialize for Version {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Version {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

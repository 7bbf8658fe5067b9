//! Kubernetes minor versions. Differences between them are handled where they occur.

/// Kubernetes minor version of the fake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Version {
    /// 1.33: `WatchList` off, `creationTimestamp: null`, future exact lists are 500.
    V1_33,
    /// 1.34.
    V1_34,
    /// 1.35.
    V1_35,
    /// 1.36, the newest.
    #[default]
    V1_36,
}

impl Version {
    /// Returns the minor number: 36 for 1.36.
    pub fn minor(self) -> u8 {
        match self {
            Self::V1_33 => 33,
            Self::V1_34 => 34,
            Self::V1_35 => 35,
            Self::V1_36 => 36,
        }
    }
}

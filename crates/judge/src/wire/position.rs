//! Possible resume points of a loop: versions as numbers of fixed size, in sets of bounded size.
//!
//! Both over-approximate: a version that is not excluded explains a request.

/// Maximum number of versions kept individually; beyond it only the bounds are kept.
const EXACT_MAX: usize = 16;

/// Flag of a non-numeric version, stored as hash.
const OPAQUE: u64 = 1 << 63;

/// A resourceVersion or continue token: its number, or a hash of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Version(u64);

impl Version {
    /// Creates a version from a text. Non-numeric texts may collide, with negligible probability.
    pub(super) fn of(text: &str) -> Self {
        match text.parse::<u64>() {
            Ok(number) if number & OPAQUE == 0 => Self(number),
            Ok(_) | Err(_) => Self(hash(&[text]) | OPAQUE),
        }
    }

    /// Returns the number; `None`: it is a hash.
    pub(super) fn number(self) -> Option<u64> {
        self.is_number().then_some(self.0)
    }

    /// Returns true for a number; larger numbers are later versions.
    pub(super) fn is_number(self) -> bool {
        self.0 & OPAQUE == 0
    }
}

/// Versions that a loop may resume from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Position {
    /// One of these, ascending.
    OneOf(Vec<Version>),
    /// Any number between the two (both inclusive).
    Between(Version, Version),
    /// Any: data of unknown content was sent.
    Anywhere,
}

impl Position {
    /// Creates a single version.
    pub(super) fn at(version: Version) -> Self {
        Self::OneOf(vec![version])
    }

    /// Creates the range of all versions up to the newest one.
    pub(super) fn up_to(newest: Option<Version>) -> Self {
        match newest {
            Some(newest) if newest.is_number() => Self::Between(Version::of("0"), newest),
            Some(_) | None => Self::Anywhere,
        }
    }

    /// Returns true if a loop at this position may resume from `version`.
    pub(super) fn allows(&self, version: Version) -> bool {
        match self {
            Self::OneOf(versions) => versions.binary_search(&version).is_ok(),
            Self::Between(first, last) => (*first..=*last).contains(&version),
            Self::Anywhere => true,
        }
    }

    /// Returns true if every version allowed here is allowed by `other`.
    pub(super) fn is_within(&self, other: &Self) -> bool {
        match (self, other) {
            (_, Self::Anywhere) => true,
            (Self::OneOf(versions), other) => versions.iter().all(|version| other.allows(*version)),
            (Self::Between(first, last), other) => {
                matches!(other, Self::Between(..)) && other.allows(*first) && other.allows(*last)
            }
            (Self::Anywhere, _) => false,
        }
    }

    /// Returns true if no version is allowed.
    pub(super) fn is_nowhere(&self) -> bool {
        matches!(self, Self::OneOf(versions) if versions.is_empty())
    }

    /// Adds a version.
    pub(super) fn add(&mut self, version: Version) {
        match self {
            Self::OneOf(versions) => {
                if let Err(place) = versions.binary_search(&version) {
                    versions.insert(place, version);
                }
                if versions.len() > EXACT_MAX
                    && let (Some(first), Some(last)) = (versions.first(), versions.last())
                {
                    // Hashes sort last: if there is one, there is no order.
                    *self = if last.is_number() {
                        Self::Between(*first, *last)
                    } else {
                        Self::Anywhere
                    };
                }
            }
            Self::Between(..) if !version.is_number() => *self = Self::Anywhere,
            Self::Between(first, last) => {
                *first = version.min(*first);
                *last = version.max(*last);
            }
            Self::Anywhere => {}
        }
    }

    /// Returns the largest version allowed; `None` if there is no upper bound.
    pub(super) fn latest(&self) -> Option<Version> {
        match self {
            Self::OneOf(versions) => versions.last().copied(),
            Self::Between(_, last) => Some(*last),
            Self::Anywhere => None,
        }
    }
}

/// Hashes the parts of a text with FNV-1a, which is the same in every build.
pub(super) fn hash(parts: &[&str]) -> u64 {
    let bytes = parts.iter().flat_map(|part| part.bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_that_grows_keeps_its_bounds() {
        let mut position = Position::at(Version::of("10"));
        for version in 11..100 {
            position.add(Version::of(&version.to_string()));
        }
        assert_eq!(position, Position::Between(Version::of("10"), Version::of("99")));
        assert!(position.allows(Version::of("50")));
        assert!(!position.allows(Version::of("9")));
        position.add(Version::of("opaque"));
        assert_eq!(position, Position::Anywhere);
    }

    #[test]
    fn a_version_need_not_be_a_number() {
        let position = Position::at(Version::of("v10"));
        assert!(position.allows(Version::of("v10")));
        assert!(!position.allows(Version::of("v11")));
        assert!(!Version::of("99999999999999999999999").is_number());
        assert!(position.is_within(&Position::Anywhere));
    }
}

//! Where a list/watch loop may resume: versions as numbers of fixed size, sets of them of bounded size.
//!
//! Both may take too much for possible, and nothing for impossible: what is not excluded explains a request.

/// Versions of a set that are remembered one by one; of more, only the bounds.
const EXACT_MAX: usize = 16;

/// Marks a version that is no number, by its hash.
const OPAQUE: u64 = 1 << 63;

/// A resourceVersion or continue token: its number, or a hash of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Version(u64);

impl Version {
    /// That of a text. Two texts that are no numbers may have one, about never.
    pub(super) fn of(text: &str) -> Self {
        match text.parse::<u64>() {
            Ok(number) if number & OPAQUE == 0 => Self(number),
            Ok(_) | Err(_) => Self(hash(text) | OPAQUE),
        }
    }

    /// A larger number is a later version. `false` unless both are numbers.
    pub(super) fn is_number(self) -> bool {
        self.0 & OPAQUE == 0
    }
}

/// The versions a loop may resume from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Position {
    /// One of these, ascending.
    OneOf(Vec<Version>),
    /// Any number between two (both inclusive).
    Between(Version, Version),
    /// Any: something was sent whose content nobody knows.
    Anywhere,
}

impl Position {
    /// One version.
    pub(super) fn at(version: Version) -> Self {
        Self::OneOf(vec![version])
    }

    /// Any version that was given before.
    pub(super) fn up_to(newest: Option<Version>) -> Self {
        match newest {
            Some(newest) if newest.is_number() => Self::Between(Version::of("0"), newest),
            Some(_) | None => Self::Anywhere,
        }
    }

    /// May a loop there resume from `version`?
    pub(super) fn allows(&self, version: Version) -> bool {
        match self {
            Self::OneOf(versions) => versions.binary_search(&version).is_ok(),
            Self::Between(first, last) => (*first..=*last).contains(&version),
            Self::Anywhere => true,
        }
    }

    /// Nothing that is allowed here is forbidden in `other`.
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

    /// No version at all.
    pub(super) fn is_nowhere(&self) -> bool {
        matches!(self, Self::OneOf(versions) if versions.is_empty())
    }

    /// One more version may be the one.
    pub(super) fn add(&mut self, version: Version) {
        match self {
            Self::OneOf(versions) => {
                if let Err(place) = versions.binary_search(&version) {
                    versions.insert(place, version);
                }
                if versions.len() > EXACT_MAX
                    && let (Some(first), Some(last)) = (versions.first(), versions.last())
                {
                    // Hashes come last: where there is one, there is no order.
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

    /// The latest version that is surely known; `None` where there is none.
    pub(super) fn latest(&self) -> Option<Version> {
        match self {
            Self::OneOf(versions) => versions.last().copied(),
            Self::Between(_, last) => Some(*last),
            Self::Anywhere => None,
        }
    }
}

/// FNV-1a: the same in every build.
pub(super) fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
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

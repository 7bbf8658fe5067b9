//! Times as the API writes them.

use std::time::Duration;

use jiff::SignedDuration;
use jiff::civil::DateTime;

/// When times count from.
const UNIX_EPOCH: DateTime = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);

/// Returns a time since 1970 in RFC 3339, in whole seconds. Times after the year 9999 give its last second.
pub fn timestamp(time: Duration) -> String {
    timestamp_at(time.as_secs().try_into().unwrap_or(i64::MAX))
}

/// Returns a number of seconds since 1970, or before it, in RFC 3339. Times outside of the years -9999 to 9999 give the first or
/// the last second of them.
pub fn timestamp_at(seconds: i64) -> String {
    let time = UNIX_EPOCH.saturating_add(SignedDuration::from_secs(seconds));
    format!("{time:.0}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_in_whole_seconds() {
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (1_709_208_000, "2024-02-29T12:00:00Z"),
            (-62_135_596_800, "0001-01-01T00:00:00Z"),
            (253_402_300_799, "9999-12-31T23:59:59Z"),
            (i64::MAX, "9999-12-31T23:59:59Z"),
        ] {
            assert_eq!(timestamp_at(seconds), expected);
        }
    }

    #[test]
    fn fractions_are_cut_off() {
        assert_eq!(timestamp(Duration::from_millis(1_999)), "1970-01-01T00:00:01Z");
        assert_eq!(timestamp(Duration::MAX), "9999-12-31T23:59:59Z");
    }
}

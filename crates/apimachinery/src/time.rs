//! Timestamps of the API.

use std::time::Duration;

use jiff::SignedDuration;
use jiff::civil::DateTime;

/// Epoch of all times.
const UNIX_EPOCH: DateTime = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);

/// Formats a time since 1970 as RFC 3339, in whole seconds. Times after the year 9999 are clamped to its last second.
pub fn timestamp(time: Duration) -> String {
    timestamp_at(time.as_secs().try_into().unwrap_or(i64::MAX))
}

/// Formats seconds since 1970, possibly negative, as RFC 3339. Times outside the years -9999 to 9999 are clamped to the first
/// or last second.
pub fn timestamp_at(seconds: i64) -> String {
    let time = UNIX_EPOCH.saturating_add(SignedDuration::from_secs(seconds));
    let Ok(year) = u32::try_from(time.year()) else {
        return format!("{time:.0}Z");
    };
    // Every write has two of them, and formatting costs six times as much.
    let mut text = String::with_capacity("1970-01-01T00:00:00Z".len());
    push_two(&mut text, year / 100);
    push_two(&mut text, year % 100);
    let rest = [
        time.month(),
        time.day(),
        time.hour(),
        time.minute(),
        time.second(),
    ];
    for (before, number) in ['-', '-', 'T', ':', ':'].into_iter().zip(rest) {
        text.push(before);
        push_two(&mut text, u32::from(number.unsigned_abs()));
    }
    text.push('Z');
    text
}

/// Appends a number below 100 as two digits.
fn push_two(text: &mut String, number: u32) {
    for digit in [number / 10, number % 10] {
        text.push(char::from_digit(digit, 10).unwrap_or('0'));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_formatted_in_whole_seconds() {
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (1_709_208_000, "2024-02-29T12:00:00Z"),
            (-62_135_596_800, "0001-01-01T00:00:00Z"),
            (-62_167_219_201, "-000001-12-31T23:59:59Z"),
            (1_795_745_045, "2026-11-27T02:04:05Z"),
            (253_402_300_799, "9999-12-31T23:59:59Z"),
            (i64::MAX, "9999-12-31T23:59:59Z"),
        ] {
            assert_eq!(timestamp_at(seconds), expected);
        }
    }

    #[test]
    fn fractions_are_truncated() {
        assert_eq!(timestamp(Duration::from_millis(1_999)), "1970-01-01T00:00:01Z");
        assert_eq!(timestamp(Duration::MAX), "9999-12-31T23:59:59Z");
    }
}

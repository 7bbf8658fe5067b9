//! Ages in table cells: `5s`, `3m12s`, `4d5h`.
//!
//! Source: apimachinery `util/duration`.

use std::time::Duration;

use jiff::SignedDuration;
use jiff::civil::DateTime;
use jiff::fmt::temporal::Pieces;

const UNIX_EPOCH: DateTime = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);

/// Age of an object without a time.
pub(crate) const UNKNOWN: &str = "<unknown>";

/// Returns the age of a time in RFC 3339 at `now`, which counts from 1970.
pub(crate) fn since(time: Option<&str>, now: Duration) -> String {
    match time.and_then(seconds) {
        Some(then) => human(now.as_secs_f64() - then),
        None => UNKNOWN.to_owned(),
    }
}

/// Returns the duration from one time to another; without an end, to `now`.
pub(crate) fn between(start: &str, end: Option<&str>, now: Duration) -> String {
    let end = end.and_then(seconds).unwrap_or(now.as_secs_f64());
    seconds(start).map_or_else(|| UNKNOWN.to_owned(), |start| human(end - start))
}

/// Formats a number of seconds (`duration.HumanDuration`).
pub(crate) fn human(seconds: f64) -> String {
    // Go truncates fractions towards zero.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "ages are far from the limits of i64"
    )]
    let whole = seconds.trunc() as i64;
    match whole {
        ..-1 => return "<invalid>".to_owned(),
        -1 => return "0s".to_owned(),
        0..120 => return format!("{whole}s"),
        120.. => {}
    }
    let (minutes, hours, days) = (whole / 60, whole / 3_600, whole / 86_400);
    let pair = |large: i64, unit: char, small: i64, small_unit: char| match small {
        0 => format!("{large}{unit}"),
        _ => format!("{large}{unit}{small}{small_unit}"),
    };
    if minutes < 10 {
        pair(minutes, 'm', whole % 60, 's')
    } else if minutes < 180 {
        format!("{minutes}m")
    } else if hours < 8 {
        pair(hours, 'h', minutes % 60, 'm')
    } else if hours < 48 {
        format!("{hours}h")
    } else if days < 8 {
        pair(days, 'd', hours % 24, 'h')
    } else if days < 365 * 2 {
        format!("{days}d")
    } else if days < 365 * 8 {
        pair(days / 365, 'y', days % 365, 'd')
    } else {
        format!("{}y", days / 365)
    }
}

/// Returns the seconds since 1970 of a time in RFC 3339; `None` for anything else.
pub(crate) fn seconds(time: &str) -> Option<f64> {
    // The parser accepts all of ISO 8601: also basic formats, times without seconds, and names of time zones.
    let separators: [(usize, &[u8]); 4] = [(4, b"-"), (10, b"Tt"), (13, b":"), (16, b":")];
    let text = time.as_bytes();
    let separated = separators
        .iter()
        .all(|(at, allowed)| text.get(*at).is_some_and(|byte| allowed.contains(byte)));
    let pieces = Pieces::parse(time).ok().filter(|_| separated)?;
    if pieces.time_zone_annotation().is_some() {
        return None;
    }
    let local = DateTime::from_parts(pieces.date(), pieces.time()?);
    let utc = local.duration_since(UNIX_EPOCH)
        - SignedDuration::from_secs(pieces.to_numeric_offset()?.seconds().into());
    Some(utc.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::future(-5.0, "<invalid>")]
    #[case::nearly_now(-1.5, "0s")]
    #[case::now(0.9, "0s")]
    #[case::seconds(119.0, "119s")]
    #[case::minutes(120.0, "2m")]
    #[case::minutes_and_seconds(599.0, "9m59s")]
    #[case::many_minutes(10_799.0, "179m")]
    #[case::hours(10_800.0, "3h")]
    #[case::hours_and_minutes(28_799.0, "7h59m")]
    #[case::many_hours(172_799.0, "47h")]
    #[case::days(172_800.0, "2d")]
    #[case::days_and_hours(691_199.0, "7d23h")]
    #[case::many_days(63_071_999.0, "729d")]
    #[case::years(63_072_000.0, "2y")]
    #[case::years_and_days(63_158_400.0, "2y1d")]
    #[case::many_years(252_288_000.0, "8y")]
    fn ages_are_formatted_as_kubectl_does(#[case] seconds: f64, #[case] expected: &str) {
        assert_eq!(human(seconds), expected);
    }

    #[rstest]
    #[case::whole("2026-01-01T00:00:00Z", Some(1_767_225_600.0))]
    #[case::leap_day("2024-02-29T12:00:00Z", Some(1_709_208_000.0))]
    #[case::micro("2026-01-01T00:00:01.250000Z", Some(1_767_225_601.25))]
    #[case::east("2026-01-01T01:30:00+01:30", Some(1_767_225_600.0))]
    #[case::before_1970("1969-12-31T23:59:59Z", Some(-1.0))]
    #[case::no_zone("2026-01-01T00:00:00", None)]
    #[case::no_month("2026-13-01T00:00:00Z", None)]
    #[case::last_of_four_digits("9999-12-31T23:59:59Z", Some(253_402_300_799.0))]
    #[case::no_time("yesterday", None)]
    #[case::no_seconds("2026-01-01T00:00Z", None)]
    #[case::blank("2026-01-01 00:00:00Z", None)]
    #[case::basic("20260101T000000Z", None)]
    #[case::named_zone("2026-01-01T00:00:00Z[UTC]", None)]
    #[case::no_day("2026-02-30T00:00:00Z", None)]
    fn times_are_read(#[case] text: &str, #[case] expected: Option<f64>) {
        assert_eq!(seconds(text), expected);
    }
}

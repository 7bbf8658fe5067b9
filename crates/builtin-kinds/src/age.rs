//! How long ago, as tables say it: `5s`, `3m12s`, `4d5h`.
//!
//! Source: apimachinery `util/duration`.

use std::time::Duration;

/// What stands for the age of what has no time.
pub(crate) const UNKNOWN: &str = "<unknown>";

/// The age of a time in an object (RFC 3339) at `now`, which counts from 1970.
pub(crate) fn since(time: Option<&str>, now: Duration) -> String {
    match time.and_then(seconds) {
        Some(then) => human(now.as_secs_f64() - then),
        None => UNKNOWN.to_owned(),
    }
}

/// The same for what is the time from one to another; an end that is not there is now.
pub(crate) fn between(start: &str, end: Option<&str>, now: Duration) -> String {
    let end = end.and_then(seconds).unwrap_or(now.as_secs_f64());
    seconds(start).map_or_else(|| UNKNOWN.to_owned(), |start| human(end - start))
}

/// A number of seconds, for people.
pub(crate) fn human(seconds: f64) -> String {
    // Go cuts off fractions, towards zero.
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

/// Seconds since 1970 of a time as RFC 3339 writes it; `None` for what is none.
pub(crate) fn seconds(time: &str) -> Option<f64> {
    let (date, clock) = time.split_once(['T', 't'])?;
    let mut date = date.split('-').map(str::parse::<i64>);
    let (year, month, day) = (date.next()?.ok()?, date.next()?.ok()?, date.next()?.ok()?);
    if date.next().is_some() || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let zone_at = clock.find(['Z', 'z', '+', '-'])?;
    let (clock, zone) = clock.split_at(zone_at);
    let mut parts = clock.split(':');
    let (hour, minute) = (
        parts.next()?.parse::<i64>().ok()?,
        parts.next()?.parse::<i64>().ok()?,
    );
    let second = parts.next()?.parse::<f64>().ok()?;
    let fits = (0..24).contains(&hour) && (0..60).contains(&minute) && (0.0..61.0).contains(&second);
    if !fits || parts.next().is_some() {
        return None;
    }
    let offset = match zone.split_at(1) {
        ("Z" | "z", "") => 0,
        (sign, offset) => {
            let (hours, minutes) = offset.split_once(':')?;
            let minutes = hours.parse::<i64>().ok()? * 60 + minutes.parse::<i64>().ok()?;
            if sign == "-" { -minutes } else { minutes }
        }
    };
    // Days since 0000-03-01, in eras of 400 years: the leap day is the last of its year.
    let march_year = if month > 2 { year } else { year - 1 };
    let era = march_year.div_euclid(400);
    let year_of_era = march_year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    let days = era * 146_097 + day_of_era - 719_468;
    let minutes = (days * 24 + hour) * 60 + minute - offset;
    let whole = i32::try_from(minutes).map(f64::from).ok()?;
    Some(whole * 60.0 + second)
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
    fn ages_are_said_as_kubectl_shows_them(#[case] seconds: f64, #[case] expected: &str) {
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
    #[case::no_time("yesterday", None)]
    fn times_are_read(#[case] text: &str, #[case] expected: Option<f64>) {
        assert_eq!(seconds(text), expected);
    }
}

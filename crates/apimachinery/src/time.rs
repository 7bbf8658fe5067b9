//! Times as the API writes them.

use std::time::Duration;

/// A time since 1970 as RFC 3339 has it, in whole seconds.
pub fn timestamp(time: Duration) -> String {
    // Days from the first of the year 1 to that of 1970.
    timestamp_of_era(time + Duration::from_secs(719_162 * 86_400))
}

/// The same of a time since the first of January of the year 1.
pub fn timestamp_of_era(time: Duration) -> String {
    let seconds = time.as_secs();
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Days since 0000-03-01, in eras of 400 years: the leap day is the last of its year.
    let days = days + 306;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 {
        march_month + 3
    } else {
        march_month - 9
    };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let mut text = String::with_capacity(20);
    for (number, digits, after) in [
        (year, 4, '-'),
        (month, 2, '-'),
        (day, 2, 'T'),
        (second / 3_600, 2, ':'),
        (second / 60 % 60, 2, ':'),
        (second % 60, 2, 'Z'),
    ] {
        for place in (0..digits).rev() {
            let digit = number / 10_u64.pow(place) % 10;
            text.push(char::from(b"0123456789"[digit as usize]));
        }
        text.push(after);
    }
    text
}

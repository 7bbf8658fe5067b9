//! Times as kube-apiserver decodes and encodes them: `Time` in whole seconds, `MicroTime` with six digits of a fraction, both in
//! UTC, with Go's messages for invalid ones. It must not know a clock.
//!
//! Source: Go `time/format.go` (`parse`), apimachinery `meta/v1/time.go` and `meta/v1/micro_time.go`.

use std::fmt::Write as _;

use apimachinery::time::timestamp_at;
use jiff::civil::DateTime;
use jiff::tz::Offset;
use serde_json::Value;

/// Element of a layout.
#[derive(Clone, Copy)]
enum Element {
    /// Text that is there as it is.
    Literal(&'static str),
    Year,
    Month,
    Day,
    Hour,
    Minute,
    Second,
    /// A point and six digits.
    Micros,
    Zone,
}

/// `time.RFC3339`.
const SECONDS: &str = "2006-01-02T15:04:05Z07:00";

/// `RFC3339Micro` of apimachinery.
const MICROS: &str = "2006-01-02T15:04:05.000000Z07:00";

/// Seconds of Go's zero time, which is encoded as `null`: the start of the year 1.
const ZERO: i64 = -62_135_596_800;

const ELEMENTS: [Element; 13] = [
    Element::Year,
    Element::Literal("-"),
    Element::Month,
    Element::Literal("-"),
    Element::Day,
    Element::Literal("T"),
    Element::Hour,
    Element::Literal(":"),
    Element::Minute,
    Element::Literal(":"),
    Element::Second,
    Element::Micros,
    Element::Zone,
];

impl Element {
    /// Returns its text in a layout.
    fn layout(self) -> &'static str {
        match self {
            Self::Literal(text) => text,
            Self::Year => "2006",
            Self::Month => "01",
            Self::Day => "02",
            Self::Hour => "15",
            Self::Minute => "04",
            Self::Second => "05",
            Self::Micros => ".000000",
            Self::Zone => "Z07:00",
        }
    }
}

/// A time that is being read.
#[derive(Default)]
struct Read {
    year: i16,
    month: i8,
    day: i8,
    hour: i8,
    minute: i8,
    second: i8,
    micros: u32,
    /// Seconds east of UTC.
    offset: i32,
}

/// Why an element is not there.
enum Wrong {
    /// It has another form.
    Form,
    /// Its number is out of range; the word for it.
    Range(&'static str),
}

/// Returns a `Time` as it is encoded.
///
/// # Errors
///
/// Go's message.
pub(super) fn time(text: &str) -> Result<Value, String> {
    let seconds = read(text, SECONDS, false)?.seconds();
    match seconds.ok_or_else(|| out_of_range(text, "day"))? {
        ZERO => Ok(Value::Null),
        seconds => Ok(timestamp_at(seconds).into()),
    }
}

/// Returns a `MicroTime` as it is encoded.
///
/// # Errors
///
/// Go's message.
pub(super) fn micro_time(text: &str) -> Result<Value, String> {
    let read = read(text, MICROS, true)?;
    let seconds = read.seconds().ok_or_else(|| out_of_range(text, "day"))?;
    if (seconds, read.micros) == (ZERO, 0) {
        return Ok(Value::Null);
    }
    Ok(micros_at(seconds, read.micros.into()).into())
}

/// Formats a `MicroTime`: seconds since 1970 and microseconds of the next one.
pub(super) fn micros_at(seconds: i64, micros: u64) -> String {
    let whole = timestamp_at(seconds);
    format!("{}.{micros:06}Z", whole.trim_end_matches('Z'))
}

impl Read {
    /// Returns the seconds since 1970; `None` if the month has no such day.
    fn seconds(&self) -> Option<i64> {
        let Self {
            year,
            month,
            day,
            hour,
            minute,
            second,
            ..
        } = *self;
        let local = DateTime::new(year, month, day, hour, minute, second, 0).ok()?;
        let utc = Offset::UTC.to_timestamp(local).ok()?;
        Some(utc.as_second() - i64::from(self.offset))
    }

    /// Reads an element from the start of `rest`, and returns what follows it.
    fn element<'t>(&mut self, element: Element, rest: &'t str) -> Result<&'t str, Wrong> {
        let in_range = |number: i8, range: std::ops::RangeInclusive<i8>, word| match range.contains(&number) {
            true => Ok(number),
            false => Err(Wrong::Range(word)),
        };
        match element {
            Element::Literal(text) => rest.strip_prefix(text).ok_or(Wrong::Form),
            Element::Year => {
                let (year, rest) = digits(rest, 4)?;
                self.year = year.parse().map_err(|_| Wrong::Form)?;
                Ok(rest)
            }
            Element::Month => {
                let (month, rest) = two(rest)?;
                self.month = in_range(month, 1..=12, "month")?;
                Ok(rest)
            }
            Element::Day => {
                // That the month has it is checked at the end.
                let (day, rest) = two(rest)?;
                self.day = day;
                Ok(rest)
            }
            Element::Hour => {
                // The one number of which Go takes a single digit.
                let (hour, rest) = two(rest).or_else(|_| {
                    let (hour, rest) = digits(rest, 1)?;
                    Ok((hour.parse().map_err(|_| Wrong::Form)?, rest))
                })?;
                self.hour = in_range(hour, 0..=23, "hour")?;
                Ok(rest)
            }
            Element::Minute => {
                let (minute, rest) = two(rest)?;
                self.minute = in_range(minute, 0..=59, "minute")?;
                Ok(rest)
            }
            Element::Second => {
                let (second, rest) = two(rest)?;
                self.second = in_range(second, 0..=59, "second")?;
                Ok(rest)
            }
            Element::Micros => {
                let fraction = rest.strip_prefix(['.', ',']).ok_or(Wrong::Form)?;
                let (micros, rest) = digits(fraction, 6)?;
                self.micros = micros.parse().map_err(|_| Wrong::Form)?;
                Ok(rest)
            }
            Element::Zone => self.zone(rest),
        }
    }

    fn zone<'t>(&mut self, rest: &'t str) -> Result<&'t str, Wrong> {
        if let Some(rest) = rest.strip_prefix('Z') {
            return Ok(rest);
        }
        let sign = if rest.starts_with('-') { -1 } else { 1 };
        let rest = rest.strip_prefix(['+', '-']).ok_or(Wrong::Form)?;
        let (hours, rest) = two(rest)?;
        let (minutes, rest) = two(rest.strip_prefix(':').ok_or(Wrong::Form)?)?;
        // Go allows 24 hours and 60 minutes.
        if hours > 24 {
            return Err(Wrong::Range("time zone offset hour"));
        }
        if minutes > 60 {
            return Err(Wrong::Range("time zone offset minute"));
        }
        self.offset = sign * (i32::from(hours) * 3600 + i32::from(minutes) * 60);
        Ok(rest)
    }
}

fn read(text: &str, layout: &str, is_micro: bool) -> Result<Read, String> {
    let mut read = Read::default();
    let mut rest = text;
    for element in ELEMENTS {
        if matches!(element, Element::Micros) && !is_micro {
            rest = after_fraction(rest);
            continue;
        }
        rest = read.element(element, rest).map_err(|wrong| match wrong {
            Wrong::Range(word) => out_of_range(text, word),
            Wrong::Form => format!(
                "parsing time {} as {}: cannot parse {} as {}",
                quoted(text),
                quoted(layout),
                quoted(rest),
                quoted(element.layout())
            ),
        })?;
    }
    if !rest.is_empty() {
        return Err(format!(
            "parsing time {}: extra text: {}",
            quoted(text),
            quoted(rest)
        ));
    }
    Ok(read)
}

/// Returns what follows a fraction of seconds, which no layout without one forbids.
fn after_fraction(rest: &str) -> &str {
    match rest.strip_prefix(['.', ',']) {
        Some(fraction) if fraction.starts_with(|c: char| c.is_ascii_digit()) => {
            fraction.trim_start_matches(|c: char| c.is_ascii_digit())
        }
        Some(_) | None => rest,
    }
}

fn two(rest: &str) -> Result<(i8, &str), Wrong> {
    let (number, rest) = digits(rest, 2)?;
    Ok((number.parse().map_err(|_| Wrong::Form)?, rest))
}

fn digits(rest: &str, count: usize) -> Result<(&str, &str), Wrong> {
    let (digits, rest) = rest.split_at_checked(count).ok_or(Wrong::Form)?;
    match digits.bytes().all(|byte| byte.is_ascii_digit()) {
        true => Ok((digits, rest)),
        false => Err(Wrong::Form),
    }
}

fn out_of_range(text: &str, word: &str) -> String {
    format!("parsing time {}: {word} out of range", quoted(text))
}

/// Quotes as Go's package `time` does: bytes beyond printable ASCII in hexadecimal.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => quoted.extend(['\\', char::from(byte)]),
            b' '..=b'\x7f' => quoted.push(char::from(byte)),
            // Writing to a String cannot fail.
            _ => drop(write!(quoted, "\\x{byte:02x}")),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::whole("2026-11-27T02:04:05Z", "2026-11-27T02:04:05Z")]
    #[case::fraction("2026-11-27T02:04:05.999999999Z", "2026-11-27T02:04:05Z")]
    #[case::comma("2026-11-27T02:04:05,5Z", "2026-11-27T02:04:05Z")]
    #[case::east("2026-11-27T02:04:05+03:30", "2026-11-26T22:34:05Z")]
    #[case::west("2024-02-28T23:30:00-00:60", "2024-02-29T00:30:00Z")]
    #[case::one_digit("2026-11-27T2:04:05Z", "2026-11-27T02:04:05Z")]
    fn times_are_encoded_in_utc_and_whole_seconds(#[case] text: &str, #[case] encoded: &str) {
        assert_eq!(time(text), Ok(encoded.into()));
    }

    #[test]
    fn the_zero_time_is_null() {
        assert_eq!(time("0001-01-01T01:00:00+01:00"), Ok(Value::Null));
        assert_eq!(micro_time("0001-01-01T00:00:00.000000Z"), Ok(Value::Null));
    }

    #[rstest]
    #[case("2026-11-27T02:04:05.000001Z", "2026-11-27T02:04:05.000001Z")]
    #[case("2026-11-27T02:04:05.120000+01:00", "2026-11-27T01:04:05.120000Z")]
    fn micro_times_keep_six_digits(#[case] text: &str, #[case] encoded: &str) {
        assert_eq!(micro_time(text), Ok(encoded.into()));
    }

    #[rstest]
    #[case(
        "",
        "parsing time \"\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"\" as \"2006\""
    )]
    #[case(
        "2026-11-27",
        "parsing time \"2026-11-27\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"\" as \"T\""
    )]
    #[case(
        "2026-11-27T02:04:05",
        "parsing time \"2026-11-27T02:04:05\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"\" as \"Z07:00\""
    )]
    #[case(
        "2026-13-27T02:04:05Z",
        "parsing time \"2026-13-27T02:04:05Z\": month out of range"
    )]
    #[case(
        "2025-02-29T02:04:05Z",
        "parsing time \"2025-02-29T02:04:05Z\": day out of range"
    )]
    #[case(
        "2026-11-27T24:04:05Z",
        "parsing time \"2026-11-27T24:04:05Z\": hour out of range"
    )]
    #[case(
        "2026-11-27T02:04:05Zé",
        "parsing time \"2026-11-27T02:04:05Z\\xc3\\xa9\": extra text: \"\\xc3\\xa9\""
    )]
    fn invalid_times_have_the_message_of_go(#[case] text: &str, #[case] message: &str) {
        assert_eq!(time(text), Err(message.to_owned()));
    }

    #[rstest]
    #[case::none("2026-11-27T02:04:05Z", "Z", ".000000")]
    #[case::three("2026-11-27T02:04:05.123Z", ".123Z", ".000000")]
    #[case::nine("2026-11-27T02:04:05.123456789Z", "789Z", "Z07:00")]
    fn a_micro_time_has_six_digits(#[case] text: &str, #[case] rest: &str, #[case] element: &str) {
        let layout = "2006-01-02T15:04:05.000000Z07:00";
        let message = format!("parsing time {text:?} as {layout:?}: cannot parse {rest:?} as {element:?}");
        assert_eq!(micro_time(text), Err(message));
    }
}

//! Timestamps and durations: conversions, texts and parts.
//!
//! A timestamp has no zone: its text is that of UTC, whatever it was read from.
//!
//! Source: cel-go `common/types/timestamp.go`, `duration.go`; Go `time`.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::{Offset, TimeZone};
use jiff::{SignedDuration, Timestamp};

use super::{Function, Outcome, failed};
use crate::expression::Failure;
use crate::expression::meter::Meter;
use crate::expression::value::Value;

const SECOND: i64 = 1_000_000_000;

/// Work of reading a zone of the database.
const READ_ZONE: u64 = 2000;

const EPOCH: DateTime = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);

/// Seconds since 1970, rounded down.
pub(super) fn seconds(time: DateTime) -> i64 {
    let since = time.duration_since(EPOCH);
    since.as_secs() - i64::from(since.subsec_nanos() < 0)
}

pub(super) fn find(name: &str, on_target: bool, args: usize) -> Option<Function> {
    if on_target && args <= 1 {
        return part(name);
    }
    match (name, on_target, args) {
        ("timestamp", false, 1) => Some(to_timestamp),
        ("duration", false, 1) => Some(to_duration),
        _ => None,
    }
}

fn to_timestamp(meter: &mut Meter, args: &[Value]) -> Outcome {
    meter.charge(1)?;
    match args {
        [Value::Timestamp(time)] => Ok(Value::Timestamp(*time)),
        [Value::Int(seconds)] => {
            let time = EPOCH.checked_add(SignedDuration::from_secs(*seconds)).ok();
            let time = time.filter(|time| time.year() > 0);
            time.map(Value::Timestamp)
                .ok_or_else(|| failed("timestamp overflow"))
        }
        [Value::Text(text)] => timestamp(text.as_str())
            .map(Value::Timestamp)
            .ok_or_else(|| failed("type conversion error from 'string' to 'google.protobuf.Timestamp'")),
        _ => Err(Failure::Overload),
    }
}

fn to_duration(meter: &mut Meter, args: &[Value]) -> Outcome {
    meter.charge(1)?;
    match args {
        [Value::Duration(nanoseconds)] => Ok(Value::Duration(*nanoseconds)),
        [Value::Text(text)] => {
            meter.bytes(text.as_str().len())?;
            duration(text.as_str())
                .map(Value::Duration)
                .ok_or_else(|| failed("type conversion error from 'string' to 'google.protobuf.Duration'"))
        }
        _ => Err(Failure::Overload),
    }
}

/// Reads a time as Go's `time.Parse` does with RFC 3339.
pub(in crate::expression) fn timestamp(text: &str) -> Option<DateTime> {
    let number = |text: Option<&str>| {
        let text = text.filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?;
        text.parse::<i16>().ok()
    };
    let small = |text: Option<&str>| number(text).and_then(|number| i8::try_from(number).ok());
    let separators = [(4, "-"), (7, "-"), (10, "T"), (13, ":"), (16, ":")];
    let separated = separators
        .iter()
        .all(|(at, separator)| text.get(*at..=*at) == Some(separator));
    let date = Date::new(
        number(text.get(..4))?,
        small(text.get(5..7))?,
        small(text.get(8..10))?,
    );
    let (hour, minute, second) = (
        small(text.get(11..13))?,
        small(text.get(14..16))?,
        small(text.get(17..19))?,
    );
    let mut rest = text.get(19..)?;
    let mut nanoseconds = 0;
    if let Some(fraction) = rest.strip_prefix(['.', ',']) {
        let digits = fraction.len()
            - fraction
                .trim_start_matches(|one: char| one.is_ascii_digit())
                .len();
        let (digits, behind) = fraction.split_at(digits);
        if digits.is_empty() {
            return None;
        }
        let padded: String = digits.chars().chain("000000000".chars()).take(9).collect();
        nanoseconds = padded.parse().ok()?;
        rest = behind;
    }
    let east = match rest {
        "Z" => 0,
        rest => {
            let sign = match rest.get(..1) {
                Some("+") => 1,
                Some("-") => -1,
                Some(_) | None => return None,
            };
            let legal = rest.len() == 6 && rest.get(3..4) == Some(":");
            let (hours, minutes) = (number(rest.get(1..3))?, number(rest.get(4..6))?);
            if !legal || hours > 24 || minutes > 60 {
                return None;
            }
            sign * (i64::from(hours) * 3600 + i64::from(minutes) * 60)
        }
    };
    let time = Time::new(hour, minute, second, nanoseconds).ok()?;
    let local = DateTime::from_parts(date.ok()?, time);
    let time = local.checked_sub(SignedDuration::from_secs(east)).ok()?;
    (separated && time.year() > 0).then_some(time)
}

/// Reads a duration as Go's `time.ParseDuration` does, in nanoseconds.
pub(in crate::expression) fn duration(text: &str) -> Option<i64> {
    let negative = text.starts_with('-');
    let mut rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let whole = leading_digits(rest);
        let behind = &rest[whole.len()..];
        let (fraction, behind) = match behind.strip_prefix('.') {
            None => ("", behind),
            Some(behind) => {
                let fraction = leading_digits(behind);
                (fraction, &behind[fraction.len()..])
            }
        };
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let end = behind
            .find(|one: char| one == '.' || one.is_ascii_digit())
            .unwrap_or(behind.len());
        let (unit, behind) = behind.split_at(end);
        let unit: u64 = match unit {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return None,
        };
        let whole: u64 = match whole {
            "" => 0,
            whole => whole.parse().ok()?,
        };
        let amount = whole.checked_mul(unit)?.checked_add(part_of(unit, fraction))?;
        total = total.checked_add(amount).filter(|total| *total <= 1 << 63)?;
        rest = behind;
    }
    match negative {
        true => 0_i64.checked_sub_unsigned(total),
        false => i64::try_from(total).ok(),
    }
}

fn leading_digits(text: &str) -> &str {
    let end = text.find(|one: char| !one.is_ascii_digit());
    &text[..end.unwrap_or(text.len())]
}

/// A decimal fraction of a unit, rounded down.
fn part_of(unit: u64, fraction: &str) -> u64 {
    let (mut value, mut scale) = (0_u64, 1_u64);
    for digit in fraction.bytes().take(18) {
        value = value * 10 + u64::from(digit - b'0');
        scale *= 10;
    }
    let part = u128::from(value) * u128::from(unit) / u128::from(scale);
    u64::try_from(part).unwrap_or_default()
}

/// The text of a time (`time.RFC3339Nano`).
pub(super) fn shown(time: DateTime) -> String {
    format!("{time}Z")
}

/// The text of a duration: seconds.
#[expect(clippy::cast_precision_loss, reason = "as Go's Duration.Seconds")]
pub(super) fn shown_duration(nanoseconds: i64) -> String {
    let seconds = (nanoseconds / SECOND) as f64 + (nanoseconds % SECOND) as f64 / 1e9;
    format!("{seconds}s")
}

/// Returns the function for a part of a time or a duration.
fn part(name: &str) -> Option<Function> {
    Some(match name {
        "getFullYear" => |meter, args| of_time(meter, args, |time| i64::from(time.year())),
        "getMonth" => |meter, args| of_time(meter, args, |time| i64::from(time.month()) - 1),
        "getDayOfYear" => |meter, args| of_time(meter, args, |time| i64::from(time.date().day_of_year()) - 1),
        "getDate" => |meter, args| of_time(meter, args, |time| i64::from(time.day())),
        "getDayOfMonth" => |meter, args| of_time(meter, args, |time| i64::from(time.day()) - 1),
        "getDayOfWeek" => |meter, args| {
            of_time(meter, args, |time| {
                i64::from(time.weekday().to_sunday_zero_offset())
            })
        },
        "getHours" => |meter, args| of_both(meter, args, |time| i64::from(time.hour()), 3600 * SECOND),
        "getMinutes" => |meter, args| of_both(meter, args, |time| i64::from(time.minute()), 60 * SECOND),
        "getSeconds" => |meter, args| of_both(meter, args, |time| i64::from(time.second()), SECOND),
        "getMilliseconds" => |meter, args| {
            of_both(
                meter,
                args,
                |time| i64::from(time.subsec_nanosecond()) / 1_000_000,
                1_000_000,
            )
        },
        _ => return None,
    })
}

fn of_both(meter: &mut Meter, args: &[Value], part: fn(DateTime) -> i64, unit: i64) -> Outcome {
    match args {
        [Value::Duration(nanoseconds)] => {
            meter.charge(1)?;
            Ok(Value::Int(nanoseconds / unit))
        }
        _ => of_time(meter, args, part),
    }
}

fn of_time(meter: &mut Meter, args: &[Value], part: fn(DateTime) -> i64) -> Outcome {
    meter.charge(1)?;
    let (time, zone) = match args {
        [Value::Timestamp(time)] => (time, TimeZone::UTC),
        [Value::Timestamp(time), Value::Text(zone)] => (time, self::zone(meter, zone.as_str())?),
        _ => return Err(Failure::Overload),
    };
    // The last day of the calendar is not a time in all zones.
    let at = Timestamp::from_second(seconds(*time)).unwrap_or(Timestamp::MAX);
    let east = i64::from(zone.to_offset(at).seconds());
    let local = time.checked_add(SignedDuration::from_secs(east));
    Ok(Value::Int(part(local.unwrap_or(*time))))
}

/// Returns a zone of the database, which is read once for each evaluation.
fn named_zone(meter: &mut Meter, name: &str) -> Result<TimeZone, Failure> {
    if matches!(name, "" | "UTC") {
        return Ok(TimeZone::UTC);
    }
    if let Some(zone) = meter.zones.get(name) {
        return Ok(zone.clone());
    }
    meter.work(READ_ZONE)?;
    let zone = TimeZone::get(name).map_err(|_| failed(format!("unknown time zone {name}")))?;
    meter.zones.insert(name.into(), zone.clone());
    Ok(zone)
}

/// Reads a zone: a name, or an offset such as `-08:00`.
fn zone(meter: &mut Meter, text: &str) -> Result<TimeZone, Failure> {
    meter.allocate(text.len())?;
    let Some((hours, minutes)) = text.split_once(':') else {
        return named_zone(meter, text);
    };
    let number = |text: &str| {
        text.parse::<i32>()
            .map_err(|_| failed(format!("strconv.Atoi: parsing {text:?}: invalid syntax")))
    };
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    let minutes = match text.starts_with('-') {
        true => hours.saturating_mul(60).saturating_sub(minutes),
        false => hours.saturating_mul(60).saturating_add(minutes),
    };
    let offset = Offset::from_seconds(minutes.saturating_mul(60));
    let offset = offset.map_err(|_| failed(format!("unknown time zone {text}")))?;
    Ok(TimeZone::fixed(offset))
}

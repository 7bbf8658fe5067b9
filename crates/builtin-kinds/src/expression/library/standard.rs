//! Standard functions: sizes, conversions, and searches in strings.
//!
//! Source: cel-go `common/stdlib/standard.go`, `common/types`.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "operations name the types that they have; a new type has none"
)]

use std::sync::Arc;

use super::{Function, Outcome, failed, time};
use crate::expression::Failure;
use crate::expression::meter::Meter;
use crate::expression::value::{Key, Text, Value};

pub(super) fn find(name: &str, on_target: bool, args: usize) -> Option<Function> {
    Some(match (name, on_target, args) {
        ("size", true, 0) | ("size", false, 1) => size,
        ("contains", true, 1) => contains,
        ("startsWith", true, 1) => starts_with,
        ("endsWith", true, 1) => ends_with,
        ("bool", false, 1) => to_bool,
        ("bytes", false, 1) => to_bytes,
        ("double", false, 1) => to_double,
        ("dyn", false, 1) => to_dyn,
        ("int", false, 1) => to_int,
        ("string", false, 1) => to_text,
        ("type", false, 1) => to_type,
        ("uint", false, 1) => to_uint,
        _ => return None,
    })
}

/// The key of a map that a value is.
pub(in crate::expression) fn key(value: &Value) -> Result<Key, Failure> {
    match value {
        Value::Double(_) => None,
        value => Key::equal_to(value),
    }
    .ok_or_else(|| failed("unsupported key type"))
}

fn size(meter: &mut Meter, args: &[Value]) -> Outcome {
    meter.charge(1)?;
    match args {
        [value @ (Value::Text(_) | Value::Bytes(_) | Value::List(_) | Value::Map(_))] => {
            Ok(Value::Int(i64::try_from(value.size()).unwrap_or(i64::MAX)))
        }
        _ => Err(Failure::Overload),
    }
}

fn contains(meter: &mut Meter, args: &[Value]) -> Outcome {
    let [Value::Text(text), Value::Text(part)] = args else {
        return Err(Failure::Overload);
    };
    meter.charge(
        args[0]
            .size()
            .div_ceil(10)
            .saturating_mul(args[1].size().div_ceil(10)),
    )?;
    meter.bytes(text.as_str().len() + part.as_str().len())?;
    Ok(Value::Bool(text.as_str().contains(part.as_str())))
}

fn starts_with(meter: &mut Meter, args: &[Value]) -> Outcome {
    affix(meter, args, |text, part| text.starts_with(part))
}

fn ends_with(meter: &mut Meter, args: &[Value]) -> Outcome {
    affix(meter, args, |text, part| text.ends_with(part))
}

fn affix(meter: &mut Meter, args: &[Value], holds: fn(&str, &str) -> bool) -> Outcome {
    let [Value::Text(text), Value::Text(part)] = args else {
        return Err(Failure::Overload);
    };
    meter.traversal(args[1].size(), 1)?;
    Ok(Value::Bool(holds(text.as_str(), part.as_str())))
}

fn unconvertible(from: &Value, to: &str) -> Failure {
    failed(format!(
        "type conversion error from '{}' to '{to}'",
        from.type_name()
    ))
}

fn to_bool(meter: &mut Meter, args: &[Value]) -> Outcome {
    meter.charge(1)?;
    match args {
        [Value::Bool(truth)] => Ok(Value::Bool(*truth)),
        [value @ Value::Text(text)] => match text.as_str() {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(Value::Bool(true)),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(Value::Bool(false)),
            _ => Err(unconvertible(value, "bool")),
        },
        _ => Err(Failure::Overload),
    }
}

fn to_bytes(meter: &mut Meter, args: &[Value]) -> Outcome {
    match args {
        [Value::Bytes(bytes)] => {
            meter.charge(1)?;
            Ok(Value::Bytes(Arc::clone(bytes)))
        }
        [value @ Value::Text(text)] => {
            meter.traversal(value.size(), 1)?;
            meter.allocate(text.as_str().len())?;
            Ok(Value::Bytes(text.as_str().as_bytes().into()))
        }
        _ => Err(Failure::Overload),
    }
}

#[expect(clippy::cast_precision_loss, reason = "as a conversion of Go")]
fn to_double(meter: &mut Meter, args: &[Value]) -> Outcome {
    meter.charge(1)?;
    match args {
        [Value::Double(number)] => Ok(Value::Double(*number)),
        [Value::Int(number)] => Ok(Value::Double(*number as f64)),
        [Value::Uint(number)] => Ok(Value::Double(*number as f64)),
        [value @ Value::Text(text)] => {
            meter.bytes(text.as_str().len())?;
            let number = read_double(text).ok_or_else(|| unconvertible(value, "double"))?;
            Ok(Value::Double(number))
        }
        _ => Err(Failure::Overload),
    }
}

/// Reads a number as Go's `strconv.ParseFloat` does, but for hexadecimal ones.
fn read_double(text: &Text) -> Option<f64> {
    let text = text.as_str();
    let unsigned = text.trim_start_matches(['+', '-']);
    let infinite = ["inf", "infinity"]
        .iter()
        .any(|word| unsigned.eq_ignore_ascii_case(word));
    let number = text.parse::<f64>().ok()?;
    // A number out of the range is an error in Go.
    (infinite || !number.is_infinite()).then_some(number)
}

fn to_dyn(meter: &mut Meter, args: &[Value]) -> Outcome {
    meter.charge(1)?;
    args.first().cloned().ok_or(Failure::Overload)
}

#[expect(clippy::cast_possible_truncation, reason = "the range was checked")]
fn to_int(meter: &mut Meter, args: &[Value]) -> Outcome {
    meter.charge(1)?;
    let overflow = || failed("integer overflow");
    Ok(Value::Int(match args {
        [Value::Int(number)] => *number,
        [Value::Uint(number)] => i64::try_from(*number).map_err(|_| overflow())?,
        [Value::Double(number)] => {
            // Both ends are excluded, as in cel-go.
            let fits = number.is_finite()
                && *number > -9_223_372_036_854_775_808.0
                && *number < 9_223_372_036_854_775_808.0;
            fits.then_some(*number as i64).ok_or_else(overflow)?
        }
        [value @ Value::Text(text)] => {
            meter.bytes(text.as_str().len())?;
            let number = text.as_str().parse::<i64>().ok();
            number.ok_or_else(|| unconvertible(value, "int"))?
        }
        [Value::Timestamp(time)] => time::seconds(*time),
        [Value::Duration(nanoseconds)] => *nanoseconds,
        _ => return Err(Failure::Overload),
    }))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the range was checked"
)]
fn to_uint(meter: &mut Meter, args: &[Value]) -> Outcome {
    meter.charge(1)?;
    let overflow = || failed("unsigned integer overflow");
    Ok(Value::Uint(match args {
        [Value::Uint(number)] => *number,
        [Value::Int(number)] => u64::try_from(*number).map_err(|_| overflow())?,
        [Value::Double(number)] => {
            let fits = number.is_finite() && *number >= 0.0 && *number < 18_446_744_073_709_551_616.0;
            fits.then_some(*number as u64).ok_or_else(overflow)?
        }
        [value @ Value::Text(text)] => {
            meter.bytes(text.as_str().len())?;
            // Go takes no sign.
            let number = text.as_str().parse::<u64>().ok();
            let number = number.filter(|_| !text.as_str().starts_with('+'));
            number.ok_or_else(|| unconvertible(value, "uint"))?
        }
        _ => return Err(Failure::Overload),
    }))
}

fn to_text(meter: &mut Meter, args: &[Value]) -> Outcome {
    let [value] = args else {
        return Err(Failure::Overload);
    };
    match value {
        Value::Bytes(bytes) => {
            meter.traversal(value.size(), 1)?;
            meter.allocate(bytes.len())?;
            let text = std::str::from_utf8(bytes);
            return match text {
                Ok(text) => Ok(Value::text(text)),
                Err(_) => Err(failed("invalid UTF-8 in bytes, cannot convert to string")),
            };
        }
        Value::Text(_) => {
            meter.charge(1)?;
            return Ok(value.clone());
        }
        _ => meter.charge(1)?,
    }
    shown(value).map(Value::text).ok_or(Failure::Overload)
}

/// The text of a value that is no string or bytes; `None`: it has none.
pub(in crate::expression) fn shown(value: &Value) -> Option<String> {
    Some(match value {
        Value::Bool(truth) => truth.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Uint(number) => number.to_string(),
        Value::Double(number) => shown_double(*number),
        Value::Timestamp(time) => time::shown(*time),
        Value::Duration(nanoseconds) => time::shown_duration(*nanoseconds),
        Value::Opaque(value) => value.text()?,
        _ => return None,
    })
}

/// A number as Go's `strconv.FormatFloat(f, 'g', -1, 64)` shows it.
pub(in crate::expression) fn shown_double(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let scientific = format!("{number:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let power: i32 = exponent.parse().unwrap_or_default();
    match (-4..6).contains(&power) {
        true => number.to_string(),
        // Digits that are shown as a number without an exponent end at a million (`%g`).
        false => {
            let sign = if power < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", power.unsigned_abs())
        }
    }
}

fn to_type(meter: &mut Meter, args: &[Value]) -> Outcome {
    meter.charge(1)?;
    match args {
        [value] => Ok(Value::Type(value.type_name().into())),
        _ => Err(Failure::Overload),
    }
}

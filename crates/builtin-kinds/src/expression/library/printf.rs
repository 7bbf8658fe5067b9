//! `'%s has %d'.format([name, count])`.
//!
//! Source: cel-go `ext/formatting.go` (the version that formats for `en_US`).

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "operations name the types that they have; a new type has none"
)]

use apimachinery::go_text;

use super::standard::{shown, shown_double};
use super::{Outcome, failed, time};
use crate::expression::Failure;
use crate::expression::meter::Meter;
use crate::expression::value::{Key, Value};

/// Digits of a fraction if none are asked for.
const PRECISION: usize = 6;

/// Digits that the fraction of a `double` has at most: those behind are zeros.
const DIGITS_MAX: usize = 1074;

/// A text that grows, after the work of each part is charged.
struct Writer<'m> {
    text: String,
    meter: &'m mut Meter,
}

impl Writer<'_> {
    fn push(&mut self, part: &str) -> Result<(), Failure> {
        self.meter.allocate(part.len())?;
        self.text.push_str(part);
        Ok(())
    }
}

pub(super) fn format(meter: &mut Meter, args: &[Value]) -> Outcome {
    let [value @ Value::Text(format), Value::List(given)] = args else {
        return Err(Failure::Overload);
    };
    meter.traversal(value.size(), 1)?;
    let mut out = Writer {
        text: String::new(),
        meter,
    };
    let mut given = given.items().iter().enumerate();
    let mut taken = 0;
    let mut rest = format.as_str();
    while let Some((before, clause)) = rest.split_once('%') {
        out.push(before)?;
        if let Some(behind) = clause.strip_prefix('%') {
            out.push("%")?;
            rest = behind;
            continue;
        }
        let Some((_, value)) = given.next() else {
            return Err(failed(format!("index {taken} out of range")));
        };
        taken += 1;
        let (precision, behind) = precision(clause)?;
        let mut letters = behind.chars();
        let letter = letters.next().ok_or_else(|| failed("unexpected end of string"))?;
        write(&mut out, letter, precision, value)?;
        rest = letters.as_str();
    }
    out.push(rest)?;
    let over = given.count();
    if over > 0 {
        let supplied = taken + over;
        return Err(failed(format!(
            "too many arguments supplied to string.format (expected {taken}, got {supplied})"
        )));
    }
    let Writer { text, .. } = out;
    Ok(Value::text(text))
}

fn precision(clause: &str) -> Result<(Option<usize>, &str), Failure> {
    let Some(rest) = clause.strip_prefix('.') else {
        return Ok((None, clause));
    };
    let end = rest
        .find(|one: char| !one.is_ascii_digit())
        .ok_or_else(|| failed("could not find end of precision specifier"))?;
    let (digits, rest) = rest.split_at(end);
    let digits = digits.parse().map_err(|_| {
        failed(format!(
            "error while converting precision to integer: strconv.Atoi: parsing {digits:?}: invalid syntax"
        ))
    })?;
    Ok((Some(digits), rest))
}

fn write(out: &mut Writer<'_>, letter: char, precision: Option<usize>, value: &Value) -> Result<(), Failure> {
    let digits = precision.unwrap_or(PRECISION);
    let refused = |accepts: &str| {
        let name = value.type_name();
        failed(format!("error during formatting: {accepts}, was given {name}"))
    };
    match (letter, value) {
        ('s', value) => plain(out, value),
        ('d', Value::Int(number)) => out.push(&number.to_string()),
        ('d', Value::Uint(number)) => out.push(&number.to_string()),
        ('d', _) => Err(refused("decimal clause can only be used on integers")),
        ('f', value) => {
            let number =
                number(value).ok_or_else(|| refused("fixed-point clause can only be used on doubles"))?;
            fixed(out, number, digits)
        }
        ('e', value) => {
            let number =
                number(value).ok_or_else(|| refused("scientific clause can only be used on doubles"))?;
            scientific(out, number, precision)
        }
        ('b', Value::Int(number)) => {
            let sign = if *number < 0 { "-" } else { "" };
            out.push(&format!("{sign}{:b}", number.unsigned_abs()))
        }
        ('b', Value::Uint(number)) => out.push(&format!("{number:b}")),
        ('b', Value::Bool(truth)) => out.push(if *truth { "1" } else { "0" }),
        ('b', _) => Err(refused("only integers and bools can be formatted as binary")),
        ('o', Value::Int(number)) => {
            let sign = if *number < 0 { "-" } else { "" };
            out.push(&format!("{sign}{:o}", number.unsigned_abs()))
        }
        ('o', Value::Uint(number)) => out.push(&format!("{number:o}")),
        ('o', _) => Err(refused("octal clause can only be used on integers")),
        ('x' | 'X', value) => {
            let upper = letter == 'X';
            hexadecimal(out, value, upper)?
                .ok_or_else(|| refused("only integers, byte buffers, and strings can be formatted as hex"))
        }
        (other, _) => {
            let other = go_text::quote(&other.to_string());
            Err(failed(format!(
                "could not parse formatting clause: unrecognized formatting clause {other}"
            )))
        }
    }
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Double(number) => Some(*number),
        Value::Text(text) => match text.as_str() {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        _ => None,
    }
}

fn hexadecimal(out: &mut Writer<'_>, value: &Value, upper: bool) -> Result<Option<()>, Failure> {
    let of_bytes = |out: &mut Writer<'_>, bytes: &[u8]| {
        out.meter.allocate(bytes.len().saturating_mul(2))?;
        for byte in bytes {
            out.text.push_str(&match upper {
                true => format!("{byte:02X}"),
                false => format!("{byte:02x}"),
            });
        }
        Ok::<_, Failure>(())
    };
    let of_number = |out: &mut Writer<'_>, sign: &str, number: u64| {
        out.push(&match upper {
            true => format!("{sign}{number:X}"),
            false => format!("{sign}{number:x}"),
        })
    };
    match value {
        Value::Int(number) => of_number(out, if *number < 0 { "-" } else { "" }, number.unsigned_abs())?,
        Value::Uint(number) => of_number(out, "", *number)?,
        Value::Text(text) => of_bytes(out, text.as_str().as_bytes())?,
        Value::Bytes(bytes) => of_bytes(out, bytes)?,
        _ => return Ok(None),
    }
    Ok(Some(()))
}

/// A number with groups of three digits.
fn fixed(out: &mut Writer<'_>, number: f64, digits: usize) -> Result<(), Failure> {
    if let Some(word) = not_finite(number) {
        return out.push(word);
    }
    out.meter.allocate(digits.saturating_add(400))?;
    let written = digits.min(DIGITS_MAX);
    let text = format!("{:.written$}", number.abs());
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let mut grouped = String::new();
    if number.is_sign_negative() {
        grouped.push('-');
    }
    for (nth, digit) in whole.chars().enumerate() {
        if nth > 0 && (whole.len() - nth).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    if !fraction.is_empty() {
        grouped.push('.');
        grouped.push_str(fraction);
        grouped.push_str(&"0".repeat(digits - written));
    }
    out.push(&grouped)
}

fn scientific(out: &mut Writer<'_>, number: f64, width: Option<usize>) -> Result<(), Failure> {
    if let Some(word) = not_finite(number) {
        return out.push(word);
    }
    out.meter.allocate(400)?;
    let text = format!("{number:.PRECISION$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    const SUPERSCRIPTS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let mut power = String::new();
    if exponent < 0 {
        power.push('⁻');
    }
    for digit in format!("{:02}", exponent.unsigned_abs()).bytes() {
        power.push(SUPERSCRIPTS[usize::from(digit - b'0')]);
    }
    // What is meant as a precision is a width in the version that servers have.
    let length = mantissa.len() + "×10".chars().count() + power.chars().count();
    let padding = width.unwrap_or_default().saturating_sub(length);
    out.meter.allocate(padding)?;
    out.push(&" ".repeat(padding))?;
    out.push(mantissa)?;
    out.push("×10")?;
    out.push(&power)
}

fn not_finite(number: f64) -> Option<&'static str> {
    match number {
        number if number.is_nan() => Some("NaN"),
        f64::INFINITY => Some("∞"),
        f64::NEG_INFINITY => Some("-∞"),
        _ => None,
    }
}

/// `%s`: strings as they are, lists and maps with literals.
fn plain(out: &mut Writer<'_>, value: &Value) -> Result<(), Failure> {
    match value {
        Value::Text(text) => out.push(text.as_str()),
        Value::Bytes(bytes) => out.push(utf8(bytes)?),
        Value::Null => out.push("null"),
        Value::Type(name) => out.push(name),
        Value::List(_) | Value::Map(_) => literal(out, value),
        Value::Optional(_) | Value::Struct(_) | Value::Opaque(_) => {
            let name = value.type_name();
            Err(failed(format!(
                "error during formatting: string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, \
                 types, durations, and timestamps, was given {name}"
            )))
        }
        Value::Bool(_)
        | Value::Int(_)
        | Value::Uint(_)
        | Value::Double(_)
        | Value::Timestamp(_)
        | Value::Duration(_) => out.push(&shown(value).unwrap_or_default()),
    }
}

fn utf8(bytes: &[u8]) -> Result<&str, Failure> {
    std::str::from_utf8(bytes).map_err(|_| {
        failed(
            "error during formatting: could not convert argument \"invalid UTF-8 in bytes, cannot convert to string\" to string",
        )
    })
}

/// A value within a list or a map.
fn literal(out: &mut Writer<'_>, value: &Value) -> Result<(), Failure> {
    match value {
        Value::Text(text) => quoted(out, text.as_str()),
        Value::Bytes(bytes) => {
            out.push("b")?;
            quoted(out, utf8(bytes)?)
        }
        Value::Double(number) if number.is_finite() => {
            out.meter.allocate(400)?;
            out.push(&format!("{number:.PRECISION$}"))
        }
        Value::Double(number) => {
            let shown = shown_double(*number);
            quoted(out, &shown)
        }
        Value::Timestamp(time) => {
            out.push("timestamp(")?;
            quoted(out, &time::shown(*time))?;
            out.push(")")
        }
        Value::Duration(nanoseconds) => {
            out.push("duration(")?;
            quoted(out, &time::shown_duration(*nanoseconds))?;
            out.push(")")
        }
        Value::List(list) => {
            out.push("[")?;
            for (nth, item) in list.items().iter().enumerate() {
                out.push(if nth == 0 { "" } else { ", " })?;
                literal(out, item)?;
            }
            out.push("]")
        }
        Value::Map(map) => {
            out.push("{")?;
            for (nth, (key, value)) in map.entries().iter().enumerate() {
                out.push(if nth == 0 { "" } else { ", " })?;
                match key {
                    Key::Text(text) => quoted(out, text.as_str())?,
                    key => out.push(&key.shown())?,
                }
                out.push(":")?;
                literal(out, value)?;
            }
            out.push("}")
        }
        value => plain(out, value),
    }
}

fn quoted(out: &mut Writer<'_>, text: &str) -> Result<(), Failure> {
    out.meter.allocate(text.len().saturating_mul(4))?;
    out.push(&go_text::quote(text))
}

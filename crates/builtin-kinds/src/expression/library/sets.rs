//! Lists as sets: `sets.contains([1, 2], [2])`, `sets.equivalent`, `sets.intersects`.
//!
//! Source: cel-go `ext/sets.go`.

use super::{Function, Outcome};
use crate::expression::Failure;
use crate::expression::meter::{Meter, count};
use crate::expression::value::Value;

pub(super) fn find(name: &str, on_target: bool, args: usize) -> Option<Function> {
    Some(match (name, on_target, args) {
        ("sets.contains", false, 2) => contains,
        ("sets.equivalent", false, 2) => equivalent,
        ("sets.intersects", false, 2) => intersects,
        _ => return None,
    })
}

/// The elements of both lists, after the charge of comparing each with each, so often.
fn lists<'a>(
    meter: &mut Meter,
    args: &'a [Value],
    times: u64,
) -> Result<(&'a [Value], &'a [Value]), Failure> {
    let [Value::List(one), Value::List(other)] = args else {
        return Err(Failure::Overload);
    };
    let (one, other) = (one.items(), other.items());
    let pairs = count(one.len()).saturating_mul(count(other.len()));
    meter.charge(pairs.saturating_mul(times).saturating_add(1))?;
    Ok((one, other))
}

fn contains(meter: &mut Meter, args: &[Value]) -> Outcome {
    let (whole, part) = lists(meter, args, 1)?;
    has_all(meter, whole, part).map(Value::Bool)
}

fn equivalent(meter: &mut Meter, args: &[Value]) -> Outcome {
    let (one, other) = lists(meter, args, 2)?;
    Ok(Value::Bool(
        has_all(meter, one, other)? && has_all(meter, other, one)?,
    ))
}

fn intersects(meter: &mut Meter, args: &[Value]) -> Outcome {
    let (one, other) = lists(meter, args, 1)?;
    for item in one {
        if has(meter, other, item)? {
            return Ok(Value::Bool(true));
        }
    }
    Ok(Value::Bool(false))
}

/// Whether all elements of `part` are in `whole`.
fn has_all(meter: &mut Meter, whole: &[Value], part: &[Value]) -> Result<bool, Failure> {
    for item in part {
        if !has(meter, whole, item)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn has(meter: &mut Meter, list: &[Value], wanted: &Value) -> Result<bool, Failure> {
    for item in list {
        if item.equals(wanted, meter)? {
            return Ok(true);
        }
    }
    Ok(false)
}

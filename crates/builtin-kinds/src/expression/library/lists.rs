//! Functions of lists.
//!
//! Source: cel-go `ext/lists.go`, version 3; apiserver `pkg/cel/library/lists.go`, costs in `cost.go`.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "operations name the types that they have; a new type has none"
)]

use std::cmp::Ordering;
use std::sync::Arc;

use super::{Function, Outcome, failed};
use crate::expression::Failure;
use crate::expression::meter::{Meter, count};
use crate::expression::operators::Operator;
use crate::expression::value::{List, Value};

/// Most elements of `lists.range`.
const RANGE_MAX: i64 = 1_000_000;

/// Cost of a call that creates a list.
const CREATED: u64 = 11;

pub(super) fn find(name: &str, on_target: bool, args: usize) -> Option<Function> {
    Some(match (name, on_target, args) {
        ("isSorted", true, 0) => is_sorted,
        ("sum", true, 0) => sum,
        ("min", true, 0) => |meter, args| extreme(meter, args, Ordering::Less, "min"),
        ("max", true, 0) => |meter, args| extreme(meter, args, Ordering::Greater, "max"),
        ("lists.range", false, 1) => range,
        ("slice", true, 2) => slice,
        ("flatten", true, 0 | 1) => flatten,
        ("distinct", true, 0) => distinct,
        ("reverse", true, 0) => reverse,
        ("sort", true, 0) => sort,
        ("@sortByAssociatedKeys", true, 1) => sort_by,
        _ => return None,
    })
}

/// Charges the traversal of a value and all of its parts (`traversalCost`).
fn traversed(meter: &mut Meter, value: &Value) -> Result<(), Failure> {
    meter.work(1)?;
    match value {
        Value::Text(text) => meter.charge(count(text.as_str().len()) / 10),
        Value::Bytes(bytes) => meter.charge(count(bytes.len()) / 10),
        Value::List(list) => list.items().iter().try_for_each(|item| traversed(meter, item)),
        Value::Map(map) => map.entries().iter().try_for_each(|(key, value)| {
            traversed(meter, &key.value())?;
            traversed(meter, value)
        }),
        _ => meter.charge(1),
    }
}

fn of_list(args: &[Value]) -> Result<&Arc<List>, Failure> {
    match args {
        [Value::List(list), ..] => Ok(list),
        _ => Err(Failure::Overload),
    }
}

fn is_sorted(meter: &mut Meter, args: &[Value]) -> Outcome {
    let list = of_list(args)?;
    traversed(meter, &args[0])?;
    for pair in list.items().windows(2) {
        if pair[0].compare(&pair[1], meter)? == Some(Ordering::Greater) {
            return Ok(Value::Bool(false));
        }
    }
    Ok(Value::Bool(true))
}

fn sum(meter: &mut Meter, args: &[Value]) -> Outcome {
    let list = of_list(args)?;
    traversed(meter, &args[0])?;
    let Some((first, rest)) = list.items().split_first() else {
        return Ok(Value::Int(0));
    };
    let is_number = |value: &Value| {
        matches!(
            value,
            Value::Int(_) | Value::Uint(_) | Value::Double(_) | Value::Duration(_)
        )
    };
    let mut total = first.clone();
    // The additions are not charged again.
    let cost = meter.cost;
    for item in rest {
        if !is_number(item) {
            return Err(Failure::Overload);
        }
        total = Operator::Add.apply(meter, &total, item)?;
        meter.cost = cost;
    }
    is_number(&total).then_some(total).ok_or(Failure::Overload)
}

fn extreme(meter: &mut Meter, args: &[Value], wanted: Ordering, name: &str) -> Outcome {
    let list = of_list(args)?;
    traversed(meter, &args[0])?;
    let Some((mut best, rest)) = list.items().split_first() else {
        return Err(failed(format!("{name} called on empty list")));
    };
    for item in rest {
        if item.compare(best, meter)? == Some(wanted) {
            best = item;
        }
    }
    Ok(best.clone())
}

/// `indexOf` and `lastIndexOf` of a list.
pub(super) fn position(meter: &mut Meter, list: &Arc<List>, wanted: &Value, last: bool) -> Outcome {
    traversed(meter, &Value::List(Arc::clone(list)))?;
    let mut found = -1;
    for (at, item) in (0_i64..).zip(list.items()) {
        if item.equals(wanted, meter)? {
            found = at;
            if !last {
                break;
            }
        }
    }
    Ok(Value::Int(found))
}

fn range(meter: &mut Meter, args: &[Value]) -> Outcome {
    let [Value::Int(length)] = args else {
        return Err(Failure::Overload);
    };
    if *length < 0 || *length > RANGE_MAX {
        meter.charge(CREATED + 1)?;
        return Err(failed(match *length < 0 {
            true => format!("lists.range: size must be non-negative, got {length}"),
            false => format!("lists.range: size {length} exceeds maximum allowed ({RANGE_MAX})"),
        }));
    }
    created(meter, usize::try_from(*length).unwrap_or_default())?;
    Ok(Value::list((0..*length).map(Value::Int).collect()))
}

/// Charges the creation of a list of this length.
fn created(meter: &mut Meter, length: usize) -> Result<(), Failure> {
    meter.charge(count(length).saturating_add(CREATED))?;
    meter.elements(length)
}

fn slice(meter: &mut Meter, args: &[Value]) -> Outcome {
    let [Value::List(list), Value::Int(start), Value::Int(end)] = args else {
        return Err(Failure::Overload);
    };
    let refused = |why: &str| failed(format!("cannot slice({start}, {end}), {why}"));
    let (Ok(from), Ok(to)) = (usize::try_from(*start), usize::try_from(*end)) else {
        return Err(refused("negative indexes not supported"));
    };
    if from > to {
        return Err(refused("start index must be less than or equal to end index"));
    }
    let Some(part) = list.items().get(from..to) else {
        return Err(refused(&format!("list is length {}", list.items().len())));
    };
    created(meter, part.len())?;
    Ok(Value::list(part.to_vec()))
}

fn reverse(meter: &mut Meter, args: &[Value]) -> Outcome {
    let list = of_list(args)?;
    created(meter, list.items().len())?;
    Ok(Value::list(list.items().iter().rev().cloned().collect()))
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the arithmetic of cel-go, on sizes"
)]
fn flatten(meter: &mut Meter, args: &[Value]) -> Outcome {
    let list = of_list(args)?;
    let levels = match args {
        [_] => 1,
        [_, Value::Int(levels)] if *levels < 0 => return Err(failed("level must be non-negative")),
        [_, Value::Int(levels)] => *levels,
        _ => return Err(Failure::Overload),
    };
    meter.charge(((list.items().len() as f64 * levels as f64) as u64).saturating_add(CREATED))?;
    let mut items = Vec::new();
    flattened(meter, list, levels, &mut items)?;
    Ok(Value::list(items))
}

fn flattened(meter: &mut Meter, list: &List, levels: i64, into: &mut Vec<Value>) -> Result<(), Failure> {
    for item in list.items() {
        meter.work(1)?;
        match item {
            Value::List(below) if levels > 0 => flattened(meter, below, levels - 1, into)?,
            item => into.push(item.clone()),
        }
    }
    Ok(())
}

/// Charges the comparison of each element with each other (`trackListSelfCompare`).
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the arithmetic of cel-go, on sizes"
)]
fn compared(meter: &mut Meter, list: &List) -> Result<(), Failure> {
    let size = count(list.items().len());
    let factor = match list.items().first() {
        Some(Value::Text(_) | Value::Bytes(_)) => 2.1,
        Some(_) | None => 2.0,
    };
    let cost = (size.saturating_mul(size) as f64 * factor) as u64;
    meter.charge(cost.saturating_add(CREATED))?;
    meter.elements(list.items().len())
}

fn distinct(meter: &mut Meter, args: &[Value]) -> Outcome {
    let list = of_list(args)?;
    compared(meter, list)?;
    let mut kept: Vec<Value> = Vec::new();
    'items: for item in list.items() {
        for known in &kept {
            if item.equals(known, meter)? {
                continue 'items;
            }
        }
        kept.push(item.clone());
    }
    Ok(Value::list(kept))
}

fn sort(meter: &mut Meter, args: &[Value]) -> Outcome {
    let list = of_list(args)?;
    sorted(meter, list, list)
}

fn sort_by(meter: &mut Meter, args: &[Value]) -> Outcome {
    let [Value::List(list), Value::List(keys)] = args else {
        return Err(Failure::Overload);
    };
    sorted(meter, list, keys)
}

fn sorted(meter: &mut Meter, list: &Arc<List>, keys: &Arc<List>) -> Outcome {
    let (items, keys_of) = (list.items(), keys.items());
    if items.len() != keys_of.len() {
        return Err(failed(format!(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, but got {} and {} elements \
             respectively",
            items.len(),
            keys_of.len()
        )));
    }
    compared(meter, keys)?;
    let Some(first) = keys_of.first() else {
        return Ok(Value::List(Arc::clone(list)));
    };
    if first
        .compare(first, meter)
        .is_err_and(|failure| failure == Failure::Overload)
    {
        return Err(failed("list elements must be comparable"));
    }
    if keys_of.iter().any(|key| key.type_name() != first.type_name()) {
        return Err(failed("list elements must have the same type"));
    }
    for key in keys_of {
        // Each key is compared with as many others as a binary search takes.
        let bytes = match key {
            Value::Text(text) => text.as_str().len(),
            Value::Bytes(bytes) => bytes.len(),
            _ => 0,
        };
        meter.bytes(bytes.saturating_mul(keys_of.len().ilog2() as usize + 1))?;
    }
    let mut order: Vec<usize> = (0..items.len()).collect();
    // The order has to be total: nothing is charged here, and NaN is below all numbers.
    order.sort_by(|one, other| {
        let (one, other) = (&keys_of[*one], &keys_of[*other]);
        let order = one.compare(other, &mut Meter::default()).ok().flatten();
        order.unwrap_or_else(|| is_nan(other).cmp(&is_nan(one)))
    });
    Ok(Value::list(
        order.into_iter().map(|at| items[at].clone()).collect(),
    ))
}

fn is_nan(value: &Value) -> bool {
    matches!(value, Value::Double(number) if number.is_nan())
}

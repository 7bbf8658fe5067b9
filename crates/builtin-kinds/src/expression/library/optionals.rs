//! Optional values. `or` and `orValue` are not functions: their second operand may not be evaluated.
//!
//! Source: cel-go `cel/library.go` (`OptionalTypes`).

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "operations name the types that they have; a new type has none"
)]

use super::{Function, Outcome, failed};
use crate::expression::Failure;
use crate::expression::meter::Meter;
use crate::expression::value::Value;

pub(super) fn find(name: &str, on_target: bool, args: usize) -> Option<Function> {
    Some(match (name, on_target, args) {
        ("optional.of", false, 1) => of,
        ("optional.none", false, 0) => none,
        ("optional.ofNonZeroValue", false, 1) => of_non_zero,
        ("hasValue", true, 0) => has_value,
        ("value", true, 0) => value,
        ("first", true, 0) => |meter, args| end(meter, args, |items| items.first()),
        ("last", true, 0) => |meter, args| end(meter, args, |items| items.last()),
        ("optional.unwrap", false, 1) | ("unwrapOpt", true, 0) => unwrap,
        _ => return None,
    })
}

fn of(meter: &mut Meter, args: &[Value]) -> Outcome {
    meter.charge(1)?;
    Ok(Value::optional(args.first().cloned()))
}

fn none(meter: &mut Meter, _args: &[Value]) -> Outcome {
    meter.charge(1)?;
    Ok(Value::Optional(None))
}

fn of_non_zero(meter: &mut Meter, args: &[Value]) -> Outcome {
    meter.charge(1)?;
    Ok(Value::optional(
        args.first().filter(|value| !value.is_zero()).cloned(),
    ))
}

fn has_value(meter: &mut Meter, args: &[Value]) -> Outcome {
    meter.charge(1)?;
    match args {
        [Value::Optional(value)] => Ok(Value::Bool(value.is_some())),
        _ => Err(Failure::Overload),
    }
}

fn value(meter: &mut Meter, args: &[Value]) -> Outcome {
    meter.charge(1)?;
    match args {
        [Value::Optional(Some(value))] => Ok((**value).clone()),
        [Value::Optional(None)] => Err(failed("optional.none() dereference")),
        _ => Err(Failure::Overload),
    }
}

fn end(meter: &mut Meter, args: &[Value], end: fn(&[Value]) -> Option<&Value>) -> Outcome {
    meter.charge(1)?;
    match args {
        [Value::List(list)] => Ok(Value::optional(end(list.items()).cloned())),
        _ => Err(Failure::Overload),
    }
}

fn unwrap(meter: &mut Meter, args: &[Value]) -> Outcome {
    meter.charge(1)?;
    let [Value::List(list)] = args else {
        return Err(Failure::Overload);
    };
    meter.elements(list.items().len())?;
    let mut values = Vec::new();
    for item in list.items() {
        match item {
            Value::Optional(value) => values.extend(value.iter().map(|value| (**value).clone())),
            _ => return Err(Failure::Overload),
        }
    }
    Ok(Value::list(values))
}

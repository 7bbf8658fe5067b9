//! Quantities: `quantity('1Gi').isGreaterThan(quantity('1G'))`.

use super::{Function, Outcome, failed, opaque, semver};
use crate::expression::Failure;
use crate::expression::meter::Meter;
use crate::expression::value::Value;
use crate::types::quantities::{amount, is_quantity};

/// Billionths of one.
const UNIT: i128 = 1_000_000_000;

/// An amount, in billionths.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Quantity(i128);

opaque!(Quantity, "kubernetes.Quantity");

pub(super) fn find(name: &str, on_target: bool, args: usize) -> Option<Function> {
    Some(match (name, on_target, args) {
        ("quantity", false, 1) => quantity,
        ("isQuantity", false, 1) => readable,
        ("sign", true, 0) => |meter, args| Ok(Value::Int(sign(own(meter, args)?))),
        ("isInteger", true, 0) => |meter, args| Ok(Value::Bool(integer(own(meter, args)?).is_some())),
        ("asInteger", true, 0) => |meter, args| {
            let integer = integer(own(meter, args)?);
            integer
                .map(Value::Int)
                .ok_or_else(|| failed("cannot convert value to integer"))
        },
        ("asApproximateFloat", true, 0) => |meter, args| Ok(Value::Double(float(own(meter, args)?))),
        ("add", true, 1) => |meter, args| combined(meter, args, i128::saturating_add),
        ("sub", true, 1) => |meter, args| combined(meter, args, i128::saturating_sub),
        ("isGreaterThan", true, 1) => |meter, args| Ok(Value::Bool(ordering(meter, args)?.is_gt())),
        ("isLessThan", true, 1) => |meter, args| Ok(Value::Bool(ordering(meter, args)?.is_lt())),
        ("compareTo", true, 1) => |meter, args| Ok(Value::Int(ordering(meter, args)? as i64)),
        _ => return None,
    })
}

fn text<'a>(meter: &mut Meter, args: &'a [Value]) -> Result<&'a str, Failure> {
    let [value @ Value::Text(text)] = args else {
        return Err(Failure::Overload);
    };
    meter.traversal(value.size(), 1)?;
    meter.allocate(text.as_str().len())?;
    Ok(text.as_str())
}

fn quantity(meter: &mut Meter, args: &[Value]) -> Outcome {
    let text = text(meter, args)?;
    match is_quantity(text) {
        true => Ok(Value::opaque(Quantity(amount(text)))),
        false => Err(failed(
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        )),
    }
}

fn readable(meter: &mut Meter, args: &[Value]) -> Outcome {
    Ok(Value::Bool(is_quantity(text(meter, args)?)))
}

/// The amount of the target.
fn own(meter: &mut Meter, args: &[Value]) -> Result<i128, Failure> {
    meter.charge(1)?;
    let quantity = args.first().and_then(Value::downcast::<Quantity>);
    quantity.map(|quantity| quantity.0).ok_or(Failure::Overload)
}

fn sign(amount: i128) -> i64 {
    i64::try_from(amount.signum()).unwrap_or_default()
}

fn integer(amount: i128) -> Option<i64> {
    i64::try_from(amount / UNIT).ok().filter(|_| amount % UNIT == 0)
}

#[expect(clippy::cast_precision_loss, reason = "it is approximate")]
fn float(amount: i128) -> f64 {
    amount as f64 / UNIT as f64
}

fn combined(meter: &mut Meter, args: &[Value], combine: fn(i128, i128) -> i128) -> Outcome {
    let own = own(meter, args)?;
    let other = match args.get(1) {
        Some(Value::Int(number)) => i128::from(*number).saturating_mul(UNIT),
        Some(other) => other.downcast::<Quantity>().ok_or(Failure::Overload)?.0,
        None => return Err(Failure::Overload),
    };
    Ok(Value::opaque(Quantity(combine(own, other))))
}

/// Order of two quantities, or of two versions.
fn ordering(meter: &mut Meter, args: &[Value]) -> Result<std::cmp::Ordering, Failure> {
    meter.charge(1)?;
    let [one, other] = args else {
        return Err(Failure::Overload);
    };
    match (one.downcast::<Quantity>(), other.downcast::<Quantity>()) {
        (Some(one), Some(other)) => Ok(one.0.cmp(&other.0)),
        (_, _) => semver::ordering(meter, one, other),
    }
}

//! Quantities: `quantity('1Gi').isGreaterThan(quantity('1G'))`.

use cel::Env;
use cel::common::types::{CelBool, CelDouble, CelInt, CelString};

use super::{Declared, double, opaque, refused};
use crate::types::quantities::{amount, is_quantity};

/// Billionths of one.
const UNIT: i128 = 1_000_000_000;

/// An amount, in billionths.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Quantity(i128);

opaque!(Quantity, "kubernetes.Quantity", QUANTITY);

type Result<T> = std::result::Result<T, cel::ExecutionError>;

pub(super) fn declare(env: &mut Env) -> Declared {
    env.add_type(QUANTITY.to_owned())?;
    cel::add_overload!(env, fn quantity: (CelString) -> Result<Quantity>)?;
    cel::add_overload!(env, fn readable: (CelString) -> CelBool, name = "isQuantity")?;
    cel::add_member_overload!(env, fn sign: (Quantity) -> CelInt)?;
    cel::add_member_overload!(env, fn is_integer: (Quantity) -> CelBool)?;
    cel::add_member_overload!(env, fn as_integer: (Quantity) -> Result<CelInt>)?;
    cel::add_member_overload!(env, fn as_approximate_float: (Quantity) -> CelDouble)?;
    cel::add_member_overload!(env, fn add: (Quantity, Quantity) -> Quantity)?;
    cel::add_member_overload!(env, fn add_int: (Quantity, CelInt) -> Quantity, name = "add")?;
    cel::add_member_overload!(env, fn sub: (Quantity, Quantity) -> Quantity)?;
    cel::add_member_overload!(env, fn sub_int: (Quantity, CelInt) -> Quantity, name = "sub")?;
    cel::add_member_overload!(env, fn is_greater_than: (Quantity, Quantity) -> CelBool)?;
    cel::add_member_overload!(env, fn is_less_than: (Quantity, Quantity) -> CelBool)?;
    cel::add_member_overload!(env, fn compare_to: (Quantity, Quantity) -> CelInt)
}

fn quantity(text: &CelString<'_>) -> Result<Quantity> {
    match is_quantity(text.inner()) {
        true => Ok(Quantity(amount(text.inner()))),
        false => Err(refused(
            "quantity",
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        )),
    }
}

fn readable(text: &CelString<'_>) -> CelBool {
    is_quantity(text.inner()).into()
}

fn sign(of: &Quantity) -> CelInt {
    i64::try_from(of.0.signum()).unwrap_or_default().into()
}

fn is_integer(of: &Quantity) -> CelBool {
    (of.0 % UNIT == 0 && i64::try_from(of.0 / UNIT).is_ok()).into()
}

fn as_integer(of: &Quantity) -> Result<CelInt> {
    let whole = i64::try_from(of.0 / UNIT).ok().filter(|_| of.0 % UNIT == 0);
    whole
        .map(CelInt::from)
        .ok_or_else(|| refused("asInteger", "cannot convert value to integer"))
}

#[expect(clippy::cast_precision_loss, reason = "it is approximate")]
fn as_approximate_float(of: &Quantity) -> CelDouble {
    double(of.0 as f64 / UNIT as f64)
}

fn add(one: &Quantity, other: &Quantity) -> Quantity {
    Quantity(one.0.saturating_add(other.0))
}

fn add_int(one: &Quantity, other: &CelInt) -> Quantity {
    add(one, &whole(other))
}

fn sub(one: &Quantity, other: &Quantity) -> Quantity {
    Quantity(one.0.saturating_sub(other.0))
}

fn sub_int(one: &Quantity, other: &CelInt) -> Quantity {
    sub(one, &whole(other))
}

fn whole(number: &CelInt) -> Quantity {
    Quantity(i128::from(*number.inner()).saturating_mul(UNIT))
}

fn is_greater_than(one: &Quantity, other: &Quantity) -> CelBool {
    (one.0 > other.0).into()
}

fn is_less_than(one: &Quantity, other: &Quantity) -> CelBool {
    (one.0 < other.0).into()
}

fn compare_to(one: &Quantity, other: &Quantity) -> CelInt {
    (one.0.cmp(&other.0) as i64).into()
}

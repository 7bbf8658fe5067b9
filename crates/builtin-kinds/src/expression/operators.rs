//! Operators of two operands: arithmetic, comparison, membership.
//!
//! Source: cel-go `common/types`, whose errors these are; costs: `interpreter/runtimecost.go`.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "operations name the types that they have; a new type has none"
)]

use std::sync::Arc;

use cel::common::ast::operators as names;
use jiff::SignedDuration;
use jiff::civil::DateTime;

use super::Failure;
use super::meter::{Meter, count};
use super::value::{Key, List, Value};

/// An operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
}

impl Operator {
    /// Returns the operator of this function.
    pub(super) fn of(name: &str) -> Option<Self> {
        Some(match name {
            names::ADD => Self::Add,
            names::SUBSTRACT => Self::Subtract,
            names::MULTIPLY => Self::Multiply,
            names::DIVIDE => Self::Divide,
            names::MODULO => Self::Modulo,
            names::EQUALS => Self::Equal,
            names::NOT_EQUALS => Self::NotEqual,
            names::LESS => Self::Less,
            names::LESS_EQUALS => Self::LessOrEqual,
            names::GREATER => Self::Greater,
            names::GREATER_EQUALS => Self::GreaterOrEqual,
            names::IN => Self::In,
            _ => return None,
        })
    }

    /// Applies it.
    ///
    /// # Errors
    /// No overload for the types, an overflow, a division by zero, or the limit.
    pub(super) fn apply(self, meter: &mut Meter, one: &Value, other: &Value) -> Result<Value, Failure> {
        use std::cmp::Ordering;
        let ordered = |meter: &mut Meter, holds: fn(Ordering) -> bool| {
            match (one, other) {
                (Value::Text(_), Value::Text(_)) | (Value::Bytes(_), Value::Bytes(_)) => {
                    meter.traversal(one.size().min(other.size()), 1)?;
                }
                (_, _) => meter.charge(1)?,
            }
            let order = one.compare(other, meter)?;
            Ok(Value::Bool(order.is_some_and(holds)))
        };
        match self {
            Self::Add => add(meter, one, other),
            Self::Subtract | Self::Multiply | Self::Divide | Self::Modulo => {
                meter.charge(1)?;
                self.arithmetic(one, other)
            }
            Self::Equal | Self::NotEqual => {
                match one {
                    Value::Opaque(_) if self == Self::Equal => meter.charge(1)?,
                    _ => meter.traversal(one.size().min(other.size()), 1)?,
                }
                Ok(Value::Bool(one.equals(other, meter)? == (self == Self::Equal)))
            }
            Self::Less => ordered(meter, Ordering::is_lt),
            Self::LessOrEqual => ordered(meter, Ordering::is_le),
            Self::Greater => ordered(meter, Ordering::is_gt),
            Self::GreaterOrEqual => ordered(meter, Ordering::is_ge),
            Self::In => contains(meter, one, other).map(Value::Bool),
        }
    }

    fn arithmetic(self, one: &Value, other: &Value) -> Result<Value, Failure> {
        match (one, other) {
            (Value::Int(one), Value::Int(other)) => {
                let result = match self {
                    Self::Add => one.checked_add(*other),
                    Self::Subtract => one.checked_sub(*other),
                    Self::Multiply => one.checked_mul(*other),
                    Self::Divide if *other == 0 => return Err(failed("division by zero")),
                    Self::Divide => one.checked_div(*other),
                    Self::Modulo if *other == 0 => return Err(failed("modulus by zero")),
                    Self::Modulo => one.checked_rem(*other),
                    _ => return Err(Failure::Overload),
                };
                result.map(Value::Int).ok_or_else(|| failed("integer overflow"))
            }
            (Value::Uint(one), Value::Uint(other)) => {
                let result = match self {
                    Self::Add => one.checked_add(*other),
                    Self::Subtract => one.checked_sub(*other),
                    Self::Multiply => one.checked_mul(*other),
                    Self::Divide if *other == 0 => return Err(failed("division by zero")),
                    Self::Divide => one.checked_div(*other),
                    Self::Modulo if *other == 0 => return Err(failed("modulus by zero")),
                    Self::Modulo => one.checked_rem(*other),
                    _ => return Err(Failure::Overload),
                };
                result
                    .map(Value::Uint)
                    .ok_or_else(|| failed("unsigned integer overflow"))
            }
            (Value::Double(one), Value::Double(other)) => Ok(Value::Double(match self {
                Self::Add => one + other,
                Self::Subtract => one - other,
                Self::Multiply => one * other,
                Self::Divide => one / other,
                _ => return Err(Failure::Overload),
            })),
            (Value::Timestamp(one), Value::Timestamp(other)) if self == Self::Subtract => {
                let apart = one.duration_since(*other).as_nanos();
                duration(i64::try_from(apart).ok())
            }
            (Value::Timestamp(one), Value::Duration(other)) => match self {
                Self::Add => moved(*one, SignedDuration::from_nanos(*other)),
                Self::Subtract => moved(*one, -SignedDuration::from_nanos(*other)),
                _ => Err(Failure::Overload),
            },
            (Value::Duration(one), Value::Timestamp(other)) if self == Self::Add => {
                moved(*other, SignedDuration::from_nanos(*one))
            }
            (Value::Duration(one), Value::Duration(other)) => match self {
                Self::Add => duration(one.checked_add(*other)),
                Self::Subtract => duration(one.checked_sub(*other)),
                _ => Err(Failure::Overload),
            },
            (_, _) => Err(Failure::Overload),
        }
    }
}

fn failed(why: &str) -> Failure {
    Failure::Error(why.to_owned())
}

fn duration(nanoseconds: Option<i64>) -> Result<Value, Failure> {
    nanoseconds
        .map(Value::Duration)
        .ok_or_else(|| failed("integer overflow"))
}

fn moved(time: DateTime, by: SignedDuration) -> Result<Value, Failure> {
    let moved = time.checked_add(by).ok();
    moved
        .filter(|moved| moved.year() > 0)
        .map(Value::Timestamp)
        .ok_or_else(|| failed("timestamp overflow"))
}

fn add(meter: &mut Meter, one: &Value, other: &Value) -> Result<Value, Failure> {
    match (one, other) {
        (Value::Text(one_text), Value::Text(other_text)) => {
            meter.traversal(one.size().saturating_add(other.size()), 1)?;
            let (one, other) = (one_text.as_str(), other_text.as_str());
            meter.allocate(one.len() + other.len())?;
            Ok(Value::text([one, other].concat()))
        }
        (Value::Bytes(one), Value::Bytes(other)) => {
            meter.traversal(count(one.len() + other.len()), 1)?;
            meter.allocate(one.len() + other.len())?;
            Ok(Value::Bytes([&**one, &**other].concat().into()))
        }
        (Value::List(one), Value::List(other)) => {
            meter.charge(1)?;
            let (one_items, other_items) = (one.items(), other.items());
            match (one_items.is_empty(), other_items.is_empty()) {
                (_, true) => Ok(Value::List(Arc::clone(one))),
                (true, _) => Ok(Value::List(Arc::clone(other))),
                (false, false) => {
                    meter.elements(one_items.len() + other_items.len())?;
                    Ok(Value::List(Arc::new(List::new(
                        [one_items, other_items].concat(),
                    ))))
                }
            }
        }
        (one, other) => {
            meter.charge(1)?;
            Operator::Add.arithmetic(one, other)
        }
    }
}

fn contains(meter: &mut Meter, item: &Value, range: &Value) -> Result<bool, Failure> {
    match range {
        Value::List(list) => {
            meter.charge(count(list.items().len()))?;
            for with in list.items() {
                if with.equals(item, meter)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        Value::Map(map) => {
            meter.charge(1)?;
            let Some(key) = Key::equal_to(item) else {
                return Ok(false);
            };
            key.charge(meter)?;
            Ok(map.entries().contains_key(&key))
        }
        Value::Struct(made) => {
            meter.charge(1)?;
            meter.elements(made.fields().len())?;
            Ok(matches!(item, Value::Text(name) if made.field(name.as_str()).is_some()))
        }
        _ => Err(Failure::Overload),
    }
}

//! Lists as sets: `sets.contains([1, 2], [2])`, `sets.equivalent`, `sets.intersects`. What a comparison of all elements costs is
//! charged by the guard, which calls these.
//!
//! Source: cel-go `ext/sets.go`.

use cel::ExecutionError;
use cel::common::value::Val;

use super::iterable;

/// Names, without the namespace.
pub(in crate::expression) const NAMES: [&str; 3] = ["contains", "equivalent", "intersects"];

/// The answer of a function.
///
/// # Errors
/// An argument is no list.
pub(in crate::expression) fn decide(
    name: &str,
    one: &dyn Val,
    other: &dyn Val,
) -> Result<bool, ExecutionError> {
    Ok(match name {
        "contains" => contains(one, other)?,
        "intersects" => {
            let mut items = iterable(one)?.iter();
            let mut found = false;
            while let Some(item) = items.next() {
                found |= has(other, item)?;
            }
            found
        }
        _ => contains(one, other)? && contains(other, one)?,
    })
}

/// Whether all elements of `part` are in `whole`.
fn contains(whole: &dyn Val, part: &dyn Val) -> Result<bool, ExecutionError> {
    let mut items = iterable(part)?.iter();
    while let Some(item) = items.next() {
        if !has(whole, item)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn has(list: &dyn Val, wanted: &dyn Val) -> Result<bool, ExecutionError> {
    let mut items = iterable(list)?.iter();
    while let Some(item) = items.next() {
        if item.equals(wanted) {
            return Ok(true);
        }
    }
    Ok(false)
}

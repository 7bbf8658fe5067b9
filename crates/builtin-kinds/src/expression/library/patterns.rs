//! Regular expressions: `text.matches(pattern)`, `find`, `findAll`.
//!
//! A literal pattern is compiled when the expression is planned, others once for each evaluation. All have the syntax of Go and
//! a bounded size; a pattern beyond it, or one for which nothing is left of the budget of a definition, fails as if its cost
//! exceeded the limit.
//!
//! Source: apiserver `pkg/cel/library/regex.go`; costs: cel-go `interpreter/runtimecost.go`.

use super::{Function, Outcome, failed};
use crate::crd::patterns::{self, Budget};
use crate::expression::Failure;
use crate::expression::engine::{Compiled, Machine};
use crate::expression::meter::{Meter, count};
use crate::expression::value::{Text, Value};

/// Limits of the size of a compiled pattern in bytes; the work of compiling it, and what that takes of the bytes of a budget.
const SIZES: [(usize, u64, usize); 3] = [
    (16 << 10, 10_000, 64 << 10),
    (256 << 10, 400_000, 2 << 20),
    (1 << 20, 1_500_000, 6 << 20),
];

/// A literal pattern.
#[derive(Debug)]
pub(in crate::expression) struct Pattern {
    text: Text,
    compiled: Compiled,
}

/// A function that searches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::expression) enum Search {
    Matches,
    Find,
    FindAll,
}

pub(super) fn find(name: &str, on_target: bool, args: usize) -> Option<Function> {
    let search = Search::of(name, on_target, args + usize::from(on_target))?;
    Some(match search {
        Search::Matches => |meter, args| Search::Matches.compiled(meter, args),
        Search::Find => |meter, args| Search::Find.compiled(meter, args),
        Search::FindAll => |meter, args| Search::FindAll.compiled(meter, args),
    })
}

/// Compiles a literal pattern within a budget.
pub(in crate::expression) fn literal(text: &str, budget: &Budget) -> Pattern {
    Pattern {
        text: Text::new(text),
        compiled: compiled(text, |_, bytes| budget.spend(bytes)),
    }
}

/// Compiles a pattern with the smallest limit that it fits into; `allow` is called with the work and the bytes of each.
fn compiled(text: &str, mut allow: impl FnMut(u64, usize) -> bool) -> Compiled {
    let translated = match patterns::translated(text) {
        Ok(translated) => translated,
        Err(why) => return Compiled::Illegal(why),
    };
    for (size, work, bytes) in SIZES {
        if !allow(work, bytes) {
            break;
        }
        if let Some(machine) = Machine::new(&translated, size) {
            return Compiled::Ready(Box::new(machine));
        }
    }
    Compiled::TooLarge
}

/// Whether a pattern is found in a text.
fn is_in(meter: &mut Meter, machine: &Machine, text: &str) -> Result<bool, Failure> {
    // A byte whose state is known is a nanosecond.
    meter.work(count(text.len() / 4).saturating_add(4))?;
    match machine.is_in(text) {
        Some(found) => Ok(found),
        None => {
            visit_all(meter, machine, text.len())?;
            Ok(machine.is_in_by_all_states(text))
        }
    }
}

/// Charges a search that visits all states at each byte.
fn visit_all(meter: &mut Meter, machine: &Machine, bytes: usize) -> Result<(), Failure> {
    let states = machine.states();
    meter.work(count(bytes.saturating_mul(states).saturating_add(states)))
}

impl Search {
    /// The search that a function with this number of arguments, its target included, is.
    pub(in crate::expression) fn of(name: &str, on_target: bool, args: usize) -> Option<Self> {
        match (name, on_target, args) {
            ("matches", _, 2) => Some(Self::Matches),
            ("find", true, 2) => Some(Self::Find),
            ("findAll", true, 2 | 3) => Some(Self::FindAll),
            (_, _, _) => None,
        }
    }

    /// Searches for a literal pattern.
    ///
    /// # Errors
    /// The types of the arguments are wrong, the pattern is illegal, or the limit is exceeded.
    pub(in crate::expression) fn apply(
        self,
        meter: &mut Meter,
        pattern: &Pattern,
        args: &[Value],
    ) -> Outcome {
        let (text, most) = arguments(args)?;
        charge(meter, text, &pattern.text)?;
        self.searched(meter, &pattern.compiled, text, most)
    }

    /// Searches for a pattern that is compiled first.
    fn compiled(self, meter: &mut Meter, args: &[Value]) -> Outcome {
        let (text, most) = arguments(args)?;
        let Some(Value::Text(pattern)) = args.get(1) else {
            return Err(Failure::Overload);
        };
        charge(meter, text, pattern)?;
        meter.bytes(pattern.as_str().len().saturating_mul(64))?;
        // The patterns are taken out: the search charges the meter.
        let mut known = std::mem::take(&mut meter.patterns);
        if !known.contains_key(pattern.as_str()) {
            let made = compiled(pattern.as_str(), |work, _| meter.work(work).is_ok());
            known.insert(pattern.as_str().into(), made);
        }
        let outcome = match known.get(pattern.as_str()) {
            Some(compiled) => self.searched(meter, compiled, text, most),
            None => Err(Failure::Cost),
        };
        meter.patterns = known;
        outcome
    }

    fn searched(self, meter: &mut Meter, compiled: &Compiled, text: &Text, most: usize) -> Outcome {
        let machine = match compiled {
            Compiled::Ready(machine) => machine,
            Compiled::TooLarge => return Err(Failure::Cost),
            Compiled::Illegal(why) => {
                let prefix = match self {
                    Self::Matches => "",
                    Self::Find | Self::FindAll => "Illegal regex: ",
                };
                return Err(failed(format!("{prefix}error parsing regexp: {why}")));
            }
        };
        let text = text.as_str();
        if self == Self::Matches {
            return is_in(meter, machine, text).map(Value::Bool);
        }
        // Where a match begins is known only by a search of all states.
        visit_all(meter, machine, text.len())?;
        if self == Self::Find {
            let found = machine.find(text).next().unwrap_or_default();
            meter.allocate(found.len())?;
            return Ok(Value::text(found));
        }
        let mut found = Vec::new();
        let mut rest = text.len();
        for part in machine.find(text).take(most) {
            meter.allocate(part.len())?;
            found.push(Value::text(part));
            rest = rest.saturating_sub(part.len());
            // The next search may read the rest without finding more.
            visit_all(meter, machine, rest)?;
        }
        Ok(Value::list(found))
    }
}

/// The text and the most results, negative for no limit.
fn arguments(args: &[Value]) -> Result<(&Text, usize), Failure> {
    match args {
        [Value::Text(text), _] => Ok((text, usize::MAX)),
        [Value::Text(text), _, Value::Int(most)] => Ok((text, usize::try_from(*most).unwrap_or(usize::MAX))),
        _ => Err(Failure::Overload),
    }
}

fn charge(meter: &mut Meter, text: &Text, pattern: &Text) -> Result<(), Failure> {
    let text = count(text.chars()).saturating_add(1).div_ceil(10);
    meter.charge(text.saturating_mul(count(pattern.chars()).div_ceil(4)))
}

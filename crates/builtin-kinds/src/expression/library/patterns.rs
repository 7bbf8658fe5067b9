//! Regular expressions: `text.matches(pattern)`, `find`, `findAll`.
//!
//! A literal pattern is compiled when the expression is planned, others once for each evaluation. All have the syntax of Go and
//! a bounded size; a pattern beyond it, or one for which nothing is left of the budget of a definition, fails as if its cost
//! exceeded the limit.
//!
//! Source: apiserver `pkg/cel/library/regex.go`; costs: cel-go `interpreter/runtimecost.go`.

use regex::bytes::Regex;

use super::{Function, Outcome, failed};
use crate::crd::patterns::{self, Budget};
use crate::expression::Failure;
use crate::expression::meter::{Meter, count};
use crate::expression::value::{Text, Value};

/// Limits of the size of a compiled pattern in bytes, and the work of compiling one.
const SIZES: [(usize, u64); 3] = [(16 << 10, 20_000), (256 << 10, 400_000), (1 << 20, 2_000_000)];

/// Bytes of a pattern as compiled for each of which a byte that is searched is one unit of work. Engines that do not know the
/// next state of each byte visit all states.
const SIZE_PER_UNIT: usize = 2 << 10;

/// A pattern that may be compiled.
#[derive(Debug)]
pub(in crate::expression) enum Compiled {
    /// A pattern with the limit of its size.
    Ready(Regex, usize),
    TooLarge,
    /// With the error of Go.
    Illegal(String),
}

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
        compiled: compiled(text, |size, _| budget.spend(size)),
    }
}

/// Compiles a pattern with the smallest limit that it fits into; `allow` is called with each limit, and the work of it.
fn compiled(text: &str, mut allow: impl FnMut(usize, u64) -> bool) -> Compiled {
    for (size, work) in SIZES {
        if !allow(size, work) {
            break;
        }
        match patterns::compiled(text, size) {
            Ok(Some(pattern)) => return Compiled::Ready(pattern, size),
            Ok(None) => {}
            Err(why) => return Compiled::Illegal(why),
        }
    }
    Compiled::TooLarge
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
            let made = compiled(pattern.as_str(), |_, work| meter.work(work).is_ok());
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
        let (pattern, size) = match compiled {
            Compiled::Ready(pattern, size) => (pattern, *size),
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
        let pass = |meter: &mut Meter, bytes: usize| {
            meter.work(count(bytes.saturating_mul(size / SIZE_PER_UNIT) / 4))
        };
        pass(meter, text.len())?;
        match self {
            Self::Matches => Ok(Value::Bool(pattern.is_match(text.as_bytes()))),
            Self::Find => {
                let found = pattern.find(text.as_bytes()).map(|found| found.range());
                let found = found.and_then(|range| text.get(range)).unwrap_or_default();
                meter.allocate(found.len())?;
                Ok(Value::text(found))
            }
            Self::FindAll => {
                let mut all = Vec::new();
                let mut from = 0;
                for found in pattern.find_iter(text.as_bytes()).take(most) {
                    // Between the bytes of a character there is nothing in Go.
                    let Some(part) = text.get(found.range()) else {
                        continue;
                    };
                    // A search may read to the end without finding more.
                    meter.allocate(part.len())?;
                    pass(meter, found.end() - from)?;
                    from = found.end();
                    all.push(Value::text(part));
                }
                Ok(Value::list(all))
            }
        }
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

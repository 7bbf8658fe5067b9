//! Expressions in CEL: compiled once, evaluated with variables under a limit of their cost.
//!
//! The parser is that of the crate `cel`; the evaluation is here, because each operation charges its cost before it is done
//! (`meter`): values that share their parts (`value`), the plan of an expression (`plan`) and its evaluation (`eval`), operators
//! and functions (`operators`, `library`), the type checks that definitions need (`check`), and the errors of cel-go. It must
//! not know schemas or requests.
//!
//! Not supported: `includes` of lists (Kubernetes 1.37), protocol buffers, the zones of timestamps in their texts, hexadecimal
//! floating-point numbers in strings. A function that is not supported is an error when an expression is checked. Costs are those
//! of a server, but that operands of type `dyn` are charged as the types they have.
//!
//! Source: "Common Expression Language in Kubernetes"; apiserver `pkg/cel`.

use std::fmt::Write as _;
use std::sync::{Arc, LazyLock};

use cel::Env;
use cel::common::ast::SourceInfo;
use cel::parser::Expression as Tree;

use crate::crd::patterns;

pub mod check;
mod engine;
mod eval;
mod json;
mod library;
pub(crate) mod meter;
mod operators;
mod plan;
#[cfg(test)]
mod tests;
mod value;

pub(crate) use json::double;
pub use json::{check_constructed, to_json, untyped, with_format};
pub use library::authorization::Authorizer;
pub(crate) use library::url::is_absolute as is_absolute_url;
pub(crate) use meter::Meter;
pub use meter::{Budget, CALL_COST_MAX, CONDITIONS_COST_MAX, OBJECT_COST_MAX};
pub(crate) use value::{Key, Opaque};
pub use value::{List, Map, Struct, Text, Value};

/// Stack size for parsing, in bytes: each level of nesting is a call for each rule of the grammar.
const STACK_BYTES: usize = 64 << 20;

/// Maximum length of an expression, in bytes.
const SOURCE_MAX: usize = 32 << 10;

/// Maximum depth of a tree.
const LEVELS_MAX: usize = 250;

/// Reserved words of CEL, which no property or variable can have as its name.
pub(crate) const RESERVED: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// The parser, with the macros of all libraries.
static PARSER: LazyLock<Arc<Env>> = LazyLock::new(|| Arc::new(library::parser()));

/// A compiled expression.
#[derive(Debug)]
pub struct Expression {
    /// The expression as parsed.
    parsed: Tree,
    plan: plan::Plan,
    source: Source,
}

/// Result of an evaluation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Evaluated {
    /// `bool`.
    Bool(bool),
    /// `string`.
    Text(String),
    /// A value of another type.
    Other,
}

/// Error of an evaluation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// No overload of an operator or function for these types.
    Overload,
    /// The cost limit was exceeded.
    Cost,
    /// Any other error, with the message of cel-go.
    Error(String),
}

impl std::fmt::Display for Failure {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Overload => "no such overload",
            Self::Cost => "operation cancelled: actual cost limit exceeded",
            Self::Error(error) => error,
        })
    }
}

impl Expression {
    /// Parses an expression.
    ///
    /// # Errors
    /// Syntax errors, one paragraph each, as cel-go prints them.
    pub fn parse(source: &str) -> Result<Self, String> {
        Self::parse_within(source, &patterns::Budget::default())
    }

    /// Parses an expression whose literal patterns are compiled within a budget.
    ///
    /// # Errors
    /// As [`Expression::parse`].
    pub(crate) fn parse_within(source: &str, budget: &patterns::Budget) -> Result<Self, String> {
        if source.len() > SOURCE_MAX {
            return Err(format!("expression is longer than {SOURCE_MAX} bytes"));
        }
        let parsed = with_room(|| Self::parsed(source, budget));
        parsed.unwrap_or_else(|| Err("internal error: the parser failed".to_owned()))
    }

    fn parsed(source: &str, budget: &patterns::Budget) -> Result<Self, String> {
        let program = PARSER.compile(source).map_err(|errors| {
            let told = errors.errors.iter().map(|error| {
                let message = match error.msg.as_str() {
                    told if told.starts_with("Syntax error") => told.to_owned(),
                    other => format!("Syntax error: {other}"),
                };
                problem(source, line_and_column(error.pos), &message)
            });
            told.collect::<Vec<_>>().join("\n")
        })?;
        if check::depth(program.expression()) > LEVELS_MAX {
            return Err(format!("expression has more than {LEVELS_MAX} levels"));
        }
        let parsed = program.expression().clone();
        Ok(Self {
            plan: plan::Plan::new(&parsed, budget),
            source: Source::new(source, program.source_info(), &parsed),
            parsed,
        })
    }

    /// Returns whether it refers to this variable.
    pub fn uses(&self, variable: &str) -> bool {
        self.plan.names.iter().any(|name| name == variable)
    }

    /// Evaluates it with variables, and takes what that costs out of a budget.
    ///
    /// # Errors
    /// A [`Failure`].
    pub fn evaluate(&self, variables: &[(&str, Value)], budget: &mut Budget) -> Result<Evaluated, Failure> {
        let value = self.value(variables, budget)?;
        if let Value::Bool(truth) = value {
            return Ok(Evaluated::Bool(truth));
        }
        let text = value.as_text().map(|text| Evaluated::Text(text.to_owned()));
        Ok(text.unwrap_or(Evaluated::Other))
    }

    /// Like `evaluate`, with a result of any type.
    ///
    /// # Errors
    /// A [`Failure`].
    pub fn value(&self, variables: &[(&str, Value)], budget: &mut Budget) -> Result<Value, Failure> {
        let mut meter = Meter::default();
        let value = self.metered(variables, &mut meter);
        budget.take(&meter);
        value
    }

    /// Like `value`, with the meter of the evaluation.
    ///
    /// # Errors
    /// A [`Failure`].
    pub(crate) fn metered(&self, variables: &[(&str, Value)], meter: &mut Meter) -> Result<Value, Failure> {
        meter.begin()?;
        let find = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| value.clone())
        };
        eval::evaluate(&self.plan, find, meter)
    }
}

/// Runs a closure on a separate, large stack; `None`: it failed. Its result is the same as on the stack of the caller.
fn with_room<T: Send>(work: impl FnOnce() -> T + Send) -> Option<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
        thread.spawn_scoped(scope, work).ok()?.join().ok()
    })
}

/// Text of an expression, and the offsets of its parts.
#[derive(Debug)]
struct Source {
    text: String,
    starts: std::collections::BTreeMap<u64, usize>,
}

impl Source {
    fn new(text: &str, info: &SourceInfo, tree: &Tree) -> Self {
        let mut ids = Vec::new();
        check::ids(tree, &mut ids);
        let starts = ids.into_iter().filter_map(|id| {
            let (start, _) = info.offset_for(id)?;
            Some((id, start as usize))
        });
        Self {
            text: text.to_owned(),
            starts: starts.collect(),
        }
    }

    /// Returns the offset of a part, in characters.
    fn start(&self, id: u64) -> usize {
        self.starts.get(&id).copied().unwrap_or_default()
    }

    /// Returns line (from 1) and column (from 0) of a character.
    fn place(&self, offset: usize) -> (usize, usize) {
        let before: String = self.text.chars().take(offset).collect();
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().map_or(0, |last| last.chars().count());
        (line, column)
    }
}

/// Converts the position of a parser error, whose columns count from 1.
fn line_and_column((line, column): (isize, isize)) -> (usize, usize) {
    let number = |number: isize| usize::try_from(number).unwrap_or_default();
    (number(line).max(1), number(column).saturating_sub(1))
}

/// Formats an error in a source as cel-go prints it.
fn problem(source: &str, (line, column): (usize, usize), message: &str) -> String {
    let snippet = source.split('\n').nth(line - 1).unwrap_or_default();
    let mut told = format!("ERROR: <input>:{line}:{}: {message}", column + 1);
    let dots = ".".repeat(column);
    // Writing to a string cannot fail.
    let _ = write!(told, "\n | {snippet}\n | {dots}^");
    told
}

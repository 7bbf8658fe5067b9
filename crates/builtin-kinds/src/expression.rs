//! Expressions in CEL: compiled once, evaluated with variables under a budget.
//!
//! Parser and interpreter are those of the crate `cel`; here are the functions that Kubernetes adds (`library`), a limit of the
//! cost of an evaluation (`guard`), the type checks that definitions need (`check`), and the errors of cel-go. It must not know
//! schemas or requests.
//!
//! Source: "Common Expression Language in Kubernetes"; apiserver `pkg/cel`.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use cel::common::ast::SourceInfo;
use cel::common::types::{CelBool, CelString};
use cel::common::value::{CowVal, Val};
use cel::parser::Expression as Tree;
use cel::{Context, Env, ExecutionError, Value};

pub mod check;
mod fields;
mod guard;
mod library;
#[cfg(test)]
mod tests;
mod values;

pub use fields::Fields;
pub use library::authorization::Authorizer;
pub(crate) use library::url::is_absolute as is_absolute_url;
pub(crate) use values::double;
pub use values::{
    check_constructed, constructed, list, optional, text, to_items, to_json, untyped, with_format,
};

/// Value of a variable.
pub type Object = Box<dyn Val>;

/// Cost limit of one evaluation (`PerCallLimit`).
pub const CALL_COST_MAX: u64 = 1_000_000;

/// Cost limit of all evaluations for one object (`RuntimeCELCostBudget`).
pub const OBJECT_COST_MAX: u64 = 10_000_000;

/// Stack size for parsing, in bytes: each level of nesting is a call for each rule of the grammar.
const STACK_BYTES: usize = 64 << 20;

/// Maximum length of an expression, in bytes.
const SOURCE_MAX: usize = 32 << 10;

/// Maximum depth of a tree.
const LEVELS_MAX: usize = 250;

/// Maximum depth of a tree that is evaluated on the stack of the caller.
const SHALLOW: usize = 16;

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

/// Standard functions and those of Kubernetes.
static ENVIRONMENT: LazyLock<Arc<Env>> = LazyLock::new(|| Arc::new(library::environment()));

/// A compiled expression.
#[derive(Debug)]
pub struct Expression {
    /// The expression as parsed.
    parsed: Tree,
    /// The same with guards.
    guarded: Tree,
    source: Source,
    /// Whether its evaluation needs a separate stack.
    deep: bool,
}

/// Result of an evaluation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
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
        if source.len() > SOURCE_MAX {
            return Err(format!("expression is longer than {SOURCE_MAX} bytes"));
        }
        let parsed = with_room(|| Self::parsed(source));
        parsed.unwrap_or_else(|| Err("internal error: the parser failed".to_owned()))
    }

    fn parsed(source: &str) -> Result<Self, String> {
        let program = ENVIRONMENT.compile(source).map_err(|errors| {
            let told = errors.errors.iter().map(|error| {
                let message = match error.msg.as_str() {
                    told if told.starts_with("Syntax error") => told.to_owned(),
                    other => format!("Syntax error: {other}"),
                };
                problem(source, line_and_column(error.pos), &message)
            });
            told.collect::<Vec<_>>().join("\n")
        })?;
        let depth = check::depth(program.expression());
        if depth > LEVELS_MAX {
            return Err(format!("expression has more than {LEVELS_MAX} levels"));
        }
        let parsed = program.expression().clone();
        Ok(Self {
            guarded: guard::guarded(parsed.clone()),
            source: Source::new(source, program.source_info(), &parsed),
            deep: depth > SHALLOW,
            parsed,
        })
    }

    /// Returns whether it refers to this variable.
    pub fn uses(&self, variable: &str) -> bool {
        self.parsed.references().has_variable(variable)
    }

    /// Evaluates it. Adds the cost to `spent`; `size` is the approximate size of all variables in bytes.
    ///
    /// # Errors
    /// A [`Failure`].
    pub fn evaluate(
        &self,
        variables: impl IntoIterator<Item = (&'static str, Object)>,
        size: usize,
        spent: &mut u64,
    ) -> Result<Answer, Failure> {
        let value = self.value(variables, size, spent)?;
        if let Some(answer) = value.downcast_ref::<CelBool>() {
            return Ok(Answer::Bool(*answer.inner()));
        }
        let text = value.downcast_ref::<CelString>();
        Ok(text.map_or(Answer::Other, |text| Answer::Text(text.inner().to_owned())))
    }

    /// Like `evaluate`, with a result of any type.
    ///
    /// # Errors
    /// A [`Failure`].
    pub fn value(
        &self,
        variables: impl IntoIterator<Item = (&'static str, Object)>,
        size: usize,
        spent: &mut u64,
    ) -> Result<Object, Failure> {
        let mut context = Context::with_env(Arc::clone(&ENVIRONMENT));
        for (name, value) in variables {
            context.add_variable_as_val(name, value);
        }
        let cost = Arc::new(AtomicU64::new(1));
        guard::install(&mut context, &cost, size).map_err(|error| Failure::Error(error.to_string()))?;
        let resolve = || Value::resolve_val(&self.guarded, &context).map(CowVal::into_owned);
        let result = match self.deep {
            false => resolve(),
            true => with_room(resolve)
                .unwrap_or_else(|| Err(ExecutionError::InternalError("the interpreter failed".to_owned()))),
        };
        let cost = cost.load(Ordering::Relaxed);
        *spent = spent.saturating_add(cost);
        // An operator that ignores the operand that exceeded the limit hides the error.
        if cost > CALL_COST_MAX {
            return Err(Failure::Cost);
        }
        result.map_err(|error| failure(&error))
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

/// Returns the result type of a standard conversion of a string, as messages name it.
fn converted(function: &str) -> Option<&'static str> {
    Some(match function {
        "int" => "int",
        "uint" => "uint",
        "double" => "double",
        "bool" => "bool",
        "duration" => "google.protobuf.Duration",
        "timestamp" => "google.protobuf.Timestamp",
        _ => return None,
    })
}

/// Converts an error of the interpreter to the message of cel-go.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the errors of the interpreter are not all known"
)]
fn failure(error: &ExecutionError) -> Failure {
    Failure::Error(match error {
        ExecutionError::NoSuchKey(key) => format!("no such key: {key}"),
        ExecutionError::IndexOutOfBounds(Value::Int(index)) => format!("index out of bounds: {index}"),
        ExecutionError::DivisionByZero(_) => "division by zero".to_owned(),
        ExecutionError::RemainderByZero(_) => "modulus by zero".to_owned(),
        ExecutionError::Overflow(_, Value::UInt(_), _) => "unsigned integer overflow".to_owned(),
        ExecutionError::Overflow(_, _, _) => "integer overflow".to_owned(),
        ExecutionError::FunctionError { function, message } => match converted(function) {
            Some(to) => format!("type conversion error from 'string' to '{to}'"),
            None => message.clone(),
        },
        ExecutionError::UndeclaredReference(name) => format!("no such attribute(s): {name}"),
        ExecutionError::NoSuchOverload(_)
        | ExecutionError::UnexpectedType { .. }
        | ExecutionError::ValuesNotComparable(_, _)
        | ExecutionError::UnsupportedBinaryOperator(_, _, _)
        | ExecutionError::UnsupportedIndex(_, _)
        | ExecutionError::UnsupportedKeyType(_)
        | ExecutionError::UnsupportedTargetType { .. }
        | ExecutionError::NotSupportedAsMethod { .. } => return Failure::Overload,
        other => other.to_string(),
    })
}

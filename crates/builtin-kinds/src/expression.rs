//! Expressions in CEL: compiled once, evaluated with variables under a budget.
//!
//! Parser and interpreter are the crate `cel`'s; here are the functions that Kubernetes adds (`library`), a bound on what an
//! evaluation costs (`guard`), types of expressions as far as definitions need them (`check`), and the errors of cel-go. It must
//! not know schemas or requests.
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
pub(crate) use values::double;
pub use values::{list, optional, text, untyped, with_format};

/// A variable's value.
pub type Object = Box<dyn Val>;

/// Cost that one evaluation may have (`PerCallLimit`).
pub const CALL_COST_MAX: u64 = 1_000_000;

/// Cost that all evaluations for one object may have (`RuntimeCELCostBudget`).
pub const OBJECT_COST_MAX: u64 = 10_000_000;

/// Bytes of the stack that parsing needs: a grammar has many rules, and each is a call for each level of a text.
const STACK_BYTES: usize = 64 << 20;

/// Longest text of an expression, in bytes.
const SOURCE_MAX: usize = 32 << 10;

/// Most levels of a tree.
const LEVELS_MAX: usize = 250;

/// Levels of a tree that are evaluated on the stack of the caller.
const SHALLOW: usize = 16;

/// The standard functions and those of Kubernetes.
static ENVIRONMENT: LazyLock<Arc<Env>> = LazyLock::new(|| Arc::new(library::environment()));

/// A compiled expression.
#[derive(Debug)]
pub struct Expression {
    /// As it was written.
    parsed: Tree,
    /// The same with guards.
    guarded: Tree,
    source: Source,
    unsupported: Option<&'static str>,
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
    /// Of another type.
    Other,
}

/// Why an evaluation has no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// An operator or function does not take values of these types.
    Overload,
    /// It would cost more than one evaluation may.
    Cost,
    /// Any other error, in the words of cel-go.
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
            unsupported: unsupported(&parsed),
            deep: depth > SHALLOW,
            parsed,
        })
    }

    /// Does it refer to this variable?
    pub fn uses(&self, variable: &str) -> bool {
        self.parsed.references().has_variable(variable)
    }

    /// Returns what of Kubernetes' functions it uses that is not there; such an expression is taken, and true whatever it is
    /// about.
    pub fn unsupported(&self) -> Option<&'static str> {
        self.unsupported
    }

    /// Evaluates it. `spent` grows by what that cost; `size` is about how many bytes its variables have together.
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

    /// The same, with a result of any type.
    ///
    /// # Errors
    /// A [`Failure`].
    pub fn value(
        &self,
        variables: impl IntoIterator<Item = (&'static str, Object)>,
        size: usize,
        spent: &mut u64,
    ) -> Result<Object, Failure> {
        if self.unsupported.is_some() {
            return Ok(Box::new(CelBool::from(true)));
        }
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
        // An operator that does not need the value that was too expensive hides the error.
        if cost > CALL_COST_MAX {
            return Err(Failure::Cost);
        }
        result.map_err(|error| failure(&error))
    }
}

/// What a server's expressions have and these have not.
pub fn missing() -> std::collections::BTreeSet<&'static str> {
    let functions = library::MISSING_FUNCTIONS.iter().map(|(_, what)| *what);
    library::MISSING.into_iter().chain(functions).collect()
}

/// Does work that may need a deep stack; `None`: it failed. Its result is as if the caller had done it.
fn with_room<T: Send>(work: impl FnOnce() -> T + Send) -> Option<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
        thread.spawn_scoped(scope, work).ok()?.join().ok()
    })
}

fn unsupported(tree: &Tree) -> Option<&'static str> {
    let references = tree.references();
    let name = library::MISSING.iter().find(|name| references.has_variable(name));
    let mut functions = library::MISSING_FUNCTIONS.iter();
    let function = functions.find(|(name, _)| references.has_function(name));
    name.copied().or(function.map(|(_, what)| *what))
}

/// The text of an expression, and where its parts are.
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

    /// Where a part begins, in characters.
    fn start(&self, id: u64) -> usize {
        self.starts.get(&id).copied().unwrap_or_default()
    }

    /// Line from 1 and column from 0 of a character.
    fn place(&self, offset: usize) -> (usize, usize) {
        let before: String = self.text.chars().take(offset).collect();
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().map_or(0, |last| last.chars().count());
        (line, column)
    }
}

/// Parsers count columns from 1.
fn line_and_column((line, column): (isize, isize)) -> (usize, usize) {
    let number = |number: isize| usize::try_from(number).unwrap_or_default();
    (number(line).max(1), number(column).saturating_sub(1))
}

/// A problem of a source, as cel-go prints it.
fn problem(source: &str, (line, column): (usize, usize), message: &str) -> String {
    let snippet = source.split('\n').nth(line - 1).unwrap_or_default();
    let mut told = format!("ERROR: <input>:{line}:{}: {message}", column + 1);
    let dots = ".".repeat(column);
    // Writing into a text cannot fail.
    let _ = write!(told, "\n | {snippet}\n | {dots}^");
    told
}

/// The type that a standard conversion makes of a text, as messages name it.
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

/// An error of the interpreter in the words of cel-go.
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

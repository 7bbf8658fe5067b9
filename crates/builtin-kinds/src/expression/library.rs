//! Functions of expressions, each in the file of its library: the standard ones, those of cel-go's extensions that Kubernetes
//! has, and those of Kubernetes.
//!
//! A function charges its cost before it does anything, as a server counts it, and work for what that does not cover. Functions
//! that are not here are errors when an expression is checked.
//!
//! Source: cel-go `interpreter/runtimecost.go` and `ext`; apiserver `pkg/cel/library`, with its `cost.go`.

use cel::common::ast::Expr;
use cel::parser::Expression as Tree;
use cel::{Env, extensions};

use super::Failure;
use super::meter::Meter;
use super::value::Value;

mod addresses;
pub(super) mod authorization;
mod format;
mod lists;
mod optionals;
pub(super) mod pairs;
pub(super) mod patterns;
mod printf;
mod quantity;
mod semver;
mod sets;
mod standard;
mod strings;
mod time;
pub(super) mod url;

pub(super) use format::is_format;
pub(super) use standard::{key, shown, shown_double as double};
pub(super) use time::{duration, timestamp};

/// A function; its target is its first argument.
pub(super) type Function = fn(&mut Meter, &[Value]) -> Outcome;

/// Result of a function.
pub(super) type Outcome = Result<Value, Failure>;

/// Names of types, which are also values.
pub(super) const TYPES: [&str; 12] = [
    "bool",
    "bytes",
    "double",
    "dyn",
    "int",
    "list",
    "map",
    "null_type",
    "string",
    "type",
    "uint",
    "optional_type",
];

/// Conversions, which are folded if their argument is a constant.
pub(super) const CONVERSIONS: [&str; 10] = [
    "bool",
    "bytes",
    "double",
    "duration",
    "dyn",
    "int",
    "string",
    "timestamp",
    "type",
    "uint",
];

/// Returns the parser with the macros of all libraries.
///
/// # Panics
/// Never: the names of the macros are fixed, and a test makes one.
pub(super) fn parser() -> Env {
    let mut env = Env::stdlib();
    env.add_extension(extensions::lists)
        .expect("the extension is added once");
    pairs::declare(&mut env).expect("each macro is declared once");
    env
}

/// Returns the function of this name, called on a target or not, with this number of arguments besides.
pub(super) fn find(name: &str, on_target: bool, args: usize) -> Option<Function> {
    let libraries = [
        standard::find,
        time::find,
        strings::find,
        lists::find,
        optionals::find,
        patterns::find,
        quantity::find,
        addresses::find,
        url::find,
        semver::find,
        format::find,
        sets::find,
        authorization::find,
    ];
    libraries
        .iter()
        .find_map(|find: &fn(&str, bool, usize) -> Option<Function>| find(name, on_target, args))
}

/// Returns the name of a type that has a package.
pub(super) fn qualified_type(tree: &Tree) -> Option<&'static str> {
    let Expr::Select(select) = &tree.expr else {
        return None;
    };
    let Expr::Select(package) = &select.operand.expr else {
        return None;
    };
    let is_google = matches!(&package.operand.expr, Expr::Ident(name) if name == "google");
    match (is_google && package.field == "protobuf", select.field.as_str()) {
        (true, "Timestamp") => Some("google.protobuf.Timestamp"),
        (true, "Duration") => Some("google.protobuf.Duration"),
        (_, _) => None,
    }
}

/// Returns the error of a function.
fn failed(why: impl Into<String>) -> Failure {
    Failure::Error(why.into())
}

/// Makes `$rust` a value of a type of this name, which equals an equal value of it. In braces: more of what `Opaque` has.
macro_rules! opaque {
    ($rust:ident, $name:literal $(, { $($more:tt)* })?) => {
        impl $crate::expression::value::Opaque for $rust {
            fn type_name(&self) -> &str {
                $name
            }

            fn equals(&self, other: &dyn $crate::expression::value::Opaque) -> bool {
                other
                    .as_any()
                    .downcast_ref::<Self>()
                    .is_some_and(|other| self == other)
            }

            fn as_any(&self) -> &dyn std::any::Any {
                self
            }

            $($($more)*)?
        }
    };
}
use opaque;

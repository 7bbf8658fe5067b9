//! Functions of Kubernetes' CEL environment besides the standard ones: lists, regular expressions, and, each in a file,
//! quantities, addresses, URLs, formats, semantic versions and sets.
//!
//! Source: apiserver `pkg/cel/library`.

use std::cmp::Ordering;

use cel::common::traits::Iterable;
use cel::common::types::{CelBool, CelDouble, CelInt, CelList, CelString, DYN_TYPE, LIST_TYPE};
use cel::common::value::{CowVal, Val};
use cel::{Env, ExecutionError, extensions};
use regex::Regex;

mod addresses;
pub(super) mod authorization;
mod format;
pub(super) mod pairs;
mod quantity;
mod semver;
pub(super) mod sets;
pub(super) mod url;

pub(super) use format::is_format;

/// Returns the environment of all expressions.
///
/// # Panics
/// Never: names and signatures are fixed, and a test makes one.
pub(super) fn environment() -> Env {
    let mut env = Env::stdlib();
    for extension in [extensions::strings, extensions::lists] {
        env.add_extension(extension).expect("the extension is added once");
    }
    lists(&mut env).expect("each overload is declared once");
    patterns(&mut env).expect("each overload is declared once");
    quantity::declare(&mut env).expect("each overload is declared once");
    addresses::declare(&mut env).expect("each overload is declared once");
    url::declare(&mut env).expect("each overload is declared once");
    pairs::declare(&mut env).expect("each macro is declared once");
    semver::declare(&mut env).expect("each overload is declared once");
    authorization::declare(&mut env).expect("each overload is declared once");
    format::declare(&mut env).expect("each overload is declared once");
    cel::add_overload!(env, fn escape_key: (CelString) -> CelString, name = "jsonpatch.escapeKey")
        .expect("each overload is declared once");
    env
}

type Declared = Result<(), cel::DeclarationError>;
type Result_<'b, 'v> = Result<CowVal<'b, 'v>, ExecutionError>;

fn lists(env: &mut Env) -> Declared {
    env.add_member_overload("isSorted", "list.isSorted()", LIST_TYPE, vec![], is_sorted)?;
    env.add_member_overload("sum", "list.sum()", LIST_TYPE, vec![], sum)?;
    env.add_member_overload("min", "list.min()", LIST_TYPE, vec![], |args| {
        extreme(args, Ordering::Less, "min")
    })?;
    env.add_member_overload("max", "list.max()", LIST_TYPE, vec![], |args| {
        extreme(args, Ordering::Greater, "max")
    })?;
    env.add_member_overload(
        "indexOf",
        "list.indexOf(dyn)",
        LIST_TYPE,
        vec![DYN_TYPE],
        |args| {
            let found = positions(&args)?.first().copied();
            Ok(CowVal::owned(CelInt::from(found.unwrap_or(-1))))
        },
    )?;
    env.add_member_overload(
        "lastIndexOf",
        "list.lastIndexOf(dyn)",
        LIST_TYPE,
        vec![DYN_TYPE],
        |args| {
            let found = positions(&args)?.last().copied();
            Ok(CowVal::owned(CelInt::from(found.unwrap_or(-1))))
        },
    )
}

fn mismatch(function: &str) -> ExecutionError {
    ExecutionError::no_such_member_overload(function, Vec::new())
}

fn iterable<'b, 'v>(value: &'b (dyn Val + 'v)) -> Result<&'b (dyn Iterable + 'v), ExecutionError> {
    value.as_iterable().ok_or_else(|| mismatch("list"))
}

fn is_sorted<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Result_<'b, 'v> {
    let list = args.first().ok_or_else(|| mismatch("isSorted"))?;
    let mut items = iterable(list.as_ref())?.iter();
    let mut before = items.next();
    let mut sorted = true;
    while let Some(item) = items.next() {
        if let Some(before) = before {
            let comparer = before.as_comparer().ok_or_else(|| mismatch("isSorted"))?;
            sorted &= comparer.compare(item)? != Ordering::Greater;
        }
        before = Some(item);
    }
    Ok(CowVal::owned(CelBool::from(sorted)))
}

fn sum<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Result_<'b, 'v> {
    let list = args.first().ok_or_else(|| mismatch("sum"))?;
    let mut items = iterable(list.as_ref())?.iter();
    let mut total: Option<Box<dyn Val + 'v>> = None;
    while let Some(item) = items.next() {
        total = Some(match total {
            None => item.clone_as_boxed(),
            Some(total) => {
                let adder = total.as_adder().ok_or_else(|| mismatch("sum"))?;
                adder.add(item)?.into_owned()
            }
        });
    }
    Ok(CowVal::Owned(total.unwrap_or_else(|| Box::new(CelInt::from(0)))))
}

fn extreme<'b, 'v>(args: Vec<CowVal<'b, 'v>>, wanted: Ordering, function: &str) -> Result_<'b, 'v> {
    let list = args.first().ok_or_else(|| mismatch(function))?;
    let mut items = iterable(list.as_ref())?.iter();
    let Some(mut best) = items.next() else {
        let message = format!("{function} called on empty list");
        return Err(ExecutionError::function_error(function, message));
    };
    while let Some(item) = items.next() {
        let comparer = item.as_comparer().ok_or_else(|| mismatch(function))?;
        if comparer.compare(best)? == wanted {
            best = item;
        }
    }
    Ok(CowVal::Owned(best.clone_as_boxed()))
}

fn positions(args: &[CowVal<'_, '_>]) -> Result<Vec<i64>, ExecutionError> {
    let [list, wanted] = args else {
        return Err(mismatch("indexOf"));
    };
    let mut items = iterable(list.as_ref())?.iter();
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some(item) = items.next() {
        if item.equals(wanted.as_ref()) {
            found.push(at);
        }
        at += 1;
    }
    Ok(found)
}

/// A key as a part of a JSON pointer (RFC 6901).
fn escape_key(key: &CelString<'_>) -> CelString<'static> {
    key.inner().replace('~', "~0").replace('/', "~1").into()
}

fn patterns(env: &mut Env) -> Declared {
    cel::add_member_overload!(env, fn find: (CelString, CelString) -> Result<CelString>)?;
    cel::add_member_overload!(env, fn find_all: (CelString, CelString) -> Result<CelList>)?;
    cel::add_member_overload!(env, fn find_some: (CelString, CelString, CelInt) -> Result<CelList>, name = "findAll")
}

fn compiled(pattern: &CelString<'_>) -> Result<Regex, ExecutionError> {
    Regex::new(pattern.inner()).map_err(|error| {
        let message = format!("Illegal regex: {error}");
        ExecutionError::function_error("find", message)
    })
}

fn find(text: &CelString<'_>, pattern: &CelString<'_>) -> Result<CelString<'static>, ExecutionError> {
    let found = compiled(pattern)?
        .find(text.inner())
        .map(|found| found.as_str().to_owned());
    Ok(found.unwrap_or_default().into())
}

fn find_all(text: &CelString<'_>, pattern: &CelString<'_>) -> Result<CelList<'static>, ExecutionError> {
    find_some(text, pattern, &CelInt::from(-1))
}

fn find_some(
    text: &CelString<'_>,
    pattern: &CelString<'_>,
    most: &CelInt,
) -> Result<CelList<'static>, ExecutionError> {
    // A negative number means no limit.
    let most = usize::try_from(*most.inner()).unwrap_or(usize::MAX);
    let pattern = compiled(pattern)?;
    let found = pattern.find_iter(text.inner()).take(most);
    let found = found.map(|found| Box::new(CelString::from(found.as_str().to_owned())) as Box<dyn Val>);
    Ok(CelList::from(found.collect::<Vec<_>>()))
}

/// Returns the error of a conversion function, such as `quantity('x')`.
fn refused(function: &str, message: impl ToString) -> ExecutionError {
    ExecutionError::function_error(function, message)
}

/// Creates a `double`.
fn double(value: f64) -> CelDouble {
    CelDouble::from(value)
}

/// Declares a type with values of `$rust`, with equality and, if given, an order.
macro_rules! opaque {
    ($rust:ident, $name:literal, $static:ident) => {
        static $static: cel::common::types::Type = cel::common::types::Type::new_unspecified_type($name);

        impl cel::common::value::Val for $rust {
            fn get_type(&self) -> &cel::common::types::Type {
                &$static
            }

            fn cel_type() -> &'static cel::common::types::Type {
                &$static
            }

            fn equals(&self, other: &dyn cel::common::value::Val) -> bool {
                other
                    .downcast_ref::<Self>()
                    .is_some_and(|other| self == other)
            }

            fn clone_as_boxed<'v>(&self) -> Box<dyn cel::common::value::Val + 'v> {
                Box::new(self.clone())
            }

            fn as_any(&self) -> Option<&dyn std::any::Any> {
                Some(self)
            }
        }

        impl cel::common::value::StaticVal for $rust {}
    };
}
use opaque;

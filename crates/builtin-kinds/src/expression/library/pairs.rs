//! Comprehensions of two variables: `list.all(index, value, …)`, `map.exists(key, value, …)`, `list.transformList(i, v, …)`.
//!
//! The interpreter has those of one variable. A macro of two iterates over pairs, and binds each of its variables to a part of
//! the pair.
//!
//! Source: cel-go `ext/comprehensions.go`.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use cel::Env;
use cel::common::ast::{CallExpr, ComprehensionExpr, Expr, ListExpr, LiteralValue, operators};
use cel::common::types::{CelBool, CelInt, CelList, CelMap, CelMapKey, DYN_TYPE};
use cel::common::value::{CowVal, Val};
use cel::parser::{Expression as Tree, Macro, MacroExprHelper, ParseError};

use super::{Declared, Result_, iterable, mismatch, refused};

/// The function that makes pairs of a list or a map.
pub(in crate::expression) const PAIRS: &str = "@pairs";

/// The function that makes a map of entries: pairs of key and value, or maps.
pub(in crate::expression) const MAPPED: &str = "@mapped";

/// The variable that is a pair.
const PAIR: &str = "@pair";

/// The variable that the macros of the interpreter have for their result.
const RESULT: &str = "@result";

/// What a macro comes to.
#[derive(Clone, Copy)]
enum Sort {
    All,
    Exists,
    ExistsOne,
    List,
    /// A map: of the first variable to the body.
    Map,
    /// A map: of the entries of the body, which is a map.
    MapEntry,
}

pub(super) fn declare(env: &mut Env) -> Declared {
    env.add_overload(PAIRS, "@pairs(dyn)", vec![DYN_TYPE], pairs)?;
    env.add_overload(MAPPED, "@mapped(dyn)", vec![DYN_TYPE], mapped)?;
    let macros = [
        ("all", 3, Sort::All),
        ("exists", 3, Sort::Exists),
        ("existsOne", 3, Sort::ExistsOne),
        ("exists_one", 3, Sort::ExistsOne),
        ("transformList", 3, Sort::List),
        ("transformList", 4, Sort::List),
        ("transformMap", 3, Sort::Map),
        ("transformMap", 4, Sort::Map),
        ("transformMapEntry", 3, Sort::MapEntry),
        ("transformMapEntry", 4, Sort::MapEntry),
    ];
    for (name, arguments, sort) in macros {
        env.add_macro(Macro::receiver(name, arguments, move |helper, target, args| {
            let target = target.take();
            let args = std::mem::take(args);
            target
                .map(|target| expanded(helper, target, args, sort))
                .transpose()
        }))?;
    }
    Ok(())
}

/// The entries of a map, or the elements of a list with their positions.
fn pairs<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Result_<'b, 'v> {
    let range = args.first().ok_or_else(|| mismatch("all"))?;
    let mut items = iterable(range.as_ref())?.iter();
    // A list has elements by their positions too, but iterates over the elements.
    let entries = range
        .as_container()
        .filter(|_| range.downcast_ref::<CelList>().is_none());
    let mut made: Vec<Box<dyn Val + 'v>> = Vec::new();
    let mut at = 0_i64;
    while let Some(item) = items.next() {
        let (key, value): (Box<dyn Val + 'v>, Box<dyn Val + 'v>) = match entries {
            None => (Box::new(CelInt::from(at)), item.clone_as_boxed()),
            Some(_) => {
                let indexer = range.as_indexer().ok_or_else(|| mismatch("all"))?;
                (item.clone_as_boxed(), indexer.get(item)?.into_owned())
            }
        };
        at += 1;
        made.push(Box::new(CelList::from(vec![key, value])));
    }
    Ok(CowVal::owned(CelList::from(made)))
}

/// A map of entries, each of which is a pair or a map.
fn mapped<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Result_<'b, 'v> {
    let entries = args.first().ok_or_else(|| mismatch("transformMap"))?;
    let mut entries = iterable(entries.as_ref())?.iter();
    let mut made: HashMap<CelMapKey<'v>, Box<dyn Val + 'v>> = HashMap::new();
    let mut add =
        |key: Box<dyn Val + 'v>, value: Box<dyn Val + 'v>| match made.entry(CelMapKey::try_from(key)?) {
            Entry::Vacant(place) => {
                place.insert(value);
                Ok(())
            }
            Entry::Occupied(place) => {
                let key = match place.key() {
                    CelMapKey::String(key) => key.inner().to_owned(),
                    CelMapKey::Int(key) => key.inner().to_string(),
                    CelMapKey::UInt(key) => key.inner().to_string(),
                    CelMapKey::Bool(key) => key.inner().to_string(),
                };
                Err(refused(
                    "transformMap",
                    format!("insert failed: key {key} already exists"),
                ))
            }
        };
    while let Some(entry) = entries.next() {
        let indexer = entry.as_indexer().ok_or_else(|| mismatch("transformMap"))?;
        if entry.downcast_ref::<CelList>().is_some() {
            let part = |at: i64| indexer.get(&CelInt::from(at)).map(CowVal::into_owned);
            add(part(0)?, part(1)?)?;
            continue;
        }
        let mut keys = iterable(entry)?.iter();
        while let Some(key) = keys.next() {
            let value = indexer.get(key)?.into_owned();
            add(key.clone_as_boxed(), value)?;
        }
    }
    Ok(CowVal::owned(CelMap::from(made)))
}

fn expanded(
    helper: &mut MacroExprHelper<'_>,
    target: Tree,
    args: Vec<Tree>,
    sort: Sort,
) -> Result<Tree, ParseError> {
    let mut args = args.into_iter();
    let mut name = |helper: &mut MacroExprHelper<'_>| match args.next() {
        Some(Tree {
            expr: Expr::Ident(name),
            ..
        }) => Ok(name),
        other => {
            let id = other.map_or(0, |other| other.id);
            Err(helper.new_error(id, "argument must be a simple name".to_owned()))
        }
    };
    let names = [name(helper)?, name(helper)?];
    let mut rest: Vec<Tree> = args.collect();
    if matches!(sort, Sort::Map)
        && let Some(value) = rest.pop()
    {
        let key = ident(helper, &names[0]);
        rest.push(list(helper, vec![key, value]));
    }
    let bound: Vec<Tree> = rest.into_iter().map(|body| bind(helper, &names, body)).collect();
    let mut bound = bound.into_iter();
    let (first, second) = (bound.next(), bound.next());
    let first = first.unwrap_or_default();
    let accumulator = ident(helper, RESULT);
    let again = ident(helper, RESULT);
    let (init, going_on, step) = match sort {
        Sort::All => {
            let going_on = call(helper, operators::NOT_STRICTLY_FALSE, vec![again]);
            let step = call(helper, operators::LOGICAL_AND, vec![accumulator, first]);
            (literal(helper, true), going_on, step)
        }
        Sort::Exists => {
            let not = call(helper, operators::LOGICAL_NOT, vec![again]);
            let going_on = call(helper, operators::NOT_STRICTLY_FALSE, vec![not]);
            let step = call(helper, operators::LOGICAL_OR, vec![accumulator, first]);
            (literal(helper, false), going_on, step)
        }
        Sort::ExistsOne => {
            let one = number(helper, 1);
            let more = call(helper, operators::ADD, vec![accumulator, one]);
            let step = call(helper, operators::CONDITIONAL, vec![first, more, again]);
            (number(helper, 0), literal(helper, true), step)
        }
        Sort::List | Sort::Map | Sort::MapEntry => {
            let (condition, item) = match second {
                Some(item) => (Some(first), item),
                None => (None, first),
            };
            let item = list(helper, vec![item]);
            let added = call(helper, operators::ADD, vec![accumulator, item]);
            let step = match condition {
                None => added,
                Some(condition) => call(helper, operators::CONDITIONAL, vec![condition, added, again]),
            };
            (list(helper, Vec::new()), literal(helper, true), step)
        }
    };
    let result = ident(helper, RESULT);
    let result = match sort {
        Sort::All | Sort::Exists | Sort::List => result,
        Sort::ExistsOne => {
            let one = number(helper, 1);
            call(helper, operators::EQUALS, vec![result, one])
        }
        Sort::Map | Sort::MapEntry => call(helper, MAPPED, vec![result]),
    };
    let range = call(helper, PAIRS, vec![target]);
    Ok(comprehension(
        helper,
        (PAIR, range),
        (RESULT, init),
        (going_on, step),
        result,
    ))
}

/// `body` with the names as the parts of the pair.
fn bind(helper: &mut MacroExprHelper<'_>, names: &[String; 2], body: Tree) -> Tree {
    let mut bound = body;
    for (nth, name) in (0_i64..).zip(names) {
        let (pair, at) = (ident(helper, PAIR), number(helper, nth));
        let part = call(helper, operators::INDEX, vec![pair, at]);
        let (nothing, never) = (list(helper, Vec::new()), literal(helper, false));
        let same = ident(helper, name);
        bound = comprehension(helper, ("#unused", nothing), (name, part), (never, same), bound);
    }
    bound
}

fn comprehension(
    helper: &mut MacroExprHelper<'_>,
    (iter_var, iter_range): (&str, Tree),
    (accu_var, accu_init): (&str, Tree),
    (loop_cond, loop_step): (Tree, Tree),
    result: Tree,
) -> Tree {
    helper.next_expr(Expr::Comprehension(Box::new(ComprehensionExpr {
        iter_range,
        iter_var: iter_var.to_owned(),
        iter_var2: None,
        accu_var: accu_var.to_owned(),
        accu_init,
        loop_cond,
        loop_step,
        result,
    })))
}

fn ident(helper: &mut MacroExprHelper<'_>, name: &str) -> Tree {
    helper.next_expr(Expr::Ident(name.to_owned()))
}

fn literal(helper: &mut MacroExprHelper<'_>, truth: bool) -> Tree {
    helper.next_expr(Expr::Literal(LiteralValue::Boolean(CelBool::from(truth))))
}

fn number(helper: &mut MacroExprHelper<'_>, number: i64) -> Tree {
    helper.next_expr(Expr::Literal(LiteralValue::Int(CelInt::from(number))))
}

fn list(helper: &mut MacroExprHelper<'_>, items: Vec<Tree>) -> Tree {
    helper.next_expr(Expr::List(ListExpr::new(items)))
}

fn call(helper: &mut MacroExprHelper<'_>, function: &str, args: Vec<Tree>) -> Tree {
    helper.next_expr(Expr::Call(CallExpr {
        func_name: function.to_owned(),
        target: None,
        args,
    }))
}

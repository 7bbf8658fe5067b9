//! Comprehensions of two variables: `list.all(index, value, …)`, `map.exists(key, value, …)`, `list.transformList(i, v, …)`.
//!
//! Source: cel-go `ext/comprehensions.go`.

use cel::common::ast::{CallExpr, ComprehensionExpr, Expr, ListExpr, LiteralValue, MapExpr, operators};
use cel::common::types::{CelBool, CelInt};
use cel::parser::{Expression as Tree, Macro, MacroExprHelper, ParseError};
use cel::{DeclarationError, Env};

/// The function that inserts entries into a map: a key and a value, or a map.
pub(in crate::expression) const INSERT: &str = "cel.@mapInsert";

/// The variable that the macros of the parser have for their result.
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

/// Declares the macros.
///
/// # Errors
/// One of them is declared already.
pub(in crate::expression) fn declare(env: &mut Env) -> Result<(), DeclarationError> {
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
    let rest: Vec<Tree> = args.collect();
    let mut bodies = rest.into_iter();
    let (first, second) = (bodies.next(), bodies.next());
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
            let (condition, body) = match second {
                Some(body) => (Some(first), body),
                None => (None, first),
            };
            let (init, added) = match sort {
                Sort::Map => {
                    let key = ident(helper, &names[0]);
                    (map(helper), call(helper, INSERT, vec![accumulator, key, body]))
                }
                Sort::MapEntry => (map(helper), call(helper, INSERT, vec![accumulator, body])),
                Sort::All | Sort::Exists | Sort::ExistsOne | Sort::List => {
                    let item = list(helper, vec![body]);
                    (
                        list(helper, Vec::new()),
                        call(helper, operators::ADD, vec![accumulator, item]),
                    )
                }
            };
            let step = match condition {
                None => added,
                Some(condition) => call(helper, operators::CONDITIONAL, vec![condition, added, again]),
            };
            (init, literal(helper, true), step)
        }
    };
    let result = ident(helper, RESULT);
    let result = match sort {
        Sort::ExistsOne => {
            let one = number(helper, 1);
            call(helper, operators::EQUALS, vec![result, one])
        }
        Sort::All | Sort::Exists | Sort::List | Sort::Map | Sort::MapEntry => result,
    };
    let [iter_var, second_var] = names;
    Ok(helper.next_expr(Expr::Comprehension(Box::new(ComprehensionExpr {
        iter_range: target,
        iter_var,
        iter_var2: Some(second_var),
        accu_var: RESULT.to_owned(),
        accu_init: init,
        loop_cond: going_on,
        loop_step: step,
        result,
    }))))
}

fn map(helper: &mut MacroExprHelper<'_>) -> Tree {
    helper.next_expr(Expr::Map(MapExpr::default()))
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

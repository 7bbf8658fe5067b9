//! Cost limit of evaluations. The interpreter has none, and an expression of a few bytes can take years.
//!
//! The tree is rewritten before it is evaluated: the cost of a macro is charged before it iterates, and functions that return
//! longer strings limit their length. Costs are close to those of cel-go, not equal: a node in the body of a loop is one unit
//! for each element, even if the loop ends early.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, LiteralValue, operators};
use cel::common::types::{CelBool, CelInt, CelOptional, CelString, CelStruct};
use cel::common::value::{CowVal, Val};
use cel::parser::Expression as Tree;
use cel::{Context, DeclarationError, ExecutionError, FunctionContext};

use super::CALL_COST_MAX;
use super::library::sets;

/// Maximum length of a string that an expression creates, in bytes.
const TEXT_MAX: usize = 256 << 10;

/// Bytes of variables that add one unit of cost for each element of a loop.
const BYTES_PER_UNIT: usize = 4096;

/// Cost of a regular expression, which is compiled at each use.
const PATTERN: i64 = 100;

const ITERATE: &str = "@iterate";
const SIZED: &str = "@sized";
const REPLACE: &str = "@replace";
const JOIN: &str = "@join";
const CONSTRUCT: &str = "@construct";
const SETS: &str = "@sets";
const CHECK: &str = "@check";
const DISTINCT: &str = "@distinct";

/// Cost of an authorization check.
const CHECK_COST: u64 = 350_000;

/// Function type of contexts.
type Function = Box<
    dyn for<'context, 'call> Fn(
            &mut FunctionContext<'context, 'call>,
        ) -> Result<CowVal<'context, 'call>, ExecutionError>
        + Send
        + Sync,
>;

/// Returns the tree with guards.
pub(super) fn guarded(mut tree: Tree) -> Tree {
    rewrite(&mut tree);
    tree
}

/// Declares the functions that guards call.
pub(super) fn install(
    context: &mut Context<'_, '_>,
    cost: &Arc<AtomicU64>,
    size: usize,
) -> Result<(), DeclarationError> {
    let [cost, of_sets, of_checks, of_lists] = std::array::from_fn(|_| Arc::clone(cost));
    let surcharge = u64::try_from(size / BYTES_PER_UNIT).unwrap_or(u64::MAX);
    let iterate: Function = Box::new(move |call| {
        let weight = call.args.pop();
        let weight = weight.and_then(|weight| weight.downcast_ref::<CelInt>().map(|units| *units.inner()));
        let range = call.args.pop().ok_or(ExecutionError::MissingArgumentOrTarget)?;
        let units = u64::try_from(weight.unwrap_or(1))
            .unwrap_or(1)
            .saturating_add(surcharge);
        let spent = cost.fetch_add(units.saturating_mul(count(range.as_ref())), Ordering::Relaxed);
        match spent.saturating_add(units.saturating_mul(count(range.as_ref()))) {
            spent if spent > CALL_COST_MAX => Err(too_expensive()),
            _ => Ok(range),
        }
    });
    let sized: Function = Box::new(|call| {
        let value = call.args.pop().ok_or(ExecutionError::MissingArgumentOrTarget)?;
        match value.downcast_ref::<CelString>() {
            Some(text) if text.inner().len() > TEXT_MAX => Err(too_expensive()),
            Some(_) | None => Ok(value),
        }
    });
    let compare: Function = Box::new(move |call| {
        let [name, one, other] = call.args.as_slice() else {
            return Err(ExecutionError::MissingArgumentOrTarget);
        };
        // Each element of the one may be compared with each of the other, for equivalence twice.
        let units = count(one.as_ref())
            .saturating_mul(count(other.as_ref()))
            .saturating_mul(2);
        let spent = of_sets.fetch_add(units, Ordering::Relaxed);
        if spent.saturating_add(units) > CALL_COST_MAX {
            return Err(too_expensive());
        }
        let name = name.downcast_ref::<CelString>().map(CelString::inner);
        let answer = sets::decide(name.unwrap_or_default(), one.as_ref(), other.as_ref())?;
        Ok(CowVal::owned(CelBool::from(answer)))
    });
    let check: Function = Box::new(move |call| {
        let value = call.args.pop().ok_or(ExecutionError::MissingArgumentOrTarget)?;
        let spent = of_checks.fetch_add(CHECK_COST, Ordering::Relaxed);
        match spent.saturating_add(CHECK_COST) > CALL_COST_MAX {
            true => Err(too_expensive()),
            false => Ok(value),
        }
    });
    context.add_function(SETS, compare)?;
    context.add_function(CHECK, check)?;
    // Each element is compared with all before it.
    let distinct: Function = Box::new(move |call| {
        let list = call.args.pop().ok_or(ExecutionError::MissingArgumentOrTarget)?;
        let units = count(list.as_ref()).saturating_pow(2);
        let spent = of_lists.fetch_add(units, Ordering::Relaxed);
        match spent.saturating_add(units) > CALL_COST_MAX {
            true => Err(too_expensive()),
            false => Ok(list),
        }
    });
    context.add_function(DISTINCT, distinct)?;
    context.add_function(ITERATE, iterate)?;
    context.add_function(SIZED, sized)?;
    context.add_function(REPLACE, Box::new(replace) as Function)?;
    context.add_function(JOIN, Box::new(join) as Function)?;
    context.add_function(CONSTRUCT, Box::new(construct) as Function)
}

fn too_expensive() -> ExecutionError {
    ExecutionError::function_error("", "operation cancelled: actual cost limit exceeded")
}

/// Returns the number of elements of a list, or of entries of a map.
fn count(range: &dyn Val) -> u64 {
    let count = range.as_sizer().map_or(0, |sizer| *sizer.size().inner());
    u64::try_from(count).unwrap_or_default()
}

/// `TEXT.replace(FROM, TO)` and `TEXT.replace(FROM, TO, COUNT)`.
fn replace<'c, 'v>(call: &mut FunctionContext<'c, 'v>) -> Result<CowVal<'c, 'v>, ExecutionError> {
    let mismatch = || ExecutionError::no_such_member_overload("replace", Vec::new());
    let text = |at: usize| {
        let value = call.args.get(at).ok_or_else(mismatch)?;
        let text = value.downcast_ref::<CelString>().ok_or_else(mismatch)?;
        Ok::<_, ExecutionError>(text.inner().to_owned())
    };
    let (text, from, to) = (text(0)?, text(1)?, text(2)?);
    let most = match call.args.get(3) {
        None => usize::MAX,
        Some(most) => {
            let most = *most.downcast_ref::<CelInt>().ok_or_else(mismatch)?.inner();
            // A negative number means no limit.
            usize::try_from(most).unwrap_or(usize::MAX)
        }
    };
    let found = text.matches(from.as_str()).count().min(most);
    if found.saturating_mul(to.len()).saturating_add(text.len()) > TEXT_MAX {
        return Err(too_expensive());
    }
    Ok(CowVal::owned(CelString::from(text.replacen(&from, &to, most))))
}

/// `LIST.join()` and `LIST.join(SEPARATOR)`.
fn join<'c, 'v>(call: &mut FunctionContext<'c, 'v>) -> Result<CowVal<'c, 'v>, ExecutionError> {
    let mismatch = || ExecutionError::no_such_member_overload("join", Vec::new());
    let list = call.args.first().ok_or_else(mismatch)?;
    let mut items = list.as_iterable().ok_or_else(mismatch)?.iter();
    let separator = match call.args.get(1) {
        None => "",
        Some(separator) => separator
            .downcast_ref::<CelString>()
            .ok_or_else(mismatch)?
            .inner(),
    };
    let mut joined = String::new();
    let mut first = true;
    while let Some(item) = items.next() {
        let item = item.downcast_ref::<CelString>().ok_or_else(mismatch)?;
        if !std::mem::take(&mut first) {
            joined.push_str(separator);
        }
        joined.push_str(item.inner());
        if joined.len() > TEXT_MAX {
            return Err(too_expensive());
        }
    }
    Ok(CowVal::owned(CelString::from(joined)))
}

/// A value of a type that is not declared: its name, then the name of each field and its value. A field with `?` is there if
/// its value is.
fn construct<'c, 'v>(call: &mut FunctionContext<'c, 'v>) -> Result<CowVal<'c, 'v>, ExecutionError> {
    let mut args = std::mem::take(&mut call.args).into_iter();
    let name = |arg: Option<CowVal<'c, 'v>>| {
        let arg = arg.ok_or(ExecutionError::MissingArgumentOrTarget)?;
        let text = arg
            .downcast_ref::<CelString>()
            .map(|text| text.inner().to_owned());
        text.ok_or(ExecutionError::MissingArgumentOrTarget)
    };
    let mut made = CelStruct::new(name(args.next())?);
    while let Some(field) = args.next() {
        let field = name(Some(field))?;
        let value = args.next().ok_or(ExecutionError::MissingArgumentOrTarget)?;
        let Some(field) = field.strip_prefix('?') else {
            made.add_field_value(field, value);
            continue;
        };
        let optional = value.downcast_ref::<CelOptional>().and_then(CelOptional::option);
        if let Some(value) = optional {
            made.add_field_value(field.to_owned(), CowVal::Owned(value.clone_as_boxed()));
        }
    }
    Ok(CowVal::Owned(Box::new(made)))
}

fn rewrite(tree: &mut Tree) {
    match &mut tree.expr {
        Expr::Call(call) => {
            call.target.iter_mut().for_each(|target| rewrite(target));
            call.args.iter_mut().for_each(rewrite);
            rewrite_call(tree);
        }
        Expr::Comprehension(loops) => {
            let weight = nodes(&loops.loop_step).saturating_add(nodes(&loops.loop_cond));
            for part in [
                &mut loops.iter_range,
                &mut loops.accu_init,
                &mut loops.loop_cond,
                &mut loops.loop_step,
                &mut loops.result,
            ] {
                rewrite(part);
            }
            let range = std::mem::take(&mut loops.iter_range);
            let weight = Tree {
                id: range.id,
                expr: Expr::Literal(LiteralValue::Int(CelInt::from(weight))),
            };
            loops.iter_range = called(ITERATE, range.id, vec![range, weight]);
        }
        Expr::List(list) => list.elements.iter_mut().for_each(rewrite),
        Expr::Map(map) => map
            .entries
            .iter_mut()
            .for_each(|entry| rewrite_entry(&mut entry.expr)),
        Expr::Struct(fields) => {
            fields
                .entries
                .iter_mut()
                .for_each(|entry| rewrite_entry(&mut entry.expr));
            rewrite_struct(tree);
        }
        Expr::Select(select) => rewrite(&mut select.operand),
        Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => {}
    }
}

/// The interpreter knows the fields of declared types only; here a type is a name, and its fields are those that are given.
fn rewrite_struct(tree: &mut Tree) {
    let id = tree.id;
    let Expr::Struct(made) = &mut tree.expr else {
        return;
    };
    let mut args = vec![literal(id, std::mem::take(&mut made.type_name))];
    for entry in std::mem::take(&mut made.entries) {
        if let EntryExpr::StructField(field) = entry.expr {
            let mark = if field.optional { "?" } else { "" };
            args.extend([literal(id, format!("{mark}{}", field.field)), field.value]);
        }
    }
    *tree = called(CONSTRUCT, id, args);
}

fn rewrite_entry(entry: &mut EntryExpr) {
    match entry {
        EntryExpr::StructField(field) => rewrite(&mut field.value),
        EntryExpr::MapEntry(entry) => {
            rewrite(&mut entry.key);
            rewrite(&mut entry.value);
        }
    }
}

fn rewrite_call(tree: &mut Tree) {
    let Expr::Call(call) = &mut tree.expr else { return };
    let id = tree.id;
    match (call.func_name.as_str(), &mut call.target, call.args.len()) {
        // The map of the interpreter cannot be compared with ours; ours can be compared with both.
        (operators::EQUALS | operators::NOT_EQUALS, None, 2) if matches!(call.args[0].expr, Expr::Map(_)) => {
            call.args.reverse();
        }
        // Macros add elements to their result in this way, one at a time.
        (operators::ADD, None, 2) if is_accumulator(&call.args[0]) => {}
        (operators::ADD, None, 2) | ("format", Some(_), 1) => {
            let inner = std::mem::take(tree);
            *tree = called(SIZED, id, vec![inner]);
        }
        ("distinct", Some(target), 0) => {
            let list = std::mem::take(&mut **target);
            **target = called(DISTINCT, id, vec![list]);
        }
        ("check", Some(_), 1) => {
            let inner = std::mem::take(tree);
            *tree = called(CHECK, id, vec![inner]);
        }
        (name, Some(target), 2) if is_ident(target, "sets") && sets::NAMES.contains(&name) => {
            let args = std::iter::once(literal(id, name.to_owned())).chain(std::mem::take(&mut call.args));
            *tree = called(SETS, id, args.collect());
        }
        (name @ ("replace" | "join"), target @ Some(_), _) => {
            let own = if name == "replace" { REPLACE } else { JOIN };
            let mut args: Vec<Tree> = target.take().map(|target| *target).into_iter().collect();
            args.append(&mut call.args);
            *tree = called(own, id, args);
        }
        (_, _, _) => {}
    }
}

fn literal(id: u64, text: String) -> Tree {
    Tree {
        id,
        expr: Expr::Literal(LiteralValue::String(CelString::from(text))),
    }
}

fn is_ident(tree: &Tree, wanted: &str) -> bool {
    matches!(&tree.expr, Expr::Ident(name) if name == wanted)
}

fn is_accumulator(tree: &Tree) -> bool {
    matches!(&tree.expr, Expr::Ident(name) if name.starts_with('@'))
}

fn called(function: &str, id: u64, args: Vec<Tree>) -> Tree {
    Tree {
        id,
        expr: Expr::Call(CallExpr {
            func_name: function.to_owned(),
            target: None,
            args,
        }),
    }
}

/// Returns the number of nodes in the body of a loop that have a cost: names, fields and calls. Nested loops are charged
/// separately.
fn nodes(tree: &Tree) -> i64 {
    match &tree.expr {
        Expr::Call(call) => {
            let target = call.target.iter().map(|target| nodes(target)).sum::<i64>();
            let own = match call.func_name.as_str() {
                "matches" | "find" | "findAll" => PATTERN,
                _ => 1,
            };
            own + target + call.args.iter().map(nodes).sum::<i64>()
        }
        Expr::Comprehension(loops) if binds(loops) => nodes(&loops.accu_init) + nodes(&loops.result),
        Expr::Comprehension(loops) => 1 + nodes(&loops.iter_range),
        Expr::List(list) => 1 + list.elements.iter().map(nodes).sum::<i64>(),
        Expr::Select(select) => 1 + nodes(&select.operand),
        Expr::Ident(_) | Expr::Map(_) | Expr::Struct(_) => 1,
        Expr::Literal(_) | Expr::Unspecified => 0,
    }
}

/// Whether a loop has no range: it binds a name for its result.
fn binds(loops: &ComprehensionExpr) -> bool {
    matches!(&loops.iter_range.expr, Expr::List(range) if range.elements.is_empty())
}

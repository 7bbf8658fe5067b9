//! Evaluation of a plan: each node charges its cost before it does anything.
//!
//! `&&` and `||` ignore the error of one operand if the other decides; nothing ignores that the limit is exceeded.
//!
//! Source: cel-go `interpreter/interpretable.go`, `interpreter/attributes.go`.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "operations name the types that they have; a new type has none"
)]

use std::sync::Arc;

use super::Failure;
use super::library;
use super::meter::Meter;
use super::plan::{Bind, Element, Loop, Node, Plan};
use super::value::{Key, List, Map, Struct, Text, Value};

/// Cost of a list, a map and an object beside its parts (`common/cost.go`).
const LIST_COST: u64 = 10;
const MAP_COST: u64 = 30;
const STRUCT_COST: u64 = 40;

type Outcome = Result<Value, Failure>;

/// Evaluates a plan; `find` returns the value of a variable.
///
/// # Errors
/// A [`Failure`].
pub(super) fn evaluate(
    plan: &Plan,
    mut find: impl FnMut(&str) -> Option<Value>,
    meter: &mut Meter,
) -> Outcome {
    let variables: Vec<Option<Value>> = plan.names.iter().map(|name| find(name)).collect();
    let mut evaluation = Evaluation {
        plan,
        variables,
        locals: vec![Ok(Value::Null); plan.locals],
        meter,
    };
    evaluation.value(&plan.root)
}

struct Evaluation<'a> {
    plan: &'a Plan,
    variables: Vec<Option<Value>>,
    /// Local variables; an accumulator can be an error, which a later step decides otherwise.
    locals: Vec<Outcome>,
    meter: &'a mut Meter,
}

impl Evaluation<'_> {
    fn value(&mut self, node: &Node) -> Outcome {
        match node {
            Node::Constant(value) => {
                self.meter.work(1)?;
                Ok(value.clone())
            }
            Node::Variable { nth, cost } => {
                self.meter.charge(*cost)?;
                self.variable(*nth)
            }
            Node::Local { slot, cost } => {
                self.meter.charge(*cost)?;
                self.locals[*slot].clone()
            }
            _ => {
                self.meter.work(1)?;
                self.meter.enter()?;
                let outcome = self.composed(node);
                self.meter.leave();
                outcome
            }
        }
    }

    fn composed(&mut self, node: &Node) -> Outcome {
        match node {
            Node::Constant(_) | Node::Variable { .. } | Node::Local { .. } => self.value(node),
            Node::Field {
                of,
                name,
                optional,
                cost,
            } => self.field(of, name, *optional, *cost),
            Node::Has { of, name, cost } => self.has(of, name, *cost),
            Node::Index {
                of,
                at,
                optional,
                cost,
            } => self.index(of, at, *optional, *cost),
            Node::Logical { ends_at, terms } => self.logical(*ends_at, terms),
            Node::Not(of) => {
                let value = self.value(of);
                self.meter.charge(1)?;
                match value? {
                    Value::Bool(truth) => Ok(Value::Bool(!truth)),
                    _ => Err(Failure::Overload),
                }
            }
            Node::NotStrictlyFalse(of) => {
                self.meter.charge(1)?;
                match self.value(of) {
                    Ok(Value::Bool(truth)) => Ok(Value::Bool(truth)),
                    Err(Failure::Cost) => Err(Failure::Cost),
                    Ok(_) | Err(_) => Ok(Value::Bool(true)),
                }
            }
            Node::Negate(of) => {
                let value = self.value(of);
                self.meter.charge(1)?;
                negated(&value?)
            }
            Node::Conditional(parts) => {
                let [condition, one, other] = &**parts;
                match self.value(condition)? {
                    Value::Bool(true) => self.value(one),
                    Value::Bool(false) => self.value(other),
                    _ => Err(Failure::Overload),
                }
            }
            Node::Operator(operator, operands) => {
                let [one, other] = &**operands;
                match (self.value(one), self.value(other)) {
                    (Ok(one), Ok(other)) => operator.apply(self.meter, &one, &other),
                    // An error is charged as the operation with it.
                    (Err(failure), _) | (_, Err(failure)) => {
                        self.meter.charge(1)?;
                        Err(failure)
                    }
                }
            }
            Node::Otherwise { is_value, operands } => self.otherwise(*is_value, operands),
            Node::Member { item, set } => {
                let item = self.value(item)?;
                let Some(key) = Key::equal_to(&item) else {
                    return Ok(Value::Bool(false));
                };
                key.charge(self.meter)?;
                Ok(Value::Bool(set.contains(&key)))
            }
            Node::Call { function, args } => self.call(*function, args),
            Node::Search {
                search,
                pattern,
                args,
            } => {
                let args = self.arguments(args)?;
                search.apply(self.meter, pattern, &args)
            }
            Node::List(elements) => self.list(elements),
            Node::Map(entries) => self.map(entries),
            Node::Struct { name, fields } => self.made(name, fields),
            Node::Bind(bind) => self.bind(bind),
            Node::Loop(loops) => self.comprehension(loops),
            Node::Append { slot, item } => self.append(*slot, item),
            Node::Insert { slot, entry, value } => self.insert(*slot, entry, value.as_deref()),
            Node::Undeclared(name) => Err(Failure::Error(format!("no such attribute(s): {name}"))),
        }
    }

    fn variable(&self, nth: usize) -> Outcome {
        let value = self.variables[nth].clone();
        value.ok_or_else(|| Failure::Error(format!("no such attribute(s): {}", self.plan.names[nth])))
    }

    #[inline(never)]
    fn field(&mut self, of: &Node, name: &Text, optional: bool, cost: u64) -> Outcome {
        let of = self.value(of)?;
        let (of, chained) = match of {
            Value::Optional(None) => return Ok(Value::Optional(None)),
            Value::Optional(Some(of)) => ((*of).clone(), true),
            of => (of, false),
        };
        let found = self.found(&of, name)?;
        if optional || chained {
            self.meter.charge(cost - u64::from(found.is_none()))?;
            return Ok(Value::optional(found));
        }
        self.meter.charge(cost)?;
        found.ok_or_else(|| no_such_key(name.as_str()))
    }

    /// Returns the field of a value; `None`: it is not there.
    fn found(&mut self, of: &Value, name: &Text) -> Result<Option<Value>, Failure> {
        match of {
            Value::Map(map) => {
                self.meter.bytes(name.as_str().len())?;
                Ok(map.entries().get(&Key::Text(name.clone())).cloned())
            }
            Value::Struct(made) => Ok(made.field(name.as_str()).cloned()),
            Value::Opaque(value) => match value.field(name.as_str(), self.meter) {
                Some(value) => value.map(Some),
                None => Ok(None),
            },
            Value::List(_) => Err(unsupported_index("string")),
            // Other values have no fields.
            _ => Ok(None),
        }
    }

    #[inline(never)]
    fn has(&mut self, of: &Node, name: &Text, cost: u64) -> Outcome {
        let of = self.value(of)?;
        self.meter.charge(cost)?;
        let of = match of {
            Value::Optional(None) => return Ok(Value::Bool(false)),
            Value::Optional(Some(of)) => (*of).clone(),
            of => of,
        };
        let found = self.found(&of, name)?;
        Ok(Value::Bool(found.is_some()))
    }

    #[inline(never)]
    fn index(&mut self, of: &Node, at: &Node, optional: bool, cost: u64) -> Outcome {
        let of = self.value(of)?;
        let at = self.value(at)?;
        let (of, chained) = match of {
            Value::Optional(None) => return Ok(Value::Optional(None)),
            Value::Optional(Some(of)) => ((*of).clone(), true),
            of => (of, false),
        };
        let found = self.element(&of, &at);
        match (found, optional || chained) {
            (Ok(value), false) => {
                self.meter.charge(cost)?;
                Ok(value)
            }
            (Ok(value), true) => {
                self.meter.charge(cost)?;
                Ok(Value::optional(Some(value)))
            }
            (Err(Failure::Error(_)), true) => {
                self.meter.charge(cost - 1)?;
                Ok(Value::Optional(None))
            }
            (Err(failure), _) => Err(failure),
        }
    }

    fn element(&mut self, of: &Value, at: &Value) -> Outcome {
        match of {
            Value::List(list) => {
                let index = match (Key::equal_to(at), at) {
                    (Some(Key::Int(index)), _) => index,
                    (Some(Key::Uint(index)), _) => i64::try_from(index).unwrap_or(i64::MAX),
                    (_, Value::Double(number)) => {
                        let number = library::double(*number);
                        return Err(Failure::Error(format!(
                            "unsupported index value {number} in list"
                        )));
                    }
                    (_, other) => return Err(unsupported_index(other.type_name())),
                };
                let found = usize::try_from(index).ok().and_then(|at| list.items().get(at));
                found
                    .cloned()
                    .ok_or_else(|| Failure::Error(format!("index out of bounds: {index}")))
            }
            Value::Map(map) => {
                let key = Key::equal_to(at).ok_or(Failure::Overload)?;
                key.charge(self.meter)?;
                let found = map.entries().get(&key).cloned();
                found.ok_or_else(|| no_such_key(&key.shown()))
            }
            of => match at {
                Value::Text(name) => self.found(of, name)?.ok_or_else(|| no_such_key(name.as_str())),
                other => {
                    let key = Key::equal_to(other).ok_or(Failure::Overload)?;
                    Err(no_such_key(&key.shown()))
                }
            },
        }
    }

    #[inline(never)]
    fn logical(&mut self, ends_at: bool, terms: &[Node; 2]) -> Outcome {
        let mut failed = None;
        for term in terms {
            match self.value(term) {
                Ok(Value::Bool(truth)) if truth == ends_at => return Ok(Value::Bool(ends_at)),
                Ok(Value::Bool(_)) => {}
                Ok(_) => failed = failed.or(Some(Failure::Overload)),
                Err(Failure::Cost) => return Err(Failure::Cost),
                Err(failure) => failed = failed.or(Some(failure)),
            }
        }
        match failed {
            None => Ok(Value::Bool(!ends_at)),
            Some(failure) => Err(failure),
        }
    }

    #[inline(never)]
    fn otherwise(&mut self, is_value: bool, operands: &[Node; 2]) -> Outcome {
        let [one, other] = operands;
        match (self.value(one)?, is_value) {
            (Value::Optional(Some(value)), true) => Ok((*value).clone()),
            (value @ Value::Optional(Some(_)), false) => Ok(value),
            (Value::Optional(None), true) => self.value(other),
            (Value::Optional(None), false) => match self.value(other)? {
                value @ Value::Optional(_) => Ok(value),
                _ => Err(Failure::Overload),
            },
            (_, _) => Err(Failure::Overload),
        }
    }

    fn arguments(&mut self, args: &[Node]) -> Result<Vec<Value>, Failure> {
        if let [one, other] = args {
            // Both are evaluated, whatever the first one is.
            return match (self.value(one), self.value(other)) {
                (Ok(one), Ok(other)) => Ok(vec![one, other]),
                (Err(failure), _) | (_, Err(failure)) => {
                    self.meter.charge(1)?;
                    Err(failure)
                }
            };
        }
        args.iter().map(|arg| self.value(arg)).collect()
    }

    #[inline(never)]
    fn call(&mut self, function: library::Function, args: &[Node]) -> Outcome {
        let args = self.arguments(args)?;
        function(self.meter, &args)?.within_nesting()
    }

    /// Returns the value of an element; `None`: it is left out.
    fn optional(&mut self, element: &Element) -> Result<Option<Value>, Failure> {
        let value = self.value(&element.node)?;
        match (value, element.optional) {
            (value, false) => Ok(Some(value)),
            (Value::Optional(value), true) => Ok(value.map(|value| (*value).clone())),
            (_, true) => Err(Failure::Overload),
        }
    }

    #[inline(never)]
    fn list(&mut self, elements: &[Element]) -> Outcome {
        self.meter.charge(LIST_COST)?;
        self.meter.elements(elements.len())?;
        let mut items = Vec::with_capacity(elements.len());
        for element in elements {
            items.extend(self.optional(element)?);
        }
        Value::list(items).within_nesting()
    }

    #[inline(never)]
    fn map(&mut self, entries: &[(Node, Element)]) -> Outcome {
        self.meter.charge(MAP_COST)?;
        self.meter.elements(4 * entries.len())?;
        let mut map = Map::default();
        for (key, element) in entries {
            let key = self.value(key)?;
            let Some(value) = self.optional(element)? else {
                continue;
            };
            let key = library::key(&key)?;
            key.charge(self.meter)?;
            // The last of several equal keys counts.
            map.insert(key, value);
        }
        Value::Map(Arc::new(map)).within_nesting()
    }

    #[inline(never)]
    fn made(&mut self, name: &Arc<str>, fields: &[(Arc<str>, Element)]) -> Outcome {
        self.meter.charge(STRUCT_COST)?;
        self.meter.elements(fields.len())?;
        let mut made = Vec::with_capacity(fields.len());
        for (field, element) in fields {
            if let Some(value) = self.optional(element)? {
                made.push((Arc::clone(field), value));
            }
        }
        Value::Struct(Arc::new(Struct::new(Arc::clone(name), made))).within_nesting()
    }

    #[inline(never)]
    fn bind(&mut self, bind: &Bind) -> Outcome {
        self.locals[bind.slot] = match self.value(&bind.value) {
            Err(Failure::Cost) => return Err(Failure::Cost),
            outcome => outcome,
        };
        let result = self.value(&bind.result);
        self.locals[bind.slot] = Ok(Value::Null);
        result
    }

    #[inline(never)]
    fn comprehension(&mut self, loops: &Loop) -> Outcome {
        let range = self.value(&loops.range)?;
        self.locals[loops.accumulator] = Ok(self.value(&loops.start)?);
        match &range {
            Value::List(list) => {
                for (at, item) in (0_i64..).zip(list.items()) {
                    let (first, second) = match loops.second {
                        None => (item.clone(), None),
                        Some(_) => (Value::Int(at), Some(item)),
                    };
                    if !self.iterate(loops, first, second)? {
                        break;
                    }
                }
            }
            Value::Map(map) => {
                for (key, value) in map.entries() {
                    if !self.iterate(loops, key.value(), Some(value))? {
                        break;
                    }
                }
            }
            other => return Err(not_iterable(other)),
        }
        let result = self.value(&loops.result);
        self.locals[loops.accumulator] = Ok(Value::Null);
        result
    }

    /// Does one step of a loop; false: the loop ends.
    fn iterate(&mut self, loops: &Loop, first: Value, second: Option<&Value>) -> Result<bool, Failure> {
        self.meter.work(1)?;
        self.locals[loops.first] = Ok(first);
        if let (Some(slot), Some(value)) = (loops.second, second) {
            self.locals[slot] = Ok(value.clone());
        }
        match self.value(&loops.condition) {
            Ok(Value::Bool(false)) => return Ok(false),
            Ok(_) | Err(Failure::Overload | Failure::Error(_)) => {}
            Err(Failure::Cost) => return Err(Failure::Cost),
        }
        match self.value(&loops.step) {
            Err(Failure::Cost) => Err(Failure::Cost),
            stepped => {
                self.locals[loops.accumulator] = stepped;
                Ok(true)
            }
        }
    }

    #[inline(never)]
    fn append(&mut self, slot: usize, item: &Element) -> Outcome {
        // The name, the list of one element, and the operator.
        self.meter.charge(1 + LIST_COST + 1)?;
        let item = self.optional(item)?;
        let mut list = match std::mem::replace(&mut self.locals[slot], Ok(Value::Null))? {
            Value::List(list) => list,
            _ => return Err(Failure::Overload),
        };
        self.meter.work(2)?;
        if let Some(item) = item {
            match Arc::get_mut(&mut list) {
                Some(list) => list.push(item),
                None => {
                    self.meter.elements(list.items().len())?;
                    let mut items = list.items().to_vec();
                    items.push(item);
                    list = Arc::new(List::new(items));
                }
            }
        }
        Value::List(list).within_nesting()
    }

    #[inline(never)]
    fn insert(&mut self, slot: usize, entry: &Node, value: Option<&Node>) -> Outcome {
        // The name and the function.
        self.meter.charge(2)?;
        let entry = self.value(entry)?;
        let value = value.map(|value| self.value(value)).transpose()?;
        let mut map = match std::mem::replace(&mut self.locals[slot], Ok(Value::Null))? {
            Value::Map(map) => map,
            _ => return Err(Failure::Overload),
        };
        if Arc::get_mut(&mut map).is_none() {
            self.meter.elements(4 * map.entries().len())?;
            map = Arc::new(Map::new(map.entries().clone()));
        }
        let added: Vec<(Key, Value)> = match (entry, value) {
            (key, Some(value)) => vec![(library::key(&key)?, value)],
            (Value::Map(entries), None) => {
                self.meter.elements(entries.entries().len())?;
                entries
                    .entries()
                    .iter()
                    .map(|(key, value)| (key.clone(), value.clone()))
                    .collect()
            }
            (_, None) => return Err(Failure::Overload),
        };
        let owned = Arc::get_mut(&mut map).ok_or(Failure::Overload)?;
        for (key, value) in added {
            self.meter.elements(4)?;
            key.charge(self.meter)?;
            let shown = key.shown();
            if !owned.insert(key, value) {
                return Err(Failure::Error(format!(
                    "insert failed: key {shown} already exists"
                )));
            }
        }
        Value::Map(map).within_nesting()
    }
}

fn no_such_key(key: &str) -> Failure {
    Failure::Error(format!("no such key: {key}"))
}

fn unsupported_index(name: &str) -> Failure {
    Failure::Error(format!("unsupported index type '{name}' in list"))
}

/// The error of a loop, with the name of the type in Go.
fn not_iterable(value: &Value) -> Failure {
    let name = match value {
        Value::Null => "types.Null",
        Value::Bool(_) => "types.Bool",
        Value::Int(_) => "types.Int",
        Value::Uint(_) => "types.Uint",
        Value::Double(_) => "types.Double",
        Value::Text(_) => "types.String",
        Value::Bytes(_) => "types.Bytes",
        Value::Timestamp(_) => "types.Timestamp",
        Value::Duration(_) => "types.Duration",
        Value::Optional(_) => "*types.Optional",
        Value::Type(_) => "*types.Type",
        Value::List(_) | Value::Map(_) | Value::Struct(_) | Value::Opaque(_) => value.type_name(),
    };
    Failure::Error(format!("got '{name}', expected iterable type"))
}

fn negated(value: &Value) -> Outcome {
    match value {
        Value::Int(number) => {
            let negated = number.checked_neg().map(Value::Int);
            negated.ok_or_else(|| Failure::Error("integer overflow".to_owned()))
        }
        Value::Double(number) => Ok(Value::Double(-number)),
        Value::Duration(nanoseconds) => {
            let negated = nanoseconds.checked_neg().map(Value::Duration);
            negated.ok_or_else(|| Failure::Error("integer overflow".to_owned()))
        }
        _ => Err(Failure::Overload),
    }
}

//! What an expression evaluates: its tree with names, functions, constants and patterns resolved once.
//!
//! Constant lists, maps and conversions are folded, and their cost is zero, as cel-go's optimizer does; the accumulators of
//! macros are changed in place. It must not evaluate.
//!
//! Source: cel-go `interpreter/planner.go`, `interpreter/decorators.go`.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "a rule is about the nodes that it names"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, LiteralValue, SelectExpr, operators};
use cel::parser::Expression as Tree;

use super::library::patterns::{self, Pattern, Search};
use super::library::{self, Function, pairs};
use super::operators::Operator;
use super::value::{Key, Map, Text, Value};
use crate::crd::patterns::Budget;

/// An expression to be evaluated.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) root: Node,
    /// Names of the variables it refers to.
    pub(super) names: Vec<String>,
    /// Number of local variables at once.
    pub(super) locals: usize,
}

/// A part of an expression. `cost` is that of the attribute: one for each name and field of which a server keeps account.
#[derive(Debug)]
pub(super) enum Node {
    Constant(Value),
    Variable {
        nth: usize,
        cost: u64,
    },
    Local {
        slot: usize,
        cost: u64,
    },
    Field {
        of: Box<Node>,
        name: Text,
        /// `x.?f`.
        optional: bool,
        cost: u64,
    },
    Has {
        of: Box<Node>,
        name: Text,
        cost: u64,
    },
    Index {
        of: Box<Node>,
        at: Box<Node>,
        /// `x[?i]`.
        optional: bool,
        cost: u64,
    },
    /// `&&` ends at `false`, `||` at `true`.
    Logical {
        ends_at: bool,
        terms: Box<[Node; 2]>,
    },
    Not(Box<Node>),
    NotStrictlyFalse(Box<Node>),
    Negate(Box<Node>),
    /// Condition, then and else.
    Conditional(Box<[Node; 3]>),
    Operator(Operator, Box<[Node; 2]>),
    /// `optional.or(other)`, `optional.orValue(value)`.
    Otherwise {
        is_value: bool,
        operands: Box<[Node; 2]>,
    },
    /// `x in [1, 2]` with constants.
    Member {
        item: Box<Node>,
        set: BTreeSet<Key>,
    },
    Call {
        function: Function,
        args: Vec<Node>,
    },
    /// A search of a literal pattern.
    Search {
        search: Search,
        pattern: Arc<Pattern>,
        args: Vec<Node>,
    },
    List(Vec<Element>),
    Map(Vec<(Node, Element)>),
    Struct {
        name: Arc<str>,
        fields: Vec<(Arc<str>, Element)>,
    },
    Bind(Box<Bind>),
    Loop(Box<Loop>),
    /// `accumulator + [item]`.
    Append {
        slot: usize,
        item: Element,
    },
    /// Entries that are inserted into the accumulator: a key with a value, or a map.
    Insert {
        slot: usize,
        entry: Box<Node>,
        value: Option<Box<Node>>,
    },
    /// A function that does not exist.
    Undeclared(String),
}

/// An element, the value of an entry or of a field.
#[derive(Debug)]
pub(super) struct Element {
    pub(super) node: Box<Node>,
    /// Whether it is there only if its value, an optional, is.
    pub(super) optional: bool,
}

/// A name for a value.
#[derive(Debug)]
pub(super) struct Bind {
    pub(super) slot: usize,
    pub(super) value: Node,
    pub(super) result: Node,
}

/// A comprehension.
#[derive(Debug)]
pub(super) struct Loop {
    pub(super) range: Node,
    /// The variable is the first or, of two, the key.
    pub(super) first: usize,
    /// The value, if there are two variables.
    pub(super) second: Option<usize>,
    pub(super) accumulator: usize,
    pub(super) start: Node,
    pub(super) condition: Node,
    pub(super) step: Node,
    pub(super) result: Node,
}

impl Plan {
    /// Plans an expression. Literal patterns are compiled within `budget`.
    pub(super) fn new(tree: &Tree, budget: &Budget) -> Self {
        let mut planner = Planner {
            names: Vec::new(),
            numbers: BTreeMap::new(),
            scope: Vec::new(),
            locals: 0,
            patterns: BTreeMap::new(),
            budget,
        };
        let root = planner.node(tree);
        Self {
            root,
            names: planner.names,
            locals: planner.locals,
        }
    }
}

struct Planner<'t> {
    names: Vec<String>,
    /// Places in `names`.
    numbers: BTreeMap<&'t str, usize>,
    /// Local variables; later ones shadow earlier ones.
    scope: Vec<&'t str>,
    locals: usize,
    patterns: BTreeMap<&'t str, Arc<Pattern>>,
    budget: &'t Budget,
}

impl<'t> Planner<'t> {
    fn node(&mut self, tree: &'t Tree) -> Node {
        match &tree.expr {
            Expr::Literal(literal) => Node::Constant(constant(literal)),
            Expr::Ident(name) => self.name(name),
            Expr::Select(select) => self.select(tree, select),
            Expr::Call(call) => self.call(call),
            Expr::Comprehension(loops) => self.comprehension(loops),
            Expr::List(list) => {
                let elements = list.elements.iter().enumerate();
                let elements = elements.map(|(nth, element)| Element {
                    node: Box::new(self.node(element)),
                    optional: list.optional_indices.contains(&nth),
                });
                folded_list(elements.collect())
            }
            Expr::Map(map) => {
                let mut entries = Vec::new();
                for entry in &map.entries {
                    if let EntryExpr::MapEntry(entry) = &entry.expr {
                        let key = self.node(&entry.key);
                        entries.push((key, self.element(&entry.value, entry.optional)));
                    }
                }
                folded_map(entries)
            }
            Expr::Struct(made) => {
                let mut fields = Vec::new();
                for entry in &made.entries {
                    if let EntryExpr::StructField(field) = &entry.expr {
                        let value = self.element(&field.value, field.optional);
                        fields.push((field.field.as_str().into(), value));
                    }
                }
                Node::Struct {
                    name: made.type_name.as_str().into(),
                    fields,
                }
            }
            Expr::Unspecified => Node::Undeclared(String::new()),
        }
    }

    fn boxed(&mut self, tree: &'t Tree) -> Box<Node> {
        Box::new(self.node(tree))
    }

    fn nodes(&mut self, trees: impl IntoIterator<Item = &'t Tree>) -> Vec<Node> {
        trees.into_iter().map(|tree| self.node(tree)).collect()
    }

    fn element(&mut self, tree: &'t Tree, optional: bool) -> Element {
        Element {
            node: self.boxed(tree),
            optional,
        }
    }

    fn name(&mut self, name: &'t str) -> Node {
        if let Some(slot) = self.scope.iter().rposition(|known| *known == name) {
            return Node::Local { slot, cost: 1 };
        }
        if library::TYPES.contains(&name) {
            return Node::Constant(Value::Type(name.into()));
        }
        let nth = *self.numbers.entry(name).or_insert(self.names.len());
        if nth == self.names.len() {
            self.names.push(name.to_owned());
        }
        Node::Variable { nth, cost: 1 }
    }

    fn select(&mut self, tree: &'t Tree, select: &'t SelectExpr) -> Node {
        if let Some(name) = library::qualified_type(tree) {
            return Node::Constant(Value::Type(name.into()));
        }
        let of = self.boxed(&select.operand);
        let name = Text::new(select.field.as_str());
        match select.test {
            true => Node::Has {
                cost: relative(&of),
                of,
                name,
            },
            false => Node::Field {
                cost: 1 + relative(&of),
                of,
                name,
                optional: false,
            },
        }
    }

    fn call(&mut self, call: &'t CallExpr) -> Node {
        let name = call.func_name.as_str();
        if let Some(target) = &call.target {
            // A function of a namespace has a name as its target, not a variable.
            if let Expr::Ident(namespace) = &target.expr
                && let Some(function) = library::find(&format!("{namespace}.{name}"), false, call.args.len())
            {
                let args = self.nodes(&call.args);
                return Node::Call { function, args };
            }
        } else if let Some(node) = self.operator(name, &call.args) {
            return node;
        }
        let trees: Vec<&'t Tree> = call
            .target
            .iter()
            .map(|target| &**target)
            .chain(&call.args)
            .collect();
        if let Some(search) = Search::of(name, call.target.is_some(), trees.len())
            && let Some(pattern) = trees.get(1).and_then(|tree| literal_text(tree))
        {
            let pattern = self.pattern(pattern);
            let args = self.nodes(trees);
            return Node::Search {
                search,
                pattern,
                args,
            };
        }
        let mut args = self.nodes(trees);
        if let ("or" | "orValue", Some(_), 2) = (name, &call.target, args.len())
            && let (Some(other), Some(one)) = (args.pop(), args.pop())
        {
            return Node::Otherwise {
                is_value: name == "orValue",
                operands: Box::new([one, other]),
            };
        }
        let count = args.len() - usize::from(call.target.is_some());
        match library::find(name, call.target.is_some(), count) {
            None => Node::Undeclared(name.to_owned()),
            Some(function) => folded_conversion(name, function, args),
        }
    }

    fn pattern(&mut self, pattern: &'t str) -> Arc<Pattern> {
        let known = self.patterns.entry(pattern);
        let budget = self.budget;
        Arc::clone(known.or_insert_with(|| Arc::new(patterns::literal(pattern, budget))))
    }

    /// Returns an operator; `None`: it is a function.
    fn operator(&mut self, name: &str, args: &'t [Tree]) -> Option<Node> {
        match (name, args) {
            (operators::LOGICAL_AND | operators::LOGICAL_OR, [one, other]) => Some(Node::Logical {
                ends_at: name == operators::LOGICAL_OR,
                terms: Box::new([self.node(one), self.node(other)]),
            }),
            (operators::LOGICAL_NOT, [one]) => Some(Node::Not(self.boxed(one))),
            (operators::NOT_STRICTLY_FALSE, [one]) => Some(Node::NotStrictlyFalse(self.boxed(one))),
            (operators::NEGATE, [one]) => Some(Node::Negate(self.boxed(one))),
            (operators::CONDITIONAL, [condition, one, other]) => {
                let condition = self.node(condition);
                let mut branches = [self.node(one), self.node(other)];
                branches.iter_mut().for_each(resolved);
                let [one, other] = branches;
                Some(Node::Conditional(Box::new([condition, one, other])))
            }
            (operators::INDEX | operators::OPT_INDEX, [of, at]) => {
                let (of, mut at) = (self.boxed(of), self.boxed(at));
                resolved(&mut at);
                Some(Node::Index {
                    cost: 1 + relative(&of),
                    of,
                    at,
                    optional: name == operators::OPT_INDEX,
                })
            }
            (operators::OPT_SELECT, [of, field]) => {
                let name = Text::new(literal_text(field)?);
                let of = self.boxed(of);
                Some(Node::Field {
                    cost: 1 + relative(&of),
                    of,
                    name,
                    optional: true,
                })
            }
            (name, [one, other]) => {
                let operator = Operator::of(name)?;
                let (one, other) = (self.node(one), self.node(other));
                if let (Operator::In, Node::Constant(Value::List(list))) = (operator, &other) {
                    let keys = list.items().iter().map(Key::equal_to);
                    if let Some(set) = keys.collect::<Option<BTreeSet<Key>>>() {
                        let item = Box::new(one);
                        return Some(Node::Member { item, set });
                    }
                }
                Some(Node::Operator(operator, Box::new([one, other])))
            }
            (_, _) => None,
        }
    }

    fn comprehension(&mut self, loops: &'t ComprehensionExpr) -> Node {
        let is_empty = matches!(&loops.iter_range.expr, Expr::List(list) if list.elements.is_empty());
        let never = matches!(&loops.loop_cond.expr, Expr::Literal(LiteralValue::Boolean(going_on)) if !going_on.inner());
        if is_empty && never {
            let value = self.node(&loops.accu_init);
            let slot = self.declare(&loops.accu_var);
            let result = self.node(&loops.result);
            self.scope.truncate(slot);
            return Node::Bind(Box::new(Bind { slot, value, result }));
        }
        let range = self.node(&loops.iter_range);
        let start = self.node(&loops.accu_init);
        let accumulator = self.declare(&loops.accu_var);
        let first = self.declare(&loops.iter_var);
        let second = loops.iter_var2.as_ref().map(|name| self.declare(name));
        let condition = self.node(&loops.loop_cond);
        let step = self.step(&loops.loop_step, accumulator);
        self.scope.truncate(accumulator + 1);
        let result = self.node(&loops.result);
        self.scope.truncate(accumulator);
        Node::Loop(Box::new(Loop {
            range,
            first,
            second,
            accumulator,
            start,
            condition,
            step,
            result,
        }))
    }

    fn declare(&mut self, name: &'t str) -> usize {
        self.scope.push(name);
        self.locals = self.locals.max(self.scope.len());
        self.scope.len() - 1
    }

    /// Plans the step of a loop, in which the accumulator may grow.
    fn step(&mut self, tree: &'t Tree, slot: usize) -> Node {
        let Expr::Call(call) = &tree.expr else {
            return self.node(tree);
        };
        let is_accumulator = |tree: &Tree| matches!(&tree.expr, Expr::Ident(name) if self.scope.iter().rposition(|known| known == name) == Some(slot));
        match (call.func_name.as_str(), call.args.as_slice()) {
            (operators::ADD, [accumulator, added]) if is_accumulator(accumulator) => match &added.expr {
                Expr::List(list) if list.elements.len() == 1 => Node::Append {
                    slot,
                    item: self.element(&list.elements[0], !list.optional_indices.is_empty()),
                },
                _ => self.node(tree),
            },
            (pairs::INSERT, [accumulator, entry, rest @ ..]) if is_accumulator(accumulator) => Node::Insert {
                slot,
                entry: self.boxed(entry),
                value: rest.first().map(|value| self.boxed(value)),
            },
            (operators::CONDITIONAL, [condition, one, other]) => {
                let condition = self.node(condition);
                let mut branches = [self.step(one, slot), self.step(other, slot)];
                branches.iter_mut().for_each(resolved);
                let [one, other] = branches;
                Node::Conditional(Box::new([condition, one, other]))
            }
            (_, _) => self.node(tree),
        }
    }
}

/// Cost of a field of a value that is not an attribute itself.
fn relative(of: &Node) -> u64 {
    let is_attribute = matches!(
        of,
        Node::Variable { .. }
            | Node::Local { .. }
            | Node::Field { .. }
            | Node::Index { .. }
            | Node::Conditional(_)
    );
    u64::from(!is_attribute)
}

/// Removes the cost of the name of an attribute that is an index or a branch: it is resolved, not evaluated.
fn resolved(node: &mut Node) {
    if let Node::Variable { cost, .. } | Node::Local { cost, .. } = node {
        *cost = 0;
    }
    if let Node::Field { of, cost, .. } | Node::Index { of, cost, .. } = node {
        match relative(of) {
            0 => resolved(of),
            _ => *cost = 1,
        }
    }
}

fn literal_text(tree: &Tree) -> Option<&str> {
    match &tree.expr {
        Expr::Literal(LiteralValue::String(text)) => Some(text.inner()),
        _ => None,
    }
}

fn constant(literal: &LiteralValue) -> Value {
    match literal {
        LiteralValue::Boolean(truth) => Value::Bool(*truth.inner()),
        LiteralValue::Bytes(bytes) => Value::Bytes(bytes.inner().into()),
        LiteralValue::Double(number) => Value::Double(*number.inner()),
        LiteralValue::Int(number) => Value::Int(*number.inner()),
        LiteralValue::Null => Value::Null,
        LiteralValue::String(text) => Value::text(text.inner()),
        LiteralValue::UInt(number) => Value::Uint(*number.inner()),
    }
}

fn folded_list(elements: Vec<Element>) -> Node {
    let values = elements.iter().map(|element| match &*element.node {
        Node::Constant(value) if !element.optional => Some(value.clone()),
        _ => None,
    });
    match values.collect() {
        Some(values) => Node::Constant(Value::list(values)),
        None => Node::List(elements),
    }
}

fn folded_map(entries: Vec<(Node, Element)>) -> Node {
    let values = entries.iter().map(|(key, element)| match (key, &*element.node) {
        (Node::Constant(key), Node::Constant(value)) if !element.optional => {
            Some((library::key(key).ok()?, value.clone()))
        }
        (_, _) => None,
    });
    let values: Option<Vec<(Key, Value)>> = values.collect();
    match values {
        Some(values) => Node::Constant(Value::Map(Arc::new(Map::new(values.into_iter().collect())))),
        None => Node::Map(entries),
    }
}

fn folded_conversion(name: &str, function: Function, args: Vec<Node>) -> Node {
    if library::CONVERSIONS.contains(&name)
        && let [Node::Constant(value)] = args.as_slice()
        && let Ok(value) = function(&mut super::meter::Meter::default(), std::slice::from_ref(value))
    {
        return Node::Constant(value);
    }
    Node::Call { function, args }
}

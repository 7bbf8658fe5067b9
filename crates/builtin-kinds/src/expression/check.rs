//! Type checks of expressions in definitions: undeclared names, undefined fields, operators without an overload for their
//! operands, and results of a wrong type.
//!
//! Arguments of functions are not checked and costs are not estimated: errors that a server reports for them are missing.
//!
//! Source: cel-go `checker/checker.go`.

use std::collections::BTreeMap;
use std::sync::Arc;

use cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, LiteralValue, StructExpr, operators};
use cel::parser::Expression as Tree;

use super::library::pairs::INSERT;
use super::library::{TYPES, is_format, qualified_type};
use super::{Expression, problem};
use crate::crd::patterns;

/// Type of an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Type {
    /// Any type (`dyn`), also of parts with an error.
    Dyn,
    /// `bool`.
    Bool,
    /// `int`.
    Int,
    /// `double`.
    Double,
    /// `string`.
    Text,
    /// `bytes`.
    Bytes,
    /// `timestamp`.
    Timestamp,
    /// `duration`.
    Duration,
    /// `null`.
    Null,
    /// `list` with elements of this type.
    List(Arc<Type>),
    /// `map` from strings to values of this type.
    Map(Arc<Type>),
    /// An object with these fields.
    Object(Arc<BTreeMap<String, Type>>),
    /// An `optional`.
    Optional(Arc<Type>),
    /// What mutations construct: `Object`, the type of a field below it (`Object.spec`), or `JSONPatch`; or a type of the
    /// authorization library.
    Constructed(String),
}

/// Names of types of the authorization library begin with this.
const AUTHORIZATION: &str = "kubernetes.authorization.";

/// Type of the variable `authorizer`.
const AUTHORIZER: &str = "kubernetes.authorization.Authorizer";

/// Functions of the authorization library.
const AUTHORIZATION_FUNCTIONS: [&str; 14] = [
    "path",
    "group",
    "serviceAccount",
    "resource",
    "subresource",
    "namespace",
    "name",
    "fieldSelector",
    "labelSelector",
    "check",
    "allowed",
    "errored",
    "reason",
    "error",
];

fn authorization(name: &str) -> Type {
    Type::Constructed(format!("{AUTHORIZATION}{name}"))
}

impl Type {
    /// Returns the type of the variable `authorizer`.
    pub(crate) fn authorizer() -> Self {
        authorization("Authorizer")
    }

    /// Returns its name in messages.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Dyn => "dyn".to_owned(),
            Self::Bool => "bool".to_owned(),
            Self::Int => "int".to_owned(),
            Self::Double => "double".to_owned(),
            Self::Text => "string".to_owned(),
            Self::Bytes => "bytes".to_owned(),
            Self::Timestamp => "timestamp".to_owned(),
            Self::Duration => "duration".to_owned(),
            Self::Null => "null".to_owned(),
            Self::List(item) => format!("list({})", item.name()),
            Self::Map(value) => format!("map(string, {})", value.name()),
            Self::Object(_) => "object".to_owned(),
            Self::Optional(value) => format!("optional_type({})", value.name()),
            Self::Constructed(name) => name.clone(),
        }
    }

    /// Whether a value of this type can be one of `wanted`, as far as is known here.
    pub(crate) fn may_be(&self, wanted: &Self) -> bool {
        match (self, wanted) {
            (Self::Dyn, _) => true,
            (Self::List(item), Self::List(wanted)) => item.may_be(wanted),
            (own, wanted) => own == wanted,
        }
    }

    fn is_number(&self) -> bool {
        matches!(self, Self::Int | Self::Double)
    }

    /// Returns whether values of both types can be compared. `null` is an absent object.
    fn is_comparable(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Dyn, _) | (_, Self::Dyn) => true,
            (Self::Null, with) | (with, Self::Null) => {
                matches!(
                    with,
                    Self::Null | Self::Object(_) | Self::Timestamp | Self::Duration
                )
            }
            (Self::List(one), Self::List(other))
            | (Self::Map(one), Self::Map(other))
            | (Self::Optional(one), Self::Optional(other)) => one.is_comparable(other),
            // A literal has no declared fields.
            (Self::Object(_), Self::Map(_)) | (Self::Map(_), Self::Object(_)) => true,
            (one, other) => one == other,
        }
    }
}

impl Expression {
    /// Checks the expression with variables of these types; returns its type.
    ///
    /// # Errors
    /// The errors, one paragraph each, as cel-go prints them.
    pub fn check(&self, variables: &[(&str, Type)]) -> Result<Type, String> {
        self.checked(variables, false)
    }

    /// Checks the expression of a mutation, which may construct objects and JSON patches.
    ///
    /// # Errors
    /// As [`Expression::check`].
    pub fn check_mutation(&self, variables: &[(&str, Type)]) -> Result<Type, String> {
        self.checked(variables, true)
    }

    /// Whether `check` returns the type that a server infers, not just `Dyn` for one it does not infer.
    pub(crate) fn has_known_type(&self) -> bool {
        match &self.parsed.expr {
            Expr::Ident(_) | Expr::Select(_) | Expr::Literal(_) => true,
            Expr::List(list) => list.elements.is_empty(),
            Expr::Call(_) | Expr::Comprehension(_) | Expr::Map(_) | Expr::Struct(_) | Expr::Unspecified => {
                false
            }
        }
    }

    fn checked(&self, variables: &[(&str, Type)], mutates: bool) -> Result<Type, String> {
        let mut checker = Checker {
            mutates,
            scopes: variables
                .iter()
                .map(|(name, kind)| ((*name).to_owned(), kind.clone()))
                .collect(),
            problems: Vec::new(),
            more: 0,
        };
        let kind = checker.infer(&self.parsed);
        if checker.problems.is_empty() {
            return Ok(kind);
        }
        let more = checker.more;
        let mut placed: Vec<((usize, usize), String)> = checker
            .problems
            .into_iter()
            .map(|(id, message)| (self.source.place(self.source.start(id)), message))
            .collect();
        placed.sort();
        let told = placed
            .iter()
            .map(|(place, message)| problem(&self.source.text, *place, message));
        let more = (more > 0).then(|| format!("{more} more errors were truncated"));
        Err(told.chain(more).collect::<Vec<_>>().join("\n"))
    }
}

/// Returns the ids of all nodes of a tree.
pub(super) fn ids(tree: &Tree, into: &mut Vec<u64>) {
    into.push(tree.id);
    if let Expr::Struct(made) = &tree.expr {
        into.extend(made.entries.iter().map(|entry| entry.id));
    }
    each_part(tree, &mut |part| ids(part, into));
}

/// Returns the depth of a tree.
pub(super) fn depth(tree: &Tree) -> usize {
    let mut deepest = 0;
    each_part(tree, &mut |part| deepest = deepest.max(depth(part)));
    deepest + 1
}

fn each_part<'a>(tree: &'a Tree, see: &mut dyn FnMut(&'a Tree)) {
    let mut entries = |entry: &'a EntryExpr| match entry {
        EntryExpr::StructField(field) => see(&field.value),
        EntryExpr::MapEntry(entry) => {
            see(&entry.key);
            see(&entry.value);
        }
    };
    match &tree.expr {
        Expr::Map(map) => map.entries.iter().for_each(|entry| entries(&entry.expr)),
        Expr::Struct(fields) => fields.entries.iter().for_each(|entry| entries(&entry.expr)),
        Expr::Call(call) => call
            .target
            .iter()
            .map(|target| &**target)
            .chain(&call.args)
            .for_each(see),
        Expr::Comprehension(loops) => [
            &loops.iter_range,
            &loops.accu_init,
            &loops.loop_cond,
            &loops.loop_step,
            &loops.result,
        ]
        .into_iter()
        .for_each(see),
        Expr::List(list) => list.elements.iter().for_each(see),
        Expr::Select(select) => see(&select.operand),
        Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => {}
    }
}

struct Checker {
    /// Whether types of patches are known.
    mutates: bool,
    /// Variables; later ones shadow earlier ones.
    scopes: Vec<(String, Type)>,
    problems: Vec<(u64, String)>,
    /// Number of problems beyond those that are reported.
    more: usize,
}

/// Number of problems that are reported (`maxErrorsToReport`).
const PROBLEMS_MAX: usize = 100;

impl Checker {
    fn problem(&mut self, id: u64, message: String) -> Type {
        match self.problems.len() < PROBLEMS_MAX {
            true => self.problems.push((id, message)),
            false => self.more += 1,
        }
        Type::Dyn
    }

    fn infer(&mut self, tree: &Tree) -> Type {
        match &tree.expr {
            Expr::Literal(literal) => match literal {
                LiteralValue::Boolean(_) => Type::Bool,
                LiteralValue::Bytes(_) => Type::Bytes,
                LiteralValue::Double(_) => Type::Double,
                LiteralValue::Int(_) => Type::Int,
                LiteralValue::Null => Type::Null,
                LiteralValue::String(_) => Type::Text,
                LiteralValue::UInt(_) => Type::Dyn,
            },
            Expr::Ident(name) => self.ident(tree.id, name),
            Expr::Select(_) if qualified_type(tree).is_some() => Type::Dyn,
            Expr::Select(select) => {
                let of = self.infer(&select.operand);
                let kind = self.field(tree.id, &of, &select.field);
                if select.test { Type::Bool } else { kind }
            }
            Expr::Call(call) => self.call(tree.id, call),
            Expr::Comprehension(loops) => self.comprehension(loops),
            Expr::List(list) => {
                let items: Vec<Type> = list.elements.iter().map(|item| self.infer(item)).collect();
                let same = items
                    .first()
                    .filter(|first| items.iter().all(|item| item == *first));
                Type::List(Arc::new(same.cloned().unwrap_or(Type::Dyn)))
            }
            Expr::Map(map) => {
                let mut values = Vec::new();
                for entry in &map.entries {
                    if let EntryExpr::MapEntry(entry) = &entry.expr {
                        self.infer(&entry.key);
                        values.push(self.infer(&entry.value));
                    }
                }
                let same = values
                    .first()
                    .filter(|first| values.iter().all(|value| value == *first));
                Type::Map(Arc::new(same.cloned().unwrap_or(Type::Dyn)))
            }
            Expr::Struct(made) => self.constructed(tree, made),
            Expr::Unspecified => Type::Dyn,
        }
    }

    fn constructed(&mut self, tree: &Tree, made: &StructExpr) -> Type {
        let name = made.type_name.as_str();
        let is_patch = name == "JSONPatch";
        let is_known = self.mutates && (is_patch || name == "Object" || name.starts_with("Object."));
        if !is_known {
            each_part(tree, &mut |part| drop(self.infer(part)));
            return self.undeclared(tree.id, name);
        }
        for entry in &made.entries {
            let EntryExpr::StructField(field) = &entry.expr else {
                continue;
            };
            let (kind, field_name) = (self.infer(&field.value), field.field.as_str());
            let declared = match field_name {
                _ if !is_patch => continue,
                "value" => continue,
                "op" | "path" | "from" => Type::Text.name(),
                _ => String::new(),
            };
            if !matches!(kind, Type::Dyn | Type::Text) || declared.is_empty() && kind != Type::Dyn {
                let kind = kind.name();
                let message = format!(
                    "expected type of field '{field_name}' is '{declared}' but provided type is '{kind}'"
                );
                self.problem(entry.id, message);
            } else if declared.is_empty() {
                self.problem(entry.id, format!("undefined field '{field_name}'"));
            }
        }
        Type::Constructed(name.to_owned())
    }

    fn ident(&mut self, id: u64, name: &str) -> Type {
        let known = self.scopes.iter().rev().find(|(known, _)| known == name);
        match known {
            Some((_, kind)) => kind.clone(),
            None if TYPES.contains(&name) => Type::Dyn,
            None => self.undeclared(id, name),
        }
    }

    fn undeclared(&mut self, id: u64, name: &str) -> Type {
        self.problem(id, format!("undeclared reference to '{name}' (in container '')"))
    }

    fn field(&mut self, id: u64, of: &Type, field: &str) -> Type {
        match of {
            Type::Object(fields) => match fields.get(field) {
                Some(kind) => kind.clone(),
                None => self.problem(id, format!("undefined field '{field}'")),
            },
            Type::Map(value) => (**value).clone(),
            Type::Optional(of) => Type::Optional(Arc::new(self.field(id, of, field))),
            Type::Constructed(name) if name == "JSONPatch" => match field {
                "op" | "path" | "from" => Type::Text,
                "value" => Type::Dyn,
                _ => self.problem(id, format!("undefined field '{field}'")),
            },
            Type::Constructed(name) if name == AUTHORIZER && field == "requestResource" => {
                authorization("ResourceCheck")
            }
            Type::Dyn => Type::Dyn,
            Type::Constructed(name) if !name.starts_with(AUTHORIZATION) => Type::Dyn,
            Type::Constructed(name) => self.problem(id, format!("unexpected failed resolution of '{name}'")),
            Type::Bool
            | Type::Int
            | Type::Double
            | Type::Text
            | Type::Bytes
            | Type::Timestamp
            | Type::Duration
            | Type::Null
            | Type::List(_) => {
                let message = format!("type '{}' does not support field selection", of.name());
                self.problem(id, message)
            }
        }
    }

    fn comprehension(&mut self, loops: &ComprehensionExpr) -> Type {
        let range = self.infer(&loops.iter_range);
        // Two variables are the index or the key, and the value.
        let (item, second) = match range {
            Type::List(item) if loops.iter_var2.is_some() => (Type::Int, (*item).clone()),
            Type::List(item) => ((*item).clone(), Type::Dyn),
            Type::Map(value) => (Type::Text, (*value).clone()),
            Type::Dyn
            | Type::Bool
            | Type::Int
            | Type::Double
            | Type::Text
            | Type::Bytes
            | Type::Timestamp
            | Type::Duration
            | Type::Null
            | Type::Object(_)
            | Type::Optional(_)
            | Type::Constructed(_) => (Type::Dyn, Type::Dyn),
        };
        let mut result = self.infer(&loops.accu_init);
        let depth = self.scopes.len();
        self.scopes.push((loops.iter_var.clone(), item));
        if let Some(name) = &loops.iter_var2 {
            self.scopes.push((name.clone(), second));
        }
        self.scopes.push((loops.accu_var.clone(), result.clone()));
        self.infer(&loops.loop_cond);
        let step = self.infer(&loops.loop_step);
        if matches!(result, Type::List(_)) {
            result = step;
        }
        self.scopes.truncate(depth);
        self.scopes.push((loops.accu_var.clone(), result));
        let result = self.infer(&loops.result);
        self.scopes.truncate(depth);
        result
    }

    fn call(&mut self, id: u64, call: &CallExpr) -> Type {
        let name = call.func_name.as_str();
        if let Some(target) = &call.target {
            // A function of a namespace has a name as its target, not a variable.
            if let Expr::Ident(namespace) = &target.expr
                && (self.mutates || namespace != "jsonpatch")
                && let Some(kind) = result_of(&format!("{namespace}.{name}"))
            {
                let args: Vec<Type> = call.args.iter().map(|arg| self.infer(arg)).collect();
                let fits = args.iter().all(|arg| matches!(arg, Type::Text | Type::Dyn));
                if namespace == "jsonpatch" && !fits {
                    let names: Vec<String> = args.iter().map(Type::name).collect();
                    let message = format!(
                        "found no matching overload for '{namespace}.{name}' applied to '({})'",
                        names.join(", ")
                    );
                    return self.problem(id, message);
                }
                return kind;
            }
        }
        let target = call.target.as_ref().map(|target| self.infer(target));
        if name == operators::OPT_SELECT {
            let of = call.args.first().map_or(Type::Dyn, |arg| self.infer(arg));
            let field = match call.args.get(1).map(|arg| &arg.expr) {
                Some(Expr::Literal(LiteralValue::String(field))) => self.field(id, &of, field.inner()),
                Some(_) | None => Type::Dyn,
            };
            if matches!(field, Type::Optional(_)) {
                return field;
            }
            return Type::Optional(Arc::new(field));
        }
        let args: Vec<Type> = call.args.iter().map(|arg| self.infer(arg)).collect();
        if let Some(Type::Constructed(of)) = &target
            && of.starts_with(AUTHORIZATION)
        {
            return self.authorization(id, of, name, &args);
        }
        if let Some(kind) = self.operator(id, name, &args) {
            return kind;
        }
        if name == "matches"
            && let Some(pattern) = call.args.last()
            && let Expr::Literal(LiteralValue::String(text)) = &pattern.expr
            && patterns::check(text.inner()).is_err()
        {
            return self.problem(pattern.id, "invalid matches argument".to_owned());
        }
        match (name, target.as_ref().or(args.first())) {
            ("value" | "orValue", Some(Type::Optional(value))) => (**value).clone(),
            ("optMap" | "optFlatMap" | "or", Some(optional @ Type::Optional(_))) => optional.clone(),
            ("first" | "last", Some(Type::List(item))) => Type::Optional(Arc::clone(item)),
            ("min" | "max" | "sum", Some(Type::List(item))) => (**item).clone(),
            (
                "reverse" | "slice" | "sort" | "distinct" | "@sortByAssociatedKeys",
                Some(list @ Type::List(_)),
            ) => list.clone(),
            ("sub" | "add", _) => Type::Dyn,
            (name, _) => match result_of(name) {
                Some(kind) => kind,
                None => self.undeclared(id, name),
            },
        }
    }

    /// Returns the result type of a function of the authorization library.
    fn authorization(&mut self, id: u64, of: &str, name: &str, args: &[Type]) -> Type {
        let texts = args.iter().all(|arg| matches!(arg, Type::Text | Type::Dyn));
        let result = match (of.trim_start_matches(AUTHORIZATION), name, args.len()) {
            ("Authorizer", "path", 1) => authorization("PathCheck"),
            ("Authorizer", "group", 1) => authorization("GroupCheck"),
            ("Authorizer", "serviceAccount", 2) => authorization("Authorizer"),
            ("GroupCheck", "resource", 1)
            | (
                "ResourceCheck",
                "subresource" | "namespace" | "name" | "fieldSelector" | "labelSelector",
                1,
            ) => authorization("ResourceCheck"),
            ("PathCheck" | "ResourceCheck", "check", 1) => authorization("Decision"),
            ("Decision", "allowed" | "errored", 0) => Type::Bool,
            ("Decision", "reason" | "error", 0) => Type::Text,
            (_, name, _) if !AUTHORIZATION_FUNCTIONS.contains(&name) => return self.undeclared(id, name),
            (_, _, _) => Type::Dyn,
        };
        if texts && result != Type::Dyn {
            return result;
        }
        let names: Vec<String> = args.iter().map(Type::name).collect();
        let message = format!(
            "found no matching overload for '{name}' applied to '{of}.({})'",
            names.join(", ")
        );
        self.problem(id, message)
    }

    /// Returns the result type of an operator; `None`: not an operator.
    fn operator(&mut self, id: u64, name: &str, args: &[Type]) -> Option<Type> {
        use operators::{
            ADD, CONDITIONAL, DIVIDE, EQUALS, GREATER, GREATER_EQUALS, IN, INDEX, LESS, LESS_EQUALS,
            LOGICAL_AND, LOGICAL_NOT, LOGICAL_OR, MODULO, MULTIPLY, NEGATE, NOT_EQUALS, NOT_STRICTLY_FALSE,
            OPT_INDEX, SUBSTRACT,
        };
        let any = args.contains(&Type::Dyn);
        let result = match (name, args) {
            (NOT_STRICTLY_FALSE, _) => Some(Type::Bool),
            (LOGICAL_AND | LOGICAL_OR | LOGICAL_NOT, args) => {
                let fits = args.iter().all(|arg| matches!(arg, Type::Bool | Type::Dyn));
                fits.then_some(Type::Bool)
            }
            (EQUALS | NOT_EQUALS, [one, other]) => one.is_comparable(other).then_some(Type::Bool),
            (LESS | LESS_EQUALS | GREATER | GREATER_EQUALS, [one, other]) => {
                let ordered = matches!(
                    one,
                    Type::Bool
                        | Type::Int
                        | Type::Double
                        | Type::Text
                        | Type::Bytes
                        | Type::Timestamp
                        | Type::Duration
                );
                let fits = any || one.is_number() && other.is_number() || ordered && one == other;
                fits.then_some(Type::Bool)
            }
            (CONDITIONAL, [_, one, other]) => Some(if one == other { one.clone() } else { Type::Dyn }),
            (IN, [item, Type::List(of)]) => item.is_comparable(of).then_some(Type::Bool),
            (IN, [item, Type::Map(_)]) => item.is_comparable(&Type::Text).then_some(Type::Bool),
            (IN, [_, range]) => (*range == Type::Dyn).then_some(Type::Bool),
            (INDEX, [Type::List(item) | Type::Map(item), _]) => Some((**item).clone()),
            (INDEX, [of, _]) => matches!(of, Type::Dyn | Type::Optional(_)).then_some(Type::Dyn),
            (OPT_INDEX, _) => Some(Type::Optional(Arc::new(Type::Dyn))),
            (NEGATE, [one]) => (any || one.is_number()).then(|| one.clone()),
            (ADD | SUBSTRACT | MULTIPLY | DIVIDE | MODULO, [one, other]) => arithmetic(name, one, other),
            (_, _) => return None,
        };
        Some(match result {
            Some(kind) => kind,
            None => {
                let names: Vec<String> = args.iter().map(Type::name).collect();
                let message = format!(
                    "found no matching overload for '{name}' applied to '({})'",
                    names.join(", ")
                );
                self.problem(id, message)
            }
        })
    }
}

/// Returns the result type of an arithmetic operator; `None`: no overload for these types.
fn arithmetic(name: &str, one: &Type, other: &Type) -> Option<Type> {
    match (one, other) {
        (Type::List(of), Type::List(with)) if name == operators::ADD => Some(match (&**of, &**with) {
            (Type::Dyn, _) => other.clone(),
            (_, _) => one.clone(),
        }),
        (Type::Dyn, _) | (_, Type::Dyn) => Some(Type::Dyn),
        (Type::Int, Type::Int) => Some(Type::Int),
        (Type::Double, Type::Double) if name != operators::MODULO => Some(Type::Double),
        (Type::Text, Type::Text) if name == operators::ADD => Some(Type::Text),
        (Type::Bytes, Type::Bytes) if name == operators::ADD => Some(Type::Bytes),
        (Type::Timestamp, Type::Timestamp) if name == operators::SUBSTRACT => Some(Type::Duration),
        (Type::Timestamp, Type::Duration) if matches!(name, operators::ADD | operators::SUBSTRACT) => {
            Some(Type::Timestamp)
        }
        (Type::Duration, Type::Timestamp) if name == operators::ADD => Some(Type::Timestamp),
        (Type::Duration, Type::Duration) if matches!(name, operators::ADD | operators::SUBSTRACT) => {
            Some(Type::Duration)
        }
        (_, _) => None,
    }
}

/// Returns the result type of a function; `None`: undeclared.
fn result_of(name: &str) -> Option<Type> {
    Some(match name {
        "contains"
        | "startsWith"
        | "endsWith"
        | "matches"
        | "isSorted"
        | "hasValue"
        | "isURL"
        | "isQuantity"
        | "isIP"
        | "isCIDR"
        | "isInteger"
        | "isGreaterThan"
        | "isLessThan"
        | "isUnspecified"
        | "isLoopback"
        | "isLinkLocalMulticast"
        | "isLinkLocalUnicast"
        | "isGlobalUnicast"
        | "containsIP"
        | "containsCIDR"
        | "bool"
        | "isSemver"
        | "sets.contains"
        | "sets.equivalent"
        | "sets.intersects"
        | "ip.isCanonical" => Type::Bool,
        "major" | "minor" | "patch" | "size" | "indexOf" | "lastIndexOf" | "int" | "sign" | "asInteger"
        | "compareTo" | "family" | "prefixLength" | "getDate" | "getDayOfMonth" | "getDayOfWeek"
        | "getDayOfYear" | "getFullYear" | "getHours" | "getMilliseconds" | "getMinutes" | "getMonth"
        | "getSeconds" => Type::Int,
        "double" | "asApproximateFloat" => Type::Double,
        "string"
        | "charAt"
        | "join"
        | "lowerAscii"
        | "upperAscii"
        | "replace"
        | "substring"
        | "trim"
        | "format"
        | "find"
        | "strings.quote"
        | "getScheme"
        | "getHost"
        | "getHostname"
        | "getPort"
        | "getEscapedPath"
        | "jsonpatch.escapeKey" => Type::Text,
        "allowed" | "errored" => Type::Bool,
        "reason" | "error" => Type::Text,
        name if AUTHORIZATION_FUNCTIONS.contains(&name) => Type::Dyn,
        "bytes" => Type::Bytes,
        "timestamp" => Type::Timestamp,
        "duration" => Type::Duration,
        "flatten" => Type::List(Arc::new(Type::Dyn)),
        INSERT => Type::Map(Arc::new(Type::Dyn)),
        "lists.range" => Type::List(Arc::new(Type::Int)),
        "slice" | "sort" | "distinct" | "@sortByAssociatedKeys" => Type::Dyn,
        "split" | "findAll" => Type::List(Arc::new(Type::Text)),
        "getQuery" => Type::Map(Arc::new(Type::List(Arc::new(Type::Text)))),
        "optional.of" | "optional.none" | "optional.ofNonZeroValue" => Type::Optional(Arc::new(Type::Dyn)),
        "validate" => Type::Optional(Arc::new(Type::List(Arc::new(Type::Text)))),
        "format.named" => Type::Optional(Arc::new(Type::Dyn)),
        format if is_format(format) => Type::Dyn,
        "dyn" | "type" | "semver" | "uint" | "quantity" | "url" | "ip" | "cidr" | "masked" | "min"
        | "max" | "sum" | "first" | "last" | "unwrapOpt" | "optional.unwrap" | "reverse" | "value"
        | "orValue" | "or" | "optMap" | "optFlatMap" => Type::Dyn,
        _ => return None,
    })
}

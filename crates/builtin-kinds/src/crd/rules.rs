//! Evaluation of rules in CEL (`x-kubernetes-validations`), with the messages of the server. The object is otherwise valid by
//! its schema.
//!
//! Rules of unchanged parts only warn ("validation ratcheting"), unless they are transition rules.
//!
//! Source: apiextensions `apiserver/schema/cel/validation.go` and `values.go`; messages as Kubernetes 1.36 sends them.

use std::cell::OnceCell;
use std::collections::HashMap;

use apimachinery::go_text;
use apimachinery::status::Cause;
use serde_json::{Map, Value};

use super::rule::Rule;
use super::structural::{Additional, List, Schema, Type};
use crate::expression::{self, Budget, Evaluated, Expression, Failure, Key, OBJECT_COST_MAX, RESERVED};

/// Result of evaluating rules.
#[derive(Debug, Default)]
pub struct Found {
    /// Causes for which the object is rejected.
    pub causes: Vec<Cause>,
    /// Causes in unchanged parts, for which it is not rejected.
    pub warnings: Vec<String>,
}

/// Evaluates the rules of a schema for an object.
pub(super) fn evaluate_all(schema: &Schema, object: &Value, old: Option<&Value>) -> Found {
    if !schema.has_cel {
        return Found::default();
    }
    let mut search = Search {
        found: Found::default(),
        budget: Budget::new(OBJECT_COST_MAX),
        ended: false,
    };
    let unchanged = old.map(|old| Unchanged::new(object, old));
    let place = PartOfObject {
        value: object,
        own: value(schema, object, true),
        old,
        unchanged: unchanged.as_ref(),
        path: Path::Root,
        is_object: true,
    };
    search.walk(schema, schema, &place);
    search.found
}

/// A part of an object.
struct PartOfObject<'a> {
    value: &'a Value,
    /// The part as a value of expressions; `None`: they do not see it.
    own: Option<expression::Value>,
    /// The same part of the old object, if it can be correlated.
    old: Option<&'a Value>,
    /// It, or a part that contains it, with its old value.
    unchanged: Option<&'a Unchanged<'a>>,
    path: Path<'a>,
    /// Whether it has a kind and metadata.
    is_object: bool,
}

/// A part with its old value, which are compared at most once.
struct Unchanged<'a> {
    now: &'a Value,
    before: &'a Value,
    equal: OnceCell<bool>,
}

impl<'a> Unchanged<'a> {
    fn new(now: &'a Value, before: &'a Value) -> Self {
        Self {
            now,
            before,
            equal: OnceCell::new(),
        }
    }

    fn holds(&self) -> bool {
        *self.equal.get_or_init(|| self.now == self.before)
    }
}

/// Path of a part, which is written where a message needs it.
#[derive(Clone, Copy)]
enum Path<'a> {
    Root,
    Field(&'a Path<'a>, &'a str),
    Entry(&'a Path<'a>, &'a str),
    Item(&'a Path<'a>, usize),
}

impl Path<'_> {
    fn written(&self) -> String {
        let mut steps = Vec::new();
        let mut path = self;
        loop {
            steps.push(path);
            path = match path {
                Path::Root => break,
                Path::Field(of, _) | Path::Entry(of, _) | Path::Item(of, _) => of,
            };
        }
        let steps = steps.into_iter().rev();
        steps.fold(String::new(), |written, step| match step {
            Path::Root => written,
            Path::Field(_, name) => child(&written, name),
            Path::Entry(_, key) => format!("{written}[{key}]"),
            Path::Item(_, index) => format!("{written}[{index}]"),
        })
    }
}

struct Search {
    found: Found,
    budget: Budget,
    ended: bool,
}

impl Search {
    /// `rules`: schema with the rules; `schema`: schema with the types of the same part. They differ below `allOf`.
    fn walk(&mut self, rules: &Schema, schema: &Schema, place: &PartOfObject<'_>) {
        if !rules.has_cel || place.value.is_null() {
            return;
        }
        self.evaluate(rules, schema, place);
        for all_of in &rules.rules.all_of {
            if !self.ended {
                self.walk(all_of, schema, place);
            }
        }
        match place.value {
            Value::Array(items) => {
                if let (Some(rules), Some(of)) = (&rules.items, &schema.items) {
                    self.items(rules, (schema, of), place, items);
                }
            }
            Value::Object(fields) => self.fields(rules, schema, place, fields),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn items(
        &mut self,
        rules: &Schema,
        (list, of): (&Schema, &Schema),
        place: &PartOfObject<'_>,
        items: &[Value],
    ) {
        if !rules.has_cel {
            return;
        }
        let known = place.old.and_then(Value::as_array);
        let correlated = Correlated::new(&list.list, known.map_or(&[], Vec::as_slice));
        let keyed = matches!(list.list, List::Map(_));
        for (index, item) in items.iter().enumerate() {
            if self.ended {
                return;
            }
            let old = correlated.find(item);
            let own_change = old.filter(|_| keyed).map(|old| Unchanged::new(item, old));
            let below = PartOfObject {
                value: item,
                own: match &place.own {
                    Some(expression::Value::List(list)) => list.items().get(index).cloned(),
                    Some(_) | None => value(of, item, of.embedded),
                },
                old,
                unchanged: match keyed {
                    true => own_change.as_ref(),
                    false => place.unchanged,
                },
                path: Path::Item(&place.path, index),
                is_object: of.embedded,
            };
            self.walk(rules, of, &below);
        }
    }

    fn fields(
        &mut self,
        rules: &Schema,
        schema: &Schema,
        place: &PartOfObject<'_>,
        fields: &Map<String, Value>,
    ) {
        for (name, value) in fields {
            let below = match (rules.properties.get(name), schema.properties.get(name)) {
                (Some(rules), Some(of)) => Some((rules, of, Path::Field(&place.path, name), escaped(name))),
                (_, None) => match (&rules.additional, &schema.additional) {
                    (Additional::Schema(rules), Additional::Schema(of)) => Some((
                        &**rules,
                        &**of,
                        Path::Entry(&place.path, name),
                        Some(name.clone()),
                    )),
                    (_, _) => None,
                },
                (None, Some(_)) => None,
            };
            let Some((rules, of, path, key)) = below.filter(|(rules, ..)| !self.ended && rules.has_cel)
            else {
                continue;
            };
            let of_object = place.is_object && matches!(name.as_str(), "apiVersion" | "kind" | "metadata");
            let own = match (&place.own, key) {
                (Some(expression::Value::Map(map)), Some(key)) if !of_object => {
                    map.entries().get(&Key::text(key)).cloned()
                }
                (_, _) => None,
            };
            let old = place.old.and_then(|old| old.get(name));
            let unchanged = old.map(|old| Unchanged::new(value, old));
            self.walk(
                rules,
                of,
                &PartOfObject {
                    value,
                    own: own.or_else(|| self::value(of, value, of.embedded)),
                    old,
                    unchanged: unchanged.as_ref(),
                    path,
                    is_object: of.embedded,
                },
            );
        }
    }

    fn evaluate(&mut self, rules: &Schema, schema: &Schema, place: &PartOfObject<'_>) {
        if rules.cel.is_empty() || self.ended {
            return;
        }
        let Some(own) = &place.own else {
            return;
        };
        let before = place.old.filter(|old| !old.is_null());
        let before = before.filter(|_| rules.cel.iter().any(Rule::sees_old));
        let before = before.and_then(|old| value(schema, old, place.is_object));
        let of_type = format!("\"{}\"", word(schema.kind));
        for rule in &rules.cel {
            let Ok(expression) = rule.expression() else {
                continue;
            };
            let optional = rule.optional_old_self == Some(true);
            let transition = rule.is_transition();
            if transition && before.is_none() && !optional {
                continue;
            }
            let old = match optional {
                true => Some(expression::Value::optional(before.clone())),
                false => before.clone(),
            };
            let answer = self.run(expression, own, old);
            if self.budget.is_exhausted() {
                let why = "validation failed due to running out of cost budget, no further validation rules will be run";
                self.invalid(&place.path, &of_type, why);
                self.ended = true;
                return;
            }
            match answer {
                Ok(Evaluated::Bool(true)) => {}
                Ok(Evaluated::Bool(false) | Evaluated::Text(_) | Evaluated::Other) => {
                    let detail = self.message(rule, own, before.as_ref());
                    self.budget.work(REFUSAL);
                    let cause = refusal(rule, place, &detail);
                    let same = place.unchanged.is_some_and(Unchanged::holds);
                    match same && !transition {
                        true => {
                            let warning = format!("{}: {}", cause.field, cause.message);
                            self.found.warnings.push(warning);
                        }
                        false => self.found.causes.push(cause),
                    }
                }
                Err(failure @ Failure::Overload) => {
                    let why = format!(
                        "'{failure}': call arguments did not match a supported operator, function or macro signature for \
                         rule: {}",
                        rule.shown()
                    );
                    self.invalid(&place.path, &of_type, &why);
                }
                Err(failure @ Failure::Cost) => {
                    let why = format!(
                        "'{failure}': no further validation rules will be run due to call cost exceeds limit for rule: {}",
                        rule.shown()
                    );
                    self.invalid(&place.path, &of_type, &why);
                    self.ended = true;
                    return;
                }
                Err(failure @ Failure::Error(_)) => {
                    let why = format!("{failure} evaluating rule: {}", rule.shown());
                    self.invalid(&place.path, &of_type, &why);
                }
            }
        }
    }

    fn run(
        &mut self,
        expression: &Expression,
        own: &expression::Value,
        old: Option<expression::Value>,
    ) -> Result<Evaluated, Failure> {
        let old = old.map(|old| ("oldSelf", old));
        let variables: Vec<_> = [("self", own.clone())].into_iter().chain(old).collect();
        expression.evaluate(&variables, &mut self.budget)
    }

    /// Returns the message for an object that violates a rule.
    fn message(&mut self, rule: &Rule, own: &expression::Value, old: Option<&expression::Value>) -> String {
        let said = match rule.message_expression() {
            Some(Ok(expression)) => self.run(expression, own, old.cloned()).ok(),
            Some(Err(_)) | None => None,
        };
        let text = match said {
            Some(Evaluated::Text(text)) => text.trim().to_owned(),
            Some(Evaluated::Bool(_) | Evaluated::Other) | None => String::new(),
        };
        let usable = !text.is_empty() && !text.contains('\n') && text.len() <= MESSAGE_MAX;
        match (usable, rule.message.trim()) {
            (true, _) => text,
            (false, "") => format!("failed rule: {}", rule.rule.trim()),
            (false, message) => message.to_owned(),
        }
    }

    fn invalid(&mut self, path: &Path<'_>, shown: &str, why: &str) {
        self.budget.work(REFUSAL);
        self.found.causes.push(Cause {
            reason: "FieldValueInvalid".to_owned(),
            message: format!("Invalid value: {shown}: {why}"),
            field: field(&path.written()),
        });
    }
}

/// Work of an error, which is some hundred bytes.
const REFUSAL: u64 = 100;

/// Longest text of a `messageExpression`.
const MESSAGE_MAX: usize = 5 * 1024;

/// The old items of a list of type `map`, by the values of their keys.
struct Correlated<'a> {
    keys: &'a [String],
    known: HashMap<Vec<String>, &'a Value>,
}

impl<'a> Correlated<'a> {
    fn new(list: &'a List, known: &'a [Value]) -> Self {
        let List::Map(keys) = list else {
            return Self {
                keys: &[],
                known: HashMap::new(),
            };
        };
        let mut by_keys = HashMap::with_capacity(known.len());
        for item in known {
            by_keys.entry(key_values(keys, item)).or_insert(item);
        }
        Self { keys, known: by_keys }
    }

    fn find(&self, item: &Value) -> Option<&'a Value> {
        match self.known.is_empty() {
            true => None,
            false => self.known.get(&key_values(self.keys, item)).copied(),
        }
    }
}

fn key_values(keys: &[String], item: &Value) -> Vec<String> {
    let values = keys.iter().map(|key| item.get(key).map(Value::to_string));
    values.map(Option::unwrap_or_default).collect()
}

fn refusal(rule: &Rule, place: &PartOfObject<'_>, detail: &str) -> Cause {
    let path = match rule.field_path.as_str() {
        "" => place.path.written(),
        below => child(&place.path.written(), below),
    };
    // Messages do not contain objects and lists.
    let shown = match place.value {
        Value::Object(_) | Value::Array(_) | Value::Null => None,
        Value::String(text) => Some(go_text::quote(text)),
        Value::Bool(_) | Value::Number(_) => Some(place.value.to_string()),
    };
    let (reason, message) = match (rule.reason.as_str(), shown) {
        ("FieldValueForbidden", _) => ("FieldValueForbidden", format!("Forbidden: {detail}")),
        ("FieldValueRequired", _) => ("FieldValueRequired", format!("Required value: {detail}")),
        ("FieldValueDuplicate", Some(shown)) => ("FieldValueDuplicate", format!("Duplicate value: {shown}")),
        ("FieldValueDuplicate", None) => ("FieldValueDuplicate", "Duplicate value".to_owned()),
        (_, Some(shown)) => ("FieldValueInvalid", format!("Invalid value: {shown}: {detail}")),
        (_, None) => ("FieldValueInvalid", format!("Invalid value: {detail}")),
    };
    Cause {
        reason: reason.to_owned(),
        message,
        field: field(&path),
    }
}

fn child(path: &str, name: &str) -> String {
    match path {
        "" => name.to_owned(),
        path => format!("{path}.{name}"),
    }
}

/// Returns the path in messages: `<nil>` for the whole object.
fn field(path: &str) -> String {
    match path {
        "" => "<nil>".to_owned(),
        path => path.to_owned(),
    }
}

/// `type`, which an integer or text does not have.
fn word(kind: Type) -> &'static str {
    if kind == Type::IntegerOrText {
        ""
    } else {
        kind.word()
    }
}

/// Returns the CEL value of a part of an object; `None`: not visible to expressions. `is_object`: it has a kind and metadata.
fn value(schema: &Schema, json: &Value, is_object: bool) -> Option<expression::Value> {
    let of_json = || Some(expression::untyped(json));
    match (schema.kind, json) {
        (_, Value::Null) => of_json(),
        (Type::Any, Value::Object(_)) if is_object => Some(object(schema, json, is_object)),
        (Type::Any, _) => None,
        (Type::Object, Value::Object(_)) => Some(object(schema, json, is_object)),
        (Type::Array, Value::Array(items)) => {
            let of = schema.items.as_ref()?;
            let items = items.iter().map(|item| value(of, item, of.embedded));
            Some(expression::Value::list(items.collect::<Option<_>>()?))
        }
        (Type::Text, Value::String(text)) => Some(expression::with_format(text, &schema.rules.format)),
        (Type::Number, Value::Number(number)) => Some(expression::double(number)),
        (_, _) => of_json(),
    }
}

fn object(schema: &Schema, json: &Value, is_object: bool) -> expression::Value {
    let mut known: Vec<(String, expression::Value)> = Vec::new();
    let fields = json.as_object().into_iter().flatten();
    for (name, field) in fields {
        let of_object = is_object && matches!(name.as_str(), "apiVersion" | "kind" | "metadata");
        let seen = match (schema.properties.get(name), &schema.additional) {
            _ if of_object => {
                let seen = match name.as_str() {
                    "metadata" => {
                        let seen = ["generateName", "name"].into_iter();
                        let seen = seen.filter_map(|name| Some((name.to_owned(), field.get(name)?)));
                        expression::Value::fields(
                            seen.map(|(name, value)| (name, expression::untyped(value))),
                        )
                    }
                    _ => expression::untyped(field),
                };
                Some((name.clone(), seen))
            }
            (Some(of), _) => escaped(name).zip(value(of, field, of.embedded)),
            (None, Additional::Schema(of)) => {
                value(of, field, of.embedded).map(|value| (name.clone(), value))
            }
            (None, Additional::None | Additional::Any | Additional::Forbidden) => None,
        };
        known.extend(seen);
    }
    expression::Value::fields(known)
}

/// Returns the escaped name of a property in expressions; `None`: it has none.
pub(super) fn escaped(name: &str) -> Option<String> {
    if RESERVED.contains(&name) {
        return Some(format!("__{name}__"));
    }
    let starts = name.starts_with(|first: char| first.is_ascii_alphabetic() || "_.-/".contains(first));
    let legal = name
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"_.-/".contains(&byte));
    (starts && legal).then(|| {
        name.replace("__", "__underscores__")
            .replace('.', "__dot__")
            .replace('-', "__dash__")
            .replace('/', "__slash__")
    })
}

//! Evaluation of rules in CEL (`x-kubernetes-validations`), with the messages of the server. The object is otherwise valid by
//! its schema.
//!
//! Rules of unchanged parts only warn ("validation ratcheting"), unless they are transition rules.
//!
//! Source: apiextensions `apiserver/schema/cel/validation.go` and `values.go`; messages as Kubernetes 1.36 sends them.

use apimachinery::go_text;
use apimachinery::status::Cause;
use serde_json::{Map, Value};

use super::rule::Rule;
use super::structural::{Additional, List, Schema, Type};
use crate::expression::{self, Answer, Expression, Failure, Fields, OBJECT_COST_MAX, Object, RESERVED};
use crate::size;

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
        spent: 0,
        ended: false,
        size: size::json_bytes(object),
    };
    let place = Place {
        value: object,
        old,
        unchanged: old.map(|old| (object, old)),
        path: String::new(),
        is_object: true,
    };
    search.walk(schema, schema, &place);
    search.found
}

/// A part of an object.
struct Place<'a> {
    value: &'a Value,
    /// The same part of the old object, if it can be correlated.
    old: Option<&'a Value>,
    /// It, or a part that contains it, with its old value: if both are equal, nothing changed.
    unchanged: Option<(&'a Value, &'a Value)>,
    path: String,
    /// Whether it has a kind and metadata.
    is_object: bool,
}

struct Search {
    found: Found,
    spent: u64,
    ended: bool,
    size: usize,
}

impl Search {
    /// `rules`: schema with the rules; `schema`: schema with the types of the same part. They differ below `allOf`.
    fn walk(&mut self, rules: &Schema, schema: &Schema, place: &Place<'_>) {
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
                let (Some(rules), Some(of)) = (&rules.items, &schema.items) else {
                    return;
                };
                let known = place.old.and_then(Value::as_array);
                for (index, item) in items.iter().enumerate() {
                    let old = known.and_then(|known| correlated(&schema.list, item, known));
                    let keyed = matches!(schema.list, List::Map(_));
                    self.walk(
                        rules,
                        of,
                        &Place {
                            value: item,
                            old,
                            unchanged: match keyed {
                                true => old.map(|old| (item, old)),
                                false => place.unchanged,
                            },
                            path: format!("{}[{index}]", place.path),
                            is_object: of.embedded,
                        },
                    );
                }
            }
            Value::Object(fields) => self.fields(rules, schema, place, fields),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn fields(&mut self, rules: &Schema, schema: &Schema, place: &Place<'_>, fields: &Map<String, Value>) {
        for (name, value) in fields {
            let below = match (rules.properties.get(name), schema.properties.get(name)) {
                (Some(rules), Some(of)) => Some((rules, of, child(&place.path, name))),
                (_, None) => match (&rules.additional, &schema.additional) {
                    (Additional::Schema(rules), Additional::Schema(of)) => {
                        Some((&**rules, &**of, format!("{}[{name}]", place.path)))
                    }
                    (_, _) => None,
                },
                (None, Some(_)) => None,
            };
            let Some((rules, of, path)) = below.filter(|_| !self.ended) else {
                continue;
            };
            let old = place.old.and_then(|old| old.get(name));
            self.walk(
                rules,
                of,
                &Place {
                    value,
                    old,
                    unchanged: old.map(|old| (value, old)),
                    path,
                    is_object: of.embedded,
                },
            );
        }
    }

    fn evaluate(&mut self, rules: &Schema, schema: &Schema, place: &Place<'_>) {
        if rules.cel.is_empty() || self.ended {
            return;
        }
        let Some(own) = value(schema, place.value, place.is_object) else {
            return;
        };
        let before = place.old.filter(|old| !old.is_null());
        let before = before.and_then(|old| value(schema, old, place.is_object));
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
                true => Some(expression::optional(before.clone())),
                false => before.clone(),
            };
            let answer = self.run(expression, &own, old.as_ref());
            let of_type = format!("\"{}\"", word(schema.kind));
            if self.spent > OBJECT_COST_MAX {
                let why = "validation failed due to running out of cost budget, no further validation rules will be run";
                self.invalid(&place.path, &of_type, why);
                self.ended = true;
                return;
            }
            match answer {
                Ok(Answer::Bool(true)) => {}
                Ok(Answer::Bool(false) | Answer::Text(_) | Answer::Other) => {
                    let detail = self.message(rule, &own, before.as_ref());
                    let cause = refusal(rule, place, &detail);
                    let same = place.unchanged.is_some_and(|(now, before)| now == before);
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
        own: &Object,
        old: Option<&Object>,
    ) -> Result<Answer, Failure> {
        let old = old.map(|old| ("oldSelf", old.clone()));
        let variables = [("self", own.clone())].into_iter().chain(old);
        expression.evaluate(variables, self.size, &mut self.spent)
    }

    /// Returns the message for an object that violates a rule.
    fn message(&mut self, rule: &Rule, own: &Object, old: Option<&Object>) -> String {
        let said = match rule.message_expression() {
            Some(Ok(expression)) => self.run(expression, own, old).ok(),
            Some(Err(_)) | None => None,
        };
        let text = match said {
            Some(Answer::Text(text)) => text.trim().to_owned(),
            Some(Answer::Bool(_) | Answer::Other) | None => String::new(),
        };
        let usable = !text.is_empty() && !text.contains('\n') && text.len() <= MESSAGE_MAX;
        match (usable, rule.message.trim()) {
            (true, _) => text,
            (false, "") => format!("failed rule: {}", rule.rule.trim()),
            (false, message) => message.to_owned(),
        }
    }

    fn invalid(&mut self, path: &str, shown: &str, why: &str) {
        self.found.causes.push(Cause {
            reason: "FieldValueInvalid".to_owned(),
            message: format!("Invalid value: {shown}: {why}"),
            field: field(path),
        });
    }
}

/// Longest text of a `messageExpression`.
const MESSAGE_MAX: usize = 5 * 1024;

/// Returns the old item of a list that corresponds to this one, which lists of type `map` have.
fn correlated<'a>(list: &List, item: &Value, known: &'a [Value]) -> Option<&'a Value> {
    let List::Map(keys) = list else { return None };
    known
        .iter()
        .find(|known| keys.iter().all(|key| known.get(key) == item.get(key)))
}

fn refusal(rule: &Rule, place: &Place<'_>, detail: &str) -> Cause {
    let path = match rule.field_path.as_str() {
        "" => place.path.clone(),
        below => child(&place.path, below),
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
fn value(schema: &Schema, json: &Value, is_object: bool) -> Option<Object> {
    let of_json = || Some(expression::untyped(json));
    match (schema.kind, json) {
        (_, Value::Null) => of_json(),
        (Type::Any, Value::Object(_)) if is_object => Some(object(schema, json, is_object)),
        (Type::Any, _) => None,
        (Type::Object, Value::Object(_)) => Some(object(schema, json, is_object)),
        (Type::Array, Value::Array(items)) => {
            let of = schema.items.as_ref()?;
            let items: Option<Vec<Object>> = items.iter().map(|item| value(of, item, of.embedded)).collect();
            Some(expression::list(items?.into_iter()))
        }
        (Type::Text, Value::String(text)) => Some(expression::with_format(text, &schema.rules.format)),
        (Type::Number, Value::Number(number)) => Some(expression::double(number)),
        (_, _) => of_json(),
    }
}

fn object(schema: &Schema, json: &Value, is_object: bool) -> Object {
    let mut known: Vec<(String, Object)> = Vec::new();
    let fields = json.as_object().into_iter().flatten();
    for (name, field) in fields {
        let of_object = is_object && matches!(name.as_str(), "apiVersion" | "kind" | "metadata");
        let seen = match (schema.properties.get(name), &schema.additional) {
            _ if of_object => {
                let seen = match name.as_str() {
                    "metadata" => {
                        let seen = ["generateName", "name"].into_iter();
                        let seen = seen.filter_map(|name| Some((name.to_owned(), field.get(name)?)));
                        Box::new(Fields::new(
                            seen.map(|(name, value)| (name, expression::untyped(value))),
                        ))
                    }
                    _ => expression::untyped(field),
                };
                Some((name.clone(), seen))
            }
            (Some(of), _) => escaped(name).zip(value(of, field, of.embedded)),
            (None, Additional::Schema(of)) => {
                value(of, field, of.embedded).map(|value| (name.clone(), value))
            }
            (None, Additional::None | Additional::Any) => None,
        };
        known.extend(seen);
    }
    Box::new(Fields::new(known))
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
